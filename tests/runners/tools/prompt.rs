//! System prompt, the files it is made from, front matter.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tau_core::message::Text;
use tau_core::prompt::files::{self, ContextFile, Files, Name, ReadFault, Where};
use tau_core::prompt::system::{self, Facts, Section, ToolFacts};
use tau_core::skills::{Skill, frontmatter};
use tau_tests::compare::same;

pub fn frontmatter(_: &Value, case: &Value) -> Result<(), String> {
    let mut expected = case["expected"].clone();
    let got = match frontmatter::parse(case["input"]["text"].as_str().unwrap_or_default()) {
        Ok(document) => {
            let mut got = json!({ "ok": true, "frontmatter": document.front, "body": document.body });
            got["stripped"] = got["body"].clone();
            if document.front.is_string() {
                got["frontmatterType"] = json!("string");
            }
            got
        }
        Err(_) => {
            // The name of the class is informative.
            expected["error"] = Value::Null;
            json!({ "ok": false, "error": null })
        }
    };
    same(&expected, &got)
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array().into_iter().flatten();
    list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

/// Stand-ins for the rules of the built-in tools, named as the vectors name them.
fn builtin_rules(tool: &str) -> Vec<String> {
    let rules: &[&str] = match tool {
        "read" => &["read.1"],
        "bash" | "powershell" => &["env_vars"],
        "edit" => &["edit.1", "edit.2"],
        "write" => &["write.1"],
        _ => &[],
    };
    rules.iter().map(ToString::to_string).collect()
}

pub fn system_prompt(_: &Value, case: &Value) -> Result<(), String> {
    match case["fn"].as_str() {
        Some("buildSystemPrompt") => build(case),
        Some("diffSections") => diff(case),
        other => Err(format!("no function {other:?}")),
    }
}

fn diff(case: &Value) -> Result<(), String> {
    let pairs = |key: &str| {
        let map = case["input"][key].as_object().cloned().unwrap_or_default();
        map.into_iter().filter_map(|(name, text)| Some((name, text.as_str()?.to_owned()))).collect::<Vec<_>>()
    };
    let previous: Vec<(String, Text)> =
        pairs("previous").into_iter().map(|(name, text)| (name, Text::from(text))).collect();
    let patch = system::patch(&previous, &pairs("current"));
    let map: Map<String, Value> =
        patch.into_iter().map(|(name, text)| (name, json!(text.as_ref().map(Text::as_str)))).collect();
    same(
        &case["expected"],
        &json!({ "patch": if map.is_empty() { Value::Null } else { Value::Object(map) } }),
    )
}

fn build(case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let names = match input.get("selectedTools") {
        Some(list) => texts(list),
        None => ["read", "bash", "edit", "write"].map(str::to_owned).into(),
    };
    let hidden = texts(&input["hiddenTools"]);
    let rules: Vec<Vec<String>> = names
        .iter()
        .map(|name| match &input["toolGuidelines"] {
            Value::Object(map) => texts(map.get(name).unwrap_or(&Value::Null)),
            Value::Null => Vec::new(),
            _ => builtin_rules(name),
        })
        .collect();
    let tools: Vec<ToolFacts<'_>> = names
        .iter()
        .zip(&rules)
        .map(|(name, rules)| ToolFacts {
            name,
            snippet: input["toolSnippets"][name].as_str(),
            rules,
            hidden: hidden.contains(name),
        })
        .collect();
    let append: Vec<String> = input["appendSystemPrompt"].as_str().map(str::to_owned).into_iter().collect();
    let list = |key: &str| input[key].as_array().cloned().unwrap_or_default();
    let text = |item: &Value, key: &str| item[key].as_str().unwrap_or_default().to_owned();
    let context_files: Vec<ContextFile> = list("contextFiles")
        .iter()
        .map(|file| ContextFile { path: text(file, "path"), content: text(file, "content") })
        .collect();
    let skills: Vec<Skill> = list("skills")
        .iter()
        .map(|skill| Skill {
            name: text(skill, "name"),
            description: text(skill, "description"),
            file_path: text(skill, "filePath"),
            base_dir: text(skill, "baseDir"),
            disable_model_invocation: skill["disableModelInvocation"] == true,
            ..Skill::default()
        })
        .collect();
    let own = input["sections"].as_object().cloned().unwrap_or_default();
    let own: Vec<Section> =
        own.iter().map(|(name, _)| (name.clone(), text(&input["sections"], name))).collect();
    let facts = Facts {
        cwd: input["cwd"].as_str().unwrap_or_default(),
        custom: input["customPrompt"].as_str(),
        append: &append,
        tools: &tools,
        rules: &[],
        context_files: &context_files,
        skills: &skills,
        docs: None,
        sections: &own,
    };
    let Ok(sections) = system::sections(&facts) else {
        return same(&case["expected"], &json!({ "error": "invalid_section_name" }));
    };
    let joined = system::join(&sections);
    let order: Vec<&str> = sections.iter().map(|(name, _)| name.as_str()).collect();
    let mut blocks = Map::new();
    for (name, framed) in &sections {
        let content = if name == "preamble" {
            framed.as_str()
        } else {
            let inner = framed.strip_prefix(&format!("<{name}>\n"));
            let inner = inner.and_then(|inner| inner.strip_suffix(&format!("\n</{name}>")));
            inner.ok_or_else(|| format!("section {name} is not framed"))?
        };
        let expected = &case["expected"]["blocks"][name];
        blocks.insert(name.clone(), describe(name, content, expected, &facts)?);
    }
    let glued = sections.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n\n");
    if glued != joined {
        return Err("sections are not joined by blank lines".to_owned());
    }
    same(&case["expected"], &json!({ "order": order, "blocks": blocks, "joinedBy": "\n\n" }))
}

/// A section in the words of the vectors.
fn describe(name: &str, content: &str, expected: &Value, facts: &Facts<'_>) -> Result<Value, String> {
    let split = || content.split_once("\n\n").ok_or_else(|| format!("{name}: no blank line"));
    Ok(match name {
        "preamble" | "docs" if expected.get("builtin").is_some() => {
            json!({ "builtin": !content.is_empty() })
        }
        "tools" => {
            let (lines, trailer) = split()?;
            let lines: Vec<&str> = lines.lines().filter(|line| *line != "(none)").collect();
            json!({ "lines": lines, "trailer": !trailer.is_empty() })
        }
        "rules" => json!(content.lines().map(|line| rule_name(line, facts)).collect::<Vec<_>>()),
        "project_context" => {
            let (intro, files) = split()?;
            json!({ "introLine": !intro.is_empty() && !intro.contains('\n'), "files": files })
        }
        "skills" => {
            let (intro, xml) = split()?;
            let reader = ["read", "bash"].into_iter().find(|tool| intro.contains(&format!(" with {tool} ")));
            json!({ "reader": reader.unwrap_or("unnamed"), "xml": xml })
        }
        _ => json!({ "text": content }),
    })
}

fn rule_name(line: &str, facts: &Facts<'_>) -> Value {
    let rule = line.strip_prefix("- ").unwrap_or(line);
    let shell = facts.tools.iter().find(|tool| rule.contains(&format!("commands in {}", tool.name)));
    if let Some(tool) = shell {
        return json!(format!("shell_file_ops.{}", tool.name));
    }
    if rule.starts_with("Answer briefly") {
        return json!("concise");
    }
    if rule.contains("by their paths") {
        return json!("show_paths");
    }
    let known = ["read.1", "env_vars", "edit.1", "edit.2", "write.1"];
    if known.contains(&rule) { json!(rule) } else { json!({ "custom": rule }) }
}

/// Where the trees of the vectors stand.
const ROOT: &str = "/fixture";

enum Node {
    File(String),
    Link(String),
}

/// A tree of files held in memory.
struct Tree(BTreeMap<String, Node>);

impl Tree {
    fn new(spec: &Value) -> Self {
        let mut nodes = BTreeMap::new();
        for item in spec.as_array().into_iter().flatten() {
            let path = format!("{ROOT}/{}", item["path"].as_str().unwrap_or_default());
            let node = match item["link"].as_str() {
                Some(target) => Node::Link(target.to_owned()),
                None => Node::File(item["text"].as_str().unwrap_or_default().to_owned()),
            };
            nodes.insert(path, node);
        }
        Self(nodes)
    }

    fn put(&mut self, path: &str, text: &str) {
        self.0.insert(format!("{ROOT}/{path}"), Node::File(text.to_owned()));
    }

    fn is_folder(&self, path: &str) -> bool {
        self.0.keys().any(|own| own.starts_with(&format!("{path}/")))
    }
}

impl Files for Tree {
    fn list(&mut self, folder: &str) -> Vec<Name> {
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        let inside = self.0.keys().filter_map(|path| path.strip_prefix(&prefix));
        let mut names: Vec<&str> = inside.filter_map(|rest| rest.split('/').next()).collect();
        names.dedup();
        let is_folder = |name: &str| self.is_folder(&format!("{prefix}{name}"));
        names.iter().map(|name| Name { name: (*name).to_owned(), is_folder: is_folder(name) }).collect()
    }

    fn read(&mut self, path: &str) -> Result<String, ReadFault> {
        match self.0.get(path) {
            Some(Node::File(text)) => Ok(text.clone()),
            Some(Node::Link(target)) => {
                let mut parts: Vec<&str> = path.split('/').collect();
                parts.pop();
                for part in target.split('/') {
                    if part == ".." {
                        parts.pop();
                    } else {
                        parts.push(part);
                    }
                }
                self.read(&parts.join("/"))
            }
            None => Err(ReadFault::Absent),
        }
    }
}

/// The repositories that vectors describe in words.
fn repository(setup: &str) -> Tree {
    let mut tree = Tree::new(&Value::Null);
    tree.put("repo/.git/HEAD", "ref: refs/heads/main\n");
    tree.put("repo/AGENTS.md", "main copy");
    tree.put("repo/wt/feat/.git", &format!("gitdir: {ROOT}/repo/.git/worktrees/feat\n"));
    if !setup.contains("deleted") {
        tree.put("repo/wt/feat/AGENTS.md", "main copy");
    }
    if setup.contains("CLAUDE.md") {
        tree.put("repo/wt/feat/CLAUDE.md", "wt claude");
    }
    tree
}

pub fn context_files(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let path = |key: &str| input[key].as_str().unwrap_or("{ROOT}/agent").replace("{ROOT}", ROOT);
    let mut tree = input["setup"].as_str().map_or_else(|| Tree::new(&input["tree"]), repository);
    let (cwd, agent_dir) = (path("cwd"), path("agentDir"));
    let flag = input["systemPromptFlag"].as_str().map(|flag| flag.replace("{ROOT}", ROOT));
    let append: Vec<String> =
        texts(&input["appendFlags"]).iter().map(|flag| flag.replace("{ROOT}", ROOT)).collect();
    let found = files::gather(
        &mut tree,
        &Where {
            cwd: &cwd,
            agent_dir: &agent_dir,
            trusted: input["trusted"] == true,
            no_context_files: input["noContextFiles"] == true,
            system_flag: flag.as_deref(),
            append_flags: &append,
        },
    );
    let outside = |file: &ContextFile| file.path.replace(ROOT, "{ROOT}");
    let got = match case["fn"].as_str() {
        Some("contextFiles") => {
            let files = found.context.iter().map(|f| json!({ "path": outside(f), "content": f.content }));
            Value::Array(files.collect())
        }
        _ => json!({
            "systemPrompt": found.system,
            "append": found.append,
            "contextFiles": found.context.iter().map(outside).collect::<Vec<_>>(),
        }),
    };
    same(&case["expected"], &got)
}
