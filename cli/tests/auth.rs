//! Credentials with the real program: the command `auth`, tokens that are renewed.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use tau_tests::compare::same;
use tau_tests::program::Sandbox;
use tau_tests::vectors::{file, run_area};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

/// One case of `auth-cli`: exit code, standard output and what is stored afterwards.
fn case(_: &Value, case: &Value) -> Result<(), String> {
    let (input, expected) = (&case["input"], &case["expected"]);
    let place = Sandbox::new(TAU);
    let path = place.agent().join("auth.json");
    let auth = input.get("auth").cloned().unwrap_or_else(|| json!({}));
    fs::write(&path, auth.to_string()).unwrap();
    match &input["models"] {
        Value::Null => {}
        Value::String(text) => fs::write(place.agent().join("models.json"), text).unwrap(),
        providers => {
            let text = json!({ "providers": providers }).to_string();
            fs::write(place.agent().join("models.json"), text).unwrap();
        }
    }
    let args: Vec<&str> = input["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let env = input["env"].as_object().into_iter().flatten();
    let env: Vec<(&str, &str)> = env.map(|(name, value)| (&**name, value.as_str().unwrap())).collect();
    let mut command = place.command(&args);
    command.envs(env);
    let run = place.start(command).finish();
    let stdout = match &expected["stdout"] {
        Value::String(text) if text == "<text>" => json!(if run.out.is_empty() { "" } else { "<text>" }),
        Value::Object(_) => serde_json::from_str(&run.out).unwrap_or_else(|_| json!(run.out)),
        _ => json!(run.out.trim_end_matches('\n')),
    };
    let mut got = json!({ "exit": run.code, "stdout": stdout, "stderrEmpty": run.err.is_empty() });
    if expected.get("authAfter").is_some() {
        got["authAfter"] = json!(fs::read_to_string(&path).unwrap());
    }
    same(expected, &got).map_err(|why| format!("{why}\n{}", run.err))
}

#[test]
fn vectors() {
    run_area("config", &[file("auth-cli", case)]);
}

#[test]
fn nothing_is_made_by_looking_and_secrets_do_not_show() {
    let place = Sandbox::new(TAU);
    let path = place.agent().join("auth.json");
    assert_eq!(place.run(&["auth", "logout", "openai"]).ok().err, "");
    assert!(!path.exists());
    fs::write(
        &path,
        r#"{"openai":{"type":"api_key","key":"sk-secret"},"xai":{"type":"oauth","access":"at-secret","refresh":"r","expires":1},"x":5}"#,
    )
    .unwrap();
    for args in [&["auth", "status"] as &[&str], &["auth", "status", "--json"]] {
        let run = place.run(args).ok();
        assert!(run.out.contains("openai") && run.out.contains("xai"), "{}", run.out);
        assert!(!run.out.contains("secret"), "{}", run.out);
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let _ = place.run(&["auth", "logout", "openai"]).ok();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    let left: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(left["x"], 5);
    fs::write(&path, "{oops").unwrap();
    let run = place.run(&["auth", "logout", "openai"]).ended_with(1);
    assert!(run.err.contains("auth.json"), "{}", run.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), "{oops");
}
