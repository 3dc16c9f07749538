//! The mark behind which a service need not keep a request in its cache (spec 30 §3.1, §3.8).

use super::CacheRetention;
use super::body::PASSING;
use crate::json::Writer;

/// The cache marker of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    None,
    Short,
    Hour,
}

impl Marker {
    /// What the caller wants, where the service may keep it for an hour or not.
    pub(super) const fn of(retention: CacheRetention, an_hour: bool) -> Self {
        match retention {
            CacheRetention::None => Self::None,
            CacheRetention::Long if an_hour => Self::Hour,
            CacheRetention::Short | CacheRetention::Long => Self::Short,
        }
    }

    /// The flavour of a unit that has it: the next request has it elsewhere.
    pub(super) const fn flavour(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Short => PASSING | 1,
            Self::Hour => PASSING | 2,
        }
    }

    pub(super) const fn from_flavour(flavour: u32) -> Self {
        match flavour & !PASSING {
            1 => Self::Short,
            2 => Self::Hour,
            _ => Self::None,
        }
    }

    /// A field of the block it belongs to (`anthropic-messages`).
    pub(super) fn write_field(self, w: &mut Writer) {
        let value = match self {
            Self::None => return,
            Self::Short => r#"{"type":"ephemeral"}"#,
            Self::Hour => r#"{"type":"ephemeral","ttl":"1h"}"#,
        };
        w.key("cache_control");
        w.raw(value);
    }

    /// A block of its own behind the one it belongs to (`bedrock-converse-stream`).
    pub(super) fn write_block(self, w: &mut Writer) {
        match self {
            Self::None => {}
            Self::Short => w.raw(r#"{"cachePoint":{"type":"default"}}"#),
            Self::Hour => w.raw(r#"{"cachePoint":{"type":"default","ttl":"1h"}}"#),
        }
    }
}
