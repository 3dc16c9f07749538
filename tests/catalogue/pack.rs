//! From records to the tables of `core/src/model/builtin/`; `builtin.rs` there describes them.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::{Provider, Record};

/// The text of every table.
#[derive(Debug, PartialEq)]
pub(crate) struct Files([(&'static str, String); 6]);

impl Files {
    const NAMES: [&'static str; 6] =
        ["providers.tsv", "models.tsv", "shapes.txt", "parts.jsonl", "limits.txt", "costs.txt"];

    pub(crate) fn each(text: impl Fn(&str) -> String) -> Self {
        Self(Self::NAMES.map(|name| (name, text(name))))
    }

    pub(crate) fn for_each(&self, mut use_it: impl FnMut(&str, &str)) {
        self.0.iter().for_each(|(name, text)| use_it(name, text));
    }
}

/// Fields that have tables of their own.
const OWN: [&str; 8] = ["id", "name", "provider", "reasoning", "input", "cost", "contextWindow", "maxTokens"];

/// A model in pieces; each piece is a line of a table.
struct Pieces<'a> {
    record: &'a Record,
    flags: String,
    parts: Vec<String>,
    limits: String,
    cost: String,
}

pub(crate) fn pack(providers: &[Provider]) -> Files {
    let models: Vec<Vec<Pieces<'_>>> =
        providers.iter().map(|provider| provider.models.iter().map(Pieces::of).collect()).collect();
    let all = || models.iter().flatten();
    let parts = Table::of(all().flat_map(|model| model.parts.iter().cloned()));
    let shape = |model: &Pieces<'_>| {
        let numbers = model.parts.iter().map(|part| format!(" {}", parts.line(part)));
        model.flags.clone() + &numbers.collect::<String>()
    };
    let shapes = Table::of(all().map(shape));
    let limits = Table::of(all().map(|model| model.limits.clone()));
    let costs = Table::of(all().map(|model| model.cost.clone()));

    let (mut head, mut body) = (String::new(), String::new());
    for (provider, models) in providers.iter().zip(&models) {
        let start = body.len();
        for model in models {
            let text = |key: &str| cell(model.record[key].as_str().expect("a text"));
            let codes = [shapes.line(&shape(model)), limits.line(&model.limits), costs.line(&model.cost)]
                .map(|n| n.to_string());
            let _ = writeln!(body, "{}\t{}\t{}", text("id"), text("name"), codes.join(" "));
        }
        let Provider { id, name, base_url, .. } = provider;
        let _ = writeln!(head, "{}\t{}\t{}\t{}", cell(id), cell(name), cell(base_url), body.len() - start);
    }
    let mut texts = [head, body, shapes.text(), parts.text(), limits.text(), costs.text()].into_iter();
    Files(Files::NAMES.map(|name| (name, texts.next().expect("as many texts as names"))))
}

fn cell(text: &str) -> &str {
    assert!(!text.contains(['\t', '\n']), "{text:?} does not fit into a table");
    text
}

impl<'a> Pieces<'a> {
    fn of(record: &'a Record) -> Self {
        let flag = |on: bool, flag: &'static str| if on { flag } else { "" };
        let input = record["input"].as_array().expect("a list");
        let takes = |kind: &str| input.iter().any(|own| own == kind);
        let mut flags =
            [flag(record["reasoning"] == true, "r"), flag(takes("text"), "t"), flag(takes("image"), "i")]
                .concat();
        if flags.is_empty() {
            flags.push('-');
        }
        let part = |keys: &[&str]| {
            let fields = keys.iter().filter_map(|key| Some(((*key).to_owned(), record.get(*key)?.clone())));
            Value::Object(fields.collect::<Map<_, _>>()).to_string()
        };
        // Protocol and address go together, every other field by itself.
        let mut parts = vec![part(&["api", "baseUrl"])];
        let mut others: Vec<&str> = record.keys().map(String::as_str).collect();
        others.retain(|key| !OWN.contains(key) && !["api", "baseUrl"].contains(key));
        others.sort_unstable();
        parts.extend(others.into_iter().map(|key| part(&[key])));
        Self {
            record,
            flags,
            parts,
            limits: format!("{} {}", record["contextWindow"], record["maxTokens"]),
            cost: cost(&record["cost"]),
        }
    }
}

fn cost(cost: &Value) -> String {
    let rates = |cost: &Value| {
        let rates = ["input", "output", "cacheRead", "cacheWrite"].map(|key| cost[key].to_string());
        rates.join(" ")
    };
    let tiers = cost.get("tiers").and_then(Value::as_array).into_iter().flatten();
    let tier = |tier: &Value| format!("|{} {}", tier["inputTokensAbove"], rates(tier));
    rates(cost) + &tiers.map(tier).collect::<String>()
}

/// Different lines, the ones used most first.
struct Table {
    lines: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Table {
    fn of(lines: impl Iterator<Item = String>) -> Self {
        let mut uses: BTreeMap<String, usize> = BTreeMap::new();
        lines.for_each(|line| *uses.entry(line).or_default() += 1);
        let mut sorted: Vec<(String, usize)> = uses.into_iter().collect();
        sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let lines: Vec<String> = sorted.into_iter().map(|(line, _)| line).collect();
        let numbers = lines.iter().enumerate().map(|(number, line)| (line.clone(), number)).collect();
        Self { lines, numbers }
    }

    fn line(&self, text: &str) -> usize {
        self.numbers[text]
    }

    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}
