//! `mistral-conversations`: Mistral's chat endpoint, whatever the name says (spec 30 §3.7).
//!
//! Its chunks are those of chat completions, with parts inside; its messages are not.

mod decode;
mod encode;
mod messages;

pub use encode::MistralEncoder;
pub use messages::TOOL_ERROR_PREFIX;

use alloc::format;
use alloc::string::String;

use crate::convert::short_hash;

/// Name of the protocol in models.
pub const API: &str = "mistral-conversations";

/// Length of a call id, all of it letters and digits.
const ID_LENGTH: usize = 9;

/// A call id that the service takes, made from any text. `attempt` above 0 gives others, for texts whose first one is
/// taken.
fn call_id(text: &str, attempt: u32) -> String {
    let plain = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    let mut seed = plain(text);
    if seed.len() == ID_LENGTH && attempt == 0 {
        return seed;
    }
    if seed.is_empty() {
        seed.push_str(text);
    }
    if attempt > 0 {
        seed.push_str(&format!(":{attempt}"));
    }
    let mut id = short_hash(&seed);
    id.truncate(ID_LENGTH);
    while id.len() < ID_LENGTH {
        id.push('0');
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_nine_letters_and_digits() {
        for text in ["", "é", "abcdefghi", "toolu_01", "a-b-c-d-e-f-g-h-i", "x".repeat(90).as_str()] {
            for attempt in 0..3 {
                let id = call_id(text, attempt);
                assert!(id.len() == 9 && id.bytes().all(|c| c.is_ascii_alphanumeric()), "{id}");
            }
            assert_ne!(call_id(text, 0), call_id(text, 1));
        }
        assert_eq!(call_id("a-b-c-d-e-f-g-h-i", 0), "abcdefghi");
    }
}
