//! Paths as text: joining, normalising, what people and models write for them (spec 50 §1.3).
//!
//! Nothing here looks at a disk. Whether a spelling exists is for the caller to find out: [`candidates`] lists the
//! spellings in the order in which they should be tried.

mod file_url;
mod spelling;

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use thiserror::Error;

pub use spelling::{argument, candidates, exact_argument, windows_shell_path};

/// Rules of a platform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// `/` separates; `\` and `:` are ordinary characters.
    #[default]
    Posix,
    /// Drives and shares; `\` and `/` separate, `\` is written.
    Windows,
}

/// Why a `file:` URL is no path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// The URL names another machine.
    #[error("a file: URL must not name a host")]
    Host,
    /// The URL holds an encoded separator, or no drive where one is needed.
    #[error("the path of the file: URL is not valid here")]
    UrlPath,
    /// A percent escape is broken.
    #[error("the file: URL has a broken percent escape")]
    Escape,
}

impl Style {
    /// The rules by which an absolute path, such as a working directory, is written.
    #[must_use]
    pub fn of(absolute: &str) -> Self {
        if drive(absolute).is_some() || absolute.starts_with("\\\\") { Self::Windows } else { Self::Posix }
    }

    const fn separator(self) -> &'static str {
        match self {
            Self::Posix => "/",
            Self::Windows => "\\",
        }
    }

    const fn is_separator(self, c: char) -> bool {
        c == '/' || (c == '\\' && matches!(self, Self::Windows))
    }

    /// Splits off the root: `/`, `C:\`, `\\server\share\`, `\`, or nothing. The root is returned in normal form.
    fn root(self, path: &str) -> (Cow<'_, str>, &str) {
        let rest = path.trim_start_matches(|c| self.is_separator(c));
        let slashes = path.len() - rest.len();
        if self == Self::Posix {
            return (Cow::Borrowed(if slashes > 0 { "/" } else { "" }), rest);
        }
        if slashes == 2
            && let Some((server, tail)) = rest.split_once(['/', '\\'])
        {
            let tail = tail.trim_start_matches(['/', '\\']);
            let (share, tail) = tail.split_once(['/', '\\']).unwrap_or((tail, ""));
            if !share.is_empty() {
                return (Cow::Owned(format!("\\\\{server}\\{share}\\")), tail);
            }
        }
        match drive(path) {
            Some(letter) => {
                let tail = path.get(2..).unwrap_or_default();
                let inner = tail.trim_start_matches(['/', '\\']);
                let rooted = if inner.len() < tail.len() { "\\" } else { "" };
                (Cow::Owned(format!("{letter}:{rooted}")), inner)
            }
            None => (Cow::Borrowed(if slashes > 0 { "\\" } else { "" }), rest),
        }
    }
}

/// The drive letter at the start of a Windows path.
fn drive(path: &str) -> Option<char> {
    let mut chars = path.chars();
    chars.next().filter(|letter| letter.is_ascii_alphabetic() && chars.next() == Some(':'))
}

/// Whether a path does not depend on a working directory.
#[must_use]
pub fn is_absolute(path: &str, style: Style) -> bool {
    let (root, _) = style.root(path);
    match style {
        Style::Posix => !root.is_empty(),
        Style::Windows => root.len() > 2 && root.ends_with('\\'),
    }
}

/// The path without `.`, `..` and doubled or trailing separators. Purely lexical: links are not followed.
#[must_use]
pub fn normalize(path: &str, style: Style) -> String {
    let (root, rest) = style.root(path);
    let mut parts: Vec<&str> = Vec::new();
    for part in rest.split(|c| style.is_separator(c)) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if !root.is_empty() => {}
            part => parts.push(part),
        }
    }
    let joined = parts.join(style.separator());
    if root.is_empty() && joined.is_empty() { ".".into() } else { format!("{root}{joined}") }
}

/// `path` as seen from `base`, normalised. An absolute `path` stands for itself, an empty one for `base`.
#[must_use]
pub fn join(base: &str, path: &str, style: Style) -> String {
    if is_absolute(path, style) {
        return normalize(path, style);
    }
    if style == Style::Windows {
        let (root, rest) = style.root(path);
        let (base_root, _) = style.root(base);
        if root == "\\" {
            return normalize(&format!("{base_root}{rest}"), style);
        }
        if let Some(letter) = drive(&root) {
            // `C:x` is relative to the working directory of that drive; only that of `base` is known.
            let same = drive(&base_root).is_some_and(|other| other.eq_ignore_ascii_case(&letter));
            let base = if same { base.into() } else { format!("{letter}:") };
            return normalize(&format!("{base}\\{rest}"), style);
        }
    }
    normalize(&format!("{base}{}{path}", style.separator()), style)
}

/// Expands `~` and `file:` URLs, nothing else: no `~user`, no variables, no patterns, no trimming.
///
/// # Errors
/// When a `file:` URL is no path here.
pub fn expand(path: &str, home: &str, style: Style) -> Result<String, PathError> {
    if let Some(rest) = path.strip_prefix('~') {
        if rest.is_empty() {
            return Ok(home.into());
        }
        if rest.starts_with(|c| style.is_separator(c)) {
            let end = rest.len() > 1 && rest.ends_with(|c| style.is_separator(c));
            let trailing = if end { style.separator() } else { "" };
            return Ok(join(home, rest.get(1..).unwrap_or_default(), style) + trailing);
        }
    }
    if path.starts_with("file://") {
        return file_url::to_path(path, style);
    }
    Ok(path.into())
}

/// The absolute, normalised form of a configured path: [`expand`], then [`join`] to the working directory, which
/// may itself need expanding.
///
/// # Errors
/// When a `file:` URL is no path here.
pub fn resolve(path: &str, cwd: &str, home: &str, style: Style) -> Result<String, PathError> {
    let path = expand(path, home, style)?;
    if is_absolute(&path, style) {
        return Ok(normalize(&path, style));
    }
    Ok(join(&expand(cwd, home, style)?, &path, style))
}

/// Whether `child` is `parent` or inside it; whole components count, on Windows without case.
#[must_use]
pub fn is_within(parent: &str, child: &str, style: Style) -> bool {
    relative(parent, child, style).is_some()
}

/// `child` relative to `parent`, empty when they are the same; `None` when it is outside.
#[must_use]
pub fn relative(parent: &str, child: &str, style: Style) -> Option<String> {
    let (parent, child) = (normalize(parent, style), normalize(child, style));
    let head = child.get(..parent.len())?;
    let same = match style {
        Style::Posix => head == parent,
        Style::Windows => head.to_lowercase() == parent.to_lowercase(),
    };
    let rest = child.get(parent.len()..).filter(|_| same)?;
    let separator = style.separator();
    if rest.is_empty() {
        return Some(String::new());
    }
    let rest = if parent.ends_with(separator) { rest } else { rest.strip_prefix(separator)? };
    Some(rest.into())
}

/// A path for people: relative to the working directory when inside it (`.` for itself), else absolute; always
/// with `/`.
#[must_use]
pub fn display(path: &str, cwd: &str, style: Style) -> String {
    let shown = match relative(cwd, path, style) {
        Some(inner) if inner.is_empty() => ".".into(),
        Some(inner) => inner,
        None => normalize(path, style),
    };
    forward_slashes(&shown, style).into_owned()
}

/// The path with `/` on Windows too, so that it survives a POSIX shell.
#[must_use]
pub fn forward_slashes(path: &str, style: Style) -> Cow<'_, str> {
    match style {
        Style::Windows if path.contains('\\') => Cow::Owned(path.replace('\\', "/")),
        _ => Cow::Borrowed(path),
    }
}

/// A path with the home directory written as `~`.
#[must_use]
pub fn shorten_home(path: &str, home: &str, style: Style) -> String {
    match relative(home, path, style).filter(|_| !home.is_empty()) {
        Some(inner) if inner.is_empty() => "~".into(),
        Some(inner) => format!("~{}{inner}", style.separator()),
        None => path.into(),
    }
}

/// A name inside a folder that is absolute and normalised, such as what a listing gives: nothing is left to normalise.
#[must_use]
pub fn child(folder: &str, name: &str, style: Style) -> String {
    let separator = if folder.ends_with(style.separator()) { "" } else { style.separator() };
    [folder, separator, name].concat()
}

/// The folder that holds a path; a root holds itself.
#[must_use]
pub fn parent(path: &str, style: Style) -> String {
    join(path, "..", style)
}

/// The last name of a path; empty for a root.
#[must_use]
pub fn file_name(path: &str, style: Style) -> String {
    let path = normalize(path, style);
    let (_, rest) = style.root(&path);
    rest.rsplit(|c| style.is_separator(c)).next().unwrap_or_default().into()
}

/// Name of the folder below `sessions/` for a working directory that is absolute and normalised (spec 60 §1.1):
/// the leading separator is dropped, every other one and every colon becomes `-`. Not injective.
#[must_use]
pub fn session_folder(cwd: &str) -> String {
    let inner = cwd.strip_prefix(['/', '\\']).unwrap_or(cwd);
    format!("--{}--", inner.replace(['/', '\\', ':'], "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_what_joining_gives() {
        for (folder, style) in [
            ("/", Style::Posix),
            ("/a b", Style::Posix),
            ("C:\\", Style::Windows),
            ("C:\\a", Style::Windows),
            ("\\\\s\\h\\", Style::Windows),
        ] {
            assert_eq!(child(folder, "SKILL.md", style), join(folder, "SKILL.md", style), "{folder}");
        }
    }

    #[test]
    fn windows_forms() {
        let w = Style::Windows;
        for (path, expected) in [
            ("C:\\a\\.\\b\\..\\c\\", "C:\\a\\c"),
            ("C:/a//b", "C:\\a\\b"),
            ("c:", "c:"),
            ("C:\\..", "C:\\"),
            ("\\\\server\\share\\a\\..\\..", "\\\\server\\share\\"),
            ("//server/share/a", "\\\\server\\share\\a"),
            ("\\a", "\\a"),
            ("..\\a", "..\\a"),
        ] {
            assert_eq!(normalize(path, w), expected, "{path}");
        }
        for (base, path, expected) in [
            ("C:\\p", "x", "C:\\p\\x"),
            ("C:\\p", "\\x", "C:\\x"),
            ("C:\\p", "c:x", "C:\\p\\x"),
            ("C:\\p", "D:x", "D:\\x"),
            ("C:\\p", "D:\\x", "D:\\x"),
        ] {
            assert_eq!(join(base, path, w), expected, "{base} {path}");
        }
        assert!(is_within("C:\\Users", "c:\\users\\x", w));
        assert_eq!(display("C:\\p\\a\\b", "c:\\P", w), "a/b");
        assert_eq!(expand("~\\x", "C:\\Users\\u", w).unwrap(), "C:\\Users\\u\\x");
        assert_eq!(forward_slashes("\\\\server\\share\\p", w), "//server/share/p");
    }

    #[test]
    fn posix_forms() {
        let p = Style::Posix;
        for (path, expected) in
            [("", "."), ("a/..", "."), ("../../a", "../../a"), ("/..", "/"), ("//a", "/a"), ("./x/", "x")]
        {
            assert_eq!(normalize(path, p), expected, "{path}");
        }
        assert_eq!(relative("/", "/x/y", p).unwrap(), "x/y");
        assert_eq!(shorten_home("/home/u/a", "/home/u", p), "~/a");
        assert_eq!(shorten_home("/home/user", "/home/u", p), "/home/user");
        assert_eq!((parent("/a/b", p).as_str(), parent("/", p).as_str()), ("/a", "/"));
        assert_eq!((file_name("/a/b/", p).as_str(), file_name("/", p).as_str()), ("b", ""));
        assert_eq!(file_name("C:\\a\\b", Style::Windows), "b");
        assert!(!is_within("/é", "/è", p));
        assert_eq!(
            (Style::of("/a"), Style::of("C:\\a"), Style::of("\\\\s\\x")),
            (p, Style::Windows, Style::Windows)
        );
    }
}
