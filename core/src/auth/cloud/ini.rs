//! The files of AWS: sections of `name = value` lines.

use alloc::string::String;
use alloc::vec::Vec;

/// One file; sections of the same name count as one, later values win.
pub(super) struct Ini<'a>(Vec<(&'a str, &'a str, &'a str)>);

impl<'a> Ini<'a> {
    /// Reads a file. Lines that are nothing, also nested settings, are passed over.
    pub(super) fn parse(text: &'a str) -> Self {
        let (mut section, mut rows) = ("", Vec::new());
        for line in text.trim_start_matches('\u{feff}').lines() {
            // An indented line belongs to the setting above it.
            if line.starts_with([' ', '\t', '#', ';']) {
                continue;
            }
            let line = line.trim_end();
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                section = name.trim();
            } else if let Some((name, value)) = line.split_once('=') {
                let value = value.split(" #").next().unwrap_or_default();
                let value = value.split(" ;").next().unwrap_or_default();
                rows.push((section, name.trim(), value.trim()));
            }
        }
        Self(rows)
    }

    /// Whether a section is there with anything in it.
    pub(super) fn has(&self, section: &str) -> bool {
        self.0.iter().any(|(own, ..)| is_same(own, section))
    }

    /// A value that is not empty.
    pub(super) fn get(&self, section: &str, name: &str) -> Option<String> {
        let mut found = self.0.iter().rev().filter(|(own, ..)| is_same(own, section));
        let value = found.find(|(_, key, _)| key.eq_ignore_ascii_case(name)).map(|(.., value)| *value);
        value.filter(|value| !value.is_empty()).map(String::from)
    }
}

/// Blanks between the words of a name do not count.
fn is_same(own: &str, wanted: &str) -> bool {
    own.split_whitespace().eq(wanted.split_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_values() {
        let ini = Ini::parse(
            "\u{feff}# first\r\nlost = 1\r\n[default]\r\nregion=eu-west-1 # here\r\n; no\r\n\
             [profile  dev]\nAWS_Secret = a=b+/# \n nested = 2\nempty =\n[default]\nregion = us-east-1\n[]\nx\n",
        );
        assert_eq!(ini.get("default", "region").as_deref(), Some("us-east-1"));
        assert_eq!(ini.get("profile dev", "aws_secret").as_deref(), Some("a=b+/#"));
        for (section, name) in
            [("profile dev", "nested"), ("profile dev", "empty"), ("dev", "aws_secret"), ("", "x")]
        {
            assert_eq!(ini.get(section, name), None, "{section} {name}");
        }
        assert!(ini.has("profile dev") && !ini.has("dev"));
    }
}
