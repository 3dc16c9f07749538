//! Properties of the tools' pure parts against naive references.

#![allow(clippy::expect_used)]

use proptest::prelude::*;
use tau_core::text::truncate::{Limits, truncate_tail};
use tau_core::tools::diff::Rows;
use tau_core::tools::edit_apply::apply;
use tau_core::tools::edit_match::EditError;
use tau_core::tools::fuzzy;
use tau_core::tools::output::{OutputTail, Snapshot};

/// Texts in which short pieces often repeat, and folding often matters.
fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            Just("a"),
            Just("b"),
            Just("ab"),
            Just("\n"),
            Just(" "),
            Just("’"),
            Just("'"),
            Just("é"),
            Just("ﬁ"),
            Just("\t")
        ],
        0..40,
    )
    .prop_map(|parts| parts.concat())
}

/// Texts that are their own folded form.
fn plain_text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        proptest::sample::select(&["a", "b", "cd", "\n", "'", "é", " e", "日"][..]),
        0..40,
    )
    .prop_map(|parts| parts.concat())
}

/// Edits whose old texts are pieces of a text.
fn edits_of(text: &str) -> impl Strategy<Value = Vec<(String, String)>> + use<> {
    let chars: Vec<char> = text.chars().collect();
    let piece = (any::<usize>(), 1..8usize).prop_map(move |(at, len)| {
        let start = at % chars.len().max(1);
        chars.iter().skip(start).take(len).collect::<String>()
    });
    proptest::collection::vec((piece, plain_text()), 1..4)
}

fn edits() -> impl Strategy<Value = Vec<(String, String)>> {
    proptest::collection::vec((text().prop_map(|t| t.chars().take(5).collect()), text()), 1..4)
}

/// All edits exact and in a text that is its own folded form: nothing but positions matters.
fn reference(file: &str, edits: &[(String, String)]) -> Option<Result<String, EditError>> {
    if edits.iter().any(|(old, _)| old.is_empty() || !file.contains(old.as_str()))
        || fuzzy::fold(file) != file
    {
        return None;
    }
    let mut found = Vec::new();
    for (index, (old, new)) in edits.iter().enumerate() {
        let folded = fuzzy::fold(old);
        let needle = if folded.is_empty() { old.as_str() } else { &folded };
        match file.matches(needle).count() {
            times @ 2.. => return Some(Err(EditError::NotUnique(index, times))),
            _ => found.push((file.find(old.as_str())?, index, old, new)),
        }
    }
    found.sort();
    for pair in found.windows(2) {
        if pair[0].0 + pair[0].2.len() > pair[1].0 {
            return Some(Err(EditError::Overlap(pair[0].1, pair[1].1)));
        }
    }
    let mut out = file.to_owned();
    for (at, _, old, new) in found.into_iter().rev() {
        out.replace_range(at..at + old.len(), new);
    }
    Some(if out == file { Err(EditError::NoChange) } else { Ok(out) })
}

fn pairs(edits: &[(String, String)]) -> Vec<(&str, &str)> {
    edits.iter().map(|(old, new)| (old.as_str(), new.as_str())).collect()
}

/// Applies a unified patch; the test's own reading of the format.
fn apply_patch(old: &str, patch: &str) -> String {
    let lines: Vec<&str> = old.split_inclusive('\n').collect();
    let (mut out, mut at) = (String::new(), 0);
    let mut body = patch.split_inclusive('\n').skip(2).peekable();
    while let Some(line) = body.next() {
        if let Some(head) = line.strip_prefix("@@ -") {
            let (start, rest) = head.split_once(',').expect("start");
            let count: usize = rest.split_once(' ').expect("count").0.parse().expect("count");
            let start: usize = start.parse().expect("start");
            let start = if count == 0 { start } else { start - 1 };
            out.extend(lines[at..start].iter().copied());
            at = start;
            continue;
        }
        let (sign, mut text) = line.split_at(1);
        if body.peek().is_some_and(|next| next.starts_with('\\')) {
            text = text.strip_suffix('\n').expect("a line");
            body.next();
        }
        match sign {
            " " => {
                assert_eq!(lines[at], text);
                out.push_str(text);
                at += 1;
            }
            "-" => {
                assert_eq!(lines[at], text);
                at += 1;
            }
            _ => out.push_str(text),
        }
    }
    out.extend(lines[at..].iter().copied());
    out
}

fn snapshot(bytes: &[u8], cuts: &[usize], limits: Limits) -> Snapshot {
    let mut tail = OutputTail::new(limits);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).for_each(|pair| tail.push(bytes[pair[0]..pair[1]].to_vec()));
    tail.finish();
    tail.snapshot(|text| text.into())
}

/// Pieces of output: lines, long lines, characters of several bytes, invalid bytes, a BOM.
const PIECES: &[&[u8]] =
    &[b"line\n", b"xxxxxxxxxx", "日本".as_bytes(), b"\xff\xe6", b"\n", "\u{feff}".as_bytes()];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edits_equal_the_naive_splice(
        (file, edits) in plain_text().prop_flat_map(|file| (Just(file.clone()), edits_of(&file)))
    ) {
        if let Some(want) = reference(&file, &edits) {
            let got = apply(file.clone().into_bytes(), &pairs(&edits), "f");
            let got = got.map(|applied| String::from_utf8(applied.bytes).expect("UTF-8"));
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn the_patch_leads_from_the_old_file_to_the_new_one(file in text(), edits in edits()) {
        if let Ok(applied) = apply(file.clone().into_bytes(), &pairs(&edits), "f") {
            let new = String::from_utf8(applied.bytes).expect("UTF-8");
            prop_assert_eq!(&apply_patch(&file, &applied.diff.patch), &new);
            // Comparing only around the replacements shows what comparing everything shows.
            let whole = Rows::between(&file, &new).render("f");
            prop_assert_eq!(whole.first_changed_line, applied.diff.first_changed_line);
        }
    }

    #[test]
    fn line_ends_of_a_file_do_not_change_what_an_edit_does(file in text(), edits in edits()) {
        let crlf = file.replace('\n', "\r\n");
        let (plain, with_cr) =
            (apply(file.clone().into_bytes(), &pairs(&edits), "f"), apply(crlf.into_bytes(), &pairs(&edits), "f"));
        match (plain, with_cr) {
            (Ok(plain), Ok(with_cr)) => {
                let plain_text = String::from_utf8(plain.bytes).expect("UTF-8");
                let want = if file.contains('\n') { plain_text.replace('\n', "\r\n") } else { plain_text };
                prop_assert_eq!(String::from_utf8(with_cr.bytes).expect("UTF-8"), want);
                prop_assert_eq!(plain.diff, with_cr.diff);
            }
            (plain, with_cr) => prop_assert_eq!(plain.map(|a| a.diff), with_cr.map(|a| a.diff)),
        }
    }

    #[test]
    fn any_bytes_survive_where_nothing_is_replaced(file in proptest::collection::vec(any::<u8>(), 0..60), at in 0..60usize) {
        // A marker that occurs nowhere else is replaced; everything around it must stay byte for byte.
        let at = at.min(file.len());
        let marked = [&file[..at], b"<<MARK>>", &file[at..]].concat();
        if let Ok(applied) = apply(marked, &[("<<MARK>>", "<<DONE>>")], "f") {
            prop_assert_eq!(applied.bytes, [&file[..at], b"<<DONE>>", &file[at..]].concat());
        }
    }

    #[test]
    fn output_does_not_depend_on_its_pieces(
        parts in proptest::collection::vec(proptest::sample::select(PIECES), 0..30),
        cuts in proptest::collection::vec(any::<usize>(), 0..20),
        lines in 1..6usize,
        bytes in 4..40usize,
    ) {
        let stream = parts.concat();
        let limits = Limits { lines, bytes };
        let whole = snapshot(&stream, &[], limits);
        prop_assert_eq!(&snapshot(&stream, &cuts, limits), &whole);
        let text = String::from_utf8_lossy(&stream);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let naive = truncate_tail(text, limits);
        prop_assert_eq!(whole.tail.total_lines, naive.total_lines);
        prop_assert_eq!(whole.tail.total_bytes, naive.total_bytes);
        prop_assert_eq!(whole.tail.truncated(), naive.truncated());
        prop_assert_eq!(whole.tail.content.trim_end_matches('\n'), naive.content.trim_end_matches('\n'));
    }
}
