//! Text: incremental decoding, cutting, cleaning.

pub mod ansi;
pub mod base64;
pub mod bom_eol;
pub mod clean;
pub mod fuzzy;
pub mod normal;
pub mod phrase;
pub mod redact;
pub mod surrogate;
pub mod truncate;
pub mod user_shell;
pub mod utf16;
pub mod utf8;
