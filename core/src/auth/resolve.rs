//! Which credentials a request gets (spec 40 §1.4, §1.7): a key given for this run, the stored credential, the key
//! of `models.json`, the environment: the first that is there owns the provider.
//!
//! The function is asked again with the output of a command whenever it needs one, so it stays a function of facts.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::cloud::{GOOGLE_DEFAULT_FILE, Source};
use super::env::{self, AWS, CLOUDFLARE, Method, VERTEX};
use super::sigv4::Keys;
use super::value::{ConfigValue, Unresolved};
use super::{file, oauth};
use crate::json::Value;
use crate::model::compose::ProviderConfig;
use crate::op::{AwsAccess, Credential};
use crate::provider::{anthropic, azure, bedrock, google};

/// Outputs of commands that ran, by command text; `None` = it failed or printed nothing.
pub type Commands = BTreeMap<String, Option<String>>;

/// What `auth.json` holds for the provider.
#[derive(Clone, Copy)]
pub enum Stored<'a> {
    /// Nothing.
    None,
    /// A raw entry.
    Entry(&'a Value),
    /// The file could not be read; why, without its content.
    Unreadable(&'a str),
}

/// Everything that has a say.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// Provider id.
    pub provider: &'a str,
    /// Model id, for headers configured for it.
    pub model: Option<&'a str>,
    /// Address of the model, for places in it that credentials fill.
    pub base_url: &'a str,
    /// `--api-key`, literally.
    pub runtime_key: Option<&'a str>,
    /// The stored credential.
    pub stored: Stored<'a>,
    /// What `models.json` says about the provider.
    pub config: Option<&'a ProviderConfig>,
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The home folder, where clouds keep files.
    pub home: &'a str,
    /// Whether there is a file.
    pub is_file: &'a dyn Fn(&str) -> bool,
    /// Commands that ran.
    pub commands: &'a Commands,
    /// Path of `auth.json`, for messages.
    pub auth_path: &'a str,
    /// What belongs to this one call.
    pub call: Call<'a>,
}

/// What belongs to one call only.
#[derive(Clone, Copy, Default)]
pub struct Call<'a> {
    /// Variables that stand before those of the credential and of the environment; blank ones do not count.
    pub env: &'a [(String, String)],
    /// Headers that the catalogue has for the model; `None` deletes.
    pub model_headers: &'a [(String, Option<String>)],
    /// How a provider that the embedding program brings turns a stored sign-in into a credential.
    pub sign_in: Option<&'a dyn Fn(&Value) -> Credential>,
}

/// What came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Credentials.
    Ready(Resolved),
    /// Run this shell command, put its trimmed output into [`Facts::commands`], ask again.
    NeedCommand(String),
    /// There are none.
    Failed(AuthFault),
}

/// Credentials of one request.
#[derive(Clone, PartialEq, Eq)]
pub struct Resolved {
    /// For the encoder.
    pub credential: Credential,
    /// Variables that belong to the credential.
    pub env: Vec<(String, String)>,
    /// Where they came from, for people.
    pub source: String,
    /// What must be fetched before the credential is complete.
    pub cloud: Option<Source>,
}

impl core::fmt::Debug for Resolved {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Resolved")
            .field("credential", &self.credential)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

/// Why there are no credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Nothing is configured.
    Missing,
    /// The stored credential is of a kind that the provider does not take (decision D52).
    Mismatch,
    /// A sign-in that this program does not do (decision D6).
    Unsupported,
    /// A configured value has no text: a variable is missing or a command failed.
    Unresolved,
}

/// Why there are no credentials, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthFault {
    /// The kind.
    pub kind: FaultKind,
    /// For people; names the provider and the next step, holds no secret.
    pub text: String,
}

/// Resolves the credentials of a request.
#[must_use]
pub fn resolve(facts: &Facts<'_>) -> Step {
    match credentials(facts).and_then(|found| with_headers(facts, found)) {
        Ok(resolved) => Step::Ready(resolved),
        Err(Stop::Command(command)) => Step::NeedCommand(command),
        Err(Stop::Fault(kind, text)) => Step::Failed(AuthFault { kind, text }),
    }
}

/// Whether a provider counts as usable. Runs nothing: a command is taken to work until it ran.
#[must_use]
pub fn is_configured(facts: &Facts<'_>) -> bool {
    !matches!(credentials(facts), Err(Stop::Fault(..)))
}

enum Stop {
    Command(String),
    Fault(FaultKind, String),
}

fn fault<T>(kind: FaultKind, text: String) -> Result<T, Stop> {
    Err(Stop::Fault(kind, text))
}

/// A credential before the provider's own rules.
#[derive(Default)]
struct Given {
    key: Option<String>,
    env: Vec<(String, String)>,
}

impl Given {
    fn key(key: String) -> Self {
        Self { key: Some(key), ..Self::default() }
    }

    /// The variables of a stored entry.
    fn of(entry: &Value) -> Self {
        let pairs = entry.get("env").and_then(Value::as_object).into_iter().flatten();
        let env = pairs.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        Self { key: None, env: env.collect() }
    }

    /// A variable: the credential's own first; blank ones do not count.
    fn variable(&self, facts: &Facts<'_>, name: &str) -> Option<String> {
        let own = |list: &[(String, String)]| {
            let own = list.iter().find(|(key, value)| key == name && !value.trim().is_empty());
            own.map(|(_, value)| value.clone())
        };
        let around = || (facts.env)(name).filter(|value| !value.trim().is_empty());
        own(&self.env).or_else(|| own(facts.call.env)).or_else(around)
    }

    /// Lays the variables of the call over those of the credential.
    fn with_call(mut self, facts: &Facts<'_>) -> Self {
        for (name, value) in facts.call.env {
            match self.env.iter_mut().find(|(own, _)| own == name) {
                Some((_, own)) => own.clone_from(value),
                None => self.env.push((name.clone(), value.clone())),
            }
        }
        self
    }

    /// Whether the credential itself brings one of the variables.
    fn has_any(&self, names: &[&str]) -> bool {
        self.env.iter().any(|(key, value)| names.contains(&key.as_str()) && !value.trim().is_empty())
    }
}

const SIGN_IN: &str = "sign-in";
const STORED: &str = "stored credential";
const CONFIGURED: &str = "configured API key";

fn credentials(facts: &Facts<'_>) -> Result<Resolved, Stop> {
    let auth = env::provider(facts.provider);
    let takes_keys = !auth.is_some_and(|auth| auth.method == Method::SignInOnly)
        || facts.config.is_some_and(|config| config.api_key.is_some());
    let (given, source) = if let Some(key) = facts.runtime_key {
        if !takes_keys {
            return mismatch(facts, "takes a sign-in, not a key");
        }
        (Given::key(key.to_owned()).with_call(facts), STORED)
    } else if let Stored::Entry(entry) = facts.stored {
        if let Some(credential) = signed_in(facts, entry) {
            return Ok(Resolved { credential, env: Vec::new(), source: SIGN_IN.to_owned(), cloud: None });
        }
        (stored(facts, entry, takes_keys)?.with_call(facts), STORED)
    } else if let Some(value) = facts.config.and_then(|config| config.api_key.as_deref()) {
        let what = format!("the apiKey of {} in models.json", facts.provider);
        (Given::key(configured(facts, value, &Given::default(), &what)?), CONFIGURED)
    } else {
        (Given::default(), "")
    };
    by_method(facts, auth.map_or(Method::Key(&[]), |auth| auth.method), given, source)
}

/// What a stored sign-in gives. Whether its token is still good is for the caller to see to.
fn signed_in(facts: &Facts<'_>, entry: &Value) -> Option<Credential> {
    if file::kind(entry) != Some(file::Kind::OAuth) {
        return None;
    }
    if let Some(derive) = facts.call.sign_in {
        return Some(derive(entry));
    }
    if !oauth::is_supported(facts.provider) {
        return None;
    }
    let access = entry.get("access").and_then(Value::as_str)?.to_owned();
    let mut credential = Credential::default();
    match facts.provider {
        "kimi-coding" => set_header(&mut credential, "authorization", format!("Bearer {access}")),
        "github-copilot" => {
            credential.base_url = Some(oauth::copilot_base_url(entry));
            credential.api_key = Some(access);
        }
        _ => credential.api_key = Some(access),
    }
    Some(credential)
}

/// A stored credential, by its own type. There is no way back to the environment from a wrong type (D52).
fn stored(facts: &Facts<'_>, entry: &Value, takes_keys: bool) -> Result<Given, Stop> {
    let field = |key: &str| entry.get(key).and_then(Value::as_str);
    let signs_in = env::provider(facts.provider).is_some_and(|auth| auth.sign_in);
    match field("type") {
        Some("api_key") if takes_keys => {
            let mut given = Given::of(entry);
            given.key = match field("key").map(|key| text_of(facts, key, &given)) {
                // A key without text falls to the provider's variables.
                None | Some(Err(Failure::Nothing(_))) => None,
                Some(Err(Failure::Run(command))) => return Err(Stop::Command(command)),
                Some(Ok(key)) => Some(key),
            };
            Ok(given)
        }
        Some("api_key") => mismatch(facts, "takes a sign-in, but a key is stored"),
        Some("oauth") if oauth::is_supported(facts.provider) => {
            mismatch(facts, "has a stored sign-in that is not complete")
        }
        Some("oauth") if signs_in => fault(
            FaultKind::Unsupported,
            format!(
                "A sign-in for {0} is stored in {1}, and signing in to {0} is not supported here; {2}",
                facts.provider,
                facts.auth_path,
                next_step(facts)
            ),
        ),
        Some("oauth") => mismatch(facts, "takes a key, but a sign-in is stored"),
        _ => mismatch(facts, "has a stored credential of an unknown type"),
    }
}

fn mismatch<T>(facts: &Facts<'_>, what: &str) -> Result<T, Stop> {
    let text = format!("{} {what} ({}); {}", facts.provider, facts.auth_path, next_step(facts));
    fault(FaultKind::Mismatch, text)
}

/// The provider's own rules: which variables fill in, and where the key goes.
fn by_method(facts: &Facts<'_>, method: Method, given: Given, source: &str) -> Result<Resolved, Stop> {
    let done = |credential: Credential, env: Vec<(String, String)>, source: &str| {
        Ok(Resolved { credential, env, source: source.to_string(), cloud: None })
    };
    if method == Method::Free {
        return done(Credential::default(), Vec::new(), "no credentials needed");
    }
    if let Method::Cloudflare { gateway } = method {
        return cloudflare(facts, gateway, &given, source);
    }
    let is_key = |key: &String| !(key.is_empty() || method == Method::Vertex && google::is_stand_in(key));
    if let Some(key) = given.key.clone().filter(is_key) {
        return done(Credential { api_key: Some(key), ..Credential::default() }, given.env, source);
    }
    if let Method::Anthropic { token, .. } = method
        && let Some(value) = given.variable(facts, token)
    {
        let bearer = ("authorization".to_string(), Some(format!("Bearer {value}")));
        let credential = Credential { headers: alloc::vec![bearer], ..Credential::default() };
        return done(credential, given.env, token);
    }
    match method {
        Method::Aws => return aws(facts, given, source),
        Method::Vertex => return vertex(facts, given, source),
        _ => {}
    }
    let found = method.variables().find_map(|name| Some((name, given.variable(facts, name)?)));
    match found {
        Some((name, key)) => {
            done(Credential { api_key: Some(key), ..Credential::default() }, given.env, name)
        }
        None if matches!(method, Method::Anthropic { .. }) => federation(facts, given),
        None => fault(FaultKind::Missing, missing(facts)),
    }
}

/// A token of an identity provider that Anthropic takes: three variables name it, two more may.
fn federation(facts: &Facts<'_>, given: Given) -> Result<Resolved, Stop> {
    let names = anthropic::FEDERATION;
    let mut env = given.env.clone();
    for (at, name) in names.iter().enumerate() {
        match given.variable(facts, name) {
            Some(value) => {
                env.retain(|(own, _)| own != name);
                env.push((name.to_string(), value));
            }
            None if at < anthropic::FEDERATION_NEEDS => return fault(FaultKind::Missing, missing(facts)),
            None => {}
        }
    }
    let source = "workload identity federation".to_string();
    Ok(Resolved { credential: Credential::default(), env, source, cloud: Some(Source::AnthropicFederation) })
}

/// AWS: a token, a profile, keys, or a role of the machine; the first that is there.
fn aws(facts: &Facts<'_>, mut given: Given, source: &str) -> Result<Resolved, Stop> {
    let [bearer, profile, id, secret, relative, full, identity] = AWS.map(|name| given.variable(facts, name));
    // What the entry of auth.json brings is named after it.
    let named = |given: &Given, names: &[&str], other: &str| {
        if !source.is_empty() && given.has_any(names) { source.to_string() } else { other.to_string() }
    };
    let (access, cloud, source) = if let Some(token) = bearer {
        let name = named(&given, &["AWS_BEARER_TOKEN_BEDROCK"], "AWS_BEARER_TOKEN_BEDROCK");
        // Then the profile has no say, not even about the region.
        given.env.retain(|(name, _)| name != "AWS_PROFILE");
        (Some(AwsAccess::Bearer(token)), None, name)
    } else if let Some(profile) = profile {
        (None, Some(Source::AwsProfile(profile)), named(&given, &["AWS_PROFILE"], "AWS_PROFILE"))
    } else if let (Some(id), Some(secret)) = (id, secret) {
        let keys = Keys { id, secret, session: given.variable(facts, "AWS_SESSION_TOKEN") };
        (Some(AwsAccess::Keys(keys)), None, named(&given, &["AWS_ACCESS_KEY_ID"], "AWS access keys"))
    } else if relative.or(full).is_some() {
        (None, Some(Source::AwsContainer), "ECS task role".to_string())
    } else if identity.is_some() {
        (None, Some(Source::AwsWebIdentity), "web identity token".to_string())
    } else if given.variable(facts, "AWS_BEDROCK_SKIP_AUTH").as_deref() == Some("1") {
        (None, None, "AWS_BEDROCK_SKIP_AUTH".to_string())
    } else {
        return fault(FaultKind::Missing, missing(facts));
    };
    let credential = Credential { aws: access, ..Credential::default() };
    Ok(Resolved { credential, env: given.env, source, cloud })
}

/// Vertex AI: a key, else a file of Google Cloud, with project and place.
fn vertex(facts: &Facts<'_>, given: Given, source: &str) -> Result<Resolved, Stop> {
    let [key_name, file_name] = VERTEX;
    if let Some(key) = given.variable(facts, key_name).filter(|key| !google::is_stand_in(key)) {
        let credential = Credential { api_key: Some(key), ..Credential::default() };
        return Ok(Resolved { credential, env: given.env, source: key_name.to_string(), cloud: None });
    }
    let named = given.variable(facts, file_name);
    let is_named = named.is_some();
    let path = named.unwrap_or_else(|| format!("{}/{GOOGLE_DEFAULT_FILE}", facts.home));
    let has = |names: &[&str]| names.iter().any(|name| given.variable(facts, name).is_some());
    let [project, older, location] = google::VARIABLES;
    let why = if !(facts.is_file)(&path) {
        if !is_named {
            return fault(FaultKind::Missing, missing(facts));
        }
        // A file that was named and is not there is a mistake, no reason to take another one.
        format!("{file_name} names {path}, which is no file")
    } else if !has(&[project, older]) {
        format!("{path} gives no project; set {project}")
    } else if !has(&[location]) {
        format!("{path} gives no place; set {location}")
    } else {
        let from_entry = !source.is_empty() && given.has_any(&[file_name]);
        let source = if from_entry { source } else { "gcloud application default credentials" };
        let (credential, cloud) = (Credential::default(), Some(Source::GoogleFile(path)));
        return Ok(Resolved { credential, env: given.env, source: source.to_string(), cloud });
    };
    fault(FaultKind::Missing, format!("No credentials for {}: {why}", facts.provider))
}

fn cloudflare(facts: &Facts<'_>, gateway: bool, given: &Given, source: &str) -> Result<Resolved, Stop> {
    let [key_name, account, gateway_id] = CLOUDFLARE;
    let own = |name: &str| given.env.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    // Here, unlike elsewhere, an empty stored key counts.
    let part = |name: &str| own(name).or_else(|| (facts.env)(name)).filter(|value| !value.trim().is_empty());
    let key = given.key.clone().map_or_else(|| part(key_name), |key| Some(key).filter(|key| !key.is_empty()));
    let names: &[&str] = if gateway { &[account, gateway_id] } else { &[account] };
    let mut env = given.env.clone();
    for name in names {
        match part(name) {
            Some(value) => {
                env.retain(|(key, _)| key != name);
                env.push((name.to_string(), value));
            }
            None => return fault(FaultKind::Missing, missing(facts)),
        }
    }
    let Some(key) = key else { return fault(FaultKind::Missing, missing(facts)) };
    let credential = if gateway {
        let headers = alloc::vec![
            ("cf-aig-authorization".to_string(), Some(format!("Bearer {key}"))),
            ("authorization".to_string(), None),
            ("x-api-key".to_string(), None),
        ];
        Credential { headers, ..Credential::default() }
    } else {
        Credential { api_key: Some(key), ..Credential::default() }
    };
    let source = if given.key.is_some() { source } else { key_name };
    Ok(Resolved { credential, env, source: source.to_string(), cloud: None })
}

/// Headers of the configuration over those of the credential, and the address with its places filled.
fn with_headers(facts: &Facts<'_>, mut resolved: Resolved) -> Result<Resolved, Stop> {
    if facts.base_url.contains('{') {
        let mut url = facts.base_url.to_string();
        for (name, value) in &resolved.env {
            url = url.replace(&format!("{{{name}}}"), value);
        }
        resolved.credential.base_url = Some(url);
    }
    let given = Given { key: None, env: resolved.env.clone() };
    let place = |name: &&str| Some((name.to_string(), given.variable(facts, name)?));
    let places = azure::VARIABLES.iter().chain(&google::VARIABLES).chain(&bedrock::VARIABLES);
    resolved.credential.env = places.filter_map(place).collect();
    if resolved.cloud == Some(Source::AnthropicFederation) {
        resolved.credential.env.extend(resolved.env.iter().cloned());
    }
    let (provider_headers, auth_header) =
        facts.config.map_or((&[][..], false), |config| (config.headers.as_slice(), config.auth_header));
    for (name, value) in provider_headers {
        let what = format!("the header {name} of {} in models.json", facts.provider);
        set_header(&mut resolved.credential, name, configured(facts, value, &given, &what)?);
    }
    if auth_header {
        let Some(key) = resolved.credential.api_key.clone() else {
            let text = format!("{} sends its key as a bearer token, but there is no key", facts.provider);
            return fault(FaultKind::Unresolved, format!("{text}; {}", next_step(facts)));
        };
        set_header(&mut resolved.credential, "authorization", format!("Bearer {key}"));
    }
    for (name, value) in facts.call.model_headers {
        put_header(&mut resolved.credential, name, value.clone());
    }
    for (name, value) in
        facts.config.zip(facts.model).into_iter().flat_map(|(config, model)| config.model_headers(model))
    {
        let what = format!("the header {name} of a model of {} in models.json", facts.provider);
        set_header(&mut resolved.credential, name, configured(facts, value, &given, &what)?);
    }
    Ok(resolved)
}

fn set_header(credential: &mut Credential, name: &str, value: String) {
    put_header(credential, name, Some(value));
}

/// Names compare without case; the later spelling stays.
pub(super) fn put_header(credential: &mut Credential, name: &str, value: Option<String>) {
    match credential.headers.iter_mut().find(|(own, _)| own.eq_ignore_ascii_case(name)) {
        Some(slot) => *slot = (name.to_string(), value),
        None => credential.headers.push((name.to_string(), value)),
    }
}

enum Failure {
    Run(String),
    Nothing(String),
}

/// The text of a value form.
fn text_of(facts: &Facts<'_>, value: &str, given: &Given) -> Result<String, Failure> {
    let value = ConfigValue::parse(value);
    if let ConfigValue::Command(command) = &value {
        return match facts.commands.get(command) {
            None => Err(Failure::Run(command.clone())),
            Some(Some(text)) => Ok(text.clone()),
            Some(None) => Err(Failure::Nothing(
                "its command failed, took longer than 10 s, or printed nothing that can be a key".to_string(),
            )),
        };
    }
    let variable = |name: &str| {
        let own = given.env.iter().find(|(key, value)| key == name && !value.is_empty());
        let of_call = || facts.call.env.iter().find(|(key, value)| key == name && !value.is_empty());
        let own = own.or_else(of_call).map(|(_, value)| value.clone());
        own.or_else(|| (facts.env)(name))
    };
    value.resolve(&variable).map_err(|error| match error {
        Unresolved::Missing(names) => Failure::Nothing(format!("{} is not set", names.join(", "))),
        Unresolved::NeedsCommand => Failure::Nothing("it is a command".to_string()),
    })
}

/// The text of a value that must have one.
fn configured(facts: &Facts<'_>, value: &str, given: &Given, what: &str) -> Result<String, Stop> {
    text_of(facts, value, given).map_err(|failure| match failure {
        Failure::Run(command) => Stop::Command(command),
        Failure::Nothing(why) => Stop::Fault(
            FaultKind::Unresolved,
            format!("Cannot authenticate with {}: {what} has no value, {why}", facts.provider),
        ),
    })
}

fn missing(facts: &Facts<'_>) -> String {
    let why = match facts.stored {
        Stored::Unreadable(why) => format!(" ({} cannot be used: {why})", facts.auth_path),
        Stored::Entry(entry) if facts.runtime_key.is_none() => why_no_key(facts, entry)
            .map(|why| format!(" (the key stored in {} cannot be used: {why})", facts.auth_path))
            .unwrap_or_default(),
        Stored::None | Stored::Entry(_) => String::new(),
    };
    format!("No credentials for {}{why}; {}", facts.provider, next_step(facts))
}

/// Why the key of a stored credential has no text. A command is not named: secrets may be in it.
fn why_no_key(facts: &Facts<'_>, entry: &Value) -> Option<String> {
    let key = entry.get("key")?;
    let Some(key) = key.as_str() else { return Some("it is no text".to_string()) };
    if key.is_empty() {
        return Some("it is empty".to_string());
    }
    match text_of(facts, key, &Given::of(entry)) {
        Err(Failure::Nothing(why)) => Some(why),
        Err(Failure::Run(_)) | Ok(_) => None,
    }
}

/// What a person can do about it.
fn next_step(facts: &Facts<'_>) -> String {
    let method = env::provider(facts.provider).map(|auth| auth.method);
    let variables: Vec<&str> = method.into_iter().flat_map(Method::variables).collect();
    let first = match method {
        Some(Method::Cloudflare { .. }) => format!("set {}", variables.join(" and ")),
        Some(Method::Aws) => {
            "set AWS_BEARER_TOKEN_BEDROCK, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".to_string()
        }
        Some(Method::Vertex) => {
            "set GOOGLE_CLOUD_API_KEY, or run `gcloud auth application-default login` and set GOOGLE_CLOUD_PROJECT and \
             GOOGLE_CLOUD_LOCATION"
                .to_string()
        }
        Some(Method::SignInOnly) => return format!("sign in with `tau auth login {}`", facts.provider),
        Some(_) if !variables.is_empty() => format!("set {}", variables.join(" or ")),
        _ => "set apiKey in models.json".to_string(),
    };
    let sign_in = if oauth::is_supported(facts.provider) { "sign in or " } else { "" };
    format!(
        "{first}, or {sign_in}store a key with `tau auth login {}` ({}), or pass --api-key",
        facts.provider, facts.auth_path
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(provider: &str, env: &[(&str, &str)], stored: Stored<'_>) -> Step {
        let lookup = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, v)| v.to_string());
        resolve(&Facts {
            provider,
            model: None,
            base_url: "https://host/{CLOUDFLARE_ACCOUNT_ID}/v1",
            runtime_key: None,
            stored,
            config: None,
            env: &lookup,
            home: "/home/u",
            is_file: &|path| path == "/sa.json",
            commands: &Commands::new(),
            auth_path: "/agent/auth.json",
            call: Call::default(),
        })
    }

    #[test]
    fn a_message_names_provider_and_next_step_but_no_secret() {
        let Step::Failed(fault) = ask("anthropic", &[("OTHER", "sk-secret")], Stored::None) else { panic!() };
        assert_eq!(fault.kind, FaultKind::Missing);
        for part in ["anthropic", "ANTHROPIC_API_KEY", "/agent/auth.json", "--api-key"] {
            assert!(fault.text.contains(part), "{}", fault.text);
        }
        let Step::Ready(resolved) = ask("openai", &[("OPENAI_API_KEY", "sk-secret")], Stored::None) else {
            panic!()
        };
        assert!(!format!("{resolved:?}").contains("sk-secret"));
    }

    #[test]
    fn a_stored_sign_in_never_falls_back() {
        let entry = serde_json::json!({"type":"oauth","access":"a","refresh":"r","expires":1});
        let env = [("ANTHROPIC_API_KEY", "k"), ("GROQ_API_KEY", "k")];
        let Step::Failed(fault) = ask("anthropic", &env, Stored::Entry(&entry)) else { panic!() };
        assert_eq!(fault.kind, FaultKind::Unsupported);
        let Step::Failed(fault) = ask("groq", &env, Stored::Entry(&entry)) else { panic!() };
        assert_eq!(fault.kind, FaultKind::Mismatch);
    }

    #[test]
    fn an_unreadable_file_is_named() {
        let Step::Failed(fault) = ask("openai", &[], Stored::Unreadable("not valid JSON")) else { panic!() };
        assert!(fault.text.contains("not valid JSON"));
        assert!(matches!(
            ask("openai", &[("OPENAI_API_KEY", "k")], Stored::Unreadable("not valid JSON")),
            Step::Ready(_)
        ));
    }

    #[test]
    fn a_stored_key_without_text_is_explained() {
        for (key, part) in [
            (serde_json::json!("$NOPE-$OTHER"), "NOPE, OTHER is not set"),
            (serde_json::json!(5), "it is no text"),
            (serde_json::json!(""), "it is empty"),
        ] {
            let entry = serde_json::json!({"type": "api_key", "key": key});
            let Step::Failed(fault) = ask("groq", &[], Stored::Entry(&entry)) else { panic!() };
            for part in [part, "groq", "/agent/auth.json", "GROQ_API_KEY"] {
                assert!(fault.text.contains(part), "{}", fault.text);
            }
            let env = [("GROQ_API_KEY", "k")];
            assert!(matches!(ask("groq", &env, Stored::Entry(&entry)), Step::Ready(_)));
        }
        let entry = serde_json::json!({"type": "api_key"});
        let Step::Failed(fault) = ask("groq", &[], Stored::Entry(&entry)) else { panic!() };
        assert!(!fault.text.contains("cannot be used"), "{}", fault.text);
    }

    #[test]
    fn commands_run_outside() {
        let entry = serde_json::json!({"type":"api_key","key":"!pass show x"});
        assert_eq!(ask("openai", &[], Stored::Entry(&entry)), Step::NeedCommand("pass show x".to_string()));
    }

    #[test]
    fn variables_that_tell_a_place_go_along() {
        let entry = serde_json::json!(
            {"type":"api_key","key":"k","env":{"AZURE_OPENAI_RESOURCE_NAME":"own"}}
        );
        let env = [("AZURE_OPENAI_RESOURCE_NAME", "other"), ("AZURE_OPENAI_API_VERSION", "v2"), ("X", "x")];
        let Step::Ready(resolved) = ask("azure", &env, Stored::Entry(&entry)) else { panic!() };
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        assert_eq!(
            resolved.credential.env,
            [pair("AZURE_OPENAI_RESOURCE_NAME", "own"), pair("AZURE_OPENAI_API_VERSION", "v2")]
        );
        let entry = serde_json::json!(
            {"type":"api_key","key":"ya29.t","env":{"GOOGLE_CLOUD_PROJECT":"p","GOOGLE_CLOUD_LOCATION":"l"}}
        );
        let Step::Ready(resolved) = ask("google-vertex", &[], Stored::Entry(&entry)) else { panic!() };
        assert_eq!(
            resolved.credential.env,
            [pair("GOOGLE_CLOUD_PROJECT", "p"), pair("GOOGLE_CLOUD_LOCATION", "l")]
        );
    }

    #[test]
    fn keys_of_aws_and_their_place_go_along() {
        let env = [
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "long-secret-key"),
            ("AWS_SESSION_TOKEN", "tok"),
            ("AWS_REGION", "eu-west-1"),
        ];
        let Step::Ready(resolved) = ask("amazon-bedrock", &env, Stored::None) else { panic!() };
        let Some(AwsAccess::Keys(keys)) = &resolved.credential.aws else { panic!() };
        assert_eq!((keys.id.as_str(), keys.session.as_deref()), ("id", Some("tok")));
        assert_eq!(resolved.credential.env, [("AWS_REGION".to_string(), "eu-west-1".to_string())]);
        assert!(!format!("{resolved:?}").contains("long-secret-key"));
        let Step::Failed(fault) = ask("amazon-bedrock", &env[..1], Stored::None) else { panic!() };
        assert!(fault.text.contains("AWS_SECRET_ACCESS_KEY"), "{}", fault.text);
    }

    #[test]
    fn files_of_google_need_project_and_place() {
        let env = [
            ("GOOGLE_APPLICATION_CREDENTIALS", "/sa.json"),
            ("GOOGLE_CLOUD_PROJECT", "p"),
            ("GOOGLE_CLOUD_LOCATION", "l"),
        ];
        let Step::Ready(resolved) = ask("google-vertex", &env, Stored::None) else { panic!() };
        assert_eq!(resolved.cloud, Some(Source::GoogleFile("/sa.json".to_string())));
        for (env, part) in [
            (&env[..2], "GOOGLE_CLOUD_LOCATION"),
            (&env[..1], "GOOGLE_CLOUD_PROJECT"),
            (&[("GOOGLE_APPLICATION_CREDENTIALS", "/gone.json")][..], "/gone.json"),
            (&[], "gcloud auth application-default login"),
        ] {
            let Step::Failed(fault) = ask("google-vertex", env, Stored::None) else { panic!() };
            assert!(fault.text.contains(part), "{}", fault.text);
        }
        let entry = serde_json::json!({"type":"api_key","key":"<authenticated>"});
        let Step::Ready(resolved) = ask("google-vertex", &env, Stored::Entry(&entry)) else { panic!() };
        assert!(resolved.cloud.is_some() && resolved.credential.api_key.is_none());
    }

    #[test]
    fn addresses_are_filled() {
        let env = [("CLOUDFLARE_API_KEY", "k"), ("CLOUDFLARE_ACCOUNT_ID", "acc")];
        let Step::Ready(resolved) = ask("cloudflare-workers-ai", &env, Stored::None) else { panic!() };
        assert_eq!(resolved.credential.base_url.as_deref(), Some("https://host/acc/v1"));
    }
}
