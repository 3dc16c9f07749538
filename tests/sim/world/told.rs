//! What the world was told is stored, and what the file holds, read by other means than the program's.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;
use tau_core::event::Event;
use tau_core::json::Writer;
use tau_core::message::Message;
use tau_core::op::AppendOp;

/// Everything that must be found after a crash.
#[derive(Default)]
pub(crate) struct Told {
    /// Shown; stored before the next thing happens.
    fresh: Vec<String>,
    /// Must be in the file.
    kept: Vec<String>,
    /// Lines of writes that failed and were not made up for.
    lost: BTreeSet<Vec<u8>>,
}

impl Told {
    /// `is_file` = the session has a file: before the first message of a person or model nothing is written.
    pub(crate) fn event(&mut self, event: &Event, is_file: bool) {
        self.next(is_file);
        match event {
            Event::MessageEnd(message) => self.fresh.push(message_mark(message)),
            Event::EntryAppended(entry) => {
                self.fresh.push(format!("entry {}", entry["id"]));
                self.next(is_file);
            }
            Event::SessionName(Some(name)) => {
                self.fresh.push(format!("name {name:?}"));
                self.next(is_file);
            }
            Event::CompactionEnd { result: Some(result), .. } => {
                self.fresh.push(format!("compaction {:?}", result.summary.as_str()));
                self.next(is_file);
            }
            _ => {}
        }
    }

    /// Something else than a write happens: what was shown before is stored.
    pub(crate) fn next(&mut self, is_file: bool) {
        if is_file && self.lost.is_empty() {
            self.kept.append(&mut self.fresh);
        }
    }

    /// How a write ended.
    pub(crate) fn written(&mut self, op: &AppendOp, well: bool) {
        for line in op.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if well {
                self.lost.remove(line);
            } else {
                self.lost.insert(line.to_vec());
            }
        }
    }

    /// The program died: what it was told is not in the file. Whatever is, stays there.
    pub(crate) fn missing(&mut self, file: &Records) -> Vec<String> {
        let marks = file.marks();
        self.lost.clear();
        self.fresh.clear();
        self.kept.drain(..).filter(|mark| !marks.contains(mark)).collect()
    }
}

/// The records of a session file: lines that are JSON objects. A last line may lack its end; lines of a write that
/// failed may be there twice.
pub(crate) struct Records(pub(crate) Vec<Value>);

impl Records {
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let records = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
        let is_entry = |record: &Value| record["type"] != "session" && record["id"].is_string();
        Self(records.filter(is_entry).collect())
    }

    fn marks(&self) -> HashSet<String> {
        let mut marks = HashSet::new();
        for record in &self.0 {
            marks.insert(format!("entry {}", record["id"]));
            match record["type"].as_str().unwrap_or_default() {
                "message" => drop(marks.insert(format!("message {}", record["message"]))),
                "session_info" => {
                    let name = record["name"].as_str().unwrap_or_default().trim();
                    marks.insert(format!("name {name:?}"));
                }
                "custom_message" => drop(marks.insert(custom_mark(record))),
                "compaction" => {
                    let summary = record["summary"].as_str().unwrap_or_default();
                    marks.insert(format!("compaction {summary:?}"));
                }
                _ => {}
            }
        }
        marks
    }
}

fn custom_mark(message: &Value) -> String {
    format!("custom {} {}", message["customType"], message["content"])
}

/// A message as it would be stored.
pub(crate) fn stored(message: &Message) -> Value {
    let mut w = Writer::new();
    message.write(&mut w);
    serde_json::from_str(w.as_str()).unwrap()
}

fn message_mark(message: &Message) -> String {
    let stored = stored(message);
    match message {
        Message::Custom(_) => custom_mark(&stored),
        _ => format!("message {stored}"),
    }
}
