//! Making connections: names, addresses, proxies, TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::host_of;
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{ConnectionDetails, Connector, NextTimeout};

use super::call::Call;
use super::conn::{Conn, Forward};
use super::wire::Wire;
use crate::sys::proxy::{Proxy, Url, select};
use crate::sys::{env, fault};

/// Longest answer of a proxy to `CONNECT`.
const PROXY_HEAD: usize = 16 << 10;

/// Leaves names alone: whether the target's or the proxy's is looked up is known later.
#[derive(Debug)]
pub(super) struct NoNames;

impl Resolver for NoNames {
    fn resolve(&self, _: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        Ok(self.empty())
    }
}

/// Connects for the current call.
#[derive(Debug)]
pub(super) struct Connect;

impl Connector for Connect {
    type Out = Conn;

    fn connect(&self, _: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<Conn>, Error> {
        let call = Call::current()?;
        Ok(Some(connect(&call)?))
    }
}

fn connect(call: &Call) -> io::Result<Conn> {
    let failed = |kind, text: String| io::Error::other(IoFault::new(kind, text));
    let origin = host_of(&call.url);
    let Some(target) = Url::parse(&call.url) else {
        return Err(failed(FaultKind::Invalid, format!("{origin}: this is not a valid URL")));
    };
    let tls = target.scheme == "https";
    let port = target.port.unwrap_or(if tls { 443 } else { 80 });
    let proxy =
        select(&call.url, call.proxy.as_deref(), &env::var).map_err(|e| failed(FaultKind::Proxy, e))?;
    let Some(proxy) = proxy else {
        let wire = dial(call, &target.host, port, &origin, FaultKind::Connect)?;
        let wire = if tls { wire.encrypt(&target.host)? } else { wire };
        return Ok(Conn::new(wire, tls, None));
    };
    let mut wire = dial(call, &proxy.host, proxy.port, &format!("proxy {proxy}"), FaultKind::Proxy)?;
    if proxy.tls {
        wire = wire.encrypt(&proxy.host)?;
    }
    if !tls {
        let authorization = proxy.authorization();
        return Ok(Conn::new(wire, false, Some(Forward { origin, authorization })));
    }
    tunnel(&mut wire, &proxy, &target.host, port)?;
    Ok(Conn::new(wire.encrypt(&target.host)?, true, None))
}

/// A connection to one of the addresses of a host, tried in turn. The time left is shared by those not yet tried.
fn dial(call: &Call, host: &str, port: u16, shown: &str, kind: FaultKind) -> io::Result<Wire> {
    // Neither a look-up nor a connect can be woken: a driver answers a cancel in our place.
    call.cancel.set_detachable(true);
    let stream = resolve(host, port, shown, kind).and_then(|addresses| reach(call, &addresses, shown, kind));
    call.cancel.set_detachable(false);
    call.check()?;
    let stream = stream?;
    stream.set_nodelay(true)?;
    let wire = Wire::new(stream);
    call.use_socket(wire.socket(), false);
    call.check()?;
    Ok(wire)
}

fn resolve(host: &str, port: u16, shown: &str, kind: FaultKind) -> io::Result<Vec<SocketAddr>> {
    // The local host needs no look-up (RFC 6761).
    if host == "localhost" || host.ends_with(".localhost") {
        let local: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        return Ok(local.map(|ip| SocketAddr::new(ip, port)).to_vec());
    }
    let kind = if kind == FaultKind::Connect { FaultKind::Dns } else { kind };
    let unknown = |why: &str| {
        io::Error::other(IoFault::new(kind, format!("{shown}: the host name could not be resolved{why}")))
    };
    match (host, port).to_socket_addrs() {
        Ok(addresses) => {
            let addresses: Vec<_> = addresses.collect();
            if addresses.is_empty() { Err(unknown("")) } else { Ok(addresses) }
        }
        Err(e) => Err(unknown(&format!(" ({})", fault::text(&e)))),
    }
}

fn reach(call: &Call, addresses: &[SocketAddr], shown: &str, kind: FaultKind) -> io::Result<TcpStream> {
    let mut last = None;
    for (at, address) in addresses.iter().enumerate() {
        call.check()?;
        let left = u32::try_from(addresses.len() - at).unwrap_or(1);
        let limit = call.limit()?.map(|limit| (limit / left).max(Duration::from_millis(10)));
        let result = match limit {
            Some(limit) => TcpStream::connect_timeout(address, limit),
            None => TcpStream::connect(address),
        };
        match result {
            Ok(stream) => return Ok(stream),
            Err(e) => last = Some(e),
        }
    }
    call.limit()?;
    let why = last.map_or_else(|| "no address".to_owned(), |e| fault::text(&e));
    Err(io::Error::other(IoFault::new(kind, format!("{shown}: could not connect ({why})"))))
}

/// Asks a proxy for a tunnel.
fn tunnel(wire: &mut Wire, proxy: &Proxy, host: &str, port: u16) -> io::Result<()> {
    let place = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let authorization =
        proxy.authorization().map(|value| format!("Proxy-Authorization: {value}\r\n")).unwrap_or_default();
    let head = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{authorization}\r\n");
    wire.write_all(head.as_bytes())?;
    wire.flush()?;
    let refused =
        |why: String| io::Error::other(IoFault::new(FaultKind::Proxy, format!("proxy {proxy}: {why}")));
    let status = tunnel_status(wire).map_err(|e| match e.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
            refused(format!("it closed the connection when asked for {place}"))
        }
        ErrorKind::InvalidData => refused("its answer is not HTTP".to_owned()),
        _ => e,
    })?;
    match status {
        200..=299 => Ok(()),
        407 => Err(refused("it wants a user and password: http://user:password@host:port".to_owned())),
        other => Err(refused(format!("it answered {other} when asked for {place}"))),
    }
}

/// Reads the head of the answer to `CONNECT`. What follows it belongs to the tunnel, and nothing can follow before
/// we have spoken.
fn tunnel_status(wire: &mut Wire) -> io::Result<u16> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let n = wire.read(&mut piece)?;
        if n == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(piece.get(..n).unwrap_or_default());
        if head.len() > PROXY_HEAD {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    let line = head.split(|c| *c == b'\r').next().unwrap_or_default();
    let status = std::str::from_utf8(line)
        .ok()
        .filter(|line| line.starts_with("HTTP/1."))
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|status| status.parse().ok());
    status.ok_or_else(|| ErrorKind::InvalidData.into())
}
