//! The invariants, watched from outside the hub.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::Value;
use tau_core::event::Event;
use tau_core::ids::OpId;
use tau_core::message::StopReason;

use super::coverage::Coverage;
use super::recovery::Recovery;

pub(crate) struct Watch {
    pub(crate) failures: Vec<String>,
    pub(crate) seen: Coverage,
    life: Life,
    pub(crate) recovery: Recovery,
}

/// What is forgotten when the program dies.
#[derive(Default)]
struct Life {
    /// Ops that are open, and whether they were cancelled.
    open: BTreeMap<OpId, bool>,
    started: BTreeSet<OpId>,
    in_run: bool,
    in_turn: bool,
    /// Calls of the current turn that began and did not end.
    running: Vec<String>,
    settled: bool,
    shells: u64,
    shells_ended: u64,
    /// Commands of the shell that did not end.
    open_shells: BTreeSet<u64>,
}

impl Watch {
    pub(crate) fn new(max_retries: u64) -> Self {
        let recovery = Recovery::new(max_retries);
        Self { failures: Vec::new(), seen: Coverage::default(), life: Life::default(), recovery }
    }

    /// The program died and was started again.
    pub(crate) fn begin_life(&mut self, max_retries: u64) {
        self.seen.saw("crashes");
        (self.life, self.recovery) = (Life::default(), Recovery::new(max_retries));
    }

    pub(crate) const fn shells_ended(&self) -> u64 {
        self.life.shells_ended
    }

    pub(crate) fn fail(&mut self, text: impl Into<String>) {
        self.failures.push(text.into());
    }

    pub(crate) fn new_shell(&mut self) -> u64 {
        self.life.shells += 1;
        self.life.open_shells.insert(self.life.shells);
        self.life.shells
    }

    /// Invariant 1: at most one cancel, and only of what is open.
    pub(crate) fn start(&mut self, op: OpId) {
        if !self.life.started.insert(op) {
            self.fail(format!("{op} started twice"));
        }
        self.life.open.insert(op, false);
    }

    pub(crate) fn cancel(&mut self, op: OpId) {
        match self.life.open.get_mut(&op) {
            Some(cancelled) if !*cancelled => *cancelled = true,
            Some(_) => self.fail(format!("{op} cancelled twice")),
            None => self.fail(format!("{op} cancelled after its last reply")),
        }
    }

    pub(crate) fn last_reply(&mut self, op: OpId) {
        self.life.open.remove(&op);
    }

    /// Invariant 2: runs, turns and calls nest and balance.
    pub(crate) fn event(&mut self, event: &Event) {
        self.recovery.event(event, &mut self.seen);
        self.failures.extend(self.recovery.take_failures().into_iter().map(str::to_owned));
        match event {
            Event::AgentStart => {
                self.expect(!self.life.in_run && !self.life.in_turn, "agent_start inside a run");
                self.life.in_run = true;
                self.life.settled = false;
            }
            Event::TurnStart => {
                self.expect(self.life.in_run && !self.life.in_turn, "turn_start at the wrong place");
                self.life.in_turn = true;
            }
            Event::TurnEnd { message, results } => {
                self.expect(self.life.in_turn, "turn_end without turn_start");
                self.expect(self.life.running.is_empty(), "turn_end while calls run");
                let message = message.as_assistant().unwrap();
                let calls = message.tool_calls().count();
                if message.stop_reason.is_failure() {
                    self.expect(results.is_empty(), "results of a failed reply");
                } else {
                    self.expect(results.len() == calls, "a call without result");
                }
                self.seen.saw_if("aborted", message.stop_reason == StopReason::Aborted);
                self.seen.saw_if("failed replies", message.stop_reason == StopReason::Error);
                self.expect(
                    message.stop_reason != StopReason::Pending,
                    "a pending reply at the end of a turn",
                );
                self.life.in_turn = false;
            }
            Event::AgentEnd { .. } => {
                self.expect(self.life.in_run && !self.life.in_turn, "agent_end at the wrong place");
                self.life.in_run = false;
            }
            Event::AgentSettled { .. } => {
                self.expect(!self.life.in_run && !self.life.settled, "agent_settled at the wrong place");
                self.life.settled = true;
            }
            Event::ToolStart { call_id, .. } => {
                self.expect(self.life.in_turn, "a call outside a turn");
                self.life.running.push(call_id.clone());
            }
            Event::ToolEnd { call_id, result, .. } => {
                self.seen.saw("tool calls");
                self.seen.saw_if("tool errors", result.is_error);
                match self.life.running.iter().position(|id| id == call_id) {
                    Some(at) => {
                        self.life.running.remove(at);
                    }
                    None => self.fail("a call ended that did not begin, or twice"),
                }
            }
            Event::ToolUpdate { call_id, .. } => {
                let known = self.life.running.contains(call_id);
                self.expect(known, "an update of a call that does not run");
            }
            Event::QueueUpdate { .. } => self.seen.saw("queued"),
            Event::ShellOutput { id, delta } => {
                let known = self.life.open_shells.contains(id) && !delta.is_empty();
                self.expect(known, "output of a command of the shell that does not run, or none");
            }
            Event::ShellEnd { id, outcome } => {
                let known = self.life.open_shells.remove(id);
                self.expect(known, "a command of the shell ended that did not begin, or twice");
                self.life.shells_ended += u64::from(outcome.is_ok());
                self.seen.saw_if("shells", outcome.is_ok());
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

    /// A request for a summary: a question of its own, without tools.
    pub(crate) fn summary_request(&mut self, body: &Value) {
        let roles: Vec<&str> =
            body["messages"].as_array().unwrap().iter().filter_map(|m| m["role"].as_str()).collect();
        self.expect(
            matches!(roles[..], ["system" | "developer", "user"]),
            "a request for a summary that says more",
        );
        self.expect(body.get("tools").is_none(), "a request for a summary with tools");
        self.seen.saw("summary requests");
    }

    pub(crate) fn end(&mut self) {
        self.recovery.end();
        self.failures.extend(self.recovery.take_failures().into_iter().map(str::to_owned));
        let open = self.life.open.len();
        self.expect(!self.life.in_run && !self.life.in_turn, "the run did not end");
        self.expect(self.life.running.is_empty(), "calls did not end");
        self.expect(self.life.open_shells.is_empty(), "commands of the shell did not end");
        self.expect(open == 0, "ops without last reply");
    }
}
