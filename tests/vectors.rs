//! Every vector of `vectors/`, one test per area.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]
#![allow(unreachable_pub)]

mod runners;

use tau_tests::vectors::run_area;

#[test]
fn config() {
    run_area("config", runners::config::FILES);
}

#[test]
fn eco() {
    run_area("eco", runners::eco::FILES);
}

#[test]
fn product() {
    run_area("product", runners::product::FILES);
}

#[test]
fn providers() {
    run_area("providers", runners::providers::FILES);
}

#[test]
fn runtime() {
    run_area("runtime", runners::runtime::FILES);
}

#[test]
fn sessions() {
    run_area("sessions", runners::sessions::FILES);
}

#[test]
fn tools() {
    run_area("tools", runners::tools::FILES);
}
