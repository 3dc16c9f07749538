//! Lives of the program: how one ends in the middle of a write, how the next goes on, and what must be the same.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tau_core::hub::Hub;
use tau_core::json::Writer;
use tau_core::message::{AssistantMessage, Message};
use tau_core::now::Now;
use tau_core::op::AppendOp;
use tau_core::record::{KeepBody, Log, Places};
use tau_core::session::entry::EntryLine;
use tau_core::session::reader::{self, Want};
use tau_core::session::{EntryBody, Header, Session};

use super::World;
use super::told::{Records, stored};

/// A session without file.
pub(super) fn new_session(now: Now, path: &str) -> Session {
    Session::new(Header::new("0190-sim".into(), now.wall, "/w".into(), None), Some(path.into()))
}

impl World {
    /// The program dies at any moment: nothing that is under way is carried out.
    pub(super) fn crash(&mut self) {
        self.say(|| "crash".into());
        let records = Records::read(self.disk.get(&self.path).unwrap_or_default());
        for mark in self.told.missing(&records) {
            self.watch.fail(format!("told, but not in the file: {mark}"));
        }
        let session = self.read_again(&records);
        self.start_again(session);
    }

    /// The program dies during a write, or just before or after it.
    pub(super) fn crash_in(&mut self, write: &AppendOp) {
        match self.rng.below(4) {
            0 => {}
            1 => drop(self.disk.append(write)),
            _ => {
                let len = self.rng.below(write.bytes.len() as u64 + 1) as usize;
                self.disk.write_part(write, len);
            }
        }
        self.crash();
    }

    /// The machine of a life; what goes in and comes out is recorded if that is wanted.
    pub(super) fn make_hub(&mut self, session: Session) -> Hub {
        let boot = self.setup.boot(session, self.lives);
        if !self.is_recorded {
            return Hub::new(boot, self.now);
        }
        let lines = Arc::new(Mutex::new(Vec::new()));
        self.records.push(Arc::clone(&lines));
        let file = self.disk.get(&self.path).map(<[u8]>::to_vec);
        let sink = Box::new(move |bytes: &[u8], _| lines.lock().unwrap().extend_from_slice(bytes));
        let bodies = Arc::clone(&self.bodies);
        let keep: KeepBody = Box::new(move |name, bytes| {
            bodies.lock().unwrap().insert(name.to_owned(), bytes.to_vec());
            true
        });
        let apart = self.bodies_from.map(|from| (from, keep));
        let places = Places { sink, read: Box::new(move |_| file.clone()), apart };
        let log = Log::begin("sim", self.now, &boot, places);
        let mut hub = Hub::new(boot, self.now);
        hub.record(Box::new(log));
        hub
    }

    /// The session of the file; a new one when there is none.
    fn read_again(&mut self, records: &Records) -> Session {
        let bytes = self.disk.get(&self.path).unwrap_or_default();
        let whole = reader::open(bytes, self.path.clone(), "/w", Want::Everything);
        let Ok((whole, _)) = whole else {
            // The write that was to make the file did not get far.
            if !records.0.is_empty() {
                self.watch.fail("a file with entries that cannot be read");
            }
            self.path = format!("/s/session-{}.jsonl", self.lives + 1);
            return new_session(self.now, &self.path);
        };
        self.compare_records(&whole, records);
        self.compare_with_memory(whole);
        let want = if self.rng.below(2) == 0 { Want::Everything } else { Want::default() };
        let bytes = self.disk.get(&self.path).unwrap_or_default();
        match reader::open(bytes, self.path.clone(), "/w", want) {
            Ok((session, _)) => session,
            Err(error) => panic!("read once, but not twice: {error}"),
        }
    }

    fn start_again(&mut self, session: Session) {
        self.lives += 1;
        self.pending.clear();
        self.idle_timeouts = 0;
        self.watch.begin_life(self.setup.max_retries);
        self.bash_entries = bash_entries(&session);
        self.hub = self.make_hub(session);
        self.drain();
    }

    /// What is read is what the lines say, in their order.
    fn compare_records(&mut self, read: &Session, records: &Records) {
        let tree = read.tree();
        let held: Vec<Value> = tree.slots().map(|slot| record(read, slot)).collect();
        if held != records.0 {
            let at = held.iter().zip(&records.0).position(|(a, b)| a != b);
            let (held_len, len) = (held.len(), records.0.len());
            if self.is_loud {
                held.iter().for_each(|record| eprintln!("read {record}"));
                records.0.iter().for_each(|record| eprintln!("file {record}"));
                eprintln!("{}", String::from_utf8_lossy(self.disk.get(&self.path).unwrap_or_default()));
            }
            self.watch.fail(format!("{held_len} entries of {len} are read; the first that differs: {at:?}"));
        }
    }

    /// When everything got into the file, the context is the one that was lost with the program.
    fn compare_with_memory(&mut self, mut read: Session) {
        let session = self.hub.desk().session();
        let ids = |session: &Session| -> Vec<String> {
            let mut seen = BTreeSet::new();
            let ids = session.tree().slots().map(|slot| session.tree().id(slot).to_owned());
            ids.filter(|id| seen.insert(id.clone())).collect()
        };
        let (in_file, in_memory) = (ids(&read), ids(session));
        if !in_memory.starts_with(&in_file) {
            self.watch.fail("the file is not the beginning of what was in memory");
        }
        if in_file.len() != in_memory.len() {
            return;
        }
        // Going to another entry is stored with the next one.
        if let Err(fault) = read.branch(session.leaf_id()) {
            self.watch.fail(format!("the leaf is not in the file: {fault:?}"));
            return;
        }
        if show(&read) != show(session) {
            self.watch.fail("the context of the file is another one");
        }
    }

    // ----- while nothing goes on -----

    /// The parts of the program agree with each other.
    pub(super) fn compare_parts(&mut self) {
        let desk = self.hub.desk();
        let (agent, session) = (desk.agent(), desk.session());
        let mut wrong = Vec::new();
        let (run, held) = (agent.context(), &session.context().messages);
        if run.len() != held.len() || !run.iter().zip(held).all(|(a, b)| is_same(a, b)) {
            wrong.push("the run and the session differ in what was said");
        }
        let texts = |queue: &tau_core::agent::Queue| -> Vec<String> {
            let users = queue.iter().filter_map(|message| match &**message {
                Message::User(user) => Some(user.content.texts().collect()),
                _ => None,
            });
            users.collect()
        };
        let shown = desk.queued();
        if shown != (texts(&agent.steering).as_slice(), texts(&agent.follow_up).as_slice()) {
            wrong.push("the queues are not what is shown of them");
        }
        if wrong.is_empty() {
            return;
        }
        wrong.into_iter().for_each(|why| self.watch.fail(why));
    }

    /// Whatever the server calls its calls, no id stands for two of them: the results of the later one would be lost.
    pub(super) fn compare_call_ids(&mut self) {
        let context = self.hub.desk().agent().context();
        let calls = context.iter().filter_map(|m| m.as_assistant()).flat_map(AssistantMessage::tool_calls);
        let mut seen = BTreeSet::new();
        let twice: Vec<String> = calls.filter(|call| !seen.insert(&call.id)).map(|c| c.id.clone()).collect();
        if !twice.is_empty() {
            self.watch.fail(format!("ids of several calls: {twice:?}"));
        }
    }

    /// Every command of the shell that ran left its record, once, and no record parts a call from its results.
    pub(super) fn compare_shells(&mut self) {
        let desk = self.hub.desk();
        let records = bash_entries(desk.session()) - self.bash_entries;
        let parts = desk
            .agent()
            .context()
            .windows(2)
            .any(|pair| matches!((&*pair[0], &*pair[1]), (Message::Bash(_), Message::ToolResult(_))));
        if records != self.watch.shells_ended() {
            self.watch.fail(format!("{records} records of {} commands", self.watch.shells_ended()));
        }
        if parts {
            self.watch.fail("a record of the shell before a tool result");
        }
    }

    /// Invariant 5: the file, read again, is the session in memory.
    pub(super) fn compare_session(&mut self) {
        let session = self.hub.desk().session();
        if session.is_dirty() {
            return;
        }
        let Some(bytes) = self.disk.get(&self.path) else {
            if session.is_stored() {
                self.watch.fail("a stored session without file");
            }
            return;
        };
        let mut read = match reader::open(bytes, self.path.clone(), "/w", Want::Everything) {
            Ok((read, _)) => read,
            Err(error) => {
                self.watch.fail(format!("the session cannot be read: {error}"));
                return;
            }
        };
        let is_there = read.leaf_id() == session.leaf_id() || read.branch(session.leaf_id()).is_ok();
        let (held, in_file) = (show(session), show(&read));
        if !is_there || in_file != held {
            self.watch.fail(format!("the file differs from memory: {in_file:?} / {held:?}"));
        }
    }
}

/// The time of a host's message is that of its entry.
fn is_same(a: &Message, b: &Message) -> bool {
    match (a, b) {
        (Message::Custom(a), Message::Custom(b)) => a.content == b.content && a.custom_type == b.custom_type,
        _ => a == b,
    }
}

/// An entry as its line says it.
fn record(session: &Session, slot: tau_core::session::tree::Slot) -> Value {
    let tree = session.tree();
    let node = tree.node(slot).unwrap();
    let line = EntryLine {
        id: tree.id(slot),
        parent: tree.parent_id(slot),
        time: node.time().unwrap(),
        body: node.body().unwrap(),
    };
    let mut w = Writer::new();
    line.write(&mut w);
    serde_json::from_str(w.as_str()).unwrap()
}

fn show(session: &Session) -> Vec<Value> {
    session.context().messages.iter().map(|message| stored(message)).collect()
}

fn bash_entries(session: &Session) -> u64 {
    let tree = session.tree();
    let is_bash = |body: &EntryBody| matches!(body, EntryBody::Message(m) if matches!(**m, Message::Bash(_)));
    tree.nodes().iter().filter(|node| node.body().is_some_and(is_bash)).count() as u64
}
