//! Reading a stored session and building contexts.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tau_core::compaction;
use tau_core::entropy::Entropy;
use tau_core::message::{AssistantMessage, Block, Message, StopReason, ToolCall, ToolResultMessage};
use tau_core::now::Wall;
use tau_core::session::entry::Compaction;
use tau_core::session::{Context, EntryBody, Header, InfoReader, Reader, Session, Want};
use tau_core::settings::CompactionSettings;
use tau_core::tokens::Estimator;

/// Turns of four entries (question, call, result, answer), `result` bytes of tool output each.
fn file(turns: usize, result: usize, compacted: bool) -> Vec<u8> {
    let header = Header::new("bench".into(), Wall(0), "/home/u/project".into(), None);
    let mut session = Session::new(header, Some("/s.jsonl".into()));
    let (mut rng, mut file) = (Entropy::new([1; 32]), Vec::new());
    let line = "the quick brown fox jumps over the lazy dog, 0123456789 \"quoted\" \\ and so on\n";
    let output = line.repeat(result / line.len() + 1);
    let mut kept = None;
    for turn in 0..turns {
        let call = ToolCall { id: format!("call_{turn}"), name: "read".into(), ..ToolCall::default() };
        let reply = |content, stop_reason| {
            Message::Assistant(AssistantMessage {
                content,
                stop_reason,
                provider: "mock".into(),
                ..Default::default()
            })
        };
        let result = ToolResultMessage {
            tool_call_id: call.id.clone(),
            tool_name: "read".into(),
            content: vec![Block::text(&*output)],
            ..ToolResultMessage::default()
        };
        for message in [
            Message::user(format!("request {turn}"), Vec::new(), 1),
            reply(vec![Block::text("step"), Block::ToolCall(call)], StopReason::ToolUse),
            Message::ToolResult(result),
            reply(vec![Block::text("done")], StopReason::Stop),
        ] {
            append(&mut session, EntryBody::message(message), &mut rng, &mut file);
        }
        if turn + 3 == turns {
            kept = session.leaf_id().map(str::to_owned);
        }
    }
    if compacted {
        let compaction = Compaction { summary: "earlier".into(), first_kept: kept, ..Compaction::default() };
        append(&mut session, EntryBody::Compaction(Box::new(compaction)), &mut rng, &mut file);
    }
    file
}

fn append(session: &mut Session, body: EntryBody, rng: &mut Entropy, file: &mut Vec<u8>) {
    if let Ok(plan) = session.append(body, Wall(0), rng)
        && let Some(op) = plan.op
    {
        file.extend_from_slice(&op.bytes);
    }
}

fn read(file: &[u8], want: Want) -> Option<Session> {
    let mut reader = Reader::new(want);
    file.chunks(256 << 10).for_each(|piece| reader.feed(piece));
    let mut loading = reader.finish().ok()?;
    while let Some(range) = loading.next_range() {
        let start = usize::try_from(range.offset).ok()?;
        loading.give(file.get(start..start + usize::try_from(range.len).ok()?)?);
    }
    Some(loading.finish("/s.jsonl".into(), "/"))
}

fn load(c: &mut Criterion) {
    let mut group = c.benchmark_group("session_load");
    for (name, turns, result, compacted) in [
        ("10 MB, 4 k entries", 1000, 8300, false),
        ("10 MB, 10 k entries", 2500, 2500, false),
        ("10 MB, compacted", 1000, 8300, true),
    ] {
        let file = file(turns, result, compacted);
        group.throughput(Throughput::Bytes(file.len() as u64));
        group.bench_function(name, |b| b.iter(|| black_box(read(&file, Want::Context))));
    }
    group.finish();
}

/// What a list needs of a file, with and without the text.
fn list(c: &mut Criterion) {
    let file = file(25, 7000, false);
    let mut group = c.benchmark_group("session_list, 200 kB");
    group.throughput(Throughput::Bytes(file.len() as u64));
    for (name, reader) in [("brief", InfoReader::brief as fn() -> InfoReader), ("text", InfoReader::default)]
    {
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut reader = reader();
                reader.feed(black_box(&file));
                reader.finish(Wall(0))
            });
        });
    }
    group.finish();
}

fn context(c: &mut Criterion) {
    let Some(session) = read(&file(1000, 100, false), Want::Context) else { return };
    let tree = session.tree();
    c.bench_function("context_build, 4 k entries", |b| {
        b.iter(|| black_box(Context::build(tree, tree.leaf())))
    });
    // The cost of one more entry must not depend on how many there are.
    let mut group = c.benchmark_group("session_append");
    for turns in [10, 1000] {
        let Some(mut session) = read(&file(turns, 100, false), Want::Context) else { return };
        let mut rng = Entropy::new([2; 32]);
        let message = EntryBody::message(Message::user("next", Vec::new(), 1));
        group.bench_function(format!("after {} entries", turns * 4), |b| {
            b.iter(|| {
                let op = session.append(message.clone(), Wall(0), &mut rng).ok().and_then(|plan| plan.op);
                session.appended(op.and_then(|op| op.expect_len).unwrap_or_default());
            });
        });
    }
    group.finish();
}

/// From 10,000 entries to a plan, nothing counted before.
fn plan(c: &mut Criterion) {
    let Some(session) = read(&file(2500, 1000, false), Want::Context) else { return };
    let (tree, context) = (session.tree(), session.context());
    let settings = CompactionSettings::default();
    c.bench_function("compaction_plan, 10 k entries", |b| {
        b.iter(|| black_box(compaction::plan(tree, context, settings, &mut Estimator::default())))
    });
}

criterion_group!(benches, load, list, context, plan);
criterion_main!(benches);
