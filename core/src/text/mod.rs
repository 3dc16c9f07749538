//! (room text)
