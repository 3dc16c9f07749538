//! Thousands of agents on one thread, against a model server in a process of its own: all finish, and what an agent
//! costs is reported.
//!
//! By default a few hundred, so that it runs with the other tests. The goals (`docs/performance.md`) are checked with
//!
//! ```sh
//! TAU_SOAK_AGENTS=10000 TAU_SOAK_STREAMS=2000 cargo test --profile quick -p tau-io-smol \
//!     --no-default-features --test soak -- --nocapture
//! ```

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use smol::io::{AsyncReadExt, AsyncWriteExt};
use smol::{Async, Executor, Timer};
use tau_core::event::{Event, MessageUpdate};
use tau_core::hub::Hub;
use tau_core::input::Command as Order;
use tau_core::message::{Message, StopReason};
use tau_io_smol::http::Client;
use tau_io_smol::{Control, drive};
use tau_io_std::embed::{HostTool, Options};
use tau_io_std::machine::SinkFlow;
use tau_io_std::sys::clock::Clock;

/// Time between two deltas of a stream.
const BEAT: Duration = Duration::from_millis(50);

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn micros() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()
}

// ----- the model server -----

/// One answer: two rounds of a tool for a prompt that begins with `tools`, else a text of `deltas` beats. Each delta
/// is the time when it was sent.
async fn answer(socket: &mut Async<std::net::TcpStream>, body: &str, deltas: usize) -> std::io::Result<()> {
    let chunk = |delta: &str, finish: &str| {
        let event = format!(
            r#"data: {{"id":"c","object":"chat.completion.chunk","created":1,"model":"m1","choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#
        );
        format!("{:x}\r\n{event}\n\n\r\n", event.len() + 2)
    };
    let end = |reason: &str| format!("{}e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n", chunk("{}", reason));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let rounds = body.matches(r#""role":"tool""#).count();
    if body.contains("tools, please") && rounds < 2 {
        let call = format!(
            r#"{{"tool_calls":[{{"index":0,"id":"call-{rounds}","type":"function","function":{{"name":"note","arguments":"{{}}"}}}}]}}"#
        );
        let all = format!("{head}{}{}", chunk(&call, "null"), end(r#""tool_calls""#));
        return socket.write_all(all.as_bytes()).await;
    }
    socket.write_all(head.as_bytes()).await?;
    // Streams do not beat together.
    static STREAMS: AtomicU64 = AtomicU64::new(0);
    let phase = STREAMS.fetch_add(7919, Ordering::Relaxed) % 50_000;
    let mut beat = Instant::now() + Duration::from_micros(phase);
    for _ in 0..deltas {
        beat += BEAT;
        Timer::at(beat).await;
        let delta = format!(r#"{{"content":"{};"}}"#, micros());
        socket.write_all(chunk(&delta, "null").as_bytes()).await?;
    }
    socket.write_all(end(r#""stop""#).as_bytes()).await
}

async fn serve(mut socket: Async<std::net::TcpStream>, deltas: usize) -> std::io::Result<()> {
    let mut input = Vec::new();
    let mut piece = vec![0; 16 << 10];
    loop {
        let head = loop {
            if let Some(end) = input.windows(4).position(|w| w == b"\r\n\r\n") {
                break end + 4;
            }
            let n = socket.read(&mut piece).await?;
            if n == 0 {
                return Ok(());
            }
            input.extend_from_slice(&piece[..n]);
        };
        let text = String::from_utf8_lossy(&input[..head]).to_ascii_lowercase();
        let len = text.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next());
        let len: usize = len.unwrap().parse().unwrap();
        while input.len() < head + len {
            let n = socket.read(&mut piece).await?;
            if n == 0 {
                return Ok(());
            }
            input.extend_from_slice(&piece[..n]);
        }
        let body = String::from_utf8_lossy(&input[head..head + len]).into_owned();
        input.drain(..head + len);
        answer(&mut socket, &body, deltas).await?;
    }
}

#[test]
#[ignore = "the server of `agents_on_one_thread`"]
fn model_server() {
    let deltas = number("TAU_SOAK_DELTAS", 20);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    println!("port {}", listener.local_addr().unwrap().port());
    let executor = Arc::new(Executor::new());
    let spawner = Arc::clone(&executor);
    // A thread of its own takes connections: thousands come at once, and the kernel keeps few waiting.
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            socket.set_nodelay(true).unwrap();
            spawner.spawn(serve(Async::new(socket).unwrap(), deltas)).detach();
        }
    });
    smol::block_on(executor.run(smol::future::pending::<()>()));
}

struct Server(Child, u16);

impl Server {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "model_server", "--ignored", "--nocapture"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines
            .map_while(Result::ok)
            .find_map(|line| line.split("port ").nth(1).and_then(|port| port.parse().ok()))
            .unwrap();
        Self(child, port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

// ----- the agents -----

/// What the sinks of all agents tell.
#[derive(Default)]
struct Told {
    settled: AtomicUsize,
    failed: AtomicUsize,
    tool_calls: AtomicUsize,
    /// From the server's write to the sink, µs.
    delays: Mutex<Vec<u32>>,
}

impl Told {
    fn event(&self, event: &Event) {
        match event {
            Event::AgentSettled { .. } => drop(self.settled.fetch_add(1, Ordering::SeqCst)),
            Event::ToolEnd { .. } => drop(self.tool_calls.fetch_add(1, Ordering::SeqCst)),
            Event::MessageEnd(message) => {
                let Message::Assistant(reply) = &**message else { return };
                let failed = matches!(reply.stop_reason, StopReason::Error | StopReason::Aborted);
                if failed && self.failed.fetch_add(1, Ordering::SeqCst) < 5 {
                    println!("failed: {:?}", reply.error_message);
                }
            }
            Event::MessageUpdate { update: MessageUpdate::TextDelta { delta, .. }, .. } => {
                let now = micros();
                let sent = delta.split(';').filter_map(|at| at.parse::<u128>().ok());
                let delays = sent.map(|at| u32::try_from(now.saturating_sub(at)).unwrap_or(u32::MAX));
                self.delays.lock().unwrap().extend(delays);
            }
            _ => {}
        }
    }
}

/// Memory of this process, kB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// CPU time of this process, s.
fn busy() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

type Agent = Control<Hub>;

fn agent(
    port: u16,
    http: &Arc<Client>,
    told: &Arc<Told>,
) -> (Agent, impl Future<Output = ()> + Send + use<>) {
    let note = HostTool::new("note", "Takes a note.", r#"{"type":"object"}"#, |_| Ok("noted".into()));
    let options = Options::server(&format!("http://127.0.0.1:{port}/v1"), "openai-completions", "m1")
        .key("k")
        .cwd("/")
        .host_tool(note);
    let parts = options.into_parts().unwrap();
    let clock = Clock::start();
    let told = Arc::clone(told);
    let sink = move |event: &Event, _: &Hub| {
        told.event(event);
        SinkFlow::Go
    };
    drive(Hub::new(parts.boot, clock.now()), clock, parts.handlers, Arc::clone(http), sink)
}

/// Prompts some agents, fifty at a time, and waits until all have settled; gives the most memory meanwhile, kB.
async fn prompt(agents: &[Agent], text: &str, pace: Duration, told: &Told) -> usize {
    let before = told.settled.load(Ordering::SeqCst);
    let mut most = 0;
    let start = Instant::now();
    for some in agents.chunks(50) {
        for agent in some {
            agent.command(Order::Prompt { text: text.into(), images: Vec::new() });
        }
        Timer::after(pace).await;
    }
    while told.settled.load(Ordering::SeqCst) < before + agents.len() {
        assert!(start.elapsed() < Duration::from_secs(300), "agents hang");
        Timer::after(Duration::from_millis(25)).await;
        most = most.max(resident());
    }
    most
}

fn percentile(sorted: &[u32], part: f64) -> f64 {
    let at = (sorted.len() as f64 * part) as usize;
    f64::from(sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)) / 1000.0
}

#[test]
#[ignore = "run by `agents_on_one_thread` in a process of its own"]
fn agents() {
    let (count, streams) = (number("TAU_SOAK_AGENTS", 300), number("TAU_SOAK_STREAMS", 100));
    let server = Server::start();
    let executor = Executor::new();
    let (http, told) = (Arc::new(Client::new()), Arc::new(Told::default()));
    smol::block_on(executor.run(async {
        // What is made once is made before measuring.
        let (warm, driver) = agent(server.1, &http, &told);
        println!("a driver's future: {} bytes", size_of_val(&driver));
        executor.spawn(driver).detach();
        prompt(&[warm], "tools, please", Duration::ZERO, &told).await;

        let before = resident();
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            let (control, driver) = agent(server.1, &http, &told);
            executor.spawn(driver).detach();
            all.push(control);
        }
        Timer::after(Duration::from_millis(200)).await;
        let idle = resident();
        let per = |later: usize, earlier: usize, of: usize| later.saturating_sub(earlier) as f64 / of as f64;
        println!("{count} idle agents: {:.1} kB each", per(idle, before, count));

        let start = Instant::now();
        let most = prompt(&all, "tools, please", Duration::ZERO, &told).await;
        println!(
            "two tool turns of all: {:.1} s, at most {:.1} kB each",
            start.elapsed().as_secs_f64(),
            per(most, before, count)
        );
        let after = resident();
        println!("idle again, with their history: {:.1} kB each", per(after, before, count));
        assert_eq!(told.tool_calls.load(Ordering::SeqCst), 2 * (count + 1));

        told.delays.lock().unwrap().clear();
        let (start, cpu) = (Instant::now(), busy());
        let most = prompt(&all[..streams.min(count)], "a text", BEAT, &told).await;
        let mut delays = std::mem::take(&mut *told.delays.lock().unwrap());
        delays.sort_unstable();
        println!(
            "{streams} streams of 20 deltas/s: {:.1} s CPU in {:.1} s, {:.1} kB more each; {} deltas, delay p50 {:.1} \
             p99 {:.1} max {:.1} ms",
            busy() - cpu,
            start.elapsed().as_secs_f64(),
            per(most, after, streams),
            delays.len(),
            percentile(&delays, 0.5),
            percentile(&delays, 0.99),
            percentile(&delays, 1.0)
        );
        assert_eq!(told.failed.load(Ordering::SeqCst), 0);
        assert!(delays.len() >= streams.min(count) * 10);
        for agent in &all {
            agent.stop();
        }
    }));
}

#[test]
fn agents_on_one_thread() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "agents", "--ignored", "--nocapture"])
        // Credentials and tools are asked for on the pool; they are quick here.
        .env("BLOCKING_MAX_THREADS", "4")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{told}");
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("1 passed"), "{told}");
}
