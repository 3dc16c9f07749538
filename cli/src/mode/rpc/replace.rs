//! Commands that put another session in the place of the current one.

use std::collections::VecDeque;
use std::fs;
use std::mem;
use std::sync::Arc;

use crate::backend::Machine;
use tau_core::input::Command;
use tau_core::json::Writer;
use tau_core::session::{Session, Want, fork, open};

use super::call::Call;
use super::commands::Answer;
use super::entries::{Counted, Entries};
use super::{Rpc, text_of};
use crate::args::Args;
use crate::bootstrap::Workshop;
use crate::choose::{Chosen, choose, recorded};
use crate::out::note;

/// What comes in place of the session.
pub(super) enum Replacement {
    /// A new one; `parent` is the file it descends from.
    New { parent: Option<String> },
    /// The session of a file.
    File { path: String },
    /// A copy of the branch that ends at an entry; `text` is what a person may edit and send anew.
    Branch { leaf: Option<String>, text: Option<String> },
    /// It took place; the response with these data follows when it is stored.
    Made { data: String },
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

    /// A copy of the branch up to before a message of a person.
    pub(super) fn fork(&mut self, call: &Call) -> Result<Answer, String> {
        let id = call.text("entryId")?;
        let found = self.engine.with(|hub| {
            let session = hub.desk().session();
            if unsaved(session) {
                return Err("fork: this session was not stored yet; send a message first".to_owned());
            }
            let tree = session.tree();
            let slot = tree.find(id).ok_or_else(|| format!("fork: there is no entry {id}"))?;
            let text = Entries::of(session).user_text(slot);
            let text = text.ok_or_else(|| format!("fork: entry {id} is not a message of a person"))?;
            Ok((tree.parent_id(slot).map(str::to_owned), text))
        });
        let (leaf, text) = found?;
        self.when_idle(call, Replacement::Branch { leaf, text: Some(text) })
    }

    /// A copy of the current branch.
    pub(super) fn clone_session(&mut self, call: &Call) -> Result<Answer, String> {
        let (leaf, unsaved) = self.engine.with(|hub| {
            let session = hub.desk().session();
            (session.leaf_id().map(str::to_owned), unsaved(session))
        });
        if leaf.is_none() || unsaved {
            return Err("clone: this session was not stored yet; send a message first".into());
        }
        self.when_idle(call, Replacement::Branch { leaf, text: None })
    }

    /// Aborts the run and kills what the shell still does; the rest follows when both have ended.
    fn when_idle(&mut self, call: &Call, replacement: Replacement) -> Result<Answer, String> {
        if !self.engine.with(Machine::is_idle) {
            self.tell(Command::Abort)?;
            self.tell(Command::AbortShells)?;
        }
        self.replacement = Some((call.subject.clone(), replacement));
        Ok(Answer::Sent)
    }

    /// Puts another session in place; the data of the response. On an error everything stays as it was.
    pub(super) fn replace(&mut self, replacement: Replacement) -> Result<String, String> {
        let mut warnings = Vec::new();
        let outcome = match replacement {
            Replacement::New { parent } => self.begin(parent, &mut warnings).map(|()| None),
            Replacement::File { path } => self.open(&path, &mut warnings).map(|()| None),
            Replacement::Branch { leaf, text } => self.branch(leaf, &mut warnings).map(|()| text),
            Replacement::Made { data } => return Ok(data),
        };
        warnings.iter().for_each(|warning| note(warning));
        outcome.map(|text| {
            let mut w = Writer::new();
            w.begin_object();
            w.field_opt_str("text", text.as_deref());
            w.field_bool("cancelled", false);
            w.end_object();
            w.into_string()
        })
    }

    fn branch(&mut self, leaf: Option<String>, warnings: &mut Vec<String>) -> Result<(), String> {
        let source = self.engine.with(|hub| hub.desk().session().path().map(str::to_owned));
        let Some(leaf) = leaf else { return self.begin(source, warnings) };
        let file = match &source {
            Some(path) => fs::read(path).map_err(|e| format!("{path} cannot be copied: {e}"))?,
            None => Vec::new(),
        };
        let place = self.workshop.fresh_session(source, &mut self.rng)?;
        let rng = &mut self.rng;
        let copy = self.engine.with(|hub| {
            fork::branch(&file, hub.desk().session().tree(), &leaf, place.header(), rng).map_err(text_of)
        })?;
        // What is written at once can be read there later.
        let (path, due) = (place.path().map(str::to_owned), copy.starts_file);
        let want = if due && path.is_some() { Want::Context } else { Want::Everything };
        let (session, _) = open(&copy.bytes, path.clone().unwrap_or_default(), place.cwd(), want)
            .map_err(|why| format!("the copy cannot be opened: {why}"))?;
        let session = session.unstored(path, copy.bytes, due);
        let chosen = self.chosen(&session)?;
        self.renew(session, chosen, warnings)
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

    /// Opens the session of the moment anew with all of its branches, if some were left in the file.
    pub(super) fn read_everything(&mut self) -> Result<(), String> {
        let path = self.engine.with(|hub| {
            let session = hub.desk().session();
            let unread = session.tree().nodes().iter().any(|node| node.body().is_none());
            session.path().filter(|_| unread && session.is_stored()).map(str::to_owned)
        });
        let Some(path) = path else { return Ok(()) };
        let session = self.workshop.open_whole_session(&path, &mut self.rng)?;
        let mut warnings = Vec::new();
        self.renew(session, None, &mut warnings)
    }

    /// A stored session brings its model and level, if they can be used.
    fn chosen(&mut self, session: &Session) -> Result<Option<Chosen>, String> {
        if recorded(session).is_none() {
            return Ok(None);
        }
        let Workshop { args, base, access, .. } = &mut self.workshop;
        access.refresh();
        // The flags were about the first session.
        let flags = Args { provider: None, model: None, models: None, thinking: None, ..args.clone() };
        let chosen = choose(&flags, access, &base.settings, session, &mut Vec::new())?;
        Ok(Some(chosen.unwrap_or_else(|| Chosen::nothing(&base.place, args.offline))))
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
            // Modes belong to the client, not to the session.
            let modes = (agent.steering.mode, agent.follow_up.mode);
            let switches = (hub.desk().auto_compaction(), hub.desk().auto_retry());
            let modes = (modes, switches);
            (Chosen { model: Arc::clone(agent.model()), level: agent.thinking(), warning: None }, modes)
        });
        let Chosen { model, level, warning } = chosen.unwrap_or(current);
        warnings.extend(warning);
        let none = VecDeque::new();
        let (mut boot, resources) =
            self.workshop.boot(session, model, level, &none, &mut self.rng, warnings)?;
        let (queues, (compacts, retries)) = modes;
        (boot.desk.steering_mode, boot.desk.follow_up_mode) = queues;
        self.files.claim(self.records.session(), boot.desk.session.path())?;
        if let Some(gate) = &self.gate {
            gate.moved(&self.workshop.base.place, &boot.env);
        }
        boot.desk.session = boot.desk.session.frugal();
        self.counted = Counted::default();
        let now = self.engine.now();
        self.engine.with_mut(|hub| {
            hub.renew(boot, now);
            for command in [Command::SetAutoCompaction(compacts), Command::SetAutoRetry(retries)] {
                let _ = hub.command(now, command);
            }
        });
        self.resources = resources;
        Ok(())
    }
}

/// Whether the session will have a file and has none yet.
fn unsaved(session: &Session) -> bool {
    session.path().is_some() && !session.is_stored()
}
