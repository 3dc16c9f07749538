//! The same bad answers over every protocol: each failure names the model, the address, the status and what to do, no
//! secret comes back in it, and nothing but the session is written.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tau_core::provider::APIS;
use tau_tests::answers::{broken, endless, failure, good, half, malformed, path, stream};
use tau_tests::program::{Run, Sandbox};
use tau_tests::server::{Part, Reply, Server};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

/// Looks like a token with the id of an account, which one protocol needs.
const KEY: &str =
    "h.eyJodHRwczovL2FwaS5vcGVuYWkuY29tL2F1dGgiOnsiY2hhdGdwdF9hY2NvdW50X2lkIjoiYWNjdC0xMjMifX0.sig-of/key+x";
const HEADER: &str = "gateway/value+with=signs";
/// Of another provider.
const STORED: &str = "stored-key-of-another-provider";

/// How long a failure may take in a build for tests on a busy machine; what it waits for is set to a fraction of it.
const SOON: Duration = Duration::from_secs(25);
/// The most memory of a run, kB.
const MOST_KB: u64 = 200_000;

/// A sandbox whose model `mock/m1` speaks a protocol with the server; the program waits 500 ms for a byte.
fn place(api: &str, server: &Server) -> Sandbox {
    let place = Sandbox::new(TAU);
    let models = json!({"providers": {"mock": {
        "baseUrl": format!("{}{}", server.url(), path(api)), "api": api, "apiKey": "$MOCK_KEY",
        "headers": {"x-gateway-token": "$MOCK_HEADER"},
        "models": [{"id": "m1", "contextWindow": 100_000, "maxTokens": 4096}],
    }}});
    place.put("agent/models.json", models.to_string());
    place.settings(&json!({"httpIdleTimeoutMs": 500}));
    place.put("agent/auth.json", json!({"groq": {"type": "api_key", "key": STORED}}).to_string());
    place
}

/// Runs a prompt: what it printed, and how much memory it took, kB.
fn run(place: &Sandbox, args: &[&str]) -> (Run, u64) {
    let mut command = place.command(args);
    command.env("MOCK_KEY", KEY).env("MOCK_HEADER", HEADER);
    let (run, usage) = place.start(command).finish_measured();
    (run, usage.peak_kb)
}

/// What a service says that repeats what it was sent.
fn echo() -> String {
    format!("no such key {KEY}; sent: authorization=Bearer {KEY} x-gateway-token={HEADER}")
}

fn of_type(mut reply: Reply, kind: &str) -> Reply {
    reply.headers = vec![("content-type".into(), kind.into())];
    reply
}

fn page(status: u16, parts: Vec<Part>) -> Reply {
    of_type(Reply { status, headers: Vec::new(), parts }, "text/html; charset=utf-8")
}

fn html() -> Part {
    let rest = "<p>to the network</p>".repeat(40);
    Part::Bytes(
        format!("<html><head><title>Welcome</title></head><body>{}{rest}</body></html>", echo()).into_bytes(),
    )
}

const LATER: &str = "later";
const MB: usize = 1_000_000;

/// One fault: its name, the answer, and what the message says.
type Row = (&'static str, Reply, &'static [&'static str]);

/// Everything that may come instead of an answer.
fn faults(api: &str) -> Vec<Row> {
    let error = |status| Reply::error(status, &echo());
    let moved = |target: &str| {
        let mut reply = page(307, vec![html()]);
        reply.headers.push(("location".into(), target.into()));
        reply
    };
    let lines = |status| page(status, vec![Part::Repeat(b"<p>Welcome</p>\n".to_vec(), 100 * MB / 15)]);
    let one_line = |status| page(status, vec![Part::Repeat(b"<p>Welcome</p> ".to_vec(), 100 * MB / 15)]);
    let blanks = stream(api, vec![Part::Repeat(b"\n".to_vec(), 5 * MB)]);
    let begun = |then| broken(api, Some(then));
    // Server-sent events are framed by one piece of code, and so much is much for a build for tests.
    let endless = match api {
        "openai-completions" | "bedrock-converse-stream" => endless(api, 100 * MB),
        _ => Vec::new(),
    };
    vec![
        ("wrong key", error(401), &["401", "tau auth status", "tau auth login mock"]),
        ("not allowed", page(403, vec![html()]), &["403", "Welcome", "tau auth login mock"]),
        ("no credit", error(402), &["402", "account"]),
        ("no such model", error(404), &["404", "baseUrl", "--list-models m1"]),
        ("not acceptable", error(400), &["400", "compat"]),
        ("too large", error(413), &["413"]),
        ("busy", error(429), &["429", LATER]),
        ("down", error(503), &["503", LATER]),
        ("overloaded", error(529), &["529", LATER]),
        ("page of a gateway", page(502, vec![html()]), &["502", LATER]),
        ("no words", page(500, Vec::new()), &["500", LATER]),
        (
            "moved",
            moved("https://sso.example/login?ticket=stored-key-of-another-provider"),
            &["307", "https://sso.example/login ", "baseUrl"],
        ),
        ("moved nowhere", page(301, Vec::new()), &["301", "redirects are not followed"]),
        ("refused and stalls", error(401).then(Part::Stall), &["401", "tau auth"]),
        ("refused and closes", error(500).then(Part::Close), &["500", LATER]),
        ("refused at length", lines(401), &["401", "tau auth"]),
        ("refused in one line", one_line(503), &["503", LATER]),
        ("a page", page(200, vec![html()]), &["Welcome", "baseUrl"]),
        ("a page without end", lines(200), &["Welcome", "baseUrl"]),
        ("a page of one line", one_line(200), &["Welcome", "baseUrl"]),
        ("JSON of a failure", of_type(error(200), "application/json"), &["no such key", "baseUrl"]),
        ("JSON of something", Reply::json(200, &json!({"hello": 1})), &["{\"hello\":1}", "baseUrl"]),
        ("nothing", stream(api, Vec::new()), &[LATER]),
        ("no content", page(204, Vec::new()), &["baseUrl"]),
        ("blank lines", blanks, &[LATER]),
        ("half an event", stream(api, vec![half(api)]), &[LATER]),
        ("half an event, closed", stream(api, vec![half(api), Part::Close]), &["closed before", LATER]),
        (
            "half an event, stalled",
            stream(api, vec![half(api), Part::Stall]),
            &["nothing arrived for 0.5 s", "httpIdleTimeoutMs"],
        ),
        ("an event without end", stream(api, endless), &[LATER]),
        ("malformed", begun(malformed(api)), &[LATER]),
        ("cut", broken(api, None), &[LATER]),
        ("closed", begun(Part::Close), &["closed before", LATER]),
        ("stalled", begun(Part::Stall), &["nothing arrived for 0.5 s", "httpIdleTimeoutMs"]),
        ("failed", begun(failure(api, &echo())), &["no such key", LATER]),
        ("failed at once", stream(api, vec![failure(api, &echo())]), &["no such key", LATER]),
    ]
}

/// Tries all faults of one protocol.
fn try_all(api: &str) {
    let server = Server::start([good(api)]);
    let place = place(api, &server);
    let (good, _) = run(&place, &["-p", "x"]);
    assert_eq!(good.ok().out, "two words\n", "{api}");
    assert!(format!("{:?}", server.requests()).contains(KEY), "{api}: the key is not sent");
    let files = ["models.json", "settings.json", "auth.json"].map(|name| place.agent().join(name));
    let read = || files.clone().map(|path| fs::read(path).ok());
    let before = read();
    let mut wrong = Vec::new();
    for (name, reply, parts) in faults(api) {
        let modes = [&["-p", "x"][..], &["--mode", "json", "x"]];
        let repeats =
            reply.parts.iter().any(|part| matches!(part, Part::Bytes(bytes) if holds(bytes, HEADER)));
        // Programs read the same texts as people; where secrets may be in them, that is looked at.
        for args in modes.into_iter().take(1 + usize::from(repeats)) {
            server.script([reply.clone()]);
            let asked = server.requests().len();
            let begin = Instant::now();
            let (run, peak) = run(&place, args);
            let took = begin.elapsed();
            let json = args.len() > 2;
            let said = if json { &run.out } else { &run.err };
            let mut bad = Vec::new();
            // Bedrock asks again what may pass; the rest of the script is refusals.
            let again = server.requests().len() - asked;
            for part in ["mock/m1", &server.url()].iter().chain(if again > 1 { &[][..] } else { parts }) {
                let part = if json { part.replace('"', "\\\"") } else { (*part).to_owned() };
                if !said.contains(&part) {
                    bad.push(format!("no {part:?}"));
                }
            }
            // What does not fit would be compacted, and nothing is there to compact.
            if run.code != Some(i32::from(!json || name == "too large")) {
                bad.push(format!("code {:?}", run.code));
            }
            if took > SOON {
                bad.push(format!("{took:?}"));
            }
            if peak > MOST_KB {
                bad.push(format!("{peak} kB"));
            }
            if [KEY, HEADER, STORED].iter().any(|secret| run.out.contains(secret) || run.err.contains(secret))
            {
                bad.push("a secret".into());
            }
            if !bad.is_empty() {
                let short = |text: &str| {
                    text.chars().rev().take(700).collect::<String>().chars().rev().collect::<String>()
                };
                wrong.push(format!("{api}, {name}, {args:?}: {bad:?}\n  {}", short(said)));
            }
        }
    }
    assert!(read() == before, "{api}: a file was changed");
    let mut all = Vec::new();
    collect(Path::new(&place.root()), &mut all);
    for file in all.iter().filter(|file| !file.ends_with("auth.json")) {
        let bytes = fs::read(file).unwrap();
        for secret in [KEY, HEADER, STORED] {
            assert!(!holds(&bytes, secret), "{api}: {secret} is in {}", file.display());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}

#[test]
fn whatever_comes_instead_of_an_answer() {
    let failed: Vec<String> = thread::scope(|scope| {
        let running: Vec<_> = APIS.map(|api| scope.spawn(move || try_all(api))).into();
        let told =
            |why: Box<dyn std::any::Any + Send>| why.downcast_ref::<String>().cloned().unwrap_or_default();
        running.into_iter().filter_map(|one| one.join().err().map(told)).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
