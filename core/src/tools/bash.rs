//! `bash`: one command in a shell of its own process group (spec 50 §5; decisions D30, D31, D36).

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use super::output::{OutputTail, Snapshot};
use super::script::{ABORTED, details};
use super::{Slot, ToolCx, ToolEnv, ToolInput, ToolMachine, ToolOutput, ToolStep, args};
use crate::fault::{FaultKind, IoFault};
use crate::input::Reply;
use crate::json::{Map, Value, write_f64};
use crate::now::Mono;
use crate::op::{Op, Outcome, ProcExit, ProcSpec, SpillSpec};
use crate::text::clean::clean;
use crate::text::truncate::{CutBy, Limits, MAX_BYTES, MAX_LINES, format_size};

/// Time between two intermediate results, ms.
const UPDATE_EVERY_MS: u64 = 100;
/// Wait for silent pipes after the shell's exit, ms.
const IDLE_AFTER_EXIT_MS: u64 = 100;
/// Longest wait after the shell's exit, ms.
const MAX_AFTER_EXIT_MS: u64 = 5000;
/// Longest timeout, ms: the largest delay that timers of the session format's first implementation take.
const MAX_TIMEOUT_MS: f64 = 2_147_483_647.0;
/// Stands for output that is not there.
const NO_OUTPUT: &str = "(no output)";

/// Starts a call.
pub(super) fn machine(args: Arc<Value>) -> Box<dyn ToolMachine> {
    Box::new(Bash {
        args,
        output: OutputTail::new(Limits::default()),
        slot: None,
        ended_by: None,
        timeout: None,
        next_update: None,
        unseen: false,
    })
}

struct Bash {
    args: Arc<Value>,
    output: OutputTail,
    slot: Option<Slot>,
    /// Why the process was told to end.
    ended_by: Option<EndedBy>,
    /// When the time is up, and the seconds as given.
    timeout: Option<(Mono, f64)>,
    /// Before this time no intermediate result is shown.
    next_update: Option<Mono>,
    /// Output arrived that no intermediate result shows yet.
    unseen: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum EndedBy {
    User,
    Timeout,
}

impl ToolMachine for Bash {
    fn step(&mut self, cx: &mut ToolCx<'_>, input: ToolInput) -> ToolStep {
        match input {
            ToolInput::Begin => return self.begin(cx),
            ToolInput::Reply(slot, reply) if self.slot == Some(slot) => match reply {
                Reply::Chunk { bytes, .. } => {
                    self.unseen |= !bytes.is_empty();
                    self.output.push(bytes);
                    self.show(cx);
                }
                Reply::Done(Outcome::Exit(exit)) => return ToolStep::Done(self.exited(cx, &exit)),
                Reply::Done(_) => {
                    return fail("The command did not run: the backend gave an unexpected answer.");
                }
                Reply::Failed(fault) => return self.failed(cx.env, &fault),
                Reply::Head { .. } | Reply::Update(_) => {}
            },
            ToolInput::Tick => {
                self.check_time(cx);
                self.show(cx);
            }
            ToolInput::Cancel => {
                let Some(slot) = self.slot else { return fail(ABORTED) };
                self.ended_by.get_or_insert(EndedBy::User);
                cx.cancel(slot);
            }
            ToolInput::Reply(..) => return ToolStep::Wait,
        }
        self.arm(cx);
        ToolStep::Wait
    }
}

fn fail(text: impl Into<String>) -> ToolStep {
    ToolStep::Done(ToolOutput::error(text))
}

impl Bash {
    fn begin(&mut self, cx: &mut ToolCx<'_>) -> ToolStep {
        if let Some(seconds) = args::number(&self.args, "timeout") {
            match timeout_ms(seconds) {
                Ok(ms) => self.timeout = Some((cx.now.mono.plus(ms), seconds)),
                Err(why) => return fail(why),
            }
        }
        let spec = match process(cx.env, args::text(&self.args, "command").unwrap_or_default()) {
            Ok(spec) => spec,
            Err(why) => return fail(why),
        };
        cx.update(ToolOutput::default());
        self.slot = Some(cx.start(Op::Proc(spec)));
        self.arm(cx);
        ToolStep::Wait
    }

    /// Ends the process when its time is up.
    fn check_time(&mut self, cx: &mut ToolCx<'_>) {
        if let (Some((at, _)), Some(slot), None) = (self.timeout, self.slot, self.ended_by)
            && cx.now.mono >= at
        {
            self.ended_by = Some(EndedBy::Timeout);
            cx.cancel(slot);
        }
    }

    /// Shows an intermediate result, unless one was shown less than [`UPDATE_EVERY_MS`] ago.
    fn show(&mut self, cx: &mut ToolCx<'_>) {
        let due = self.next_update.is_none_or(|at| cx.now.mono >= at);
        if self.unseen && due {
            self.unseen = false;
            self.next_update = Some(cx.now.mono.plus(UPDATE_EVERY_MS));
            cx.update(partial(self.output.snapshot(clean)));
        }
    }

    /// Asks to be woken for whichever comes first: the timeout or the next intermediate result.
    fn arm(&self, cx: &mut ToolCx<'_>) {
        let timeout = self.timeout.filter(|_| self.ended_by.is_none()).map(|(at, _)| at);
        let update = self.next_update.filter(|_| self.unseen);
        cx.deadline(match (timeout, update) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        });
    }

    fn failed(&self, env: &ToolEnv, fault: &IoFault) -> ToolStep {
        if fault.kind == FaultKind::Cancelled && self.ended_by == Some(EndedBy::User) {
            let facts = end_facts(None, Some(EndedBy::User), false);
            return ToolStep::Done(ToolOutput { details: details(facts), ..ToolOutput::error(ABORTED) });
        }
        fail(cannot_start(env, fault))
    }

    fn exited(&mut self, cx: &mut ToolCx<'_>, exit: &ProcExit) -> ToolOutput {
        // The command may have ended by itself just before the timeout could kill it.
        self.ended_by = self.ended_by.filter(|by| *by == EndedBy::User || exit.killed);
        self.output.finish();
        let shot = self.output.snapshot(clean);
        if self.unseen {
            cx.update(partial(shot.clone()));
        }
        let status = self.status(exit);
        let mut text = shot.tail.content.clone();
        if let Some(note) = cut_note(&shot, exit.spill.as_deref()) {
            add_paragraph(&mut text, &note);
        }
        if text.is_empty() && self.ended_by.is_none() {
            text.push_str(NO_OUTPUT);
        }
        if let Some(status) = &status.text {
            add_paragraph(&mut text, status);
        }
        let cut = shot.tail.cut_by.is_some();
        let own_exit = exit.code.filter(|_| self.ended_by.is_none() || exit.exited_before_cancel);
        let mut facts = end_facts(own_exit, self.ended_by, cut).to_vec();
        if cut {
            facts.push(("truncation", shot.tail.to_value()));
            facts.extend(exit.spill.as_deref().map(|path| ("fullOutputPath", Value::from(path))));
        }
        ToolOutput { details: details(facts), is_error: status.is_error, ..ToolOutput::text(text) }
    }

    fn status(&self, exit: &ProcExit) -> Status {
        let seconds = self.timeout.map(|(_, seconds)| number_text(seconds)).unwrap_or_default();
        let text = match (self.ended_by, exit.code) {
            (Some(EndedBy::User), _) => ABORTED.into(),
            (Some(EndedBy::Timeout), Some(code)) if exit.exited_before_cancel => format!(
                "The shell exited with code {code}, but background processes kept writing until the timeout of \
                 {seconds} seconds and were killed."
            ),
            (Some(EndedBy::Timeout), _) => {
                format!("The command timed out after {seconds} seconds and was killed.")
            }
            (None, Some(0)) => return Status { is_error: false, text: leftovers(exit) },
            (None, Some(code)) => {
                let more = leftovers(exit).map(|text| format!(" {text}")).unwrap_or_default();
                format!("The command exited with code {code}.{more}")
            }
            (None, None) => "The command ended without an exit code.".into(),
        };
        Status { is_error: true, text: Some(text) }
    }
}

/// How a command ended, for details (D31).
fn end_facts(exit: Option<i32>, ended_by: Option<EndedBy>, truncated: bool) -> [(&'static str, Value); 4] {
    [
        ("exitCode", exit.map_or(Value::Null, Value::from)),
        ("cancelled", Value::from(ended_by == Some(EndedBy::User))),
        ("truncated", Value::from(truncated)),
        ("timedOut", Value::from(ended_by == Some(EndedBy::Timeout))),
    ]
}

/// The last paragraph, and whether the call failed.
struct Status {
    is_error: bool,
    text: Option<String>,
}

/// Says that background processes were killed because they held the output open (D36).
fn leftovers(exit: &ProcExit) -> Option<String> {
    exit.leftovers_killed.then(|| {
        let seconds = MAX_AFTER_EXIT_MS / 1000;
        format!(
            "Background processes still wrote {seconds} seconds after the shell's exit and were killed; redirect the \
             output of what should keep running."
        )
    })
}

/// Milliseconds of a timeout argument.
fn timeout_ms(seconds: f64) -> Result<u64, String> {
    let ms = seconds * 1000.0;
    if !seconds.is_finite() || seconds <= 0.0 {
        return Err(format!("timeout must be a positive number of seconds, got {}.", number_text(seconds)));
    }
    if ms > MAX_TIMEOUT_MS {
        let most = number_text(MAX_TIMEOUT_MS / 1000.0);
        return Err(format!(
            "timeout is too large: {} seconds, the maximum is {most}.",
            number_text(seconds)
        ));
    }
    // Rounded up, so that a process never gets less time than asked for.
    Ok(ms as u64 + u64::from(ms > (ms as u64) as f64))
}

fn number_text(n: f64) -> String {
    let mut out = String::new();
    write_f64(&mut out, n);
    out
}

/// Why a process could not be started.
pub(crate) fn cannot_start(env: &ToolEnv, fault: &IoFault) -> String {
    let shell = env.shell.first().map_or("", String::as_str);
    format!("Cannot start {shell} in {}: {fault}.", env.cwd)
}

/// The process of a command, or why there is no shell for it.
pub(crate) fn process(env: &ToolEnv, command: &str) -> Result<ProcSpec, String> {
    if env.shell.is_empty() {
        let why = env.shell_error.as_deref().unwrap_or("No shell was found. Set shellPath in the settings.");
        return Err(why.into());
    }
    let command = match env.command_prefix.as_deref() {
        Some(prefix) if !prefix.is_empty() => format!("{prefix}\n{command}"),
        _ => command.into(),
    };
    let mut argv = env.shell.clone();
    argv.push(command);
    Ok(ProcSpec {
        argv,
        cwd: env.cwd.clone(),
        env: env.command_env.clone(),
        idle_after_exit_ms: IDLE_AFTER_EXIT_MS,
        max_after_exit_ms: MAX_AFTER_EXIT_MS,
        spill: (!env.output_dir.is_empty()).then(|| SpillSpec {
            dir: env.output_dir.clone(),
            prefix: "pi-bash-".into(),
            over_bytes: MAX_BYTES as u64,
            over_lines: MAX_LINES as u64,
        }),
    })
}

/// An intermediate result: the whole snapshot, not a difference.
fn partial(shot: Snapshot) -> ToolOutput {
    let facts = shot.tail.cut_by.map(|_| ("truncation", shot.tail.to_value()));
    let details = details(facts).unwrap_or_else(|| Value::Object(Map::new()));
    ToolOutput { details: Some(details), ..ToolOutput::text(shot.tail.content) }
}

/// What is not shown, and where all of it is.
fn cut_note(shot: &Snapshot, full: Option<&str>) -> Option<String> {
    let tail = &shot.tail;
    let by = tail.cut_by?;
    let full = full.map(|path| format!(" Full output: {path}")).unwrap_or_default();
    let total = tail.total_lines;
    if tail.last_line_partial {
        let (shown, size) = (format_size(tail.content.len() as u64), format_size(shot.last_line_bytes));
        return Some(format!("[Last {shown} of line {total} shown, which is {size} long.{full}]"));
    }
    let first = total.saturating_sub(tail.output_lines) + 1;
    let limit = match by {
        CutBy::Bytes => format!(" ({} limit)", format_size(MAX_BYTES as u64)),
        CutBy::Lines => String::new(),
    };
    Some(format!("[Lines {first}-{total} of {total} shown{limit}.{full}]"))
}

/// Adds a paragraph after a blank line.
fn add_paragraph(text: &mut String, paragraph: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(paragraph);
}
