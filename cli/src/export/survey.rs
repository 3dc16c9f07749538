//! What the top of a page tells about all of a session: counts, models, the first words of messages.

use tau_core::message::{AssistantMessage, Message};
use tau_core::session::EntryBody;
use tau_core::session::stats::Stats;
use tau_core::session::tree::Slot;

use super::source::Source;

/// Characters of a preview.
const PREVIEW: usize = 80;

/// Most models that are named.
const MOST_MODELS: usize = 12;

/// Found in one pass over all entries.
#[derive(Debug, Default)]
pub struct Survey {
    /// Counts, tokens and cost.
    pub stats: Stats,
    /// Models that answered, `provider/id`, in order.
    pub models: Vec<String>,
    /// Beginnings of messages of people, in the order of the file.
    previews: Vec<(Slot, String)>,
}

impl Survey {
    /// Reads every entry once.
    #[must_use]
    pub fn of(source: &Source) -> Self {
        let mut survey = Self::default();
        for slot in source.tree().slots() {
            let Some(body) = source.body(slot) else { continue };
            survey.stats.add(&body);
            if let EntryBody::Message(message) = &*body {
                survey.message(slot, message);
            }
        }
        survey
    }

    fn message(&mut self, slot: Slot, message: &Message) {
        match message {
            Message::User(user) => {
                let line =
                    user.content.texts().flat_map(str::lines).map(str::trim).find(|line| !line.is_empty());
                self.previews.push((slot, cut(line.unwrap_or("(no text)"), PREVIEW)));
            }
            Message::Assistant(AssistantMessage { provider, model, .. }) => {
                let name = format!("{provider}/{model}");
                if self.models.len() < MOST_MODELS && !self.models.contains(&name) {
                    self.models.push(name);
                }
            }
            _ => {}
        }
    }

    /// The beginning of a message; `None` = it is not one of a person.
    #[must_use]
    pub fn preview(&self, slot: Slot) -> Option<&str> {
        let at = self.previews.binary_search_by_key(&slot, |(own, _)| *own).ok()?;
        self.previews.get(at).map(|(_, words)| words.as_str())
    }

    /// The beginning of the first message of a person among some entries.
    #[must_use]
    pub fn first_words(&self, slots: &[Slot]) -> Option<&str> {
        slots.iter().find_map(|slot| self.preview(*slot))
    }
}

/// At most `most` characters, with a mark where something is left out.
#[must_use]
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}
