//! A byte stream to a server: TCP, TLS over it, or TLS through TLS for an encrypted proxy. The socket never blocks;
//! what would have to wait waits for the reactor.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use smol::Async;
use tau_core::fault::{FaultKind, IoFault};
use tau_io_std::sys::{leftover, tls};

/// The stream. Its `Read` and `Write` say `WouldBlock`.
#[derive(Debug)]
pub(super) enum Wire {
    Plain(Async<TcpStream>),
    Tls(Box<StreamOwned<ClientConnection, Self>>),
}

impl Wire {
    /// Wraps the stream in TLS to `host` and shakes hands.
    pub(super) async fn encrypt(self, host: &str) -> io::Result<Self> {
        let refused =
            |why: String| io::Error::other(IoFault::new(FaultKind::Tls, format!("https://{host}: {why}")));
        let config = tls::config().map_err(io::Error::other)?;
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| refused("not a valid host name".into()))?;
        let connection = ClientConnection::new(config, name).map_err(|e| refused(tls::explain(&e)))?;
        let mut stream = Box::new(StreamOwned::new(connection, self));
        while stream.conn.is_handshaking() {
            match stream.conn.complete_io(&mut stream.sock) {
                Ok(_) => {}
                Err(e) if is_pending(&e) => {
                    let writes = stream.conn.wants_write();
                    stream.sock.ready(writes).await?;
                }
                Err(e) => {
                    return Err(match e.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
                        Some(inner) => refused(tls::explain(inner)),
                        None if e.kind() == ErrorKind::UnexpectedEof => {
                            refused("the connection was closed during the TLS handshake".into())
                        }
                        None => e,
                    });
                }
            }
        }
        Ok(Self::Tls(stream))
    }

    fn socket(&self) -> &Async<TcpStream> {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => stream.sock.socket(),
        }
    }

    /// Whether anything waits to be sent.
    fn wants_write(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.conn.wants_write() || stream.sock.wants_write(),
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

    /// Waits until the stream can go on after it said `WouldBlock`.
    pub(super) async fn ready(&self, writes: bool) -> io::Result<()> {
        if writes || self.wants_write() {
            self.socket().writable().await
        } else {
            self.socket().readable().await
        }
    }

    /// Reads what is there, after waiting for it.
    pub(super) async fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.read(buffer) {
                Err(e) if is_pending(&e) => self.ready(false).await?,
                other => return other,
            }
        }
    }

    /// Sends all of it.
    pub(super) async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
                Err(e) if is_pending(&e) => self.ready(true).await?,
                Err(e) => return Err(e),
            }
        }
        loop {
            match self.flush() {
                Err(e) if is_pending(&e) => self.ready(true).await?,
                other => return other,
            }
        }
    }
}

/// Whether to try again, after waiting.
pub(super) fn is_pending(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.get_ref().read(buffer),
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
            Self::Plain(socket) => socket.get_ref().write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => {
                stream.flush()?;
                stream.sock.flush()
            }
        }
    }
}
