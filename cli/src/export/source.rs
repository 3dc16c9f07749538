//! A session to look at: its tree, and its entries one by one from the file.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use tau_core::entropy::Entropy;
use tau_core::json::{Writer, parse};
use tau_core::now::Wall;
use tau_core::session::decode::parse_body;
use tau_core::session::entry::EntryLine;
use tau_core::session::reader::Notes;
use tau_core::session::tree::{Slot, Tree};
use tau_core::session::{EntryBody, OpenError, Reader, Session, Want, migrate};
use tau_io_std::sys::{fault, random};

const CHUNK: usize = 256 << 10;

/// A session and where its entries are. The file is not changed, whatever version it has.
pub struct Source {
    session: Session,
    stored: Stored,
    notes: Notes,
}

enum Stored {
    File(File),
    /// A file of an older version, brought to the current one.
    Memory(Vec<u8>),
}

impl Source {
    /// Opens a file; of its entries it keeps only the places.
    ///
    /// # Errors
    /// Why the file cannot be read.
    pub fn open(path: &str) -> Result<Self, String> {
        let failed = |e: &io::Error| format!("the session cannot be read: {}", fault::of(e, path));
        let unfit = |why: OpenError| format!("{path} cannot be read as a session: {why}");
        let (mut file, _) = tau_io_std::sys::fs::open_regular(path)
            .map_err(|e| format!("the session cannot be read: {e}"))?;
        let mut reader = Reader::new(Want::Places);
        let mut chunk = vec![0; CHUNK];
        while !reader.is_refused() {
            match file.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => reader.feed(chunk.get(..count).unwrap_or_default()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(failed(&e)),
            }
        }
        match reader.finish() {
            Ok(loading) => {
                let notes = loading.notes().clone();
                Ok(Self { session: loading.finish(path.to_owned(), ""), stored: Stored::File(file), notes })
            }
            Err(OpenError::Old) => {
                let bytes = fs::read(path).map_err(|e| failed(&e))?;
                let mut rng = Entropy::new(random::seed().map_err(|e| e.to_string())?);
                let bytes =
                    migrate::rewrite(&bytes, &mut rng).ok_or_else(|| unfit(OpenError::NotASession))?;
                let mut reader = Reader::new(Want::Places);
                reader.feed(&bytes);
                let loading = reader.finish().map_err(unfit)?;
                let notes = loading.notes().clone();
                let session = loading.finish(path.to_owned(), "");
                Ok(Self { session, stored: Stored::Memory(bytes), notes })
            }
            Err(why) => Err(unfit(why)),
        }
    }

    /// Header, name and tree.
    #[must_use]
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Remarks about lines that could not be read, or not at once.
    #[must_use]
    pub const fn notes(&self) -> &Notes {
        &self.notes
    }

    /// All entries.
    #[must_use]
    pub const fn tree(&self) -> &Tree {
        self.session.tree()
    }

    /// What an entry says; `None` when it cannot be read any more.
    #[must_use]
    pub fn body(&self, slot: Slot) -> Option<Cow<'_, EntryBody>> {
        match self.tree().node(slot)?.body() {
            Some(body) => Some(Cow::Borrowed(body)),
            None => parse_body(&self.line(slot)?).map(Cow::Owned),
        }
    }

    /// The record of an entry as JSON.
    #[must_use]
    pub fn record(&self, slot: Slot) -> Option<String> {
        let node = self.tree().node(slot)?;
        // Places were checked for those that are not decoded; a decoded one may be a repaired record.
        let line = self.line(slot).filter(|line| node.body().is_none() || parse(line).is_ok());
        line.or_else(|| {
            let (id, parent) = (self.tree().id(slot), self.tree().parent_id(slot));
            let mut w = Writer::new();
            EntryLine { id, parent, time: node.time().unwrap_or(Wall(0)), body: node.body()? }.write(&mut w);
            Some(w.into_string())
        })
    }

    fn line(&self, slot: Slot) -> Option<String> {
        let place = self.tree().node(slot)?.place();
        let len = place.len as usize;
        let bytes = match &self.stored {
            Stored::File(file) => {
                let mut bytes = vec![0; len];
                file.read_exact_at(&mut bytes, place.offset).ok()?;
                bytes
            }
            Stored::Memory(all) => {
                let start = usize::try_from(place.offset).ok()?;
                all.get(start..)?.get(..len)?.to_vec()
            }
        };
        let lossy = |e: std::string::FromUtf8Error| String::from_utf8_lossy(e.as_bytes()).into_owned();
        Some(String::from_utf8(bytes).unwrap_or_else(lossy))
    }
}
