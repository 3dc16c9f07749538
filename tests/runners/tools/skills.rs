//! `skills.json`: skills and templates found in real trees.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tau::resource_files::RealDisk;
use tau_core::prompt::templates::Template;
use tau_core::settings::{self, Scope, Settings, Source};
use tau_core::skills::{self, Configured, Diagnostic, Lookup, Problem, Resource, Roots, Skill};
use tau_tests::compare::same;
use tau_tests::tree;

/// One search in the root of a tree.
pub fn skills(_: &Value, case: &Value) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let root = folder.path().canonicalize().map_err(|e| e.to_string())?;
    let input = &case["input"];
    tree::lay_out(&root, &input["tree"]);
    let root = root.to_string_lossy();
    let got = match case["fn"].as_str() {
        Some("scanDirectory") => {
            let folder = match input["dir"].as_str() {
                Some(".") | None => root.to_string(),
                Some(inner) => format!("{root}/{inner}"),
            };
            let (skills, diagnostics) = skills::scan_folder(&mut RealDisk, &folder);
            json!({ "skills": list(&skills, bare), "diagnostics": list(&diagnostics, diagnostic) })
        }
        Some("loadSkills") => {
            let (cwd, agent_dir) = (text(input, "cwd", &root), text(input, "agentDir", &root));
            let roots = Roots { cwd: &cwd, home: &root, agent_dir: &agent_dir };
            let paths = texts(&input["skillPaths"], &root);
            let defaults = input["includeDefaults"] == true;
            let (skills, diagnostics) = skills::load_skills(&mut RealDisk, roots, &paths, defaults);
            json!({ "skills": list(&skills, placed), "diagnostics": list(&diagnostics, diagnostic) })
        }
        Some("discover") => discovered(input, &root, case["expected"]["prompts"].is_array()),
        other => return Err(format!("no function {other:?}")),
    };
    same(&case["expected"], &outside(&case["expected"], got, &root))
}

fn discovered(input: &Value, root: &str, with_prompts: bool) -> Value {
    let [cwd, home, agent_dir] = ["cwd", "home", "agentDir"].map(|key| text(input, key, root));
    let trusted = input["trusted"] == true;
    let settings = read_settings(&agent_dir, &cwd, trusted);
    let lists = |list: &str| [Scope::Global, Scope::Project].map(|scope| settings.resources(scope, list));
    let ([user, project], [user_prompts, project_prompts]) = (lists("skills"), lists("prompts"));
    let [flags, prompt_flags] = ["skillFlags", "promptFlags"].map(|key| texts(&input[key], root));
    let found = skills::discover(
        &mut RealDisk,
        &Lookup {
            roots: Roots { cwd: &cwd, home: &home, agent_dir: &agent_dir },
            trusted,
            skills: Configured {
                user: &user,
                project: &project,
                flags: &flags,
                only_flags: input["noSkills"] == true,
            },
            templates: Configured {
                user: &user_prompts,
                project: &project_prompts,
                flags: &prompt_flags,
                only_flags: input["noPromptTemplates"] == true,
            },
        },
    );
    let (about_skills, about_prompts): (Vec<_>, Vec<_>) =
        found.diagnostics.into_iter().partition(|own| own.resource == Resource::Skill);
    let mut got =
        json!({ "skills": list(&found.skills, placed), "diagnostics": list(&about_skills, diagnostic) });
    if with_prompts {
        got["prompts"] = list(&found.templates, template);
        got["promptDiagnostics"] = list(&about_prompts, diagnostic);
    }
    got
}

fn read_settings(agent_dir: &str, cwd: &str, trusted: bool) -> Settings {
    let files = [(Scope::Global, agent_dir.to_owned()), (Scope::Project, format!("{cwd}/.pi"))].map(
        |(scope, folder)| {
            let path = format!("{folder}/settings.json");
            let text = fs::read_to_string(Path::new(&path)).ok();
            (scope, path, text)
        },
    );
    let sources: Vec<Source<'_>> = files
        .iter()
        .filter(|(scope, ..)| trusted || *scope == Scope::Global)
        .map(|(scope, path, text)| Source { scope: *scope, path, text: Ok(text.as_deref()) })
        .collect();
    settings::load(&sources).0
}

fn bare(skill: &Skill) -> Value {
    json!({
        "name": skill.name,
        "description": skill.description,
        "filePath": skill.file_path,
        "baseDir": skill.base_dir,
        "disableModelInvocation": skill.disable_model_invocation,
    })
}

fn placed(skill: &Skill) -> Value {
    let mut got = bare(skill);
    got["source"] = json!(skill.source.kind.as_str());
    got["scope"] = json!(skill.source.scope.as_str());
    got
}

fn template(template: &Template) -> Value {
    json!({
        "name": template.name,
        "filePath": template.file_path,
        "scope": template.source.scope.as_str(),
        "source": template.source.kind.as_str(),
    })
}

fn diagnostic(diagnostic: &Diagnostic) -> Value {
    let kind = diagnostic.problem.code();
    match &diagnostic.problem {
        Problem::Collision { name, winner } => json!({
            "kind": kind,
            "severity": "collision",
            "path": diagnostic.path,
            "name": name,
            "winner": winner,
            "loser": diagnostic.path,
        }),
        _ => json!({ "kind": kind, "severity": "warning", "path": diagnostic.path }),
    }
}

fn list<T>(items: &[T], show: impl Fn(&T) -> Value) -> Value {
    items.iter().map(show).collect()
}

fn text(input: &Value, key: &str, root: &str) -> String {
    input[key].as_str().unwrap_or_default().replace("{ROOT}", root)
}

fn texts(value: &Value, root: &str) -> Vec<String> {
    let items = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    items.map(|item| item.replace("{ROOT}", root)).collect()
}

/// Paths and long descriptions as the vectors write them.
fn outside(expected: &Value, got: Value, root: &str) -> Value {
    match got {
        Value::String(text) if expected["utf16Length"].is_u64() => {
            json!({ "utf16Length": text.encode_utf16().count() })
        }
        Value::String(text) => Value::String(text.replace(root, "{ROOT}")),
        Value::Array(items) => {
            items.into_iter().enumerate().map(|(at, item)| outside(&expected[at], item, root)).collect()
        }
        Value::Object(map) => {
            let fields = map.into_iter().map(|(key, value)| {
                let value = outside(&expected[&key], value, root);
                (key, value)
            });
            Value::Object(fields.collect())
        }
        other => other,
    }
}
