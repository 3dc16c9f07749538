//! Standard input as lines, on a thread of its own (spec 60 §3.1).

use std::io::{ErrorKind, Read};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use tau_core::wire::jsonl::{JsonLine, JsonLines};
use tau_io_std::sys::wake::Wake;

use super::patience::Patience;
use super::values;

/// Longest line, bytes. An image of the largest size fits many times.
const MOST_BYTES: usize = 256 << 20;

/// Lines that wait to be followed, bytes. Beyond, nothing is read, and the client waits in turn. Enough for a client
/// that writes commands in one go while it does not read the answers.
const MOST_WAITING: usize = 4 << 20;

/// What a line weighs beside its bytes.
const LINE_WEIGHT: usize = 64;

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// What came in.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// One line; empty and blank ones too.
    Line(String),
    /// A line that is larger than any command: why it is not looked at.
    Unfit(&'static str),
    /// Nothing follows.
    End,
}

/// Begins to read.
///
/// # Errors
/// When there can be no thread.
pub fn listen(waker: Arc<Wake>, patience: Arc<Patience>) -> std::io::Result<Inbox> {
    let (reader, inbox) = pair(waker);
    thread::Builder::new().name("tau-stdin".into()).spawn(move || {
        reader.read(std::io::stdin());
        patience.input_ended();
        reader.give(Incoming::End);
    })?;
    Ok(inbox)
}

/// Where lines wait to be followed.
pub struct Inbox {
    receiver: Receiver<Incoming>,
    load: Arc<Load>,
}

impl Inbox {
    /// The next line, if one is there, and its room: as long as that is kept, the line counts as one that waits.
    ///
    /// # Errors
    /// When none is there, or none will come.
    pub fn take(&self) -> Result<(Incoming, Room), TryRecvError> {
        let incoming = self.receiver.try_recv()?;
        let room = Room { load: Arc::clone(&self.load), weight: weight(&incoming) };
        Ok((incoming, room))
    }
}

/// What a line takes of the room for those that wait; given back when it is dropped.
#[derive(Debug)]
pub struct Room {
    load: Arc<Load>,
    weight: usize,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.load.remove(self.weight);
    }
}

struct Reader {
    sender: Sender<Incoming>,
    load: Arc<Load>,
    waker: Arc<Wake>,
}

fn pair(waker: Arc<Wake>) -> (Reader, Inbox) {
    let (sender, receiver) = channel();
    let load = Arc::new(Load::default());
    (Reader { sender, load: Arc::clone(&load), waker }, Inbox { receiver, load })
}

/// How much waits.
#[derive(Debug, Default)]
struct Load {
    bytes: Mutex<usize>,
    less: Condvar,
}

impl Load {
    /// Waits until there is room; something that is larger than all the room gets it alone.
    fn add(&self, weight: usize) {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |bytes: &mut usize| *bytes > 0 && bytes.saturating_add(weight) > MOST_WAITING;
        let mut bytes = self.less.wait_while(bytes, is_full).unwrap_or_else(PoisonError::into_inner);
        *bytes = bytes.saturating_add(weight);
    }

    fn remove(&self, weight: usize) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *bytes = bytes.saturating_sub(weight);
        self.less.notify_one();
    }
}

const fn weight(incoming: &Incoming) -> usize {
    match incoming {
        Incoming::Line(line) => line.len().saturating_add(LINE_WEIGHT),
        Incoming::Unfit(_) | Incoming::End => LINE_WEIGHT,
    }
}

impl Reader {
    fn read(&self, mut source: impl Read) {
        let mut lines = JsonLines::with_limit(MOST_BYTES);
        let mut sink = |line: JsonLine<'_>| {
            let text = line.text();
            self.give(if line.too_long {
                Incoming::Unfit("the line is too long")
            } else if values::are_too_many(&text) {
                Incoming::Unfit("the line holds too many values")
            } else {
                Incoming::Line(text.into_owned())
            });
        };
        let mut chunk = vec![0; CHUNK];
        loop {
            match source.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => lines.feed(chunk.get(..count).unwrap_or_default(), &mut sink),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => wait_until_readable(),
                Err(_) => break,
            }
        }
        lines.finish(&mut sink);
    }

    fn give(&self, incoming: Incoming) {
        self.load.add(weight(&incoming));
        // Nobody takes it any more when the program ends.
        let _ = self.sender.send(incoming);
        self.waker.wake();
    }
}

/// Someone shares the descriptor and made it non-blocking.
fn wait_until_readable() {
    let stdin = std::io::stdin();
    let _ = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_lf_only() {
        let (reader, inbox) = pair(Arc::new(Wake::new().unwrap()));
        reader.read("a\r\n\n\u{2028}\u{85}b\nlast".as_bytes());
        drop(reader);
        let got: Vec<Incoming> = std::iter::from_fn(|| Some(inbox.take().ok()?.0)).collect();
        let wanted = ["a", "", "\u{2028}\u{85}b", "last"];
        assert_eq!(got, wanted.map(|line| Incoming::Line(line.into())));
        assert!(matches!(inbox.take(), Err(TryRecvError::Disconnected)));
    }

    #[test]
    fn no_more_waits_than_there_is_room_for() {
        let (reader, inbox) = pair(Arc::new(Wake::new().unwrap()));
        let huge = "x".repeat(MOST_WAITING + 1);
        let text = format!("{huge}\n{huge}\nend\n");
        let writer = thread::spawn(move || reader.read(text.as_bytes()));
        let mut lengths = Vec::new();
        loop {
            match inbox.take() {
                Ok((Incoming::Line(line), room)) => {
                    // It counts until it was followed, wherever that is.
                    assert!(*inbox.load.bytes.lock().unwrap() >= line.len());
                    drop(room);
                    lengths.push(line.len());
                }
                Err(TryRecvError::Disconnected) => break,
                _ => assert!(*inbox.load.bytes.lock().unwrap() <= MOST_WAITING + 1 + LINE_WEIGHT),
            }
        }
        writer.join().unwrap();
        assert_eq!(lengths, [MOST_WAITING + 1, MOST_WAITING + 1, 3]);
    }
}
