//! `tau auth`: tells about credentials, prints them for other programs, stores and removes them (spec 40 §2.5).

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use tau_core::auth::file::{Kind, kind};
use tau_core::auth::resolve::{FaultKind, Resolved};
use tau_core::auth::{env as auth_env, oauth};
use tau_core::json::{Value, Writer};
use tau_core::model::catalog::Entry;
use tau_core::model::resolve::{Query, resolve as find_model};
use tau_core::op::{Credential, SecretOp};
use tau_io_std::sys::clock::wall;

use crate::args::Args;
use crate::args::auth::{self as auth_args, AuthArgs, Verb};
use crate::auth_login::Login;
use crate::auth_store::Unfresh;
use crate::bootstrap::Base;
use crate::config::Access;
use crate::credentials::{Credentials, Depth, Refused};
use crate::out::note;
use crate::surroundings::Surroundings;
use crate::visible::harmless;

/// A printed token is good for at least this long, ms.
const MIN_EXPIRY_MS: i64 = 30 * 60 * 1000;

/// What the command leaves: text for standard output and the exit code.
pub struct Done {
    /// For standard output.
    pub text: String,
    /// Exit code.
    pub code: u8,
}

impl Done {
    const fn good(text: String) -> Self {
        Self { text, code: 0 }
    }
}

/// Runs the command.
///
/// # Errors
/// What went wrong and what to do; the exit code is 1 then.
pub fn run(args: &AuthArgs) -> Result<Done, String> {
    if args.verb == Verb::Help {
        return Ok(Done::good(auth_args::help()));
    }
    let mut warnings = Vec::new();
    let Base { place, agent, settings, .. } =
        Base::read(Surroundings::gather()?, &Args::default(), &mut warnings)?;
    let access = Access::read(&place, &agent, None, &mut warnings);
    if args.verb == Verb::Check {
        return Ok(check(args, access, &place, settings.http_proxy(), &warnings));
    }
    warnings.iter().for_each(|warning| note(&harmless(warning)));
    let access = access?;
    let desk = Desk { credentials: Credentials::new(&place, &access, None, settings.http_proxy()), access };
    match args.verb {
        Verb::Status => Ok(Done::good(desk.status(args.json))),
        Verb::PrintApiKey => desk.print_key(args),
        Verb::PrintBearerToken => desk.print_token(args),
        Verb::Login => {
            let id = settings.finding(&["deviceId".to_owned()]).value;
            desk.login(args, &place, id.as_ref().and_then(Value::as_str))
        }
        Verb::Logout => desk.logout(args),
        Verb::Help | Verb::Check => Ok(Done::good(String::new())),
    }
}

struct Desk {
    access: Access,
    credentials: Credentials,
}

/// Why a check ends early, in the words that programs read.
struct Answer {
    status: &'static str,
    reason: &'static str,
    code: u8,
}

const UNKNOWN: Answer = Answer { status: "not_ready", reason: "provider_not_found", code: 1 };
const NOT_CONFIGURED: Answer = Answer { status: "not_ready", reason: "credentials_not_configured", code: 1 };
const NOT_AVAILABLE: Answer = Answer { status: "not_ready", reason: "credential_not_available", code: 1 };
const INVALID: Answer = Answer { status: "invalid", reason: "invalid_state", code: 2 };

fn check(
    args: &AuthArgs,
    access: Result<Access, String>,
    place: &Surroundings,
    proxy: Option<&str>,
    warnings: &[String],
) -> Done {
    let asked = args.provider.as_deref().or(args.model.as_deref()).unwrap_or_default();
    let mut provider = asked.to_owned();
    // Programs read the state only; people are told what is wrong.
    let told = |why: &str| {
        if !args.json {
            note(&harmless(why));
        }
    };
    let found = match access {
        Ok(access) if access.catalog.faults().is_empty() && warnings.is_empty() => {
            let desk = Desk { credentials: Credentials::new(place, &access, None, proxy), access };
            desk.check(args, &mut provider, &told)
        }
        access => {
            warnings.iter().for_each(|warning| told(warning));
            access.err().iter().for_each(|why| told(why));
            Err(INVALID)
        }
    };
    let (status, reason, code) = match &found {
        Ok(_) => ("ready", None, 0),
        Err(answer) => (answer.status, Some(answer.reason), answer.code),
    };
    let (kind, secret) = found.map_or((None, None), |(kind, secret)| (Some(kind), secret));
    let secret = secret.filter(|_| args.credentials);
    let text = if args.json {
        let mut w = Writer::new();
        w.begin_object();
        w.field_str("status", status);
        w.field_str("provider", &provider);
        w.field_opt_str("authType", kind.map(Kind::name));
        w.field_opt_str("reason", reason);
        w.field_opt_str("credentials", secret.as_deref());
        w.end_object();
        w.into_string()
    } else {
        secret.unwrap_or_else(|| status.to_owned())
    };
    Done { text: text + "\n", code }
}

impl Desk {
    /// The provider a person means: its id or its name, case aside.
    fn named(&self, word: &str) -> Option<String> {
        let word = word.trim();
        let entries = self.access.catalog.entries();
        let ids = || providers(&entries);
        let id = ids().find(|id| *id == word).or_else(|| ids().find(|id| id.eq_ignore_ascii_case(word)));
        let by_name = || {
            let mut configured = ids().filter_map(|id| self.access.catalog.configured(id));
            configured.find(|config| config.name.eq_ignore_ascii_case(word)).map(|config| config.id.as_str())
        };
        id.or_else(by_name).map(str::to_owned)
    }

    fn check(
        &self,
        args: &AuthArgs,
        provider: &mut String,
        told: &dyn Fn(&str),
    ) -> Result<(Kind, Option<String>), Answer> {
        match (&args.provider, &args.model) {
            (Some(word), _) => *provider = self.named(word).ok_or(UNKNOWN)?,
            (None, Some(model)) => {
                let pool = self.access.catalog.entries();
                let usable = |provider: &str| self.access.usable(provider);
                let query = Query { model: Some(model), ..Query::default() };
                let choice = find_model(&pool, &usable, &query).map_err(|refusal| {
                    told(&refusal.to_string());
                    INVALID
                })?;
                let entry = choice.and_then(|choice| pool.get(choice.index)).ok_or(INVALID)?;
                *provider = entry.provider.to_owned();
            }
            (None, None) => return Err(INVALID),
        }
        let reading = self.credentials.store.read();
        let strict =
            || reading.file.validate().err().filter(|_| args.no_refresh).map(|fault| fault.to_string());
        if let Some(why) = reading.problem.clone().or_else(strict) {
            told(&format!("{}: {why}", self.credentials.store.path()));
            return Err(INVALID);
        }
        if !self.access.usable(provider) {
            return Err(NOT_CONFIGURED);
        }
        let kind = reading.file.entry(provider).and_then(kind).unwrap_or(Kind::ApiKey);
        let depth = if args.no_refresh { Depth::Look } else { Depth::Full };
        match self.find(provider, args.model.as_deref(), depth) {
            Ok(resolved) => match secret(&resolved.credential) {
                None if args.credentials => Err(NOT_AVAILABLE),
                secret => Ok((kind, secret)),
            },
            // A command that was not to be run is taken to work.
            Err(refused) if refused.skipped => {
                if args.credentials {
                    Err(NOT_AVAILABLE)
                } else {
                    Ok((kind, None))
                }
            }
            Err(refused) if refused.kind == Some(FaultKind::Missing) => Err(NOT_CONFIGURED),
            Err(refused) => {
                told(&refused.text);
                Err(INVALID)
            }
        }
    }

    fn find(&self, provider: &str, model: Option<&str>, depth: Depth) -> Result<Resolved, Refused> {
        let op = SecretOp {
            provider: provider.to_owned(),
            model: model.unwrap_or_default().to_owned(),
            base_url: String::new(),
        };
        self.credentials.find(&op, depth)
    }

    /// Who is meant by `--provider`, or by a model that one provider with a stored credential has.
    fn target(&self, args: &AuthArgs) -> Result<String, String> {
        if let Some(word) = &args.provider {
            return self.named(word).ok_or_else(|| unknown(word));
        }
        let model = args.model.as_deref().unwrap_or_default();
        let file = self.credentials.store.read().file;
        let mut owners: Vec<String> = Vec::new();
        for entry in self.access.catalog.entries() {
            let provider = entry.provider;
            let full = model.strip_prefix(provider).and_then(|rest| rest.strip_prefix('/'));
            let fits = entry.id == model || full == Some(entry.id);
            if fits && file.entry(provider).is_some() && !owners.iter().any(|own| own == provider) {
                owners.push(provider.to_owned());
            }
        }
        match owners.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(format!(
                "no provider with a stored credential has the model {model}; name one with --provider"
            )),
            several => {
                Err(format!("{} have the model {model}; name one with --provider", several.join(" and ")))
            }
        }
    }

    fn print_key(&self, args: &AuthArgs) -> Result<Done, String> {
        let provider = self.target(args)?;
        if self.credentials.store.read().file.entry(&provider).and_then(kind) == Some(Kind::OAuth) {
            return Err(format!(
                "{provider} has a sign-in, not a key; `tau auth print-bearer-token` prints its token"
            ));
        }
        let resolved =
            self.find(&provider, args.model.as_deref(), Depth::Full).map_err(|refused| refused.text)?;
        match secret(&resolved.credential) {
            Some(key) => Ok(Done::good(key + "\n")),
            None => Err(format!("the credentials of {provider} are not a single key")),
        }
    }

    fn print_token(&self, args: &AuthArgs) -> Result<Done, String> {
        let provider = self.target(args)?;
        if !oauth::is_supported(&provider) {
            return Err(format!("{provider} has no sign-in here; `tau auth print-api-key` prints its key"));
        }
        let minimum = Some(args.min_expiry.unwrap_or(MIN_EXPIRY_MS));
        let mut renew = |entry: &Value| self.credentials.talk.renew(&provider, entry);
        let fresh = self.credentials.store.fresh(&provider, minimum, &|| wall().0, &mut renew);
        let entry = fresh.map_err(Unfresh::text)?;
        match entry.as_ref().and_then(|entry| entry.get("access")?.as_str()) {
            Some(token) => Ok(Done::good(format!("{token}\n"))),
            None => Err(format!("no sign-in of {provider} is stored in {}", self.credentials.store.path())),
        }
    }

    fn status(&self, json: bool) -> String {
        let reading = self.credentials.store.read();
        let entries = self.access.catalog.entries();
        // Provider, source, state, and what is wrong.
        let mut rows: Vec<[String; 4]> = Vec::new();
        for (provider, kind) in reading.file.all() {
            let why = self.access.why(provider, None).or_else(|| {
                let known =
                    auth_env::provider(provider).is_some() || providers(&entries).any(|id| id == provider);
                (!known).then(|| "no provider has this name".to_owned())
            });
            let state = match (kind, &why) {
                (Some(Kind::OAuth), None) => "sign-in",
                (_, None) => "key",
                (_, Some(_)) => "cannot be used",
            };
            rows.push([provider, "auth.json", state, &why.unwrap_or_default()].map(str::to_owned));
        }
        for provider in providers(&entries) {
            let known = rows.iter().any(|[id, ..]| id == provider);
            let free = auth_env::provider(provider).is_some_and(|auth| auth.method == auth_env::Method::Free);
            if known || free || !self.access.usable(provider) {
                continue;
            }
            let own_key =
                self.access.catalog.configured(provider).is_some_and(|config| config.api_key.is_some());
            let source = if own_key { "models.json" } else { "environment" };
            rows.push([provider, source, "key", ""].map(str::to_owned));
        }
        if json {
            let mut w = Writer::new();
            w.begin_array();
            for [provider, source, state, why] in &rows {
                w.begin_object();
                w.field_str("provider", provider);
                w.field_str("source", source);
                w.field_str("state", state);
                if !why.is_empty() {
                    w.field_str("reason", why);
                }
                w.end_object();
            }
            w.end_array();
            return w.into_string() + "\n";
        }
        if rows.is_empty() {
            return "no provider has credentials; `tau auth login NAME` signs in or stores a key\n"
                .to_owned();
        }
        let width = rows.iter().map(|[id, ..]| id.chars().count()).max().unwrap_or_default();
        let mut out = String::new();
        for [provider, source, state, why] in &rows {
            let _ = write!(out, "{:width$}  {source:11}  {state}", harmless(provider));
            let _ = if why.is_empty() { writeln!(out) } else { writeln!(out, ": {}", harmless(why)) };
        }
        out
    }

    fn login(&self, args: &AuthArgs, place: &Surroundings, device_id: Option<&str>) -> Result<Done, String> {
        let word = args.word.as_deref().unwrap_or_default();
        let provider = self.named(word).ok_or_else(|| unknown(word))?;
        let can_sign_in = oauth::is_supported(&provider);
        if !can_sign_in && !args.api_key && args.no_browser {
            return Err(format!("{provider} has no sign-in; leave --no-browser out and give a key"));
        }
        if can_sign_in && !args.api_key {
            return self.sign_in(args, &provider, place, device_id);
        }
        let method = auth_env::provider(&provider).map(|auth| auth.method);
        if matches!(method, Some(auth_env::Method::SignInOnly | auth_env::Method::Free)) {
            return Err(format!("{provider} takes no key"));
        }
        at_terminal()?;
        let key = ask_secret(&format!("Key for {provider}: "))?;
        let key = key.trim();
        if key.is_empty() {
            return Err("no key was given; nothing was written".into());
        }
        self.credentials.store.modify(&provider, &mut |old| {
            let mut fields = match old {
                Some(Value::Object(fields)) if old.and_then(kind) == Some(Kind::ApiKey) => fields.clone(),
                _ => tau_core::json::Map::new(),
            };
            fields.insert("type".into(), "api_key".into());
            fields.insert("key".into(), key.into());
            Ok(Some(Value::Object(fields)))
        })?;
        let path = harmless(self.credentials.store.path()).into_owned();
        Ok(Done::good(format!("the key of {provider} is stored in {path}\n")))
    }

    fn sign_in(
        &self,
        args: &AuthArgs,
        provider: &str,
        place: &Surroundings,
        device_id: Option<&str>,
    ) -> Result<Done, String> {
        at_terminal()?;
        let store = &self.credentials.store;
        // A file that cannot be changed is told before a person does anything in vain.
        store.create()?;
        if let Some(why) = store.read().problem {
            return Err(format!("{}: {why}; correct the file, or move it away", store.path()));
        }
        let mut login = Login::new(&self.credentials.talk, args.no_browser);
        let credential = login.run(place, provider, device_id)?;
        store.modify(provider, &mut |_| Ok(Some(credential.clone())))?;
        let path = harmless(store.path());
        Ok(Done::good(format!("signed in to {provider}; the sign-in is stored in {path}\n")))
    }

    fn logout(&self, args: &AuthArgs) -> Result<Done, String> {
        let word = args.word.as_deref().unwrap_or_default().trim();
        let store = &self.credentials.store;
        let stored = store.read().file.entry(word).map(|_| word.to_owned());
        let provider = stored.or_else(|| self.named(word)).ok_or_else(|| unknown(word))?;
        let found = store.read().file.entry(&provider).is_some() && store.delete(&provider)?;
        let what = if found { "was removed from" } else { "is not in" };
        let path = harmless(store.path());
        let provider = harmless(&provider);
        Ok(Done::good(format!(
            "the credential of {provider} {what} {path}; the environment and models.json are as they were\n"
        )))
    }
}

/// Ids of all providers; some come more than once.
fn providers<'a>(entries: &'a [Entry<'a>]) -> impl Iterator<Item = &'a str> {
    let known = auth_env::ids().map(|id| -> &'a str { id });
    known.chain(entries.iter().map(|entry| entry.provider))
}

fn unknown(word: &str) -> String {
    format!("no provider is called {word}; `tau --list-models` names them")
}

/// The one value that a program needs: the key, else the token of the authorization header.
fn secret(credential: &Credential) -> Option<String> {
    let bearer = || {
        let named = |(name, _): &&(String, Option<String>)| name.eq_ignore_ascii_case("authorization");
        let value = credential.headers.iter().find(named)?.1.as_deref()?;
        value.strip_prefix("Bearer ").map(str::to_owned)
    };
    credential.api_key.clone().or_else(bearer)
}

/// # Errors
/// When nobody can be asked.
fn at_terminal() -> Result<(), String> {
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok(());
    }
    Err("auth login: needs a terminal, for there is something to ask and to tell".into())
}

/// Asks a person for a secret; what is typed does not show.
fn ask_secret(question: &str) -> Result<String, String> {
    let stdin = std::io::stdin();
    let before = tcgetattr(&stdin).map_err(|e| format!("the terminal cannot be used: {e}"))?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&stdin, OptionalActions::Now, &silent)
        .map_err(|e| format!("the terminal cannot be used: {e}"))?;
    let mut err = std::io::stderr();
    let _ = err.write_all(question.as_bytes());
    let mut line = String::new();
    let read = stdin.read_line(&mut line);
    let _ = tcsetattr(&stdin, OptionalActions::Now, &before);
    let _ = err.write_all(b"\n");
    read.map(|_| line).map_err(|e| format!("the key could not be read: {e}"))
}
