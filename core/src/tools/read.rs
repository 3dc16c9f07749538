//! `read`: text by lines, images by content (spec 50 §2).

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use super::place::Candidates;
use super::script::{Next, Script, Scripted, details};
use super::{ToolEnv, ToolMachine, ToolOutput, args, image_rules};
use crate::fault::{FaultKind, IoFault};
use crate::json::Value;
use crate::message::Block;
use crate::op::{FsOp, ImageData, Op, Outcome, ReadText, TextSlice};
use crate::text::truncate::{CutBy, Limits, MAX_BYTES, MAX_LINES, Truncation, format_size};

/// Starts a call.
pub(super) fn machine(args: Arc<Value>) -> Box<dyn ToolMachine> {
    Box::new(Scripted::new(Read { args, first_line: 1, max_lines: None, path: None }))
}

struct Read {
    args: Arc<Value>,
    first_line: u64,
    max_lines: Option<u64>,
    path: Option<Candidates>,
}

impl Script for Read {
    fn begin(&mut self, env: &ToolEnv) -> Next {
        // A position between two lines means the earlier one, as slicing a list of lines does.
        self.first_line = args::number(&self.args, "offset").map_or(1, |n| args::whole(n - 1.0) + 1);
        match args::number(&self.args, "limit") {
            Some(n) if n < 0.0 => return Next::fail(format!("limit must not be negative, got {n}.")),
            limit => self.max_lines = limit.map(args::whole),
        }
        match Candidates::to_read(env, self.given()) {
            Ok(path) => self.path.insert(path),
            Err(why) => return Next::fail(format!("Cannot read {}: {why}", self.given())),
        };
        self.ask_text()
    }

    fn resume(&mut self, env: &ToolEnv, result: Result<Outcome, IoFault>) -> Next {
        match result {
            Ok(Outcome::Text(slice)) if image_rules::detect(&slice.head).is_some() => {
                Next::ask(Op::Fs(FsOp::ReadImage { path: self.current(), limits: env.images }))
            }
            Ok(Outcome::Text(slice)) => Next::Done(self.text(slice)),
            Ok(Outcome::Image(Ok(image))) => Next::Done(shown(image, env)),
            Ok(Outcome::Image(Err(why))) => {
                Next::Done(ToolOutput::text(format!("[The image {} is not shown: {why}]", self.given())))
            }
            Err(fault) if self.path.as_mut().is_some_and(|path| path.advance(&fault)) => self.ask_text(),
            Err(fault) => Next::fail(self.failure(&fault)),
            Ok(_) => {
                Next::fail(format!("Cannot read {}: the backend gave an unexpected answer.", self.given()))
            }
        }
    }
}

impl Read {
    fn given(&self) -> &str {
        args::text(&self.args, "path").unwrap_or_default()
    }

    fn current(&self) -> String {
        self.path.as_ref().map(|path| path.current().into()).unwrap_or_default()
    }

    fn ask_text(&self) -> Next {
        Next::ask(Op::Fs(FsOp::ReadText(ReadText {
            path: self.current(),
            first_line: self.first_line,
            max_lines: self.max_lines,
            keep_lines: MAX_LINES as u64,
            keep_bytes: MAX_BYTES as u64,
        })))
    }

    fn failure(&self, fault: &IoFault) -> String {
        let hint = match fault.kind {
            FaultKind::IsDir => " List a folder with ls.",
            _ => "",
        };
        format!("Cannot read {}: {fault}.{hint}", self.given())
    }

    fn text(&self, slice: TextSlice) -> ToolOutput {
        let (first, total) = (self.first_line, slice.total_lines);
        if first > total {
            let given = args::number(&self.args, "offset").unwrap_or_default();
            return ToolOutput::error(format!(
                "offset {given} is past the end of the file: it has {total} lines."
            ));
        }
        let cut = truncation(&slice);
        let after = first + slice.selected_lines;
        let (body, note) = match cut.cut_by {
            Some(_) if cut.first_line_exceeds_limit => {
                let size = format_size(slice.first_line_bytes);
                (String::new(), Some(self.too_long(first, &size)))
            }
            Some(by) => {
                let next = first + cut.output_lines as u64;
                let bytes = if by == CutBy::Bytes {
                    format!(" ({} limit)", format_size(MAX_BYTES as u64))
                } else {
                    String::new()
                };
                let last = next - 1;
                let note =
                    format!("[Lines {first}-{last} of {total} shown{bytes}. Continue with offset={next}.]");
                (cut.content.clone(), Some(note))
            }
            None if after <= total => {
                let rest = total + 1 - after;
                (
                    cut.content.clone(),
                    Some(format!("[{rest} more lines in the file. Continue with offset={after}.]")),
                )
            }
            None => return ToolOutput::text(cut.content),
        };
        let text = match note {
            Some(note) if body.is_empty() => note,
            Some(note) => format!("{body}\n\n{note}"),
            None => body,
        };
        ToolOutput {
            details: details(cut.cut_by.map(|_| ("truncation", cut.to_value()))),
            ..ToolOutput::text(text)
        }
    }

    /// A line that does not fit at all, and a way to see its beginning.
    fn too_long(&self, line: u64, size: &str) -> String {
        let (path, limit) = (shell_quote(self.given()), format_size(MAX_BYTES as u64));
        format!(
            "[Line {line} is {size}, above the limit of {limit} for one read. \
             See its beginning with bash: sed -n '{line}p' {path} | head -c {MAX_BYTES}]"
        )
    }
}

/// What the backend's head truncation did, from the totals it reports.
fn truncation(slice: &TextSlice) -> Truncation {
    let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let total_lines = size(slice.selected_lines - u64::from(slice.ends_empty));
    let (total_bytes, limits) = (size(slice.selected_bytes), Limits::default());
    let whole = total_lines <= limits.lines && total_bytes <= limits.bytes;
    let first_line_exceeds_limit = !whole && size(slice.first_line_bytes) > limits.bytes;
    let output_lines = match whole {
        true => total_lines,
        false if first_line_exceeds_limit => 0,
        false => memchr::memchr_iter(b'\n', slice.text.as_bytes()).count() + 1,
    };
    let cut_by = match whole {
        true => None,
        false if output_lines < total_lines.min(limits.lines) => Some(CutBy::Bytes),
        false => Some(CutBy::Lines),
    };
    Truncation {
        content: slice.text.clone(),
        cut_by,
        total_lines,
        total_bytes,
        output_lines,
        output_bytes: slice.text.len(),
        last_line_partial: false,
        first_line_exceeds_limit,
        limits,
    }
}

/// A note and the image itself (spec 50 §2 step 5).
fn shown(image: ImageData, env: &ToolEnv) -> ToolOutput {
    let mut note = format!("[Image, {}]", image.mime_type);
    if let Some(source) = &image.converted_from {
        note.push_str(&format!("\n[Converted from {source} to {}.]", image.mime_type));
    }
    if let (Some(original), Some(shown)) = (image.original, image.shown) {
        note.push('\n');
        note.push_str(&image_rules::coordinate_hint(original, shown));
    }
    let blind = env.blind_model.as_deref().map(|model| ("imageUnsupportedByModel", Value::from(model)));
    ToolOutput {
        content: alloc::vec![Block::text(note), Block::image(image.data, image.mime_type)],
        details: details(blind),
        ..ToolOutput::default()
    }
}

/// A word as a POSIX shell takes it literally.
fn shell_quote(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,@%".contains(c);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        return Cow::Borrowed(word);
    }
    let dash = if word.starts_with('-') { "./" } else { "" };
    Cow::Owned(format!("'{dash}{}'", word.replace('\'', r"'\''")))
}
