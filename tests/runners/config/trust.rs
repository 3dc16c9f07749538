//! Project trust, on real files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};
use tau::surroundings::{Listing, Surroundings};
use tau::trust;
use tau_core::settings::ProjectTrust;
use tau_core::settings::trust::{Answer, Verdict};
use tau_tests::compare::same;
use tempfile::TempDir;

const ROOT: &str = "$ROOT";

/// The answers in the order of the vectors.
const ANSWERS: [Answer; 5] =
    [Answer::Trust, Answer::TrustParent, Answer::TrustOnce, Answer::Distrust, Answer::DistrustOnce];

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn lay_out(root: &Path, input: &Value) -> std::io::Result<()> {
    for name in ["home", "agent"].into_iter().chain(texts(&input["files"])) {
        let path = root.join(name);
        if name.ends_with('/') || !name.contains('/') || matches!(name.rsplit('/').next(), Some("extensions"))
        {
            fs::create_dir_all(path)?;
        } else {
            fs::create_dir_all(path.parent().unwrap())?;
            fs::write(path, "{}")?;
        }
    }
    for link in input["links"].as_array().into_iter().flatten() {
        let (at, target) = (root.join(link[0].as_str().unwrap()), link[1].as_str().unwrap());
        symlink(target, at)?;
    }
    let cwd = root.join(input["cwd"].as_str().unwrap());
    if !cwd.is_dir() {
        fs::create_dir_all(cwd)?;
    }
    let text = match &input["trustFile"] {
        Value::Null => return Ok(()),
        Value::String(text) => text.clone(),
        object => object.to_string(),
    };
    fs::write(root.join("agent/trust.json"), text.replace(ROOT, &root.display().to_string()))
}

pub fn decision(_: &Value, case: &Value) -> Result<(), String> {
    let input = &case["input"];
    let folder = TempDir::new().map_err(|e| e.to_string())?;
    let root = fs::canonicalize(folder.path()).map_err(|e| e.to_string())?;
    lay_out(&root, input).map_err(|e| e.to_string())?;
    let at = |name: &str| root.join(name).display().to_string();
    let place = Surroundings {
        cwd: at(input["cwd"].as_str().unwrap()),
        home: Some(at("home")),
        agent_dir: at("agent"),
    };
    let shown = |text: &str| text.replace(&root.display().to_string(), ROOT);

    let requires = !trust::brought(&place).is_empty();
    let listing = Listing::of(&format!("{}/.pi", place.cwd));
    if trust::is_protected(&place, &listing) && !requires {
        return Err("the quick look finds more than the thorough one".into());
    }
    let saved = match trust::saved(&place) {
        Ok(None) => Value::Null,
        Ok(Some((path, decision))) => json!({"path": shown(&path), "decision": decision}),
        Err(why) if why.contains("values") => json!({"error": "bad-value"}),
        Err(_) => json!({"error": "not-an-object"}),
    };
    let default = match input["defaultProjectTrust"].as_str() {
        Some("always") => ProjectTrust::Always,
        Some("never") => ProjectTrust::Never,
        _ => ProjectTrust::Ask,
    };
    let agent = Listing::of(&place.agent_dir);
    let mut prompted = false;
    let trusted = match trust::decide(&place, input["override"].as_bool(), default, requires, &agent) {
        Ok(Verdict::Trusted) => json!(true),
        Ok(Verdict::Untrusted) => json!(false),
        Ok(Verdict::Ask) if input["hasUI"] == true => {
            prompted = true;
            let chosen = input["answer"].as_u64().and_then(|at| ANSWERS.get(usize::try_from(at).ok()?));
            let answer = chosen.copied().unwrap_or(Answer::DistrustOnce);
            trust::store(&place, answer)?;
            json!(answer.trusts())
        }
        Ok(Verdict::Ask) => json!(false),
        Err(_) => json!({"error": true}),
    };
    let after = fs::read_to_string(root.join("agent/trust.json")).ok().map(|text| shown(&text));
    let got = json!({
        "requires": requires, "saved": saved, "trusted": trusted, "prompted": prompted, "fileAfter": after,
        "lockLeft": root.join("agent/trust.json.lock").exists(),
    });
    same(&case["expected"], &got)
}
