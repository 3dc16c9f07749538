//! Front matter of Markdown files: YAML between two lines of dashes (spec 50 §9.3).

use alloc::borrow::Cow;
use alloc::string::String;

use super::yaml;
use crate::json::{Map, Value};
use crate::settings::jsonc::without_bom;

pub use super::yaml::YamlFault;

/// A file, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The front matter: usually an object, an empty one if there is none.
    pub front: Value,
    /// The rest: trimmed if there is front matter, else the whole text.
    pub body: String,
}

/// Takes a file apart. Line ends become LF.
///
/// # Errors
/// When there is front matter that is not YAML.
pub fn parse(text: &str) -> Result<Document, YamlFault> {
    let text = with_lf(without_bom(text));
    let Some((yaml, body)) = split(&text) else {
        return Ok(Document { front: Value::Object(Map::new()), body: text.into_owned() });
    };
    let front = match yaml::parse(yaml)? {
        Value::Null => Value::Object(Map::new()),
        front => front,
    };
    Ok(Document { front, body: body.trim().into() })
}

/// YAML and body; `None` = no front matter. The lines of dashes need not end with the dashes: what follows the
/// opening one is YAML, what follows the closing one is body.
fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?;
    let end = rest.find("\n---")?;
    let (yaml, body) = rest.split_at_checked(end)?;
    // One character after the dashes belongs to the opening.
    let mut yaml = yaml.chars();
    yaml.next();
    Some((yaml.as_str(), body.strip_prefix("\n---")?))
}

fn with_lf(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}
