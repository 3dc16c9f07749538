//! Properties of session files: whatever happens to the bytes, what was whole stays readable.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::sync::Arc;

use proptest::prelude::*;
use tau_core::entropy::Entropy;
use tau_core::fault::Fault;
use tau_core::message::{AssistantMessage, Block, Content, Message, StopReason};
use tau_core::now::Wall;
use tau_core::op::AppendOp;
use tau_core::session::decode::parse_body;
use tau_core::session::entry::Compaction;
use tau_core::session::tree::{Node, Place};
use tau_core::session::{
    Context, EntryBody, EntryKind, Header, OpenError, Reader, Session, Want, fork, open,
};

/// One step of a session's life.
#[derive(Clone, Debug)]
enum Step {
    User(String),
    Reply(String),
    Model(u8),
    Name(String),
    Label(String),
    Compact {
        keep: usize,
    },
    Omit {
        back: usize,
    },
    Branch {
        back: usize,
    },
    /// The next write fails.
    Fail,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => ".{0,40}".prop_map(Step::User),
        4 => ".{0,40}".prop_map(Step::Reply),
        1 => any::<u8>().prop_map(Step::Model),
        1 => ".{0,10}".prop_map(Step::Name),
        1 => ".{0,10}".prop_map(Step::Label),
        1 => (0usize..9).prop_map(|keep| Step::Compact { keep }),
        1 => (0usize..9).prop_map(|back| Step::Omit { back }),
        1 => (0usize..9).prop_map(|back| Step::Branch { back }),
        1 => Just(Step::Fail),
    ]
}

/// A session beside the file that its writes make.
#[derive(Clone)]
struct World {
    session: Session,
    file: Vec<u8>,
    rng: Entropy,
    clock: i64,
    fail: bool,
}

impl World {
    fn new() -> Self {
        let header = Header::new("s1".into(), Wall(1_700_000_000_000), "/w".into(), None);
        let session = Session::new(header, Some("/s.jsonl".into()));
        Self { session, file: Vec::new(), rng: Entropy::new([5; 32]), clock: 1_700_000_000_000, fail: false }
    }

    fn append(&mut self, body: EntryBody) {
        self.try_append(body).unwrap();
    }

    fn try_append(&mut self, body: EntryBody) -> Result<(), Fault> {
        let plan = self.session.append(body, Wall(self.clock + 7), &mut self.rng)?;
        self.clock += 7;
        if let Some(op) = plan.op {
            self.write(op);
        }
        Ok(())
    }

    fn write(&mut self, op: AppendOp) {
        assert_eq!(op.create, self.file.is_empty());
        if std::mem::take(&mut self.fail) {
            return self.session.append_failed(op);
        }
        assert_eq!(op.expect_len.unwrap_or(0), self.file.len() as u64);
        self.file.extend_from_slice(&op.bytes);
        assert_eq!(self.session.appended(self.file.len() as u64), None);
    }

    /// An entry of the active branch, counted from the leaf.
    fn back(&self, back: usize) -> Option<String> {
        let tree = self.session.tree();
        tree.path(tree.leaf()).iter().rev().nth(back).map(|slot| tree.id(*slot).to_owned())
    }

    fn step(&mut self, step: Step) {
        self.try_step(step).unwrap();
    }

    /// `not_read` when it needs what is in the file only.
    fn try_step(&mut self, step: Step) -> Result<(), Fault> {
        match step {
            Step::User(text) => self.append(EntryBody::message(Message::user(text, Vec::new(), 1))),
            Step::Reply(text) => self.append(EntryBody::message(Message::Assistant(AssistantMessage {
                content: vec![Block::text(text)],
                stop_reason: StopReason::Stop,
                provider: "p".into(),
                ..AssistantMessage::default()
            }))),
            Step::Model(n) => self.append(EntryBody::model("p", &format!("m{n}"))),
            Step::Name(name) => self.append(EntryBody::session_name(&name)),
            Step::Label(label) => {
                if let Some(id) = self.back(0) {
                    let body = self.session.label_entry(&id, Some(&label)).unwrap();
                    self.append(body);
                }
            }
            Step::Compact { keep } => {
                let first_kept = self.back(keep);
                let compaction = Compaction { summary: "sum".into(), first_kept, ..Compaction::default() };
                return self.try_append(EntryBody::Compaction(Box::new(compaction)));
            }
            Step::Omit { back } => {
                if let Some(id) = self.back(back)
                    && let Ok(body) = self.session.edit_entry(&id, Some(Content::Text("edited".into())))
                {
                    self.append(body);
                }
            }
            Step::Branch { back } => {
                let target = self.back(back);
                return self.session.branch(target.as_deref());
            }
            Step::Fail => self.fail = true,
        }
        Ok(())
    }

    /// Every entry that has a place stands there.
    fn assert_places(&self) {
        let tree = self.session.tree();
        for slot in tree.slots() {
            let Place { offset, len, .. } = tree.node(slot).unwrap().place();
            if len > 0 {
                let line = &self.file[offset as usize..][..len as usize];
                let record: serde_json::Value = serde_json::from_slice(line).unwrap();
                assert_eq!(record["id"], tree.id(slot));
            }
        }
    }
}

fn shape(context: &Context) -> (Vec<Arc<Message>>, usize, Option<String>) {
    let model = context.model.as_ref().map(|m| m.model_id.clone());
    (context.messages.clone(), context.entries.len(), model)
}

/// Ids, parents and kinds of all entries.
fn tree(session: &Session) -> Vec<(String, Option<String>, EntryKind)> {
    let tree = session.tree();
    let nodes = tree.slots().zip(tree.nodes());
    nodes
        .map(|(slot, node)| (tree.id(slot).to_owned(), tree.parent_id(slot).map(str::to_owned), node.kind()))
        .collect()
}

fn read(bytes: &[u8], chunk: usize, want: Want) -> Result<Session, OpenError> {
    let mut reader = Reader::new(want);
    bytes.chunks(chunk.max(1)).for_each(|piece| reader.feed(piece));
    let mut loading = reader.finish()?;
    while let Some(range) = loading.next_range() {
        let (start, len) = (range.offset as usize, range.len as usize);
        loading.give(&bytes[start..start + len]);
    }
    Ok(loading.finish("/s.jsonl".into(), "/w"))
}

proptest! {
    /// Architecture §11.5: the appended lines, read back, are the tree in memory.
    #[test]
    fn appended_lines_rebuild_the_session(
        steps in prop::collection::vec(step(), 0..40),
        chunk in 1usize..200,
    ) {
        let mut world = World::new();
        steps.into_iter().for_each(|step| world.step(step));
        // What grew entry by entry is what building at once gives.
        let leaf = world.session.tree().leaf();
        prop_assert_eq!(
            shape(world.session.context()),
            shape(&Context::build(world.session.tree(), leaf))
        );
        world.fail = false;
        if let Some(op) = world.session.flush() {
            world.write(op);
        }
        if world.file.is_empty() {
            let kinds: Vec<_> = tree(&world.session).into_iter().map(|(.., kind)| kind).collect();
            prop_assert!(!kinds.iter().any(|kind| kind.starts_file()), "unwritten: {:?}", kinds);
            return Ok(());
        }
        let again = read(&world.file, chunk, Want::Everything).unwrap();
        prop_assert_eq!(tree(&again), tree(&world.session));
        prop_assert_eq!(again.name(), world.session.name());
        prop_assert_eq!(again.tree().labels(), world.session.tree().labels());
        let leaf = leaf.map(|slot| again.tree().id(slot).to_owned());
        let mut again = again;
        again.branch(leaf.as_deref()).unwrap();
        prop_assert_eq!(shape(again.context()), shape(world.session.context()));
    }

    /// A session that leaves in its file what compactions leave behind is the same session.
    #[test]
    fn what_is_left_behind_changes_nothing(steps in prop::collection::vec(step(), 0..60)) {
        let (mut plain, mut frugal) = (World::new(), World::new());
        frugal.session = frugal.session.frugal();
        for step in steps {
            if let Err(fault) = frugal.clone().try_step(step.clone()) {
                prop_assert_eq!(fault.code, "not_read");
                if frugal.session.is_dirty() || !frugal.session.is_stored() {
                    continue;
                }
                // The host opens it anew, where it was.
                let leaf = frugal.session.leaf_id().map(str::to_owned);
                let mut whole = read(&frugal.file, 100, Want::Everything).unwrap().frugal();
                whole.branch(leaf.as_deref()).unwrap();
                frugal.session = whole;
            }
            frugal.step(step.clone());
            plain.step(step);
            prop_assert_eq!(&frugal.file, &plain.file);
            prop_assert_eq!(shape(frugal.session.context()), shape(plain.session.context()));
            let leaf = frugal.session.tree().leaf();
            let anew = Context::build(frugal.session.tree(), leaf);
            prop_assert_eq!(shape(&anew), shape(plain.session.context()));
            frugal.assert_places();
            plain.assert_places();
            prop_assert!(plain.session.tree().nodes().iter().all(|node| node.body().is_some()));
        }
    }

    /// A file cut at any byte keeps every whole line, and the next append is readable.
    #[test]
    fn a_cut_costs_only_the_torn_line(
        steps in prop::collection::vec(step(), 1..25),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut world = World::new();
        world.append(EntryBody::message(Message::user("first", Vec::new(), 1)));
        steps.into_iter().filter(|step| !matches!(step, Step::Fail)).for_each(|step| world.step(step));
        let cut = cut.index(world.file.len()) + 1;
        let left = &world.file[..cut];
        let whole = left.iter().filter(|byte| **byte == b'\n').count();
        let complete_tail = serde_json::from_slice::<serde_json::Value>(left.rsplit(|b| *b == b'\n').next().unwrap()).is_ok();
        let kept = whole + usize::from(complete_tail);
        let opened = open(left, "/s.jsonl".into(), "/", Want::Everything);
        if kept == 0 {
            prop_assert!(opened.is_err());
            return Ok(());
        }
        let (mut session, _) = opened.unwrap();
        let all = tree(&world.session);
        prop_assert_eq!(tree(&session), &all[..kept - 1]);
        let body = EntryBody::message(Message::user("next", Vec::new(), 2));
        let plan = session.append(body, Wall(9), &mut world.rng).unwrap();
        let mut file = left.to_vec();
        file.extend_from_slice(&plan.op.unwrap().bytes);
        let (again, notes) = open(&file, "/s.jsonl".into(), "/", Want::Everything).unwrap();
        prop_assert_eq!(tree(&again), tree(&session));
        prop_assert_eq!(notes.count, u64::from(!left.ends_with(b"\n") && !complete_tail));
    }

    /// Any bytes: no panic, and the two ways of reading agree about the leaf and the context.
    #[test]
    fn any_damage_is_survived(
        steps in prop::collection::vec(step(), 1..15),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0usize..4), 1..6),
        chunk in 1usize..300,
    ) {
        let mut world = World::new();
        world.append(EntryBody::message(Message::user("first", Vec::new(), 1)));
        steps.into_iter().filter(|step| !matches!(step, Step::Fail)).for_each(|step| world.step(step));
        let mut file = world.file;
        for (at, byte, how) in damage {
            let at = at.index(file.len());
            match how {
                0 => file[at] = byte,
                1 => { file.insert(at, byte); }
                2 => { file.remove(at); }
                _ => file.retain({ let mut seen = 0; move |b| { seen += usize::from(*b == b'\n'); *b != b'\n' || seen != 2 } }),
            }
            if file.is_empty() { file.push(b'\n'); }
        }
        let lazy = read(&file, chunk, Want::Context);
        let full = read(&file, 1 << 20, Want::Everything);
        prop_assert_eq!(lazy.is_err(), full.is_err());
        if let (Ok(places), Ok(full)) = (read(&file, chunk, Want::Places), &full) {
            // What kind an odd record is shows when it is decoded.
            let ids = |session: &Session| tree(session).into_iter().map(|(id, parent, _)| (id, parent)).collect::<Vec<_>>();
            prop_assert_eq!(ids(&places), ids(full));
            prop_assert_eq!(bodies(&places, &file), bodies(full, &file));
        }
        if let (Ok(lazy), Ok(mut full)) = (lazy, full) {
            // Damage off the branch shows only when everything is read.
            if lazy.leaf_id() == full.leaf_id() && tree(&lazy) == tree(&full) {
                prop_assert_eq!(shape(lazy.context()), shape(full.context()));
            }
            let next = EntryBody::message(Message::user("next", Vec::new(), 2));
            let plan = full.append(next, Wall(9), &mut world.rng).unwrap();
            file.extend_from_slice(&plan.op.unwrap().bytes);
            let again = read(&file, chunk, Want::Everything).unwrap();
            prop_assert_eq!(tree(&again), tree(&full));
            prop_assert_eq!(shape(again.context()), shape(full.context()));
        }
    }
}

/// After a compaction only what the context shows is in memory; the rest can be read where it is said to be.
#[test]
fn a_compaction_leaves_the_rest_in_the_file() {
    let mut world = World::new();
    world.session = world.session.frugal();
    for n in 0..20 {
        world.step(Step::User(format!("question {n}")));
        world.step(Step::Fail);
        world.step(Step::Reply(format!("answer {n}")));
        world.step(Step::Name(format!("name {n}")));
    }
    let held = |world: &World| {
        let nodes = world.session.tree().nodes().iter();
        nodes.filter(|node| node.kind().is_message() && node.body().is_some()).count()
    };
    assert_eq!(held(&world), 40);
    world.step(Step::Compact { keep: 6 });
    assert_eq!(held(&world), 4);
    world.assert_places();
    let whole = read(&world.file, 100, Want::Everything).unwrap();
    assert_eq!(bodies(&world.session, &world.file), bodies(&whole, &world.file));
    // As when it is opened for its context.
    let lazy = read(&world.file, 100, Want::Context).unwrap();
    let held_by = |session: &Session| -> Vec<bool> {
        session.tree().nodes().iter().map(|node| node.body().is_some()).collect()
    };
    assert_eq!(held_by(&world.session), held_by(&lazy));
    // Whoever goes there is told to read it first.
    let first = world.session.tree().id(0).to_owned();
    assert_eq!(world.session.branch(Some(&first)).unwrap_err().code, "not_read");
    // What could not be written stays.
    world.step(Step::User("unwritten".into()));
    world.step(Step::Fail);
    world.step(Step::User("last".into()));
    world.step(Step::Fail);
    world.step(Step::Compact { keep: 0 });
    assert!(world.session.is_dirty() && held(&world) >= 4);
}

/// A copy of what is in memory does not depend on a file that somebody changed.
#[test]
fn a_changed_file_does_not_change_a_copy() {
    let mut world = World::new();
    for n in 0..4 {
        world.step(Step::User(format!("question {n}")));
        world.step(Step::Reply(format!("answer {n}")));
    }
    let header = Header::new("copy".into(), Wall(5), "/w".into(), None);
    let tree = world.session.tree();
    let leaf = world.session.leaf_id().unwrap();
    let copy =
        |file: &[u8]| fork::branch(file, tree, leaf, &header, &mut Entropy::new([3; 32])).unwrap().bytes;
    let whole = copy(&world.file);
    let shifted = [&b"{}\n"[..], &world.file].concat();
    let swapped: Vec<u8> =
        world.file.split_inclusive(|byte| *byte == b'\n').rev().flatten().copied().collect();
    for changed in [&b""[..], &world.file[..world.file.len() / 2], &shifted, &swapped] {
        assert_eq!(copy(changed), whole);
    }
}

/// With another writer nobody knows for certain where a line stands: everything stays in memory.
#[test]
fn beside_another_writer_everything_stays() {
    let mut world = World::new();
    world.session = world.session.frugal();
    world.step(Step::User("one".into()));
    world.step(Step::Reply("two".into()));
    world.file.extend_from_slice(b"{}\n");
    let plan = world.session.append(EntryBody::session_name("x"), Wall(1), &mut world.rng).unwrap();
    world.file.extend_from_slice(&plan.op.unwrap().bytes);
    assert!(world.session.appended(world.file.len() as u64).is_some());
    world.assert_places();
    world.step(Step::Compact { keep: 0 });
    assert!(world.session.tree().nodes().iter().all(|node| node.body().is_some()));
}

/// Lines of another writer are taken in without moving the leaf; a failed write loses nothing.
#[test]
fn two_writers() {
    let mut world = World::new();
    world.step(Step::User("one".into()));
    let (mut other, _) = open(&world.file, "/s.jsonl".into(), "/", Want::Context).unwrap();
    let mut rng = Entropy::new([8; 32]);
    let foreign = other.append(EntryBody::message(Message::user("theirs", Vec::new(), 1)), Wall(1), &mut rng);
    let foreign = foreign.unwrap();
    let start = world.file.len();
    world.file.extend_from_slice(&foreign.op.unwrap().bytes);
    let end = world.file.len();
    // Two writes are on their way when the first reply shows that somebody else wrote.
    let first = world.session.append(EntryBody::model("p", "m"), Wall(2), &mut world.rng).unwrap();
    let second = world.session.append(EntryBody::model("p", "n"), Wall(3), &mut world.rng).unwrap();
    world.file.extend_from_slice(&first.op.unwrap().bytes);
    let range = world.session.appended(world.file.len() as u64).unwrap();
    assert_eq!((range.offset as usize, range.len as usize), (start, end - start));
    world.file.extend_from_slice(&second.op.unwrap().bytes);
    assert_eq!(world.session.appended(world.file.len() as u64), None);
    let leaf = world.session.leaf_id().map(str::to_owned);
    assert_eq!(world.session.absorb(&world.file[start..end]), 1);
    assert_eq!(world.session.leaf_id().map(str::to_owned), leaf);
    assert!(world.session.tree().find(foreign.id.as_str()).is_some());
    world.step(Step::User("mine".into()));
    let (again, _) = open(&world.file, "/s.jsonl".into(), "/", Want::Context).unwrap();
    assert_eq!(again.leaf_id(), world.session.leaf_id());
    assert_eq!(shape(again.context()), shape(world.session.context()));
}

/// Nothing is written for a session without a message, and the first write holds everything before it.
#[test]
fn lazy_creation() {
    let mut world = World::new();
    world.step(Step::Model(1));
    world.step(Step::Name("n".into()));
    assert!(world.file.is_empty() && world.session.flush().is_none() && !world.session.is_stored());
    world.step(Step::User("hi".into()));
    let lines: Vec<serde_json::Value> = String::from_utf8(world.file.clone())
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(kinds, ["session", "model_change", "session_info", "message"]);
    let mut memory = Session::new(Header::new("x".into(), Wall(0), "/".into(), None), None);
    let plan = memory.append(EntryBody::message(Message::user("hi", Vec::new(), 1)), Wall(0), &mut world.rng);
    assert!(plan.unwrap().op.is_none() && memory.context().messages.len() == 1);
}

/// A file of `count` messages of `size` bytes, with a compaction that keeps the last `keep`; and its entries' ids.
fn large(count: usize, size: usize, keep: Option<usize>) -> Vec<u8> {
    let mut world = World::new();
    for n in 0..count {
        let text = format!("{n} {}", "x".repeat(size));
        world.step(if n % 2 == 0 { Step::User(text) } else { Step::Reply(text) });
    }
    if let Some(keep) = keep {
        world.step(Step::Compact { keep: keep - 1 });
    }
    world.step(Step::User("last".into()));
    world.file
}

/// What the entries say; those that were left in the file are read there.
fn bodies(session: &Session, file: &[u8]) -> Vec<EntryBody> {
    let stored = |at: Place| {
        let start = at.offset as usize;
        parse_body(&String::from_utf8_lossy(&file[start..start + at.len as usize])).expect("a whole record")
    };
    let body = |node: &Node| node.body().cloned().unwrap_or_else(|| stored(node.place()));
    session.tree().nodes().iter().map(body).collect()
}

/// Reads as a backend does and counts the bytes of the second phase.
fn read_counting(file: &[u8]) -> (Session, u64) {
    let mut reader = Reader::default();
    file.chunks(64 << 10).for_each(|piece| reader.feed(piece));
    let mut loading = reader.finish().unwrap();
    let mut bytes = 0;
    while let Some(range) = loading.next_range() {
        let (start, len) = (range.offset as usize, range.len as usize);
        bytes += range.len;
        loading.give(&file[start..start + len]);
    }
    (loading.finish("/s.jsonl".into(), "/w"), bytes)
}

#[test]
fn a_summarised_history_is_not_read_again() {
    let file = large(3000, 1000, Some(4));
    let (session, again) = read_counting(&file);
    assert_eq!(session.context().messages.len(), 6);
    assert!(again < 20_000, "{again} bytes read again");
    let file = large(3000, 1000, None);
    let (session, again) = read_counting(&file);
    assert_eq!(session.context().messages.len(), 3001);
    assert!(again <= file.len() as u64);
}

/// Bug 33 in a file that is too large to be kept, and in a small one.
#[test]
fn glued_records_are_read() {
    for (count, size) in [(8, 10), (3000, 1000)] {
        let file = String::from_utf8(large(count, size, None)).unwrap();
        let lines: Vec<&str> = file.lines().collect();
        // Two records on one line; a fragment before a record; NUL bytes before a record.
        let glued = [&lines[..4], &[&*format!("{}{}", lines[4], lines[5])], &lines[6..]].concat().join("\n");
        let torn =
            [&lines[..4], &[&*format!("{}{}", &lines[3][..70], lines[4])], &lines[5..]].concat().join("\n");
        let nul = [&lines[..4], &[&*format!("\0\0\0{}", lines[4])], &lines[5..]].concat().join("\n");
        let (whole, _) = read_counting(file.as_bytes());
        for damaged in [glued, torn, nul] {
            let (session, _) = read_counting((damaged + "\n").as_bytes());
            assert_eq!(tree(&session), tree(&whole));
            assert_eq!(shape(session.context()), shape(whole.context()));
        }
    }
}

/// Arguments of a thousand levels are read back (json::MAX_DEPTH is the limit).
#[test]
fn deep_arguments_survive() {
    let deep = format!("{}1{}", "[".repeat(1000), "]".repeat(1000));
    let line = format!(
        r#"{{"type":"message","id":"a","parentId":null,"timestamp":"2025-01-01T00:00:00.000Z","message":{{"role":"assistant","content":[{{"type":"toolCall","id":"c","name":"n","arguments":{{"x":{deep}}}}}],"timestamp":1}}}}"#
    );
    let file =
        format!("{}\n{line}\n", r#"{"type":"session","version":3,"id":"s","timestamp":"","cwd":"/w"}"#);
    let (session, notes) = open(file.as_bytes(), "/s".into(), "/", Want::Context).unwrap();
    assert_eq!(notes.count, 0);
    let Message::Assistant(reply) = &*session.context().messages[0] else { panic!("no reply") };
    let call = reply.tool_calls().next().unwrap();
    assert_eq!(tau_core::json::to_string(&call.arguments), format!(r#"{{"x":{deep}}}"#));
}

/// Bug 39: cycles, self-parents, duplicate ids and missing parents end the walk, not the program.
#[test]
fn odd_parents() {
    let line = |id: &str, parent: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":"{parent}","timestamp":"2025-01-01T00:00:00.000Z","message":{{"role":"user","content":"{id}","timestamp":1}}}}"#
        )
    };
    let header =
        r#"{"type":"session","version":3,"id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w"}"#;
    for (entries, path) in [
        (vec![("a", "a")], vec!["a"]),
        (vec![("a", "b"), ("b", "a")], vec!["a", "b"]),
        (vec![("a", "gone"), ("b", "a")], vec!["a", "b"]),
        (vec![("a", "x"), ("b", "a"), ("a", "b"), ("c", "a")], vec!["b", "a", "c"]),
    ] {
        let lines: Vec<String> = entries.iter().map(|(id, parent)| line(id, parent)).collect();
        let file = format!("{header}\n{}\n", lines.join("\n"));
        let (session, _) = open(file.as_bytes(), "/s".into(), "/", Want::Context).unwrap();
        let tree = session.tree();
        let ids: Vec<&str> = tree.path(tree.leaf()).into_iter().map(|slot| tree.id(slot)).collect();
        assert_eq!(ids, path);
        assert_eq!(session.context().messages.len(), path.len());
        assert!(tree.view().len() <= entries.len() * 4);
    }
}
