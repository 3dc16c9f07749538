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

use crate::backend::{Backend, Running, on_each_backend};

pub fn spec(command: &str) -> ProcSpec {
    ProcSpec {
        argv: vec!["/bin/sh".into(), "-c".into(), command.into()],
        cwd: "/".into(),
        env: Vec::new(),
        idle_after_exit_ms: 100,
        max_after_exit_ms: 1500,
        spill: None,
    }
}

fn run(b: &Backend, spec: ProcSpec) -> (String, ProcExit, Duration) {
    let start = Instant::now();
    let (bytes, last) = b.start(Op::Proc(spec)).bytes();
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

on_each_backend!(output_comes_in_the_order_of_writing);
fn output_comes_in_the_order_of_writing(b: &Backend) {
    let (text, exit, _) = run(b, spec("echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 7"));
    assert_eq!((text.as_str(), exit.code), ("1\n2\n3\n4\n", Some(7)));
    assert!(!exit.killed && !exit.leftovers_killed && exit.spill.is_none());
}

on_each_backend!(signals_count_as_128_and_more);
fn signals_count_as_128_and_more(b: &Backend) {
    assert_eq!(run(b, spec("kill -TERM $$")).1.code, Some(143));
    assert_eq!(run(b, spec("kill -KILL $$")).1.code, Some(137));
}

on_each_backend!(surroundings_are_those_of_the_spec);
fn surroundings_are_those_of_the_spec(b: &Backend) {
    let dir = TempDir::new().unwrap();
    let cwd = dir.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    let env = vec![("TAU_A".into(), Some("x y".into())), ("HOME".into(), None)];
    let (text, ..) = run(b, ProcSpec { cwd: cwd.clone(), env, ..spec("pwd; echo \"$TAU_A:${HOME-none}\"") });
    assert_eq!(text, format!("{cwd}\nx y:none\n"));
}

on_each_backend!(what_cannot_start_is_named);
fn what_cannot_start_is_named(b: &Backend) {
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

on_each_backend!(silent_background_children_are_left_alone);
/// Bug 51, a child that is silent: it lives on, nobody waits for it.
fn silent_background_children_are_left_alone(b: &Backend) {
    let (text, exit, took) = run(b, spec("sleep 30 & echo $!"));
    assert!(took < Duration::from_millis(1000), "{took:?}");
    assert_eq!((exit.code, exit.leftovers_killed), (Some(0), false));
    assert!(alive(&text));
    std::process::Command::new("kill").arg(text.trim()).status().unwrap();
}

on_each_backend!(chatty_background_children_end_at_the_limit);
/// Bug 51, a child that keeps writing: it is killed at the limit after the exit.
fn chatty_background_children_end_at_the_limit(b: &Backend) {
    let (text, exit, took) = run(
        b,
        // A busy machine may let a tick wait for a while.
        ProcSpec {
            idle_after_exit_ms: 600,
            ..spec("( while :; do echo tick; sleep 0.02; done ) & echo pid $!")
        },
    );
    assert!(took > Duration::from_millis(1400) && took < Duration::from_millis(5000), "{took:?}");
    assert_eq!((exit.code, exit.leftovers_killed, exit.killed), (Some(0), true, false));
    let pid = text.lines().find_map(|l| l.strip_prefix("pid ")).unwrap();
    assert!(text.contains("tick"));
    dies(pid);
}

on_each_backend!(nobody_waits_for_input);
/// Bugs 54 and 55: there is no input and no terminal.
fn nobody_waits_for_input(b: &Backend) {
    let (text, exit, took) =
        run(b, spec("cat; echo after-cat; read -r x; echo rc=$?; (: </dev/tty) 2>/dev/null || echo no-tty"));
    assert_eq!((text.as_str(), exit.code), ("after-cat\nrc=1\nno-tty\n", Some(0)));
    assert!(took < Duration::from_secs(2));
}

on_each_backend!(a_cancel_kills_the_group_and_keeps_the_output);
/// Bug 59: what was printed before the kill is there, and the whole group is gone.
fn a_cancel_kills_the_group_and_keeps_the_output(b: &Backend) {
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

on_each_backend!(a_cancel_is_not_held_up_by_those_who_left_the_group);
fn a_cancel_is_not_held_up_by_those_who_left_the_group(b: &Backend) {
    let running = b.start(Op::Proc(spec("setsid sh -c 'while :; do echo x; sleep 0.01; done' & sleep 60")));
    running.next();
    let start = Instant::now();
    running.cancel();
    let Ok(Outcome::Exit(exit)) = running.finish().1 else { panic!("an exit") };
    assert!(exit.killed && start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

on_each_backend!(a_cancel_after_the_exit_keeps_the_code);
fn a_cancel_after_the_exit_keeps_the_code(b: &Backend) {
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

on_each_backend!(who_is_slow_loses_no_output);
/// The limits after an exit or a kill say how long a pipe may be silent, not how fast it must be read.
fn who_is_slow_loses_no_output(b: &Backend) {
    let total = |running: Running, slow: usize| {
        let (mut total, mut taken) = (0, 0);
        loop {
            match running.next() {
                Reply::Chunk { bytes, .. } => total += bytes.len(),
                Reply::Done(Outcome::Exit(exit)) => return (total, exit),
                other => panic!("{other:?}"),
            }
            taken += 1;
            if taken <= slow {
                std::thread::sleep(Duration::from_millis(300));
            }
        }
    };
    for (command, limit) in [
        ("head -c 3000000 /dev/zero", 60_000),
        // Somebody else keeps the pipe, and the limit runs out meanwhile.
        ("sleep 3 & head -c 3000000 /dev/zero", 150),
    ] {
        let asked = ProcSpec { max_after_exit_ms: limit, ..spec(command) };
        let (total, exit) = total(b.start_slowly(Op::Proc(asked)), 26);
        assert_eq!((total, exit.code), (3_000_000, Some(0)), "{command}");
    }
    let dir = TempDir::new().unwrap();
    let printed = dir.path().join("printed");
    let command = format!("head -c 250000 /dev/zero; echo >'{}'; sleep 30", printed.display());
    let running = b.start_slowly(Op::Proc(spec(&command)));
    let cancel = running.canceller();
    let cancelling = std::thread::spawn(move || {
        while !printed.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        cancel();
    });
    let (total, exit) = total(running, 5);
    assert_eq!((total, exit.killed), (250_000, true));
    cancelling.join().unwrap();
}

fn spill(dir: &Path) -> SpillSpec {
    SpillSpec {
        dir: dir.join("out/put").to_str().unwrap().into(),
        prefix: "tau-bash-".into(),
        over_bytes: 1000,
        over_lines: 10,
    }
}

on_each_backend!(large_output_is_kept_in_a_file);
/// Bug 60 and D38: raw bytes, complete, private.
fn large_output_is_kept_in_a_file(b: &Backend) {
    let dir = TempDir::new().unwrap();
    let with = |command: &str| run(b, ProcSpec { spill: Some(spill(dir.path())), ..spec(command) });
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

on_each_backend!(memory_does_not_grow_with_the_output);
/// Bug 56: memory does not grow with the output.
fn memory_does_not_grow_with_the_output(b: &Backend) {
    b.alone("processes::two_hundred_megabytes", &[]);
}

on_each_backend!(
    #[ignore = "run by `memory_does_not_grow_with_the_output` in a process of its own"]
    two_hundred_megabytes
);
fn two_hundred_megabytes(b: &Backend) {
    let dir = TempDir::new().unwrap();
    let mut total = 0u64;
    let spec = ProcSpec { spill: Some(spill(dir.path())), ..spec("head -c 200000000 /dev/zero") };
    let running = b.start_slowly(Op::Proc(spec));
    let last = loop {
        match running.next() {
            Reply::Chunk { bytes, .. } => total += bytes.len() as u64,
            Reply::Done(outcome) => break Ok(outcome),
            Reply::Failed(fault) => break Err(fault),
            other => panic!("{other:?}"),
        }
    };
    let Ok(Outcome::Exit(exit)) = last else { panic!("{last:?}") };
    assert_eq!(total, 200_000_000);
    assert_eq!(fs::metadata(exit.spill.unwrap()).unwrap().len(), total);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 24_000, "{peak} kB");
}

on_each_backend!(no_zombies_are_left);
/// Bug 58.
fn no_zombies_are_left(b: &Backend) {
    b.alone("processes::two_hundred_runs", &[]);
}

on_each_backend!(
    #[ignore = "run by `no_zombies_are_left` in a process of its own"]
    two_hundred_runs
);
fn two_hundred_runs(b: &Backend) {
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

on_each_backend!(a_signal_ends_all_groups);
fn a_signal_ends_all_groups(b: &Backend) {
    b.alone("processes::all_groups", &[]);
}

on_each_backend!(
    #[ignore = "run by `a_signal_ends_all_groups` in a process of its own"]
    all_groups
);
fn all_groups(b: &Backend) {
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
