//! Entries as parts of a page: what each kind shows.

use std::collections::BTreeMap;
use std::io;

use tau_core::message::{
    AssistantMessage, BashExecution, Block, CustomMessage, Message, StopReason, SystemMessage, Usage,
};
use tau_core::session::entry::{ContextEdit, Label, UsageEntry};
use tau_core::session::tree::Slot;
use tau_core::session::{EntryBody, EntryKind};

use super::chains::Branch;
use super::content::{cost, entry_link, grouped, json, markdown, moment, plain, seconds};
use super::html::Html;
use super::sink::Sink;
use super::source::Source;
use super::survey::Survey;
use super::tool::{self, Answer};

/// No branch.
const NONE: u32 = u32::MAX;

const LEFT: &str = "Summary of a branch that was left";

/// Writes entries one after the other.
pub struct Entries<'a, 'b> {
    /// The page.
    pub sink: &'a mut Sink<'b>,
    source: &'a Source,
    survey: &'a Survey,
    branches: &'a [Branch],
    /// Of each entry the first branch that goes on from it, and of each branch the next one from the same entry.
    forks: Vec<u32>,
    next_forks: Vec<u32>,
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
        let count = source.tree().nodes().len();
        let (mut forks, mut next_forks) = (vec![NONE; count], vec![NONE; branches.len()]);
        for (number, branch) in branches.iter().enumerate().rev() {
            let fork = branch.parent.and_then(|parent| forks.get_mut(parent as usize));
            if let (Some(fork), Some(next)) = (fork, next_forks.get_mut(number)) {
                *next = std::mem::replace(fork, u32::try_from(number).unwrap_or(NONE));
            }
        }
        let answered = vec![false; count];
        Self { sink, source, survey, branches, forks, next_forks, answered, prompted: false }
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
            return self.line(slot, "This entry could not be read", "");
        };
        match &*body {
            EntryBody::Message(message) => self.message(slot, message, rest),
            EntryBody::CustomMessage(message) => self.custom_message(slot, message),
            EntryBody::ModelChange(model) => {
                self.line(slot, "Model: ", &format!("{}/{}", model.provider, model.model_id));
            }
            EntryBody::ThinkingLevelChange(level) => self.line(slot, "Thinking level: ", level),
            EntryBody::Compaction(compaction) => {
                let kept = compaction.first_kept.as_deref().and_then(|id| source.tree().find(id));
                let title = format!("Compaction of {} tokens", grouped(compaction.tokens_before));
                let out = self.fold(slot, &title);
                markdown(out, &compaction.summary);
                if let Some(kept) = kept.filter(|kept| *kept != slot) {
                    out.number("<p>The context goes on from <a href=\"#e", kept, "\">this entry</a>.</p>");
                }
                self.end_fold();
            }
            EntryBody::BranchSummary(entry) => self.summary(slot, LEFT, &entry.summary),
            EntryBody::Custom(custom) => {
                json(self.fold(slot, &format!("Data of {}", custom.custom_type)), custom.data.as_ref());
                self.end_fold();
            }
            EntryBody::Label(label) => self.label(slot, label),
            EntryBody::SessionInfo(name) => match name.as_deref().map(str::trim) {
                Some(name) if !name.is_empty() => self.line(slot, "Session name: ", name),
                _ => self.line(slot, "Session name removed", ""),
            },
            EntryBody::Usage(entry) => self.usage(slot, entry),
            EntryBody::ContextEdit(edit) => self.context_edit(slot, edit),
            EntryBody::Unknown(line) => {
                self.fold(slot, "An entry of another version").pre(line);
                self.end_fold();
            }
        }
    }

    fn message(&mut self, slot: Slot, message: &Message, rest: &[Slot]) {
        match message {
            Message::User(user) => {
                plain(self.open(slot, "u", "User", ""), &user.content);
                self.close();
            }
            Message::Assistant(reply) => self.reply(slot, reply, rest),
            Message::ToolResult(result) => {
                tool::stray(self.open(slot, "a", "Tool", ""), result);
                self.close();
            }
            Message::System(prompt) => self.prompt(slot, prompt),
            Message::Bash(run) => self.bash(slot, run),
            Message::Custom(message) => self.custom_message(slot, message),
            Message::BranchSummary(message) => self.summary(slot, LEFT, &message.summary),
            Message::CompactionSummary(message) => {
                self.summary(slot, "Summary of what was before", &message.summary);
            }
            Message::Other(value) => {
                let title = format!("A message of the role {}", message.role());
                json(self.fold(slot, &title), Some(value));
                self.end_fold();
            }
        }
    }

    fn reply(&mut self, slot: Slot, reply: &AssistantMessage, rest: &[Slot]) {
        let mut answers = self.answers(reply, rest);
        self.open(slot, "a", "Assistant", &reply.model);
        let out = &mut self.sink.out;
        for block in &reply.content {
            match block {
                Block::Text(block) if block.text.trim().is_empty() => {}
                Block::Text(block) => markdown(out, &block.text),
                Block::Thinking(block) if !block.thinking.trim().is_empty() => {
                    out.around(
                        "<details class=k><summary>Thinking</summary><div class=p>",
                        block.thinking.trim(),
                        "</div></details>",
                    );
                }
                Block::Thinking(block) if block.redacted => {
                    out.markup("<p class=\"k n\">Thinking that the provider keeps to itself</p>");
                }
                Block::Thinking(_) => {}
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
                Block::Other(value) => json(out, Some(value)),
            }
        }
        let ended = match reply.stop_reason {
            StopReason::Error => "The reply failed. ",
            StopReason::Aborted => "The reply was aborted. ",
            StopReason::Length => "The reply was cut at the output limit. ",
            _ => "",
        };
        if !ended.is_empty() {
            out.markup("<p class=\"p err\">");
            out.around(ended, reply.error_message.as_deref().unwrap_or_default(), "</p>");
        }
        if reply.usage.context_tokens() > 0 {
            out.around("<footer>", &cost(&reply.usage), "");
            if let Some(ms) = reply.duration_ms {
                out.around(", ", &seconds(ms), "");
            }
            out.markup("</footer>");
        }
        self.close();
    }

    /// Results of the calls of a reply, by call, those that come first last: they stand before the next message.
    fn answers<'r>(&self, reply: &'r AssistantMessage, rest: &[Slot]) -> BTreeMap<&'r str, Vec<Answer>> {
        let mut found: BTreeMap<&str, Vec<Answer>> = BTreeMap::new();
        let mut missing = 0;
        for call in reply.tool_calls() {
            found.entry(&call.id).or_default();
            missing += 1;
        }
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
            if let Some(answers) = found.get_mut(result.tool_call_id.as_str()) {
                missing -= 1;
                answers.insert(0, (*slot, result.clone()));
            }
        }
        found
    }

    fn prompt(&mut self, slot: Slot, prompt: &SystemMessage) {
        let again = std::mem::replace(&mut self.prompted, true);
        let out = self.fold(slot, if again { "Change of the system prompt" } else { "System prompt" });
        if !prompt.content.is_empty() {
            out.pre(&prompt.content);
        }
        for (name, section) in &prompt.sections {
            tool::long(out, name, section.as_deref().unwrap_or("(removed)"));
        }
        for (title, tools) in [("Tools", &prompt.tools_added), ("Tools removed", &prompt.tools_removed)] {
            if let Some(tools) = tools {
                out.around("<div class=arg>", title, "</div>");
                tools.iter().for_each(|declared| tool::declaration(out, declared));
            }
        }
        self.end_fold();
    }

    fn bash(&mut self, slot: Slot, run: &BashExecution) {
        let what = if run.exclude_from_context { "not for the model" } else { "" };
        let out = self.open(slot, "s", "Shell", what);
        out.pre(&format!("$ {}\n{}", run.command, run.output.as_str()));
        let mut facts = Vec::new();
        if run.cancelled {
            facts.push("cancelled".to_owned());
        }
        if let Some(code) = run.exit_code.filter(|code| *code != 0) {
            facts.push(format!("exit {code}"));
        }
        if run.truncated {
            let file = run.full_output_path.as_deref().map(|path| format!("; all of it: {path}"));
            facts.push(format!("the output was cut{}", file.unwrap_or_default()));
        }
        if !facts.is_empty() {
            out.around("<footer class=err>", &facts.join(", "), "</footer>");
        }
        self.close();
    }

    fn custom_message(&mut self, slot: Slot, message: &CustomMessage) {
        if !message.display {
            plain(self.fold(slot, &format!("Message of {}", message.custom_type)), &message.content);
            return self.end_fold();
        }
        let out = self.open(slot, "a", &message.custom_type, "");
        message.content.texts().for_each(|part| markdown(out, part));
        tool::images(out, &message.content);
        self.close();
    }

    fn label(&mut self, slot: Slot, label: &Label) {
        let target = self.source.tree().find(&label.target_id);
        let out = self.note(slot);
        match &label.label {
            Some(name) => out.around("Label <span class=tag>", name, "</span> for "),
            None => out.markup("Label taken from "),
        }
        entry_link(out, target);
        self.end_note(slot);
    }

    fn usage(&mut self, slot: Slot, entry: &UsageEntry) {
        let spent = Usage::from_value(&entry.usage).map(|usage| cost(&usage)).unwrap_or_default();
        let note = entry.note.as_deref().unwrap_or_default();
        let text = format!("{}: {}/{} {spent} {note}", entry.kind, entry.provider, entry.model);
        self.line(slot, "Used for ", &text);
    }

    fn context_edit(&mut self, slot: Slot, edit: &ContextEdit) {
        let target = self.source.tree().find(&edit.target_id);
        match &edit.replacement {
            None => {
                let out = self.note(slot);
                out.markup("Not sent to the model any more: ");
                entry_link(out, target);
                self.end_note(slot);
            }
            Some(content) => {
                let out = self.fold(slot, "Changed for the model");
                out.markup("<p>In place of ");
                entry_link(out, target);
                out.markup(":</p>");
                plain(out, content);
                self.end_fold();
            }
        }
    }

    fn summary(&mut self, slot: Slot, title: &str, summary: &str) {
        markdown(self.fold(slot, title), summary);
        self.end_fold();
    }

    // ----- frames -----

    /// One line: what it is, and its value.
    fn line(&mut self, slot: Slot, what: &'static str, value: &str) {
        let out = self.note(slot);
        out.markup(what);
        out.around("<b>", value, "</b>");
        self.end_note(slot);
    }

    /// Begins one line.
    fn note(&mut self, slot: Slot) -> &mut Html {
        self.article(slot, "n");
        self.sink.out.markup("<header><span>");
        &mut self.sink.out
    }

    fn end_note(&mut self, slot: Slot) {
        self.sink.out.markup("</span>");
        self.place(slot);
        self.close();
    }

    /// Begins something that unfolds.
    fn fold(&mut self, slot: Slot, title: &str) -> &mut Html {
        self.article(slot, "n");
        self.sink.out.around("<details><summary>", title, "</summary><div class=e>");
        &mut self.sink.out
    }

    fn end_fold(&mut self) {
        self.sink.out.markup("</div></details>");
        self.close();
    }

    /// Begins something that people, models or programs said.
    fn open(&mut self, slot: Slot, class: &'static str, who: &str, what: &str) -> &mut Html {
        self.article(slot, class);
        let tree = self.source.tree();
        let out = &mut self.sink.out;
        out.around("<header><b>", who, "</b>");
        out.around("<span>", what, "</span>");
        if let Some(note) = tree.labels().get(tree.id(slot)) {
            out.around("<span class=tag>", &note.label, "</span>");
        }
        self.place(slot);
        &mut self.sink.out
    }

    fn close(&mut self) {
        self.sink.out.markup("</article>\n");
    }

    fn article(&mut self, slot: Slot, class: &'static str) {
        let tree = self.source.tree();
        let is_labelled = tree.labels().contains_key(tree.id(slot));
        let out = &mut self.sink.out;
        out.markup("<article class=\"");
        out.markup(class);
        out.number(if is_labelled { " l\" id=e" } else { "\" id=e" }, slot, ">");
    }

    /// Time and link of an entry, whose id shows beside it; the end of its head.
    fn place(&mut self, slot: Slot) {
        let tree = self.source.tree();
        let out = &mut self.sink.out;
        out.number("<a href=\"#e", slot, "\" title=\"");
        out.around("", tree.id(slot), "\">");
        match tree.node(slot).and_then(|node| node.time()) {
            Some(time) => moment(out, time),
            None => out.markup("#"),
        }
        out.markup("</a></header>");
    }

    fn fork_links(&mut self, slot: Slot) {
        let mut next = self.forks.get(slot as usize).copied().unwrap_or(NONE);
        while let Some(branch) = self.branches.get(next as usize) {
            let out = &mut self.sink.out;
            out.number("<p class=fork>↳ another branch: <a href=\"#b", next, "\">");
            out.around("", branch_title(self.survey, branch), "</a></p>\n");
            next = self.next_forks.get(next as usize).copied().unwrap_or(NONE);
        }
    }
}

/// What a branch is called: the first words of a person in it.
#[must_use]
pub fn branch_title<'a>(survey: &'a Survey, branch: &Branch) -> &'a str {
    survey.first_words(&branch.slots).unwrap_or("(without a message of the user)")
}
