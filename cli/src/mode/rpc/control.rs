//! Commands about the run and its queues.

use tau_core::input::{Command, QueueMode};
use tau_core::json::Writer;
use tau_core::message::Block;

use super::call::Call;
use super::commands::Answer;
use super::{Rpc, text_of};
use crate::bootstrap::image_limits;
use crate::mode::pipe::seat;
use crate::{outputs, resources};

const STARTED: &str = r#"{"disposition":"started"}"#;
const QUEUED: &str = r#"{"disposition":"queued"}"#;

/// What to do with a prompt while a run is active.
#[derive(Clone, Copy)]
enum Behavior {
    Steer,
    FollowUp,
}

impl Behavior {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "steer" => Some(Self::Steer),
            "followUp" => Some(Self::FollowUp),
            _ => None,
        }
    }

    const fn command(self, text: String, images: Vec<Block>) -> Command {
        match self {
            Self::Steer => Command::Steer { text, images },
            Self::FollowUp => Command::FollowUp { text, images },
        }
    }
}

impl Rpc {
    /// Starts a run, or queues the message if one is active and the client said how. One step under the engine's
    /// lock, so that a run cannot end in between. The response of a started run comes before its first event.
    pub(super) fn prompt(&mut self, call: &Call) -> Result<Answer, String> {
        let (text, images) = self.message(call)?;
        let behavior = call.choice("streamingBehavior", "\"steer\" or \"followUp\"", Behavior::parse)?;
        let unusable = self.why_no_prompt();
        let now = self.engine.now();
        let records = self.records.clone();
        let mut message = Some((text, images));
        let started = loop {
            let waits = self.waits();
            let started = self.engine.with_mut(|hub| {
                // What waits for the end of the run before is answered first: it would wait for the end of this one.
                if waits && hub.is_settled() {
                    return Ok(None);
                }
                let (text, images) = message.take().unwrap_or_default();
                if hub.desk().is_active() {
                    let behavior = behavior.ok_or_else(busy)?;
                    hub.command(now, behavior.command(text, images)).map_err(text_of)?;
                    return Ok(Some(false));
                }
                if let Some(why) = &unusable {
                    return Err(why.clone());
                }
                hub.command(now, Command::Prompt { text, images }).map_err(text_of)?;
                records.success(&call.subject, Some(STARTED));
                Ok::<_, String>(Some(true))
            })?;
            match started {
                Some(started) => break started,
                None => self.settled(),
            }
        };
        if !started {
            return Ok(Answer::Data(QUEUED.into()));
        }
        if !std::mem::replace(&mut self.swept, true) {
            // The answer is under way; there is time for housekeeping.
            outputs::sweep();
        }
        Ok(Answer::Sent)
    }

    pub(super) fn steer(&mut self, call: &Call) -> Result<Answer, String> {
        self.queue(call, Behavior::Steer)
    }

    pub(super) fn follow_up(&mut self, call: &Call) -> Result<Answer, String> {
        self.queue(call, Behavior::FollowUp)
    }

    fn queue(&self, call: &Call, behavior: Behavior) -> Result<Answer, String> {
        let (text, images) = self.message(call)?;
        self.tell(behavior.command(text, images))?;
        Ok(Answer::Data(QUEUED.into()))
    }

    /// The message of a command: skills and templates put in place, images made fit for a model.
    fn message(&self, call: &Call) -> Result<(String, Vec<Block>), String> {
        let mut text = resources::expand(call.text("message")?.to_owned(), &self.resources);
        let limits = image_limits(&self.workshop.base.settings);
        let mut images = call.images()?;
        seat::fit_images(&mut text, &mut images, &limits).map_err(|why| format!("{}: {why}", call.name))?;
        Ok((text, images))
    }

    /// Ends the run; answered when it has ended. Queued messages stay.
    pub(super) fn abort(&mut self, call: &Call) -> Result<Answer, String> {
        self.tell(Command::Abort)?;
        self.aborts.push(call.subject.clone());
        Ok(Answer::Sent)
    }

    pub(super) fn clear_queue(&mut self, _: &Call) -> Result<Answer, String> {
        let now = self.engine.now();
        let json = self.engine.with_mut(|hub| {
            let mut w = Writer::new();
            let (steering, follow_up) = hub.desk().queued();
            w.begin_object();
            for (key, texts) in [("steering", steering), ("followUp", follow_up)] {
                w.key(key);
                w.begin_array();
                texts.iter().for_each(|text| w.str(text));
                w.end_array();
            }
            w.end_object();
            hub.command(now, Command::ClearQueues).map(|()| w.into_string())
        });
        json.map(Answer::Data).map_err(text_of)
    }

    pub(super) fn set_steering_mode(&mut self, call: &Call) -> Result<Answer, String> {
        let mode = mode(call)?;
        self.tell(Command::SetSteeringMode(mode))?;
        self.keep(&["steeringMode"], mode.name().into());
        Ok(Answer::Done)
    }

    pub(super) fn set_follow_up_mode(&mut self, call: &Call) -> Result<Answer, String> {
        let mode = mode(call)?;
        self.tell(Command::SetFollowUpMode(mode))?;
        self.keep(&["followUpMode"], mode.name().into());
        Ok(Answer::Done)
    }

    pub(super) fn set_session_name(&mut self, call: &Call) -> Result<Answer, String> {
        self.tell(Command::SetName(call.text("name")?.to_owned()))?;
        Ok(Answer::Done)
    }
}

fn mode(call: &Call) -> Result<QueueMode, String> {
    let mode = call.choice("mode", "\"all\" or \"one-at-a-time\"", QueueMode::parse)?;
    mode.ok_or_else(|| format!("{} needs the field \"mode\"", call.name))
}

fn busy() -> String {
    "a run is active: give \"streamingBehavior\" (\"steer\" or \"followUp\") to queue the message, or abort first".into()
}
