//! Requests of every protocol in one form, and the rules that all endpoints have.

use std::collections::BTreeSet;

use serde_json::Value;

/// One message of a request, whatever the protocol.
#[derive(Debug, Default)]
pub struct Turn {
    /// `assistant`, or who else speaks.
    pub role: String,
    /// Ids of calls.
    pub calls: Vec<String>,
    /// Ids of the calls that results are for.
    pub results: Vec<String>,
    /// Texts, also those of results.
    pub texts: Vec<String>,
}

/// The messages of a body.
#[must_use]
pub fn outline(body: &Value) -> Vec<Turn> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut turns = Vec::new();
    for item in body["input"].as_array().into_iter().flatten() {
        let is_reply = matches!(
            item["type"].as_str(),
            Some("message" | "reasoning" | "function_call" | "custom_tool_call")
        );
        let role = if is_reply { "assistant".into() } else { text(&item["role"]) };
        // The items of one reply stand in a row.
        let joins = is_reply && turns.last().is_some_and(|turn: &Turn| turn.role == role);
        if !joins {
            turns.push(Turn { role, ..Turn::default() });
        }
        let Some(turn) = turns.last_mut() else { continue };
        match item["type"].as_str() {
            Some("function_call" | "custom_tool_call") => turn.calls.push(text(&item["call_id"])),
            Some("function_call_output" | "custom_tool_call_output") => {
                turn.results.push(text(&item["call_id"]));
                turn.texts.push(item["output"].as_str().map_or_else(|| "blocks".into(), str::to_owned));
            }
            _ => {
                let parts = item["content"].as_array().into_iter().flatten();
                turn.texts.extend(parts.filter_map(|part| part.get("text").map(text)));
            }
        }
    }
    for content in body["contents"].as_array().into_iter().flatten() {
        let role = if content["role"] == "model" { "assistant" } else { "user" };
        let mut turn = Turn { role: role.into(), ..Turn::default() };
        for part in content["parts"].as_array().into_iter().flatten() {
            turn.texts.extend(part["text"].as_str().map(str::to_owned));
            turn.calls.extend(part["functionCall"].get("id").map(text));
            if let Some(result) = part.get("functionResponse") {
                turn.results.push(text(&result["id"]));
                let answer = result["response"].as_object().and_then(|answer| answer.values().next());
                turn.texts.push(answer.map(text).unwrap_or_default());
            }
        }
        turns.push(turn);
    }
    for message in body["messages"].as_array().into_iter().flatten() {
        let mut turn = Turn { role: text(&message["role"]), ..Turn::default() };
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            turn.calls.push(text(&call["id"]));
        }
        if message["role"] == "tool" {
            turn.results.push(text(&message["tool_call_id"]));
        }
        match &message["content"] {
            Value::String(content) => turn.texts.push(content.clone()),
            Value::Array(blocks) if blocks.is_empty() => turn.texts.push(String::new()),
            content => {
                for block in content.as_array().into_iter().flatten() {
                    match block["type"].as_str() {
                        Some("text") => turn.texts.push(text(&block["text"])),
                        None => converse(block, &mut turn),
                        Some("tool_use") => turn.calls.push(text(&block["id"])),
                        Some("tool_result") => {
                            turn.results.push(text(&block["tool_use_id"]));
                            turn.texts.push(
                                block["content"].as_str().map_or_else(|| "blocks".into(), str::to_owned),
                            );
                        }
                        _ => {}
                    }
                }
            }
        }
        turns.push(turn);
    }
    turns
}

/// A block of Bedrock, which names its kind by its only key.
fn converse(block: &Value, turn: &mut Turn) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    turn.texts.extend(block["text"].as_str().map(str::to_owned));
    turn.calls.extend(block["toolUse"].get("toolUseId").map(text));
    if let Some(result) = block.get("toolResult") {
        turn.results.push(text(&result["toolUseId"]));
        let parts = result["content"].as_array().into_iter().flatten();
        turn.texts.extend(parts.filter_map(|part| part["text"].as_str().map(str::to_owned)));
    }
}

/// What a protocol takes.
#[derive(Clone, Copy, Debug)]
pub struct Demands {
    /// A blank text of a reply goes back when it is signed.
    pub signed_blanks: bool,
    /// Call ids.
    pub ids: Ids,
}

impl Demands {
    /// The demands of a protocol.
    #[must_use]
    pub fn of(api: &str) -> Self {
        Self { signed_blanks: api.starts_with("google") || api.ends_with("responses"), ids: Ids::of(api) }
    }
}

/// The form of call ids that a protocol takes.
#[derive(Clone, Copy, Debug)]
pub struct Ids {
    /// Longest, in characters.
    pub max: usize,
    /// Characters besides ASCII letters and digits; `None` = any.
    pub marks: Option<&'static str>,
}

impl Ids {
    fn of(api: &str) -> Self {
        match api {
            "openai-completions" => Self { max: 64, marks: Some("_-.:") },
            "mistral-conversations" => Self { max: 9, marks: Some("") },
            _ => Self { max: 64, marks: Some("_-") },
        }
    }

    fn take(self, id: &str) -> bool {
        let known = |c: char| c.is_ascii_alphanumeric() || self.marks.is_none_or(|marks| marks.contains(c));
        !id.is_empty() && id.chars().count() <= self.max && id.chars().all(known)
    }
}

/// What endpoints demand: ids unique and in their alphabet, each call answered once directly after it, no blank text.
///
/// # Errors
/// What is against the rules.
pub fn rules(demands: Demands, turns: &[Turn]) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for turn in turns {
        let signed = demands.signed_blanks && turn.role == "assistant";
        if let Some(blank) = turn.texts.iter().find(|text| text.trim().is_empty() && !signed) {
            return Err(format!("blank text {blank:?}"));
        }
        for id in &turn.results {
            if !open.remove(id.as_str()) {
                return Err(format!("a result for {id}, which is not open"));
            }
        }
        if turn.results.is_empty() && !open.is_empty() {
            return Err(format!("{open:?} have no result"));
        }
        for id in &turn.calls {
            if !demands.ids.take(id) {
                return Err(format!("the id {id:?}"));
            }
            if !seen.insert(id.as_str()) {
                return Err(format!("the id {id} twice"));
            }
            open.insert(id);
        }
        if !turn.calls.is_empty() && turn.role != "assistant" {
            return Err("calls outside a reply".into());
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} have no result at the end")) }
}
