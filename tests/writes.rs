//! Writes of the session that fail, or take their time while something else happens.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use serde_json::json;
use tau_core::agent::AgentConfig;
use tau_core::event::Event;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::harness::DeskBoot;
use tau_core::hub::{Boot, Hub, Output};
use tau_core::ids::OpId;
use tau_core::input::{Command, Input, QueueMode, Reply};
use tau_core::model::{Model, ThinkingLevel};
use tau_core::now::{Mono, Now, Wall};
use tau_core::op::{AppendOp, Credential, Op, Outcome, Stream};
use tau_core::provider::RequestOptions;
use tau_core::session::reader::{self, Want};
use tau_core::session::{Header, Session};
use tau_core::settings::{self, Scope, Source};
use tau_core::tools::ToolEnv;

const NOW: Now = Now { mono: Mono(5), wall: Wall(1_788_315_987_887) };
const PATH: &str = "/s/session.jsonl";

/// A hub with a file of which the test decides.
struct Life {
    hub: Hub,
    file: Vec<u8>,
    /// The write that is under way.
    write: Option<(OpId, AppendOp)>,
    events: Vec<Event>,
    /// What the model says next; the last answer repeats.
    answers: Vec<&'static str>,
}

impl Life {
    fn new() -> Self {
        let text = r#"{"compaction": {"keepRecentTokens": 1}}"#;
        let source = Source { scope: Scope::Global, path: "settings.json", text: Ok(Some(text)) };
        let model = Model {
            id: "m1".into(),
            api: "openai-completions".into(),
            provider: "mock".into(),
            base_url: "http://mock.invalid/v1".into(),
            text_input: true,
            context_window: 100_000,
            max_tokens: 4_000,
            ..Model::default()
        };
        let desk = DeskBoot {
            session: Session::new(Header::new("s".into(), NOW.wall, "/w".into(), None), Some(PATH.into())),
            model: Arc::new(model),
            thinking: ThinkingLevel::Off,
            tools: Vec::new(),
            prompt: vec![("base".into(), "You are a test.".into())],
            config: AgentConfig::default(),
            settings: Arc::new(settings::load(&[source]).0),
            steering_mode: QueueMode::OneAtATime,
            follow_up_mode: QueueMode::OneAtATime,
        };
        let env = Arc::new(ToolEnv { cwd: "/w".into(), ..ToolEnv::default() });
        let boot = Boot { seed: [7; 32], desk, env, options: RequestOptions::default(), block_images: false };
        let hub = Hub::new(boot, NOW);
        Self { hub, file: Vec::new(), write: None, events: Vec::new(), answers: vec!["fine"] }
    }

    fn command(&mut self, command: Command) {
        self.hub.command(NOW, command).unwrap();
        self.go_on();
    }

    fn prompt(&mut self, text: &str) {
        self.command(Command::Prompt { text: text.into(), images: Vec::new() });
    }

    fn reply(&mut self, op: OpId, reply: Reply) {
        self.hub.handle(NOW, Input::Reply { op, reply });
    }

    /// Answers everything but writes.
    fn go_on(&mut self) {
        while let Some(output) = self.hub.poll() {
            match output {
                Output::Event(event) => self.events.push(event),
                Output::Start { op, what: Op::Append(append) } => {
                    assert!(self.write.is_none(), "two writes at once");
                    self.write = Some((op, append));
                }
                Output::Start { op, what: Op::Secret(_) } => {
                    let credential = Credential { api_key: Some("k".into()), ..Credential::default() };
                    self.reply(op, Reply::Done(Outcome::Secret(Ok(credential))));
                }
                Output::Start { op, what: Op::Http(_) } => self.answer(op),
                Output::Start { what, .. } => panic!("unexpected op {what:?}"),
                Output::Cancel { .. } => {}
            }
        }
    }

    fn answer(&mut self, op: OpId) {
        let text = if self.answers.len() > 1 { self.answers.remove(0) } else { self.answers[0] };
        let delta = json!({"content": text});
        let chunk = json!({"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]});
        let headers = vec![("content-type".into(), "text/event-stream".into())];
        self.reply(op, Reply::Head { status: 200, headers });
        let bytes = format!("data: {chunk}\n\ndata: [DONE]\n\n").into_bytes();
        self.reply(op, Reply::Chunk { stream: Stream::Body, bytes });
        self.reply(op, Reply::Done(Outcome::BodyEnd));
    }

    /// The write under way gets into the file.
    fn store(&mut self) {
        let (op, append) = self.write.take().unwrap();
        self.file.extend_from_slice(&append.bytes);
        let len = self.file.len() as u64;
        self.reply(op, Reply::Done(Outcome::Appended { len, foreign: false }));
        self.go_on();
    }

    /// The write under way fails.
    fn lose(&mut self) {
        let (op, _) = self.write.take().unwrap();
        self.reply(op, Reply::Failed(IoFault::new(FaultKind::NoSpace, "no space left")));
        self.go_on();
    }

    fn store_all(&mut self) {
        while self.write.is_some() {
            self.store();
        }
    }

    /// What somebody finds who opens the file now: the session, as messages of its last branch.
    fn reopened(&self) -> Vec<String> {
        let (session, _) = reader::open(&self.file, PATH.into(), "/w", Want::default()).unwrap();
        session.context().messages.iter().map(|message| message.role().to_owned()).collect()
    }

    fn compactions(&self) -> Vec<(bool, bool)> {
        let end = |event: &Event| match event {
            Event::CompactionEnd { result, aborted, .. } => Some((result.is_some(), *aborted)),
            _ => None,
        };
        self.events.iter().filter_map(end).collect()
    }
}

/// A line never gets into the file before the one above it: whoever opens a file that ends there would find an entry
/// without its history.
#[test]
fn what_follows_a_failed_write_waits_for_it() {
    let mut life = Life::new();
    life.prompt("one");
    life.store_all();
    life.command(Command::SetName("first".into()));
    life.command(Command::SetName("second".into()));
    life.lose();
    assert!(life.write.is_none(), "the second line would stand above the first");
    assert_eq!(life.reopened(), ["system", "user", "assistant"]);
    // One word about it, not one for each line.
    let errors = life.events.iter().filter(|event| matches!(event, Event::Error(_))).count();
    assert_eq!(errors, 1);
    life.command(Command::SetName("third".into()));
    let lines = String::from_utf8_lossy(&life.write.as_ref().unwrap().1.bytes).into_owned();
    let order = ["first", "second", "third"].map(|name| lines.find(name).unwrap());
    assert!(order.is_sorted(), "{lines}");
    life.store_all();
    assert_eq!(life.reopened(), ["system", "user", "assistant"]);
    assert!(life.hub.is_idle() && !life.hub.desk().session().is_dirty());
}

/// Lines that wait are tried once more when the program ends.
#[test]
fn the_end_writes_what_could_not_be_written() {
    let mut life = Life::new();
    life.prompt("one");
    life.store_all();
    life.command(Command::SetName("a name".into()));
    life.lose();
    life.command(Command::Shutdown);
    assert!(!life.events.iter().any(|event| matches!(event, Event::Closed)), "closed before the write");
    life.store();
    assert!(String::from_utf8_lossy(&life.file).contains("a name"));
    assert!(matches!(life.events.last(), Some(Event::Closed)));
}

/// While the entry of a compaction is written, other entries are added below it: it was made all the same.
#[test]
fn a_name_set_while_a_compaction_is_stored() {
    let mut life = Life::new();
    life.prompt("one");
    life.store_all();
    life.answers = vec!["a summary"];
    life.command(Command::Compact { focus: None });
    life.command(Command::SetName("a name".into()));
    life.store_all();
    assert_eq!(life.compactions(), [(true, false)]);
    let compacted = life.hub.desk().compacted().unwrap().as_ref().unwrap();
    assert!(compacted.summary.contains("a summary"));
    assert_eq!(life.reopened()[..2], ["system", "compactionSummary"]);
}

/// The same for a branch that is left: the summary is the one that was made.
#[test]
fn a_name_set_while_a_branch_summary_is_stored() {
    let mut life = Life::new();
    life.prompt("one");
    life.store_all();
    life.prompt("two");
    life.store_all();
    let tree = life.hub.desk().session().tree();
    let target = tree.slots().find(|slot| tree.parent(*slot).is_none()).map(|slot| tree.id(slot).to_owned());
    life.answers = vec!["a summary"];
    let summary = Some(tau_core::harness::SummaryWish::default());
    life.command(Command::Navigate { target: target.unwrap(), summary, label: None });
    life.command(Command::SetName("a name".into()));
    life.store_all();
    let moved = life.hub.desk().moved().unwrap().as_ref().unwrap();
    assert!(moved.summary.is_some());
    assert_eq!(moved.leaf, moved.summary);
    assert_eq!(life.reopened(), ["branchSummary"]);
}

/// A compaction whose entry cannot be stored did not happen.
#[test]
fn a_compaction_that_cannot_be_stored_changes_nothing() {
    let mut life = Life::new();
    life.prompt("one");
    life.store_all();
    life.answers = vec!["a summary"];
    life.command(Command::Compact { focus: None });
    life.lose();
    assert_eq!(life.compactions(), [(false, false)]);
    assert_eq!(life.hub.desk().compacted().unwrap().as_ref().unwrap_err().code, "summary_not_stored");
    life.prompt("two");
    life.store_all();
    // Its line came into the file with the next one, on a branch of its own.
    assert!(String::from_utf8_lossy(&life.file).contains("a summary"));
    assert_eq!(life.reopened(), ["system", "user", "assistant", "user", "assistant"]);
}
