//! (room settings)
