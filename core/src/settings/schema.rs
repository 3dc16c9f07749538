//! Typed access to settings: defaults, coercion, clamping (spec 40 §4.2). Values of a wrong type count as absent
//! unless said otherwise.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::kind::{count, milliseconds};
use super::merge::Scope;
use crate::input::QueueMode;
use crate::json::{Map, Value};
use crate::model::ThinkingLevel;
use crate::path::{self, Style};
use crate::provider::ThinkingBudgets;

/// Tools that are active when nothing is configured, in order (spec 50 §7.3).
pub const DEFAULT_TOOLS: [&str; 4] = ["read", "bash", "edit", "write"];

/// Merged settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub(super) global: Map<String, Value>,
    pub(super) project: Map<String, Value>,
    pub(super) effective: Map<String, Value>,
}

/// Whether a project that nobody decided about is trusted (spec 40 §4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProjectTrust {
    /// Ask where someone can answer; otherwise do not trust.
    #[default]
    Ask,
    /// Trust.
    Always,
    /// Do not trust.
    Never,
}

/// Retries of the session layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// Whether failed runs are tried again.
    pub enabled: bool,
    /// How often.
    pub max_retries: u64,
    /// First wait, ms.
    pub base_delay_ms: u64,
    /// Longest wait, ms.
    pub max_agent_delay_ms: u64,
}

/// Retries and limits of one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProviderRetry {
    /// Limit of a request, ms.
    pub timeout_ms: Option<u64>,
    /// How often a request is sent again.
    pub max_retries: Option<u64>,
    /// Longest wait the server may ask for, ms.
    pub max_retry_delay_ms: u64,
}

/// How images are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageSettings {
    /// Scale large images down.
    pub auto_resize: bool,
    /// Send no images at all.
    pub block: bool,
}

impl Settings {
    pub(super) const fn new(
        global: Map<String, Value>,
        project: Map<String, Value>,
        effective: Map<String, Value>,
    ) -> Self {
        Self { global, project, effective }
    }

    /// The entries of a list of resources, such as `skills` or `prompts`, in the file of one scope: these lists are
    /// not merged, because their paths are relative to different folders (spec 40 §4.1).
    #[must_use]
    pub fn resources(&self, scope: Scope, list: &str) -> Vec<&str> {
        let own = if scope == Scope::Global { &self.global } else { &self.project };
        let entries = own.get(list).and_then(Value::as_array);
        entries.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The settings of one file, as they were read.
    #[must_use]
    pub const fn of(&self, scope: Scope) -> &Map<String, Value> {
        match scope {
            Scope::Global => &self.global,
            Scope::Project => &self.project,
        }
    }

    /// All merged settings.
    #[must_use]
    pub const fn effective(&self) -> &Map<String, Value> {
        &self.effective
    }

    /// A merged value by path, e.g. `["retry", "enabled"]`.
    #[must_use]
    pub fn get(&self, path: &[&str]) -> Option<&Value> {
        lookup(&self.effective, path)
    }

    fn text(&self, path: &[&str]) -> Option<&str> {
        self.get(path)?.as_str()
    }

    fn flag(&self, path: &[&str], default: bool) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or(default)
    }

    /// A whole number that is not negative; fractions are cut.
    fn number(&self, path: &[&str]) -> Option<u64> {
        count(self.get(path)?)
    }

    /// `defaultProvider`.
    #[must_use]
    pub fn default_provider(&self) -> Option<&str> {
        self.text(&["defaultProvider"])
    }

    /// `defaultModel`.
    #[must_use]
    pub fn default_model(&self) -> Option<&str> {
        self.text(&["defaultModel"])
    }

    /// `defaultThinkingLevel`, if it names a level.
    #[must_use]
    pub fn default_thinking_level(&self) -> Option<ThinkingLevel> {
        self.text(&["defaultThinkingLevel"]).and_then(ThinkingLevel::parse)
    }

    /// `modelThinkingLevels["provider/id"]`.
    #[must_use]
    pub fn model_thinking_level(&self, provider: &str, id: &str) -> Option<ThinkingLevel> {
        self.text(&["modelThinkingLevels", &format!("{provider}/{id}")]).and_then(ThinkingLevel::parse)
    }

    /// `thinkingBudgets`, tokens.
    #[must_use]
    pub fn thinking_budgets(&self) -> ThinkingBudgets {
        let budget = |level| self.number(&["thinkingBudgets", level]);
        ThinkingBudgets {
            minimal: budget("minimal"),
            low: budget("low"),
            medium: budget("medium"),
            high: budget("high"),
        }
    }

    /// `enabledModels`: scope patterns.
    #[must_use]
    pub fn enabled_models(&self) -> Vec<&str> {
        let list = self.get(&["enabledModels"]).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// `steeringMode`.
    #[must_use]
    pub fn steering_mode(&self) -> QueueMode {
        self.text(&["steeringMode"]).and_then(QueueMode::parse).unwrap_or_default()
    }

    /// `followUpMode`.
    #[must_use]
    pub fn follow_up_mode(&self) -> QueueMode {
        self.text(&["followUpMode"]).and_then(QueueMode::parse).unwrap_or_default()
    }

    /// `sessionDir`, as written.
    #[must_use]
    pub fn session_dir(&self) -> Option<&str> {
        self.text(&["sessionDir"])
    }

    /// `shellPath` with a leading `~` or a `file:` URL expanded.
    #[must_use]
    pub fn shell_path(&self, home: Option<&str>) -> Option<String> {
        let path = self.text(&["shellPath"])?;
        let expanded = home.and_then(|home| path::expand(path, home, Style::Posix).ok());
        Some(expanded.unwrap_or_else(|| path.to_string()))
    }

    /// `shellCommandPrefix`.
    #[must_use]
    pub fn shell_command_prefix(&self) -> Option<&str> {
        self.text(&["shellCommandPrefix"])
    }

    /// `httpProxy`, of the global file only.
    #[must_use]
    pub fn http_proxy(&self) -> Option<&str> {
        lookup(&self.global, &["httpProxy"])?.as_str().map(str::trim).filter(|proxy| !proxy.is_empty())
    }

    /// `httpIdleTimeoutMs`: longest silence of a server, ms; 0 = no limit.
    ///
    /// # Errors
    /// What is wrong with the value; [`Self::HTTP_IDLE_TIMEOUT_MS`] is the value to go on with.
    pub fn http_idle_timeout_ms(&self) -> Result<u64, String> {
        self.get(&["httpIdleTimeoutMs"]).map_or(Ok(Self::HTTP_IDLE_TIMEOUT_MS), milliseconds)
    }

    /// Default of `httpIdleTimeoutMs`.
    pub const HTTP_IDLE_TIMEOUT_MS: u64 = 300_000;

    /// `retry.*`.
    #[must_use]
    pub fn retry(&self) -> Retry {
        Retry {
            enabled: self.flag(&["retry", "enabled"], true),
            max_retries: self.number(&["retry", "maxRetries"]).unwrap_or(3),
            base_delay_ms: self.number(&["retry", "baseDelayMs"]).unwrap_or(2000),
            max_agent_delay_ms: self.number(&["retry", "maxAgentDelayMs"]).unwrap_or(60_000),
        }
    }

    /// `retry.provider.*`.
    #[must_use]
    pub fn provider_retry(&self) -> ProviderRetry {
        ProviderRetry {
            timeout_ms: self.number(&["retry", "provider", "timeoutMs"]),
            max_retries: self.number(&["retry", "provider", "maxRetries"]),
            max_retry_delay_ms: self.number(&["retry", "provider", "maxRetryDelayMs"]).unwrap_or(60_000),
        }
    }

    /// `retry.provider.totalTimeoutMs`: longest time of one request with its whole reply, ms; 0 = no limit.
    #[must_use]
    pub fn total_timeout_ms(&self) -> u64 {
        self.number(&["retry", "provider", "totalTimeoutMs"]).unwrap_or_default()
    }

    /// `compaction.enabled`.
    #[must_use]
    pub fn compaction_enabled(&self) -> bool {
        self.flag(&["compaction", "enabled"], true)
    }

    /// `images.*`.
    #[must_use]
    pub fn images(&self) -> ImageSettings {
        ImageSettings {
            auto_resize: self.flag(&["images", "autoResize"], true),
            block: self.flag(&["images", "blockImages"], false),
        }
    }

    /// `defaultProjectTrust`, of the global file only: a project cannot grant itself trust.
    #[must_use]
    pub fn default_project_trust(&self) -> ProjectTrust {
        match lookup(&self.global, &["defaultProjectTrust"]).and_then(Value::as_str) {
            Some("always") => ProjectTrust::Always,
            Some("never") => ProjectTrust::Never,
            _ => ProjectTrust::Ask,
        }
    }

    /// `defaultTools`: plain names select, then `+name` and `-name` change the selection in order (the default one
    /// when only modifiers are given). `None` = not configured.
    #[must_use]
    pub fn default_tools(&self) -> Option<Vec<String>> {
        let configured = self.get(&["defaultTools"])?;
        let Value::Array(list) = configured else { return Some(Vec::new()) };
        let entries: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
        let only_modifiers = !list.is_empty() && entries.iter().all(|entry| entry.starts_with(['+', '-']));
        let mut active: Vec<String> = if only_modifiers {
            DEFAULT_TOOLS.iter().map(ToString::to_string).collect()
        } else {
            let plain = entries.iter().filter(|entry| !entry.starts_with(['+', '-']));
            plain.map(ToString::to_string).collect()
        };
        for entry in entries {
            if let Some(name) = entry.strip_prefix('+').filter(|name| !name.is_empty()) {
                if !active.iter().any(|tool| tool == name) {
                    active.push(name.to_string());
                }
            } else if let Some(name) = entry.strip_prefix('-') {
                active.retain(|tool| tool != name);
            }
        }
        Some(active)
    }
}

fn lookup<'a>(settings: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(settings.get(*first)?, |value, key| value.get(*key))
}
