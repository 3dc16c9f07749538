//! Making connections: names, addresses, proxies, TLS.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::pin::Pin;
use std::task::Poll;

use smol::future::{or, poll_fn};
use smol::{Async, Timer, unblock};
use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::{HttpRequest, host_of};
use tau_io_std::sys::net::{Failed, NEXT_ADDRESS};
use tau_io_std::sys::proxy::{Url, select};
use tau_io_std::sys::tunnel::{Forward, Tunnel};
use tau_io_std::sys::{env, net};

use super::wire::Wire;

/// A connection for requests to one place.
#[derive(Debug)]
pub(super) struct Conn {
    pub(super) wire: Wire,
    /// Requests name the whole URL, as a proxy for plain HTTP wants it.
    pub(super) forward: Option<Forward>,
    /// The server takes no more. What it said before can still be read.
    pub(super) deaf: bool,
}

impl Conn {
    const fn new(wire: Wire, forward: Option<Forward>) -> Self {
        Self { wire, forward, deaf: false }
    }
}

/// Connects for a request.
pub(super) async fn connect(request: &HttpRequest) -> io::Result<Conn> {
    let origin = host_of(&request.url);
    let Some(target) = Url::parse(&request.url) else {
        return Err(io::Error::other(net::invalid_url(&request.url)));
    };
    let tls = target.scheme == "https";
    let port = target.port.unwrap_or(if tls { 443 } else { 80 });
    let proxy = select(&request.url, request.proxy.as_deref(), &env::var)
        .map_err(|e| io::Error::other(IoFault::new(FaultKind::Proxy, e)))?;
    let Some(proxy) = proxy else {
        let wire = dial(&target.host, port, &origin, FaultKind::Connect).await?;
        let wire = if tls { wire.encrypt(&target.host).await? } else { wire };
        return Ok(Conn::new(wire, None));
    };
    let mut wire = dial(&proxy.host, proxy.port, &format!("proxy {proxy}"), FaultKind::Proxy).await?;
    if proxy.tls {
        wire = wire.encrypt(&proxy.host).await?;
    }
    if !tls {
        let authorization = proxy.authorization();
        return Ok(Conn::new(wire, Some(Forward { origin, authorization })));
    }
    dig(&mut wire, Tunnel::new(&proxy, &target.host, port)).await?;
    Ok(Conn::new(wire.encrypt(&target.host).await?, None))
}

/// A connection to one of the addresses of a host.
async fn dial(host: &str, port: u16, shown: &str, kind: FaultKind) -> io::Result<Wire> {
    let (name, origin) = (host.to_owned(), shown.to_owned());
    let addresses =
        unblock(move || net::resolve(&name, port, &origin, kind)).await.map_err(io::Error::other)?;
    match race(&addresses).await {
        Ok(stream) => {
            stream.get_ref().set_nodelay(true)?;
            Ok(Wire::Plain(stream))
        }
        Err(failed) => Err(io::Error::other(net::unreachable(shown, kind, &failed))),
    }
}

type Outcome = Result<Async<TcpStream>, (SocketAddr, io::Error)>;
type Attempt = Pin<Box<dyn Future<Output = Outcome> + Send>>;

fn attempt(address: SocketAddr) -> Attempt {
    Box::pin(async move { Async::<TcpStream>::connect(address).await.map_err(|e| (address, e)) })
}

/// The first connection that stands. An address that fails, or takes long, calls the next one.
async fn race(addresses: &[SocketAddr]) -> Result<Async<TcpStream>, Failed> {
    let mut rest = addresses.iter();
    let mut running: Vec<Attempt> = Vec::new();
    let mut failed = Failed::new();
    loop {
        let more = rest.next().map(|address| running.push(attempt(*address)));
        if running.is_empty() {
            return Err(failed);
        }
        let patience = async {
            match more {
                Some(()) => drop(Timer::after(NEXT_ADDRESS).await),
                None => smol::future::pending().await,
            }
            None
        };
        match or(async { Some(first(&mut running).await) }, patience).await {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(why)) => failed.push(why),
            None => {}
        }
    }
}

/// The first attempt that ends, which is then no longer among them.
async fn first(running: &mut Vec<Attempt>) -> Outcome {
    poll_fn(|cx| {
        for at in 0..running.len() {
            let Some(attempt) = running.get_mut(at) else { break };
            if let Poll::Ready(result) = attempt.as_mut().poll(cx) {
                drop(running.swap_remove(at));
                return Poll::Ready(result);
            }
        }
        Poll::Pending
    })
    .await
}

/// Asks a proxy for a tunnel.
async fn dig(wire: &mut Wire, mut tunnel: Tunnel<'_>) -> io::Result<()> {
    wire.send(tunnel.request().as_bytes()).await?;
    // Byte by byte: what follows the head is not ours.
    let mut piece = [0; 1];
    loop {
        let n = wire.receive(&mut piece).await.map_err(|e| tunnel.broken(e))?;
        if tunnel.arrived(piece.get(..n).unwrap_or_default()).map_err(io::Error::other)? {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_that_fails_or_hangs_calls_the_next() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let good = listener.local_addr().unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        // An address for documentation: nobody answers, or the network says so at once.
        let silent = address("192.0.2.1:9");
        let start = Instant::now();
        for places in [vec![good], vec![closed, good], vec![silent, good], vec![closed, silent, closed, good]]
        {
            let stream = smol::block_on(race(&places)).unwrap();
            assert_eq!(stream.get_ref().peer_addr().unwrap(), good, "{places:?}");
        }
        assert!(start.elapsed() < Duration::from_secs(5));
        assert_eq!(smol::block_on(race(&[closed, closed])).unwrap_err().len(), 2);
        assert!(smol::block_on(race(&[])).unwrap_err().is_empty());
    }
}
