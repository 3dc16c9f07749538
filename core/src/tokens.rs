//! (room tokens)
