//! What a client can choose for a session: the mode, the model, how much it thinks.

use std::sync::Arc;

use tau_core::json::Writer;
use tau_core::model::{Model, ThinkingLevel};
use tau_core::permissions::PermissionMode;

use super::message::Refusal;
use super::seat::Seat;
use crate::mode::pipe::seat::{available, change_model, change_thinking, model, thinking};

const MODEL: &str = "model";
const THINKING: &str = "thinking";

/// Modes: what they are called, and what they mean.
const MODES: [(PermissionMode, &str, &str); 3] = [
    (PermissionMode::Ask, "Ask", "Asks before files are changed and commands run"),
    (PermissionMode::AcceptEdits, "Accept edits", "Changes files of the workspace, asks before commands run"),
    (PermissionMode::Auto, "Auto", "Asks nothing"),
];

/// Writes the modes of a session.
pub(super) fn modes(current: PermissionMode, w: &mut Writer) {
    w.begin_object();
    w.field_str("currentModeId", current.name());
    w.key("availableModes");
    w.begin_array();
    for (mode, name, description) in MODES {
        w.begin_object();
        w.field_str("id", mode.name());
        w.field_str("name", name);
        w.field_str("description", description);
        w.end_object();
    }
    w.end_array();
    w.end_object();
}

fn id_of(model: &Model) -> String {
    format!("{}/{}", model.provider, model.id)
}

impl Seat {
    /// Writes what can be chosen besides the mode.
    pub(super) fn write_options(&mut self, w: &mut Writer) {
        let models = available(&mut self.workshop.access);
        let (current, level) = (model(&self.engine), thinking(&self.engine));
        w.begin_array();
        if !models.is_empty() && !current.is_placeholder() {
            begin(MODEL, "Model", "model", &id_of(&current), w);
            // One that was named on the command line may be none of the others.
            let is_current = |model: &Model| model.provider == current.provider && model.id == current.id;
            let extra = (!models.iter().any(is_current)).then_some(&*current);
            for model in extra.into_iter().chain(&models) {
                value(&id_of(model), if model.name.is_empty() { &model.id } else { &model.name }, w);
            }
            end(w);
        }
        if current.reasoning {
            begin(THINKING, "Thinking", "thought_level", level.name(), w);
            current.levels().for_each(|level| value(level.name(), level.name(), w));
            end(w);
        }
        w.end_array();
    }

    /// Follows a choice.
    ///
    /// # Errors
    /// When there is no such option or value.
    pub(super) fn choose(&mut self, option: &str, value: &str) -> Result<(), Refusal> {
        match option {
            MODEL => {
                let unknown = || Refusal::params(format!("there is no model {value} that can be used"));
                let found = available(&mut self.workshop.access).into_iter().find(|m| id_of(m) == value);
                let chosen = Arc::new(found.ok_or_else(unknown)?);
                change_model(&self.engine, &self.workshop.base.settings, chosen, None)
                    .map_err(Refusal::internal)
            }
            THINKING => {
                let level = ThinkingLevel::parse(value);
                let has = |level: &ThinkingLevel| model(&self.engine).levels().any(|own| own == *level);
                let unknown = || Refusal::params(format!("this model has no thinking level {value}"));
                let level = level.filter(has).ok_or_else(unknown)?;
                change_thinking(&self.engine, level).map_err(Refusal::internal)
            }
            _ => Err(Refusal::params(format!("there is no option {option}"))),
        }
    }
}

fn begin(id: &str, name: &str, category: &str, current: &str, w: &mut Writer) {
    w.begin_object();
    w.field_str("id", id);
    w.field_str("name", name);
    w.field_str("category", category);
    w.field_str("type", "select");
    w.field_str("currentValue", current);
    w.key("options");
    w.begin_array();
}

fn value(value: &str, name: &str, w: &mut Writer) {
    w.begin_object();
    w.field_str("value", value);
    w.field_str("name", name);
    w.end_object();
}

fn end(w: &mut Writer) {
    w.end_array();
    w.end_object();
}
