//! The invariants, watched from outside the hub.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;
use tau_core::event::Event;
use tau_core::ids::OpId;
use tau_core::message::StopReason;

/// How often interesting things happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Coverage {
    pub(crate) aborted: u64,
    pub(crate) failed_replies: u64,
    pub(crate) failed_appends: u64,
    pub(crate) tool_calls: u64,
    pub(crate) tool_errors: u64,
    pub(crate) queued: u64,
    /// Commands of the shell that left a record.
    pub(crate) shells: u64,
}

impl Coverage {
    pub(crate) fn add(&mut self, other: Self) {
        self.aborted += other.aborted;
        self.failed_replies += other.failed_replies;
        self.failed_appends += other.failed_appends;
        self.tool_calls += other.tool_calls;
        self.tool_errors += other.tool_errors;
        self.queued += other.queued;
        self.shells += other.shells;
    }
}

#[derive(Default)]
pub(crate) struct Watch {
    pub(crate) failures: Vec<String>,
    pub(crate) seen: Coverage,
    /// Ops that are open, and whether they were cancelled.
    open: BTreeMap<OpId, bool>,
    started: BTreeSet<OpId>,
    in_run: bool,
    in_turn: bool,
    /// Calls of the current turn that began and did not end.
    running: Vec<String>,
    settled: bool,
    shells: u64,
    /// Commands of the shell that did not end.
    open_shells: BTreeSet<u64>,
}

impl Watch {
    pub(crate) fn fail(&mut self, text: impl Into<String>) {
        self.failures.push(text.into());
    }

    pub(crate) fn new_shell(&mut self) -> u64 {
        self.shells += 1;
        self.open_shells.insert(self.shells);
        self.shells
    }

    /// Invariant 1: at most one cancel, and only of what is open.
    pub(crate) fn start(&mut self, op: OpId) {
        if !self.started.insert(op) {
            self.fail(format!("{op} started twice"));
        }
        self.open.insert(op, false);
    }

    pub(crate) fn cancel(&mut self, op: OpId) {
        match self.open.get_mut(&op) {
            Some(cancelled) if !*cancelled => *cancelled = true,
            Some(_) => self.fail(format!("{op} cancelled twice")),
            None => self.fail(format!("{op} cancelled after its last reply")),
        }
    }

    pub(crate) fn last_reply(&mut self, op: OpId) {
        self.open.remove(&op);
    }

    /// Invariant 2: runs, turns and calls nest and balance. Invariant 10: no secret in an event.
    pub(crate) fn event(&mut self, event: &Event, secret: &str) {
        if format!("{event:?}").contains(secret) {
            self.fail("a secret in an event");
        }
        match event {
            Event::AgentStart => {
                self.expect(!self.in_run && !self.in_turn, "agent_start inside a run");
                self.in_run = true;
                self.settled = false;
            }
            Event::TurnStart => {
                self.expect(self.in_run && !self.in_turn, "turn_start at the wrong place");
                self.in_turn = true;
            }
            Event::TurnEnd { message, results } => {
                self.expect(self.in_turn, "turn_end without turn_start");
                self.expect(self.running.is_empty(), "turn_end while calls run");
                let message = message.as_assistant().unwrap();
                let calls = message.tool_calls().count();
                if message.stop_reason.is_failure() {
                    self.expect(results.is_empty(), "results of a failed reply");
                } else {
                    self.expect(results.len() == calls, "a call without result");
                }
                self.seen.aborted += u64::from(message.stop_reason == StopReason::Aborted);
                self.seen.failed_replies += u64::from(message.stop_reason == StopReason::Error);
                self.expect(
                    message.stop_reason != StopReason::Pending,
                    "a pending reply at the end of a turn",
                );
                self.in_turn = false;
            }
            Event::AgentEnd { .. } => {
                self.expect(self.in_run && !self.in_turn, "agent_end at the wrong place");
                self.in_run = false;
            }
            Event::AgentSettled { .. } => {
                self.expect(!self.in_run && !self.settled, "agent_settled at the wrong place");
                self.settled = true;
            }
            Event::ToolStart { call_id, .. } => {
                self.expect(self.in_turn, "a call outside a turn");
                self.running.push(call_id.clone());
            }
            Event::ToolEnd { call_id, result, .. } => {
                self.seen.tool_calls += 1;
                self.seen.tool_errors += u64::from(result.is_error);
                match self.running.iter().position(|id| id == call_id) {
                    Some(at) => {
                        self.running.remove(at);
                    }
                    None => self.fail("a call ended that did not begin, or twice"),
                }
            }
            Event::ToolUpdate { call_id, .. } => {
                let known = self.running.contains(call_id);
                self.expect(known, "an update of a call that does not run");
            }
            Event::QueueUpdate { .. } => self.seen.queued += 1,
            Event::ShellOutput { id, delta } => {
                let known = self.open_shells.contains(id) && !delta.is_empty();
                self.expect(known, "output of a command of the shell that does not run, or none");
            }
            Event::ShellEnd { id, outcome } => {
                let known = self.open_shells.remove(id);
                self.expect(known, "a command of the shell ended that did not begin, or twice");
                self.seen.shells += u64::from(outcome.is_ok());
            }
            _ => {}
        }
    }

    fn expect(&mut self, holds: bool, text: &str) {
        if !holds {
            self.fail(text);
        }
    }

    /// Invariant 3: each tool result directly follows its call, call ids are unique, nothing is empty.
    pub(crate) fn request(&mut self, body: &Value) {
        let mut ids: HashSet<String> = HashSet::new();
        let mut open: Vec<String> = Vec::new();
        for message in body["messages"].as_array().unwrap() {
            match message["role"].as_str().unwrap() {
                "tool" => {
                    let id = message["tool_call_id"].as_str().unwrap();
                    match open.iter().position(|known| known == id) {
                        Some(at) => {
                            open.remove(at);
                        }
                        None => self.fail(format!("a result without its call: {id:?}")),
                    }
                }
                role => {
                    if !open.is_empty() {
                        self.fail(format!("{} calls without result before {role}", open.len()));
                    }
                    open.clear();
                    for call in message["tool_calls"].as_array().into_iter().flatten() {
                        let id = call["id"].as_str().unwrap().to_owned();
                        if id.is_empty() || !ids.insert(id.clone()) {
                            self.fail(format!("call id {id:?} empty or twice in one request"));
                        }
                        open.push(id);
                    }
                }
            }
        }
        if !open.is_empty() {
            self.fail("the request ends with calls without result");
        }
    }

    pub(crate) fn end(&mut self) {
        let open = self.open.len();
        self.expect(!self.in_run && !self.in_turn, "the run did not end");
        self.expect(self.running.is_empty(), "calls did not end");
        self.expect(self.open_shells.is_empty(), "commands of the shell did not end");
        self.expect(open == 0, "ops without last reply");
    }
}
