//! Stdin, file texts and messages → prompts.

use serde_json::{Value, json};
use tau::prompts::{self, FileInput};
use tau_core::message::Block;
use tau_tests::compare::same;

pub fn assemble(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let list = |key: &str| input[key].as_array().cloned().unwrap_or_default();
    let texts: Vec<String> = list("messages").iter().filter_map(|m| m.as_str().map(str::to_owned)).collect();
    let images = list("fileImages").into_iter().map(|image| {
        Block::image(
            image["data"].as_str().unwrap_or_default(),
            image["mimeType"].as_str().unwrap_or_default(),
        )
    });
    let text = input["fileText"].as_str().unwrap_or_default().to_owned();
    let files = FileInput { text, images: images.collect() };
    let first_given = input["stdinContent"].is_string() || !files.text.is_empty() || !texts.is_empty();
    let mut prompts = prompts::assemble(input["stdinContent"].as_str(), files, texts);
    let first = if first_given { prompts.pop_front() } else { None };
    let got = json!({
        "initialMessage": first.as_ref().map(|prompt| prompt.text.as_str()),
        "imageCount": first.as_ref().map_or(0, |prompt| prompt.images.len()),
        "remainingMessages": prompts.iter().map(|prompt| prompt.text.as_str()).collect::<Vec<_>>(),
    });
    same(&case["expected"], &got)
}
