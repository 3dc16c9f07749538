//! What a provider is before `models.json` has its say: the built-in table, with a newer list over it. Nothing is
//! copied out of the table; a model is made when it is asked for.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use hashbrown::{HashMap, HashSet};

use super::builtin::{Facts, Line, Section};
use super::record::{self, Record, chat_id};

/// A provider before `models.json`.
#[derive(Clone, Debug, Default)]
pub struct Base {
    /// Name for people.
    pub name: String,
    /// Address of the provider.
    pub base_url: Option<String>,
    section: Option<Section>,
    newer: Vec<Record>,
    /// `newer` is all there is, not laid over the table.
    whole: bool,
    /// What is odd about `newer`, for people.
    pub(super) remark: Option<String>,
}

/// One model of a list, not made yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Row<'a> {
    /// In the table.
    Line(Line),
    /// In a newer list.
    Newer(&'a Record),
    /// In the provider's entry of `models.json`; complete.
    Own(&'a Record),
}

impl<'a> Row<'a> {
    /// Its id, if it is a chat model.
    pub(super) fn chat_id(self) -> Option<&'a str> {
        match self {
            Row::Line(line) => Some(line.id),
            Row::Newer(record) | Row::Own(record) => chat_id(record),
        }
    }

    pub(super) fn name(self) -> &'a str {
        match self {
            Row::Line(line) => line.name,
            Row::Newer(record) | Row::Own(record) => record::text(record, "name"),
        }
    }

    pub(super) fn record(self, provider: &str) -> Record {
        match self {
            Row::Line(line) => line.record(provider),
            Row::Newer(record) | Row::Own(record) => record.clone(),
        }
    }

    /// What lists show of it, if that is cheaper to get than the model.
    pub(super) fn facts(self) -> Option<Facts> {
        match self {
            Row::Line(line) => Some(line.codes.facts()),
            Row::Newer(_) | Row::Own(_) => None,
        }
    }
}

impl Base {
    /// A built-in provider; `newer` is a list that came later, the last model of an id counts. `whole`: that list is
    /// complete, what it does not have is gone.
    #[must_use]
    pub fn of_section(section: Section, newer: Vec<Record>, whole: bool) -> Self {
        let base_url = Some(section.base_url).filter(|url| !url.is_empty()).map(ToString::to_string);
        let (name, whole) = (section.name.to_string(), whole && !newer.is_empty());
        Self { name, base_url, section: Some(section), newer, whole, remark: None }
    }

    /// Any provider.
    #[must_use]
    pub const fn of_records(name: String, base_url: Option<String>, models: Vec<Record>) -> Self {
        Self { name, base_url, section: None, newer: models, whole: true, remark: None }
    }

    pub(super) fn with_remark(self, remark: Option<String>) -> Self {
        Self { remark, ..self }
    }

    fn table(&self) -> Option<Section> {
        self.section.filter(|_| !self.whole)
    }

    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let lines = self.table().into_iter().flat_map(Section::lines).map(Row::Line).collect();
        lay(lines, &self.newer, Row::Newer)
    }

    /// The chat model of an id.
    pub(super) fn row(&self, id: &str) -> Option<Row<'_>> {
        let newer = self.newer.iter().rev().find(|model| chat_id(model) == Some(id));
        newer.map(Row::Newer).or_else(|| self.table()?.line(id).map(Row::Line))
    }
}

/// Lays models over others: chat models in the place of those of the same id, all else at the end. The last model of
/// an id counts, in the place of the first.
pub(super) fn lay<'a>(
    below: Vec<Row<'a>>,
    above: &'a [Record],
    row: fn(&'a Record) -> Row<'a>,
) -> Vec<Row<'a>> {
    if above.is_empty() {
        return below;
    }
    let last: HashMap<&str, &'a Record> =
        above.iter().filter_map(|model| Some((chat_id(model)?, model))).collect();
    let mut seen: HashSet<&str> = HashSet::new();
    let rows = below.into_iter().chain(above.iter().map(row));
    rows.filter_map(|old| match old.chat_id() {
        None => Some(old),
        Some(id) => seen.insert(id).then(|| last.get(id).map_or(old, |model| row(model))),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Value;
    use crate::model::builtin;

    fn records(text: &str) -> Vec<Record> {
        let list = crate::json::parse(text).unwrap();
        list.as_array().unwrap().iter().filter_map(Value::as_object).cloned().collect()
    }

    fn names<'a>(rows: &[Row<'a>]) -> Vec<&'a str> {
        rows.iter().map(|row| row.name()).collect()
    }

    #[test]
    fn the_last_model_of_an_id_counts_in_the_place_of_the_first() {
        let below = records(r#"[{"id":"a","name":"A"},{"id":"b","name":"B"}]"#);
        let above = records(
            r#"[{"id":"c","name":"C"},{"id":"a","name":"A2"},{"id":"a","type":"image","name":"I"},
                {"id":"c","name":"C2"},{"id":"a","name":"A3"}]"#,
        );
        let rows = lay(below.iter().map(Row::Newer).collect(), &above, Row::Own);
        assert_eq!(names(&rows), ["A3", "B", "C2", "I"]);
        let base = Base::of_records("P".into(), None, above);
        assert_eq!(base.row("a").map(Row::name), Some("A3"));
        assert_eq!(names(&base.rows()), ["C2", "A3", "I"]);
    }

    #[test]
    fn a_newer_list_lies_over_the_table_or_stands_for_it() {
        let section = builtin::section("deepseek").unwrap();
        let newer = || records(r#"[{"id":"deepseek-v4-pro","name":"New"},{"id":"later","name":"Later"}]"#);
        let over = Base::of_section(section, newer(), false);
        assert_eq!(over.rows().len(), section.lines().count() + 1);
        assert_eq!(over.row("deepseek-v4-pro").map(Row::name), Some("New"));
        let whole = Base::of_section(section, newer(), true);
        assert_eq!(names(&whole.rows()), ["New", "Later"]);
        let nothing = Base::of_section(section, Vec::new(), true);
        assert_eq!(nothing.rows().len(), section.lines().count());
    }
}
