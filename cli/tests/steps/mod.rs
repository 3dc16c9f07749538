//! The steps of a recorded talk: what is sent, what is waited for.

use std::collections::BTreeMap;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tau_tests::program::{Run, Sandbox, decode_base64};
use tau_tests::server::Gate;
use tau_tests::talk::Talk;

/// Follows the steps; then input ends, unless a step waited for the exit.
pub(crate) fn follow(
    command: Command,
    steps: &[Value],
    gates: &BTreeMap<String, Gate>,
    place: &Sandbox,
    limit: Duration,
) -> Result<Run, String> {
    let mut talk = Talk::start(command);
    let mut captured = BTreeMap::new();
    for step in steps {
        if step["waitExit"] == true {
            return Ok(talk.wait_exit());
        }
        if let Some(wanted) = step.get("waitOut") {
            let record = talk.wait_within(wanted, limit)?;
            for (name, path) in step["capture"].as_object().into_iter().flatten() {
                let path = format!("/{}", path.as_str().unwrap_or_default().replace('.', "/"));
                captured.insert(name.clone(), record.pointer(&path).cloned().unwrap_or_default());
            }
        } else {
            one(step, &mut talk, gates, place, &captured);
        }
    }
    Ok(talk.finish())
}

fn one(
    step: &Value,
    talk: &mut Talk,
    gates: &BTreeMap<String, Gate>,
    place: &Sandbox,
    captured: &BTreeMap<String, Value>,
) {
    let text = |key: &str| step[key].as_str();
    if let Some(record) = step.get("send") {
        talk.send(&filled(record, captured));
    } else if let Some(raw) = text("sendRaw") {
        talk.send_bytes(raw.as_bytes());
    } else if let Some(data) = text("sendBase64") {
        talk.send_bytes(&decode_base64(data));
    } else if let Some(name) = text("waitGate") {
        gates[name].wait_reached();
    } else if let Some(name) = text("release") {
        gates[name].open();
    } else if let Some(ms) = step["sleep"].as_u64() {
        thread::sleep(Duration::from_millis(ms));
    } else if let Some(file) = step.get("writeFile") {
        let path = file["path"].as_str().unwrap_or_default();
        place.put(path, file["text"].as_str().unwrap_or_default());
    } else if let Some(name) = text("signal") {
        talk.signal(if name == "SIGHUP" { 1 } else { 15 });
    } else if step["closeStdin"] == true {
        talk.close();
    } else {
        panic!("unknown step {step}");
    }
}

/// `$name` stands for what was captured.
fn filled(value: &Value, captured: &BTreeMap<String, Value>) -> Value {
    match value {
        Value::String(text) => {
            let known = text.strip_prefix('$').and_then(|name| captured.get(name));
            known.unwrap_or(value).clone()
        }
        Value::Array(items) => items.iter().map(|item| filled(item, captured)).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), filled(value, captured))).collect(),
        other => other.clone(),
    }
}
