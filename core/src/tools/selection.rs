//! Which tools are active (spec 50 §7.3): default list, lists of names and patterns, `+name`/`-name` modifiers.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;

/// Active unless something else is configured, in this order.
pub const DEFAULT_ACTIVE: [&str; 4] = ["read", "bash", "edit", "write"];

/// `+name` and `-name`; `None` for a plain name.
fn modifier(entry: &str) -> Option<(bool, &str)> {
    match entry.split_at_checked(1) {
        Some(("+", name)) => Some((true, name)),
        Some(("-", name)) => Some((false, name)),
        _ => None,
    }
}

/// Applies the modifiers among `entries` in order; plain names are ignored.
#[must_use]
pub fn apply_modifiers(base: &[String], entries: &[String]) -> Vec<String> {
    let mut tools = base.to_vec();
    for (add, name) in entries.iter().filter_map(|entry| modifier(entry)) {
        let present = tools.iter().any(|tool| tool == name);
        match add {
            true if !present && !name.is_empty() => tools.push(name.to_owned()),
            true => {}
            false => tools.retain(|tool| tool != name),
        }
    }
    tools
}

/// Why a list given by flag is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFault {
    /// Names and modifiers are not mixed.
    Mixed,
    /// Modifiers are no patterns.
    PatternModifier,
}

impl ListFault {
    /// The reason, for people.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Mixed => "either plain names or only +name and -name",
            Self::PatternModifier => "+name and -name take no patterns",
        }
    }
}

/// Checks a list given by flag (spec 40 §4.2).
///
/// # Errors
/// When it is not valid.
pub fn check_list(entries: &[String]) -> Result<(), ListFault> {
    let modifiers = entries.iter().filter(|entry| modifier(entry).is_some()).count();
    if modifiers != 0 && modifiers != entries.len() {
        return Err(ListFault::Mixed);
    }
    if modifiers != 0 && entries.iter().any(|entry| entry.contains('*')) {
        return Err(ListFault::PatternModifier);
    }
    Ok(())
}

/// Whether a name equals an entry or matches its `*` pattern as a whole.
#[must_use]
pub fn matches_any(entries: &[String], name: &str) -> bool {
    entries.iter().any(|entry| matches(entry, name))
}

/// `*` stands for any run of characters, everything else for itself.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        let Some((_, after)) = name.split_once(part) else { return false };
        name = after;
    }
    name.ends_with(last)
}

/// The active tools that the `defaultTools` settings of user and project demand.
///
/// A project list of changes only adds to the user's list; any other replaces it. An empty list means no tools.
#[must_use]
pub fn default_tools(user: Option<&[String]>, project: Option<&[String]>) -> Vec<String> {
    let changes_only =
        |list: &[String]| !list.is_empty() && list.iter().all(|entry| modifier(entry).is_some());
    let mut entries: Option<Vec<String>> = user.map(<[String]>::to_vec);
    match project {
        Some(list) if changes_only(list) => entries.get_or_insert_default().extend_from_slice(list),
        Some(list) => entries = Some(list.to_vec()),
        None => {}
    }
    let default = || DEFAULT_ACTIVE.map(String::from).to_vec();
    let Some(entries) = entries else { return default() };
    let base = match changes_only(&entries) {
        true => default(),
        false => entries.iter().filter(|entry| modifier(entry).is_none()).cloned().collect(),
    };
    apply_modifiers(&base, &entries)
}

/// What the command line says about tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFlags {
    /// `--tools`: names and patterns, or changes of the default.
    pub tools: Option<Vec<String>>,
    /// `--exclude-tools`: names and patterns.
    pub exclude: Vec<String>,
    /// `--no-tools`.
    pub none: bool,
    /// `--no-builtin-tools`: none of `defaults`; tools of the host stay.
    pub no_builtin: bool,
}

/// The active tools: `defaults` (see [`default_tools`]) and all tools of the host, as the flags change it.
///
/// `builtin` and `host` are the names that exist; names of the list that do not exist are left out.
#[must_use]
pub fn active_tools(
    defaults: &[String],
    builtin: &[&str],
    host: &[String],
    flags: &ToolFlags,
) -> Vec<String> {
    if flags.none {
        return Vec::new();
    }
    let all = || builtin.iter().copied().filter(|_| !flags.no_builtin).chain(host.iter().map(String::as_str));
    let start: Vec<String> = match flags.no_builtin {
        true => host.to_vec(),
        false => defaults.iter().chain(host).cloned().collect(),
    };
    let wanted = match &flags.tools {
        None => start,
        Some(list) if !list.is_empty() && list.iter().all(|entry| modifier(entry).is_some()) => {
            apply_modifiers(&start, list)
        }
        Some(list) => list
            .iter()
            .flat_map(|entry| all().filter(move |name| matches(entry, name)))
            .map(String::from)
            .collect(),
    };
    let mut active: Vec<String> = Vec::new();
    for name in wanted {
        let exists = all().any(|known| known == name);
        if exists && !matches_any(&flags.exclude, &name) && !active.contains(&name) {
            active.push(name);
        }
    }
    active
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &str) -> Vec<String> {
        list.split_whitespace().map(String::from).collect()
    }

    #[test]
    fn flags() {
        let all = ["read", "bash", "edit", "write", "grep", "find", "ls"];
        let run = |tools: Option<&str>, exclude: &str, no_builtin: bool| {
            let flags =
                ToolFlags { tools: tools.map(names), exclude: names(exclude), none: false, no_builtin };
            active_tools(&names("read bash edit write"), &all, &names("host"), &flags).join(" ")
        };
        assert_eq!(run(None, "", false), "read bash edit write host");
        assert_eq!(run(Some("ls read nope"), "", false), "ls read");
        assert_eq!(run(Some("+grep -bash"), "", false), "read edit write host grep");
        assert_eq!(run(Some("*d"), "", false), "read find");
        assert_eq!(run(None, "*i*", false), "read bash host");
        assert_eq!(run(None, "", true), "host");
        assert_eq!(run(Some(""), "", false), "");
    }
}
