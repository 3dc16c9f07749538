//! File trees of vectors, laid out in a temporary folder.

#![allow(clippy::expect_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use crate::text_spec;

/// Lays out a list of entries `{path, text | hex | link | dir}` or `{generate: {prefix, from, to, pad}}`.
///
/// # Panics
/// When the operating system refuses.
pub fn lay_out(root: &Path, entries: &Value) {
    for entry in entries.as_array().into_iter().flatten() {
        let generate = &entry["generate"];
        if generate.is_object() {
            let number = |key: &str| generate[key].as_u64().unwrap_or_default();
            let (prefix, pad) = (generate["prefix"].as_str().unwrap_or_default(), number("pad") as usize);
            for n in number("from")..=number("to") {
                write(&root.join(format!("{prefix}{n:0pad$}")), b"");
            }
            continue;
        }
        let path = root.join(entry["path"].as_str().expect("an entry has a path"));
        if entry["dir"].as_bool() == Some(true) {
            fs::create_dir_all(&path).expect("folder");
        } else if let Some(target) = entry["link"].as_str() {
            fs::create_dir_all(path.parent().expect("inside the root")).expect("parents");
            symlink(target, &path).expect("link");
        } else if let Some(hex) = entry["hex"].as_str() {
            write(&path, &from_hex(hex));
        } else {
            write(&path, text_spec::text(&entry["text"]).as_bytes());
        }
    }
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("inside the root")).expect("parents");
    fs::write(path, bytes).expect("file");
}

/// Bytes given in hexadecimal.
///
/// # Panics
/// When the text is not hexadecimal.
#[must_use]
pub fn from_hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).expect("hex")).collect()
}
