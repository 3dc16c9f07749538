//! Settings: the document about them says what the table says; a change of one keeps all others, comments too.

#![allow(missing_docs)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use tau_core::entropy::Entropy;
use tau_core::json::to_string;
use tau_core::settings::keys::{KEYS, Key};
use tau_core::settings::{Change, jsonc, migrate, rewrite};

const HEAD: &str = "# Settings

`settings.json` in the agent directory holds the settings of a user; `.pi/settings.json` in a project lies over it, if the project is
trusted: objects merge key by key, everything else replaces. A project's `defaultTools` of nothing but `+name` and `-name` change the
user's list. Relative paths in `skills` and `prompts` start at the folder of the file.

Comments (`//`) and trailing commas are tolerated. A file that cannot be understood counts as empty, is named with line and column,
and is never written. Keys that nobody knows stay. Old keys are understood: `queueMode`, `websockets`, `retry.maxDelayMs`, and
`skills` as an object.

```sh
tau config list                          # everything that counts, and where it comes from
tau config get retry.maxRetries
tau config set retry.maxRetries 5
tau config set --project defaultTools read grep find ls
tau config unset retry.maxRetries
```

A value of the wrong kind is refused by `tau config set`; in a file the default counts instead, and `tau config list` tells. `*` stands
for a model, as `provider/id`. RPC clients save `steeringMode`, `followUpMode`, `compaction.enabled` and `retry.enabled` in the user's file.

## Trust

The files in `.pi` of a project, and skills in `.agents/skills` there and above, count when the project is trusted. In order:
`--approve` and `--no-approve` decide for one run; then a decision that was stored for the folder or the nearest one above
(`trust.json` in the agent directory); then `defaultProjectTrust`. With `ask`, a person at a terminal is asked, and answers for this
time or from now on; without one (pipes, JSON and RPC mode) the files do not count.

```sh
tau config trust                         # what the project brings, and what was decided
tau config trust yes                     # or no, parent (all projects beside it), forget
```
";

fn row(out: &mut String, key: &Key) {
    let default = if key.default.is_empty() { String::new() } else { format!("`{}`", key.default) };
    let meaning =
        if key.global_only { format!("{}; global file only", key.meaning) } else { key.meaning.into() };
    let _ = writeln!(out, "| `{}` | {} | {default} | {meaning} |", key.name, key.kind.describe());
}

fn document() -> String {
    let mut out = String::from(HEAD);
    for (used, title) in [
        (true, "## Keys\n"),
        (
            false,
            "## Kept for other programs\n\nThis version does nothing with them. `tau config set` takes them and says so.\n",
        ),
    ] {
        let _ = write!(out, "\n{title}\n| key | value | default | meaning |\n|---|---|---|---|\n");
        KEYS.iter().filter(|key| key.used == used).for_each(|key| row(&mut out, key));
    }
    out
}

/// `TAU_WRITE_DOCS=1` writes it.
#[test]
fn the_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/settings.md");
    if std::env::var_os("TAU_WRITE_DOCS").is_some() {
        fs::write(&path, document()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    for (number, (found, wanted)) in found.lines().zip(document().lines()).enumerate() {
        assert_eq!(found, wanted, "docs/settings.md, line {}; TAU_WRITE_DOCS=1 writes it anew", number + 1);
    }
    assert_eq!(found, document());
}

struct Dice(Entropy);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.0.below(limit as u64)).unwrap_or(0)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => json!(self.below(100)),
            1 => json!(self.pick(&["", "//", "}", "a\"b\\", ",\n", "é😀"])),
            2 => Value::Null,
            3 => json!(true),
            4 => Value::Array((0..self.below(3)).map(|_| self.value(depth - 1)).collect()),
            _ => Value::Object(self.object(depth - 1)),
        }
    }

    fn object(&mut self, depth: usize) -> Map<String, Value> {
        let names = ["a", "b", "c", "a.b", "//", "\"", "queueMode", "retry", "maxDelayMs"];
        (0..self.below(5)).map(|_| (self.pick(&names).to_owned(), self.value(depth))).collect()
    }

    /// Text that holds the value and, if `odd`, comments and trailing commas.
    fn text(&mut self, value: &Value, odd: bool, out: &mut String) {
        let (open, close) = match value {
            Value::Array(_) => ('[', ']'),
            Value::Object(_) => ('{', '}'),
            leaf => return out.push_str(&to_string(leaf)),
        };
        out.push(open);
        self.gap(odd, out);
        let members: Vec<(Option<&String>, &Value)> = match value {
            Value::Array(items) => items.iter().map(|item| (None, item)).collect(),
            Value::Object(map) => map.iter().map(|(name, value)| (Some(name), value)).collect(),
            _ => Vec::new(),
        };
        let count = members.len();
        for (at, (name, value)) in members.into_iter().enumerate() {
            if let Some(name) = name {
                out.push_str(&to_string(&Value::String(name.clone())));
                self.gap(odd, out);
                out.push(':');
                self.gap(odd, out);
            }
            self.text(value, odd, out);
            self.gap(odd, out);
            if at + 1 < count || (odd && self.below(2) == 0) {
                out.push(',');
                self.gap(odd, out);
            }
        }
        out.push(close);
    }

    fn gap(&mut self, odd: bool, out: &mut String) {
        let gaps = ["", " ", "\n  ", "\r\n\t", " // \"{,\n", "\n    // }\r\n"];
        out.push_str(self.pick(if odd { &gaps } else { &gaps[..4] }));
    }
}

/// Gives a path a value, or takes it out; `None` when something on the way is no object.
fn apply(map: &mut Map<String, Value>, path: &[String], value: Option<&Value>) -> Option<()> {
    let (name, rest) = path.split_first()?;
    match (rest.is_empty(), value) {
        (true, Some(value)) => {
            map.insert(name.clone(), value.clone());
        }
        (true, None) => {
            map.shift_remove(name);
        }
        (false, Some(_)) => {
            let inner = map.entry(name.clone()).or_insert(Value::Null);
            if inner.is_null() {
                *inner = json!({});
            }
            apply(inner.as_object_mut()?, rest, value)?;
        }
        (false, None) => {
            let Some(Value::Object(inner)) = map.get_mut(name) else { return Some(()) };
            let filled = !inner.is_empty();
            apply(inner, rest, None)?;
            if filled && inner.is_empty() {
                map.shift_remove(name);
            }
        }
    }
    Some(())
}

#[test]
fn a_change_keeps_everything_else() {
    let mut dice = Dice(Entropy::new([7; 32]));
    let (mut written, mut with_comments) = (0, 0);
    for _ in 0..10_000 {
        let document = dice.object(3);
        let odd = dice.below(3) > 0;
        let mut text = String::new();
        dice.gap(odd, &mut text);
        dice.text(&Value::Object(document.clone()), odd, &mut text);
        dice.gap(odd, &mut text);
        let names = ["a", "b", "c", "a.b", "queueMode", "retry", "new"];
        let path: Vec<String> = (0..=dice.below(3)).map(|_| dice.pick(&names).to_owned()).collect();
        let value = (dice.below(3) > 0).then(|| dice.value(2));

        let plain = serde_json::from_str::<Value>(&text).is_ok();
        let mut wanted = document.clone();
        if plain {
            migrate(&mut wanted);
        }
        let applied = apply(&mut wanted, &path, value.as_ref());
        let change = Change { path: path.clone(), value: value.clone() };
        let about = || format!("{path:?} = {value:?} in {text}");
        match (rewrite(Some(&text), std::slice::from_ref(&change)), applied) {
            (Err(_), None) => {}
            (Ok(Some(new)), Some(())) => {
                let read = jsonc::parse(&new).unwrap_or_else(|e| panic!("{e}: {new}\n{}", about()));
                assert_eq!(read, Value::Object(wanted), "{}", about());
                // Once is enough. An old name gets its new one when the file is read again.
                let old_name = matches!(path[0].as_str(), "queueMode" | "retry");
                assert!(old_name || rewrite(Some(&new), &[change]) == Ok(None), "{}", about());
                let comments = |text: &str| text.matches("//").count() - text.matches("\"//\"").count();
                if value.is_some() && !document.contains_key(&path[0]) {
                    assert!(comments(&new) >= comments(&text), "{}\n{new}", about());
                }
                written += 1;
                with_comments += usize::from(!plain);
            }
            (Ok(None), Some(())) => {
                let mut old = document;
                if plain {
                    migrate(&mut old);
                }
                assert_eq!(old, wanted, "{}", about());
            }
            (got, applied) => panic!("{got:?} {applied:?}: {}", about()),
        }
    }
    assert!(written > 4000 && with_comments > 2000, "{written} {with_comments}");
}
