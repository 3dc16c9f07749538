//! Signing in: a client that has a terminal is told to run `tau acp login` in it, for nothing can be asked over the
//! protocol.

use std::io::{BufRead, IsTerminal, stdin};

use tau_core::auth::oauth;
use tau_core::json::{Value, Writer};

use super::message::{Params, Refusal, text};
use super::{Acp, empty};
use crate::args::auth::{AuthArgs, Verb};
use crate::auth_command;
use crate::bootstrap::Base;
use crate::config::Access;
use crate::mode::pipe::seat::available;
use crate::out::note;
use crate::surroundings::Surroundings;

/// The word behind `tau acp`, and the name of the method.
pub const LOGIN: &str = "login";

/// What a client can do about it.
#[derive(Clone, Copy)]
pub(super) struct Terminals {
    /// Runs the agent's own command with other arguments.
    by_protocol: bool,
    /// Runs a command that it is given, as clients did before the protocol had a word for it.
    by_custom: bool,
}

impl Terminals {
    pub(super) fn of(params: &Params) -> Self {
        let can = |group: &str, name: &str| {
            let can = params.get("clientCapabilities")?.get(group)?.get(name)?.as_bool();
            can.filter(|can| *can)
        };
        Self {
            by_protocol: can("auth", "terminal").is_some(),
            by_custom: can("_meta", "terminal-auth").is_some(),
        }
    }

    /// Writes the ways to sign in.
    pub(super) fn write(self, w: &mut Writer) {
        w.key("authMethods");
        w.begin_array();
        if self.by_protocol || self.by_custom {
            w.begin_object();
            w.field_str("id", LOGIN);
            w.field_str("name", "Sign in in a terminal");
            w.field_str("description", "Signs in at a provider, or stores its key");
            w.field_str("type", "terminal");
            w.key("args");
            w.begin_array();
            w.str(LOGIN);
            w.end_array();
            if self.by_custom {
                custom(w);
            }
            w.end_object();
        }
        w.end_array();
    }
}

fn custom(w: &mut Writer) {
    let program = std::env::current_exe().ok().and_then(|path| path.into_os_string().into_string().ok());
    w.key("_meta");
    w.begin_object();
    w.name("terminal-auth");
    w.begin_object();
    w.field_str("command", program.as_deref().unwrap_or("tau"));
    w.key("args");
    w.begin_array();
    ["acp", LOGIN].into_iter().for_each(|word| w.str(word));
    w.end_array();
    w.field_str("label", "tau login");
    w.end_object();
    w.end_object();
}

impl Acp {
    /// Nothing is done here; the answer tells whether it was done in the terminal.
    pub(super) fn authenticate(&mut self, id: &Value, params: &Params) -> Result<(), Refusal> {
        let how = "sign in with `tau auth login NAME` in a terminal, or set a key";
        if text(params, "methodId")? != LOGIN {
            return Err(Refusal::params(format!("there is no such way to sign in; {how}")));
        }
        let mut warnings = Vec::new();
        let place = Surroundings::gather().map_err(Refusal::internal)?;
        let base = Base::read(place, &self.args, &mut warnings).map_err(Refusal::internal)?;
        let key = self.args.api_key.clone();
        let access = Access::read(&base.place, &base.agent, key, &mut warnings);
        if available(&mut access.map_err(Refusal::internal)?).is_empty() {
            return Err(Refusal::auth(format!("no provider has credentials; {how}")));
        }
        self.client.result(id, empty);
        Ok(())
    }
}

/// `tau acp login`: asks for a provider, then does what `tau auth login` does.
///
/// # Errors
/// What went wrong and what to do.
pub fn run() -> Result<auth_command::Done, String> {
    if !stdin().is_terminal() {
        return Err("acp login: needs a terminal, for there is something to ask".into());
    }
    note(&format!(
        "sign-ins: {}; every other provider takes a key (anthropic, groq …)",
        oauth::PROVIDERS.join(", ")
    ));
    note("provider?");
    let mut line = String::new();
    stdin().lock().read_line(&mut line).map_err(|e| format!("acp login: {e}"))?;
    let word = line.trim();
    if word.is_empty() {
        return Err("acp login: no provider was named; nothing was written".into());
    }
    auth_command::run(&AuthArgs { verb: Verb::Login, word: Some(word.to_owned()), ..AuthArgs::default() })
}
