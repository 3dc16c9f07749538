//! Vectors of `tools/`.

use super::runtime::bash_message;
use tau_tests::vectors::{VectorFile, file};

/// Files of this area.
#[rustfmt::skip]
pub const FILES: &[VectorFile] = &[
    file("bash-execution-message", bash_message),
];
