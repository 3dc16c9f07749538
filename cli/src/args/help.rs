//! The texts of `--help` and `--version`.

use std::fmt::Write as _;

use tau_core::settings::keys::KEYS;

use super::options::{self, Opt};

/// `X.Y.Z`; adapters read it as a semantic version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The help text; lists every option.
#[must_use]
pub fn text() -> String {
    let mut out = String::from(
        "tau: a coding agent\n\n\
         tau [options] [@file …] [prompt …]\n\
         tau config …    settings and trusted projects; `tau config --help` tells more\n\
         tau auth …      keys and sign-ins; `tau auth --help` tells more\n\
         tau acp …       the agent of an editor (Agent Client Protocol)\n\
         tau replay …    a run that was recorded, again; `tau replay --help` tells more\n\
         tau models …    servers on this machine and newer lists; `tau models --help` tells more\n\n\
         Prompts run one after another in one session. @file puts a file, or shows an image, before the first\n\
         prompt; so does text piped into stdin. After -- nothing is an option.\n\n\
         tau sessions list|show|search|delete …    what is stored; `tau sessions --help` tells more\n",
    );
    for (title, group) in options::GROUPS {
        let _ = writeln!(out, "\n{title}:");
        for opt in *group {
            option(&mut out, opt);
        }
    }
    out.push_str(
        "\nFiles: ~/.pi/agent (or $PI_CODING_AGENT_DIR) holds settings.json, models.json, auth.json and sessions.\n\
         Keys come from --api-key, auth.json or the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY …).\n\
         Without any key, `--model demo/tour` shows what a run looks like.\n\n\
         Examples:\n  \
         tau -p \"what does this project do?\"\n  \
         git diff | tau -p \"review this change\"\n  \
         tau -p -c @notes.md \"go on with the next point\"\n  \
         tau --mode json \"run the tests and repair what fails\"\n",
    );
    out
}

/// The help text of `tau config`.
#[must_use]
pub fn config() -> String {
    let mut out = String::from(
        "tau config get NAME            what counts\n\
         tau config set NAME VALUE …    change a setting; several values make a list\n\
         tau config unset NAME          back to the default\n\
         tau config list                everything that counts, and where it comes from\n\
         tau config trust               whether the files of this project count\n\
         tau config trust yes|no        decide it; parent: for all projects beside it; forget: ask again\n\n\
         --project, -l                  the file of the project, .pi/settings.json\n\
         --json                         for programs\n\
         --approve, --no-approve        whether the files of the project count, this time\n\n\
         Settings:\n",
    );
    for key in KEYS.iter().filter(|key| key.used) {
        let _ = writeln!(out, "  {}: {}\n      {}", key.name, key.kind.describe(), key.meaning);
    }
    out.push_str("\nExample: tau config set retry.maxRetries 5\n");
    out
}

/// One line of the list; a left column too wide for its place gets a line of its own.
fn option(out: &mut String, opt: &Opt) {
    const LEFT: usize = 34;
    let short = opt.short.map_or_else(String::new, |short| format!(", {short}"));
    let value = opt.value.map_or_else(String::new, |value| format!(" {value}"));
    let left = format!("  {}{short}{value}", opt.long);
    if left.len() >= LEFT {
        let _ = writeln!(out, "{left}\n{:LEFT$}{}", "", opt.help);
    } else {
        let _ = writeln!(out, "{left:LEFT$}{}", opt.help);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_option_is_listed_and_lines_fit() {
        let text = super::text();
        for opt in super::options::all() {
            assert!(text.contains(&format!("  {}", opt.long)), "{}", opt.long);
            assert!(opt.short.is_none_or(|short| text.contains(&format!(", {short}"))), "{}", opt.long);
        }
        for text in [text, super::config()] {
            assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
        }
    }
}
