//! Random commands, and ops that are started and cancelled at random: by a seed, with the same end in all backends.

use std::thread;
use std::time::{Duration, Instant};

use tau_core::fault::FaultKind;
use tau_core::op::{Op, Outcome, ProcExit, ProcSpec, SearchSpec, SpillSpec, WalkSpec};
use tempfile::TempDir;

use crate::backend::{Backend, io_smol, io_std, on_each_backend};
use crate::chaos::Dice;
use crate::handlers::host;
use crate::http::{CHUNKED, request};
use crate::processes::spec;
use crate::server::Server;

/// A script whose output and end do not depend on time.
fn script(dice: &mut Dice) -> String {
    let mut lines = Vec::new();
    for _ in 0..dice.roll(6) {
        lines.push(match dice.roll(12) {
            0 => format!("printf '\\360\\237'; sleep 0.0{}; printf '\\230\\200'", dice.roll(3)),
            1 => format!("seq {}", dice.one(&[1, 10, 1000, 100_000])),
            2 => "echo err >&2".into(),
            3 => format!("head -c {} /dev/zero", dice.one(&[1, 4096, 131_072, 131_073, 3_000_000])),
            4 => "cat".into(),
            5 => "(sleep 0.02; echo late) & wait $!".into(),
            6 => "printf '\\377\\376\\000'".into(),
            7 => "exec 2>&1".into(),
            8 => "(exec >/dev/null 2>&1; sleep 3) &".into(),
            9 => "trap '' TERM HUP".into(),
            10 => "exec 1>&-".into(),
            _ => "true".into(),
        });
    }
    lines.push(
        dice.one(&["exit 0", "exit 3", "kill -9 $$", "kill -TERM $$; exit 9", "false", "sleep 0.02"]).into(),
    );
    lines.join("\n")
}

/// What came of a script: its output, how it ended, what a file holds of it.
fn ran(backend: &Backend, script: &str) -> (Vec<u8>, ProcExit, Option<Vec<u8>>) {
    let dir = TempDir::new().unwrap();
    let spill = SpillSpec {
        dir: dir.path().to_str().unwrap().into(),
        prefix: "x-".into(),
        over_bytes: 2000,
        over_lines: 500,
    };
    let (bytes, last) = backend.start(Op::Proc(ProcSpec { spill: Some(spill), ..spec(script) })).bytes();
    let Ok(Outcome::Exit(mut exit)) = last else { panic!("{script}: {last:?}") };
    let filed = exit.spill.take().map(|file| std::fs::read(file).unwrap());
    (bytes, exit, filed)
}

#[test]
fn commands_come_out_the_same() {
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            thread::spawn(move || {
                let backends = [io_std(), io_smol()];
                for seed in (0..120).filter(|seed| seed % 4 == worker) {
                    let script = script(&mut Dice::new(seed));
                    let [one, other] = backends.each_ref().map(|backend| ran(backend, &script));
                    assert_eq!(one.1, other.1, "{script}");
                    assert!(
                        one.0 == other.0 && one.2 == other.2,
                        "{script}: {} and {}",
                        one.0.len(),
                        other.0.len()
                    );
                    assert!(one.2.is_none_or(|filed| filed == one.0), "{script}: the file holds all of it");
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
}

on_each_backend!(whatever_is_cancelled_ends_once);
fn whatever_is_cancelled_ends_once(b: &Backend) {
    b.alone("stress::starts_and_cancels", &[]);
}

on_each_backend!(
    #[ignore = "run by `whatever_is_cancelled_ends_once` in a process of its own"]
    starts_and_cancels
);
fn starts_and_cancels(b: &Backend) {
    let dir = TempDir::new().unwrap();
    let root = dir.path().to_str().unwrap().to_owned();
    for number in 0..50 {
        std::fs::write(dir.path().join(format!("{number}.txt")), "line\n".repeat(2000)).unwrap();
    }
    let server = Server::new(|mut client, _| {
        while let Some(request) = client.request() {
            match request.line.split(['/', ' ']).nth(2) {
                Some("quick") => client.answer("200 OK", "x"),
                Some("slow") => {
                    client.send(CHUNKED);
                    while client.sends("4\r\nslow\r\n") {
                        thread::sleep(Duration::from_millis(5));
                    }
                }
                Some("close") => return,
                _ => client.drain(),
            }
        }
    });
    let files = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let children = || {
        let me = std::process::id().to_string();
        let stats = std::fs::read_dir("/proc").unwrap().flatten();
        let stats = stats.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        stats.filter(|stat| stat.rsplit(") ").next().unwrap().split(' ').nth(1) == Some(me.as_str())).count()
    };
    let before = files();
    let dice = &mut Dice::new(7);
    for _ in 0..8 {
        let mut running = Vec::new();
        for _ in 0..60 {
            let what = match dice.roll(9) {
                0 => Op::Http(request(server.url("/quick"))),
                1 => Op::Http(request(server.url("/slow"))),
                2 => Op::Http(request(server.url("/close"))),
                3 => Op::Http(request(server.url("/silent"))),
                4 => Op::Proc(spec("sleep 30 & echo x; sleep 30")),
                5 => Op::Proc(spec("echo x")),
                6 => host("wait", 2),
                7 => Op::Walk(WalkSpec { root: root.clone(), pattern: "*9.txt".into(), limit: 100 }),
                _ => Op::Search(SearchSpec {
                    root: root.clone(),
                    pattern: "line".into(),
                    literal: true,
                    ignore_case: false,
                    glob: None,
                    context: 0,
                    limit: 10,
                    max_line: 500,
                }),
            };
            running.push(b.start(what));
            if dice.roll(3) == 0 {
                let at = dice.roll(running.len());
                running[at].cancel();
            }
            if dice.roll(10) == 0 {
                thread::sleep(Duration::from_millis(2));
            }
        }
        // A second cancel changes nothing, whatever has happened meanwhile.
        running.iter().for_each(crate::backend::Running::cancel);
        let start = Instant::now();
        for running in running {
            if let Err(fault) = running.finish().1 {
                assert!(matches!(fault.kind, FaultKind::Cancelled | FaultKind::Reset), "{fault}");
            }
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    }
    // Neither connections (but those that are kept), nor processes, nor files are left.
    let mut left = (0, 0);
    for _ in 0..200 {
        left = (files(), children());
        if left.0 <= before + 70 && left.1 == 0 {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{left:?} descriptors and children, {before} before");
}
