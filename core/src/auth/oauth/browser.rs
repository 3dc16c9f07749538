//! Sign-ins in a browser: an address to open, and a code that comes back to this machine or is pasted (spec 40 §2.2).

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};

use super::form::{self, decode, encode, find};
use super::script::{Go, Loopback, Notice, Prompt, Returned, Tape, fail};

/// What came back: the pairs of the query.
pub(super) struct Back {
    pub(super) code: String,
    pub(super) client: Option<String>,
    /// A browser waits for an answer.
    pub(super) from_browser: bool,
}

/// What may be pasted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Paste {
    /// Nothing.
    Never,
    /// A code, `code#state`, a query, an address.
    Code,
    /// The whole address.
    Address,
}

/// One visit to a browser.
pub(super) struct Visit<'a> {
    pub(super) address: &'a str,
    pub(super) redirect: &'a str,
    /// `None`: the path is the secret.
    pub(super) state: Option<&'a str>,
    pub(super) paste: Paste,
}

/// Listens; `None` when the port is taken.
pub(super) fn listen(tape: &mut Tape<'_>, port: u16, path: &str, state: Option<&str>) -> Go<Option<u16>> {
    tape.listen(Loopback { port, path: path.to_owned(), state: state.map(ToOwned::to_owned) })
}

/// Shows the address and waits for what comes back. `listening`: something can come from the browser.
pub(super) fn visit(tape: &mut Tape<'_>, visit: &Visit<'_>, listening: bool) -> Go<Back> {
    tape.tell(Notice::Address(visit.address.to_owned()))?;
    let prompt = Prompt::Code { placeholder: visit.redirect.to_owned() };
    let prompt = (visit.paste != Paste::Never).then_some(prompt);
    match tape.back(prompt, listening)? {
        Returned::Query(pairs) => from_query(tape, pairs, visit.state),
        Returned::Text(text) => pasted(text, visit),
    }
}

fn from_query(tape: &mut Tape<'_>, pairs: &[(String, String)], state: Option<&str>) -> Go<Back> {
    if let Some(error) = find(pairs, "error") {
        let text = match find(pairs, "error_description") {
            Some(more) => format!("{error}: {more}"),
            None => error.to_owned(),
        };
        tape.show(400)?;
        return fail(format!("the service refused: {text}"));
    }
    if state.is_some_and(|state| find(pairs, "state") != Some(state)) {
        tape.show(400)?;
        return fail("the answer belongs to another sign-in (state)");
    }
    match find(pairs, "code").filter(|code| !code.is_empty()) {
        Some(code) => {
            let client = find(pairs, "client_id").map(ToOwned::to_owned);
            Ok(Back { code: code.to_owned(), client, from_browser: true })
        }
        None => {
            tape.show(400)?;
            fail("the answer holds no code")
        }
    }
}

fn pasted(text: &str, visit: &Visit<'_>) -> Go<Back> {
    let text = text.trim();
    let query = |text: &str| decode(text.split_once('#').map_or(text, |(query, _)| query));
    let is_address = text.contains("://");
    let pairs = if is_address {
        query(text.split_once('?').map_or("", |(_, query)| query))
    } else if let (Paste::Code, Some((code, state))) = (visit.paste, text.split_once('#')) {
        [("code", code), ("state", state)].map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    } else if text.contains("code=") {
        query(text.trim_start_matches('?'))
    } else {
        alloc::vec![("code".to_owned(), text.to_owned())]
    };
    if visit.paste == Paste::Address {
        let place = text.split(['?', '#']).next().unwrap_or_default();
        if place != visit.redirect {
            return fail(format!("paste the whole URL, which begins with {}", visit.redirect));
        }
    }
    let state = find(&pairs, "state");
    let foreign = match (visit.state, state) {
        (Some(own), Some(state)) => own != state,
        (Some(_), None) => visit.paste == Paste::Address,
        (None, _) => false,
    };
    if foreign {
        return fail("what was pasted belongs to another sign-in (state)");
    }
    match find(&pairs, "code").filter(|code| !code.is_empty()) {
        Some(code) => {
            let client = find(&pairs, "client_id").map(ToString::to_string);
            Ok(Back { code: code.to_owned(), client, from_browser: false })
        }
        None => fail("what was pasted holds no code"),
    }
}

/// An address with a query.
pub(super) fn address(base: &str, pairs: &[(&str, &str)]) -> String {
    let joint = if base.contains('?') { '&' } else { '?' };
    format!("{base}{joint}{}", encode(pairs))
}

/// An address of a service that may be opened.
pub(super) fn trusted(text: Option<&str>) -> Go<&str> {
    match text.and_then(form::web_address) {
        Some(address) => Ok(address),
        None => fail("Invalid answer of the service: its address cannot be opened"),
    }
}
