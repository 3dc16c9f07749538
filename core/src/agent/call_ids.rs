//! Ids of calls, made unique in the transcript when they arrive.
//!
//! Some servers count from `call_0` again in every reply. The last pass before a request keeps the first call of an
//! id and drops later ones (D19), so the model would never see the results of its later turns. A call whose id is
//! in use gets the next free one (`call_0_2`) before anything is shown, run or stored under it.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use hashbrown::HashMap;

use crate::convert::wire_id;
use crate::message::{AssistantMessage, Message};

/// Longest id that gets a number behind it: protocols take 64 characters, and longer ones are no counters.
const MAX_NUMBERED: usize = 52;

/// Ids of the calls of a transcript, read message by message as it grows, and only once somebody asks.
#[derive(Clone, Debug, Default)]
pub(super) struct TakenIds {
    /// Messages that were read.
    read: usize,
    bases: HashMap<String, Taken>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// A call has this very id.
    itself: bool,
    /// Highest number behind it, as in `call_0_2`.
    number: u32,
}

impl TakenIds {
    /// Takes in what the transcript has grown by.
    pub(super) fn update(&mut self, context: &[Arc<Message>]) {
        let more = context.get(self.read..).unwrap_or_default();
        let replies = more.iter().filter_map(|message| message.as_assistant());
        for call in replies.flat_map(AssistantMessage::tool_calls) {
            let id = wire_id(&call.id);
            self.bases.entry_ref(id).or_default().itself = true;
            if let Some((base, number)) = numbered(id) {
                let taken = self.bases.entry_ref(base).or_default();
                taken.number = taken.number.max(number);
            }
        }
        self.read = context.len();
    }

    /// What is known of `base`, and of the `others` besides.
    fn find<'a>(&self, base: &str, others: impl Iterator<Item = &'a str>) -> Taken {
        let mut taken = self.bases.get(base).copied().unwrap_or_default();
        for id in others.map(wire_id) {
            taken.itself |= id == base;
            if let Some((_, number)) = numbered(id).filter(|(other, _)| *other == base) {
                taken.number = taken.number.max(number);
            }
        }
        taken
    }
}

/// An id that ends in `_` and a number.
fn numbered(id: &str) -> Option<(&str, u32)> {
    let (base, number) = id.rsplit_once('_')?;
    Some((base, number.parse().ok()?))
}

/// Names of the calls of the reply under way, by their place in it.
#[derive(Clone, Debug, Default)]
pub(super) struct CallIds {
    named: Vec<Named>,
}

#[derive(Clone, Debug)]
struct Named {
    index: usize,
    /// As the server called it.
    given: String,
    id: String,
}

impl CallIds {
    /// The id for the call at `index` that the server calls `given`; the same answer every time.
    pub(super) fn name(
        &mut self,
        index: usize,
        given: &str,
        taken: &mut TakenIds,
        context: &[Arc<Message>],
    ) -> String {
        if let Some(known) = self.named.iter().find(|n| n.index == index && n.given == given) {
            return known.id.clone();
        }
        taken.update(context);
        let others = self.named.iter().filter(|n| n.index != index).map(|n| n.id.as_str());
        let id = free(given, |base| taken.find(base, others));
        self.named.retain(|n| n.index != index);
        self.named.push(Named { index, given: given.to_owned(), id: id.clone() });
        id
    }
}

/// `given` if nobody has it, else with the next number behind what protocols see of it.
fn free(given: &str, taken: impl FnOnce(&str) -> Taken) -> String {
    let base = match wire_id(given) {
        "" => "call",
        base => base,
    };
    let taken = taken(base);
    if !(given.is_empty() || taken.itself) || base.len() > MAX_NUMBERED {
        return given.to_owned();
    }
    let tail = given.split_once('|').map_or("", |(call, _)| given.get(call.len()..).unwrap_or_default());
    format!("{base}_{}{tail}", u64::from(taken.number.max(1)) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Block, ToolCall};

    fn reply(ids: &[&str]) -> Arc<Message> {
        let call = |id: &&str| Block::ToolCall(ToolCall { id: (*id).into(), ..ToolCall::default() });
        let content = ids.iter().map(call).collect();
        Arc::new(Message::Assistant(AssistantMessage { content, ..AssistantMessage::default() }))
    }

    #[test]
    fn ids_in_use_get_the_next_number() {
        let context = [reply(&["call_0", "call_1"]), reply(&["call_0_2", "x|item"])];
        let mut ids = CallIds::default();
        let mut taken = TakenIds::default();
        assert_eq!(ids.name(0, "call_0", &mut taken, &context), "call_0_3");
        assert_eq!(ids.name(0, "call_0", &mut taken, &context), "call_0_3");
        assert_eq!(ids.name(1, "call_0", &mut taken, &context), "call_0_4");
        assert_eq!(ids.name(2, "call_1", &mut taken, &context), "call_1_2");
        assert_eq!(ids.name(3, "call_2", &mut taken, &context), "call_2");
        assert_eq!(ids.name(4, "x|other", &mut taken, &context), "x_2|other");
        assert_eq!(ids.name(5, "", &mut taken, &context), "call_3");
        let long = "x".repeat(60);
        assert_eq!(ids.name(6, &long, &mut TakenIds::default(), &[reply(&[&long])]), long);
    }

    #[test]
    fn a_transcript_that_grows_is_read_on() {
        let mut context = alloc::vec![reply(&["call_0"])];
        let mut taken = TakenIds::default();
        assert_eq!(CallIds::default().name(0, "call_0", &mut taken, &context), "call_0_2");
        context.push(reply(&["call_0_2", "call_0_007", "call_0__9", "call_0_x"]));
        assert_eq!(CallIds::default().name(0, "call_0", &mut taken, &context), "call_0_8");
        assert_eq!(CallIds::default().name(0, "call_0_", &mut taken, &context), "call_0_");
    }

    #[test]
    fn an_id_that_comes_late_replaces_the_empty_one() {
        let (mut ids, mut taken) = (CallIds::default(), TakenIds::default());
        assert_eq!(ids.name(0, "", &mut taken, &[]), "call_2");
        assert_eq!(ids.name(0, "call_2", &mut taken, &[]), "call_2");
    }

    #[test]
    fn a_server_that_counts_anew_in_every_reply_gets_all_results() {
        use super::super::{Agent, AgentConfig, Out};
        use crate::convert::{Target, prepare};
        use crate::message::StopReason;
        use crate::now::Now;

        let (config, model) = (AgentConfig::default(), Arc::default());
        let mut agent = Agent::new(config, model, crate::model::ThinkingLevel::Off);
        let now = Now::default();
        agent.prompt(alloc::vec![Arc::new(Message::user("go", Vec::new(), 1))], now).unwrap();
        for turn in 0..4 {
            while !matches!(agent.poll(now).unwrap(), Out::Request) {}
            let call = |id: &str| {
                let call = ToolCall { id: id.into(), name: "nobody".into(), ..ToolCall::default() };
                Block::ToolCall(call)
            };
            let (content, stop_reason) = match turn {
                3 => (alloc::vec![Block::text("done")], StopReason::Stop),
                _ => (alloc::vec![call("call_0"), call("call_1")], StopReason::ToolUse),
            };
            agent.on_reply(AssistantMessage { content, stop_reason, ..AssistantMessage::default() });
        }
        while agent.poll(now).is_some() {}
        let target = Target { provider: "", api: "", model: "", images: true, ids: None, max_id: 64 };
        let sent = prepare(agent.context(), &target, 9);
        let results = sent.iter().filter(|m| matches!(***m, Message::ToolResult(_)));
        assert_eq!(results.count(), 6);
        assert_eq!(sent.len(), agent.context().len());
    }
}
