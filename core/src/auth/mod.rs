//! (room auth)
