//! Processes: bugs 51–60.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use tau_core::fault::FaultKind;
use tau_core::input::Reply;
use tau_core::op::{Op, Outcome, ProcExit, ProcSpec, SpillSpec};
use tau_io_std::sys::CancelToken;
use tau_io_std::sys::process::{capture, kill_all};
use tempfile::TempDir;

use crate::backend::{io_smol, io_std};
use crate::http::alone;

fn spec(command: &str) -> ProcSpec {
    ProcSpec {
        argv: vec!["/bin/sh".into(), "-c".into(), command.into()],
        cwd: "/".into(),
        env: Vec::new(),
        idle_after_exit_ms: 100,
        max_after_exit_ms: 1500,
        spill: None,
    }
}

fn run(spec: ProcSpec) -> (String, ProcExit, Duration) {
    let start = Instant::now();
    let (bytes, last) = io_std().start(Op::Proc(spec)).bytes();
    let Ok(Outcome::Exit(exit)) = last else { panic!("{last:?}") };
    (String::from_utf8_lossy(&bytes).into_owned(), exit, start.elapsed())
}

fn alive(pid: &str) -> bool {
    // A zombie of another parent counts as gone.
    fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| !stat.contains(") Z"))
}

fn dies(pid: &str) {
    for _ in 0..200 {
        if !alive(pid) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{pid} lives");
}

#[test]
fn output_comes_in_the_order_of_writing() {
    let (text, exit, _) = run(spec("echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 7"));
    assert_eq!((text.as_str(), exit.code), ("1\n2\n3\n4\n", Some(7)));
    assert!(!exit.killed && !exit.leftovers_killed && exit.spill.is_none());
}

#[test]
fn signals_count_as_128_and_more() {
    assert_eq!(run(spec("kill -TERM $$")).1.code, Some(143));
    assert_eq!(run(spec("kill -KILL $$")).1.code, Some(137));
}

#[test]
fn surroundings_are_those_of_the_spec() {
    let dir = TempDir::new().unwrap();
    let cwd = dir.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    let env = vec![("TAU_A".into(), Some("x y".into())), ("HOME".into(), None)];
    let (text, ..) = run(ProcSpec { cwd: cwd.clone(), env, ..spec("pwd; echo \"$TAU_A:${HOME-none}\"") });
    assert_eq!(text, format!("{cwd}\nx y:none\n"));
}

#[test]
fn what_cannot_start_is_named() {
    let b = io_std();
    for (argv, cwd, kind, words) in [
        (vec!["/no/such/shell"], "/", FaultKind::NotFound, "/no/such/shell"),
        (vec!["/bin/sh", "-c", "x"], "/no/such/cwd", FaultKind::NotFound, "working directory /no/such/cwd"),
        (vec!["/etc/passwd"], "/", FaultKind::Denied, "/etc/passwd"),
        (vec![], "/", FaultKind::Invalid, "no program"),
    ] {
        let argv = argv.into_iter().map(str::to_owned).collect();
        let fault = b.run(Op::Proc(ProcSpec { argv, cwd: cwd.into(), ..spec("") })).unwrap_err();
        assert_eq!(fault.kind, kind, "{fault}");
        assert!(fault.detail.contains(words), "{fault}");
    }
}

/// Bug 51, a child that is silent: it lives on, nobody waits for it.
#[test]
fn silent_background_children_are_left_alone() {
    let (text, exit, took) = run(spec("sleep 30 & echo $!"));
    assert!(took < Duration::from_millis(1000), "{took:?}");
    assert_eq!((exit.code, exit.leftovers_killed), (Some(0), false));
    assert!(alive(&text));
    std::process::Command::new("kill").arg(text.trim()).status().unwrap();
}

/// Bug 51, a child that keeps writing: it is killed at the limit after the exit.
#[test]
fn chatty_background_children_end_at_the_limit() {
    let (text, exit, took) = run(spec("( while :; do echo tick; sleep 0.02; done ) & echo pid $!"));
    assert!(took > Duration::from_millis(1400) && took < Duration::from_millis(5000), "{took:?}");
    assert_eq!((exit.code, exit.leftovers_killed, exit.killed), (Some(0), true, false));
    let pid = text.lines().find_map(|l| l.strip_prefix("pid ")).unwrap();
    assert!(text.contains("tick"));
    dies(pid);
}

/// Bugs 54 and 55: there is no input and no terminal.
#[test]
fn nobody_waits_for_input() {
    let (text, exit, took) =
        run(spec("cat; echo after-cat; read -r x; echo rc=$?; (: </dev/tty) 2>/dev/null || echo no-tty"));
    assert_eq!((text.as_str(), exit.code), ("after-cat\nrc=1\nno-tty\n", Some(0)));
    assert!(took < Duration::from_secs(2));
}

/// Bug 59: what was printed before the kill is there, and the whole group is gone.
#[test]
fn a_cancel_kills_the_group_and_keeps_the_output() {
    let b = io_std();
    let running = b.start(Op::Proc(spec(
        "sleep 60 & echo $!; printf 'partial \\360\\237\\230\\200 '; printf 'err\\n' >&2; sleep 60",
    )));
    let mut text = Vec::new();
    while !text.ends_with(b"err\n") {
        if let Reply::Chunk { bytes, .. } = running.next() {
            text.extend(bytes);
        }
    }
    let start = Instant::now();
    running.cancel();
    let Ok(Outcome::Exit(exit)) = running.finish().1 else { panic!("an exit") };
    assert!(start.elapsed() < Duration::from_millis(400), "{:?}", start.elapsed());
    assert_eq!((exit.killed, exit.exited_before_cancel, exit.code), (true, false, None));
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("partial 😀 err"));
    dies(text.lines().next().unwrap());
}

#[test]
fn a_cancel_is_not_held_up_by_those_who_left_the_group() {
    let b = io_std();
    let running = b.start(Op::Proc(spec("setsid sh -c 'while :; do echo x; sleep 0.01; done' & sleep 60")));
    running.next();
    let start = Instant::now();
    running.cancel();
    let Ok(Outcome::Exit(exit)) = running.finish().1 else { panic!("an exit") };
    assert!(exit.killed && start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn a_cancel_after_the_exit_keeps_the_code() {
    let b = io_std();
    let running = b.start(Op::Proc(ProcSpec {
        idle_after_exit_ms: 20_000,
        max_after_exit_ms: 20_000,
        ..spec("sleep 60 & echo x; exit 3")
    }));
    running.next();
    std::thread::sleep(Duration::from_millis(200));
    running.cancel();
    let Ok(Outcome::Exit(exit)) = running.finish().1 else { panic!("an exit") };
    assert_eq!((exit.killed, exit.exited_before_cancel, exit.code), (true, true, Some(3)));
}

fn spill(dir: &Path) -> SpillSpec {
    SpillSpec {
        dir: dir.join("out/put").to_str().unwrap().into(),
        prefix: "tau-bash-".into(),
        over_bytes: 1000,
        over_lines: 10,
    }
}

/// Bug 60 and D38: raw bytes, complete, private.
#[test]
fn large_output_is_kept_in_a_file() {
    let dir = TempDir::new().unwrap();
    let with = |command: &str| run(ProcSpec { spill: Some(spill(dir.path())), ..spec(command) });
    let (text, exit, _) = with("seq 1 10");
    assert_eq!((text.lines().count(), exit.spill), (10, None));
    assert!(!dir.path().join("out").exists());
    for command in ["seq 1 11", "printf 'a\\377\\000b%1000s' x", "printf '\\377%.0s' $(seq 1 400)"] {
        let (_, exit, _) = with(command);
        let file = exit.spill.expect(command);
        let raw = std::process::Command::new("/bin/sh").args(["-c", command]).output().unwrap().stdout;
        assert_eq!(fs::read(&file).unwrap(), raw);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(Path::new(&file)), 0o600);
        assert_eq!(mode(&dir.path().join("out/put")), 0o700);
        assert!(Path::new(&file).file_name().unwrap().to_str().unwrap().starts_with("tau-bash-"));
    }
}

/// Bug 56: memory does not grow with the output.
#[test]
fn memory_does_not_grow_with_the_output() {
    alone("processes::two_hundred_megabytes", &[]);
}

#[test]
#[ignore = "run by `memory_does_not_grow_with_the_output` in a process of its own"]
fn two_hundred_megabytes() {
    let dir = TempDir::new().unwrap();
    let mut total = 0u64;
    let spec = ProcSpec { spill: Some(spill(dir.path())), ..spec("head -c 200000000 /dev/zero") };
    let op = Op::Proc(spec);
    let last = tau_io_std::sys::run(
        &op,
        &mut |reply| {
            if let Reply::Chunk { bytes, .. } = reply {
                total += bytes.len() as u64;
            }
        },
        &CancelToken::new(),
    );
    let Ok(Outcome::Exit(exit)) = last else { panic!("{last:?}") };
    assert_eq!(total, 200_000_000);
    assert_eq!(fs::metadata(exit.spill.unwrap()).unwrap().len(), total);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 24_000, "{peak} kB");
}

/// Bug 58.
#[test]
fn no_zombies_are_left() {
    alone("processes::two_hundred_runs", &[]);
}

#[test]
#[ignore = "run by `no_zombies_are_left` in a process of its own"]
fn two_hundred_runs() {
    let b = io_std();
    for round in 0..25 {
        let runs: Vec<_> = (0..8)
            .map(|_| b.start(Op::Proc(spec("for i in 1 2 3 4 5; do (sleep 0.01 &) ; done; true"))))
            .collect();
        for (at, running) in runs.into_iter().enumerate() {
            if at == 0 && round % 5 == 0 {
                running.cancel();
            }
            let _ = running.finish();
        }
    }
    let me = std::process::id().to_string();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let mut rest = stat.rsplit(") ").next().unwrap().split(' ');
        let (state, parent) = (rest.next().unwrap(), rest.next().unwrap());
        assert!(parent != me, "child {stat} in state {state}");
    }
}

#[test]
fn a_signal_ends_all_groups() {
    alone("processes::all_groups", &[]);
}

#[test]
#[ignore = "run by `a_signal_ends_all_groups` in a process of its own"]
fn all_groups() {
    let b = io_std();
    let runs: Vec<_> = (0..3).map(|_| b.start(Op::Proc(spec("sleep 60 & echo $!; sleep 60")))).collect();
    let mut pids = Vec::new();
    for running in &runs {
        if let Reply::Chunk { bytes, .. } = running.next() {
            pids.push(String::from_utf8(bytes).unwrap());
        }
    }
    kill_all();
    for running in runs {
        let Ok(Outcome::Exit(exit)) = running.finish().1 else { panic!("an exit") };
        assert_eq!((exit.code, exit.killed), (Some(137), false));
    }
    pids.iter().for_each(|pid| dies(pid));
}

#[test]
fn capture_keeps_streams_apart_and_has_limits() {
    let cancel = CancelToken::new();
    let limit = Some(Duration::from_secs(20));
    let got = capture(&spec("echo out; echo err >&2"), 100, limit, &cancel).unwrap();
    assert_eq!(
        (got.stdout.as_slice(), got.stderr.as_slice(), got.exit.code),
        (b"out\n".as_slice(), b"err\n".as_slice(), Some(0))
    );
    let fault = capture(&spec("echo 1234567890"), 5, limit, &cancel).unwrap_err();
    assert_eq!(fault.kind, FaultKind::TooBig);
    let start = Instant::now();
    let fault = capture(&spec("sleep 60"), 5, Some(Duration::from_millis(100)), &cancel).unwrap_err();
    assert!(fault.kind == FaultKind::TimedOut && start.elapsed() < Duration::from_secs(5), "{fault}");
}

#[test]
fn the_async_backend_says_what_it_lacks() {
    let fault = io_smol().run(Op::Proc(spec("true"))).unwrap_err();
    assert!(fault.detail.contains("not yet"), "{fault}");
}
