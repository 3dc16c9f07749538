//! Credentials of one request, resolved anew each time (spec 40 §1.7).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tau_core::auth::file::{self, AuthFile, Kind};
use tau_core::auth::oauth;
use tau_core::auth::resolve::{Call, Commands, Facts, FaultKind, Resolved, Step, Stored, resolve};
use tau_core::json::Value;
use tau_core::model::catalog::Catalog;
use tau_core::op::{Credential, ProcSpec, SecretOp};
use tau_io_std::sys::clock::wall;
use tau_io_std::sys::{CancelToken, env, process};

use crate::auth_store::{AuthStore, Unfresh};
use crate::auth_talk::Talk;
use crate::cloud::{Cloud, is_file};
use crate::config::Access;
use crate::surroundings::Surroundings;

/// A `!command` may take this long (spec 40 §1.5).
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// Most bytes of a command's output that count.
const OUTPUT_LIMIT: usize = 64 * 1024;

/// Where credentials come from.
pub struct Credentials {
    /// What `models.json` says.
    pub catalog: Arc<Catalog>,
    /// `auth.json`.
    pub store: AuthStore,
    /// Renews the tokens in it.
    pub talk: Talk,
    /// What clouds gave.
    pub cloud: Cloud,
    /// `--api-key` and the provider it belongs to.
    pub runtime_key: Option<(String, String)>,
    /// Working directory of commands.
    pub cwd: String,
    /// Variables that count before those of the process.
    pub environment: Vec<(String, String)>,
    /// Outputs of commands of `auth.json`: they run once in a process, those of `models.json` once a request.
    pub commands: Mutex<Commands>,
}

/// How far the search goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Nothing is renewed, no command runs.
    Look,
    /// As a request needs it.
    Full,
}

/// Why there are no credentials.
#[derive(Clone, Debug)]
pub struct Refused {
    /// What is wrong with the configuration; `None` when a token could not be renewed.
    pub kind: Option<FaultKind>,
    /// Only because a command was not to be run.
    pub skipped: bool,
    /// For people: why, and what to do. Holds no secret.
    pub text: String,
}

impl Credentials {
    /// Those of a place. `key` is that of the command line, and the provider it belongs to.
    #[must_use]
    pub fn new(
        place: &Surroundings,
        access: &Access,
        key: Option<(String, String)>,
        proxy: Option<&str>,
    ) -> Self {
        Self {
            store: AuthStore::new(place.agent_file("auth.json")),
            talk: Talk::new(proxy.map(str::to_owned)),
            cloud: Cloud::default(),
            runtime_key: key,
            cwd: place.cwd.clone(),
            environment: Vec::new(),
            commands: Mutex::new(Commands::new()),
            catalog: Arc::clone(&access.catalog),
        }
    }

    /// Those of a request.
    ///
    /// # Errors
    /// Why there are none, and what to do. Holds no secret.
    pub fn resolve(&self, op: &SecretOp) -> Result<Credential, String> {
        let mut found = self.find(op, Depth::Full).map_err(|refused| refused.text)?;
        let run = |command: &str| self.run(command);
        self.cloud.complete(&mut found, &op.provider, &op.base_url, &self.talk, &run)?;
        Ok(found.credential)
    }

    /// Resolves them: reads `auth.json`, renews a token that soon runs out, runs the commands that are needed and did
    /// not run yet.
    ///
    /// # Errors
    /// Why there are none.
    pub fn find(&self, op: &SecretOp, depth: Depth) -> Result<Resolved, Refused> {
        let own_key = |(provider, key): &(String, String)| (*provider == op.provider).then(|| key.clone());
        let runtime_key = self.runtime_key.as_ref().and_then(own_key);
        let mut reading = self.store.read();
        if depth == Depth::Full && runtime_key.is_none() && reading.problem.is_none() {
            let renewed = self.renew(&op.provider, &mut reading.file);
            renewed.map_err(|text| Refused { kind: None, skipped: false, text })?;
        }
        let stored = match (reading.file.entry(&op.provider), &reading.problem) {
            (Some(entry), _) => Stored::Entry(entry),
            (None, Some(why)) => Stored::Unreadable(why),
            (None, None) => Stored::None,
        };
        let headers =
            self.catalog.find(&op.provider, &op.model).map(|model| model.headers).unwrap_or_default();
        let home = env::home().unwrap_or_default();
        let mut kept = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        let mut commands = kept.clone();
        loop {
            let step = resolve(&Facts {
                provider: &op.provider,
                model: Some(&op.model),
                base_url: &op.base_url,
                runtime_key: runtime_key.as_deref(),
                stored,
                config: self.catalog.configured(&op.provider),
                env: &|name| self.variable(name),
                home: &home,
                is_file: &is_file,
                commands: &commands,
                auth_path: self.store.path(),
                call: Call { model_headers: &headers, ..Call::default() },
            });
            match step {
                Step::Ready(resolved) => return Ok(resolved),
                Step::Failed(fault) => {
                    return Err(Refused { kind: Some(fault.kind), skipped: false, text: fault.text });
                }
                Step::NeedCommand(_) if depth == Depth::Look => {
                    let text = format!("the key of {} comes from a command", op.provider);
                    return Err(Refused { kind: None, skipped: true, text });
                }
                Step::NeedCommand(command) => {
                    let output = self.run(&command);
                    if is_stored(stored, &command) {
                        kept.insert(command.clone(), output.clone());
                    }
                    commands.insert(command, output);
                }
            }
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        let own = self.environment.iter().find(|(own, _)| own == name);
        own.map(|(_, value)| value.clone()).or_else(|| env::var(name))
    }

    /// Puts a new token in the place of one that soon runs out; it is stored before.
    fn renew(&self, provider: &str, file: &mut AuthFile) -> Result<(), String> {
        let soon =
            |entry: &Value| file::kind(entry) == Some(Kind::OAuth) && oauth::is_due(entry, wall().0, None);
        if !oauth::is_supported(provider) || !file.entry(provider).is_some_and(soon) {
            return Ok(());
        }
        let mut renew = |entry: &Value| self.talk.renew(provider, entry);
        match self.store.fresh(provider, None, &|| wall().0, &mut renew).map_err(Unfresh::text)? {
            Some(entry) => file.set(provider, entry),
            None => return Err(format!("The sign-in of {provider} was removed meanwhile; sign in again")),
        }
        Ok(())
    }

    /// Trimmed output of a shell command; `None` when it failed, took too long or printed nothing.
    fn run(&self, command: &str) -> Option<String> {
        let spec = ProcSpec {
            argv: vec!["sh".into(), "-c".into(), command.into()],
            cwd: self.cwd.clone(),
            env: Vec::new(),
            idle_after_exit_ms: 100,
            max_after_exit_ms: 1000,
            spill: None,
        };
        let captured =
            process::capture(&spec, OUTPUT_LIMIT, Some(COMMAND_LIMIT), &CancelToken::new()).ok()?;
        if captured.exit.code != Some(0) {
            return None;
        }
        let output = String::from_utf8(captured.stdout).ok()?;
        Some(output.trim().to_owned()).filter(|output| !output.is_empty())
    }
}

/// Whether the command is the key of a stored credential.
fn is_stored(stored: Stored<'_>, command: &str) -> bool {
    let Stored::Entry(entry) = stored else { return false };
    let key = entry.get("key").and_then(|key| key.as_str());
    key.and_then(|key| key.strip_prefix('!')) == Some(command)
}
