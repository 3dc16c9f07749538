//! The request body, kept from one request to the next so that unchanged messages are not encoded again.
//!
//! Layout: a head (model, options, tools …) that ends in `"messages":[` (and perhaps first items that belong to it, such
//! as the system text), the items of the messages, a tail (`]}`).
//! The next request compares its messages with those of the last one, truncates the buffer to the common beginning
//! and appends the rest; there is never a second copy of the body. Messages are compared by the identity of their
//! `Arc`, and by value where a conversion made new ones. [`BodyCache::resume`] says from where on the messages must be
//! split into units at all.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::convert;
use crate::json::Writer;
use crate::message::Message;

/// Messages that are encoded together.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// One or several messages in order.
    pub sources: &'a [Arc<Message>],
    /// Whatever else the encoding depends on, e.g. a cache marker or the kind of the message before. With the bit
    /// [`PASSING`] when it depends on what follows.
    pub flavour: u32,
}

/// Units from the message at `from` on, which begins one: consecutive results together, other messages by themselves.
#[must_use]
pub fn rows(history: &[Arc<Message>], from: usize) -> Vec<Unit<'_>> {
    units(history, from, |a, b| is_result(a) && is_result(b))
}

/// As [`rows`], with consecutive replies together, too.
#[must_use]
pub fn reply_rows(history: &[Arc<Message>], from: usize) -> Vec<Unit<'_>> {
    units(history, from, |a, b| is_result(a) && is_result(b) || is_reply(a) && is_reply(b))
}

/// Units of two sides that take turns: replies, and everything else.
#[must_use]
pub fn turns(history: &[Arc<Message>], from: usize) -> Vec<Unit<'_>> {
    units(history, from, |a, b| is_reply(a) == is_reply(b))
}

fn units(
    history: &[Arc<Message>],
    from: usize,
    joins: fn(&Arc<Message>, &Arc<Message>) -> bool,
) -> Vec<Unit<'_>> {
    let rows = history.get(from..).unwrap_or_default().chunk_by(joins);
    rows.map(|sources| Unit { sources, flavour: 0 }).collect()
}

fn is_result(message: &Arc<Message>) -> bool {
    matches!(**message, Message::ToolResult(_))
}

fn is_reply(message: &Arc<Message>) -> bool {
    matches!(**message, Message::Assistant(_))
}

/// Bit of a flavour that a unit has only as long as nothing else follows, such as a marker of the end.
pub const PASSING: u32 = 1 << 31;

/// A unit from which on a body may differ from the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    units: usize,
    /// Index of its first message.
    pub messages: usize,
}

impl<'a> Unit<'a> {
    /// A unit of one message, encoded the same wherever it stands.
    #[must_use]
    pub const fn single(message: &'a Arc<Message>) -> Self {
        Self { sources: core::slice::from_ref(message), flavour: 0 }
    }
}

/// Keeps the body of the last request.
#[derive(Debug, Default)]
pub struct BodyCache {
    buffer: Arc<Vec<u8>>,
    head_len: usize,
    /// Messages in the buffer, all units in a row. Holding them keeps their addresses from being used again.
    sources: Vec<Arc<Message>>,
    marks: Vec<Mark>,
    /// The first unit whose flavour is passing.
    passing: Option<usize>,
    scratch: String,
}

/// End of one unit.
#[derive(Debug)]
struct Mark {
    sources_end: usize,
    /// Counted from the end of the head.
    bytes_end: usize,
    flavour: u32,
}

impl BodyCache {
    /// Forgets everything. For another model or anything else that changes how messages are encoded.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Where the body of `history` may begin to differ from the last one. Everything before stays as it is if the split
    /// of messages into units depends on the kind of the neighbours only: the last unchanged unit counts as changed,
    /// because what follows it may join it, and so does one with a passing flavour.
    #[must_use]
    pub fn resume(&self, history: &[Arc<Message>]) -> Resume {
        let mut same = convert::common(&self.sources, history);
        let rest = self.sources.iter().zip(history).skip(same);
        same += rest.take_while(|(a, b)| Arc::ptr_eq(a, b) || same_content(a, b)).count();
        let whole = self.marks.partition_point(|mark| mark.sources_end <= same);
        let units = whole.saturating_sub(1).min(self.passing.unwrap_or(usize::MAX));
        Resume { units, messages: self.end_of(units).0 }
    }

    /// Flavour of a unit of the last body, by its place.
    #[must_use]
    pub fn flavour(&self, unit: usize) -> Option<u32> {
        self.marks.get(unit).map(|mark| mark.flavour)
    }

    /// Messages and bytes of the first `units`.
    fn end_of(&self, units: usize) -> (usize, usize) {
        let last = units.checked_sub(1).and_then(|last| self.marks.get(last));
        last.map_or((0, 0), |mark| (mark.sources_end, mark.bytes_end))
    }

    /// Builds the body. `units` are those from `from` on, which [`BodyCache::resume`] gave for this history or which is the
    /// default: the very beginning. `write` writes the array items of one unit (none, one or several); it is only called
    /// for units behind the common beginning with the last body.
    ///
    /// The result is shared with the cache. When the caller has dropped it by the next call, the buffer is used again,
    /// else the common beginning is copied.
    pub fn build<'a>(
        &mut self,
        head: &str,
        tail: &str,
        from: Resume,
        units: &[Unit<'a>],
        mut write: impl FnMut(&Unit<'a>, &mut Writer),
    ) -> Arc<Vec<u8>> {
        let kept = self.common(from, units);
        let kept_bytes = self.rewind(from.units + kept);
        // What stands before the items ends in their comma, so that the items are the same under every head.
        let (comma, start) = if head.ends_with('[') { ("", head.len()) } else { (",", head.len() + 1) };
        let mut body = self.take_buffer(head, comma, kept_bytes);
        for unit in units.get(kept..).unwrap_or_default() {
            let mut w = Writer::append_to(core::mem::take(&mut self.scratch));
            write(unit, &mut w);
            let mut items = w.into_string();
            if !items.is_empty() {
                if body.len() > start {
                    body.push(b',');
                }
                body.extend_from_slice(items.as_bytes());
            }
            items.clear();
            self.scratch = items;
            self.sources.extend_from_slice(unit.sources);
            if unit.flavour & PASSING != 0 {
                self.passing.get_or_insert(self.marks.len());
            }
            let (sources_end, bytes_end) = (self.sources.len(), body.len() - start);
            self.marks.push(Mark { sources_end, bytes_end, flavour: unit.flavour });
        }
        // A single huge message must not leave a buffer of its size behind.
        self.scratch.shrink_to(SCRATCH_KEPT);
        if body.len() == start {
            body.truncate(head.len());
        }
        self.head_len = body.len().min(start);
        body.extend_from_slice(tail.as_bytes());
        self.buffer = Arc::new(body);
        Arc::clone(&self.buffer)
    }

    /// Number of leading units behind `from` that are the same as last time.
    fn common(&self, from: Resume, units: &[Unit<'_>]) -> usize {
        let mut start = from.messages;
        let same = |(mark, unit): &(&Mark, &Unit<'_>)| {
            let old = self.sources.get(start..mark.sources_end).unwrap_or_default();
            start = mark.sources_end;
            mark.flavour == unit.flavour
                && old.len() == unit.sources.len()
                && old.iter().zip(unit.sources).all(|(a, b)| Arc::ptr_eq(a, b) || same_content(a, b))
        };
        self.marks.iter().skip(from.units).zip(units).take_while(same).count()
    }

    /// Drops the marks behind the first `kept` units; returns the bytes of those units.
    fn rewind(&mut self, kept: usize) -> usize {
        let (sources, bytes) = self.end_of(kept);
        self.marks.truncate(kept);
        self.sources.truncate(sources);
        self.passing = self.passing.filter(|passing| *passing < kept);
        bytes
    }

    /// The buffer with the new head and the first `kept` bytes of the items.
    fn take_buffer(&mut self, head: &str, comma: &str, kept: usize) -> Vec<u8> {
        let end = self.head_len + kept;
        match Arc::try_unwrap(core::mem::take(&mut self.buffer)) {
            Ok(mut own) => {
                own.truncate(end);
                let old = own.get(..self.head_len).unwrap_or_default();
                if old.strip_suffix(comma.as_bytes()) != Some(head.as_bytes()) {
                    let old = old.len();
                    own.splice(..old, head.bytes().chain(comma.bytes()));
                }
                own
            }
            Err(shared) => {
                let mut own = Vec::with_capacity(shared.len() + shared.len() / 8);
                own.extend_from_slice(head.as_bytes());
                own.extend_from_slice(comma.as_bytes());
                own.extend_from_slice(shared.get(self.head_len..end).unwrap_or_default());
                own
            }
        }
    }
}

/// Bytes of the scratch buffer that are kept between requests.
const SCRATCH_KEPT: usize = 64 * 1024;

/// Whether two messages say the same to a model. Facts that are never sent (times, details) do not matter for
/// results, which a repair may make anew for each request.
fn same_content(a: &Message, b: &Message) -> bool {
    match (a, b) {
        (Message::ToolResult(a), Message::ToolResult(b)) => {
            a.tool_call_id == b.tool_call_id
                && a.tool_name == b.tool_name
                && a.is_error == b.is_error
                && a.content == b.content
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::vec;

    fn user(text: &str) -> Arc<Message> {
        Arc::new(Message::user(text, vec![], 1))
    }

    fn build(cache: &mut BodyCache, head: &str, list: &[Arc<Message>], count: &mut usize) -> Arc<Vec<u8>> {
        let from = cache.resume(list);
        let units: Vec<_> = list[from.messages..].iter().map(Unit::single).collect();
        cache.build(head, "]}", from, &units, |unit, w| {
            *count += 1;
            let Message::User(m) = &*unit.sources[0] else { return };
            for text in m.content.texts().filter(|t| !t.is_empty()) {
                w.str(text);
            }
        })
    }

    #[test]
    fn only_new_messages_are_encoded() {
        let (mut cache, mut count) = (BodyCache::default(), 0);
        let mut list = vec![user("a"), user(""), user("b")];
        let body = build(&mut cache, "{\"m\":[", &list, &mut count);
        assert_eq!((&body[..], count), (&br#"{"m":["a","b"]}"#[..], 3));
        drop(body);
        list.push(user("c"));
        let body = build(&mut cache, "{\"m\":[", &list, &mut count);
        assert_eq!((&body[..], count), (&br#"{"m":["a","b","c"]}"#[..], 4));
        // Still shared: copied, and correct.
        list.truncate(1);
        list.push(user("d"));
        let next = build(&mut cache, "{\"longer\":1,\"m\":[", &list, &mut count);
        assert_eq!((&next[..], count), (&br#"{"longer":1,"m":["a","d"]}"#[..], 5));
        assert_eq!(&body[..], br#"{"m":["a","b","c"]}"#);
        drop((body, next));
        let next = build(&mut cache, "{\"m\":[", &list, &mut count);
        assert_eq!((&next[..], count), (&br#"{"m":["a","d"]}"#[..], 5));
        drop(next);
        let next = build(&mut cache, "{\"m\":[", &[], &mut count);
        assert_eq!(&next[..], br#"{"m":[]}"#);
        drop(next);
        // A head may bring items of its own, or lose them.
        let mut build = |head: &str, list: &[Arc<Message>]| {
            String::from_utf8(build(&mut cache, head, list, &mut count).to_vec()).unwrap()
        };
        assert_eq!(build("{\"m\":[0", &[]), "{\"m\":[0]}");
        assert_eq!(build("{\"m\":[0", &list), r#"{"m":[0,"a","d"]}"#);
        assert_eq!(build("{\"m\":[", &list), r#"{"m":["a","d"]}"#);
        assert_eq!(build("{\"m\":[0", &list), r#"{"m":[0,"a","d"]}"#);
        assert_eq!(build("{\"m\":[", &[]), r#"{"m":[]}"#);
        assert_eq!(count, 7);
    }

    #[test]
    fn equal_copies_count_as_unchanged_and_flavour_counts() {
        let (mut cache, mut count) = (BodyCache::default(), 0);
        drop(build(&mut cache, "[", &[user("a"), user("b")], &mut count));
        drop(build(&mut cache, "[", &[user("a"), user("b")], &mut count));
        assert_eq!(count, 2);
        let list = [user("a"), user("b")];
        let units = [Unit::single(&list[0]), Unit { flavour: 1, ..Unit::single(&list[1]) }];
        let from = Resume::default();
        let body = cache.build("[", "]", from, &units, |unit, w| w.str(&format!("flavour {}", unit.flavour)));
        assert_eq!(&body[..], br#"["a","flavour 1"]"#);
    }

    #[test]
    fn a_list_that_grows_is_split_from_its_last_unchanged_unit_on() {
        let (mut cache, mut count) = (BodyCache::default(), 0);
        let mut list: Vec<_> = ["a", "b", "c"].map(user).into();
        drop(build(&mut cache, "[", &list, &mut count));
        list.push(user("d"));
        assert_eq!(cache.resume(&list).messages, 2);
        assert_eq!(cache.resume(&list[..1]).messages, 0);
        assert_eq!(cache.resume(&list[1..]).messages, 0);
        drop(build(&mut cache, "[", &list, &mut count));
        assert_eq!(count, 4);
        // The unit with a passing flavour is looked at again, however far back it is.
        let units: Vec<_> = list
            .iter()
            .zip([0, PASSING, 0, 0])
            .map(|(m, flavour)| Unit { flavour, ..Unit::single(m) })
            .collect();
        drop(cache.build("[", "]", Resume::default(), &units, |_, w| w.str("x")));
        assert_eq!(cache.resume(&list).messages, 1);
    }
}
