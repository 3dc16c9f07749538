//! Credentials that older versions kept elsewhere (spec 40 §4.3): sign-ins in `oauth.json`, keys in `apiKeys` of the
//! settings. They move into `auth.json` when there is none yet.

use std::fs;

use tau_core::auth::file::AuthFile;
use tau_core::json::{Map, Value};
use tau_core::settings::{Scope, Settings};
use tau_io_std::sys::CancelToken;
use tau_io_std::sys::update::{How, update};

use crate::files::read_text;
use crate::settings_store::{self, PASSING};
use crate::surroundings::{Listing, Surroundings};

/// Moves them, and says what became of them. What cannot be moved stays where it is.
pub fn import(place: &Surroundings, agent: &mut Listing, settings: &Settings, tell: &mut dyn FnMut(&str)) {
    let keys = settings.get(&["apiKeys"]).and_then(Value::as_object);
    let sign_ins = agent.has("oauth.json");
    if agent.has("auth.json") || (keys.is_none() && !sign_ins) {
        return;
    }
    let old = place.agent_file("oauth.json");
    let mut file = AuthFile::default();
    if sign_ins {
        match read_old(&old) {
            Ok(entries) => entries.into_iter().for_each(|(id, entry)| file.set(&id, entry)),
            Err(why) => return tell(&format!("{old}: {why}; its sign-ins were not taken over")),
        }
    }
    for (provider, key) in keys.into_iter().flatten().filter_map(|(id, key)| Some((id, key.as_str()?))) {
        if file.entry(provider).is_none() {
            let fields = [("type", "api_key"), ("key", key)];
            let entry: Value =
                fields.into_iter().map(|(name, text)| (name.to_owned(), Value::from(text))).collect();
            file.set(provider, entry);
        }
    }
    if file.list().is_empty() {
        return;
    }
    let path = place.agent_file("auth.json");
    match write_new(&path, &file) {
        Ok(true) => {}
        // Another process was here first.
        Ok(false) => return,
        Err(why) => return tell(&format!("{why}; old credentials were not taken over")),
    }
    if let Listing::Names(names) = agent {
        names.insert("auth.json".to_owned());
    }
    tell(&format!("old credentials were moved into {path}"));
    if sign_ins && let Err(e) = fs::rename(&old, format!("{old}.migrated")) {
        tell(&format!("{old} cannot be renamed: {e}"));
    }
    // Whatever else it holds is nobody's key, and not ours to throw away.
    if keys.is_some_and(|keys| keys.values().all(|key| key.as_str().is_some())) {
        let change = settings_store::change(&["apiKeys"], None);
        if let Err(why) = settings_store::save(place, Scope::Global, &[change], PASSING) {
            tell(&format!("apiKeys cannot be taken out of the settings: {why}"));
        }
    }
}

/// The sign-ins of the old file, as entries of the new one.
fn read_old(path: &str) -> Result<Map<String, Value>, String> {
    let text = read_text(path)?.unwrap_or_else(|| "{}".to_owned());
    let Ok(Value::Object(entries)) = tau_core::json::parse(&text) else {
        return Err("is not a JSON object".to_owned());
    };
    let sign_in = |(id, entry): (String, Value)| match entry {
        Value::Object(mut fields) => {
            fields.shift_insert(0, "type".to_owned(), "oauth".into());
            Some((id, Value::Object(fields)))
        }
        _ => None,
    };
    Ok(entries.into_iter().filter_map(sign_in).collect())
}

/// Writes the file unless there is one by now; whether it was written.
fn write_new(path: &str, file: &AuthFile) -> Result<bool, String> {
    let how = How { mode: 0o600, folder_mode: 0o700, patience: PASSING };
    let mut written = false;
    let mut fill = |text: Option<&str>| {
        written = text.is_none();
        Ok(written.then(|| file.to_text()))
    };
    update(path, how, &CancelToken::new(), &mut fill).map_err(settings_store::explain)?;
    Ok(written)
}
