//! Framing of byte streams and facts of HTTP heads.

pub mod http_head;
pub mod jsonl;
pub mod sse;
