//! Whether a session stands in the middle of a run.

use super::entry::{EntryBody, EntryKind};
use super::store::Session;
use super::tree::Slot;
use crate::message::{Message, StopReason};

/// What an entry says about the run it belongs to.
enum Says {
    /// The run goes on behind it.
    Unfinished,
    /// A run ends here.
    Finished,
    Nothing,
}

impl Session {
    /// Where the run at the leaf began, if its end is not there: the entry before its first message. `None` = the last run is
    /// whole; `Some(None)` = it began with the first entry.
    #[must_use]
    pub fn before_unfinished_run(&self) -> Option<Option<&str>> {
        let mut first = None;
        let mut at = self.tree().leaf();
        while let Some(slot) = at {
            match self.says(slot) {
                Says::Unfinished => first = Some(slot),
                Says::Finished => break,
                Says::Nothing => {}
            }
            at = self.tree().parent(slot);
        }
        first.map(|slot| self.tree().parent_id(slot))
    }

    fn says(&self, slot: Slot) -> Says {
        let Some(node) = self.tree().node(slot) else { return Says::Finished };
        match node.kind() {
            EntryKind::User | EntryKind::ToolResult => Says::Unfinished,
            EntryKind::Assistant => match node.body() {
                Some(EntryBody::Message(message)) if calls_tools(message) => Says::Unfinished,
                _ => Says::Finished,
            },
            EntryKind::Compaction | EntryKind::BranchSummary => Says::Finished,
            _ => Says::Nothing,
        }
    }
}

fn calls_tools(message: &Message) -> bool {
    matches!(message, Message::Assistant(reply) if reply.stop_reason == StopReason::ToolUse)
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::{String, ToString};
    use alloc::vec;

    use super::*;
    use crate::entropy::Entropy;
    use crate::message::{AssistantMessage, Block, ToolResultMessage};
    use crate::now::Wall;
    use crate::session::Header;

    /// u = a message of the user, a = a reply, c = a reply with a call, r = a result, n = a name: what is before the run that is
    /// open at the end, by its place, if one is.
    fn before(entries: &str) -> Option<String> {
        let mut session = Session::new(Header::new("s".into(), Wall(0), "/w".into(), None), None);
        let mut rng = Entropy::new([1; 32]);
        let mut ids = vec![];
        for kind in entries.chars() {
            let reply = |stop_reason| {
                let content = vec![Block::text("x")];
                Message::Assistant(AssistantMessage { content, stop_reason, ..AssistantMessage::default() })
            };
            let body = match kind {
                'u' => EntryBody::message(Message::user("x", vec![], 1)),
                'a' => EntryBody::message(reply(StopReason::Stop)),
                'e' => EntryBody::message(reply(StopReason::Error)),
                'c' => EntryBody::message(reply(StopReason::ToolUse)),
                'r' => EntryBody::message(Message::ToolResult(ToolResultMessage::default())),
                'n' => EntryBody::session_name("x"),
                other => panic!("{other}"),
            };
            ids.push(session.append(body, Wall(1), &mut rng).unwrap().id.to_string());
        }
        session.before_unfinished_run().map(|id| {
            let place = id.map(|id| ids.iter().position(|own| own == id).unwrap());
            place.map_or_else(|| "start".to_string(), |place| format!("{place}"))
        })
    }

    #[test]
    fn the_last_run_is_whole_or_has_a_beginning() {
        let rows = [
            ("", None),
            ("n", None),
            ("ua", None),
            ("uan", None),
            ("ucra", None),
            ("ue", None),
            ("u", Some("start")),
            ("nu", Some("0")),
            ("uau", Some("1")),
            ("uauc", Some("1")),
            ("uaucr", Some("1")),
            ("uaucrn", Some("1")),
            ("uaucru", Some("1")),
            ("uanucr", Some("2")),
        ];
        for (entries, wanted) in rows {
            assert_eq!(before(entries).as_deref(), wanted, "{entries}");
        }
    }
}
