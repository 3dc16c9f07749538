//! Async backend of Tau on smol.
