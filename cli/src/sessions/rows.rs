//! Lists of sessions for people and for programs. What comes from files is made harmless for terminals.

use tau_core::json::Writer;
use tau_core::now::Wall;
use tau_core::path::{Style, shorten_home};

use super::list::Found;
use crate::table::{columns, cut};
use crate::visible::one_line;

/// The shortest beginning of an id that is shown.
const SHORT: usize = 8;

/// Where a UUID may be cut so that it looks whole.
const UUID_CUTS: [usize; 4] = [8, 13, 18, 23];

/// How wide a title may be when it does not go to a terminal.
const WIDE: usize = 120;

/// For each id the beginning that names it alone among all of them.
#[must_use]
pub fn short_ids<'a>(ids: &[&'a str]) -> Vec<&'a str> {
    let id = |at: usize| ids.get(at).copied().unwrap_or_default();
    let order = tau_core::order::places(ids.len(), &mut |a, b| id(a).cmp(id(b)));
    let mut short = vec![""; ids.len()];
    for (place, at) in order.iter().enumerate() {
        let neighbours = [place.checked_sub(1), Some(place + 1)].into_iter().flatten();
        let others = neighbours.filter_map(|place| order.get(place));
        let needed = others.map(|other| common(id(*at), id(*other)) + 1).max().unwrap_or(0).max(SHORT);
        if let Some(slot) = short.get_mut(*at) {
            *slot = beginning(id(*at), needed);
        }
    }
    short
}

fn common(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

fn beginning(id: &str, len: usize) -> &str {
    let is_uuid =
        id.len() == 36 && id.bytes().enumerate().all(|(at, b)| (b == b'-') == UUID_CUTS.contains(&at));
    let len = if is_uuid { UUID_CUTS.into_iter().find(|cut| *cut >= len).unwrap_or(id.len()) } else { len };
    id.get(..id.ceil_char_boundary(len.min(id.len()))).unwrap_or(id)
}

/// `now`, `5 min ago`, `3 h ago`, `2 d ago`, then the date.
#[must_use]
pub fn ago(then: Wall, now: Wall) -> String {
    let minutes = (now.0 - then.0).div_euclid(60_000);
    match minutes {
        0 => "now".into(),
        1..60 => format!("{minutes} min ago"),
        60..1440 => format!("{} h ago", minutes / 60),
        1440..43_200 => format!("{} d ago", minutes / 1440),
        _ => then.to_iso().split('T').next().unwrap_or_default().to_owned(),
    }
}

/// The name, else the first message in quotes; one harmless line.
#[must_use]
pub fn title(found: &Found) -> String {
    match (&found.info.name, &found.info.first_message) {
        (Some(name), _) => one_line(name),
        (None, Some(text)) => format!("\"{}\"", one_line(text)),
        (None, None) => "(nothing said yet)".into(),
    }
}

/// How a table looks.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// Wall-clock time.
    pub now: Wall,
    /// Columns of the terminal; `None` = no terminal.
    pub width: Option<usize>,
    /// Home folder, to shorten directories; `None` = show no directories.
    pub home: Option<&'a str>,
}

/// One session of a table.
pub struct Line<'a> {
    /// What names it: a number or the beginning of its id.
    pub mark: String,
    /// The session.
    pub found: &'a Found,
    /// A second line below it.
    pub excerpt: Option<&'a str>,
}

/// The table, with a line of titles.
#[must_use]
pub fn table(lines: &[Line<'_>], mark: &str, look: &Look<'_>) -> String {
    let cells = |mark: String, changed: String, messages: String, cwd: Option<String>, title: String| {
        let mut row = vec![mark, changed, messages];
        row.extend(cwd);
        row.push(title);
        row
    };
    let directory = look.home.map(|_| "directory".to_owned());
    let mut rows = vec![cells(
        mark.into(),
        "changed".into(),
        "messages".into(),
        directory,
        "name or \"first message\"".into(),
    )];
    for Line { mark, found, .. } in lines {
        let info = &found.info;
        let cwd = look.home.map(|home| one_line(&shorten_home(&info.cwd, home, Style::Posix)));
        rows.push(cells(
            one_line(mark),
            ago(info.modified, look.now),
            info.messages.to_string(),
            cwd,
            cut(&title(found), WIDE),
        ));
    }
    let most = look.width.unwrap_or(usize::MAX);
    let text = columns(&rows, false);
    let mut out = String::with_capacity(text.len() + lines.len() * 8);
    let excerpts = std::iter::once(None).chain(lines.iter().map(|line| line.excerpt));
    for (line, excerpt) in text.lines().zip(excerpts) {
        out.push_str(&cut(line, most));
        out.push('\n');
        if let Some(excerpt) = excerpt {
            out.push_str(&cut(&format!("    {excerpt}"), most));
            out.push('\n');
        }
    }
    out
}

/// Writes a session as the fields of an open object.
pub fn write_fields(w: &mut Writer, found: &Found) {
    let info = &found.info;
    w.field_str("id", &info.id);
    w.field_str("path", &found.path);
    w.field_str("cwd", &info.cwd);
    w.field_opt_str("name", info.name.as_deref());
    w.field_opt_str("created", info.created.map(Wall::to_iso).as_deref());
    w.field_str("modified", &info.modified.to_iso());
    w.field_u64("messages", info.messages);
    w.field_opt_str("firstMessage", info.first_message.as_deref());
    w.field_opt_str("parentSession", info.parent_session.as_deref());
    w.field_u64("size", found.size);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_long_as_they_must_be() {
        let ids = [
            "0198b2f1-aaaa-7000-8000-000000000001",
            "0198b2f1-aaab-7000-8000-000000000002",
            "0198b2f1-aaab-7000-8000-000000000003",
            "0298b2f1-aaab-7000-8000-000000000003",
            "mine",
            "mine-and-more",
            "mine-and-moré",
        ];
        assert_eq!(
            short_ids(&ids),
            ["0198b2f1-aaaa", ids[1], ids[2], "0298b2f1", "mine", "mine-and-more", "mine-and-moré"]
        );
        assert_eq!(short_ids(&["same", "same", ""]), ["same", "same", ""]);
    }

    #[test]
    fn times_are_told_from_now() {
        let now = Wall(1_788_315_987_887);
        for (minutes, text) in [
            (0, "now"),
            (5, "5 min ago"),
            (61, "1 h ago"),
            (1441, "1 d ago"),
            (43_200, "2026-08-03"),
            (-5, "2026-09-02"),
        ] {
            assert_eq!(ago(Wall(now.0 - minutes * 60_000), now), text);
        }
    }

    #[test]
    fn nothing_of_a_file_steers_the_terminal() {
        let mut found = Found { path: "/s.jsonl".into(), ..Found::default() };
        found.info.name = Some("a\u{1b}]0;x\u{7}\n\tb \u{202e}".into());
        found.info.cwd = "/w\u{9b}1m".into();
        let line = Line { mark: "\u{1b}c".into(), found: &found, excerpt: None };
        let look = Look { now: Wall(0), width: Some(40), home: Some("/home/u") };
        let text = table(&[line], "id", &look);
        assert!(text.chars().all(|c| c == '\n' || (!c.is_control() && c != '\u{202e}')), "{text}");
        assert!(text.lines().count() == 2 && text.lines().all(|line| line.chars().count() <= 40), "{text}");
    }
}
