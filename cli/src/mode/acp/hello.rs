//! What both sides can, said at the beginning.

use tau_core::json::{Value, Writer};

use super::client::Shows;
use super::message::Params;
use super::sign_in::Terminals;
use crate::args::help;

/// The version of the protocol.
const VERSION: u64 = 1;

/// What the client promises to show.
pub(super) fn shows(params: &Params) -> Shows {
    let session = params.get("clientCapabilities").and_then(|can| can.get("session"));
    let has = |name| session.and_then(|can| can.get(name)).is_some_and(|can| matches!(can, Value::Object(_)));
    Shows { notices: has("notices"), compactions: has("compaction") }
}

/// Writes the answer to `initialize`.
pub(super) fn write(terminals: Terminals, w: &mut Writer) {
    w.begin_object();
    w.field_u64("protocolVersion", VERSION);
    w.key("agentCapabilities");
    w.begin_object();
    w.field_bool("loadSession", true);
    w.key("promptCapabilities");
    w.begin_object();
    w.field_bool("image", true);
    w.field_bool("audio", false);
    w.field_bool("embeddedContext", true);
    w.end_object();
    w.key("mcpCapabilities");
    w.begin_object();
    w.field_bool("http", false);
    w.field_bool("sse", false);
    w.end_object();
    w.key("sessionCapabilities");
    w.begin_object();
    for name in ["list", "resume", "close", "delete"] {
        w.name(name);
        w.begin_object();
        w.end_object();
    }
    w.end_object();
    w.end_object();
    w.key("agentInfo");
    w.begin_object();
    w.field_str("name", "tau");
    w.field_str("title", "Tau");
    w.field_str("version", help::VERSION);
    w.end_object();
    terminals.write(w);
    w.end_object();
}
