//! How a tool call looks to an editor: kind, title, places, input, output, difference.

use std::fs;

use tau_core::json::{Value, Writer};
use tau_core::message::Block;
use tau_core::tools::ToolOutput;

use crate::permission::path_of;
use crate::surroundings::Surroundings;

/// Longest title, characters.
const TITLE: usize = 120;

/// Files up to this size are shown as a whole, before and after, bytes.
const WHOLE: u64 = 512 * 1024;

/// What tools are to an editor, and the argument that says most about a call.
const KINDS: &[(&str, &str, &str)] = &[
    ("read", "read", "path"),
    ("edit", "edit", "path"),
    ("write", "edit", "path"),
    ("bash", "execute", "command"),
    ("grep", "search", "pattern"),
    ("find", "search", "pattern"),
    ("ls", "search", "path"),
];

/// A call.
#[derive(Clone, Copy)]
pub(super) struct CallView<'a> {
    /// Tool name.
    pub(super) name: &'a str,
    /// Its arguments.
    pub(super) args: &'a Value,
    /// Where it runs.
    pub(super) place: &'a Surroundings,
}

/// Part of a file before and after a call.
pub(super) struct Difference {
    path: String,
    old: Option<String>,
    new: String,
}

impl CallView<'_> {
    /// Writes the fields that announce it.
    pub(super) fn announce(self, w: &mut Writer) {
        let known = KINDS.iter().find(|(name, ..)| *name == self.name);
        w.field_str("title", &self.title(known.map(|(_, _, argument)| *argument)));
        w.field_str("kind", known.map_or("other", |(_, kind, _)| *kind));
        if let Some(path) = self.path() {
            w.key("locations");
            w.begin_array();
            w.begin_object();
            w.field_str("path", &path);
            if let Some(line) = self.args.get("offset").and_then(Value::as_u64) {
                w.field_u64("line", line.min(u64::from(u32::MAX)));
            }
            w.end_object();
            w.end_array();
        }
        w.field_value("rawInput", self.args);
    }

    fn title(self, argument: Option<&str>) -> String {
        let said = argument.and_then(|name| self.args.get(name)?.as_str()).map(str::trim).unwrap_or_default();
        let said = said.lines().next().unwrap_or_default();
        let title = match self.name {
            _ if said.is_empty() => self.name.to_owned(),
            "bash" => said.to_owned(),
            name => format!("{name} {said}"),
        };
        match title.char_indices().nth(TITLE) {
            Some((at, _)) => format!("{}…", title.get(..at).unwrap_or_default()),
            None => title,
        }
    }

    /// The absolute path that it names, if it names one.
    pub(super) fn path(self) -> Option<String> {
        path_of(self.name, self.args, self.place)
    }

    /// Whether it changes a file that can be shown before and after.
    pub(super) fn changes_file(self) -> bool {
        matches!(self.name, "write" | "edit")
    }

    /// What is known of the change before it is made.
    pub(super) fn planned(self) -> Vec<Difference> {
        let old = self.path().filter(|_| self.name == "write").and_then(|path| whole(&path));
        self.told(old)
    }

    /// The change as the arguments tell it; `before` is what a file to be written held.
    pub(super) fn told(self, before: Option<String>) -> Vec<Difference> {
        let Some(path) = self.path() else { return Vec::new() };
        let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
        match self.name {
            "write" => {
                let difference = |new| Difference { path, old: before, new };
                text(self.args, "content").map(difference).into_iter().collect()
            }
            "edit" => {
                let edits = self.args.get("edits").and_then(Value::as_array).into_iter().flatten();
                let pair = |edit: &Value| Some((text(edit, "oldText")?, text(edit, "newText")?));
                let difference = |(old, new)| Difference { path: path.clone(), old: Some(old), new };
                edits.filter_map(pair).map(difference).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The change that was made; `before` is the file as it was.
    pub(super) fn made(self, before: Option<String>) -> Vec<Difference> {
        match self.path().filter(|_| self.name == "edit" && before.is_some()) {
            Some(path) => match whole(&path) {
                Some(new) => vec![Difference { path, old: before, new }],
                None => self.told(None),
            },
            None => self.told(before),
        }
    }
}

/// A text file of moderate size.
pub(super) fn whole(path: &str) -> Option<String> {
    let meta = fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > WHOLE {
        return None;
    }
    fs::read_to_string(path).ok()
}

/// Writes what a call is known to change.
pub(super) fn differences(differences: &[Difference], w: &mut Writer) {
    for Difference { path, old, new } in differences {
        w.begin_object();
        w.field_str("type", "diff");
        w.field_str("path", path);
        w.field_opt_str("oldText", old.as_deref());
        w.field_str("newText", new);
        w.end_object();
    }
}

/// Writes blocks as the content of a call. Clients take text for Markdown: what files and commands say is fenced.
fn content(tool: &str, blocks: &[Block], w: &mut Writer) {
    let verbatim = KINDS.iter().any(|(name, kind, _)| *name == tool && *kind != "edit");
    for block in blocks {
        let fenced = block.as_text().filter(|text| verbatim && !text.is_empty()).map(fenced);
        let fenced = fenced.map(Block::text);
        if let Some(write) = writer_of(fenced.as_ref().unwrap_or(block)) {
            w.begin_object();
            w.field_str("type", "content");
            w.key("content");
            write(w);
            w.end_object();
        }
    }
}

/// A text between fences that are longer than any inside.
fn fenced(text: &str) -> String {
    let inside = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(inside.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}")
}

/// How a block is written; kinds that an editor does not show are not.
pub(super) fn writer_of(block: &Block) -> Option<impl FnOnce(&mut Writer)> {
    let (kind, text, data, mime) = match block {
        Block::Text(text) => ("text", text.text.as_str(), "", ""),
        Block::Image(image) => ("image", "", image.data.as_str(), image.mime_type.as_str()),
        Block::Thinking(_) | Block::ToolCall(_) | Block::Other(_) => return None,
    };
    Some(move |w: &mut Writer| {
        w.begin_object();
        w.field_str("type", kind);
        if kind == "text" {
            w.field_str("text", text);
        } else {
            w.field_str("data", data);
            w.field_str("mimeType", mime);
        }
        w.end_object();
    })
}

/// Writes the end of a call.
pub(super) fn ended(
    tool: &str,
    failed: bool,
    blocks: &[Block],
    made: &[Difference],
    details: Option<&Value>,
    w: &mut Writer,
) {
    w.field_str("status", if failed { "failed" } else { "completed" });
    w.key("content");
    w.begin_array();
    if made.is_empty() {
        content(tool, blocks, w);
    } else {
        differences(made, w);
    }
    w.end_array();
    if let Some(details) = details {
        w.field_value("rawOutput", details);
    }
}

/// Writes an intermediate result.
pub(super) fn partial(tool: &str, output: &ToolOutput, w: &mut Writer) {
    w.field_str("status", "in_progress");
    w.key("content");
    w.begin_array();
    content(tool, &output.content, w);
    w.end_array();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_are_longer_than_what_they_hold() {
        assert_eq!(fenced("a"), "```\na\n```");
        assert_eq!(fenced("# a\n"), "```\n# a\n```");
        assert_eq!(fenced("x ```` y ``"), "`````\nx ```` y ``\n`````");
        assert_eq!(fenced("```"), "````\n```\n````");
    }
}
