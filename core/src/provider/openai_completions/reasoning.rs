//! The fields that tell a server how much to think.

use alloc::borrow::ToOwned;
use alloc::string::String;

use super::compat::{Compat, ThinkingFormat};
use crate::json::{Map, Value};
use crate::model::{Model, ThinkingLevel};
use crate::provider::ThinkingBudgets;
use crate::provider::options::budget_under;

/// What is known about the thinking of one request.
pub(super) struct Thinking<'a> {
    pub(super) model: &'a Model,
    pub(super) compat: &'a Compat,
    /// Clamped level; `None` = off.
    pub(super) effort: Option<ThinkingLevel>,
    pub(super) budgets: &'a ThinkingBudgets,
    /// Output limit of the request.
    pub(super) ceiling: u64,
}

impl Thinking<'_> {
    /// Adds the fields of the format to the body; nothing for models that cannot think.
    pub(super) fn write(&self, body: &mut Map<String, Value>) {
        if !self.model.reasoning {
            return;
        }
        let on = self.effort.is_some();
        match self.compat.thinking_format {
            ThinkingFormat::OpenAi => match self.effort {
                Some(_) => self.effort_field(body),
                None => {
                    if let (true, Some(word)) = (self.compat.reasoning_effort, self.off_word()) {
                        put(body, "reasoning_effort", word);
                    }
                }
            },
            ThinkingFormat::OpenRouter => {
                if let Some(word) = self.word().or_else(|| self.off_or("none")) {
                    put(body, "reasoning", one("effort", word));
                }
            }
            ThinkingFormat::DeepSeek => {
                if on {
                    put(body, "thinking", one("type", "enabled"));
                    self.effort_field(body);
                } else if !self.off_is_unsupported() {
                    put(body, "thinking", one("type", "disabled"));
                }
            }
            ThinkingFormat::Zai => {
                if on {
                    put(body, "thinking", serde_json::json!({"type": "enabled", "clear_thinking": false}));
                    self.effort_field(body);
                } else {
                    put(body, "thinking", one("type", "disabled"));
                }
            }
            ThinkingFormat::Together => {
                put(body, "reasoning", one("enabled", on));
                self.effort_field(body);
            }
            ThinkingFormat::Qwen => {
                put(body, "enable_thinking", on);
                self.effort_field(body);
            }
            ThinkingFormat::QwenChatTemplate => {
                let kwargs = serde_json::json!({"enable_thinking": on, "preserve_thinking": true});
                put(body, "chat_template_kwargs", kwargs);
            }
            ThinkingFormat::ChatTemplate => self.template(body, "chat_template_kwargs"),
            ThinkingFormat::Baseten => {
                self.template(body, "chat_template_args");
                self.effort_field(body);
            }
            ThinkingFormat::StringThinking => {
                if let Some(word) = self.word().or_else(|| self.off_or("none")) {
                    put(body, "thinking", word);
                }
            }
            ThinkingFormat::AntLing => {
                let mapped = self.effort.and_then(|level| self.model.mapped_level(level).flatten());
                if let Some(word) = mapped {
                    put(body, "reasoning", one("effort", word));
                }
            }
        }
        self.budget_field(body);
    }

    /// `reasoning_effort` of a request that thinks, where the server takes it.
    fn effort_field(&self, body: &mut Map<String, Value>) {
        if self.compat.reasoning_effort
            && let Some(word) = self.word()
        {
            put(body, "reasoning_effort", word);
        }
    }

    fn budget_field(&self, body: &mut Map<String, Value>) {
        if let (Some(field), Some(level)) = (&self.compat.thinking_budget_field, self.effort) {
            let budget = budget_under(level, self.budgets, self.ceiling);
            if budget > 0 {
                put(body, field, budget);
            }
        }
    }

    /// The server's word for the level, or its name; `None` when off or mapped to null.
    fn word(&self) -> Option<String> {
        let level = self.effort?;
        match self.model.mapped_level(level) {
            Some(mapped) => mapped.map(ToOwned::to_owned),
            None => Some(level.name().to_owned()),
        }
    }

    /// The server's word for "off".
    fn off_word(&self) -> Option<&str> {
        self.model.mapped_level(ThinkingLevel::Off).flatten()
    }

    fn off_is_unsupported(&self) -> bool {
        self.model.mapped_level(ThinkingLevel::Off) == Some(None)
    }

    /// The word for "off" or a default; `None` when the request thinks or "off" cannot be said.
    fn off_or(&self, default: &str) -> Option<String> {
        let off = self.effort.is_none() && !self.off_is_unsupported();
        off.then(|| self.off_word().unwrap_or(default).to_owned())
    }

    /// Configured arguments of the chat template with variables put in.
    fn template(&self, body: &mut Map<String, Value>, field: &str) {
        let Some(template) = &self.compat.chat_template else { return };
        let mut filled = Map::new();
        for (name, value) in template {
            let value = match value.get("$var").and_then(Value::as_str) {
                Some(variable) => {
                    let omit = value.get("omitWhenOff").and_then(Value::as_bool).unwrap_or(false);
                    if omit && self.effort.is_none() {
                        continue;
                    }
                    self.variable(variable)
                }
                None => Some(value.clone()),
            };
            if let Some(value) = value {
                filled.insert(name.clone(), value);
            }
        }
        put(body, field, Value::Object(filled));
    }

    fn variable(&self, name: &str) -> Option<Value> {
        match name {
            "thinking.enabled" => Some(self.effort.is_some().into()),
            "thinking.effort" => self
                .word()
                .or_else(|| self.effort.is_none().then(|| self.off_word().map(Into::into))?)
                .map(Into::into),
            "thinking.budget" => {
                let budget = budget_under(self.effort?, self.budgets, self.ceiling);
                (budget > 0).then(|| budget.into())
            }
            _ => None,
        }
    }
}

fn put(body: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    body.insert(key.to_owned(), value.into());
}

fn one(key: &str, value: impl Into<Value>) -> Value {
    Value::Object([(key.to_owned(), value.into())].into_iter().collect())
}
