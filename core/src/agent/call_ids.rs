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

use crate::convert::wire_id;
use crate::message::{AssistantMessage, Message};

/// Longest id that gets a number behind it: protocols take 64 characters, and longer ones are no counters.
const MAX_NUMBERED: usize = 52;

/// Names of the calls of the reply under way, by their place in it. One look at the transcript per call.
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
    pub(super) fn name(&mut self, index: usize, given: &str, context: &[Arc<Message>]) -> String {
        if let Some(known) = self.named.iter().find(|n| n.index == index && n.given == given) {
            return known.id.clone();
        }
        let others = self.named.iter().filter(|n| n.index != index).map(|n| n.id.as_str());
        let id = free(given, calls_of(context).chain(others));
        self.named.retain(|n| n.index != index);
        self.named.push(Named { index, given: given.to_owned(), id: id.clone() });
        id
    }
}

fn calls_of(context: &[Arc<Message>]) -> impl Iterator<Item = &str> {
    let replies = context.iter().filter_map(|message| message.as_assistant());
    replies.flat_map(AssistantMessage::tool_calls).map(|call| call.id.as_str())
}

/// `given` if nobody has it, else with the next number behind what protocols see of it.
fn free<'a>(given: &str, taken: impl Iterator<Item = &'a str>) -> String {
    let base = match wire_id(given) {
        "" => "call",
        base => base,
    };
    let (mut is_taken, mut highest) = (given.is_empty(), 1_u64);
    for id in taken.map(wire_id) {
        let Some(rest) = id.strip_prefix(base) else { continue };
        is_taken |= rest.is_empty();
        let number = rest.strip_prefix('_').and_then(|n| n.parse::<u32>().ok());
        highest = highest.max(number.map_or(1, u64::from));
    }
    if !is_taken || base.len() > MAX_NUMBERED {
        return given.to_owned();
    }
    let tail = given.split_once('|').map_or("", |(call, _)| given.get(call.len()..).unwrap_or_default());
    format!("{base}_{}{tail}", highest + 1)
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
        assert_eq!(ids.name(0, "call_0", &context), "call_0_3");
        assert_eq!(ids.name(0, "call_0", &context), "call_0_3");
        assert_eq!(ids.name(1, "call_0", &context), "call_0_4");
        assert_eq!(ids.name(2, "call_1", &context), "call_1_2");
        assert_eq!(ids.name(3, "call_2", &context), "call_2");
        assert_eq!(ids.name(4, "x|other", &context), "x_2|other");
        assert_eq!(ids.name(5, "", &context), "call_3");
        let long = "x".repeat(60);
        assert_eq!(ids.name(6, &long, &[reply(&[&long])]), long);
    }

    #[test]
    fn an_id_that_comes_late_replaces_the_empty_one() {
        let mut ids = CallIds::default();
        assert_eq!(ids.name(0, "", &[]), "call_2");
        assert_eq!(ids.name(0, "call_2", &[]), "call_2");
    }

    #[test]
    fn a_server_that_counts_anew_in_every_reply_gets_all_results() {
        use super::super::{Agent, AgentConfig, Out};
        use crate::convert::{Memo, Target, prepare};
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
        let sent = prepare(agent.context(), &target, 9, &mut Memo::default());
        let results = sent.iter().filter(|m| matches!(***m, Message::ToolResult(_)));
        assert_eq!(results.count(), 6);
        assert_eq!(sent.len(), agent.context().len());
    }
}
