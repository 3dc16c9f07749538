//! Nothing to do means no work (target P27: 0 ms in 10 s).

use std::io::Write;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::json;
use tau_tests::server::openai;
use tau_tests::usage::ticks;

use crate::place;

/// Waits until a process has used no processor time for half a second.
fn settle(pid: u32) {
    let mut last = u64::MAX;
    for _ in 0..40 {
        let now = ticks(pid);
        if now == last {
            return;
        }
        last = now;
        thread::sleep(Duration::from_millis(500));
    }
    panic!("the process never came to rest");
}

/// A process at rest has a window of two seconds without a tick of 10 ms. Work that ends by itself
/// (a pool's thread that retires, a tick charged to whoever was scheduled) may fall into one
/// window; a process that polls shows in every one of them.
fn assert_idle(pid: u32) {
    settle(pid);
    let mut used = [0; 4];
    for window in &mut used {
        let before = ticks(pid);
        thread::sleep(Duration::from_secs(2));
        *window = ticks(pid) - before;
        if *window == 0 {
            return;
        }
    }
    panic!("ticks of 10 ms in windows of 2 s of waiting: {used:?}");
}

#[test]
fn a_silent_server_costs_nothing() {
    let (place, server) = place([openai::stalled("and now I think")]);
    let running = place.start(place.command(&["-p", "go"]));
    server.wait(1);
    assert_idle(running.id());
    running.signal(15);
    let _ = running.finish().ended_with(143);
}

#[test]
fn a_silent_command_costs_nothing() {
    let (place, server) =
        place([openai::calls(&[("c1", "bash", json!({"command": "echo begun; sleep 60"}))])]);
    let running = place.start(place.command(&["-p", "go"]));
    server.wait(1);
    assert_idle(running.id());
    running.signal(15);
    let _ = running.finish().ended_with(143);
}

#[test]
fn a_client_that_says_nothing_costs_nothing() {
    let (place, _server) = place([openai::text("done")]);
    let mut command = place.command(&["--mode", "rpc"]);
    command.stdin(Stdio::piped());
    let mut running = place.start(command);
    let mut stdin = running.take_stdin().unwrap();
    stdin.write_all(b"{\"type\":\"prompt\",\"message\":\"go\"}\n").unwrap();
    assert_idle(running.id());
    drop(stdin);
    assert!(running.finish().ok().out.contains("agent_settled"));
}
