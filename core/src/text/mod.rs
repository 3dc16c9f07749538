//! Text: incremental decoding, cutting, cleaning.

pub mod utf8;
