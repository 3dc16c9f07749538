//! Replies of Mistral.

#![no_main]

mod reply;

use libfuzzer_sys::fuzz_target;
use tau_core::model::Model;

fuzz_target!(|data: &[u8]| {
    let model = Model { id: "m".into(), api: "mistral-conversations".into(), ..Model::default() };
    reply::check(model, "key", data);
});
