//! Assembly of the system prompt: named sections in a fixed order (spec 50 §8.1).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::files::ContextFile;
use super::skills;
use crate::message::Text;
use crate::skills::Skill;
use crate::tools::Tool;

/// What the prompt says about a tool.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolFacts<'a> {
    /// Name.
    pub name: &'a str,
    /// One line for the list; `None` or blank = not listed.
    pub snippet: Option<&'a str>,
    /// Rules for its use.
    pub rules: &'a [String],
    /// Active, but only reachable through another tool.
    pub hidden: bool,
}

impl<'a> From<&'a Tool> for ToolFacts<'a> {
    fn from(tool: &'a Tool) -> Self {
        Self {
            name: &tool.name,
            snippet: tool.prompt_snippet.as_deref(),
            rules: &tool.prompt_rules,
            hidden: false,
        }
    }
}

/// Where Tau's own documentation lies.
#[derive(Clone, Copy, Debug)]
pub struct Docs<'a> {
    /// The README.
    pub readme: &'a str,
    /// Folder of the documentation.
    pub docs: &'a str,
    /// Folder of examples.
    pub examples: &'a str,
}

/// Everything the prompt is made from.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'a> {
    /// Working directory, absolute.
    pub cwd: &'a str,
    /// Replaces the built-in base, unless empty.
    pub custom: Option<&'a str>,
    /// Texts to append.
    pub append: &'a [String],
    /// Active tools, in order of selection.
    pub tools: &'a [ToolFacts<'a>],
    /// More rules, of the host.
    pub rules: &'a [String],
    /// Instruction files, in order.
    pub context_files: &'a [ContextFile],
    /// Skills, in order of registration.
    pub skills: &'a [Skill],
    /// Documentation on disk, if any.
    pub docs: Option<Docs<'a>>,
    /// Sections of the host: replace one of the same name, or go last; empty ones are ignored.
    pub sections: &'a [(String, String)],
}

/// A section: name and text. All but the preamble are framed: `<name>`, LF, content, LF, `</name>`; so sessions
/// store them, and so the prompt is simply all texts with blank lines between.
pub type Section = (String, String);

/// A section name that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSectionName(pub String);

const PREAMBLE: &str = "You are a coding agent inside Tau, a harness that lets you inspect files, run commands and \
change code on the user's machine through tools. Do what the user asks with them, check your work, and report \
what you did.";

const MORE_TOOLS: &str = "Besides these, other tools may be offered to you.";

const SHELL_RULES: [(&str, &str); 3] = [
    ("bash", "List, search and find files with commands in bash (ls, grep, find)."),
    ("powershell", "List, search and find files with commands in powershell (Get-ChildItem, Select-String)."),
    ("both", "List, search and find files with commands in bash or powershell."),
];

const LAST_RULES: [&str; 2] =
    ["Answer briefly and to the point.", "Name the files you talk about by their paths."];

/// The sections, in order.
///
/// # Errors
/// When a section of the host has a name that is not allowed.
pub fn sections(facts: &Facts<'_>) -> Result<Vec<Section>, InvalidSectionName> {
    let mut list: Vec<Section> = Vec::new();
    let mut push = |name: &str, text: String| list.push((name.to_string(), framed(name, &text)));
    match facts.custom.filter(|custom| !custom.is_empty()) {
        Some(custom) => push("preamble", custom.to_string()),
        None => {
            push("preamble", PREAMBLE.to_string());
            push("tools", tool_list(facts.tools));
            push("rules", rule_list(facts));
            push("docs", docs(facts.docs));
        }
    }
    let append: Vec<&str> = facts.append.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    if !append.is_empty() {
        push("addendum", append.join("\n\n"));
    }
    if !facts.context_files.is_empty() {
        push("project_context", project_context(facts.context_files));
    }
    // Only `read` counts as a reader (decision D37).
    if let Some(reader) = facts.tools.iter().find(|tool| tool.name == "read")
        && let Some(text) = skills::section(facts.skills, Some("read").filter(|_| !reader.hidden))
    {
        push("skills", text);
    }
    push("cwd", facts.cwd.replace('\\', "/"));
    for (name, text) in facts.sections {
        if !is_section_name(name) {
            return Err(InvalidSectionName(name.clone()));
        }
        match list.iter_mut().find(|(own, _)| own == name) {
            _ if text.is_empty() => {}
            Some((_, own)) => *own = framed(name, text),
            None => list.push((name.clone(), framed(name, text))),
        }
    }
    Ok(list)
}

fn framed(name: &str, text: &str) -> String {
    if name == "preamble" { text.to_string() } else { format!("<{name}>\n{text}\n</{name}>") }
}

/// The prompt as one text.
#[must_use]
pub fn join(sections: &[Section]) -> String {
    let texts: Vec<&str> = sections.iter().map(|(_, text)| text.as_str()).collect();
    texts.join("\n\n")
}

/// What changed between two prompts: new text, or `None` for a section that is gone. Empty = nothing.
#[must_use]
pub fn patch(previous: &[(String, Text)], current: &[Section]) -> Vec<(String, Option<Text>)> {
    let before = |name: &str| previous.iter().find(|(own, _)| own == name).map(|(_, text)| text.as_str());
    let changed = current.iter().filter(|(name, text)| before(name) != Some(text));
    let gone = previous.iter().filter(|(name, _)| !current.iter().any(|(own, _)| own == name));
    let changed = changed.map(|(name, text)| (name.clone(), Some(Text::from(text.as_str()))));
    changed.chain(gone.map(|(name, _)| (name.clone(), None))).collect()
}

fn is_section_name(name: &str) -> bool {
    let tail = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    name != "preamble" && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(tail)
}

fn visible<'a>(tools: &'a [ToolFacts<'a>]) -> impl Iterator<Item = &'a ToolFacts<'a>> {
    tools.iter().filter(|tool| !tool.hidden)
}

fn tool_list(tools: &[ToolFacts<'_>]) -> String {
    let mut out = String::new();
    for tool in visible(tools) {
        let snippet: Vec<&str> = tool.snippet.unwrap_or_default().split_whitespace().collect();
        if !snippet.is_empty() {
            out.push_str(&format!("- {}: {}\n", tool.name, snippet.join(" ")));
        }
    }
    if out.is_empty() {
        out.push_str("(none)\n");
    }
    out + "\n" + MORE_TOOLS
}

fn rule_list(facts: &Facts<'_>) -> String {
    let of_tools = visible(facts.tools).flat_map(|tool| tool.rules.iter());
    let given = of_tools.chain(facts.rules).map(|rule| rule.trim()).filter(|rule| !rule.is_empty());
    let mut rules: Vec<&str> = Vec::new();
    for rule in shell_rule(facts.tools).into_iter().chain(given).chain(LAST_RULES) {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    format!("- {}", rules.join("\n- "))
}

/// Without tools for it, the shell lists and searches.
fn shell_rule(tools: &[ToolFacts<'_>]) -> Option<&'static str> {
    let active = |name: &str| visible(tools).any(|tool| tool.name == name);
    if ["grep", "find", "ls"].into_iter().any(active) {
        return None;
    }
    let wanted = match (active("bash"), active("powershell")) {
        (true, true) => "both",
        (true, false) => "bash",
        (false, true) => "powershell",
        (false, false) => return None,
    };
    SHELL_RULES.iter().find(|(shell, _)| *shell == wanted).map(|(_, rule)| *rule)
}

fn docs(docs: Option<Docs<'_>>) -> String {
    let Some(Docs { readme, docs, examples }) = docs else {
        return "Only when the user asks about Tau itself: `tau --help` lists its options. Its settings are in \
                settings.json, models and providers in models.json, keys in auth.json, all in the agent folder \
                (~/.pi/agent, or $PI_CODING_AGENT_DIR)."
            .to_string();
    };
    format!(
        "Only when the user asks about Tau itself (options, settings, models, providers, packages, skills, prompt \
         templates, themes, keys, embedding, environment variables):\n\
         - overview: {readme}\n- documentation: {docs}\n- examples: {examples}\n\
         Paths like docs/... and examples/... in these texts start there, not in the working directory. Read the \
         file on the topic to its end and follow its links before you change anything."
    )
}

fn project_context(files: &[ContextFile]) -> String {
    let mut out = String::from("Instructions for this user and project, from general to specific:");
    for file in files {
        out.push_str(&format!(
            "\n\n<project_instructions path=\"{}\">\n{}\n</project_instructions>",
            file.path, file.content
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_is_small() {
        let tools = ["read", "bash", "edit", "write"].map(|name| ToolFacts { name, ..ToolFacts::default() });
        let prompt = join(&sections(&Facts { cwd: "/p", tools: &tools, ..Facts::default() }).unwrap());
        assert!(prompt.len() < 1500, "{}", prompt.len());
        assert!(prompt.ends_with("<cwd>\n/p\n</cwd>"));
    }

    #[test]
    fn both_shells_have_one_rule() {
        let tools = ["bash", "powershell"].map(|name| ToolFacts { name, ..ToolFacts::default() });
        assert_eq!(shell_rule(&tools), Some(SHELL_RULES[2].1));
    }
}
