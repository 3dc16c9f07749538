//! Bytes that arrived and were not used yet.

use std::io::{self, Read};

use smol::future::yield_now;

use super::wire::Wire;

/// First size of the buffer.
const SMALL: usize = 4 << 10;
/// Largest size: also the longest head of an answer.
pub(super) const LARGE: usize = 64 << 10;
/// Reads in a row, without having to wait, before others get their turn: a peer that is faster than we are would keep
/// the thread for itself, and no limit or cancel would be looked at.
const IN_A_ROW: u32 = 16;

/// The buffer. It grows while what arrives fills it, so that a thousand slow streams stay small.
#[derive(Debug, Default)]
pub(super) struct Input {
    buffer: Vec<u8>,
    /// What is there lies between these.
    start: usize,
    end: usize,
    /// The last read left room: most likely nothing more is there.
    drained: bool,
    /// Reads since this task waited.
    in_a_row: u32,
}

impl Input {
    /// What is there.
    pub(super) fn rest(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    pub(super) const fn len(&self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// The first bytes were used.
    pub(super) fn consume(&mut self, amount: usize) {
        self.start = (self.start + amount).min(self.end);
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Whether to wait before the next read.
    pub(super) const fn is_drained(&self) -> bool {
        self.drained
    }

    /// Size of the buffer; what is decoded at once need not be larger.
    pub(super) const fn size(&self) -> usize {
        if self.buffer.len() < SMALL { SMALL } else { self.buffer.len() }
    }

    /// Room for at least one byte, unless the buffer is as large as it may be.
    fn room(&mut self) -> &mut [u8] {
        if self.end == self.buffer.len() {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            } else {
                let size = (self.buffer.len() * 2).clamp(SMALL, LARGE);
                self.buffer.resize(size, 0);
            }
        }
        self.buffer.get_mut(self.end..).unwrap_or_default()
    }

    /// The task had to wait.
    pub(super) const fn waited(&mut self) {
        self.in_a_row = 0;
    }

    /// To be called before each read: lets others go on after some of them.
    pub(super) async fn give_way(&mut self) {
        self.in_a_row += 1;
        if self.in_a_row > IN_A_ROW {
            self.in_a_row = 1;
            yield_now().await;
        }
    }

    /// Waits for more; 0 = the stream has ended, or there is no room.
    pub(super) async fn receive(&mut self, wire: &mut Wire) -> io::Result<usize> {
        self.give_way().await;
        let amount = wire.receive(self.room()).await?;
        Ok(self.arrived(amount))
    }

    /// Takes what is there; `WouldBlock` when that is nothing.
    pub(super) fn read(&mut self, wire: &mut Wire) -> io::Result<usize> {
        let amount = Read::read(wire, self.room())?;
        Ok(self.arrived(amount))
    }

    fn arrived(&mut self, amount: usize) -> usize {
        self.end = (self.end + amount).min(self.buffer.len());
        self.drained = self.end < self.buffer.len();
        // What fills the buffer comes fast: a larger one saves calls.
        if self.start == 0 && self.end == self.buffer.len() && self.end < LARGE {
            self.buffer.resize((self.end * 2).min(LARGE), 0);
        }
        amount
    }
}
