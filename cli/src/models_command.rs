//! `tau models`: finds local servers and asks for newer lists of models, both only when told to.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use tau_core::auth::oauth::Answer;
use tau_core::json::{Map, Value, to_pretty};
use tau_core::model::builtin;
use tau_core::model::local::Server;
use tau_core::model::origin::Origins;
use tau_core::model::remote::{self, Outcome, STORE, Stored};
use tau_core::op::{Credential, Headers, HttpRequest, SecretOp};
use tau_core::settings::{Change, jsonc, rewrite};
use tau_io_std::sys::CancelToken;
use tau_io_std::sys::clock::wall;
use tau_io_std::sys::env;
use tau_io_std::sys::update::{How, update};

use crate::args::Args;
use crate::args::models::{self as models_args, ModelsArgs, Verb};
use crate::auth_talk::Talk;
use crate::bootstrap::Base;
use crate::config::Access;
use crate::credentials::{Credentials, Depth};
use crate::local_servers;
use crate::out::note;
use crate::settings_store::{PATIENT, explain};
use crate::surroundings::Surroundings;
use crate::visible::harmless;

/// A refresh of everything may take this long.
const LIMIT: Duration = Duration::from_secs(15);

/// Another place to ask, for tests and mirrors.
const ADDRESS: &str = "TAU_CATALOGUE_URL";

const HOW: How = How { mode: 0o600, folder_mode: 0o700, patience: PATIENT };

/// Runs the command: what to show, and whether all went well.
///
/// # Errors
/// What went wrong and what to do.
pub fn run(args: &ModelsArgs) -> Result<(String, bool), String> {
    match args.verb {
        Verb::Help => Ok((models_args::help(), true)),
        Verb::Scan if args.offline => {
            Err("tau models scan looks for servers on this machine, and --offline forbids it".into())
        }
        Verb::Scan => scan(&Surroundings::gather()?),
        Verb::Refresh if args.offline || is_offline() => {
            Err("tau models refresh needs the network, and --offline or PI_OFFLINE forbids it".into())
        }
        Verb::Refresh => refresh(args),
    }
}

/// Whether the environment forbids the network.
#[must_use]
pub fn is_offline() -> bool {
    let value = env::var("PI_OFFLINE").unwrap_or_default();
    matches!(value.trim().to_ascii_lowercase().as_str(), "1" | "true" | "yes")
}

/// Writes what local servers have into `models.json`. What is there stays.
fn scan(place: &Surroundings) -> Result<(String, bool), String> {
    let servers = local_servers::find();
    if servers.is_empty() {
        let text = "no server answers: looked for Ollama, llama.cpp, LM Studio and vLLM on this machine\n";
        return Ok((text.to_owned(), true));
    }
    let path = place.agent_file("models.json");
    let mut out = String::new();
    update(&path, HOW, &CancelToken::new(), &mut |text| {
        out.clear();
        add(text, &servers, &mut out)
    })
    .map_err(explain)?;
    let _ = writeln!(out, "{path}");
    Ok((out, true))
}

/// The new text of `models.json`, and what to tell.
fn add(text: Option<&str>, servers: &[Server], out: &mut String) -> Result<Option<String>, String> {
    let source = text.map(jsonc::without_bom).filter(|text| !text.trim().is_empty()).unwrap_or("{}");
    let current = jsonc::parse(source)?;
    let providers = current.get("providers");
    if !current.is_object() || providers.is_some_and(|providers| !providers.is_object()) {
        return Err("providers must be an object".to_owned());
    }
    let has_comments = tau_core::json::parse(source).is_err();
    let mut changes = Vec::new();
    for server in servers {
        let id = server.kind.id;
        let mut path = vec!["providers".to_owned(), id.to_owned()];
        let ids: Vec<&str> = server.ids().collect();
        let Some(entry) = providers.and_then(|providers| providers.get(id)) else {
            let _ = writeln!(out, "{}: {id} with {}", server.kind.name, harmless(&ids.join(", ")));
            changes.push(Change { path, value: Some(server.entry()) });
            continue;
        };
        let missing = server.missing_in(entry);
        let names: Vec<&str> = missing.iter().filter_map(|model| model.get("id")?.as_str()).collect();
        let names = harmless(&names.join(", ")).into_owned();
        if missing.is_empty() {
            let _ = writeln!(out, "{}: {id} has all its models already", server.kind.name);
        } else if has_comments {
            // The list would be written anew, and lose the comments in it.
            let _ = writeln!(
                out,
                "{}: {id} is there without {names}; the file has comments, add them by hand",
                server.kind.name
            );
        } else {
            let mut list = entry.get("models").and_then(Value::as_array).cloned().unwrap_or_default();
            list.extend(missing.into_iter().cloned().map(Value::Object));
            path.push("models".to_owned());
            let _ = writeln!(out, "{}: {id} gets {names}", server.kind.name);
            changes.push(Change { path, value: Some(Value::Array(list)) });
        }
    }
    rewrite(text, &changes)
}

fn refresh(args: &ModelsArgs) -> Result<(String, bool), String> {
    let mut warnings = Vec::new();
    let Base { place, agent, settings, .. } =
        Base::read(Surroundings::gather()?, &Args::default(), &mut warnings)?;
    let access = Access::read(&place, &agent, None, &mut warnings)?;
    warnings.iter().for_each(|warning| note(&harmless(warning)));
    let providers = providers(args, &access)?;
    let path = place.agent_file(STORE);
    let stored = crate::files::read_text(&path).map_err(|why| format!("{path}: cannot be read: {why}"))?;
    let stored = stored.map_or_else(|| Ok(Vec::new()), |text| remote::read_store(&text));
    let stored = stored.map_err(|why| format!("{path}: {why}; move it away, it can be made anew"))?;
    let credentials = Credentials::new(&place, &access, None, settings.http_proxy());
    let desk = Desk {
        talk: Talk::new(settings.http_proxy().map(str::to_owned)),
        credentials,
        address: env::var(ADDRESS).unwrap_or_else(|| remote::ADDRESS.to_owned()),
        deadline: Instant::now() + LIMIT,
    };
    let (mut out, mut good) = (String::new(), true);
    for provider in providers {
        let known = stored.iter().find(|(id, _)| *id == provider).map(|(_, stored)| stored);
        let mut outcome = desk.refresh(&provider, known);
        if let Some(new) = &mut outcome.store {
            if let Some(places) = left_out(&access, &provider, new) {
                let _ = writeln!(
                    out,
                    "{provider}: models at {} are left out, requests of this provider do not go there",
                    harmless(&places)
                );
            }
            save(&path, &provider, new)?;
        }
        let _ = match (&outcome.problem, &outcome.store) {
            (Some(why), _) => {
                good = false;
                writeln!(out, "{provider}: no new list: {why}")
            }
            (None, Some(new)) if new.newer_than(remote::SHIPPED_AT).is_empty() => {
                writeln!(out, "{provider}: the built-in list is the newest")
            }
            (None, new) => {
                writeln!(out, "{provider}: {} models", new.as_ref().map_or(0, |new| new.models.len()))
            }
        };
    }
    Ok((out, good))
}

/// The providers to ask for: those named, else all built-in ones that have credentials.
fn providers(args: &ModelsArgs, access: &Access) -> Result<Vec<String>, String> {
    let has_list = |id: &str| !matches!(id, "demo" | "radius");
    if args.providers.is_empty() {
        let ids = builtin::sections().map(|section| section.id);
        let found: Vec<String> =
            ids.filter(|id| has_list(id) && access.usable(id)).map(str::to_owned).collect();
        return if found.is_empty() {
            Err("no provider has credentials; name one".to_owned())
        } else {
            Ok(found)
        };
    }
    let unknown = |id: &&String| builtin::section(id).is_none() || !has_list(id);
    match args.providers.iter().find(unknown) {
        Some(id) => Err(format!("there is no remote list for {id}; it is no built-in provider")),
        None => Ok(args.providers.clone()),
    }
}

/// Takes out models that would send the key of the provider to a place that it is not known for; names these places.
fn left_out(access: &Access, provider: &str, new: &mut Stored) -> Option<String> {
    let section = builtin::section(provider)?;
    let configured = access.catalog.configured(provider).and_then(|config| config.base_url.as_deref());
    let elsewhere = Origins::of(section, configured).keep(&mut new.models);
    (!elsewhere.is_empty()).then(|| elsewhere.join(", "))
}

fn save(path: &str, provider: &str, new: &Stored) -> Result<(), String> {
    update(path, HOW, &CancelToken::new(), &mut |text| {
        let current = text.map_or_else(|| Ok(Value::Object(Map::new())), tau_core::json::parse);
        let current = current.map_err(|error| error.to_string())?;
        let Value::Object(mut store) = current else { return Err("must hold one JSON object".to_owned()) };
        store.insert(provider.to_owned(), new.to_value());
        Ok(Some(to_pretty(&Value::Object(store))))
    })
    .map_err(explain)
}

struct Desk {
    talk: Talk,
    credentials: Credentials,
    address: String,
    deadline: Instant,
}

impl Desk {
    fn refresh(&self, provider: &str, stored: Option<&Stored>) -> Outcome {
        let request = remote::request(&self.address, provider, stored);
        let (status, headers, body) = match self.ask(&request) {
            Ok(answer) => answer,
            Err(why) => return Outcome { store: None, problem: Some(why) },
        };
        let outcome = remote::conclude(provider, stored.cloned(), status, &headers, &body, wall());
        if provider == "openrouter" { self.restricted(outcome) } else { outcome }
    }

    /// The list of OpenRouter with only what the key may use.
    fn restricted(&self, outcome: Outcome) -> Outcome {
        let Outcome { store: Some(mut store), problem: None } = outcome else { return outcome };
        let Some(section) = builtin::section("openrouter") else {
            return Outcome { store: Some(store), problem: None };
        };
        let op = SecretOp {
            provider: section.id.to_owned(),
            model: String::new(),
            base_url: section.base_url.to_owned(),
        };
        let found = self.credentials.find(&op, Depth::Full).map(|found| found.credential);
        let Ok(Credential { api_key: Some(key), .. }) = found else {
            return Outcome { store: Some(store), problem: None };
        };
        let config = self.credentials.catalog.configured(section.id);
        let base_url = config.and_then(|config| config.base_url.as_deref()).unwrap_or(section.base_url);
        let newer = store.newer_than(remote::SHIPPED_AT);
        let all = remote::lay_over(section.records(), newer);
        let answer = self.ask(&remote::openrouter_request(base_url, &key));
        match answer.and_then(|(status, _, body)| remote::restrict_openrouter(all, status, &body)) {
            Ok(models) => {
                store.models = models;
                // The list is that of the key: as new as its check.
                store.last_modified = store.checked_at;
                store.etag = None;
                Outcome { store: Some(store), problem: None }
            }
            Err(why) => Outcome { store: None, problem: Some(why) },
        }
    }

    /// Asks up to three times.
    fn ask(&self, request: &HttpRequest) -> Result<(u16, Headers, Vec<u8>), String> {
        let mut last = String::from("there was no time left");
        for attempt in 1..=remote::ATTEMPTS {
            if Instant::now() >= self.deadline {
                break;
            }
            match self.talk.exchange(request.clone(), self.deadline) {
                Answer::Http { status, .. } if remote::is_busy(status) && attempt < remote::ATTEMPTS => {
                    last = format!("the service answered {status}");
                }
                Answer::Http { status, headers, body } => return Ok((status, headers, body)),
                Answer::NoAnswer(why) => last = why,
                _ => {}
            }
        }
        Err(last)
    }
}
