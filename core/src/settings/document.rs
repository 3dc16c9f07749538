//! Changes single settings in the text of a file, so that everything else in it survives (spec 40 §4.1, D51).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::keys::RENAMED;
use super::merge::migrate;
use super::{jsonc, patch};
use crate::json::{Map, Value, to_pretty};

/// A change of one setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Keys from the outermost object inwards.
    pub path: Vec<String>,
    /// The new value; `None` = the setting is taken out.
    pub value: Option<Value>,
}

/// The new text of a settings file (`None` = there is no such file yet), or `None` when nothing is to be written
/// because the file says all that already.
///
/// Plain JSON is written as Pi writes it: two blanks for each level, no line end at the end, old keys under their new
/// names. In a file with comments or trailing commas nothing but the settings concerned is touched.
///
/// # Errors
/// Why the text cannot be changed; nothing must be written then.
pub fn rewrite(text: Option<&str>, changes: &[Change]) -> Result<Option<String>, String> {
    let text = text.map(jsonc::without_bom).filter(|text| !text.trim().is_empty()).unwrap_or("{}");
    let Value::Object(mut after) = jsonc::parse(text)? else {
        return Err("must hold one JSON object".to_string());
    };
    let plain = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if plain {
        migrate(&mut after);
    }
    let (mut patched, mut changed) = (text.to_string(), false);
    for change in changes {
        for step in steps(&after, change, plain) {
            if !plain {
                patched = patch(&patched, &step).ok_or_else(too_odd)?;
            }
            changed |= apply(&mut after, &step)?;
        }
    }
    if !changed {
        return Ok(None);
    }
    if plain {
        return Ok(Some(to_pretty(&Value::Object(after))));
    }
    match jsonc::parse(&patched) {
        Ok(Value::Object(read)) if read == after => Ok(Some(patched)),
        _ => Err(too_odd()),
    }
}

fn too_odd() -> String {
    "cannot be changed without losing its comments; change it with an editor".to_string()
}

/// What a change means for this file. An object that would be left empty goes too.
fn steps(map: &Map<String, Value>, change: &Change, migrated: bool) -> Vec<Change> {
    if change.value.is_some() {
        return [change.clone()].into();
    }
    let mut paths = [change.path.clone()].to_vec();
    if !migrated {
        // An old name goes with the new one.
        let name = change.path.join(".");
        let old = RENAMED.iter().filter(|(_, new)| *new == name);
        paths.extend(old.map(|(old, _)| old.split('.').map(ToString::to_string).collect()));
    }
    let present = paths.iter().filter_map(|path| removable(map, path));
    present.map(|path| Change { path: path.to_vec(), value: None }).collect()
}

/// The outermost object that would be empty without the setting, or the setting; `None` when it is not there.
fn removable<'a>(map: &Map<String, Value>, path: &'a [String]) -> Option<&'a [String]> {
    let (mut at, mut outermost) = (map, 0);
    for (depth, name) in path.iter().enumerate() {
        let value = at.get(name)?;
        if depth + 1 == path.len() {
            break;
        }
        at = value.as_object()?;
        if at.len() > 1 {
            outermost = depth + 1;
        }
    }
    path.get(..=outermost)
}

fn patch(text: &str, step: &Change) -> Option<String> {
    match &step.value {
        Some(value) => patch::set(text, &step.path, value),
        None => patch::remove(text, &step.path),
    }
}

/// Whether it changed something.
fn apply(map: &mut Map<String, Value>, step: &Change) -> Result<bool, String> {
    let (last, parents) = step.path.split_last().ok_or_else(|| "a setting needs a name".to_string())?;
    let mut at = map;
    for (depth, name) in parents.iter().enumerate() {
        let slot = at.entry(name.as_str()).or_insert(Value::Null);
        if slot.is_null() {
            *slot = Value::Object(Map::new());
        }
        let Value::Object(inner) = slot else {
            let name = step.path.get(..=depth).unwrap_or_default().join(".");
            return Err(format!("{name} is not an object, so it has no {last}; correct it first"));
        };
        at = inner;
    }
    Ok(match &step.value {
        Some(value) => at.insert(last.clone(), value.clone()).as_ref() != Some(value),
        None => at.shift_remove(last).is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn change(path: &str, value: Option<Value>) -> Change {
        Change { path: path.split('/').map(str::to_string).collect(), value }
    }

    #[test]
    fn files_with_comments_keep_them() {
        let text = "// mine\n{\n  \"queueMode\": \"all\", // old\n  \"x\": 1,\n}\n";
        let set = rewrite(Some(text), &[change("retry/enabled", Some(json!(false)))]).unwrap().unwrap();
        assert_eq!(
            set,
            "// mine\n{\n  \"queueMode\": \"all\", // old\n  \"x\": 1,\n  \"retry\": {\n    \"enabled\": false\n  }\n}\n"
        );
        let unset = rewrite(Some(&set), &[change("retry/enabled", None), change("steeringMode", None)]);
        assert_eq!(unset.unwrap().unwrap(), "// mine\n{\n   // old\n  \"x\": 1,\n}\n");
    }

    #[test]
    fn nothing_is_written_without_a_change() {
        for (text, path, value) in [
            (Some("{\"a\": {\"b\": 1}}"), "a/b", Some(json!(1))),
            (Some("{\"a\": 1}"), "b", None),
            (Some("{\"a\": 1}"), "b/c", None),
            (None, "a", None),
        ] {
            assert_eq!(rewrite(text, &[change(path, value)]), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        for text in ["{oops", "[]", "{\"a\": 1} x", "{\"a\": 1}", "{\"a\": 1, // c\n}"] {
            let refused = rewrite(Some(text), &[change("a/b", Some(json!(1)))]);
            assert!(refused.is_err(), "{text}: {refused:?}");
        }
        assert!(rewrite(Some("{}"), &[Change { path: Vec::new(), value: Some(json!(1)) }]).is_err());
    }

    #[test]
    fn objects_that_would_be_empty_go() {
        for (text, path, rest) in [
            ("{\"a\":{\"b\":{\"c\":1}},\"d\":1}", "a/b/c", json!({"d": 1})),
            ("{\"a\":{\"b\":{\"c\":1},\"e\":2}}", "a/b/c", json!({"a": {"e": 2}})),
            ("{\"a\":{\"b\":{\"c\":1,\"e\":2}}}", "a/b/c", json!({"a": {"b": {"e": 2}}})),
            ("{\"a\":1}", "a", json!({})),
        ] {
            for text in [text.to_string(), format!("{text} // c")] {
                let got = rewrite(Some(&text), &[change(path, None)]).unwrap().unwrap();
                assert_eq!(jsonc::parse(&got).unwrap(), rest, "{text}");
            }
        }
    }
}
