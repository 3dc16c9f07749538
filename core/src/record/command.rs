//! Commands as records.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;

use super::value::{blocks, flag, text, write_images};
use crate::harness::SummaryWish;
use crate::input::{Command, Deliver, HostNote, QueueMode};
use crate::json::{Value, Writer};
use crate::message::Message;
use crate::model::record::to_model;
use crate::model::{Model, ThinkingLevel};

/// Writes the kind and the fields of a command.
pub(super) fn write(command: &Command, w: &mut Writer) {
    w.field_str("in", name(command));
    match command {
        Command::Prompt { text, images }
        | Command::Steer { text, images }
        | Command::FollowUp { text, images } => {
            w.field_str("text", text);
            write_images(images, w);
        }
        Command::SetModel { model, thinking } => {
            w.key("model");
            model.write(w);
            w.field_opt_str("level", thinking.map(ThinkingLevel::name));
        }
        Command::SetThinking(level) => w.field_str("level", level.name()),
        Command::SetSteeringMode(mode) | Command::SetFollowUpMode(mode) => w.field_str("mode", mode.name()),
        Command::Compact { focus } => w.field_opt_str("focus", focus.as_deref()),
        Command::Navigate { target, summary, label } => {
            w.field_str("target", target);
            if let Some(wish) = summary {
                w.key("summary");
                w.begin_object();
                w.field_opt_str("instructions", wish.instructions.as_deref());
                w.field_bool("replace", wish.replace);
                w.end_object();
            }
            w.field_opt_str("label", label.as_deref());
        }
        Command::SetLabel { entry, label } => {
            w.field_str("entry", entry);
            w.field_opt_str("label", label.as_deref());
        }
        Command::SetAutoCompaction(on) | Command::SetAutoRetry(on) => w.field_bool("on", *on),
        Command::Host(note) => {
            w.key("message");
            Message::Custom(*note.message.clone()).write(w);
            w.field_str("deliver", deliver_name(note.deliver));
            if let Some(trigger) = note.trigger {
                w.field_bool("trigger", trigger);
            }
        }
        Command::Shell { id, command, excluded } => {
            w.field_u64("id", *id);
            w.field_str("command", command);
            w.field_bool("excluded", *excluded);
        }
        Command::Note(message) => {
            w.key("message");
            message.write(w);
        }
        Command::SetName(name) => w.field_str("name", name),
        Command::Continue
        | Command::ClearQueues
        | Command::Abort
        | Command::GracefulStop
        | Command::AbortRetry
        | Command::AbortCompaction
        | Command::AbortShells
        | Command::Shutdown => {}
    }
}

const fn name(command: &Command) -> &'static str {
    match command {
        Command::Prompt { .. } => "prompt",
        Command::Continue => "continue",
        Command::Steer { .. } => "steer",
        Command::FollowUp { .. } => "follow_up",
        Command::ClearQueues => "clear_queues",
        Command::Abort => "abort",
        Command::GracefulStop => "graceful_stop",
        Command::SetModel { .. } => "set_model",
        Command::SetThinking(_) => "set_thinking",
        Command::SetSteeringMode(_) => "set_steering_mode",
        Command::SetFollowUpMode(_) => "set_follow_up_mode",
        Command::AbortRetry => "abort_retry",
        Command::AbortCompaction => "abort_compaction",
        Command::Compact { .. } => "compact",
        Command::Navigate { .. } => "navigate",
        Command::SetLabel { .. } => "set_label",
        Command::SetAutoCompaction(_) => "set_auto_compaction",
        Command::SetAutoRetry(_) => "set_auto_retry",
        Command::Host(_) => "host",
        Command::Shell { .. } => "shell",
        Command::AbortShells => "abort_shells",
        Command::Note(_) => "note",
        Command::SetName(_) => "set_name",
        Command::Shutdown => "shutdown",
    }
}

const fn deliver_name(deliver: Deliver) -> &'static str {
    match deliver {
        Deliver::Steer => "steer",
        Deliver::FollowUp => "follow_up",
        Deliver::NextTurn => "next_turn",
    }
}

/// Reads a command by its kind; `None` when it is none.
pub(super) fn read(kind: &str, record: &Value) -> Option<Command> {
    let said = || Some((text(record, "text")?, blocks(record, "images")));
    let mode = || QueueMode::parse(record.get("mode")?.as_str()?);
    let message = || Message::from_value(record.get("message")?);
    Some(match kind {
        "prompt" => said().map(|(text, images)| Command::Prompt { text, images })?,
        "steer" => said().map(|(text, images)| Command::Steer { text, images })?,
        "follow_up" => said().map(|(text, images)| Command::FollowUp { text, images })?,
        "continue" => Command::Continue,
        "clear_queues" => Command::ClearQueues,
        "abort" => Command::Abort,
        "graceful_stop" => Command::GracefulStop,
        "set_model" => Command::SetModel { model: Arc::new(model(record)?), thinking: level(record) },
        "set_thinking" => Command::SetThinking(level(record)?),
        "set_steering_mode" => Command::SetSteeringMode(mode()?),
        "set_follow_up_mode" => Command::SetFollowUpMode(mode()?),
        "abort_retry" => Command::AbortRetry,
        "abort_compaction" => Command::AbortCompaction,
        "compact" => Command::Compact { focus: text(record, "focus") },
        "navigate" => Command::Navigate {
            target: text(record, "target")?,
            summary: record.get("summary").map(|wish| SummaryWish {
                instructions: text(wish, "instructions"),
                replace: flag(wish, "replace"),
            }),
            label: text(record, "label"),
        },
        "set_label" => Command::SetLabel { entry: text(record, "entry")?, label: text(record, "label") },
        "set_auto_compaction" => Command::SetAutoCompaction(flag(record, "on")),
        "set_auto_retry" => Command::SetAutoRetry(flag(record, "on")),
        "host" => {
            let Message::Custom(message) = message()? else { return None };
            let deliver = match text(record, "deliver")?.as_str() {
                "follow_up" => Deliver::FollowUp,
                "next_turn" => Deliver::NextTurn,
                _ => Deliver::Steer,
            };
            let trigger = record.get("trigger").and_then(Value::as_bool);
            Command::Host(HostNote { message: Box::new(message), deliver, trigger })
        }
        "shell" => Command::Shell {
            id: record.get("id")?.as_u64()?,
            command: text(record, "command")?,
            excluded: flag(record, "excluded"),
        },
        "abort_shells" => Command::AbortShells,
        "note" => Command::Note(Arc::new(message()?)),
        "set_name" => Command::SetName(text(record, "name")?),
        "shutdown" => Command::Shutdown,
        _ => return None,
    })
}

/// The model of a record.
pub(super) fn model(record: &Value) -> Option<Model> {
    record.get("model")?.as_object().map(to_model)
}

pub(super) fn level(record: &Value) -> Option<ThinkingLevel> {
    text(record, "level").as_deref().and_then(ThinkingLevel::parse)
}

/// A name that stands for nothing, for readers of other versions.
pub(super) fn unknown(kind: &str) -> String {
    alloc::format!("\"{kind}\" is no input of this version, or lacks a field")
}
