//! From options to a machine and those who answer it: what every driver begins with.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use tau_core::agent::AgentConfig;
use tau_core::auth::resolve::{Call, Commands, Facts as AuthFacts, Step, Stored, resolve};
use tau_core::entropy::Entropy;
use tau_core::fault::Fault;
use tau_core::harness::DeskBoot;
use tau_core::hub::Boot;
use tau_core::message::Text;
use tau_core::op::{Credential, HostCall, ImageLimits, Outcome, SecretOp};
use tau_core::prompt::system::{Facts, ToolFacts, sections};
use tau_core::session::Session;
use tau_core::tools::shell_env::{SessionFacts, blind, session_variables, unattended_defaults};
use tau_core::tools::{BUILTIN_NAMES, BuiltinOptions, Tool, ToolEnv, ToolOutput, builtin};

use super::guarded;
use super::hooks::Hooks;
use super::options::{OnEvent, OnExchange, Options, Secrets};
use super::tool::HostTool;
use crate::machine::Handlers;
use crate::sys::{CancelToken, env, random};

/// What a driver is made from.
pub struct Parts {
    /// For [`Hub::new`](tau_core::hub::Hub::new).
    pub boot: Boot,
    /// Answers what the machine asks the program.
    pub handlers: Handlers,
    /// Wants to see every event.
    pub on_event: Option<OnEvent>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}

impl Options {
    /// Makes the machine's beginning, for a driver of your own. Opens the session.
    ///
    /// # Errors
    /// `unknown_tool`, `bad_tool_name`, `bad_schema`, `bad_section` when the options cannot be followed, `session_unreadable`,
    /// `no_randomness`.
    pub fn into_parts(self) -> Result<Parts, Fault> {
        let seed = || random::seed().map_err(|fault| Fault::new("no_randomness", fault.to_string()));
        let mut rng = Entropy::new(seed()?);
        let cwd = self.cwd.clone().or_else(|| env::cwd().ok()).unwrap_or_else(|| "/".into());
        let tools = self.all_tools()?;
        let prompt = self.prompt(&cwd, &tools)?;
        let (session, append) = self.store.open(&cwd, &mut rng)?;
        let thinking = self.model.clamp(self.thinking);
        let facts = SessionFacts::of(&session, &self.model, thinking);
        let env =
            ToolEnv { blind_model: blind(&self.model), ..tool_env(cwd, &session, &facts, self.variables) };
        let boot = Boot {
            seed: seed()?,
            desk: DeskBoot {
                session,
                model: self.model,
                thinking,
                tools,
                prompt,
                config: AgentConfig { tool_execution: self.execution, hooks: self.hooks.set() },
                steering_mode: self.settings.steering_mode(),
                follow_up_mode: self.settings.follow_up_mode(),
                settings: Arc::new(self.settings),
            },
            env: Arc::new(env),
            options: self.request,
            block_images: false,
        };
        let exchange = self.on_exchange.map(|look| -> OnExchange {
            Box::new(move |exchange| drop(guarded("on_exchange", || look(exchange))))
        });
        let on_event = self
            .on_event
            .map(|mut look| -> OnEvent { Box::new(move |event| drop(guarded("on_event", || look(event)))) });
        let handlers = Handlers { append, exchange, ..handlers(self.secrets, self.host, self.hooks) };
        Ok(Parts { boot, handlers, on_event })
    }

    fn all_tools(&self) -> Result<Vec<Arc<Tool>>, Fault> {
        let mut tools: Vec<Arc<Tool>> = Vec::new();
        let builtins = self.builtin.iter().map(|name| {
            builtin(name, BuiltinOptions::default()).ok_or_else(|| {
                let known = BUILTIN_NAMES.join(", ");
                Fault::new("unknown_tool", format!("There is no built-in tool {name}; there are {known}."))
            })
        });
        let own = self.host.iter().map(|host| match &host.fault {
            Some(fault) => Err(fault.clone()),
            None => Ok(host.tool.clone()),
        });
        for tool in builtins.chain(own) {
            let tool = Arc::new(tool?);
            match tools.iter_mut().find(|other| other.name == tool.name) {
                Some(other) => *other = tool,
                None => tools.push(tool),
            }
        }
        Ok(tools)
    }

    fn prompt(&self, cwd: &str, tools: &[Arc<Tool>]) -> Result<Vec<(String, Text)>, Fault> {
        let tools: Vec<ToolFacts<'_>> = tools.iter().map(|tool| ToolFacts::from(&**tool)).collect();
        let sections = sections(&Facts {
            cwd,
            custom: self.base.as_deref(),
            append: &self.addenda,
            tools: &tools,
            sections: &self.sections,
            ..Facts::default()
        });
        let bad = |name: &str| {
            format!(
                "A prompt section cannot be called {name:?}: names are lower-case letters, digits, _ and -."
            )
        };
        let sections = sections.map_err(|name| Fault::new("bad_section", bad(&name.0)))?;
        Ok(sections.into_iter().map(|(name, text)| (name, Text::from(text))).collect())
    }
}

fn handlers(secrets: Option<Secrets>, tools: Vec<HostTool>, hooks: Hooks) -> Handlers {
    let secret = move |op: SecretOp| {
        let Some(find) = &secrets else {
            let provider = &op.provider;
            return Outcome::Secret(Err(format!(
                "no credentials for {provider}: give `Options::key` or `Options::credentials`"
            )));
        };
        Outcome::Secret(guarded("the credential store", || find(&op)).and_then(|found| found))
    };
    let host = move |call: HostCall, update: &mut dyn FnMut(ToolOutput), cancel: &CancelToken| {
        // The last of a name is the one that counts.
        match tools.iter().rfind(|tool| tool.name() == call.tool) {
            Some(tool) => tool.call(call, update, cancel),
            None => Outcome::Host(ToolOutput::error(format!("there is no tool {}", call.tool))),
        }
    };
    Handlers {
        secret: Box::new(secret),
        host: Box::new(host),
        hook: Box::new(move |call, cancel| hooks.answer(call, cancel)),
        ..Handlers::default()
    }
}

fn tool_env(
    cwd: String,
    session: &Session,
    facts: &SessionFacts,
    variables: Vec<(String, Option<String>)>,
) -> ToolEnv {
    let shell = env::shell(None);
    let mut command_env = session_variables(Some(facts));
    command_env.extend(unattended_defaults(|name| env::var(name).is_some()));
    command_env.extend(variables);
    let user = rustix::process::getuid().as_raw();
    ToolEnv {
        cwd,
        home: env::home(),
        shell_error: shell.as_ref().err().cloned(),
        shell: shell.unwrap_or_default(),
        command_prefix: None,
        command_env,
        output_dir: format!("{}/tau-outputs-{user}/{}", env::temp_dir(), session.id()),
        images: ImageLimits::default(),
        blind_model: None,
    }
}

/// What the variables of a provider give.
pub(super) fn from_environment(op: &SecretOp) -> Result<Credential, String> {
    let step = resolve(&AuthFacts {
        provider: &op.provider,
        model: Some(&op.model),
        base_url: &op.base_url,
        runtime_key: None,
        stored: Stored::None,
        config: None,
        env: &env::var,
        home: &env::home().unwrap_or_default(),
        is_file: &|path| Path::new(path).is_file(),
        commands: &Commands::new(),
        auth_path: "auth.json",
        call: Call::default(),
    });
    match step {
        Step::Ready(resolved) if resolved.cloud.is_none() => Ok(resolved.credential),
        Step::Ready(_) | Step::NeedCommand(_) => Err(format!(
            "the credentials of {} are more than a key; give `Options::credentials`",
            op.provider
        )),
        Step::Failed(fault) => Err(fault.text),
    }
}
