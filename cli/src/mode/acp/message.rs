//! JSON-RPC 2.0: what a line of the client is.

use std::path::Path;

use tau_core::json::{Map, Value, parse};

/// Parameters of a request.
pub(super) type Params = Map<String, Value>;

/// Why a request is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The code of JSON-RPC or of the protocol.
    pub(super) code: i64,
    /// For people.
    pub(super) text: String,
}

impl Refusal {
    /// The line is no JSON.
    pub(super) const PARSE: i64 = -32_700;
    const REQUEST: i64 = -32_600;
    const METHOD: i64 = -32_601;
    const PARAMS: i64 = -32_602;
    const INTERNAL: i64 = -32_603;
    const AUTH: i64 = -32_000;
    const NOT_FOUND: i64 = -32_002;

    fn new(code: i64, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// It makes no sense at this moment.
    pub(super) fn request(text: impl Into<String>) -> Self {
        Self::new(Self::REQUEST, text)
    }

    /// Its parameters are wrong.
    pub(super) fn params(text: impl Into<String>) -> Self {
        Self::new(Self::PARAMS, text)
    }

    /// It could not be done.
    pub(super) fn internal(text: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, text)
    }

    /// There are no credentials.
    pub(super) fn auth(text: impl Into<String>) -> Self {
        Self::new(Self::AUTH, text)
    }

    /// There is no such session.
    pub(super) fn no_session(id: &str) -> Self {
        Self::new(Self::NOT_FOUND, format!("there is no session {id}"))
    }

    /// There is no such method.
    pub(super) fn method(name: &str) -> Self {
        Self::new(Self::METHOD, format!("there is no method {name}"))
    }
}

/// One message of the client.
#[derive(Debug)]
pub(super) enum Message {
    /// Wants an answer.
    Request { id: Value, method: String, params: Params },
    /// Wants none.
    Notification { method: String, params: Params },
    /// Answers a request of ours; `None` = with an error.
    Answer { id: Value, result: Option<Value> },
}

/// Reads a line; `None` for one without anything in it.
///
/// # Errors
/// The answer that the client gets, and to which id.
pub(super) fn read(line: &str) -> Result<Option<Message>, (Value, Refusal)> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    let value = parse(line).map_err(|e| {
        (Value::Null, Refusal::new(Refusal::PARSE, format!("the line is not valid JSON: {e}")))
    })?;
    let Value::Object(mut fields) = value else {
        return Err((Value::Null, Refusal::request("a message is one JSON object")));
    };
    let id = fields.remove("id");
    if !fields.contains_key("method") && (fields.contains_key("result") || fields.contains_key("error")) {
        let failed = fields.get("error").is_some_and(|error| !error.is_null());
        let result = fields.remove("result").filter(|_| !failed);
        return Ok(Some(Message::Answer { id: id.unwrap_or_default(), result }));
    }
    let bad = |why: &str| (id.clone().unwrap_or_default(), Refusal::request(why));
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(bad("the field \"jsonrpc\" must be \"2.0\""));
    }
    if !matches!(id, None | Some(Value::Null | Value::String(_) | Value::Number(_))) {
        return Err((Value::Null, Refusal::request("the field \"id\" must be text, a number or null")));
    }
    let params = match fields.remove("params") {
        None | Some(Value::Null) => Params::new(),
        // What some languages make of an empty table.
        Some(Value::Array(none)) if none.is_empty() => Params::new(),
        Some(Value::Object(params)) => params,
        // Nobody hears what is wrong with a notification.
        Some(_) if id.is_none() => Params::new(),
        Some(_) => {
            let text = Refusal::params("the field \"params\" must be an object");
            return Err((id.unwrap_or_default(), text));
        }
    };
    match (fields.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => Ok(Some(Message::Request { id, method, params })),
        (Some(Value::String(method)), None) => Ok(Some(Message::Notification { method, params })),
        (_, id) => Err((id.unwrap_or_default(), Refusal::request("the field \"method\" must be text"))),
    }
}

/// A text among the parameters.
///
/// # Errors
/// When it is missing or something else.
pub(super) fn text<'a>(params: &'a Params, name: &str) -> Result<&'a str, Refusal> {
    let value = params.get(name).and_then(Value::as_str);
    value.ok_or_else(|| Refusal::params(format!("the parameter \"{name}\" must be text")))
}

/// A text among the parameters that may be missing.
///
/// # Errors
/// When it is something else.
pub(super) fn optional_text<'a>(params: &'a Params, name: &str) -> Result<Option<&'a str>, Refusal> {
    match params.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => text(params, name).map(Some),
    }
}

/// The absolute path of a folder among the parameters.
///
/// # Errors
/// When it is missing or something else.
pub(super) fn folder<'a>(params: &'a Params, name: &str) -> Result<&'a str, Refusal> {
    let path = absolute(text(params, name)?, name)?;
    if !Path::new(path).is_dir() {
        return Err(Refusal::params(format!("{path} is not a folder")));
    }
    Ok(path)
}

/// A path, if it is absolute.
///
/// # Errors
/// When it is not.
pub(super) fn absolute<'a>(path: &'a str, name: &str) -> Result<&'a str, Refusal> {
    let refusal = || Refusal::params(format!("the parameter \"{name}\" must be an absolute path"));
    Some(path).filter(|path| Path::new(path).is_absolute()).ok_or_else(refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lines_are() {
        let code = |line| read(line).map(|message| message.is_some()).map_err(|(id, why)| (id, why.code));
        assert_eq!(code("  "), Ok(false));
        assert_eq!(code("{oops"), Err((Value::Null, -32_700)));
        assert_eq!(code("[]"), Err((Value::Null, -32_600)));
        assert_eq!(code(r#"{"jsonrpc":"2.0","method":5,"id":null}"#), Err((Value::Null, -32_600)));
        assert_eq!(code(r#"{"jsonrpc":"1.0","method":"x","id":7}"#), Err((7.into(), -32_600)));
        assert_eq!(code(r#"{"jsonrpc":"2.0","method":"x","id":7,"params":[1]}"#), Err((7.into(), -32_602)));
        assert_eq!(code(r#"{"jsonrpc":"2.0","method":"x","id":7,"params":[]}"#), Ok(true));
        let of = |line| read(line).unwrap().unwrap();
        let request = of(r#"{"jsonrpc":"2.0","method":"x","id":"a"}"#);
        assert!(matches!(request, Message::Request { id: Value::String(_), .. }), "{request:?}");
        let notification = of(r#"{"jsonrpc":"2.0","method":"x","params":{}}"#);
        assert!(matches!(notification, Message::Notification { .. }), "{notification:?}");
        let answer = of(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}"#);
        assert!(matches!(answer, Message::Answer { result: None, .. }), "{answer:?}");
    }
}
