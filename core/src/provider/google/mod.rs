//! `google-generative-ai` and `google-vertex`: one format, two addresses (spec 30 §3.4, §3.9).
//!
//! A key goes into `x-goog-api-key`. For Vertex an access token may be given instead, as the key or as an
//! `authorization` header; then [`VARIABLES`] of the credential name project and place.

mod address;
mod decode;
mod encode;
mod family;
mod frame;
mod messages;
mod tools;

pub use address::VARIABLES;
pub use encode::{Generation, GoogleEncoder, is_stand_in};
pub use family::{Amount, Thinking, needs_call_ids, strict_tools, thinks_by_level};
pub use messages::TOOL_IMAGE_FOLLOWS;

/// Name of the protocol in models, at Gemini's own endpoint.
pub const API: &str = "google-generative-ai";
/// Name of the protocol in models of Vertex AI.
pub const VERTEX: &str = "google-vertex";
