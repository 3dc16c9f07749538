//! Unpaired surrogate escapes in JSON text, which `serde_json` refuses (architecture §5.3, bug case 30).

use alloc::borrow::Cow;
use alloc::string::String;

use memchr::{memchr, memmem};

/// JSON text without unpaired `\uD800`–`\uDFFF` escapes: they are dropped, pairs stay. Borrows when there is none.
///
/// Meant for JSON that goes to `serde_json`; [`crate::json::parse`] needs no such pass.
#[must_use]
pub fn drop_unpaired(json: &str) -> Cow<'_, str> {
    if memmem::find_iter(json.as_bytes(), "\\u").all(|at| !is_surrogate(json, at)) {
        return Cow::Borrowed(json);
    }
    let bytes = json.as_bytes();
    let mut out = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        let here = at + found;
        match (unit(json, here), unit(json, here + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => at = here + 12,
            (Some(0xd800..=0xdfff), _) => {
                out.push_str(json.get(copied..here).unwrap_or_default());
                at = here + 6;
                copied = at;
            }
            // Some other escape: its second byte may be a backslash that starts nothing.
            _ => at = here + 2,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    out.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

fn is_surrogate(json: &str, at: usize) -> bool {
    matches!(unit(json, at), Some(0xd800..=0xdfff))
}

/// The unit of a `\uXXXX` escape at `at`.
fn unit(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..)?.strip_prefix("\\u")?.get(..4)?;
    if digits.starts_with('+') { None } else { u32::from_str_radix(digits, 16).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_parser_of_our_own() {
        for json in [
            r#""plain \n \\u0041""#,
            r#""a\ud83db""#,
            r#""\\ud83d""#,
            r#""\\\ud83d\\""#,
            r#""\ud83d\ud83d\ude00\ude00""#,
            r#"{"\ud800":"\uDFFF\u00e9\uD83D\uDE00"}"#,
            r#""x\ud83d\n""#,
            r#""\u0041\u+123""#,
        ] {
            let fixed = drop_unpaired(json);
            let ours = crate::json::parse(json).ok();
            let theirs = serde_json::from_str::<serde_json::Value>(&fixed).ok();
            assert_eq!(ours, theirs, "{json} -> {fixed}");
            assert_eq!(
                matches!(fixed, Cow::Borrowed(_)),
                serde_json::from_str::<serde_json::Value>(json).ok() == theirs
            );
        }
    }
}
