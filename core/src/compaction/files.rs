//! Which files a conversation read and changed, as far as its tool calls say (spec 10 §7.4 step 10, §7.5).

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use crate::json::{Map, Value};
use crate::message::{AssistantMessage, Message, ToolResultMessage};

/// Paths by what was done with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileOps {
    /// Read.
    pub read: BTreeSet<String>,
    /// Written as a whole.
    pub written: BTreeSet<String>,
    /// Edited, or changed according to an earlier summary.
    pub edited: BTreeSet<String>,
}

impl FileOps {
    /// Takes in the lists of an earlier summary. What is not a list of texts is ignored.
    pub fn add_details(&mut self, details: Option<&Value>) {
        let paths = |key: &str| {
            let list = details.and_then(|details| details.get(key)?.as_array());
            list.into_iter().flatten().filter_map(Value::as_str).map(String::from)
        };
        self.read.extend(paths("readFiles"));
        self.edited.extend(paths("modifiedFiles"));
    }

    /// Takes in the calls of a reply, or the calls that a tool made itself.
    pub fn add_message(&mut self, message: &Message) {
        match message {
            Message::Assistant(reply) => self.add_reply(reply),
            Message::ToolResult(result) => self.add_nested(result),
            _ => {}
        }
    }

    /// Takes in the calls of a reply.
    pub fn add_reply(&mut self, reply: &AssistantMessage) {
        for call in reply.tool_calls() {
            self.add_call(&call.name, &call.arguments);
        }
    }

    fn add_nested(&mut self, result: &ToolResultMessage) {
        let calls = result.nested_calls.as_ref().and_then(|nested| nested.get("calls")?.as_array());
        for call in calls.into_iter().flatten() {
            let name = call.get("name").and_then(Value::as_str).unwrap_or_default();
            self.add_call(name, call.get("arguments").unwrap_or(&Value::Null));
        }
    }

    fn add_call(&mut self, tool: &str, arguments: &Value) {
        let list = match tool {
            "read" => &mut self.read,
            "write" => &mut self.written,
            "edit" => &mut self.edited,
            _ => return,
        };
        if let Some(path) = arguments.get("path").and_then(Value::as_str).filter(|path| !path.is_empty())
            && !list.contains(path)
        {
            list.insert(path.into());
        }
    }

    /// The two lists to show and to store.
    #[must_use]
    pub fn lists(&self) -> FileLists {
        let modified: BTreeSet<&String> = self.edited.union(&self.written).collect();
        FileLists {
            read: sorted(self.read.iter().filter(|path| !modified.contains(path))),
            modified: sorted(modified.iter().copied()),
        }
    }
}

/// Paths in the order of their UTF-16 units, as every reader of the file sorts them.
fn sorted<'a>(paths: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut list: Vec<String> = paths.cloned().collect();
    crate::order::sort(&mut list, |a, b| a.encode_utf16().cmp(b.encode_utf16()));
    list
}

/// Files at the end of a summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLists {
    /// Read, and not changed.
    pub read: Vec<String>,
    /// Changed.
    pub modified: Vec<String>,
}

impl FileLists {
    /// Appends the lists to a summary, each in its own tag; an empty one is left out.
    pub fn append_to(&self, summary: &mut String) {
        for (tag, paths) in [("read-files", &self.read), ("modified-files", &self.modified)] {
            if paths.is_empty() {
                continue;
            }
            for piece in ["\n\n<", tag, ">\n"] {
                summary.push_str(piece);
            }
            for path in paths {
                summary.push_str(path);
                summary.push('\n');
            }
            for piece in ["</", tag, ">"] {
                summary.push_str(piece);
            }
        }
    }

    /// What is stored beside the summary.
    #[must_use]
    pub fn details(&self) -> Value {
        let list = |paths: &[String]| paths.iter().cloned().map(Value::String).collect::<Value>();
        let mut details = Map::new();
        details.insert("readFiles".into(), list(&self.read));
        details.insert("modifiedFiles".into(), list(&self.modified));
        Value::Object(details)
    }
}
