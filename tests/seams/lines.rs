//! Commands on a pipe: which bytes end a line.

use serde_json::{Value, json};
use tau_core::wire::jsonl::{JsonLine, JsonLines};
use tau_tests::compare::same;

/// Splits the bytes whole, byte by byte and with CRLF; each line that is not blank must be a command.
pub fn check(case: &Value, bytes: &[u8]) -> Result<usize, String> {
    let with_crlf = String::from_utf8_lossy(bytes).replace('\n', "\r\n").into_bytes();
    for (bytes, size) in [(bytes, bytes.len().max(1)), (bytes, 1), (&with_crlf, 1)] {
        let mut commands = 0;
        let mut wrong = None;
        let mut sink = |line: JsonLine<'_>| {
            if line.is_blank() {
                return;
            }
            match tau_core::json::parse(&line.text()) {
                Ok(command) if command["type"].is_string() => commands += 1,
                other => wrong = Some(format!("{:?} is {other:?}", line.text())),
            }
        };
        let mut lines = JsonLines::new();
        bytes.chunks(size).for_each(|piece| lines.feed(piece, &mut sink));
        lines.finish(&mut sink);
        wrong.map_or(Ok(()), Err)?;
        same(&case["expect"]["commands"], &json!(commands)).map_err(|why| format!("commands: {why}"))?;
    }
    Ok(1)
}
