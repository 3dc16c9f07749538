//! What a list of sessions shows about one file (spec 60 §1.12), read in one pass without keeping the file.
//!
//! Messages are most of a file. Of one whose text is not needed only both ends of the line are looked at: the head
//! tells the role, the tail the time. So a list costs little more than finding the ends of the lines.

use alloc::string::String;
use core::cmp::Ordering;

use super::decode::parse_line;
use super::entry::Header;
use super::head::{first_type, quick_role, salvage};
use super::reader::MAX_LINE_BYTES;
use super::tail::time_at_end;
use crate::json::Value;
use crate::message::Content;
use crate::now::Wall;
use crate::text::utf8::lossy;
use crate::wire::jsonl::JsonLines;

/// One session of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// Session id; empty when the header has none.
    pub id: String,
    /// Working directory; empty when the header has none.
    pub cwd: String,
    /// Display name.
    pub name: Option<String>,
    /// File the session was forked from.
    pub parent_session: Option<String>,
    /// Time of the header, if it is readable.
    pub created: Option<Wall>,
    /// Newest message of user or model, else the header's time, else the file's.
    pub modified: Wall,
    /// Number of `message` entries, tool results and shell records included.
    pub messages: u64,
    /// First text of the user that is not empty.
    pub first_message: Option<String>,
    /// Everything user and model said, on all branches, joined by blanks; empty when it was not asked for.
    pub text: String,
}

impl SessionInfo {
    /// Order of a list: newest activity first, then the later file name.
    #[must_use]
    pub fn order(a: (&Self, &str), b: (&Self, &str)) -> Ordering {
        b.0.modified.cmp(&a.0.modified).then_with(|| b.1.cmp(a.1))
    }
}

/// Gathers the facts about one file.
#[derive(Debug)]
pub struct InfoReader {
    lines: JsonLines,
    facts: Facts,
}

#[derive(Debug, Default)]
struct Facts {
    info: SessionInfo,
    seen_header: bool,
    refused: bool,
    active: i64,
    without_text: bool,
}

impl Default for InfoReader {
    fn default() -> Self {
        Self { lines: JsonLines::with_limit(MAX_LINE_BYTES), facts: Facts::default() }
    }
}

impl InfoReader {
    /// A reader for lists: leaves [`SessionInfo::text`] empty, which is many times faster.
    #[must_use]
    pub fn brief() -> Self {
        let facts = Facts { without_text: true, ..Facts::default() };
        Self { lines: JsonLines::with_limit(MAX_LINE_BYTES), facts }
    }

    /// Takes the next bytes of the file.
    pub fn feed(&mut self, bytes: &[u8]) {
        let facts = &mut self.facts;
        self.lines.feed(bytes, &mut |line| facts.line(line.raw));
    }

    /// The file is no session; the rest need not be read.
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        self.facts.refused
    }

    /// End of the file. `None` when it is no session. `mtime` is the file's own time.
    #[must_use]
    pub fn finish(mut self, mtime: Wall) -> Option<SessionInfo> {
        let facts = &mut self.facts;
        self.lines.finish(&mut |line| facts.line(line.raw));
        if facts.refused || !facts.seen_header {
            return None;
        }
        let mut info = core::mem::take(&mut facts.info);
        info.modified = match facts.active {
            1.. => Wall(facts.active),
            _ => info.created.unwrap_or(mtime),
        };
        Some(info)
    }
}

impl Facts {
    fn line(&mut self, raw: &[u8]) {
        if self.refused || (self.seen_header && self.is_told_by_ends(raw)) {
            return;
        }
        // A list also shows files whose lines end in CR, although they cannot be opened as they are.
        for record in raw.split(|byte| *byte == b'\r') {
            if !self.refused && !record.trim_ascii().is_empty() {
                self.record(record);
            }
        }
    }

    /// Whether the ends of the line told all that matters.
    fn is_told_by_ends(&mut self, raw: &[u8]) -> bool {
        match quick_role(raw) {
            Some(role) => self.is_counted(role, raw),
            None => first_type(raw).is_some_and(|kind| !matches!(kind, b"message" | b"session_info")),
        }
    }

    /// Counts a message whose text is not needed.
    fn is_counted(&mut self, role: &[u8], raw: &[u8]) -> bool {
        match role {
            b"user" | b"assistant" if !self.without_text => return false,
            b"user" if self.info.first_message.is_none() => return false,
            b"user" | b"assistant" => {
                let Some(time) = time_at_end(raw) else { return false };
                self.active = self.active.max(time);
            }
            _ => {}
        }
        self.info.messages += 1;
        true
    }

    fn record(&mut self, raw: &[u8]) {
        let text = lossy(raw);
        match parse_line(&text) {
            Some(value) => self.value(value),
            // Records that were glued together, or to a fragment, count as they do when the file is opened.
            None if self.seen_header => {
                let records = salvage(&text);
                records
                    .iter()
                    .filter_map(|(_, record, _)| parse_line(record))
                    .for_each(|value| self.value(value));
            }
            None => {}
        }
    }

    fn value(&mut self, value: Value) {
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
        match kind {
            _ if !self.seen_header => self.header(value),
            "message" => self.message(&value),
            "session_info" => {
                let name = value.get("name").and_then(Value::as_str).map(str::trim).unwrap_or_default();
                self.info.name = (!name.is_empty()).then(|| name.into());
            }
            _ => {}
        }
    }

    fn header(&mut self, value: Value) {
        if is_falsy(&value) {
            return;
        }
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(String::from);
        if text("type").as_deref() != Some("session") {
            self.refused = true;
            return;
        }
        self.seen_header = true;
        self.info.id = text("id").unwrap_or_default();
        self.info.cwd = text("cwd").unwrap_or_default();
        self.info.parent_session = text("parentSession");
        self.info.created = text("timestamp").and_then(|time| Wall::from_iso(&time));
    }

    fn message(&mut self, entry: &Value) {
        self.info.messages += 1;
        let Some(message) = entry.get("message") else { return };
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        let Some(content) = message.get("content").filter(|_| matches!(role, "user" | "assistant")) else {
            return;
        };
        let time = match message.get("timestamp").and_then(Value::as_f64) {
            Some(ms) => Some(ms as i64),
            None => entry.get("timestamp").and_then(Value::as_str).and_then(Wall::from_iso).map(|t| t.0),
        };
        self.active = self.active.max(time.unwrap_or_default());
        let mut said = String::new();
        for text in Content::from_value(content).texts() {
            join(&mut said, text);
        }
        if said.is_empty() {
            return;
        }
        if !self.without_text {
            join(&mut self.info.text, &said);
        }
        if role == "user" && self.info.first_message.is_none() {
            self.info.first_message = Some(said);
        }
    }
}

fn join(all: &mut String, text: &str) {
    if !all.is_empty() {
        all.push(' ');
    }
    all.push_str(text);
}

/// JSON values that stand for nothing, as if the line were not there.
fn is_falsy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// The header of a file from its first bytes. `None`: more bytes are needed. `Some(None)`: this is no session.
///
/// `complete` says that no more bytes follow. Lists and look-ups read at most 1 MiB for it (spec 60 §1.7 rule 6).
#[must_use]
pub fn find_header(start: &[u8], complete: bool) -> Option<Option<Header>> {
    let whole = if complete { start.len() } else { memchr::memrchr(b'\n', start)? };
    let lines = start.get(..whole)?.split(|byte| *byte == b'\n');
    let found = lines.filter_map(|line| parse_line(&lossy(line))).find(|value| !is_falsy(value));
    match found {
        Some(value) => Some(Header::from_value(value)),
        None if complete => Some(None),
        None => None,
    }
}
