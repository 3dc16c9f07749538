//! A session that lives through a list of operations beside its file and the plain model of both. Bytes choose the
//! operations: they come from proptest or from a fuzzer.

use std::sync::Arc;

use tau_core::entropy::Entropy;
use tau_core::message::{
    AssistantMessage, BashExecution, Block, Content, CustomMessage, Message, StopReason, SystemMessage,
    ToolCall, ToolResultMessage,
};
use tau_core::model::ThinkingLevel;
use tau_core::now::Wall;
use tau_core::op::AppendOp;
use tau_core::session::entry::{Compaction, Custom, EntryLine, UsageEntry};
use tau_core::session::{
    Context, EntryBody, Header, InfoReader, Reader, Session, SessionInfo, Want, fork, open,
};

use super::dice::Dice;
use super::naive::{self, Fact, What};

/// Names of targets are short; what they are called matters to no rule.
const TEXTS: [&str; 9] = [
    "plain",
    "",
    "two\nlines",
    "a \"quote\" and a \\",
    "u\u{2028}v\u{2029}w\u{85}x",
    "😀 漢字",
    r#"","timestamp":1}}"#,
    "\u{0}\u{1b}[31m",
    " spaced ",
];

/// A long text now and then, so that a file outgrows what a reader keeps.
const LONG: usize = 40_000;

pub struct World {
    dice: Dice,
    rng: Entropy,
    clock: i64,
    session: Session,
    file: Vec<u8>,
    /// What the session in memory must hold, in its order.
    memory: Vec<Fact>,
    /// Where it must stand.
    leaf: Option<String>,
    /// Lines of somebody else that the session has not been told of.
    unseen: Vec<Fact>,
    /// How the next write goes.
    fails: Option<Failure>,
    log: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Failure {
    Nothing,
    /// A part of the bytes is in the file.
    Part,
}

impl World {
    pub fn new(seed: u8, choices: &[u8]) -> Self {
        let header = Header::new("s1".into(), Wall(1_700_000_000_000), "/w".into(), None);
        Self {
            dice: Dice::new([seed; 32], choices),
            rng: Entropy::new([seed; 32]),
            clock: 1_700_000_000_000,
            session: Session::new(header, Some("/s.jsonl".into())),
            file: Vec::new(),
            memory: Vec::new(),
            leaf: None,
            unseen: Vec::new(),
            fails: None,
            log: Vec::new(),
        }
    }

    /// Lives through `steps` operations and checks after each.
    pub fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
            self.check();
        }
        self.settle();
        self.copies();
    }

    fn step(&mut self) {
        match self.dice.below(24) {
            0..4 => self.say("user"),
            4..8 => self.say("assistant"),
            8 => self.say("toolResult"),
            9 if self.dice.below(2) == 0 => self.say("system"),
            9 => self.say("bashExecution"),
            10 => self.aside(),
            11 => self.setting(),
            12 => self.name(),
            13 => self.label(),
            14..16 => self.edit(),
            16 => self.compact(),
            17 => self.go(),
            18 => self.summarise(),
            19 => self.reload("reload"),
            20 => self.crash(),
            21 => {
                self.fails = Some(if self.dice.below(2) == 0 { Failure::Nothing } else { Failure::Part });
            }
            22 => self.somebody_else(),
            _ => self.flush(),
        }
    }

    fn text(&mut self) -> String {
        match self.dice.below(TEXTS.len() as u64 + 1) as usize {
            at if at < TEXTS.len() => TEXTS[at].to_owned(),
            _ => "long ".repeat(self.dice.below(LONG as u64 / 5) as usize),
        }
    }

    fn now(&mut self) -> Wall {
        // Clocks stand still and jump.
        self.clock += [0, 1, 1000, -5][self.dice.below(4) as usize];
        Wall(self.clock)
    }

    fn say(&mut self, role: &str) {
        let (text, now) = (self.text(), self.now());
        let model = format!("m{}", self.dice.below(3));
        let blocks = vec![Block::text(text.as_str())];
        let message = match role {
            "user" => Message::user(text.as_str(), Vec::new(), now.0),
            "assistant" => {
                let mut content = blocks;
                if self.dice.below(3) == 0 {
                    content.push(Block::ToolCall(ToolCall {
                        id: "c".into(),
                        name: "n".into(),
                        ..ToolCall::default()
                    }));
                }
                Message::Assistant(AssistantMessage {
                    content,
                    provider: "p".into(),
                    model: model.clone(),
                    stop_reason: StopReason::Stop,
                    timestamp: now.0,
                    ..AssistantMessage::default()
                })
            }
            "toolResult" => Message::ToolResult(ToolResultMessage {
                tool_call_id: "c".into(),
                tool_name: "n".into(),
                content: blocks,
                timestamp: now.0,
                ..ToolResultMessage::default()
            }),
            "system" => {
                Message::System(SystemMessage { content: text.as_str().into(), ..SystemMessage::default() })
            }
            _ => Message::Bash(BashExecution { output: text.as_str().into(), ..BashExecution::default() }),
        };
        let model = (role == "assistant").then_some(model);
        let what = What::Said { role: role.to_owned(), text, model };
        self.append(EntryBody::message(message), what);
    }

    /// Entries of hosts.
    fn aside(&mut self) {
        let text = self.text();
        match self.dice.below(3) {
            0 => {
                let message = CustomMessage {
                    custom_type: "t".into(),
                    content: Content::Text(text.as_str().into()),
                    display: true,
                    details: None,
                    timestamp: 0,
                };
                self.append(EntryBody::CustomMessage(Box::new(message)), What::CustomMessage(text));
            }
            1 => {
                let custom = Custom { custom_type: "t".into(), data: Some(text.into()) };
                self.append(EntryBody::Custom(Box::new(custom)), What::Silent);
            }
            _ => {
                let usage = serde_json::json!({"input": 1});
                let entry = UsageEntry {
                    kind: "k".into(),
                    provider: "p".into(),
                    model: "m".into(),
                    usage,
                    note: None,
                };
                self.append(EntryBody::Usage(Box::new(entry)), What::Silent);
            }
        }
    }

    fn setting(&mut self) {
        let at = self.dice.below(ThinkingLevel::ALL.len() as u64) as usize;
        if self.dice.below(2) == 0 {
            let model = format!("n{at}");
            self.append(EntryBody::model("p", &model), What::Model(model));
        } else {
            let level = ThinkingLevel::ALL[at];
            self.append(EntryBody::thinking(level), What::Thinking(level.name().to_owned()));
        }
    }

    fn name(&mut self) {
        let body = EntryBody::session_name(&self.text());
        let EntryBody::SessionInfo(Some(name)) = &body else { panic!("a name is text") };
        let what = What::Name(name.to_string());
        self.append(body, what);
    }

    fn label(&mut self) {
        let Some(target) = self.any() else { return };
        let text = self.text();
        let body = self.session.label_entry(&target, Some(&text)).expect("the entry is there");
        let label = Some(text.trim().to_owned()).filter(|label| !label.is_empty());
        self.append(body, What::Label { target, label });
    }

    fn edit(&mut self) {
        let Some(target) = self.any() else { return };
        let text = (self.dice.below(2) == 0).then(|| self.text());
        let path = naive::path(&self.memory, self.leaf.as_deref());
        let editable = path.iter().any(|fact| {
            fact.id == target
                && match &fact.what {
                    What::Said { role, .. } => ["user", "assistant", "toolResult"].contains(&role.as_str()),
                    What::CustomMessage(_) => true,
                    _ => false,
                }
        });
        let content = text.as_deref().map(|text| Content::Text(text.into()));
        match self.session.edit_entry(&target, content) {
            Ok(body) => {
                assert!(editable, "{target} was edited\n{}", self.story());
                self.append(body, What::Edit { target, text });
            }
            Err(_) => assert!(!editable, "{target} was not edited\n{}", self.story()),
        }
    }

    fn compact(&mut self) {
        let path: Vec<String> =
            naive::path(&self.memory, self.leaf.as_deref()).iter().map(|fact| fact.id.clone()).collect();
        let first_kept = path.get(self.dice.below(path.len() as u64 + 1) as usize).cloned();
        let summary = self.text();
        let body = Compaction {
            summary: summary.as_str().into(),
            first_kept: first_kept.clone(),
            ..Compaction::default()
        };
        // Without one, the entry names itself.
        let what = What::Compaction { summary, first_kept: first_kept.unwrap_or_default() };
        self.append(EntryBody::Compaction(Box::new(body)), what);
    }

    /// Moves to any entry, or before the first.
    fn go(&mut self) {
        let target = if self.dice.below(8) == 0 { None } else { self.any() };
        self.move_to(target);
    }

    fn move_to(&mut self, target: Option<String>) {
        if let Err(fault) = self.session.branch(target.as_deref()) {
            assert_eq!(fault.code, "not_read", "{}", self.story());
            self.read_everything();
            self.session.branch(target.as_deref()).expect("everything is read");
        }
        self.log.push(format!("go to {target:?}"));
        self.leaf = target;
    }

    /// Leaves the branch with a summary of it.
    fn summarise(&mut self) {
        let mut entry = self.session.summary_of_leaf();
        let target = self.any();
        self.move_to(target);
        let text = self.text();
        entry.summary = text.as_str().into();
        self.append(EntryBody::BranchSummary(Box::new(entry)), What::Summary(text));
    }

    /// Any entry of the session.
    fn any(&mut self) -> Option<String> {
        let at = self.dice.below(self.memory.len() as u64) as usize;
        self.memory.get(at).map(|fact| fact.id.clone())
    }

    fn append(&mut self, body: EntryBody, what: What) {
        let now = self.now();
        let plan = self.session.append(body.clone(), now, &mut self.rng).unwrap_or_else(|fault| {
            assert_eq!(fault.code, "not_read", "{}", self.story());
            self.read_everything();
            self.session.append(body, now, &mut self.rng).expect("everything is read")
        });
        let id = plan.id.as_str().to_owned();
        assert!(naive::find(&self.memory, &id).is_none(), "id {id} is used twice\n{}", self.story());
        let what = match what {
            What::Compaction { summary, first_kept } if first_kept.is_empty() => {
                What::Compaction { summary, first_kept: id.clone() }
            }
            other => other,
        };
        self.log.push(format!("append {id} {}", format!("{what:?}").chars().take(120).collect::<String>()));
        self.memory.push(Fact { id: id.clone(), parent: self.leaf.replace(id), what });
        if let Some(op) = plan.op {
            self.write(op);
        }
    }

    /// What a backend does with an append.
    fn write(&mut self, op: AppendOp) {
        assert_eq!(op.create, self.file.is_empty(), "{}", self.story());
        let failure = self.fails.take();
        if let Some(failure) = failure {
            // A file that could not be made whole is removed again.
            if matches!(failure, Failure::Part) && !op.create {
                let mut part = self.dice.below(op.bytes.len() as u64) as usize;
                // A broken line that ends as whole ones do looks like one until it is needed.
                while looks_whole(&op.bytes[..part]) {
                    part -= 1;
                }
                self.end_torn_line(&op);
                self.file.extend_from_slice(&op.bytes[..part]);
            }
            self.log.push(format!("a write fails: {failure:?}"));
            return self.session.append_failed(op);
        }
        self.end_torn_line(&op);
        self.file.extend_from_slice(&op.bytes);
        if let Some(range) = self.session.appended(self.file.len() as u64) {
            let (start, len) = (range.offset as usize, range.len as usize);
            self.session.absorb(&self.file[start..start + len]);
            for fact in std::mem::take(&mut self.unseen) {
                self.memory.push(fact);
            }
        }
    }

    /// Bytes of others, or of a write that failed, may end within a line.
    fn end_torn_line(&mut self, op: &AppendOp) {
        if op.expect_len != Some(self.file.len() as u64)
            && !self.file.is_empty()
            && !self.file.ends_with(b"\n")
        {
            self.file.push(b'\n');
        }
    }

    fn flush(&mut self) {
        self.fails = None;
        if let Some(op) = self.session.flush() {
            self.write(op);
        }
        assert!(!self.session.is_dirty(), "{}", self.story());
    }

    /// Somebody else appends to the file.
    fn somebody_else(&mut self) {
        if !self.file.ends_with(b"\n") {
            return;
        }
        let (text, now) = (self.text(), self.now());
        let id = format!("foreign{}", self.log.len());
        let stored = naive::file(&self.file);
        let parent = stored.last().map(|fact| fact.id.clone());
        let body = EntryBody::message(Message::user(text.as_str(), Vec::new(), now.0));
        let line = EntryLine { id: &id, parent: parent.as_deref(), time: now, body: &body };
        let mut w = tau_core::json::Writer::new();
        line.write(&mut w);
        self.file.extend_from_slice(w.as_str().as_bytes());
        self.file.push(b'\n');
        self.log.push(format!("somebody else appends {id}"));
        self.unseen.push(Fact { id, parent, what: What::Said { role: "user".into(), text, model: None } });
    }

    /// The program ends, perhaps in the middle of a line, and another one opens the file.
    fn crash(&mut self) {
        if self.file.is_empty() {
            return;
        }
        match self.dice.below(4) {
            // The last line feed did not make it.
            0 if self.file.ends_with(b"}\n") => drop(self.file.pop()),
            1 => {
                self.file.extend_from_slice(br#"{"type":"message","id":"torn","parentId":null,"timestamp":""#)
            }
            2 => self.file.extend_from_slice(&[0; 7]),
            _ => self.file.extend_from_slice(b"{"),
        }
        self.reload("crash");
    }

    /// What was not written is lost; the last line is where the session stands.
    fn reload(&mut self, why: &str) {
        if self.file.is_empty() {
            return;
        }
        self.log.push(why.to_owned());
        let want = if self.dice.below(3) == 0 { Want::Everything } else { Want::Context };
        self.open(want);
    }

    /// A session that was opened with only its last branch is opened with all of them, where it stood.
    fn read_everything(&mut self) {
        self.flush();
        let leaf = self.leaf.clone();
        self.open(Want::Everything);
        self.session.branch(leaf.as_deref()).expect("everything is read");
        self.leaf = leaf;
    }

    fn open(&mut self, want: Want) {
        let chunk = [1, 61, 4096, 1 << 20][self.dice.below(4) as usize].max(self.file.len() / 20_000);
        self.session = read(&self.file, chunk, want);
        self.memory = naive::file(&self.file);
        self.leaf = self.memory.last().map(|fact| fact.id.clone());
        self.unseen.clear();
    }

    fn story(&self) -> String {
        self.log.join("\n")
    }

    /// The session in memory is what the model says.
    fn check(&self) {
        let (session, tree) = (&self.session, self.session.tree());
        let story = || self.story();
        assert_eq!(session.leaf_id(), self.leaf.as_deref(), "{}", story());
        let links: Vec<(&str, Option<&str>)> =
            tree.slots().map(|slot| (tree.id(slot), tree.parent_id(slot))).collect();
        let facts: Vec<(&str, Option<&str>)> =
            self.memory.iter().map(|fact| (fact.id.as_str(), fact.parent.as_deref())).collect();
        let differs = links.iter().zip(&facts).position(|(link, fact)| link != fact);
        let at = differs.unwrap_or_else(|| links.len().min(facts.len()));
        assert_eq!(links.get(at..), facts.get(at..), "{}", story());
        assert_eq!(session.name().map(str::to_owned), naive::name(&self.memory), "{}", story());
        assert_eq!(labels(session), naive::labels(&self.memory), "{}", story());
        let leaf = self.leaf.as_deref();
        let (got, wanted) = (said(session.context()), naive::context(&self.memory, leaf));
        if got != wanted {
            let short = |list: &[(String, String)]| -> Vec<String> {
                list.iter().map(|(role, text)| format!("{role} {:.20}", text)).collect()
            };
            assert_eq!(short(&got), short(&wanted), "{}", story());
            panic!("texts differ\n{}", story());
        }
        let context = session.context();
        let settings = (
            context.model.as_ref().map(|model| model.model_id.clone()),
            context.thinking_level.as_ref().map(ToString::to_string),
        );
        assert_eq!(settings, naive::settings(&self.memory, leaf), "{}", story());
        let path: Vec<&str> = tree.path(tree.leaf()).into_iter().map(|slot| tree.id(slot)).collect();
        let plain: Vec<&str> =
            naive::path(&self.memory, leaf).into_iter().map(|fact| fact.id.as_str()).collect();
        assert_eq!(path, plain, "{}", story());
        assert!(session.is_stored() != self.file.is_empty(), "{}", story());
    }

    /// Once everything is written, the file is the session.
    fn settle(&mut self) {
        self.flush();
        let mut stored = naive::file(&self.file);
        if stored.is_empty() {
            let starts = |fact: &Fact| matches!(&fact.what, What::Said { role, .. } if ["user", "assistant"].contains(&role.as_str()));
            assert!(!self.memory.iter().any(starts), "unwritten\n{}", self.story());
            return;
        }
        let mut held = [&self.memory[..], &self.unseen[..]].concat();
        for facts in [&mut stored, &mut held] {
            facts.sort_by(|a, b| a.id.cmp(&b.id));
            // A write that failed late may have left a whole line, and the line came again.
            facts.dedup();
        }
        assert_eq!(stored, held, "{}", self.story());
        self.lists();
        for want in [Want::Context, Want::Everything] {
            self.open(want);
            self.check();
        }
    }

    /// A list shows what the file holds, in both of its ways.
    fn lists(&mut self) {
        let stored = naive::file(&self.file);
        let said = |fact: &Fact| matches!(fact.what, What::Said { .. });
        let first = stored.iter().find_map(|fact| match &fact.what {
            What::Said { role, text, .. } if role == "user" && !text.is_empty() => Some(text.clone()),
            _ => None,
        });
        let chunk = [1, 77, 1 << 20][self.dice.below(3) as usize].max(self.file.len() / 20_000);
        let [whole, brief] = [InfoReader::default(), InfoReader::brief()].map(|mut reader| {
            self.file.chunks(chunk).for_each(|piece| reader.feed(piece));
            reader.finish(Wall(0)).expect("it is a session")
        });
        assert_eq!(
            whole.messages,
            stored.iter().filter(|fact| said(fact)).count() as u64,
            "{}",
            self.story()
        );
        assert_eq!((&whole.name, &whole.first_message), (&naive::name(&stored), &first), "{}", self.story());
        assert_eq!(brief, SessionInfo { text: String::new(), ..whole }, "{}", self.story());
    }

    /// Copies hold what they should: the whole file, a branch, an export.
    fn copies(&mut self) {
        if self.file.is_empty() {
            return;
        }
        let header = Header::new("s2".into(), Wall(1), "/w".into(), Some("/s.jsonl".into()));
        let session = read(&self.file, 1 << 20, Want::Everything);
        let (tree, facts) = (session.tree(), naive::file(&self.file));
        let whole = fork::whole(&self.file, tree, &header);
        assert_eq!(naive::file(&whole.bytes), facts, "{}", self.story());

        let Some(leaf) = self.any() else { return };
        let (context, labels_before) = (naive::context(&facts, Some(&leaf)), naive::labels(&facts));
        let export = fork::export(&self.file, tree, tree.find(&leaf), session.header(), Wall(2));
        let copy = naive::file(&export);
        assert_eq!(
            naive::context(&copy, copy.last().map(|fact| fact.id.as_str())),
            context,
            "{}",
            self.story()
        );

        let branch =
            fork::branch(&self.file, tree, &leaf, &header, &mut self.rng).expect("the leaf is there");
        let copy = naive::file(&branch.bytes);
        let last = copy.last().map(|fact| fact.id.as_str());
        assert_eq!(branch.leaf.as_deref(), last, "{}", self.story());
        assert_eq!(naive::context(&copy, last), context, "{}", self.story());
        let kept: Vec<&str> = naive::path(&facts, Some(&leaf))
            .into_iter()
            .filter(|fact| !matches!(fact.what, What::Label { .. }))
            .map(|fact| fact.id.as_str())
            .collect();
        let wanted =
            labels_before.into_iter().filter(|(target, _)| kept.contains(&target.as_str())).collect();
        assert_eq!(naive::labels(&copy), wanted, "{}", self.story());
        let (again, notes) =
            open(&branch.bytes, "/c.jsonl".into(), "/", Want::Context).expect("a copy can be opened");
        assert_eq!(notes.count, 0, "{}", self.story());
        assert_eq!(said(again.context()), context, "{}", self.story());
    }
}

/// Whether the last line is broken and ends as whole ones do.
fn looks_whole(file: &[u8]) -> bool {
    let is_json = |line: &[u8]| serde_json::from_slice::<serde_json::Value>(line).is_ok();
    let last = file.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    last.ends_with(b"}}") && !is_json(last)
}

fn read(file: &[u8], chunk: usize, want: Want) -> Session {
    let mut reader = Reader::new(want);
    file.chunks(chunk).for_each(|piece| reader.feed(piece));
    let mut loading = reader.finish().expect("it is a session");
    while let Some(range) = loading.next_range() {
        let (start, len) = (range.offset as usize, range.len as usize);
        loading.give(&file[start..start + len]);
    }
    loading.finish("/s.jsonl".into(), "/w")
}

fn labels(session: &Session) -> std::collections::BTreeMap<String, String> {
    let labels = session.tree().labels().iter();
    labels.map(|(target, note)| (target.clone(), note.label.clone())).collect()
}

/// Role and text of messages.
fn said(context: &Context) -> Vec<(String, String)> {
    let texts = |content: &Content| content.texts().collect::<Vec<_>>().join(" ");
    let blocks = |blocks: &[Block]| blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>().join(" ");
    let text = |message: &Arc<Message>| match &**message {
        Message::User(m) => texts(&m.content),
        Message::Custom(m) => texts(&m.content),
        Message::Assistant(m) => blocks(&m.content),
        Message::ToolResult(m) => blocks(&m.content),
        Message::System(m) => m.content.to_string(),
        Message::Bash(m) => m.output.to_string(),
        Message::BranchSummary(m) => m.summary.to_string(),
        Message::CompactionSummary(m) => m.summary.to_string(),
        Message::Other(_) => String::new(),
    };
    context.messages.iter().map(|message| (message.role().to_owned(), text(message))).collect()
}
