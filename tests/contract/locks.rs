//! Locks between processes (D51).

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::PermissionsExt as _;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tau_core::fault::FaultKind;
use tau_io_std::sys::CancelToken;
use tau_io_std::sys::lock::DirLock;
use tau_io_std::sys::update::{How, update};
use tempfile::TempDir;

#[test]
fn one_holder_at_a_time() {
    let dir = TempDir::new().unwrap();
    let (path, counter) = (dir.path().join("auth.json"), dir.path().join("n"));
    fs::write(&path, "{}").unwrap();
    fs::write(&counter, "0").unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let lock = DirLock::acquire(&path, &CancelToken::new()).unwrap();
                    let n: u32 = fs::read_to_string(&counter).unwrap().parse().unwrap();
                    thread::sleep(Duration::from_millis(1));
                    fs::write(&counter, (n + 1).to_string()).unwrap();
                    lock.check().unwrap();
                }
            });
        }
    });
    assert_eq!(fs::read_to_string(&counter).unwrap(), "20");
    assert!(!dir.path().join("auth.json.lock").exists());
}

#[test]
fn stale_locks_are_taken_over_and_waits_end_on_cancel() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("auth.json");
    fs::write(&path, "{}").unwrap();
    let folder = path.canonicalize().unwrap().with_file_name("auth.json.lock");
    fs::create_dir(&folder).unwrap();

    let cancel = CancelToken::new();
    let start = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            cancel.cancel();
        });
        assert_eq!(DirLock::acquire(&path, &cancel).unwrap_err().kind, FaultKind::Cancelled);
    });
    assert!(start.elapsed() < Duration::from_secs(5));

    let old = SystemTime::now() - Duration::from_secs(40);
    File::open(&folder).unwrap().set_times(FileTimes::new().set_modified(old)).unwrap();
    let mut lock = DirLock::acquire(&path, &CancelToken::new()).unwrap();
    lock.renew().unwrap();
    File::open(&folder).unwrap().set_times(FileTimes::new().set_modified(old)).unwrap();
    assert_eq!(lock.check().unwrap_err().kind, FaultKind::Conflict);
    drop(lock);
    assert!(folder.exists(), "a lock that is no longer ours is left alone");
}

fn how(patience: Duration) -> How {
    How { mode: 0o600, folder_mode: 0o700, patience }
}

#[test]
fn updates_of_many_lose_nothing() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("new/settings.json");
    let path = path.to_str().unwrap();
    thread::scope(|scope| {
        for worker in 0..4 {
            scope.spawn(move || {
                for number in 0..5 {
                    let mut add = |text: Option<&str>| {
                        Ok(Some(format!("{}{worker}.{number}\n", text.unwrap_or_default())))
                    };
                    update(path, how(Duration::from_secs(20)), &CancelToken::new(), &mut add).unwrap();
                }
            });
        }
    });
    let mut lines: Vec<String> = fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 20);
    let names: Vec<_> =
        fs::read_dir(dir.path().join("new")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["settings.json"], "no lock and no temporary file is left");
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn an_update_that_is_refused_leaves_the_file() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("a.json");
    let path = file.to_str().unwrap();
    let run = |patience, change: &mut dyn FnMut(Option<&str>) -> Result<Option<String>, String>| {
        update(path, how(patience), &CancelToken::new(), change)
    };
    let second = Duration::from_secs(1);
    fs::write(&file, b"\xff").unwrap();
    let refused = run(second, &mut |_| panic!("it is not text")).unwrap_err();
    assert_eq!((refused.kind, fs::read(&file).unwrap()), (FaultKind::Invalid, b"\xff".to_vec()));

    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let refused = run(second, &mut |_| Err("no".into())).unwrap_err();
    assert!(refused.detail.contains("a.json: no"), "{refused}");
    run(second, &mut |_| Ok(None)).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");

    let lock = DirLock::acquire(&file, &CancelToken::new()).unwrap();
    let start = Instant::now();
    let refused = run(Duration::from_millis(50), &mut |_| panic!("it is locked")).unwrap_err();
    assert_eq!(refused.kind, FaultKind::TimedOut);
    assert!(refused.detail.contains("a.json.lock") && start.elapsed() < second, "{refused}");
    drop(lock);

    run(second, &mut |text| Ok(Some(text.unwrap().to_owned() + "er"))).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "older");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);

    let nowhere = dir.path().join("none/b.json");
    update(nowhere.to_str().unwrap(), how(second), &CancelToken::new(), &mut |_| Ok(None)).unwrap();
    assert!(!dir.path().join("none").exists());
}
