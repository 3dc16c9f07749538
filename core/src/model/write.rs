//! Models as JSON objects, in the spelling of `models.json` (spec 60 §3.3).

use super::{Model, Rates};
use crate::json::{Value, Writer};

impl Model {
    /// Writes the model as one object with all its fields; [`super::record::to_model`] reads it back.
    pub fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_str("id", &self.id);
        w.field_str("name", &self.name);
        w.field_str("api", &self.api);
        w.field_str("provider", &self.provider);
        w.field_str("baseUrl", &self.base_url);
        w.field_bool("reasoning", self.reasoning);
        let maps = [
            ("thinkingLevelMap", &self.thinking_levels),
            ("samplingParams", &self.sampling_params),
            ("samplingParamsByThinkingLevel", &self.sampling_params_by_level),
            ("compat", &self.compat),
        ];
        for (key, map) in maps {
            if let Some(map) = map {
                w.key(key);
                w.map(map);
            }
        }
        w.key("input");
        w.begin_array();
        [("text", self.text_input), ("image", self.image_input)]
            .iter()
            .filter(|(_, taken)| *taken)
            .for_each(|(kind, _)| w.str(kind));
        w.end_array();
        w.key("cost");
        self.rates.write(w);
        w.field_u64("contextWindow", self.context_window);
        w.field_u64("maxTokens", self.max_tokens);
        if !self.headers.is_empty() {
            w.key("headers");
            w.begin_object();
            for (name, value) in &self.headers {
                w.name(name);
                match value {
                    Some(value) => w.str(value),
                    None => w.null(),
                }
            }
            w.end_object();
        }
        if let Some(limits) = &self.input_limits {
            w.field_value("inputLimits", limits);
        }
        w.end_object();
    }
}

impl Rates {
    /// The `cost` object of a record.
    pub(crate) fn to_value(&self) -> Value {
        let mut w = Writer::new();
        self.write(&mut w);
        crate::json::parse(w.as_str()).unwrap_or_default()
    }

    fn write(&self, w: &mut Writer) {
        w.begin_object();
        write_rates([self.input, self.output, self.cache_read, self.cache_write], w);
        if !self.tiers.is_empty() {
            w.key("tiers");
            w.begin_array();
            for tier in &self.tiers {
                w.begin_object();
                w.field_f64("inputTokensAbove", tier.input_tokens_above);
                write_rates([tier.input, tier.output, tier.cache_read, tier.cache_write], w);
                w.end_object();
            }
            w.end_array();
        }
        w.end_object();
    }
}

fn write_rates([input, output, cache_read, cache_write]: [f64; 4], w: &mut Writer) {
    w.field_f64("input", input);
    w.field_f64("output", output);
    w.field_f64("cacheRead", cache_read);
    w.field_f64("cacheWrite", cache_write);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record::to_model;
    use crate::model::{catalog::Catalog, config};

    fn read_back(model: &Model) -> Model {
        let mut w = Writer::new();
        model.write(&mut w);
        to_model(crate::json::parse(w.as_str()).unwrap().as_object().unwrap())
    }

    #[test]
    fn what_is_written_reads_back() {
        let catalog = Catalog::default();
        for entry in catalog.entries() {
            let model = entry.model();
            assert_eq!(read_back(&model), model);
        }
        let text = r#"{"providers":{"p":{"baseUrl":"http://h","api":"openai-completions","models":[{
            "id":"m","reasoning":true,"input":["text","image"],"headers":{"a":"b"},
            "thinkingLevelMap":{"minimal":null,"xhigh":"x"},"compat":{"supportsStore":false},
            "cost":{"input":1,"output":2,"cacheRead":0.5,"cacheWrite":0,"tiers":[
                {"inputTokensAbove":200000,"input":2,"output":4,"cacheRead":1,"cacheWrite":0}]}}]}}}"#;
        let file = config::read("models.json", text);
        assert!(file.faults.is_empty(), "{:?}", file.faults);
        let model = Catalog::load("models.json", Ok(Some(text))).find("p", "m").unwrap();
        assert_eq!((model.rates.tiers.len(), model.image_input), (1, true));
        assert_eq!(read_back(&model), model);
        let headers = alloc::vec![("a".into(), Some("b".into())), ("c".into(), None)];
        let model = Model { headers, ..model };
        assert_eq!(read_back(&model), model);
        assert!(read_back(&Model::placeholder()).is_placeholder());
    }
}
