//! Tool batches: preparation, execution, results (spec 10 §2.7, §2.8).

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::batch::{Call, CallState, texts};
use super::hooks::{HookCall, ResultChange, ToolVerdict};
use super::machine::{Agent, Out};
use super::run::{Run, Step, Task, Waiting};
use crate::event::Event;
use crate::json::{self, Value};
use crate::message::{StopReason, ToolCall};
use crate::now::Now;
use crate::tools::{Tool, ToolOutput};

impl Agent {
    pub(super) fn next_call(&mut self, index: usize) {
        let Some(run) = &mut self.run else { return };
        let Some(batch) = &run.batch else { return };
        let Some(Call { call, .. }) = batch.calls.get(index) else {
            let task =
                if batch.sequential || Self::is_cut(run) { Task::FinishTurn } else { Task::StartReady };
            run.task(task);
            return;
        };
        let start = Event::ToolStart {
            call_id: call.id.clone(),
            name: call.name.clone(),
            args: call.arguments.clone(),
        };
        run.push(Step::Out(Out::Event(start)));
        run.task(Task::Prepare(index));
    }

    /// A reply cut at the output limit runs none of its calls.
    fn is_cut(run: &Run) -> bool {
        run.reply.as_ref().and_then(|m| m.as_assistant()).is_some_and(|m| m.stop_reason == StopReason::Length)
    }

    pub(super) fn prepare_call(&mut self, index: usize) {
        let before = self.config.hooks.before_tool_call;
        let Some(run) = &mut self.run else { return };
        let cut = Self::is_cut(run);
        let Some(call) = run.batch.as_ref().and_then(|b| b.calls.get(index)).map(|c| c.call.clone()) else {
            return;
        };
        let checked = if cut {
            Err(texts::CUT.to_string())
        } else if run.aborted {
            Err(texts::ABORTED.to_string())
        } else {
            check(&run.tools, &call)
        };
        match checked {
            Err(text) => self.settle_at_once(index, ToolOutput::error(text)),
            Ok((tool, args)) => {
                if let Some(c) = run.batch.as_mut().and_then(|b| b.calls.get_mut(index)) {
                    c.state = CallState::Ready { tool, args: args.clone() };
                }
                if before {
                    run.waiting = Waiting::Hook;
                    run.push(Step::Out(Out::Hook(HookCall::BeforeToolCall { index, call, args })));
                } else {
                    self.prepared(index);
                }
            }
        }
    }

    /// The call at `index` is ready or settled: go on with it or with the next.
    fn prepared(&mut self, index: usize) {
        let Some(run) = &mut self.run else { return };
        run.waiting = Waiting::Tools;
        let Some(batch) = &run.batch else { return };
        if batch.sequential { run.push(Step::Execute(index)) } else { run.task(Task::NextCall(index + 1)) }
    }

    pub(super) fn execute(&mut self, index: usize, now: Now) -> Option<Out> {
        let run = self.run.as_mut()?;
        let aborted = run.aborted;
        let call = run.batch.as_mut()?.calls.get_mut(index)?;
        let CallState::Ready { tool, args } = &call.state else { return None };
        if aborted {
            self.settle(index, ToolOutput::error(texts::ABORTED), None);
            return None;
        }
        let out = Out::Execute { index, tool: tool.clone(), call: call.call.clone(), args: args.clone() };
        call.state = CallState::Running { since: now.mono };
        run.waiting = Waiting::Tools;
        Some(out)
    }

    /// Shows an intermediate result; ignored once the call is settled.
    pub fn on_tool_update(&mut self, index: usize, output: ToolOutput) {
        let Some(run) = &mut self.run else { return };
        let Some(call) = run.batch.as_ref().and_then(|b| b.calls.get(index)) else { return };
        if matches!(call.state, CallState::Running { .. }) {
            let event = Event::ToolUpdate {
                call_id: call.call.id.clone(),
                name: call.call.name.clone(),
                args: call.call.arguments.clone(),
                partial: Arc::new(output),
            };
            run.push(Step::Out(Out::Event(event)));
        }
    }

    /// A call returned; ignored once the call is settled.
    pub fn on_tool_done(&mut self, index: usize, output: ToolOutput, now: Now) {
        let after = self.config.hooks.after_tool_call;
        let Some(run) = &mut self.run else { return };
        let Some(call) = run.batch.as_mut().and_then(|b| b.calls.get_mut(index)) else { return };
        let CallState::Running { since } = call.state else { return };
        let duration_ms = now.mono.since(since);
        if after {
            call.state = CallState::Finalizing { duration_ms, output: output.clone() };
            let call = call.call.clone();
            run.push(Step::Out(Out::Hook(HookCall::AfterToolCall { index, call, output })));
        } else {
            self.settle(index, output, Some(duration_ms));
        }
    }

    /// An immediate result: no execution, no duration.
    fn settle_at_once(&mut self, index: usize, output: ToolOutput) {
        let Some(run) = &mut self.run else { return };
        let Some(batch) = &mut run.batch else { return };
        let Some(call) = batch.calls.get_mut(index) else { return };
        let output = Arc::new(output);
        call.state = CallState::Done { output: output.clone(), duration_ms: None };
        let sequential = batch.sequential || Self::is_cut(run);
        Self::tool_end(run, index, output, None);
        if sequential {
            run.task(Task::Result(index));
        } else {
            run.task(Task::NextCall(index + 1));
        }
    }

    fn settle(&mut self, index: usize, output: ToolOutput, duration_ms: Option<u64>) {
        let Some(run) = &mut self.run else { return };
        let Some(batch) = &mut run.batch else { return };
        let Some(call) = batch.calls.get_mut(index) else { return };
        let output = Arc::new(output);
        call.state = CallState::Done { output: output.clone(), duration_ms };
        let (sequential, done) = (batch.sequential, batch.is_done());
        Self::tool_end(run, index, output, duration_ms);
        if sequential {
            run.task(Task::Result(index));
        } else if done {
            run.task(Task::Results);
        }
    }

    fn tool_end(run: &mut Run, index: usize, result: Arc<ToolOutput>, duration_ms: Option<u64>) {
        let Some(call) = run.batch.as_ref().and_then(|b| b.calls.get(index)) else { return };
        let (call_id, name) = (call.call.id.clone(), call.call.name.clone());
        run.push(Step::Out(Out::Event(Event::ToolEnd { call_id, name, result, duration_ms })));
    }

    /// All calls of a parallel batch are looked at: start those that may run, side by side.
    pub(super) fn start_ready(&mut self) {
        let Some(run) = &mut self.run else { return };
        let Some(batch) = &run.batch else { return };
        let is_ready = |call: &Call| matches!(call.state, CallState::Ready { .. });
        let ready: Vec<usize> =
            batch.calls.iter().enumerate().filter(|(_, c)| is_ready(c)).map(|(i, _)| i).collect();
        run.waiting = Waiting::Tools;
        if ready.is_empty() {
            run.task(Task::Results);
        }
        ready.into_iter().for_each(|i| run.push(Step::Execute(i)));
    }

    /// Sequential batch: the result of one call, then the next call.
    pub(super) fn result(&mut self, index: usize, now: Now) {
        let Some(run) = &mut self.run else { return };
        let Some(result) = run.batch.as_ref().and_then(|b| b.calls.get(index)?.result(now.wall.0)) else {
            return;
        };
        run.results.push(result.clone());
        run.message(result);
        run.task(Task::NextCall(index + 1));
    }

    /// Parallel batch: all results in source order, then the end of the turn.
    pub(super) fn results(&mut self, now: Now) {
        let Some(run) = &mut self.run else { return };
        let Some(batch) = &run.batch else { return };
        let results: Vec<_> = batch.calls.iter().filter_map(|c| c.result(now.wall.0)).collect();
        for result in results {
            run.results.push(result.clone());
            run.message(result);
        }
        run.task(Task::FinishTurn);
    }

    /// The answer to the hook before a call.
    pub(super) fn on_verdict(&mut self, index: usize, verdict: ToolVerdict) {
        let Some(run) = self.run.as_mut().filter(|run| run.waiting == Waiting::Hook) else { return };
        let aborted = run.aborted;
        let Some(call) = run.batch.as_mut().and_then(|b| b.calls.get_mut(index)) else { return };
        let CallState::Ready { args, .. } = &mut call.state else { return };
        match verdict {
            _ if aborted => self.settle_at_once(index, ToolOutput::error(texts::ABORTED)),
            ToolVerdict::Run(changed) => {
                if let Some(changed) = changed {
                    *args = changed;
                }
                self.prepared(index);
            }
            ToolVerdict::Block { reason, terminate } => {
                let text = reason.unwrap_or_else(|| texts::BLOCKED.into());
                let output = ToolOutput { terminate: terminate.then_some(true), ..ToolOutput::error(text) };
                self.settle_at_once(index, output);
            }
            ToolVerdict::Failed(text) => self.settle_at_once(index, ToolOutput::error(text)),
        }
    }

    /// The answer to the hook after a call.
    pub(super) fn on_change(&mut self, index: usize, change: Result<ResultChange, String>) {
        let Some(run) = &mut self.run else { return };
        let Some(call) = run.batch.as_mut().and_then(|b| b.calls.get_mut(index)) else { return };
        let CallState::Finalizing { duration_ms, output } = &call.state else { return };
        let (duration_ms, mut output) = (*duration_ms, output.clone());
        match change {
            Ok(change) => change.apply(&mut output),
            Err(text) => output = ToolOutput::error(text),
        }
        self.settle(index, output, Some(duration_ms));
    }
}

/// Finds the tool and makes its arguments fit, or says why the call cannot run.
fn check(tools: &[Arc<Tool>], call: &ToolCall) -> Result<(Arc<Tool>, Arc<Value>), String> {
    let tool = tools.iter().find(|tool| tool.name == call.name).ok_or_else(|| texts::unknown(&call.name))?;
    let prepared = match tool.prepare {
        Some(prepare) => Arc::new(prepare((*call.arguments).clone())),
        None => call.arguments.clone(),
    };
    if let Some(error) = &call.arguments_error {
        return Err(alloc::format!("Tool {} was not run. {error}", tool.name));
    }
    let fitting = json::validate(&tool.parameters, &prepared)
        .map_err(|errors| json::error_text(&tool.name, &errors, &prepared))?;
    Ok((tool.clone(), fitting))
}
