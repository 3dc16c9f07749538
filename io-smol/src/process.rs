//! Processes: the plan of `tau-io-std`, driven by smol's reactor.

use std::future::poll_fn;
use std::mem::take;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use smol::channel::{Receiver, bounded};
use smol::future::or;
use smol::stream::Stream as _;
use smol::{Async, Timer, unblock};
use tau_core::fault::IoFault;
use tau_core::input::Reply;
use tau_core::op::{ProcExit, ProcSpec, Stream};
use tau_io_std::sys::process::{self, Pump, Spill};
use tau_io_std::sys::{CancelToken, fault};

use crate::driver::replies::Replies;

/// Runs a process, hands its output over as it comes, and gives its end. When the future is dropped, the process
/// group is killed.
pub(crate) async fn run(
    spec: ProcSpec,
    replies: &Replies,
    cancel: &CancelToken,
) -> Result<ProcExit, IoFault> {
    cancel.check()?;
    let mut spill = spec.spill.clone().map(Spill::new);
    let (signal, cancelled) = bounded(1);
    let _hook = cancel.on_cancel(move || {
        let _ = signal.try_send(());
    });
    let given_up = async {
        let _ = cancelled.recv().await;
        Err(IoFault::cancelled())
    };
    // To fork takes its time in a large program, and all threads may be taken.
    let mut pump = or(given_up, unblock(move || process::start(&spec))).await?;
    let mut watch =
        Watch::new(&pump, cancelled).map_err(|e| fault::of(&e, "cannot watch a child process"))?;
    while !pump.ended() {
        if let Some(limit) = pump.gathering() {
            watch.gather(limit).await;
        }
        let ready = watch.next(&pump).await;
        if ready.cancel {
            pump.kill();
        }
        let mut pieces = Vec::new();
        // Once the child has gone, everything that it left is there to be read; so it is when a limit runs out.
        pump.read(
            |at| ready.exit || ready.due || ready.pipes.get(at) == Some(&true),
            &mut |stream, mut bytes: Vec<u8>| {
                bytes.shrink_to_fit();
                pieces.push((stream, bytes));
            },
        );
        pump.look(ready.exit);
        for (stream, bytes) in pieces {
            let bytes = match spill.take() {
                Some(mut filed) if filed.is_filed() => {
                    let (filed, bytes) = unblock(move || {
                        filed.push(&bytes);
                        (filed, bytes)
                    })
                    .await;
                    spill = Some(filed);
                    bytes
                }
                Some(mut held) => {
                    held.push(&bytes);
                    spill = Some(held);
                    bytes
                }
                None => bytes,
            };
            replies.give(Reply::Chunk { stream, bytes }).await;
        }
    }
    let mut exit = pump.finish();
    exit.spill = spill.and_then(Spill::finish);
    Ok(exit)
}

type Watched = Async<Arc<OwnedFd>>;

/// What a pump waits for.
struct Watch {
    pipes: Vec<(Stream, Watched)>,
    exit: Option<Watched>,
    cancelled: Pin<Box<Receiver<()>>>,
    /// A cancel that came while output gathered.
    cancel: bool,
    due: Option<(Instant, Timer)>,
}

/// What came.
struct Ready {
    cancel: bool,
    exit: bool,
    due: bool,
    pipes: Vec<bool>,
}

impl Watch {
    fn new(pump: &Pump, cancelled: Receiver<()>) -> std::io::Result<Self> {
        let watched = |fd: &Arc<OwnedFd>| Async::new(Arc::clone(fd));
        let pipes = pump.pipes().iter().map(|(stream, fd)| Ok((*stream, watched(fd)?)));
        Ok(Self {
            pipes: pipes.collect::<std::io::Result<_>>()?,
            exit: pump.exit_fd().map(watched).transpose()?,
            cancelled: Box::pin(cancelled),
            cancel: false,
            due: None,
        })
    }

    /// Lets output gather for a moment, unless the op is cancelled.
    async fn gather(&mut self, limit: Duration) {
        let pause = async {
            Timer::after(limit).await;
            false
        };
        let cancelled = async { self.cancelled.recv().await.is_ok() };
        self.cancel |= or(pause, cancelled).await;
    }

    async fn next(&mut self, pump: &Pump) -> Ready {
        let open = pump.pipes();
        self.pipes.retain(|(_, own)| open.iter().any(|(_, fd)| Arc::ptr_eq(fd, own.get_ref())));
        if pump.exit_fd().is_none() {
            self.exit = None;
        }
        if self.due.as_ref().map(|(due, _)| *due) != pump.due() {
            self.due = pump.due().map(|due| (due, Timer::at(due)));
        }
        poll_fn(|cx| self.poll(cx, pump.is_killed())).await
    }

    fn poll(&mut self, cx: &mut Context<'_>, killed: bool) -> Poll<Ready> {
        let mut ready = Ready {
            due: false,
            cancel: take(&mut self.cancel) || (!killed && self.cancelled.as_mut().poll_next(cx).is_ready()),
            exit: self.exit.as_ref().is_some_and(|exit| exit.poll_readable(cx).is_ready()),
            pipes: self.pipes.iter().map(|(_, pipe)| pipe.poll_readable(cx).is_ready()).collect(),
        };
        ready.due = match &mut self.due {
            Some((_, timer)) => pin!(timer).poll(cx).is_ready(),
            None => false,
        };
        if ready.due {
            self.due = None;
        }
        if ready.due || ready.cancel || ready.exit || ready.pipes.contains(&true) {
            Poll::Ready(ready)
        } else {
            Poll::Pending
        }
    }
}
