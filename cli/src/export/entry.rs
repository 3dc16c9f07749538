//! Entries as parts of a page: what each kind shows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

use tau_core::json::{Value, to_string};
use tau_core::message::{
    AssistantMessage, BashExecution, Block, Content, CustomMessage, Message, StopReason, SystemMessage, Usage,
};
use tau_core::now::Wall;
use tau_core::session::tree::Slot;
use tau_core::session::{EntryBody, EntryKind};

use super::chains::Branch;
use super::escape::{pre, text};
use super::markdown;
use super::sink::Sink;
use super::source::Source;
use super::survey::Survey;
use super::tool::{self, Answer, seconds};

/// Writes entries one after the other.
pub struct Entries<'a, 'b> {
    /// The session.
    pub source: &'a Source,
    /// First words of messages.
    pub survey: &'a Survey,
    /// Other branches.
    pub branches: &'a [Branch],
    /// The page.
    pub sink: &'a mut Sink<'b>,
    /// Numbers of the branches that go on from an entry.
    forks: BTreeMap<Slot, Vec<usize>>,
    /// Results that were shown with their calls.
    answered: Vec<bool>,
    /// A system prompt was shown.
    prompted: bool,
}

impl<'a, 'b> Entries<'a, 'b> {
    /// Nothing was written yet.
    pub fn new(
        source: &'a Source,
        survey: &'a Survey,
        branches: &'a [Branch],
        sink: &'a mut Sink<'b>,
    ) -> Self {
        let mut forks: BTreeMap<Slot, Vec<usize>> = BTreeMap::new();
        for (number, branch) in branches.iter().enumerate() {
            if let Some(parent) = branch.parent {
                forks.entry(parent).or_default().push(number);
            }
        }
        let answered = vec![false; source.tree().nodes().len()];
        Self { source, survey, branches, sink, forks, answered, prompted: false }
    }

    /// Writes entries that follow one another.
    ///
    /// # Errors
    /// When the page cannot be written.
    pub fn chain(&mut self, slots: &[Slot]) -> io::Result<()> {
        for (at, slot) in slots.iter().enumerate() {
            self.entry(*slot, slots.get(at + 1..).unwrap_or_default());
            self.fork_links(*slot);
            self.sink.settle()?;
        }
        Ok(())
    }

    fn entry(&mut self, slot: Slot, rest: &[Slot]) {
        if self.answered.get(slot as usize).copied().unwrap_or_default() {
            return;
        }
        let source = self.source;
        let Some(body) = source.body(slot) else {
            return self.note(slot, |out| out.push_str("This entry could not be read."));
        };
        match &*body {
            EntryBody::Message(message) => self.message(slot, message, rest),
            EntryBody::CustomMessage(message) => self.custom_message(slot, message),
            EntryBody::ModelChange(model) => self.note(slot, |out| {
                out.push_str("Model: <b>");
                text(out, &format!("{}/{}", model.provider, model.model_id));
                out.push_str("</b>");
            }),
            EntryBody::ThinkingLevelChange(level) => self.note(slot, |out| {
                out.push_str("Thinking level: <b>");
                text(out, level);
                out.push_str("</b>");
            }),
            EntryBody::Compaction(compaction) => {
                let kept = compaction.first_kept.as_deref().and_then(|id| source.tree().find(id));
                let title = format!("Compaction of {} tokens", grouped(compaction.tokens_before));
                self.folded(slot, &title, |out| {
                    summary(out, &compaction.summary);
                    if let Some(kept) = kept.filter(|kept| *kept != slot) {
                        let _ = write!(
                            out,
                            "<p>The context goes on from <a href=\"#e{kept}\">this entry</a>.</p>"
                        );
                    }
                });
            }
            EntryBody::BranchSummary(entry) => {
                self.folded(slot, "Summary of a branch that was left", |out| summary(out, &entry.summary));
            }
            EntryBody::Custom(custom) => {
                self.folded(slot, &format!("Data of {}", custom.custom_type), |out| {
                    json(out, custom.data.as_ref())
                });
            }
            EntryBody::Label(label) => {
                let target = source.tree().find(&label.target_id);
                self.note(slot, |out| {
                    match &label.label {
                        Some(name) => {
                            out.push_str("Label <span class=tag>");
                            text(out, name);
                            out.push_str("</span> for ");
                        }
                        None => out.push_str("Label taken from "),
                    }
                    entry_link(out, target);
                });
            }
            EntryBody::SessionInfo(name) => self.note(slot, |out| match name.as_deref().map(str::trim) {
                Some(name) if !name.is_empty() => {
                    out.push_str("Session name: <b>");
                    text(out, name);
                    out.push_str("</b>");
                }
                _ => out.push_str("Session name removed"),
            }),
            EntryBody::Usage(entry) => self.note(slot, |out| {
                text(out, &format!("Used for {}: {}/{}", entry.kind, entry.provider, entry.model));
                if let Some(usage) = Usage::from_value(&entry.usage) {
                    out.push_str(", ");
                    cost(out, &usage);
                }
                if let Some(note) = &entry.note {
                    text(out, &format!(" – {note}"));
                }
            }),
            EntryBody::ContextEdit(edit) => {
                let target = source.tree().find(&edit.target_id);
                match &edit.replacement {
                    None => self.note(slot, |out| {
                        out.push_str("Not sent to the model any more: ");
                        entry_link(out, target);
                    }),
                    Some(content) => self.folded(slot, "Changed for the model", |out| {
                        out.push_str("<p>In place of ");
                        entry_link(out, target);
                        out.push_str(":</p>");
                        plain(out, content);
                    }),
                }
            }
            EntryBody::Unknown(line) => {
                self.folded(slot, "An entry of another version", |out| pre(out, "", line))
            }
        }
    }

    fn message(&mut self, slot: Slot, message: &Message, rest: &[Slot]) {
        match message {
            Message::User(user) => {
                self.open(slot, "u", "User", "");
                plain(&mut self.sink.out, &user.content);
                self.close();
            }
            Message::Assistant(reply) => self.reply(slot, reply, rest),
            Message::ToolResult(result) => {
                self.open(slot, "a", "Tool", "");
                tool::stray(&mut self.sink.out, result);
                self.close();
            }
            Message::System(prompt) => self.prompt(slot, prompt),
            Message::Bash(run) => self.bash(slot, run),
            Message::Custom(message) => self.custom_message(slot, message),
            Message::BranchSummary(message) => {
                self.folded(slot, "Summary of a branch that was left", |out| summary(out, &message.summary));
            }
            Message::CompactionSummary(message) => {
                self.folded(slot, "Summary of what was before", |out| summary(out, &message.summary));
            }
            Message::Other(value) => {
                let title = format!("A message of the role {}", message.role());
                self.folded(slot, &title, |out| json(out, Some(value)));
            }
        }
    }

    fn reply(&mut self, slot: Slot, reply: &AssistantMessage, rest: &[Slot]) {
        let mut answers = self.answers(reply, rest);
        self.open(slot, "a", "Assistant", &reply.model);
        let out = &mut self.sink.out;
        for block in &reply.content {
            match block {
                Block::Text(block) if !block.text.trim().is_empty() => {
                    out.push_str("<div class=m>");
                    markdown::render(out, &block.text);
                    out.push_str("</div>");
                }
                Block::Text(_) => {}
                Block::Thinking(block) if block.thinking.trim().is_empty() => {
                    if block.redacted {
                        out.push_str("<p class=\"k n\">Thinking that the provider keeps to itself</p>");
                    }
                }
                Block::Thinking(block) => {
                    out.push_str("<details class=k><summary>Thinking</summary><div class=p>");
                    text(out, block.thinking.trim());
                    out.push_str("</div></details>");
                }
                Block::ToolCall(call) => {
                    let answer = answers.get_mut(call.id.as_str()).and_then(Vec::pop);
                    if let Some(mark) =
                        answer.as_ref().and_then(|(slot, _)| self.answered.get_mut(*slot as usize))
                    {
                        *mark = true;
                    }
                    tool::call(out, call, answer.as_ref());
                }
                Block::Image(block) => tool::image(out, block),
                Block::Other(value) => pre(out, "", &to_string(value)),
            }
        }
        let ended = match reply.stop_reason {
            StopReason::Error => "The reply failed",
            StopReason::Aborted => "The reply was aborted",
            StopReason::Length => "The reply was cut at the output limit",
            _ => "",
        };
        if !ended.is_empty() {
            out.push_str("<p class=\"p err\">");
            out.push_str(ended);
            if let Some(why) = &reply.error_message {
                text(out, &format!(": {why}"));
            }
            out.push_str("</p>");
        }
        let spent = &reply.usage;
        if spent.context_tokens() > 0 {
            out.push_str("<footer>");
            cost(out, spent);
            if let Some(ms) = reply.duration_ms {
                let _ = write!(out, ", {}", seconds(ms));
            }
            out.push_str("</footer>");
        }
        self.close();
    }

    /// Results of the calls of a reply, by call, those that come first last: they stand before the next message.
    fn answers(&self, reply: &AssistantMessage, rest: &[Slot]) -> BTreeMap<String, Vec<Answer>> {
        let mut missing = reply.tool_calls().count();
        let mut found: BTreeMap<String, Vec<Answer>> = BTreeMap::new();
        for slot in rest {
            match self.source.tree().node(*slot).map(|node| node.kind()) {
                _ if missing == 0 => break,
                Some(EntryKind::User | EntryKind::Assistant) => break,
                Some(EntryKind::ToolResult) => {}
                _ => continue,
            }
            let Some(body) = self.source.body(*slot) else { continue };
            let EntryBody::Message(message) = &*body else { continue };
            let Message::ToolResult(result) = &**message else { continue };
            if reply.tool_calls().any(|call| call.id == result.tool_call_id) {
                missing -= 1;
                found.entry(result.tool_call_id.clone()).or_default().insert(0, (*slot, result.clone()));
            }
        }
        found
    }

    fn prompt(&mut self, slot: Slot, prompt: &SystemMessage) {
        let again = std::mem::replace(&mut self.prompted, true);
        let title = if again { "Change of the system prompt" } else { "System prompt" };
        self.folded(slot, title, |out| {
            if !prompt.content.is_empty() {
                pre(out, "", &prompt.content);
            }
            for (name, section) in &prompt.sections {
                out.push_str("<div class=arg>");
                text(out, name);
                out.push_str("</div>");
                pre(out, "", section.as_deref().unwrap_or("(removed)"));
            }
            for (title, tools) in [("Tools", &prompt.tools_added), ("Tools removed", &prompt.tools_removed)] {
                let Some(tools) = tools else { continue };
                let _ = write!(out, "<div class=arg>{title}</div>");
                for tool in tools {
                    let field = |name: &str| tool.get(name).and_then(Value::as_str).unwrap_or_default();
                    out.push_str("<details><summary><b>");
                    text(out, field("name"));
                    out.push_str("</b></summary><p class=p>");
                    text(out, field("description"));
                    out.push_str("</p>");
                    if let Some(parameters) = tool.get("parameters") {
                        json(out, Some(parameters));
                    }
                    out.push_str("</details>");
                }
            }
        });
    }

    fn bash(&mut self, slot: Slot, run: &BashExecution) {
        let what = if run.exclude_from_context { "not for the model" } else { "" };
        self.open(slot, "s", "Shell", what);
        let out = &mut self.sink.out;
        pre(out, "", &format!("$ {}\n{}", run.command, run.output.as_str()));
        let mut facts = Vec::new();
        if run.cancelled {
            facts.push("cancelled".to_owned());
        }
        if let Some(code) = run.exit_code.filter(|code| *code != 0) {
            facts.push(format!("exit {code}"));
        }
        if run.truncated {
            let file = run
                .full_output_path
                .as_deref()
                .map(|path| format!("; all of it: {path}"))
                .unwrap_or_default();
            facts.push(format!("the output was cut{file}"));
        }
        if !facts.is_empty() {
            out.push_str("<footer class=err>");
            text(out, &facts.join(", "));
            out.push_str("</footer>");
        }
        self.close();
    }

    fn custom_message(&mut self, slot: Slot, message: &CustomMessage) {
        if !message.display {
            let title = format!("Message of {}", message.custom_type);
            return self.folded(slot, &title, |out| plain(out, &message.content));
        }
        self.open(slot, "a", &message.custom_type, "");
        let out = &mut self.sink.out;
        out.push_str("<div class=m>");
        message.content.texts().for_each(|part| markdown::render(out, part));
        images(out, &message.content);
        out.push_str("</div>");
        self.close();
    }

    /// One line.
    fn note(&mut self, slot: Slot, fill: impl FnOnce(&mut String)) {
        self.article(slot, "n");
        self.sink.out.push_str("<header><span>");
        fill(&mut self.sink.out);
        self.sink.out.push_str("</span>");
        self.place(slot);
        self.sink.out.push_str("</header>");
        self.close();
    }

    /// Something that unfolds.
    fn folded(&mut self, slot: Slot, title: &str, fill: impl FnOnce(&mut String)) {
        self.article(slot, "n");
        let out = &mut self.sink.out;
        out.push_str("<details><summary>");
        text(out, title);
        out.push_str("</summary><div class=e>");
        fill(out);
        out.push_str("</div></details>");
        self.close();
    }

    fn open(&mut self, slot: Slot, class: &str, who: &str, what: &str) {
        self.article(slot, class);
        let out = &mut self.sink.out;
        out.push_str("<header><b>");
        text(out, who);
        out.push_str("</b><span>");
        text(out, what);
        out.push_str("</span>");
        if let Some(note) = self.source.tree().labels().get(self.source.tree().id(slot)) {
            out.push_str("<span class=tag>");
            text(out, &note.label);
            out.push_str("</span>");
        }
        self.place(slot);
        self.sink.out.push_str("</header>");
    }

    fn article(&mut self, slot: Slot, class: &str) {
        let tree = self.source.tree();
        let labelled = if tree.labels().contains_key(tree.id(slot)) { " l" } else { "" };
        let _ = write!(self.sink.out, "<article class=\"{class}{labelled}\" id=e{slot}>");
    }

    /// Time and link of an entry; its id shows beside it.
    fn place(&mut self, slot: Slot) {
        let tree = self.source.tree();
        let out = &mut self.sink.out;
        let _ = write!(out, "<a href=\"#e{slot}\" title=\"");
        text(out, tree.id(slot));
        out.push_str("\">");
        match tree.node(slot).and_then(|node| node.time()) {
            Some(time) => moment(out, time),
            None => out.push('#'),
        }
        out.push_str("</a>");
    }

    fn close(&mut self) {
        self.sink.out.push_str("</article>\n");
    }

    fn fork_links(&mut self, slot: Slot) {
        let out = &mut self.sink.out;
        for number in self.forks.get(&slot).into_iter().flatten() {
            let _ = write!(out, "<p class=fork>↳ another branch: <a href=\"#b{number}\">");
            text(out, &branch_title(self.source, self.survey, self.branches.get(*number)));
            out.push_str("</a></p>\n");
        }
    }
}

/// What a branch is called: the first words of a person in it.
pub fn branch_title(source: &Source, survey: &Survey, branch: Option<&Branch>) -> String {
    let slots = branch.map(|branch| branch.slots.as_slice()).unwrap_or_default();
    let words = survey.preview(slots, |slot| source.tree().node(slot).map(|node| node.kind()));
    words.unwrap_or("(without a message of the user)").to_owned()
}

/// A point in time: UTC to the minute.
pub fn moment(out: &mut String, time: Wall) {
    let iso = time.to_iso();
    let (day, clock) = iso.split_once('T').unwrap_or((&iso, ""));
    let _ = write!(out, "<time datetime=\"{iso}\">{day} {}</time>", clock.get(..5).unwrap_or_default());
}

/// `1234567` → `1,234,567`
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 entry`, `2 entries`
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// `$0.0123`, with as many digits as it takes to see something.
pub fn dollars(cost: f64) -> String {
    if cost >= 1.0 { format!("${cost:.2}") } else { format!("${cost:.4}") }
}

fn cost(out: &mut String, usage: &Usage) {
    let Usage { input, output, cache_read, cache_write, .. } = *usage;
    let _ = write!(out, "{} in, {} out", grouped(input), grouped(output));
    for (tokens, what) in [(cache_read, "cached"), (cache_write, "to the cache")] {
        if tokens > 0 {
            let _ = write!(out, ", {} {what}", grouped(tokens));
        }
    }
    if usage.cost.total > 0.0 {
        let _ = write!(out, ", {}", dollars(usage.cost.total));
    }
}

fn summary(out: &mut String, source: &str) {
    out.push_str("<div class=m>");
    markdown::render(out, source);
    out.push_str("</div>");
}

/// Text as it stands, and images.
fn plain(out: &mut String, content: &Content) {
    for part in content.texts().filter(|part| !part.is_empty()) {
        out.push_str("<div class=p>");
        text(out, part);
        out.push_str("</div>");
    }
    images(out, content);
}

fn images(out: &mut String, content: &Content) {
    let Content::Blocks(blocks) = content else { return };
    for block in blocks {
        if let Block::Image(block) = block {
            tool::image(out, block);
        }
    }
}

fn json(out: &mut String, value: Option<&Value>) {
    if let Some(value) = value {
        pre(out, "", &serde_json::to_string_pretty(value).unwrap_or_default());
    }
}

fn entry_link(out: &mut String, target: Option<Slot>) {
    match target {
        Some(slot) => {
            let _ = write!(out, "<a href=\"#e{slot}\">an entry</a>");
        }
        None => out.push_str("an entry that is not there"),
    }
}
