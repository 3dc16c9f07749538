//! Commands given while a run is active.

use serde_json::json;
use tau_core::event::Event;
use tau_core::hub::Output;
use tau_core::input::{Command, Input, Reply};
use tau_core::now::{Mono, Now, Wall};
use tau_core::op::{Outcome, Stream};
use tau_tests::drive::Driven;

fn answer(text: &str) -> Vec<u8> {
    let chunk =
        json!({"id": "r", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]});
    format!("data: {chunk}\n\ndata: [DONE]\n\n").into_bytes()
}

fn give(driven: &mut Driven, command: Command) {
    let now = Now { mono: Mono(2), wall: Wall(1_788_315_987_888) };
    driven.hub.handle(now, Input::Command(command));
    driven.drain();
}

/// Ends the open reply; what happened after it, in names.
fn finish(driven: &mut Driven) -> Vec<String> {
    driven.chunk(answer("fine"));
    driven.reply(Reply::Done(Outcome::BodyEnd));
    let mut seen = Vec::new();
    while let Some(output) = driven.hub.poll() {
        match output {
            Output::Event(Event::AgentEnd { .. }) => seen.push("end".to_owned()),
            Output::Event(Event::AgentSettled { aborted }) => seen.push(format!("settled {aborted}")),
            Output::Event(Event::TurnStart) => seen.push("turn".to_owned()),
            _ => {}
        }
    }
    seen
}

#[test]
fn a_follow_up_is_delivered_when_the_run_would_end() {
    let mut driven = Driven::new("openai-completions", Vec::new(), Vec::new());
    give(&mut driven, Command::FollowUp { text: "later".into(), images: Vec::new() });
    assert_eq!(finish(&mut driven), ["turn"]);
}

#[test]
fn a_graceful_stop_ends_the_run_and_leaves_the_queue() {
    let mut driven = Driven::new("openai-completions", Vec::new(), Vec::new());
    give(&mut driven, Command::FollowUp { text: "later".into(), images: Vec::new() });
    give(&mut driven, Command::GracefulStop);
    assert_eq!(finish(&mut driven), ["end", "settled false"]);
    assert_eq!(driven.hub.desk().queued().1, ["later"]);
    assert!(driven.hub.is_idle());
}

#[test]
fn a_second_prompt_is_refused_and_changes_nothing() {
    let mut driven = Driven::new("openai-completions", Vec::new(), Vec::new());
    let now = Now { mono: Mono(2), wall: Wall(1_788_315_987_888) };
    let before = driven.hub.desk().agent().context().len();
    let refused = driven.hub.command(now, Command::Prompt { text: "too early".into(), images: Vec::new() });
    assert_eq!(refused.unwrap_err().code, "busy");
    assert_eq!(driven.hub.desk().agent().context().len(), before);
    driven.reply(Reply::Chunk { stream: Stream::Body, bytes: answer("fine") });
    driven.drain();
    assert_eq!(finish(&mut driven), ["end", "settled false"]);
}
