//! JSON mode: the session's header, then one event a line (spec 60 §2.4).

use std::mem;

use tau_core::event::Event;
use tau_core::json::Writer;

use super::Surface;
use super::totals::Totals;
use crate::out::{Out, note};
use crate::visible::harmless;

/// Writes events as they come; one buffer for all of them.
#[derive(Debug, Default)]
pub struct Json {
    out: Out,
    failed: bool,
    totals: Option<Totals>,
}

impl Json {
    /// Begins the stream with the header line of the session, as stored; `totals` end it.
    #[must_use]
    pub fn new(header: &str, totals: Option<Totals>) -> Self {
        let mut json = Self { totals, ..Self::default() };
        json.out.buffer().push_str(header.trim_end());
        json.out.buffer().push('\n');
        json
    }
}

impl Surface for Json {
    fn on_event(&mut self, event: &Event) {
        if let Event::Error(fault) = event {
            self.failed = true;
            note(&harmless(&fault.message));
        }
        if let Some(totals) = &mut self.totals {
            totals.count(event);
        }
        if self.out.is_closed() {
            return;
        }
        let mut w = Writer::append_to(mem::take(self.out.buffer()));
        let written = event.write(&mut w);
        *self.out.buffer() = w.into_string();
        if written {
            self.out.buffer().push('\n');
            self.out.settle();
        }
    }

    fn flush(&mut self) {
        self.out.flush();
    }

    fn is_closed(&self) -> bool {
        self.out.is_closed()
    }

    /// A failed reply is told by the events and is no failure of the program.
    fn finish(&mut self) -> bool {
        if let Some(totals) = &self.totals {
            let mut w = Writer::append_to(mem::take(self.out.buffer()));
            totals.write(&mut w);
            *self.out.buffer() = w.into_string();
            self.out.buffer().push('\n');
        }
        self.out.flush();
        !self.out.complain() && !self.failed
    }
}
