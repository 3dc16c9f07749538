//! The core in a loop of one's own: no backend, no network. A host tool and the demo model do the work.
//!
//! `cargo run -p tau-core --example minimal_core_loop`

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tau_core::agent::AgentConfig;
use tau_core::event::{Event, MessageUpdate};
use tau_core::fault::{FaultKind, IoFault};
use tau_core::harness::DeskBoot;
use tau_core::hub::{Boot, Hub, Output};
use tau_core::input::{Command, Input, QueueMode, Reply};
use tau_core::model::{Model, ThinkingLevel};
use tau_core::now::{Mono, Now, Wall};
use tau_core::op::{Op, Outcome};
use tau_core::provider::RequestOptions;
use tau_core::session::{Header, Session};
use tau_core::tools::{ExecutionMode, Runner, Tool, ToolEnv, ToolOutput};

fn main() {
    let start = Instant::now();
    let now = || Now {
        mono: Mono(u64::try_from(start.elapsed().as_millis()).unwrap_or(0)),
        wall: Wall(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64)),
    };
    let mut hub = Hub::new(boot(now()), now());
    hub.handle(now(), Input::Command(Command::Prompt { text: "Show me around.".into(), images: Vec::new() }));
    let mut replies = VecDeque::new();
    loop {
        while let Some(output) = hub.poll() {
            match output {
                Output::Event(event) => show(&event),
                // A real driver would begin the op and answer later; nothing here takes time.
                Output::Start { op, what } => replies.push_back((op, answer(what))),
                Output::Cancel { op } => replies.push_back((op, Reply::Failed(IoFault::cancelled()))),
            }
        }
        // A real driver would wait here for replies, commands or `hub.poll_timeout()`.
        match replies.pop_front() {
            Some((op, reply)) => hub.handle(now(), Input::Reply { op, reply }),
            None => break,
        }
    }
}

fn answer(op: Op) -> Reply {
    match op {
        Op::Host(call) => {
            Reply::Done(Outcome::Host(ToolOutput::text(format!("{} ran with {}", call.tool, call.args))))
        }
        other => Reply::Failed(IoFault::new(FaultKind::Other, format!("this program does not do {other:?}"))),
    }
}

fn show(event: &Event) {
    match event {
        Event::MessageUpdate { update: MessageUpdate::TextDelta { delta, .. }, .. } => print!("{delta}"),
        Event::ToolStart { name, args, .. } => println!("\n[{name} {args}]"),
        Event::TurnEnd { .. } => println!(),
        _ => {}
    }
}

fn boot(now: Now) -> Boot {
    let model = Model { id: "tour".into(), provider: "demo".into(), api: "demo".into(), ..Model::default() };
    let tool = Tool {
        name: "bash".into(),
        label: "Host shell".into(),
        description: "Pretends to run a command".into(),
        prompt_snippet: None,
        prompt_rules: Vec::new(),
        parameters: Arc::new(tau_core::json::Value::Object(tau_core::json::Map::new())),
        mode: ExecutionMode::Parallel,
        prepare: None,
        run: Runner::Host,
    };
    let header = Header::new("embedded".into(), now.wall, "/".into(), None);
    Boot {
        seed: [7; 32],
        desk: DeskBoot {
            session: Session::new(header, None),
            model: Arc::new(model),
            thinking: ThinkingLevel::Off,
            tools: vec![Arc::new(tool)],
            prompt: vec![("base".into(), "You are embedded.".into())],
            config: AgentConfig::default(),
            steering_mode: QueueMode::OneAtATime,
            settings: Arc::default(),
            follow_up_mode: QueueMode::OneAtATime,
        },
        env: Arc::new(ToolEnv::default()),
        options: RequestOptions::default(),
        block_images: false,
    }
}
