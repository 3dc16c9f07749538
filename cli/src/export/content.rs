//! Small pieces that many parts of a page have: texts, numbers, times, links.

use tau_core::json::{Value, to_pretty};
use tau_core::message::{Content, Usage};
use tau_core::now::Wall;
use tau_core::session::tree::Slot;

use super::html::Html;
use super::{markdown as blocks, tool};

/// Text that is Markdown.
pub fn markdown(out: &mut Html, source: &str) {
    out.markup("<div class=m>");
    blocks::render(out, source);
    out.markup("</div>");
}

/// Text as it stands, and images.
pub fn plain(out: &mut Html, content: &Content) {
    for part in content.texts().filter(|part| !part.is_empty()) {
        out.around("<div class=p>", part, "</div>");
    }
    tool::images(out, content);
}

/// A value, indented.
pub fn json(out: &mut Html, value: Option<&Value>) {
    if let Some(value) = value {
        out.pre(&to_pretty(value));
    }
}

/// A way to an entry.
pub fn entry_link(out: &mut Html, target: Option<Slot>) {
    match target {
        Some(slot) => out.number("<a href=\"#e", slot, "\">an entry</a>"),
        None => out.markup("an entry that is not there"),
    }
}

/// A point in time: UTC to the minute.
pub fn moment(out: &mut Html, time: Wall) {
    let iso = time.to_iso();
    let (day, clock) = iso.split_once('T').unwrap_or((&iso, ""));
    out.around("<time datetime=\"", &iso, "\">");
    out.around("", day, " ");
    out.around("", clock.get(..5).unwrap_or_default(), "</time>");
}

/// `0.3 s`, `75 s`
#[must_use]
pub fn seconds(ms: u64) -> String {
    if ms < 10_000 { format!("{}.{} s", ms / 1000, ms % 1000 / 100) } else { format!("{} s", ms / 1000) }
}

/// `1234567` → `1,234,567`
#[must_use]
pub fn grouped(number: u64) -> String {
    let mut out = number.to_string();
    let mut at = out.len();
    while at > 3 {
        at -= 3;
        out.insert(at, ',');
    }
    out
}

/// `1 entry`, `2 entries`
#[must_use]
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// `$0.0123`, with as many digits as it takes to see something.
#[must_use]
pub fn dollars(cost: f64) -> String {
    if cost >= 1.0 { format!("${cost:.2}") } else { format!("${cost:.4}") }
}

/// Tokens and money.
#[must_use]
pub fn cost(usage: &Usage) -> String {
    let mut text = format!("{} in, {} out", grouped(usage.input), grouped(usage.output));
    for (tokens, what) in [(usage.cache_read, " cached"), (usage.cache_write, " to the cache")] {
        if tokens > 0 {
            text.extend([", ", &grouped(tokens), what]);
        }
    }
    if usage.cost.total > 0.0 {
        text.extend([", ", &dollars(usage.cost.total)]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        for (number, wanted) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), wanted);
        }
        assert_eq!((counted(1, "a", "b"), counted(2000, "a", "b")), ("1 a".into(), "2,000 b".into()));
        assert_eq!(
            (dollars(0.0), dollars(0.012_34), dollars(12.345)),
            ("$0.0000".into(), "$0.0123".into(), "$12.35".into())
        );
        assert_eq!(
            (seconds(0), seconds(1_250), seconds(75_900)),
            ("0.0 s".into(), "1.2 s".into(), "75 s".into())
        );
    }
}
