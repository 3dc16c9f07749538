//! What the requests of all protocols have in common.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::headers::HeaderSet;
use super::{CacheRetention, ModelRequest};
use crate::fault::Fault;
use crate::op::HttpRequest;

/// The `POST` of a body.
pub(super) fn post(
    request: &ModelRequest<'_>,
    url: alloc::string::String,
    headers: HeaderSet,
    body: Arc<Vec<u8>>,
) -> HttpRequest {
    HttpRequest {
        method: "POST",
        url,
        headers: headers.into_headers(),
        body,
        head_timeout_ms: request.options.head_timeout_ms,
        idle_timeout_ms: request.options.idle_timeout_ms,
        proxy: request.options.proxy.clone(),
    }
}

/// The base URL of a request without slashes at its end: that of the credentials, else the model's.
pub(super) fn base_url<'a>(request: &ModelRequest<'a>) -> &'a str {
    let base = request.credential.base_url.as_deref().unwrap_or(&request.model.base_url);
    base.trim().trim_end_matches('/')
}

/// Refuses an address that is none.
///
/// # Errors
/// When it does not begin with a scheme that we speak.
pub(super) fn checked_url(base: &str, provider: &str) -> Result<(), Fault> {
    if base.starts_with("http://") || base.starts_with("https://") {
        return Ok(());
    }
    Err(Fault::new(
        "bad_url",
        format!(
            "The base URL of provider \"{provider}\" does not start with http:// or https://: \"{base}\"."
        ),
    ))
}

/// Refuses headers of which none authorises the request.
///
/// # Errors
/// When none of `names` has a value.
pub(super) fn authorised(set: &HeaderSet, names: &[&str], provider: &str) -> Result<(), Fault> {
    if names.iter().any(|name| set.get(name).is_some_and(|value| !value.trim().is_empty())) {
        return Ok(());
    }
    Err(Fault::new(
        "no_key",
        format!(
            "No API key for provider \"{provider}\": set its key in the environment, in auth.json or in models.json."
        ),
    ))
}

/// The session that cache keys and affinity headers name; none while caching is off.
pub(super) fn cache_session<'a>(request: &ModelRequest<'a>) -> Option<&'a str> {
    let wanted = request.options.cache != CacheRetention::None;
    request.options.session_id.as_deref().filter(|id| wanted && !id.is_empty())
}
