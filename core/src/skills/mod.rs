//! (room skills)
