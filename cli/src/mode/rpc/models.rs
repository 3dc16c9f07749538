//! Commands about the model and how much it thinks.

use std::sync::Arc;

use tau_core::json::Writer;
use tau_core::model::{Model, ThinkingLevel};

use super::Rpc;
use super::call::Call;
use super::commands::Answer;
use crate::bootstrap::Workshop;
use crate::choose::model_scope;
use crate::mode::pipe::seat;

impl Rpc {
    /// Why a run cannot start, if it cannot.
    pub(super) fn why_no_prompt(&mut self) -> Option<String> {
        let model = self.model();
        seat::why_no_prompt(&mut self.workshop, &model)
    }

    fn model(&self) -> Arc<Model> {
        seat::model(&self.engine)
    }

    fn thinking(&self) -> ThinkingLevel {
        seat::thinking(&self.engine)
    }

    pub(super) fn set_model(&mut self, call: &Call) -> Result<Answer, String> {
        let (provider, id) = (call.text("provider")?, call.text("modelId")?);
        let model = self.workshop.access.catalog.find(provider, id);
        let model = model.ok_or_else(|| format!("there is no model {provider}/{id}"))?;
        let access = &mut self.workshop.access;
        access.refresh();
        if !access.usable(provider) {
            return Err(format!(
                "{provider}/{id} cannot be used, no API key: {}",
                access.why_unusable(&model)
            ));
        }
        let mut w = Writer::new();
        model.write(&mut w);
        self.change_model(Arc::new(model), None)?;
        Ok(Answer::Data(w.into_string()))
    }

    /// The next model of the scope, or of all that can be used; `null` when there is no other.
    pub(super) fn cycle_model(&mut self, _: &Call) -> Result<Answer, String> {
        let current = self.model();
        let (models, is_scoped) = self.cycle();
        let is_current = |(model, _): &(Model, Option<ThinkingLevel>)| {
            model.provider == current.provider && model.id == current.id
        };
        let next = match models.iter().position(is_current) {
            Some(_) if models.len() < 2 => None,
            Some(at) => models.get((at + 1) % models.len()),
            None => models.first(),
        };
        let Some((next, level)) = next else { return Ok(Answer::Data("null".into())) };
        self.change_model(Arc::new(next.clone()), *level)?;
        let mut w = Writer::new();
        w.begin_object();
        w.key("model");
        next.write(&mut w);
        w.field_str("thinkingLevel", self.thinking().name());
        w.field_bool("isScoped", is_scoped);
        w.end_object();
        Ok(Answer::Data(w.into_string()))
    }

    /// The models to cycle through with the level that the scope gives them, and whether there is a scope.
    fn cycle(&mut self) -> (Vec<(Model, Option<ThinkingLevel>)>, bool) {
        let all = self.available();
        let Workshop { args, base, access, .. } = &self.workshop;
        let scope = model_scope(args, access, &base.settings).models;
        if scope.is_empty() {
            return (all.into_iter().map(|model| (model, None)).collect(), false);
        }
        let pool = access.catalog.entries();
        let scoped = scope.iter().filter_map(|scoped| Some((pool.get(scoped.index)?.model(), scoped.level)));
        (scoped.collect(), true)
    }

    /// The level goes with the model: that of the scope, its own setting, the general one, else what is current
    /// (spec 10 §8.6).
    fn change_model(&self, model: Arc<Model>, scoped: Option<ThinkingLevel>) -> Result<(), String> {
        seat::change_model(&self.engine, &self.workshop.base.settings, model, scoped)
    }

    pub(super) fn get_available_models(&mut self, _: &Call) -> Result<Answer, String> {
        let models = self.available();
        let mut w = Writer::new();
        w.begin_object();
        w.key("models");
        w.begin_array();
        models.iter().for_each(|model| model.write(&mut w));
        w.end_array();
        w.end_object();
        Ok(Answer::Data(w.into_string()))
    }

    /// Models whose provider has credentials; the demo must be named (decision D4).
    fn available(&mut self) -> Vec<Model> {
        seat::available(&mut self.workshop.access)
    }

    pub(super) fn set_thinking_level(&mut self, call: &Call) -> Result<Answer, String> {
        let level = ThinkingLevel::parse(call.text("level")?).unwrap_or_default();
        self.change_thinking(level)?;
        Ok(Answer::Done)
    }

    /// The next level, and after the last one the first; `null` when the model has only one.
    pub(super) fn cycle_thinking_level(&mut self, _: &Call) -> Result<Answer, String> {
        let (model, current) = (self.model(), self.thinking());
        if !model.reasoning {
            return Ok(Answer::Data("null".into()));
        }
        let next = model.levels().find(|level| *level > current).or_else(|| model.levels().next());
        let Some(next) = next else { return Ok(Answer::Data("null".into())) };
        self.change_thinking(next)?;
        let mut w = Writer::new();
        w.begin_object();
        w.field_str("level", next.name());
        w.end_object();
        Ok(Answer::Data(w.into_string()))
    }

    fn change_thinking(&self, level: ThinkingLevel) -> Result<(), String> {
        seat::change_thinking(&self.engine, level)
    }

    pub(super) fn get_available_thinking_levels(&mut self, _: &Call) -> Result<Answer, String> {
        let model = self.model();
        let mut w = Writer::new();
        w.begin_object();
        w.key("levels");
        w.begin_array();
        model.levels().for_each(|level| w.str(level.name()));
        w.end_array();
        w.end_object();
        Ok(Answer::Data(w.into_string()))
    }
}
