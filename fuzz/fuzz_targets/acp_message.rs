//! Messages for the agent of an editor: no panic; what is no message has a code of JSON-RPC and says why.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tau::mode::acp::check_line;

fuzz_target!(|data: &[u8]| {
    if let Err((code, why)) = check_line(&String::from_utf8_lossy(data)) {
        assert!((-32_768..=-32_000).contains(&code) && !why.is_empty(), "{code} {why}");
    }
});
