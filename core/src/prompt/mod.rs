//! (room prompt)
