//! Traces of one low-level agent: a scripted provider and scripted tools, events and hooks in order.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::agent::{
    Agent, AgentConfig, HookCall, HookReply, HookSet, Out, ResultChange, ToolVerdict, TurnChange,
    TurnDecision,
};
use tau_core::event::{Event, MessageUpdate};
use tau_core::input::QueueMode;
use tau_core::json::to_string;
use tau_core::message::{AssistantMessage, Block, Message, StopReason, SystemMessage, ToolCall};
use tau_core::model::{Model, ThinkingLevel};
use tau_core::now::{Mono, Now, Wall};
use tau_core::provider::StreamEvent;
use tau_core::tools::{ExecutionMode, Runner, Tool, ToolOutput};
use tau_tests::compare::same;

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

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

struct Running {
    index: usize,
    spec: Value,
    order: (u64, usize),
}

struct World<'a> {
    input: &'a Value,
    agent: Agent,
    log: Vec<Value>,
    responses: VecDeque<&'a Value>,
    /// Events of the current reply and the reply so far; the flag says that it waits for the abort.
    stream: Option<(VecDeque<StreamEvent>, AssistantMessage, bool)>,
    tools: HashMap<String, Value>,
    running: Vec<Running>,
    counts: HashMap<usize, u64>,
    abort_when_waiting: bool,
    finish: VecDeque<Value>,
    prepare: VecDeque<Value>,
    requests: u64,
    known: Vec<String>,
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
            tools: HashMap::new(),
            running: Vec::new(),
            counts: HashMap::new(),
            abort_when_waiting: false,
            finish: list(&hooks["finishTurn"]).iter().cloned().collect(),
            prepare: list(&hooks["prepareNextTurn"]).iter().cloned().collect(),
            requests: 0,
            known: list(&input["knownTexts"]).iter().map(|v| text(v).to_owned()).collect(),
            ms: 1_000,
        };
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
        let mut tools = Vec::new();
        for spec in specs {
            self.tools.insert(text(&spec["name"]).into(), spec.clone());
            self.known
                .extend(["result", "error"].iter().filter_map(|k| spec[*k].as_str()).map(str::to_owned));
            self.known.push(format!("{} ok", text(&spec["name"])));
            self.known.push("tool saw abort".into());
            let schema =
                spec.get("schema").cloned().unwrap_or_else(|| json!({"type": "object", "properties": {}}));
            tools.push(Arc::new(Tool {
                name: text(&spec["name"]).into(),
                label: String::new(),
                description: text(&spec["name"]).into(),
                prompt_snippet: None,
                prompt_rules: Vec::new(),
                parameters: Arc::new(schema),
                mode: if spec["executionMode"] == "sequential" {
                    ExecutionMode::Sequential
                } else {
                    ExecutionMode::Parallel
                },
                prepare: None,
                run: Runner::Host,
            }));
        }
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
            } else if !self.running.is_empty() {
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
                let spec = self.tools[&tool.name].clone();
                for update in list(&spec["updates"]) {
                    self.agent.on_tool_update(index, ToolOutput::text(text(update)));
                }
                if spec["waitAbort"] == true && self.abort_when_waiting {
                    self.agent.abort();
                }
                let order = (spec["rank"].as_u64().unwrap_or(0), self.running.len());
                self.running.push(Running { index, spec, order });
            }
            Out::AbortStream | Out::AbortTools | Out::Finished { .. } => {}
        }
    }

    fn tool_step(&mut self, now: Now) {
        let aborted = self.agent.is_aborted();
        let ready = |r: &&Running| r.spec["waitAbort"] != true || aborted;
        let Some(order) = self.running.iter().filter(ready).map(|r| r.order).min() else { return };
        let at = self.running.iter().position(|r| r.order == order).unwrap();
        let Running { index, spec, .. } = self.running.remove(at);
        let mut output = if spec["waitAbort"] == true {
            ToolOutput::error("tool saw abort")
        } else if let Some(error) = spec["error"].as_str() {
            ToolOutput::error(error)
        } else {
            let default = format!("{} ok", text(&spec["name"]));
            ToolOutput::text(spec["result"].as_str().unwrap_or(&default))
        };
        if spec["isError"] == true {
            output.is_error = true;
        }
        output.terminate = spec["terminate"].as_bool();
        self.agent.on_tool_done(index, output, now);
    }

    fn request(&mut self, now: Now) {
        self.requests += 1;
        let context = self.agent.context();
        let roles: Vec<&str> = context.iter().map(|m| m.role()).collect();
        let last = context.last().map(|m| self.shown_text(m)).unwrap_or_default();
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
        let fail = |reason, message: &str| AssistantMessage {
            stop_reason: reason,
            error_message: Some(message.into()),
            ..base.clone()
        };
        if self.agent.is_aborted() {
            self.agent.on_reply(fail(StopReason::Aborted, "Request was aborted"));
            return;
        }
        let Some(response) = self.responses.pop_front() else {
            self.agent.on_reply(fail(StopReason::Error, "no more responses"));
            return;
        };
        if let Some(message) = response["throwSync"].as_str() {
            self.agent.fail(message, now);
        } else if response["throwSync"] == true {
            self.agent.fail(response["errorMessage"].as_str().unwrap_or("the stream function threw"), now);
        } else {
            self.stream = Some(script(response, base));
        }
    }

    fn stream_step(&mut self) {
        let Some((events, partial, waits)) = &mut self.stream else { return };
        if self.agent.is_aborted() {
            let mut message = partial.clone();
            message.stop_reason = StopReason::Aborted;
            message.error_message = Some("Request was aborted".into());
            // Only what was shown is kept.
            message.content = shown_content(&self.log, message.content);
            self.stream = None;
            self.agent.on_reply(message);
            return;
        }
        match events.pop_front() {
            Some(StreamEvent::Done | StreamEvent::Error) => {
                let message = partial.clone();
                self.stream = None;
                self.agent.on_reply(message);
            }
            Some(event) => {
                let event = self.agent.on_update(event, partial);
                if let Some(event) = event {
                    self.event(&event);
                }
            }
            None => assert!(!*waits, "the stream waits for an abort that never comes"),
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
        };
        self.agent.on_hook(reply, now);
    }

    fn event(&mut self, event: &Event) {
        let shown = self.show(event);
        self.log.push(shown.clone());
        let mut ops = Vec::new();
        for (i, when) in list(&self.input["when"]).iter().enumerate() {
            if matches(&when["on"], &shown) {
                let count = self.counts.entry(i).or_insert(0);
                *count += 1;
                if *count == when["on"]["nth"].as_u64().unwrap_or(1) {
                    ops.extend(list(&when["do"]));
                }
            }
        }
        ops.into_iter().for_each(|op| self.op(op));
    }

    fn show(&self, event: &Event) -> Value {
        match event {
            Event::AgentStart => json!({"type": "agent_start"}),
            Event::TurnStart => json!({"type": "turn_start"}),
            Event::MessageStart(m) => json!({"type": "message_start", "message": self.show_message(m)}),
            Event::MessageEnd(m) => json!({"type": "message_end", "message": self.show_message(m)}),
            Event::MessageUpdate { update, .. } => {
                let mut shown = show_update(update);
                shown["type"] = "message_update".into();
                shown
            }
            Event::ToolStart { call_id, name, args } => {
                json!({"type": "tool_execution_start", "toolCallId": call_id, "toolName": name, "args": **args})
            }
            Event::ToolUpdate { call_id, partial, .. } => {
                json!({"type": "tool_execution_update", "toolCallId": call_id, "text": texts(&partial.content)})
            }
            Event::ToolEnd { call_id, name, result, duration_ms } => {
                let mut shown = json!({
                    "type": "tool_execution_end", "toolCallId": call_id, "toolName": name, "isError": result.is_error,
                    "text": self.runtime(texts(&result.content)), "hasDuration": duration_ms.is_some(),
                });
                if let Some(flag) = result.terminate {
                    shown["terminate"] = flag.into();
                }
                shown
            }
            Event::TurnEnd { message, results } => {
                let ids: Vec<&str> = results
                    .iter()
                    .map(|m| match &**m {
                        Message::ToolResult(m) => m.tool_call_id.as_str(),
                        _ => "?",
                    })
                    .collect();
                json!({"type": "turn_end", "stopReason": message.as_assistant().unwrap().stop_reason.name(), "toolResults": ids})
            }
            Event::AgentEnd { messages, .. } => {
                let roles: Vec<&str> = messages.iter().map(|m| m.role()).collect();
                json!({"type": "agent_end", "messages": roles})
            }
            other => panic!("unexpected event {other:?}"),
        }
    }

    /// Texts that neither the script nor its tools contain were written by the runtime.
    fn runtime(&self, text: String) -> String {
        if text.is_empty() || self.known.contains(&text) { text } else { "<runtime>".into() }
    }

    fn shown_text(&self, message: &Message) -> String {
        match message {
            Message::ToolResult(m) => self.runtime(texts(&m.content)),
            Message::Assistant(m) => m
                .content
                .iter()
                .map(|block| match block {
                    Block::Text(b) => b.text.to_string(),
                    Block::Thinking(b) => format!("({})", b.thinking),
                    Block::ToolCall(c) => format!("{}()", c.name),
                    _ => String::new(),
                })
                .collect::<Vec<_>>()
                .join("|"),
            Message::User(m) => m.content.texts().collect::<String>(),
            _ => String::new(),
        }
    }

    fn show_message(&self, message: &Message) -> Value {
        match message {
            Message::User(m) => json!({"role": "user", "text": m.content.texts().collect::<String>()}),
            Message::System(m) => {
                let names = |tools: &Option<Vec<Value>>| -> Option<Vec<Value>> {
                    tools.as_ref().map(|tools| tools.iter().map(|t| t["name"].clone()).collect())
                };
                let mut shown = json!({"role": "system"});
                if let Some(names) = names(&m.tools_added) {
                    shown["toolsAdded"] = names.into();
                }
                if let Some(names) = names(&m.tools_removed) {
                    shown["toolsRemoved"] = names.into();
                }
                shown
            }
            Message::Assistant(m) => {
                let content: Vec<Value> = m.content.iter().map(show_block).collect();
                let mut shown =
                    json!({"role": "assistant", "stopReason": m.stop_reason.name(), "content": content});
                if let Some(error) = &m.error_message {
                    shown["errorMessage"] = error.as_str().into();
                }
                shown
            }
            Message::ToolResult(m) => json!({
                "role": "toolResult", "toolCallId": m.tool_call_id, "toolName": m.tool_name, "isError": m.is_error,
                "text": self.runtime(texts(&m.content)), "hasDuration": m.duration_ms.is_some(),
            }),
            other => panic!("unexpected message {other:?}"),
        }
    }

    fn final_state(&self) -> Value {
        let messages: Vec<Value> = self
            .agent
            .context()
            .iter()
            .map(|m| {
                let mut shown = json!({"role": m.role(), "text": self.shown_text(m)});
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

fn matches(on: &Value, shown: &Value) -> bool {
    on.as_object().is_some_and(|on| {
        on.iter().all(|(key, wanted)| match key.as_str() {
            "nth" => true,
            "role" => shown["message"]["role"] == *wanted,
            key => shown[key] == *wanted,
        })
    })
}

fn texts(blocks: &[Block]) -> String {
    blocks.iter().filter_map(Block::as_text).collect()
}

fn show_block(block: &Block) -> Value {
    match block {
        Block::Text(b) => json!({"type": "text", "text": b.text.as_str()}),
        Block::Thinking(b) => json!({"type": "thinking", "thinking": b.thinking.as_str()}),
        Block::ToolCall(c) => {
            json!({"type": "toolCall", "id": c.id, "name": c.name, "arguments": *c.arguments})
        }
        other => panic!("unexpected block {other:?}"),
    }
}

fn show_update(update: &MessageUpdate) -> Value {
    match update {
        MessageUpdate::TextStart { index } => json!({"event": "text_start", "contentIndex": index}),
        MessageUpdate::TextDelta { index, delta } => {
            json!({"event": "text_delta", "contentIndex": index, "delta": delta})
        }
        MessageUpdate::TextEnd { index, content } => {
            json!({"event": "text_end", "contentIndex": index, "content": content.as_str()})
        }
        MessageUpdate::ThinkingStart { index } => json!({"event": "thinking_start", "contentIndex": index}),
        MessageUpdate::ThinkingDelta { index, delta } => {
            json!({"event": "thinking_delta", "contentIndex": index, "delta": delta})
        }
        MessageUpdate::ThinkingEnd { index, content } => {
            json!({"event": "thinking_end", "contentIndex": index, "content": content.as_str()})
        }
        MessageUpdate::ToolCallStart { index, .. } => {
            json!({"event": "toolcall_start", "contentIndex": index})
        }
        MessageUpdate::ToolCallDelta { index, delta } => {
            json!({"event": "toolcall_delta", "contentIndex": index, "delta": delta})
        }
        MessageUpdate::ToolCallEnd { index, call } => json!({
            "event": "toolcall_end", "contentIndex": index,
            "toolCall": {"id": call.id, "name": call.name, "arguments": *call.arguments},
        }),
    }
}

/// The events and the final message of a scripted response.
fn script(
    response: &Value,
    mut message: AssistantMessage,
) -> (VecDeque<StreamEvent>, AssistantMessage, bool) {
    let mut events = VecDeque::from([StreamEvent::Start]);
    let limit = response["abortAfterDeltas"].as_u64();
    let mut deltas = 0;
    for (index, block) in list(&response["content"]).iter().enumerate() {
        let whole = |s: &str| match block["chunks"].as_array() {
            Some(chunks) => chunks.iter().map(|c| text(c).to_owned()).collect(),
            None => vec![s.to_owned()],
        };
        let (start, end, chunks, content): (_, _, Vec<String>, _) = match text(&block["type"]) {
            "text" => (
                StreamEvent::TextStart { index },
                StreamEvent::TextEnd { index },
                whole(text(&block["text"])),
                Block::text(text(&block["text"])),
            ),
            "thinking" => (
                StreamEvent::ThinkingStart { index },
                StreamEvent::ThinkingEnd { index },
                whole(text(&block["thinking"])),
                Block::from_value(block),
            ),
            _ => (
                StreamEvent::ToolCallStart { index },
                StreamEvent::ToolCallEnd { index },
                whole(&to_string(&block["arguments"])),
                Block::ToolCall(ToolCall {
                    id: text(&block["id"]).into(),
                    name: text(&block["name"]).into(),
                    arguments: Arc::new(block["arguments"].clone()),
                    ..ToolCall::default()
                }),
            ),
        };
        message.content.push(content);
        events.push_back(start.clone());
        for delta in chunks {
            events.push_back(match start {
                StreamEvent::TextStart { .. } => StreamEvent::TextDelta { index, delta },
                StreamEvent::ThinkingStart { .. } => StreamEvent::ThinkingDelta { index, delta },
                _ => StreamEvent::ToolCallDelta { index, delta },
            });
            deltas += 1;
            if limit == Some(deltas) {
                return (events, message, true);
            }
        }
        events.push_back(end);
    }
    let has_calls = message.tool_calls().next().is_some();
    message.stop_reason = StopReason::parse(text(&response["stopReason"])).unwrap_or(if has_calls {
        StopReason::ToolUse
    } else {
        StopReason::Stop
    });
    message.error_message = response["errorMessage"].as_str().map(str::to_owned);
    if response["noStart"] == true {
        events.clear();
        message.content.clear();
    }
    events.push_back(if message.stop_reason.is_failure() { StreamEvent::Error } else { StreamEvent::Done });
    (events, message, false)
}

/// The content of an aborted reply: what its deltas showed.
fn shown_content(log: &[Value], content: Vec<Block>) -> Vec<Block> {
    let start = log.iter().rposition(|e| e["type"] == "message_start").unwrap_or(0);
    let mut kept = Vec::new();
    for (index, block) in content.into_iter().enumerate() {
        let updates: Vec<&Value> = log[start..].iter().filter(|e| e["contentIndex"] == index).collect();
        let grown: String = updates.iter().filter_map(|e| e["delta"].as_str()).collect();
        if updates.is_empty() {
            break;
        }
        kept.push(match block {
            Block::Text(_) => Block::text(grown),
            other => other,
        });
    }
    kept
}
