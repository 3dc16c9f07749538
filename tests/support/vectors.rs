//! Runs `vectors/<area>/<file>.json`: one case function per file, counts per file, every failure printed.
//!
//! `TAU_VECTORS=DIR` runs another folder of the same format. Cases contradicted on purpose stand in
//! `vectors/deviations.toml`; a listed case that passes is reported as a failure, so that the list stays true. A file
//! that nothing runs stands there as `area/file`; its reason is told when another folder has it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Prints past the capture of the test harness: the counts are wanted also when everything passes.
macro_rules! say {
    ($($arg:tt)*) => {{
        let _ = writeln!(std::io::stdout(), $($arg)*);
    }};
}

/// Runs one case. `doc` is the whole file (some files share data over cases), `case` one of its cases.
pub type CaseFn = fn(doc: &Value, case: &Value) -> Result<(), String>;

/// A vector file and the function that runs its cases.
pub struct VectorFile {
    /// File name without `.json`.
    pub name: &'static str,
    /// Key of the list of cases, usually `cases`.
    pub list: &'static str,
    /// Runs one case.
    pub run: CaseFn,
}

/// A file whose list of cases is called `cases`.
#[must_use]
pub const fn file(name: &'static str, run: CaseFn) -> VectorFile {
    VectorFile { name, list: "cases", run }
}

/// A file with another name for its list.
#[must_use]
pub const fn list(name: &'static str, list: &'static str, run: CaseFn) -> VectorFile {
    VectorFile { name, list, run }
}

fn own_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

fn folder() -> PathBuf {
    std::env::var_os("TAU_VECTORS").map_or_else(own_folder, PathBuf::from)
}

/// Runs the files of one area and panics with a summary if any case fails.
///
/// # Panics
/// When a case fails, or a listed deviation does not deviate.
pub fn run_area(area: &str, files: &[VectorFile]) {
    let deviations = read_deviations(&own_folder().join("deviations.toml"));
    let (mut passed, mut failed, mut deviating) = (0usize, 0usize, 0usize);
    let foreign = std::env::var_os("TAU_VECTORS").is_some();
    let only = std::env::var("TAU_VECTORS_ONLY").unwrap_or_default();
    // Files of our own folder may belong to another test.
    let unknown = if foreign { others(&folder().join(area), files) } else { Vec::new() };
    for name in unknown {
        let key = format!("{area}/{name}");
        say!("{key}: not run: {}", deviations.get(&key).map_or("nothing runs it yet", String::as_str));
    }
    for file in files.iter().filter(|f| f.name.contains(&only)) {
        let path = folder().join(area).join(format!("{}.json", file.name));
        let Ok(text) = fs::read_to_string(&path) else {
            if !foreign {
                failed += 1;
                say!("FAIL {area}/{}: cannot read {}", file.name, path.display());
            }
            continue;
        };
        let text = without_lone_surrogates(&text);
        let doc: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let cases = doc.get(file.list).and_then(Value::as_array).cloned().unwrap_or_default();
        let (mut file_passed, mut file_failed, mut file_deviating) = (0usize, 0usize, 0usize);
        for (index, case) in cases.iter().enumerate() {
            let name =
                case.get("name").and_then(Value::as_str).map_or_else(|| format!("#{index}"), str::to_owned);
            let key = format!("{area}/{}/{name}", file.name);
            let outcome = catch_unwind(AssertUnwindSafe(|| (file.run)(&doc, case)))
                .unwrap_or_else(|panic| Err(format!("panicked: {}", panic_text(&*panic))));
            match (outcome, deviations.get(&key)) {
                (Ok(()), None) => file_passed += 1,
                (Err(_), Some(_)) => file_deviating += 1,
                (Ok(()), Some(reason)) => {
                    file_failed += 1;
                    say!("FAIL {key}: listed as a deviation ({reason}), but it agrees");
                }
                (Err(why), None) => {
                    file_failed += 1;
                    say!("FAIL {key}: {why}");
                }
            }
        }
        say!("{area}/{}: {file_passed} passed, {file_failed} failed, {file_deviating} deviating", file.name);
        passed += file_passed;
        failed += file_failed;
        deviating += file_deviating;
    }
    say!("{area}: {passed} passed, {failed} failed, {deviating} deviating on purpose");
    assert_eq!(failed, 0, "{area}: {failed} vector cases failed");
}

/// Names of the vector files of a folder that none of `files` is about.
fn others(folder: &Path, files: &[VectorFile]) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let name = |entry: fs::DirEntry| entry.file_name().to_str()?.strip_suffix(".json").map(str::to_owned);
    let mut names: Vec<String> =
        entries.filter_map(name).filter(|name| !files.iter().any(|file| file.name == name)).collect();
    names.sort();
    names
}

/// Drops escapes of unpaired surrogates, which no text of ours can hold (as the reader of outside data does).
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    let unit = |at: usize| -> Option<u16> {
        let hex = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(hex, 16).ok().filter(|unit| (0xd800..0xe000).contains(unit))
    };
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return Cow::Borrowed(text);
    }
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(found) = text[at..].find('\\') {
        let start = at + found;
        out.push_str(&text[at..start]);
        let paired = matches!(unit(start), Some(..0xdc00)) && matches!(unit(start + 6), Some(0xdc00..));
        let (len, keep) = match unit(start) {
            Some(_) if paired => (12, true),
            Some(_) => (6, false),
            None => (1 + text[start + 1..].chars().next().map_or(0, char::len_utf8), true),
        };
        if keep {
            out.push_str(&text[start..start + len]);
        }
        at = start + len;
    }
    out.push_str(&text[at..]);
    Cow::Owned(out)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?").to_owned()
}

/// Reads `"area/file/case" = "reason"` lines (a small subset of TOML: comments, blank lines, basic strings).
fn read_deviations(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let mut list = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with('[') {
            continue;
        }
        let parsed = line.split_once("\" = \"").and_then(|(key, reason)| {
            let unquote = |s: &str| serde_json::from_str::<String>(&format!("\"{s}\"")).ok();
            Some((unquote(key.strip_prefix('"')?)?, unquote(reason.strip_suffix('"')?)?))
        });
        let (key, reason) = parsed
            .unwrap_or_else(|| panic!("{}:{}: not `\"case\" = \"reason\"`", path.display(), number + 1));
        list.insert(key, reason);
    }
    list
}
