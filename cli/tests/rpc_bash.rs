//! Commands of the client's own shell over RPC: what is recorded where, what ends them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tau_tests::program::{Sandbox, records, roles};
use tau_tests::server::{Reply, Server, openai};
use tau_tests::talk::Talk;

const TAU: &str = env!("CARGO_BIN_EXE_tau");

fn place(script: impl IntoIterator<Item = Reply>) -> (Sandbox, Server) {
    Sandbox::served(TAU, script)
}

fn talk(place: &Sandbox) -> Talk {
    Talk::start(place.command(&["--mode", "rpc"]))
}

fn prompt(talk: &mut Talk, text: &str) {
    let _ = talk.data(text, json!({"type": "prompt", "message": text}));
    settled(talk);
}

fn settled(talk: &mut Talk) {
    let _ = talk.wait(&json!({"type": "agent_settled"}));
}

fn shell(command: &str) -> Value {
    json!({"type": "bash", "command": command})
}

fn commands(entries: &[Value]) -> Vec<&str> {
    entries.iter().filter_map(|entry| entry["message"]["command"].as_str()).collect()
}

/// Starts a command that writes its process id and waits for ever; gives the id.
fn endless(place: &Sandbox, talk: &mut Talk) -> u32 {
    let file = place.work().join("pid");
    let _ = fs::remove_file(&file);
    let mut command = shell("echo started; echo $$ > pid.new; mv pid.new pid; sleep 1000; echo never");
    command["id"] = json!("endless");
    talk.send(&command);
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        match fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok()) {
            Some(id) => return id,
            None => thread::sleep(Duration::from_millis(5)),
        }
        assert!(Instant::now() < end, "the command did not start");
    }
}

fn is_gone(process: u32) -> bool {
    let state = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    state.is_empty() || state.contains(") Z ")
}

#[test]
fn a_record_never_stands_between_a_call_and_its_result() {
    let wait = "while [ ! -f go ]; do sleep 0.02; done";
    let (place, server) = place([
        openai::calls(&[("c1", "bash", json!({"command": wait}))]),
        openai::text("done"),
        openai::text("fine"),
    ]);
    let mut talk = talk(&place);
    let _ = talk.data("p", json!({"type": "prompt", "message": "first"}));
    let _ = talk.wait(&json!({"type": "tool_execution_start"}));
    assert_eq!(talk.data("a", shell("echo shared"))["output"], "shared\n");
    let mut excluded = shell("echo private");
    excluded["excludeFromContext"] = json!(true);
    let _ = talk.data("b", excluded);
    // Not there yet, and not counted.
    assert_eq!(
        commands(talk.data("m", json!({"type": "get_messages"}))["messages"].as_array().unwrap()),
        [""; 0]
    );
    place.put("work/go", "");
    settled(&mut talk);
    // What the surface was told is stored.
    let stored = place.session();
    assert_eq!(
        roles(&stored),
        ["user", "assistant", "toolResult", "assistant", "bashExecution", "bashExecution"]
    );
    assert_eq!(commands(&stored), ["echo shared", "echo private"]);
    prompt(&mut talk, "second");
    let _ = talk.finish().ok();
    let users = server.requests()[2].users().join("\n---\n");
    assert!(users.contains("`echo shared`") && users.contains("shared\n"), "{users}");
    assert!(!users.contains("private"), "{users}");
    assert!(server.requests()[1].users().join("").find("shared").is_none());
}

#[test]
fn an_abort_ends_the_run_and_leaves_the_shell_alone() {
    let (place, _server) = place([openai::stalled("x"), openai::text("fine")]);
    let mut talk = talk(&place);
    let process = endless(&place, &mut talk);
    let _ = talk.data("p", json!({"type": "prompt", "message": "first"}));
    let _ = talk.wait(&json!({"type": "message_update"}));
    let _ = talk.ask("a", json!({"type": "abort"}));
    assert!(!is_gone(process));
    assert_eq!(talk.data("s", json!({"type": "get_state"}))["isStreaming"], false);
    prompt(&mut talk, "second");
    assert_eq!(talk.ask("b", json!({"type": "abort_bash"}))["success"], true);
    let end = talk.wait(&json!({"id": "endless", "type": "response"}));
    assert_eq!(end["data"], json!({"output": "started\n", "cancelled": true, "truncated": false}));
    assert!(is_gone(process));
    let _ = talk.finish().ok();
    let stored = place.session();
    assert_eq!(roles(&stored), ["user", "assistant", "user", "assistant", "bashExecution"]);
    assert_eq!(stored.last().unwrap()["message"]["cancelled"], true);
    assert!(stored.last().unwrap()["message"].get("exitCode").is_none());
}

#[test]
fn the_end_of_the_program_kills_what_runs() {
    for signal in [None, Some(15)] {
        let (place, _server) = place([openai::text("fine")]);
        let mut talk = talk(&place);
        prompt(&mut talk, "first");
        let process = endless(&place, &mut talk);
        let begun = Instant::now();
        let run = match signal {
            None => talk.finish(),
            Some(number) => {
                talk.signal(number);
                talk.wait_exit()
            }
        };
        assert_eq!(run.code, Some(signal.map_or(0, |number| 128 + number)));
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
        assert!(is_gone(process));
        assert_eq!(roles(&place.session()), ["user", "assistant", "bashExecution"]);
    }
}

#[test]
fn another_session_gets_nothing_of_a_command_of_the_one_before() {
    let (place, _server) = place([openai::text("one"), openai::text("two")]);
    let mut talk = talk(&place);
    prompt(&mut talk, "first");
    let first = talk.data("s", json!({"type": "get_state"}))["sessionFile"].clone();
    let process = endless(&place, &mut talk);
    assert_eq!(talk.data("n", json!({"type": "new_session"})), json!({"cancelled": false}));
    assert!(is_gone(process));
    prompt(&mut talk, "second");
    let second = talk.data("t", json!({"type": "get_state"}))["sessionFile"].clone();
    let run = talk.finish().ok();
    let path = |file: &Value| records(Path::new(file.as_str().unwrap()));
    assert_eq!(roles(&path(&first)), ["user", "assistant", "bashExecution"]);
    assert_eq!(roles(&path(&second)), ["user", "assistant"]);
    let responses = run.events();
    let place_of =
        |id: &str| responses.iter().position(|r| r["id"] == id && r["type"] == "response").unwrap();
    assert!(place_of("endless") < place_of("n"), "the old session ends before the new one begins");
}

#[test]
fn long_output_is_cut_and_kept_in_a_private_file() {
    let (place, _server) = place([]);
    let mut talk = talk(&place);
    let data = talk.data("a", shell("seq 1 5000; printf '\\033[1mbold\\033[0m\\r\\n'"));
    assert_eq!((&data["truncated"], &data["exitCode"]), (&json!(true), &json!(0)));
    let output = data["output"].as_str().unwrap();
    assert!(
        output.starts_with("3002\n") && output.ends_with("5000\nbold"),
        "{:?}",
        &output[output.len() - 20..]
    );
    let file = data["fullOutputPath"].as_str().unwrap();
    assert!(fs::read_to_string(file).unwrap().ends_with("5000\n\u{1b}[1mbold\u{1b}[0m\r\n"));
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let run = talk.finish().ok();
    let deltas = run.events();
    let deltas = deltas.iter().filter_map(|event| event["delta"].as_str());
    assert_eq!(
        deltas.map(str::len).sum::<usize>(),
        (1..=5000).map(|n: u32| n.to_string().len() + 1).sum::<usize>() + 5
    );
}

#[test]
fn the_prefix_runs_unrecorded_and_no_variable_tells_of_the_session() {
    let (place, _server) = place([]);
    place.settings(&json!({"shellCommandPrefix": "greeting=hello"}));
    let mut talk = talk(&place);
    let command = "echo $greeting; env | grep -E '^PI_(SESSION|PROVIDER|MODEL|REASONING)'";
    assert_eq!(talk.data("a", shell(command))["output"], "hello\n");
    let messages = talk.data("m", json!({"type": "get_messages"}))["messages"].clone();
    assert_eq!(messages[0]["command"], command);
    let _ = talk.finish().ok();
}

#[test]
fn what_cannot_run_is_told_and_not_recorded() {
    let (place, _server) = place([]);
    let mut talk = talk(&place);
    for (number, (wrong, part)) in [
        (json!({"type": "bash"}), "command"),
        (json!({"type": "bash", "command": 7}), "command"),
        (json!({"type": "bash", "command": "true", "excludeFromContext": "yes"}), "excludeFromContext"),
    ]
    .into_iter()
    .enumerate()
    {
        let response = talk.ask(&number.to_string(), wrong);
        assert_eq!(response["success"], false, "{response}");
        assert!(response["error"].as_str().unwrap().contains(part), "{response}");
    }
    fs::remove_dir_all(place.work()).unwrap();
    let response = talk.ask("gone", shell("true"));
    assert_eq!(response["success"], false, "{response}");
    assert!(response["error"].as_str().unwrap().contains(place.work().to_str().unwrap()), "{response}");
    assert_eq!(talk.data("m", json!({"type": "get_messages"})), json!({"messages": []}));
    let _ = talk.finish().ok();
}
