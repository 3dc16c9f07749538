//! The model and thinking level of a run (spec 40 §3.7, §3.8).

use std::sync::Arc;

use tau_core::model::catalog::Entry;
use tau_core::model::resolve::{Choice, Query, named_in_full, resolve};
use tau_core::model::scope::{Scope, scope};
use tau_core::model::select::{Recorded, Wishes, select};
use tau_core::model::{Model, ThinkingLevel};
use tau_core::session::Session;
use tau_core::settings::Settings;

use crate::args::Args;
use crate::config::Access;
use crate::local_servers;
use crate::models_command::is_offline;
use crate::surroundings::Surroundings;

/// What was chosen.
pub struct Chosen {
    /// The model.
    pub model: Arc<Model>,
    /// The level that was wished for; the model may not have it.
    pub level: ThinkingLevel,
    /// What people should know.
    pub warning: Option<String>,
}

impl Chosen {
    /// No model: the program goes on, for surfaces that can choose one later.
    #[must_use]
    pub fn nothing(place: &Surroundings, offline: bool) -> Self {
        let model = Arc::new(Model::placeholder());
        Self { model, level: ThinkingLevel::Off, warning: Some(nothing_usable(place, offline)) }
    }
}

/// Chooses: the flag, what the session recorded, the scope, the defaults, the first that can be used. `None` = there
/// is no model that can be used. Remarks about patterns of a scope are added to `warnings`.
///
/// # Errors
/// When the flags name no model.
pub fn choose(
    args: &Args,
    access: &Access,
    settings: &Settings,
    session: &Session,
    warnings: &mut Vec<String>,
) -> Result<Option<Chosen>, String> {
    if args.provider.is_some() && args.model.is_none() {
        return Err("--provider needs --model, which names the model of that provider".into());
    }
    let usable = |provider: &str| access.usable(provider);
    let query = Query {
        provider: args.provider.as_deref(),
        model: args.model.as_deref(),
        thinking: args.thinking,
        inline_key: args.api_key.is_some(),
    };
    // A model that is named in full costs no look at all the others.
    let (pool, named) = match named_in_full(&access.catalog, &usable, &query) {
        Some(entry) => (vec![entry], Some(Choice::exactly(0))),
        None => {
            let pool = access.catalog.entries();
            let named = resolve(&pool, &usable, &query).map_err(|refusal| refusal.to_string())?;
            (pool, named)
        }
    };
    let recorded = recorded(session);
    // A conversation goes on with its own model; patterns of the command line are looked at anyway.
    let scope = match recorded {
        Some(_) if args.models.is_none() => Scope::default(),
        _ => model_scope(args, access, settings),
    };
    warnings.extend(scope.remarks.iter().map(ToString::to_string));
    let start = select(
        &pool,
        &usable,
        &Wishes { chosen: named.as_ref(), thinking: args.thinking, recorded, scope: &scope.models, settings },
    );
    let chosen = start.choice.as_ref().and_then(|choice| Some((choice, choice.model(&pool)?)));
    let Some((choice, model)) = chosen else { return Ok(None) };
    let warning = warning(start.warning, choice, &model, &pool);
    Ok(Some(Chosen { model: Arc::new(model), level: start.level, warning }))
}

/// The models to choose from, of `--models`, else of the settings; none = all of them.
#[must_use]
pub fn model_scope(args: &Args, access: &Access, settings: &Settings) -> Scope {
    let patterns: Vec<&str> = match &args.models {
        Some(list) => list.iter().map(String::as_str).collect(),
        None => settings.enabled_models(),
    };
    if patterns.is_empty() {
        return Scope::default();
    }
    scope(&access.catalog.entries(), &|provider| access.usable(provider), patterns)
}

/// Model and level of the branch, if it has messages of people or models.
pub(crate) fn recorded(session: &Session) -> Option<Recorded<'_>> {
    let context = session.context();
    let is_talk = |message: &tau_core::message::Message| message.role() != "system";
    if !context.messages.iter().any(|message| is_talk(message)) {
        return None;
    }
    let model = context.model.as_ref().map(|model| (model.provider.as_str(), model.model_id.as_str()));
    Some(Recorded { model, level: context.thinking() })
}

fn warning(of_session: Option<String>, choice: &Choice, model: &Model, pool: &[Entry<'_>]) -> Option<String> {
    if let Some(lost) = of_session {
        return Some(format!("{lost}; going on with {}/{}", model.provider, model.id));
    }
    let like = pool.get(choice.index).filter(|_| choice.custom_id.is_some())?;
    Some(format!(
        "{}/{} is not in the catalogue; it is used with the limits of {}",
        model.provider, model.id, like.id
    ))
}

/// What to do when there is no model. Unless `offline`, servers on this machine are looked for and offered.
#[must_use]
pub fn nothing_usable(place: &Surroundings, offline: bool) -> String {
    let servers = if offline || is_offline() { Vec::new() } else { local_servers::find() };
    if !servers.is_empty() {
        return format!(
            "no model is configured, but this machine serves some: {}. `tau models scan` writes them into {}",
            local_servers::told(&servers),
            place.agent_file("models.json")
        );
    }
    format!(
        "no model can be used, because no provider has credentials. Put an API key into the environment \
         (ANTHROPIC_API_KEY, OPENAI_API_KEY …), sign in or store a key with `tau auth login NAME`, give a key with --model \
         and --api-key, or describe a provider in {}. \
         `--model demo/tour` shows a run without a key",
        place.agent_file("models.json")
    )
}
