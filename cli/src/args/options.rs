//! The one table of options: the parser reads it, the help text is made from it.

/// What an option means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Print,
    /// `--record`
    Record,
    /// `--record-bodies`
    RecordBodies,
    /// `--permission`
    Permission,
    Mode,
    /// `--totals`
    Totals,
    Provider,
    Model,
    Models,
    ApiKey,
    Thinking,
    ListModels,
    Continue,
    Resume,
    Session,
    SessionId,
    Fork,
    SessionDir,
    NoSession,
    Name,
    Tools,
    ExcludeTools,
    NoTools,
    NoBuiltinTools,
    SystemPrompt,
    AppendSystemPrompt,
    NoContextFiles,
    Skill,
    NoSkills,
    PromptTemplate,
    NoPromptTemplates,
    Extension,
    NoExtensions,
    NoMcp,
    Theme,
    NoThemes,
    UseTheme,
    TuiMode,
    Verbose,
    Approve,
    NoApprove,
    Offline,
    Export,
    Help,
    Version,
}

/// One option.
pub(crate) struct Opt {
    pub(crate) id: Which,
    pub(crate) long: &'static str,
    pub(crate) short: Option<&'static str>,
    /// Name of the value in the help text; `None` = takes none.
    pub(crate) value: Option<&'static str>,
    pub(crate) help: &'static str,
}

const fn flag(id: Which, long: &'static str, short: Option<&'static str>, help: &'static str) -> Opt {
    Opt { id, long, short, value: None, help }
}

const fn valued(
    id: Which,
    long: &'static str,
    short: Option<&'static str>,
    value: &'static str,
    help: &'static str,
) -> Opt {
    Opt { id, long, short, value: Some(value), help }
}

/// Options by topic, in the order of the help text.
pub(crate) const GROUPS: &[(&str, &[Opt])] = &[
    (
        "Running",
        &[
            flag(Which::Print, "--print", Some("-p"), "print the last answer and end"),
            valued(
                Which::Mode,
                "--mode",
                None,
                "text|json|rpc",
                "json: one event a line; rpc: driven over pipes",
            ),
            flag(Which::Totals, "--totals", None, "json: a last line with tokens and cost; text: on stderr"),
            valued(
                Which::Permission,
                "--permission",
                None,
                "ask|accept-edits|auto",
                "what is asked about before it runs; where nobody can answer it does not run",
            ),
            valued(
                Which::Record,
                "--record",
                None,
                "FILE",
                "keep everything that goes in, for `tau replay FILE`",
            ),
            valued(
                Which::RecordBodies,
                "--record-bodies",
                None,
                "DIR",
                "keep what is large in it apart, once each, under its hash",
            ),
            flag(Which::Approve, "--approve", Some("-a"), "trust the files of this project, this time"),
            flag(Which::NoApprove, "--no-approve", Some("-na"), "do not trust them, this time"),
            flag(Which::Offline, "--offline", None, "no network besides the model requests"),
            flag(Which::Verbose, "--verbose", None, "tell more at the start of the terminal interface"),
            flag(Which::Help, "--help", Some("-h"), "this text"),
            flag(Which::Version, "--version", Some("-v"), "the version"),
        ],
    ),
    (
        "Model",
        &[
            valued(
                Which::Model,
                "--model",
                None,
                "PATTERN",
                "id, provider/id or a part of it; `:high` sets the thinking level",
            ),
            valued(Which::Provider, "--provider", None, "NAME", "provider of --model"),
            valued(
                Which::ApiKey,
                "--api-key",
                None,
                "KEY",
                "key for the chosen model's provider, not stored",
            ),
            valued(
                Which::Thinking,
                "--thinking",
                None,
                "LEVEL",
                "off, minimal, low, medium, high, xhigh, max; omit: as off, but unsaid",
            ),
            valued(
                Which::Models,
                "--models",
                None,
                "LIST",
                "patterns of models to choose from, with commas between",
            ),
            flag(Which::ListModels, "--list-models", None, "list usable models; a word after it filters"),
        ],
    ),
    (
        "Session",
        &[
            flag(Which::Continue, "--continue", Some("-c"), "go on with the newest session of this folder"),
            flag(Which::Resume, "--resume", Some("-r"), "choose a session from a list"),
            valued(
                Which::Session,
                "--session",
                None,
                "FILE|ID",
                "open a session by file, id or beginning of its id",
            ),
            valued(
                Which::SessionId,
                "--session-id",
                None,
                "ID",
                "open the session with this id, or begin it",
            ),
            valued(Which::Fork, "--fork", None, "FILE|ID", "copy a session into a new one here"),
            valued(Which::SessionDir, "--session-dir", None, "FOLDER", "where sessions are stored"),
            flag(Which::NoSession, "--no-session", None, "store nothing"),
            valued(Which::Name, "--name", Some("-n"), "NAME", "display name of the session"),
            valued(
                Which::Export,
                "--export",
                None,
                "FILE",
                "write a session as HTML; a word after it names the output",
            ),
        ],
    ),
    (
        "Tools",
        &[
            valued(
                Which::Tools,
                "--tools",
                Some("-t"),
                "LIST",
                "only these tools, or +name,-name to change the usual set",
            ),
            valued(Which::ExcludeTools, "--exclude-tools", Some("-xt"), "LIST", "not these tools"),
            flag(Which::NoTools, "--no-tools", Some("-nt"), "no tools at all"),
            flag(Which::NoBuiltinTools, "--no-builtin-tools", Some("-nbt"), "no built-in tools"),
        ],
    ),
    (
        "Prompt and resources",
        &[
            valued(
                Which::SystemPrompt,
                "--system-prompt",
                None,
                "TEXT|FILE",
                "replaces the built-in system prompt",
            ),
            valued(
                Which::AppendSystemPrompt,
                "--append-system-prompt",
                None,
                "TEXT|FILE",
                "added to it; may be repeated",
            ),
            flag(Which::NoContextFiles, "--no-context-files", Some("-nc"), "no AGENTS.md and CLAUDE.md"),
            valued(Which::Skill, "--skill", None, "PATH", "a skill or a folder of skills; may be repeated"),
            flag(Which::NoSkills, "--no-skills", Some("-ns"), "no skills but those of --skill"),
            valued(
                Which::PromptTemplate,
                "--prompt-template",
                None,
                "PATH",
                "a prompt template or a folder; may be repeated",
            ),
            flag(
                Which::NoPromptTemplates,
                "--no-prompt-templates",
                Some("-np"),
                "no templates but those of --prompt-template",
            ),
            valued(Which::Extension, "--extension", Some("-e"), "PATH", "an extension; may be repeated"),
            flag(
                Which::NoExtensions,
                "--no-extensions",
                Some("-ne"),
                "no extensions but those of --extension",
            ),
            flag(Which::NoMcp, "--no-mcp", None, "no MCP servers"),
        ],
    ),
    (
        "Terminal interface",
        &[
            valued(Which::Theme, "--theme", None, "PATH", "a theme; may be repeated"),
            flag(Which::NoThemes, "--no-themes", None, "no themes but those of --theme"),
            valued(
                Which::UseTheme,
                "--use-theme",
                None,
                "NAME[/NAME]",
                "the theme, or one for light and one for dark",
            ),
            valued(Which::TuiMode, "--tui-mode", None, "regular|fullscreen", "inline or full screen"),
        ],
    ),
];

/// The option of this name, long or short.
pub(crate) fn find(name: &str) -> Option<&'static Opt> {
    all().find(|opt| opt.long == name || opt.short == Some(name))
}

/// Every option.
pub(crate) fn all() -> impl Iterator<Item = &'static Opt> {
    GROUPS.iter().flat_map(|(_, options)| options.iter())
}
