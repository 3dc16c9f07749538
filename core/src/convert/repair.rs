//! The last pass before a request (D19): whatever the history looks like, the request can be sent.
//!
//! - Each call id is sent once, with exactly one result, directly after its reply; later copies go (seed 003 §5c).
//! - A result without a call before it goes; a call without a result is answered (D25).
//! - A result that came late, after an interrupting user message, moves up to its call and replaces the made-up one.
//! - Blank text blocks go, and messages of which nothing is left; a result without text says so.
//! - A conversation that begins with a reply gets a message of the user before it.
//!
//! Linear in the number of blocks. Messages that need no repair keep their `Arc`.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::memo::{Memo, Pass};
use super::transform::{answer_to, is_made_up, shell_of};
use super::wire_id;
use super::{BEGINNING, NO_TOOL_OUTPUT};
use crate::message::{AssistantMessage, Block, Content, Message, ToolResultMessage, UserMessage};

/// A list and its repaired form, which both grow at their end.
#[derive(Debug, Default)]
pub(super) struct Repair {
    messages: Vec<Arc<Message>>,
    book: CallBook,
    /// Length of the repaired list before each message.
    starts: Vec<usize>,
    repaired: Vec<Arc<Message>>,
}

impl Repair {
    pub(super) fn repaired(&self) -> &[Arc<Message>] {
        &self.repaired
    }

    pub(super) fn into_repaired(self) -> Vec<Arc<Message>> {
        self.repaired
    }

    /// Whether there is a call; with it its result.
    pub(super) fn has_calls(&self) -> bool {
        !self.book.calls.is_empty()
    }

    /// Forgets everything but the capacity of the lists.
    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.book.calls.clear();
        self.starts.clear();
        self.repaired.clear();
    }

    /// Takes in further messages. What was repaired before is looked at again only from the earliest reply on that
    /// gets a result now. `now_ms` is stamped on made-up results.
    pub(super) fn extend(
        &mut self,
        more: impl IntoIterator<Item = Arc<Message>>,
        now_ms: i64,
        memo: &mut Memo,
    ) {
        let mut from = self.messages.len();
        for message in more {
            self.messages.push(message);
            if let Some(reply) = self.book.read_last(&self.messages) {
                from = from.min(reply);
            }
        }
        if let Some(start) = self.starts.get(from) {
            self.repaired.truncate(*start);
            self.starts.truncate(from);
        }
        for at in from..self.messages.len() {
            self.starts.push(self.repaired.len());
            self.push_repaired(at, now_ms, memo);
        }
    }

    fn push_repaired(&mut self, at: usize, now_ms: i64, memo: &mut Memo) {
        let Some(message) = self.messages.get(at) else { return };
        match &**message {
            Message::Assistant(reply) => {
                let book = Page { book: &self.book, messages: &self.messages };
                let Some(repaired) = repair_reply(message, reply, at, book, memo) else { return };
                if self.repaired.is_empty() {
                    let content = Content::Text(BEGINNING.into());
                    self.repaired
                        .push(Arc::new(Message::User(UserMessage { content, timestamp: reply.timestamp })));
                }
                self.repaired.push(Arc::clone(&repaired));
                push_results(&mut self.repaired, &repaired, book, now_ms, memo);
            }
            // Placed behind their calls.
            Message::ToolResult(_) => {}
            Message::User(user) => self.repaired.extend(repair_user(message, user, memo)),
            _ => self.repaired.push(Arc::clone(message)),
        }
    }
}

/// Where each call stands and which result answers it, as indexes into the list. Ids stay where they are.
#[derive(Debug, Default)]
struct CallBook {
    calls: HashTable<CallPlace>,
    hasher: DefaultHashBuilder,
}

#[derive(Clone, Copy, Debug)]
struct CallPlace {
    reply: usize,
    /// Position of the block, so that a copy inside the same reply goes as well.
    block: usize,
    result: Option<usize>,
}

impl CallBook {
    /// Reads the last message. The reply that has another result now, if there is one.
    fn read_last(&mut self, messages: &[Arc<Message>]) -> Option<usize> {
        let at = messages.len().checked_sub(1)?;
        match &**messages.last()? {
            Message::Assistant(reply) => {
                for (block, content) in reply.content.iter().enumerate() {
                    if let Block::ToolCall(call) = content {
                        self.note(&call.id, CallPlace { reply: at, block, result: None }, messages);
                    }
                }
                None
            }
            Message::ToolResult(result) => {
                let id = wire_id(&result.tool_call_id);
                let hash = self.hasher.hash_one(id);
                let place = self.calls.find_mut(hash, |place| place.id(messages) == id)?;
                let made_up = |at: usize| match messages.get(at).map(|m| &**m) {
                    Some(Message::ToolResult(result)) => is_made_up(result),
                    _ => false,
                };
                if !place.result.is_none_or(made_up) {
                    return None;
                }
                place.result = Some(at);
                Some(place.reply)
            }
            _ => None,
        }
    }

    /// Notes a call unless its id is known.
    fn note(&mut self, id: &str, new: CallPlace, messages: &[Arc<Message>]) {
        let (hasher, id) = (&self.hasher, wire_id(id));
        let same = |place: &CallPlace| place.id(messages) == id;
        self.calls
            .entry(hasher.hash_one(id), same, |place| hasher.hash_one(place.id(messages)))
            .or_insert(new);
    }
}

impl CallPlace {
    /// What protocols see of the id of the call.
    fn id<'a>(&self, messages: &'a [Arc<Message>]) -> &'a str {
        let reply = messages.get(self.reply).and_then(|message| message.as_assistant());
        match reply.and_then(|reply| reply.content.get(self.block)) {
            Some(Block::ToolCall(call)) => wire_id(&call.id),
            _ => "",
        }
    }
}

/// The book together with the list it is about.
#[derive(Clone, Copy)]
struct Page<'a> {
    book: &'a CallBook,
    messages: &'a [Arc<Message>],
}

impl Page<'_> {
    fn place(self, id: &str) -> Option<CallPlace> {
        let id = wire_id(id);
        let hash = self.book.hasher.hash_one(id);
        self.book.calls.find(hash, |place| place.id(self.messages) == id).copied()
    }

    fn is_first(self, id: &str, reply: usize, block: usize) -> bool {
        self.place(id).is_some_and(|place| place.reply == reply && place.block == block)
    }

    fn result(self, id: &str) -> Option<usize> {
        self.place(id)?.result
    }
}

/// The reply without copies of calls and blank texts; `None` when nothing of it is left, or only copies were in it.
fn repair_reply(
    message: &Arc<Message>,
    reply: &AssistantMessage,
    at: usize,
    book: Page<'_>,
    memo: &mut Memo,
) -> Option<Arc<Message>> {
    let blocks = || reply.content.iter().enumerate();
    let is_copy = |(block, content): (usize, &Block)| match content {
        Block::ToolCall(call) => !book.is_first(&call.id, at, block),
        _ => false,
    };
    let kept = |item: &(usize, &Block)| !says_nothing(item.1) && !is_copy(*item);
    let calls = reply.tool_calls().count();
    if calls > 0 && blocks().filter(|item| is_copy(*item)).count() == calls {
        return None;
    }
    match blocks().filter(kept).count() {
        0 => None,
        all if all == reply.content.len() => Some(Arc::clone(message)),
        _ => {
            let wanted = || blocks().filter(kept).map(|(_, block)| block);
            let fits = |made: &Message| {
                made.as_assistant().is_some_and(|made| {
                    let ids = made.tool_calls().map(|call| &call.id);
                    ids.eq(wanted().filter_map(|block| match block {
                        Block::ToolCall(call) => Some(&call.id),
                        _ => None,
                    }))
                })
            };
            Some(memo.rewrite(message, Pass::Repair, fits, || {
                let content = wanted().cloned().collect();
                Message::Assistant(AssistantMessage { content, ..shell_of(reply) })
            }))
        }
    }
}

fn is_blank(block: &Block) -> bool {
    block.as_text().is_some_and(|text| text.trim().is_empty())
}

/// A blank text of a reply. What its service signed goes back to it, even without words.
fn says_nothing(block: &Block) -> bool {
    is_blank(block) && !matches!(block, Block::Text(text) if text.signature.is_some())
}

/// One result for each call of the reply: recorded ones in their order, then the missing ones.
fn push_results(
    out: &mut Vec<Arc<Message>>,
    reply: &Arc<Message>,
    book: Page<'_>,
    now_ms: i64,
    memo: &mut Memo,
) {
    let calls = || reply.as_assistant().into_iter().flat_map(AssistantMessage::tool_calls);
    let mut found: Vec<(usize, &str)> =
        calls().filter_map(|call| Some((book.result(&call.id)?, call.id.as_str()))).collect();
    found.sort_unstable();
    for (message, id) in found.into_iter().filter_map(|(at, id)| Some((book.messages.get(at)?, id))) {
        if let Message::ToolResult(result) = &**message {
            out.push(repair_result(message, result, id, memo));
        }
    }
    for (nth, call) in calls().enumerate().filter(|(_, call)| book.result(&call.id).is_none()) {
        out.push(answer_to(reply, nth, call, now_ms, memo));
    }
}

/// A result that says nothing gets a text that says so: some endpoints refuse an empty one for ever after. Beside
/// an image a blank text would be a block of its own, so it goes; beside other texts it is part of one string. The
/// result names its call by the whole `id`, of which perhaps only the part before `|` was the same.
fn repair_result(
    message: &Arc<Message>,
    result: &ToolResultMessage,
    id: &str,
    memo: &mut Memo,
) -> Arc<Message> {
    let any = |test: fn(&Block) -> bool| result.content.iter().any(test);
    let has_image = any(|block| matches!(block, Block::Image(_)));
    let is_fine = if has_image { !any(is_blank) } else { any(|block| !is_blank(block)) };
    if is_fine && result.tool_call_id == id {
        return Arc::clone(message);
    }
    memo.rewrite(
        message,
        Pass::Repair,
        |made| matches!(made, Message::ToolResult(made) if made.tool_call_id == id),
        || {
            let kept = |block: &&Block| is_fine || !is_blank(block);
            let mut content: Vec<Block> = result.content.iter().filter(kept).cloned().collect();
            if content.is_empty() {
                content.push(Block::text(NO_TOOL_OUTPUT));
            }
            Message::ToolResult(ToolResultMessage { tool_call_id: id.into(), content, ..result.clone() })
        },
    )
}

fn repair_user(message: &Arc<Message>, user: &UserMessage, memo: &mut Memo) -> Option<Arc<Message>> {
    // A text that is a plain string is for the encoders: protocols differ in what they take.
    let Content::Blocks(blocks) = &user.content else { return Some(Arc::clone(message)) };
    match blocks.iter().filter(|block| !is_blank(block)).count() {
        0 => None,
        all if all == blocks.len() => Some(Arc::clone(message)),
        _ => Some(memo.rewrite(
            message,
            Pass::Repair,
            |_| true,
            || {
                let content =
                    Content::Blocks(blocks.iter().filter(|block| !is_blank(block)).cloned().collect());
                Message::User(UserMessage { content, timestamp: user.timestamp })
            },
        )),
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::super::{History, NO_RESULT, Target, prepare};
    use super::*;
    use crate::message::{TextBlock, ToolCall};

    const TARGET: Target<'_> =
        Target { provider: "p", api: "a", model: "m", images: true, ids: None, max_id: 64 };

    fn reply(calls: &[&str], text: &str) -> Arc<Message> {
        let mut content: Vec<Block> = Vec::new();
        if !text.is_empty() {
            content.push(Block::text(text));
        }
        content.extend(calls.iter().map(|id| {
            Block::ToolCall(ToolCall { id: (*id).into(), name: "read".into(), ..ToolCall::default() })
        }));
        let names = ["p", "a", "m"].map(String::from);
        let [provider, api, model] = names;
        Arc::new(Message::Assistant(AssistantMessage { content, provider, api, model, ..Default::default() }))
    }

    fn result(id: &str, text: &str) -> Arc<Message> {
        let content = alloc::vec![Block::text(text)];
        Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: id.into(),
            content,
            ..Default::default()
        }))
    }

    fn user(text: &str) -> Arc<Message> {
        Arc::new(Message::user(text, Vec::new(), 1))
    }

    /// One word per message: `u`, `a:calls`, `r:id:text`.
    fn outline(list: &[Arc<Message>]) -> Vec<String> {
        let one = |message: &Arc<Message>| match &**message {
            Message::Assistant(reply) => {
                format!("a:{}", reply.tool_calls().map(|c| c.id.as_str()).collect::<Vec<_>>().join("+"))
            }
            Message::ToolResult(result) => {
                let text = result.content.first().and_then(Block::as_text).unwrap_or_default();
                format!("r:{}:{}", result.tool_call_id, if text == NO_RESULT { "?" } else { text })
            }
            other => other.role().get(..1).unwrap_or_default().into(),
        };
        list.iter().map(one).collect()
    }

    fn prepared(list: &[Arc<Message>]) -> Vec<String> {
        outline(&prepare(list, &TARGET, 9))
    }

    #[test]
    fn copies_of_a_call_go_with_their_results() {
        let list =
            [user("go"), reply(&["1"], ""), result("1", "x"), reply(&["1"], "again"), result("1", "y")];
        assert_eq!(prepared(&list), ["u", "a:1", "r:1:x"]);
        let list = [reply(&["1", "1", "2"], ""), result("2", "b"), result("1", "a"), reply(&["2", "3"], "")];
        assert_eq!(prepared(&list), ["u", "a:1+2", "r:2:b", "r:1:a", "a:3", "r:3:?"]);
        let list =
            [reply(&["call|a"], ""), result("call|a", "x"), reply(&["call|b"], ""), result("call|b", "y")];
        assert_eq!(prepared(&list), ["u", "a:call|a", "r:call|a:x"]);
    }

    #[test]
    fn results_without_a_call_go_and_late_ones_move_up() {
        let list = [result("0", "x"), user("go"), reply(&[], "hm"), result("1", "x"), user("next")];
        assert_eq!(prepared(&list), ["u", "a:", "u"]);
        let list = [reply(&["1", "2"], ""), result("2", "b"), user("stop"), result("1", "late"), user("go")];
        assert_eq!(prepared(&list), ["u", "a:1+2", "r:2:b", "r:1:late", "u", "u"]);
        let list = [reply(&["1"], ""), user("stop"), result("1", "late"), result("1", "later")];
        assert_eq!(prepared(&list), ["u", "a:1", "r:1:late", "u"]);
    }

    #[test]
    fn blanks_go_and_nothing_is_said_to_be_nothing() {
        let list =
            [user(" \n"), user("go"), reply(&["1"], " "), result("1", " "), reply(&[], "\n"), user("x")];
        assert_eq!(prepared(&list), ["u", "a:1", "r:1:(no output)", "u"]);
    }

    #[test]
    fn a_blank_text_with_a_signature_stays_for_its_own_model() {
        let mut signed = AssistantMessage::clone(reply(&[], "").as_assistant().unwrap());
        let sign = |text: &str| Block::Text(TextBlock { text: text.into(), signature: Some("c2ln".into()) });
        signed.content = alloc::vec![Block::text("words"), Block::text(""), sign("")];
        let list = [user("go"), Arc::new(Message::Assistant(signed))];
        let blocks = |target: &Target<'_>| {
            let made = prepare(&list, target, 9);
            made[1].as_assistant().map(|reply| reply.content.clone()).unwrap_or_default()
        };
        assert_eq!(blocks(&TARGET), [Block::text("words"), sign("")]);
        assert_eq!(blocks(&Target { model: "other", ..TARGET }), [Block::text("words")]);
    }

    #[test]
    fn what_is_in_order_keeps_its_arcs_and_so_do_repeated_repairs() {
        let list = [user("go"), reply(&["1"], "t"), result("1", "x"), reply(&[], "done")];
        let repaired = prepare(&list, &TARGET, 9);
        assert!(list.iter().zip(&repaired).all(|(a, b)| Arc::ptr_eq(a, b)));
        assert_eq!(list.len(), repaired.len());

        let repairs = [reply(&["1", "2"], " "), result("1", ""), user("a"), reply(&["1", "3"], "")];
        let mut list: Vec<_> = core::iter::once(user("go")).chain(repairs).collect();
        let mut history = History::default();
        history.update(&list, &TARGET, 9);
        let first = history.messages().to_vec();
        list.push(user("more"));
        history.update(&list, &TARGET, 10);
        assert_eq!(history.messages().len(), first.len() + 1);
        assert!(first.iter().zip(history.messages()).all(|(a, b)| Arc::ptr_eq(a, b)));
        // Also when everything has to be read again. What begins with a reply then gets a beginning.
        list.remove(0);
        history.update(&list, &TARGET, 11);
        assert_eq!(history.messages().len(), first.len() + 1);
        assert!(
            matches!(&*history.messages()[0], Message::User(user) if user.content == Content::Text(BEGINNING.into()))
        );
        assert!(first.iter().zip(history.messages()).skip(1).all(|(a, b)| Arc::ptr_eq(a, b)));
    }

    #[test]
    fn foreign_ids_that_become_equal_are_told_apart() {
        let long = |end: &str| format!("{}{end}", "x".repeat(70));
        let (a, b) = (long("a"), long("b"));
        let list = [user("go"), reply(&[&a, &b], ""), result(&b, "B"), result(&a, "A")];
        let rule = |id: &str, _: &AssistantMessage| crate::convert::sanitize_id(id, 64).into_owned();
        let target = Target { model: "other", ids: Some(&rule), ..TARGET };
        let made = prepare(&list, &target, 9);
        let Some(Message::Assistant(first)) = made.get(1).map(|m| &**m) else { panic!("no reply") };
        let ids: Vec<&str> = first.tool_calls().map(|call| call.id.as_str()).collect();
        let [a, b] = *ids else { panic!("not two calls: {ids:?}") };
        assert!(a != b && a.len() <= 64 && b.len() <= 64);
        assert_eq!(outline(&made).get(2..), Some(&[format!("r:{b}:B"), format!("r:{a}:A")][..]));
    }
}
