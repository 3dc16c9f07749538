//! `tau sessions`, `--resume`, and the index of lists, with real files.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tau_tests::program::{Run, Sandbox, records, roles};
use tau_tests::pty::Pty;
use tau_tests::server::{Server, openai};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

const AT: &str = "2026-01-02T03:04:05.678Z";

/// A session of a directory: its messages are user and model in turn; `more` are records behind them.
fn session(place: &Sandbox, cwd: &Path, id: &str, said: &[&str], more: &[Value]) -> PathBuf {
    let mut lines =
        vec![json!({"type": "session", "version": 3, "id": id, "timestamp": AT, "cwd": shown(cwd)})];
    let entry = |n: usize| format!("{n:08x}");
    for (n, text) in said.iter().enumerate() {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        let message = json!({"role": role, "content": [{"type": "text", "text": text}], "provider": "mock",
            "model": "m1", "usage": {"input": 10, "output": 5, "totalTokens": 15, "cost": {"total": 0.25}},
            "stopReason": "stop", "timestamp": 1_767_323_045_678_u64 + n as u64});
        let parent = n.checked_sub(1).map(entry);
        lines.push(json!({"type": "message", "id": entry(n), "parentId": parent, "timestamp": AT, "message": message}));
    }
    lines.extend(more.iter().cloned());
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let folder = format!("--{}--", shown(cwd).trim_start_matches('/').replace('/', "-"));
    place.put(&format!("agent/sessions/{folder}/2026-01-02T03-04-05-678Z_{id}.jsonl"), text)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn record(kind: &str, id: &str, parent: &str, more: Value) -> Value {
    let mut record = json!({"type": kind, "id": id, "parentId": parent, "timestamp": AT});
    record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    record
}

fn named(name: &str) -> Value {
    named_after("00000000", name)
}

fn named_after(parent: &str, name: &str) -> Value {
    record("session_info", "name0001", parent, json!({"name": name}))
}

fn sessions(place: &Sandbox, args: &[&str]) -> Run {
    place.run(&[&["sessions"], args].concat())
}

/// The ids of a list as JSON.
fn ids(place: &Sandbox, args: &[&str]) -> Vec<String> {
    let run = sessions(place, &[args, &["--json"]].concat());
    run.events().iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn lists_belong_to_their_directory() {
    let place = Sandbox::new(TAU);
    let (work, other) = (place.work(), place.work().join("x/y"));
    fs::create_dir_all(&other).unwrap();
    session(&place, &work, "one", &["first question", "answer", "again"], &[]);
    session(&place, &work, "two", &["x"], &[named("A \u{1b}[31mname")]);
    session(&place, &other, "three", &["elsewhere"], &[]);
    // The same folder name, another directory.
    session(&place, &place.work().join("x-y"), "four", &["neighbour"], &[]);
    let run = sessions(&place, &["list"]).ok();
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", run.out);
    assert!(lines[0].starts_with("id ") && lines[1].starts_with("one ") && lines[2].starts_with("two "));
    assert!(lines[1].contains("  3 ") && lines[1].contains("\"first question\""), "{}", run.out);
    assert!(lines[2].contains("A ␛[31mname") && !run.out.contains('\u{1b}'), "{}", run.out);
    assert_eq!(ids(&place, &["list", "--named"]), ["two"]);
    assert_eq!(ids(&place, &["list", "--limit", "1"]), ["one"]);
    let mut all = ids(&place, &["list", "--all"]);
    all.sort();
    assert_eq!(all, ["four", "one", "three", "two"]);
    let mut command = place.command(&["sessions", "list", "--json"]);
    command.current_dir(&other);
    assert_eq!(place.start(command).finish().ok().events()[0]["id"], "three");
    let first = &sessions(&place, &["list", "--json"]).ok().events()[0];
    assert_eq!(first["messages"], 3);
    assert_eq!(first["firstMessage"], "first question");
    assert_eq!((&first["cwd"], &first["created"]), (&json!(shown(&work)), &json!(AT)));
    assert_eq!(first["modified"], "2026-01-02T03:04:05.680Z");
}

#[test]
fn nothing_to_list_is_said() {
    let place = Sandbox::new(TAU);
    let run = sessions(&place, &["list"]).ok();
    assert_eq!(run.out, "");
    assert!(run.err.contains("--all"), "{}", run.err);
    assert_eq!(sessions(&place, &["list", "--json"]).ok().out, "");
    assert!(sessions(&place, &["search", "x"]).ended_with(1).err.contains("nothing was found"));
    assert!(sessions(&place, &["show", "x"]).ended_with(1).err.contains("no session x"));
    assert!(sessions(&place, &[]).ok().out.contains("tau sessions delete"));
    assert!(sessions(&place, &["frob"]).ended_with(1).err.contains("list, show, search and delete"));
    assert!(!place.agent().join("cache").exists(), "an index without need");
}

#[test]
fn a_chosen_folder_holds_all_directories() {
    let place = Sandbox::new(TAU);
    let other = place.work().join("other");
    let (here, there) =
        (session(&place, &place.work(), "here", &["a"], &[]), session(&place, &other, "there", &["b"], &[]));
    let flat = place.root() + "/flat";
    fs::create_dir_all(&flat).unwrap();
    for path in [here, there] {
        fs::rename(&path, Path::new(&flat).join(path.file_name().unwrap())).unwrap();
    }
    assert_eq!(ids(&place, &["list", "--session-dir", &flat]), ["here"]);
    let mut all = ids(&place, &["list", "--all", "--session-dir", &flat]);
    all.sort();
    assert_eq!(all, ["here", "there"]);
    let run = sessions(&place, &["show", "ther", "--json", "--session-dir", &flat]).ok();
    assert_eq!(run.events()[0]["cwd"], json!(shown(&other)));
}

#[test]
fn a_search_looks_at_names_first() {
    let place = Sandbox::new(TAU);
    let work = place.work();
    session(&place, &work, "aa", &["long ago", "the needle is here, in a long reply"], &[]);
    session(&place, &work, "bb", &["something"], &[named("Needle work")]);
    session(&place, &work, "cc", &["nothing"], &[]);
    assert_eq!(ids(&place, &["search", "needle"]), ["bb", "aa"]);
    assert_eq!(ids(&place, &["search", "needle", "reply"]), ["aa"]);
    assert_eq!(ids(&place, &["search", "\"needle is\""]), ["aa"]);
    assert_eq!(ids(&place, &["search", "re:need.{1,4}is"]), ["aa"]);
    let run = sessions(&place, &["search", "NEEDLE"]).ok();
    assert!(run.out.contains("    long ago the needle is here"), "{}", run.out);
    assert!(sessions(&place, &["search", "re:("]).ended_with(1).err.contains("invalid pattern"));
    assert!(sessions(&place, &["search", "re:"]).ended_with(1).err.contains("needs a pattern"));
}

#[test]
fn one_session_is_shown_and_not_touched() {
    let place = Sandbox::new(TAU);
    let more = [
        record("label", "label001", "00000001", json!({"targetId": "00000000", "label": "check\u{9b}point"})),
        named_after("label001", "Shown"),
        record(
            "message",
            "branch01",
            "00000000",
            json!({"message":
            {"role": "user", "content": "another way", "timestamp": 1_767_323_049_000_u64}}),
        ),
    ];
    let path = session(
        &place,
        &place.work(),
        "0198b2f1-aaaa-7000-8000-000000000001",
        &["question", "answer"],
        &more,
    );
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"type\":\"mess");
    fs::write(&path, &bytes).unwrap();
    let run = sessions(&place, &["show", "0198b2f1", "--json"]).ok();
    let shown = &run.events()[0];
    assert_eq!((&shown["name"], &shown["damagedLines"]), (&json!("Shown"), &json!(1)));
    assert_eq!(shown["stats"]["totalMessages"], 3);
    assert_eq!((&shown["stats"]["cost"], &shown["stats"]["tokens"]["total"]), (&json!(0.25), &json!(15)));
    assert_eq!(shown["labels"][0]["targetId"], "00000000");
    assert_eq!(shown["modified"], "2026-01-02T03:04:09.000Z");
    let tips: Vec<&str> =
        shown["branches"].as_array().unwrap().iter().map(|tip| tip["text"].as_str().unwrap()).collect();
    assert_eq!((tips, &shown["branches"][0]["current"]), (vec!["another way", "answer"], &json!(true)));
    let last: Vec<&str> =
        shown["lastMessages"].as_array().unwrap().iter().map(|m| m["text"].as_str().unwrap()).collect();
    assert_eq!(last, ["question", "another way"]);
    assert!(run.out.contains("check\\u009bpoint"), "{}", run.out);
    let run = sessions(&place, &["show", &path.display().to_string()]).ok();
    for part in ["Shown", "check\\u{9b}point", "branches (2", "another way", "damaged"] {
        assert!(run.out.contains(part), "{part} in {}", run.out);
    }
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn old_versions_are_shown_as_they_are() {
    let place = Sandbox::new(TAU);
    let lines = [
        json!({"type": "session", "id": "old", "timestamp": AT, "cwd": shown(&place.work())}),
        json!({"type": "message", "timestamp": AT, "message": {"role": "user", "content": "hi", "timestamp": 1}}),
    ];
    let path = place.put("x.jsonl", format!("{}\n{}\n", lines[0], lines[1]));
    let before = fs::read(&path).unwrap();
    let run = sessions(&place, &["show", &path.display().to_string(), "--json"]).ok();
    assert_eq!(run.events()[0]["lastMessages"][0]["text"], "hi");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn deleting_is_exact_and_asks() {
    let place = Sandbox::new(TAU);
    let work = place.work();
    let [one, two, three] =
        ["0198b2f1-aaaa", "0198b2f1-aaab", "0198b2f1"].map(|id| session(&place, &work, id, &["x"], &[]));
    let kept = place.put("work/notes.txt", "mine");
    let run = sessions(&place, &["delete", "0198b2f", "--yes"]).ended_with(1);
    for part in ["3 sessions", "0198b2f1-aaaa", "0198b2f1-aaab"] {
        assert!(run.err.contains(part), "{}", run.err);
    }
    let run = sessions(&place, &["delete", "0198b2f1-aaaa"]).ended_with(1);
    assert!(run.err.contains("--yes"), "{}", run.err);
    // One that is wrong, and none is deleted.
    let _ = sessions(&place, &["delete", "0198b2f1-aaaa", "gone", "--yes"]).ended_with(1);
    let run = sessions(&place, &["delete", &kept.display().to_string(), "--yes"]).ended_with(1);
    assert!(run.err.contains("no session file"), "{}", run.err);
    assert!([&one, &two, &three, &kept].iter().all(|path| path.exists()));
    // A whole id beats longer ones that begin with it.
    let run = sessions(&place, &["delete", "0198b2f1", "--yes"]).ok();
    assert!(run.out.contains("deleted 0198b2f1\n"), "{}", run.out);
    assert!(one.exists() && two.exists() && !three.exists());
    let _ = sessions(&place, &["delete", "0198b2f1-aaaa", &two.display().to_string(), "--yes"]).ok();
    assert!(!one.exists() && !two.exists());
    assert_eq!(fs::read_dir(one.parent().unwrap()).unwrap().count(), 0);
}

#[test]
fn a_question_is_answered_at_a_terminal() {
    let place = Sandbox::new(TAU);
    let path = session(&place, &place.work(), "mine", &["x"], &[]);
    let answer = |line: &str| {
        let (pty, mut command) = (Pty::open(), place.command(&["sessions", "delete", "mine"]));
        command.stdin(pty.stdin());
        let running = place.start(command);
        pty.write(line);
        running.finish().ok()
    };
    assert!(answer("n\n").out.contains("nothing was deleted"));
    assert!(path.exists());
    assert!(answer("y\n").err.contains("delete this session? [y/N]"));
    assert!(!path.exists());
}

/// Sessions that make an index worth having: 6 MB.
fn many(place: &Sandbox) -> Vec<PathBuf> {
    let filler = "word ".repeat(20_000);
    let one = |n: usize| {
        let (id, first) = (format!("many{n:02}"), format!("question {n:02}"));
        let path = session(place, &place.work(), &id, &[&first, &filler], &[named(&format!("Name {n:02}"))]);
        let old = SystemTime::now() - Duration::from_secs(3600);
        File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
        path
    };
    let paths = (0..60).map(one).collect();
    // A file changed just now may change again unseen; what the index holds must be settled.
    std::thread::sleep(Duration::from_millis(150));
    paths
}

fn indexes(place: &Sandbox) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.agent().join("cache/sessions")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[test]
fn the_index_is_a_copy_and_no_authority() {
    let place = Sandbox::new(TAU);
    let paths = many(&place);
    let list = || sessions(&place, &["list", "--json"]).ok().out;
    let cold = list();
    assert_eq!(cold.lines().count(), 60);
    let [index] = &indexes(&place)[..] else { panic!("one index: {:?}", indexes(&place)) };
    assert_eq!(fs::metadata(index).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(index.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    let whole = fs::read(index).unwrap();
    assert_eq!(list(), cold);
    assert_eq!(fs::read(index).unwrap(), whole, "a list that learnt nothing wrote");

    // The files are believed, whatever the index says.
    let text = String::from_utf8(whole.clone()).unwrap();
    for (what, content) in [
        ("torn", text[..text.len() / 2].to_owned()),
        ("foreign", "SQLite format 3\0".into()),
        ("of another version", text.replace("tau sessions 1", "tau sessions 2")),
        ("changed", text.replace("Name 07", "Name 70")),
        ("of another folder", text.replacen("work", "wart", 1)),
        ("empty", String::new()),
    ] {
        fs::write(index, content).unwrap();
        assert_eq!(list(), cold, "an index that is {what}");
        assert_eq!(fs::read(index).unwrap().len(), whole.len(), "an index that is {what} is replaced");
    }
    fs::remove_file(index).unwrap();
    assert_eq!(list(), cold);
    assert!(index.exists());

    // It is used, though: one that is whole and says something else shows that no file was read again.
    let folder = shown(paths[0].parent().unwrap());
    let mut known = tau::sessions::index::read(&text, &folder).unwrap();
    known.values_mut().for_each(|record| record.info.as_mut().unwrap().name = Some("From the index".into()));
    fs::write(index, tau::sessions::index::write(&folder, &known.values().collect::<Vec<_>>())).unwrap();
    assert_eq!(list().matches("From the index").count(), 60);
    fs::remove_file(index).unwrap();
    let _ = list();

    // A file that was written to, one replaced by another of the same size and time, one that went.
    let mut bytes = fs::read(&paths[3]).unwrap();
    bytes.extend_from_slice(format!("{}\n", named("Renamed")).as_bytes());
    fs::write(&paths[3], bytes).unwrap();
    let time = fs::metadata(&paths[5]).unwrap().modified().unwrap();
    let other = fs::read_to_string(&paths[5]).unwrap().replace("Name 05", "Eman 50");
    let temporary = place.put("agent/new", other);
    File::options().write(true).open(&temporary).unwrap().set_modified(time).unwrap();
    fs::rename(&temporary, &paths[5]).unwrap();
    fs::remove_file(&paths[8]).unwrap();
    // A file overwritten in place, its time set back.
    let time = fs::metadata(&paths[9]).unwrap().modified().unwrap();
    let other = fs::read_to_string(&paths[9]).unwrap().replace("Name 09", "Eman 90");
    fs::write(&paths[9], other).unwrap();
    File::options().write(true).open(&paths[9]).unwrap().set_modified(time).unwrap();
    let now = list();
    for (part, there) in [
        ("Renamed", true),
        ("Eman 50", true),
        ("Eman 90", true),
        ("Name 05", false),
        ("Name 08", false),
        ("many08", false),
    ] {
        assert_eq!(now.contains(part), there, "{part}");
    }
    assert_eq!(now.lines().count(), 59);

    // What was deleted is in no index.
    let _ = sessions(&place, &["delete", "many11", "--yes"]).ok();
    assert!(!fs::read_to_string(index).unwrap().contains("Name 11"));
    assert!(list().lines().count() == 58);
}

#[test]
fn an_index_that_cannot_be_kept_is_no_failure() {
    let place = Sandbox::new(TAU);
    let _ = many(&place);
    place.put("agent/cache", "a file where a folder should be");
    assert_eq!(sessions(&place, &["list", "--json"]).ok().out.lines().count(), 60);
}

#[test]
fn damaged_files_are_listed_as_they_are_opened() {
    let place = Sandbox::new(TAU);
    let damage = |id: &str, change: &dyn Fn(String) -> String| {
        let path = session(&place, &place.work(), id, &["one", "two", "three"], &[named("Name")]);
        fs::write(&path, change(fs::read_to_string(&path).unwrap())).unwrap();
    };
    damage("torn", &|text| text + "{\"type\":\"message\",\"id\":\"x");
    damage("no-end", &|text| text.trim_end().to_owned());
    damage("zeros", &|text| text + &"\0".repeat(5000));
    damage("zeros-before", &|text| {
        text.replace("{\"type\":\"session_info\"", "\0\0{\"type\":\"session_info\"")
    });
    damage("glued-name", &|text| text.replace("\n{\"type\":\"session_info\"", "{\"type\":\"session_info\""));
    damage("separators", &|text| text.replace("two", "t\u{2028}w\u{2029}o\u{85}"));
    damage("crlf", &|text| text.replace('\n', "\r\n"));
    let events = sessions(&place, &["list", "--json"]).ok().events();
    assert_eq!(events.len(), 7);
    for line in events {
        let shown = &sessions(&place, &["show", line["path"].as_str().unwrap(), "--json"]).ok().events()[0];
        let id = &line["id"];
        assert_eq!(line["name"], "Name", "{id}");
        assert_eq!(
            (&shown["name"], &shown["stats"]["totalMessages"]),
            (&line["name"], &line["messages"]),
            "{id}"
        );
        assert_eq!(line["messages"], 3, "{id}");
    }
}

#[test]
fn odd_files_do_not_stop_anything() {
    let (place, server) = (Sandbox::new(TAU), Server::start([openai::text("again")]));
    place.configure(&server);
    let path = session(&place, &place.work(), "mine", &["before", "answer"], &[]);
    let folder = path.parent().unwrap();
    let fifo = folder.join("2099-01-01T00-00-00-000Z_fifo.jsonl");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    fs::create_dir(folder.join("2099-01-01T00-00-00-000Z_dir.jsonl")).unwrap();
    fs::write(folder.join("empty.jsonl"), "").unwrap();
    fs::write(folder.join("other.jsonl"), "not a session\n").unwrap();
    std::os::unix::fs::symlink("/nowhere", folder.join("link.jsonl")).unwrap();
    let start = Instant::now();
    assert_eq!(ids(&place, &["list"]), ["mine"]);
    assert_eq!(ids(&place, &["search", "before"]), ["mine"]);
    assert_eq!(place.run(&["-p", "-c", "more"]).ok().out, "again\n");
    assert_eq!(server.requests()[0].users(), ["before", "more"]);
    let fifo = fifo.display().to_string();
    for args in
        [&["-p", "x", "--session", &fifo][..], &["-p", "x", "--fork", &fifo], &["sessions", "show", &fifo]]
    {
        let run = place.run(args).ended_with(1);
        assert!(run.err.contains("regular file"), "{}", run.err);
    }
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn resuming_needs_somebody_who_chooses() {
    let (place, server) = (Sandbox::new(TAU), Server::start([openai::text("went on")]));
    place.configure(&server);
    let run = place.run(&["-p", "-r", "x"]).ended_with(1);
    assert!(run.err.contains("no sessions of this directory"), "{}", run.err);
    session(&place, &place.work(), "aa", &["about apples"], &[]);
    session(&place, &place.work(), "bb", &["about pears"], &[]);
    session(&place, &place.work().join("x"), "cc", &["elsewhere"], &[]);
    let run = place.run(&["-p", "-r", "x"]).ended_with(1);
    assert!(run.err.contains("about apples") && run.err.contains("--session"), "{}", run.err);
    assert!(!run.err.contains("elsewhere") && run.out.is_empty(), "{}", run.err);
    let choose = |lines: &str| {
        let (pty, mut command) = (Pty::open(), place.command(&["-p", "--resume", "x", "-n", "Chosen"]));
        command.stdin(pty.stdin());
        let running = place.start(command);
        pty.write(lines);
        running.finish()
    };
    let run = choose("\n").ok();
    assert!(run.out.is_empty() && run.err.contains("no session was chosen"), "{}", run.err);
    let run = choose("nothing like it\npears\n1\n").ok();
    assert_eq!(run.out, "went on\n", "{}", run.err);
    assert_eq!(server.requests()[0].users(), ["about pears", "x"]);
    let path =
        place.sessions().into_iter().find(|path| path.to_string_lossy().ends_with("_bb.jsonl")).unwrap();
    let stored = records(&path);
    assert_eq!(roles(&stored), ["user", "user", "assistant"]);
    assert!(stored.iter().any(|record| record["type"] == "session_info" && record["name"] == "Chosen"));
}

#[test]
fn a_whole_id_beats_the_beginning_of_another() {
    let (place, server) = (Sandbox::new(TAU), Server::start([openai::text("a"), openai::text("b")]));
    place.configure(&server);
    let other = place.work().join("other");
    session(&place, &other, "abc", &["short"], &[]);
    let newer = record(
        "message",
        "newer001",
        "00000000",
        json!({"message":
        {"role": "user", "content": "newer", "timestamp": 1_867_323_049_000_u64}}),
    );
    session(&place, &other, "abcdef", &["long"], &[newer]);
    // Of another directory, and nobody says yes: nothing is done, and that is no failure.
    let run = place.run(&["-p", "x", "--session", "abc"]).ok();
    assert!(run.out.is_empty() && run.err.contains("belongs to"), "{}", run.err);
    assert!(run.err.contains("_abc.jsonl"), "{}", run.err);
    let _ = place.run(&["-p", "x", "--fork", "abc"]).ok();
    assert_eq!(server.requests()[0].users(), ["short", "x"]);
    let _ = place.run(&["-p", "y", "--fork", "abcd"]).ok();
    assert_eq!(server.requests()[1].users(), ["long", "newer", "y"]);
}

/// A copy of a damaged file holds what the file holds for a reader.
#[test]
fn copies_of_damaged_files_lose_nothing() {
    let (place, server) = (Sandbox::new(TAU), Server::start([openai::text("a")]));
    place.configure(&server);
    let more = [
        record("odd", "odd00001", "00000002", json!({"data": [1.50, {"x": "y"}]})),
        named_after("odd00001", "Name"),
    ];
    let path = session(&place, &place.work(), "damaged", &["one", "two", "three"], &more);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let damaged = format!(
        "{}\n{}{}\n\0\0{}\n{}\n{}\n{{\"torn",
        lines[0], lines[1], lines[2], lines[3], lines[4], lines[5]
    );
    fs::write(&path, &damaged).unwrap();
    let _ = place.run(&["-p", "go on", "--fork", &path.display().to_string()]).ok();
    assert_eq!(server.requests()[0].users(), ["one", "three", "go on"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    let copy = place.sessions().into_iter().find(|other| *other != path).unwrap();
    let stored = records(&copy);
    assert!(stored.iter().any(|record| record["type"] == "odd" && record["data"][0] == 1.5));
    assert_eq!(roles(&stored), ["user", "assistant", "user", "user", "assistant"]);
}
