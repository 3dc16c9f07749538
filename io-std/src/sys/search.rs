//! Searching contents (spec 50 §6.1).

use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use ignore::overrides::{Override, OverrideBuilder};
use rustix::fs::OFlags;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::{Hit, Outcome, SearchSpec};

use super::fs::open_regular;
use super::ignore_rules::Rules;
use super::lines::{End, Lines};
use super::tree::{Flow, Kind, visit};
use super::utf16::{Encoding, Utf16, byte_order_mark};
use super::{CancelToken, fault, lines};

/// Files up to this size are searched in one buffer, which is reused; larger ones stream.
const WHOLE_BYTES: usize = 256 << 10;
/// Longest line that is held while a file streams.
const LINE_BYTES: usize = 64 << 20;

/// Executes a content search.
///
/// # Errors
/// `Invalid` for a pattern or glob that makes no sense, `NotFound` and `Special` for the root, `Cancelled`.
pub fn search(spec: &SearchSpec, cancel: &CancelToken) -> Result<Outcome, IoFault> {
    let matcher = matcher(spec)?;
    let root = Path::new(&spec.root);
    let overrides = overrides(root, spec.glob.as_deref())?;
    let is_dir = std::fs::metadata(root).map_err(fault::at(&spec.root))?.is_dir();
    let mut lines = Lines::new(&matcher, spec.context as usize, LINE_BYTES);
    let mut run = Run { spec, cancel, buffer: Vec::new(), hits: Vec::new(), matches: 0, more: false };
    if is_dir {
        run.folder(root, overrides, &mut lines)?;
    } else {
        run.file(root, &mut lines)?;
    }
    Ok(Outcome::Hits { hits: run.hits, more: run.more })
}

fn matcher(spec: &SearchSpec) -> Result<RegexMatcher, IoFault> {
    let invalid =
        |why: String| IoFault::new(FaultKind::Invalid, format!("invalid pattern `{}`: {why}", spec.pattern));
    if spec.literal && spec.pattern.contains('\n') {
        return Err(invalid("a line break cannot match within one line".into()));
    }
    lines::matcher(&spec.pattern, spec.literal, spec.ignore_case).map_err(|e| invalid(e.to_string()))
}

/// A regular expression for texts, case aside: a function that tells whether it is found in one. Line breaks are
/// characters like others; `^` and `$` stand for the ends of the text.
///
/// # Errors
/// `Invalid`, with the reason.
pub fn pattern(pattern: &str) -> Result<impl Fn(&str) -> bool + use<>, IoFault> {
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(true)
        .multi_line(false)
        .build(pattern)
        .map_err(|e| IoFault::new(FaultKind::Invalid, format!("invalid pattern `{pattern}`: {e}")))?;
    // A match cannot fail: the error has no values.
    Ok(move |text: &str| matcher.is_match(text.as_bytes()).is_ok_and(|found| found))
}

fn overrides(root: &Path, glob: Option<&str>) -> Result<Override, IoFault> {
    let Some(glob) = glob else { return Ok(Override::empty()) };
    let (not, rest) = glob.strip_prefix('!').map_or(("", glob), |rest| ("!", rest));
    let rest = rest.strip_prefix("./").unwrap_or(rest);
    let invalid = |e: ignore::Error| IoFault::new(FaultKind::Invalid, format!("invalid glob `{glob}`: {e}"));
    let mut builder = OverrideBuilder::new(root);
    builder.add(&format!("{not}{rest}")).map_err(invalid)?;
    builder.build().map_err(invalid)
}

struct Run<'a> {
    spec: &'a SearchSpec,
    cancel: &'a CancelToken,
    buffer: Vec<u8>,
    hits: Vec<Hit>,
    matches: u64,
    more: bool,
}

impl Run<'_> {
    fn folder(&mut self, root: &Path, overrides: Override, lines: &mut Lines<'_>) -> Result<(), IoFault> {
        let mut rules = Rules::above(root, ".rgignore", overrides);
        let cancel = self.cancel;
        visit(root, &mut rules, cancel, &mut |entry| {
            if entry.kind == Kind::File {
                cancel.check()?;
                // A file that cannot be read is left out, as are lines too long to hold.
                let _ = self.found_file(entry.path, entry.rel, lines);
            }
            Ok(if self.more { Flow::Stop } else { Flow::Go })
        })
    }

    /// A file with a NUL byte is no text.
    fn found_file(&mut self, path: &Path, rel: &[u8], lines: &mut Lines<'_>) -> io::Result<()> {
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
        let file = File::options().read(true).custom_flags(flags).open(path)?;
        self.open_file(file, rel, true, lines)
    }

    /// A file named by the caller is searched whatever it holds.
    fn file(&mut self, path: &Path, lines: &mut Lines<'_>) -> Result<(), IoFault> {
        let (file, _) = open_regular(&self.spec.root)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let result = self.open_file(file, name.as_bytes(), false, lines);
        self.cancel.check()?;
        result.map_err(fault::at(&self.spec.root))
    }

    fn open_file(
        &mut self,
        mut file: File,
        rel: &[u8],
        text_only: bool,
        lines: &mut Lines<'_>,
    ) -> io::Result<()> {
        self.buffer.resize(WHOLE_BYTES, 0);
        let len = fill(&mut file, &mut self.buffer)?;
        let buffer = std::mem::take(&mut self.buffer);
        let bytes = buffer.get(..len).unwrap_or_default();
        let mark = byte_order_mark(bytes);
        let result = if len < WHOLE_BYTES && mark.is_none() {
            if !(text_only && memchr::memchr(0, bytes).is_some()) {
                let mut collect = self.collect(rel);
                lines.text(bytes, &mut |number, line, matches| collect.line(number, line, matches));
            }
            Ok(())
        } else {
            let start = bytes.get(mark.map_or(0, |(len, _)| len)..).unwrap_or_default();
            let reader = Cancellable { inner: Cursor::new(start).chain(file), cancel: self.cancel };
            match mark {
                Some((_, Encoding::Utf16(order))) => {
                    self.stream(&mut Utf16::new(reader, order), rel, text_only, lines)
                }
                _ => self.stream(&mut { reader }, rel, text_only, lines),
            }
        };
        self.buffer = buffer;
        result
    }

    fn stream(
        &mut self,
        reader: &mut dyn Read,
        rel: &[u8],
        text_only: bool,
        lines: &mut Lines<'_>,
    ) -> io::Result<()> {
        let before = (self.hits.len(), self.matches, self.more);
        let mut collect = self.collect(rel);
        let end = lines
            .stream(reader, text_only, &mut |number, line, matches| collect.line(number, line, matches))?;
        if end == End::Binary {
            self.hits.truncate(before.0);
            (self.matches, self.more) = (before.1, before.2);
        }
        Ok(())
    }

    fn collect<'c>(&'c mut self, rel: &'c [u8]) -> Collect<'c> {
        Collect {
            spec: self.spec,
            rel,
            path: None,
            hits: &mut self.hits,
            matches: &mut self.matches,
            more: &mut self.more,
            window: 0,
        }
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while let Some(rest) = buffer.get_mut(len..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(n) => len += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(len)
}

struct Cancellable<'a, R> {
    inner: R,
    cancel: &'a CancelToken,
}

impl<R: Read> Read for Cancellable<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.inner.read(buffer)
    }
}

/// Collects the lines of one file until the limit, and one look beyond it.
struct Collect<'a> {
    spec: &'a SearchSpec,
    rel: &'a [u8],
    path: Option<String>,
    hits: &'a mut Vec<Hit>,
    matches: &'a mut u64,
    more: &'a mut bool,
    /// Last line that may still be shown as context once the limit is reached.
    window: u64,
}

impl Collect<'_> {
    /// Takes a line; `false` = nothing more of this file is of use.
    fn line(&mut self, number: u64, bytes: &[u8], matches: bool) -> bool {
        let full = *self.matches >= self.spec.limit;
        if full && matches {
            *self.more = true;
        }
        if full && number > self.window {
            return !*self.more;
        }
        let is_match = matches && !full;
        if is_match {
            *self.matches += 1;
            self.window = number.saturating_add(self.spec.context.into());
        }
        let (text, clipped) = clip(bytes, self.spec.max_line);
        let path = self.path.get_or_insert_with(|| String::from_utf8_lossy(self.rel).into_owned()).clone();
        self.hits.push(Hit { path, line: number, is_match, text, clipped });
        true
    }
}

/// The line without its terminator, lossy, at most `max` UTF-16 units; characters are not cut.
fn clip(bytes: &[u8], max: u32) -> (String, bool) {
    let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let max = max as usize;
    // Enough bytes for that many units, whatever they are; a character cut at the end lies beyond the limit.
    let part = line.get(..max.saturating_mul(4).saturating_add(4)).unwrap_or(line);
    let mut text = String::from_utf8_lossy(part).into_owned();
    let mut units = 0;
    let end = text.char_indices().find_map(|(at, c)| {
        units += c.len_utf16();
        (units > max).then_some(at)
    });
    match end {
        Some(at) => {
            text.truncate(at);
            (text, true)
        }
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clipping_counts_utf16_units() {
        assert_eq!(clip(b"abc\r\n", 3), ("abc".into(), false));
        assert_eq!(clip("a😀b\n".as_bytes(), 2), ("a".into(), true));
        assert_eq!(clip("a😀b\n".as_bytes(), 3), ("a😀".into(), true));
        assert_eq!(clip(b"a\rb", 9), ("a\rb".into(), false));
        assert_eq!(clip(b"\xff\xff\xff", 2), ("\u{fffd}\u{fffd}".into(), true));
    }
}
