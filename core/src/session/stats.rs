//! What a session cost and holds (spec 10 §8.7).

use super::entry::{EntryBody, EntryKind};
use super::store::Session;
use crate::compaction::measure::projected;
use crate::json::Writer;
use crate::message::{Message, Usage};
use crate::model::Model;
use crate::tokens::{Estimator, last_usage};

/// Counts over entries of a session, on every branch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Messages of people.
    pub user_messages: u64,
    /// Replies, failed ones too.
    pub assistant_messages: u64,
    /// Calls in replies.
    pub tool_calls: u64,
    /// Results of calls.
    pub tool_results: u64,
    /// All messages, also of the system and of the user's shell.
    pub total_messages: u64,
    /// Tokens and money of replies, tools, summaries and entries about cost.
    pub usage: Usage,
}

impl Stats {
    /// Counts one entry.
    pub fn add(&mut self, body: &EntryBody) {
        match body {
            EntryBody::Message(message) => self.message(message),
            EntryBody::Compaction(compaction) => self.spend(compaction.usage.as_ref()),
            EntryBody::BranchSummary(summary) => self.spend(summary.usage.as_ref()),
            EntryBody::Usage(entry) => self.spend(Usage::from_value(&entry.usage).as_ref()),
            _ => {}
        }
    }

    fn message(&mut self, message: &Message) {
        self.total_messages += 1;
        match message {
            Message::User(_) => self.user_messages += 1,
            Message::Assistant(reply) => {
                self.assistant_messages += 1;
                self.tool_calls += reply.tool_calls().count() as u64;
                self.spend(Some(&reply.usage));
            }
            Message::ToolResult(result) => {
                self.tool_results += 1;
                self.spend(result.usage.as_ref());
            }
            _ => {}
        }
    }

    fn spend(&mut self, usage: Option<&Usage>) {
        if let Some(usage) = usage {
            self.usage = self.usage.plus(usage);
        }
    }

    /// Input, output and both kinds of cached tokens.
    #[must_use]
    pub const fn total_tokens(&self) -> u64 {
        let Usage { input, output, cache_read, cache_write, .. } = self.usage;
        input.saturating_add(output).saturating_add(cache_read).saturating_add(cache_write)
    }

    /// Writes the counts as fields of an open object.
    pub fn write_fields(&self, w: &mut Writer) {
        w.field_u64("userMessages", self.user_messages);
        w.field_u64("assistantMessages", self.assistant_messages);
        w.field_u64("toolCalls", self.tool_calls);
        w.field_u64("toolResults", self.tool_results);
        w.field_u64("totalMessages", self.total_messages);
        w.key("tokens");
        w.begin_object();
        w.field_u64("input", self.usage.input);
        w.field_u64("output", self.usage.output);
        w.field_u64("cacheRead", self.usage.cache_read);
        w.field_u64("cacheWrite", self.usage.cache_write);
        w.field_u64("total", self.total_tokens());
        w.end_object();
        w.field_f64("cost", self.usage.cost.total);
    }
}

/// How full the context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    /// Tokens; `None` = unknown, because no reply followed the last compaction yet.
    pub tokens: Option<u64>,
    /// Window of the model, tokens.
    pub window: u64,
}

impl Fill {
    /// Of the current branch; `None` when the window is not known.
    #[must_use]
    pub fn of(session: &Session, model: &Model) -> Option<Self> {
        let window = Some(model.context_window).filter(|window| *window > 0)?;
        let measure = || projected(session.tree(), session.context(), &mut Estimator::default()).tokens;
        let tokens = is_known(session).then(measure);
        Some(Self { tokens, window })
    }

    /// Part of the window in percent.
    #[must_use]
    pub fn percent(&self) -> Option<f64> {
        self.tokens.map(|tokens| tokens as f64 / self.window as f64 * 100.0)
    }

    /// Writes an object.
    pub fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.key("tokens");
        match self.tokens {
            Some(tokens) => w.u64(tokens),
            None => w.null(),
        }
        w.field_u64("contextWindow", self.window);
        w.key("percent");
        match self.percent() {
            Some(percent) => w.f64(percent),
            None => w.null(),
        }
        w.end_object();
    }
}

/// Whether no compaction is in the context, or a reply with usage stands after it in the file.
fn is_known(session: &Session) -> bool {
    let (tree, context) = (session.tree(), session.context());
    let is_compaction = |slot| tree.node(slot).map(|node| node.kind()) == Some(EntryKind::Compaction);
    let slots = context.entries.iter().map(|entry| entry.slot);
    let Some(compaction) = slots.filter(|slot| is_compaction(*slot)).max() else { return true };
    let (mut at, mut after) = (0, context.messages.len());
    for entry in &context.entries {
        if entry.slot > compaction {
            after = at;
            break;
        }
        at += usize::from(entry.messages);
    }
    last_usage(context.messages.get(after..).unwrap_or_default()).is_some()
}
