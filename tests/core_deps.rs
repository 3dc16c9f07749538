//! The dependency tree of the core holds no crate that needs std, and no `std` feature of one that could.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::BTreeSet;
use std::process::Command;

/// Every crate below `tau-core`, each known to build with `core` and `alloc` alone (`.ci/no-std-check.sh` proves it).
const ALLOWED: &[&str] = &[
    "equivalent",
    "hashbrown",
    "foldhash",
    "indexmap",
    "itoa",
    "memchr",
    "proc-macro2",
    "quote",
    "ryu",
    "serde",
    "serde_core",
    "serde_derive",
    "serde_json",
    "syn",
    "tau-core",
    "thiserror",
    "thiserror-impl",
    "unicode-ident",
    "zmij",
];

fn tree(edges: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--offline", "-p", "tau-core", "--prefix", "none", "-e", edges])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

#[test]
fn only_known_crates() {
    let tree = tree("normal");
    let names: BTreeSet<&str> =
        tree.lines().filter_map(|line| line.split(' ').next()).filter(|n| !n.is_empty()).collect();
    let unknown: Vec<&&str> = names.iter().filter(|name| !ALLOWED.contains(name)).collect();
    assert!(unknown.is_empty(), "new below tau-core, prove that it needs no std: {unknown:?}");
}

#[test]
fn no_std_feature_at_run_time() {
    // Macros run on the host and may use std.
    let host = ["proc-macro2", "quote", "syn", "serde_derive", "thiserror-impl", "unicode-ident"];
    let tree = tree("normal,features");
    let std: Vec<&str> = tree
        .lines()
        .filter(|line| line.contains("feature \"std\""))
        .filter(|line| !host.iter().any(|name| line.starts_with(name)))
        .collect();
    assert!(std.is_empty(), "{std:?}");
}
