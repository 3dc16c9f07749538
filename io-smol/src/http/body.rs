//! The body of an answer, piece by piece.

use std::io::{self, ErrorKind, Read};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use smol::Timer;
use smol::future::poll_fn;
use tau_core::fault::IoFault;
use tau_core::input::Reply;
use tau_core::op::{HttpRequest, Stream, host_of};
use tau_io_std::sys::inflate::{Coding, Inflate};
use tau_io_std::sys::net;
use ureq_proto::BodyMode;
use ureq_proto::client::state::RecvBody;
use ureq_proto::client::{Call, RecvBodyResult, RecvResponseResult};

use super::connect::Conn;
use super::exchange::{Answer, not_http};
use super::input::{Input, LARGE};
use super::wire::{Wire, is_pending};

/// Delivers the body: waits for a piece, decodes what has arrived, hands it over. Gives the connection back when it
/// can be used again.
pub(super) async fn deliver(
    answer: Answer,
    coding: Option<Coding>,
    request: &HttpRequest,
    replies: &crate::Replies,
) -> Result<Option<Conn>, IoFault> {
    let Answer { next, mut conn, input, .. } = answer;
    let call = match next {
        RecvResponseResult::RecvBody(call) => call,
        RecvResponseResult::Redirect(call) => return Ok(reuse(conn, call.must_close_connection(), &input)),
        RecvResponseResult::Cleanup(call) => return Ok(reuse(conn, call.must_close_connection(), &input)),
    };
    let mut body = Body::new(Source { call, input, ended: false, url: request.url.clone() }, coding);
    let mut idle = Idle::new(request.idle_timeout_ms.map(Duration::from_millis));
    let mut buffer = Vec::new();
    loop {
        buffer.resize(body.source().input.size(), 0);
        let (len, end) = gather(&mut body, &mut buffer);
        if len > 0 {
            let bytes = buffer.get(..len).unwrap_or_default().to_vec();
            replies.give(Reply::Chunk { stream: Stream::Body, bytes }).await;
        }
        match end {
            End::Full => {}
            End::Open => {
                let source = body.source();
                if source.input.len() >= LARGE {
                    return Err(net::large_line(&request.url));
                }
                match idle.receive(&mut source.input, &mut conn).await {
                    Ok(Some(amount)) => source.ended = amount == 0,
                    Ok(None) => return Err(net::stopped(&request.url, idle.limit.unwrap_or_default())),
                    // Encryption that ends without a word: the frame tells whether that is too early.
                    Err(e) if e.kind() == ErrorKind::UnexpectedEof => source.ended = true,
                    Err(e) => return Err(net::broken(&e, &request.url)),
                }
            }
            End::Body => break,
            End::Broken(e) => return Err(net::broken(&e, &request.url)),
        }
    }
    let Source { call, input, ended, .. } = body.into_source();
    let must_close = match call.proceed() {
        Some(RecvBodyResult::Cleanup(call)) => call.must_close_connection(),
        Some(RecvBodyResult::Redirect(call)) => call.must_close_connection(),
        None => true,
    };
    Ok(reuse(conn, must_close || ended, &input))
}

fn reuse(conn: Conn, must_close: bool, input: &Input) -> Option<Conn> {
    (!must_close && input.is_empty() && !conn.deaf).then_some(conn)
}

/// What the transfer coding holds; reads what has arrived and says `WouldBlock` when that is used up.
struct Source {
    call: Call<RecvBody>,
    input: Input,
    /// Nothing more will arrive.
    ended: bool,
    url: String,
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let (used, made) = self.call.read(self.input.rest(), out).map_err(|e| not_http(&self.url, &e))?;
            self.input.consume(used);
            if made > 0 {
                return Ok(made);
            }
            if used > 0 {
                continue;
            }
            let until_close = self.call.body_mode() == BodyMode::CloseDelimited;
            let complete = if until_close { self.ended } else { self.call.can_proceed() };
            return if complete || (self.ended && self.call.is_ended_chunked()) {
                Ok(0)
            } else if self.ended {
                Err(ErrorKind::UnexpectedEof.into())
            } else {
                Err(ErrorKind::WouldBlock.into())
            };
        }
    }
}

enum Body {
    Plain(Source),
    Packed(Box<Inflate<Source>>),
}

impl Body {
    fn new(source: Source, coding: Option<Coding>) -> Self {
        match coding {
            None => Self::Plain(source),
            Some(coding) => {
                let host = host_of(&source.url);
                Self::Packed(Box::new(Inflate::new(source, coding, host)))
            }
        }
    }

    fn source(&mut self) -> &mut Source {
        match self {
            Self::Plain(source) => source,
            Self::Packed(packed) => packed.inner(),
        }
    }

    fn into_source(self) -> Source {
        match self {
            Self::Plain(source) => source,
            Self::Packed(packed) => packed.into_inner(),
        }
    }
}

enum End {
    /// The buffer is full; there may be more.
    Full,
    /// More has to arrive.
    Open,
    Body,
    Broken(io::Error),
}

/// What can be decoded without waiting: small pieces of the transfer coding become one.
fn gather(body: &mut Body, buffer: &mut [u8]) -> (usize, End) {
    let mut len = 0;
    while let Some(room) = buffer.get_mut(len..).filter(|room| !room.is_empty()) {
        let read = match body {
            Body::Plain(source) => source.read(room),
            Body::Packed(packed) => packed.read(room),
        };
        match read {
            Ok(0) => return (len, End::Body),
            Ok(n) => len += n,
            Err(e) if is_pending(&e) => return (len, End::Open),
            Err(e) => return (len, End::Broken(e)),
        }
    }
    (len, End::Full)
}

/// The limit between two pieces. One timer serves many pieces: it is set anew only when it fires.
struct Idle {
    limit: Option<Duration>,
    timer: Option<Timer>,
    last: Instant,
}

impl Idle {
    fn new(limit: Option<Duration>) -> Self {
        Self { limit, timer: None, last: Instant::now() }
    }

    /// Takes what arrives; `None` = nothing did in time.
    async fn receive(&mut self, input: &mut Input, conn: &mut Conn) -> io::Result<Option<usize>> {
        self.last = Instant::now();
        input.give_way().await;
        // A layer of encryption may hold more than the socket does.
        let mut wait = input.is_drained() && matches!(conn.wire, Wire::Plain(_));
        loop {
            if wait {
                let mut ready = pin!(conn.wire.ready(false));
                let in_time = poll_fn(|cx| match ready.as_mut().poll(cx) {
                    Poll::Ready(ready) => Poll::Ready(ready.map(|()| true)),
                    Poll::Pending => {
                        input.waited();
                        self.poll(cx).map(|()| Ok(false))
                    }
                });
                if !in_time.await? {
                    return Ok(None);
                }
            }
            match input.read(&mut conn.wire) {
                Err(e) if is_pending(&e) => wait = true,
                other => return other.map(Some),
            }
        }
    }

    /// Ready once the limit ran out.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(limit) = self.limit else { return Poll::Pending };
        let due = self.last + limit;
        let timer = self.timer.get_or_insert_with(|| Timer::at(due));
        while pin!(&mut *timer).poll(cx).is_ready() {
            if Instant::now() >= due {
                return Poll::Ready(());
            }
            timer.set_at(due);
        }
        Poll::Pending
    }
}
