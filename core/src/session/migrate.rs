//! Files of versions 1 and 2 brought to version 3 (spec 60 §1.8).

use alloc::string::String;
use alloc::vec::Vec;

use crate::entropy::Entropy;
use crate::ids::EntryId;
use crate::json::{self, Map, Value};
use crate::text::utf8::lossy;

/// The version a header names: absent and null count as 1; text is read as a number.
#[must_use]
pub fn version_of(version: Option<&Value>) -> f64 {
    match version {
        None | Some(Value::Null) => 1.0,
        Some(Value::Number(n)) => n.as_f64().unwrap_or(f64::NAN),
        Some(Value::String(text)) => text.trim().parse().unwrap_or(f64::NAN),
        Some(Value::Bool(b)) => f64::from(u8::from(*b)),
        Some(_) => f64::NAN,
    }
}

/// Migrates the records of a file in place. `true` when something changed.
pub fn migrate(records: &mut [Value], rng: &mut Entropy) -> bool {
    let is_header = |record: &Value| kind(record) == Some("session");
    let version = version_of(records.iter().find(|r| is_header(r)).and_then(|header| header.get("version")));
    // A version that is no number is one this program does not know: left alone, like a newer one.
    if version.is_nan() || version >= 3.0 {
        return false;
    }
    if version < 2.0 {
        chain(records, rng);
    }
    for record in records.iter_mut().filter_map(Value::as_object_mut) {
        rename_role(record);
        if record.get("type").and_then(Value::as_str) == Some("session") {
            record.insert("version".into(), Value::from(3));
        }
    }
    true
}

/// The new content of a file of version 1 or 2; `None` when it is no such file. The caller replaces the file by
/// way of a temporary one, so that the old content is never lost.
#[must_use]
pub fn rewrite(bytes: &[u8], rng: &mut Entropy) -> Option<Vec<u8>> {
    let (mut records, mut order) = (Vec::new(), Vec::new());
    for line in bytes.split(|byte| *byte == b'\n') {
        match super::decode::parse_line(&lossy(line)) {
            Some(record @ Value::Object(_)) => {
                order.push(None);
                records.push(record);
            }
            // What is no record is kept as it stands.
            _ if !line.trim_ascii().is_empty() => order.push(Some(line)),
            _ => {}
        }
    }
    super::entry::Header::from_value(records.first()?.clone())?;
    if !migrate(&mut records, rng) {
        return None;
    }
    let (mut out, mut records) = (Vec::with_capacity(bytes.len() + records.len() * 48), records.iter());
    for raw in order {
        match raw {
            Some(line) => out.extend_from_slice(line),
            None => out.extend_from_slice(json::to_string(records.next()?).as_bytes()),
        }
        out.push(b'\n');
    }
    Some(out)
}

fn kind(record: &Value) -> Option<&str> {
    record.get("type")?.as_str()
}

/// Version 1 had no tree: every record hangs below the one before, and compactions named an index.
fn chain(records: &mut [Value], rng: &mut Entropy) {
    let mut ids: Vec<Option<String>> = Vec::with_capacity(records.len());
    let mut taken: hashbrown::HashSet<String> = hashbrown::HashSet::new();
    let mut previous = Value::Null;
    for record in records.iter_mut() {
        let is_header = kind(record) == Some("session");
        let Some(map) = record.as_object_mut() else {
            ids.push(None);
            continue;
        };
        if is_header {
            ids.push(None);
            continue;
        }
        let id = String::from(EntryId::fresh(rng, |id| taken.contains(id)).as_str());
        taken.insert(id.clone());
        ids.push(Some(id.clone()));
        map.insert("id".into(), Value::from(id.as_str()));
        map.insert("parentId".into(), core::mem::replace(&mut previous, Value::from(id)));
        name_first_kept(map, &ids);
    }
}

fn name_first_kept(map: &mut Map<String, Value>, ids: &[Option<String>]) {
    if map.get("type").and_then(Value::as_str) != Some("compaction") {
        return;
    }
    let Some(index) = map.get("firstKeptEntryIndex").and_then(Value::as_f64) else { return };
    map.shift_remove("firstKeptEntryIndex");
    let whole = index >= 0.0 && index < ids.len() as f64 && (index as usize) as f64 == index;
    if let Some(Some(id)) = whole.then(|| ids.get(index as usize)).flatten() {
        map.insert("firstKeptEntryId".into(), Value::from(id.as_str()));
    }
}

fn rename_role(record: &mut Map<String, Value>) {
    let is_message = record.get("type").and_then(Value::as_str) == Some("message");
    if let Some(message) = record.get_mut("message").filter(|_| is_message).and_then(Value::as_object_mut)
        && message.get("role").and_then(Value::as_str) == Some("hookMessage")
    {
        message.insert("role".into(), Value::from("custom"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewrite_keeps_what_it_does_not_understand() {
        let old = "{\"type\":\"session\",\"id\":\"s\",\"cwd\":\"/w\",\"mine\":1.50}\n\n# a remark\n{\"type\":\"zzz\",\"n\":[1]}\n{\"torn";
        let mut rng = Entropy::new([1; 32]);
        let new = rewrite(old.as_bytes(), &mut rng).unwrap();
        let new = String::from_utf8(new).unwrap();
        let lines: Vec<&str> = new.lines().collect();
        assert_eq!(lines[0], r#"{"type":"session","id":"s","cwd":"/w","mine":1.5,"version":3}"#);
        assert_eq!((lines[1], lines[3], lines.len()), ("# a remark", "{\"torn", 4));
        assert!(lines[2].starts_with(r#"{"type":"zzz","n":[1],"id":""#), "{}", lines[2]);
        assert!(rewrite(new.as_bytes(), &mut rng).is_none());
        assert!(rewrite(b"# no session\n", &mut rng).is_none());
    }

    #[test]
    fn versions() {
        let number = |text: &str| version_of(serde_json::from_str(text).ok().as_ref());
        assert_eq!((number("3"), number("\"3\""), number("null"), number("true")), (3.0, 3.0, 1.0, 1.0));
        assert!(number("[]").is_nan() && number("\"x\"").is_nan());
    }
}
