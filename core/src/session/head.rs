//! The head of a line: type, id, parent and time, without building what the entry says.
//!
//! Two ways lead there. [`quick`] recognises the one shape in which `message` entries are written and never looks
//! at the message, so it costs the same for a line of any length; whether such a line is whole shows when it is
//! decoded. [`full`] reads any line in any field order and proves that it is JSON.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::fmt;

use memchr::{memchr, memmem};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::entry::EntryKind;
use crate::now::Wall;

/// What the tree needs of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head<'a> {
    pub(super) kind: EntryKind,
    pub(super) id: Cow<'a, str>,
    pub(super) parent: Option<Cow<'a, str>>,
    pub(super) time: Option<Wall>,
    /// Where the message starts in the line; 0 when that is not known.
    pub(super) message_at: u32,
}

/// Reads the head of a `message` line as Pi and this program write it; `None` for every other line.
pub(super) fn quick(line: &[u8]) -> Option<Head<'_>> {
    let raw = RawHead::read(line)?;
    let text = |bytes| core::str::from_utf8(bytes).ok();
    Some(Head {
        kind: message_kind(text(raw.role)?),
        id: Cow::Borrowed(text(raw.id)?),
        parent: match raw.parent {
            Some(parent) => Some(Cow::Borrowed(text(parent)?)),
            None => None,
        },
        time: Wall::from_iso(text(raw.time)?),
        message_at: raw.message_at,
    })
}

/// The role of a message whose line [`quick`] can read.
pub(super) fn quick_role(line: &[u8]) -> Option<&[u8]> {
    RawHead::read(line).map(|raw| raw.role)
}

/// The head as it stands in the line; all printable ASCII without escapes.
struct RawHead<'a> {
    role: &'a [u8],
    id: &'a [u8],
    parent: Option<&'a [u8]>,
    time: &'a [u8],
    message_at: u32,
}

impl<'a> RawHead<'a> {
    fn read(line: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor { line, at: 0 };
        cursor.open(b"\"type\"")?;
        cursor.literal(b"\"message\"")?;
        cursor.member(b"\"id\"")?;
        let id = cursor.text()?;
        cursor.member(b"\"parentId\"")?;
        let parent = cursor.text_or_null()?;
        cursor.member(b"\"timestamp\"")?;
        let time = cursor.text()?;
        cursor.member(b"\"message\"")?;
        let message_at = u32::try_from(cursor.at).ok()?;
        cursor.open(b"\"role\"")?;
        let role = cursor.text()?;
        line.trim_ascii_end().ends_with(b"}}").then_some(Self { role, id, parent, time, message_at })
    }
}

/// The type of a record that begins with it, as all programs write them; what follows is not looked at.
pub(super) fn first_type(line: &[u8]) -> Option<&[u8]> {
    let mut cursor = Cursor { line, at: 0 };
    cursor.open(b"\"type\"")?;
    cursor.text()
}

fn message_kind(role: &str) -> EntryKind {
    match role {
        "user" => EntryKind::User,
        "assistant" => EntryKind::Assistant,
        "toolResult" => EntryKind::ToolResult,
        "system" => EntryKind::System,
        _ => EntryKind::OtherMessage,
    }
}

fn entry_kind(kind: &str, role: Option<&str>) -> EntryKind {
    match kind {
        "message" => message_kind(role.unwrap_or_default()),
        "model_change" => EntryKind::ModelChange,
        "thinking_level_change" => EntryKind::ThinkingLevelChange,
        "compaction" => EntryKind::Compaction,
        "branch_summary" => EntryKind::BranchSummary,
        "custom_message" => EntryKind::CustomMessage,
        "custom" => EntryKind::Custom,
        "label" => EntryKind::Label,
        "session_info" => EntryKind::SessionInfo,
        "usage" => EntryKind::Usage,
        "context_edit" => EntryKind::ContextEdit,
        _ => EntryKind::Unknown,
    }
}

/// Walks the start of a line; every step fails on anything but the expected tokens, blanks allowed between them.
struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn blanks(&mut self) {
        while matches!(self.line.get(self.at), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.blanks();
        (self.line.get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    /// `{"key":`; the key comes with its quotes.
    fn open(&mut self, key: &[u8]) -> Option<()> {
        self.take(b'{')?;
        self.key(key)
    }

    /// `,"key":`
    fn member(&mut self, key: &[u8]) -> Option<()> {
        self.take(b',')?;
        self.key(key)
    }

    fn key(&mut self, key: &[u8]) -> Option<()> {
        self.literal(key)?;
        self.take(b':')?;
        self.blanks();
        Some(())
    }

    fn literal(&mut self, text: &[u8]) -> Option<()> {
        self.blanks();
        self.line.get(self.at..)?.starts_with(text).then(|| self.at += text.len())
    }

    /// A string of printable ASCII without escapes.
    fn text(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let rest = self.line.get(self.at..)?;
        let text = rest.get(..memchr(b'"', rest)?)?;
        if text.iter().any(|c| !matches!(c, b' '..=b'~') || *c == b'\\') {
            return None;
        }
        self.at += text.len() + 1;
        Some(text)
    }

    fn text_or_null(&mut self) -> Option<Option<&'a [u8]>> {
        self.blanks();
        if self.line.get(self.at..)?.starts_with(b"null") {
            self.at += 4;
            return Some(None);
        }
        self.text().map(Some)
    }
}

/// What a complete line turned out to be.
pub(super) enum Line<'a> {
    /// A header record.
    Header,
    /// An entry.
    Entry(Head<'a>),
    /// JSON, but nothing that can be an entry: no object, or one without a text id.
    NoEntry {
        /// `null`, `false`, `0`, `""`: as if the line were not there.
        falsy: bool,
    },
    /// Not JSON.
    Broken,
}

/// Reads any line. Fields may stand in any order; of duplicate ones the last counts.
pub(super) fn full(line: &str) -> Line<'_> {
    if !line.trim_start().starts_with('{') {
        return match serde_json::from_str::<Scalar>(line) {
            Ok(Scalar { falsy }) => Line::NoEntry { falsy },
            Err(_) => Line::Broken,
        };
    }
    match serde_json::from_str::<WireHead<'_>>(line) {
        Ok(head) if head.kind.0.as_deref() == Some("session") => Line::Header,
        Ok(head) => match head.into_head() {
            Some(head) => Line::Entry(head),
            None => Line::NoEntry { falsy: false },
        },
        Err(_) => Line::Broken,
    }
}

/// Most places at which a broken line is searched for a whole record.
const SALVAGE_TRIES: usize = 10_000;

/// Whole entries at the end of a line that is not JSON as a whole, with their offsets: records whose line feed
/// was lost, or one that was appended to a fragment (bug 33). In file order.
pub(super) fn salvage(line: &str) -> Vec<(usize, &str, Head<'_>)> {
    const START: &[u8] = b"{\"type\":";
    let mut found = Vec::new();
    let (mut end, mut search) = (line.trim_end().len(), line.len());
    for _ in 0..SALVAGE_TRIES {
        let Some(at) = line.as_bytes().get(..search).and_then(|bytes| memmem::rfind(bytes, START)) else {
            break;
        };
        search = at;
        let Some(record) = line.get(at..end) else { break };
        // Blocks of a message have no parent; records have.
        let head = serde_json::from_str::<WireHead<'_>>(record).ok().filter(|head| head.has_parent);
        if let Some(head) = head.filter(|head| head.kind.0.as_deref() != Some("session"))
            && let Some(head) = head.into_head()
        {
            found.push((at, record, head));
            end = at;
        }
    }
    found.reverse();
    found
}

/// The fields of a head, whatever else the record holds.
#[derive(Default)]
struct WireHead<'a> {
    kind: Maybe<'a>,
    id: Maybe<'a>,
    parent: Maybe<'a>,
    has_parent: bool,
    time: Maybe<'a>,
    role: Maybe<'a>,
}

impl<'a> WireHead<'a> {
    fn into_head(self) -> Option<Head<'a>> {
        Some(Head {
            kind: entry_kind(self.kind.0.as_deref().unwrap_or_default(), self.role.0.as_deref()),
            id: self.id.0?,
            parent: self.parent.0,
            time: self.time.0.as_deref().and_then(Wall::from_iso),
            message_at: 0,
        })
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    Type,
    Id,
    ParentId,
    Timestamp,
    Message,
    #[serde(other)]
    Other,
}

impl<'de> Deserialize<'de> for WireHead<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct HeadVisitor;
        impl<'de> Visitor<'de> for HeadVisitor {
            type Value = WireHead<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a record")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut head = WireHead::default();
                while let Some(key) = map.next_key::<Key>()? {
                    match key {
                        Key::Type => head.kind = map.next_value()?,
                        Key::Id => head.id = map.next_value()?,
                        Key::ParentId => {
                            head.parent = map.next_value()?;
                            head.has_parent = true;
                        }
                        Key::Timestamp => head.time = map.next_value()?,
                        Key::Message => head.role = map.next_value::<Role<'de>>()?.0,
                        Key::Other => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(head)
            }
        }
        deserializer.deserialize_map(HeadVisitor)
    }
}

/// A string; `None` for a value of any other kind.
#[derive(Default)]
struct Maybe<'a>(Option<Cow<'a, str>>);

impl<'de> Deserialize<'de> for Maybe<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyVisitor).map(|any| Self(any.text))
    }
}

/// The role of a message; the rest is passed over.
struct Role<'a>(Maybe<'a>);

impl<'de> Deserialize<'de> for Role<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyVisitor).map(|any| Self(Maybe(any.role)))
    }
}

/// A value that is no object.
struct Scalar {
    falsy: bool,
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyVisitor).map(|any| Self { falsy: any.falsy })
    }
}

#[derive(Default)]
struct Any<'a> {
    text: Option<Cow<'a, str>>,
    role: Option<Cow<'a, str>>,
    falsy: bool,
}

impl Any<'_> {
    fn scalar<E>(falsy: bool) -> Result<Self, E> {
        Ok(Self { falsy, ..Self::default() })
    }
}

struct AnyVisitor;

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = Any<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Any<'de>, E> {
        Ok(Any { falsy: text.is_empty(), text: Some(Cow::Borrowed(text)), role: None })
    }

    fn visit_str<E>(self, text: &str) -> Result<Any<'de>, E> {
        Ok(Any { falsy: text.is_empty(), text: Some(Cow::Owned(text.into())), role: None })
    }

    fn visit_unit<E>(self) -> Result<Any<'de>, E> {
        Any::scalar(true)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Any<'de>, E> {
        Any::scalar(!value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Any<'de>, E> {
        Any::scalar(value == 0)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Any<'de>, E> {
        Any::scalar(value == 0)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Any<'de>, E> {
        Any::scalar(value == 0.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Any<'de>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Any::scalar(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Any<'de>, A::Error> {
        let mut any = Any::default();
        while let Some(key) = map.next_key::<RoleKey>()? {
            match key {
                RoleKey::Role => any.role = map.next_value::<Maybe<'de>>()?.0,
                RoleKey::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(any)
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum RoleKey {
    Role,
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    const LINE: &str = r#"{"type":"message","id":"a1","parentId":"p0","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"x"}}"#;

    fn entry(line: &str) -> Option<Head<'_>> {
        match full(line) {
            Line::Entry(head) => Some(head),
            _ => None,
        }
    }

    #[test]
    fn both_ways_agree() {
        for line in [
            LINE.into(),
            LINE.replace("\"p0\"", "null"),
            LINE.replace(':', ": ").replace(": 00", ":00").replace(',', ", "),
        ] {
            let (quick, mut full) = (quick(line.as_bytes()).unwrap(), entry(&line).unwrap());
            full.message_at = quick.message_at;
            assert_eq!(quick, full, "{line}");
            assert_eq!(quick.message_at as usize, line.find("{\"role\"").unwrap());
        }
    }

    #[test]
    fn quick_leaves_odd_lines_alone() {
        for line in [
            "",
            "{",
            &LINE[..LINE.len() - 2],
            &LINE.replace("a1", "a\\u0031"),
            &LINE.replace("\"message\",", "\"custom\","),
            &LINE.replace("\"id\":\"a1\",", ""),
        ] {
            assert!(quick(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn glued_records_are_found() {
        let torn = &LINE[..LINE.len() - 9];
        let call = r#"{"type":"message","id":"c","parentId":null,"timestamp":"","message":{"role":"assistant","content":[{"type":"toolCall","id":"x","name":"n","arguments":{}}]}}"#;
        for (line, ids) in [
            (alloc::format!("{LINE}{call}"), alloc::vec!["a1", "c"]),
            (alloc::format!("{torn}{call}"), alloc::vec!["c"]),
            (alloc::format!("\0\0\0{LINE}"), alloc::vec!["a1"]),
            (alloc::format!("{LINE}{torn}"), alloc::vec![]),
            (String::from(torn), alloc::vec![]),
        ] {
            let found = salvage(&line);
            assert_eq!(found.iter().map(|f| f.2.id.as_ref()).collect::<Vec<_>>(), ids, "{line}");
        }
    }
}
