//! Blocking functions behind the ops, shared by both backends.
