//! The page on its way to the file: made in a buffer, written whenever an entry is done.

use std::io::{self, Write};

use super::html::Html;

/// Written when at least this much is there.
const PIECE: usize = 64 * 1024;

/// A page that is being written.
pub struct Sink<'a> {
    /// What was not written yet, to append to.
    pub out: Html,
    file: &'a mut dyn Write,
}

impl<'a> Sink<'a> {
    /// An empty page.
    pub fn new(file: &'a mut dyn Write) -> Self {
        Self { out: Html::with_room(2 * PIECE), file }
    }

    /// Writes if much is there.
    ///
    /// # Errors
    /// What the file says.
    pub fn settle(&mut self) -> io::Result<()> {
        if self.out.as_str().len() < PIECE { Ok(()) } else { self.flush() }
    }

    /// Writes everything.
    ///
    /// # Errors
    /// What the file says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(self.out.as_str().as_bytes())?;
        // One huge entry does not hold its room until the end.
        self.out.clear(4 * PIECE);
        Ok(())
    }
}
