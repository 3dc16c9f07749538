//! The one table of settings: what each is called, what it may hold, what it means (spec 40 §4.2). What the command
//! line tells about settings and `docs/settings.md` come from it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::kind::Kind;
use crate::json::Value;

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Names from the outermost object inwards, with dots between; `*` stands for any name.
    pub name: &'static str,
    /// What it may hold.
    pub kind: Kind,
    /// Its default as JSON; empty = none.
    pub default: &'static str,
    /// Only the global file counts.
    pub global_only: bool,
    /// Whether this version does something with it. The others are kept for programs that do.
    pub used: bool,
    /// What it is for.
    pub meaning: &'static str,
}

const fn key(name: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key { name, kind, default, global_only: false, used: true, meaning }
}

impl Key {
    const fn global(self) -> Self {
        Self { global_only: true, ..self }
    }

    const fn unused(self) -> Self {
        Self { used: false, ..self }
    }

    /// The default.
    #[must_use]
    pub fn default(&self) -> Option<Value> {
        serde_json::from_str(self.default).ok()
    }

    /// Whether it is the setting of this path.
    #[must_use]
    pub fn is(&self, path: &[String]) -> bool {
        self.name.split('.').count() == path.len()
            && self.name.split('.').zip(path).all(|(own, given)| own == "*" || own == given)
    }

    /// Whether it is inside the object of this path.
    #[must_use]
    pub fn is_inside(&self, path: &[String]) -> bool {
        self.name.split('.').count() > path.len()
            && self.name.split('.').zip(path).all(|(own, given)| own == "*" || own == given)
    }
}

/// Names that files of older versions use, and what they are called now. Reading a file renames them.
pub const RENAMED: [(&str, &str); 3] = [
    ("queueMode", "steeringMode"),
    ("websockets", "transport"),
    ("retry.maxDelayMs", "retry.provider.maxRetryDelayMs"),
];

/// What a setting is called now, if it has an old name.
#[must_use]
pub fn renamed(path: &[String]) -> Option<&'static str> {
    let name = path.join(".");
    RENAMED.iter().find(|(old, _)| *old == name).map(|(_, new)| *new)
}

/// The setting of a path.
#[must_use]
pub fn find(path: &[String]) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.is(path))
}

/// What someone typed as a path. Dots divide names; a name that has dots itself stands in double quotes, or where the
/// table says that any name may stand.
#[must_use]
pub fn path_of(typed: &str) -> Vec<String> {
    let bound = KEYS.iter().filter_map(|key| bind(key.name, typed));
    // A pattern that says more about what comes after the name fits better.
    if let Some(path) = bound.max_by_key(Vec::len) {
        return path;
    }
    let (mut path, mut name, mut quoted) = (Vec::new(), String::new(), false);
    for c in typed.chars() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => path.push(core::mem::take(&mut name)),
            c => name.push(c),
        }
    }
    path.push(name);
    path
}

/// `compaction.modelOverrides.a/b.5.reserveTokens` by `compaction.modelOverrides.*.reserveTokens`, where the end may be
/// missing.
fn bind(pattern: &str, typed: &str) -> Option<Vec<String>> {
    let (before, after) = pattern.split_once('*')?;
    let name = typed.strip_prefix(before).filter(|name| !name.is_empty() && !name.contains('"'))?;
    let mut path: Vec<String> = before.trim_end_matches('.').split('.').map(ToString::to_string).collect();
    match name.strip_suffix(after).filter(|name| !after.is_empty() && !name.is_empty()) {
        Some(name) => {
            path.push(name.to_string());
            path.extend(after.trim_start_matches('.').split('.').map(ToString::to_string));
        }
        None => path.push(name.to_string()),
    }
    Some(path)
}

/// The way to write a path that [`path_of`] understands.
#[must_use]
pub fn name_of(path: &[String]) -> String {
    let joined = path.join(".");
    if path_of(&joined) == path {
        return joined;
    }
    let quoted = path.iter().map(|name| match name.contains('.') {
        true => ["\"", name, "\""].concat(),
        false => name.clone(),
    });
    quoted.collect::<Vec<_>>().join(".")
}

/// All settings. Those of one object stand together.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key("defaultProvider", Kind::Text, "", "provider of the model that runs begin with; counts together with defaultModel"),
    key("defaultModel", Kind::Text, "", "id of that model; without it the first one that can be used"),
    key("defaultThinkingLevel", Kind::Level, "\"medium\"", "how much a model thinks, as far as it can"),
    key("modelThinkingLevels.*", Kind::Level, "", "the same for one model, by provider/id"),
    key("thinkingBudgets.minimal", Kind::Count, "", "tokens for thinking at this level, for models that take a number"),
    key("thinkingBudgets.low", Kind::Count, "", "tokens for thinking at this level"),
    key("thinkingBudgets.medium", Kind::Count, "", "tokens for thinking at this level"),
    key("thinkingBudgets.high", Kind::Count, "", "tokens for thinking at this level"),
    key("enabledModels", Kind::Texts, "", "patterns of the models to choose from"),

    key("steeringMode", Kind::Choice(&["one-at-a-time", "all"]), "\"one-at-a-time\"", "how many steering messages enter before a request"),
    key("followUpMode", Kind::Choice(&["one-at-a-time", "all"]), "\"one-at-a-time\"", "how many follow-up messages enter when the work is done"),
    key("compaction.enabled", Kind::Flag, "true", "summarise the conversation before it outgrows the model's window"),
    key("compaction.reserveTokens", Kind::Tokens, "16384", "tokens of the window that stay free"),
    key("compaction.keepRecentTokens", Kind::Tokens, "20000", "tokens of recent messages that are kept word for word"),
    key("compaction.modelOverrides.*.reserveTokens", Kind::Tokens, "", "the same for one model, by provider/id"),
    key("compaction.modelOverrides.*.keepRecentTokens", Kind::Tokens, "", "the same for one model, by provider/id"),
    key("branchSummary.reserveTokens", Kind::Tokens, "16384", "tokens of the window that the summary of a left branch leaves free"),
    key("branchSummary.skipPrompt", Kind::Flag, "false", "leave a branch without asking whether to summarise it").unused(),
    key("retry.enabled", Kind::Flag, "true", "try again after failures that may pass"),
    key("retry.maxRetries", Kind::Count, "3", "how often in a row"),
    key("retry.baseDelayMs", Kind::Count, "2000", "milliseconds before the first retry; each further one waits twice as long"),
    key("retry.maxAgentDelayMs", Kind::Count, "60000", "longest wait of that kind, milliseconds"),
    key("retry.provider.timeoutMs", Kind::Count, "", "longest wait for a reply to begin, milliseconds; else httpIdleTimeoutMs"),
    key("retry.provider.totalTimeoutMs", Kind::Count, "", "longest time of one request with its whole reply, milliseconds; else no limit"),
    key("retry.provider.maxRetries", Kind::Count, "0", "how often one request is sent again before that"),
    key("retry.provider.maxRetryDelayMs", Kind::Count, "60000", "longest wait that a service may ask for, milliseconds"),

    key("httpIdleTimeoutMs", Kind::Milliseconds, "300000", "longest silence of a service in a reply; 0 or disabled: no limit"),
    key("httpProxy", Kind::Text, "", "proxy for all requests, unless the environment names one").global(),
    key("websocketConnectTimeoutMs", Kind::Milliseconds, "15000", "longest wait for a WebSocket").unused(),
    key("transport", Kind::Choice(&["auto", "sse", "websocket", "websocket-cached"]), "\"auto\"", "how replies of some services travel").unused(),
    key("cacheWarming", Kind::Choice(&["off", "streaming", "idle"]), "\"idle\"", "when cached prompts are kept alive").global().unused(),

    key("defaultTools", Kind::Texts, "[\"read\",\"bash\",\"edit\",\"write\"]", "tools of a run; +name and -name change the usual ones"),
    key("shellPath", Kind::Text, "", "shell for commands; ~ is the home folder"),
    key("shellCommandPrefix", Kind::Text, "", "a line that runs before each command of the model"),
    key("images.autoResize", Kind::Flag, "true", "make large images fit what models take"),
    key("images.blockImages", Kind::Flag, "false", "send no images"),
    key("codemode.mode", Kind::Choice(&["on", "only"]), "\"on\"", "tools as functions of programs").unused(),
    key("codemode.inlineBudget", Kind::Count, "3000", "tokens of their declarations").unused(),

    key("sessionDir", Kind::Text, "", "folder of sessions; --session-dir and PI_CODING_AGENT_SESSION_DIR come first"),
    key("defaultProjectTrust", Kind::Choice(&["ask", "always", "never"]), "\"ask\"", "whether the files of a project count that nobody decided about").global(),
    key("skills", Kind::Texts, "[]", "more files and folders of skills; !pattern leaves out, +path and -path switch single ones"),
    key("prompts", Kind::Texts, "[]", "the same for prompt templates"),
    key("enableSkillCommands", Kind::Flag, "true", "offer skills as commands").unused(),
    key("packages", Kind::List, "[]", "packages of resources").unused(),
    key("extensions", Kind::Texts, "[]", "extensions").unused(),
    key("themes", Kind::Texts, "[]", "themes").unused(),
    key("npmCommand", Kind::Texts, "", "program that installs packages").unused(),
    key("selfUpdateCommand", Kind::Texts, "", "program that installs a new version").global().unused(),
    key("sessionShareDestination", Kind::Choice(&["auto", "gist", "radius"]), "\"auto\"", "where shared sessions go").unused(),

    key("theme", Kind::Text, "", "theme, or light/dark").unused(),
    key("tuiMode", Kind::Choice(&["regular", "fullscreen"]), "\"fullscreen\"", "inline or full screen").unused(),
    key("fullscreenExitOutput", Kind::Choice(&["transcript", "resume-hint"]), "\"transcript\"", "what stays on the screen").unused(),
    key("fullscreenScrollbar", Kind::Choice(&["auto", "always", "hidden"]), "\"auto\"", "when there is a scroll bar").unused(),
    key("fullscreenCopyOnSelect", Kind::Flag, "true", "copy what is selected").unused(),
    key("fullscreenWheelScrollLines", Kind::Range(1, 100, Some("auto")), "\"auto\"", "lines for each step of the wheel").unused(),
    key("hideThinkingBlock", Kind::Flag, "false", "do not show what models think").unused(),
    key("showCacheMissNotices", Kind::Flag, "false", "tell when a cached prompt was lost").unused(),
    key("externalEditor", Kind::Text, "", "editor; else $VISUAL or $EDITOR").unused(),
    key("doubleEscapeAction", Kind::Choice(&["fork", "tree", "none"]), "\"tree\"", "what pressing Escape twice does").unused(),
    key("treeFilterMode", Kind::Choice(&["default", "no-tools", "user-only", "labeled-only", "all"]), "\"default\"", "what the tree of a session shows").unused(),
    key("quietStartup", Kind::FlagOr(&["header"]), "false", "show little at the start").unused(),
    key("terminal.showImages", Kind::Flag, "true", "show images").unused(),
    key("terminal.imageWidthCells", Kind::Range(1, u64::MAX, None), "60", "width of images, columns").unused(),
    key("terminal.clearOnShrink", Kind::Flag, "false", "clear the screen when it gets smaller").unused(),
    key("terminal.showTerminalProgress", Kind::Flag, "false", "tell the terminal that work goes on").unused(),
    key("terminal.hyperlinks", Kind::FlagOr(&["auto"]), "\"auto\"", "links").unused(),
    key("terminal.images", Kind::FalseOr(&["auto", "kitty", "iterm2"]), "\"auto\"", "protocol for images").unused(),
    key("terminal.trueColor", Kind::FlagOr(&["auto"]), "\"auto\"", "all colours").unused(),
    key("editorPaddingX", Kind::Range(0, 3, None), "0", "columns beside the editor").unused(),
    key("outputPad", Kind::Range(0, 1, None), "1", "columns beside the output").unused(),
    key("autocompleteMaxVisible", Kind::Range(3, 20, None), "5", "rows of completions").unused(),
    key("showHardwareCursor", Kind::Flag, "", "show the cursor of the terminal").unused(),
    key("markdown.codeBlockIndent", Kind::Text, "\"  \"", "what stands before lines of code").unused(),
    key("markdown.mermaid", Kind::Choice(&["off", "final", "streaming"]), "\"streaming\"", "when diagrams are drawn").unused(),
    key("warnings.anthropicExtraUsage", Kind::Flag, "true", "tell about extra charges").unused(),
    key("collapseChangelog", Kind::Flag, "false", "show little of what is new").unused(),
    key("lastChangelogVersion", Kind::Text, "", "kept by programs").unused(),
    key("extensionChangelogVersions", Kind::Names, "", "kept by programs").unused(),
    key("enableAnalytics", Kind::Flag, "false", "there is none in this program").unused(),
    key("enableInstallTelemetry", Kind::Flag, "true", "there is none in this program").unused(),
    key("trackingId", Kind::Text, "", "kept by programs").unused(),
    key("deviceId", Kind::Text, "", "names this installation to services that ask for it when signing in").global(),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn path(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn defaults_are_allowed_and_names_unique() {
        for (at, key) in KEYS.iter().enumerate() {
            assert!(KEYS.iter().skip(at + 1).all(|other| other.name != key.name), "{}", key.name);
            assert!(key.default().is_none_or(|value| key.kind.allows(&value)), "{}", key.name);
            assert_eq!(key.default.is_empty(), key.default().is_none(), "{}", key.name);
        }
    }

    #[test]
    fn names_and_paths() {
        for (typed, names) in [
            ("retry.enabled", &["retry", "enabled"] as &[_]),
            ("modelThinkingLevels.a/b-1.5", &["modelThinkingLevels", "a/b-1.5"]),
            (
                "compaction.modelOverrides.a/b-1.5.reserveTokens",
                &["compaction", "modelOverrides", "a/b-1.5", "reserveTokens"],
            ),
            ("compaction.modelOverrides.a/b-1.5", &["compaction", "modelOverrides", "a/b-1.5"]),
            ("compaction.modelOverrides", &["compaction", "modelOverrides"]),
            ("mine.\"a.b\".c", &["mine", "a.b", "c"]),
        ] {
            assert_eq!(path_of(typed), names, "{typed}");
            assert_eq!(name_of(&path(names)), typed);
        }
        assert_eq!(
            path_of("compaction.modelOverrides.\"a.b\".custom"),
            ["compaction", "modelOverrides", "a.b", "custom"]
        );
    }

    #[test]
    fn keys_of_paths() {
        assert_eq!(find(&path(&["retry", "provider", "maxRetries"])).map(|key| key.default), Some("0"));
        assert_eq!(find(&path(&["modelThinkingLevels", "a/b"])).map(|key| key.kind), Some(Kind::Level));
        assert_eq!(find(&path(&["retry"])), None);
        assert_eq!(KEYS.iter().filter(|key| key.is_inside(&path(&["retry"]))).count(), 8);
        assert!(KEYS.iter().any(|key| key.is_inside(&path(&["compaction", "modelOverrides", "x"]))));
    }
}
