//! What a session is, the plain way: a list of facts that is searched from end to end, and a file that is taken apart
//! line by line. Slow, short, and written from the rules (spec 60 §1.5–1.9) without a look at the store.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// One entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    pub id: String,
    pub parent: Option<String>,
    pub what: What,
}

/// What an entry says, as far as the rules look at it.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A message: role and text; a reply also names its model.
    Said {
        role: String,
        text: String,
        model: Option<String>,
    },
    CustomMessage(String),
    Summary(String),
    Compaction {
        summary: String,
        first_kept: String,
    },
    Model(String),
    Thinking(String),
    Label {
        target: String,
        label: Option<String>,
    },
    Name(String),
    Edit {
        target: String,
        text: Option<String>,
    },
    /// Counts nowhere.
    Silent,
}

impl Fact {
    fn read(record: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let what = match record["type"].as_str()? {
            "session" => return None,
            "message" => {
                let message = &record["message"];
                let role = text(&message["role"]);
                let model = (role == "assistant").then(|| text(&message["model"]));
                let said = if role == "bashExecution" {
                    text(&message["output"])
                } else {
                    texts(&message["content"])
                };
                What::Said { role, text: said, model }
            }
            "custom_message" => What::CustomMessage(texts(&record["content"])),
            "branch_summary" => What::Summary(text(&record["summary"])),
            "compaction" => What::Compaction {
                summary: text(&record["summary"]),
                first_kept: text(&record["firstKeptEntryId"]),
            },
            "model_change" => What::Model(text(&record["modelId"])),
            "thinking_level_change" => What::Thinking(text(&record["thinkingLevel"])),
            "label" => What::Label {
                target: text(&record["targetId"]),
                label: record["label"].as_str().map(str::to_owned),
            },
            "session_info" => What::Name(text(&record["name"])),
            "context_edit" => What::Edit {
                target: text(&record["targetId"]),
                text: record["replacement"].get("content").map(texts),
            },
            _ => What::Silent,
        };
        let parent = record["parentId"].as_str().map(str::to_owned);
        Some(Self { id: record["id"].as_str()?.to_owned(), parent, what })
    }
}

/// Texts of a content, with a blank between them.
fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        _ => {
            let blocks = content.as_array().into_iter().flatten();
            blocks.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join(" ")
        }
    }
}

/// The entries of a file whose lines are whole or no JSON at all.
pub fn file(bytes: &[u8]) -> Vec<Fact> {
    let lines = bytes.split(|byte| *byte == b'\n');
    lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .filter_map(|record| Fact::read(&record))
        .collect()
}

/// The entry with an id; of several the last.
pub fn find<'a>(facts: &'a [Fact], id: &str) -> Option<&'a Fact> {
    facts.iter().rev().find(|fact| fact.id == id)
}

/// From the root to `leaf`.
pub fn path<'a>(facts: &'a [Fact], leaf: Option<&str>) -> Vec<&'a Fact> {
    let (mut path, mut seen) = (Vec::new(), BTreeSet::new());
    let mut next = leaf.and_then(|id| find(facts, id));
    while let Some(fact) = next.filter(|fact| seen.insert(&fact.id)) {
        path.insert(0, fact);
        next = fact.parent.as_deref().and_then(|id| find(facts, id));
    }
    path
}

/// Labels by their targets.
pub fn labels(facts: &[Fact]) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for fact in facts {
        match &fact.what {
            What::Label { target, label: Some(label) } => {
                labels.insert(target.clone(), label.clone());
            }
            What::Label { target, label: None } => {
                labels.remove(target);
            }
            _ => {}
        }
    }
    labels
}

/// The display name.
pub fn name(facts: &[Fact]) -> Option<String> {
    let last = facts.iter().rev().find_map(|fact| match &fact.what {
        What::Name(name) => Some(name.trim().to_owned()),
        _ => None,
    });
    last.filter(|name| !name.is_empty())
}

/// Model and thinking level of a branch.
pub fn settings(facts: &[Fact], leaf: Option<&str>) -> (Option<String>, Option<String>) {
    let (mut model, mut thinking) = (None, None);
    for fact in path(facts, leaf) {
        match &fact.what {
            What::Model(name) | What::Said { model: Some(name), .. } => model = Some(name.clone()),
            What::Thinking(level) => thinking = Some(level.clone()),
            _ => {}
        }
    }
    (model, thinking)
}

/// Role and text of what the model sees.
pub fn context(facts: &[Fact], leaf: Option<&str>) -> Vec<(String, String)> {
    let path = path(facts, leaf);
    let selected = selected(&path);
    let mut edits = BTreeMap::new();
    for fact in &selected {
        if let What::Edit { target, text } = &fact.what {
            edits.insert(target.as_str(), text.as_deref());
        }
    }
    let mut said = Vec::new();
    for (at, fact) in selected.iter().enumerate() {
        let edit = edits.get(fact.id.as_str());
        if edit == Some(&None) {
            continue;
        }
        let edited = |text: &str, editable: bool| match edit {
            Some(Some(new)) if editable => (*new).to_owned(),
            _ => text.to_owned(),
        };
        match &fact.what {
            What::Said { role, text, .. } => {
                let editable = ["user", "assistant", "toolResult"].contains(&role.as_str());
                said.push((role.clone(), edited(text, editable)));
            }
            What::CustomMessage(text) => said.push(("custom".into(), edited(text, true))),
            What::Summary(text) if !text.is_empty() => said.push(("branchSummary".into(), text.clone())),
            What::Compaction { summary, .. } if at == 0 => {
                said.push(("compactionSummary".into(), summary.clone()));
            }
            _ => {}
        }
    }
    said
}

/// The last compaction of a path, what it keeps, what follows; without one everything.
fn selected<'a>(path: &[&'a Fact]) -> Vec<&'a Fact> {
    let last = path.iter().rposition(|fact| matches!(fact.what, What::Compaction { .. }));
    let Some((at, What::Compaction { first_kept, .. })) = last.map(|at| (at, &path[at].what)) else {
        return path.to_vec();
    };
    let mut selected = vec![path[at]];
    if let Some(first) = path[..at].iter().position(|fact| fact.id == *first_kept) {
        let is_system = |fact: &Fact| matches!(&fact.what, What::Said { role, .. } if role == "system");
        selected.extend(path[first..at].iter().filter(|fact| !is_system(fact)));
    }
    selected.extend(&path[at + 1..]);
    selected
}
