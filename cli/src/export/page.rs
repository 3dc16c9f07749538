//! The page as a whole, from top to bottom.

use std::fmt::Write as _;
use std::io;

use tau_core::now::Wall;
use tau_core::session::EntryKind;
use tau_core::session::tree::Slot;

use super::chains::Chains;
use super::data;
use super::entry::{Entries, branch_title, counted, dollars, grouped, moment};
use super::escape::text;
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
        sink.out.push_str("<main>\n");
        self.facts(&mut sink.out);
        let mut entries = Entries::new(self.source, &self.survey, &self.chains.others, &mut sink);
        entries.chain(&self.chains.main)?;
        if !self.chains.others.is_empty() {
            entries.sink.out.push_str("<h2>Other branches</h2>\n");
        }
        for (number, branch) in self.chains.others.iter().enumerate() {
            self.branch_head(&mut entries.sink.out, number);
            entries.chain(&branch.slots)?;
            entries.sink.out.push_str("</div></details>\n");
        }
        let _ = writeln!(sink.out, "<p id=end>Written by Tau {VERSION}</p></main>");
        data::write(&mut sink, self.source, self.leaf.map(|slot| self.source.tree().id(slot)))?;
        let _ = write!(sink.out, "<script>{SCRIPT}</script>\n</body></html>\n");
        sink.flush()
    }

    fn title(&self) -> String {
        let session = self.source.session();
        let first = || self.survey.preview(&self.chains.main, |slot| self.kind(slot));
        let named = session.name().or_else(first).map(str::to_owned);
        named.unwrap_or_else(|| format!("Session {}", session.id()))
    }

    fn kind(&self, slot: Slot) -> Option<EntryKind> {
        self.source.tree().node(slot).map(|node| node.kind())
    }

    fn head(&self, out: &mut String) {
        out.push_str(
            "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n\
            <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; \
            img-src data:; script-src '",
        );
        out.push_str(SCRIPT_HASH);
        out.push_str(
            "'; base-uri 'none'; form-action 'none'\">\n\
            <meta name=viewport content=\"width=device-width,initial-scale=1\">\
            <meta name=referrer content=no-referrer>\n<link rel=icon href=\"data:,\"><title>",
        );
        let title = self.title();
        text(out, &title);
        let _ = write!(out, "</title>\n<style>{STYLE}</style></head><body>\n");
        out.push_str(
            "<input type=checkbox id=menu aria-label=Contents>\
            <header id=bar><label for=menu>Contents</label><h1>",
        );
        text(out, &title);
        out.push_str(
            "</h1><button id=open hidden>Unfold</button><button id=close hidden>Fold</button>\
            <select aria-label=Show><option value=all>Everything</option><option value=notools>No tools</option>\
            <option value=talk>Conversation</option><option value=user>My messages</option>\
            <option value=label>Labelled</option></select>\
            <select id=theme aria-label=Theme><option value=system>System</option>\
            <option value=light>Light</option><option value=dark>Dark</option></select></header>\n",
        );
    }

    /// Messages of people and summaries on the current branch, and the other branches.
    fn contents(&self, out: &mut String) {
        out.push_str("<nav aria-label=Contents><h2>This branch</h2><ol>");
        for slot in &self.chains.main {
            let words = match self.kind(*slot) {
                Some(EntryKind::User) => self.survey.previews.get(slot).map_or("(no text)", String::as_str),
                Some(EntryKind::Compaction) => "— Compaction —",
                _ => continue,
            };
            let _ = write!(out, "<li><a href=\"#e{slot}\">");
            text(out, words);
            out.push_str("</a></li>");
        }
        out.push_str("</ol>");
        if !self.chains.others.is_empty() {
            out.push_str("<h2>Other branches</h2><ol>");
        }
        for (number, branch) in self.chains.others.iter().enumerate() {
            let _ = write!(out, "<li><a href=\"#b{number}\">");
            text(out, &branch_title(self.source, &self.survey, Some(branch)));
            out.push_str("</a></li>");
        }
        out.push_str(if self.chains.others.is_empty() { "</nav>\n" } else { "</ol></nav>\n" });
    }

    fn branch_head(&self, out: &mut String, number: usize) {
        let branch = self.chains.others.get(number);
        let _ = write!(out, "<details id=b{number}><summary>");
        text(out, &branch_title(self.source, &self.survey, branch));
        let count = branch.map_or(0, |branch| branch.slots.len());
        let _ = write!(
            out,
            " <small>{}</small></summary><div class=e>",
            counted(count as u64, "entry", "entries")
        );
        if let Some(parent) = branch.and_then(|branch| branch.parent) {
            let _ = write!(out, "<p class=fork>Goes on from <a href=\"#e{parent}\">an entry above</a></p>");
        }
    }

    fn facts(&self, out: &mut String) {
        let (session, stats) = (self.source.session(), &self.survey.stats);
        out.push_str("<dl id=facts>");
        fact(out, "wide", "Folder", session.cwd());
        fact(out, "wide", "Session", session.id());
        if let Some(parent) = &session.header().parent_session {
            fact(out, "wide", "Forked from", parent);
        }
        out.push_str("<div><dt>Begun</dt><dd>");
        match Wall::from_iso(&session.header().timestamp) {
            Some(time) => moment(out, time),
            None => text(out, &session.header().timestamp),
        }
        out.push_str(" UTC</dd></div>");
        let words = self.survey.models.join(", ");
        fact(out, "", "Model", if words.is_empty() { "–" } else { &words });
        let messages = format!(
            "{} of the user, {}",
            grouped(stats.user_messages),
            counted(stats.assistant_messages, "reply", "replies")
        );
        fact(out, "", "Messages", &messages);
        fact(out, "", "Tool calls", &grouped(stats.tool_calls));
        let usage = &stats.usage;
        let tokens = format!(
            "{} in, {} out, {} cached",
            grouped(usage.input),
            grouped(usage.output),
            grouped(usage.cache_read.saturating_add(usage.cache_write))
        );
        fact(out, "", "Tokens", &tokens);
        fact(out, "", "Cost", &dollars(usage.cost.total));
        out.push_str("</dl>\n");
    }
}

fn fact(out: &mut String, class: &str, name: &str, value: &str) {
    let _ = write!(out, "<div class=\"{class}\"><dt>{name}</dt><dd>");
    text(out, value);
    out.push_str("</dd></div>");
}
