//! What a path argument may mean: the exact name first, then what models and file systems make of it (spec 50 §1.3,
//! decision D34).

use alloc::string::String;
use alloc::vec::Vec;

use super::{PathError, Style, resolve};
use crate::text::normal::nfd;

/// The path an argument names after the usual reading: odd blanks are blanks, one leading `@` is a mark, on
/// Windows the paths of POSIX shells are known.
///
/// # Errors
/// When a `file:` URL is no path here.
pub fn argument(given: &str, cwd: &str, home: &str, style: Style) -> Result<String, PathError> {
    let plain = plain_blanks(given);
    exact_argument(&plain, cwd, home, style)
}

/// The absolute spellings to try for a file that is read, best first, without repeats: exactly as given, without
/// the `@`, after the usual reading ([`argument`]), then the spellings that file systems give a name that was typed
/// plainly.
///
/// # Errors
/// When a `file:` URL is no path here.
pub fn candidates(given: &str, cwd: &str, home: &str, style: Style) -> Result<Vec<String>, PathError> {
    let mut list = Vec::new();
    let mut add = |path: String| {
        if !list.contains(&path) {
            list.push(path);
        }
    };
    if given.starts_with('@') {
        // A name that begins with `@` may well exist; one that is no path in this reading is no obstacle.
        if let Ok(exact) = resolve(given, cwd, home, style) {
            add(exact);
        }
    }
    add(exact_argument(given, cwd, home, style)?);
    let plain = argument(given, cwd, home, style)?;
    add(plain.clone());
    add(narrow_before_am_pm(&plain));
    let decomposed = nfd(&plain);
    add(decomposed.clone());
    add(plain.replace('\'', "\u{2019}"));
    add(decomposed.replace('\'', "\u{2019}"));
    Ok(list)
}

/// The path an argument names, letter by letter but for one leading `@`: where a file is written.
///
/// # Errors
/// When a `file:` URL is no path here.
pub fn exact_argument(given: &str, cwd: &str, home: &str, style: Style) -> Result<String, PathError> {
    let path = given.strip_prefix('@').unwrap_or(given);
    match style {
        Style::Posix => resolve(path, cwd, home, style),
        Style::Windows => resolve(&windows_shell_path(path), cwd, home, style),
    }
}

/// Blanks that only look different become blanks.
fn plain_blanks(text: &str) -> String {
    let odd = |c| matches!(c, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}');
    text.chars().map(|c| if odd(c) { ' ' } else { c }).collect()
}

/// ` AM.` and ` PM.` as the screenshot names of macOS have them: with a narrow no-break space.
fn narrow_before_am_pm(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(c) = rest.chars().next() {
        let mark = |rest: &str| {
            let [b' ', half, m, b'.'] = rest.as_bytes().get(..4)? else { return None };
            (matches!(half, b'a' | b'A' | b'p' | b'P') && matches!(m, b'm' | b'M')).then_some(())
        };
        out.push(if mark(rest).is_some() { '\u{202f}' } else { c });
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    out
}

/// `/c/x`, `/mnt/c/x` and `/cygdrive/c/x` as `C:\x`; anything else unchanged. For hosts that run Windows.
#[must_use]
pub fn windows_shell_path(path: &str) -> String {
    let unchanged = || path.into();
    if path.contains('\\') || path.starts_with("//") {
        return unchanged();
    }
    let Some(inner) = path.strip_prefix('/') else { return unchanged() };
    let inner = inner.strip_prefix("mnt/").or_else(|| inner.strip_prefix("cygdrive/")).unwrap_or(inner);
    let (name, rest) = inner.split_once('/').unwrap_or((inner, ""));
    let mut letters = name.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if letter.is_ascii_alphabetic() => {
            alloc::format!("{}:\\{}", letter.to_ascii_uppercase(), rest.replace('/', "\\"))
        }
        _ => unchanged(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_name_comes_first() {
        let list = |given| candidates(given, "/p", "/h", Style::Posix).unwrap();
        assert_eq!(list("a.txt"), ["/p/a.txt"]);
        assert_eq!(list("@~/a"), ["/p/@~/a", "/h/a"]);
        assert_eq!(list("a\u{a0}b"), ["/p/a\u{a0}b", "/p/a b"]);
        assert_eq!(list("Shot 3.00\u{202f}PM.png"), ["/p/Shot 3.00\u{202f}PM.png", "/p/Shot 3.00 PM.png"]);
        assert_eq!(list("d'é"), ["/p/d'é", "/p/d'e\u{301}", "/p/d\u{2019}é", "/p/d\u{2019}e\u{301}"]);
        assert_eq!(list("@file:///a%20b"), ["/p/@file:/a%20b", "/a b"]);
        assert!(candidates("file://host/a", "/p", "/h", Style::Posix).is_err());
    }
}
