//! The script of a trace: what the provider says, what tools bring, which operations an event sets off.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};
use tau_core::json::to_string;
use tau_core::message::{AssistantMessage, Block, StopReason, ToolCall, Usage};
use tau_core::provider::StreamEvent;
use tau_core::tools::{ExecutionMode, Runner, Tool, ToolOutput};

pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

// ----- the provider -----

/// A reply on its way.
pub struct Playing {
    events: VecDeque<StreamEvent>,
    whole: AssistantMessage,
    /// What its events showed so far.
    shown: Vec<Block>,
    /// It ends only when it is aborted.
    waits: bool,
}

/// What a reply does next.
pub enum Next {
    Event(StreamEvent),
    Done(AssistantMessage),
}

/// A reply that failed before it began.
pub fn failed(base: &AssistantMessage, reason: StopReason, message: &str) -> AssistantMessage {
    AssistantMessage { stop_reason: reason, error_message: Some(message.into()), ..base.clone() }
}

/// What a provider says that finds its request aborted.
pub fn aborted(base: &AssistantMessage) -> AssistantMessage {
    failed(base, StopReason::Aborted, "Request was aborted")
}

impl Playing {
    /// Begins a scripted response.
    pub fn begin(response: &Value, base: AssistantMessage) -> Self {
        let mut playing = Self {
            events: VecDeque::from([StreamEvent::Start]),
            whole: base,
            shown: Vec::new(),
            waits: false,
        };
        playing.script(response);
        playing
    }

    /// The message that grows.
    pub const fn partial(&self) -> &AssistantMessage {
        &self.whole
    }

    /// The next event, or the complete reply.
    pub fn next(&mut self, is_aborted: bool) -> Next {
        if is_aborted {
            // Only what was shown is kept.
            let content = std::mem::take(&mut self.shown);
            return Next::Done(aborted(&AssistantMessage { content, ..self.whole.clone() }));
        }
        match self.events.pop_front() {
            Some(StreamEvent::Done | StreamEvent::Error) => Next::Done(self.whole.clone()),
            Some(event) => {
                self.show(&event);
                Next::Event(event)
            }
            None => panic!("the stream waits for an abort that never comes: {}", self.waits),
        }
    }

    /// The complete reply, with nobody to watch it grow.
    pub fn played(mut self) -> AssistantMessage {
        loop {
            if let Next::Done(reply) = self.next(false) {
                return reply;
            }
        }
    }

    fn show(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::TextStart { .. } => self.shown.push(Block::text("")),
            StreamEvent::ThinkingStart { index } | StreamEvent::ToolCallStart { index } => {
                self.shown.push(self.whole.content[*index].clone());
            }
            StreamEvent::TextDelta { index, delta } => {
                let text = self.shown[*index].as_text().unwrap_or_default();
                self.shown[*index] = Block::text(format!("{text}{delta}"));
            }
            _ => {}
        }
    }

    fn script(&mut self, response: &Value) {
        self.whole.usage = Usage::from_value(&response["usage"]).unwrap_or_default();
        let limit = response["abortAfterDeltas"].as_u64();
        let mut deltas = 0;
        for (index, block) in list(&response["content"]).iter().enumerate() {
            let (start, end, chunks, content) = pieces(index, block);
            self.whole.content.push(content);
            self.events.push_back(start.clone());
            for delta in chunks {
                self.events.push_back(match start {
                    StreamEvent::TextStart { .. } => StreamEvent::TextDelta { index, delta },
                    StreamEvent::ThinkingStart { .. } => StreamEvent::ThinkingDelta { index, delta },
                    _ => StreamEvent::ToolCallDelta { index, delta },
                });
                deltas += 1;
                if limit == Some(deltas) {
                    self.waits = true;
                    return;
                }
            }
            self.events.push_back(end);
        }
        self.end(response);
    }

    fn end(&mut self, response: &Value) {
        let message = &mut self.whole;
        let has_calls = message.tool_calls().next().is_some();
        let usual = if has_calls { StopReason::ToolUse } else { StopReason::Stop };
        message.stop_reason = StopReason::parse(text(&response["stopReason"])).unwrap_or(usual);
        message.error_message = response["errorMessage"].as_str().map(str::to_owned);
        if response["noStart"] == true {
            self.events.clear();
            message.content.clear();
        }
        let is_failure = message.stop_reason.is_failure();
        self.events.push_back(if is_failure { StreamEvent::Error } else { StreamEvent::Done });
    }
}

/// Start, end and deltas of a block, and the block.
fn pieces(index: usize, block: &Value) -> (StreamEvent, StreamEvent, Vec<String>, Block) {
    let whole = |s: &str| match block["chunks"].as_array() {
        Some(chunks) => chunks.iter().map(|c| text(c).to_owned()).collect(),
        None => vec![s.to_owned()],
    };
    match text(&block["type"]) {
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
    }
}

// ----- tools -----

/// Tools by name, and those that run.
#[derive(Default)]
pub struct Bench {
    specs: HashMap<String, Value>,
    running: Vec<Running>,
}

struct Running {
    index: usize,
    spec: Value,
    order: (u64, usize),
}

impl Bench {
    /// Takes further tools; what they are to the agent.
    pub fn add(&mut self, specs: &[Value]) -> Vec<Arc<Tool>> {
        specs
            .iter()
            .map(|spec| {
                self.specs.insert(text(&spec["name"]).into(), spec.clone());
                tool(spec)
            })
            .collect()
    }

    /// Begins a call; what its tool is scripted to do.
    pub fn start(&mut self, index: usize, name: &str) -> Value {
        let spec = self.specs[name].clone();
        let order = (spec["rank"].as_u64().unwrap_or(0), self.running.len());
        self.running.push(Running { index, spec: spec.clone(), order });
        spec
    }

    pub fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// The next call that ends.
    pub fn finish(&mut self, is_aborted: bool) -> Option<(usize, ToolOutput)> {
        let ready = |r: &&Running| r.spec["waitAbort"] != true || is_aborted;
        let order = self.running.iter().filter(ready).map(|r| r.order).min()?;
        let at = self.running.iter().position(|r| r.order == order)?;
        let Running { index, spec, .. } = self.running.remove(at);
        Some((index, output(&spec)))
    }
}

fn tool(spec: &Value) -> Arc<Tool> {
    let schema = spec.get("schema").cloned().unwrap_or_else(|| json!({"type": "object", "properties": {}}));
    let is_sequential = spec["executionMode"] == "sequential";
    Arc::new(Tool {
        name: text(&spec["name"]).into(),
        label: String::new(),
        description: text(&spec["name"]).into(),
        prompt_snippet: None,
        prompt_rules: Vec::new(),
        parameters: Arc::new(schema),
        mode: if is_sequential { ExecutionMode::Sequential } else { ExecutionMode::Parallel },
        prepare: None,
        run: Runner::Host,
    })
}

fn output(spec: &Value) -> ToolOutput {
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
    output
}

// ----- operations set off by events -----

/// How often each condition was met.
#[derive(Default)]
pub struct Triggers(HashMap<usize, u64>);

impl Triggers {
    /// The operations that an event sets off.
    pub fn due<'a>(&mut self, whens: &'a Value, shown: &Value) -> Vec<&'a Value> {
        let mut ops = Vec::new();
        for (i, when) in list(whens).iter().enumerate().filter(|(_, when)| matches(&when["on"], shown)) {
            let count = self.0.entry(i).or_insert(0);
            *count += 1;
            if *count == when["on"]["nth"].as_u64().unwrap_or(1) {
                ops.extend(list(&when["do"]));
            }
        }
        ops
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
