//! What models read about the built-in tools (spec 50 §7.2 lists the content, the wording is ours).

/// Texts of one tool.
pub(super) struct ToolTexts {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) description: &'static str,
    pub(super) snippet: &'static str,
    pub(super) rules: &'static [&'static str],
    /// JSON Schema of the arguments.
    pub(super) parameters: &'static str,
}

/// Rule of `bash` that is given only while commands see the session's variables.
pub(super) const SESSION_VARIABLES_RULE: &str = "PI_* environment variables inside bash name the current session and model; look there when asked about them.";

pub(super) const READ: ToolTexts = ToolTexts {
    name: "read",
    label: "read",
    description: "Read a file. Text is returned as it is, up to 2000 lines or 50 KB, whichever comes first; for more, \
                  call again with offset and limit until you have what you need. Images (jpg, png, gif, webp, bmp) \
                  are recognised by content and attached.",
    snippet: "Read the contents of a file",
    rules: &["Look into files with read, not with cat or sed."],
    parameters: r#"{"type":"object","required":["path"],"properties":{
        "path":{"type":"string","description":"File to read, relative or absolute"},
        "offset":{"type":"number","description":"First line, counted from 1 (default 1)"},
        "limit":{"type":"number","description":"Most lines to return (default: up to the size limits)"}}}"#,
};

pub(super) const BASH: ToolTexts = ToolTexts {
    name: "bash",
    label: "bash",
    description: "Run a bash command in the working directory and return its stdout and stderr. Of long output the \
                  last 2000 lines or 50 KB are returned, and the rest stays in a temporary file that is named. There \
                  is no terminal and no input. A timeout in seconds is optional.",
    snippet: "Run bash commands (ls, grep, find, builds, tests, git)",
    rules: &[],
    parameters: r#"{"type":"object","required":["command"],"properties":{
        "command":{"type":"string","description":"Command to run"},
        "timeout":{"type":"number","description":"Seconds until it is killed (default: none)"}}}"#,
};

pub(super) const EDIT: ToolTexts = ToolTexts {
    name: "edit",
    label: "edit",
    description: "Change one file by replacing exact text. Each oldText must occur exactly once in the original file, \
                  and the edits of one call must not overlap: all are matched against the original, not one after \
                  another. Merge changes that lie close together into one edit, without long unchanged text in it.",
    snippet: "Replace exact text in a file, several places in one call",
    rules: &[
        "Change existing files with edit, and put all changes of a file into one call.",
        "Each oldText is exact, unique in the original file and short; edits do not overlap, and neighbouring \
         changes are one edit without large unchanged blocks.",
    ],
    parameters: r#"{"type":"object","required":["path","edits"],"properties":{
        "path":{"type":"string","description":"File to change, relative or absolute"},
        "edits":{"type":"array","description":"Replacements, each matched against the original file, not the result of earlier ones",
            "items":{"type":"object","required":["oldText","newText"],"properties":{
                "oldText":{"type":"string","description":"Text to replace: exact, with all whitespace, and unique in the file"},
                "newText":{"type":"string","description":"Text to put there"}}}}}}"#,
};

pub(super) const WRITE: ToolTexts = ToolTexts {
    name: "write",
    label: "write",
    description: "Write a file: creates it, or replaces all of its content. Missing parent folders are created.",
    snippet: "Create a file or replace its content",
    rules: &["Use write only for new files and complete rewrites."],
    parameters: r#"{"type":"object","required":["path","content"],"properties":{
        "path":{"type":"string","description":"File to write, relative or absolute"},
        "content":{"type":"string","description":"The whole content"}}}"#,
};

pub(super) const GREP: ToolTexts = ToolTexts {
    name: "grep",
    label: "grep",
    description: "Search file contents for a regular expression. Returns matching lines with path and line number. \
                  Files named by .gitignore are left out. At most 100 matches or 50 KB; lines are clipped at 500 \
                  characters.",
    snippet: "Search file contents (respects .gitignore)",
    rules: &[],
    parameters: r#"{"type":"object","required":["pattern"],"properties":{
        "pattern":{"type":"string","description":"Regular expression, or plain text with literal"},
        "path":{"type":"string","description":"File or folder to search (default: working directory)"},
        "glob":{"type":"string","description":"Only files matching this glob: with / relative to the searched folder, without / names at any depth; a leading ! excludes"},
        "ignoreCase":{"type":"boolean","description":"Ignore case (default false)"},
        "literal":{"type":"boolean","description":"Take the pattern as plain text (default false)"},
        "context":{"type":"number","description":"Lines shown before and after each match (default 0)"},
        "limit":{"type":"number","description":"Most matches (default 100)"}}}"#,
};

pub(super) const FIND: ToolTexts = ToolTexts {
    name: "find",
    label: "find",
    description: "Find files and folders by glob. Returns paths relative to the searched folder. What .gitignore names \
                  is left out. At most 1000 results or 50 KB.",
    snippet: "Find files by glob (respects .gitignore)",
    rules: &[],
    parameters: r#"{"type":"object","required":["pattern"],"properties":{
        "pattern":{"type":"string","description":"Glob: with / relative to the searched folder (src/**/*.rs), without / names at any depth (*.rs)"},
        "path":{"type":"string","description":"Folder to search (default: working directory)"},
        "limit":{"type":"number","description":"Most results (default 1000)"}}}"#,
};

pub(super) const LS: ToolTexts = ToolTexts {
    name: "ls",
    label: "ls",
    description: "List a folder: names sorted, folders with a trailing /, dotfiles included. At most 500 entries or \
                  50 KB.",
    snippet: "List a folder",
    rules: &[],
    parameters: r#"{"type":"object","properties":{
        "path":{"type":"string","description":"Folder to list (default: working directory)"},
        "limit":{"type":"number","description":"Most entries (default 500)"}}}"#,
};
