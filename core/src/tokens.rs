//! How large a context is: counted by the provider where it said so, estimated for the rest (spec 10 §7.2, §7.3).
//!
//! Characters are UTF-16 units. A context estimate walks back from the end to the last reply with usage and stops
//! there; [`Estimator`] keeps what it counted, so that a history without any usage is read once.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::convert::fold;
use crate::json::{Value, write_number};
use crate::message::{AssistantMessage, Block, Content, Message, SystemMessage};

/// What one image counts, in characters.
const IMAGE_CHARS: u64 = 4800;

/// `E`: the estimated tokens of one message, characters / 4 rounded up.
#[must_use]
pub fn message_tokens(message: &Message) -> u64 {
    let chars = match message {
        Message::System(system) => system_chars(system),
        Message::Bash(bash) => utf16_len(&bash.command) + utf16_len(&bash.output),
        Message::BranchSummary(branch) => utf16_len(&branch.summary),
        Message::CompactionSummary(compaction) => utf16_len(&compaction.summary),
        other => public_chars(other),
    };
    chars.div_ceil(4)
}

/// Characters of the roles that both estimators count alike; 0 for the others.
fn public_chars(message: &Message) -> u64 {
    match message {
        Message::User(user) => content_chars(&user.content),
        Message::Custom(custom) => content_chars(&custom.content),
        Message::ToolResult(result) => blocks_chars(&result.content),
        Message::Assistant(reply) => reply.content.iter().map(reply_block_chars).sum(),
        _ => 0,
    }
}

fn content_chars(content: &Content) -> u64 {
    match content {
        Content::Text(text) => utf16_len(text),
        Content::Blocks(blocks) => blocks_chars(blocks),
    }
}

fn blocks_chars(blocks: &[Block]) -> u64 {
    let chars = |block: &Block| match block {
        Block::Text(text) => utf16_len(&text.text),
        Block::Image(_) => IMAGE_CHARS,
        _ => 0,
    };
    blocks.iter().map(chars).sum()
}

fn reply_block_chars(block: &Block) -> u64 {
    match block {
        Block::Text(text) => utf16_len(&text.text),
        Block::Thinking(thinking) => utf16_len(&thinking.thinking),
        Block::ToolCall(call) => utf16_len(&call.name) + json_len(&call.arguments),
        Block::Image(_) | Block::Other(_) => 0,
    }
}

fn system_chars(system: &SystemMessage) -> u64 {
    let sections: u64 =
        system.sections.iter().filter_map(|(_, text)| text.as_ref()).map(|t| utf16_len(t)).sum();
    let tools = system.tools_added.as_ref().map_or(0, |tools| list_len(tools));
    utf16_len(&system.content) + sections + tools
}

/// Where an estimate of a whole context comes from. All in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextUsage {
    /// The estimate: the two parts below together.
    pub tokens: u64,
    /// What the provider counted for everything up to the reply at `last_usage`.
    pub usage_tokens: u64,
    /// Estimate of what follows it, or of everything.
    pub trailing_tokens: u64,
    /// Index of the reply whose usage was taken.
    pub last_usage: Option<usize>,
}

impl ContextUsage {
    const fn new(anchor: Option<(usize, u64)>, trailing_tokens: u64) -> Self {
        let (last_usage, usage_tokens) = match anchor {
            Some((at, tokens)) => (Some(at), tokens),
            None => (None, 0),
        };
        Self {
            tokens: usage_tokens.saturating_add(trailing_tokens),
            usage_tokens,
            trailing_tokens,
            last_usage,
        }
    }
}

/// Keeps the estimates of a list that grows, so that each message is read once.
#[derive(Debug, Default)]
pub struct Estimator {
    /// Messages (held, so that an address stays taken) and the sum up to and with each.
    known: Vec<(Arc<Message>, u64)>,
}

impl Estimator {
    /// Estimated tokens of `messages[from..]`. Reads only what was not at the same place last time.
    pub fn tokens_from(&mut self, messages: &[Arc<Message>], from: usize) -> u64 {
        let same =
            self.known.iter().zip(messages).take_while(|((known, _), new)| Arc::ptr_eq(known, new)).count();
        self.known.truncate(same);
        let mut sum = self.known.last().map_or(0, |(_, sum)| *sum);
        for message in messages.iter().skip(same) {
            sum = sum.saturating_add(message_tokens(message));
            self.known.push((Arc::clone(message), sum));
        }
        let before = from.checked_sub(1).and_then(|at| self.known.get(at)).map_or(0, |(_, sum)| *sum);
        sum.saturating_sub(before)
    }

    /// The list estimate (spec 10 §7.2); the same as [`context_usage`].
    pub fn context_usage(&mut self, messages: &[Arc<Message>]) -> ContextUsage {
        let anchor = last_usage(messages);
        let trailing = match anchor {
            Some((at, _)) => tokens_of(messages.iter().skip(at + 1)),
            None => self.tokens_from(messages, 0),
        };
        ContextUsage::new(anchor, trailing)
    }

    /// The estimate without any usage; the same as [`context_usage_untrusted`].
    pub fn context_usage_untrusted(&mut self, messages: &[Arc<Message>]) -> ContextUsage {
        let logged = tokens_of(messages.iter().filter(|message| matches!(***message, Message::System(_))));
        let others = self.tokens_from(messages, 0).saturating_sub(logged);
        ContextUsage::new(None, replayed_tokens(messages).saturating_add(others))
    }
}

/// The list estimate: `U` of the last usable reply plus `E` of each message after it; without one, `E` of all.
#[must_use]
pub fn context_usage(messages: &[Arc<Message>]) -> ContextUsage {
    let anchor = last_usage(messages);
    let after = anchor.map_or(0, |(at, _)| at + 1);
    ContextUsage::new(anchor, tokens_of(messages.iter().skip(after)))
}

/// The estimate for a list whose usage cannot be trusted, because its entry is older than the newest compaction or
/// context edit: the replayed system message and every other message.
#[must_use]
pub fn context_usage_untrusted(messages: &[Arc<Message>]) -> ContextUsage {
    let others = tokens_of(messages.iter().filter(|message| !matches!(***message, Message::System(_))));
    ContextUsage::new(None, replayed_tokens(messages).saturating_add(others))
}

/// `E` of the one message that says what all system messages say.
fn replayed_tokens(messages: &[Arc<Message>]) -> u64 {
    fold(messages).message().map_or(0, |system| message_tokens(&Message::System(system)))
}

fn tokens_of<'a>(messages: impl Iterator<Item = &'a Arc<Message>>) -> u64 {
    messages.map(|message| message_tokens(message)).sum()
}

/// The last reply with usage that was neither an error nor aborted: its index and `U`.
#[must_use]
pub fn last_usage(messages: &[Arc<Message>]) -> Option<(usize, u64)> {
    messages.iter().enumerate().rev().find_map(|(at, message)| Some((at, usable(message.as_assistant()?)?)))
}

fn usable(reply: &AssistantMessage) -> Option<u64> {
    let tokens = reply.usage.context_tokens();
    (!reply.stop_reason.is_failure() && tokens > 0).then_some(tokens)
}

/// The estimates of the request layer: characters / 3.5, used only to keep the output cap inside the window
/// (spec 30 §1.9). They differ from the ones above on purpose.
pub mod request {
    use super::{
        Arc, ContextUsage, Message, SystemMessage, Value, json_len, list_len, public_chars, usable, utf16_len,
    };

    /// Estimated tokens of one message; 0 for roles that are not sent.
    #[must_use]
    pub fn message_tokens(message: &Message) -> u64 {
        match message {
            Message::System(system) => system_tokens(system),
            other => tokens(public_chars(other)),
        }
    }

    const fn tokens(chars: u64) -> u64 {
        chars.saturating_mul(2).div_ceil(7)
    }

    fn system_tokens(system: &SystemMessage) -> u64 {
        let parts = core::iter::once(&system.content)
            .chain(system.sections.iter().filter_map(|(_, text)| text.as_ref()))
            .filter(|text| !text.is_empty());
        let (count, chars) = parts.fold((0, 0), |(n, chars), text| (n + 1, chars + utf16_len(text)));
        let separators = u64::saturating_sub(count, 1) * 2;
        let lists = [&system.tools_added, &system.tools_removed];
        let lists =
            lists.into_iter().flatten().filter(|list| !list.is_empty()).map(|list| tokens(list_len(list)));
        tokens(chars + separators) + lists.sum::<u64>()
    }

    /// Estimated tokens of a tool declaration list, as JSON.
    #[must_use]
    pub fn tools_tokens(tools: &[&Value]) -> u64 {
        let commas = (tools.len() as u64).saturating_sub(1);
        tokens(2 + commas + tools.iter().map(|tool| json_len(tool)).sum::<u64>())
    }

    /// The list estimate: a usage counts only when no earlier message is younger than its reply.
    #[must_use]
    pub fn context_usage(messages: &[Arc<Message>]) -> ContextUsage {
        let mut meter = Meter::default();
        messages.iter().for_each(|message| meter.read(message));
        meter.usage(messages)
    }

    /// The list estimate of a list that grows: each message is counted at most once, and none before the last usage.
    #[derive(Debug, Default)]
    pub struct Meter {
        read: usize,
        newest: Option<i64>,
        /// The reply whose usage counts: its index and what it says.
        anchor: Option<(usize, u64)>,
        /// Messages whose tokens are in `trailing`, or before the anchor.
        counted: usize,
        trailing: u64,
    }

    impl Meter {
        /// Takes in the next message.
        pub fn read(&mut self, message: &Message) {
            let at = self.read;
            self.read += 1;
            if let Some(used) = message.as_assistant().and_then(usable)
                && self.newest.is_none_or(|newest| message.timestamp() >= newest)
            {
                self.anchor = Some((at, used));
                (self.counted, self.trailing) = (self.read, 0);
            }
            self.newest = self.newest.max(Some(message.timestamp()));
        }

        /// The estimate. `messages` are all that were read.
        pub fn usage(&mut self, messages: &[Arc<Message>]) -> ContextUsage {
            let more = messages.get(self.counted..).unwrap_or_default();
            self.trailing += more.iter().map(|message| message_tokens(message)).sum::<u64>();
            self.counted = self.counted.max(messages.len());
            ContextUsage::new(self.anchor, self.trailing)
        }
    }
}

/// Length in UTF-16 units.
#[must_use]
pub fn utf16_len(text: &str) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // How many bytes of a word have their highest bit set.
    let count = |marks: u64| ((marks & HIGH) >> 7).wrapping_mul(ONES) >> 56;
    let units_of = |x: u64| {
        let continuation = x & !(x << 1);
        let four_bytes = x & x << 1 & x << 2 & x << 3;
        8 - count(continuation) + count(four_bytes)
    };
    let (blocks, rest) = text.as_bytes().as_chunks::<32>();
    let mut units = 0;
    for block in blocks {
        let words = block.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        // Most text is ASCII.
        units += match words.clone().fold(0, |all, word| all | word) & HIGH {
            0 => 32,
            _ => words.map(units_of).sum(),
        };
    }
    let left = rest.iter().map(|&b| u64::from(b & 0xc0 != 0x80) + u64::from(b >= 0xf0));
    units + left.sum::<u64>()
}

/// Length of the compact JSON text of a value, in UTF-16 units, without writing it.
#[must_use]
pub fn json_len(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => {
            let mut text = String::new();
            write_number(&mut text, number);
            text.len() as u64
        }
        Value::String(text) => string_len(text),
        Value::Array(items) => list_len(items),
        Value::Object(map) => {
            let members = map.iter().map(|(key, value)| string_len(key) + 1 + json_len(value));
            2 + members.sum::<u64>() + (map.len() as u64).saturating_sub(1)
        }
    }
}

fn list_len(items: &[Value]) -> u64 {
    2 + items.iter().map(json_len).sum::<u64>() + (items.len() as u64).saturating_sub(1)
}

fn string_len(text: &str) -> u64 {
    let extra = |byte: &u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 1,
        0..0x20 => 5,
        _ => 0_u64,
    };
    2 + utf16_len(text) + text.as_bytes().iter().map(extra).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn utf16_units_are_counted_in_every_place() {
        let pieces =
            ["a", "é", "€", "😀", "plain text that is longer than one block of bytes", "\u{7f}\u{80}"];
        let mut text = String::new();
        for turn in 0..400_usize {
            assert_eq!(utf16_len(&text), text.encode_utf16().count() as u64, "{text}");
            text.push_str(pieces[(turn * 7 + turn / 5) % pieces.len()]);
            if turn % 40 == 39 {
                text.clear();
            }
        }
    }
    use crate::json;

    #[test]
    fn lengths_are_those_of_the_text() {
        let long = "aé€😀".repeat(100);
        for text in ["", "a", "é", "€", "😀", &long] {
            assert_eq!(utf16_len(text), text.encode_utf16().count() as u64);
        }
        for text in ["null", "[]", r#"{"a":[1,2.5,true,false],"b\n":"\u0001\"😀"}"#, "[{},[],\"\"]", "1e21"]
        {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(json_len(&value), json::to_string(&value).encode_utf16().count() as u64, "{text}");
        }
    }

    #[test]
    fn an_estimator_reads_each_message_once_and_agrees_with_the_plain_sum() {
        let user = |text: &str| Arc::new(Message::user(text, Vec::new(), 0));
        let mut list: Vec<_> = (0..5).map(|n| user(&n.to_string().repeat(n * 7))).collect();
        let mut estimator = Estimator::default();
        assert_eq!(estimator.context_usage(&list), context_usage(&list));
        list.push(user("more"));
        list[2] = user("changed");
        assert_eq!(estimator.context_usage(&list), context_usage(&list));
        assert_eq!(estimator.tokens_from(&list, 3), tokens_of(list.iter().skip(3)));
        assert_eq!(estimator.tokens_from(&[], 3), 0);
        let system = |text: &str| SystemMessage { content: text.into(), ..SystemMessage::default() };
        list.insert(0, Arc::new(Message::System(system("sssss"))));
        list.push(Arc::new(Message::System(system("s"))));
        assert_eq!(estimator.context_usage_untrusted(&list), context_usage_untrusted(&list));
    }
}
