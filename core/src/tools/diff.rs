//! What an edit changed, line by line: a numbered view for people and a unified patch (spec 50 §4.4).
//!
//! Only lines near the replacements are compared; everything else is known to be equal and merely counted.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use memchr::{memchr_iter, memrchr_iter};

use super::edit_match::{Replacement, splice};
use super::myers::{Step, align};

/// Lines shown around a change unless told otherwise.
pub const CONTEXT: usize = 4;
/// Equal lines compared on each side of a replacement.
const WINDOW: usize = 32;

/// Both renderings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// Numbered lines with signs; empty when nothing changed.
    pub display: String,
    /// Unified patch.
    pub patch: String,
    /// Line of the new text where the first change starts, from 1.
    pub first_changed_line: Option<u64>,
}

/// How two texts differ, as rows in order.
#[derive(Debug, Default)]
pub struct Rows {
    rows: Vec<Row>,
    /// LFs of the old and of the new text.
    old_lfs: usize,
    new_lfs: usize,
}

#[derive(Debug)]
enum Row {
    /// Equal lines that are too far from a change to be shown.
    Far(usize),
    /// One line; terminators belong to lines.
    Near(Step, Vec<u8>),
}

impl Rows {
    /// Compares two texts in full.
    #[must_use]
    pub fn between(old: &str, new: &str) -> Self {
        let mut out = Self::default();
        out.compare(old.as_bytes(), new.as_bytes());
        out
    }

    /// Compares a text with what its (sorted, disjoint) replacements make of it.
    #[must_use]
    pub fn around(old: &[u8], replacements: &[Replacement<'_>]) -> Self {
        let mut out = Self::default();
        let (mut rest, mut at) = (replacements, 0);
        while let Some(first) = rest.first() {
            let from = lines_before(old, first.start, WINDOW).max(at);
            let mut to = lines_after(old, first.end, WINDOW);
            let mut taken = 1;
            while let Some(next) = rest.get(taken)
                && lines_before(old, next.start, WINDOW) <= to
            {
                to = lines_after(old, next.end, WINDOW);
                taken += 1;
            }
            let (group, later) = rest.split_at(taken);
            out.far(old.get(at..from).unwrap_or_default());
            out.compare(old.get(from..to).unwrap_or_default(), &splice(old, from, to, group));
            (rest, at) = (later, to);
        }
        out.far(old.get(at..).unwrap_or_default());
        out
    }

    fn far(&mut self, text: &[u8]) {
        let (closed, open) = (lfs(text), usize::from(text.last().is_some_and(|b| *b != b'\n')));
        self.old_lfs += closed;
        self.new_lfs += closed;
        if closed + open > 0 {
            self.rows.push(Row::Far(closed + open));
        }
    }

    fn compare(&mut self, old: &[u8], new: &[u8]) {
        self.old_lfs += lfs(old);
        self.new_lfs += lfs(new);
        let old: Vec<&[u8]> = old.split_inclusive(|b| *b == b'\n').collect();
        let new: Vec<&[u8]> = new.split_inclusive(|b| *b == b'\n').collect();
        let (mut o, mut n) = (old.iter(), new.iter());
        for step in align(&old, &new) {
            let line = match step {
                Step::Same => {
                    n.next();
                    o.next()
                }
                Step::Remove => o.next(),
                Step::Insert => n.next(),
            };
            self.rows.push(Row::Near(step, line.copied().unwrap_or_default().to_vec()));
        }
    }

    /// Both renderings; `path` is named in the patch.
    #[must_use]
    pub fn render(&self, path: &str) -> Diff {
        self.render_with(path, CONTEXT)
    }

    /// Both renderings with `context` lines around changes; rows made by [`Rows::around`] hold at most 32.
    #[must_use]
    pub fn render_with(&self, path: &str, context: usize) -> Diff {
        let runs = self.runs(context);
        let mut first_changed_line = None;
        for run in &runs {
            if let (Run::Changed { new_line, .. }, None) = (run, first_changed_line) {
                first_changed_line = Some(*new_line as u64);
            }
        }
        let width = decimal_digits(self.old_lfs.max(self.new_lfs) + 1);
        Diff {
            display: display(&runs, width, context),
            patch: patch(&runs, path, context),
            first_changed_line,
        }
    }

    /// Rows as alternating runs of equal and changed lines.
    fn runs(&self, context: usize) -> Vec<Run<'_>> {
        let mut runs: Vec<Run<'_>> = Vec::new();
        let (mut old_line, mut new_line) = (1, 1);
        for row in &self.rows {
            let (step, line, count) = match row {
                Row::Far(count) => (Step::Same, None, *count),
                Row::Near(step, line) => (*step, Some(line.as_slice()), 1),
            };
            match (step, runs.last_mut()) {
                (Step::Same, Some(Run::Same(same))) => same.add(line, count),
                (Step::Same, _) => {
                    let mut same = Same { context, old_line, new_line, ..Same::default() };
                    same.add(line, count);
                    runs.push(Run::Same(same));
                }
                (_, Some(Run::Changed { lines, .. })) => lines.push((step, line.unwrap_or_default())),
                (..) => {
                    let lines = alloc::vec![(step, line.unwrap_or_default())];
                    runs.push(Run::Changed { old_line, new_line, lines });
                }
            }
            old_line += if step == Step::Insert { 0 } else { count };
            new_line += if step == Step::Remove { 0 } else { count };
        }
        runs
    }
}

/// Lines of one kind that follow each other.
enum Run<'a> {
    Same(Same<'a>),
    Changed { old_line: usize, new_line: usize, lines: Vec<(Step, &'a [u8])> },
}

/// A run of equal lines; of a long one only both ends are known.
#[derive(Default)]
struct Same<'a> {
    context: usize,
    old_line: usize,
    new_line: usize,
    count: usize,
    /// First lines, then the last ones; all of them when there are few.
    head: Vec<&'a [u8]>,
    tail: VecDeque<&'a [u8]>,
}

impl<'a> Same<'a> {
    fn add(&mut self, line: Option<&'a [u8]>, count: usize) {
        self.count += count;
        let Some(line) = line else { return };
        if self.head.len() < 2 * self.context && self.head.len() + 1 == self.count {
            self.head.push(line);
        }
        self.tail.push_back(line);
        if self.tail.len() > self.context {
            self.tail.pop_front();
        }
    }

    /// The first `n` lines with their old and new numbers.
    fn first(&self, n: usize) -> impl Iterator<Item = (usize, usize, &'a [u8])> + '_ {
        self.head.iter().take(n).enumerate().map(|(i, line)| (self.old_line + i, self.new_line + i, *line))
    }

    /// The last lines, as many as are shown before a change.
    fn last(&self) -> impl Iterator<Item = (usize, usize, &'a [u8])> + '_ {
        let skipped = self.count - self.tail.len();
        let number = move |i: usize| (self.old_line + skipped + i, self.new_line + skipped + i);
        self.tail.iter().enumerate().map(move |(i, line)| (number(i).0, number(i).1, *line))
    }
}

fn lfs(text: &[u8]) -> usize {
    memchr_iter(b'\n', text).count()
}

/// Start of the line `count` lines above the one that holds `at`.
fn lines_before(text: &[u8], at: usize, count: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    memrchr_iter(b'\n', before).nth(count).map_or(0, |lf| lf + 1)
}

/// End of the line `count` lines below the one in which the range before `at` ends.
fn lines_after(text: &[u8], at: usize, count: usize) -> usize {
    let after = text.get(at..).unwrap_or_default();
    memchr_iter(b'\n', after).nth(count).map_or(text.len(), |lf| at + lf + 1)
}

const fn decimal_digits(n: usize) -> usize {
    match n.checked_ilog10() {
        Some(log) => log as usize + 1,
        None => 1,
    }
}

/// The numbered view: context lines carry old numbers.
fn display(runs: &[Run<'_>], width: usize, context: usize) -> String {
    let mut out = String::new();
    if !runs.iter().any(|run| matches!(run, Run::Changed { .. })) {
        return out;
    }
    let line = |out: &mut String, sign: char, number: usize, text: &[u8]| {
        let text = String::from_utf8_lossy(text.strip_suffix(b"\n").unwrap_or(text));
        // Writing to a `String` cannot fail.
        let _ = writeln!(out, "{sign}{number:>width$} {text}");
    };
    let skip = |out: &mut String| {
        let _ = writeln!(out, " {:width$} ...", "");
    };
    for (index, run) in runs.iter().enumerate() {
        match run {
            Run::Changed { old_line, new_line, lines } => {
                let (mut old_line, mut new_line) = (*old_line, *new_line);
                for (step, text) in lines {
                    match step {
                        Step::Insert => {
                            line(&mut out, '+', new_line, text);
                            new_line += 1;
                        }
                        Step::Remove | Step::Same => {
                            line(&mut out, '-', old_line, text);
                            old_line += 1;
                        }
                    }
                }
            }
            Run::Same(same) => {
                let (first, last) = (index == 0, index + 1 == runs.len());
                let whole = if first || last { context } else { 2 * context };
                if same.count <= whole {
                    same.first(whole).for_each(|(old, _, text)| line(&mut out, ' ', old, text));
                    continue;
                }
                if !first {
                    same.first(context).for_each(|(old, _, text)| line(&mut out, ' ', old, text));
                }
                skip(&mut out);
                if !last {
                    same.last().for_each(|(old, _, text)| line(&mut out, ' ', old, text));
                }
            }
        }
    }
    out.pop();
    out
}

/// One hunk of the patch while it is built.
#[derive(Default)]
struct Hunk {
    start: Option<(usize, usize)>,
    old_count: usize,
    new_count: usize,
    body: String,
}

impl Hunk {
    fn add(&mut self, step: Step, numbers: (usize, usize), line: &[u8]) {
        self.start.get_or_insert(numbers);
        let sign = match step {
            Step::Same => ' ',
            Step::Remove => '-',
            Step::Insert => '+',
        };
        self.old_count += usize::from(step != Step::Insert);
        self.new_count += usize::from(step != Step::Remove);
        self.body.push(sign);
        self.body.push_str(&String::from_utf8_lossy(line));
        if !line.ends_with(b"\n") {
            self.body.push_str("\n\\ No newline at end of file\n");
        }
    }

    fn end(&mut self, out: &mut String) {
        let hunk = core::mem::take(self);
        let Some((old, new)) = hunk.start else { return };
        let start = |line: usize, count: usize| line - usize::from(count == 0);
        let (old, new) = (start(old, hunk.old_count), start(new, hunk.new_count));
        let _ = writeln!(out, "@@ -{old},{} +{new},{} @@", hunk.old_count, hunk.new_count);
        out.push_str(&hunk.body);
    }
}

fn patch(runs: &[Run<'_>], path: &str, context: usize) -> String {
    let mut out = alloc::format!("--- {path}\n+++ {path}\n");
    let mut hunk = Hunk::default();
    for (index, run) in runs.iter().enumerate() {
        match run {
            Run::Changed { old_line, new_line, lines } => {
                let mut numbers = (*old_line, *new_line);
                for (step, line) in lines {
                    hunk.add(*step, numbers, line);
                    match step {
                        Step::Insert => numbers.1 += 1,
                        Step::Remove | Step::Same => numbers.0 += 1,
                    }
                }
            }
            Run::Same(same) => {
                let (first, last) = (index == 0, index + 1 == runs.len());
                if same.count <= 2 * context && !first && !last {
                    same.first(2 * context)
                        .for_each(|(old, new, line)| hunk.add(Step::Same, (old, new), line));
                    continue;
                }
                if !first {
                    same.first(context).for_each(|(old, new, line)| hunk.add(Step::Same, (old, new), line));
                    hunk.end(&mut out);
                }
                if !last {
                    same.last().for_each(|(old, new, line)| hunk.add(Step::Same, (old, new), line));
                }
            }
        }
    }
    hunk.end(&mut out);
    out
}
