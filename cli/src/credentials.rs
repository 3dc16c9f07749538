//! Credentials of one request, resolved anew each time (spec 40 §1.7).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tau_core::auth::file::AuthFile;
use tau_core::auth::resolve::{Commands, Facts, Step, Stored, resolve};
use tau_core::model::catalog::Catalog;
use tau_core::op::{Credential, ProcSpec, SecretOp};
use tau_io_std::sys::{CancelToken, env, process};

use crate::files::read_text;

/// A `!command` may take this long (spec 40 §1.5).
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// Most bytes of a command's output that count.
const OUTPUT_LIMIT: usize = 64 * 1024;

/// Where credentials come from.
pub struct Credentials {
    /// What `models.json` says.
    pub catalog: Arc<Catalog>,
    /// Path of `auth.json`.
    pub auth_path: String,
    /// `--api-key` and the provider it belongs to.
    pub runtime_key: Option<(String, String)>,
    /// Working directory of commands.
    pub cwd: String,
    /// Outputs of commands of `auth.json`: they run once in a process, those of `models.json` once a request.
    pub commands: Mutex<Commands>,
}

impl Credentials {
    /// Resolves them. Reads `auth.json` once; runs the commands that are needed and did not run yet.
    ///
    /// # Errors
    /// Why there are none, and what to do. Holds no secret.
    pub fn resolve(&self, op: &SecretOp) -> Result<Credential, String> {
        let auth = read_text(&self.auth_path).and_then(|text| match text {
            Some(text) => AuthFile::parse(&text).map(Some).map_err(|fault| fault.to_string()),
            None => Ok(None),
        });
        let stored = match &auth {
            Err(why) => Stored::Unreadable(why),
            Ok(auth) => {
                auth.as_ref().and_then(|auth| auth.entry(&op.provider)).map_or(Stored::None, Stored::Entry)
            }
        };
        let own_key = |(provider, key): &(String, String)| (*provider == op.provider).then(|| key.clone());
        let runtime_key = self.runtime_key.as_ref().and_then(own_key);
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
                env: &env::var,
                commands: &commands,
                auth_path: &self.auth_path,
            });
            match step {
                Step::Ready(resolved) => return Ok(resolved.credential),
                Step::Failed(fault) => return Err(fault.text),
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
