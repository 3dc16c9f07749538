//! Connecting to a host of several addresses (RFC 8305): one that fails, or takes long, calls the next one beside it.
//! The sockets do not block, so that limits and cancels hold here as well.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, connect, sockopt};

use super::call::Call;
use crate::sys::net::{Failed, NEXT_ADDRESS};
use crate::sys::wake::{Wake, timespec};

/// The first connection that stands; otherwise why there is none.
pub(super) fn race(addresses: &[SocketAddr], call: &Call) -> io::Result<Result<TcpStream, Failed>> {
    let wake = Arc::new(Wake::new()?);
    let _waking = call.wake_by(&wake)?;
    let mut rest = addresses.iter();
    let mut running: Vec<(SocketAddr, OwnedFd)> = Vec::new();
    let mut failed = Failed::new();
    loop {
        let next_at = rest.next().map(|address| {
            match begin(*address) {
                Ok(socket) => running.push((*address, socket)),
                Err(e) => failed.push((*address, e)),
            }
            Instant::now() + NEXT_ADDRESS
        });
        let known = failed.len();
        // Until there is news: one that stands, one that failed, or too long a silence.
        while failed.len() == known && !running.is_empty() {
            call.check()?;
            let patience = next_at.map(|at| at.saturating_duration_since(Instant::now()));
            if patience == Some(Duration::ZERO) {
                break;
            }
            let limit = [call.limit()?, patience].into_iter().flatten().min();
            if let Some(at) = wait(&running, &wake, limit) {
                let (address, socket) = running.swap_remove(at);
                match finish(socket) {
                    Ok(stream) => return Ok(Ok(stream)),
                    Err(e) => failed.push((address, e)),
                }
            }
        }
        if running.is_empty() && rest.len() == 0 {
            return Ok(Err(failed));
        }
    }
}

/// A socket that connects.
fn begin(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket(family)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => Ok(socket),
        Err(e) => Err(e.into()),
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn socket(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    use rustix::net::{SocketFlags, socket_with};
    socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn socket(family: AddressFamily) -> rustix::io::Result<OwnedFd> {
    use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
    ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

/// Waits for one that has an end, for a cancel or for the limit.
fn wait(running: &[(SocketAddr, OwnedFd)], wake: &Wake, limit: Option<Duration>) -> Option<usize> {
    let mut fds: Vec<PollFd<'_>> =
        running.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::OUT)).collect();
    fds.push(PollFd::new(wake, PollFlags::IN));
    // An interrupted wait is looked at like a timeout.
    let _ = poll(&mut fds, limit.map(timespec).as_ref());
    fds.iter().take(running.len()).position(|fd| !fd.revents().is_empty())
}

/// The connection, if it stands; it blocks from now on.
fn finish(socket: OwnedFd) -> io::Result<TcpStream> {
    sockopt::socket_error(&socket)??;
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}
