//! What a prompt is made of: its blocks as one text and images (the capabilities promise images and embedded texts).

use tau_core::json::Value;
use tau_core::message::Block;

use super::message::{Params, Refusal};

/// A prompt.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Content {
    pub(super) text: String,
    pub(super) images: Vec<Block>,
}

/// Reads the blocks of `session/prompt`.
///
/// # Errors
/// When there are none, or one is of a kind that was not promised.
pub(super) fn read(params: &Params) -> Result<Content, Refusal> {
    let Some(Value::Array(blocks)) = params.get("prompt") else {
        return Err(Refusal::params("the parameter \"prompt\" must be a list of content blocks"));
    };
    let mut content = Content::default();
    for (at, block) in blocks.iter().enumerate() {
        content.add(block).map_err(|why| Refusal::params(format!("prompt[{at}]: {why}")))?;
    }
    Ok(content)
}

impl Content {
    /// Whether it says nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.images.is_empty() && self.text.trim().is_empty()
    }

    fn add(&mut self, block: &Value) -> Result<(), String> {
        let text = |value: &Value, name: &str| {
            let text = value.get(name).and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| format!("the field \"{name}\" must be text"))
        };
        match block.get("type").and_then(Value::as_str) {
            Some("text") => self.text.push_str(&text(block, "text")?),
            Some("image") => self.images.push(Block::image(text(block, "data")?, text(block, "mimeType")?)),
            Some("resource_link") => {
                let uri = text(block, "uri")?;
                self.apart(&["@", &name_of(&uri)]);
            }
            Some("resource") => {
                let resource = block.get("resource").ok_or("the field \"resource\" is missing")?;
                let uri = text(resource, "uri")?;
                match resource.get("text").and_then(Value::as_str) {
                    Some(body) => {
                        let end = if body.ends_with('\n') { "" } else { "\n" };
                        self.apart(&["<file name=\"", &name_of(&uri), "\">\n", body, end, "</file>\n"]);
                    }
                    None => {
                        let kind = resource.get("mimeType").and_then(Value::as_str).unwrap_or_default();
                        let data = resource.get("blob").and_then(Value::as_str);
                        let image = data.filter(|_| kind.starts_with("image/"));
                        let image = image.ok_or("an embedded resource must hold text or an image")?;
                        self.images.push(Block::image(image, kind));
                        self.apart(&["@", &name_of(&uri)]);
                    }
                }
            }
            Some(kind) => return Err(format!("content of the type \"{kind}\" cannot be taken")),
            None => return Err("the field \"type\" must be text".to_owned()),
        }
        Ok(())
    }

    /// Adds a piece with a blank before it.
    fn apart(&mut self, pieces: &[&str]) {
        if !self.text.is_empty() && !self.text.ends_with(char::is_whitespace) {
            self.text.push(' ');
        }
        self.text.extend(pieces.iter().copied());
    }
}

/// A file by its path, everything else by its address.
fn name_of(uri: &str) -> String {
    let Some(path) = uri.strip_prefix("file://") else { return uri.to_owned() };
    let path = path.strip_prefix("localhost").unwrap_or(path);
    decode(path).unwrap_or_else(|| path.to_owned())
}

/// A path without its percent signs; `None` when they stand for no text.
fn decode(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> Params {
        match tau_core::json::parse(text).unwrap() {
            Value::Object(params) => params,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn blocks_become_text_and_images() {
        let content = read(&params(
            r#"{"prompt":[{"type":"text","text":"See"},
            {"type":"resource_link","uri":"file:///a%20b/c.rs","name":"c"},{"type":"resource_link","uri":"https://x/y","name":"y"},
            {"type":"resource","resource":{"uri":"file:///n.md","text":"T"}},
            {"type":"image","data":"AA==","mimeType":"image/png"},
            {"type":"resource","resource":{"uri":"file:///i.gif","blob":"AQ==","mimeType":"image/gif"}}]}"#,
        ))
        .unwrap();
        let text = "See @/a b/c.rs @https://x/y <file name=\"/n.md\">\nT\n</file>\n@/i.gif";
        let images = vec![Block::image("AA==", "image/png"), Block::image("AQ==", "image/gif")];
        assert_eq!(content, Content { text: text.into(), images });
    }

    #[test]
    fn what_was_not_promised_is_refused() {
        for bad in [
            r#"{}"#,
            r#"{"prompt":[{"type":"audio","data":"","mimeType":""}]}"#,
            r#"{"prompt":[{"type":"text"}]}"#,
            r#"{"prompt":[{"type":"resource","resource":{"uri":"x","blob":"AA=="}}]}"#,
            r#"{"prompt":[7]}"#,
        ] {
            assert_eq!(read(&params(bad)).unwrap_err().code, -32_602, "{bad}");
        }
    }

    #[test]
    fn names_of_resources() {
        assert_eq!(name_of("file://localhost/x"), "/x");
        assert_eq!(name_of("file:///100%"), "/100%");
        assert_eq!(name_of("zed:///agent"), "zed:///agent");
    }
}
