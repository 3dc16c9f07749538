//! HTTP/1.1: the protocol of `ureq-proto`, which does no input and output itself, over smol's sockets.
//!
//! As in `tau-io-std`: every status is an answer, with its body; redirects are not followed; compressed bodies arrive
//! decoded; connections are kept and used again; header values never appear in faults. A request is cancelled by
//! dropping its future.

mod body;
mod connect;
mod exchange;
mod input;
mod pool;
mod wire;

use std::io;
use std::time::Duration;

use smol::Timer;
use smol::channel::bounded;
use smol::future::or;
use tau_core::fault::IoFault;
use tau_core::ids::OpId;
use tau_core::input::Reply;
use tau_core::op::{HttpRequest, Outcome};
use tau_io_std::machine::Exchange;
use tau_io_std::sys::{CancelToken, net};

use crate::driver::replies::{Replies, WAITING};
use exchange::{Answer, Broken};
use pool::{Place, Pool};

type Observer = dyn Fn(Exchange<'_>) + Send + Sync;

/// Sends requests, and keeps connections. Costs nothing until the first one; may serve any number of agents.
#[derive(Debug)]
pub struct Client {
    pool: Pool,
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// A client without connections.
    #[must_use]
    pub const fn new() -> Self {
        Self { pool: Pool::new() }
    }

    /// One exchange: the head and the pieces of the body are given as they come.
    ///
    /// # Errors
    /// `Dns`, `Connect`, `Tls`, `Proxy`, `Reset`, `TimedOut`, `Invalid` (URL or header), `Other` (the answer is not
    /// HTTP); each names the host.
    pub async fn exchange(&self, request: &HttpRequest, replies: &Replies) -> Result<Outcome, IoFault> {
        self.observed(request, replies, None).await
    }

    /// The same, with somebody who looks on.
    pub(crate) async fn observed(
        &self,
        request: &HttpRequest,
        replies: &Replies,
        observe: Option<&Observer>,
    ) -> Result<Outcome, IoFault> {
        let observe = |exchange: Exchange<'_>| {
            if let Some(observe) = observe {
                observe(exchange);
            }
        };
        observe(Exchange::Request(request));
        let limit = request.head_timeout_ms.map(Duration::from_millis);
        let place = Place::of(request);
        let late = || net::no_answer(&request.url, limit.unwrap_or_default());
        let answer = within(limit, self.ask(request, &place), late).await?;
        let (headers, coding) = answer.describe(&request.url)?;
        let status = answer.head.status().as_u16();
        observe(Exchange::Response { status, headers: &headers });
        replies.give(Reply::Head { status, headers }).await;
        if let Some(conn) = body::deliver(answer, coding, request, replies).await? {
            self.pool.keep(place, conn);
        }
        Ok(Outcome::BodyEnd)
    }

    /// The same for a thread that blocks; a cancel ends it at once.
    ///
    /// # Errors
    /// As [`exchange`](Self::exchange), and `Cancelled`.
    pub fn run(
        &self,
        request: &HttpRequest,
        partial: &mut dyn FnMut(Reply),
        cancel: &CancelToken,
    ) -> Result<Outcome, IoFault> {
        let (signal, cancelled) = bounded::<()>(1);
        let _hook = cancel.on_cancel(move || {
            let _ = signal.try_send(());
        });
        let (sender, arrived) = bounded(WAITING);
        let exchange = async move {
            let replies = Replies::new(OpId(0), sender);
            let last = self.exchange(request, &replies).await;
            replies.give(tau_io_std::sys::last(last)).await;
            smol::future::pending().await
        };
        let hand_over = async {
            loop {
                match arrived.recv().await {
                    Ok((_, Reply::Done(outcome))) => return Ok(outcome),
                    Ok((_, Reply::Failed(fault))) => return Err(fault),
                    Ok((_, reply)) => partial(reply),
                    Err(_) => return Err(IoFault::cancelled()),
                }
            }
        };
        let cancelled = async {
            let _ = cancelled.recv().await;
            Err(IoFault::cancelled())
        };
        smol::block_on(or(cancelled, or(exchange, hand_over)))
    }

    /// Sends the request and waits for the head of the answer.
    async fn ask(&self, request: &HttpRequest, place: &Place) -> Result<Answer, IoFault> {
        let fault = |e: io::Error| net::broken(&e, &request.url);
        let first = exchange::Outgoing::new(request)?;
        if let Some(kept) = self.pool.take(place) {
            match first.clone().send(kept).await {
                Ok(answer) => return Ok(answer),
                // A kept connection that the server closed meanwhile says nothing about the server.
                Err(Broken { answered: false, .. }) => {}
                Err(Broken { fault, .. }) => return Err(fault),
            }
        }
        let connecting = async { connect::connect(request).await.map_err(fault) };
        let late = || net::no_connection(&request.url);
        let conn = within(Some(net::CONNECT_LIMIT), connecting, late).await?;
        first.send(conn).await.map_err(|broken| broken.fault)
    }
}

/// The result of some work, unless it takes too long.
async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = Result<T, IoFault>>,
    late: impl FnOnce() -> IoFault,
) -> Result<T, IoFault> {
    let Some(limit) = limit else { return work.await };
    let alarm = async {
        Timer::after(limit).await;
        Err(late())
    };
    or(work, alarm).await
}
