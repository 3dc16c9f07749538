//! Recorded runs of the reference: arguments, files and scripted replies in; output, requests and session files out.

mod steps;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tau_tests::masks::Bindings;
use tau_tests::program::{Run, Sandbox};
use tau_tests::server::{Gate, Part, Reply, Request, Server};
use tau_tests::vectors::{file, run_area};

/// Cases that need a host for extensions.
const WITH_EXTENSIONS: &str = "JavaScript extension host";

#[test]
fn recorded_runs() {
    run_area("sessions", &[file("json-mode", replay), file("print-and-cli", replay)]);
}

#[test]
fn recorded_prompting() {
    run_area("sessions", &[file("rpc-prompting", replay)]);
}

#[test]
fn recorded_session_commands() {
    run_area("sessions", &[file("rpc-session", replay)]);
}

#[test]
fn recorded_protocol() {
    run_area("sessions", &[file("rpc-protocol", replay)]);
}

fn replay(_: &Value, case: &Value) -> Result<(), String> {
    if case["note"].as_str().is_some_and(|note| note.contains(WITH_EXTENSIONS)) {
        return Ok(());
    }
    run_case(case, Duration::from_secs(30))
}

/// Gates of the scripted replies by name.
type Gates = BTreeMap<String, Gate>;

fn run_case(case: &Value, limit: Duration) -> Result<(), String> {
    let mut gates = Gates::new();
    let server = Server::start(Vec::new());
    let case = placed(case, "{MOCK}", &server.url());
    let input = &case["input"];
    let replies: Vec<Reply> = list(&input["provider"]).iter().map(|step| reply(step, &mut gates)).collect();
    server.script(replies);
    let place = Sandbox::new(env!("CARGO_BIN_EXE_tau"));
    let root = place.root();
    let case = placed(&case, "{ROOTENC}", &root.trim_start_matches('/').replace(['/', ':', '\\'], "-"));
    let case = placed(&case, "{ROOT}", &root);
    let input = &case["input"];
    configure(&place, &server, &input["settings"]);
    for (path, content) in input["files"].as_object().into_iter().flatten() {
        place.put(path, bytes(content.as_str().unwrap_or_default()));
    }
    let argv = texts(&input["argv"]);
    let mut command = place.command(&argv.iter().map(String::as_str).collect::<Vec<_>>());
    command.env("PI_OFFLINE", "1").env("PI_TELEMETRY", "0").env("TERM", "dumb");
    for (name, value) in input["env"].as_object().into_iter().flatten() {
        command.env(name, value.as_str().unwrap_or_default());
    }
    let run = steps::follow(command, &list(&input["steps"]), &gates, &place, limit)?;
    compare(&case["expected"], &run, &server.requests(), Path::new(&root))
}

/// models.json and settings.json of all recorded runs.
fn configure(place: &Sandbox, server: &Server, settings: &Value) {
    let model =
        |id: &str, name: &str, reasoning: bool, input: Value, cost: [f64; 4], window: u32, max: u32| {
            json!({
                "id": id, "name": name, "reasoning": reasoning, "input": input,
                "cost": {"input": cost[0], "output": cost[1], "cacheRead": cost[2], "cacheWrite": cost[3]},
                "contextWindow": window, "maxTokens": max,
            })
        };
    let priced = [1.0, 2.0, 0.5, 0.0];
    let mut third = model("m3", "Mock Three", true, json!(["text"]), [0.0; 4], 4000, 1000);
    third["thinkingLevelMap"] = json!({"minimal": null, "xhigh": "xhigh"});
    let models = json!({"providers": {"mock": {
        "baseUrl": format!("{}/v1", server.url()), "api": "openai-completions", "apiKey": "mock-key",
        "models": [
            model("m1", "Mock One", false, json!(["text"]), priced, 100_000, 4096),
            model("m2", "Mock Two", true, json!(["text", "image"]), priced, 200_000, 8192),
            third,
        ],
    }}});
    place.put("agent/models.json", models.to_string());
    let mut all = json!({"defaultProvider": "mock", "defaultModel": "m1"});
    if let (Some(all), Some(more)) = (all.as_object_mut(), settings.as_object()) {
        all.extend(more.clone());
    }
    place.put("agent/settings.json", all.to_string());
}

fn reply(step: &Value, gates: &mut Gates) -> Reply {
    let Some(events) = step["sse"].as_array() else {
        let status = step["status"].as_u64().and_then(|n| u16::try_from(n).ok()).unwrap_or(500);
        let body = Part::Bytes(step["body"].to_string().into_bytes());
        return Reply {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            parts: vec![body],
        };
    };
    let mut parts = Vec::new();
    for event in events {
        if let Some(name) = event["gate"].as_str() {
            parts.push(Part::Gate(gates.entry(name.to_owned()).or_default().clone()));
            continue;
        }
        let text = event.as_str().map_or_else(|| event.to_string(), str::to_owned);
        parts.push(Part::Bytes(format!("data: {text}\n\n").into_bytes()));
        parts.push(Part::Pause(Duration::from_millis(1)));
    }
    Reply::stream(parts)
}

fn compare(expected: &Value, run: &Run, requests: &[Request], root: &Path) -> Result<(), String> {
    let mut masks = Bindings::default();
    let exit = json!({"code": run.code, "signal": null});
    masks.check("exit", &expected["exit"], &exit).map_err(|why| format!("{why}; stderr: {}", run.err))?;
    if expected["stderrEmpty"] == json!(true) && !run.err.is_empty() {
        return Err(format!("stderr: {}", run.err));
    }
    if expected["stderrEmpty"] == json!(false) && run.err.is_empty() {
        return Err("stderr is empty".into());
    }
    let output: Vec<Value> = run.out.split_terminator('\n').map(line).map(without_null_text).collect();
    let untimed = |lines| json!(joined_output(ends_in_order(last_updates(lines))));
    masks.check("output", &untimed(list(&expected["output"])), &untimed(output))?;
    let sent: Vec<Value> = requests.iter().map(reduced).collect();
    masks.check("requests", &expected["requests"], &json!(sent))?;
    compare_files(&mut masks, &expected["sessionFiles"], root)
}

fn line(text: &str) -> Value {
    serde_json::from_str(text).ok().filter(Value::is_object).unwrap_or_else(|| json!({"$raw": text}))
}

/// How many intermediate results there are is a matter of timing: the last one per call stays.
fn last_updates(lines: Vec<Value>) -> Vec<Value> {
    let is_update = |line: &Value| line["type"] == "tool_execution_update";
    let mut last = BTreeMap::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| is_update(line)) {
        last.insert(line["toolCallId"].to_string(), at);
    }
    let kept = lines.iter().enumerate();
    let kept =
        kept.filter(|(at, line)| !is_update(line) || last.get(&line["toolCallId"].to_string()) == Some(at));
    kept.map(|(_, line)| line.clone()).collect()
}

/// Where output of the user's shell is split is a matter of timing: neighbours of one command are joined.
fn joined_output(lines: Vec<Value>) -> Vec<Value> {
    let mut joined: Vec<Value> = Vec::new();
    for line in lines {
        match joined.last_mut() {
            Some(last) if line["type"] == "bash_execution_update" && same_command(last, &line) => {
                last["delta"] = json!(text_of(last) + &text_of(&line));
            }
            _ => joined.push(line),
        }
    }
    joined
}

fn same_command(a: &Value, b: &Value) -> bool {
    a["type"] == b["type"] && a.get("id") == b.get("id")
}

fn text_of(update: &Value) -> String {
    update["delta"].as_str().unwrap_or_default().to_owned()
}

/// Calls that run side by side end in any order: ends that follow each other are sorted.
fn ends_in_order(mut lines: Vec<Value>) -> Vec<Value> {
    let is_end = |line: &Value| line["type"] == "tool_execution_end";
    for group in lines.chunk_by_mut(|a, b| is_end(a) && is_end(b)) {
        group.sort_by_key(|line| line["toolCallId"].to_string());
    }
    lines
}

/// A request as the recordings keep it.
fn reduced(request: &Request) -> Value {
    let body = &request.body;
    let mut out = json!({"path": request.path, "model": body["model"], "roles": request.roles()});
    if let Some(last) = body["messages"].as_array().and_then(|messages| messages.last()) {
        out["last"] = last["content"].clone();
    }
    {
        let tools = list(&body["tools"]);
        out["tools"] = tools.iter().map(|tool| tool["function"]["name"].clone()).collect();
    }
    if let Some(effort) = body.get("reasoning_effort") {
        out["reasoning_effort"] = effort.clone();
    }
    out
}

/// Each expected file is some file, with the expected records; none is left over.
fn compare_files(masks: &mut Bindings, expected: &Value, root: &Path) -> Result<(), String> {
    let mut files = Vec::new();
    collect(root, &mut files);
    for (pattern, records) in expected.as_object().into_iter().flatten() {
        let mut why =
            format!("{pattern}: no such file among {:?}", files.iter().map(|f| &f.0).collect::<Vec<_>>());
        let found = files.iter().position(|(path, lines)| {
            let mut attempt = masks.clone();
            if attempt.text("path", pattern, path).is_err() {
                return false;
            }
            match attempt.check("file", records, lines) {
                Ok(()) => *masks = attempt,
                Err(other) => {
                    why = other;
                    return false;
                }
            }
            true
        });
        files.swap_remove(found.ok_or(why)?);
    }
    match files.first() {
        Some((path, _)) => Err(format!("unexpected file {path}")),
        None => Ok(()),
    }
}

fn collect(folder: &Path, files: &mut Vec<(String, Value)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ext| ext == "jsonl") {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
            files.push((path.display().to_string(), text.lines().map(line).collect()));
        }
    }
}

/// Where there is no last text, the recordings have no field and we have `null` (spec 60 §8.2).
fn without_null_text(mut record: Value) -> Value {
    if record["command"] == "get_last_assistant_text"
        && let Some(data) = record["data"].as_object_mut()
        && data.get("text").is_some_and(Value::is_null)
    {
        data.remove("text");
    }
    record
}

fn bytes(content: &str) -> Vec<u8> {
    match content.strip_prefix("base64:") {
        Some(data) => tau_tests::program::decode_base64(data),
        None => content.as_bytes().to_owned(),
    }
}

/// The value with a place holder filled in, in keys too.
fn placed(value: &Value, holder: &str, text: &str) -> Value {
    match value {
        Value::String(pattern) => json!(pattern.replace(holder, text)),
        Value::Array(items) => items.iter().map(|item| placed(item, holder, text)).collect(),
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.replace(holder, text), placed(value, holder, text))).collect()
        }
        other => other.clone(),
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    list(value).iter().map(|item| item.as_str().unwrap_or_default().to_owned()).collect()
}
