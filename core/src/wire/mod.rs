//! (room wire)
