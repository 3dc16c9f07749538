//! System calls, threads and processes of a run (targets P1, P23, P24).

use std::fs;

use serde_json::json;
use tau_tests::program::Sandbox;
use tau_tests::server::{Reply, openai};
use tau_tests::trace::Trace;

use crate::{TAU, place};

/// Another backend than that of the targets.
const ASYNC: bool = cfg!(feature = "smol-backend");

/// Target P23: 150, at most 350. Four calls for each folder above the workspace are on top, and a few that only a build
/// without optimisation makes (checks of descriptors). How often a thread has to wait is a matter of chance.
#[test]
fn a_one_shot_run_makes_few_system_calls() {
    if !Trace::is_possible() {
        return;
    }
    let (place, _server) = place([openai::text("hi").at_once()]);
    let (run, trace) = Trace::run(&place, TAU, &["-p", "hello"]);
    assert_eq!(run.ok().out, "hi\n");
    // The async backend has a reactor and a pool to set up.
    let own = if ASYNC { 300 } else { 150 };
    let budget = own + 5 * place.work().components().count();
    println!("one-shot: {} system calls, budget {budget}: {}", trace.len(), trace.summary());
    assert!((50..=budget).contains(&trace.len()), "{} calls: {}", trace.len(), trace.summary());

    // Target P24: no process, at most one more thread.
    assert_eq!(trace.named(&["execve"]).len(), 1);
    let started = trace.named(&["clone", "clone3", "fork", "vfork"]);
    assert!(started.len() <= if ASYNC { 6 } else { 1 }, "{started:#?}");
    assert!(started.iter().all(|call| call.contains("CLONE_THREAD")), "{started:#?}");
}

/// Target: 25 for a turn with one call that reads a small file.
#[test]
fn a_further_turn_makes_few_system_calls() {
    if !Trace::is_possible() {
        return;
    }
    let calls_of = |turns: usize| {
        let read =
            |n: usize| openai::calls(&[(&format!("c{n}"), "read", json!({"path": "a.txt"}))]).at_once();
        let mut script: Vec<Reply> = (0..turns).map(read).collect();
        script.push(openai::text("done").at_once());
        let (place, _server) = place(script);
        fs::write(place.work().join("a.txt"), "one\ntwo\n").unwrap();
        let (run, trace) = Trace::run(&place, TAU, &["-p", "go"]);
        assert_eq!(run.ok().out, "done\n");
        trace
    };
    let (few, many) = (calls_of(5), calls_of(25));
    let per_turn = (many.len() - few.len()) as f64 / 20.0;
    println!("a turn: {per_turn} system calls: {} / {}", few.summary(), many.summary());
    // The async backend hands each read of a file to its pool.
    let (calls, threads) = if ASYNC { (60.0, 8) } else { (27.0, 3) };
    assert!(per_turn <= calls, "{per_turn} calls a turn: {}", many.summary());
    assert!(many.named(&["clone", "clone3"]).len() <= threads, "{}", many.summary());
}

/// Targets P1, P2: the agent directory is not looked at, and nothing is made.
#[test]
fn version_and_help_touch_nothing() {
    for flag in ["--version", "--help"] {
        let place = Sandbox::new(TAU);
        // Files that cannot be understood would be complained about.
        for name in ["settings.json", "models.json", "auth.json"] {
            place.put(&format!("agent/{name}"), "{ broken");
        }
        let run = place.run(&[flag]).ok();
        assert!(run.out.len() > 3 && run.err.is_empty(), "{run:?}");
        let names = |folder: &str| -> Vec<_> {
            let list = fs::read_dir(format!("{}/{folder}", place.root())).unwrap();
            list.map(|entry| entry.unwrap().file_name()).collect()
        };
        assert_eq!((names("agent").len(), names("home").len(), names("work").len()), (3, 0, 0));
        if !Trace::is_possible() {
            continue;
        }
        let (run, trace) = Trace::run(&place, TAU, &[flag]);
        assert_eq!(run.code, Some(0));
        let root = place.root();
        let touched: Vec<_> =
            trace.with(&root).into_iter().filter(|call| !call.starts_with("execve")).collect();
        assert!(touched.is_empty(), "{flag}: {touched:#?}");
        let made = trace.named(&["mkdir", "mkdirat", "clone", "clone3", "fork", "vfork", "socket"]);
        assert!(made.is_empty() && trace.with("O_CREAT").is_empty(), "{flag}: {}", trace.summary());
        assert!(trace.len() <= 60, "{flag}: {} calls: {}", trace.len(), trace.summary());
    }
}
