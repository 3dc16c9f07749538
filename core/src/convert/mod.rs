//! (room convert)
