//! Standard input as lines, on a thread of its own (spec 60 §3.1).

use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use tau_core::wire::jsonl::{JsonLine, JsonLines};
use tau_io_std::sys::wake::Wake;

use super::patience::Patience;

/// Longest line, bytes. An image of the largest size fits many times.
const MOST_BYTES: usize = 256 << 20;

/// Lines that wait to be followed. While they do, nothing is read, and the client waits in turn.
const MOST_WAITING: usize = 16;

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// What came in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    /// One line; empty and blank ones too.
    Line(String),
    /// A line beyond the limit.
    TooLong,
    /// Nothing follows.
    End,
}

/// Begins to read.
///
/// # Errors
/// When there can be no thread.
pub(super) fn listen(waker: Arc<Wake>, patience: Arc<Patience>) -> std::io::Result<Receiver<Incoming>> {
    let (sender, receiver) = sync_channel(MOST_WAITING);
    let reader = Reader { sender, waker };
    thread::Builder::new().name("tau-stdin".into()).spawn(move || {
        reader.read(std::io::stdin());
        patience.input_ended();
        reader.give(Incoming::End);
    })?;
    Ok(receiver)
}

struct Reader {
    sender: SyncSender<Incoming>,
    waker: Arc<Wake>,
}

impl Reader {
    fn read(&self, mut source: impl Read) {
        let mut lines = JsonLines::with_limit(MOST_BYTES);
        let mut sink = |line: JsonLine<'_>| {
            self.give(if line.too_long {
                Incoming::TooLong
            } else {
                Incoming::Line(line.text().into_owned())
            });
        };
        let mut chunk = vec![0; CHUNK];
        loop {
            match source.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => lines.feed(chunk.get(..count).unwrap_or_default(), &mut sink),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        lines.finish(&mut sink);
    }

    fn give(&self, incoming: Incoming) {
        // Nobody takes it any more when the program ends.
        let _ = self.sender.send(incoming);
        self.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_lf_only() {
        let (sender, receiver) = sync_channel(MOST_WAITING);
        let reader = Reader { sender, waker: Arc::new(Wake::new().unwrap()) };
        reader.read("a\r\n\n\u{2028}\u{85}b\nlast".as_bytes());
        drop(reader);
        let got: Vec<Incoming> = receiver.iter().collect();
        let wanted = ["a", "", "\u{2028}\u{85}b", "last"];
        assert_eq!(got, wanted.map(|line| Incoming::Line(line.into())));
    }
}
