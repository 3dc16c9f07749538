//! Replies of Gemini.

#![no_main]

mod reply;

use libfuzzer_sys::fuzz_target;
use tau_core::model::Model;

fuzz_target!(|data: &[u8]| {
    let model = Model { id: "gemini-3-pro".into(), api: "google-generative-ai".into(), ..Model::default() };
    reply::check(model, "key", data);
});
