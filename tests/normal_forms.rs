//! Normal forms against the library that knows all of Unicode, which also makes their tables: `TAU_WRITE_TABLES=1` writes
//! them after an update of the library.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use tau_core::text::normal;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_canonical, decompose_compatible, is_combining_mark,
};

fn all() -> impl Iterator<Item = char> {
    '\0'..=char::MAX
}

fn is_hangul(c: char) -> bool {
    ('\u{ac00}'..='\u{d7a3}').contains(&c)
}

fn nfkc(text: &str) -> String {
    let mut out = String::new();
    normal::nfkc(text, &mut out);
    out
}

fn u16_of(n: usize) -> [u8; 2] {
    u16::try_from(n).unwrap().to_be_bytes()
}

fn u24_of(c: char) -> [u8; 3] {
    let [_, bytes @ ..] = u32::from(c).to_be_bytes();
    bytes
}

fn full(c: char, compatible: bool) -> String {
    let mut text = String::new();
    if compatible {
        decompose_compatible(c, |part| text.push(part));
    } else {
        decompose_canonical(c, |part| text.push(part));
    }
    text
}

fn decompositions() -> Vec<u8> {
    let mut blocks: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for c in all().filter(|c| !is_hangul(*c)) {
        let own = String::from(c);
        let (canonical, compatible) = (full(c, false), full(c, true));
        let settled = if own.nfkc().eq(own.chars()) { 0x80 } else { 0 };
        let low = (u32::from(c) & 0x3f) as u8;
        let block = blocks.entry((u32::from(c) >> 6) as usize).or_default();
        let mut record = |kind: u8, text: &str| {
            block.extend([low | kind | settled, u8::try_from(text.len()).unwrap()]);
            block.extend(text.bytes());
        };
        if canonical != own {
            record(0, &canonical);
        }
        if compatible != canonical {
            record(0x40, &compatible);
        }
    }
    blocks.retain(|_, records| !records.is_empty());
    let (mut table, mut records) = (u16_of(blocks.len()).to_vec(), Vec::new());
    for (number, block) in blocks {
        table.extend(u16_of(number));
        table.extend(u16_of(records.len()));
        records.extend(block);
    }
    [table, records].concat()
}

/// Ranges of characters with the same value that is not 0: first, how many more, value.
fn ranges(value: impl Fn(char) -> u8) -> Vec<(char, u8, u8)> {
    let mut list: Vec<(char, u8, u8)> = Vec::new();
    let mut last = None;
    for c in all() {
        let own = value(c);
        if own == 0 {
            last = None;
            continue;
        }
        match list.last_mut() {
            Some((_, more, value)) if last == Some(*value) && *value == own && *more < 255 => *more += 1,
            _ => list.push((c, 0, own)),
        }
        last = Some(own);
    }
    list
}

fn classes() -> Vec<u8> {
    let bytes = |(c, more, class): (char, u8, u8)| u24_of(c).into_iter().chain([more, class]);
    ranges(canonical_combining_class).into_iter().flat_map(bytes).collect()
}

fn marks() -> Vec<u8> {
    let bytes = |(c, more, _): (char, u8, u8)| u24_of(c).into_iter().chain([more]);
    ranges(|c| u8::from(is_combining_mark(c))).into_iter().flat_map(bytes).collect()
}

fn pairs() -> Vec<u8> {
    let mut groups: BTreeMap<char, Vec<(char, char)>> = BTreeMap::new();
    for c in all().filter(|c| !is_hangul(*c)) {
        let parts = full(c, false);
        let Some((at, second)) = parts.char_indices().next_back().filter(|(at, _)| *at > 0) else { continue };
        let first: String = parts[..at].nfc().collect();
        let mut first = first.chars();
        if let (Some(first), None) = (first.next(), first.next())
            && compose(first, second) == Some(c)
        {
            groups.entry(second).or_default().push((first, c));
        }
    }
    let (mut table, mut list) = (u16_of(groups.len()).to_vec(), Vec::new());
    for (second, mut pairs) in groups {
        table.extend(u24_of(second));
        table.extend(u16_of(list.len() / 6));
        pairs.sort_unstable();
        pairs.iter().for_each(|(first, both)| list.extend([u24_of(*first), u24_of(*both)].concat()));
    }
    [table, list].concat()
}

#[test]
fn tables_are_those_of_the_library() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/text/normal");
    let tables = [
        ("decompositions", decompositions()),
        ("classes", classes()),
        ("pairs", pairs()),
        ("marks", marks()),
    ];
    for (name, table) in tables {
        let path = folder.join(name).with_extension("bin");
        if std::env::var_os("TAU_WRITE_TABLES").is_some() {
            std::fs::write(&path, &table).unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == table, "{} is not up to date", path.display());
    }
}

#[test]
fn each_character_by_itself_and_between_others() {
    for c in all() {
        let text = String::from(c);
        assert_eq!(normal::nfd(&text), text.nfd().collect::<String>(), "{c:?}");
        assert_eq!(nfkc(&text), text.nfkc().collect::<String>(), "{c:?}");
        assert_eq!(normal::is_combining_mark(c), is_combining_mark(c), "{c:?}");
        let text = format!("a{c}\u{301}\u{327}e\u{323}{c}");
        assert_eq!(nfkc(&text), text.nfkc().collect::<String>(), "{text:?}");
    }
}

/// Characters that do something to each other, and plain ones.
fn text() -> impl Strategy<Value = String> {
    let chars: Vec<char> = all().filter(|c| full(*c, true) != String::from(*c)).collect();
    let marks: Vec<char> = all().filter(|c| canonical_combining_class(*c) != 0).collect();
    let seconds: Vec<char> = chars.iter().filter_map(|c| full(*c, false).chars().next_back()).collect();
    let one = prop_oneof![
        3 => prop::sample::select(vec!['a', 'e', 'o', 'A', ' ', '\n', 'ß', '日', 'я', '\u{1100}', '\u{1161}', '\u{11a8}', '각']),
        2 => prop::sample::select(chars),
        3 => prop::sample::select(marks),
        1 => prop::sample::select(seconds),
        1 => any::<char>(),
    ];
    proptest::collection::vec(one, 0..12).prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn texts(text in text()) {
        prop_assert_eq!(normal::nfd(&text), text.nfd().collect::<String>());
        prop_assert_eq!(nfkc(&text), text.nfkc().collect::<String>());
    }
}
