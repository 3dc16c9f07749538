//! Text of `auth.json`: no panic; what is read is what stands there, and a change of one provider keeps all others; an
//! error shows nothing of the file.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use tau_core::auth::file::AuthFile;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    match AuthFile::parse(&text) {
        Ok(mut file) => {
            let before: Vec<(String, Option<Value>)> =
                file.list().iter().map(|(id, _)| ((*id).to_owned(), file.entry(id).cloned())).collect();
            let _ = file.validate();
            file.set("fuzzed", json!({"type": "api_key", "key": "k"}));
            for (id, entry) in before.iter().filter(|(id, _)| id != "fuzzed") {
                assert_eq!(file.entry(id), entry.as_ref(), "{id}");
            }
            assert_eq!(file.entry("fuzzed").and_then(|entry| entry["key"].as_str()), Some("k"));
            let again = AuthFile::parse(&file.to_text()).expect("a file of our own");
            assert_eq!(again.to_text(), file.to_text());
        }
        Err(fault) => assert!(fault.to_string().len() < 300, "{fault}"),
    }
});
