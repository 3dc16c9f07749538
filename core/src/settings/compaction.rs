//! Settings of compaction and branch summaries (spec 10 §7, Appendix A). Token counts are checked strictly: a budget
//! that was meant but cannot be understood must not silently become another one.

use alloc::format;
use alloc::string::String;

use super::{Settings, kind};
use crate::json::Value;

/// How the context of one model is kept inside its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Whether it happens by itself; a person can always ask for it.
    pub enabled: bool,
    /// `R`: tokens of the window that stay free.
    pub reserve_tokens: u64,
    /// `K`: tokens of recent messages that are kept word for word; a target, not a limit.
    pub keep_recent_tokens: u64,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self { enabled: true, reserve_tokens: 16_384, keep_recent_tokens: 20_000 }
    }
}

/// `branchSummary.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchSummarySettings {
    /// Tokens of the window that a summary request leaves free.
    pub reserve_tokens: u64,
    /// Leave a branch without asking whether to summarise it.
    pub skip_prompt: bool,
}

impl Settings {
    /// `compaction.*` for one model: its entry in `modelOverrides` (key `provider/id`, case matters), then the
    /// ordinary value, then the default; each field for itself.
    ///
    /// # Errors
    /// Which setting is no whole number from 0 to 2^53 − 1, also when an override hides it.
    pub fn compaction(&self, provider: &str, id: &str) -> Result<CompactionSettings, String> {
        let default = CompactionSettings::default();
        let key = format!("{provider}/{id}");
        let path = ["compaction", "modelOverrides", &key];
        let own = match self.get(&path) {
            Some(Value::Object(fields)) => Some(fields),
            Some(_) => return Err(format!("compaction.modelOverrides[\"{key}\"] must be an object")),
            None => None,
        };
        let tokens = |field: &str, default: u64| -> Result<u64, String> {
            let ordinary = whole(self.get(&["compaction", field]), || format!("compaction.{field}"))?;
            let name = || format!("compaction.modelOverrides[\"{key}\"].{field}");
            let own = whole(own.and_then(|fields| fields.get(field)), name)?;
            Ok(own.or(ordinary).unwrap_or(default))
        };
        Ok(CompactionSettings {
            enabled: self.compaction_enabled(),
            reserve_tokens: tokens("reserveTokens", default.reserve_tokens)?,
            keep_recent_tokens: tokens("keepRecentTokens", default.keep_recent_tokens)?,
        })
    }

    /// `branchSummary.*`.
    #[must_use]
    pub fn branch_summary(&self) -> BranchSummarySettings {
        let reserve = whole(self.get(&["branchSummary", "reserveTokens"]), String::new);
        BranchSummarySettings {
            reserve_tokens: reserve.ok().flatten().unwrap_or(16_384),
            skip_prompt: self
                .get(&["branchSummary", "skipPrompt"])
                .and_then(Value::as_bool)
                .unwrap_or_default(),
        }
    }
}

/// A whole number that is not negative; `None` when the setting is absent.
fn whole(value: Option<&Value>, name: impl FnOnce() -> String) -> Result<Option<u64>, String> {
    let Some(value) = value else { return Ok(None) };
    let wrong = || format!("{} must be a whole number of tokens that is not negative", name());
    kind::whole(value).map(Some).ok_or_else(wrong)
}
