//! Skills and prompt templates: found, listed, and put in place of their commands.

use std::fs;

use serde_json::json;
use tau_tests::program::{Run, Sandbox};
use tau_tests::server::{Request, Server, openai};

const TAU: &str = env!("CARGO_BIN_EXE_tau");

const PDF: &str = "---\nname: pdf\ndescription: Reads & fills forms\n---\n\nBODY of $1\n";

struct Place {
    sandbox: Sandbox,
    server: Server,
}

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let (sandbox, server) = (Sandbox::new(TAU), Server::start([]));
        sandbox.configure(&server);
        for (path, text) in files {
            sandbox.put(path, text);
        }
        Self { sandbox, server }
    }

    fn path(&self, inner: &str) -> String {
        format!("{}/{inner}", self.sandbox.root())
    }

    fn run(&self, args: &[&str]) -> Run {
        self.server.script([openai::text("ok")]);
        let all: Vec<&str> = ["-p", "--no-session"].into_iter().chain(args.iter().copied()).collect();
        self.sandbox.run(&all).ok()
    }

    fn last_request(&self) -> Request {
        let mut requests = self.server.requests();
        requests.swap_remove(requests.len() - 1)
    }

    /// The names of the skills that the model is told of, and what people are told.
    fn listed(&self, args: &[&str]) -> (Vec<String>, String) {
        let run = self.run(&[args, &["x"]].concat());
        let request = self.last_request();
        let system = request.texts("system").concat();
        assert!(!system.contains("BODY"), "{system}");
        let names = system.split("<name>").skip(1).filter_map(|rest| rest.split_once('<'));
        (names.map(|(name, _)| name.to_owned()).collect(), run.err)
    }

    /// What the model gets for a prompt, and what people are told.
    fn sent(&self, args: &[&str]) -> (String, String) {
        let run = self.run(args);
        (self.last_request().users().pop().unwrap_or_default(), run.err)
    }
}

fn quiet(names: &[&str]) -> (Vec<String>, String) {
    (names.iter().map(|name| (*name).to_owned()).collect(), String::new())
}

#[test]
fn skills_are_listed_while_they_can_be_read() {
    let place = Place::new(&[
        ("agent/skills/pdf/SKILL.md", PDF),
        ("home/.agents/skills/own/SKILL.md", "---\ndescription: Mine\n---\nBODY"),
        ("agent/skills/hidden/SKILL.md", "---\ndescription: D\ndisable-model-invocation: true\n---\nBODY"),
        ("elsewhere/given/SKILL.md", "---\ndescription: D\n---\nBODY"),
        ("elsewhere/set/SKILL.md", "---\ndescription: D\n---\nBODY"),
    ]);
    assert_eq!(place.listed(&[]), quiet(&["pdf", "own"]));
    let system = place.last_request().texts("system").concat();
    let location = format!("<location>{}</location>", place.path("agent/skills/pdf/SKILL.md"));
    assert!(system.contains("<description>Reads &amp; fills forms</description>"), "{system}");
    assert!(system.contains(&location), "{system}");

    assert_eq!(place.listed(&["--tools", "write,bash"]), quiet(&[]));
    assert_eq!(place.listed(&["--no-skills"]), quiet(&[]));
    assert_eq!(place.listed(&["-ns", "--skill", "../elsewhere/given"]), quiet(&["given"]));
    place.sandbox.settings(&json!({"skills": ["../elsewhere/set", "-skills/pdf"]}));
    let given = place.path("elsewhere/given/SKILL.md");
    assert_eq!(place.listed(&["--skill", &given]), quiet(&["set", "own", "given"]));
}

#[test]
fn skills_of_a_project_need_trust() {
    let place = Place::new(&[("work/a/.git/HEAD", ""), ("work/.agents/skills/above/SKILL.md", PDF)]);
    let listed = |folder: &str, args: &[&str]| {
        place.server.script([openai::text("ok")]);
        let mut command = place.sandbox.command(&[&["-p", "--no-session", "x"], args].concat());
        command.current_dir(place.path(folder));
        let run = place.sandbox.start(command).finish().ok();
        let system = place.last_request().texts("system").concat();
        (system.contains("<name>pdf</name>"), run.err.contains("--approve"))
    };
    // It ends at the root of the repository.
    assert_eq!(listed("work/a", &["-a"]), (false, false));
    fs::create_dir_all(place.path("work/b/c")).unwrap();
    for more in [&[][..], &["-nc"]] {
        assert_eq!(listed("work/b/c", more), (false, true));
        assert_eq!(listed("work/b/c", &[more, &["-a"]].concat()), (true, false));
        assert_eq!(listed("work/b/c", &[more, &["-na"]].concat()), (false, false));
        assert_eq!(listed("work/b/c", &[more, &["-a", "-ns"]].concat()), (false, false));
    }
    place.sandbox.put("agent/trust.json", json!({ place.path("work"): true }).to_string());
    assert_eq!(listed("work/b/c", &[]), (true, false));
    place.sandbox.put("work/d/.pi/skills/own/SKILL.md", "---\nname: pdf\ndescription: D\n---\n");
    assert_eq!(listed("work/d", &["-na"]), (false, false));
    assert_eq!(listed("work/d", &[]), (true, false));
}

#[test]
fn a_skill_command_becomes_the_skill() {
    let hidden = "---\ndescription: D\ndisable-model-invocation: true\n---\nHIDDEN BODY";
    let place = Place::new(&[("agent/skills/pdf/SKILL.md", PDF), ("agent/skills/hidden/SKILL.md", hidden)]);
    for tools in ["read", "write"] {
        let (text, err) = place.sent(&["--tools", tools, "/skill:pdf  form.pdf, please "]);
        let open = format!("<skill name=\"pdf\" location=\"{}\">\n", place.path("agent/skills/pdf/SKILL.md"));
        assert!(text.starts_with(&open) && text.contains(&place.path("agent/skills/pdf")), "{text}");
        assert!(text.ends_with("\n\nBODY of $1\n</skill>\n\nform.pdf, please"), "{text}");
        assert_eq!(err, "");
    }
    assert!(place.sent(&["/skill:hidden"]).0.ends_with("HIDDEN BODY\n</skill>"));
    for text in ["/skill:none x", "/skill:pdf\nx", " /skill:pdf", "/skill:", "/unknown $1", "/"] {
        assert_eq!(place.sent(&[text]), (text.to_owned(), String::new()));
    }
    assert_eq!(place.sent(&["-ns", "/skill:pdf x"]).0, "/skill:pdf x");
}

#[test]
fn a_skill_that_went_away_is_told() {
    let place = Place::new(&[("agent/skills/pdf/SKILL.md", PDF)]);
    let file = place.path("agent/skills/pdf/SKILL.md");
    let remove = json!({"command": format!("rm {file}")});
    place.server.script([openai::calls(&[("c1", "bash", remove)]), openai::text("gone")]);
    let (text, err) = place.sent(&["go", "/skill:pdf x"]);
    assert_eq!(text, "/skill:pdf x");
    assert!(err.contains("pdf") && err.lines().count() == 1, "{err}");
}

#[test]
fn a_template_command_becomes_its_text() {
    let place = Place::new(&[
        ("agent/prompts/fix.md", "---\ndescription: D\n---\nFix $1 in ${2:-all files}."),
        ("work/.pi/prompts/own.md", "Project: $@"),
        ("elsewhere/given.md", "Given"),
        ("elsewhere/text.txt", "No template"),
    ]);
    assert_eq!(place.sent(&["-na", "/fix 'the bug'"]), ("Fix the bug in all files.".into(), String::new()));
    assert_eq!(place.sent(&["-na", "/own a b"]).0, "/own a b");
    assert_eq!(place.sent(&["-a", "/own a b"]).0, "Project: a b");
    assert_eq!(place.sent(&["-na", "-np", "/fix x"]).0, "/fix x");
    let given = place.sent(&["-na", "-np", "--prompt-template", "../elsewhere/given.md", "/given"]);
    assert_eq!(given, ("Given".into(), String::new()));
    let (_, err) = place.sent(&["-na", "--prompt-template", "../elsewhere/none.md", "x"]);
    assert!(err.contains("elsewhere/none.md"), "{err}");
    let (_, err) = place.sent(&["-na", "--skill", "../elsewhere/text.txt", "x"]);
    assert!(err.contains("elsewhere/text.txt"), "{err}");
}

#[test]
fn every_prompt_is_expanded() {
    let place = Place::new(&[("agent/prompts/fix.md", "Fix $@.")]);
    place.server.script([openai::text("one"), openai::text("two")]);
    let run = place.sandbox.run_with_stdin(&["-p", "--no-session", " it", "/fix that"], "/fix this");
    assert_eq!(run.ok().out, "two\n");
    assert_eq!(place.server.requests()[1].users(), ["Fix this it.", "Fix that."]);
}

#[test]
fn broken_skills_are_told_and_left_out() {
    let place = Place::new(&[
        ("agent/skills/bad/SKILL.md", "---\nname: [\n---\nBODY"),
        ("agent/skills/mute/SKILL.md", "BODY"),
        ("agent/skills/pdf/SKILL.md", PDF),
        ("home/.agents/skills/pdf/SKILL.md", PDF),
    ]);
    let (names, err) = place.listed(&[]);
    assert_eq!(names, ["pdf"]);
    for told in ["skills/bad/SKILL.md", "skills/mute/SKILL.md", "home/.agents/skills/pdf/SKILL.md"] {
        assert!(err.contains(told), "{told}: {err}");
    }
    assert_eq!(err.lines().count(), 3, "{err}");
}
