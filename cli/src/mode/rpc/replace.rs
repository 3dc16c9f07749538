//! Commands that put another session in the place of the current one.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use tau_core::input::Command;
use tau_core::session::Session;
use tau_io_std::driver::Machine;

use super::Rpc;
use super::call::Call;
use super::commands::Answer;
use crate::args::Args;
use crate::bootstrap::Workshop;
use crate::choose::{Chosen, choose};
use crate::out::note;

/// Data of a replacement that took place.
pub(super) const DONE: &str = r#"{"cancelled":false}"#;

/// What comes in place of the session.
pub(super) enum Replacement {
    /// A new one; `parent` is the file it descends from.
    New { parent: Option<String> },
    /// The session of a file.
    File { path: String },
}

impl Rpc {
    pub(super) fn new_session(&mut self, call: &Call) -> Result<Answer, String> {
        let parent = call.optional_text("parentSession")?.map(str::to_owned);
        self.when_idle(call, Replacement::New { parent })
    }

    pub(super) fn switch_session(&mut self, call: &Call) -> Result<Answer, String> {
        let path = call.text("sessionPath")?.to_owned();
        self.when_idle(call, Replacement::File { path })
    }

    /// Aborts the run; the rest follows when it has ended.
    fn when_idle(&mut self, call: &Call, replacement: Replacement) -> Result<Answer, String> {
        if !self.engine.with(Machine::is_idle) {
            self.tell(Command::Abort)?;
        }
        self.replacement = Some((call.subject.clone(), replacement));
        Ok(Answer::Sent)
    }

    /// Puts another session in place. On an error everything stays as it was.
    pub(super) fn replace(&mut self, replacement: Replacement) -> Result<(), String> {
        let mut warnings = Vec::new();
        let outcome = match replacement {
            Replacement::New { parent } => self.begin(parent, &mut warnings),
            Replacement::File { path } => self.open(&path, &mut warnings),
        };
        warnings.iter().for_each(|warning| note(warning));
        outcome
    }

    /// A new session goes on with the model and the level of the one before.
    fn begin(&mut self, parent: Option<String>, warnings: &mut Vec<String>) -> Result<(), String> {
        let session = self.workshop.fresh_session(parent, &mut self.rng)?;
        self.renew(session, None, warnings)
    }

    fn open(&mut self, path: &str, warnings: &mut Vec<String>) -> Result<(), String> {
        let (session, base) = self.workshop.open_session(path, &mut self.rng, warnings)?;
        let before = base.map(|base| mem::replace(&mut self.workshop.base, base));
        let outcome = self.chosen(&session).and_then(|chosen| self.renew(session, chosen, warnings));
        if let (Err(_), Some(before)) = (&outcome, before) {
            self.workshop.base = before;
        }
        outcome
    }

    /// A stored session brings its model and level, if they can be used.
    fn chosen(&mut self, session: &Session) -> Result<Option<Chosen>, String> {
        if session.context().messages.is_empty() {
            return Ok(None);
        }
        let Workshop { args, base, access, .. } = &mut self.workshop;
        access.refresh();
        // The flags were about the first session.
        let flags = Args { provider: None, model: None, thinking: None, ..args.clone() };
        let chosen = choose(&flags, access, &base.settings, session)?;
        Ok(Some(chosen.unwrap_or_else(|| Chosen::nothing(&base.place))))
    }

    /// `None` = the model and level of the session before.
    fn renew(
        &mut self,
        session: Session,
        chosen: Option<Chosen>,
        warnings: &mut Vec<String>,
    ) -> Result<(), String> {
        let (current, modes) = self.engine.with(|hub| {
            let agent = hub.desk().agent();
            // Queue modes belong to the client, not to the session.
            let modes = (agent.steering.mode, agent.follow_up.mode);
            (Chosen { model: Arc::clone(agent.model()), level: agent.thinking(), warning: None }, modes)
        });
        let Chosen { model, level, warning } = chosen.unwrap_or(current);
        warnings.extend(warning);
        let none = VecDeque::new();
        let (mut boot, resources) =
            self.workshop.boot(session, model, level, &none, &mut self.rng, warnings)?;
        (boot.desk.steering_mode, boot.desk.follow_up_mode) = modes;
        let now = self.engine.now();
        self.engine.with_mut(|hub| hub.renew(boot, now));
        self.resources = resources;
        Ok(())
    }
}
