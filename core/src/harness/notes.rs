//! Messages of a host: beside the conversation, in it, or asking for an answer (spec 10 §8.4).

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::desk::{Cx, Desk, Want, entry_of};
use crate::event::Event;
use crate::fault::Fault;
use crate::input::{Deliver, HostNote};
use crate::message::Message;

/// Messages of a host that wait for their place.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Behind the next prompt.
    pub(super) next_turn: Vec<Arc<Message>>,
    /// For the end of the current turn: never between a call and its result.
    held: Vec<Arc<Message>>,
    /// For the end of the activity.
    late: Vec<Arc<Message>>,
}

impl Desk {
    /// Puts a message of a host where it belongs.
    ///
    /// # Errors
    /// `busy` while a summary is made that was asked for, and the message wants an answer.
    pub(super) fn host_note(&mut self, note: HostNote, cx: &mut Cx<'_>) -> Result<(), Fault> {
        let HostNote { mut message, deliver, trigger } = note;
        message.timestamp = cx.now.wall.0;
        let message = Arc::new(Message::Custom(*message));
        match (deliver, self.is_active(), trigger) {
            (Deliver::NextTurn, _, _) => self.notes.next_turn.push(message),
            (_, true, Some(false)) => self.notes.held.push(message),
            (Deliver::FollowUp, true, _) => self.agent.follow_up.push(message),
            (Deliver::Steer, true, _) => self.agent.steering.push(message),
            (_, false, Some(true)) => {
                self.check_idle()?;
                self.start_run(message, cx);
            }
            (_, false, _) => self.tell(message, cx),
        }
        Ok(())
    }

    /// Appends a message that no event announces. While something goes on it waits for the end.
    pub fn note(&mut self, message: Arc<Message>, cx: &mut Cx<'_>) {
        if self.is_active() {
            self.notes.late.push(message);
        } else {
            self.append_note(message, cx);
        }
    }

    /// The activity is over: what waited for that joins the conversation.
    pub(super) fn append_late_notes(&mut self, cx: &mut Cx<'_>) {
        for message in core::mem::take(&mut self.notes.late) {
            self.append_note(message, cx);
        }
    }

    /// The turn is over: what waited for that joins the conversation.
    pub(super) fn tell_held_notes(&mut self, cx: &mut Cx<'_>) {
        for message in core::mem::take(&mut self.notes.held) {
            self.tell(message, cx);
        }
    }

    /// A message joins the conversation outside of a run.
    pub(super) fn tell(&mut self, message: Arc<Message>, cx: &mut Cx<'_>) {
        cx.out.push(Want::Event(Event::MessageStart(Arc::clone(&message))));
        cx.out.push(Want::Event(Event::MessageEnd(Arc::clone(&message))));
        self.append_note(message, cx);
    }

    fn append_note(&mut self, message: Arc<Message>, cx: &mut Cx<'_>) {
        self.record(entry_of(&message), cx);
        self.agent.append(message);
    }
}
