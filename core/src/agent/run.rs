//! The state of one run: what was done, what waits, what comes next.
//!
//! A run is an agenda of small steps. A step that decides something ([`Task`]) puts further steps at the end; when
//! the agenda is empty the run waits for the world ([`Waiting`]).

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::batch::Batch;
use super::call_ids::CallIds;
use super::hooks::TurnDecision;
use super::machine::Out;
use crate::message::Message;
use crate::tools::Tool;

/// One step of the agenda.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Hand this out.
    Out(Out),
    /// A message begins.
    MessageStart(Arc<Message>),
    /// A message is complete: it joins the transcript, then its event goes out.
    MessageEnd(Arc<Message>),
    /// The turn ends: the error of the reply becomes the agent's, then the event goes out.
    TurnEnd(Arc<Message>, Vec<Arc<Message>>),
    /// Start the call at this place.
    Execute(usize),
    /// Decide something.
    Task(Task),
}

/// Decisions of a run, named after the states of spec 10 §2.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// First poll of the steering queue.
    PollFirst,
    /// Another turn, or the follow-up queue?
    Turn,
    /// Everything for the next turn is known: poll steering if nothing is pending, begin the turn.
    BeginTurn,
    /// Inject what is pending.
    Inject,
    /// Ask for changes, then request.
    PrepareRequest,
    /// Make the request.
    Request,
    /// The reply is complete.
    AssistantDone,
    /// Look at the call at this place.
    Prepare(usize),
    /// Begin the call at this place (its start event), or what follows the last.
    NextCall(usize),
    /// Start all calls that are ready (parallel batch).
    StartReady,
    /// The result of this call, then the next one (sequential batch).
    Result(usize),
    /// All calls are settled: their results (parallel batch).
    Results,
    /// Ask the host what follows.
    FinishTurn,
    /// The turn ended.
    AfterTurn(Option<TurnDecision>),
    /// The last event of the run is out.
    Finished,
}

/// What a run with an empty agenda waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Nothing: there are steps.
    Nothing,
    /// The reply.
    Reply,
    /// Calls that run, or hooks about them.
    Tools,
    /// The answer to a hook.
    Hook,
}

/// One run.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) agenda: VecDeque<Step>,
    pub(super) waiting: Waiting,
    /// Messages of this run, for `agent_end`.
    pub(super) new_messages: Vec<Arc<Message>>,
    /// Messages to inject before the next request.
    pub(super) pending: Vec<Arc<Message>>,
    /// Tools of this run.
    pub(super) tools: Vec<Arc<Tool>>,
    pub(super) aborted: bool,
    /// Tool results need an answer.
    pub(super) more: bool,
    /// A continuation demanded by the host.
    pub(super) forced: bool,
    /// The steering queue was drained to start this run.
    pub(super) skip_first_poll: bool,
    /// A turn was completed before.
    pub(super) had_turn: bool,
    /// The current reply has begun.
    pub(super) started: bool,
    /// Ids of the calls of the current reply.
    pub(super) call_ids: CallIds,
    /// The current reply, complete.
    pub(super) reply: Option<Arc<Message>>,
    pub(super) results: Vec<Arc<Message>>,
    pub(super) batch: Option<Batch>,
    /// End at the next turn boundary.
    pub(super) stop_requested: bool,
}

impl Run {
    pub(super) fn new(tools: Vec<Arc<Tool>>) -> Self {
        Self {
            agenda: VecDeque::new(),
            waiting: Waiting::Nothing,
            new_messages: Vec::new(),
            pending: Vec::new(),
            tools,
            aborted: false,
            more: true,
            forced: false,
            skip_first_poll: false,
            had_turn: false,
            started: false,
            call_ids: CallIds::default(),
            reply: None,
            results: Vec::new(),
            batch: None,
            stop_requested: false,
        }
    }

    pub(super) fn push(&mut self, step: Step) {
        self.agenda.push_back(step);
    }

    pub(super) fn task(&mut self, task: Task) {
        self.push(Step::Task(task));
    }

    /// A message that is complete at once.
    pub(super) fn message(&mut self, message: Arc<Message>) {
        self.push(Step::MessageStart(message.clone()));
        self.push(Step::MessageEnd(message));
    }
}
