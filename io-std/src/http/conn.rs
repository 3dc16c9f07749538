//! A connection in the form in which ureq uses it.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};

use ureq::Error;
use ureq::unversioned::transport::{Buffers, LazyBuffers, NextTimeout, Transport};

use super::CHUNK_BYTES;
use super::call::Call;
use super::wire::Wire;
use crate::sys::tunnel::Forward;
use crate::sys::{leftover, net};

pub(super) struct Conn {
    wire: Wire,
    buffers: LazyBuffers,
    tls: bool,
    /// Requests name the whole URL, as a proxy for plain HTTP wants it.
    forward: Option<Forward>,
    exchanges: Exchanges,
    /// The head of a request, which leaves together with the beginning of the body.
    held: Vec<u8>,
    /// The server takes no more. What it said before can still be read.
    deaf: bool,
}

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchanges {
    /// No request was sent; `true` = this is not the first one.
    Between(bool),
    /// A request is being sent or answered; `true` = this is not the first one.
    Under(bool),
}

impl Conn {
    pub(super) fn new(wire: Wire, tls: bool, forward: Option<Forward>) -> Self {
        let buffers = LazyBuffers::new(CHUNK_BYTES, CHUNK_BYTES);
        Self {
            wire,
            buffers,
            tls,
            forward,
            exchanges: Exchanges::Between(false),
            held: Vec::new(),
            deaf: false,
        }
    }

    fn transmit(&mut self, amount: usize) -> io::Result<()> {
        let call = Call::current()?;
        let begins = match self.exchanges {
            Exchanges::Between(kept) => {
                self.exchanges = Exchanges::Under(kept);
                call.use_socket(self.wire.socket(), kept);
                true
            }
            Exchanges::Under(_) => false,
        };
        call.check()?;
        let output = self.buffers.output().get(..amount).unwrap_or_default();
        if begins {
            self.held = match self.forward.as_ref().and_then(|forward| forward.rewrite(output)) {
                Some(head) => head,
                None => output.to_vec(),
            };
            return Ok(());
        }
        if self.held.is_empty() {
            return put(&mut self.wire, &mut self.deaf, output);
        }
        self.held.extend_from_slice(output);
        self.release()
    }

    fn release(&mut self) -> io::Result<()> {
        if !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            put(&mut self.wire, &mut self.deaf, &held)?;
        }
        Ok(())
    }
}

/// Writes, unless the server takes no more: it may have answered before it closed.
fn put(wire: &mut Wire, deaf: &mut bool, bytes: &[u8]) -> io::Result<()> {
    if *deaf {
        return Ok(());
    }
    match wire.write_all(bytes).and_then(|()| wire.flush()) {
        Err(e) if leftover::is_closed(&e) => {
            *deaf = true;
            Ok(())
        }
        other => other,
    }
}

impl Transport for Conn {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), Error> {
        if amount > 0 {
            self.transmit(amount)?;
        }
        Ok(())
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, Error> {
        let call = Call::current()?;
        if call.is_drain_only() {
            return Err(Error::Io(ErrorKind::WouldBlock.into()));
        }
        self.release()?;
        let in_body = call.is_in_body();
        let room = self.buffers.input_append_buf();
        if room.is_empty() {
            let fault = if in_body { net::large_line(&call.url) } else { net::large_head(&call.url) };
            return Err(io::Error::other(fault).into());
        }
        let amount = match self.wire.read(room) {
            // A body that lasts until the end of the connection ends here, and only like this.
            Ok(0) if in_body => return Err(Error::Io(ErrorKind::UnexpectedEof.into())),
            Err(e) if in_body && leftover::is_closed(&e) => {
                return Err(io::Error::other(net::cut_short(&call.url)).into());
            }
            other => other?,
        };
        self.buffers.input_appended(amount);
        if amount > 0 {
            call.set_answered();
        }
        Ok(amount > 0)
    }

    /// Asked when an exchange is over, and again before the connection is used anew.
    fn is_open(&mut self) -> bool {
        let is_kept = self.exchanges == Exchanges::Between(true);
        self.exchanges = Exchanges::Between(true);
        if is_kept && Call::current().is_ok_and(|call| call.is_renewed()) {
            return false;
        }
        !self.deaf && self.wire.is_quiet()
    }

    fn is_tls(&self) -> bool {
        self.tls
    }
}

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conn").field("tls", &self.tls).finish_non_exhaustive()
    }
}
