//! Commands that only look.

use tau_core::harness::Desk;
use tau_core::json::Writer;
use tau_core::message::{AssistantMessage, Block, StopReason};
use tau_core::session::Session;
use tau_core::session::stats::Fill;

use super::Rpc;
use super::call::Call;
use super::commands::Answer;
use super::entries::Entries;
use crate::export;

impl Rpc {
    pub(super) fn get_state(&mut self, _: &Call) -> Result<Answer, String> {
        Ok(self.look(|desk, w| {
            let (agent, session) = (desk.agent(), desk.session());
            let (steering, follow_up) = desk.queued();
            w.key("model");
            agent.model().write(w);
            w.field_str("thinkingLevel", agent.thinking().name());
            w.field_bool("isStreaming", desk.is_active());
            w.field_bool("isCompacting", desk.is_compacting());
            w.field_str("steeringMode", agent.steering.mode.name());
            w.field_str("followUpMode", agent.follow_up.mode.name());
            w.field_opt_str("sessionFile", session.path());
            w.field_str("sessionId", session.id());
            w.field_opt_str("sessionName", session.name());
            w.field_bool("autoCompactionEnabled", desk.auto_compaction());
            w.field_u64("messageCount", agent.context().len() as u64);
            w.field_u64("pendingMessageCount", (steering.len() + follow_up.len()) as u64);
        }))
    }

    pub(super) fn get_messages(&mut self, _: &Call) -> Result<Answer, String> {
        Ok(self.look(|desk, w| {
            w.key("messages");
            w.begin_array();
            desk.agent().context().iter().for_each(|message| message.write(w));
            w.end_array();
        }))
    }

    pub(super) fn get_last_assistant_text(&mut self, _: &Call) -> Result<Answer, String> {
        Ok(self.look(|desk, w| {
            let replies = desk.agent().context().iter().rev().filter_map(|message| message.as_assistant());
            let said = |reply: &AssistantMessage| {
                let text: String = reply.content.iter().filter_map(Block::as_text).collect();
                let text = text.trim();
                (reply.stop_reason == StopReason::Stop || !text.is_empty()).then(|| text.to_owned())
            };
            w.key("text");
            match replies.into_iter().find_map(said).filter(|text| !text.is_empty()) {
                Some(text) => w.str(&text),
                None => w.null(),
            }
        }))
    }

    pub(super) fn get_session_stats(&mut self, _: &Call) -> Result<Answer, String> {
        let mut counted = std::mem::take(&mut self.counted);
        let answer = self.look(|desk, w| {
            let session = desk.session();
            let stats = counted.go_on(session);
            w.field_opt_str("sessionFile", session.path());
            w.field_str("sessionId", session.id());
            stats.write_fields(w);
            if let Some(fill) = Fill::of(session, desk.agent().model()) {
                w.key("contextUsage");
                fill.write(w);
            }
        });
        self.counted = counted;
        Ok(answer)
    }

    /// Messages of people on all branches, in the order of the file.
    pub(super) fn get_fork_messages(&mut self, _: &Call) -> Result<Answer, String> {
        Ok(self.look(|desk, w| {
            let entries = Entries::of(desk.session());
            let tree = desk.session().tree();
            w.key("messages");
            w.begin_array();
            for slot in tree.slots() {
                let Some(text) = entries.user_text(slot).filter(|text| !text.is_empty()) else { continue };
                w.begin_object();
                w.field_str("entryId", tree.id(slot));
                w.field_str("text", &text);
                w.end_object();
            }
            w.end_array();
        }))
    }

    /// Entries in the order of the file, all of them or those after one.
    pub(super) fn get_entries(&mut self, call: &Call) -> Result<Answer, String> {
        let since = call.optional_text("since")?;
        let known = |desk: &Desk| since.is_none_or(|id| desk.session().tree().find(id).is_some());
        if !self.engine.with(|hub| known(hub.desk())) {
            return Err(format!("there is no entry {}", since.unwrap_or_default()));
        }
        Ok(self.look(|desk, w| {
            let entries = Entries::of(desk.session());
            let tree = desk.session().tree();
            let last_seen = since.and_then(|id| tree.find(id));
            w.key("entries");
            w.begin_array();
            let wanted = tree.slots().filter(|slot| last_seen.is_none_or(|seen| *slot > seen));
            for slot in wanted {
                entries.write(slot, w);
            }
            w.end_array();
            write_leaf(desk.session(), w);
        }))
    }

    /// All branches: entries with their children.
    pub(super) fn get_tree(&mut self, _: &Call) -> Result<Answer, String> {
        Ok(self.look(|desk, w| {
            let entries = Entries::of(desk.session());
            let tree = desk.session().tree();
            w.key("tree");
            w.begin_array();
            let mut open = 0;
            for item in tree.view() {
                while open > item.depth {
                    w.end_array();
                    w.end_object();
                    open -= 1;
                }
                w.begin_object();
                w.key("entry");
                entries.write(item.slot, w);
                if let Some(note) = tree.labels().get(tree.id(item.slot)) {
                    w.field_str("label", &note.label);
                    if let Some(time) = note.time {
                        w.field_str("labelTimestamp", &time.to_iso());
                    }
                }
                w.key("children");
                w.begin_array();
                open = item.depth + 1;
            }
            for _ in 0..open {
                w.end_array();
                w.end_object();
            }
            w.end_array();
            write_leaf(desk.session(), w);
        }))
    }

    /// Writes the session as a page. Relative names count from where the program was started.
    pub(super) fn export_html(&mut self, call: &Call) -> Result<Answer, String> {
        let given = call.optional_text("outputPath")?;
        let (file, leaf) = self.engine.with(|hub| {
            let session = hub.desk().session();
            let file = session.path().filter(|_| session.is_stored()).map(str::to_owned);
            (file, session.leaf_id().map(str::to_owned))
        });
        let file = file.ok_or("export_html: this session is not stored; send a message first")?;
        let path = given.map_or_else(|| export::default_name(&file), str::to_owned);
        export::export(&file, &self.workshop.launch.resolve(&path)?, leaf.as_deref())?;
        let mut w = Writer::new();
        w.begin_object();
        w.field_str("path", &path);
        w.end_object();
        Ok(Answer::Data(w.into_string()))
    }

    /// An object made from what the Desk shows.
    fn look(&self, fields: impl FnOnce(&Desk, &mut Writer)) -> Answer {
        let mut w = Writer::new();
        w.begin_object();
        self.engine.with(|hub| fields(hub.desk(), &mut w));
        w.end_object();
        Answer::Data(w.into_string())
    }
}

fn write_leaf(session: &Session, w: &mut Writer) {
    w.key("leafId");
    match session.leaf_id() {
        Some(id) => w.str(id),
        None => w.null(),
    }
}
