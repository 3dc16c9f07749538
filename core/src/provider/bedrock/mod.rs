//! `bedrock-converse-stream`: models of Amazon Bedrock (spec 30 §3.8).
//!
//! A bearer token or a signature authorises a request; the keys come with the credential. Replies are frames of an event
//! stream ([`super::event_stream`]).

mod address;
mod decode;
mod encode;
pub mod failure;
mod family;
mod head;
mod messages;

pub use address::{VARIABLES, region_of_host};
pub use encode::BedrockEncoder;
pub use messages::EMPTY_TEXT;

/// Name of the protocol in models.
pub const API: &str = "bedrock-converse-stream";
