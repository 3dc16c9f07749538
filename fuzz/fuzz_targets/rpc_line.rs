//! Lines for RPC mode: no panic; what is no command says why.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tau::mode::rpc::check_line;

fuzz_target!(|data: &[u8]| {
    if let Err(why) = check_line(&String::from_utf8_lossy(data)) {
        assert!(!why.is_empty());
    }
});
