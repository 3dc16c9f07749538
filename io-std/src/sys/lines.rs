//! Lines that match a pattern, with the lines around them: of a text in memory, or of one that streams.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;

use grep_matcher::{LineMatchKind, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};

/// Bytes that are read at once from a text that streams.
const BLOCK: usize = 256 << 10;

/// A matcher for lines: `^` and `$` are their ends, no match goes across a line feed.
///
/// # Errors
/// For a pattern that makes no sense, or that wants a line feed.
pub(super) fn matcher(
    pattern: &str,
    literal: bool,
    ignore_case: bool,
) -> Result<RegexMatcher, grep_regex::Error> {
    RegexMatcherBuilder::new()
        .fixed_strings(literal)
        .case_insensitive(ignore_case)
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .build(pattern)
}

/// Takes a line: its number from 1, its bytes with the line feed, whether it matches. `false` ends the search.
pub(super) type Take<'a> = dyn FnMut(u64, &[u8], bool) -> bool + 'a;

/// How a text that streams was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Read to its end, or as far as it was of use.
    Text,
    /// It holds a NUL byte.
    Binary,
}

/// Searches texts one after the other.
#[derive(Debug)]
pub(super) struct Lines<'m> {
    matcher: &'m RegexMatcher,
    /// Lines before and after each match.
    context: usize,
    /// Longest line of a text that streams, bytes.
    longest: usize,
    buffer: Vec<u8>,
}

impl<'m> Lines<'m> {
    pub(super) const fn new(matcher: &'m RegexMatcher, context: usize, longest: usize) -> Self {
        Self { matcher, context, longest, buffer: Vec::new() }
    }

    /// Searches a whole text.
    pub(super) fn text(&self, bytes: &[u8], take: &mut Take<'_>) {
        Place::default().search(self, bytes, take);
    }

    /// Searches a text that is read piece by piece. `stop_at_nul` ends it at the first piece with a NUL byte.
    ///
    /// # Errors
    /// Those of the reader; a line that is too long.
    pub(super) fn stream(
        &mut self,
        mut reader: impl Read,
        stop_at_nul: bool,
        take: &mut Take<'_>,
    ) -> io::Result<End> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let end = self.blocks(&mut buffer, &mut reader, stop_at_nul, take);
        // One long line must not leave a buffer of its size behind.
        buffer.clear();
        buffer.shrink_to(4 * BLOCK);
        self.buffer = buffer;
        end
    }

    fn blocks(
        &self,
        buffer: &mut Vec<u8>,
        reader: &mut dyn Read,
        stop_at_nul: bool,
        take: &mut Take<'_>,
    ) -> io::Result<End> {
        let mut place = Place::default();
        loop {
            let before = buffer.len();
            let more = read_block(reader, buffer)?;
            let new = buffer.get(before..).unwrap_or_default();
            if stop_at_nul && memchr::memchr(0, new).is_some() {
                return Ok(End::Binary);
            }
            if !more {
                place.search(self, buffer, take);
                return Ok(End::Text);
            }
            match memchr::memrchr(b'\n', new) {
                Some(at) => {
                    let whole = buffer.get(..=before + at).unwrap_or_default();
                    if !place.search(self, whole, take) {
                        return Ok(End::Text);
                    }
                    let kept = place.leave(whole, self.context);
                    buffer.drain(..kept);
                }
                None if buffer.len() - place.next > self.longest => {
                    return Err(io::Error::other("a line is too long to be searched"));
                }
                None => {}
            }
        }
    }
}

/// Reads until a block is full or the reader ends; `false` at its end.
fn read_block(reader: &mut dyn Read, buffer: &mut Vec<u8>) -> io::Result<bool> {
    let (mut len, end) = (buffer.len(), buffer.len() + BLOCK);
    buffer.resize(end, 0);
    let more = loop {
        let Some(rest) = buffer.get_mut(len..).filter(|rest| !rest.is_empty()) else { break Ok(true) };
        match reader.read(rest) {
            Ok(0) => break Ok(false),
            Ok(n) => len += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => break Err(e),
        }
    };
    buffer.truncate(len);
    more
}

/// How far the search of a text is. Offsets are those of the bytes at hand.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Where the search goes on: the start of a line.
    next: usize,
    /// End of the last line that was given.
    given: usize,
    /// Lines after the last match that are still wanted.
    due: usize,
    /// So many line feeds are before `counted`.
    feeds: u64,
    counted: usize,
}

impl Place {
    /// Searches the rest of `bytes`, whole lines. `false` when nothing more is wanted.
    fn search(&mut self, lines: &Lines<'_>, bytes: &[u8], take: &mut Take<'_>) -> bool {
        while let Some(line) = find(lines.matcher, bytes, self.next) {
            let before = start_of_last(bytes, line.start, lines.context).max(self.given);
            if !self.rest(bytes, line.start, take)
                || !self.give(bytes, before.max(self.given), line.start, take)
                || !self.give_one(bytes, line.clone(), true, take)
            {
                return false;
            }
            self.next = line.end;
            self.due = lines.context;
        }
        self.next = bytes.len();
        self.rest(bytes, bytes.len(), take)
    }

    /// Gives the lines that are due after the last match, up to `end`.
    fn rest(&mut self, bytes: &[u8], end: usize, take: &mut Take<'_>) -> bool {
        while self.due > 0 && self.given < end {
            self.due -= 1;
            let line = self.given..end_of_line(bytes, self.given);
            if !self.give_one(bytes, line, false, take) {
                return false;
            }
        }
        true
    }

    /// Gives the lines between two offsets.
    fn give(&mut self, bytes: &[u8], start: usize, end: usize, take: &mut Take<'_>) -> bool {
        let mut at = start;
        while at < end {
            let line = at..end_of_line(bytes, at);
            at = line.end;
            if !self.give_one(bytes, line, false, take) {
                return false;
            }
        }
        true
    }

    fn give_one(&mut self, bytes: &[u8], line: Range<usize>, matches: bool, take: &mut Take<'_>) -> bool {
        self.count(bytes, line.start);
        self.given = line.end;
        take(self.feeds + 1, bytes.get(line).unwrap_or_default(), matches)
    }

    fn count(&mut self, bytes: &[u8], to: usize) {
        let passed = bytes.get(self.counted..to).unwrap_or_default();
        self.feeds += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.counted = to;
    }

    /// Gets ready for bytes that begin later; returns by how much: all but the lines that may still be context.
    fn leave(&mut self, bytes: &[u8], context: usize) -> usize {
        let kept = start_of_last(bytes, bytes.len(), context);
        if self.counted < kept {
            self.count(bytes, kept);
        }
        self.counted -= kept;
        self.next -= kept;
        self.given = self.given.saturating_sub(kept);
        kept
    }
}

/// The next line that matches, from the start of a line on.
fn find(matcher: &RegexMatcher, bytes: &[u8], mut from: usize) -> Option<Range<usize>> {
    // A pattern that asks for the ends of the text means those of a line.
    let one_by_one = matcher.line_terminator().is_none();
    loop {
        let rest = bytes.get(from..).filter(|rest| !rest.is_empty())?;
        let (at, sure) = if one_by_one {
            (from, false)
        } else {
            // A match cannot fail: the error has no values.
            match matcher.find_candidate_line(rest).ok()?? {
                LineMatchKind::Confirmed(at) => (from + at, true),
                LineMatchKind::Candidate(at) => (from + at, false),
            }
        };
        let start = memchr::memrchr(b'\n', bytes.get(..at)?).map_or(0, |feed| feed + 1);
        // An empty match behind the last line feed is on no line.
        if start == bytes.len() {
            return None;
        }
        let line = start..end_of_line(bytes, at);
        let text = bytes.get(line.clone())?;
        if sure || matcher.is_match(text.strip_suffix(b"\n").unwrap_or(text)).is_ok_and(|is| is) {
            return Some(line);
        }
        from = line.end;
    }
}

/// Offset behind the line feed that ends the line at `at`.
fn end_of_line(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(bytes.len(), |feed| at + feed + 1)
}

/// Start of the last `count` lines before `end`, which is the start of a line.
fn start_of_last(bytes: &[u8], end: usize, count: usize) -> usize {
    let mut start = end;
    for _ in 0..count {
        let Some(before) = start.checked_sub(1) else { break };
        start = memchr::memrchr(b'\n', bytes.get(..before).unwrap_or_default()).map_or(0, |feed| feed + 1);
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};

    type Seen = Vec<(u64, String, bool)>;

    struct Reader<'a>(&'a [u8], usize);

    impl Read for Reader<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(into.len()).min(self.0.len());
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn both_ways(pattern: &str, context: usize, text: &[u8]) -> [Seen; 2] {
        let matcher = matcher(pattern, false, false).unwrap();
        let mut lines = Lines::new(&matcher, context, usize::MAX);
        let (mut whole, mut stream) = (Seen::new(), Seen::new());
        let line = |seen: &mut Seen, n, bytes: &[u8], is| {
            seen.push((n, String::from_utf8_lossy(bytes).into_owned(), is));
            true
        };
        lines.text(text, &mut |n, bytes, is| line(&mut whole, n, bytes, is));
        let end = lines.stream(Reader(text, 7), false, &mut |n, bytes, is| line(&mut stream, n, bytes, is));
        assert_eq!(end.unwrap(), End::Text);
        [whole, stream]
    }

    /// The same by the library that ripgrep is made of.
    fn reference(pattern: &str, context: usize, text: &[u8]) -> Seen {
        struct Collect(Seen);
        impl Sink for Collect {
            type Error = io::Error;
            fn matched(&mut self, _: &Searcher, m: &SinkMatch<'_>) -> io::Result<bool> {
                self.0.push((
                    m.line_number().unwrap(),
                    String::from_utf8_lossy(m.bytes()).into_owned(),
                    true,
                ));
                Ok(true)
            }
            fn context(&mut self, _: &Searcher, c: &SinkContext<'_>) -> io::Result<bool> {
                self.0.push((
                    c.line_number().unwrap(),
                    String::from_utf8_lossy(c.bytes()).into_owned(),
                    false,
                ));
                Ok(true)
            }
        }
        let mut searcher = SearcherBuilder::new()
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::none())
            .build();
        let mut collect = Collect(Seen::new());
        let matcher = RegexMatcherBuilder::new().line_terminator(Some(b'\n')).build(pattern).unwrap();
        searcher.search_slice(&matcher, text, &mut collect).unwrap();
        collect.0
    }

    #[test]
    fn lines_are_those_that_ripgrep_finds() {
        let patterns = [
            "a", "^a", "a$", "^$", "", "b+c", r"\w+x\s", "^", "$", "(?i)AB|x", r"a\sb", "[^a]", "é", r"\Aa",
            r"b\z", "[^a]*b",
        ];
        let mut seed = 7_u32;
        let mut next = |n: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) as usize % n
        };
        for round in 0..150 {
            let words = ["a", "b", "x ", "bbc", "\n", "\n", "é", "\r\n", " ", "AB"];
            let text: String = (0..next(60)).map(|_| words[next(words.len())]).collect();
            for pattern in patterns {
                let context = round % 4;
                let wanted = reference(pattern, context, text.as_bytes());
                for got in both_ways(pattern, context, text.as_bytes()) {
                    assert_eq!(got, wanted, "{pattern:?} with {context} around in {text:?}");
                }
            }
        }
    }

    #[test]
    fn lines_across_blocks_keep_their_numbers_and_context() {
        let mut text = String::new();
        for n in 0..60_000 {
            text += if n % 7_001 == 5 { "needle\n" } else { "some words of hay\n" };
        }
        text += &"long ".repeat(200_000);
        text += "needle";
        for context in [0, 1, 3] {
            let wanted = reference("needle", context, text.as_bytes());
            for got in both_ways("needle", context, text.as_bytes()) {
                assert!(got == wanted, "{context} lines around");
            }
        }
    }

    #[test]
    fn limits_of_streams() {
        let matcher = matcher("a", false, false).unwrap();
        let mut lines = Lines::new(&matcher, 0, BLOCK);
        let long = "a".repeat(3 * BLOCK);
        assert!(lines.stream(long.as_bytes(), false, &mut |_, _, _| true).is_err());
        let mut text = "a\n".repeat(BLOCK).into_bytes();
        text.push(0);
        let mut count = 0;
        let end = lines.stream(&*text, true, &mut |_, _, _| {
            count += 1;
            true
        });
        assert_eq!(end.unwrap(), End::Binary);
        assert!(count > 0);
        // Who has enough before does not hear of it.
        assert_eq!(lines.stream(&*text, true, &mut |_, _, _| false).unwrap(), End::Text);
    }
}
