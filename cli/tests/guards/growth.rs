//! Growth of the whole program: the cost of a turn must not depend on the turns before it (target P9: the last turns of a
//! loop cost at most 1.3 times the first), and that of a search is linear in what it finds.

use std::time::Duration;

use serde_json::json;
use tau_tests::server::{Reply, openai};
use tau_tests::usage::{assert_linear, best};

use crate::place;

/// Processor time of a loop of so many turns.
fn loop_of(turns: usize) -> Duration {
    let read = |n: usize| openai::calls(&[(&format!("c{n}"), "read", json!({"path": "a.txt"}))]).at_once();
    let mut script: Vec<Reply> = (0..turns).map(read).collect();
    script.push(openai::text("done").at_once());
    let (place, _server) = place(script);
    std::fs::write(place.work().join("a.txt"), "one\ntwo\n").unwrap();
    let (run, usage) = place.start(place.command(&["-p", "go"])).finish_measured();
    assert_eq!(run.ok().out, "done\n");
    usage.cpu
}

#[test]
fn later_turns_cost_what_the_first_cost() {
    let [none, some, many] = [1, 61, 241].map(|turns| best(|| loop_of(turns)));
    let first = some.saturating_sub(none).max(Duration::from_millis(5)).as_secs_f64() / 60.0;
    let later = many.saturating_sub(some).as_secs_f64() / 180.0;
    println!("a turn: {first:.6} s at first, {later:.6} s later");
    // Each request holds all turns before it: sending it grows with them, though encoding does not.
    assert!(later <= 2.5 * first, "a turn costs {first:.6} s at first, {later:.6} s later");
}

/// Processor time of a search that finds so many lines, without that of the run around it.
fn search(lines: usize) -> Duration {
    let cost = |lines: usize| {
        let call = json!({"pattern": "needle", "limit": 10_000_000});
        let (place, _server) = place([openai::calls(&[("c1", "grep", call)]), openai::text("done")]);
        std::fs::write(place.work().join("a.txt"), "hay needle hay\n".repeat(lines)).unwrap();
        let (run, usage) = place.start(place.command(&["-p", "go", "--tools", "grep"])).finish_measured();
        assert_eq!(run.ok().out, "done\n");
        usage.cpu
    };
    cost(lines).saturating_sub(cost(1))
}

#[test]
fn a_search_is_linear_in_what_it_finds() {
    assert_linear("grep", search, 20_000);
}
