//! The command line of Tau. A library so that tests reach its pure parts.

pub mod args;
pub mod choose;
pub mod config;
pub mod credentials;
pub mod files;
pub mod list_models;
pub mod mode;
pub mod out;
pub mod prompts;
pub mod sessions;
pub mod surroundings;
pub mod trust;
pub mod visible;

use std::io::Write;
use std::process::ExitCode;

/// Runs the program with the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    let args = args::parse(std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()));
    let errors: Vec<&str> = args.errors().collect();
    if !errors.is_empty() {
        return fail(errors);
    }
    if args.version {
        return answer(&format!("{}\n", args::help::VERSION));
    }
    if args.help {
        return answer(&args::help::text());
    }
    ExitCode::SUCCESS
}

/// Writes to stdout; a reader that went away is no failure.
fn answer(text: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn fail<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> ExitCode {
    for line in lines {
        let _ = writeln!(std::io::stderr(), "tau: {}", line.as_ref());
    }
    ExitCode::FAILURE
}
