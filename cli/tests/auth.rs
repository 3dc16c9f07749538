//! Credentials with the real program: the command `auth`, tokens that are renewed.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};
use tau_tests::compare::same;
use tau_tests::program::Sandbox;
use tau_tests::server::{Gate, Part, Reply, Server};
use tau_tests::terminal;
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

fn stored(place: &Sandbox) -> Value {
    serde_json::from_str(&fs::read_to_string(place.agent().join("auth.json")).unwrap()).unwrap()
}

#[test]
fn a_key_is_asked_for_and_stored() {
    let place = Sandbox::new(TAU);
    let login = |typed: &str| terminal::run_wholly(place.command(&["auth", "login", "GROQ"]), typed);
    let run = login("\n").ended_with(1);
    assert!(run.err.contains("nothing was written"), "{}", run.err);
    assert!(!place.agent().join("auth.json").exists());
    let run = login(" sk-secret \n").ok();
    assert!(run.err.contains("auth.json"), "{}", run.err);
    assert_eq!(stored(&place), json!({"groq": {"type": "api_key", "key": "sk-secret"}}));
    let mode = fs::metadata(place.agent().join("auth.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Nobody can be asked.
    let run = place.run(&["auth", "login", "groq"]).ended_with(1);
    assert!(run.err.contains("terminal"), "{}", run.err);
}

/// Bug case 68: a token for one use, two programs that need it at the same time, a service that is slow.
#[test]
fn case_68_two_programs_renew_a_sign_in_once() {
    let place = Sandbox::new(TAU);
    let mut slow = Reply::json(
        200,
        &json!({"access_token": "new-access", "refresh_token": "new-refresh", "expires_in": 3600}),
    );
    slow.parts.insert(0, Part::Pause(Duration::from_millis(300)));
    let used_up = || Reply::json(400, &json!({"error": "invalid_grant"}));
    let server = Server::start([slow, used_up(), used_up()]);
    let auth = json!({"kimi-coding": {"type": "oauth", "access": "old-access", "refresh": "old-refresh", "expires": 1}});
    let file = place.agent().join("auth.json");
    fs::write(&file, auth.to_string()).unwrap();
    let start = || {
        let mut command = place.command(&["auth", "check", "--provider", "kimi-coding", "--credentials"]);
        command.env("KIMI_CODE_OAUTH_HOST", server.url().trim_end_matches("/v1"));
        place.start(command)
    };
    let both = [start(), start()];
    for run in both.map(|running| running.finish().ok()) {
        assert!(run.out.contains("new-access"), "{} {}", run.out, run.err);
    }
    assert_eq!(server.requests().len(), 1);
    assert_eq!(stored(&place)["kimi-coding"]["refresh"], "new-refresh");
    // A refusal leaves what is stored as it is.
    let before = json!({"kimi-coding": {"type": "oauth", "access": "a", "refresh": "dead", "expires": 1}});
    fs::write(&file, before.to_string()).unwrap();
    let run = start().finish();
    assert_ne!(run.code, Some(0), "{}", run.out);
    assert_eq!(stored(&place), before);
}

#[test]
fn signing_in_with_a_code() {
    let place = Sandbox::new(TAU);
    let server = Server::start([
        Reply::json(
            200,
            &json!({
                "device_code": "DC", "user_code": "ABCD", "interval": 1, "expires_in": 60,
                "verification_uri": "https://k.example/d", "verification_uri_complete": "https://k.example/d?c=ABCD",
            }),
        ),
        Reply::json(400, &json!({"error": "authorization_pending"})),
        Reply::json(200, &json!({"access_token": "at", "refresh_token": "rt", "expires_in": 3600})),
        Reply::json(
            200,
            &json!({
                "device_code": "DC", "user_code": "ABCD", "interval": 1, "expires_in": 60,
                "verification_uri": "https://k.example/d", "verification_uri_complete": "https://k.example/d?c=ABCD",
            }),
        ),
        Reply::json(400, &json!({"error": "access_denied"})),
    ]);
    let login = || {
        let mut command = place.command(&["auth", "login", "kimi-coding", "--no-browser"]);
        let url = server.url();
        command.env("KIMI_CODE_OAUTH_HOST", url.trim_end_matches("/v1"));
        terminal::run_wholly(command, "")
    };
    let run = login().ok();
    assert!(run.err.contains("https://k.example/d?c=ABCD") && run.err.contains("ABCD"), "{}", run.err);
    let entry = &stored(&place)["kimi-coding"];
    assert_eq!(
        (&entry["access"], &entry["refresh"], &entry["type"]),
        (&json!("at"), &json!("rt"), &json!("oauth"))
    );
    let run = login().ended_with(1);
    assert!(run.err.contains("denied"), "{}", run.err);
    assert_eq!(stored(&place)["kimi-coding"]["access"], "at");
}

#[test]
fn credentials_of_older_versions_move_once() {
    let place = Sandbox::new(TAU);
    let file = |name: &str| place.agent().join(name);
    let old = r#"{"xai":{"access":"a","refresh":"r","expires":4102444800000},"odd":5}"#;
    fs::write(file("oauth.json"), old).unwrap();
    fs::write(file("settings.json"), r#"{"apiKeys":{"openai":"sk-old","xai":"k"},"theme":"dark"}"#).unwrap();
    let run = place.run(&["auth", "status", "--json"]).ok();
    assert!(run.err.contains("auth.json"), "{}", run.err);
    let moved: Value = serde_json::from_str(&fs::read_to_string(file("auth.json")).unwrap()).unwrap();
    assert_eq!(
        moved,
        json!({
            "xai": { "type": "oauth", "access": "a", "refresh": "r", "expires": 4_102_444_800_000_u64 },
            "openai": { "type": "api_key", "key": "sk-old" },
        })
    );
    assert_eq!(fs::metadata(file("auth.json")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(file("oauth.json.migrated")).unwrap(), old);
    let settings: Value = serde_json::from_str(&fs::read_to_string(file("settings.json")).unwrap()).unwrap();
    assert_eq!(settings, json!({ "theme": "dark" }));
    assert_eq!(place.run(&["auth", "status"]).ok().err, "");
}

#[test]
fn old_credentials_stay_where_new_ones_are() {
    let place = Sandbox::new(TAU);
    let file = |name: &str| place.agent().join(name);
    fs::write(file("auth.json"), "{}").unwrap();
    fs::write(file("oauth.json"), r#"{"xai":{"access":"a","refresh":"r","expires":1}}"#).unwrap();
    assert_eq!(place.run(&["auth", "status"]).ok().err, "");
    assert_eq!(fs::read_to_string(file("auth.json")).unwrap(), "{}");
    assert!(file("oauth.json").exists());
}

#[test]
fn what_cannot_be_read_is_not_moved() {
    let place = Sandbox::new(TAU);
    let file = |name: &str| place.agent().join(name);
    fs::write(file("oauth.json"), "{half").unwrap();
    let run = place.run(&["auth", "status"]).ok();
    assert!(run.err.contains("oauth.json"), "{}", run.err);
    assert_eq!(fs::read_to_string(file("oauth.json")).unwrap(), "{half");
    assert!(!file("auth.json").exists());
}

#[test]
fn what_cannot_be_used_says_why() {
    let place = Sandbox::new(TAU);
    let far = 4_102_444_800_000_u64;
    let sign_in = json!({"type": "oauth", "access": "a-secret", "refresh": "r-secret", "expires": far});
    let auth = json!({
        "groq": {"type": "api_key", "key": "$NOBODY_SET_THIS"},
        "mistral": {"type": "api_key", "key": "!echo k-secret >&2; false"},
        "cerebras": {"type": "api_key", "key": 7},
        "together": {"key": "k-secret"},
        "fireworks": "k-secret",
        "deepseek": sign_in,
        "anthropic": sign_in,
        "openai-codex": {"type": "api_key", "key": "k-secret"},
        "nobody": {"type": "api_key", "key": "k-secret"},
        // What a command says beside its answer is not looked at, however much it is.
        "openai": {"type": "api_key", "key": "!head -c 200000 /dev/zero >&2; echo works"},
    });
    place.put("agent/auth.json", auth.to_string());
    let run = place.run(&["auth", "print-api-key", "--provider", "openai"]).ok();
    assert_eq!(run.out, "works\n");
    let (text, json) = (place.run(&["auth", "status"]).ok(), place.run(&["auth", "status", "--json"]).ok());
    let listed: Vec<Value> = serde_json::from_str(&json.out).unwrap();
    for (provider, why, at_request) in [
        ("groq", "NOBODY_SET_THIS is not set", "NOBODY_SET_THIS is not set"),
        // A command is run by nothing but a request.
        ("mistral", "", "its command failed"),
        ("cerebras", "it is no text", "it is no text"),
        ("together", "unknown type", "unknown type"),
        ("fireworks", "unknown type", "unknown type"),
        ("deepseek", "takes a key, but a sign-in is stored", "takes a key, but a sign-in is stored"),
        ("anthropic", "not supported here", "not supported here"),
        ("openai-codex", "takes a sign-in, but a key is stored", "takes a sign-in, but a key is stored"),
        ("nobody", "no provider has this name", ""),
    ] {
        let line = text.out.lines().find(|line| line.starts_with(provider)).unwrap();
        let entry = listed.iter().find(|entry| entry["provider"] == provider).unwrap();
        if why.is_empty() {
            assert!(line.ends_with("key") && entry["state"] == "key", "{line} {entry}");
        } else {
            let reason = entry["reason"].as_str().unwrap();
            assert!(
                line.contains("cannot be used: ") && line.contains(why) && reason.contains(why),
                "{line} {entry}"
            );
        }
        if !at_request.is_empty() {
            let err = place.run(&["-p", "x", "--provider", provider, "--model", "m"]).ended_with(1).err;
            for part in [provider, at_request, "auth.json", &format!("tau auth login {provider}")] {
                assert!(err.contains(part), "no {part} in {err}");
            }
            assert!(!err.contains("-secret"), "{err}");
        }
    }
    assert!(!(text.out + &json.out).contains("-secret"));
}

/// A disk that is full, as a limit on the size of files plays it.
#[test]
fn a_full_disk_loses_nothing() {
    let place = Sandbox::new(TAU);
    let more = "x".repeat(5000);
    let auth = json!({"groq": {"type": "api_key", "key": "k", "more": more}, "xai": {"type": "api_key", "key": "k"}});
    let path = place.put("agent/auth.json", auth.to_string());
    let limited = |args: &[&str]| {
        let limit = "ulimit -f 4; exec \"$0\" \"$@\"";
        place.start(place.command_of("sh", &[&["-c", limit, TAU], args].concat())).finish()
    };
    let run = limited(&["auth", "logout", "xai"]).ended_with(1);
    assert!(run.err.contains("auth.json") && run.err.contains("nothing was written"), "{}", run.err);
    assert_eq!(fs::read_to_string(&path).unwrap(), auth.to_string());
    let names = fs::read_dir(place.agent()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["auth.json"], "something is left behind");
    // A session that cannot grow is told, too.
    let prompt = "y".repeat(9000);
    let run = limited(&["-p", &prompt, "--model", "demo/tour"]).ended_with(1);
    assert!(run.err.contains("session") && run.err.contains("large"), "{}", run.err);
}

/// A token that was given is stored, also when somebody ends the program meanwhile: the old one may be used up.
#[test]
fn a_signal_waits_for_a_new_token() {
    let place = Sandbox::new(TAU);
    let old = json!({"kimi-coding": {"type": "oauth", "access": "old", "refresh": "old", "expires": 1}});
    for (signal, args) in [
        (2, &["auth", "check", "--provider", "kimi-coding"][..]),
        (15, &["auth", "print-bearer-token", "--provider", "kimi-coding"]),
    ] {
        let gate = Gate::default();
        let new = json!({"access_token": "new-access", "refresh_token": "new-refresh", "expires_in": 3600});
        let mut slow = Reply::json(200, &new);
        slow.parts.insert(0, Part::Gate(gate.clone()));
        let server = Server::start([slow]);
        place.put("agent/auth.json", old.to_string());
        let mut command = place.command(args);
        command.env("KIMI_CODE_OAUTH_HOST", server.url());
        let running = place.start(command);
        gate.wait_reached();
        running.signal(signal);
        std::thread::sleep(Duration::from_millis(200));
        gate.open();
        let run = running.finish();
        assert_eq!(run.code, None, "{}{}", run.out, run.err);
        assert_eq!(stored(&place)["kimi-coding"]["refresh"], "new-refresh");
        assert!(!place.agent().join("auth.json.lock").exists());
    }
}

#[test]
fn a_check_that_finds_something_wrong_says_what() {
    let place = Sandbox::new(TAU);
    let server = Server::start([Reply::json(400, &json!({"error": "invalid_grant"}))]);
    let check = |args: &[&str]| {
        let mut command = place.command(&[&["auth", "check"], args].concat());
        command.env("KIMI_CODE_OAUTH_HOST", server.url());
        place.start(command).finish()
    };
    let auth = json!({
        "kimi-coding": {"type": "oauth", "access": "old-secret", "refresh": "old-secret", "expires": 1},
        "openai": {"type": "api_key", "key": "k"}, "groq": "text",
    });
    place.put("agent/auth.json", auth.to_string());
    for (args, parts) in [
        (&["--provider", "kimi-coding"][..], &["kimi-coding", "invalid_grant", "tau auth login"][..]),
        (&["--model", "zzzzz"], &["zzzzz"]),
        (&["--provider", "openai", "--no-refresh"], &["auth.json", "groq"]),
    ] {
        let run = check(args).ended_with(2);
        assert_eq!(run.out, "invalid\n");
        for part in parts {
            assert!(run.err.contains(part), "no {part} in {}", run.err);
        }
        assert!(!run.err.contains("old-secret"), "{}", run.err);
        server.script([Reply::json(400, &json!({"error": "invalid_grant"}))]);
        let run = check(&[args, &["--json"]].concat()).ended_with(2);
        assert!(run.err.is_empty() && run.out.contains("invalid_state"), "{}{}", run.out, run.err);
    }
    place.put("agent/models.json", "{");
    let run = check(&["--provider", "openai"]).ended_with(2);
    assert!(run.out == "invalid\n" && run.err.contains("models.json"), "{}{}", run.out, run.err);
}
