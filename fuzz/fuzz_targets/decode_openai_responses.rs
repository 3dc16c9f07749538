//! Responses. The first byte chooses the dialect, besides what it chooses for every protocol.

#![no_main]

mod reply;

use libfuzzer_sys::fuzz_target;
use tau_core::model::Model;

/// A token whose claims name an account.
const TOKEN: &str =
    "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjdC0xMjMifX0.s";

fuzz_target!(|data: &[u8]| {
    let is_codex = data.first().is_some_and(|seed| seed & 64 != 0);
    let api = if is_codex { "openai-codex-responses" } else { "openai-responses" };
    let (id, api, base_url) = ("m".into(), api.into(), "http://h".into());
    reply::check(Model { id, api, base_url, ..Model::default() }, TOKEN, data);
});
