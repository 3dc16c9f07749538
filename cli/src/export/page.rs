//! The page as a whole, from top to bottom.

use std::io;

use tau_core::now::Wall;
use tau_core::session::EntryKind;
use tau_core::session::tree::Slot;

use super::chains::{Branch, Chains};
use super::content::{counted, dollars, grouped, moment};
use super::data;
use super::entry::{Entries, branch_title};
use super::html::Html;
use super::sink::Sink;
use super::source::Source;
use super::survey::Survey;
use crate::args::help::VERSION;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// SHA-256 of the script, the only one that runs.
const SCRIPT_HASH: &str = "sha256-A7Q87dQNJuqLMDM5WMa/JTHWvVKdfmtZNwSWe3gM88g=";

/// Everything needed to write the page of a session.
pub struct Page<'a> {
    source: &'a Source,
    survey: Survey,
    chains: Chains,
    leaf: Option<Slot>,
}

impl<'a> Page<'a> {
    /// Reads every entry once. `leaf` is the end of the current branch; without one it is the last entry.
    #[must_use]
    pub fn of(source: &'a Source, leaf: Option<&str>) -> Self {
        let tree = source.tree();
        let leaf = leaf.and_then(|id| tree.find(id)).or_else(|| tree.leaf());
        Self { source, survey: Survey::of(source), chains: Chains::of(tree, leaf), leaf }
    }

    /// Writes it.
    ///
    /// # Errors
    /// When the page cannot be written.
    pub fn write(&self, file: &mut dyn io::Write) -> io::Result<()> {
        let mut sink = Sink::new(file);
        self.head(&mut sink.out);
        self.contents(&mut sink.out);
        sink.out.markup("<main>\n");
        self.facts(&mut sink.out);
        let mut entries = Entries::new(self.source, &self.survey, &self.chains.others, &mut sink);
        entries.chain(&self.chains.main)?;
        if !self.chains.others.is_empty() {
            entries.sink.out.markup("<h2>Other branches</h2>\n");
        }
        for (number, branch) in (0..).zip(&self.chains.others) {
            self.branch_head(&mut entries.sink.out, number, branch);
            entries.chain(&branch.slots)?;
            entries.sink.out.markup("</div></details>\n");
        }
        sink.out.around("<p id=end>Written by Tau ", VERSION, "</p></main>\n");
        data::write(&mut sink, self.source, self.leaf.map(|slot| self.source.tree().id(slot)))?;
        ["<script>", SCRIPT, "</script>\n</body></html>\n"].iter().for_each(|piece| sink.out.markup(piece));
        sink.flush()
    }

    fn title(&self) -> String {
        let session = self.source.session();
        let first = || self.survey.first_words(&self.chains.main);
        let named = session.name().or_else(first).map(str::to_owned);
        named.unwrap_or_else(|| format!("Session {}", session.id()))
    }

    fn kind(&self, slot: Slot) -> Option<EntryKind> {
        self.source.tree().node(slot).map(|node| node.kind())
    }

    fn head(&self, out: &mut Html) {
        out.markup(
            "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n\
            <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; \
            img-src data:; script-src '",
        );
        out.markup(SCRIPT_HASH);
        out.markup(
            "'; base-uri 'none'; form-action 'none'\">\n\
            <meta name=viewport content=\"width=device-width,initial-scale=1\">\
            <meta name=referrer content=no-referrer>\n<link rel=icon href=\"data:,\"><title>",
        );
        let title = self.title();
        out.text(&title);
        out.markup("</title>\n<style>");
        out.markup(STYLE);
        out.markup("</style></head><body>\n");
        out.markup(
            "<input type=checkbox id=menu aria-label=Contents>\
            <header id=bar><label for=menu>Contents</label><h1>",
        );
        out.text(&title);
        out.markup(
            "</h1><button id=open hidden>Unfold</button><button id=close hidden>Fold</button>\
            <select aria-label=Show><option value=all>Everything</option><option value=notools>No tools</option>\
            <option value=talk>Conversation</option><option value=user>My messages</option>\
            <option value=label>Labelled</option></select>\
            <select id=theme aria-label=Theme><option value=system>System</option>\
            <option value=light>Light</option><option value=dark>Dark</option></select></header>\n",
        );
    }

    /// Messages of people and summaries on the current branch, and the other branches.
    fn contents(&self, out: &mut Html) {
        out.markup("<nav aria-label=Contents><h2>This branch</h2><ol>");
        for slot in &self.chains.main {
            let words = match self.kind(*slot) {
                Some(EntryKind::User) => self.survey.preview(*slot).unwrap_or_default(),
                Some(EntryKind::Compaction) => "— Compaction —",
                _ => continue,
            };
            out.number("<li><a href=\"#e", *slot, "\">");
            out.around("", words, "</a></li>");
        }
        out.markup("</ol>");
        if !self.chains.others.is_empty() {
            out.markup("<h2>Other branches</h2><ol>");
        }
        for (number, branch) in (0..).zip(&self.chains.others) {
            out.number("<li><a href=\"#b", number, "\">");
            out.around("", branch_title(&self.survey, branch), "</a></li>");
        }
        out.markup(if self.chains.others.is_empty() { "</nav>\n" } else { "</ol></nav>\n" });
    }

    fn branch_head(&self, out: &mut Html, number: u32, branch: &Branch) {
        out.number("<details id=b", number, "><summary>");
        out.around("", branch_title(&self.survey, branch), " <small>");
        let count = counted(branch.slots.len() as u64, "entry", "entries");
        out.around("", &count, "</small></summary><div class=e>");
        if let Some(parent) = branch.parent {
            out.number("<p class=fork>Goes on from <a href=\"#e", parent, "\">an entry above</a></p>");
        }
    }

    fn facts(&self, out: &mut Html) {
        const NEXT: &str = "</dd></div><div><dt>";
        let (session, stats) = (self.source.session(), &self.survey.stats);
        out.around("<dl id=facts><div class=wide><dt>Folder</dt><dd>", session.cwd(), "</dd></div>");
        out.around("<div class=wide><dt>Session</dt><dd>", session.id(), "</dd></div>");
        if let Some(parent) = &session.header().parent_session {
            out.around("<div class=wide><dt>Forked from</dt><dd>", parent, "</dd></div>");
        }
        out.markup("<div><dt>Begun</dt><dd>");
        match Wall::from_iso(&session.header().timestamp) {
            Some(time) => moment(out, time),
            None => out.text(&session.header().timestamp),
        }
        let usage = &stats.usage;
        let messages = format!(
            "{} of the user, {}",
            grouped(stats.user_messages),
            counted(stats.assistant_messages, "reply", "replies")
        );
        let tokens = format!(
            "{} in, {} out, {} cached",
            grouped(usage.input),
            grouped(usage.output),
            grouped(usage.cache_read.saturating_add(usage.cache_write))
        );
        out.markup(" UTC");
        for (name, value) in [
            ("Model</dt><dd>", self.survey.models.join(", ")),
            ("Messages</dt><dd>", messages),
            ("Tool calls</dt><dd>", grouped(stats.tool_calls)),
            ("Tokens</dt><dd>", tokens),
            ("Cost</dt><dd>", dollars(usage.cost.total)),
        ] {
            out.markup(NEXT);
            out.around(name, &value, "");
        }
        out.markup("</dd></div></dl>\n");
    }
}
