//! What `grep`, `find` and `ls` share: a bounded list of lines, followed by one paragraph of notes (spec 50 §6).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::ToolOutput;
use super::script::details;
use crate::json::Value;
use crate::text::truncate::{Limits, MAX_BYTES, format_size, truncate_head};

/// A list and what was left out of it.
pub(super) struct Listing {
    /// The lines, joined by LF.
    pub(super) text: String,
    /// Said when there is nothing.
    pub(super) nothing: &'static str,
    /// What is counted, e.g. `results`.
    pub(super) noun: &'static str,
    /// Name of the count limit in details.
    pub(super) limit_key: &'static str,
    /// The count limit, when more exists beyond it.
    pub(super) limit_hit: Option<u64>,
    /// Lines were clipped to so many characters.
    pub(super) clipped: Option<u32>,
}

impl Listing {
    /// The result of the tool.
    pub(super) fn into_output(self) -> ToolOutput {
        if self.text.is_empty() && self.limit_hit.is_none() {
            return ToolOutput::text(self.nothing);
        }
        let (mut notes, mut facts) = (Vec::new(), Vec::new());
        let cut = truncate_head(&self.text, Limits { lines: usize::MAX, bytes: MAX_BYTES });
        if cut.truncated() {
            facts.push(("truncation", cut.to_value()));
        }
        if let Some(limit) = self.limit_hit {
            let more = limit.saturating_mul(2);
            notes.push(format!("First {limit} {} only: narrow the search or use limit={more}.", self.noun));
            facts.push((self.limit_key, Value::from(limit)));
        }
        if cut.truncated() {
            notes.push(format!("Output cut at {}.", format_size(MAX_BYTES as u64)));
        }
        if let Some(chars) = self.clipped {
            notes.push(format!("Lines longer than {chars} characters are clipped: read shows them whole."));
            facts.push(("linesTruncated", Value::from(true)));
        }
        let mut text = cut.content;
        if !notes.is_empty() {
            let gap = if text.is_empty() { "" } else { "\n\n" };
            text.push_str(&format!("{gap}[{}]", notes.join(" ")));
        }
        ToolOutput { details: details(facts), ..ToolOutput::text(text) }
    }
}
