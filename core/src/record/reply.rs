//! Replies as records.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::command::{level, model};
use super::value::{
    blocks, count, flag, full_pairs, pairs, read_bytes, text, write_bytes, write_pairs, write_texts,
};
use crate::agent::{HookReply, ResultChange, ToolVerdict, TurnChange, TurnDecision};
use crate::auth::sigv4::Keys;
use crate::fault::{FaultKind, IoFault};
use crate::input::Reply;
use crate::json::{Value, Writer};
use crate::message::{Message, Usage, write_blocks};
use crate::model::ThinkingLevel;
use crate::op::{
    AwsAccess, Credential, EntryKind, Hit, ImageData, Meta, Outcome, ProcExit, Stream, TextSlice,
};
use crate::provider::openai_responses::codex;
use crate::tools::ToolOutput;

/// Stands for a secret.
const STARS: &str = "***";

/// Writes the kind and the fields of a reply; bytes of bodies and pipes have a form of their own.
pub(super) fn write(reply: &Reply, w: &mut Writer) {
    match reply {
        Reply::Head { status, headers } => {
            w.field_str("in", "head");
            w.field_u64("status", u64::from(*status));
            write_pairs("headers", headers.iter().map(|(name, value)| (&**name, Some(&**value))), w);
        }
        Reply::Chunk { bytes, .. } => {
            w.field_str("in", "chunk");
            write_bytes(bytes, w);
        }
        Reply::Update(output) => {
            w.field_str("in", "update");
            write_output(output, w);
        }
        Reply::Done(outcome) => {
            w.field_str("in", "done");
            write_outcome(outcome, w);
        }
        Reply::Failed(fault) => {
            w.field_str("in", "failed");
            w.field_str("kind", fault.kind.code());
            w.field_str("detail", &fault.detail);
        }
    }
}

/// Where bytes came from.
pub(super) fn stream(record: &Value) -> Stream {
    match record.get("of").and_then(Value::as_str) {
        Some("stdout") => Stream::Stdout,
        Some("stderr") => Stream::Stderr,
        _ => Stream::Body,
    }
}

/// Reads a reply by its kind.
pub(super) fn read(kind: &str, record: &Value) -> Option<Reply> {
    Some(match kind {
        "head" => Reply::Head {
            status: u16::try_from(count(record, "status")?).ok()?,
            headers: full_pairs(record, "headers"),
        },
        "update" => Reply::Update(read_output(record)),
        "done" => Reply::Done(read_outcome(record)?),
        "failed" => Reply::Failed(IoFault {
            kind: FaultKind::parse(record.get("kind")?.as_str()?),
            detail: text(record, "detail")?,
        }),
        _ => return None,
    })
}

fn write_output(output: &ToolOutput, w: &mut Writer) {
    w.key("content");
    write_blocks(&output.content, w);
    for (key, value) in [("details", &output.details), ("structured", &output.structured)] {
        if let Some(value) = value {
            w.field_value(key, value);
        }
    }
    if let Some(usage) = &output.usage {
        w.key("usage");
        usage.write(w);
    }
    w.field_bool("error", output.is_error);
    if let Some(terminate) = output.terminate {
        w.field_bool("terminate", terminate);
    }
}

fn read_output(record: &Value) -> ToolOutput {
    ToolOutput {
        content: blocks(record, "content"),
        details: record.get("details").cloned(),
        structured: record.get("structured").cloned(),
        usage: record.get("usage").and_then(Usage::from_value),
        is_error: flag(record, "error"),
        terminate: record.get("terminate").and_then(Value::as_bool),
    }
}

fn write_outcome(outcome: &Outcome, w: &mut Writer) {
    let mut what = |what: &str| w.field_str("what", what);
    match outcome {
        Outcome::Unit => what("unit"),
        Outcome::BodyEnd => what("body_end"),
        Outcome::Meta(meta) => {
            what("meta");
            w.field_str("kind", kind_name(meta.kind));
            w.field_u64("size", meta.size);
            w.field_u64("mode", u64::from(meta.mode));
            w.field_i64("mtime", meta.mtime_ms);
            w.field_str("real", &meta.real);
        }
        Outcome::Bytes(bytes) => {
            what("bytes");
            write_bytes(bytes, w);
        }
        Outcome::Text(slice) => {
            what("text");
            w.field_str("text", &slice.text);
            let numbers =
                [slice.total_lines, slice.selected_lines, slice.selected_bytes, slice.first_line_bytes];
            w.key("numbers");
            w.begin_array();
            numbers.into_iter().for_each(|number| w.u64(number));
            w.end_array();
            w.field_bool("ends_empty", slice.ends_empty);
            write_bytes(&slice.head, w);
        }
        Outcome::Image(image) => {
            what("image");
            match image {
                Ok(image) => write_image(image, w),
                Err(why) => w.field_str("why", why),
            }
        }
        Outcome::Entries(entries) => {
            what("entries");
            let pairs = entries.iter().map(|(name, kind)| (&**name, Some(kind_name(*kind))));
            write_pairs("entries", pairs, w);
        }
        Outcome::Hits { hits, more } => {
            what("hits");
            w.field_bool("more", *more);
            w.key("hits");
            w.begin_array();
            hits.iter().for_each(|hit| write_hit(hit, w));
            w.end_array();
        }
        Outcome::Paths { paths, more } => {
            what("paths");
            w.field_bool("more", *more);
            write_texts("paths", paths.iter().map(String::as_str), w);
        }
        Outcome::Exit(exit) => {
            what("exit");
            if let Some(code) = exit.code {
                w.field_i64("code", i64::from(code));
            }
            w.field_bool("killed", exit.killed);
            w.field_bool("leftovers", exit.leftovers_killed);
            w.field_bool("before", exit.exited_before_cancel);
            w.field_opt_str("spill", exit.spill.as_deref());
        }
        Outcome::Appended { len, foreign } => {
            what("appended");
            w.field_u64("len", *len);
            w.field_bool("foreign", *foreign);
        }
        Outcome::Secret(secret) => {
            what("secret");
            match secret {
                Ok(credential) => write_credential(credential, w),
                Err(why) => w.field_str("why", why),
            }
        }
        Outcome::Host(output) => {
            what("host");
            write_output(output, w);
        }
        Outcome::Hook(reply) => {
            what("hook");
            write_hook(reply, w);
        }
    }
}

fn read_outcome(record: &Value) -> Option<Outcome> {
    Some(match record.get("what")?.as_str()? {
        "unit" => Outcome::Unit,
        "body_end" => Outcome::BodyEnd,
        "meta" => Outcome::Meta(Meta {
            kind: kind_of(record.get("kind")?.as_str()?),
            size: count(record, "size")?,
            mode: u32::try_from(count(record, "mode")?).ok()?,
            mtime_ms: record.get("mtime")?.as_i64()?,
            real: text(record, "real")?,
        }),
        "bytes" => Outcome::Bytes(read_bytes(record)?),
        "text" => {
            let number = |at: usize| record.get("numbers")?.get(at)?.as_u64();
            Outcome::Text(TextSlice {
                text: text(record, "text")?,
                total_lines: number(0)?,
                selected_lines: number(1)?,
                selected_bytes: number(2)?,
                first_line_bytes: number(3)?,
                ends_empty: flag(record, "ends_empty"),
                head: read_bytes(record)?,
            })
        }
        "image" => Outcome::Image(match text(record, "why") {
            Some(why) => Err(why),
            None => Ok(read_image(record)?),
        }),
        "entries" => {
            let entries = full_pairs(record, "entries").into_iter();
            Outcome::Entries(entries.map(|(name, kind)| (name, kind_of(&kind))).collect())
        }
        "hits" => Outcome::Hits {
            hits: record.get("hits")?.as_array()?.iter().filter_map(read_hit).collect(),
            more: flag(record, "more"),
        },
        "paths" => Outcome::Paths { paths: super::value::texts(record, "paths"), more: flag(record, "more") },
        "exit" => Outcome::Exit(ProcExit {
            code: record.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok()),
            killed: flag(record, "killed"),
            leftovers_killed: flag(record, "leftovers"),
            exited_before_cancel: flag(record, "before"),
            spill: text(record, "spill"),
        }),
        "appended" => Outcome::Appended { len: count(record, "len")?, foreign: flag(record, "foreign") },
        "secret" => Outcome::Secret(match text(record, "why") {
            Some(why) => Err(why),
            None => Ok(read_credential(record)),
        }),
        "host" => Outcome::Host(read_output(record)),
        "hook" => Outcome::Hook(Box::new(read_hook(record)?)),
        _ => return None,
    })
}

const fn kind_name(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "file",
        EntryKind::Dir => "dir",
        EntryKind::Other => "other",
        EntryKind::Broken => "broken",
    }
}

fn kind_of(name: &str) -> EntryKind {
    match name {
        "file" => EntryKind::File,
        "dir" => EntryKind::Dir,
        "broken" => EntryKind::Broken,
        _ => EntryKind::Other,
    }
}

fn write_image(image: &ImageData, w: &mut Writer) {
    w.field_str("data", &image.data);
    w.field_str("mime", &image.mime_type);
    w.field_opt_str("from", image.converted_from.as_deref());
    for (key, size) in [("original", image.original), ("shown", image.shown)] {
        if let Some((width, height)) = size {
            w.key(key);
            w.begin_array();
            w.u64(u64::from(width));
            w.u64(u64::from(height));
            w.end_array();
        }
    }
}

fn read_image(record: &Value) -> Option<ImageData> {
    let size = |key: &str| {
        let side = |at: usize| u32::try_from(record.get(key)?.get(at)?.as_u64()?).ok();
        Some((side(0)?, side(1)?))
    };
    Some(ImageData {
        data: text(record, "data")?.into(),
        mime_type: text(record, "mime")?,
        converted_from: text(record, "from"),
        original: size("original"),
        shown: size("shown"),
    })
}

fn write_hit(hit: &Hit, w: &mut Writer) {
    w.begin_object();
    w.field_str("path", &hit.path);
    w.field_u64("line", hit.line);
    w.field_bool("match", hit.is_match);
    w.field_str("text", &hit.text);
    w.field_bool("clipped", hit.clipped);
    w.end_object();
}

fn read_hit(value: &Value) -> Option<Hit> {
    Some(Hit {
        path: text(value, "path")?,
        line: count(value, "line")?,
        is_match: flag(value, "match"),
        text: text(value, "text")?,
        clipped: flag(value, "clipped"),
    })
}

/// What a credential consists of; the secrets themselves are starred out. A token that names its account keeps that, in a
/// token of the same form: requests of ChatGPT tell the account.
fn write_credential(credential: &Credential, w: &mut Writer) {
    let starred = |text: &String| codex::token_without_secret(text).unwrap_or_else(|| STARS.into());
    w.field_opt_str("key", credential.api_key.as_ref().map(starred).as_deref());
    let stars = credential.headers.iter().map(|(name, value)| (&**name, value.as_ref().map(|_| STARS)));
    write_pairs("headers", stars, w);
    w.field_opt_str("base_url", credential.base_url.as_deref());
    write_pairs("env", credential.env.iter().map(|(name, value)| (&**name, Some(&**value))), w);
    match &credential.aws {
        None => {}
        Some(AwsAccess::Bearer(_)) => w.field_str("aws", "bearer"),
        Some(AwsAccess::Keys(keys)) => {
            w.field_str("aws", if keys.session.is_some() { "session" } else { "keys" });
        }
    }
}

fn read_credential(record: &Value) -> Credential {
    let keys =
        |session: Option<String>| AwsAccess::Keys(Keys { id: STARS.into(), secret: STARS.into(), session });
    Credential {
        api_key: text(record, "key"),
        headers: pairs(record, "headers"),
        base_url: text(record, "base_url"),
        env: full_pairs(record, "env"),
        aws: match record.get("aws").and_then(Value::as_str) {
            Some("bearer") => Some(AwsAccess::Bearer(STARS.into())),
            Some("session") => Some(keys(Some(STARS.into()))),
            Some("keys") => Some(keys(None)),
            _ => None,
        },
    }
}

fn write_hook(reply: &HookReply, w: &mut Writer) {
    match reply {
        HookReply::BeforeToolCall { index, verdict } => {
            w.field_str("hook", "before");
            w.field_u64("index", *index as u64);
            match verdict {
                ToolVerdict::Run(None) => w.field_str("verdict", "run"),
                ToolVerdict::Run(Some(args)) => {
                    w.field_str("verdict", "run");
                    w.field_value("args", args);
                }
                ToolVerdict::Block { reason, terminate } => {
                    w.field_str("verdict", "block");
                    w.field_opt_str("reason", reason.as_deref());
                    w.field_bool("terminate", *terminate);
                }
                ToolVerdict::Failed(why) => {
                    w.field_str("verdict", "failed");
                    w.field_str("reason", why);
                }
            }
        }
        HookReply::AfterToolCall { index, change } => {
            w.field_str("hook", "after");
            w.field_u64("index", *index as u64);
            match change {
                Ok(change) => write_change(change, w),
                Err(why) => w.field_str("why", why),
            }
        }
        HookReply::FinishTurn(decision) => {
            w.field_str("hook", "finish");
            let name = |decision: &TurnDecision| match decision {
                TurnDecision::End => "end",
                TurnDecision::Continue => "continue",
            };
            w.field_opt_str("decision", decision.as_ref().map(name));
        }
        HookReply::PrepareNextTurn(change) => {
            w.field_str("hook", "next_turn");
            write_turn(change, w);
        }
        HookReply::PrepareRequest(change) => {
            w.field_str("hook", "request");
            write_turn(change, w);
        }
        HookReply::TransformContext(messages) => {
            w.field_str("hook", "context");
            write_messages("messages", messages, w);
        }
        HookReply::Failed(why) => {
            w.field_str("hook", "failed");
            w.field_str("why", why);
        }
    }
}

fn read_hook(record: &Value) -> Option<HookReply> {
    let index = || count(record, "index").and_then(|index| usize::try_from(index).ok());
    Some(match record.get("hook")?.as_str()? {
        "before" => {
            let reason = text(record, "reason");
            let verdict = match record.get("verdict")?.as_str()? {
                "run" => ToolVerdict::Run(record.get("args").map(|args| Arc::new(args.clone()))),
                "block" => ToolVerdict::Block { reason, terminate: flag(record, "terminate") },
                _ => ToolVerdict::Failed(reason.unwrap_or_default()),
            };
            HookReply::BeforeToolCall { index: index()?, verdict }
        }
        "after" => {
            let change = match text(record, "why") {
                Some(why) => Err(why),
                None => Ok(read_change(record)),
            };
            HookReply::AfterToolCall { index: index()?, change }
        }
        "finish" => HookReply::FinishTurn(match text(record, "decision").as_deref() {
            Some("end") => Some(TurnDecision::End),
            Some("continue") => Some(TurnDecision::Continue),
            _ => None,
        }),
        "next_turn" => HookReply::PrepareNextTurn(read_turn(record)),
        "request" => HookReply::PrepareRequest(read_turn(record)),
        "context" => HookReply::TransformContext(messages(record, "messages").unwrap_or_default()),
        "failed" => HookReply::Failed(text(record, "why")?),
        _ => return None,
    })
}

fn write_change(change: &ResultChange, w: &mut Writer) {
    if let Some(content) = &change.content {
        w.key("content");
        write_blocks(content, w);
    }
    for (key, value) in [("details", &change.details), ("structured", &change.structured)] {
        if let Some(value) = value {
            w.field_value(key, value);
        }
    }
    if let Some(usage) = &change.usage {
        w.key("usage");
        usage.write(w);
    }
    for (key, flag) in [("terminate", change.terminate), ("error", change.is_error)] {
        if let Some(flag) = flag {
            w.field_bool(key, flag);
        }
    }
}

fn read_change(record: &Value) -> ResultChange {
    let flag = |key: &str| record.get(key).and_then(Value::as_bool);
    ResultChange {
        content: record.get("content").map(|_| blocks(record, "content")),
        details: record.get("details").cloned(),
        structured: record.get("structured").cloned(),
        usage: record.get("usage").and_then(Usage::from_value),
        terminate: flag("terminate"),
        is_error: flag("error"),
    }
}

fn write_turn(change: &TurnChange, w: &mut Writer) {
    if let Some(context) = &change.context {
        write_messages("context", context, w);
    }
    if let Some(model) = &change.model {
        w.key("model");
        model.write(w);
    }
    w.field_opt_str("level", change.thinking.map(ThinkingLevel::name));
    write_messages("messages", &change.messages, w);
}

fn read_turn(record: &Value) -> TurnChange {
    TurnChange {
        context: messages(record, "context"),
        model: model(record).map(Arc::new),
        thinking: level(record),
        messages: messages(record, "messages").unwrap_or_default(),
    }
}

fn write_messages(key: &'static str, messages: &[Arc<Message>], w: &mut Writer) {
    w.key(key);
    w.begin_array();
    messages.iter().for_each(|message| message.write(w));
    w.end_array();
}

fn messages(record: &Value, key: &str) -> Option<Vec<Arc<Message>>> {
    let items = record.get(key)?.as_array()?;
    Some(items.iter().filter_map(Message::from_value).map(Arc::new).collect())
}
