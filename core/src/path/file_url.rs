//! `file:` URLs.

use alloc::string::String;
use alloc::vec::Vec;

use super::{PathError, Style, drive};

/// The path that a URL beginning with `file://` names. Query and fragment are dropped.
pub(super) fn to_path(url: &str, style: Style) -> Result<String, PathError> {
    let rest = url.strip_prefix("file://").unwrap_or(url);
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) =
        rest.split_at_checked(rest.find(['/', '\\']).unwrap_or(rest.len())).unwrap_or((rest, ""));
    let local = host.is_empty() || host.eq_ignore_ascii_case("localhost");
    let path = decode(&path.replace('\\', "/"), style)?;
    match style {
        Style::Posix if !local => Err(PathError::Host),
        Style::Posix if path.is_empty() => Ok("/".into()),
        Style::Posix => Ok(path),
        Style::Windows => {
            let path = path.replace('/', "\\");
            if !local {
                return Ok(alloc::format!("\\\\{host}{path}"));
            }
            let inner = path.strip_prefix('\\').unwrap_or(&path);
            drive(inner).map(|_| inner.into()).ok_or(PathError::UrlPath)
        }
    }
}

fn decode(path: &str, style: Style) -> Result<String, PathError> {
    let mut out: Vec<u8> = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let [high, low, tail @ ..] = tail else { return Err(PathError::Escape) };
        let digit = |c: u8| char::from(c).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let (Some(high), Some(low)) = (digit(*high), digit(*low)) else { return Err(PathError::Escape) };
        let decoded = high << 4 | low;
        if decoded == b'/' || (decoded == b'\\' && style == Style::Windows) {
            return Err(PathError::UrlPath);
        }
        out.push(decoded);
        rest = tail;
    }
    String::from_utf8(out).map_err(|_| PathError::Escape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        for (url, style, expected) in [
            ("file://", Style::Posix, Ok("/")),
            ("file:///a\\b", Style::Posix, Ok("/a/b")),
            ("file:///a%", Style::Posix, Err(PathError::Escape)),
            ("file:///a%ff", Style::Posix, Err(PathError::Escape)),
            ("file:///C:/a%20b", Style::Windows, Ok("C:\\a b")),
            ("file://server/share/x", Style::Windows, Ok("\\\\server\\share\\x")),
            ("file:///a", Style::Windows, Err(PathError::UrlPath)),
        ] {
            assert_eq!(to_path(url, style).as_deref().map_err(|e| *e), expected, "{url}");
        }
    }
}
