//! Sessions as pages: the option, the RPC command, and what a browser makes of a page.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use tau_tests::page;
use tau_tests::program::Sandbox;
use tau_tests::server::{Server, openai};
use tau_tests::talk::Talk;

const TAU: &str = env!("CARGO_BIN_EXE_tau");

/// Text that wants to be more.
const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \" onmouseover=\"alert(3) \u{202e}x [l](javascript:alert(4))";

/// A sandbox with one stored session: a question, a call and its result, an answer.
fn place() -> (Sandbox, Server, String) {
    let call = openai::calls(&[("c1", "bash", json!({"command": "echo EXPORTED-$((1 + 1)); exit 3"}))]);
    let (place, server) =
        (Sandbox::new(TAU), Server::start([call, openai::text(&format!("## The end\n\n{HOSTILE}"))]));
    place.configure(&server);
    let _ = place.run(&["-p", &format!("question {HOSTILE}")]).ok();
    let session = place.sessions()[0].display().to_string();
    (place, server, session)
}

fn page_of(path: &Path) -> page::Page {
    page::read(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_session_becomes_a_page() {
    let (place, server, session) = place();
    let before = fs::read(&session).unwrap();
    let run = place.run(&["--export", &session, "out.html"]).ok();
    assert_eq!((run.out.as_str(), run.err.as_str()), ("out.html\n", ""));
    let path = place.work().join("out.html");
    let page = page_of(&path);
    for text in ["question </script><script>", "EXPORTED-2", "exit 3", "The end", "⟨U+202E⟩x", "Cost"] {
        assert!(page.text.contains(text), "{text}");
    }
    assert!(page.count["details"] >= 2, "system prompt and call fold");
    // A page holds what its session holds, and nobody else may read that.
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read(&session).unwrap(), before);
    assert_eq!((server.requests().len(), place.sessions().len()), (2, 1));
    let base = Path::new(&session).file_stem().unwrap().to_str().unwrap();
    let named = format!("pi-session-{base}.html");
    assert_eq!(place.run(&["--export", &session]).ok().out, format!("{named}\n"));
    assert_eq!(fs::read(place.work().join(named)).unwrap(), fs::read(&path).unwrap());
}

#[test]
fn what_cannot_be_exported_is_told_and_nothing_is_lost() {
    let (place, _server, session) = place();
    let junk = place.put("work/junk.jsonl", "no session").display().to_string();
    let empty = place.put("work/empty.jsonl", "").display().to_string();
    let copy = place.put("work/copy.txt", fs::read(&session).unwrap());
    let copy = copy.display().to_string();
    let before = fs::read(&session).unwrap();
    for (args, part) in [
        (&["--export", "missing.jsonl"][..], "missing.jsonl"),
        (&["--export", &junk], "session header"),
        (&["--export", &empty], "empty"),
        (&["--export", "."], "folder"),
        (&["--export", &session, "no/folder/x.html"], "x.html"),
        (&["--export", &session, "."], "folder"),
        (&["--export", &session, &session], "overwritten"),
        (&["--export", &session, &copy], "overwritten"),
        (&["--export", &session, "new.jsonl"], "overwritten"),
        (&["--export", &session, "a.html", "b.html"], "at most one"),
        (&["--export", &session, "@a.html"], "at most one"),
        (&["--export", &session, "--bogus"], "--bogus"),
        (&["--export"], "needs a value"),
    ] {
        let run = place.run(args).ended_with(1);
        assert!(run.err.contains(part), "{args:?}: {}", run.err);
        assert_eq!(run.out, "");
    }
    assert_eq!(fs::read(&session).unwrap(), before);
    assert_eq!(fs::read(&copy).unwrap(), before);
    let left: Vec<String> =
        fs::read_dir(place.work()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
}

#[test]
fn an_older_page_is_replaced_as_a_whole() {
    let (place, _server, session) = place();
    let target = place.put("work/real.html", "old");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::symlink("real.html", place.work().join("link.html")).unwrap();
    let _ = place.run(&["--export", &session, "link.html"]).ok();
    assert!(fs::symlink_metadata(place.work().join("link.html")).unwrap().is_symlink());
    assert!(page_of(&target).text.contains("The end"));
    assert_eq!(fs::metadata(&target).unwrap().mode() & 0o777, 0o644);
}

#[test]
fn rpc_exports_the_session_it_has() {
    let (place, server) = (Sandbox::new(TAU), Server::start([openai::text("said")]));
    place.configure(&server);
    let mut talk = Talk::start(place.command(&["--mode", "rpc"]));
    let early = talk.ask("0", json!({"type": "export_html", "outputPath": "early.html"}));
    assert_eq!(early["success"], false, "{early}");
    let wrong = talk.ask("w", json!({"type": "export_html", "outputPath": 5}));
    assert!(wrong["error"].as_str().unwrap().contains("outputPath"), "{wrong}");
    let _ = talk.data("p", json!({"type": "prompt", "message": "asked"}));
    let _ = talk.wait(&json!({"type": "agent_settled"}));
    let path = place.work().join("out dir");
    fs::create_dir(&path).unwrap();
    let path = path.join("页 page.html").display().to_string();
    assert_eq!(talk.data("e", json!({"type": "export_html", "outputPath": path})), json!({"path": path}));
    let page = page_of(Path::new(&path));
    assert!(page.text.contains("asked") && page.text.contains("said"));
    let default = talk.data("d", json!({"type": "export_html"}))["path"].as_str().unwrap().to_owned();
    assert!(default.starts_with("pi-session-2") && place.work().join(default).is_file());
    let missing = talk.ask("m", json!({"type": "export_html", "outputPath": "no/folder/x.html"}));
    assert_eq!(missing["success"], false);
    let _ = talk.finish().ok();
}

/// The browser of this machine, if there is one.
fn browser() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&folders)
        .flat_map(|folder| ["chromium", "chromium-browser", "google-chrome"].map(|name| folder.join(name)));
    found.find(|path| path.is_file())
}

/// Runs the browser on a page: what it prints and what it logs.
fn browse(place: &Sandbox, browser: &Path, page: &Path, more: &[&str]) -> (String, String) {
    let profile = PathBuf::from(place.root()).join("profile");
    let _ = fs::remove_dir_all(&profile);
    let (out, log) = (place.put("browser.out", ""), place.put("browser.log", ""));
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
    command.args(["--hide-scrollbars", "--enable-logging=stderr"]);
    command.arg(format!("--user-data-dir={}", profile.display())).args(more);
    command.arg(format!("file://{}", page.display()));
    command
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&log).unwrap());
    let mut child = command.spawn().unwrap();
    let end = Instant::now() + Duration::from_secs(90);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            let _ = child.kill();
            panic!("the browser did not end: {}", fs::read_to_string(&log).unwrap());
        }
        thread::sleep(Duration::from_millis(20));
    }
    let read = |path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    (read(out), read(log))
}

#[test]
fn a_browser_shows_it() {
    let Some(browser) = browser() else {
        eprintln!("no browser is here: what pages look like was not checked");
        return;
    };
    let (place, _server, session) = place();
    let _ = place.run(&["--export", &session, "out.html"]).ok();
    let path = place.work().join("out.html");
    let written = page_of(&path);
    // The browser finds the same elements and texts as were written; the page's own script ran, no other did, and
    // nothing was complained about.
    let (dom, log) = browse(&place, &browser, &path, &["--dump-dom"]);
    let mut shown = page::read(&dom).unwrap_or_else(|why| panic!("{why}\n{log}"));
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(squeezed(&shown.text), squeezed(&written.text));
    shown.count.remove("tbody");
    assert_eq!(shown.count, written.count);
    assert!(dom.contains("<button id=\"open\">"), "the script of the page did not run\n{log}");
    assert!(!log.contains("CONSOLE"), "{log}");
    // A script whose digest the policy does not name does not run; the page is the same but for the buttons.
    let html = fs::read_to_string(&path).unwrap();
    let silent =
        place.put("work/silent.html", html.replacen("script-src 'sha256-", "script-src 'sha256-A", 1));
    let (dom, _) = browse(&place, &browser, &silent, &["--dump-dom"]);
    assert!(dom.contains("<button id=\"open\" hidden"), "a script ran");
    assert_eq!(squeezed(&page::read(&dom).unwrap().text), squeezed(&written.text));
    // Light, dark and narrow.
    let mut pictures = Vec::new();
    for (name, size, more) in [
        ("light", "1280,900", "--blink-settings=preferredColorScheme=1"),
        ("dark", "1280,900", "--blink-settings=preferredColorScheme=0"),
        ("narrow", "380,900", "--hide-scrollbars"),
    ] {
        let picture = place.work().join(format!("{name}.png"));
        let args =
            [format!("--screenshot={}", picture.display()), format!("--window-size={size}"), more.into()];
        let (_, log) = browse(&place, &browser, &path, &args.each_ref().map(String::as_str));
        let bytes = fs::read(&picture).unwrap_or_else(|why| panic!("{name}: {why}\n{log}"));
        assert!(bytes.len() > 10_000 && !pictures.contains(&bytes), "{name}: {} bytes", bytes.len());
        pictures.push(bytes);
    }
}
