//! No secret leaves the places it was put into: not in any stream, not in any file, whatever a service says.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tau_tests::program::{Run, Sandbox};
use tau_tests::server::{Part, Reply, Server, openai};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

/// Each looks like what it is, so that a rule for one form does not hide a hole for another.
const KEY: &str = "plain7words8of9a0key";
const HEADER: &str = "gateway/value+with=signs";
const ACCESS: &str = "eyJhbGciOi.access-part.of-a-sign-in";
const REFRESH: &str = "1//refresh-part-of-a-sign-in";
const AWS: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYTESTSECRET";
const STORED: &str = "stored-key-of-another-provider";
const SESSION: &str = "IQoJb3JpZ2luX2VjE/session+token==";
const PROXY: &str = "password-of-a-proxy";

const ALL: [(&str, &str); 8] = [
    ("key", KEY),
    ("header", HEADER),
    ("access token", ACCESS),
    ("refresh token", REFRESH),
    ("cloud secret", AWS),
    ("cloud session", SESSION),
    ("stored key", STORED),
    ("proxy password", PROXY),
];

/// The world of the test, and all that was printed in it.
struct World {
    place: Sandbox,
    server: Server,
    printed: Vec<(String, String)>,
}

impl World {
    fn new() -> Self {
        let (place, server) = (Sandbox::new(TAU), Server::start([]));
        let models = json!({"providers": {
            "mock": {
                "baseUrl": format!("{}/v1", server.url()), "api": "openai-completions", "apiKey": "$MOCK_KEY",
                "headers": {"x-gateway-token": "!printenv MOCK_HEADER"},
                "models": [{"id": "m1", "contextWindow": 100_000, "maxTokens": 4096}],
            },
            "kimi-coding": {"baseUrl": server.url()},
            "amazon-bedrock": {"baseUrl": server.url()},
        }});
        place.put("agent/models.json", models.to_string());
        let auth = json!({
            "kimi-coding": {"type": "oauth", "access": ACCESS, "refresh": REFRESH, "expires": 4_000_000_000_000_i64},
            "groq": {"type": "api_key", "key": STORED},
            "amazon-bedrock": {"type": "api_key", "env": {"AWS_SECRET_ACCESS_KEY": AWS}},
        });
        place.put("agent/auth.json", auth.to_string());
        let world = Self { place, server, printed: Vec::new() };
        world.settings(&json!({}));
        world
    }

    fn settings(&self, more: &Value) {
        self.place.settings(more);
    }

    fn run(&mut self, args: &[&str]) -> Run {
        self.run_with(args, "", &[])
    }

    /// A run with the secrets of the environment; all it prints is kept.
    fn run_with(&mut self, args: &[&str], stdin: &str, env: &[(&str, &str)]) -> Run {
        let mut command = self.place.command(args);
        command.envs([("MOCK_KEY", KEY), ("MOCK_HEADER", HEADER), ("AWS_ACCESS_KEY_ID", "AKIATEST")]);
        command
            .env("AWS_SECRET_ACCESS_KEY", AWS)
            .env("AWS_SESSION_TOKEN", SESSION)
            .env("AWS_REGION", "eu-central-1");
        command.env("KIMI_CODE_OAUTH_HOST", self.server.url());
        command.envs(env.iter().copied());
        let run = self.place.start_with_stdin(command, stdin.as_bytes()).finish();
        self.printed.push((args.join(" "), run.out.clone() + &run.err));
        run
    }

    /// Demands that no secret is in what was printed, nor in any file but those it was put into.
    fn is_clean(&self) {
        for (name, secret) in ALL {
            for (what, text) in &self.printed {
                assert!(!holds(text.as_bytes(), secret), "the {name} was printed by {what}: {text}");
            }
            let mut files = Vec::new();
            collect(Path::new(&self.place.root()), &mut files);
            assert!(files.len() > 3, "{files:?}");
            for file in files {
                let own =
                    file.ends_with("agent/auth.json") || (secret == PROXY && file.ends_with("settings.json"));
                assert!(
                    own || !holds(&fs::read(&file).unwrap(), secret),
                    "the {name} is in {}",
                    file.display()
                );
            }
        }
    }
}

/// Whether a secret is in a text, as it is or as JSON or a URL writes it.
fn holds(text: &[u8], secret: &str) -> bool {
    let forms = [
        secret.to_owned(),
        secret.replace('/', "\\/"),
        secret.replace('/', "%2F").replace('+', "%2B").replace('=', "%3D"),
        secret.replace('/', "%2f").replace('+', "%2b").replace('=', "%3d"),
        secret.replace('/', "%2F").replace('+', "%2B").replace('=', "%3d"),
    ];
    forms.iter().any(|form| text.windows(form.len()).any(|part| part == form.as_bytes()))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

/// What a service says that repeats what it was sent.
fn echo() -> String {
    format!(
        "Incorrect API key provided: {KEY}. Your headers: authorization=Bearer {KEY}; x-gateway-token={HEADER}"
    )
}

/// A stream that fails in its midst with such words.
fn failing_stream() -> Reply {
    let begin = openai::stalled("so far").parts.remove(0);
    let failure = format!("data: {}\n\n", json!({"error": {"message": echo(), "code": 500}}));
    Reply::stream(vec![begin, Part::Bytes(failure.into_bytes())])
}

fn page() -> Reply {
    let body = format!("<html><body><pre>{}</pre>{}</body></html>", echo(), "<br>".repeat(100));
    let headers = vec![("content-type".into(), "text/html".into())];
    Reply { status: 403, headers, parts: vec![Part::Bytes(body.into_bytes())] }
}

/// JSON of no known shape, written as PHP does, and with the header as a part of an address.
fn odd_json() -> Reply {
    let sent = json!({"errors": [{"sent": {"key": KEY, "x-gateway-token": HEADER}}]}).to_string();
    let address = HEADER.replace('/', "%2F").replace('+', "%2B").replace('=', "%3d");
    let body = sent.replace('/', "\\/").replace("errors", &format!("errors?token={address}"));
    Reply { parts: vec![Part::Bytes(body.into_bytes())], ..Reply::error(400, "") }
}

#[test]
fn requests_that_work_and_fail() {
    let mut world = World::new();
    world.server.script([openai::text("fine")]);
    assert_eq!(world.run(&["-p", "hello"]).ok().out, "fine\n");
    let sent = &world.server.requests()[0];
    assert_eq!(sent.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(sent.header("x-gateway-token"), Some(HEADER));
    for mode in [&["-p", "hello"][..], &["--mode", "json", "hello"]] {
        for reply in [
            Reply::error(401, &echo()),
            page(),
            odd_json(),
            failing_stream(),
            Reply::json(200, &json!({"error": {"message": echo()}})),
            Reply::stream(vec![Part::Bytes(echo().into_bytes())]),
            Reply::stream(vec![Part::Bytes(
                format!("data: {{\"choices\": \"{KEY} {HEADER}\n\n").into_bytes(),
            )]),
        ] {
            world.server.script([reply]);
            let run = world.run(mode);
            assert!(run.out.contains("m1") || run.err.contains("mock/m1"), "{}{}", run.out, run.err);
            // What a service repeats has holes; what is no text of a service at all may be left out.
            let said = run.out + &run.err;
            assert!(!said.contains("Your headers") || said.contains("x-gateway-token=[hidden]"), "{said}");
        }
    }
    // Words about retries go by the same texts.
    world.settings(&json!({"retry": {"enabled": true, "maxRetries": 1, "baseDelayMs": 1}}));
    world.server.script([Reply::error(503, &echo()), failing_stream()]);
    let run = world.run(&["--mode", "json", "hello"]);
    assert!(run.out.contains("auto_retry_start") && run.out.contains("503"), "{}", run.out);
    // A proxy with a password, in the settings and in the environment, that is not there.
    let proxy = format!("http://user:{PROXY}@127.0.0.1:1");
    world.settings(&json!({"httpProxy": proxy}));
    assert!(world.run(&["-p", "hello"]).ended_with(1).err.contains("proxy http://127.0.0.1:1"));
    world.settings(&json!({}));
    assert!(
        world.run_with(&["-p", "x"], "", &[("HTTP_PROXY", &proxy)]).ended_with(1).err.contains("127.0.0.1:1")
    );
    // Every run wrote a session or went on without one; all are looked at.
    let pages = world.place.sessions();
    assert!(pages.len() >= 16, "{pages:?}");
    for (number, session) in pages.iter().enumerate() {
        let page = world.place.work().join(format!("{number}.html")).display().to_string();
        let _ = world.run(&["--export", &session.display().to_string(), &page]).ok();
        assert!(fs::metadata(&page).unwrap().len() > 0);
    }
    let _ = world.run(&["sessions", "list"]).ok();
    world.is_clean();
}

#[test]
fn a_program_that_drives_it() {
    let mut world = World::new();
    world.server.script([openai::text("fine"), Reply::error(401, &echo()), Reply::error(401, &echo())]);
    let commands = [
        json!({"id": "1", "type": "get_state"}),
        json!({"id": "2", "type": "get_available_models"}),
        json!({"id": "3", "type": "prompt", "message": "one"}),
    ];
    let lines: String = commands.iter().map(|command| format!("{command}\n")).collect();
    let run = world.run_with(&["--mode", "rpc"], &lines, &[]);
    assert!(run.out.contains("\"m1\"") && run.out.contains("agent_start"), "{}", run.out);
    for more in ["prompt", "compact", "export_html", "get_messages", "get_session_stats"] {
        let command = json!({"id": "4", "type": more, "message": "two"});
        let run = world.run_with(&["--mode", "rpc", "-c"], &format!("{command}\n"), &[]);
        assert!(run.out.contains(&format!("\"{more}\"")), "{}", run.out);
    }
    world.is_clean();
}

#[test]
fn commands_about_credentials_and_models() {
    let mut world = World::new();
    // What is looked for is there: the commands that print it do.
    for (args, secret) in [
        (&["auth", "print-api-key", "--provider", "mock"][..], KEY),
        (&["auth", "print-api-key", "--provider", "groq"], STORED),
        (&["auth", "print-bearer-token", "--provider", "kimi-coding"], ACCESS),
    ] {
        assert_eq!(world.run(args).ok().out.trim_end(), secret);
    }
    assert!(holds(world.printed[0].1.as_bytes(), KEY));
    world.printed.clear();
    for args in [
        &["auth", "status"][..],
        &["auth", "status", "--json"],
        &["auth", "check", "--provider", "mock"],
        &["auth", "check", "--provider", "mock", "--json"],
        &["auth", "check", "--provider", "kimi-coding", "--json"],
        &["auth", "check", "--provider", "groq", "--no-refresh"],
        &["auth", "check", "--model", "mock/m1"],
        &["auth", "print-api-key", "--provider", "kimi-coding"],
        &["auth", "print-bearer-token", "--provider", "groq"],
        &["auth", "logout", "groq"],
        &["auth", "logout", "nobody"],
        &["--list-models"],
        &["config", "list"],
        &["--help"],
        &["--version"],
    ] {
        let _ = world.run(args);
    }
    // Signing in anew with a service that repeats what it got.
    let far =
        json!({"error": "invalid_grant", "error_description": format!("{REFRESH} and {ACCESS} are void")});
    let auth = world.place.agent().join("auth.json");
    let text = fs::read_to_string(&auth).unwrap().replace("4000000000000", "1");
    fs::write(&auth, text).unwrap();
    for args in [
        &["-p", "x", "--model", "kimi-coding/kimi-for-coding"][..],
        &["--mode", "json", "x", "--model", "kimi-coding/kimi-for-coding"],
        &["auth", "check", "--provider", "kimi-coding"],
        &["auth", "print-bearer-token", "--provider", "kimi-coding"],
        &["auth", "login", "kimi-coding", "--no-browser"],
    ] {
        world.server.script([Reply::json(400, &far)]);
        let _ = world.run(args);
    }
    assert!(world.server.requests().len() >= 4);
    // A file that cannot be understood is quoted in no message.
    for broken in [format!("{{\"mock\": {{\"key\": \"{STORED}\" \"{REFRESH}\"}}"), format!("\"{AWS}")] {
        fs::write(&auth, broken).unwrap();
        for args in [&["-p", "x"][..], &["auth", "status"], &["auth", "logout", "mock"], &["--list-models"]] {
            let _ = world.run(args);
        }
    }
    for broken in [
        format!("{{\"providers\": {{\"mock\": {{\"apiKey\": \"{KEY}\" \"{HEADER}\"}}"),
        json!({"providers": {"mock": {"apiKey": [KEY], "headers": {"x": {"y": HEADER}}, "baseUrl": 1}}})
            .to_string(),
        json!({"providers": {"mock": {"apiKey": KEY, "headers": HEADER}}}).to_string(),
    ] {
        let path = world.place.put("agent/models.json", broken);
        for args in [&["-p", "x"][..], &["--list-models"], &["auth", "status"]] {
            let _ = world.run(args);
        }
        fs::remove_file(path).unwrap();
    }
    world.is_clean();
}

#[test]
fn signed_requests() {
    let mut world = World::new();
    let message = format!("The security token {SESSION} is invalid, as is {AWS}");
    for mode in [&["-p", "x"][..], &["--mode", "json", "x"]] {
        for body in [json!({"message": message}).to_string(), message.replace('/', "\\/"), String::new()] {
            let reply = Reply { parts: vec![Part::Bytes(body.into_bytes())], ..Reply::error(403, "") };
            world.server.script([reply]);
            let mut args = vec!["--model", "amazon-bedrock/us.anthropic.claude-opus-5-5"];
            args.extend(mode);
            let run = world.run(&args);
            assert!((run.out + &run.err).contains("403"), "{:?}", world.printed.last());
        }
    }
    let sent = world.server.requests();
    assert!(sent.iter().all(|request| request.header("x-amz-security-token") == Some(SESSION)));
    assert!(
        sent.iter().all(|request| !format!("{request:?}").contains(AWS)),
        "the secret went over the wire"
    );
    world.is_clean();
}

/// An address with a password and a key in it, and a service that repeats both.
#[test]
fn secrets_of_an_address() {
    let mut world = World::new();
    let address = world.server.url().replace("http://", &format!("http://user:{PROXY}@"));
    let models = json!({"providers": {"mock": {
        "baseUrl": format!("{address}/v1?api-key={STORED}"), "api": "openai-completions", "apiKey": "$MOCK_KEY",
        "models": [{"id": "m1", "contextWindow": 100_000, "maxTokens": 4096}],
    }}});
    world.place.put("agent/models.json", models.to_string());
    let said = format!("no {PROXY} at http://user:{PROXY}@h/v1?api-key={STORED}");
    world.server.script([Reply::error(401, &said), Reply::error(401, &said)]);
    let run = world.run(&["-p", "x", "--model", "mock/m1"]).ended_with(1);
    assert!(run.err.contains("[hidden]"), "{}", run.err);
    let _ = world.run(&["--mode", "json", "x", "--model", "mock/m1"]).ok();
    fs::remove_file(world.place.agent().join("models.json")).unwrap();
    world.is_clean();
}

#[test]
fn a_key_of_the_command_line() {
    let mut world = World::new();
    world.server.script([openai::text("fine"), Reply::error(401, &echo())]);
    for _ in 0..2 {
        let _ = world.run_with(
            &["-p", "x", "--model", "mock/m1", "--api-key", KEY],
            "",
            &[("MOCK_KEY", "other")],
        );
    }
    let sent = world.server.requests();
    assert!(
        sent.iter().all(|request| request.header("authorization") == Some(format!("Bearer {KEY}").as_str()))
    );
    let last = world.printed.pop().unwrap().1;
    world.printed.clear();
    world.printed.push(("--api-key".into(), last));
    world.is_clean();
}
