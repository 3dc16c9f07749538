//! What the sockets of one exchange must know. ureq runs an exchange on the calling thread and gives its transports
//! no place for data of ours, so the current call is a value of the thread.

use std::cell::RefCell;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tau_core::op::HttpRequest;

use crate::sys::wake::Wake;
use crate::sys::{CancelToken, net};

thread_local! {
    static CURRENT: RefCell<Option<Arc<Call>>> = const { RefCell::new(None) };
}

/// What ends the waiting of an exchange.
#[derive(Debug, Default)]
enum Waits {
    #[default]
    Not,
    /// For bytes of a socket.
    For(Arc<TcpStream>),
    /// Until this is signalled.
    On(Arc<Wake>),
}

/// One exchange.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) cancel: CancelToken,
    pub(super) url: String,
    pub(super) proxy: Option<String>,
    head_deadline: Option<Instant>,
    head_limit: Option<Duration>,
    idle_limit: Option<Duration>,
    waits: Mutex<Waits>,
    /// When the connection has to stand, while it is made.
    connect_deadline: Mutex<Option<Instant>>,
    in_body: AtomicBool,
    drain_only: AtomicBool,
    kept: AtomicBool,
    renewed: AtomicBool,
    answered: AtomicBool,
}

impl Call {
    pub(super) fn new(request: &HttpRequest, cancel: &CancelToken) -> Self {
        let head_limit = request.head_timeout_ms.map(Duration::from_millis);
        Self {
            cancel: cancel.clone(),
            url: request.url.clone(),
            proxy: request.proxy.clone(),
            head_deadline: head_limit.map(|limit| Instant::now() + limit),
            head_limit,
            idle_limit: request.idle_timeout_ms.map(Duration::from_millis),
            waits: Mutex::default(),
            connect_deadline: Mutex::default(),
            in_body: AtomicBool::new(false),
            drain_only: AtomicBool::new(false),
            kept: AtomicBool::new(false),
            renewed: AtomicBool::new(false),
            answered: AtomicBool::new(false),
        }
    }

    /// Makes this the current call of the thread.
    pub(super) fn enter(call: &Arc<Self>) -> Entered {
        CURRENT.set(Some(Arc::clone(call)));
        Entered
    }

    /// The current call of the thread.
    pub(super) fn current() -> io::Result<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone).ok_or_else(|| io::Error::other("no exchange is going on"))
    }

    /// Ends all waiting. Called from another thread.
    pub(super) fn shut(&self) {
        match &*self.waits() {
            Waits::Not => {}
            Waits::For(socket) => drop(socket.shutdown(Shutdown::Both)),
            Waits::On(wake) => wake.wake(),
        }
    }

    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The exchange has no socket yet, and waits for this as well until the guard is dropped.
    pub(super) fn wake_by(&self, wake: &Arc<Wake>) -> io::Result<Waking<'_>> {
        *self.waits() = Waits::On(Arc::clone(wake));
        // A cancel that came before has woken nobody.
        self.check()?;
        Ok(Waking(self))
    }

    /// The exchange goes on over this socket; `kept` = an earlier exchange used it.
    pub(super) fn use_socket(&self, socket: &Arc<TcpStream>, kept: bool) {
        let mut current = self.waits();
        if !matches!(&*current, Waits::For(current) if Arc::ptr_eq(current, socket)) {
            *current = Waits::For(Arc::clone(socket));
            self.kept.store(kept, Ordering::Relaxed);
        }
    }

    /// # Errors
    /// The fault of a cancelled call.
    pub(super) fn check(&self) -> io::Result<()> {
        self.cancel.check().map_err(io::Error::other)
    }

    /// How long the next step may take; `None` = no limit.
    ///
    /// # Errors
    /// `TimedOut` when no time is left.
    pub(super) fn limit(&self) -> io::Result<Option<Duration>> {
        if self.is_in_body() {
            return Ok(self.idle_limit);
        }
        let deadlines = [self.head_deadline, self.connect_deadline()];
        let Some(deadline) = deadlines.into_iter().flatten().min() else { return Ok(None) };
        match deadline.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(self.timed_out()),
            left => Ok(Some(rounded(left))),
        }
    }

    /// The fault of a limit that ran out.
    pub(super) fn timed_out(&self) -> io::Error {
        let fault = if self.is_in_body() {
            net::stopped(&self.url, self.idle_limit.unwrap_or_default())
        } else if self.connect_deadline().is_some_and(|at| self.head_deadline.is_none_or(|head| at < head)) {
            net::no_connection(&self.url)
        } else {
            net::no_answer(&self.url, self.head_limit.unwrap_or_default())
        };
        io::Error::other(fault)
    }

    /// A connection is made until the guard is dropped.
    pub(super) fn connecting(&self) -> Connecting<'_> {
        self.set_connect_deadline(Some(Instant::now() + net::CONNECT_LIMIT));
        Connecting(self)
    }

    fn connect_deadline(&self) -> Option<Instant> {
        *self.connect_deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_connect_deadline(&self, deadline: Option<Instant>) {
        *self.connect_deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }

    pub(super) fn begin_body(&self) {
        self.in_body.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_in_body(&self) -> bool {
        self.in_body.load(Ordering::Relaxed)
    }

    /// Whether reading may only use what has arrived already.
    pub(super) fn is_drain_only(&self) -> bool {
        self.drain_only.load(Ordering::Relaxed)
    }

    pub(super) fn set_drain_only(&self, on: bool) {
        self.drain_only.store(on, Ordering::Relaxed);
    }

    /// A byte of the answer has arrived.
    pub(super) fn set_answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    /// Whether the exchange used a kept connection that brought nothing.
    pub(super) fn is_stale(&self) -> bool {
        self.kept.load(Ordering::Relaxed) && !self.answered.load(Ordering::Relaxed)
    }

    /// Whether the exchange began again, and wants a connection of its own.
    pub(super) fn is_renewed(&self) -> bool {
        self.renewed.load(Ordering::Relaxed)
    }

    /// Begins again. Other kept connections may be no better.
    pub(super) fn renew(&self) {
        self.renewed.store(true, Ordering::Relaxed);
        self.kept.store(false, Ordering::Relaxed);
        *self.waits() = Waits::Not;
    }
}

/// Long limits in whole seconds, so that a socket need not be told a new one at each step.
fn rounded(left: Duration) -> Duration {
    if left < Duration::from_secs(5) { left } else { Duration::from_secs(left.as_secs() + 1) }
}

/// See [`Call::wake_by`].
pub(super) struct Waking<'a>(&'a Call);

impl Drop for Waking<'_> {
    fn drop(&mut self) {
        *self.0.waits() = Waits::Not;
    }
}

/// See [`Call::connecting`].
pub(super) struct Connecting<'a>(&'a Call);

impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        self.0.set_connect_deadline(None);
    }
}

/// Ends the current call of the thread when dropped.
pub(super) struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}
