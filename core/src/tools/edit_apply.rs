//! Applying edits to the bytes of a file: what is not replaced stays as it is, byte for byte (spec 50 §4.3, D33).

use alloc::borrow::Cow;
use alloc::vec::Vec;

use memchr::{memchr, memchr_iter, memrchr};

use super::diff::{Diff, Rows};
use super::edit_match::{Base, Edit, EditError, Replacement, splice};
use crate::text::bom_eol::{LineEnd, to_lf};

/// A file after its edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The new content.
    pub bytes: Vec<u8>,
    /// What changed, line ends shown as LF.
    pub diff: Diff,
}

const BOM: &[u8] = "\u{feff}".as_bytes();

/// Applies all edits or none. `path` is named in the patch.
///
/// # Errors
/// Why the edits do not apply.
pub fn apply(file: Vec<u8>, edits: &[(&str, &str)], path: &str) -> Result<Applied, EditError> {
    let edits: Vec<Edit<'_>> =
        edits.iter().map(|(old, new)| Edit { old: to_lf(old), new: to_lf(new) }).collect();
    let bom = if file.starts_with(BOM) { BOM.len() } else { 0 };
    let body = file.get(bom..).unwrap_or_default();
    if memchr(b'\r', body).is_none() {
        let replacements = Base::new(body).plan(&edits)?;
        let diff = Rows::around(body, &replacements).render(path);
        return Ok(Applied { bytes: replace(file, bom, &replacements), diff });
    }
    let unified = lf_only(body);
    let replacements = Base::new(&unified).plan(&edits)?;
    let diff = Rows::around(&unified, &replacements).render(path);
    drop(unified);
    let mut bytes = Vec::with_capacity(file.len());
    bytes.extend_from_slice(file.get(..bom).unwrap_or_default());
    replace_keeping_ends(body, &replacements, &mut bytes);
    Ok(Applied { bytes, diff })
}

/// A single replacement moves only what follows it; a large file is not held twice.
fn replace(mut file: Vec<u8>, bom: usize, replacements: &[Replacement<'_>]) -> Vec<u8> {
    if let [only] = replacements {
        file.reserve_exact(only.text.len().saturating_sub(only.end - only.start));
        file.splice(bom + only.start..bom + only.end, only.text.bytes());
        return file;
    }
    let body = file.get(bom..).unwrap_or_default();
    let mut out = splice(body, 0, body.len(), replacements);
    out.splice(..0, file.iter().take(bom).copied());
    out
}

/// CRLF and lone CR as LF.
fn lf_only(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for cr in memchr_iter(b'\r', bytes) {
        out.extend_from_slice(bytes.get(at..cr).unwrap_or_default());
        at = cr + 1;
        if bytes.get(at) != Some(&b'\n') {
            out.push(b'\n');
        }
    }
    out.extend_from_slice(bytes.get(at..).unwrap_or_default());
    out
}

/// Positions in the unified text, mapped to the original one. Only a CRLF shifts positions; the position of its LF
/// is that of its CR. Asked in ascending order.
struct Positions<'a> {
    bytes: &'a [u8],
    crs: memchr::Memchr<'a>,
    next: Option<usize>,
    shift: usize,
}

impl<'a> Positions<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let mut out = Self { bytes, crs: memchr_iter(b'\r', bytes), next: None, shift: 0 };
        out.advance();
        out
    }

    /// Goes to the next CR that an LF follows.
    fn advance(&mut self) {
        let bytes = self.bytes;
        self.next = self.crs.find(|cr| bytes.get(cr + 1) == Some(&b'\n'));
    }

    fn original(&mut self, at: usize) -> usize {
        while self.next.is_some_and(|cr| cr - self.shift < at) {
            self.shift += 1;
            self.advance();
        }
        at + self.shift
    }
}

/// Applies replacements to a text with CRs. Line breaks in new text become those that stand at its place.
fn replace_keeping_ends(body: &[u8], replacements: &[Replacement<'_>], out: &mut Vec<u8>) {
    let mut positions = Positions::new(body);
    let mut at = 0;
    for replacement in replacements {
        let (start, end) = (positions.original(replacement.start), positions.original(replacement.end));
        push_apart(out, body.get(at..start).unwrap_or_default());
        push_apart(out, with_ends(&replacement.text, end_at(body, start)).as_bytes());
        at = end;
    }
    push_apart(out, body.get(at..).unwrap_or_default());
}

/// Appends; a CR before the seam and an LF after it stay two breaks.
fn push_apart(out: &mut Vec<u8>, piece: &[u8]) {
    if out.last() == Some(&b'\r') && piece.first() == Some(&b'\n') {
        out.push(b'\n');
    }
    out.extend_from_slice(piece);
}

/// The kind of line break that stands next to a position: the next one with an LF, else the last one before.
fn end_at(body: &[u8], at: usize) -> LineEnd {
    let (before, after) = body.split_at_checked(at).unwrap_or((body, &[]));
    let lf = memchr(b'\n', after).map(|lf| at + lf).or_else(|| memrchr(b'\n', before));
    match lf {
        None => LineEnd::Cr,
        Some(lf) if lf.checked_sub(1).is_some_and(|cr| body.get(cr) == Some(&b'\r')) => LineEnd::CrLf,
        Some(_) => LineEnd::Lf,
    }
}

fn with_ends(text: &str, end: LineEnd) -> Cow<'_, str> {
    match end {
        LineEnd::Lf => Cow::Borrowed(text),
        _ => Cow::Owned(text.replace('\n', end.as_str())),
    }
}
