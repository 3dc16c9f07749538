//! (room harness)
