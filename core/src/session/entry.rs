//! What a session file holds: the header and the kinds of entries (spec 60 §1.2–1.4).

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use crate::json::{Map, Value, Writer};
use crate::message::{Content, CustomMessage, Message, Text, Usage};
use crate::model::ThinkingLevel;
use crate::now::Wall;

/// The version this program writes.
pub const VERSION: u64 = 3;

/// First record of a file. Fields of other versions and hands are kept in [`Header::fields`].
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Session id.
    pub id: String,
    /// Creation time, ISO 8601; also the start of the file name.
    pub timestamp: String,
    /// Working directory; `None` when the file has none (then that of the process counts).
    pub cwd: Option<String>,
    /// File this session was forked from, or what the caller named.
    pub parent_session: Option<String>,
    /// The whole record as it stands in the file; empty for a new session.
    pub fields: Map<String, Value>,
}

impl Header {
    /// The header of a new session.
    #[must_use]
    pub fn new(id: String, now: Wall, cwd: String, parent_session: Option<String>) -> Self {
        Self { id, timestamp: now.to_iso(), cwd: Some(cwd), parent_session, fields: Map::new() }
    }

    /// Reads a header record; `None` unless it is of type `session` with a text id (an empty one counts).
    #[must_use]
    pub fn from_value(value: Value) -> Option<Self> {
        let Value::Object(fields) = value else { return None };
        let text = |key: &str| fields.get(key).and_then(Value::as_str).map(String::from);
        if text("type").as_deref() != Some("session") {
            return None;
        }
        Some(Self {
            id: text("id")?,
            timestamp: text("timestamp").unwrap_or_default(),
            cwd: text("cwd"),
            parent_session: text("parentSession"),
            fields,
        })
    }

    /// Whether entries must be migrated before they make sense (version below 3, spec 60 §1.8).
    #[must_use]
    pub fn is_old(&self) -> bool {
        !self.fields.is_empty() && super::migrate::version_of(self.fields.get("version")) < VERSION as f64
    }

    /// Writes the record.
    pub fn write(&self, w: &mut Writer) {
        if !self.fields.is_empty() {
            w.map(&self.fields);
            return;
        }
        w.begin_object();
        w.field_str("type", "session");
        w.field_u64("version", VERSION);
        w.field_str("id", &self.id);
        w.field_str("timestamp", &self.timestamp);
        w.field_opt_str("cwd", self.cwd.as_deref());
        w.field_opt_str("parentSession", self.parent_session.as_deref());
        w.end_object();
    }
}

/// Provider and model id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRef {
    /// Provider id.
    pub provider: String,
    /// Model id.
    pub model_id: String,
}

/// `type: "compaction"`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compaction {
    /// The summary.
    pub summary: Text,
    /// First entry that stays beside the summary; `None` = nothing stays (written as the entry's own id).
    pub first_kept: Option<String>,
    /// Size of the context before.
    pub tokens_before: u64,
    /// File lists of the summary.
    pub details: Option<Value>,
    /// Cost of the summary.
    pub usage: Option<Usage>,
    /// Whether a host supplied the summary.
    pub from_hook: Option<bool>,
    /// The prompt as it stood, when the session records prompts.
    pub system_message: Option<Arc<Message>>,
}

/// `type: "branch_summary"`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BranchSummaryEntry {
    /// Leaf of the summarised branch, or `root`.
    pub from_id: String,
    /// The summary; empty = not in the context.
    pub summary: Text,
    /// File lists of the summary.
    pub details: Option<Value>,
    /// Cost of the summary.
    pub usage: Option<Usage>,
    /// Whether a host supplied the summary.
    pub from_hook: Option<bool>,
}

/// `type: "custom"`: state of a host, never in the context.
#[derive(Clone, Debug, PartialEq)]
pub struct Custom {
    /// Kind, named by the host.
    pub custom_type: String,
    /// Anything.
    pub data: Option<Value>,
}

/// `type: "label"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The labelled entry.
    pub target_id: String,
    /// The label; `None` clears it.
    pub label: Option<String>,
}

/// `type: "usage"`: cost beside messages.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageEntry {
    /// What it was for.
    pub kind: String,
    /// Provider id.
    pub provider: String,
    /// Model id.
    pub model: String,
    /// The usage object as it was given.
    pub usage: Value,
    /// A remark.
    pub note: Option<String>,
}

/// `type: "context_edit"`: changes what an earlier entry contributes to the context.
#[derive(Clone, Debug, PartialEq)]
pub struct ContextEdit {
    /// The edited entry.
    pub target_id: String,
    /// `None` = contributes nothing; else the new content.
    pub replacement: Option<Content>,
}

/// What an entry says, without id, parent and time.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryBody {
    /// A message of the transcript.
    Message(Arc<Message>),
    /// The model changed.
    ModelChange(Box<ModelRef>),
    /// The thinking level changed; the name is kept even when it is unknown.
    ThinkingLevelChange(Box<str>),
    /// The history before it was summarised.
    Compaction(Box<Compaction>),
    /// Summary of a branch that was left.
    BranchSummary(Box<BranchSummaryEntry>),
    /// A message of a host; its time is the entry's.
    CustomMessage(Box<CustomMessage>),
    /// State of a host.
    Custom(Box<Custom>),
    /// A label was set or cleared.
    Label(Box<Label>),
    /// The display name was set; blank or absent clears it.
    SessionInfo(Option<Box<str>>),
    /// Cost beside messages.
    Usage(Box<UsageEntry>),
    /// An edit of the context.
    ContextEdit(Box<ContextEdit>),
    /// A record of another version or hand: its line, kept to the byte and ignored.
    Unknown(Box<str>),
}

impl EntryBody {
    /// A message entry.
    #[must_use]
    pub fn message(message: Message) -> Self {
        Self::Message(Arc::new(message))
    }

    /// A model change.
    #[must_use]
    pub fn model(provider: &str, model_id: &str) -> Self {
        Self::ModelChange(Box::new(ModelRef { provider: provider.into(), model_id: model_id.into() }))
    }

    /// A thinking level change.
    #[must_use]
    pub fn thinking(level: ThinkingLevel) -> Self {
        Self::ThinkingLevelChange(level.name().into())
    }

    /// A display name: trimmed, line breaks become one blank (spec 60 §1.5).
    #[must_use]
    pub fn session_name(name: &str) -> Self {
        let mut clean = String::with_capacity(name.len());
        for part in name.split(['\r', '\n']).filter(|part| !part.is_empty()) {
            if !clean.is_empty() {
                clean.push(' ');
            }
            clean.push_str(part);
        }
        Self::SessionInfo(Some(clean.trim().into()))
    }

    /// The entry that makes a failed or retried message leave the context (D11).
    #[must_use]
    pub fn omit(target_id: &str) -> Self {
        Self::ContextEdit(Box::new(ContextEdit { target_id: target_id.into(), replacement: None }))
    }

    /// What kind of entry this is.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        match self {
            Self::Message(message) => match &**message {
                Message::User(_) => EntryKind::User,
                Message::Assistant(_) => EntryKind::Assistant,
                Message::ToolResult(_) => EntryKind::ToolResult,
                Message::System(_) => EntryKind::System,
                _ => EntryKind::OtherMessage,
            },
            Self::ModelChange(_) => EntryKind::ModelChange,
            Self::ThinkingLevelChange(_) => EntryKind::ThinkingLevelChange,
            Self::Compaction(_) => EntryKind::Compaction,
            Self::BranchSummary(_) => EntryKind::BranchSummary,
            Self::CustomMessage(_) => EntryKind::CustomMessage,
            Self::Custom(_) => EntryKind::Custom,
            Self::Label(_) => EntryKind::Label,
            Self::SessionInfo(_) => EntryKind::SessionInfo,
            Self::Usage(_) => EntryKind::Usage,
            Self::ContextEdit(_) => EntryKind::ContextEdit,
            Self::Unknown(_) => EntryKind::Unknown,
        }
    }
}

/// The kind of an entry; messages by role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A user message.
    User,
    /// A reply.
    Assistant,
    /// A tool result.
    ToolResult,
    /// A system message.
    System,
    /// A message of any other role.
    OtherMessage,
    /// See [`EntryBody::ModelChange`].
    ModelChange,
    /// See [`EntryBody::ThinkingLevelChange`].
    ThinkingLevelChange,
    /// See [`EntryBody::Compaction`].
    Compaction,
    /// See [`EntryBody::BranchSummary`].
    BranchSummary,
    /// See [`EntryBody::CustomMessage`].
    CustomMessage,
    /// See [`EntryBody::Custom`].
    Custom,
    /// See [`EntryBody::Label`].
    Label,
    /// See [`EntryBody::SessionInfo`].
    SessionInfo,
    /// See [`EntryBody::Usage`].
    Usage,
    /// See [`EntryBody::ContextEdit`].
    ContextEdit,
    /// See [`EntryBody::Unknown`].
    Unknown,
}

impl EntryKind {
    /// Whether this is a `message` entry.
    #[must_use]
    pub const fn is_message(self) -> bool {
        matches!(self, Self::User | Self::Assistant | Self::ToolResult | Self::System | Self::OtherMessage)
    }

    /// Whether this entry makes a session worth a file (spec 60 §1.6 rule 1).
    #[must_use]
    pub const fn starts_file(self) -> bool {
        matches!(self, Self::User | Self::Assistant)
    }

    /// Whether a context edit may replace or omit this entry (spec 60 §1.9).
    #[must_use]
    pub const fn is_editable(self) -> bool {
        matches!(self, Self::User | Self::Assistant | Self::ToolResult | Self::CustomMessage)
    }
}

/// An entry about to be written.
#[derive(Clone, Copy, Debug)]
pub struct EntryLine<'a> {
    /// Id of the entry.
    pub id: &'a str,
    /// Id of its parent; `None` = root.
    pub parent: Option<&'a str>,
    /// Creation time.
    pub time: Wall,
    /// What it says.
    pub body: &'a EntryBody,
}

impl EntryLine<'_> {
    /// Writes the entry as one object, fields in the order of Pi 1.6.
    pub fn write(&self, w: &mut Writer) {
        if let EntryBody::Unknown(line) = self.body {
            w.raw(line);
            return;
        }
        w.begin_object();
        match self.body {
            EntryBody::Message(message) => {
                self.start(w, "message");
                w.key("message");
                message.write(w);
            }
            EntryBody::ModelChange(model) => {
                self.start(w, "model_change");
                w.field_str("provider", &model.provider);
                w.field_str("modelId", &model.model_id);
            }
            EntryBody::ThinkingLevelChange(level) => {
                self.start(w, "thinking_level_change");
                w.field_str("thinkingLevel", level);
            }
            EntryBody::Compaction(compaction) => {
                self.start(w, "compaction");
                self.compaction(compaction, w);
            }
            EntryBody::BranchSummary(summary) => {
                self.start(w, "branch_summary");
                w.field_str("fromId", &summary.from_id);
                w.field_str("summary", &summary.summary);
                summary_facts(w, summary.details.as_ref(), summary.usage.as_ref(), summary.from_hook);
            }
            EntryBody::CustomMessage(message) => {
                w.field_str("type", "custom_message");
                w.field_str("customType", &message.custom_type);
                w.key("content");
                message.content.write(w);
                w.field_bool("display", message.display);
                if let Some(details) = &message.details {
                    w.field_value("details", details);
                }
                self.place(w);
            }
            EntryBody::Custom(custom) => {
                w.field_str("type", "custom");
                w.field_str("customType", &custom.custom_type);
                if let Some(data) = &custom.data {
                    w.field_value("data", data);
                }
                self.place(w);
            }
            EntryBody::Label(label) => {
                self.start(w, "label");
                w.field_str("targetId", &label.target_id);
                w.field_opt_str("label", label.label.as_deref());
            }
            EntryBody::SessionInfo(name) => {
                self.start(w, "session_info");
                w.field_opt_str("name", name.as_deref());
            }
            EntryBody::Usage(usage) => {
                self.start(w, "usage");
                w.field_str("kind", &usage.kind);
                w.field_str("provider", &usage.provider);
                w.field_str("model", &usage.model);
                w.field_value("usage", &usage.usage);
                w.field_opt_str("note", usage.note.as_deref());
            }
            EntryBody::ContextEdit(edit) => {
                self.start(w, "context_edit");
                w.field_str("targetId", &edit.target_id);
                w.key("replacement");
                match &edit.replacement {
                    None => w.null(),
                    Some(content) => {
                        w.begin_object();
                        w.key("content");
                        content.write(w);
                        w.end_object();
                    }
                }
            }
            EntryBody::Unknown(_) => {}
        }
        w.end_object();
    }

    fn start(&self, w: &mut Writer, kind: &str) {
        w.field_str("type", kind);
        self.place(w);
    }

    fn place(&self, w: &mut Writer) {
        w.field_str("id", self.id);
        w.key("parentId");
        match self.parent {
            Some(parent) => w.str(parent),
            None => w.null(),
        }
        w.field_str("timestamp", &self.time.to_iso());
    }

    fn compaction(&self, compaction: &Compaction, w: &mut Writer) {
        w.field_str("summary", &compaction.summary);
        w.field_str("firstKeptEntryId", compaction.first_kept.as_deref().unwrap_or(self.id));
        w.field_u64("tokensBefore", compaction.tokens_before);
        summary_facts(w, compaction.details.as_ref(), compaction.usage.as_ref(), compaction.from_hook);
        if let Some(message) = &compaction.system_message {
            w.key("systemMessage");
            message.write(w);
        }
    }
}

fn summary_facts(w: &mut Writer, details: Option<&Value>, usage: Option<&Usage>, from_hook: Option<bool>) {
    if let Some(details) = details {
        w.field_value("details", details);
    }
    if let Some(usage) = usage {
        w.key("usage");
        usage.write(w);
    }
    if let Some(from_hook) = from_hook {
        w.field_bool("fromHook", from_hook);
    }
}
