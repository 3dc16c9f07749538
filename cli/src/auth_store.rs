//! `auth.json` on disk: read as often as anyone asks, changed under its lock and as it stands then (spec 40 §1.3, D51).

use std::sync::{Mutex, PoisonError};

use tau_core::auth::file::{AuthFile, Kind, kind};
use tau_core::auth::oauth;
use tau_core::json::Value;
use tau_io_std::sys::CancelToken;
use tau_io_std::sys::update::{Change, How, update, update_slowly};

use crate::files::read_text;
use crate::settings_store::{PATIENT, explain};
use crate::signals::Patience;

/// Modes of the file and its folder, if they are new.
const HOW: How = How { mode: 0o600, folder_mode: 0o700, patience: PATIENT };

/// The store of credentials.
pub struct AuthStore {
    path: String,
    /// What was read last without a problem.
    good: Mutex<AuthFile>,
}

/// What a reading gave.
pub struct Reading {
    /// The file; when it cannot be understood, as it was when it could.
    pub file: AuthFile,
    /// Why it cannot be understood.
    pub problem: Option<String>,
}

/// Why a sign-in cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub enum Unfresh {
    /// No new token was given.
    Refresh(String),
    /// The file could not be read or written; a new token is lost.
    Store(String),
}

impl Unfresh {
    /// For people; holds no secret.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Refresh(text) | Self::Store(text) => text,
        }
    }
}

impl AuthStore {
    /// The store in a file. Nothing is read yet.
    #[must_use]
    pub fn new(path: String) -> Self {
        Self { path, good: Mutex::new(AuthFile::default()) }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Makes the file and its folder if they are not there.
    ///
    /// # Errors
    /// Why they cannot be made.
    pub fn create(&self) -> Result<(), String> {
        let mut empty = |text: Option<&str>| Ok(text.is_none().then(|| AuthFile::default().to_text()));
        update(&self.path, HOW, &CancelToken::new(), &mut empty).map_err(explain)
    }

    /// Reads the file. A missing one is empty.
    #[must_use]
    pub fn read(&self) -> Reading {
        let mut good = self.good.lock().unwrap_or_else(PoisonError::into_inner);
        let read = read_text(&self.path).and_then(|text| match text {
            Some(text) => AuthFile::parse(&text).map_err(|fault| fault.to_string()),
            None => Ok(AuthFile::default()),
        });
        match read {
            Ok(file) => {
                good.clone_from(&file);
                Reading { file, problem: None }
            }
            Err(problem) => Reading { file: good.clone(), problem: Some(problem) },
        }
    }

    /// Gives the credential of a provider, as it is in the file now, to `change` and stores what that answers; `None`
    /// changes nothing. The credential afterwards.
    ///
    /// # Errors
    /// That of `change`, or why the file cannot be changed; it is untouched then.
    pub fn modify(
        &self,
        provider: &str,
        change: &mut dyn FnMut(Option<&Value>) -> Result<Option<Value>, String>,
    ) -> Result<Option<Value>, String> {
        let mut after = None;
        let mut rewrite = |text: Option<&str>| {
            let mut file = parse(text)?;
            let new = change(file.entry(provider))?;
            let changed = new.is_some();
            if let Some(new) = new {
                file.set(provider, new);
            }
            after = file.entry(provider).cloned();
            Ok(changed.then(|| file.to_text()))
        };
        let change: Change<'_> = &mut rewrite;
        update_slowly(&self.path, HOW, &CancelToken::new(), change).map_err(explain)?;
        Ok(after)
    }

    /// Removes the credential of a provider. Whether there was one.
    ///
    /// # Errors
    /// Why the file cannot be changed; it is untouched then.
    pub fn delete(&self, provider: &str) -> Result<bool, String> {
        let mut found = false;
        let mut rewrite = |text: Option<&str>| {
            let mut file = parse(text)?;
            found = file.entry(provider).is_some();
            file.remove(provider);
            Ok(text.map(|_| file.to_text()))
        };
        update(&self.path, HOW, &CancelToken::new(), &mut rewrite).map_err(explain)?;
        Ok(found)
    }

    /// The stored sign-in of a provider with a token that still counts: one that soon runs out is renewed under the
    /// lock, unless another process did so meanwhile, and stored before anyone uses it (spec 40 §1.8). `None` when
    /// there is no sign-in (any more). With a `minimum`, ms, a token that runs out earlier is an error.
    ///
    /// # Errors
    /// Why there is no such token. The stored one stays when no other was given.
    pub fn fresh(
        &self,
        provider: &str,
        minimum: Option<i64>,
        now: &dyn Fn() -> i64,
        renew: &mut dyn FnMut(&Value) -> Result<Value, String>,
    ) -> Result<Option<Value>, Unfresh> {
        let reading = self.read();
        let Some(entry) = sign_in(reading.file.entry(provider)) else { return Ok(None) };
        if !oauth::is_due(entry, now(), minimum) {
            return Ok(Some(entry.clone()));
        }
        let mut refused = None;
        // Whoever gave the new token may not take the old one any more: it is stored, whatever ends the program.
        let mut patience = None;
        let stored = self.modify(provider, &mut |current| {
            let due = sign_in(current).filter(|entry| oauth::is_due(entry, now(), minimum));
            let Some(entry) = due else { return Ok(None) };
            patience = Some(Patience::begin());
            renew(entry).map(Some).inspect_err(|why| refused = Some(why.clone()))
        });
        drop(patience);
        let stored = match (stored, refused) {
            (_, Some(why)) => return Err(Unfresh::Refresh(why)),
            (Err(why), None) => return Err(Unfresh::Store(why)),
            (Ok(stored), None) => stored,
        };
        let Some(entry) = sign_in(stored.as_ref()) else { return Ok(None) };
        if minimum.is_some() && oauth::is_due(entry, now(), minimum) {
            let text = format!("the token of {provider} runs out sooner than was asked for");
            return Err(Unfresh::Refresh(text));
        }
        Ok(stored)
    }
}

fn parse(text: Option<&str>) -> Result<AuthFile, String> {
    text.map_or_else(|| Ok(AuthFile::default()), AuthFile::parse).map_err(|fault| fault.to_string())
}

fn sign_in(entry: Option<&Value>) -> Option<&Value> {
    entry.filter(|entry| kind(entry) == Some(Kind::OAuth))
}
