//! Writes the seed corpora from the test vectors: one small file a case, named by its content.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::{fs, io};

use serde_json::Value;
use tau_core::entropy::Entropy;

/// Larger inputs slow the fuzzer down and teach it little.
const MAX_BYTES: usize = 1200;
const MAX_FILES: usize = 40;

/// A target, a vector file, and how a case becomes input.
type Source = (&'static str, &'static str, fn(&Value) -> Option<Vec<u8>>);

const SOURCES: &[Source] = &[
    ("edit_apply", "tools/edit", |case| edit(&case["input"])),
    ("sse", "providers/sse-parser", |case| with_split(chunks(&case["input"]["chunks"])?)),
    ("jsonl_reader", "sessions/jsonl-framing", |case| with_split(chunks(&case["input"]["chunksText"])?)),
    ("jsonl_reader", "providers/tool-arguments-final", |case| with_split(case["input"].as_str()?.into())),
    ("decode_anthropic", "providers/anthropic-stream", |case| {
        with_split(chunks(&case["input"]["response"]["chunks"])?)
    }),
    ("decode_bedrock", "providers/bedrock-stream", |case| with_split(base64(&case["input"]["response"])?)),
    ("aws_event_stream", "providers/bedrock-stream", |case| with_split(base64(&case["input"]["response"])?)),
    ("decode_google", "providers/google-stream", |case| {
        with_split(chunks(&case["input"]["response"]["chunks"])?)
    }),
    ("decode_mistral", "providers/mistral-stream", |case| {
        with_split(chunks(&case["input"]["response"]["chunks"])?)
    }),
    ("decode_openai_completions", "providers/openai-completions-stream", |case| {
        with_split(chunks(&case["input"]["response"]["chunks"])?)
    }),
    ("decode_openai_responses", "providers/openai-responses-stream", |case| {
        with_split(chunks(&case["input"]["response"]["chunks"])?)
    }),
    ("partial_json", "providers/partial-json", |case| with_split(chunks(&case["input"]["chunks"])?)),
    ("partial_json", "providers/repair-json", |case| with_split(case["input"].as_str()?.into())),
    ("frontmatter", "tools/frontmatter", |case| Some(case["input"]["text"].as_str()?.into())),
    ("models_json", "config/models-json", |case| Some(case["input"]["content"].as_str()?.into())),
    ("model_lists", "config/catalog-refresh", |case| list(&case["input"]["responses"][0]["body"])),
    ("model_lists", "config/catalog-refresh", |case| stored_list(&case["input"]["stored"])),
    ("auth_file", "config/auth-file-validate", |case| Some(case["input"]["content"].as_str()?.into())),
    ("settings_jsonc", "config/jsonc", |case| Some(case["input"].as_str()?.into())),
    ("settings_jsonc", "config/settings-merge", |case| Some(case["input"]["global"].as_str()?.into())),
    ("session_reader", "sessions/malformed-files", file),
    ("session_reader", "sessions/leaf-tree-labels", file),
];

/// The lines of a session file.
fn file(case: &Value) -> Option<Vec<u8>> {
    if let Some(text) = case["input"]["text"].as_str() {
        return with_split(text.into());
    }
    let records = case["input"]["fileEntries"].as_array()?.iter();
    with_split(records.flat_map(|record| (tau_core::json::to_string(record) + "\n").into_bytes()).collect())
}

/// An answer of the remote catalogue.
fn list(body: &Value) -> Option<Vec<u8>> {
    if body.is_null() {
        return None;
    }
    let text = body.as_str().map_or_else(|| tau_core::json::to_string(body), str::to_owned);
    Some([vec![0], text.into_bytes()].concat())
}

/// A store with the list of one provider.
fn stored_list(entry: &Value) -> Option<Vec<u8>> {
    let text = entry.is_object().then(|| format!("{{\"groq\":{}}}", tau_core::json::to_string(entry)))?;
    Some([vec![1], text.into_bytes()].concat())
}

/// A body that is no text.
fn base64(response: &Value) -> Option<Vec<u8>> {
    tau_core::text::base64::decode(response["bytesBase64"].as_str()?)
}

/// Chunks that are plain text, joined.
fn chunks(list: &Value) -> Option<Vec<u8>> {
    let parts: Option<Vec<&str>> = list.as_array()?.iter().map(Value::as_str).collect();
    Some(parts?.concat().into_bytes())
}

/// File, old and new texts, with the separator of the target between them.
fn edit(input: &Value) -> Option<Vec<u8>> {
    let mut parts = vec![input["file"].as_str()?];
    for edit in input["edits"].as_array()? {
        parts.extend([edit["oldText"].as_str()?, edit["newText"].as_str()?]);
    }
    Some(parts.join("\u{1e}").into_bytes())
}

/// Targets take the split from the first byte.
fn with_split(body: Vec<u8>) -> Option<Vec<u8>> {
    Some([vec![3], body].concat())
}

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (target, vectors, input) in SOURCES {
        let text = fs::read_to_string(root.join("../tests/vectors").join(format!("{vectors}.json")))?;
        let doc = tau_core::json::parse(&text).map_err(io::Error::other)?;
        let cases = doc["cases"].as_array().into_iter().flatten();
        store(
            root,
            target,
            cases.filter_map(input).filter(|bytes| bytes.len() <= MAX_BYTES).take(MAX_FILES),
        )?;
    }
    store(root, "session_ops", (0..MAX_FILES / 2).map(dice))?;
    store(root, "hub_ops", (0..MAX_FILES).map(dice))
}

/// Choices for the simulated worlds: longer and longer rows of numbers.
fn dice(n: usize) -> Vec<u8> {
    let mut rng = Entropy::new([n as u8; 32]);
    (0..n * 12).map(|_| rng.below(256) as u8).collect()
}

fn store(root: &Path, target: &str, inputs: impl Iterator<Item = Vec<u8>>) -> io::Result<()> {
    let folder = root.join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    for bytes in inputs {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        fs::write(folder.join(format!("{:016x}", hasher.finish())), bytes)?;
    }
    Ok(())
}
