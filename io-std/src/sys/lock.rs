//! Advisory locks between processes: a folder `<real path>.lock`, as Pi makes them (D51, spec 40 §1.3).
//!
//! The modification time of the folder says that its holder lives. A lock untouched for 30 s is stale and taken
//! over. Pi's start-up reads take over after 10 s already, so a holder renews every 4 s.

use std::fs::{self, File, FileTimes};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use tau_core::fault::{FaultKind, IoFault};

use super::{CancelToken, fault, random};

const STALE: Duration = Duration::from_secs(30);
const RENEW: Duration = Duration::from_secs(4);
const GIVE_UP: Duration = Duration::from_secs(30);
const FIRST_DELAY: Duration = Duration::from_millis(10);
const LAST_DELAY: Duration = Duration::from_secs(1);

/// A held lock; dropping it releases it.
#[derive(Debug)]
pub struct DirLock {
    folder: PathBuf,
    touched: SystemTime,
}

impl DirLock {
    /// Waits for the lock of `path`, at most 30 s.
    ///
    /// # Errors
    /// `TimedOut` naming the lock folder, `Cancelled`, or what the operating system says.
    pub fn acquire(path: &Path, cancel: &CancelToken) -> Result<Self, IoFault> {
        Self::acquire_within(path, GIVE_UP, cancel)
    }

    /// Waits for the lock of `path`, at most as long as `patience` says.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn acquire_within(path: &Path, patience: Duration, cancel: &CancelToken) -> Result<Self, IoFault> {
        let folder = lock_folder(path);
        let start = Instant::now();
        let mut delay = FIRST_DELAY;
        loop {
            cancel.check()?;
            match Self::attempt(&folder) {
                Ok(Some(lock)) => return Ok(lock),
                Ok(None) if start.elapsed() >= patience => {
                    let text = format!(
                        "{}: another process holds this lock; if none runs, remove the folder",
                        folder.display()
                    );
                    return Err(IoFault::new(FaultKind::TimedOut, text));
                }
                Ok(None) => thread::sleep(delay + jitter(delay)),
                Err(e) => return Err(fault::of(&e, folder.display())),
            }
            delay = (delay * 2).min(LAST_DELAY);
        }
    }

    /// Takes the lock if it is free or stale.
    fn attempt(folder: &Path) -> io::Result<Option<Self>> {
        for _ in 0..2 {
            match fs::create_dir(folder) {
                Ok(()) => return Self::touch_new(folder).map(Some),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
            let age = match fs::metadata(folder).and_then(|meta| meta.modified()) {
                Ok(modified) => modified.elapsed().unwrap_or_default(),
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            };
            if age < STALE {
                return Ok(None);
            }
            let _ = fs::remove_dir(folder);
        }
        Ok(None)
    }

    fn touch_new(folder: &Path) -> io::Result<Self> {
        let mut lock = Self { folder: folder.to_owned(), touched: SystemTime::now() };
        lock.touch()?;
        Ok(lock)
    }

    fn touch(&mut self) -> io::Result<()> {
        let now = SystemTime::now();
        let handle = File::open(&self.folder)?;
        handle.set_times(FileTimes::new().set_modified(now))?;
        self.touched = handle.metadata()?.modified()?;
        Ok(())
    }

    /// Whether the lock is still ours: nobody took it over.
    ///
    /// # Errors
    /// `Conflict` when someone did.
    pub fn check(&self) -> Result<(), IoFault> {
        match fs::metadata(&self.folder).and_then(|meta| meta.modified()) {
            Ok(modified) if modified == self.touched => Ok(()),
            _ => {
                let text = format!("{}: the lock was taken over by another process", self.folder.display());
                Err(IoFault::new(FaultKind::Conflict, text))
            }
        }
    }

    /// Says that the holder lives. To be called every 4 s.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn renew(&mut self) -> Result<(), IoFault> {
        self.check()?;
        self.touch().map_err(fault::at(self.folder.display()))
    }

    /// Runs `work` while a second thread renews the lock, for work that may take longer than a few seconds.
    ///
    /// # Errors
    /// What `work` gives; `Conflict` when the lock was lost meanwhile.
    pub fn hold_while<T>(mut self, work: impl FnOnce() -> Result<T, IoFault>) -> Result<T, IoFault> {
        self.keep_while(work)
    }

    /// As [`hold_while`](Self::hold_while); the lock is held afterwards, too.
    ///
    /// # Errors
    /// As [`hold_while`](Self::hold_while).
    pub fn keep_while<T>(&mut self, work: impl FnOnce() -> Result<T, IoFault>) -> Result<T, IoFault> {
        let (done, ended) = channel::<()>();
        thread::scope(|scope| {
            let lock = self;
            let keeper = scope.spawn(move || {
                while ended.recv_timeout(RENEW) == Err(RecvTimeoutError::Timeout) {
                    lock.renew()?;
                }
                lock.check()
            });
            let result = work();
            drop::<Sender<()>>(done);
            match keeper.join() {
                Ok(Ok(())) => result,
                Ok(Err(lost)) => Err(lost),
                Err(_) => Err(IoFault::new(FaultKind::Other, "the thread that renewed the lock failed")),
            }
        })
    }
}

impl Drop for DirLock {
    fn drop(&mut self) {
        if self.check().is_ok() {
            let _ = fs::remove_dir(&self.folder);
        }
    }
}

fn lock_folder(path: &Path) -> PathBuf {
    let mut real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).into_os_string();
    real.push(".lock");
    real.into()
}

fn jitter(delay: Duration) -> Duration {
    let mut byte = [0];
    let _ = random::fill(&mut byte);
    delay.mul_f64(f64::from(byte[0]) / 256.0)
}
