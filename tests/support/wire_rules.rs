//! What the service behind each protocol refuses in a request, block by block, as its reference says. The rules that all
//! of them share are in [`crate::outline`].

use serde_json::{Map, Value};

type Checked = Result<(), String>;

/// Checks a body.
///
/// # Errors
/// What the service would say.
pub fn check(api: &str, body: &Value) -> Checked {
    match api {
        "anthropic-messages" => anthropic(body),
        "bedrock-converse-stream" => bedrock(body),
        "google-generative-ai" | "google-vertex" => google(body),
        "openai-completions" | "mistral-conversations" => chat(body, api.starts_with("mistral")),
        _ => responses(body),
    }
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a [Value], String> {
    let list = value[key].as_array().map(Vec::as_slice);
    list.ok_or_else(|| format!("{key} is no list in {value}"))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("{key} is no text in {value}"))
}

fn object<'a>(value: &'a Value, key: &str) -> Result<&'a Map<String, Value>, String> {
    value[key].as_object().ok_or_else(|| format!("{key} is no object in {value}"))
}

fn filled<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    Some(text(value, key)?)
        .filter(|text| !text.is_empty())
        .ok_or_else(|| format!("{key} is empty in {value}"))
}

fn that(holds: bool, why: &str, value: &Value) -> Checked {
    if holds { Ok(()) } else { Err(format!("{why}: {value}")) }
}

/// Only these members.
fn only(value: &Value, names: &[&str]) -> Checked {
    let members = value.as_object().ok_or_else(|| format!("no object: {value}"))?;
    match members.keys().find(|name| !names.contains(&name.as_str())) {
        Some(other) => Err(format!("{other} is not known in {value}")),
        None => Ok(()),
    }
}

fn arguments(call: &Value) -> Checked {
    let given: Value =
        serde_json::from_str(text(call, "arguments")?).map_err(|e| format!("{e} in {call}"))?;
    that(given.is_object(), "arguments are no object", call)
}

fn base64(data: &str) -> Checked {
    use base64::Engine;
    let read = base64::engine::general_purpose::STANDARD.decode(data);
    read.map(|_| ()).map_err(|e| format!("{e}: {data}"))
}

fn data_url(url: &str) -> Checked {
    let (kind, data) = url.split_once(";base64,").ok_or_else(|| format!("no data: {url}"))?;
    that(kind.starts_with("data:image/"), "no image", &url.into())?;
    base64(data)
}

fn anthropic(body: &Value) -> Checked {
    let messages = list(body, "messages")?;
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let (role, content) = (text(message, "role")?, &message["content"]);
        that(at > 0 || role != "assistant", "the first message is not of the user", message)?;
        if content.is_string() {
            that(open.is_empty(), "calls without results before", message)?;
            filled(message, "content")?;
            continue;
        }
        let blocks = list(message, "content")?;
        that(!blocks.is_empty(), "an empty message", message)?;
        let mut results_over = role != "user";
        let calls = open.len();
        for block in blocks {
            match (role, text(block, "type")?) {
                (_, "text") => {
                    that(!text(block, "text")?.trim().is_empty(), "a blank text", block)?;
                    results_over = true;
                }
                ("user", "image") => {
                    let kinds = ["image/png", "image/jpeg", "image/gif", "image/webp"];
                    that(kinds.contains(&text(&block["source"], "media_type")?), "a foreign image", block)?;
                    base64(text(&block["source"], "data")?)?;
                    results_over = true;
                }
                ("user", "tool_result") => {
                    that(!results_over, "a result behind other blocks", message)?;
                    let id = text(block, "tool_use_id")?;
                    open.retain(|call| *call != id);
                    let nested = block["content"].as_array().into_iter().flatten();
                    for part in nested {
                        let kind = text(part, "type")?;
                        let takes = kind == "text" || kind == "image" && block["is_error"] != true;
                        that(takes, "what no result takes", block)?;
                    }
                }
                ("assistant", "thinking") => {
                    text(block, "thinking")?;
                    filled(block, "signature")?;
                }
                ("assistant", "redacted_thinking") => {
                    filled(block, "data")?;
                }
                ("assistant", "tool_use") => {
                    object(block, "input")?;
                    filled(block, "name")?;
                    open.push(text(block, "id")?);
                }
                (role, kind) => return Err(format!("{kind} of {role} in {message}")),
            }
        }
        that(role == "assistant" || calls == 0 || open.is_empty(), "calls without results", message)?;
    }
    Ok(())
}

fn bedrock(body: &Value) -> Checked {
    let messages = list(body, "messages")?;
    for (at, message) in messages.iter().enumerate() {
        let role = text(message, "role")?;
        that(role == ["user", "assistant"][at % 2], "the sides do not take turns", message)?;
        let blocks = list(message, "content")?;
        that(!blocks.is_empty(), "an empty message", message)?;
        for block in blocks {
            let first = block.as_object().and_then(|members| members.iter().next());
            let (kind, value) = first.ok_or_else(|| format!("an empty block in {message}"))?;
            match (role, kind.as_str()) {
                (_, "text") => that(!text(block, "text")?.trim().is_empty(), "a blank text", block)?,
                ("user", "image") => {
                    that(
                        ["png", "jpeg", "gif", "webp"].contains(&text(value, "format")?),
                        "a foreign image",
                        block,
                    )?;
                    base64(text(&value["source"], "bytes")?)?;
                }
                ("user", "cachePoint") => {}
                ("user", "toolResult") => {
                    that(!list(value, "content")?.is_empty(), "an empty result", block)?;
                    that(matches!(text(value, "status")?, "success" | "error"), "the status", block)?;
                }
                ("assistant", "toolUse") => {
                    object(value, "input")?;
                    filled(value, "name")?;
                }
                ("assistant", "reasoningContent") => {
                    only(value, &["reasoningText", "redactedContent"])?;
                    if let Some(data) = value["redactedContent"].as_str() {
                        base64(data)?;
                    } else {
                        text(&value["reasoningText"], "text")?;
                    }
                }
                (role, kind) => return Err(format!("{kind} of {role} in {message}")),
            }
        }
    }
    Ok(())
}

fn google(body: &Value) -> Checked {
    let contents = list(body, "contents")?;
    let names = |content: &Value, kind: &str| -> Vec<String> {
        let parts = content["parts"].as_array().into_iter().flatten();
        parts.filter_map(|part| Some(part.get(kind)?["name"].as_str()?.to_owned())).collect()
    };
    for (at, content) in contents.iter().enumerate() {
        let role = text(content, "role")?;
        let parts = list(content, "parts")?;
        that(!parts.is_empty(), "an empty content", content)?;
        for part in parts {
            const KINDS: [&str; 4] = ["text", "inlineData", "functionCall", "functionResponse"];
            only(
                part,
                &["text", "inlineData", "functionCall", "functionResponse", "thought", "thoughtSignature"],
            )?;
            that(KINDS.iter().filter(|kind| part.get(**kind).is_some()).count() == 1, "not one kind", part)?;
            if let Some(signature) = part["thoughtSignature"].as_str() {
                let raw = signature == "skip_thought_signature_validator";
                that(role == "model", "a signature of the user", part)?;
                if !raw {
                    base64(signature)?;
                }
            }
            if part.get("functionCall").is_some() {
                object(&part["functionCall"], "args")?;
                that(role == "model", "a call of the user", part)?;
            }
            if part.get("functionResponse").is_some() {
                object(&part["functionResponse"], "response")?;
                that(role == "user", "a result of the model", part)?;
            }
            if part.get("inlineData").is_some() {
                base64(text(&part["inlineData"], "data")?)?;
            }
        }
        let calls = names(content, "functionCall");
        if calls.is_empty() {
            continue;
        }
        let before = at.checked_sub(1).map(|at| &contents[at]["role"]);
        that(before.is_some_and(|role| role == "user"), "calls that follow nothing of the user", content)?;
        let after = contents.get(at + 1).map(|next| names(next, "functionResponse")).unwrap_or_default();
        that(after.len() == calls.len(), "not as many results as calls directly behind them", content)?;
    }
    Ok(())
}

fn chat(body: &Value, mistral: bool) -> Checked {
    for message in list(body, "messages")? {
        let role = text(message, "role")?;
        let calls = message["tool_calls"].as_array();
        match &message["content"] {
            Value::String(_) => {}
            Value::Null => that(role == "assistant" && calls.is_some(), "no content", message)?,
            _ => {
                for part in list(message, "content")? {
                    match text(part, "type")? {
                        "text" => that(!text(part, "text")?.is_empty() || mistral, "an empty text", part)?,
                        "image_url" if mistral => data_url(text(part, "image_url")?)?,
                        "image_url" if role == "user" => data_url(text(&part["image_url"], "url")?)?,
                        "thinking" if mistral && role == "assistant" => {}
                        kind => return Err(format!("{kind} of {role}: {message}")),
                    }
                }
            }
        }
        match role {
            "system" | "developer" | "user" => that(calls.is_none(), "calls outside a reply", message)?,
            "assistant" => {
                that(calls.is_none_or(|calls| !calls.is_empty()), "an empty list of calls", message)?;
                let says = !matches!(&message["content"], Value::Null) && message["content"] != "";
                that(says || calls.is_some(), "a reply without anything", message)?;
                for call in calls.into_iter().flatten() {
                    that(call["type"] == "function", "no function", call)?;
                    filled(&call["function"], "name")?;
                    arguments(&call["function"])?;
                }
            }
            "tool" => {
                filled(message, "tool_call_id")?;
            }
            role => return Err(format!("the role {role}")),
        }
    }
    Ok(())
}

fn responses(body: &Value) -> Checked {
    let items = list(body, "input")?;
    for (at, item) in items.iter().enumerate() {
        let id = item["id"].as_str();
        that(id.is_none_or(|id| !id.is_empty() && id.chars().count() <= 64), "the id", item)?;
        match item["type"].as_str() {
            None => {
                let role = text(item, "role")?;
                that(matches!(role, "user" | "system" | "developer"), "the role", item)?;
                if !item["content"].is_string() {
                    input_parts(item, "content")?;
                }
            }
            Some("message") => {
                that(item["role"] == "assistant", "the role", item)?;
                for part in list(item, "content")? {
                    that(matches!(text(part, "type")?, "output_text" | "refusal"), "the part", part)?;
                    text(part, "text")?;
                }
            }
            Some("reasoning") => {
                list(item, "summary")?;
                that(id.is_some(), "the id", item)?;
                let next = items.get(at + 1).and_then(|next| next["type"].as_str());
                let own =
                    matches!(next, Some("reasoning" | "message" | "function_call" | "custom_tool_call"));
                that(own, "reasoning without the item that follows it", item)?;
            }
            Some("function_call") => {
                that(id.is_none_or(|id| id.starts_with("fc")), "the id", item)?;
                filled(item, "name")?;
                arguments(item)?;
            }
            Some("function_call_output") => {
                filled(item, "call_id")?;
                if !item["output"].is_string() {
                    input_parts(item, "output")?;
                }
            }
            Some(kind) => return Err(format!("the item {kind}")),
        }
    }
    Ok(())
}

fn input_parts(item: &Value, key: &str) -> Checked {
    let parts = list(item, key)?;
    that(!parts.is_empty(), "nothing in it", item)?;
    for part in parts {
        match text(part, "type")? {
            "input_text" => that(!text(part, "text")?.is_empty(), "an empty text", part)?,
            "input_image" => data_url(text(part, "image_url")?)?,
            kind => return Err(format!("the part {kind}")),
        }
    }
    Ok(())
}
