//! The file with the complete raw output of a process, made only when there is more than the model will see (D38).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use memchr::memchr_iter;
use tau_core::op::SpillSpec;

use crate::sys::{fs::private_dir, random};

/// Takes the output of a process, and keeps it in a file once there is a lot.
#[derive(Debug)]
pub struct Spill {
    spec: SpillSpec,
    state: State,
}

#[derive(Debug)]
enum State {
    /// All output so far, as it is still small.
    Held { bytes: Vec<u8>, decoded: u64, lines: u64 },
    /// All output so far, on disk.
    Filed(File, String),
    /// The file could not be written; a part of the output would mislead.
    Failed,
}

impl Spill {
    /// Nothing has come yet.
    #[must_use]
    pub const fn new(spec: SpillSpec) -> Self {
        Self { spec, state: State::Held { bytes: Vec::new(), decoded: 0, lines: 0 } }
    }

    /// Whether the next output is written to a file, which may take its time.
    #[must_use]
    pub const fn is_filed(&self) -> bool {
        matches!(self.state, State::Filed(..))
    }

    /// Takes a piece of the output.
    pub fn push(&mut self, chunk: &[u8]) {
        match &mut self.state {
            State::Held { bytes, decoded, lines } => {
                bytes.extend_from_slice(chunk);
                *decoded += String::from_utf8_lossy(chunk).len() as u64;
                *lines += memchr_iter(b'\n', chunk).count() as u64;
                let open_line = u64::from(bytes.last().is_some_and(|last| *last != b'\n'));
                if *decoded > self.spec.over_bytes || *lines + open_line > self.spec.over_lines {
                    let bytes = std::mem::take(bytes);
                    self.state = create(&self.spec, &bytes).unwrap_or(State::Failed);
                }
            }
            State::Filed(file, path) => {
                if file.write_all(chunk).is_err() {
                    let _ = std::fs::remove_file(path);
                    self.state = State::Failed;
                }
            }
            State::Failed => {}
        }
    }

    /// The path of the file, when there is one.
    #[must_use]
    pub fn finish(self) -> Option<String> {
        if let State::Filed(_, path) = self.state { Some(path) } else { None }
    }
}

fn create(spec: &SpillSpec, bytes: &[u8]) -> io::Result<State> {
    private_dir(&spec.dir).map_err(io::Error::other)?;
    let name = random::hex16().map_err(io::Error::other)?;
    let path = format!("{}/{}{name}.log", spec.dir.trim_end_matches('/'), spec.prefix);
    let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
    if let Err(e) = file.write_all(bytes) {
        let _ = std::fs::remove_file(&path);
        return Err(e);
    }
    Ok(State::Filed(file, path))
}
