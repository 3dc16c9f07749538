//! The members of an object as texts, for documents of which little is needed.

use alloc::string::String;
use alloc::vec::Vec;

use memchr::memchr2;

use super::parse::{JsonError, parse};

/// Keys and values of one object, in order. Values are not read: they end where their brackets close.
///
/// # Errors
/// Where and why the text is no object.
pub fn members(text: &str) -> Result<Vec<(String, &str)>, JsonError> {
    let mut scan = Scan { text, at: 0 };
    let mut found = Vec::new();
    scan.need(b'{', "expected an object")?;
    if scan.peek() == Some(b'}') {
        scan.at += 1;
        return scan.end(found);
    }
    loop {
        let key = scan.key()?;
        scan.need(b':', "expected a colon")?;
        found.push((key, scan.value()?));
        match scan.peek() {
            Some(b',') => scan.at += 1,
            Some(b'}') => {
                scan.at += 1;
                return scan.end(found);
            }
            _ => return Err(scan.error("expected a comma or the end of the object")),
        }
    }
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    const fn error(&self, reason: &'static str) -> JsonError {
        JsonError { reason, at: self.at }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn peek(&mut self) -> Option<u8> {
        self.at += self.rest().iter().take_while(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t')).count();
        self.rest().first().copied()
    }

    fn need(&mut self, wanted: u8, reason: &'static str) -> Result<(), JsonError> {
        if self.peek() != Some(wanted) {
            return Err(self.error(reason));
        }
        self.at += 1;
        Ok(())
    }

    fn end<T>(&mut self, found: T) -> Result<T, JsonError> {
        if self.peek().is_some() { Err(self.error("text after the object")) } else { Ok(found) }
    }

    fn key(&mut self) -> Result<String, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a key"));
        }
        let start = self.at;
        self.string()?;
        let key = self.text.get(start..self.at).unwrap_or_default();
        match parse(key).map_err(|error| JsonError { at: start + error.at, ..error })? {
            serde_json::Value::String(key) => Ok(key),
            _ => Err(self.error("expected a key")),
        }
    }

    /// Goes behind a string.
    fn string(&mut self) -> Result<(), JsonError> {
        self.at += 1;
        loop {
            let Some(found) = memchr2(b'"', b'\\', self.rest()) else {
                return Err(self.error("a string does not end"));
            };
            let escapes = self.rest().get(found) == Some(&b'\\');
            self.at += found + 1 + usize::from(escapes);
            if !escapes {
                return Ok(());
            }
        }
    }

    fn value(&mut self) -> Result<&'a str, JsonError> {
        self.peek();
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.rest().first() {
                None => return Err(self.error("unexpected end")),
                Some(b'"') => self.string()?,
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(b',' | b'}' | b']') if depth == 0 => break,
                Some(_) => self.at += 1,
            }
        }
        let value = self.text.get(start..self.at).unwrap_or_default().trim_end();
        if value.is_empty() { Err(self.error("expected a value")) } else { Ok(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn values_stay_texts() {
        let text = r#" { "a" : {"b":[1,"]}\""]} ,"\u0063":"x,y", "d": -1.5 , "e":null}  "#;
        let found = members(text).unwrap();
        let found: Vec<(&str, &str)> = found.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        let wanted = [("a", r#"{"b":[1,"]}\""]}"#), ("c", "\"x,y\""), ("d", "-1.5"), ("e", "null")];
        assert_eq!(found, wanted);
        assert_eq!(members("{}").unwrap(), []);
    }

    #[test]
    fn what_is_no_object() {
        for text in [
            "",
            "[]",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":}",
            "{\"a\":1,}",
            "{\"a\":\"x",
            "{} x",
            "{a:1}",
            "{\"a\":{]",
            "{\"a\\",
            "\u{e9}",
            "{\"a\":1]",
        ] {
            assert!(members(text).is_err(), "{text}");
        }
        assert!(members("{\"a\":").unwrap_err().to_string().contains("byte 5"));
    }
}
