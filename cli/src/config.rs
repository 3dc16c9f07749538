//! Settings, models and credentials as found on disk, and what is wrong with them.

use std::sync::Arc;

use tau_core::auth::file::AuthFile;
use tau_core::auth::resolve::{Call, Commands, Facts, Step, Stored, is_configured, resolve};
use tau_core::model::Model;
use tau_core::model::catalog::Catalog;
use tau_core::model::lists::Lists;
use tau_core::model::remote::STORE;
use tau_core::settings::{ConfigFault, Scope, Settings, Source, load};
use tau_io_std::sys::env;

use crate::cloud::is_file;
use crate::files::{read_present, read_text};
use crate::settings_store;
use crate::stored_lists::StoredLists;
use crate::surroundings::{Listing, Surroundings};

/// A settings file.
struct Found {
    scope: Scope,
    path: String,
    text: Result<Option<String>, String>,
}

/// Reads settings files: the global one, and that of a project whose files are trusted.
#[must_use]
pub fn settings(place: &Surroundings, agent: &Listing, project: Option<&Listing>) -> (Settings, Vec<String>) {
    let mut found = Vec::new();
    if agent.has("settings.json") {
        found.push(Found::read(Scope::Global, place));
    }
    if project.is_some_and(|project| project.has("settings.json")) {
        found.push(Found::read(Scope::Project, place));
    }
    let sources: Vec<Source<'_>> = found.iter().map(Found::source).collect();
    let (settings, faults) = load(&sources);
    let warn = |fault: &ConfigFault| format!("{fault}; its settings do not count");
    let warnings = faults.iter().map(warn).collect();
    (settings, warnings)
}

impl Found {
    fn read(scope: Scope, place: &Surroundings) -> Self {
        let path = settings_store::path(place, scope);
        let text = read_present(&path);
        Self { scope, path, text }
    }

    fn source(&self) -> Source<'_> {
        let text = self.text.as_ref().map(Option::as_deref).map_err(String::as_str);
        Source { scope: self.scope, path: &self.path, text }
    }
}

/// Models and what is known of credentials.
pub struct Access {
    /// All models.
    pub catalog: Arc<Catalog>,
    auth: Option<AuthFile>,
    auth_path: String,
    api_key: Option<String>,
    /// The provider that `--api-key` belongs to, once it is known.
    key_provider: Option<String>,
    /// The home folder, where clouds keep files.
    home: String,
    /// Variables that count before those of the process.
    pub environment: Vec<(String, String)>,
}

impl Access {
    /// Reads `models.json` and `auth.json`. Faulty providers are left out with a warning (D50).
    ///
    /// # Errors
    /// When one of the files cannot be understood as a whole.
    pub fn read(
        place: &Surroundings,
        agent: &Listing,
        api_key: Option<String>,
        warnings: &mut Vec<String>,
    ) -> Result<Self, String> {
        let path = place.agent_file("models.json");
        let text = if agent.has("models.json") { read_present(&path) } else { Ok(None) };
        let lists = if agent.has(STORE) { stored_lists(place, warnings) } else { None };
        let catalog =
            Catalog::load_over(lists, &path, text.as_ref().map(Option::as_deref).map_err(String::as_str));
        warnings.extend(catalog.remarks().iter().map(ToString::to_string));
        let (whole, parts): (Vec<_>, Vec<_>) =
            catalog.faults().iter().partition(|fault| matches!(fault.at.as_str(), "" | "providers"));
        if let Some(fault) = whole.first() {
            return Err(format!("{fault}; correct the file, or move it away"));
        }
        warnings.extend(parts.iter().map(|fault| format!("{fault}; this provider does not count")));
        let auth_path = place.agent_file("auth.json");
        let auth = if agent.has("auth.json") { read_auth(&auth_path, &read_present)? } else { None };
        Ok(Self {
            catalog: Arc::new(catalog),
            auth,
            auth_path,
            api_key,
            key_provider: None,
            home: env::home().unwrap_or_default(),
            environment: Vec::new(),
        })
    }

    /// `--api-key` belongs to this provider.
    pub fn bind_key(&mut self, provider: &str) {
        self.key_provider = Some(provider.to_owned());
    }

    /// The provider that `--api-key` belongs to.
    #[must_use]
    pub fn key_owner(&self) -> Option<&str> {
        self.key_provider.as_deref()
    }

    /// Looks at `auth.json` again: someone may have signed in meanwhile. A file that cannot be understood leaves
    /// what was known.
    pub fn refresh(&mut self) {
        if let Ok(auth) = read_auth(&self.auth_path, &read_text) {
            self.auth = auth;
        }
    }

    /// Whether a provider has credentials. Runs no command.
    #[must_use]
    pub fn usable(&self, provider: &str) -> bool {
        let own_key = self.key_provider.as_deref() == Some(provider);
        self.configured(provider, self.api_key.as_deref().filter(|_| own_key))
    }

    /// Whether requests to a model can have credentials; `--api-key` belongs to its provider.
    #[must_use]
    pub fn usable_with_key(&self, model: &Model) -> bool {
        self.configured(&model.provider, self.api_key.as_deref())
    }

    /// Why there are no credentials for a model, and what to do.
    #[must_use]
    pub fn why_unusable(&self, model: &Model) -> String {
        let why = self.why(&model.provider, self.api_key.as_deref());
        why.unwrap_or_else(|| format!("there are no credentials for {}", model.provider))
    }

    /// What is wrong with the credentials of a provider, and what to do. Runs no command.
    #[must_use]
    pub fn why(&self, provider: &str, runtime_key: Option<&str>) -> Option<String> {
        let variable = |name: &str| self.variable(name);
        match resolve(&self.facts(provider, runtime_key, &variable, &Commands::new())) {
            Step::Failed(fault) => Some(fault.text),
            Step::Ready(_) | Step::NeedCommand(_) => None,
        }
    }

    fn configured(&self, provider: &str, runtime_key: Option<&str>) -> bool {
        let variable = |name: &str| self.variable(name);
        is_configured(&self.facts(provider, runtime_key, &variable, &Commands::new()))
    }

    fn variable(&self, name: &str) -> Option<String> {
        let own = self.environment.iter().find(|(own, _)| own == name);
        own.map_or_else(|| env::var(name), |(_, value)| Some(value.clone()))
    }

    fn facts<'a>(
        &'a self,
        provider: &'a str,
        runtime_key: Option<&'a str>,
        variable: &'a dyn Fn(&str) -> Option<String>,
        commands: &'a Commands,
    ) -> Facts<'a> {
        let entry = self.auth.as_ref().and_then(|auth| auth.entry(provider));
        Facts {
            provider,
            model: None,
            base_url: "",
            runtime_key,
            stored: entry.map_or(Stored::None, Stored::Entry),
            config: self.catalog.configured(provider),
            env: variable,
            home: &self.home,
            is_file: &is_file,
            commands,
            auth_path: &self.auth_path,
            call: Call::default(),
        }
    }
}

/// Newer lists of models that were asked for once. They can be asked for again, so a broken file is only told.
fn stored_lists(place: &Surroundings, warnings: &mut Vec<String>) -> Option<Arc<dyn Lists>> {
    let path = place.agent_file(STORE);
    let text = read_present(&path).map(Option::unwrap_or_default);
    match text.and_then(|text| StoredLists::new(if text.is_empty() { "{}" } else { &text })) {
        Ok(stored) => Some(Arc::new(stored)),
        Err(why) => {
            warnings.push(format!("{path}: {why}; the built-in models count. Move the file away"));
            None
        }
    }
}

/// # Errors
/// When the file is there and cannot be understood.
fn read_auth(
    path: &str,
    read: &dyn Fn(&str) -> Result<Option<String>, String>,
) -> Result<Option<AuthFile>, String> {
    let explain = |why: String| format!("{path}: {why}; correct the file, or move it away");
    let Some(text) = read(path).map_err(|why| explain(format!("cannot be read: {why}")))? else {
        return Ok(None);
    };
    AuthFile::parse(&text).map(Some).map_err(|fault| explain(fault.to_string()))
}
