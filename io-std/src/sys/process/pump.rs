//! Reading a child's pipes until it and they end, or a limit says so.
//!
//! [`Pump`] decides; whoever drives it waits: `pump_blocking` with `poll`, an async backend with its reactor. A
//! driver repeats, until [`Pump::ended`]: wait for [`Pump::gathering`], then for a pipe, the exit, a cancel or
//! [`Pump::due`]; on a cancel [`Pump::kill`]; then [`Pump::read`] the pipes that are ready, then [`Pump::look`].

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};
use rustix::process::Pid;
use tau_core::fault::IoFault;
use tau_core::op::{ProcExit, Stream};

use super::group::Group;
use super::spawn::Started;
use crate::sys::wake::{Wake, timespec};
use crate::sys::{CancelToken, fault};

/// Largest piece read at once.
const READ_BYTES: usize = 128 << 10;
/// Output beyond this is a flood: it is read in large pieces, at the price of [`GATHER`].
const FLOOD_BYTES: u64 = 1 << 20;
/// How long a flood may gather in the pipe. A child writes some kilobytes at a time; to wake, read and pass on for each of
/// them would cost more than the bytes themselves.
const GATHER: Duration = Duration::from_micros(400);
/// After a kill: how long the output of processes that left the group is still read.
const AFTER_KILL: Duration = Duration::from_millis(250);
/// After a kill: how long the child may take to die (it may hang in the kernel).
const DYING: Duration = Duration::from_secs(3);

/// After the limits: what may still wait in the pipes was written before, unless it is more than they hold. Whoever takes
/// the output may have been slow.
const MOST_LATE: usize = 1 << 20;

/// When reading ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// After the exit: silence of the pipes.
    pub(super) idle: Duration,
    /// After the exit: at the latest.
    pub(super) most: Duration,
    /// When the group is killed as if cancelled.
    pub(super) deadline: Option<Instant>,
}

/// A child under the contract, without the waiting. When it is dropped before its end, the group is killed.
pub struct Pump {
    /// Taken by [`finish`](Self::finish), with the group.
    child: Option<(Child, Group)>,
    watch: Watch,
    pipes: Vec<(Stream, Arc<OwnedFd>)>,
    limits: Limits,
    exited: Option<Instant>,
    killed: Option<Instant>,
    last_data: Instant,
    /// Bytes read so far, and in the last round.
    total: u64,
    round: usize,
    /// Bytes read after a limit ran out; `None` = none did.
    late: Option<usize>,
    exit: ProcExit,
}

/// What woke the pump.
#[derive(Default)]
struct Ready {
    cancel: bool,
    exit: bool,
    pipes: Vec<bool>,
}

/// Drives a pump on the calling thread.
pub(super) fn pump_blocking(
    mut pump: Pump,
    cancel: &CancelToken,
    out: &mut dyn FnMut(Stream, Vec<u8>),
) -> Result<ProcExit, IoFault> {
    let wake = Arc::new(Wake::new().map_err(|e| fault::of(&e, "cannot watch a child process"))?);
    let waker = Arc::clone(&wake);
    let hook = cancel.on_cancel(move || waker.wake());
    while !pump.ended() {
        if let Some(limit) = pump.gathering() {
            wake.wait(Some(limit));
        }
        let ready = wait(&pump, &wake);
        if ready.cancel {
            pump.kill();
        }
        pump.read(|at| ready.pipes.get(at) == Some(&true), out);
        pump.look(ready.exit);
    }
    drop(hook);
    Ok(pump.finish())
}

fn wait(pump: &Pump, wake: &Wake) -> Ready {
    let limit = pump.due().map(|at| at.saturating_duration_since(Instant::now()));
    let mut fds: Vec<PollFd<'_>> = pump.pipes.iter().map(|(_, fd)| PollFd::new(fd, PollFlags::IN)).collect();
    let cancellable = pump.killed.is_none();
    if cancellable {
        fds.push(PollFd::new(wake, PollFlags::IN));
    }
    if let Some(fd) = pump.exit_fd() {
        fds.push(PollFd::new(fd, PollFlags::IN));
    }
    // An interrupted wait is looked at like a timeout.
    let _ = poll(&mut fds, limit.map(timespec).as_ref());
    let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
    let pipes = ready.by_ref().take(pump.pipes.len()).collect();
    let cancel = cancellable && ready.next() == Some(true);
    Ready { cancel, exit: ready.next() == Some(true), pipes }
}

impl Pump {
    pub(super) fn new(started: Started, limits: Limits) -> Result<Self, IoFault> {
        let Started { mut child, pipes } = started;
        let pid = Pid::from_child(&child);
        let group = Group::enter(pid);
        let watch = Watch::new(pid).map_err(|e| {
            group.kill();
            let _ = child.wait();
            fault::of(&e, "cannot watch a child process")
        })?;
        Ok(Self {
            child: Some((child, group)),
            watch,
            pipes: pipes.into_iter().map(|(stream, fd)| (stream, Arc::new(fd))).collect(),
            limits,
            exited: None,
            killed: None,
            last_data: Instant::now(),
            total: 0,
            round: 0,
            late: None,
            exit: ProcExit::default(),
        })
    }

    /// The pipes that are still open.
    #[must_use]
    pub fn pipes(&self) -> &[(Stream, Arc<OwnedFd>)] {
        &self.pipes
    }

    /// What becomes readable when the child exits; `None` = it has exited, or the system has no such thing.
    #[must_use]
    pub const fn exit_fd(&self) -> Option<&Arc<OwnedFd>> {
        if self.exited.is_none() { self.watch.fd() } else { None }
    }

    /// Whether a cancel can still change anything.
    #[must_use]
    pub const fn is_killed(&self) -> bool {
        self.killed.is_some()
    }

    /// Kills the group. Harmless when repeated.
    pub fn kill(&mut self) {
        if self.killed.is_none() {
            self.exit.exited_before_cancel = self.exited.is_some();
            self.exit.killed = true;
            self.killed = Some(Instant::now());
            self.kill_group();
        }
    }

    fn kill_group(&self) {
        if let Some((_, group)) = &self.child {
            group.kill();
        }
    }

    /// Whether nothing more is to be waited for. Kills what is left of the group where a limit says so.
    #[must_use]
    pub fn ended(&mut self) -> bool {
        let now = Instant::now();
        if self.limits.deadline.is_some_and(|at| at <= now) {
            self.kill();
        }
        if let Some(killed) = self.killed {
            if self.exited.is_none() {
                return now >= killed + DYING;
            }
            return self.pipes.is_empty() || (now >= killed + AFTER_KILL && self.is_drained());
        }
        let Some(exited) = self.exited else { return false };
        if self.pipes.is_empty() || (now >= self.last_data + self.limits.idle && !self.has_output()) {
            return true;
        }
        if now < exited + self.limits.most {
            return false;
        }
        if !self.exit.leftovers_killed {
            self.exit.leftovers_killed = true;
            self.kill_group();
        }
        self.is_drained()
    }

    /// Whether what was written before a limit ran out has been read.
    fn is_drained(&mut self) -> bool {
        *self.late.get_or_insert(0) >= MOST_LATE || !self.has_output()
    }

    /// Whether something waits in the pipes, and be it their end.
    fn has_output(&self) -> bool {
        let mut fds: Vec<PollFd<'_>> =
            self.pipes.iter().map(|(_, fd)| PollFd::new(fd, PollFlags::IN)).collect();
        poll(&mut fds, Some(&timespec(Duration::ZERO))).is_ok_and(|ready| ready > 0)
    }

    /// When to look again although nothing has happened.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        let due = match (self.killed, self.exited) {
            (Some(killed), Some(_)) => Some(killed + AFTER_KILL),
            (Some(killed), None) => Some(killed + DYING),
            (None, Some(exited)) => {
                let quiet = (self.last_data + self.limits.idle).min(exited + self.limits.most);
                Some(self.limits.deadline.map_or(quiet, |at| at.min(quiet)))
            }
            (None, None) => self.limits.deadline,
        };
        self.watch.slice(due, self.exited.is_some())
    }

    /// How long to let a flood gather in the pipe while it comes in small pieces. A cancel ends this.
    #[must_use]
    pub fn gathering(&self) -> Option<Duration> {
        let is_flood = self.total > FLOOD_BYTES && (1..READ_BYTES / 2).contains(&self.round);
        (is_flood && self.exited.is_none() && self.killed.is_none()).then_some(GATHER)
    }

    /// Reads once from each pipe that is ready; `ready` gets its place in [`pipes`](Self::pipes).
    pub fn read(&mut self, ready: impl Fn(usize) -> bool, out: &mut dyn FnMut(Stream, Vec<u8>)) {
        let last_data = &mut self.last_data;
        let mut round = 0;
        let mut at = 0;
        self.pipes.retain(|(stream, fd)| {
            at += 1;
            if !ready(at - 1) {
                return true;
            }
            let mut bytes = Vec::with_capacity(READ_BYTES);
            match read(fd, spare_capacity(&mut bytes)) {
                Ok(0) => return false,
                Ok(n) => {
                    *last_data = Instant::now();
                    round += n;
                    out(*stream, bytes);
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return false,
            }
            true
        });
        self.round = round;
        self.total += round as u64;
        self.late = self.late.map(|late| late + round);
    }

    /// Looks whether the child has exited; `ready` = [`exit_fd`](Self::exit_fd) was readable.
    pub fn look(&mut self, ready: bool) {
        if self.exited.is_none() && self.watch.exited(ready) {
            self.exited = Some(Instant::now());
            self.last_data = Instant::now();
        }
    }

    /// Leaves the table of groups, then reaps: in this order the number of the group cannot belong to others.
    #[must_use]
    pub fn finish(mut self) -> ProcExit {
        let mut exit = std::mem::take(&mut self.exit);
        let Some((mut child, group)) = self.child.take() else { return exit };
        drop(group);
        if self.exited.is_none() {
            // It hangs in the kernel and dies when that lets go of it.
            thread::spawn(move || child.wait());
            return exit;
        }
        let status = child.wait().ok();
        exit.code = status.and_then(|status| code(status, exit.killed && !exit.exited_before_cancel));
        exit
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        if let Some((mut child, group)) = self.child.take() {
            group.kill();
            drop(group);
            thread::spawn(move || child.wait());
        }
    }
}

fn code(status: ExitStatus, killed_by_us: bool) -> Option<i32> {
    status.code().or_else(|| status.signal().filter(|_| !killed_by_us).map(|signal| 128 + signal))
}

/// Tells when the child has exited, without reaping it.
#[cfg(target_os = "linux")]
struct Watch(Arc<OwnedFd>);

#[cfg(target_os = "linux")]
impl Watch {
    fn new(pid: Pid) -> std::io::Result<Self> {
        let fd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
        Ok(Self(Arc::new(fd)))
    }

    const fn fd(&self) -> Option<&Arc<OwnedFd>> {
        Some(&self.0)
    }

    const fn slice(&self, due: Option<Instant>, _: bool) -> Option<Instant> {
        due
    }

    const fn exited(&self, ready: bool) -> bool {
        ready
    }
}

/// Without handles for processes, an exit is looked for every 20 ms while the child runs.
#[cfg(not(target_os = "linux"))]
struct Watch(Pid);

#[cfg(not(target_os = "linux"))]
impl Watch {
    fn new(pid: Pid) -> std::io::Result<Self> {
        Ok(Self(pid))
    }

    const fn fd(&self) -> Option<&Arc<OwnedFd>> {
        None
    }

    fn slice(&self, due: Option<Instant>, exited: bool) -> Option<Instant> {
        let slice = Instant::now() + Duration::from_millis(20);
        if exited { due } else { Some(due.map_or(slice, |due| due.min(slice))) }
    }

    fn exited(&self, _: bool) -> bool {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.0), options), Ok(None))
    }
}
