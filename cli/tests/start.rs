//! What the program answers before it does anything.

use std::fs;

use tau_tests::program::Sandbox;

const TAU: &str = env!("CARGO_BIN_EXE_tau");

#[test]
fn version_and_help_create_nothing() {
    let place = Sandbox::new(TAU);
    fs::remove_dir(place.agent()).unwrap();
    let version = place.run(&["--version"]).ok();
    assert_eq!(version.out, concat!(env!("CARGO_PKG_VERSION"), "\n"));
    assert_eq!(place.run(&["-v"]).ok().out, version.out);
    let help = place.run(&["-h"]).ok();
    assert_eq!(place.run(&["--help"]).ok().out, help.out);
    assert!(help.out.contains("--continue") && help.err.is_empty());
    assert!(!place.agent().exists());
    assert_eq!(fs::read_dir(place.work()).unwrap().count(), 0);
}

#[test]
fn wrong_options_are_all_named() {
    let place = Sandbox::new(TAU);
    let run = place.run(&["-Z", "--mode", "xml", "-p", "x"]).ended_with(1);
    assert!(run.err.contains("-Z") && run.err.contains("xml"), "{}", run.err);
    assert!(run.out.is_empty());
}
