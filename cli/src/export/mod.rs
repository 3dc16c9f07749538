//! A session as one HTML file that needs nothing else: no network, no program, no JavaScript (spec 60 §1.13).
//!
//! The page is made on this side, entry by entry: memory holds the tree and one entry, whatever the size of the session.
//! Whatever people, models, tools or files said goes through [`html`], and a content security policy forbids every
//! script but the page's own small one, which adds comfort and nothing else.
//!
//! | room | what |
//! |---|---|
//! | [`source`] | the session file, entries one by one |
//! | [`survey`] | totals and first words, in a pass of its own |
//! | [`chains`] | the tree as lists: the current branch, and those beside it |
//! | [`page`], [`entry`], [`tool`] | the page, entries, calls with their results |
//! | [`markdown`], [`inline`] | the text of models |
//! | [`content`] | small pieces |
//! | [`html`] | text as text |
//! | [`data`] | the session itself, for programs |

pub mod chains;
pub mod content;
pub mod data;
pub mod entry;
pub mod html;
pub mod inline;
pub mod markdown;
pub mod page;
pub mod sink;
pub mod source;
pub mod survey;
pub mod tool;

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use tau_io_std::sys::{self, atomic};

use page::Page;
use source::Source;

/// Mode of a page: it says what its session says, which others may not read either.
const MODE: u32 = 0o600;

/// The name of a page when nobody names one.
#[must_use]
pub fn default_name(session_file: &str) -> String {
    let base = Path::new(session_file).file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    format!("pi-session-{}.html", base.strip_suffix(".jsonl").unwrap_or(&base))
}

/// Writes the page of a session file. `leaf` is the end of its current branch; without one it is the last entry.
///
/// # Errors
/// When the session cannot be read or the page not be written; what was there before is still there then.
pub fn export(session_file: &str, target: &str, leaf: Option<&str>) -> Result<(), String> {
    if is_session(target, session_file) {
        return Err(format!(
            "{target} would be overwritten with a page; give the page a name of its own, like page.html"
        ));
    }
    let source = Source::open(session_file)?;
    let page = Page::of(&source, leaf);
    let mut write = |file: &mut fs::File| page.write(file);
    atomic::replace_with(Path::new(target), MODE, &mut write)
        .map_err(|e| format!("the page cannot be written: {e}"))
}

/// Pages to a writer, for tests and other surfaces.
///
/// # Errors
/// When the session cannot be read or the page not be written.
pub fn page(session_file: &str, leaf: Option<&str>, to: &mut dyn Write) -> Result<(), String> {
    let source = Source::open(session_file)?;
    let written: io::Result<()> = Page::of(&source, leaf).write(to);
    written.map_err(|e| format!("the page cannot be written: {e}"))
}

/// Whether writing there would lose a session.
fn is_session(target: &str, session_file: &str) -> bool {
    const START: &[u8; 17] = b"{\"type\":\"session\"";
    let real = |path: &str| fs::canonicalize(path).ok();
    let starts_as_one = || {
        let mut start = [0; START.len()];
        let file = sys::fs::open_regular(target).ok();
        file.is_some_and(|(mut file, _)| file.read_exact(&mut start).is_ok() && start == *START)
    };
    target.ends_with(".jsonl")
        || real(target).is_some_and(|path| Some(path) == real(session_file))
        || starts_as_one()
}
