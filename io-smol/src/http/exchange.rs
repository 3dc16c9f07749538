//! A request on its way out, and the head of its answer.

use std::io::{self, ErrorKind};

use tau_core::fault::IoFault;
use tau_core::op::{Headers, HttpRequest};
use tau_io_std::sys::inflate::{ACCEPTED, Coding};
use tau_io_std::sys::{leftover, net};
use ureq_proto::client::state::{Prepare, RecvResponse, SendBody};
use ureq_proto::client::{Await100Result, Call, RecvResponseResult, SendRequestResult};
use ureq_proto::http::{Request, Response};

use super::connect::Conn;
use super::input::{Input, LARGE};

/// How much of a body is handed to the socket at once.
const PIECE: usize = 64 << 10;

/// A request that may be sent.
#[derive(Clone)]
pub(super) struct Outgoing<'a> {
    request: &'a HttpRequest,
    head: Request<()>,
}

/// The head of an answer, and what brings its body.
pub(super) struct Answer {
    pub(super) head: Response<()>,
    pub(super) next: RecvResponseResult,
    pub(super) conn: Conn,
    pub(super) input: Input,
}

/// An exchange that broke before its answer.
pub(super) struct Broken {
    pub(super) fault: IoFault,
    /// A byte of the answer has arrived.
    pub(super) answered: bool,
}

impl<'a> Outgoing<'a> {
    /// # Errors
    /// `Invalid` for a URL or header that cannot be sent.
    pub(super) fn new(request: &'a HttpRequest) -> Result<Self, IoFault> {
        let url = &request.url;
        let mut builder = Request::builder().method(request.method).uri(url);
        for (name, value) in net::sent(&request.headers) {
            builder = builder.header(name, value);
        }
        let has = |name: &str| request.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        for (name, value) in [
            ("accept-encoding", ACCEPTED),
            ("user-agent", concat!("tau/", env!("CARGO_PKG_VERSION"))),
            ("accept", "*/*"),
        ] {
            if !has(name) {
                builder = builder.header(name, value);
            }
        }
        let without =
            request.body.is_empty() && matches!(request.method, "GET" | "HEAD" | "DELETE" | "OPTIONS");
        if !without && !has("content-length") && !has("transfer-encoding") {
            builder = builder.header("content-length", request.body.len());
        }
        let head = builder.body(()).map_err(|_| net::invalid_request(request))?;
        let known = matches!(head.uri().scheme_str(), Some("http" | "https"));
        if !known || head.uri().host().is_none_or(str::is_empty) {
            return Err(net::invalid_url(url));
        }
        Ok(Self { request, head })
    }

    /// Sends the request over a connection and waits for the head of the answer.
    pub(super) async fn send(self, mut conn: Conn) -> Result<Answer, Broken> {
        let url = &self.request.url;
        let mut input = Input::default();
        let mut answered = false;
        let sent = async {
            let call = Call::new(self.head).map_err(|e| not_http(url, &e))?;
            let call = transmit(self.request, call, &mut conn).await?;
            receive(call, &mut conn, &mut input, url, &mut answered).await
        };
        match sent.await {
            Ok((head, next)) => Ok(Answer { head, next, conn, input }),
            Err(e) => Err(Broken { fault: net::broken(&e, url), answered }),
        }
    }
}

impl Answer {
    /// The headers, and how the body is compressed.
    ///
    /// # Errors
    /// A coding that was not asked for.
    pub(super) fn describe(&self, url: &str) -> Result<(Headers, Option<Coding>), IoFault> {
        let headers = self.head.headers();
        let coding = headers.get("content-encoding").map_or("", |value| value.to_str().unwrap_or("?"));
        let coding = Coding::parse(coding).map_err(|name| net::unknown_coding(url, name))?;
        let headers = headers.iter().map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        Ok((headers.collect(), coding))
    }
}

/// The error for what the protocol does not allow.
pub(super) fn not_http(url: &str, why: &ureq_proto::Error) -> io::Error {
    io::Error::other(net::not_http(url, &why.to_string()))
}

/// Sends head and body; small ones together.
async fn transmit(
    request: &HttpRequest,
    mut call: Call<Prepare>,
    conn: &mut Conn,
) -> io::Result<Call<RecvResponse>> {
    let refused = |e: ureq_proto::Error| not_http(&request.url, &e);
    if !request.body.is_empty() {
        call.force_send_body();
    }
    let mut call = call.proceed();
    let known: usize = request.headers.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
    let mut head = vec![0; known + request.url.len() * 2 + 512];
    let mut len = 0;
    while !call.can_proceed() {
        len += call.write(head.get_mut(len..).unwrap_or_default()).map_err(refused)?;
    }
    head.truncate(len);
    if let Some(rewritten) = conn.forward.as_ref().and_then(|forward| forward.rewrite(&head)) {
        head = rewritten;
    }
    let call = match call.proceed().map_err(refused)? {
        Some(SendRequestResult::SendBody(call)) => call,
        Some(SendRequestResult::Await100(call)) => match call.proceed().map_err(refused)? {
            Await100Result::SendBody(call) => call,
            Await100Result::RecvResponse(call) => {
                put(&head, conn).await?;
                return Ok(call);
            }
        },
        Some(SendRequestResult::RecvResponse(call)) => {
            put(&head, conn).await?;
            return Ok(call);
        }
        None => return Err(ErrorKind::InvalidInput.into()),
    };
    transmit_body(request, call, head, conn).await
}

/// `out` = the head, which leaves with the first piece.
async fn transmit_body(
    request: &HttpRequest,
    mut call: Call<SendBody>,
    mut out: Vec<u8>,
    conn: &mut Conn,
) -> io::Result<Call<RecvResponse>> {
    let mut rest = request.body.as_slice();
    while !call.can_proceed() {
        let start = out.len();
        // Room for the frame of a chunk, should the caller have asked for chunks.
        out.resize(start + rest.len().min(PIECE) + 64, 0);
        let piece = rest.get(..rest.len().min(PIECE)).unwrap_or_default();
        let (used, made) = call
            .write(piece, out.get_mut(start..).unwrap_or_default())
            .map_err(|e| not_http(&request.url, &e))?;
        if used == 0 && made == 0 {
            return Err(io::Error::other(net::invalid_request(request)));
        }
        out.truncate(start + made);
        rest = rest.get(used..).unwrap_or_default();
        put(&out, conn).await?;
        out.clear();
    }
    if !out.is_empty() {
        put(&out, conn).await?;
    }
    call.proceed().ok_or_else(|| ErrorKind::InvalidInput.into())
}

/// Sends, unless the server takes no more: it may have answered before it closed.
async fn put(bytes: &[u8], conn: &mut Conn) -> io::Result<()> {
    if conn.deaf {
        return Ok(());
    }
    match conn.wire.send(bytes).await {
        Err(e) if leftover::is_closed(&e) => {
            conn.deaf = true;
            Ok(())
        }
        other => other,
    }
}

/// Waits for the head of the answer.
async fn receive(
    mut call: Call<RecvResponse>,
    conn: &mut Conn,
    input: &mut Input,
    url: &str,
    answered: &mut bool,
) -> io::Result<(Response<()>, RecvResponseResult)> {
    loop {
        let (used, head) = call.try_response(input.rest(), false).map_err(|e| not_http(url, &e))?;
        input.consume(used);
        if let Some(head) = head {
            let next = call.proceed().ok_or(ErrorKind::InvalidData)?;
            return Ok((head, next));
        }
        if used > 0 {
            continue;
        }
        if input.len() >= LARGE {
            return Err(io::Error::other(net::large_head(url)));
        }
        if input.receive(&mut conn.wire).await? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        *answered = true;
    }
}
