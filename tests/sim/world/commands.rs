//! What a person or program asks for, at any time or while nothing goes on.

use std::sync::Arc;

use tau_core::harness::SummaryWish;
use tau_core::input::{Command, Deliver, HostNote};
use tau_core::message::{Content, CustomMessage};
use tau_core::model::ThinkingLevel;

use super::World;

impl World {
    /// Anything, whether it fits or not.
    pub(super) fn any_command(&mut self) {
        let text = format!("note {}", self.rng.below(1_000));
        let command = match self.rng.below(24) {
            0 => Command::Steer { text, images: Vec::new() },
            1 => Command::FollowUp { text, images: Vec::new() },
            2 => Command::Abort,
            3 => Command::ClearQueues,
            4 => Command::GracefulStop,
            5 => Command::Prompt { text, images: Vec::new() },
            6 => Command::AbortShells,
            7 | 8 => self.shell(text),
            9 | 10 => Command::AbortRetry,
            11 | 12 => Command::AbortCompaction,
            13 => Command::Compact { focus: None },
            14 => self.navigation(),
            15 => self.label(),
            16 => Command::SetAutoCompaction(self.rng.below(4) > 0),
            17 => Command::SetAutoRetry(self.rng.below(4) > 0),
            18 | 19 => self.host_note(text),
            20 => self.model(),
            21 => Command::SetThinking([ThinkingLevel::Off, ThinkingLevel::High][self.rng.below(2) as usize]),
            22 => Command::Continue,
            _ => Command::SetName(text),
        };
        self.command(command);
    }

    /// One thing that a person does while nothing goes on, up to its end.
    pub(super) fn turn(&mut self, number: u64) {
        match self.rng.below(24) {
            0 | 1 => self.compact(),
            2 | 3 => self.navigate(),
            4 => self.follow(Self::label),
            5 => self.follow(|world| world.host_note(format!("host {number}"))),
            6 => self.follow(Self::model),
            7 => self.follow(|_| Command::Continue),
            _ => self.follow(|world| {
                let padding = "p".repeat(world.rng.below(world.setup.talk) as usize);
                Command::Prompt { text: format!("prompt {number} {padding}"), images: Vec::new() }
            }),
        }
        self.until_idle();
    }

    fn follow(&mut self, command: impl FnOnce(&mut Self) -> Command) {
        let command = command(self);
        self.command(command);
    }

    /// Compacts; what came of it is known at the end.
    fn compact(&mut self) {
        let focus = (self.rng.below(2) == 0).then(|| "the tests".to_owned());
        let lives = self.lives;
        if self.command(Command::Compact { focus }) {
            self.until_idle();
            // A crash takes the answer with it.
            if lives == self.lives && self.hub.desk().compacted().is_none() {
                self.watch.fail("nobody says what came of a compaction");
            }
        }
    }

    /// Goes to another entry; the leaf is where it is said to be.
    fn navigate(&mut self) {
        let command = self.navigation();
        let Command::Navigate { target, label, .. } = &command else { return };
        let (target, is_labelled, lives) = (target.clone(), label.is_some(), self.lives);
        let before = self.hub.desk().session().leaf_id().map(str::to_owned);
        if !self.command(command) {
            return;
        }
        self.until_idle();
        if lives != self.lives {
            return;
        }
        let desk = self.hub.desk();
        let tree = desk.session().tree();
        let path = tree.path(tree.leaf());
        // Whatever was said meanwhile stands below.
        let is_above =
            |id: Option<&str>| id.is_none_or(|id| tree.find(id).is_some_and(|at| path.contains(&at)));
        let parent = tree.find(&target).and_then(|slot| tree.parent_id(slot));
        let why = match desk.moved() {
            None => Some("nobody says what came of a navigation"),
            Some(Ok(moved)) => {
                let leaf = moved.leaf.as_deref();
                let is_exact = [Some(target.as_str()), parent].contains(&leaf);
                let is_there = is_above(leaf) && (is_exact || is_labelled || moved.summary.is_some());
                (!is_there).then_some("the leaf is elsewhere")
            }
            Some(Err(_)) => {
                (!is_above(before.as_deref())).then_some("a navigation that failed moved the leaf")
            }
        };
        self.watch.seen.saw("navigations");
        if let Some(why) = why {
            self.watch.fail(why);
        }
    }

    fn navigation(&mut self) -> Command {
        let target = self.any_entry();
        let summary = match self.rng.below(4) {
            0 | 1 => Some(SummaryWish::default()),
            2 => Some(SummaryWish { instructions: Some("be brief".into()), replace: true }),
            _ => None,
        };
        let label = (self.rng.below(3) == 0).then(|| "here".to_owned());
        Command::Navigate { target, summary, label }
    }

    fn label(&mut self) -> Command {
        let entry = self.any_entry();
        Command::SetLabel { entry, label: (self.rng.below(3) > 0).then(|| "mark".to_owned()) }
    }

    fn any_entry(&mut self) -> String {
        let count = self.hub.desk().session().tree().len() as u64;
        // Half of the time one of the last.
        let back = if self.rng.below(2) == 0 { self.rng.below(count.min(20)) } else { self.rng.below(count) };
        let tree = self.hub.desk().session().tree();
        tree.slots().rev().nth(back as usize).map_or_else(|| "nobody".into(), |slot| tree.id(slot).to_owned())
    }

    fn host_note(&mut self, text: String) -> Command {
        Command::Host(HostNote {
            message: Box::new(CustomMessage {
                custom_type: "sim".into(),
                content: Content::Text(text.into()),
                display: true,
                details: None,
                timestamp: 0,
            }),
            deliver: [Deliver::Steer, Deliver::FollowUp, Deliver::NextTurn][self.rng.below(3) as usize],
            trigger: [None, Some(true), Some(false)][self.rng.below(3) as usize],
        })
    }

    fn model(&mut self) -> Command {
        let which = self.rng.below(2) as usize;
        Command::SetModel { model: Arc::new(self.setup.model(which)), thinking: None }
    }

    pub(super) fn shell(&mut self, command: String) -> Command {
        // After the end it is refused and brings no event.
        let id = if self.closing { 0 } else { self.watch.new_shell() };
        Command::Shell { id, command, excluded: self.rng.below(2) == 0 }
    }
}
