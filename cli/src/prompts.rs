//! The prompts of a run: stdin, `@file` texts and positional messages (spec 60 §2.2, spec 50 §10.3).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use tau_core::message::Block;

use crate::out::note;

/// How long a run that has a prompt waits for the first byte of a silent stdin.
const FIRST_BYTE: Duration = Duration::from_secs(2);

/// After this much silence people are told what the program waits for.
const TELL_AFTER: Duration = Duration::from_secs(5);

/// One prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// Images beside it.
    pub images: Vec<Block>,
}

/// Texts and images of the `@file` arguments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileInput {
    /// Framed texts, joined.
    pub text: String,
    /// Images in order.
    pub images: Vec<Block>,
}

/// The first prompt is stdin, file texts and the first message without separators; every other message is a
/// prompt of its own. Images alone make no prompt.
#[must_use]
pub fn assemble(stdin: Option<&str>, files: FileInput, messages: Vec<String>) -> VecDeque<Prompt> {
    let mut messages = VecDeque::from(messages);
    let first = messages.pop_front();
    let mut prompts: VecDeque<Prompt> =
        messages.into_iter().map(|text| Prompt { text, images: Vec::new() }).collect();
    let pieces = [stdin, Some(files.text.as_str()).filter(|text| !text.is_empty()), first.as_deref()];
    if pieces.iter().any(Option::is_some) {
        let text = pieces.into_iter().flatten().collect();
        prompts.push_front(Prompt { text, images: files.images });
    }
    prompts
}

/// Trims as ECMAScript does; nothing left is no prompt.
#[must_use]
pub fn trimmed(text: &str) -> Option<&str> {
    let is_blank = |c: char| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}';
    Some(text.trim_matches(is_blank)).filter(|text| !text.is_empty())
}

/// Reads a stdin that is not a terminal. A pipe that stays silent does not hold up a run that has another prompt.
#[must_use]
pub fn read_stdin(has_other_prompt: bool) -> Option<String> {
    let stdin = std::io::stdin();
    let kind = rustix::fs::fstat(&stdin).map(|stat| FileType::from_raw_mode(stat.st_mode));
    let may_block = !matches!(kind, Ok(FileType::RegularFile) | Err(_));
    let mut bytes = Vec::new();
    if may_block && !wait_for_first(has_other_prompt) {
        return None;
    }
    let mut chunk = vec![0; 64 * 1024];
    let mut patience = Patience::default();
    loop {
        if may_block && !bytes.is_empty() {
            patience.wait();
        }
        match rustix::io::read(&stdin, chunk.as_mut_slice()) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(chunk.get(..count).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => patience.wait(),
            Err(_) => break,
        }
    }
    trimmed(&String::from_utf8_lossy(&bytes)).map(str::to_owned)
}

/// `false` when nothing came in time and the run can go on without it.
fn wait_for_first(has_other_prompt: bool) -> bool {
    if readable_within(if has_other_prompt { FIRST_BYTE } else { TELL_AFTER }) {
        return true;
    }
    if has_other_prompt {
        note("nothing came on stdin within 2 s, going on without it (`< /dev/null` skips the wait)");
        return false;
    }
    note("waiting for a prompt on stdin");
    true
}

/// Tells once that stdin does not end.
#[derive(Default)]
struct Patience {
    told: bool,
}

impl Patience {
    fn wait(&mut self) {
        if !self.told && !readable_within(TELL_AFTER) {
            self.told = true;
            note("still reading stdin, which was not closed yet");
        }
    }
}

/// Whether stdin has bytes, or its end, within the limit.
fn readable_within(limit: Duration) -> bool {
    let stdin = std::io::stdin();
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            Ok(ready) => return ready > 0,
            Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trims_like_javascript() {
        assert_eq!(trimmed("\u{feff} a\u{a0}\n"), Some("a"));
        assert_eq!(trimmed(" \n\t"), None);
        assert_eq!(trimmed("\u{85}"), Some("\u{85}"));
    }
}
