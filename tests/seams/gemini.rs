//! Bodies of chat completions in the words of Gemini.

use serde_json::{Map, Value, json};

/// The same stream, with the same line ends, comments and spaces; `None` when it holds pieces of arguments, which this
/// protocol does not have.
pub fn body(chat: &str) -> Option<String> {
    chat.split_inclusive(['\n', '\r']).map(line).collect()
}

fn line(line: &str) -> Option<String> {
    let Some((field, data)) = line.split_once(':') else { return Some(line.to_owned()) };
    let json = data.trim();
    match serde_json::from_str::<Value>(json) {
        Ok(chunk) if field.trim_start_matches('\u{feff}') == "data" => {
            Some(line.replace(json, &frame(&chunk)?.to_string()))
        }
        _ => Some(line.to_owned()),
    }
}

fn frame(chunk: &Value) -> Option<Value> {
    if chunk["error"].is_object() {
        return Some(json!({"error": chunk["error"]}));
    }
    let mut frame = Map::new();
    if let Some(choice) = chunk["choices"].get(0) {
        let text = choice["delta"]["content"].as_str().map(|text| json!({"text": text}));
        let calls = choice["delta"]["tool_calls"].as_array().into_iter().flatten();
        let calls = calls.map(call).collect::<Option<Vec<_>>>()?;
        let parts: Vec<Value> = text.into_iter().chain(calls).collect();
        let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
        if let Some(word) = choice["finish_reason"].as_str() {
            candidate["finishReason"] = json!(if word == "length" { "MAX_TOKENS" } else { "STOP" });
        }
        frame.insert("candidates".into(), json!([candidate]));
    }
    if chunk["usage"].is_object() {
        let names = [
            ("promptTokenCount", "prompt_tokens"),
            ("candidatesTokenCount", "completion_tokens"),
            ("totalTokenCount", "total_tokens"),
        ];
        let counts = names.map(|(own, other)| (own.to_owned(), chunk["usage"][other].clone()));
        frame.insert("usageMetadata".into(), counts.into_iter().collect());
    }
    Some(Value::Object(frame))
}

fn call(call: &Value) -> Option<Value> {
    let function = &call["function"];
    let text = function["arguments"].as_str().unwrap_or_default();
    let args = if text.is_empty() { None } else { Some(serde_json::from_str::<Value>(text).ok()?) };
    let mut made = json!({"name": function["name"].as_str()?});
    for (key, value) in [("id", call.get("id").cloned()), ("args", args)] {
        if let Some(value) = value {
            made[key] = value;
        }
    }
    Some(json!({ "functionCall": made }))
}
