//! Where a history may be cut (spec 10 §7.4 steps 4–8, D14).
//!
//! A cut stands before a message of the user, of the model or of the host, never before a tool result, which would
//! lose its call. It is looked for from the newest entry back, until the tokens to keep are reached.

use crate::message::Message;
use crate::session::EntryKind;

/// What an entry is to the search for a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Says nothing to the model: settings, labels, edits, omitted messages.
    Hidden,
    /// A compaction; what stands before it is never joined with what follows.
    Compaction,
    /// Seen by the model, but no place to cut: tool results, system messages, unknown roles.
    Bound,
    /// A reply: may be cut before, which splits its turn.
    Reply,
    /// Starts a turn: user, shell and custom messages, summaries.
    Start,
}

impl Part {
    /// What an entry with the given first message is.
    #[must_use]
    pub fn of(kind: EntryKind, message: Option<&Message>) -> Self {
        if kind == EntryKind::Compaction {
            return Self::Compaction;
        }
        match message {
            None => Self::Hidden,
            Some(Message::Assistant(_)) => Self::Reply,
            Some(Message::System(_) | Message::ToolResult(_) | Message::Other(_)) => Self::Bound,
            Some(_) => Self::Start,
        }
    }

    const fn is_candidate(self) -> bool {
        matches!(self, Self::Reply | Self::Start)
    }

    /// Whether the model sees it.
    #[must_use]
    pub const fn is_seen(self) -> bool {
        matches!(self, Self::Bound | Self::Reply | Self::Start)
    }
}

/// A place found by [`choose`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The first entry to keep.
    pub cut: usize,
    /// Whether there was more than the wanted number of tokens.
    pub reached: bool,
}

/// The first entry to keep so that about `keep` tokens are kept. `tokens` is asked from the newest entry back, only
/// as far as needed.
#[must_use]
pub fn choose(parts: &[Part], keep: u64, mut tokens: impl FnMut(usize) -> u64) -> Choice {
    let candidate = |part: &Part| part.is_candidate();
    let Some(first) = parts.iter().position(candidate) else { return Choice { cut: 0, reached: false } };
    let (mut sum, mut newer) = (0_u64, None);
    for (at, part) in parts.iter().enumerate().rev() {
        if part.is_candidate() {
            newer = Some(at);
        }
        let own = tokens(at);
        sum = sum.saturating_add(own);
        if own > 0 && sum >= keep {
            // Only tool results so far: keep them with the reply that asked for them.
            let cut = newer.or_else(|| parts.iter().rposition(candidate)).unwrap_or(first);
            return Choice { cut, reached: true };
        }
    }
    Choice { cut: first, reached: false }
}

/// A cut with what it divides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The first entry to keep.
    pub first_kept: usize,
    /// Where the turn that is cut in two begins; `None` when the cut stands between turns.
    pub turn_start: Option<usize>,
}

/// Takes the hidden entries right before a cut to what is kept, and finds the turn that the cut divides.
///
/// Whether a turn is divided is asked of the first entry after the cut that the model sees: settings in front of a
/// user message do not make the complete turn before them a divided one (D14).
#[must_use]
pub fn settle(parts: &[Part], cut: usize) -> Cut {
    let (before, after) = parts.split_at(cut.min(parts.len()));
    let hidden = before.iter().rev().take_while(|part| **part == Part::Hidden).count();
    let first_kept = before.len() - hidden;
    let first_seen = after.iter().find(|part| part.is_seen());
    let turn_start = match first_seen {
        Some(Part::Start) => None,
        _ => before.iter().rposition(|part| *part == Part::Start),
    };
    Cut { first_kept, turn_start }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn parts(text: &str) -> Vec<Part> {
        let part = |c| match c {
            'u' => Part::Start,
            'a' => Part::Reply,
            'r' => Part::Bound,
            'c' => Part::Compaction,
            _ => Part::Hidden,
        };
        text.chars().map(part).collect()
    }

    fn cut(text: &str, keep: u64) -> (usize, Option<usize>) {
        let parts = parts(text);
        let choice = choose(&parts, keep, |at| u64::from(parts[at].is_seen()) * 10);
        let cut = settle(&parts, choice.cut);
        (cut.first_kept, cut.turn_start)
    }

    #[test]
    fn settings_before_a_user_message_divide_no_turn() {
        assert_eq!(cut("ua--ua", 20), (2, None));
        assert_eq!(cut("uac-ua", 20), (3, None));
        // A reply after them does.
        assert_eq!(cut("ua-a", 10), (2, Some(0)));
    }

    #[test]
    fn calls_and_results_stay_together() {
        // A batch whose results have not all arrived (bug 64), then more and more of them.
        assert_eq!(cut("uaua", 1), (3, Some(2)));
        assert_eq!(cut("uauar", 1), (3, Some(2)));
        assert_eq!(cut("uauarr", 25), (3, Some(2)));
        assert_eq!(cut("uauarra", 25), (6, Some(2)));
    }

    #[test]
    fn nothing_to_cut() {
        assert_eq!(cut("", 0), (0, None));
        assert_eq!(cut("--", 0), (0, None));
        assert_eq!(cut("rr", 0), (0, None));
        assert_eq!(cut("uaua", 1000), (0, None));
    }

    #[test]
    fn every_history_is_cut_at_a_message() {
        // All short histories, each with several budgets.
        for code in 0..5_usize.pow(6) {
            let text: alloc::string::String =
                (0..6).map(|at| b"uarc-"[code / 5_usize.pow(at) % 5] as char).collect();
            let parts = parts(&text);
            for keep in [0, 10, 25, 1000] {
                let choice = choose(&parts, keep, |at| u64::from(parts[at].is_seen()) * 10);
                let cut = settle(&parts, choice.cut);
                assert!(cut.first_kept <= choice.cut, "{text}");
                assert!(cut.turn_start.is_none_or(|start| start < cut.first_kept), "{text} {keep}");
                if parts.iter().any(|part| part.is_candidate()) {
                    assert!(parts[choice.cut].is_candidate(), "{text} {keep}");
                }
            }
        }
    }
}
