//! What surfaces ask for, followed or refused; a refused command changes nothing.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::desk::{Activity, Closing, Cx, Desk, Want, refused};
use super::prompt_state;
use super::recovery::Point;
use super::summarizing::{Job, Then};
use crate::event::Event;
use crate::fault::Fault;
use crate::input::Command;
use crate::message::{Block, Message};
use crate::model::{Model, ThinkingLevel};
use crate::session::EntryBody;

impl Desk {
    /// Follows a command, or says why not; a refused command changes nothing.
    ///
    /// # Errors
    /// `closed`, `busy`, `nothing_to_continue`, `empty_name`, `unknown_entry`, `not_read`.
    pub fn command(&mut self, command: Command, cx: &mut Cx<'_>) -> Result<(), Fault> {
        self.check_open()?;
        match command {
            Command::Prompt { text, images } => self.prompt(text, images, cx)?,
            Command::Continue => self.continue_run(cx)?,
            Command::Steer { text, images } => {
                self.steering.push(text.clone());
                self.agent.steering.push(Arc::new(Message::user(text, images, cx.now.wall.0)));
                self.show_queues(cx);
            }
            Command::FollowUp { text, images } => {
                self.follow_up.push(text.clone());
                self.agent.follow_up.push(Arc::new(Message::user(text, images, cx.now.wall.0)));
                self.show_queues(cx);
            }
            Command::ClearQueues => {
                self.agent.steering.clear();
                self.agent.follow_up.clear();
                self.steering.clear();
                self.follow_up.clear();
                self.show_queues(cx);
            }
            Command::Abort => self.abort(cx),
            Command::AbortRetry => self.cancel_retry(cx),
            Command::AbortCompaction => self.cancel_job(cx),
            Command::Compact { focus } => self.compact_command(focus, cx)?,
            Command::Navigate { target, summary, label } => self.navigate(&target, summary, label, cx)?,
            Command::SetLabel { entry, label } => self.set_label(&entry, label.as_deref(), cx)?,
            Command::SetAutoCompaction(on) => self.auto_compaction = Some(on),
            Command::SetAutoRetry(on) => self.auto_retry = Some(on),
            Command::Host(note) => self.host_note(note, cx)?,
            Command::GracefulStop => {
                self.agent.stop_at_turn_end();
            }
            Command::SetModel { model, thinking } => self.set_model(model, thinking, cx),
            Command::SetThinking(level) => self.set_thinking(level, cx),
            Command::SetSteeringMode(mode) => self.agent.steering.mode = mode,
            Command::SetFollowUpMode(mode) => self.agent.follow_up.mode = mode,
            Command::Note(message) => self.note(message, cx),
            Command::SetName(name) => self.set_name(&name, cx)?,
            Command::Shutdown => {
                self.closing = Closing::Wanted;
                self.abort(cx);
                // What could not be written has its last chance.
                cx.out.extend(self.session.flush().map(Want::Append));
            }
            // The hub runs them.
            Command::Shell { .. } | Command::AbortShells => {}
        }
        Ok(())
    }

    /// Whether commands are still followed.
    ///
    /// # Errors
    /// `closed`.
    pub fn check_open(&self) -> Result<(), Fault> {
        match self.closing {
            Closing::No => Ok(()),
            _ => Err(Fault::new("closed", "This agent was shut down; start a new one.")),
        }
    }

    fn prompt(&mut self, text: String, images: Vec<Block>, cx: &mut Cx<'_>) -> Result<(), Fault> {
        self.check_idle()?;
        self.abort_requested = false;
        self.waiting_prompt = Some((text, images));
        // A context that is too large already is compacted first.
        if !self.keep_inside(Point::BeforePrompt, Then::Prompt, cx) {
            self.start_prompt(cx);
        }
        Ok(())
    }

    /// The prompt becomes a message, and the first of a run.
    pub(super) fn start_prompt(&mut self, cx: &mut Cx<'_>) {
        if let Some((text, images)) = self.waiting_prompt.take() {
            self.start_run(Arc::new(Message::user(text, images, cx.now.wall.0)), cx);
        }
    }

    /// Starts a run with a message; a patch of the system prompt goes before it, what a host left for it after it.
    pub(super) fn start_run(&mut self, message: Arc<Message>, cx: &mut Cx<'_>) {
        self.record_selection(cx);
        let mut messages: Vec<Arc<Message>> =
            prompt_state::patch(self.agent.systems(), &self.prompt, cx.now.wall.0).into_iter().collect();
        messages.push(message);
        messages.append(&mut self.notes.next_turn);
        if self.agent.prompt(messages, cx.now).is_ok() {
            self.activity = Activity::Running;
            // Whoever aborted while the prompt waited finds it in the transcript.
            if self.abort_requested {
                self.agent.abort();
            }
        }
    }

    pub(super) fn check_idle(&self) -> Result<(), Fault> {
        if self.job.as_ref().is_some_and(Job::is_manual) {
            return Err(Fault::new("busy", "A summary is being made; wait for its end or abort it."));
        }
        if !self.is_idle() {
            return Err(Fault::new(
                "busy",
                "A run is active. Queue the message as steering or follow-up, or abort the run first.",
            ));
        }
        Ok(())
    }

    /// Ends what is going on: run, wait or summary.
    fn abort(&mut self, cx: &mut Cx<'_>) {
        self.abort_requested |= self.is_active();
        self.agent.abort();
        self.cancel_retry(cx);
        self.cancel_job(cx);
        if self.wants_compaction.take().is_some() {
            self.compacted =
                Some(Err(Fault::new("cancelled", "The compaction was cancelled before it began.")));
        }
    }

    /// Compacts now, or when what is going on was aborted.
    fn compact_command(&mut self, focus: Option<String>, cx: &mut Cx<'_>) -> Result<(), Fault> {
        if self.job.as_ref().is_some_and(Job::is_manual) || self.wants_compaction.is_some() {
            return Err(Fault::new("busy", "A summary is being made already; wait for its end or abort it."));
        }
        if self.is_idle() {
            self.compact_now(focus, cx);
        } else {
            self.abort(cx);
            self.compacted = None;
            self.wants_compaction = Some(focus);
        }
        Ok(())
    }

    fn continue_run(&mut self, cx: &mut Cx<'_>) -> Result<(), Fault> {
        self.check_idle()?;
        self.abort_requested = false;
        self.agent.continue_run(cx.now).map_err(refused)?;
        // A session that another program began, or in which nobody asked anything yet, may not tell of the prompt.
        if let Some(patch) = prompt_state::patch(self.agent.context(), &self.prompt, cx.now.wall.0) {
            self.tell(patch, cx);
        }
        self.record_selection(cx);
        self.activity = Activity::Running;
        Ok(())
    }

    /// Records the model and the level when the branch says otherwise.
    pub(super) fn record_selection(&mut self, cx: &mut Cx<'_>) {
        let (model, level) = (self.agent.model().clone(), self.agent.thinking());
        let context = self.session.context();
        let same = |m: &crate::session::ModelRef| *m.provider == *model.provider && *m.model_id == *model.id;
        let (new_model, new_level) =
            (!context.model.as_ref().is_some_and(same), context.thinking() != Some(level));
        if new_model {
            self.record(EntryBody::model(&model.provider, &model.id), cx);
        }
        if new_level {
            self.record(EntryBody::thinking(level), cx);
        }
    }

    fn set_model(&mut self, model: Arc<Model>, thinking: Option<ThinkingLevel>, cx: &mut Cx<'_>) {
        self.record(EntryBody::model(&model.provider, &model.id), cx);
        self.agent.set_model(model);
        self.set_thinking(thinking.unwrap_or_else(|| self.agent.thinking()), cx);
    }

    fn set_thinking(&mut self, level: ThinkingLevel, cx: &mut Cx<'_>) {
        let level = self.agent.model().clamp(level);
        if level != self.agent.thinking() {
            self.agent.set_thinking(level);
            self.record(EntryBody::thinking(level), cx);
            cx.out.push(Want::Event(Event::ThinkingLevel(level)));
        }
    }

    fn set_name(&mut self, name: &str, cx: &mut Cx<'_>) -> Result<(), Fault> {
        if name.trim().is_empty() {
            return Err(Fault::new("empty_name", "A session name needs at least one visible character."));
        }
        self.record(EntryBody::session_name(name), cx);
        cx.out.push(Want::Event(Event::SessionName(self.session.name().map(String::from))));
        Ok(())
    }

    pub(super) fn show_queues(&self, cx: &mut Cx<'_>) {
        let (steering, follow_up) = (self.steering.clone(), self.follow_up.clone());
        cx.out.push(Want::Event(Event::QueueUpdate { steering, follow_up }));
    }
}
