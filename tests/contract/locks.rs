//! Locks between processes (D51).

use std::fs::{self, File, FileTimes};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tau_core::fault::FaultKind;
use tau_io_std::sys::CancelToken;
use tau_io_std::sys::lock::DirLock;
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
