//! (room session)
