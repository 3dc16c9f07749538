//! (room hub)
