//! The session itself inside its page: `{header, leafId, entries}` as base64 of JSON, as Pi embeds it (spec 60 §1.13).
//! Programs read it there; the page does not need it.

use std::io;

use tau_core::json::Writer;

use super::sink::Sink;
use super::source::Source;

/// Appends the element.
///
/// # Errors
/// When the page cannot be written.
pub fn write(sink: &mut Sink<'_>, source: &Source, leaf: Option<&str>) -> io::Result<()> {
    sink.out.markup("<script id=\"session-data\" type=\"application/json\">");
    let mut w = Writer::new();
    w.begin_object();
    w.key("header");
    source.session().header().write(&mut w);
    w.key("leafId");
    match leaf {
        Some(leaf) => w.str(leaf),
        None => w.null(),
    }
    w.key("entries");
    let mut json = w.into_bytes();
    json.push(b'[');
    let mut comma = false;
    for record in source.tree().slots().filter_map(|slot| source.record(slot)) {
        if std::mem::replace(&mut comma, true) {
            json.push(b',');
        }
        json.extend_from_slice(record.as_bytes());
        // Whole groups of three bytes, so that the pieces can stand one behind the other.
        let ready = json.len() / 3 * 3;
        sink.out.base64(json.get(..ready).unwrap_or_default());
        json.drain(..ready);
        sink.settle()?;
    }
    json.extend_from_slice(b"]}");
    sink.out.base64(&json);
    sink.out.markup("</script>\n");
    sink.settle()
}
