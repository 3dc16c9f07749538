//! A call of a tool and its result as one element that folds.

use tau_core::json::{Value, to_pretty, to_string};
use tau_core::message::{Block, Content, ImageBlock, ToolCall, ToolResultMessage};
use tau_core::session::tree::Slot;

use super::content::{json, seconds};
use super::html::{Html, is_base64};
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
pub fn call(out: &mut Html, call: &ToolCall, answer: Option<&Answer>) {
    let result = answer.map(|(_, result)| result);
    let diff = result.and_then(diff_of);
    open(out, result, answer.map(|(slot, _)| *slot));
    out.around("", &call.name, "</b>");
    let telling = telling(&call.arguments);
    if let Some(line) = telling.and_then(|(_, value)| first_line(value)) {
        out.around("<code>", &cut(line, SUMMARY), "</code>");
    }
    state(out, result);
    out.markup("</summary>");
    if let Some(error) = &call.arguments_error {
        out.around("<p class=\"p err\">", error, "</p>");
    }
    let is_whole = |value: &str| first_line(value) == Some(value) && value.chars().nth(SUMMARY).is_none();
    let told = telling.filter(|(_, value)| is_whole(value)).map(|(name, _)| name);
    arguments(out, &call.arguments, told, diff.is_some());
    if let Some(result) = result {
        outcome(out, result, diff);
    }
    out.markup("</details>");
}

/// Appends a result whose call does not stand right before it.
pub fn stray(out: &mut Html, result: &ToolResultMessage) {
    open(out, Some(result), None);
    out.around("", &result.tool_name, "</b><small>result alone</small>");
    state(out, Some(result));
    out.markup("</summary>");
    outcome(out, result, diff_of(result));
    out.markup("</details>");
}

/// `entry` is that of the result, unless it has an element of its own.
fn open(out: &mut Html, result: Option<&ToolResultMessage>, entry: Option<Slot>) {
    out.markup(match result {
        None => "<details class=\"t open\"",
        Some(result) if result.is_error => "<details class=\"t bad\"",
        Some(_) => "<details class=t",
    });
    if let Some(slot) = entry {
        out.number(" id=e", slot, "");
    }
    out.markup(if result.is_some_and(has_image) { " open><summary><b>" } else { "><summary><b>" });
}

/// The argument that says most, and its name.
fn telling(arguments: &Value) -> Option<(&'static str, &str)> {
    TELLING.iter().find_map(|name| Some((*name, arguments.get(name)?.as_str()?)))
}

fn first_line(value: &str) -> Option<&str> {
    value.lines().map(str::trim).find(|line| !line.is_empty())
}

/// How the call ended, where that is worth a word.
fn state(out: &mut Html, result: Option<&ToolResultMessage>) {
    let Some(result) = result else {
        out.markup("<i>no result</i>");
        return;
    };
    let fact = |name: &str| result.details.as_ref().and_then(|details| details.get(name));
    let holds = |name: &str| fact(name).and_then(Value::as_bool).unwrap_or_default();
    match fact("exitCode").and_then(Value::as_i64) {
        _ if holds("timedOut") => out.markup("<i>timed out</i>"),
        _ if holds("cancelled") => out.markup("<i>cancelled</i>"),
        Some(code) if code != 0 => out.around("<i>exit ", &code.to_string(), "</i>"),
        None if result.is_error => out.markup("<i>failed</i>"),
        _ => {}
    }
    if let Some(ms) = result.duration_ms.filter(|ms| *ms >= 100) {
        out.around(" <small>", &seconds(ms), "</small>");
    }
}

/// The arguments but the one that was `told` already.
fn arguments(out: &mut Html, arguments: &Value, told: Option<&str>, has_diff: bool) {
    let Some(map) = arguments.as_object() else {
        return out.pre(&to_string(arguments));
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
                long(out, name, line);
            }
            Value::String(line) => short(out, name, line),
            Value::Array(_) | Value::Object(_) => {
                long(out, name, &to_pretty(value));
            }
            scalar => short(out, name, &to_string(scalar)),
        }
    }
}

/// A value below its name.
pub fn long(out: &mut Html, name: &str, value: &str) {
    out.around("<div class=arg>", name, "</div>");
    out.pre(value);
}

/// A value beside its name.
fn short(out: &mut Html, name: &str, value: &str) {
    out.around("<div class=arg>", name, " <code>");
    out.around("", value, "</code></div>");
}

fn pair(edit: &Value) -> Option<(&str, &str)> {
    Some((edit.get("oldText")?.as_str()?, edit.get("newText")?.as_str()?))
}

/// One replacement of an edit that was not made.
fn replacement(out: &mut Html, (old, new): (&str, &str)) {
    out.markup("<pre class=d>");
    for (sign, part) in [('-', old), ('+', new)] {
        for line in part.lines() {
            diff_line(out, &format!("{sign}{line}"));
        }
    }
    out.markup("</pre>");
}

fn diff_of(result: &ToolResultMessage) -> Option<&str> {
    let diff = result.details.as_ref()?.get("diff")?.as_str()?;
    Some(diff).filter(|diff| !diff.is_empty())
}

fn diff(out: &mut Html, diff: &str) {
    out.markup("<pre class=d>");
    diff.lines().for_each(|line| diff_line(out, line));
    out.markup("</pre>");
}

fn diff_line(out: &mut Html, line: &str) {
    match line.as_bytes().first() {
        Some(b'+') => out.around("<span class=add>", line, "</span>\n"),
        Some(b'-') => out.around("<span class=del>", line, "</span>\n"),
        _ => out.around("", line, "\n"),
    }
}

fn outcome(out: &mut Html, result: &ToolResultMessage, shown_diff: Option<&str>) {
    if let Some(shown) = shown_diff {
        diff(out, shown);
    }
    blocks(out, &result.content);
    for (name, value) in
        [("structured content", &result.structured_content), ("nested calls", &result.nested_calls)]
    {
        if let Some(value) = value {
            long(out, name, &to_pretty(value));
        }
    }
}

/// Blocks as preformatted text and images.
fn blocks(out: &mut Html, blocks: &[Block]) {
    for block in blocks {
        match block {
            Block::Text(block) if !block.text.is_empty() => out.pre(&block.text),
            Block::Text(_) => {}
            Block::Image(block) => image(out, block),
            Block::Thinking(block) => out.pre(&block.thinking),
            Block::ToolCall(block) => out.pre(&to_pretty(&block.arguments)),
            Block::Other(value) => out.pre(&to_pretty(value)),
        }
    }
}

/// A tool as the model is told of it.
pub fn declaration(out: &mut Html, tool: &Value) {
    let field = |name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default();
    out.around("<details><summary><b>", field("name"), "</b></summary>");
    out.around("<p class=p>", field("description"), "</p>");
    json(out, tool.get("parameters"));
    out.markup("</details>");
}

/// The images of a message.
pub fn images(out: &mut Html, content: &Content) {
    let Content::Blocks(blocks) = content else { return };
    for block in blocks {
        if let Block::Image(block) = block {
            image(out, block);
        }
    }
}

fn has_image(result: &ToolResultMessage) -> bool {
    result.content.iter().any(|block| matches!(block, Block::Image(_)))
}

/// An image inside the page; what is none of the known kinds, or no base64, is told instead.
pub fn image(out: &mut Html, block: &ImageBlock) {
    let known = IMAGES.iter().find(|kind| kind.eq_ignore_ascii_case(&block.mime_type));
    match known.filter(|_| is_base64(&block.data)) {
        Some(kind) => {
            for piece in ["<p><img alt=\"", kind, "\" src=\"data:", kind, ";base64,"] {
                out.markup(piece);
            }
            out.as_base64(&block.data);
            out.markup("\"></p>");
        }
        None => out.around("<p class=err>An image of the kind “", &block.mime_type, "” is not shown.</p>"),
    }
}
