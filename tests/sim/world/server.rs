//! The model server: what comes back for a request, piece by piece. It has a limit of its own, and tells of it in one
//! of the ways that servers have.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tau_core::compaction::prompts;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::input::Reply;
use tau_core::op::{Outcome, Stream};

use super::dice::Dice;
use super::model::{self, Answer};

/// How servers say that a request does not fit.
const TOO_LARGE: [&str; 8] = [
    "prompt is too long: 210000 tokens > 200000 maximum",
    "This model's maximum context length is 8192 tokens, your messages have 9000",
    "the input token count (90000) exceeds the maximum number of tokens allowed",
    "Please reduce the length of the messages or completion",
    "the request exceeds the available context size, try to increase it",
    "context_length_exceeded",
    "Your input exceeds the context window of this model",
    "too large for model with 32768 maximum context length",
];

/// Failures that pass, and some that do not.
const FAILURES: [(u16, &str); 8] = [
    (400, "no such parameter"),
    (401, "no"),
    (429, "slow down"),
    (429, "too many tokens per minute, this is a rate limit"),
    (429, "insufficient_quota"),
    (500, "internal error"),
    (503, "service unavailable"),
    (529, "busy"),
];

/// What a server does with a request that is too large.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    Status(u16),
    InStream,
    /// Nothing is said; usage tells.
    Silent,
    /// The input is cut to fit; nothing is left for an answer.
    Cut,
}

pub(crate) struct Server {
    /// Largest request it takes, tokens, for each model.
    limits: [u64; 2],
    refusal: Refusal,
    talk: u64,
}

impl Server {
    pub(crate) fn new(windows: [u64; 2], talk: u64, rng: &mut Dice) -> Self {
        // Some models take less than is said of them, some more.
        let share = [10, 10, 7, 20][rng.below(4) as usize];
        let refusal =
            [Refusal::Status(400), Refusal::Status(413), Refusal::InStream, Refusal::Silent, Refusal::Cut]
                [rng.below(5) as usize];
        Self { limits: windows.map(|window| window * share / 10), refusal, talk }
    }

    /// What comes of a request, in order; `None` = nothing ever.
    pub(crate) fn answer(
        &self,
        rng: &mut Dice,
        round: u64,
        body: &Value,
        len: usize,
    ) -> Option<VecDeque<Reply>> {
        let model = usize::from(body["model"] == "m2");
        let (tokens, limit) = (len as u64 / 4, self.limits[model]);
        let is_summary = is_summary(body);
        match rng.below(if is_summary { 16 } else { 30 }) {
            0 => return None,
            1 => return Some([reset(FaultKind::Connect)].into()),
            2 => {
                let (status, said) = FAILURES[rng.below(8) as usize];
                let wait = [None, None, Some("1"), Some("7200")][rng.below(4) as usize];
                return Some(refused(status, said, wait));
            }
            3 if rng.below(3) == 0 => return Some(refused(400, too_large(rng), None)),
            _ => {}
        }
        let mut answer = if is_summary {
            model::summary(rng, round, self.talk)
        } else {
            model::reply(rng, round, body, self.talk)
        };
        if tokens > limit {
            match self.refusal {
                Refusal::Status(status) => return Some(refused(status, too_large(rng), None)),
                Refusal::InStream => answer = model::failure(too_large(rng)),
                // What is said of the window is what the client compares with.
                Refusal::Silent => answer.usage(2 * limit + tokens, 5),
                Refusal::Cut => answer = model::cut(limit),
            }
        } else if rng.below(4) > 0 {
            answer.usage(tokens, 5);
        } else if rng.below(2) == 0 {
            answer.usage(10, 5);
        }
        Some(pieces(rng, &answer))
    }
}

/// Whether somebody asks for a summary.
pub(crate) fn is_summary(body: &Value) -> bool {
    body["messages"][0]["content"] == prompts::SYSTEM
}

fn too_large(rng: &mut Dice) -> &'static str {
    TOO_LARGE[rng.below(TOO_LARGE.len() as u64) as usize]
}

fn reset(kind: FaultKind) -> Reply {
    Reply::Failed(IoFault::new(kind, "connection reset"))
}

fn head(status: u16, wait: Option<&str>) -> Reply {
    let mut headers = vec![("content-type".into(), "text/event-stream".into())];
    headers.extend(wait.map(|wait| ("retry-after".into(), wait.into())));
    Reply::Head { status, headers }
}

fn refused(status: u16, said: &str, wait: Option<&str>) -> VecDeque<Reply> {
    let bytes = json!({"error": {"message": said}}).to_string().into_bytes();
    [head(status, wait), Reply::Chunk { stream: Stream::Body, bytes }, Reply::Done(Outcome::BodyEnd)].into()
}

/// The answer in pieces; it may break off.
fn pieces(rng: &mut Dice, answer: &Answer) -> VecDeque<Reply> {
    let bytes = answer.bytes(rng);
    let mut replies = VecDeque::from([head(200, None)]);
    let mut rest = bytes.as_slice();
    let cut = (rng.below(20) == 0).then(|| rng.below(bytes.len() as u64) as usize);
    // Long answers do not come in more pieces than short ones.
    let piece = 200.max(bytes.len() as u64 / 16);
    let mut sent = 0;
    while !rest.is_empty() {
        let len = (1 + rng.below(piece) as usize).min(rest.len());
        let (piece, tail) = rest.split_at(len);
        replies.push_back(Reply::Chunk { stream: Stream::Body, bytes: piece.to_vec() });
        rest = tail;
        sent += len;
        if cut.is_some_and(|cut| sent >= cut) {
            replies.push_back(reset(FaultKind::Reset));
            return replies;
        }
    }
    replies.push_back(Reply::Done(Outcome::BodyEnd));
    replies
}
