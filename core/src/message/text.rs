//! Shared text.

use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;
use core::ops::Deref;

/// Text whose copies share one buffer. Appending is in place while nobody else holds it.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<String>);

impl Text {
    /// An empty text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As a slice.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Appends; copies first only if the text is shared.
    pub fn push_str(&mut self, more: &str) {
        Arc::make_mut(&mut self.0).push_str(more);
    }

    /// The text as an owned `String`; copies only if it is shared.
    #[must_use]
    pub fn into_string(self) -> String {
        Arc::try_unwrap(self.0).unwrap_or_else(|shared| (*shared).clone())
    }

    /// Gives back the spare room of a text that grew piece by piece.
    pub fn shrink(&mut self) {
        if let Some(text) = Arc::get_mut(&mut self.0) {
            text.shrink_to_fit();
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(Arc::new(text))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(Arc::new(text.into()))
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}
