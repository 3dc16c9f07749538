//! One command as it came in, and its fields (spec 60 §3.2, §3.4).

use tau_core::json::{Map, Value, parse};
use tau_core::message::Block;

use super::commands::ANSWERS;
use super::records::Subject;
use crate::mode::pipe::input::Room;

/// A command.
#[derive(Debug)]
pub(super) struct Call {
    /// What its response says about it.
    pub(super) subject: Subject,
    /// Name of the command.
    pub(super) name: String,
    fields: Map<String, Value>,
    /// Its room among the lines that wait, until it was followed.
    _room: Option<Room>,
}

/// Why a line is no command, and what the response says about it.
#[derive(Debug)]
pub(super) struct Unusable {
    /// For the response.
    pub(super) subject: Subject,
    /// For people.
    pub(super) why: String,
}

impl Unusable {
    /// A line that cannot be read.
    pub(super) fn unreadable(why: String) -> Box<Self> {
        Box::new(Self { subject: Subject { command: Some("parse".into()), ..Subject::default() }, why })
    }
}

impl Call {
    /// Reads a line.
    ///
    /// # Errors
    /// When it is not JSON, no object, or names no command.
    pub(super) fn read(line: &str) -> Result<Self, Box<Unusable>> {
        let value =
            parse(line).map_err(|e| Unusable::unreadable(format!("the line is not valid JSON: {e}")))?;
        let no_command = |id, why: &str| {
            Box::new(Unusable { subject: Subject { id, ..Subject::default() }, why: why.into() })
        };
        let Value::Object(mut fields) = value else {
            return Err(no_command(None, "a command is a JSON object with the field \"type\""));
        };
        let id = fields.remove("id");
        let Some(Value::String(name)) = fields.remove("type") else {
            return Err(no_command(id, "the field \"type\" must be the name of a command"));
        };
        let subject = Subject { id, command: Some(name.as_str().into()), session: None };
        match fields.remove("sessionId") {
            None | Some(Value::Null) => Ok(Self { subject, name, fields, _room: None }),
            Some(Value::String(session)) => {
                let subject = Subject { session: Some(session.into()), ..subject };
                Ok(Self { subject, name, fields, _room: None })
            }
            // Answers to questions get no response, and need no session.
            Some(_) if name == ANSWERS => Ok(Self { subject, name, fields, _room: None }),
            Some(_) => {
                let why = format!("{name}: the field \"sessionId\" must be text");
                Err(Box::new(Unusable { subject, why }))
            }
        }
    }

    /// It waits in this room.
    pub(super) fn in_room(self, room: Room) -> Self {
        Self { _room: Some(room), ..self }
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// When it is missing or no text.
    pub(super) fn text(&self, field: &str) -> Result<&str, String> {
        self.optional_text(field)?.ok_or_else(|| format!("{} needs the field \"{field}\" (text)", self.name))
    }

    /// A text that may be missing or null.
    ///
    /// # Errors
    /// When it is something else.
    pub(super) fn optional_text(&self, field: &str) -> Result<Option<&str>, String> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("{}: the field \"{field}\" must be text", self.name)),
        }
    }

    /// What an answer chooses; `None` when it chooses nothing, or says that nothing was chosen.
    pub(super) fn value(&self) -> Option<Value> {
        let cancelled = self.fields.get("cancelled").is_some_and(|value| *value != Value::Bool(false));
        self.fields.get("value").filter(|_| !cancelled).cloned()
    }

    /// Names and texts, from an optional object.
    ///
    /// # Errors
    /// When it is something else.
    pub(super) fn texts(&self, field: &str) -> Result<Vec<(String, String)>, String> {
        let wrong = || format!("{}: the field \"{field}\" must be an object of texts", self.name);
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Object(pairs)) => {
                let pair =
                    |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
                pairs.iter().map(|entry| pair(entry).ok_or_else(wrong)).collect()
            }
            Some(_) => Err(wrong()),
        }
    }

    /// A yes or no that must be there.
    ///
    /// # Errors
    /// When it is missing or something else.
    pub(super) fn flag(&self, field: &str) -> Result<bool, String> {
        let value = self.fields.get(field).and_then(Value::as_bool);
        value.ok_or_else(|| format!("{} needs the field \"{field}\" (true or false)", self.name))
    }

    /// A yes or no; missing or null is a no.
    ///
    /// # Errors
    /// When it is something else.
    pub(super) fn optional_flag(&self, field: &str) -> Result<bool, String> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(false),
            Some(_) => self.flag(field),
        }
    }

    /// A name of which `read` knows the meaning; `None` when it is missing.
    ///
    /// # Errors
    /// When it has no meaning; `known` are those that have.
    pub(super) fn choice<T>(
        &self,
        field: &str,
        known: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(text) = self.optional_text(field)? else { return Ok(None) };
        let meaning = read(text);
        let unknown = || format!("{}: the field \"{field}\" must be {known}, not \"{text}\"", self.name);
        meaning.map(Some).ok_or_else(unknown)
    }

    /// The images of a message, from the optional field `images`.
    ///
    /// # Errors
    /// When it is no list, or an element no image.
    pub(super) fn images(&self) -> Result<Vec<Block>, String> {
        let list = match self.fields.get("images") {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(format!("{}: the field \"images\" must be a list", self.name)),
        };
        let image = |value: &Value| {
            let text = |key| value.get(key).and_then(Value::as_str);
            Some(Block::image(text("data")?, text("mimeType")?))
        };
        let bad = |at| format!("{}: images[{at}] must have \"data\" (base64) and \"mimeType\"", self.name);
        list.iter().enumerate().map(|(at, value)| image(value).ok_or_else(|| bad(at))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_command() {
        let subject = |line| Call::read(line).unwrap_err().subject;
        for line in ["", " ", "{\"type\":", "\u{feff}{}"] {
            assert_eq!(subject(line).command.as_deref(), Some("parse"), "{line}");
        }
        for line in ["null", "5", "[1]", "\"x\"", "{}", "{\"type\":7}"] {
            assert_eq!(subject(line), Subject::default(), "{line}");
        }
        assert_eq!(subject("{\"id\":[1]}").id, Some(Value::Array(vec![1.into()])));
    }

    #[test]
    fn an_answer_that_is_cancelled_chooses_nothing() {
        let value = |more: &str| {
            let line = format!(r#"{{"type":"extension_ui_response","id":"q","sessionId":7{more}}}"#);
            Call::read(&line).unwrap().value()
        };
        assert_eq!(value(r#","value":"Allow""#), Some("Allow".into()));
        assert_eq!(value(r#","value":"Allow","cancelled":false"#), Some("Allow".into()));
        assert_eq!(value(r#","value":"Allow","cancelled":true"#), None);
        assert_eq!(value(r#","value":"Allow","cancelled":"yes""#), None);
        assert_eq!(value(""), None);
    }

    #[test]
    fn fields_have_types() {
        let call = Call::read(
            r#"{"id":null,"type":"x","a":"t","b":7,"c":null,"images":[{"data":"AA==","mimeType":"image/png"},{}]}"#,
        )
        .unwrap();
        assert_eq!(call.subject.id, Some(Value::Null));
        assert_eq!(call.text("a"), Ok("t"));
        assert!(call.text("b").unwrap_err().contains("\"b\""));
        assert!(call.text("c").is_err() && call.text("d").is_err());
        assert_eq!(call.optional_text("c"), Ok(None));
        assert!(call.images().unwrap_err().contains("images[1]"));
        assert_eq!(call.choice("a", "t", |text| (text == "t").then_some(1)), Ok(Some(1)));
        assert!(call.choice("a", "u", |text| (text == "u").then_some(1)).unwrap_err().contains("not \"t\""));
    }
}
