//! Lines of a record: no panic, whatever they say; a line that cannot be read changes nothing that came before.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tau_core::record::{Replay, Step};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut replay = Replay::new();
    for line in text.lines() {
        match replay.line(line) {
            Ok(Step::Same(_)) => {}
            Ok(Step::Different(difference)) => {
                assert!(!difference.to_string().is_empty());
                return;
            }
            Err(why) => {
                assert!(why.starts_with("line "), "{why}");
                return;
            }
        }
    }
    let _ = replay.end();
});
