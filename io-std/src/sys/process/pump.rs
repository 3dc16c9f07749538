//! Reading a child's pipes until it and they end, or a limit says so.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

pub(super) struct Pump {
    wake: Arc<Wake>,
    child: Child,
    group: Group,
    watch: Watch,
    pipes: Vec<(Stream, OwnedFd)>,
    limits: Limits,
    exited: Option<Instant>,
    killed: Option<Instant>,
    last_data: Instant,
    /// Bytes read so far, and in the last round.
    total: u64,
    round: usize,
    exit: ProcExit,
}

/// What woke the pump.
#[derive(Default)]
struct Ready {
    cancel: bool,
    exit: bool,
    pipes: Vec<bool>,
}

impl Pump {
    pub(super) fn new(started: Started, limits: Limits) -> Result<Self, IoFault> {
        let Started { mut child, pipes } = started;
        let pid = Pid::from_child(&child);
        let group = Group::enter(pid);
        let (wake, watch) = Wake::new().and_then(|wake| Ok((wake, Watch::new(pid)?))).map_err(|e| {
            group.kill();
            let _ = child.wait();
            fault::of(&e, "cannot watch a child process")
        })?;
        Ok(Self {
            wake: Arc::new(wake),
            child,
            group,
            watch,
            pipes,
            limits,
            exited: None,
            killed: None,
            last_data: Instant::now(),
            total: 0,
            round: 0,
            exit: ProcExit::default(),
        })
    }

    pub(super) fn run(mut self, cancel: &CancelToken, out: &mut dyn FnMut(Stream, Vec<u8>)) -> ProcExit {
        let wake = Arc::clone(&self.wake);
        let hook = cancel.on_cancel(move || wake.wake());
        while !self.ended() {
            self.gather();
            let ready = self.wait();
            if (ready.cancel || self.limits.deadline.is_some_and(|at| at <= Instant::now()))
                && self.killed.is_none()
            {
                self.kill();
            }
            self.read(&ready.pipes, out);
            if ready.exit && self.exited.is_none() {
                self.exited = Some(Instant::now());
                self.last_data = Instant::now();
            }
        }
        drop(hook);
        self.finish()
    }

    fn kill(&mut self) {
        self.exit.exited_before_cancel = self.exited.is_some();
        self.exit.killed = true;
        self.killed = Some(Instant::now());
        self.group.kill();
    }

    /// Whether nothing more is to be waited for.
    fn ended(&mut self) -> bool {
        let now = Instant::now();
        if let Some(killed) = self.killed {
            let gone = self.exited.is_some() && (self.pipes.is_empty() || now >= killed + AFTER_KILL);
            return gone || now >= killed + DYING;
        }
        let Some(exited) = self.exited else { return false };
        if self.pipes.is_empty() || now >= self.last_data + self.limits.idle {
            return true;
        }
        let over = now >= exited + self.limits.most;
        if over {
            self.exit.leftovers_killed = true;
            self.group.kill();
        }
        over
    }

    fn next_deadline(&self) -> Option<Instant> {
        match (self.killed, self.exited) {
            (Some(killed), Some(_)) => Some(killed + AFTER_KILL),
            (Some(killed), None) => Some(killed + DYING),
            (None, Some(exited)) => {
                let quiet = (self.last_data + self.limits.idle).min(exited + self.limits.most);
                Some(self.limits.deadline.map_or(quiet, |at| at.min(quiet)))
            }
            (None, None) => self.limits.deadline,
        }
    }

    /// Lets a flood gather in the pipe while it comes in small pieces. A cancel ends this.
    fn gather(&self) {
        let is_flood = self.total > FLOOD_BYTES && (1..READ_BYTES / 2).contains(&self.round);
        if is_flood && self.exited.is_none() && self.killed.is_none() {
            self.wake.wait(Some(GATHER));
        }
    }

    fn wait(&self) -> Ready {
        let limit = self.next_deadline().map(|at| at.saturating_duration_since(Instant::now()));
        let limit = self.watch.slice(limit, self.exited.is_some());
        let mut fds: Vec<PollFd<'_>> =
            self.pipes.iter().map(|(_, fd)| PollFd::new(fd, PollFlags::IN)).collect();
        let cancellable = self.killed.is_none();
        if cancellable {
            fds.push(PollFd::new(&*self.wake, PollFlags::IN));
        }
        if let Some(fd) = self.watch.fd().filter(|_| self.exited.is_none()) {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        }
        // An interrupted wait is looked at like a timeout.
        let _ = poll(&mut fds, limit.map(timespec).as_ref());
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        let pipes = ready.by_ref().take(self.pipes.len()).collect();
        let cancel = cancellable && ready.next() == Some(true);
        let exit = self.watch.exited(ready.next());
        Ready { cancel, exit, pipes }
    }

    fn read(&mut self, ready: &[bool], out: &mut dyn FnMut(Stream, Vec<u8>)) {
        let last_data = &mut self.last_data;
        let mut round = 0;
        let mut ready = ready.iter();
        self.pipes.retain(|(stream, fd)| {
            if ready.next() != Some(&true) {
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
    }

    /// Leaves the table of groups, then reaps: in this order the number of the group cannot belong to others.
    fn finish(self) -> ProcExit {
        let Self { mut child, group, exited, mut exit, .. } = self;
        drop(group);
        if exited.is_none() {
            // It hangs in the kernel and dies when that lets go of it.
            thread::spawn(move || child.wait());
            return exit;
        }
        let status = child.wait().ok();
        exit.code = status.and_then(|status| code(status, exit.killed && !exit.exited_before_cancel));
        exit
    }
}

fn code(status: ExitStatus, killed_by_us: bool) -> Option<i32> {
    status.code().or_else(|| status.signal().filter(|_| !killed_by_us).map(|signal| 128 + signal))
}

/// Tells when the child has exited, without reaping it.
#[cfg(target_os = "linux")]
struct Watch(OwnedFd);

#[cfg(target_os = "linux")]
impl Watch {
    fn new(pid: Pid) -> std::io::Result<Self> {
        Ok(Self(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?))
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }

    const fn slice(&self, limit: Option<Duration>, _: bool) -> Option<Duration> {
        limit
    }

    fn exited(&self, ready: Option<bool>) -> bool {
        ready == Some(true)
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

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn slice(&self, limit: Option<Duration>, exited: bool) -> Option<Duration> {
        let slice = Duration::from_millis(20);
        if exited { limit } else { Some(limit.map_or(slice, |limit| limit.min(slice))) }
    }

    fn exited(&self, _: Option<bool>) -> bool {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.0), options), Ok(None))
    }
}
