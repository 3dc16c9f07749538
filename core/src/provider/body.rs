//! The request body, kept from one request to the next so that unchanged messages are not encoded again.
//!
//! Layout: a head (model, options, tools …) that ends in `"messages":[` (and perhaps first items that belong to it, such
//! as the system text), the items of the messages, a tail (`]}`).
//! The next request compares its messages with those of the last one, truncates the buffer to the common beginning
//! and appends the rest; there is never a second copy of the body. Messages are compared by the identity of their
//! `Arc`, and by value where a conversion made new ones.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::json::Writer;
use crate::message::Message;

/// Messages that are encoded together.
#[derive(Clone, Copy, Debug)]
pub struct Unit<'a> {
    /// One or several messages in order.
    pub sources: &'a [Arc<Message>],
    /// Whatever else the encoding depends on, e.g. a cache marker or the kind of the neighbour.
    pub flavour: u32,
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

    /// Builds the body. `write` writes the array items of one unit (none, one or several); it is only called for
    /// units behind the common beginning with the last body.
    ///
    /// The result is shared with the cache. When the caller has dropped it by the next call, the buffer is used again,
    /// else the common beginning is copied.
    pub fn build<'a>(
        &mut self,
        head: &str,
        tail: &str,
        units: &[Unit<'a>],
        mut write: impl FnMut(&Unit<'a>, &mut Writer),
    ) -> Arc<Vec<u8>> {
        let kept = self.common(units);
        let kept_bytes = self.rewind(kept);
        let mut body = self.take_buffer(head, kept_bytes);
        for unit in units.get(kept..).unwrap_or_default() {
            let mut w = Writer::append_to(core::mem::take(&mut self.scratch));
            write(unit, &mut w);
            let mut items = w.into_string();
            if !items.is_empty() {
                if body.len() > head.len() || !head.ends_with('[') {
                    body.push(b',');
                }
                body.extend_from_slice(items.as_bytes());
            }
            items.clear();
            self.scratch = items;
            self.sources.extend_from_slice(unit.sources);
            let (sources_end, bytes_end) = (self.sources.len(), body.len() - head.len());
            self.marks.push(Mark { sources_end, bytes_end, flavour: unit.flavour });
        }
        // A single huge message must not leave a buffer of its size behind.
        self.scratch.shrink_to(SCRATCH_KEPT);
        body.extend_from_slice(tail.as_bytes());
        self.head_len = head.len();
        self.buffer = Arc::new(body);
        Arc::clone(&self.buffer)
    }

    /// Number of leading units that are the same as last time.
    fn common(&self, units: &[Unit<'_>]) -> usize {
        let mut start = 0;
        let same = |(mark, unit): &(&Mark, &Unit<'_>)| {
            let old = self.sources.get(start..mark.sources_end).unwrap_or_default();
            start = mark.sources_end;
            mark.flavour == unit.flavour
                && old.len() == unit.sources.len()
                && old.iter().zip(unit.sources).all(|(a, b)| Arc::ptr_eq(a, b) || same_content(a, b))
        };
        self.marks.iter().zip(units).take_while(same).count()
    }

    /// Drops the marks behind the first `kept` units; returns the bytes of those units.
    fn rewind(&mut self, kept: usize) -> usize {
        self.marks.truncate(kept);
        let (sources, bytes) = self.marks.last().map_or((0, 0), |mark| (mark.sources_end, mark.bytes_end));
        self.sources.truncate(sources);
        bytes
    }

    /// The buffer with the new head and the first `kept` bytes of the items.
    fn take_buffer(&mut self, head: &str, kept: usize) -> Vec<u8> {
        let end = self.head_len + kept;
        match Arc::try_unwrap(core::mem::take(&mut self.buffer)) {
            Ok(mut own) => {
                own.truncate(end);
                if own.get(..self.head_len) != Some(head.as_bytes()) {
                    let old = self.head_len.min(own.len());
                    own.splice(..old, head.bytes());
                }
                own
            }
            Err(shared) => {
                let mut own = Vec::with_capacity(shared.len() + shared.len() / 8);
                own.extend_from_slice(head.as_bytes());
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
        let units: Vec<_> = list.iter().map(Unit::single).collect();
        cache.build(head, "]}", &units, |unit, w| {
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
        let address = body.as_ptr();
        drop(body);
        list.push(user("c"));
        let body = build(&mut cache, "{\"m\":[", &list, &mut count);
        assert_eq!((&body[..], count), (&br#"{"m":["a","b","c"]}"#[..], 4));
        let _ = address;
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
    }

    #[test]
    fn equal_copies_count_as_unchanged_and_flavour_counts() {
        let (mut cache, mut count) = (BodyCache::default(), 0);
        drop(build(&mut cache, "[", &[user("a"), user("b")], &mut count));
        drop(build(&mut cache, "[", &[user("a"), user("b")], &mut count));
        assert_eq!(count, 2);
        let list = [user("a"), user("b")];
        let units = [Unit::single(&list[0]), Unit { flavour: 1, ..Unit::single(&list[1]) }];
        let body = cache.build("[", "]", &units, |unit, w| w.str(&format!("flavour {}", unit.flavour)));
        assert_eq!(&body[..], br#"["a","flavour 1"]"#);
    }
}
