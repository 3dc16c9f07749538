//! The list of skills in the system prompt (spec 50 §9.5).

use alloc::string::String;

use crate::skills::Skill;

/// The section, or `None` when there is nothing to list. `reader` is the tool to load a skill with, as the model
/// knows it; `None` = it has no name of its own.
pub(super) fn section(skills: &[Skill], reader: Option<&str>) -> Option<String> {
    let mut shown = skills.iter().filter(|skill| !skill.disable_model_invocation).peekable();
    shown.peek()?;
    let mut text = String::from(
        "Skills are instructions for certain kinds of tasks. When a task fits a description, load that skill's file",
    );
    if let Some(tool) = reader {
        text.push_str(" with ");
        text.push_str(tool);
    }
    text.push_str(
        " before you start.\nRelative paths in a skill start at the folder of its file; give tools absolute paths.\n\n<available_skills>\n",
    );
    for skill in shown {
        text.push_str("  <skill>\n");
        element(&mut text, "name", &skill.name);
        element(&mut text, "description", &skill.description);
        element(&mut text, "location", &skill.file_path);
        text.push_str("  </skill>\n");
    }
    text.push_str("</available_skills>");
    Some(text)
}

fn element(out: &mut String, name: &str, content: &str) {
    out.push_str("    <");
    out.push_str(name);
    out.push('>');
    let mut rest = content;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        out.push_str(match special.as_bytes().first() {
            Some(b'&') => "&amp;",
            Some(b'<') => "&lt;",
            Some(b'>') => "&gt;",
            Some(b'"') => "&quot;",
            _ => "&apos;",
        });
        rest = special.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
    out.push_str("</");
    out.push_str(name);
    out.push_str(">\n");
}
