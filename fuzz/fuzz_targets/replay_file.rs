//! Lines of a record: no panic, whatever they say; a line that cannot be read changes nothing that came before.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tau_core::record::{Replay, Step};

fuzz_target!(|data: &[u8]| {
    let (mut replay, mut rest) = (Replay::new(), data);
    loop {
        match replay.record(rest) {
            Ok(None) => break,
            Ok(Some((Step::Same(_), behind))) => rest = behind,
            Ok(Some((Step::Different(difference), _))) => {
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
