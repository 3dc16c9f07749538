//! Chat completions.

#![no_main]

mod reply;

use libfuzzer_sys::fuzz_target;
use tau_core::model::Model;

fuzz_target!(|data: &[u8]| {
    let (id, api, base_url) = ("m".into(), "openai-completions".into(), "http://h".into());
    reply::check(Model { id, api, base_url, ..Model::default() }, "key", data);
});
