//! What was learnt about the files of a folder, kept for the next list.
//!
//! The index is a copy and never an authority: a record counts only while size, times and inode of its file are the
//! same, and an index that is not whole, not ours or of another version counts as none. So it can be removed at any
//! time. One file for each folder of sessions, `<agent directory>/cache/sessions/<hash of the folder>.idx`, mode 0600:
//!
//! ```text
//! tau sessions 1 <TAB> folder
//! file <TAB> size <TAB> mtime <TAB> ctime <TAB> inode [<TAB> id <TAB> cwd <TAB> created <TAB> modified <TAB> messages
//!     <TAB> name <TAB> first message <TAB> parent]
//! end <TAB> number of records <TAB> hash of all before
//! ```
//!
//! Times of files are in ns, others in ms. `=` stands before the value of a field that may be absent; tabs, line feeds
//! and backslashes are escaped. A record without the part in brackets is a file that is no session.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tau_core::now::Wall;
use tau_core::session::SessionInfo;
use tau_io_std::sys::{atomic, fs::private_dir};

const MAGIC: &str = "tau sessions 1";

/// A file that was changed less than this before it was read may change again without another time.
const TICK_NS: i64 = 100_000_000;

/// The same where times have no fractions of a second.
const COARSE_TICK_NS: i64 = 2_000_000_000;

/// What tells that a file is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes.
    pub size: u64,
    /// Last change of the content, ns.
    pub mtime: i64,
    /// Last change of anything, ns.
    pub ctime: i64,
    /// Inode.
    pub inode: u64,
}

impl Stamp {
    /// Of a file.
    #[must_use]
    pub fn of(meta: &Metadata) -> Self {
        let ns = |s: i64, ns: i64| s.saturating_mul(1_000_000_000).saturating_add(ns);
        Self {
            size: meta.len(),
            mtime: ns(meta.mtime(), meta.mtime_nsec()),
            ctime: ns(meta.ctime(), meta.ctime_nsec()),
            inode: meta.ino(),
        }
    }

    /// Whether a later change would show in the times.
    #[must_use]
    pub const fn is_settled(&self, now: Wall) -> bool {
        let changed = if self.ctime > self.mtime { self.ctime } else { self.mtime };
        let tick = if changed % 1_000_000_000 == 0 { COARSE_TICK_NS } else { TICK_NS };
        changed.saturating_add(tick) < now.0.saturating_mul(1_000_000)
    }
}

/// What is known about one file; `info` is absent when it is no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// File name.
    pub file: String,
    /// The state in which the file was read.
    pub stamp: Stamp,
    /// What it holds.
    pub info: Option<SessionInfo>,
}

/// Where the index of a folder is.
#[must_use]
pub fn path(cache: &str, folder: &str) -> String {
    format!("{cache}/{:016x}.idx", hash(folder.as_bytes()))
}

/// The records of a folder by file name; none when the index cannot be used.
#[must_use]
pub fn load(path: &str, folder: &str) -> HashMap<String, Record> {
    let text = fs::read(path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.and_then(|text| read(&text, folder)).unwrap_or_default()
}

/// Replaces the index of a folder. Nothing depends on it, so that a failure is no failure.
pub fn store(path: &str, folder: &str, records: &[&Record]) {
    if let Some((cache, _)) = path.rsplit_once('/')
        && private_dir(cache).is_ok()
    {
        let _ = atomic::replace(Path::new(path), write(folder, records).as_bytes(), 0o600);
    }
}

/// The text of an index.
#[must_use]
pub fn write(folder: &str, records: &[&Record]) -> String {
    let mut out = String::with_capacity(256 * (records.len() + 1));
    out.push_str(MAGIC);
    field(&mut out, folder);
    out.push('\n');
    for record in records {
        escape(&mut out, &record.file);
        let Stamp { size, mtime, ctime, inode } = record.stamp;
        let _ = write!(out, "\t{size}\t{mtime}\t{ctime}\t{inode}");
        if let Some(info) = &record.info {
            field(&mut out, &info.id);
            field(&mut out, &info.cwd);
            let created = info.created.map_or_else(String::new, |time| format!("={}", time.0));
            let _ = write!(out, "\t{created}\t{}\t{}", info.modified.0, info.messages);
            for text in [&info.name, &info.first_message, &info.parent_session] {
                match text {
                    Some(text) => field(&mut out, &format!("={text}")),
                    None => out.push('\t'),
                }
            }
        }
        out.push('\n');
    }
    let sum = hash(out.as_bytes());
    let _ = writeln!(out, "end\t{}\t{sum:016x}", records.len());
    out
}

/// The records of an index; `None` when it is not whole, of another version, or of another folder.
#[must_use]
pub fn read(text: &str, folder: &str) -> Option<HashMap<String, Record>> {
    let body = text.strip_suffix('\n')?;
    let end = body.rfind('\n')? + 1;
    let (body, last) = text.split_at_checked(end)?;
    let (count, sum) = last.trim_end().strip_prefix("end\t")?.split_once('\t')?;
    if u64::from_str_radix(sum, 16).ok()? != hash(body.as_bytes()) {
        return None;
    }
    let mut lines = body.lines();
    let (magic, of) = lines.next()?.split_once('\t')?;
    if magic != MAGIC || unescape(of) != folder {
        return None;
    }
    let count: usize = count.parse().ok()?;
    let mut records = HashMap::with_capacity(count.min(body.len()));
    for line in lines {
        let record = record(line)?;
        records.insert(record.file.clone(), record);
    }
    (records.len() == count).then_some(records)
}

fn record(line: &str) -> Option<Record> {
    let mut fields = line.split('\t');
    let file = unescape(fields.next()?);
    let stamp = Stamp {
        size: fields.next()?.parse().ok()?,
        mtime: fields.next()?.parse().ok()?,
        ctime: fields.next()?.parse().ok()?,
        inode: fields.next()?.parse().ok()?,
    };
    let Some(id) = fields.next() else { return Some(Record { file, stamp, info: None }) };
    let info = SessionInfo {
        id: unescape(id),
        cwd: unescape(fields.next()?),
        created: match fields.next()?.strip_prefix('=') {
            Some(ms) => Some(Wall(ms.parse().ok()?)),
            None => None,
        },
        modified: Wall(fields.next()?.parse().ok()?),
        messages: fields.next()?.parse().ok()?,
        name: fields.next()?.strip_prefix('=').map(unescape),
        first_message: fields.next()?.strip_prefix('=').map(unescape),
        parent_session: fields.next()?.strip_prefix('=').map(unescape),
        text: String::new(),
    };
    fields.next().is_none().then_some(Record { file, stamp, info: Some(info) })
}

/// A tab and the text.
fn field(out: &mut String, text: &str) {
    out.push('\t');
    escape(out, text);
}

fn escape(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '\t', '\n', '\r']) {
        let (plain, odd) = rest.split_at(at);
        out.push_str(plain);
        out.push_str(match odd.as_bytes().first() {
            Some(b'\t') => "\\t",
            Some(b'\n') => "\\n",
            Some(b'\r') => "\\r",
            _ => "\\\\",
        });
        rest = odd.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, after)) = rest.split_once('\\') {
        out.push_str(plain);
        let mut chars = after.chars();
        out.extend(match chars.next() {
            Some('t') => Some('\t'),
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            other => other,
        });
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> [Record; 3] {
        let stamp = Stamp { size: 17, mtime: 1_700_000_000_123_456_789, ctime: -5, inode: u64::MAX };
        let info = SessionInfo {
            id: "0198-x".into(),
            cwd: "/w\\t \tx".into(),
            name: Some("a\\nb\nc\r\td=".into()),
            parent_session: None,
            created: Some(Wall(-1)),
            modified: Wall(5),
            messages: 3,
            first_message: Some(String::new()),
            text: String::new(),
        };
        let other = SessionInfo { created: None, first_message: None, ..SessionInfo::default() };
        [
            Record { file: "a\tb.jsonl".into(), stamp, info: Some(info) },
            Record { file: "c.jsonl".into(), stamp, info: Some(other) },
            Record { file: "no session.jsonl".into(), stamp, info: None },
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let records = records();
        let text = write("/s", &records.iter().collect::<Vec<_>>());
        let read = read(&text, "/s").unwrap();
        assert_eq!(read.len(), 3);
        for record in &records {
            assert_eq!(read.get(&record.file), Some(record));
        }
        assert!(super::read(&write("/s", &[]), "/s").unwrap().is_empty());
    }

    #[test]
    fn anything_else_counts_as_none() {
        let records = records();
        let text = write("/s", &records.iter().collect::<Vec<_>>());
        assert!(read(&text, "/other").is_none());
        assert!(read(&text.replace("sessions 1", "sessions 2"), "/s").is_none());
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert!(read(&text[..at], "/s").is_none(), "cut at {at}");
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            // The last line feed and the case of the sum say nothing.
            assert!(read(&changed, "/s").is_none() || at + 1 == text.len(), "changed at {at}");
        }
        for foreign in ["", "\n", "end\t0\t0\n", "SQLite format 3\0\n", "{}\n{}\n"] {
            assert!(read(foreign, "/s").is_none(), "{foreign:?}");
        }
    }

    #[test]
    fn fresh_files_are_not_settled() {
        let at = |mtime, ctime| Stamp { size: 0, mtime, ctime, inode: 0 };
        for (mtime, ctime, now, settled) in [
            (1_000_000_001, 0, 1_100, false),
            (1_000_000_001, 0, 1_102, true),
            (1_000_000_001, 1_050_000_001, 1_102, false),
            (1_000_000_000, 0, 2_900, false),
            (1_000_000_000, 0, 3_001, true),
            (i64::MAX, 0, 1, false),
        ] {
            assert_eq!(at(mtime, ctime).is_settled(Wall(now)), settled, "{mtime} {ctime} {now}");
        }
    }
}
