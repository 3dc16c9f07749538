//! The ops of one driver that run, as futures.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Context;

use smol::channel::Sender;
use smol::unblock;
use tau_core::agent::HookCall;
use tau_core::ids::OpId;
use tau_core::input::Reply;
use tau_core::op::{Op, Outcome};
use tau_io_std::machine::Machine;
use tau_io_std::sys::{self, CancelToken};

use super::Shared;
use super::replies::Replies;
use super::state::Job;
use crate::process;

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Few at a time: looking at each of them costs less than a waker for each.
#[derive(Default)]
pub(super) struct Ops(Vec<(OpId, Running)>);

impl Ops {
    pub(super) fn add(&mut self, op: OpId, running: Running) {
        self.0.push((op, running));
    }

    /// Ends an op where it is.
    pub(super) fn drop(&mut self, op: OpId) {
        self.0.retain(|(own, _)| *own != op);
    }

    /// Lets all of them go on.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        self.0.retain_mut(|(_, running)| running.as_mut().poll(cx).is_pending());
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
    }
}

/// Tells work on another thread that nobody waits for it any more.
struct TellOnDrop(CancelToken);

impl Drop for TellOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// The future of one op; its last act is the last reply.
pub(super) fn begin<M: Machine>(
    shared: &Arc<Shared<M>>,
    job: Job,
    sender: &Sender<(OpId, Reply)>,
) -> Running {
    let Job { op, what, cancel, begun } = job;
    let replies = Replies::new(op, sender.clone());
    let shared = Arc::clone(shared);
    match what {
        Op::Http(request) => Box::pin(async move {
            let last = sys::last(
                shared.http.observed(&request, &replies, shared.handlers.exchange.as_deref()).await,
            );
            replies.give(last).await;
        }),
        Op::Proc(spec) => Box::pin(async move {
            let last = sys::last(process::run(spec, &replies, &cancel).await.map(Outcome::Exit));
            replies.give(last).await;
        }),
        what => Box::pin(async move {
            let partial = replies.clone();
            let _told = TellOnDrop(cancel.clone());
            let last = unblock(move || {
                if begun.swap(true, Ordering::SeqCst) {
                    // Cancelled and answered before there was a thread for it.
                    return None;
                }
                let mut partial = |reply| partial.give_blocking(reply);
                Some(match &what {
                    Op::Secret(secret) => Reply::Done((shared.handlers.secret)(secret.clone())),
                    Op::Host(call) => {
                        let mut update = |output| partial(Reply::Update(output));
                        Reply::Done((shared.handlers.host)(call.clone(), &mut update, &cancel))
                    }
                    Op::Hook(call) => {
                        let answer = (shared.handlers.hook)(HookCall::clone(call), &cancel);
                        Reply::Done(Outcome::Hook(Box::new(answer)))
                    }
                    other => sys::last(sys::run(other, &mut partial, &cancel)),
                })
            });
            if let Some(last) = last.await {
                replies.give(last).await;
            }
        }),
    }
}
