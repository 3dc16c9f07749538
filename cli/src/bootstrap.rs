//! From arguments to a machine that is ready to run (seed 000 §01; spec 40 §6): settings, session, model, prompt,
//! tools. Each step reads only what it needs, and what is wrong is told before anything starts.

use std::collections::VecDeque;
use std::io::{IsTerminal, stderr};
use std::sync::Arc;

use tau_core::agent::AgentConfig;
use tau_core::entropy::Entropy;
use tau_core::harness::DeskBoot;
use tau_core::hub::Boot;
use tau_core::json::Writer;
use tau_core::message::Text;
use tau_core::model::{Model, ThinkingLevel};
use tau_core::now::Wall;
use tau_core::op::ImageLimits;
use tau_core::prompt::files::{PromptFiles, Where, gather};
use tau_core::prompt::system::{Facts, ToolFacts, sections};
use tau_core::provider::{CacheRetention, RequestOptions};
use tau_core::session::{EntryBody, Session};
use tau_core::settings::trust::Verdict;
use tau_core::settings::{DEFAULT_TOOLS, Settings};
use tau_core::skills::{Resources, Skill};
use tau_core::tools::selection::{ToolFlags, active_tools};
use tau_core::tools::shell_env::{SessionFacts, blind, session_variables, unattended_defaults};
use tau_core::tools::{BUILTIN_NAMES, BuiltinOptions, Tool, ToolEnv, builtins};
use tau_io_std::sys::{claim, clock, env, random};

use crate::args::{Args, ModeArg};
use crate::choose::{Chosen, choose, nothing_usable};
use crate::config::{self, Access};
use crate::credentials::Credentials;
use crate::old_layout::rename_commands;
use crate::out::note;
use crate::prompt_files::Folders;
use crate::prompts::{self, Prompt};
use crate::resources::{self, Need};
use crate::sessions::{self, Ask, Opened, Place, Refusal};
use crate::surroundings::{Listing, Surroundings};
use crate::visible::harmless;
use crate::{file_args, old_credentials, outputs, trust};

/// Everything a run needs.
pub struct Ready {
    /// For the hub.
    pub boot: Boot,
    /// For requests.
    pub credentials: Credentials,
    /// Prompts in order.
    pub prompts: VecDeque<Prompt>,
    /// What their commands stand for.
    pub resources: Resources,
    /// The header record of the session.
    pub header: String,
    /// `--name`
    pub name: Option<String>,
    /// For other sessions of the same process.
    pub workshop: Workshop,
}

/// What sessions of one process have in common.
pub struct Workshop {
    /// The command line.
    pub args: Args,
    /// Where the program was started.
    pub launch: Surroundings,
    /// Settings of the current session.
    pub base: Base,
    /// Models and credentials.
    pub access: Access,
    /// Whether a person may type there.
    pub stdin_is_terminal: bool,
    /// Variables for commands of the session, before those of the process.
    pub environment: Vec<(String, String)>,
}

/// Settings and what they depend on.
pub struct Base {
    /// Where the run takes place.
    pub place: Surroundings,
    /// Merged settings.
    pub settings: Settings,
    /// What is in the agent directory.
    pub agent: Listing,
    /// Whether the files of the project count.
    pub trusted: bool,
    /// Whether there are any in `.pi` that need trust.
    pub protected: bool,
    /// Whether nothing says if they count: the command line, a saved decision, a setting.
    pub undecided: bool,
    /// What the command line or a person says about them.
    pub approve: Option<bool>,
    /// What is in `.pi`.
    pub project: Listing,
}

impl Base {
    /// Reads settings for the working directory of `place`. What a project brings counts only if it is trusted.
    ///
    /// # Errors
    /// When the store of trust decisions cannot be understood.
    pub fn read(place: Surroundings, args: &Args, warnings: &mut Vec<String>) -> Result<Self, String> {
        let mut agent = Listing::of(&place.agent_dir);
        rename_commands(&place.agent_dir, &mut agent, warnings);
        let project = Listing::of(&format!("{}/.pi", place.cwd));
        let (settings, told) = config::settings(&place, &agent, None);
        warnings.extend(told);
        old_credentials::import(&place, &mut agent, &settings, &mut |text| note(&harmless(text)));
        let approve = args.approve;
        let protected = trust::is_protected(&place, &project);
        let verdict = match protected {
            true => trust::decide(&place, approve, settings.default_project_trust(), true, &agent)?,
            false => Verdict::Untrusted,
        };
        let undecided = verdict == Verdict::Ask;
        let mut base =
            Self { place, settings, agent, trusted: false, protected, undecided, approve, project };
        if verdict == Verdict::Trusted {
            base.trust(warnings);
        }
        Ok(base)
    }

    /// The files of the project count.
    fn trust(&mut self, warnings: &mut Vec<String>) {
        let (settings, told) = config::settings(&self.place, &self.agent, Some(&self.project));
        warnings.extend(told.into_iter().filter(|text| !warnings.contains(text)).collect::<Vec<_>>());
        self.settings = settings;
        self.trusted = true;
        rename_commands(&format!("{}/.pi", self.place.cwd), &mut self.project, warnings);
    }

    /// Asks the person whether the files of the project count, if nothing says so and someone can answer; else tells
    /// that they do not.
    ///
    /// # Errors
    /// When the store of trust decisions cannot be understood.
    fn settle(mut self, can_answer: bool, warnings: &mut Vec<String>) -> Result<Self, String> {
        if can_answer && self.approve.is_none() {
            self.ask_for_trust(warnings)?;
        }
        if self.undecided {
            let cwd = &self.place.cwd;
            warnings.push(format!(
                "the files in {cwd}/.pi do not count; --approve trusts them once, `tau config trust yes` from now on"
            ));
        }
        Ok(self)
    }

    fn ask_for_trust(&mut self, warnings: &mut Vec<String>) -> Result<(), String> {
        // What is in `.pi` was looked at; skills may be shared elsewhere.
        let open = self.undecided || !self.protected;
        let brought = if open { trust::brought(&self.place) } else { Vec::new() };
        if brought.is_empty() {
            return Ok(());
        }
        let default = self.settings.default_project_trust();
        if trust::decide(&self.place, None, default, true, &self.agent)? != Verdict::Ask {
            return Ok(());
        }
        let answer = trust::ask(&self.place, &brought, &mut std::io::stdin().lock());
        self.undecided = false;
        self.approve = Some(answer.trusts());
        if answer.trusts() && self.protected {
            self.trust(warnings);
        }
        if let Err(why) = trust::store(&self.place, answer) {
            warnings.push(format!("the answer counts this time only: {why}"));
        }
        Ok(())
    }

    /// What is known about folders.
    fn folders(&self) -> Folders<'_> {
        let of_project = format!("{}/.pi", self.place.cwd);
        Folders::new([(self.place.agent_dir.clone(), &self.agent), (of_project, &self.project)])
    }

    /// The setting `sessionDir`; that of a project counts before it is trusted.
    #[must_use]
    pub fn session_dir(&self) -> Option<String> {
        let of_project = (!self.trusted && self.project.has("settings.json"))
            .then(|| config::settings(&self.place, &self.agent, Some(&self.project)).0);
        of_project.as_ref().unwrap_or(&self.settings).session_dir().map(str::to_owned)
    }
}

/// Prepares a run. RPC mode takes no input from the command line, and needs no model to begin with.
///
/// # Errors
/// The first thing that cannot be done, and what to do about it. Nothing was started then.
pub fn prepare(
    args: Args,
    rpc: bool,
    stdin_is_terminal: bool,
    warnings: &mut Vec<String>,
) -> Result<Ready, Refusal> {
    claim::begin();
    let launch = Surroundings::gather()?;
    let base = Base::read(launch.clone(), &args, warnings)?;
    let mut rng = Entropy::new(random::seed().map_err(|fault| fault.to_string())?);
    let now = clock::wall();
    sessions::rehome(&base.place, &base.agent);
    let ask = |question: &str| ask(question, stdin_is_terminal && !rpc);
    let opened = open_session(&args, &base, now, &ask, &mut rng)?;
    let can_answer = stdin_is_terminal && !rpc && args.mode != Some(ModeArg::Json) && stderr().is_terminal();
    let base = at_session(base, opened.session.cwd(), &args, warnings)?.settle(can_answer, warnings)?;
    let mut access = Access::read(&base.place, &base.agent, args.api_key.clone(), warnings)?;
    let chosen = choose(&args, &access, &base.settings, &opened.session, warnings);
    warnings.extend(access.catalog.list_remarks().iter().map(ToString::to_string));
    let chosen = match chosen? {
        Some(chosen) => chosen,
        None if rpc => Chosen::nothing(&base.place, args.offline),
        None => return Err(nothing_usable(&base.place, args.offline).into()),
    };
    let Chosen { model, level, warning } = chosen;
    warnings.extend(opened.note.into_iter().chain(warning));
    access.bind_key(&model.provider);

    let prompts =
        if rpc { VecDeque::new() } else { input(&args, &launch, &base.settings, stdin_is_terminal)? };
    if !prompts.is_empty() && !access.usable_with_key(&model) {
        return Err(access.why_unusable(&model).into());
    }
    let workshop = Workshop { args, launch, base, access, stdin_is_terminal, environment: Vec::new() };
    Ok(workshop.equip(opened.session, opened.resumed, (model, level), prompts, &mut rng, warnings)?)
}

/// Prepares a session for a client that names its working directory. It needs no model to begin with. The
/// `environment` counts for its commands and its credentials, before that of the process. `--api-key` belongs to
/// `key_owner`, else to the provider of the session's model.
///
/// # Errors
/// The first thing that cannot be done, and what to do about it. Nothing was started then.
pub fn prepare_at(
    args: &Args,
    cwd: &str,
    stored: Stored<'_>,
    environment: &[(String, String)],
    key_owner: Option<&str>,
    warnings: &mut Vec<String>,
) -> Result<Ready, String> {
    claim::begin();
    let launch = Surroundings { cwd: cwd.to_owned(), ..Surroundings::gather()? };
    let base = Base::read(launch.clone(), args, warnings)?;
    let mut rng = Entropy::new(random::seed().map_err(|fault| fault.to_string())?);
    sessions::rehome(&base.place, &base.agent);
    let setting = base.session_dir();
    let at = Place { surroundings: &base.place, setting: setting.as_deref(), now: clock::wall() };
    let mut told = |opened: Opened| {
        warnings.extend(opened.note);
        opened.session
    };
    let session = match stored {
        Stored::Id(id) => {
            let path = at.by_id(&at.folder(args)?, id);
            told(at.whole(&path.ok_or_else(|| format!("there is no session {id}"))?, &mut rng)?)
        }
        Stored::File(path) => told(at.at_path(path, &mut rng)?),
        Stored::New => at.fresh(args, None, &mut rng)?,
    };
    let base = at_session(base, session.cwd(), args, warnings)?.settle(false, warnings)?;
    let mut access = Access::read(&base.place, &base.agent, args.api_key.clone(), warnings)?;
    access.environment = environment.to_vec();
    if let Some(owner) = key_owner {
        access.bind_key(owner);
    }
    let chosen = choose(args, &access, &base.settings, &session, warnings)?;
    let Chosen { model, level, warning } =
        chosen.unwrap_or_else(|| Chosen::nothing(&base.place, args.offline));
    warnings.extend(warning);
    if key_owner.is_none() {
        access.bind_key(&model.provider);
    }
    let environment = environment.to_vec();
    let workshop =
        Workshop { args: args.clone(), launch, base, access, stdin_is_terminal: false, environment };
    let resumed = stored != Stored::New;
    workshop.equip(session, resumed, (model, level), VecDeque::new(), &mut rng, warnings)
}

/// Which session a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored<'a> {
    /// A new one.
    New,
    /// The one with this id.
    Id(&'a str),
    /// The one in this file.
    File(&'a str),
}

/// What the command line and standard input ask for.
fn input(
    args: &Args,
    launch: &Surroundings,
    settings: &Settings,
    stdin_is_terminal: bool,
) -> Result<VecDeque<Prompt>, String> {
    let files = file_args::read(&args.files, launch, &image_limits(settings))?;
    let has_prompt = !args.messages.is_empty() || !files.text.is_empty();
    let piped = if stdin_is_terminal { None } else { prompts::read_stdin(has_prompt) };
    Ok(prompts::assemble(piped.as_deref(), files, args.messages.clone()))
}

/// Limits for images of prompts and tools.
#[must_use]
pub fn image_limits(settings: &Settings) -> ImageLimits {
    ImageLimits { resize: settings.images().auto_resize, ..ImageLimits::default() }
}

impl Workshop {
    /// Everything for a run of a session.
    fn equip(
        self,
        mut session: Session,
        resumed: bool,
        (model, level): (Arc<Model>, ThinkingLevel),
        prompts: VecDeque<Prompt>,
        rng: &mut Entropy,
        warnings: &mut Vec<String>,
    ) -> Result<Ready, String> {
        let Self { args, base, access, .. } = &self;
        if let (Some(name), false) = (&args.name, resumed) {
            // Not stored yet, so nothing is due to be written.
            let entry = EntryBody::session_name(name);
            session.append(entry, clock::wall(), rng).map_err(|fault| fault.message)?;
        }
        let mut w = Writer::new();
        session.header().write(&mut w);
        let key = access.key_owner().map(str::to_owned).zip(args.api_key.clone());
        let mut credentials = Credentials::new(&base.place, access, key, base.settings.http_proxy());
        credentials.environment.clone_from(&self.environment);
        let name = args.name.clone().filter(|_| resumed);
        let (boot, resources) = self.boot(session, model, level, &prompts, rng, warnings)?;
        Ok(Ready { boot, credentials, prompts, resources, header: w.into_string(), name, workshop: self })
    }

    /// Tools, prompt and options for a session; and the skills and templates that `prompts` and later messages may
    /// name.
    ///
    /// # Errors
    /// When a prompt section cannot be used, or the store of trust decisions.
    pub fn boot(
        &self,
        session: Session,
        model: Arc<Model>,
        level: ThinkingLevel,
        prompts: &VecDeque<Prompt>,
        rng: &mut Entropy,
        warnings: &mut Vec<String>,
    ) -> Result<(Boot, Resources), String> {
        let Self { args, launch, base, .. } = self;
        let Base { place, settings, .. } = base;
        let tools = tools(args, settings, warnings);
        let mut folders = base.folders();
        let files = prompt_files(args, launch, base, &mut folders);
        warnings.extend_from_slice(&files.warnings);
        let can_read = tools.iter().any(|tool| tool.name == "read");
        let need = Need::of(args, self.stdin_is_terminal, prompts, can_read);
        let resources = resources::find(args, launch, base, need, &mut folders, warnings)?;
        let prompt = prompt(&place.cwd, &files, &tools, &resources.skills)?;
        // What is not mentioned needs no level that the model knows.
        let level = if args.omit_thinking { ThinkingLevel::Off } else { model.clamp(level) };
        let options = RequestOptions { omit_thinking: args.omit_thinking, ..options(settings, warnings) };
        let mut env = tool_env(place, settings, &session, &model, level);
        let own = self.environment.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
        env.command_env.extend(own);
        let mut config = AgentConfig::default();
        // Whatever session it is: with `--permission` each call is looked at before it runs.
        config.hooks.before_tool_call = args.permission.is_some();
        let desk = DeskBoot {
            session,
            model,
            thinking: level,
            tools,
            prompt,
            config,
            steering_mode: settings.steering_mode(),
            settings: Arc::new(settings.clone()),
            follow_up_mode: settings.follow_up_mode(),
        };
        let block_images = settings.images().block;
        let boot = Boot { seed: seed_from(rng), desk, env: Arc::new(env), options, block_images };
        Ok((boot, resources))
    }

    /// Begins another session in the working directory of the current one.
    ///
    /// # Errors
    /// When there is no place for it.
    pub fn fresh_session(&self, parent: Option<String>, rng: &mut Entropy) -> Result<Session, String> {
        let setting = self.base.session_dir();
        let at = Place { surroundings: &self.base.place, setting: setting.as_deref(), now: clock::wall() };
        at.fresh(&self.args, parent, rng)
    }

    /// Opens the session of a file with all of its branches.
    ///
    /// # Errors
    /// When the file cannot be opened as a session.
    pub fn open_whole_session(&self, path: &str, rng: &mut Entropy) -> Result<Session, String> {
        let at = Place { surroundings: &self.base.place, setting: None, now: clock::wall() };
        Ok(at.whole(path, rng)?.session)
    }

    /// Opens the session of a file; what else belongs to its working directory, if that is another one.
    ///
    /// # Errors
    /// When the file cannot be opened as a session, or its working directory is gone.
    pub fn open_session(
        &self,
        path: &str,
        rng: &mut Entropy,
        warnings: &mut Vec<String>,
    ) -> Result<(Session, Option<Base>), String> {
        let at = Place { surroundings: &self.base.place, setting: None, now: clock::wall() };
        let Opened { session, note, .. } = at.at_path(path, rng)?;
        warnings.extend(note);
        let cwd = session.cwd();
        if cwd.is_empty() || cwd == self.base.place.cwd {
            return Ok((session, None));
        }
        let base = there(&self.base.place, cwd, &self.args, warnings);
        let base = base.and_then(|base| base.settle(false, warnings));
        let base = base.map_err(|why| format!("{path}: {why}"))?;
        Ok((session, Some(base)))
    }
}

/// The hub's own randomness.
fn seed_from(rng: &mut Entropy) -> [u8; 32] {
    let mut seed = [0; 32];
    for part in seed.chunks_exact_mut(8) {
        part.copy_from_slice(&rng.next_u64().to_le_bytes());
    }
    seed
}

/// Opens or begins the session; a new one needs a place to be stored before anything is asked.
fn open_session(
    args: &Args,
    base: &Base,
    now: Wall,
    ask: Ask<'_>,
    rng: &mut Entropy,
) -> Result<Opened, Refusal> {
    let setting = base.session_dir();
    let at = Place { surroundings: &base.place, setting: setting.as_deref(), now };
    let opened = at.open(args, ask, rng)?;
    if !opened.resumed && opened.session.path().is_some() {
        at.folder(args)?.create()?;
    }
    Ok(opened)
}

/// Asks where someone can answer. The question stands there in any case.
fn ask(question: &str, can_answer: bool) -> Option<String> {
    note(question);
    let mut line = String::new();
    (can_answer && std::io::stdin().read_line(&mut line).is_ok()).then_some(line)
}

/// A session runs in its own working directory, wherever the program was started.
fn at_session(base: Base, cwd: &str, args: &Args, warnings: &mut Vec<String>) -> Result<Base, String> {
    if cwd.is_empty() || cwd == base.place.cwd {
        return Ok(base);
    }
    there(&base.place, cwd, args, warnings)
}

/// Settings for another working directory.
fn there(place: &Surroundings, cwd: &str, args: &Args, warnings: &mut Vec<String>) -> Result<Base, String> {
    if !std::path::Path::new(cwd).is_dir() {
        return Err(format!(
            "the session belongs to {cwd}, which is not there any more; make that folder, or begin a new session"
        ));
    }
    Base::read(Surroundings { cwd: cwd.to_owned(), ..place.clone() }, args, warnings)
}

fn tools(args: &Args, settings: &Settings, warnings: &mut Vec<String>) -> Vec<Arc<Tool>> {
    let defaults = settings.default_tools().unwrap_or_else(|| DEFAULT_TOOLS.map(str::to_owned).into());
    for name in args.tools.iter().flatten() {
        let plain = name.trim_start_matches(['+', '-']);
        if !plain.contains('*') && !BUILTIN_NAMES.contains(&plain) {
            warnings
                .push(format!("--tools: there is no tool {plain}; there are {}", BUILTIN_NAMES.join(", ")));
        }
    }
    let flags = ToolFlags {
        tools: args.tools.clone(),
        exclude: args.exclude_tools.clone().unwrap_or_default(),
        none: args.no_tools,
        no_builtin: args.no_builtin_tools,
    };
    let active = active_tools(&defaults, &BUILTIN_NAMES, &[], &flags);
    builtins(active.iter().map(String::as_str), BuiltinOptions::default()).into_iter().map(Arc::new).collect()
}

fn prompt_files(args: &Args, launch: &Surroundings, base: &Base, folders: &mut Folders<'_>) -> PromptFiles {
    let place = &base.place;
    let from_launch = |text: &String| match std::path::Path::new(&launch.cwd).join(text) {
        path if place.cwd != launch.cwd && path.is_file() => path.display().to_string(),
        _ => text.clone(),
    };
    let system_flag = args.system_prompt.as_ref().map(from_launch);
    let append_flags: Vec<String> = args.append_system_prompt.iter().map(from_launch).collect();
    let place = Where {
        cwd: &place.cwd,
        agent_dir: &place.agent_dir,
        trusted: base.trusted,
        no_context_files: args.no_context_files,
        system_flag: system_flag.as_deref(),
        append_flags: &append_flags,
    };
    gather(folders, &place)
}

fn prompt(
    cwd: &str,
    files: &PromptFiles,
    tools: &[Arc<Tool>],
    skills: &[Skill],
) -> Result<Vec<(String, Text)>, String> {
    let tools: Vec<ToolFacts<'_>> = tools.iter().map(|tool| ToolFacts::from(&**tool)).collect();
    let sections = sections(&Facts {
        cwd,
        custom: files.system.as_deref(),
        append: &files.append,
        tools: &tools,
        context_files: &files.context,
        skills,
        ..Facts::default()
    });
    let sections = sections.map_err(|name| format!("the prompt section {} has no valid name", name.0))?;
    Ok(sections.into_iter().map(|(name, text)| (name, Text::from(text))).collect())
}

fn options(settings: &Settings, warnings: &mut Vec<String>) -> RequestOptions {
    let idle = settings.http_idle_timeout_ms().unwrap_or_else(|why| {
        warnings.push(format!("settings: {why}"));
        Settings::HTTP_IDLE_TIMEOUT_MS
    });
    let limit = |ms: u64| (ms > 0).then_some(ms);
    let retry = settings.provider_retry();
    let long = env::var("PI_CACHE_RETENTION").is_some_and(|value| value == "long");
    RequestOptions {
        budgets: settings.thinking_budgets(),
        cache: if long { CacheRetention::Long } else { CacheRetention::default() },
        head_timeout_ms: limit(retry.timeout_ms.unwrap_or(idle)),
        idle_timeout_ms: limit(idle),
        total_timeout_ms: limit(settings.total_timeout_ms()),
        proxy: settings.http_proxy().map(str::to_owned),
        max_retries: retry.max_retries.unwrap_or_default(),
        max_retry_delay_ms: retry.max_retry_delay_ms,
        ..RequestOptions::default()
    }
}

fn tool_env(
    place: &Surroundings,
    settings: &Settings,
    session: &Session,
    model: &Model,
    level: ThinkingLevel,
) -> ToolEnv {
    let shell = env::shell(settings.shell_path(place.home.as_deref()).as_deref());
    let mut command_env = session_variables(Some(&SessionFacts::of(session, model, level)));
    command_env.push(("PI_CODING_AGENT".into(), Some("true".into())));
    command_env.push(("AI_AGENT".into(), Some("tau".into())));
    command_env.extend(unattended_defaults(|name| env::var(name).is_some()));
    ToolEnv {
        cwd: place.cwd.clone(),
        home: place.home.clone(),
        shell_error: shell.as_ref().err().cloned(),
        shell: shell.unwrap_or_default(),
        command_prefix: settings.shell_command_prefix().map(str::to_owned),
        command_env,
        output_dir: outputs::folder(session.id()),
        images: image_limits(settings),
        blind_model: blind(model),
    }
}
