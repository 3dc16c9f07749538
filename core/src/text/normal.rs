//! Normal forms of Unicode: NFD for file names and order, NFKC for comparisons.
//!
//! The tables are small rather than direct: decompositions in blocks of 64 characters, found by a search among the blocks
//! that have any. What needs no change is copied in runs. `tests/normal_forms.rs` makes the tables and compares with
//! the library that knows them.

use alloc::string::String;
use alloc::vec::Vec;

/// Number of blocks (u16); for each its number (u16) and the offset of its records (u16); the records: see [`Record`].
const DECOMPOSITIONS: &[u8] = include_bytes!("normal/decompositions.bin");
/// Canonical combining classes that are not 0: first character (u24), how many follow it, class.
const CLASSES: &[u8] = include_bytes!("normal/classes.bin");
/// Number of second characters (u16); for each the character (u24) and the index of its first pair (u16); the pairs:
/// first character, composed character (u24 each).
const PAIRS: &[u8] = include_bytes!("normal/pairs.bin");
/// Combining marks: first character (u24), how many follow it.
const MARKS: &[u8] = include_bytes!("normal/marks.bin");

/// Characters below decompose into nothing and combine with nothing.
const PLAIN_BELOW: char = '\u{a0}';
/// Characters below have class 0 and are no second part of a pair.
const MARKS_FROM: char = '\u{300}';

/// The canonical decomposition of a text, marks in their order.
#[must_use]
pub fn nfd(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut segment = Segment::default();
    for c in text.chars() {
        segment.decompose(c, false);
    }
    segment.write(&mut out);
    out
}

/// Appends the compatibility composition of a text.
pub fn nfkc(text: &str, out: &mut String) {
    let mut segment = Segment::default();
    // Everything before is written, up to the start of the last character that may still change.
    let mut kept = 0;
    let mut last = 0;
    let mut in_change = false;
    for (at, c) in text.char_indices() {
        if is_settled(c) {
            if in_change {
                // A settled character combines with nothing before it.
                segment.read(text.get(kept..at).unwrap_or_default());
                segment.compose();
                segment.write(out);
                kept = at;
                in_change = false;
            }
            last = at;
        } else if !in_change {
            // The character before may combine with this one.
            out.push_str(text.get(kept..last).unwrap_or_default());
            kept = last;
            in_change = true;
        }
    }
    let rest = text.get(kept..).unwrap_or_default();
    if in_change {
        segment.read(rest);
        segment.compose();
        segment.write(out);
    } else {
        out.push_str(rest);
    }
}

/// Whether a character is a mark of the one before it (general category M).
#[must_use]
pub fn is_combining_mark(c: char) -> bool {
    let (ranges, _) = MARKS.as_chunks::<4>();
    let at = ranges.partition_point(|[a, b, d, _]| u24(*a, *b, *d) <= u32::from(c));
    let range = at.checked_sub(1).and_then(|at| ranges.get(at));
    range.is_some_and(|[a, b, d, more]| u32::from(c) - u24(*a, *b, *d) <= u32::from(*more))
}

/// Whether a character is its own NFKC form whatever follows, and never joins one before it.
fn is_settled(c: char) -> bool {
    if c < PLAIN_BELOW {
        return true;
    }
    if c >= MARKS_FROM && (class(c) != 0 || hangul::is_part(c) || group(c).is_some()) {
        return false;
    }
    records(c).all(|record| record.settled)
}

/// A stretch of text, decomposed.
#[derive(Default)]
struct Segment {
    chars: Vec<(u8, char)>,
    /// Where the marks begin that are not in order yet.
    marks: usize,
}

impl Segment {
    /// Takes in a text for NFKC.
    fn read(&mut self, text: &str) {
        text.chars().for_each(|c| self.decompose(c, true));
    }

    fn decompose(&mut self, c: char, compatible: bool) {
        if let Some(parts) = hangul::parts(c) {
            return parts.into_iter().flatten().for_each(|part| self.push(part));
        }
        // The canonical record comes first.
        let find = || records(c).filter(|record| compatible || !record.compatible).last();
        match (c >= PLAIN_BELOW).then(find).flatten() {
            Some(record) => record.text.chars().for_each(|part| self.push(part)),
            None => self.push(c),
        }
    }

    fn push(&mut self, c: char) {
        let class = class(c);
        if class == 0 {
            self.order();
            self.marks = self.chars.len() + 1;
        }
        self.chars.push((class, c));
    }

    /// Puts the marks of the last character into their order; those of one class keep theirs.
    fn order(&mut self) {
        if let Some(marks) = self.chars.get_mut(self.marks..)
            && marks.len() > 1
        {
            crate::order::sort(marks, |a, b| a.0.cmp(&b.0));
        }
    }

    /// Joins what belongs together.
    fn compose(&mut self) {
        self.order();
        let mut joined: Vec<(u8, char)> = Vec::with_capacity(self.chars.len());
        let mut starter: Option<usize> = None;
        for (class, c) in self.chars.drain(..) {
            let last = joined.last().map_or(0, |(class, _)| *class);
            let open = starter.filter(|at| at + 1 == joined.len() || (last != 0 && last < class));
            let first = open.and_then(|at| joined.get_mut(at));
            if let Some(first) = first
                && let Some(both) = pair(first.1, c)
            {
                first.1 = both;
                continue;
            }
            if class == 0 {
                starter = Some(joined.len());
            }
            joined.push((class, c));
        }
        self.chars = joined;
        self.marks = self.chars.len();
    }

    fn write(&mut self, out: &mut String) {
        self.order();
        out.extend(self.chars.drain(..).map(|(_, c)| c));
        self.marks = 0;
    }
}

/// What a character decomposes into.
struct Record {
    /// For compatibility only.
    compatible: bool,
    /// The character is its own NFKC form.
    settled: bool,
    text: &'static str,
}

/// The records of a character: none, a canonical one, one for compatibility, or both in this order. Bytes: the low six
/// bits of the character, 0x40 for compatibility, 0x80 for settled; length of the text; the text.
fn records(c: char) -> impl Iterator<Item = Record> {
    let mut rest = block(u32::from(c) >> 6);
    let low = u32::from(c) & 0x3f;
    core::iter::from_fn(move || {
        loop {
            let [head, len, more @ ..] = rest else { return None };
            let (text, next) = more.split_at_checked(usize::from(*len))?;
            rest = next;
            match u32::from(*head & 0x3f).cmp(&low) {
                core::cmp::Ordering::Less => {}
                core::cmp::Ordering::Greater => return None,
                core::cmp::Ordering::Equal => {
                    let text = core::str::from_utf8(text).unwrap_or_default();
                    return Some(Record { compatible: head & 0x40 != 0, settled: head & 0x80 != 0, text });
                }
            }
        }
    })
}

/// The records of a block of 64 characters.
fn block(number: u32) -> &'static [u8] {
    let find = || {
        let (index, records) = counted::<4>(DECOMPOSITIONS)?;
        let at = index.binary_search_by_key(&number, |[a, b, ..]| u24(0, *a, *b)).ok()?;
        let offset = |[_, _, a, b]: &[u8; 4]| usize::from(u16::from_be_bytes([*a, *b]));
        let end = index.get(at + 1).map_or(records.len(), offset);
        records.get(offset(index.get(at)?)..end)
    };
    find().unwrap_or_default()
}

/// The canonical combining class.
fn class(c: char) -> u8 {
    if c < MARKS_FROM {
        return 0;
    }
    let (ranges, _) = CLASSES.as_chunks::<5>();
    let at = ranges.partition_point(|[a, b, d, ..]| u24(*a, *b, *d) <= u32::from(c));
    match at.checked_sub(1).and_then(|at| ranges.get(at)) {
        Some([a, b, d, more, class]) if u32::from(c) - u24(*a, *b, *d) <= u32::from(*more) => *class,
        _ => 0,
    }
}

/// The pairs with a second character.
fn group(second: char) -> Option<&'static [[u8; 6]]> {
    let (groups, pairs) = counted::<5>(PAIRS)?;
    let (pairs, _) = pairs.as_chunks::<6>();
    let at = groups.binary_search_by_key(&u32::from(second), |[a, b, d, ..]| u24(*a, *b, *d)).ok()?;
    let start = |[_, _, _, a, b]: &[u8; 5]| usize::from(u16::from_be_bytes([*a, *b]));
    let end = groups.get(at + 1).map_or(pairs.len(), start);
    pairs.get(start(groups.get(at)?)..end)
}

/// What two characters become together.
fn pair(first: char, second: char) -> Option<char> {
    if let Some(syllable) = hangul::pair(first, second) {
        return Some(syllable);
    }
    if second < MARKS_FROM {
        return None;
    }
    let group = group(second)?;
    let at = group.binary_search_by_key(&u32::from(first), |[a, b, d, ..]| u24(*a, *b, *d)).ok()?;
    let [_, _, _, a, b, d] = group.get(at)?;
    char::from_u32(u24(*a, *b, *d))
}

const fn u24(a: u8, b: u8, c: u8) -> u32 {
    u32::from_be_bytes([0, a, b, c])
}

/// Entries of `N` bytes behind their number (u16), and what follows them.
fn counted<const N: usize>(table: &[u8]) -> Option<(&[[u8; N]], &[u8])> {
    let [a, b, rest @ ..] = table else { return None };
    let (entries, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*a, *b])) * N)?;
    Some((entries.as_chunks::<N>().0, rest))
}

/// Korean syllables, which are computed.
mod hangul {
    const SYLLABLE: u32 = 0xac00;
    const LEAD: u32 = 0x1100;
    const VOWEL: u32 = 0x1161;
    /// One before the first trailing consonant: a syllable may have none.
    const TRAIL: u32 = 0x11a7;
    const LEADS: u32 = 19;
    const VOWELS: u32 = 21;
    const TRAILS: u32 = 28;

    /// Whether a character may join one before it.
    pub(super) fn is_part(c: char) -> bool {
        let c = u32::from(c);
        (VOWEL..VOWEL + VOWELS).contains(&c) || (TRAIL + 1..TRAIL + TRAILS).contains(&c)
    }

    pub(super) fn parts(c: char) -> Option<[Option<char>; 3]> {
        let at = u32::from(c).checked_sub(SYLLABLE).filter(|at| *at < LEADS * VOWELS * TRAILS)?;
        let (lead, vowel, trail) = (at / (VOWELS * TRAILS), at / TRAILS % VOWELS, at % TRAILS);
        let trail = char::from_u32(TRAIL + trail).filter(|_| trail > 0);
        Some([char::from_u32(LEAD + lead), char::from_u32(VOWEL + vowel), trail])
    }

    pub(super) fn pair(first: char, second: char) -> Option<char> {
        let (first, second) = (u32::from(first), u32::from(second));
        let within = |c: u32, start: u32, count: u32| c.checked_sub(start).filter(|at| *at < count);
        if let (Some(lead), Some(vowel)) = (within(first, LEAD, LEADS), within(second, VOWEL, VOWELS)) {
            return char::from_u32(SYLLABLE + (lead * VOWELS + vowel) * TRAILS);
        }
        let syllable = within(first, SYLLABLE, LEADS * VOWELS * TRAILS)?;
        let trail = within(second, TRAIL, TRAILS).filter(|trail| *trail > 0)?;
        char::from_u32(first + trail).filter(|_| syllable % TRAILS == 0)
    }
}
