//! Traces of the session layer: the Desk alone, with a clock that jumps to the next deadline.

use std::collections::VecDeque;
use std::sync::Arc;

use super::script::{Bench, Next, Playing, Triggers, aborted, failed, list, text};
use super::show::Shower;
use super::state;
use serde_json::{Value, json};
use tau_core::agent::AgentConfig;
use tau_core::convert::{Memo, to_llm};
use tau_core::entropy::Entropy;
use tau_core::event::Event;
use tau_core::fault::Fault;
use tau_core::harness::{Cx, Desk, DeskBoot, Want};
use tau_core::input::{Command, Deliver, HostNote, QueueMode};
use tau_core::message::{AssistantMessage, BashExecution, Content, CustomMessage, Message, StopReason, Text};
use tau_core::model::{Model, ThinkingLevel};
use tau_core::now::{Mono, Now, Wall};
use tau_core::session::{Header, Session};
use tau_core::settings::{self, Scope, Settings, Source};

/// What came of a script.
#[derive(Debug)]
pub struct Played {
    /// Events, and markers in parentheses between them.
    pub events: Vec<Value>,
    /// What the session holds at the end.
    pub last: Value,
}

/// Plays the script of a session.
///
/// # Errors
/// When the Desk is stuck or does not come to an end.
pub fn play(input: &Value) -> Result<Played, String> {
    let mut world = World::new(input)?;
    for op in list(&input["ops"]) {
        world.op(op);
        world.drive()?;
        if op["op"] == "compact" && matches!(world.desk.compacted(), Some(Err(_))) {
            world.log.push(json!({"type": "(rejected)", "op": "compact"}));
        }
    }
    let last = world.final_state();
    Ok(Played { events: world.log, last })
}

struct World<'a> {
    input: &'a Value,
    desk: Desk,
    wants: VecDeque<Want>,
    rng: Entropy,
    ms: u64,
    log: Vec<Value>,
    show: Shower,
    responses: VecDeque<&'a Value>,
    requests: u64,
    stream: Option<Playing>,
    /// The wait that the service asks for with its failure.
    asked_ms: Option<f64>,
    /// A summary was asked for; whether it was cancelled before the request was made.
    summary: Option<bool>,
    bench: Bench,
    triggers: Triggers,
    abort_when_waiting: bool,
}

impl<'a> World<'a> {
    fn new(input: &'a Value) -> Result<Self, String> {
        let mut bench = Bench::default();
        let tools = bench.add(list(&input["tools"]));
        let mut show = Shower::of_sessions();
        show.know_tools(list(&input["tools"]));
        for response in list(&input["responses"]) {
            show.know(response["errorMessage"].as_str().map(str::to_owned));
            show.know(list(&response["content"]).iter().map(|block| text(&block["text"]).to_owned()));
        }
        let boot = DeskBoot {
            session: Session::new(Header::new("trace".into(), Wall(1), "/w".into(), None), None),
            model: Arc::new(model(input, "m1")),
            thinking: ThinkingLevel::Off,
            tools,
            // Four tokens with the second section, as in the recordings.
            prompt: vec![
                ("preamble".into(), Text::from(input["systemPrompt"].as_str().unwrap_or("You are"))),
                ("cwd".into(), Text::from("in /the/work")),
            ],
            config: AgentConfig::default(),
            settings: Arc::new(settings(&input["settings"])?),
            steering_mode: QueueMode::default(),
            follow_up_mode: QueueMode::default(),
        };
        let (mut rng, mut wants) = (Entropy::new([7; 32]), Vec::new());
        let now = Now { mono: Mono(1_000), wall: Wall(1_700_000_000_000) };
        let desk = Desk::new(boot, &mut Cx { now, rng: &mut rng, out: &mut wants });
        Ok(Self {
            input,
            desk,
            wants: wants.into(),
            rng,
            ms: 1_000,
            log: Vec::new(),
            show,
            responses: list(&input["responses"]).iter().collect(),
            requests: 0,
            stream: None,
            asked_ms: None,
            summary: None,
            bench,
            triggers: Triggers::default(),
            abort_when_waiting: false,
        })
    }

    fn now(&mut self) -> Now {
        self.ms += 1;
        Now { mono: Mono(self.ms), wall: Wall(1_700_000_000_000 + self.ms as i64) }
    }

    /// Lets the Desk do something; what it wants is carried out later, in order.
    fn with<T>(&mut self, act: impl FnOnce(&mut Desk, &mut Cx<'_>) -> T) -> T {
        let (now, mut out) = (self.now(), Vec::new());
        let done = act(&mut self.desk, &mut Cx { now, rng: &mut self.rng, out: &mut out });
        self.wants.extend(out);
        done
    }

    fn command(&mut self, command: Command) -> Result<(), Fault> {
        self.with(|desk, cx| desk.command(command, cx))
    }

    fn op(&mut self, op: &Value) {
        let name = text(&op["op"]);
        let mut shown = op.as_object().cloned().unwrap_or_default();
        shown.insert("type".into(), "(op)".into());
        self.log.push(Value::Object(shown));
        if name == "abortWhenToolIsWaiting" {
            self.abort_when_waiting = true;
            return;
        }
        let command = self.read(name, op);
        if self.command(command).is_err() {
            self.log.push(json!({"type": "(rejected)", "op": name}));
        }
    }

    /// The command of an operation.
    fn read(&self, name: &str, op: &Value) -> Command {
        let (said, images) = (text(&op["text"]).to_owned(), Vec::new());
        match (name, text(&op["streamingBehavior"])) {
            ("prompt", "steer") if self.desk.is_active() => Command::Steer { text: said, images },
            ("prompt", "followUp") if self.desk.is_active() => Command::FollowUp { text: said, images },
            ("prompt", _) => Command::Prompt { text: said, images },
            ("steer", _) => Command::Steer { text: said, images },
            ("followUp", _) => Command::FollowUp { text: said, images },
            ("abort", _) => Command::Abort,
            ("continue", _) => Command::Continue,
            ("gracefulStop", _) => Command::GracefulStop,
            ("clearQueue", _) => Command::ClearQueues,
            ("compact", _) => Command::Compact { focus: op["instructions"].as_str().map(str::to_owned) },
            ("abortRetry", _) => Command::AbortRetry,
            ("abortCompaction", _) => Command::AbortCompaction,
            ("setModel", _) => {
                Command::SetModel { model: Arc::new(model(self.input, text(&op["id"]))), thinking: None }
            }
            ("setThinking", _) => {
                Command::SetThinking(ThinkingLevel::parse(text(&op["level"])).unwrap_or_default())
            }
            ("setName", _) => Command::SetName(text(&op["name"]).into()),
            ("setAutoCompaction", _) => Command::SetAutoCompaction(op["enabled"] == true),
            ("bashResult", _) => Command::Note(Arc::new(Message::Bash(BashExecution {
                command: text(&op["command"]).into(),
                output: text(&op["output"]).into(),
                exit_code: Some(0),
                exclude_from_context: op["exclude"] == true,
                ..BashExecution::default()
            }))),
            ("custom", _) => Command::Host(HostNote {
                message: Box::new(CustomMessage {
                    custom_type: text(&op["customType"]).into(),
                    content: Content::Text(said.into()),
                    display: true,
                    details: None,
                    timestamp: 0,
                }),
                deliver: match text(&op["options"]["deliverAs"]) {
                    "nextTurn" => Deliver::NextTurn,
                    "followUp" => Deliver::FollowUp,
                    _ => Deliver::Steer,
                },
                trigger: op["options"]["triggerTurn"].as_bool(),
            }),
            (other, _) => panic!("unknown op {other}"),
        }
    }

    // ----- moving on -----

    fn drive(&mut self) -> Result<(), String> {
        for _ in 0..10_000 {
            if let Some(want) = self.wants.pop_front() {
                self.carry_out(want);
            } else if self.with(Desk::advance) {
            } else if let Some(is_cancelled) = self.summary.take() {
                self.summarize(is_cancelled);
            } else if self.stream.is_some() {
                self.stream_step();
            } else if self.bench.is_running() {
                self.tool_step();
            } else if let Some(at) = self.desk.deadline() {
                self.ms = self.ms.max(at.0);
            } else {
                return if self.desk.is_idle() { Ok(()) } else { Err("the Desk is stuck".into()) };
            }
        }
        Err("it does not end".into())
    }

    fn carry_out(&mut self, want: Want) {
        match want {
            Want::Event(event) => self.event(&event),
            Want::Append(op) => panic!("a session without file wants to write {op:?}"),
            Want::Request => self.request(),
            Want::Execute { index, tool, call, .. } => {
                self.log.push(json!({"type": "(execute)", "toolCallId": call.id}));
                let spec = self.bench.start(index, &tool.name);
                if spec["waitAbort"] == true && self.abort_when_waiting {
                    let _ = self.command(Command::Abort);
                }
            }
            Want::Summarize(_) => self.summary = Some(false),
            Want::AbortSummary => self.summary = self.summary.map(|_| true),
            Want::Hook(call) => {
                let now = self.now();
                self.desk.agent_mut().on_hook(call.neutral(), now);
            }
            Want::AbortStream | Want::AbortTools | Want::AbortHooks => {}
        }
    }

    fn event(&mut self, event: &Event) {
        match event {
            // Told beside the stream of events.
            Event::Error(fault) if self.input["showErrors"] == true => {
                return self.log.push(json!({"type": "(error)", "code": fault.code}));
            }
            Event::Error(fault) if fault.code == "context_overflow" => return,
            _ => {}
        }
        let shown = self.show.event(event);
        if shown["type"] != "message_update" || self.input["hideUpdates"] == false {
            self.log.push(shown.clone());
        }
        let ops = self.triggers.due(&self.input["when"], &shown);
        ops.into_iter().for_each(|op| self.op(op));
    }

    // ----- the world -----

    fn base(&mut self) -> AssistantMessage {
        AssistantMessage {
            api: "mock".into(),
            provider: "mock".into(),
            model: self.desk.agent().model().id.clone(),
            timestamp: self.now().wall.0,
            ..AssistantMessage::default()
        }
    }

    fn request(&mut self) {
        let base = self.base();
        self.requests += 1;
        let context = self.desk.agent().context();
        let messages = to_llm(context, &mut Memo::default());
        let roles: Vec<&str> = messages.iter().map(|message| message.role()).collect();
        let last = context.last().zip(messages.last()).map(|(source, sent)| self.show.sent(source, sent));
        self.log.push(json!({"type": "(request)", "kind": "conversation", "roles": roles, "lastText": last}));
        let reply = if self.desk.agent().is_aborted() {
            aborted(&base)
        } else if let Some(response) = self.responses.pop_front() {
            self.asked_ms = response["askedMs"].as_f64();
            self.stream = Some(Playing::begin(response, base));
            return;
        } else {
            failed(&base, StopReason::Error, "no more responses")
        };
        self.desk.agent_mut().on_reply(reply);
    }

    fn summarize(&mut self, is_cancelled: bool) {
        let base = self.base();
        let reply = if is_cancelled {
            aborted(&base)
        } else {
            self.requests += 1;
            self.log.push(json!({"type": "(request)", "kind": "summary", "roles": ["system", "user"]}));
            match self.responses.pop_front() {
                Some(response) => Playing::begin(response, base).played(),
                None => failed(&base, StopReason::Error, "no more responses"),
            }
        };
        self.with(|desk, cx| desk.on_summary(reply, cx));
    }

    fn stream_step(&mut self) {
        let Some(playing) = &mut self.stream else { return };
        match playing.next(self.desk.agent().is_aborted()) {
            Next::Event(event) => {
                if let Some(event) = self.desk.agent_mut().on_update(event, playing.partial()) {
                    self.event(&event);
                }
            }
            Next::Done(message) => {
                self.stream = None;
                self.desk.note_asked_wait(self.asked_ms.take());
                self.desk.agent_mut().on_reply(message);
            }
        }
    }

    fn tool_step(&mut self) {
        let now = self.now();
        if let Some((index, output)) = self.bench.finish(self.desk.agent().is_aborted()) {
            self.desk.agent_mut().on_tool_done(index, output, now);
        }
    }

    fn final_state(&self) -> Value {
        let (steering, follow_up) = self.desk.queued();
        json!({
            "entries": state::entries(self.desk.session(), &self.show),
            "contextRoles": state::roles(self.desk.agent().context()),
            "isStreaming": self.desk.is_active(),
            "pending": {"steering": steering, "followUp": follow_up},
            "contextUsage": state::usage(self.desk.session(), self.desk.agent().model()),
            "requests": self.requests,
        })
    }
}

fn settings(value: &Value) -> Result<Settings, String> {
    let text = (!value.is_null()).then(|| value.to_string());
    let source = Source { scope: Scope::Global, path: "/agent/settings.json", text: Ok(text.as_deref()) };
    match settings::load(&[source]) {
        (settings, faults) if faults.is_empty() => Ok(settings),
        (_, faults) => Err(format!("{faults:?}")),
    }
}

/// `m1` as the case has it, and `m2`, which thinks.
fn model(input: &Value, id: &str) -> Model {
    let count = |key: &str, usual| input[key].as_u64().unwrap_or(usual);
    let base = Model { id: id.into(), provider: "mock".into(), api: "mock".into(), ..Model::default() };
    match id {
        "m1" => Model {
            context_window: count("contextWindow", 100_000),
            max_tokens: count("maxTokens", 8_000),
            ..base
        },
        _ => Model { context_window: 500_000, max_tokens: 8_000, reasoning: true, ..base },
    }
}
