//! Searching sessions by what was said in them.

use tau_core::now::Wall;
use tau_core::session::search::{IsMatch, Query, Search, Subject};
use tau_io_std::sys::search::pattern;

use super::list::{Found, whole};
use crate::visible::one_line;

/// Text shown before and after what was found, bytes.
const AROUND: usize = 40;

/// A session that was found.
pub struct Hit {
    /// The session.
    pub found: Found,
    /// Where the words stand in it, when not in its name or first message.
    pub excerpt: Option<String>,
}

/// Those that fit, best first.
///
/// # Errors
/// When the query is a pattern that makes no sense.
pub fn search(query: &str, among: Vec<Found>) -> Result<Vec<Hit>, String> {
    let query = Query::parse(query);
    let mut fault = None;
    let search = Search::new(&query, |text| match pattern(text) {
        Ok(is_match) => Some(Box::new(is_match) as IsMatch),
        Err(why) => {
            fault = Some(why.to_string());
            None
        }
    });
    if let Some(why) = fault {
        return Err(why);
    }
    if matches!(search, Search::Nothing) {
        return Err("re: needs a pattern behind it".into());
    }
    let mut hits: Vec<((f64, Wall), Hit)> = Vec::new();
    for found in among {
        // Only now the text is needed; one file after the other, so that no two are held at once.
        let text = whole(&found.path).map(|info| info.text).unwrap_or_default();
        let info = &found.info;
        let subject = Subject { id: &info.id, name: info.name.as_deref(), cwd: &info.cwd, text: &text };
        if let Some(score) = search.score(&subject) {
            let modified = info.modified;
            let excerpt = excerpt(&search, &found, &text);
            hits.push(((score, modified), Hit { found, excerpt }));
        }
    }
    tau_core::order::sort(&mut hits, |a, b| Search::order(a.0, b.0));
    Ok(hits.into_iter().map(|(_, hit)| hit).collect())
}

fn excerpt(search: &Search, found: &Found, text: &str) -> Option<String> {
    let title = found.info.name.as_deref().or(found.info.first_message.as_deref());
    if title.is_some_and(|title| search.place(title).is_some()) {
        return None;
    }
    let at = search.place(text)?;
    let (start, end) = (at.saturating_sub(AROUND), at.saturating_add(2 * AROUND).min(text.len()));
    let (start, end) = (text.ceil_char_boundary(start), text.floor_char_boundary(end));
    let part = one_line(text.get(start..end)?);
    let mark = |cut: bool| if cut { "…" } else { "" };
    Some(format!("{}{part}{}", mark(start > 0), mark(end < text.len())))
}
