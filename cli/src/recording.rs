//! `--record FILE`: everything that goes into a machine, line by line, as it happens; `--record-bodies DIR`: what is large
//! in it by its hash.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::mem;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};

use tau_core::hub::{Boot, Hub, Output};
use tau_core::input::{Command, Input};
use tau_core::now::Now;
use tau_core::record::{KeepBody, Log, Places, Recorder};
use tau_core::tools::ToolEnv;

use crate::args::help::VERSION;
use crate::out::note;

/// Records are kept back up to this many bytes, while nothing but pieces of a stream arrive.
const KEPT_BACK: usize = 128 * 1024;

/// A page that is written in two parts costs as much as two.
const PAGE: u64 = 4096;

/// A session file may be this large to be taken into a record, bytes.
const LARGEST_SESSION: u64 = 256 << 20;

/// Bodies of this many bytes and more are kept apart, where that is asked for.
const LARGE: usize = 4 * 1024;

/// The name of the record of one session among several: with its id, and with the first number behind it that no file
/// has if the session was opened before.
#[must_use]
pub fn name_of(file: &str, session: &str) -> String {
    let name = format!("{file}.{session}");
    let taken = |name: &String| Path::new(name).symlink_metadata().is_ok();
    let numbered = (2..).map(|number: u32| format!("{name}.{number}"));
    std::iter::once(name.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
}

/// Makes the machine of a session, recorded if a file is named; what is large goes into the folder `bodies`.
///
/// # Errors
/// When there is such a file already, or it or the folder cannot be made, or a folder is named without a file.
pub fn hub(boot: Boot, now: Now, file: Option<&str>, bodies: Option<&str>) -> Result<Hub, String> {
    let Some(path) = file else {
        return match bodies {
            None => Ok(Hub::new(boot, now)),
            Some(_) => Err("--record-bodies needs --record FILE".to_owned()),
        };
    };
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = opened.map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("--record: {path} exists already; name another file, or remove it")
        }
        _ => format!("--record: {path} cannot be written: {e}"),
    })?;
    let mut pages = Pages { file: Some(file), path: path.to_owned(), written: 0, kept: Vec::new() };
    let places = Places {
        sink: Box::new(move |bytes: &[u8], urgent: bool| pages.take(bytes, urgent)),
        read: Box::new(read),
        apart: bodies.map(keeper).transpose()?,
    };
    let log = Arc::new(Mutex::new(Log::begin(VERSION, now, &boot, places)));
    survive_panics(&log);
    let mut hub = Hub::new(boot, now);
    hub.record(Box::new(Shared(log)));
    Ok(hub)
}

/// Logs of this process: after a panic each tells what led to it.
static LOGS: Mutex<Vec<Weak<Mutex<Log>>>> = Mutex::new(Vec::new());

fn survive_panics(log: &Arc<Mutex<Log>>) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            before(info);
            // The thread that panics may hold a lock.
            let Ok(logs) = LOGS.try_lock() else { return };
            for log in logs.iter().filter_map(Weak::upgrade) {
                if let Ok(mut log) = log.try_lock() {
                    log.flush();
                }
            }
        }));
    });
    let mut logs = LOGS.lock().unwrap_or_else(PoisonError::into_inner);
    logs.retain(|log| log.strong_count() > 0);
    logs.push(Arc::downgrade(log));
}

/// The log of a machine, which a panic can get at, too.
struct Shared(Arc<Mutex<Log>>);

impl Shared {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorder for Shared {
    fn renewed(&mut self, now: Now, boot: &Boot) {
        self.log().renewed(now, boot);
    }

    fn input(&mut self, now: Now, input: &Input) {
        self.log().input(now, input);
    }

    fn command(&mut self, now: Now, command: &Command) {
        self.log().command(now, command);
    }

    fn env(&mut self, env: &ToolEnv) {
        self.log().env(env);
    }

    fn output(&mut self, output: &Output) {
        self.log().output(output);
    }

    fn drained(&mut self) {
        self.log().drained();
    }
}

/// Keeps bodies in a folder, one file each. One that cannot be kept goes into the record itself.
fn keeper(folder: &str) -> Result<(usize, KeepBody), String> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|e| format!("--record-bodies: {folder} cannot be made: {e}"))?;
    let folder = PathBuf::from(folder);
    let mut told = false;
    let keep = Box::new(move |name: &str, bytes: &[u8]| {
        let file = folder.join(name);
        // A file that is there is whole: it got its name last.
        let Err(e) = (if file.exists() { Ok(()) } else { whole(&file, bytes) }) else { return true };
        if !mem::replace(&mut told, true) {
            note(&format!("--record-bodies: {}: {e}; it is in the record itself", file.display()));
        }
        false
    });
    Ok((LARGE, keep))
}

/// Writes a file whole or not at all; another process may do the same.
fn whole(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let part = file.with_extension(format!("part-{}", std::process::id()));
    let mut opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
    let done = opened.write_all(bytes).and_then(|()| fs::rename(&part, file));
    if done.is_err() {
        let _ = fs::remove_file(&part);
    }
    done
}

/// A session file, as it stands.
fn read(path: &str) -> Option<Vec<u8>> {
    match tau_io_std::sys::fs::read(path, LARGEST_SESSION) {
        Ok(bytes) => Some(bytes),
        Err(fault) => {
            note(&format!("--record: the session is not in the record: {fault}"));
            None
        }
    }
}

struct Pages {
    /// `None` once it could not be written.
    file: Option<File>,
    path: String,
    /// What the file has.
    written: u64,
    kept: Vec<u8>,
}

impl Pages {
    fn take(&mut self, bytes: &[u8], urgent: bool) {
        self.kept.extend_from_slice(bytes);
        if urgent {
            self.write(self.kept.len());
        } else if self.kept.len() >= KEPT_BACK {
            let behind = (self.written + self.kept.len() as u64) % PAGE;
            self.write(self.kept.len() - behind as usize);
        }
    }

    fn write(&mut self, count: usize) {
        let Some(bytes) = self.kept.get(..count) else { return };
        if let Some(file) = &mut self.file
            && let Err(e) = file.write_all(bytes)
        {
            note(&format!("--record: {} cannot be written any more: {e}", self.path));
            self.file = None;
        }
        self.written += count as u64;
        self.kept.drain(..count);
        self.kept.shrink_to(2 * KEPT_BACK);
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]
mod tests {
    use tau_core::now::{Mono, Wall};
    use tau_tests::drive::{boot, session};
    use tau_tests::program::Sandbox;

    use super::*;

    /// The input that a program panics of is in its record.
    #[test]
    fn a_panic_loses_nothing() {
        let place = Sandbox::new("");
        let file = place.work().join("run.tau").display().to_string();
        let now = Now { mono: Mono(1), wall: Wall(1_788_315_987_887) };
        let boot = boot("openai-completions", Vec::new(), session(now));
        let mut hub = hub(boot, now, Some(&file), None).unwrap();
        let input = Input::Command(Command::Prompt { text: "the last words".into(), images: Vec::new() });
        hub.handle(now, input);
        let said = || fs::read_to_string(&file).unwrap().contains("the last words");
        assert!(!said(), "nothing is kept back: this test shows nothing");
        let _ = panic::catch_unwind(|| panic!("for the test"));
        assert!(said());
    }
}
