//! What all prompts of one run of the program cost together.

use tau_core::event::Event;
use tau_core::json::Writer;
use tau_core::message::StopReason;
use tau_core::session::EntryBody;
use tau_core::session::stats::Stats;

/// Counts while events pass: replies that failed and were tried again too, messages of earlier runs not.
#[derive(Debug, Default)]
pub struct Totals {
    stats: Stats,
    last: Option<StopReason>,
}

impl Totals {
    /// Counts an event.
    pub fn count(&mut self, event: &Event) {
        match event {
            Event::MessageEnd(message) => {
                if let Some(reply) = message.as_assistant() {
                    self.last = Some(reply.stop_reason);
                }
                self.stats.add(&EntryBody::Message(message.clone()));
            }
            Event::CompactionEnd { result: Some(done), .. } => {
                if let Some(usage) = &done.usage {
                    self.stats.usage = self.stats.usage.plus(usage);
                }
            }
            _ => {}
        }
    }

    /// Writes the record.
    pub fn write(&self, w: &mut Writer) {
        w.begin_object();
        w.field_str("type", "totals");
        self.stats.write_fields(w);
        w.key("stopReason");
        match self.last {
            Some(reason) => w.str(reason.name()),
            None => w.null(),
        }
        w.end_object();
    }

    /// One line for people.
    #[must_use]
    pub fn text(&self) -> String {
        let Stats { assistant_messages, tool_calls, usage, .. } = &self.stats;
        let (all, money) = (self.stats.total_tokens(), usage.cost.total);
        format!(
            "replies: {assistant_messages}, tool calls: {tool_calls}, tokens: {all} ({} in, {} out, {} + {} cached), \
             cost: ${money:.4}",
            usage.input, usage.output, usage.cache_read, usage.cache_write
        )
    }
}
