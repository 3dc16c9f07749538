//! An editor that speaks the Agent Client Protocol with a program, and demands of everything it hears the shape that
//! the protocol demands.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::program::{Run, Sandbox};
use crate::server::{Reply, Server};
use crate::talk::Talk;

/// Fields that the protocol demands of results, by method.
const RESULTS: &[(&str, &[&str])] = &[
    (
        "initialize",
        &["protocolVersion", "agentCapabilities.loadSession", "agentInfo.name", "agentInfo.version"],
    ),
    (
        "session/new",
        &[
            "sessionId",
            "modes.currentModeId",
            "modes.availableModes.0.id",
            "modes.availableModes.0.name",
            "configOptions.0.currentValue",
            "configOptions.0.options.0.value",
            "configOptions.0.options.0.name",
        ],
    ),
    ("session/load", &["modes.currentModeId", "configOptions.0.currentValue"]),
    ("session/resume", &["modes.currentModeId", "configOptions.0.currentValue"]),
    ("session/list", &["sessions.0.sessionId", "sessions.0.cwd", "sessions.0.updatedAt"]),
    ("session/set_config_option", &["configOptions.0.id", "configOptions.0.name", "configOptions.0.type"]),
];

/// Fields that it demands of updates, by kind.
const UPDATES: &[(&str, &[&str])] = &[
    ("user_message_chunk", &["content.type"]),
    ("agent_message_chunk", &["content.type", "content.text"]),
    ("agent_thought_chunk", &["content.type", "content.text"]),
    ("tool_call", &["toolCallId", "title", "kind", "status"]),
    ("tool_call_update", &["toolCallId", "status"]),
    ("available_commands_update", &["availableCommands.0.name", "availableCommands.0.description"]),
    ("usage_update", &["used", "size"]),
    ("session_info_update", &["title"]),
    ("current_mode_update", &["currentModeId"]),
    ("config_option_update", &["configOptions.0.id", "configOptions.0.currentValue"]),
    ("notice", &["severity", "title"]),
    ("compaction_update", &["compactionId", "status"]),
];

/// Demands that all of these fields are there.
///
/// # Panics
/// When one is not.
pub fn demand(value: &Value, fields: &[&str]) {
    for field in fields {
        let found = field.split('.').try_fold(value, |value, name| match name.parse::<usize>() {
            Ok(at) => value.get(at),
            Err(_) => value.get(name),
        });
        assert!(found.is_some_and(|found| !found.is_null()), "no {field}: {value}");
    }
}

/// The editor, the program it started, and the model server behind that.
pub struct Editor {
    /// Where the program runs.
    pub place: Sandbox,
    /// Who answers its requests.
    pub server: Server,
    /// The pipes.
    pub talk: Talk,
    next: u64,
}

impl Editor {
    /// Starts `binary acp`, with a model server that answers from a script.
    #[must_use]
    pub fn new(binary: &str, script: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(binary, script, &[], |_| {})
    }

    /// The same with more arguments, after `prepare` has changed the place.
    #[must_use]
    pub fn with(
        binary: &str,
        script: impl IntoIterator<Item = Reply>,
        args: &[&str],
        prepare: impl FnOnce(&Sandbox),
    ) -> Self {
        let (place, server) = (Sandbox::new(binary), Server::start(script));
        place.configure(&server);
        prepare(&place);
        let args: Vec<&str> = std::iter::once("acp").chain(args.iter().copied()).collect();
        let talk = Talk::start(place.command(&args));
        Self { place, server, talk, next: 0 }
    }

    /// Sends a request; its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.talk.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.talk.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Answers a request of the program.
    pub fn answer(&mut self, question: &Value, result: Value) {
        self.talk.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
    }

    /// Chooses an option of a question.
    pub fn choose(&mut self, question: &Value, option: &str) {
        self.answer(question, json!({"outcome": {"outcome": "selected", "optionId": option}}));
    }

    /// The answer to a request.
    pub fn wait(&mut self, id: u64) -> Value {
        self.talk.wait(&json!({"id": id}))
    }

    /// The next question.
    pub fn question(&mut self) -> Value {
        self.talk.wait(&json!({"method": "session/request_permission"}))
    }

    /// The next update with these fields.
    pub fn update(&mut self, wanted: Value) -> Value {
        self.talk.wait(&json!({"method": "session/update", "params": {"update": wanted}}))["params"]["update"]
            .clone()
    }

    /// Sends a request; its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.wait(id)
    }

    /// Sends a request; its result.
    ///
    /// # Panics
    /// When it is refused, or the result lacks something.
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params);
        let needed = RESULTS.iter().find(|(name, _)| *name == method).map(|(_, needed)| *needed);
        demand(&answer["result"], needed.unwrap_or_else(|| panic!("{method}")));
        answer["result"].clone()
    }

    /// Sends a request that is refused; the code.
    ///
    /// # Panics
    /// When it is not.
    pub fn code(&mut self, method: &str, params: Value) -> i64 {
        let answer = self.call(method, params);
        assert!(answer["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{answer}");
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}"))
    }

    /// The working directory.
    #[must_use]
    pub fn cwd(&self) -> String {
        self.place.work().display().to_string()
    }

    /// Opens a session there; its id.
    ///
    /// # Panics
    /// When it cannot be opened.
    pub fn session(&mut self) -> String {
        let cwd = self.cwd();
        let session = self.result("session/new", json!({"cwd": cwd, "mcpServers": []}));
        session["sessionId"].as_str().unwrap_or_default().to_owned()
    }

    /// Sends a prompt; the id of the request.
    pub fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send("session/prompt", json!({"sessionId": session, "prompt": prompt}))
    }

    /// How a turn ended.
    ///
    /// # Panics
    /// When it failed.
    pub fn stop_reason(&mut self, request: u64) -> String {
        let answer = self.wait(request);
        answer["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Ends the program; the updates of all sessions, checked.
    #[must_use]
    pub fn finish(self) -> Vec<Value> {
        checked(&self.talk.finish().ok())
    }
}

/// The updates of a run, after everything that was said in it was checked.
///
/// # Panics
/// When something has not the shape it must have.
#[must_use]
pub fn checked(run: &Run) -> Vec<Value> {
    let mut updates = Vec::new();
    let mut calls = HashMap::new();
    for message in run.events() {
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
        let params = message["params"].clone();
        match message["method"].as_str() {
            Some("session/update") => {
                demand(&params, &["sessionId", "update.sessionUpdate"]);
                let kind = params["update"]["sessionUpdate"].as_str().unwrap_or_default();
                let needed = UPDATES.iter().find(|(name, _)| *name == kind).map(|(_, needed)| *needed);
                demand(&params["update"], needed.unwrap_or_else(|| panic!("{kind}")));
                if kind.starts_with("tool_call") {
                    check_call(&mut calls, &params);
                }
                updates.push(params["update"].clone());
            }
            Some("session/request_permission") => {
                let options = ["optionId", "name", "kind"].map(|field| format!("options.0.{field}"));
                demand(&params, &["sessionId", "toolCall.toolCallId", "toolCall.title"]);
                demand(&params, &options.each_ref().map(String::as_str));
            }
            Some(other) => panic!("{other}"),
            None => assert!(
                message.get("id").is_some()
                    && (message["result"].is_object() || message["error"]["code"].is_i64()),
                "{message}"
            ),
        }
    }
    updates
}

/// A call is announced once (again when its session is told again), and its state goes forward only.
fn check_call(calls: &mut HashMap<String, usize>, params: &Value) {
    const STATES: [&[&str]; 3] = [&["pending"], &["in_progress"], &["completed", "failed"]];
    let update = &params["update"];
    let id = format!("{} {}", params["sessionId"], update["toolCallId"]);
    let state =
        STATES.iter().position(|names| names.contains(&update["status"].as_str().unwrap_or_default()));
    let state = state.unwrap_or_else(|| panic!("{update}"));
    let before = calls.insert(id, state);
    if update["sessionUpdate"] == "tool_call" {
        assert!(matches!(before, None | Some(2)), "announced again: {update}");
    } else {
        assert!(before.is_some_and(|before| before < 2 && before <= state), "out of order: {update}");
    }
    for location in update["locations"].as_array().into_iter().flatten() {
        assert!(location["path"].as_str().is_some_and(|path| path.starts_with('/')), "{update}");
    }
}

/// The updates of one kind.
#[must_use]
pub fn of_kind<'a>(updates: &'a [Value], kind: &str) -> Vec<&'a Value> {
    updates.iter().filter(|update| update["sessionUpdate"] == kind).collect()
}

/// The text of all updates of one kind.
#[must_use]
pub fn text_of(updates: &[Value], kind: &str) -> String {
    of_kind(updates, kind).iter().filter_map(|update| update["content"]["text"].as_str()).collect()
}
