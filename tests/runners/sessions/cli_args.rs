//! argv → parsed options.

use serde_json::{Map, Value, json};
use tau::args::{self, Args, ListModels, Severity};
use tau_tests::compare::same;

pub fn parse(_: &Value, case: &Value) -> Result<(), String> {
    let argv = case["input"]["argv"].as_array().ok_or("no argv")?;
    let argv = argv.iter().map(|item| item.as_str().unwrap_or_default().to_owned());
    same(&case["expected"], &shown(&args::parse(argv)))
}

/// The options in the shape of the vectors: absent unless given.
fn shown(args: &Args) -> Value {
    let mut out = Map::new();
    out.insert("messages".into(), json!(args.messages));
    out.insert("fileArgs".into(), json!(args.files));
    let unknown = args
        .unknown
        .iter()
        .map(|(name, value)| (name.clone(), value.as_ref().map_or(json!(true), |v| json!(v))));
    out.insert("unknownFlags".into(), Value::Object(unknown.collect()));
    let severities = args.problems.iter().map(|p| match p.severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    });
    out.insert("diagnostics".into(), json!(severities.collect::<Vec<_>>()));
    for (key, set) in [
        ("print", args.print),
        ("continue", args.continue_last),
        ("resume", args.resume),
        ("noSession", args.no_session),
        ("noTools", args.no_tools),
        ("noBuiltinTools", args.no_builtin_tools),
        ("noContextFiles", args.no_context_files),
        ("noSkills", args.no_skills),
        ("noPromptTemplates", args.no_prompt_templates),
        ("noExtensions", args.no_extensions),
        ("noMcp", args.no_mcp),
        ("noThemes", args.no_themes),
        ("verbose", args.verbose),
        ("offline", args.offline),
        ("help", args.help),
        ("version", args.version),
    ] {
        if set {
            out.insert(key.into(), json!(true));
        }
    }
    for (key, value) in [
        ("provider", &args.provider),
        ("model", &args.model),
        ("apiKey", &args.api_key),
        ("session", &args.session),
        ("sessionId", &args.session_id),
        ("fork", &args.fork),
        ("sessionDir", &args.session_dir),
        ("name", &args.name),
        ("systemPrompt", &args.system_prompt),
        ("useTheme", &args.use_theme),
        ("tuiMode", &args.tui_mode),
        ("export", &args.export),
    ] {
        if let Some(value) = value {
            out.insert(key.into(), json!(value));
        }
    }
    let given = |list: &Vec<String>| (!list.is_empty()).then(|| list.clone());
    for (key, value) in [
        ("models", args.models.clone()),
        ("tools", args.tools.clone()),
        ("excludeTools", args.exclude_tools.clone()),
        ("appendSystemPrompt", given(&args.append_system_prompt)),
        ("skills", given(&args.skills)),
        ("promptTemplates", given(&args.prompt_templates)),
        ("extensions", given(&args.extensions)),
        ("themes", given(&args.themes)),
    ] {
        if let Some(value) = value {
            out.insert(key.into(), json!(value));
        }
    }
    if let Some(mode) = args.mode {
        out.insert("mode".into(), json!(mode.name()));
    }
    if let Some(level) = args.thinking {
        out.insert("thinking".into(), json!(level.name()));
    }
    if let Some(trust) = args.approve {
        out.insert("projectTrustOverride".into(), json!(trust));
    }
    match &args.list_models {
        Some(ListModels::All) => drop(out.insert("listModels".into(), json!(true))),
        Some(ListModels::Search(text)) => drop(out.insert("listModels".into(), json!(text))),
        None => {}
    }
    Value::Object(out)
}
