//! A call of a tool and its result as one element that folds.

use std::fmt::Write as _;

use tau_core::json::{Value, to_string};
use tau_core::message::{Block, ImageBlock, ToolCall, ToolResultMessage};
use tau_core::session::tree::Slot;

use super::escape::{pre, text};
use super::survey::cut;

/// Arguments that say in short what a call does, best first.
const TELLING: [&str; 9] =
    ["command", "pattern", "path", "file_path", "query", "url", "skill", "name", "prompt"];

/// Characters of the summary of a call.
const SUMMARY: usize = 160;

/// Text arguments up to this many characters stand beside their name.
const SHORT: usize = 100;

/// Kinds of images a page shows. Those that can hold scripts are not among them.
const IMAGES: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"];

/// A result and its entry.
pub type Answer = (Slot, ToolResultMessage);

/// Appends a call; `answer` is its result, if there is one.
pub fn call(out: &mut String, call: &ToolCall, answer: Option<&Answer>) {
    let result = answer.map(|(_, result)| result);
    let diff = result.and_then(diff_of);
    open(out, result, answer.map(|(slot, _)| *slot));
    text(out, &call.name);
    out.push_str("</b>");
    let telling = telling(&call.arguments);
    if let Some(line) = telling.and_then(|(_, value)| first_line(value)) {
        out.push_str("<code>");
        text(out, &cut(line, SUMMARY));
        out.push_str("</code>");
    }
    state(out, result);
    out.push_str("</summary>");
    if let Some(error) = &call.arguments_error {
        out.push_str("<p class=\"p err\">");
        text(out, error);
        out.push_str("</p>");
    }
    let is_whole = |value: &str| first_line(value) == Some(value) && value.chars().nth(SUMMARY).is_none();
    let told = telling.filter(|(_, value)| is_whole(value)).map(|(name, _)| name);
    arguments(out, &call.arguments, told, diff.is_some());
    if let Some(result) = result {
        outcome(out, result, diff);
    }
    out.push_str("</details>");
}

/// Appends a result whose call does not stand right before it.
pub fn stray(out: &mut String, result: &ToolResultMessage) {
    open(out, Some(result), None);
    text(out, &result.tool_name);
    out.push_str("</b><small>result alone</small>");
    state(out, Some(result));
    out.push_str("</summary>");
    outcome(out, result, diff_of(result));
    out.push_str("</details>");
}

/// `entry` is that of the result, unless it has an element of its own.
fn open(out: &mut String, result: Option<&ToolResultMessage>, entry: Option<Slot>) {
    let class = match result {
        None => "t open",
        Some(result) if result.is_error => "t bad",
        Some(_) => "t",
    };
    let _ = write!(out, "<details class=\"{class}\"");
    if let Some(slot) = entry {
        let _ = write!(out, " id=e{slot}");
    }
    out.push_str(if result.is_some_and(has_image) { " open><summary><b>" } else { "><summary><b>" });
}

/// The argument that says most, and its name.
fn telling(arguments: &Value) -> Option<(&'static str, &str)> {
    TELLING.iter().find_map(|name| Some((*name, arguments.get(name)?.as_str()?)))
}

fn first_line(value: &str) -> Option<&str> {
    value.lines().map(str::trim).find(|line| !line.is_empty())
}

/// How the call ended, where that is worth a word.
fn state(out: &mut String, result: Option<&ToolResultMessage>) {
    let Some(result) = result else {
        out.push_str("<i>no result</i>");
        return;
    };
    let fact = |name: &str| result.details.as_ref().and_then(|details| details.get(name));
    let holds = |name: &str| fact(name).and_then(Value::as_bool).unwrap_or_default();
    match fact("exitCode").and_then(Value::as_i64) {
        _ if holds("timedOut") => out.push_str("<i>timed out</i>"),
        _ if holds("cancelled") => out.push_str("<i>cancelled</i>"),
        Some(code) if code != 0 => {
            let _ = write!(out, "<i>exit {code}</i>");
        }
        None if result.is_error => out.push_str("<i>failed</i>"),
        _ => {}
    }
    if let Some(ms) = result.duration_ms.filter(|ms| *ms >= 100) {
        let _ = write!(out, " <small>{}</small>", seconds(ms));
    }
}

/// `0.3 s`, `75 s`
pub fn seconds(ms: u64) -> String {
    if ms < 10_000 { format!("{}.{} s", ms / 1000, ms % 1000 / 100) } else { format!("{} s", ms / 1000) }
}

/// The arguments but the one that was `told` already.
fn arguments(out: &mut String, arguments: &Value, told: Option<&str>, has_diff: bool) {
    let Some(map) = arguments.as_object() else {
        return pre(out, "", &to_string(arguments));
    };
    for (name, value) in map.iter().filter(|(name, _)| told != Some(name.as_str())) {
        match value {
            // The difference says the same, and where.
            _ if has_diff && matches!(name.as_str(), "oldText" | "newText") => {}
            Value::Array(edits) if name == "edits" && edits.iter().all(|edit| pair(edit).is_some()) => {
                if !has_diff {
                    edits.iter().filter_map(pair).for_each(|pair| replacement(out, pair));
                }
            }
            Value::String(line) if line.contains('\n') || line.chars().nth(SHORT).is_some() => {
                argument(out, name);
                out.push_str("</div>");
                pre(out, "", line);
            }
            Value::String(line) => short(out, name, line),
            Value::Array(_) | Value::Object(_) => {
                argument(out, name);
                out.push_str("</div>");
                pre(out, "", &serde_json::to_string_pretty(value).unwrap_or_default());
            }
            scalar => short(out, name, &to_string(scalar)),
        }
    }
}

fn argument(out: &mut String, name: &str) {
    out.push_str("<div class=arg>");
    text(out, name);
}

fn short(out: &mut String, name: &str, value: &str) {
    argument(out, name);
    out.push_str(" <code>");
    text(out, value);
    out.push_str("</code></div>");
}

fn pair(edit: &Value) -> Option<(&str, &str)> {
    Some((edit.get("oldText")?.as_str()?, edit.get("newText")?.as_str()?))
}

/// One replacement of an edit that was not made.
fn replacement(out: &mut String, (old, new): (&str, &str)) {
    out.push_str("<pre class=d>");
    for (sign, class, part) in [('-', "del", old), ('+', "add", new)] {
        for line in part.lines() {
            diff_line(out, class, &format!("{sign}{line}"));
        }
    }
    out.push_str("</pre>");
}

fn diff_of(result: &ToolResultMessage) -> Option<&str> {
    let diff = result.details.as_ref()?.get("diff")?.as_str()?;
    Some(diff).filter(|diff| !diff.is_empty())
}

fn diff(out: &mut String, diff: &str) {
    out.push_str("<pre class=d>");
    for line in diff.lines() {
        let class = match line.as_bytes().first() {
            Some(b'+') => "add",
            Some(b'-') => "del",
            _ => "",
        };
        diff_line(out, class, line);
    }
    out.push_str("</pre>");
}

fn diff_line(out: &mut String, class: &str, line: &str) {
    if class.is_empty() {
        text(out, line);
    } else {
        let _ = write!(out, "<span class={class}>");
        text(out, line);
        out.push_str("</span>");
    }
    out.push('\n');
}

fn outcome(out: &mut String, result: &ToolResultMessage, shown_diff: Option<&str>) {
    if let Some(shown) = shown_diff {
        diff(out, shown);
    }
    blocks(out, &result.content);
    for (name, value) in
        [("structured content", &result.structured_content), ("nested calls", &result.nested_calls)]
    {
        if let Some(value) = value {
            argument(out, name);
            out.push_str("</div>");
            pre(out, "", &serde_json::to_string_pretty(value).unwrap_or_default());
        }
    }
}

/// Blocks as preformatted text and images.
pub fn blocks(out: &mut String, blocks: &[Block]) {
    for block in blocks {
        match block {
            Block::Text(block) if !block.text.is_empty() => pre(out, "", &block.text),
            Block::Text(_) => {}
            Block::Image(block) => image(out, block),
            Block::Thinking(block) => pre(out, "", &block.thinking),
            Block::ToolCall(block) => pre(out, "", &to_string(&block.arguments)),
            Block::Other(value) => pre(out, "", &to_string(value)),
        }
    }
}

fn has_image(result: &ToolResultMessage) -> bool {
    result.content.iter().any(|block| matches!(block, Block::Image(_)))
}

/// An image inside the page; what is none of the known kinds, or no base64, is told instead.
pub fn image(out: &mut String, block: &ImageBlock) {
    let is_base64 = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=');
    let known = IMAGES.iter().find(|kind| kind.eq_ignore_ascii_case(&block.mime_type));
    match known.filter(|_| !block.data.is_empty() && block.data.bytes().all(is_base64)) {
        Some(kind) => {
            let _ = write!(out, "<p><img alt=\"{kind}\" src=\"data:{kind};base64,");
            out.push_str(&block.data);
            out.push_str("\"></p>");
        }
        None => {
            out.push_str("<p class=err>An image of the kind “");
            text(out, &block.mime_type);
            out.push_str("” is not shown.</p>");
        }
    }
}
