//! Search and walk: bugs 74–79 and the trees of the tool vectors.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;
use tau_core::fault::{FaultKind, IoFault};
use tau_core::op::{Hit, Op, Outcome, SearchSpec, WalkSpec};
use tempfile::TempDir;

use crate::backend::{Backend, all, on_each_backend};

fn find(b: &Backend, root: &Path, pattern: &str, limit: u64) -> Result<(Vec<String>, bool), IoFault> {
    let spec = WalkSpec { root: root.to_str().unwrap().into(), pattern: pattern.into(), limit };
    match b.run(Op::Walk(spec))? {
        Outcome::Paths { paths, more } => Ok((paths, more)),
        other => panic!("{other:?}"),
    }
}

fn spec(root: &Path, pattern: &str) -> SearchSpec {
    SearchSpec {
        root: root.to_str().unwrap().into(),
        pattern: pattern.into(),
        literal: false,
        ignore_case: false,
        glob: None,
        context: 0,
        limit: 100,
        max_line: 500,
    }
}

fn grep(b: &Backend, spec: SearchSpec) -> Result<(Vec<Hit>, bool), IoFault> {
    match b.run(Op::Search(spec))? {
        Outcome::Hits { hits, more } => Ok((hits, more)),
        other => panic!("{other:?}"),
    }
}

/// Lays out files: `path` or `path=content`.
fn tree(root: &Path, files: &[&str]) {
    for file in files {
        let (path, text) = file.split_once('=').unwrap_or((file, "x\n"));
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn both(root: &Path, files: &[&str]) {
    for b in all() {
        let found = find(&b, root, "*", 100).unwrap().0;
        let found: Vec<_> = found.iter().filter(|p| !p.ends_with('/')).collect();
        assert_eq!(found, files, "{} find", b.name);
        let mut hits: Vec<_> = grep(&b, spec(root, "")).unwrap().0.iter().map(|h| h.path.clone()).collect();
        hits.dedup();
        assert_eq!(hits, files, "{} grep", b.name);
    }
}

#[test]
fn anchored_rules_of_parents() {
    let dir = TempDir::new().unwrap();
    tree(dir.path(), &[".git/HEAD", "lib/hand.rs", "lib/gen/auto.rs", ".gitignore=/lib/gen/\n"]);
    both(&dir.path().join("lib"), &["hand.rs"]);
}

#[test]
fn nested_repositories_keep_their_boundary() {
    let dir = TempDir::new().unwrap();
    let files = [".git/HEAD", "sub/.git/HEAD", "sub2/.git=gitdir: x\n", ".gitignore=*.def\n"];
    tree(dir.path(), &files);
    tree(dir.path(), &["a.def", "sub/b.def", "sub2/c.def"]);
    both(&dir.path().join("sub"), &["b.def"]);
    both(dir.path(), &[".gitignore", "sub/b.def", "sub2/.git", "sub2/c.def"]);
}

#[test]
fn gitignore_without_a_repository() {
    let dir = TempDir::new().unwrap();
    tree(dir.path(), &["node_modules/x/i.js", "src/a.js", ".gitignore=node_modules/\n"]);
    both(dir.path(), &[".gitignore", "src/a.js"]);
    both(&dir.path().join("src"), &["a.js"]);
}

/// Bugs 74, 76, 77: what a listing of the tree of `setup.sh` shows.
#[test]
fn bug_cases() {
    let bugs = Path::new(env!("CARGO_MANIFEST_DIR")).join("bugs");
    let mut count = 0;
    for case in fs::read_dir(bugs).unwrap().flatten().map(|entry| entry.path()) {
        let Ok(query) = fs::read(case.join("query.json")) else { continue };
        let query: Value = serde_json::from_slice(&query).unwrap();
        let expected: Value = serde_json::from_slice(&fs::read(case.join("expected.json")).unwrap()).unwrap();
        let dir = TempDir::new().unwrap();
        let mut shell = Command::new("sh");
        assert!(shell.arg(case.join("setup.sh")).current_dir(dir.path()).status().unwrap().success());
        for b in all() {
            let root = dir.path().join(query["root"].as_str().unwrap());
            let mut found = find(&b, &root, "*", 100).unwrap().0;
            found.retain(|path| !path.ends_with('/') && !path.starts_with('.'));
            assert_eq!(Value::from(found), expected["expect"]["files"], "{} {}", b.name, case.display());
        }
        count += 1;
    }
    assert!(count >= 3);
}

#[test]
fn exclude_file_of_a_repository() {
    let dir = TempDir::new().unwrap();
    tree(dir.path(), &[".git/info/exclude=*.tmp\n", "a.tmp", "d/b.tmp", "d/c"]);
    both(dir.path(), &["d/c"]);
    both(&dir.path().join("d"), &["c"]);
}

#[test]
fn patterns_beginning_with_a_dash() {
    let dir = TempDir::new().unwrap();
    tree(dir.path(), &["help.txt=--jobs N\n-q quiet\nother\n"]);
    for b in all() {
        assert_eq!(grep(&b, spec(dir.path(), "--jobs|-q")).unwrap().0.len(), 2);
    }
}

#[test]
fn large_and_binary_files() {
    let dir = TempDir::new().unwrap();
    let long = format!("{}needle\n", "filler line\n".repeat(60_000));
    fs::write(dir.path().join("a"), &long).unwrap();
    fs::write(dir.path().join("b"), [long.as_bytes(), b"\0"].concat()).unwrap();
    fs::write(dir.path().join("c"), b"needle\0").unwrap();
    fs::write(dir.path().join("d"), "needle\n").unwrap();
    symlink("d", dir.path().join("e")).unwrap();
    for b in all() {
        let hits = grep(&b, spec(dir.path(), "needle")).unwrap().0;
        let hits: Vec<_> = hits.iter().map(|h| (h.path.as_str(), h.line)).collect();
        assert_eq!(hits, [("a", 60_001), ("d", 1)]);
        assert_eq!(grep(&b, spec(&dir.path().join("e"), "needle")).unwrap().0[0].path, "e");
        assert_eq!(grep(&b, spec(&dir.path().join("b"), "needle")).unwrap().0.len(), 1);
    }
}

#[test]
fn limits_look_one_further() {
    let dir = TempDir::new().unwrap();
    tree(dir.path(), &["a=x\nx\n", "b=x\n", "c/d=y\n"]);
    for b in all() {
        let more = |limit| grep(&b, SearchSpec { limit, ..spec(dir.path(), "x") }).unwrap();
        assert_eq!((more(2).0.len(), more(2).1), (2, true));
        assert_eq!((more(3).0.len(), more(3).1), (3, false));
        assert_eq!(find(&b, dir.path(), "*", 3).unwrap(), (vec!["a".into(), "b".into(), "c/".into()], true));
        assert!(!find(&b, dir.path(), "*", 4).unwrap().1);
    }
}

#[test]
fn faults() {
    let dir = TempDir::new().unwrap();
    tree(dir.path(), &["f"]);
    for b in all() {
        let kind = |result: Result<_, IoFault>| result.map(|_: (Vec<Hit>, bool)| ()).unwrap_err().kind;
        assert_eq!(kind(grep(&b, spec(&dir.path().join("no"), "x"))), FaultKind::NotFound);
        assert_eq!(kind(grep(&b, spec(dir.path(), "(x"))), FaultKind::Invalid);
        assert_eq!(kind(grep(&b, spec(dir.path(), "a\nb"))), FaultKind::Invalid);
        assert_eq!(
            kind(grep(&b, SearchSpec { literal: true, ..spec(dir.path(), "a\nb") })),
            FaultKind::Invalid
        );
        assert_eq!(kind(grep(&b, spec(Path::new("/dev/zero"), "x"))), FaultKind::Special);
        assert_eq!(find(&b, &dir.path().join("f"), "*", 9).unwrap_err().kind, FaultKind::NotDir);
        assert_eq!(find(&b, dir.path(), "[", 9).unwrap_err().kind, FaultKind::Invalid);
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .map(|part| match part {
                Value::Array(pair) => pair[0].as_str().unwrap().repeat(pair[1].as_u64().unwrap() as usize),
                other => other.as_str().unwrap().to_owned(),
            })
            .collect(),
        _ => String::new(),
    }
}

fn lay_out(root: &Path, entries: &Value) {
    for entry in entries.as_array().unwrap() {
        if let Some(generate) = entry.get("generate") {
            let n = |key: &str| generate[key].as_u64().unwrap() as usize;
            for i in n("from")..=n("to") {
                let name = format!("{}{i:0width$}", generate["prefix"].as_str().unwrap(), width = n("pad"));
                fs::write(root.join(name), "").unwrap();
            }
            continue;
        }
        let path = root.join(entry["path"].as_str().unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if let Some(link) = entry["link"].as_str() {
            symlink(link, path).unwrap();
        } else if entry["dir"].as_bool() == Some(true) {
            fs::create_dir_all(path).unwrap();
        } else if let Some(hex) = entry["hex"].as_str() {
            let bytes: Vec<u8> =
                (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[i * 2..i * 2 + 2], 16).unwrap()).collect();
            fs::write(path, bytes).unwrap();
        } else {
            fs::write(path, text_of(&entry["text"])).unwrap();
        }
    }
}

fn in_git(path: &str) -> bool {
    path.split('/').any(|part| part == ".git")
}

on_each_backend!(tool_vectors);
/// The cases of the tool vectors that the ops alone decide.
fn tool_vectors(b: &Backend) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/tools/fs-tools.json");
    let doc: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let dir = TempDir::new().unwrap();
    let base = dir.path().canonicalize().unwrap();
    for (name, entries) in doc["trees"].as_object().unwrap() {
        fs::create_dir(base.join(name)).unwrap();
        lay_out(&base.join(name), entries);
    }
    let (mut failed, mut count) = (Vec::new(), 0);
    for case in doc["cases"].as_array().unwrap() {
        let (name, args, expected) =
            (case["name"].as_str().unwrap(), &case["input"]["args"], &case["expected"]);
        let tree = base.join(case["tree"].as_str().unwrap());
        let root = tree.join(args["path"].as_str().unwrap_or("").trim_start_matches('@'));
        let limit = |default: u64| args["limit"].as_f64().map_or(default, |n| n.max(1.0) as u64);
        let pattern = args["pattern"].as_str().unwrap_or("").replace("{ROOT}", tree.to_str().unwrap());
        // D32: `.gitignore` counts without a repository too.
        if name == "grep-norepo-ignore-files" || args["path"].as_str().is_some_and(|p| p.contains(".git")) {
            continue;
        }
        let got = match case["tool"].as_str().unwrap() {
            "grep" => {
                let spec = SearchSpec {
                    literal: args["literal"].as_bool().unwrap_or(false),
                    ignore_case: args["ignoreCase"].as_bool().unwrap_or(false),
                    glob: args["glob"].as_str().map(str::to_owned),
                    context: args["context"].as_f64().map_or(0, |n| n.clamp(0.0, 1e9) as u32),
                    limit: limit(100),
                    ..spec(&root, &pattern)
                };
                grep(b, spec).map(|(hits, more)| {
                    let line =
                        |h: &Hit| format!("{}:{}:{}:{}:{}", h.path, h.line, h.is_match, h.clipped, h.text);
                    (hits.iter().map(line).collect::<Vec<_>>(), more)
                })
            }
            "find" => find(b, &root, &pattern, limit(1000)),
            _ => continue,
        };
        count += 1;
        if expected["ok"] == false {
            if got.is_ok() {
                failed.push(format!("{name}: should fail, got {got:?}"));
            }
            continue;
        }
        let (got, more) = match got {
            Ok(got) => got,
            Err(fault) => {
                failed.push(format!("{name}: {fault}"));
                continue;
            }
        };
        let wants_more = expected["notices"].as_array().is_some_and(|n| {
            n.iter()
                .any(|n| n["kind"].as_str().is_some_and(|k| k.ends_with("_limit") && !k.starts_with("byte")))
        });
        if wants_more != more {
            failed.push(format!("{name}: more = {more}"));
        }
        let mut want: Vec<String> = if let Some(paths) = expected["paths"].as_array() {
            paths.iter().map(|p| p.as_str().unwrap().to_owned()).filter(|p| !in_git(p)).collect()
        } else if let Some(lines) = expected["lines"].as_array() {
            let whole = |l: &&Value| !in_git(l["path"].as_str().unwrap()) && l["text"].is_string();
            let line = |l: &Value| {
                let clipped = l["clipped"].as_bool().unwrap_or(false);
                let (path, text) = (l["path"].as_str().unwrap(), l["text"].as_str().unwrap());
                format!("{path}:{}:{}:{clipped}:{text}", l["line"], l["kind"] == "match")
            };
            if lines.iter().any(|l| !l["text"].is_string()) {
                if lines.len() != got.len() {
                    failed.push(format!("{name}: {} lines", got.len()));
                }
                continue;
            }
            lines.iter().filter(whole).map(line).collect()
        } else {
            continue;
        };
        let mut got = got;
        got.sort();
        want.sort();
        if got != want {
            failed.push(format!("{name}:\n  want {want:?}\n  got  {got:?}"));
        }
    }
    assert!(failed.is_empty(), "{} of {count} failed:\n{}", failed.len(), failed.join("\n"));
    assert!(count > 80, "{count}");
}

on_each_backend!(searches_are_cancelled_in_their_middle);
fn searches_are_cancelled_in_their_middle(b: &Backend) {
    let dir = TempDir::new().unwrap();
    let first = dir.path().join("0.txt");
    fs::write(&first, "the same line again and again\n".repeat(1 << 20)).unwrap();
    for number in 1..400 {
        fs::hard_link(&first, dir.path().join(format!("{number}.txt"))).unwrap();
    }
    let walk = WalkSpec { root: "/".into(), pattern: "no-such-name-*".into(), limit: 1 };
    for what in [Op::Search(spec(dir.path(), "another line")), Op::Walk(walk)] {
        let searching = matches!(what, Op::Search(_));
        let running = b.start(what);
        std::thread::sleep(Duration::from_millis(60));
        let start = Instant::now();
        running.cancel();
        match running.finish().1 {
            Err(fault) => assert_eq!(fault.kind, FaultKind::Cancelled),
            // A small machine may have been looked through by then.
            Ok(_) => assert!(!searching),
        }
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }
}
