//! The system calls of a run of the program, as `strace` tells them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{Run, Sandbox};

/// All system calls of a run, threads included.
#[derive(Debug)]
pub struct Trace {
    calls: Vec<String>,
}

impl Trace {
    /// Whether runs can be traced here; says why a test is skipped when not.
    #[must_use]
    pub fn is_possible() -> bool {
        let probe =
            Command::new("strace").args(["-f", "-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
        let possible = probe.is_ok_and(|status| status.success());
        if !possible {
            eprintln!("skipped: strace is not installed or not allowed to trace");
        }
        possible
    }

    /// Runs `binary` in a place that was made for `strace`.
    ///
    /// # Panics
    /// When it cannot be traced.
    #[must_use]
    pub fn run(place: &Sandbox, binary: &str, args: &[&str]) -> (Run, Self) {
        let file = Path::new(&place.root()).join("trace");
        let file_name = file.display().to_string();
        let args = [&["-f", "-s", "200", "-o", &file_name, binary], args].concat();
        let run = place.start(place.command_of("strace", &args)).finish();
        let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file_name}: {e}"));
        // Each line begins with a process number; calls that were interrupted by another thread have a second line.
        let calls = text.lines().filter_map(|line| Some(line.split_once(' ')?.1.trim_start()));
        let calls = calls.filter(|call| call.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'));
        (run, Self { calls: calls.map(str::to_owned).collect() })
    }

    /// Number of calls.
    #[must_use]
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether nothing was traced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Calls that hold a text.
    #[must_use]
    pub fn with(&self, text: &str) -> Vec<&str> {
        self.calls.iter().map(String::as_str).filter(|call| call.contains(text)).collect()
    }

    /// Calls of these names.
    #[must_use]
    pub fn named(&self, names: &[&str]) -> Vec<&str> {
        let name = |call: &str| call.split('(').next().unwrap_or_default().to_owned();
        self.calls.iter().map(String::as_str).filter(|call| names.contains(&name(call).as_str())).collect()
    }

    /// How often each call was made, most often first: for messages.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut counts = std::collections::BTreeMap::<&str, usize>::new();
        for call in &self.calls {
            *counts.entry(call.split('(').next().unwrap_or_default()).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts.iter().map(|(name, count)| format!("{count} {name}, ")).collect()
    }
}
