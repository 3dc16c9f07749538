//! Reads an exported page as strictly as it was written: everything that is not known is wrong.

use std::collections::{BTreeMap, BTreeSet};

/// Elements of a page, and whether they have content.
const ELEMENTS: &[(&str, bool)] = &[
    ("html", true),
    ("head", true),
    ("body", true),
    ("meta", false),
    ("link", false),
    ("title", true),
    ("style", true),
    ("script", true),
    ("input", false),
    ("header", true),
    ("label", true),
    ("button", true),
    ("select", true),
    ("option", true),
    ("nav", true),
    ("main", true),
    ("article", true),
    ("footer", true),
    ("details", true),
    ("summary", true),
    ("dl", true),
    ("dt", true),
    ("dd", true),
    ("div", true),
    ("span", true),
    ("p", true),
    ("pre", true),
    ("code", true),
    ("time", true),
    ("a", true),
    ("img", false),
    ("b", true),
    ("i", true),
    ("small", true),
    ("em", true),
    ("strong", true),
    ("del", true),
    ("h1", true),
    ("h2", true),
    ("h3", true),
    ("h4", true),
    ("h5", true),
    ("h6", true),
    ("ul", true),
    ("ol", true),
    ("li", true),
    ("blockquote", true),
    ("hr", false),
    ("table", true),
    // Browsers add it.
    ("tbody", true),
    ("tr", true),
    ("th", true),
    ("td", true),
];

/// Attributes of a page. None of them runs anything.
const ATTRIBUTES: &[&str] = &[
    "class",
    "id",
    "href",
    "title",
    "datetime",
    "src",
    "alt",
    "data-lang",
    "start",
    "type",
    "value",
    "aria-label",
    "for",
    "hidden",
    "open",
    "name",
    "content",
    "http-equiv",
    "charset",
    "lang",
    "rel",
];

/// What a page holds.
#[derive(Debug, Default)]
pub struct Page {
    /// Its text, elements left away, and the attributes that people see.
    pub text: String,
    /// Number of each element.
    pub count: BTreeMap<String, usize>,
    /// Addresses of links.
    pub links: Vec<String>,
    /// Ids of elements.
    pub ids: BTreeSet<String>,
    /// Contents of scripts.
    pub scripts: Vec<String>,
}

/// Reads a whole page, or a part of one.
///
/// # Errors
/// The first thing that does not belong into a page, with what stands there.
pub fn read(html: &str) -> Result<Page, String> {
    let mut page = Page::default();
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html.strip_prefix("<!DOCTYPE html>\n").unwrap_or(html);
    loop {
        let (plain, markup) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
        plain_text(plain, &mut page.text)?;
        if markup.is_empty() {
            break;
        }
        let near = || markup.chars().take(60).collect::<String>();
        if let Some(end) = markup.strip_prefix("</") {
            let (name, after) = end.split_once('>').ok_or_else(near)?;
            if open.pop() != Some(name) {
                return Err(format!("closes what is not open: {}", near()));
            }
            rest = after;
            continue;
        }
        let (name, has_content, after) =
            tag(markup.get(1..).unwrap_or_default(), &mut page).map_err(|e| format!("{e}: {}", near()))?;
        *page.count.entry(name.into()).or_default() += 1;
        rest = after;
        if matches!(name, "script" | "style") {
            let (inside, after) = rest.split_once("</").ok_or_else(near)?;
            rest = after.strip_prefix(name).and_then(|rest| rest.strip_prefix('>')).ok_or_else(near)?;
            if name == "script" {
                page.scripts.push(inside.into());
            }
        } else if has_content {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(page) } else { Err(format!("not closed: {open:?}")) }
}

/// Name, whether it has content, and what follows.
fn tag<'a>(inside: &'a str, page: &mut Page) -> Result<(&'a str, bool, &'a str), String> {
    let end = inside.find(|c: char| !c.is_ascii_alphanumeric()).ok_or("no end")?;
    let (name, mut rest) = inside.split_at(end);
    let (_, has_content) = ELEMENTS.iter().find(|(known, _)| *known == name).ok_or("unknown element")?;
    loop {
        if let Some(after) = rest.strip_prefix('>') {
            return Ok((name, *has_content, after));
        }
        rest = rest.strip_prefix(' ').ok_or("no blank before an attribute")?;
        let end = rest.find(|c: char| !c.is_ascii_lowercase() && c != '-').ok_or("no end of an attribute")?;
        let (attribute, after) = rest.split_at(end);
        if !ATTRIBUTES.contains(&attribute) {
            return Err(format!("attribute {attribute}"));
        }
        let mut value = String::new();
        rest = after;
        if let Some(after) = after.strip_prefix('=') {
            let (raw, after) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').ok_or("no closing quote")?,
                None => after.split_at(after.find([' ', '>']).ok_or("no end of a value")?),
            };
            if raw.contains(['<', '>']) || raw.contains('\'') && attribute != "content" {
                return Err(format!("value of {attribute}"));
            }
            plain_text(raw, &mut value)?;
            rest = after;
        }
        note(name, attribute, value, page)?;
    }
}

fn note(element: &str, attribute: &str, value: String, page: &mut Page) -> Result<(), String> {
    match attribute {
        "href" => {
            let starts: &[&str] =
                if element == "link" { &["data:,"] } else { &["#", "http://", "https://", "mailto:"] };
            let lower = value.to_ascii_lowercase();
            if !starts.iter().any(|start| lower.starts_with(start)) {
                return Err(format!("address {value}"));
            }
            page.links.push(value);
        }
        // That of a time is made by the page, for the place where it is read.
        "title" | "data-lang" if element != "time" => page.text.push_str(&value),
        "src" if element != "img" || !value.starts_with("data:image/") => {
            return Err(format!("source {value}"));
        }
        "id" if !page.ids.insert(value.clone()) => return Err(format!("id {value} twice")),
        _ => {}
    }
    Ok(())
}

fn plain_text(raw: &str, out: &mut String) -> Result<(), String> {
    let hidden = |c: &char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if let Some(c) = raw.chars().find(hidden) {
        return Err(format!("the character {}", c.escape_unicode()));
    }
    let mut parts = raw.split('&');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (name, after) = part.split_once(';').ok_or("& alone")?;
        out.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "#39" => '\'',
            other => return Err(format!("entity {other}")),
        });
        out.push_str(after);
    }
    Ok(())
}
