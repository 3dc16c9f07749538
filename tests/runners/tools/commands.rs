//! Prompt templates and skill commands.

use serde_json::{Value, json};
use tau_core::prompt::templates::{self, Template};
use tau_core::skills::Skill;
use tau_core::skills::command::{self, Expansion};
use tau_tests::compare::same;

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub fn templates(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let got = match case["fn"].as_str() {
        Some("parseCommandArgs") => json!({ "args": templates::split_arguments(text(input, "text")) }),
        Some("substituteArgs") => {
            let arguments: Vec<String> =
                list(&input["args"]).iter().filter_map(|a| a.as_str().map(str::to_owned)).collect();
            json!({ "text": templates::substitute(text(input, "content"), &arguments) })
        }
        Some("expandPromptTemplate") => {
            let known: Vec<Template> = list(&input["templates"])
                .iter()
                .map(|template| Template {
                    name: text(template, "name").to_owned(),
                    content: text(template, "content").to_owned(),
                    ..Template::default()
                })
                .collect();
            let given = text(input, "text");
            json!({ "text": templates::expand(given, &known).unwrap_or_else(|| given.to_owned()) })
        }
        Some("loadTemplate") => match templates::load(text(input, "file"), text(input, "text")) {
            Ok(Some(template)) => json!({
                "name": template.name,
                "description": template.description,
                "argumentHint": template.argument_hint,
                "content": template.content,
            }),
            Ok(None) => json!({ "rejected": true, "diagnostics": 0 }),
            Err(_) => json!({ "rejected": true, "diagnostics": 1 }),
        },
        other => return Err(format!("no function {other:?}")),
    };
    same(&case["expected"], &got)
}

pub fn skill_command(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let given = text(input, "text");
    match case["fn"].as_str() {
        Some("parseSkillBlock") => {
            let got = command::parse_block(given).map(|block| {
                json!({
                    "name": block.name,
                    "location": block.location,
                    "content": block.content,
                    "userMessage": block.user_message,
                })
            });
            same(&case["expected"], &json!(got))
        }
        Some("expandSkillCommand") => same(&case["expected"], &expanded(input, given)?),
        other => Err(format!("no function {other:?}")),
    }
}

/// The outcome in the words of the vectors.
fn expanded(input: &Value, given: &str) -> Result<Value, String> {
    let skills: Vec<Skill> = list(&input["skills"])
        .iter()
        .map(|skill| Skill {
            name: text(skill, "name").to_owned(),
            file_path: text(skill, "filePath").to_owned(),
            base_dir: text(skill, "baseDir").to_owned(),
            ..Skill::default()
        })
        .collect();
    let mut read = |path: &str| {
        let file =
            list(&input["files"]).iter().find(|file| format!("{{ROOT}}/{}", text(file, "path")) == path);
        file.map(|file| text(file, "text").to_owned()).ok_or_else(|| "no such file".to_owned())
    };
    let message = match command::expand(given, &skills, &mut read) {
        Expansion::None => return Ok(json!({ "expanded": false, "text": given })),
        Expansion::Failed { .. } => {
            return Ok(json!({ "expanded": false, "text": given, "errorEvent": "skill_expansion" }));
        }
        Expansion::Message(message) => message,
    };
    let block = command::parse_block(&message).ok_or("the message is not recognised again")?;
    let (open, _) = message.split_once('\n').unwrap_or_default();
    let (intro, body) = block.content.split_once("\n\n").ok_or("no blank line before the body")?;
    let base = skills.iter().find(|skill| skill.name == block.name).map(|skill| skill.base_dir.as_str());
    Ok(json!({
        "expanded": true,
        "open": open,
        "baseDirMentioned": base.filter(|base| intro.contains(base)),
        "body": body,
        "userMessage": block.user_message,
        "endsWithCloseTag": message.ends_with("</skill>"),
    }))
}
