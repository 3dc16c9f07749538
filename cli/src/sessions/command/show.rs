//! `tau sessions show`: one session, read once and never written. What an entry says is read when it is looked at and
//! dropped again, so that a large session costs time and no memory.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;

use tau_core::json::Writer;
use tau_core::message::{Content, Message};
use tau_core::now::Wall;
use tau_core::path::{Style, shorten_home};
use tau_core::session::stats::Stats;
use tau_core::session::tree::{LabelNote, Slot};
use tau_core::session::{EntryBody, EntryKind, Session};
use tau_core::text::truncate::format_size;

use super::{Done, Task, terminal_width};
use crate::export::source::Source;
use crate::sessions::rows::ago;
use crate::table::{columns, cut};
use crate::visible::{harmless_json, one_line};

/// Last messages that are shown.
const LAST: usize = 6;

/// Most branches that are told apart.
const BRANCHES: usize = 100;

/// Of these so many are shown to people.
const SHOWN_BRANCHES: usize = 10;

/// Longest line when it does not go to a terminal, in cells.
const WIDE: usize = 140;

/// Longest text of a message, in cells.
const TEXT_CELLS: usize = 200;

impl Task<'_> {
    pub(super) fn show(&self) -> Result<Done, String> {
        let [wanted] = &self.args.words[..] else { return Err("one session can be shown".into()) };
        let path = self.resolve(wanted)?;
        let shown = Shown::read(path, self.args.limit.unwrap_or(LAST))?;
        Ok(Done::with(if self.args.json {
            harmless_json(&shown.json()).into_owned() + "\n"
        } else {
            shown.text(self.place.now, self.place.surroundings.home_or_root())
        }))
    }
}

/// The end of a branch.
struct Tip {
    id: String,
    time: Option<Wall>,
    entries: usize,
    text: String,
    current: bool,
}

/// A message, shortly.
struct Said {
    id: String,
    role: &'static str,
    time: Option<Wall>,
    text: String,
}

struct Shown {
    path: String,
    size: u64,
    source: Source,
    stats: Stats,
    branches: usize,
    tips: Vec<Tip>,
    last: Vec<Said>,
    changed: Option<Wall>,
    /// Provider and id of the model of the current branch.
    model: Option<(String, String)>,
}

impl Shown {
    fn read(path: String, limit: usize) -> Result<Self, String> {
        let size = fs::metadata(&path).map_or(0, |meta| meta.len());
        let source = Source::open(&path)?;
        let (stats, changed) = count(&source);
        let (branches, tips) = tips(&source);
        let (last, model) = (last(&source, limit), model(&source));
        Ok(Self { path, size, stats, branches, tips, last, changed, model, source })
    }

    const fn session(&self) -> &Session {
        self.source.session()
    }

    fn text(&self, now: Wall, home: &str) -> String {
        let mut out = String::new();
        let mut fact = |name: &str, value: &str| {
            let _ = writeln!(out, "{name:12}{}", one_line(value));
        };
        let when = |time: Wall| match (ago(time, now), time.to_iso()) {
            (ago, iso) if iso.starts_with(&ago) => iso,
            (ago, iso) => format!("{ago} ({iso})"),
        };
        let header = self.session().header();
        fact("session", &header.id);
        fact("file", &format!("{} ({})", self.path, format_size(self.size)));
        fact("directory", &shorten_home(header.cwd.as_deref().unwrap_or("(none)"), home, Style::Posix));
        self.session().name().into_iter().for_each(|name| fact("name", name));
        header.parent_session.iter().for_each(|parent| fact("forked from", parent));
        fact("begun", &Wall::from_iso(&header.timestamp).map_or_else(|| header.timestamp.clone(), when));
        self.changed.into_iter().for_each(|time| fact("changed", &when(time)));
        if let Some((provider, model)) = &self.model {
            let level = self.session().context().thinking_level.as_deref();
            let level = level.map(|level| format!(", thinking {level}")).unwrap_or_default();
            fact("model", &format!("{provider}/{model}{level}"));
        }
        let Stats { user_messages, assistant_messages, tool_calls, tool_results, total_messages, usage } =
            &self.stats;
        fact(
            "messages",
            &format!(
                "{total_messages}: {user_messages} of the user, {assistant_messages} replies, \
                 {tool_calls} calls, {tool_results} results"
            ),
        );
        fact(
            "tokens",
            &format!(
                "{}: {} in, {} out, {} read from and {} written to the cache",
                self.stats.total_tokens(),
                usage.input,
                usage.output,
                usage.cache_read,
                usage.cache_write
            ),
        );
        fact("cost", &format!("${:.4}", usage.cost.total));
        let notes = self.source.notes();
        if notes.count > 0 {
            let lines: Vec<String> = notes.list.iter().take(8).map(|note| note.line.to_string()).collect();
            let more = if notes.count > 8 { " …" } else { "" };
            fact("damaged", &format!("{} lines: {}{more}", notes.count, lines.join(", ")));
        }
        self.tables(&mut out, now);
        out
    }

    fn tables(&self, out: &mut String, now: Wall) {
        let width = terminal_width(&std::io::stdout()).unwrap_or(WIDE);
        let mut table = |title: &str, rows: Vec<Vec<String>>| {
            if !rows.is_empty() {
                let _ = writeln!(out, "\n{title}:");
                columns(&rows, false).lines().for_each(|line| {
                    let _ = writeln!(out, "{}", cut(line, width));
                });
            }
        };
        let when = |time: Option<Wall>| time.map_or_else(String::new, |time| ago(time, now));
        let tip = |tip: &Tip| {
            let mark = if tip.current { "*" } else { " " };
            let entries = format!("{} entries", tip.entries);
            vec![format!("{mark} {}", one_line(&tip.id)), when(tip.time), entries, tip.text.clone()]
        };
        if self.branches > 1 {
            let title = format!("branches ({}; * is where the session goes on)", self.branches);
            table(&title, self.tips.iter().take(SHOWN_BRANCHES).map(tip).collect());
        }
        let labels = self.session().tree().labels().iter();
        let label = |(id, note): (&String, &LabelNote)| {
            vec![format!("  {}", one_line(id)), when(note.time), one_line(&note.label)]
        };
        table("labels", labels.map(label).collect());
        let said = |said: &Said| vec![format!("  {}", said.role), when(said.time), said.text.clone()];
        table("last messages", self.last.iter().map(said).collect());
    }

    fn json(&self) -> String {
        let mut w = Writer::new();
        let (w, header) = (&mut w, self.session().header());
        let time = |time: Option<Wall>| time.map(Wall::to_iso);
        w.begin_object();
        w.field_str("id", &header.id);
        w.field_str("path", &self.path);
        w.field_u64("size", self.size);
        w.field_opt_str("cwd", header.cwd.as_deref());
        w.field_opt_str("name", self.session().name());
        w.field_opt_str("parentSession", header.parent_session.as_deref());
        w.field_str("created", &header.timestamp);
        w.field_opt_str("modified", time(self.changed).as_deref());
        if let Some((provider, model)) = &self.model {
            w.field_str("provider", provider);
            w.field_str("model", model);
        }
        w.field_opt_str("thinkingLevel", self.session().context().thinking_level.as_deref());
        w.key("stats");
        w.begin_object();
        self.stats.write_fields(w);
        w.end_object();
        w.field_u64("branchCount", self.branches as u64);
        w.key("branches");
        w.begin_array();
        for tip in &self.tips {
            w.begin_object();
            w.field_str("leafId", &tip.id);
            w.field_bool("current", tip.current);
            w.field_u64("entries", tip.entries as u64);
            w.field_opt_str("timestamp", time(tip.time).as_deref());
            w.field_str("text", &tip.text);
            w.end_object();
        }
        w.end_array();
        w.key("labels");
        w.begin_array();
        for (id, note) in self.session().tree().labels() {
            w.begin_object();
            w.field_str("targetId", id);
            w.field_str("label", &note.label);
            w.field_opt_str("timestamp", time(note.time).as_deref());
            w.end_object();
        }
        w.end_array();
        w.key("lastMessages");
        w.begin_array();
        for said in &self.last {
            w.begin_object();
            w.field_str("id", &said.id);
            w.field_str("role", said.role);
            w.field_opt_str("timestamp", time(said.time).as_deref());
            w.field_str("text", &said.text);
            w.end_object();
        }
        w.end_array();
        w.field_u64("damagedLines", self.source.notes().count);
        w.end_object();
        std::mem::take(w).into_string()
    }
}

/// Totals over all branches, and the time of the newest message of user or model.
fn count(source: &Source) -> (Stats, Option<Wall>) {
    let (mut stats, mut changed) = (Stats::default(), None);
    for slot in source.tree().slots() {
        let kind = source.tree().node(slot).map(|node| node.kind());
        // Free data of hosts is neither counted nor read.
        if matches!(kind, Some(EntryKind::Custom | EntryKind::CustomMessage | EntryKind::Unknown) | None) {
            continue;
        }
        let Some(body) = source.body(slot) else { continue };
        stats.add(&body);
        if let EntryBody::Message(message) = &*body {
            let time = match &**message {
                Message::User(user) => Some(Wall(user.timestamp)),
                Message::Assistant(reply) => Some(Wall(reply.timestamp)),
                _ => None,
            };
            changed = changed.max(time);
        }
    }
    (stats, changed)
}

/// How many branches there are, and the ends of the newest ones, the current one first.
fn tips(source: &Source) -> (usize, Vec<Tip>) {
    let tree = source.tree();
    let parents: HashSet<&str> = tree.slots().filter_map(|slot| tree.parent_id(slot)).collect();
    let leaf = tree.leaf();
    let mut ends: Vec<Slot> =
        tree.slots().filter(|slot| Some(*slot) == leaf || !parents.contains(tree.id(*slot))).collect();
    let count = ends.len();
    let rank = |slot: Slot| (Some(slot) == leaf, slot);
    tau_core::order::sort(&mut ends, |a, b| rank(*b).cmp(&rank(*a)));
    ends.truncate(BRANCHES);
    let tip = |slot: Slot| {
        let path = source.tree().path(Some(slot));
        let said = path.iter().rev().find_map(|slot| {
            let kind = source.tree().node(*slot)?.kind();
            matches!(kind, EntryKind::User | EntryKind::Assistant).then(|| source.body(*slot))?
        });
        let text = match said.as_deref() {
            Some(EntryBody::Message(message)) => short(message).1,
            _ => String::new(),
        };
        let time = source.tree().node(slot).and_then(|node| node.time());
        let id = source.tree().id(slot).to_owned();
        Tip { id, time, entries: path.len(), text, current: Some(slot) == leaf }
    };
    (count, ends.into_iter().map(tip).collect())
}

/// The last messages of the current branch, oldest first.
fn last(source: &Source, limit: usize) -> Vec<Said> {
    let path = source.tree().path(source.tree().leaf());
    let mut said = Vec::new();
    for slot in path.into_iter().rev() {
        if said.len() >= limit {
            break;
        }
        let node = source.tree().node(slot);
        let Some((kind, time)) = node.map(|node| (node.kind(), node.time())) else { continue };
        if !kind.is_message() || kind == EntryKind::System {
            continue;
        }
        if let Some(EntryBody::Message(message)) = source.body(slot).as_deref() {
            let (role, text) = short(message);
            said.push(Said { id: source.tree().id(slot).to_owned(), role, time, text });
        }
    }
    said.reverse();
    said
}

/// The model of the current branch: of the last entry that names one.
fn model(source: &Source) -> Option<(String, String)> {
    let path = source.tree().path(source.tree().leaf());
    path.into_iter().rev().find_map(|slot| {
        let kind = source.tree().node(slot)?.kind();
        if !matches!(kind, EntryKind::ModelChange | EntryKind::Assistant) {
            return None;
        }
        match &*source.body(slot)? {
            EntryBody::ModelChange(model) => Some((model.provider.clone(), model.model_id.clone())),
            EntryBody::Message(message) => {
                message.as_assistant().map(|reply| (reply.provider.clone(), reply.model.clone()))
            }
            _ => None,
        }
    })
}

/// Who said it, and what, in one line.
fn short(message: &Message) -> (&'static str, String) {
    let texts = |content: &Content| content.texts().collect::<Vec<_>>().join(" ");
    let (role, text) = match message {
        Message::User(user) => ("user", texts(&user.content)),
        Message::Assistant(reply) => {
            let said: Vec<&str> = reply.content.iter().filter_map(|block| block.as_text()).collect();
            let calls: Vec<&str> = reply.tool_calls().map(|call| call.name.as_str()).collect();
            let calls = if calls.is_empty() { String::new() } else { format!(" [{}]", calls.join(", ")) };
            let failed = reply.error_message.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
            ("assistant", said.join(" ") + &calls + &failed)
        }
        Message::ToolResult(result) => {
            let text: Vec<&str> = result.content.iter().filter_map(|block| block.as_text()).collect();
            ("toolResult", format!("{}: {}", result.tool_name, text.join(" ")))
        }
        Message::Bash(run) => ("bashExecution", format!("$ {} {}", run.command, run.output)),
        Message::Custom(custom) => ("custom", texts(&custom.content)),
        _ => ("other", String::new()),
    };
    // A long output is not looked at as a whole.
    let start = text.get(..text.floor_char_boundary(TEXT_CELLS * 4)).unwrap_or_default();
    (role, cut(&one_line(start), TEXT_CELLS))
}
