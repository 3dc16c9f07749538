//! The built-in models, read in place: nothing is parsed before a model is asked for.
//!
//! `builtin.tsv` holds one block per provider, in registration order. A block begins with
//! `>id ⇥ name ⇥ base URL ⇥ shared fields`; each further line is a model: `id ⇥ name ⇥ own fields`. Fields are
//! those of `models.json` entries; an own field replaces the shared one, `null` removes it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::json::{Map, Value};

const TABLE: &str = include_str!("builtin.tsv");

/// A provider of the table.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Provider id.
    pub id: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Address of the provider; empty = only its models have one.
    pub base_url: &'static str,
    shared: &'static str,
    lines: &'static str,
}

/// A model of the table.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Model id.
    pub id: &'static str,
    /// Name for people.
    pub name: &'static str,
    fields: &'static str,
}

/// All providers, in registration order.
pub fn sections() -> impl Iterator<Item = Section> {
    let mut rest = TABLE;
    core::iter::from_fn(move || {
        let block = rest.strip_prefix('>')?;
        let end = block.find("\n>").map_or(block.len(), |at| at + 1);
        let (block, after) = block.split_at(end);
        rest = after;
        let (head, lines) = block.split_once('\n')?;
        let mut cells = head.split('\t');
        Some(Section {
            id: cells.next()?,
            name: cells.next()?,
            base_url: cells.next()?,
            shared: cells.next()?,
            lines,
        })
    })
}

/// One provider.
#[must_use]
pub fn section(id: &str) -> Option<Section> {
    sections().find(|section| section.id == id)
}

impl Section {
    /// Its models, in order.
    pub fn lines(self) -> impl Iterator<Item = Line> {
        self.lines.lines().filter_map(|line| {
            let mut cells = line.split('\t');
            Some(Line { id: cells.next()?, name: cells.next()?, fields: cells.next()? })
        })
    }

    /// A model as an entry of `models.json` would describe it, with `provider`.
    #[must_use]
    pub fn record(self, line: Line) -> Map<String, Value> {
        let mut record = Map::new();
        record.insert("id".to_string(), Value::from(line.id));
        record.insert("name".to_string(), Value::from(line.name));
        record.insert("provider".to_string(), Value::from(self.id));
        for fields in [self.shared, line.fields] {
            // The table is ours, and a test reads all of it.
            let fields: Map<String, Value> = serde_json::from_str(fields).unwrap_or_default();
            for (key, value) in fields {
                if value.is_null() {
                    record.shift_remove(&key);
                } else {
                    record.insert(key, value);
                }
            }
        }
        record
    }

    /// All its models as records.
    #[must_use]
    pub fn records(self) -> Vec<Map<String, Value>> {
        self.lines().map(|line| self.record(line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record;

    #[test]
    fn every_line_is_a_usable_model() {
        let mut count = 0;
        for section in sections() {
            assert!(serde_json::from_str::<Map<String, Value>>(section.shared).is_ok(), "{}", section.id);
            for line in section.lines() {
                assert!(serde_json::from_str::<Map<String, Value>>(line.fields).is_ok(), "{}", line.id);
                let model = record::to_model(&section.record(line));
                assert!(
                    !model.api.is_empty() && model.context_window > 0 && model.max_tokens > 0,
                    "{}",
                    line.id
                );
                assert!(model.api == "demo" || model.base_url.starts_with("https://"), "{}", line.id);
                count += 1;
            }
        }
        assert_eq!(count, TABLE.lines().filter(|line| !line.starts_with('>')).count());
        assert!(section("anthropic").is_some() && section("demo").is_some() && section("nope").is_none());
    }

    #[test]
    fn own_fields_replace_and_remove_shared_ones() {
        let section = Section { id: "p", name: "P", base_url: "", shared: r#"{"a":1,"b":2}"#, lines: "" };
        let line = Line { id: "m", name: "M", fields: r#"{"a":3,"b":null}"# };
        assert_eq!(
            Value::Object(section.record(line)).to_string(),
            r#"{"id":"m","name":"M","provider":"p","a":3}"#
        );
    }
}
