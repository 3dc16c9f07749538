//! A byte stream to a server: TCP, TLS over it, or TLS through TLS for an encrypted proxy.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use tau_core::fault::{FaultKind, IoFault};

use super::call::Call;
use crate::sys::{leftover, tls};

/// The stream.
#[derive(Debug)]
pub(super) enum Wire {
    Plain(Socket),
    Tls(Box<StreamOwned<ClientConnection, Self>>),
}

/// A socket whose waiting obeys the current call.
#[derive(Debug)]
pub(super) struct Socket {
    stream: Arc<TcpStream>,
    read_limit: Option<Duration>,
    write_limit: Option<Duration>,
}

impl Wire {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self::Plain(Socket { stream: Arc::new(stream), read_limit: None, write_limit: None })
    }

    /// Wraps the stream in TLS to `host` and shakes hands.
    pub(super) fn encrypt(self, host: &str) -> io::Result<Self> {
        let refused =
            |why: String| io::Error::other(IoFault::new(FaultKind::Tls, format!("https://{host}: {why}")));
        let config = tls::config().map_err(io::Error::other)?;
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| refused("not a valid host name".into()))?;
        let connection = ClientConnection::new(config, name).map_err(|e| refused(tls::explain(&e)))?;
        let mut stream = StreamOwned::new(connection, self);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(|e| {
                match e.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                    Some(inner) => refused(tls::explain(inner)),
                    None if e.kind() == ErrorKind::UnexpectedEof => {
                        refused("the connection was closed during the TLS handshake".into())
                    }
                    None => e,
                }
            })?;
        }
        Ok(Self::Tls(Box::new(stream)))
    }

    pub(super) fn socket(&self) -> &Arc<TcpStream> {
        match self {
            Self::Plain(socket) => &socket.stream,
            Self::Tls(stream) => stream.sock.socket(),
        }
    }

    /// Whether an idle connection can be used again: nothing arrived that nobody asked for, not even its end.
    pub(super) fn is_quiet(&self) -> bool {
        if let Self::Tls(stream) = self {
            return leftover::is_quiet(&stream.conn) && stream.sock.is_quiet();
        }
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::from_borrowed_fd(self.socket().as_fd(), PollFlags::IN)], Some(&now)) == Ok(0)
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => match stream.read(buffer) {
                Err(e) if leftover::is_closed(&e) && stream.conn.wants_write() => {
                    leftover::read_only(&mut stream.conn, &mut stream.sock, buffer)
                }
                other => other,
            },
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let call = Call::current()?;
        let limit = call.limit()?;
        if limit != self.read_limit {
            self.stream.set_read_timeout(limit)?;
            self.read_limit = limit;
        }
        let result = retry(|| (&*self.stream).read(buffer));
        call.check()?;
        match result {
            Ok(n) => Ok(n),
            Err(e) if is_timeout(&e) => Err(call.timed_out()),
            Err(e) => Err(e),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let call = Call::current()?;
        let limit = call.limit()?;
        if limit != self.write_limit {
            self.stream.set_write_timeout(limit)?;
            self.write_limit = limit;
        }
        let result = retry(|| (&*self.stream).write(bytes));
        call.check()?;
        result.map_err(|e| if is_timeout(&e) { call.timed_out() } else { e })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn retry<T>(mut step: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match step() {
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
