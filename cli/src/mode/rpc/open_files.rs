//! One file, one session: two that write to one file would not know of each other's entries.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tau_io_std::sys::claim::release;

use crate::permission::real;

/// The session files that the sessions of this process have open. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct OpenFiles(Arc<Mutex<HashMap<Holder, PathBuf>>>);

/// The id of a session beside the first one; `None` is the first one.
type Holder = Option<Box<str>>;

impl OpenFiles {
    /// A session is about to have this file in the place of the one it had; `None` = no file.
    ///
    /// # Errors
    /// When another session has the file; nothing changes then.
    pub(super) fn claim(&self, holder: Option<&str>, file: Option<&str>) -> Result<(), String> {
        let holder: Holder = holder.map(Into::into);
        let file = file.map(|file| real(Path::new(file)));
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = |(other, path): (&Holder, &PathBuf)| *other != holder && Some(path) == file.as_ref();
        if let Some((other, path)) = open.iter().find(|entry| taken(*entry)) {
            let place = match other {
                Some(id) => format!("as {id}"),
                None => "as the first session".to_owned(),
            };
            return Err(format!("{} is open already, {place}", path.display()));
        }
        let before = match file.clone() {
            Some(file) => open.insert(holder, file),
            None => open.remove(&holder),
        };
        if before != file {
            left(before);
        }
        Ok(())
    }

    /// A session has ended, or did not begin.
    pub(super) fn release(&self, holder: Option<&str>) {
        let holder: Holder = holder.map(Into::into);
        left(self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&holder));
    }
}

/// Other processes have the file for themselves again.
fn left(file: Option<PathBuf>) {
    if let Some(file) = file {
        release(&file.to_string_lossy());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_holder() {
        let files = OpenFiles::default();
        assert_eq!(files.claim(None, Some("/no/such/a")), Ok(()));
        assert!(files.claim(Some("x"), Some("/no/such/a")).unwrap_err().contains("first session"));
        assert_eq!(files.claim(Some("x"), Some("/no/such/b")), Ok(()));
        assert!(files.claim(None, Some("/no/such/b")).unwrap_err().contains("as x"));
        // The own one again; another one in its place, which frees it.
        assert_eq!(files.claim(None, Some("/no/such/a")), Ok(()));
        assert_eq!(files.claim(None, Some("/no/such/c")), Ok(()));
        assert_eq!(files.claim(Some("x"), Some("/no/such/a")), Ok(()));
        assert_eq!(files.claim(Some("x"), None), Ok(()));
        assert_eq!(files.claim(None, Some("/no/such/a")), Ok(()));
        files.release(None);
        assert_eq!(files.claim(Some("x"), Some("/no/such/a")), Ok(()));
    }
}
