//! `tau replay FILE`: a recorded run again, without network, files or clock.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;

use tau_core::hub::{Hub, Output};
use tau_core::json::Writer;
use tau_core::record::{Replay, Step};

use crate::out::Out;

/// The help text.
const HELP: &str = "\
tau replay FILE             run a record again (made with --record) and show its events, one a line
tau replay FILE --verify    only say whether everything is as it was
tau replay FILE --until N   stop after line N of the record and show where the machine stands
tau replay FILE --bodies D  what is large is in the folder D (made with --record-bodies)

Nothing is asked, read, run or written: the record holds what the world answered. The exit code is 0 when every event,
effect and byte of the session is as it was, 1 when something is not (the first difference is told), 2 for a record that
cannot be read.
";

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wish {
    file: String,
    verify: bool,
    until: Option<u64>,
    bodies: Option<String>,
}

/// How it ended.
pub struct Done {
    /// For standard error.
    pub text: String,
    /// Exit code.
    pub code: u8,
}

/// Exit code of a record that cannot be read.
const UNREADABLE: u8 = 2;

fn parse(items: impl Iterator<Item = String>) -> Result<Option<Wish>, String> {
    let mut wish = Wish::default();
    let mut items = items;
    while let Some(item) = items.next() {
        match item.as_str() {
            "--help" | "-h" => return Ok(None),
            "--verify" => wish.verify = true,
            "--until" => {
                let number = items.next().and_then(|number| number.parse().ok());
                wish.until = Some(number.ok_or("--until needs the number of a line")?);
            }
            "--bodies" => wish.bodies = Some(items.next().ok_or("--bodies needs the name of a folder")?),
            _ if item.starts_with('-') => {
                return Err(format!("unknown option {item}; see `tau replay --help`"));
            }
            _ if wish.file.is_empty() => wish.file = item,
            _ => return Err("one record at a time".to_owned()),
        }
    }
    if wish.file.is_empty() { Err("name a record: tau replay FILE".to_owned()) } else { Ok(Some(wish)) }
}

/// Runs the command.
pub fn run(items: impl Iterator<Item = String>) -> Done {
    let wish = match parse(items) {
        Ok(Some(wish)) => wish,
        Ok(None) => {
            let mut out = Out::default();
            out.buffer().push_str(HELP);
            out.flush();
            return Done { text: String::new(), code: 0 };
        }
        Err(text) => return Done { text, code: UNREADABLE },
    };
    match replay(&wish) {
        Ok(done) => done,
        Err(text) => Done { text, code: UNREADABLE },
    }
}

fn replay(wish: &Wish) -> Result<Done, String> {
    let told = |e: std::io::Error| format!("{}: {e}", wish.file);
    let mut lines = BufReader::new(File::open(&wish.file).map_err(told)?);
    let mut out = Out::default();
    let bodies = wish.bodies.as_deref().map(PathBuf::from);
    let mut replay = Replay::new().with_bodies(Box::new(move |name| {
        // A name is hex digits; nothing else is a file of this folder.
        let folder = bodies.as_ref().filter(|_| name.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        fs::read(folder.join(name)).ok()
    }));
    let mut line = String::new();
    let quiet = wish.verify || wish.until.is_some();
    while wish.until != Some(replay.lines()) {
        line.clear();
        if lines.read_line(&mut line).map_err(told)? == 0 {
            break;
        }
        // What was being written when the program died is no record.
        let Some(record) = line.strip_suffix('\n') else { break };
        if let Some(done) = step(replay.line(record)?, quiet, &mut out) {
            return Ok(done);
        }
        if let Some(len) = replay.wants() {
            let mut bytes = Vec::new();
            let wanted = (len as u64).saturating_add(1);
            let read = lines.by_ref().take(wanted).read_to_end(&mut bytes).map_err(told)?;
            if read as u64 != wanted {
                break;
            }
            bytes.truncate(len);
            replay.bytes(&bytes);
        }
    }
    if wish.until.is_some() {
        let hub = replay.hub().ok_or("there is nothing before the first line")?;
        out.buffer().push_str(&snapshot(hub));
        out.buffer().push('\n');
        out.flush();
    } else if let Some(done) = step(replay.end()?, quiet, &mut out) {
        return Ok(done);
    }
    out.flush();
    let text = format!("{} lines, {} outputs: everything is as it was", replay.lines(), replay.outputs());
    Ok(Done { text, code: 0 })
}

/// Shows the events of a step; the end, if something is different.
fn step(step: Step, quiet: bool, out: &mut Out) -> Option<Done> {
    let outputs = match step {
        Step::Same(outputs) => outputs,
        Step::Different(difference) => {
            out.flush();
            return Some(Done { text: difference.to_string(), code: 1 });
        }
    };
    for output in outputs.iter().filter(|_| !quiet) {
        let Output::Event(event) = output else { continue };
        let mut w = Writer::append_to(std::mem::take(out.buffer()));
        let written = event.write(&mut w);
        *out.buffer() = w.into_string();
        if written {
            out.buffer().push('\n');
        }
        out.settle();
    }
    None
}

/// Where a machine stands.
fn snapshot(hub: &Hub) -> String {
    let (desk, session) = (hub.desk(), hub.desk().session());
    let agent = desk.agent();
    let (steering, follow_up) = desk.queued();
    let mut w = Writer::new();
    w.begin_object();
    w.field_str("sessionId", session.id());
    w.field_opt_str("sessionFile", session.path());
    w.field_opt_str("leafId", session.leaf_id());
    w.field_str("provider", &agent.model().provider);
    w.field_str("model", &agent.model().id);
    w.field_str("thinkingLevel", agent.thinking().name());
    w.field_bool("isStreaming", desk.is_active());
    w.field_bool("isCompacting", desk.is_compacting());
    w.field_bool("isIdle", hub.is_idle());
    w.field_u64("openOps", hub.open_ops() as u64);
    for (key, texts) in [("steering", steering), ("followUp", follow_up)] {
        w.key(key);
        w.begin_array();
        texts.iter().for_each(|text| w.str(text));
        w.end_array();
    }
    if let Some(reply) = hub.streaming() {
        w.key("streaming");
        reply.write(&mut w);
    }
    w.key("messages");
    w.begin_array();
    agent.context().iter().for_each(|message| message.write(&mut w));
    w.end_array();
    w.end_object();
    w.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes() {
        let read = |items: &[&str]| parse(items.iter().map(|item| (*item).to_owned()));
        let until = Wish { file: "f".into(), until: Some(7), ..Wish::default() };
        assert_eq!(read(&["f", "--until", "7"]), Ok(Some(until)));
        assert_eq!(
            read(&["--verify", "f"]),
            Ok(Some(Wish { file: "f".into(), verify: true, ..Wish::default() }))
        );
        let apart = Wish { file: "f".into(), bodies: Some("d".into()), ..Wish::default() };
        assert_eq!(read(&["--bodies", "d", "f"]), Ok(Some(apart)));
        assert_eq!(read(&["-h"]), Ok(None));
        for wrong in [&[] as &[&str], &["a", "b"], &["f", "--until"], &["f", "--until", "x"], &["--x", "f"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
