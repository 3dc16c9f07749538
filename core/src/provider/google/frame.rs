//! One event of the stream, as far as we read it; texts are borrowed from the input wherever they hold no escapes.

use serde::Deserialize;

use crate::provider::borrow::{Any, Few, Str};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Frame<'a> {
    #[serde(borrow, default)]
    pub(super) candidates: Few<Candidate<'a>>,
    #[serde(borrow)]
    pub(super) response_id: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) usage_metadata: Option<Any<'a>>,
    #[serde(borrow)]
    pub(super) prompt_feedback: Option<Any<'a>>,
    #[serde(borrow)]
    pub(super) error: Option<Any<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(borrow)]
    pub(super) content: Option<Content<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) finish_message: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Content<'a> {
    #[serde(borrow, default)]
    pub(super) parts: Few<Part<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Str<'a>>,
    pub(super) thought: Option<bool>,
    #[serde(borrow)]
    pub(super) thought_signature: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) function_call: Option<Call<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Call<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Str<'a>>,
    #[serde(borrow)]
    pub(super) args: Option<Any<'a>>,
}

/// Tokens of a reply so far.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tokens<'a> {
    #[serde(borrow, rename = "promptTokenCount")]
    pub(super) prompt: Option<Any<'a>>,
    #[serde(borrow, rename = "cachedContentTokenCount")]
    pub(super) cached_content: Option<Any<'a>>,
    #[serde(borrow, rename = "candidatesTokenCount")]
    pub(super) candidates: Option<Any<'a>>,
    #[serde(borrow, rename = "thoughtsTokenCount")]
    pub(super) thoughts: Option<Any<'a>>,
    #[serde(borrow, rename = "totalTokenCount")]
    pub(super) total: Option<Any<'a>>,
}
