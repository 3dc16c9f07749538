//! A model server on loopback that answers from a script and remembers what it was asked.
//!
//! One reply per request, in order; when the script is exhausted it answers 500. Bodies are sent chunked, each
//! [`Part::Bytes`] as one piece, so that a test decides where the client sees a cut.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// One piece of a reply's body.
#[derive(Clone, Debug)]
pub enum Part {
    /// Bytes, sent at once.
    Bytes(Vec<u8>),
    /// The same bytes many times, sent in pieces of about 64 kB: a long body costs no memory here.
    Repeat(Vec<u8>, usize),
    /// A pause.
    Pause(Duration),
    /// Nothing more comes, the connection stays open until the client leaves.
    Stall,
    /// The connection is closed in the middle of the body.
    Close,
    /// Nothing more comes until the test opens the gate.
    Gate(Gate),
}

/// A place in a reply where the server waits for the test.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Debug, Default)]
struct GateState {
    reached: bool,
    open: bool,
}

impl Gate {
    /// Lets the server go on.
    pub fn open(&self) {
        self.change(|state| state.open = true);
    }

    /// Waits until the server stands at the gate.
    ///
    /// # Panics
    /// When it does not come within 20 s.
    pub fn wait_reached(&self) {
        assert!(self.wait(|state| state.reached), "the server did not reach the gate");
    }

    fn change(&self, change: impl FnOnce(&mut GateState)) {
        change(&mut lock(&self.0.0));
        self.0.1.notify_all();
    }

    fn wait(&self, holds: impl Fn(&GateState) -> bool) -> bool {
        let limit = Duration::from_secs(20);
        let waited = self.0.1.wait_timeout_while(lock(&self.0.0), limit, |state| !holds(state));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

/// One reply.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// Headers beside `transfer-encoding`.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub parts: Vec<Part>,
}

impl Reply {
    /// A 200 reply of server-sent events, one piece each.
    #[must_use]
    pub fn events<'a>(events: impl IntoIterator<Item = &'a Value>) -> Self {
        let parts = events.into_iter().map(|event| Part::Bytes(format!("data: {event}\n\n").into_bytes()));
        Self::stream(parts.collect())
    }

    /// A 200 event stream of arbitrary parts.
    #[must_use]
    pub fn stream(parts: Vec<Part>) -> Self {
        Self { status: 200, headers: vec![("content-type".into(), "text/event-stream".into())], parts }
    }

    /// A failure with an error object as OpenAI-like services send it.
    #[must_use]
    pub fn error(status: u16, message: &str) -> Self {
        let body = json!({"error": {"message": message}}).to_string();
        Self {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            parts: vec![Part::Bytes(body.into_bytes())],
        }
    }

    /// A JSON reply.
    #[must_use]
    pub fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            parts: vec![Part::Bytes(body.to_string().into_bytes())],
        }
    }

    /// Sends the whole body at once.
    #[must_use]
    pub fn at_once(mut self) -> Self {
        let mut joined = Vec::new();
        for part in std::mem::take(&mut self.parts) {
            match (part, joined.last_mut()) {
                (Part::Bytes(more), Some(Part::Bytes(bytes))) => bytes.extend(more),
                (part, _) => joined.push(part),
            }
        }
        Self { parts: joined, ..self }
    }

    /// Adds a part.
    #[must_use]
    pub fn then(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }
}

/// Replies of the `openai-completions` protocol.
pub mod openai {
    use super::{Part, Reply, Value, json};

    fn chunk(delta: &Value, finish: &Value) -> Value {
        json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m1",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        })
    }

    /// A text of `times` equal pieces.
    #[must_use]
    pub fn long_text(piece: &str, times: usize) -> Reply {
        let event = format!("data: {}\n\n", chunk(&json!({"content": piece}), &Value::Null));
        let end = text("");
        let mut parts = vec![Part::Repeat(event.into_bytes(), times)];
        parts.extend(end.parts.iter().cloned());
        Reply { parts, ..end }
    }

    fn usage() -> Value {
        json!({
            "id": "chatcmpl-1", "choices": [],
            "usage": {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19},
        })
    }

    fn done() -> Part {
        Part::Bytes(b"data: [DONE]\n\n".to_vec())
    }

    /// A text in pieces.
    #[must_use]
    pub fn texts(pieces: &[&str]) -> Reply {
        let mut events: Vec<Value> =
            pieces.iter().map(|piece| chunk(&json!({"content": piece}), &Value::Null)).collect();
        events.push(chunk(&json!({}), &json!("stop")));
        events.push(usage());
        Reply::events(&events).then(done())
    }

    /// A text in one piece.
    #[must_use]
    pub fn text(text: &str) -> Reply {
        texts(&[text])
    }

    /// Tool calls: id, name and arguments.
    #[must_use]
    pub fn calls(calls: &[(&str, &str, Value)]) -> Reply {
        let mut events = Vec::new();
        for (index, (id, name, args)) in calls.iter().enumerate() {
            let call = json!({"tool_calls": [{
                "index": index, "id": id, "type": "function",
                "function": {"name": name, "arguments": args.to_string()},
            }]});
            events.push(chunk(&call, &Value::Null));
        }
        events.push(chunk(&json!({}), &json!("tool_calls")));
        events.push(usage());
        Reply::events(&events).then(done())
    }

    /// A text that begins and never goes on.
    #[must_use]
    pub fn stalled(text: &str) -> Reply {
        Reply::events(&[chunk(&json!({"content": text}), &Value::Null)]).then(Part::Stall)
    }

    /// A text that ended at the output limit.
    #[must_use]
    pub fn cut(text: &str) -> Reply {
        let events =
            [chunk(&json!({"content": text}), &Value::Null), chunk(&json!({}), &json!("length")), usage()];
        Reply::events(&events).then(done())
    }
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// `POST` …
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, `null` when it is not JSON.
    pub body: Value,
    /// The body as it came.
    pub raw: Vec<u8>,
    /// When its head was read.
    pub at: Instant,
}

impl Request {
    /// The first header of this name (lower case).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// Roles of the messages, in order.
    #[must_use]
    pub fn roles(&self) -> Vec<&str> {
        self.messages().iter().filter_map(|message| message["role"].as_str()).collect()
    }

    /// Texts of the user messages.
    #[must_use]
    pub fn users(&self) -> Vec<String> {
        self.texts("user")
    }

    /// Texts of the messages of one role.
    #[must_use]
    pub fn texts(&self, role: &str) -> Vec<String> {
        let of_role = self.messages().iter().filter(|message| message["role"] == role);
        of_role.map(|message| text_of(&message["content"])).collect()
    }

    fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    }
}

#[derive(Default)]
struct Shared {
    script: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Request>>,
    arrived: Condvar,
    stop: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// The running server; ends when dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server on a free port.
    ///
    /// # Panics
    /// When no port can be opened on loopback.
    #[must_use]
    pub fn start(script: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("loopback: {e}"));
        let address = listener.local_addr().unwrap_or_else(|e| panic!("loopback: {e}"));
        let shared =
            Arc::new(Shared { script: Mutex::new(script.into_iter().collect()), ..Shared::default() });
        let for_thread = Arc::clone(&shared);
        let acceptor = thread::spawn(move || accept(&listener, &for_thread));
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// `http://127.0.0.1:<port>`
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds replies.
    pub fn script(&self, replies: impl IntoIterator<Item = Reply>) {
        lock(&self.shared.script).extend(replies);
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.requests).clone()
    }

    /// Waits until `count` requests came.
    ///
    /// # Panics
    /// When they do not come within 20 s.
    pub fn wait(&self, count: usize) {
        let requests = lock(&self.shared.requests);
        let limit = Duration::from_secs(20);
        let waited = self.shared.arrived.wait_timeout_while(requests, limit, |list| list.len() < count);
        let (requests, _) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(requests.len() >= count, "{} of {count} requests came", requests.len());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        for stream in lock(&self.shared.open).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        if let Ok(copy) = stream.try_clone() {
            lock(&shared.open).push(copy);
        }
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            let _ = serve(&stream, &shared);
            let _ = stream.shutdown(Shutdown::Both);
        });
    }
}

/// Answers the requests of one connection until either side ends it.
fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream);
    while let Some(request) = read_request(&mut input)? {
        let exhausted = || Reply::error(500, "the script is exhausted");
        let reply = lock(&shared.script).pop_front().unwrap_or_else(exhausted);
        lock(&shared.requests).push(request);
        shared.arrived.notify_all();
        if !write_reply(stream, &reply)? {
            return Ok(());
        }
    }
    Ok(())
}

fn read_request(input: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let at = Instant::now();
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        input.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let header = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str());
    let mut body = Vec::new();
    if header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
        while let Some(chunk) = read_chunk(input)? {
            body.extend(chunk);
        }
    } else {
        let length = header("content-length").and_then(|value| value.parse().ok()).unwrap_or(0);
        input.take(length).read_to_end(&mut body)?;
    }
    let raw = body;
    let body = serde_json::from_slice(&raw).unwrap_or_default();
    Ok(Some(Request { method, path, headers, body, raw, at }))
}

fn read_chunk(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let length = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
    let mut chunk = vec![0; length + 2];
    input.read_exact(&mut chunk)?;
    chunk.truncate(length);
    Ok((length > 0).then_some(chunk))
}

/// Sends a reply; `false` when the connection must end.
fn write_reply(mut stream: &TcpStream, reply: &Reply) -> io::Result<bool> {
    let mut head = format!("HTTP/1.1 {} Status\r\ntransfer-encoding: chunked\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes())?;
    for part in &reply.parts {
        match part {
            Part::Bytes(bytes) if bytes.is_empty() => {}
            Part::Bytes(bytes) => write_chunk(stream, bytes)?,
            Part::Repeat(bytes, times) => repeat(stream, bytes, *times)?,
            Part::Pause(time) => thread::sleep(*time),
            Part::Stall => {
                let _ = stream.read(&mut [0; 1]);
                return Ok(false);
            }
            Part::Close => return Ok(false),
            Part::Gate(gate) => {
                gate.change(|state| state.reached = true);
                if !gate.wait(|state| state.open) {
                    return Ok(false);
                }
            }
        }
    }
    stream.write_all(b"0\r\n\r\n")?;
    Ok(true)
}

fn write_chunk(mut stream: &TcpStream, bytes: &[u8]) -> io::Result<()> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    stream.write_all(&chunk)
}

fn repeat(stream: &TcpStream, bytes: &[u8], times: usize) -> io::Result<()> {
    let at_once = (64 << 10) / bytes.len().max(1) + 1;
    let piece = bytes.repeat(at_once.min(times));
    let mut left = times * bytes.len();
    while left > 0 {
        let now = piece.len().min(left);
        write_chunk(stream, &piece[..now])?;
        left -= now;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_in_order_and_remembers() {
        let server = Server::start([openai::text("hi"), Reply::error(429, "slow down")]);
        let mut stream = TcpStream::connect(server.address).unwrap();
        let body = r#"{"messages":[{"role":"user","content":"hello"}]}"#;
        let ask = format!("POST /v1/x HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(ask.repeat(2).as_bytes()).unwrap();
        server.wait(2);
        let mut answers = String::new();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_to_string(&mut answers).unwrap();
        assert!(answers.contains("\"content\":\"hi\"") && answers.contains("HTTP/1.1 429"));
        let requests = server.requests();
        assert_eq!((requests[0].path.as_str(), requests[1].users()), ("/v1/x", vec!["hello".to_owned()]));
    }
}
