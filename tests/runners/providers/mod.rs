//! Vectors of `providers/`.

use tau_tests::vectors::VectorFile;

/// Files of this area.
pub const FILES: &[VectorFile] = &[];
