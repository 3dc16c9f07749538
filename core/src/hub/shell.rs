//! Commands of the user's own shell on their way through the hub.

use alloc::string::String;

use super::Hub;
use super::ops::Owner;
use crate::event::Event;
use crate::fault::Fault;
use crate::harness::{Cx, Heard, shell};
use crate::ids::OpId;
use crate::input::Reply;
use crate::op::{Lane, Op};

impl Hub {
    /// Starts a command; `id` comes back in its events.
    pub(super) fn start_shell(&mut self, id: u64, command: String, excluded: bool) -> Result<(), Fault> {
        self.desk.check_open()?;
        let process = shell::process(&self.env, &command)?;
        let op = self.ops.start(Owner::Shell, Lane::Free, Op::Proc(process));
        self.shells.begin(op, id, command, excluded);
        Ok(())
    }

    /// Kills all of them.
    pub(super) fn abort_shells(&mut self) {
        for op in self.shells.abort() {
            self.ops.cancel(op);
        }
    }

    /// Output is shown; a record is stored, or kept until the run has ended.
    pub(super) fn shell_reply(&mut self, op: OpId, reply: &Reply) {
        let heard = self.shells.on_reply(op, reply, &self.env, self.now.wall);
        let Some(Heard { id, delta, end }) = heard else { return };
        if !delta.is_empty() {
            self.ops.event(Event::ShellOutput { id, delta });
        }
        let Some(outcome) = end else { return };
        if let Ok(record) = &outcome {
            let mut cx = Cx { now: self.now, rng: &mut self.rng, out: &mut self.wants };
            self.desk.note(record.clone(), &mut cx);
            self.carry_out();
        }
        self.ops.event(Event::ShellEnd { id, outcome });
    }
}
