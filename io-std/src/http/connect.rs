//! Making connections: names, addresses, proxies, TLS.

use std::io::{self, Read, Write};

use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::host_of;
use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{ConnectionDetails, Connector, NextTimeout};

use super::call::Call;
use super::conn::Conn;
use super::race::race;
use super::wire::Wire;
use crate::sys::proxy::{Url, select};
use crate::sys::tunnel::{Forward, Tunnel};
use crate::sys::{env, net};

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
    let _limited = call.connecting();
    let origin = host_of(&call.url);
    let Some(target) = Url::parse(&call.url) else {
        return Err(io::Error::other(net::invalid_url(&call.url)));
    };
    let tls = target.scheme == "https";
    let port = target.port.unwrap_or(if tls { 443 } else { 80 });
    let proxy = select(&call.url, call.proxy.as_deref(), &env::var)
        .map_err(|e| io::Error::other(IoFault::new(FaultKind::Proxy, e)))?;
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
    dig(&mut wire, Tunnel::new(&proxy, &target.host, port))?;
    Ok(Conn::new(wire.encrypt(&target.host)?, true, None))
}

/// A connection to one of the addresses of a host.
fn dial(call: &Call, host: &str, port: u16, shown: &str, kind: FaultKind) -> io::Result<Wire> {
    // A look-up cannot be woken: a driver answers a cancel in our place.
    call.cancel.set_detachable(true);
    let addresses = net::resolve(host, port, shown, kind);
    call.cancel.set_detachable(false);
    call.check()?;
    let addresses = addresses.map_err(io::Error::other)?;
    let stream = match race(&addresses, call)? {
        Ok(stream) => stream,
        Err(failed) => return Err(io::Error::other(net::unreachable(shown, kind, &failed))),
    };
    stream.set_nodelay(true)?;
    let wire = Wire::new(stream);
    call.use_socket(wire.socket(), false);
    call.check()?;
    Ok(wire)
}

/// Asks a proxy for a tunnel.
fn dig(wire: &mut Wire, mut tunnel: Tunnel<'_>) -> io::Result<()> {
    wire.write_all(tunnel.request().as_bytes())?;
    wire.flush()?;
    // Byte by byte: what follows the head is not ours.
    let mut piece = [0; 1];
    loop {
        let n = wire.read(&mut piece).map_err(|e| tunnel.broken(e))?;
        if tunnel.arrived(piece.get(..n).unwrap_or_default()).map_err(io::Error::other)? {
            return Ok(());
        }
    }
}
