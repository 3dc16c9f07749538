//! Whatever a service, a network or a file does wrong: the program ends soon, names what failed and what to do, keeps
//! secrets, and leaves every file as it is.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tau_tests::program::{Run, Sandbox};
use tau_tests::server::{Part, Reply, Server};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

/// The key of [`Sandbox::configure`].
const KEY: &str = "key-for-tests";

/// How long a failure may take: what it waits for is set to a fraction of it.
const SOON: Duration = Duration::from_secs(8);

/// A sandbox whose model `mock/m1` is at `url`; the program waits 500 ms for a byte.
fn place(url: &str) -> Sandbox {
    let place = Sandbox::new(TAU);
    let models = json!({"providers": {"mock": {
        "baseUrl": format!("{url}/v1"), "api": "openai-completions", "apiKey": KEY,
        "models": [{"id": "m1", "contextWindow": 100_000, "maxTokens": 4096}],
    }}});
    place.put("agent/models.json", models.to_string());
    place.settings(&json!({"httpIdleTimeoutMs": 500}));
    place.put("agent/auth.json", "{\"other\": {\"type\": \"api_key\", \"key\": \"kept\"}}");
    place
}

/// Runs one prompt that must fail soon, and checks what holds for every failure.
fn failure(place: &Sandbox, args: &[&str]) -> Run {
    let files = ["models.json", "settings.json", "auth.json"].map(|name| place.agent().join(name));
    let read = || files.clone().map(|path| fs::read(path).ok());
    let before = read();
    let begin = Instant::now();
    let run = place.run(args);
    assert!(begin.elapsed() < SOON, "{:?} for {}", begin.elapsed(), run.err);
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    assert!(run.out.is_empty(), "{}", run.out);
    assert!(!run.err.contains(KEY), "{}", run.err);
    assert!(read() == before, "a file was changed");
    run
}

/// The failure of a request names model, host and everything in `parts`.
fn request_failure(url: &str, parts: &[&str]) {
    let place = place(url);
    let err = failure(&place, &["-p", "x"]).err;
    for part in ["mock/m1", url].iter().chain(parts) {
        assert!(err.contains(part), "no {part:?} in: {err}");
    }
    let stored = place.session();
    let stored = stored.last().unwrap()["message"]["errorMessage"].as_str().unwrap();
    assert!(stored.contains(url) && !stored.contains(KEY), "{stored}");
}

/// Every answer that HTTP allows and that is no answer of a model.
#[test]
fn answers_that_are_none() {
    let page = format!(
        "<html><head><title>Sign in</title></head><body>{}</body></html>",
        "<p>Welcome</p>".repeat(40)
    );
    let html = |status| {
        let mut reply = Reply::json(status, &Value::Null);
        reply.headers = vec![("content-type".into(), "text/html; charset=utf-8".into())];
        reply.parts = vec![Part::Bytes(page.clone().into_bytes())];
        reply
    };
    let mut moved = html(302);
    moved.headers.push(("location".into(), "https://sso.example/login?ticket=secret".into()));
    let echo = format!("Incorrect API key provided: {KEY}.");
    let half = || Part::Bytes(b"data: {\"id\":\"r\",\"choices\":[{\"delta\":{\"conte".to_vec());
    let endless = Part::Repeat(b"<p>no</p>".to_vec(), 400_000_000);
    for (reply, parts) in [
        (Reply::error(401, &echo), &["401 Incorrect API key", "tau auth status", "tau auth login mock"][..]),
        (html(403), &["403 HTML page", "Welcome", "tau auth login mock"]),
        (Reply::error(402, "no credit"), &["402 no credit", "account"]),
        (
            Reply::error(404, "model m1 does not exist"),
            &["404 model m1 does not exist", "baseUrl", "--list-models m1"],
        ),
        (Reply::error(400, "unknown field store"), &["400 unknown field store", "compat"]),
        (Reply::error(429, "slow down"), &["429 slow down", "later"]),
        (Reply::error(503, "down for maintenance"), &["503 down for", "later"]),
        (html(502), &["502 HTML page", "later"]),
        (moved, &["302 redirect to https://sso.example/login ", "redirects are not followed", "baseUrl"]),
        (html(200), &["text/html", "baseUrl", "api of mock"]),
        (Reply::json(200, &json!({"error": {"message": "wrong path"}})), &["wrong path", "baseUrl"]),
        (Reply::json(200, &json!({"hello": 1})), &["{\"hello\":1}", "baseUrl"]),
        (Reply::stream(Vec::new()), &["without", "later"]),
        (Reply::stream(vec![half()]), &["not valid JSON", "later"]),
        (Reply::stream(vec![half(), Part::Close]), &["closed before", "later"]),
        (Reply::stream(vec![half(), Part::Stall]), &["nothing arrived for 0.5 s", "httpIdleTimeoutMs"]),
        (Reply::error(500, "x").then(Part::Close), &["500", "later"]),
        (Reply::error(401, "x").then(Part::Stall), &["401", "tau auth"]),
        // Nobody waits for the end of it.
        (Reply { parts: vec![endless], ..html(401) }, &["401 HTML page", "tau auth"]),
    ] {
        let server = Server::start([reply]);
        request_failure(&server.url(), parts);
        assert_eq!(server.requests().len(), 1);
    }
}

/// A server that reads the head of a request, sends bytes, and waits before it closes.
fn raw(bytes: &'static [u8], hold: Duration) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut input = BufReader::new(&stream);
            let mut line = String::new();
            while input.read_line(&mut line).is_ok_and(|n| n > 2) {
                line.clear();
            }
            let _ = (&stream).write_all(bytes);
            let _ = stream.set_read_timeout(Some(hold));
            let _ = { &stream }.read_to_end(&mut Vec::new());
        }
    });
    url
}

/// A service that says nothing but that it is alive.
#[test]
fn answers_that_never_end() {
    let alive = [Part::Bytes(b": alive\n\n".to_vec()), Part::Pause(Duration::from_millis(100))];
    let server = Server::start([Reply::stream(alive.into_iter().cycle().take(100).collect())]);
    let place = place(&server.url());
    place.settings(
        &json!({"httpIdleTimeoutMs": 500, "retry": {"enabled": false, "provider": {"totalTimeoutMs": 700}}}),
    );
    let err = failure(&place, &["-p", "x"]).err;
    for part in ["mock/m1", &server.url(), "within 700 ms", "totalTimeoutMs"] {
        assert!(err.contains(part), "no {part:?} in: {err}");
    }
}

/// What happens below HTTP.
#[test]
fn connections_that_are_none() {
    let (short, long) = (Duration::from_millis(1), Duration::from_secs(20));
    request_failure(&raw(b"", short), &["closed before", "later"]);
    request_failure(&raw(b"HTTP/1.1 200 OK\r\ncontent-ty", short), &["closed before", "later"]);
    request_failure(&raw(b"", long), &["no answer within 0.5 s", "httpIdleTimeoutMs"]);
    request_failure(&raw(b"HTTP/1.1 200", long), &["no answer within 0.5 s", "httpIdleTimeoutMs"]);
    request_failure(&raw(b"SSH-2.0-OpenSSH_9.2\r\n", short), &["not valid HTTP", "baseUrl"]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    request_failure(&closed, &["could not connect", "network", "baseUrl"]);
    request_failure("http://model.invalid", &["could not be resolved", "baseUrl"]);
    let err = failure(&place("nonsense"), &["-p", "x"]).err;
    assert!(err.contains("\"mock\"") && err.contains("nonsense/v1") && err.contains("http://"), "{err}");
    // A service without TLS behind an address with it.
    let plain = raw(b"HTTP/1.1 400 Bad Request\r\n\r\n", short).replace("http:", "https:");
    request_failure(&plain, &["TLS", "certificates"]);
}

/// A proxy that refuses, with a password in its address.
#[test]
fn proxies_that_refuse() {
    let proxy = raw(
        b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
        Duration::from_millis(1),
    );
    let place = place("https://model.example.test");
    let address = proxy.replace("http://", "http://user:proxy-secret@");
    place.settings(&json!({"httpIdleTimeoutMs": 500, "httpProxy": address}));
    let err = failure(&place, &["-p", "x"]).err;
    for part in
        ["mock/m1", "https://model.example.test", &proxy, "user and password", "HTTPS_PROXY", "httpProxy"]
    {
        assert!(err.contains(part), "no {part:?} in: {err}");
    }
    assert!(!err.contains("proxy-secret"), "{err}");
}

/// Models that are not there: what is nearest is named, and nothing is sent.
#[test]
fn models_that_are_none() {
    let server = Server::start([]);
    let place = place(&server.url());
    for (args, parts) in [
        (&["--model", "mokc/m1"][..], &["mokc/m1", "did you mean", "mock/m1"][..]),
        (&["--model", "zzzzzz"], &["zzzzzz", "--list-models"]),
        (&["--provider", "mokc", "--model", "m1"], &["mokc", "mock"]),
    ] {
        let err = failure(&place, &[&["-p", "x"], args].concat()).err;
        for part in parts {
            assert!(err.contains(part), "{args:?}: no {part:?} in: {err}");
        }
    }
    assert!(server.requests().is_empty());
    // A provider may have more models than are listed: it is asked, and people are told.
    server.script([Reply::error(404, "no such model")]);
    let err = failure(&place, &["-p", "x", "--model", "mock/m11"]).err;
    for part in ["mock/m11 is not in the catalogue", "limits of m1", "404 no such model", "--list-models m11"]
    {
        assert!(err.contains(part), "no {part:?} in: {err}");
    }
}

/// A protocol that nobody speaks is a mistake in models.json.
#[test]
fn protocols_that_are_none() {
    let place = place("http://127.0.0.1:9");
    let text = fs::read_to_string(place.agent().join("models.json")).unwrap();
    place.put("agent/models.json", text.replace("openai-completions", "openai-complete"));
    let err = failure(&place, &["-p", "x"]).err;
    for part in ["mock/m1", "openai-complete\"", "models.json", "openai-completions", "anthropic-messages"] {
        assert!(err.contains(part), "no {part:?} in: {err}");
    }
}

/// A key that no header can carry: it is not the service that is wrong.
#[test]
fn keys_that_are_none() {
    let server = Server::start([]);
    let place = place(&server.url());
    let text = fs::read_to_string(place.agent().join("models.json")).unwrap();
    place.put("agent/models.json", text.replace(KEY, "!printf 'key-for\\\\n-tests'"));
    let err = failure(&place, &["-p", "x"]).err;
    for part in ["mock/m1", &server.url(), "header authorization", "line end", "tau auth status"] {
        assert!(err.contains(part), "no {part:?} in: {err}");
    }
    assert!(!err.contains("-tests") && !err.contains("key-for"), "{err}");
    assert!(server.requests().is_empty());
}

/// Files that cannot be understood: named, with the reason, and not touched.
#[test]
fn files_that_are_none() {
    let server = Server::start([]);
    let cases: [(&str, &[u8]); 8] = [
        ("half", b"{\"providers\": {\"mock\": {\"baseUrl\": \"http"),
        ("empty", b""),
        ("a list", b"[1, 2]"),
        ("a number", b"7"),
        ("no text", b"\xff\xfe{\x00}\x00"),
        ("zeros", b"\0\0\0\0"),
        ("two values", b"{} {}"),
        ("a page", b"<html></html>"),
    ];
    for name in ["models.json", "auth.json"] {
        for (what, bytes) in cases {
            let place = place(&server.url());
            let path = place.put(&format!("agent/{name}"), bytes);
            let run = place.run(&["-p", "x", "--model", "mock/m1"]);
            assert!(fs::read(&path).unwrap() == bytes, "{name}, {what}: it was changed");
            if name == "auth.json" && what == "empty" {
                // As after a crash of a program that makes the file: there is nothing to lose.
                continue;
            }
            assert_eq!(run.code, Some(1), "{name}, {what}: {}{}", run.out, run.err);
            assert!(run.err.contains(&path.display().to_string()), "{name}, {what}: {}", run.err);
            assert!(run.err.contains("correct the file"), "{name}, {what}: {}", run.err);
            for args in [&["auth", "logout", "other"][..], &["auth", "status"]] {
                let _ = place.run(args);
                assert!(fs::read(&path).unwrap() == bytes, "{name}, {what}: {args:?} changed it");
            }
        }
    }
    assert!(server.requests().is_empty());
}

/// One faulty provider does not take the others with it (D50).
#[test]
fn a_faulty_provider_is_alone() {
    let server = Server::start([Reply::error(503, "reached")]);
    let place = place(&server.url());
    let path = place.agent().join("models.json");
    let mut models: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    models["providers"]["broken"] = json!({"baseUrl": 5, "models": "none"});
    fs::write(&path, models.to_string()).unwrap();
    let err = failure(&place, &["-p", "x"]).err;
    assert!(err.contains("models.json") && err.contains("broken") && err.contains("reached"), "{err}");
}

/// A stored sign-in whose token ran out, and what happens when it is renewed or refused.
#[test]
fn sign_ins_that_are_revoked() {
    let (access, refresh) = ("access-token-of-the-test", "refresh-token-of-the-test");
    let signed_in = |expires: i64| json!({"kimi-coding": {"type": "oauth", "access": access, "refresh": refresh, "expires": expires, "own": 1}});
    let run = |expires: i64, reply: Reply, hosts: &dyn Fn(&Server, &Sandbox) -> Value| {
        let server = Server::start([reply]);
        let place = place(&server.url());
        place.put("agent/auth.json", signed_in(expires).to_string());
        let models = hosts(&server, &place);
        place.put("agent/models.json", models.to_string());
        let mut command = place.command(&["-p", "x", "--model", "kimi-coding/kimi-for-coding"]);
        command.env("KIMI_CODE_OAUTH_HOST", server.url());
        let run = place.start(command).finish().ended_with(1);
        let stored: Value =
            serde_json::from_slice(&fs::read(place.agent().join("auth.json")).unwrap()).unwrap();
        assert_eq!(stored, signed_in(expires), "the stored sign-in was changed");
        assert!(!run.err.contains(access) && !run.err.contains(refresh), "{}", run.err);
        assert_eq!(server.requests().len(), 1);
        (run.err, server.url())
    };
    let here =
        |server: &Server, _: &Sandbox| json!({"providers": {"kimi-coding": {"baseUrl": server.url()}}});

    let gone = json!({"error": "invalid_grant", "error_description": format!("token {refresh} was revoked")});
    let (err, url) = run(1, Reply::json(400, &gone), &here);
    for part in ["kimi-coding", &url, "400", "invalid_grant", "tau auth login kimi-coding"] {
        assert!(err.contains(part), "no {part:?} in: {err}");
    }
    let far = 4_000_000_000_000;
    let (err, url) = run(far, Reply::error(401, &format!("token {access} is not valid any more")), &here);
    for part in
        ["kimi-coding/kimi-for-coding", &url, "401", "not valid any more", "tau auth login kimi-coding"]
    {
        assert!(err.contains(part), "no {part:?} in: {err}");
    }
}

/// A service that never stops talking does not hold up the end.
#[test]
fn a_signal_ends_a_stalled_refusal() {
    let server = Server::start([Reply::error(429, "wait").then(Part::Stall)]);
    let place = place(&server.url());
    place.settings(&json!({}));
    let running = place.start(place.command(&["-p", "x"]));
    server.wait(1);
    thread::sleep(Duration::from_millis(200));
    let begin = Instant::now();
    running.signal(15);
    let _ = running.finish().ended_with(143);
    assert!(begin.elapsed() < Duration::from_secs(3));
}
