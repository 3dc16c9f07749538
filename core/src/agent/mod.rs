//! (room agent)
