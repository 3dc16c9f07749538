//! Command line arguments, by the rules of Pi 1.6 (spec 60 §4.1–4.2; vectors `sessions/cli-args.json`).
//!
//! The rules are too odd for an argument library: short options have several letters and are never bundled, a
//! value is the next item whatever it looks like, unknown long options are collected instead of refused.

pub mod auth;
pub mod help;
pub mod models;
mod options;
pub mod sessions;

use options::{Opt, Which};
use tau_core::model::ThinkingLevel;
use tau_core::permissions::PermissionMode;
use tau_core::tools::selection::check_list;

/// The level that is `off` without a word about it.
const OMIT: &str = "omit";

/// How severe a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Told, the program goes on.
    Warning,
    /// All are told, the program ends with exit code 1.
    Error,
}

/// Something wrong with the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How severe.
    pub severity: Severity,
    /// What is wrong and what to do.
    pub text: String,
}

/// Output mode asked for by `--mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeArg {
    /// `text`; selects nothing by itself.
    Text,
    /// `json`
    Json,
    /// `rpc`
    Rpc,
}

impl ModeArg {
    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Rpc => "rpc",
        }
    }
}

/// `--list-models [SEARCH]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListModels {
    /// All.
    All,
    /// Those that match a search.
    Search(String),
}

/// What the command line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Args {
    /// Prompts, in order.
    pub messages: Vec<String>,
    /// `@file` arguments, without the `@`.
    pub files: Vec<String>,
    /// Unknown long options (without `--`) and their value; `None` = given without one.
    pub unknown: Vec<(String, Option<String>)>,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// `--print`
    pub print: bool,
    /// `--mode`
    pub mode: Option<ModeArg>,
    /// `--provider`
    pub provider: Option<String>,
    /// `--model`
    pub model: Option<String>,
    /// `--models`
    pub models: Option<Vec<String>>,
    /// `--api-key`
    pub api_key: Option<String>,
    /// `--thinking`
    pub thinking: Option<ThinkingLevel>,
    /// `--thinking omit`: at level off requests do not mention thinking.
    pub omit_thinking: bool,
    /// `--list-models`
    pub list_models: Option<ListModels>,
    /// `--continue`
    pub continue_last: bool,
    /// `--resume`
    pub resume: bool,
    /// `--session`
    pub session: Option<String>,
    /// `--session-id`
    pub session_id: Option<String>,
    /// `--fork`
    pub fork: Option<String>,
    /// `--session-dir`
    pub session_dir: Option<String>,
    /// `--no-session`
    pub no_session: bool,
    /// `--totals`
    pub totals: bool,
    /// `--record`
    pub record: Option<String>,
    /// `--record-bodies`
    pub record_bodies: Option<String>,
    /// `--permission`
    pub permission: Option<PermissionMode>,
    /// `--name`
    pub name: Option<String>,
    /// `--tools`
    pub tools: Option<Vec<String>>,
    /// `--exclude-tools`
    pub exclude_tools: Option<Vec<String>>,
    /// `--no-tools`
    pub no_tools: bool,
    /// `--no-builtin-tools`
    pub no_builtin_tools: bool,
    /// `--system-prompt`
    pub system_prompt: Option<String>,
    /// `--append-system-prompt`
    pub append_system_prompt: Vec<String>,
    /// `--no-context-files`
    pub no_context_files: bool,
    /// `--skill`
    pub skills: Vec<String>,
    /// `--no-skills`
    pub no_skills: bool,
    /// `--prompt-template`
    pub prompt_templates: Vec<String>,
    /// `--no-prompt-templates`
    pub no_prompt_templates: bool,
    /// `--extension`
    pub extensions: Vec<String>,
    /// `--no-extensions`
    pub no_extensions: bool,
    /// `--no-mcp`
    pub no_mcp: bool,
    /// `--theme`
    pub themes: Vec<String>,
    /// `--no-themes`
    pub no_themes: bool,
    /// `--use-theme`
    pub use_theme: Option<String>,
    /// `--tui-mode`
    pub tui_mode: Option<String>,
    /// `--verbose`
    pub verbose: bool,
    /// `--approve` is true, `--no-approve` false.
    pub approve: Option<bool>,
    /// `--offline`
    pub offline: bool,
    /// `--export`
    pub export: Option<String>,
    /// `--help`
    pub help: bool,
    /// `--version`
    pub version: bool,
}

/// Reads the items after the program name.
#[must_use]
pub fn parse(argv: impl IntoIterator<Item = String>) -> Args {
    let mut parser = Parser { args: Args::default(), rest: argv.into_iter().collect::<Vec<_>>().into_iter() };
    while let Some(item) = parser.rest.next() {
        parser.item(item);
    }
    parser.args
}

impl Args {
    /// Errors, in order.
    pub fn errors(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().filter(|p| p.severity == Severity::Error).map(|p| p.text.as_str())
    }

    /// Warnings, in order.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.problems.iter().filter(|p| p.severity == Severity::Warning).map(|p| p.text.as_str())
    }

    /// Why the unknown long options are refused, one text each.
    pub fn unknown_texts(&self) -> impl Iterator<Item = String> + '_ {
        self.unknown.iter().map(|(name, value)| {
            let long = format!("--{name}");
            match (options::find(&long), value) {
                (Some(Opt { value: Some(_), .. }), None) => format!("{long} needs a value"),
                (Some(_), Some(value)) => {
                    format!("{long}={value}: write the value as an argument of its own")
                }
                _ => format!("unknown option {long}; `tau --help` lists the options"),
            }
        })
    }
}

struct Parser {
    args: Args,
    rest: std::vec::IntoIter<String>,
}

impl Parser {
    fn item(&mut self, item: String) {
        if item == "--" {
            while let Some(item) = self.rest.next() {
                self.plain(item);
            }
        } else if let Some(opt) = options::find(&item) {
            self.option(opt, &item);
        } else if let Some(name) = item.strip_prefix("--") {
            self.unknown(name);
        } else if item.starts_with('-') {
            self.error(format!("unknown option {item}; `tau --help` lists the options"));
        } else {
            self.plain(item);
        }
    }

    fn plain(&mut self, item: String) {
        match item.strip_prefix('@') {
            Some(path) => self.args.files.push(path.to_owned()),
            None => self.args.messages.push(item),
        }
    }

    fn unknown(&mut self, name: &str) {
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (name, self.next_if(|next| !next.starts_with(['-', '@']))),
        };
        self.args.unknown.push((name.to_owned(), value));
    }

    fn option(&mut self, opt: &Opt, as_written: &str) {
        match opt.id {
            Which::Print => {
                self.args.print = true;
                let taken = |next: &str| {
                    !next.starts_with('@') && (!next.starts_with('-') || next.starts_with("---"))
                };
                if let Some(message) = self.next_if(taken) {
                    self.args.messages.push(message);
                }
            }
            Which::ListModels => {
                let search = self.next_if(|next| !next.starts_with(['-', '@']));
                self.args.list_models = Some(search.map_or(ListModels::All, ListModels::Search));
            }
            Which::Mode => self.mode(),
            Which::TuiMode => self.tui_mode(),
            Which::UseTheme => match self.next_if(|next| !next.starts_with('-')) {
                Some(name) => self.args.use_theme = Some(name),
                None => self.error("--use-theme needs the name of a theme".into()),
            },
            id if opt.value.is_none() => self.flag(id),
            id => match self.rest.next() {
                Some(value) => self.value(id, value),
                None => self.missing_value(opt, as_written),
            },
        }
    }

    /// A value-taking option at the very end: long forms become unknown options, which are refused later.
    fn missing_value(&mut self, opt: &Opt, as_written: &str) {
        match as_written.strip_prefix("--") {
            Some(name) if opt.id != Which::Name => self.args.unknown.push((name.to_owned(), None)),
            _ => self.error(format!("{as_written} needs a value")),
        }
    }

    fn mode(&mut self) {
        const KNOWN: [ModeArg; 3] = [ModeArg::Text, ModeArg::Json, ModeArg::Rpc];
        match self.next_if(|next| !next.starts_with('-')) {
            None => self.error("--mode needs one of text, json, rpc".into()),
            Some(name) => match KNOWN.into_iter().find(|mode| mode.name() == name) {
                Some(mode) => self.args.mode = Some(mode),
                None => self.error(format!("--mode {name}: must be one of text, json, rpc")),
            },
        }
    }

    fn tui_mode(&mut self) {
        match self.next_if(|next| !next.starts_with('-')) {
            Some(mode) if mode == "regular" || mode == "fullscreen" => self.args.tui_mode = Some(mode),
            Some(mode) => self.error(format!("--tui-mode {mode}: must be regular or fullscreen")),
            None => self.error("--tui-mode needs regular or fullscreen".into()),
        }
    }

    fn flag(&mut self, id: Which) {
        let args = &mut self.args;
        match id {
            Which::Approve => args.approve = Some(true),
            Which::NoApprove => args.approve = Some(false),
            Which::Totals => args.totals = true,
            Which::Offline => args.offline = true,
            Which::Verbose => args.verbose = true,
            Which::Help => args.help = true,
            Which::Version => args.version = true,
            Which::Continue => args.continue_last = true,
            Which::Resume => args.resume = true,
            Which::NoSession => args.no_session = true,
            Which::NoTools => args.no_tools = true,
            Which::NoBuiltinTools => args.no_builtin_tools = true,
            Which::NoContextFiles => args.no_context_files = true,
            Which::NoSkills => args.no_skills = true,
            Which::NoPromptTemplates => args.no_prompt_templates = true,
            Which::NoExtensions => args.no_extensions = true,
            Which::NoMcp => args.no_mcp = true,
            Which::NoThemes => args.no_themes = true,
            _ => {}
        }
    }

    fn value(&mut self, id: Which, value: String) {
        let args = &mut self.args;
        match id {
            Which::Record => args.record = Some(value),
            Which::RecordBodies => args.record_bodies = Some(value),
            Which::Permission => match PermissionMode::parse(&value) {
                Some(mode) => args.permission = Some(mode),
                None => {
                    self.error(format!("--permission {value}: must be one of ask, accept-edits, auto"));
                }
            },
            Which::Provider => args.provider = Some(value),
            Which::Model => match value.strip_suffix(OMIT).and_then(|model| model.strip_suffix(':')) {
                Some(model) => {
                    args.model = Some(model.to_owned());
                    self.thinking(OMIT);
                }
                None => args.model = Some(value),
            },
            Which::Models => args.models = Some(list(&value)),
            Which::ApiKey => args.api_key = Some(value),
            Which::Thinking => self.thinking(&value),
            Which::Session => args.session = Some(value),
            Which::SessionId => args.session_id = Some(value),
            Which::Fork => args.fork = Some(value),
            Which::SessionDir => args.session_dir = Some(value),
            Which::Name => args.name = Some(value),
            Which::Export => args.export = Some(value),
            Which::Tools => self.tools(&value),
            Which::ExcludeTools => args.exclude_tools = Some(list(&value)),
            Which::SystemPrompt => args.system_prompt = Some(value),
            Which::AppendSystemPrompt => args.append_system_prompt.push(value),
            Which::Skill => args.skills.push(value),
            Which::PromptTemplate => args.prompt_templates.push(value),
            Which::Extension => args.extensions.push(value),
            Which::Theme => args.themes.push(value),
            _ => {}
        }
    }

    fn thinking(&mut self, name: &str) {
        let level = if name == OMIT { Some(ThinkingLevel::Off) } else { ThinkingLevel::parse(name) };
        match level {
            Some(level) => {
                self.args.thinking = Some(level);
                self.args.omit_thinking = name == OMIT;
            }
            None => {
                let known = ThinkingLevel::ALL.map(ThinkingLevel::name).join(", ");
                let text = format!("--thinking {name} is ignored: the levels are {known} and {OMIT}");
                self.args.problems.push(Problem { severity: Severity::Warning, text });
            }
        }
    }

    fn tools(&mut self, value: &str) {
        let names = list(value);
        match check_list(&names) {
            Ok(()) => self.args.tools = Some(names),
            Err(fault) => self.error(format!("--tools {value}: {}", fault.reason())),
        }
    }

    fn error(&mut self, text: String) {
        self.args.problems.push(Problem { severity: Severity::Error, text });
    }

    fn next_if(&mut self, wanted: impl FnOnce(&str) -> bool) -> Option<String> {
        let next = self.rest.as_slice().first()?;
        if wanted(next) { self.rest.next() } else { None }
    }
}

fn list(value: &str) -> Vec<String> {
    value.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(argv: &[&str]) -> Args {
        parse(argv.iter().map(|s| (*s).to_owned()))
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<&str> = options::all().flat_map(|o| [Some(o.long), o.short]).flatten().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn thinking_levels() {
        for (argv, model, level, omit) in [
            (["--thinking", "omit"], None, Some(ThinkingLevel::Off), true),
            (["--thinking", "off"], None, Some(ThinkingLevel::Off), false),
            (["--model", "a/b:omit"], Some("a/b"), Some(ThinkingLevel::Off), true),
            (["--model", "a/b:high"], Some("a/b:high"), None, false),
            (["--model", "omit"], Some("omit"), None, false),
            (["--thinking", "none"], None, None, false),
        ] {
            let args = read(&argv);
            assert_eq!(
                (args.model.as_deref(), args.thinking, args.omit_thinking),
                (model, level, omit),
                "{argv:?}"
            );
        }
    }

    #[test]
    fn refused_options_say_why() {
        let texts = |argv: &[&str]| read(argv).unknown_texts().collect::<Vec<_>>().join("\n");
        assert!(texts(&["--model"]).contains("--model needs a value"));
        assert!(texts(&["--mode=json"]).contains("argument of its own"));
        assert!(texts(&["--bogus", "x"]).contains("unknown option --bogus"));
        assert!(read(&["--tools", "read,+ls"]).errors().next().is_some());
        assert!(read(&["-Z"]).errors().next().unwrap().contains("-Z"));
    }
}
