//! Output modes: what a surface does with the events of a run.

pub mod acp;
pub mod json;
pub mod pipe;
pub mod print;
pub mod rpc;
pub mod totals;

use tau_core::event::Event;

use crate::args::{Args, ModeArg};

/// Which surface the program shows (spec 60 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The last answer on stdout.
    Print,
    /// Events on stdout, one a line.
    Json,
    /// Driven over pipes.
    Rpc,
    /// The terminal interface.
    Interactive,
}

impl Mode {
    /// First match: `--mode rpc`, `--mode json`, `--print`, no terminal on either side; else interactive.
    #[must_use]
    pub const fn choose(args: &Args, stdin_is_terminal: bool, stdout_is_terminal: bool) -> Self {
        match args.mode {
            Some(ModeArg::Rpc) => Self::Rpc,
            Some(ModeArg::Json) => Self::Json,
            _ if args.print || !stdin_is_terminal || !stdout_is_terminal => Self::Print,
            _ => Self::Interactive,
        }
    }
}

/// Shows a run.
pub trait Surface {
    /// Takes one event.
    fn on_event(&mut self, event: &Event);

    /// Everything known so far was given: what is buffered may leave.
    fn flush(&mut self);

    /// Whether nobody listens any more, so that nothing new should be started.
    fn is_closed(&self) -> bool;

    /// The prompts are done: shows what is still to be shown. `true` = success.
    fn finish(&mut self) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_match_wins() {
        let with = |mode, print| Args { mode, print, ..Args::default() };
        assert_eq!(Mode::choose(&with(Some(ModeArg::Rpc), true), true, true), Mode::Rpc);
        assert_eq!(Mode::choose(&with(Some(ModeArg::Json), true), true, true), Mode::Json);
        assert_eq!(Mode::choose(&with(Some(ModeArg::Text), false), true, true), Mode::Interactive);
        assert_eq!(Mode::choose(&with(None, false), true, false), Mode::Print);
        assert_eq!(Mode::choose(&with(None, false), false, true), Mode::Print);
        assert_eq!(Mode::choose(&with(None, true), true, true), Mode::Print);
    }
}
