//! The built-in models, read in place: nothing is parsed before a model is asked for.
//!
//! The tables in `builtin/` are made from a catalogue by the test `catalogue` of `tests/`, which also tells how:
//!
//! | file | line |
//! |---|---|
//! | `providers.tsv` | `id ⇥ name ⇥ base URL ⇥ bytes of its models`, in registration order |
//! | `models.tsv` | `id ⇥ name ⇥ shape limits cost`: the models of all providers one after the other; the numbers are lines of the files below |
//! | `shapes.txt` | flags (`r` thinks, `t` takes text, `i` takes images, in this order, or `-` for none), then lines of `parts.jsonl` |
//! | `parts.jsonl` | a JSON object with some fields of a model |
//! | `limits.txt` | context window and output ceiling in tokens |
//! | `costs.txt` | prices of input, output, cache reads and writes; then for each tier `\|`, its threshold and prices |
//!
//! In the last four the lines that are used most come first, so that their numbers are short.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::json::{Map, Value};

const PROVIDERS: &str = include_str!("builtin/providers.tsv");
const MODELS: &str = include_str!("builtin/models.tsv");

/// Lines that are found by their number.
#[derive(Clone, Copy)]
struct Table {
    text: &'static str,
    /// Where each line begins, and where the next would.
    starts: &'static [u16],
}

macro_rules! table {
    ($file:literal) => {{
        const TEXT: &str = include_str!($file);
        const STARTS: [u16; count(TEXT) + 1] = starts(TEXT);
        Table { text: TEXT, starts: &STARTS }
    }};
}

static SHAPES: Table = table!("builtin/shapes.txt");
static PARTS: Table = table!("builtin/parts.jsonl");
static LIMITS: Table = table!("builtin/limits.txt");
static COSTS: Table = table!("builtin/costs.txt");

/// Lines of a text; each ends in a line feed.
const fn count(text: &str) -> usize {
    let mut rest = text.as_bytes();
    let mut lines = 0;
    while let [byte, after @ ..] = rest {
        if *byte == b'\n' {
            lines += 1;
        }
        rest = after;
    }
    lines
}

#[allow(clippy::indexing_slicing, reason = "runs while this is compiled")]
const fn starts<const N: usize>(text: &str) -> [u16; N] {
    assert!(text.len() <= u16::MAX as usize);
    let mut starts = [0; N];
    let (mut rest, mut line) = (text.as_bytes(), 1);
    while let [byte, after @ ..] = rest {
        if *byte == b'\n' {
            starts[line] = (text.len() - after.len()) as u16;
            line += 1;
        }
        rest = after;
    }
    starts
}

const RATES: [&str; 4] = ["input", "output", "cacheRead", "cacheWrite"];

/// A provider of the table.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Provider id.
    pub id: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// Address of the provider; empty = only its models have one.
    pub base_url: &'static str,
    lines: &'static str,
}

/// A model of the table.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Model id.
    pub id: &'static str,
    /// Name for people.
    pub name: &'static str,
    pub(super) codes: Codes,
}

/// Where the fields of a model are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codes(&'static str);

/// What lists show of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// Context window in tokens.
    pub context_window: u64,
    /// Output ceiling in tokens.
    pub max_tokens: u64,
    /// Whether it can think.
    pub reasoning: bool,
    /// Whether it takes images.
    pub image_input: bool,
    /// USD per million tokens of fresh input.
    pub input: f64,
    /// USD per million tokens of output.
    pub output: f64,
}

/// All providers, in registration order.
pub fn sections() -> impl Iterator<Item = Section> {
    let mut rest = MODELS;
    PROVIDERS.lines().filter_map(move |line| {
        let mut cells = line.split('\t');
        let (id, name, base_url) = (cells.next()?, cells.next()?, cells.next()?);
        let (lines, after) = rest.split_at_checked(cells.next()?.parse().ok()?)?;
        rest = after;
        Some(Section { id, name, base_url, lines })
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
        let mut rest = self.lines;
        core::iter::from_fn(move || {
            let (line, after) = rest.split_at_checked(memchr::memchr(b'\n', rest.as_bytes())?)?;
            rest = after.get(1..)?;
            let (id, line) = line.split_once('\t')?;
            let (name, codes) = line.split_once('\t')?;
            Some(Line { id, name, codes: Codes(codes) })
        })
    }

    /// A model by its id.
    #[must_use]
    pub fn line(self, id: &str) -> Option<Line> {
        self.lines().find(|line| line.id == id)
    }

    /// The addresses of its models, and its own; each once.
    #[must_use]
    pub fn addresses(self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let mut shapes: Vec<&str> = Vec::new();
        let mut add = |url: &str| {
            if !url.is_empty() && !found.iter().any(|known| known == url) {
                found.push(url.to_string());
            }
        };
        add(self.base_url);
        for line in self.lines() {
            // Models of one shape have one address.
            let shape = line.codes.shape();
            if !shapes.contains(&shape) {
                shapes.push(shape);
                add(&line.codes.text("baseUrl"));
            }
        }
        found
    }

    /// All its models as records.
    #[must_use]
    pub fn records(self) -> Vec<Map<String, Value>> {
        self.lines().map(|line| line.record(self.id)).collect()
    }
}

impl Line {
    /// The model as an entry of `models.json` would describe it, with `provider`.
    #[must_use]
    pub fn record(self, provider: &str) -> Map<String, Value> {
        self.codes.record(provider, self.id, self.name)
    }
}

impl Codes {
    /// Flags, references to parts, limits, cost.
    fn fields(self) -> Option<(&'static str, &'static str, &'static str, &'static str)> {
        let mut codes = self.0.split(' ');
        let mut field = |table| nth(table, codes.next()?);
        let (shape, limits, cost) = (field(SHAPES)?, field(LIMITS)?, field(COSTS)?);
        let (flags, parts) = shape.split_once(' ').unwrap_or((shape, ""));
        Some((flags, parts, limits, cost))
    }

    fn shape(self) -> &'static str {
        self.0.split(' ').next().unwrap_or_default()
    }

    /// A text among the parts; empty if there is none.
    pub(super) fn text(self, key: &str) -> String {
        let parts = self.fields().map(|(_, parts, _, _)| parts).unwrap_or_default();
        // The last part that has the field counts, as in a record.
        let text = |part: &str| {
            let fields: Map<String, Value> = serde_json::from_str(nth(PARTS, part)?).ok()?;
            fields.get(key).and_then(Value::as_str).map(ToString::to_string)
        };
        parts.rsplit(' ').find_map(text).unwrap_or_default()
    }

    pub(super) fn facts(self) -> Facts {
        let Some((flags, _, limits, cost)) = self.fields() else { return Facts::default() };
        let (context, output) = limits.split_once(' ').unwrap_or_default();
        let mut rates = cost.split([' ', '|']).map(|rate| rate.parse().unwrap_or_default());
        Facts {
            context_window: context.parse().unwrap_or_default(),
            max_tokens: output.parse().unwrap_or_default(),
            reasoning: flags.contains('r'),
            image_input: flags.contains('i'),
            input: rates.next().unwrap_or_default(),
            output: rates.next().unwrap_or_default(),
        }
    }

    pub(super) fn record(self, provider: &str, id: &str, name: &str) -> Map<String, Value> {
        let mut record = Map::new();
        let mut put = |key: &str, value: Value| record.insert(key.to_string(), value);
        put("id", Value::from(id));
        put("name", Value::from(name));
        put("provider", Value::from(provider));
        // The tables are ours, and a test reads all of them.
        let Some((flags, parts, limits, cost)) = self.fields() else { return record };
        let (context, output) = limits.split_once(' ').unwrap_or_default();
        put("reasoning", Value::Bool(flags.contains('r')));
        let kinds = [('t', "text"), ('i', "image")].into_iter().filter(|(flag, _)| flags.contains(*flag));
        put("input", kinds.map(|(_, kind)| Value::from(kind)).collect());
        put("cost", costs(cost));
        put("contextWindow", number(context));
        put("maxTokens", number(output));
        for part in parts.split(' ').filter_map(|part| nth(PARTS, part)) {
            let fields: Map<String, Value> = serde_json::from_str(part).unwrap_or_default();
            record.extend(fields);
        }
        record
    }
}

/// The line with a number, counted from 0.
fn nth(table: Table, number: &str) -> Option<&'static str> {
    let number: usize = number.parse().ok()?;
    let (start, end) = (table.starts.get(number)?, table.starts.get(number + 1)?);
    table.text.get(usize::from(*start)..usize::from(*end))?.strip_suffix('\n')
}

fn costs(line: &str) -> Value {
    let mut groups = line.split('|');
    let fields = |keys: &[&str], group: &str| -> Map<String, Value> {
        let numbers = group.split(' ').map(number);
        keys.iter().map(ToString::to_string).zip(numbers).collect()
    };
    let mut cost = fields(&RATES, groups.next().unwrap_or_default());
    let tier = |group| {
        Value::Object(fields(&["inputTokensAbove", "input", "output", "cacheRead", "cacheWrite"], group))
    };
    let tiers: Vec<Value> = groups.map(tier).collect();
    if !tiers.is_empty() {
        cost.insert("tiers".to_string(), Value::Array(tiers));
    }
    Value::Object(cost)
}

fn number(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::record;

    #[test]
    fn every_line_is_a_usable_model() {
        let mut count = 0;
        for section in sections() {
            for line in section.lines() {
                assert!(line.codes.fields().is_some(), "{}", line.id);
                let model = record::to_model(&line.record(section.id));
                let is_demo = model.api == "demo";
                // A few models have no limits known, and Azure's address comes from the environment.
                assert!(!model.api.is_empty() && model.text_input, "{}", line.id);
                assert!(
                    is_demo || section.id == "azure" || model.base_url.starts_with("https://"),
                    "{}",
                    line.id
                );
                let facts = line.codes.facts();
                assert_eq!(
                    (facts.context_window, facts.max_tokens),
                    (model.context_window, model.max_tokens)
                );
                assert_eq!((facts.reasoning, facts.image_input), (model.reasoning, model.image_input));
                assert_eq!((facts.input, facts.output), (model.rates.input, model.rates.output));
                count += 1;
            }
        }
        assert_eq!(count, MODELS.lines().count());
        assert!(section("anthropic").is_some() && section("demo").is_some() && section("nope").is_none());
    }

    #[test]
    fn a_model_has_the_fields_of_its_lines() {
        let line = section("google").and_then(|google| google.line("gemini-2.5-pro")).unwrap();
        let record = line.record("google");
        assert_eq!(record["provider"], "google");
        assert_eq!(record["api"], "google-generative-ai");
        assert_eq!(record["input"], serde_json::json!(["text", "image"]));
        assert_eq!(record["cost"]["tiers"][0]["inputTokensAbove"], 200_000);
    }

    /// What the catalogue may add to the program.
    #[test]
    fn the_tables_are_small() {
        let tables = [SHAPES, PARTS, LIMITS, COSTS];
        let lines: usize = tables.iter().map(|table| table.text.len() + 2 * table.starts.len()).sum();
        let bytes = PROVIDERS.len() + MODELS.len() + lines;
        assert!(bytes < 145_000, "{bytes}");
    }
}
