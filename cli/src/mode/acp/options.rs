//! What a client can choose for a session: the mode, the model, how much it thinks.

use std::sync::Arc;

use tau_core::json::Writer;
use tau_core::model::{Model, ThinkingLevel};
use tau_core::permissions::PermissionMode;

use super::message::Refusal;
use super::seat::Seat;
use crate::mode::pipe::seat::{available, change_model, change_thinking, model, thinking};

/// The option that is also told as the modes of a session, for clients that do not know options.
pub(super) const MODE: &str = "mode";
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
    /// What can be chosen, as JSON.
    pub(super) fn options(&mut self) -> String {
        let mut writer = Writer::new();
        let w = &mut writer;
        let models = available(&mut self.workshop.access);
        let (current, level) = (model(&self.engine), thinking(&self.engine));
        w.begin_array();
        begin(MODE, "Mode", "mode", self.gate.rules().mode().name(), w);
        for (mode, name, description) in MODES {
            value(mode.name(), name, Some(description), w);
        }
        end(w);
        if !models.is_empty() && !current.is_placeholder() {
            begin(MODEL, "Model", "model", &id_of(&current), w);
            // One that was named on the command line may be none of the others.
            let is_current = |model: &Model| model.provider == current.provider && model.id == current.id;
            let extra = (!models.iter().any(is_current)).then_some(&*current);
            for model in extra.into_iter().chain(&models) {
                value(&id_of(model), if model.name.is_empty() { &model.id } else { &model.name }, None, w);
            }
            end(w);
        }
        if current.reasoning {
            begin(THINKING, "Thinking", "thought_level", level.name(), w);
            current.levels().for_each(|level| value(level.name(), level.name(), None, w));
            end(w);
        }
        w.end_array();
        writer.into_string()
    }

    /// Follows a choice.
    ///
    /// # Errors
    /// When there is no such option or value.
    pub(super) fn choose(&mut self, option: &str, value: &str) -> Result<(), Refusal> {
        match option {
            MODE => self.choose_mode(value),
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

impl Seat {
    /// Follows the choice of a mode.
    ///
    /// # Errors
    /// When there is no such mode.
    pub(super) fn choose_mode(&self, name: &str) -> Result<(), Refusal> {
        let mode = PermissionMode::parse(name);
        let mode = mode.ok_or_else(|| Refusal::params(format!("there is no mode {name}")))?;
        self.gate.rules().set_mode(mode);
        Ok(())
    }

    /// Tells the client of a mode that it chose as an option.
    pub(super) fn tell_mode(&self) {
        let mode = self.gate.rules().mode().name();
        self.client.update(&self.id, "current_mode_update", |w| w.field_str("currentModeId", mode));
        self.client.flush();
    }

    /// Tells the client of all options.
    pub(super) fn tell_options(&mut self) {
        let options = self.options();
        self.client.update(&self.id, "config_option_update", |w| {
            w.key("configOptions");
            w.raw(&options);
        });
        self.client.flush();
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

fn value(value: &str, name: &str, description: Option<&str>, w: &mut Writer) {
    w.begin_object();
    w.field_str("value", value);
    w.field_str("name", name);
    w.field_opt_str("description", description);
    w.end_object();
}

fn end(w: &mut Writer) {
    w.end_array();
    w.end_object();
}
