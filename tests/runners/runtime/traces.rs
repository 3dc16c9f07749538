//! Recorded traces: a scripted provider and scripted tools, events in order. Of one low-level agent with its hooks, and
//! of the session layer.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::agent::{
    Agent, AgentConfig, HookCall, HookReply, HookSet, Out, ResultChange, ToolVerdict, TurnChange,
    TurnDecision,
};
use tau_core::event::Event;
use tau_core::input::QueueMode;
use tau_core::message::{AssistantMessage, Block, Message, StopReason, SystemMessage};
use tau_core::model::{Model, ThinkingLevel};
use tau_core::now::{Mono, Now, Wall};
use tau_core::tools::{ExecutionMode, ToolOutput};
use tau_tests::compare::same;
use tau_tests::play::desk::play;
use tau_tests::play::script::{Bench, Next, Playing, Triggers, aborted, failed, list, text};
use tau_tests::play::show::Shower;

pub fn session(_: &Value, case: &Value) -> Result<(), String> {
    let played = play(&case["input"])?;
    let expected = &case["expected"];
    same(&expected["events"], &Value::Array(played.events))?;
    same(&expected["final"], &played.last)
}

pub fn core(_: &Value, case: &Value) -> Result<(), String> {
    let mut world = World::new(&case["input"]);
    for op in list(&case["input"]["ops"]) {
        world.op(op);
        world.drive()?;
    }
    let expected = &case["expected"];
    same(&expected["events"], &Value::Array(world.log.clone()))?;
    same(&expected["final"], &world.final_state())
}

struct World<'a> {
    input: &'a Value,
    agent: Agent,
    log: Vec<Value>,
    responses: VecDeque<&'a Value>,
    stream: Option<Playing>,
    bench: Bench,
    triggers: Triggers,
    show: Shower,
    abort_when_waiting: bool,
    finish: VecDeque<Value>,
    prepare: VecDeque<Value>,
    requests: u64,
    ms: u64,
}

impl<'a> World<'a> {
    fn new(input: &'a Value) -> Self {
        let hooks = &input["hooks"];
        let on = |name: &str| hooks.get(name).is_some();
        let config = AgentConfig {
            tool_execution: if input["toolExecution"] == "sequential" {
                ExecutionMode::Sequential
            } else {
                ExecutionMode::Parallel
            },
            hooks: HookSet {
                before_tool_call: on("beforeToolCall"),
                after_tool_call: on("afterToolCall"),
                finish_turn: on("finishTurn"),
                prepare_next_turn: on("prepareNextTurn"),
                prepare_request: on("prepareRequest") || on("transformContext"),
                transform_context: false,
            },
        };
        let model =
            Model { id: "m1".into(), provider: "mock".into(), api: "mock".into(), ..Model::default() };
        let mut agent = Agent::new(config, Arc::new(model), ThinkingLevel::Off);
        agent.steering.mode = QueueMode::parse(text(&input["steeringMode"])).unwrap_or_default();
        agent.follow_up.mode = QueueMode::parse(text(&input["followUpMode"])).unwrap_or_default();
        let mut world = Self {
            input,
            agent,
            log: Vec::new(),
            responses: list(&input["responses"]).iter().collect(),
            stream: None,
            bench: Bench::default(),
            triggers: Triggers::default(),
            show: Shower::default(),
            abort_when_waiting: false,
            finish: list(&hooks["finishTurn"]).iter().cloned().collect(),
            prepare: list(&hooks["prepareNextTurn"]).iter().cloned().collect(),
            requests: 0,
            ms: 1_000,
        };
        world.show.know(list(&input["knownTexts"]).iter().map(|v| text(v).to_owned()));
        world.set_tools(list(&input["tools"]));
        let mut context: Vec<Arc<Message>> =
            list(&input["messages"]).iter().filter_map(Message::from_value).map(Arc::new).collect();
        let prompt = text(&input["systemPrompt"]);
        if !context.iter().any(|m| matches!(**m, Message::System(_)))
            && (!prompt.is_empty() || !world.agent.tools().is_empty())
        {
            let declared: Vec<Value> =
                world.agent.tools().iter().map(|t| tau_core::agent::declaration(t)).collect();
            let system = SystemMessage {
                content: prompt.into(),
                tools_added: (!declared.is_empty()).then_some(declared),
                ..SystemMessage::default()
            };
            context.insert(0, Arc::new(Message::System(system)));
        }
        world.agent.set_context(context);
        world
    }

    fn now(&mut self) -> Now {
        self.ms += 1;
        Now { mono: Mono(self.ms), wall: Wall(1_700_000_000_000 + self.ms as i64) }
    }

    fn set_tools(&mut self, specs: &[Value]) {
        self.show.know_tools(specs);
        let tools = self.bench.add(specs);
        self.agent.set_tools(tools);
    }

    fn op(&mut self, op: &Value) {
        let mut shown = op.as_object().cloned().unwrap_or_default();
        shown.insert("type".into(), "(op)".into());
        self.log.push(Value::Object(shown));
        let now = self.now();
        let message = || Arc::new(Message::user(text(&op["text"]), Vec::new(), now.wall.0));
        let outcome = match text(&op["op"]) {
            "prompt" => self.agent.prompt(vec![message()], now),
            "continue" => self.agent.continue_run(now),
            "steer" => {
                self.agent.steering.push(message());
                Ok(())
            }
            "followUp" => {
                self.agent.follow_up.push(message());
                Ok(())
            }
            "clearQueues" => {
                self.agent.steering.clear();
                self.agent.follow_up.clear();
                Ok(())
            }
            "abort" => {
                self.agent.abort();
                Ok(())
            }
            "abortWhenToolIsWaiting" => {
                self.abort_when_waiting = true;
                Ok(())
            }
            "setTools" => {
                self.set_tools(list(&op["tools"]));
                Ok(())
            }
            other => panic!("unknown op {other}"),
        };
        // A refusal inside a listener is the caller's to see; outside it ends the op.
        if outcome.is_err() && !self.agent.is_running() {
            self.log.push(json!({"type": "(rejected)"}));
        }
    }

    fn drive(&mut self) -> Result<(), String> {
        for _ in 0..10_000 {
            let now = self.now();
            if let Some(out) = self.agent.poll(now) {
                self.out(out, now);
            } else if self.stream.is_some() {
                self.stream_step();
            } else if self.bench.is_running() {
                self.tool_step(now);
            } else {
                return if self.agent.is_running() { Err("the run is stuck".into()) } else { Ok(()) };
            }
        }
        Err("the run does not end".into())
    }

    fn out(&mut self, out: Out, now: Now) {
        match out {
            Out::Event(event) => self.event(&event),
            Out::Hook(call) => self.hook(call, now),
            Out::Request => self.request(now),
            Out::Execute { index, tool, call, args } => {
                self.log.push(json!({"type": "(execute)", "toolCallId": call.id, "params": *args}));
                let spec = self.bench.start(index, &tool.name);
                for update in list(&spec["updates"]) {
                    self.agent.on_tool_update(index, ToolOutput::text(text(update)));
                }
                if spec["waitAbort"] == true && self.abort_when_waiting {
                    self.agent.abort();
                }
            }
            Out::AbortStream | Out::AbortTools | Out::AbortHooks | Out::Finished { .. } => {}
        }
    }

    fn tool_step(&mut self, now: Now) {
        if let Some((index, output)) = self.bench.finish(self.agent.is_aborted()) {
            self.agent.on_tool_done(index, output, now);
        }
    }

    fn request(&mut self, now: Now) {
        self.requests += 1;
        let context = self.agent.context();
        let roles: Vec<&str> = context.iter().map(|m| m.role()).collect();
        let last = context.last().map(|m| self.show.text_of(m)).unwrap_or_default();
        self.log.push(json!({
            "type": "(request)", "roles": roles, "lastText": last,
            "model": self.agent.model().id, "reasoning": Value::Null,
        }));
        let base = AssistantMessage {
            api: "mock".into(),
            provider: "mock".into(),
            model: "m1".into(),
            timestamp: now.wall.0,
            ..AssistantMessage::default()
        };
        if self.agent.is_aborted() {
            self.agent.on_reply(aborted(&base));
            return;
        }
        let Some(response) = self.responses.pop_front() else {
            self.agent.on_reply(failed(&base, StopReason::Error, "no more responses"));
            return;
        };
        if let Some(message) = response["throwSync"].as_str() {
            self.agent.fail(message, now);
        } else if response["throwSync"] == true {
            self.agent.fail(response["errorMessage"].as_str().unwrap_or("the stream function threw"), now);
        } else {
            self.stream = Some(Playing::begin(response, base));
        }
    }

    fn stream_step(&mut self) {
        let Some(playing) = &mut self.stream else { return };
        match playing.next(self.agent.is_aborted()) {
            Next::Event(event) => {
                if let Some(event) = self.agent.on_update(event, playing.partial()) {
                    self.event(&event);
                }
            }
            Next::Done(message) => {
                self.stream = None;
                self.agent.on_reply(message);
            }
        }
    }

    fn hook(&mut self, call: HookCall, now: Now) {
        let hooks = &self.input["hooks"];
        let reply = match call {
            HookCall::BeforeToolCall { index, call, args } => {
                self.log.push(json!({"type": "(before)", "toolCallId": call.id, "args": *args}));
                let spec = &hooks["beforeToolCall"][&call.id];
                let verdict = if let Some(error) = spec["throw"].as_str() {
                    ToolVerdict::Failed(error.into())
                } else if spec["block"] == true {
                    ToolVerdict::Block {
                        reason: spec["reason"].as_str().map(str::to_owned),
                        terminate: spec["terminate"] == true,
                    }
                } else {
                    ToolVerdict::Run(None)
                };
                HookReply::BeforeToolCall { index, verdict }
            }
            HookCall::AfterToolCall { index, call, output } => {
                self.log.push(json!({"type": "(after)", "toolCallId": call.id, "isError": output.is_error}));
                let spec = &hooks["afterToolCall"][&call.id];
                let change = match spec["throw"].as_str() {
                    Some(error) => Err(error.to_owned()),
                    None => Ok(ResultChange {
                        content: spec["content"]
                            .as_array()
                            .map(|items| items.iter().map(Block::from_value).collect()),
                        terminate: spec["terminate"].as_bool(),
                        is_error: spec["isError"].as_bool(),
                        ..ResultChange::default()
                    }),
                };
                HookReply::AfterToolCall { index, change }
            }
            HookCall::FinishTurn { .. } => {
                let decision = self.finish.pop_front().unwrap_or(Value::Null);
                self.log.push(json!({"type": "(finishTurn)", "decision": decision}));
                HookReply::FinishTurn(match text(&decision) {
                    "end" => Some(TurnDecision::End),
                    "continue" => Some(TurnDecision::Continue),
                    _ => None,
                })
            }
            HookCall::PrepareNextTurn => {
                self.log.push(json!({"type": "(prepareNextTurn)"}));
                let spec = self.prepare.pop_front().unwrap_or(Value::Null);
                if let Some(steer) = spec["steer"].as_str() {
                    self.agent.steering.push(Arc::new(Message::user(steer, Vec::new(), now.wall.0)));
                }
                let message = |v: &Value| Arc::new(Message::user(text(v), Vec::new(), now.wall.0));
                let messages = list(&spec["messages"]).iter().map(message).collect();
                HookReply::PrepareNextTurn(TurnChange { messages, ..TurnChange::default() })
            }
            HookCall::PrepareRequest => {
                let count = self.agent.context().len();
                if let Some(spec) = hooks.get("prepareRequest") {
                    self.log.push(json!({"type": "(prepareRequest)", "messages": count}));
                    if let Some(error) = spec["throw"].as_str() {
                        self.agent.on_hook(HookReply::Failed(error.into()), now);
                        return;
                    }
                }
                if hooks.get("transformContext").is_some() {
                    self.log.push(json!({"type": "(transformContext)", "messages": count}));
                }
                HookReply::PrepareRequest(TurnChange::default())
            }
            HookCall::TransformContext { messages } => HookReply::TransformContext(messages),
        };
        self.agent.on_hook(reply, now);
    }

    fn event(&mut self, event: &Event) {
        let shown = self.show.event(event);
        self.log.push(shown.clone());
        let ops = self.triggers.due(&self.input["when"], &shown);
        ops.into_iter().for_each(|op| self.op(op));
    }

    fn final_state(&self) -> Value {
        let messages: Vec<Value> = self
            .agent
            .context()
            .iter()
            .map(|m| {
                let mut shown = json!({"role": m.role(), "text": self.show.text_of(m)});
                if let Some(m) = m.as_assistant() {
                    shown["stopReason"] = m.stop_reason.name().into();
                }
                shown
            })
            .collect();
        json!({
            "messages": messages,
            "hasQueuedMessages": !(self.agent.steering.is_empty() && self.agent.follow_up.is_empty()),
            "errorMessage": self.agent.error_message().map_or(Value::Null, |_| "present".into()),
            "requests": self.requests,
        })
    }
}
