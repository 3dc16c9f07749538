//! Vectors of `providers/`.

mod framing;

use tau_tests::vectors::{VectorFile, file};

/// Files of this area.
#[rustfmt::skip]
pub const FILES: &[VectorFile] = &[
    file("sse-parser", framing::sse),
];
