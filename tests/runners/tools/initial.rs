//! First message: `@file` arguments, stdin, messages, and the options that concern them.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tau::args::{self, Args};
use tau::file_args;
use tau::prompts::{self, FileInput};
use tau::surroundings::Surroundings;
use tau_core::message::Block;
use tau_core::op::ImageLimits;
use tau_tests::compare::same;

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

pub fn initial_message(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let got = match case["fn"].as_str() {
        Some("buildInitialMessage") => build(input),
        Some("processFileArguments") => files(input)?,
        Some("parseArgs") => shown(&args::parse(texts(&input["argv"]))),
        other => return Err(format!("no function {other:?}")),
    };
    same(&case["expected"], &got)
}

fn build(input: &Value) -> Value {
    let images = input["fileImages"].as_array().map_or(0, Vec::len);
    let files = FileInput {
        text: input["fileText"].as_str().unwrap_or_default().to_owned(),
        images: vec![Block::image("", "image/png"); images],
    };
    let messages = texts(&input["messages"]);
    let has_first = !messages.is_empty()
        || !files.text.is_empty()
        || input["stdin"].as_str().is_some_and(|s| !s.is_empty());
    let mut prompts = prompts::assemble(input["stdin"].as_str(), files, messages);
    let first = if has_first { prompts.pop_front() } else { None };
    json!({
        "message": first.as_ref().map(|prompt| prompt.text.as_str()),
        "images": first.as_ref().map_or(images, |prompt| prompt.images.len()),
        "remainingMessages": prompts.iter().map(|prompt| prompt.text.as_str()).collect::<Vec<_>>(),
    })
}

fn files(input: &Value) -> Result<Value, String> {
    let root = tempfile::tempdir().map_err(|e| e.to_string())?;
    let cwd = root.path().to_string_lossy().into_owned();
    for item in input["tree"].as_array().into_iter().flatten() {
        lay_out(root.path(), item).map_err(|e| e.to_string())?;
    }
    let place = Surroundings { cwd: cwd.clone(), home: None, agent_dir: String::new() };
    let names: Vec<String> = texts(&input["args"]).iter().map(|name| name.replace("{ROOT}", &cwd)).collect();
    let limits = ImageLimits { resize: false, ..ImageLimits::default() };
    Ok(match file_args::read(&names, &place, &limits) {
        Ok(found) => json!({
            "text": found.text.replace(&cwd, "{ROOT}"),
            "images": found.images.iter().filter_map(image).collect::<Vec<_>>(),
        }),
        Err(why) if why.contains("no file") => json!({ "exitCode": 1 }),
        Err(why) if why.contains("folder") || why.contains("directory") => {
            json!({ "fails": "is_a_directory" })
        }
        Err(why) => json!({ "fails": why }),
    })
}

fn lay_out(root: &Path, item: &Value) -> std::io::Result<()> {
    let path = root.join(item["path"].as_str().unwrap_or_default());
    fs::create_dir_all(path.parent().unwrap_or(root))?;
    let bytes = match item["hex"].as_str() {
        Some(hex) => hex
            .as_bytes()
            .chunks(2)
            .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect(),
        None => item["text"].as_str().unwrap_or_default().as_bytes().to_vec(),
    };
    fs::write(path, bytes)
}

fn image(block: &Block) -> Option<Value> {
    let Block::Image(image) = block else { return None };
    let bytes = STANDARD.decode(image.data.as_str()).ok()?;
    Some(json!({ "mimeType": image.mime_type, "bytes": bytes.len() }))
}

/// The options of this area, in the shape of the vectors.
fn shown(args: &Args) -> Value {
    let mut out = Map::new();
    out.insert("messages".into(), json!(args.messages));
    out.insert("fileArgs".into(), json!(args.files));
    out.insert("print".into(), json!(args.print));
    out.insert("errors".into(), json!(args.errors().count()));
    for (key, set) in [
        ("noTools", args.no_tools),
        ("noBuiltinTools", args.no_builtin_tools),
        ("noSkills", args.no_skills),
        ("noPromptTemplates", args.no_prompt_templates),
        ("noContextFiles", args.no_context_files),
    ] {
        if set {
            out.insert(key.into(), json!(true));
        }
    }
    for (key, list) in [
        ("appendSystemPrompt", &args.append_system_prompt),
        ("skills", &args.skills),
        ("promptTemplates", &args.prompt_templates),
    ] {
        if !list.is_empty() {
            out.insert(key.into(), json!(list));
        }
    }
    if let Some(list) = &args.exclude_tools {
        out.insert("excludeTools".into(), json!(list));
    }
    if let Some(list) = &args.tools {
        out.insert("tools".into(), json!(list));
    }
    if let Some(text) = &args.system_prompt {
        out.insert("systemPrompt".into(), json!(text));
    }
    Value::Object(out)
}
