//! Session files, damaged or not, and what a reader must find in them.

use std::sync::Arc;

use serde_json::Value;
use tau_core::convert::{self, Memo, Target};
use tau_core::entropy::Entropy;
use tau_core::message::Message;
use tau_core::now::Wall;
use tau_core::session::{EntryBody, Header, InfoReader, Reader, Session, Want, fork, open};

/// Reads the file whole, byte by byte, and by what its last entry needs; looks at it as a list does; copies it; then an
/// entry is appended and the file must read well again. `expect` may hold values for this file under its name.
pub fn check(name: &str, case: &Value, bytes: &[u8]) -> Result<usize, String> {
    let expect = &case["expect"];
    let expect = expect.get(name).unwrap_or(expect);
    let mut session = read(bytes, Want::Everything)?;
    compare("ids", expect, &session.tree().slots().map(|slot| session.tree().id(slot)).collect())?;
    compare("leaf", expect, &session.leaf_id().into())?;
    let path = session.tree().path(session.tree().leaf());
    compare("branch", expect, &path.into_iter().map(|slot| session.tree().id(slot)).collect())?;
    compare("text0", expect, &first_text(&session).into())?;
    let lazy = read(bytes, Want::Context)?;
    if lazy.context().messages != session.context().messages || lazy.leaf_id() != session.leaf_id() {
        return Err("reading only what is needed gives another context".into());
    }
    sendable(&session)?;
    listed(expect, &session, bytes)?;
    copied(&session, bytes)?;
    appendable(&mut session, bytes)?;
    Ok(1)
}

/// Reads in single bytes, and again in one piece.
fn read(bytes: &[u8], want: Want) -> Result<Session, String> {
    let mut reader = Reader::new(want);
    bytes.chunks(1).for_each(|chunk| reader.feed(chunk));
    let mut loading = reader.finish().map_err(|e| e.to_string())?;
    if loading.next_range().is_some() {
        return Err("a small file needs no second reading".into());
    }
    let (whole, _) = open(bytes, "/s.jsonl".into(), "/", want).map_err(|e| e.to_string())?;
    let session = loading.finish("/s.jsonl".into(), "/");
    if session.context().messages != whole.context().messages {
        return Err("the result depends on the chunks".into());
    }
    Ok(session)
}

fn compare(key: &str, expect: &Value, got: &Value) -> Result<(), String> {
    match expect.get(key) {
        Some(wanted) if wanted != got => Err(format!("{key}: expected {wanted}, got {got}")),
        _ => Ok(()),
    }
}

fn first_text(session: &Session) -> String {
    match session.context().messages.first().map(|message| &**message) {
        Some(Message::User(user)) => user.content.texts().collect(),
        _ => String::new(),
    }
}

/// What would be sent holds no result without its call before it (bug 38).
fn sendable(session: &Session) -> Result<(), String> {
    let target =
        Target { provider: "x", api: "anthropic-messages", model: "m", images: true, ids: None, max_id: 64 };
    let mut memo = Memo::default();
    let public = convert::to_llm(&session.context().messages, &mut memo);
    let mut open_calls: Vec<String> = Vec::new();
    for message in convert::prepare(&public, &target, 0) {
        match &*message {
            Message::Assistant(reply) => {
                open_calls = reply.tool_calls().map(|call| call.id.clone()).collect()
            }
            Message::ToolResult(result) if !open_calls.contains(&result.tool_call_id) => {
                return Err(format!("result {} has no call", result.tool_call_id));
            }
            _ => {}
        }
    }
    Ok(())
}

/// A list says the same about the file, in both of its ways. `counted` = messages, where glued ones count as one.
fn listed(expect: &Value, session: &Session, bytes: &[u8]) -> Result<(), String> {
    let messages = session.tree().nodes().iter().filter(|node| node.kind().is_message()).count();
    compare("messages", expect, &messages.into())?;
    compare("name", expect, &session.name().into())?;
    for mut reader in [InfoReader::brief(), InfoReader::default()] {
        bytes.chunks(1).for_each(|chunk| reader.feed(chunk));
        let info = reader.finish(Wall(0)).ok_or("a list leaves it out")?;
        let counted = expect.get("counted").and_then(Value::as_u64).filter(|_| info.text.is_empty());
        if info.messages != counted.unwrap_or(messages as u64) || info.name.as_deref() != session.name() {
            return Err(format!("a list shows {} messages and the name {:?}", info.messages, info.name));
        }
        let first = info.first_message.unwrap_or_default();
        if session.tree().nodes().iter().any(|node| node.kind().starts_file()) && first.is_empty() {
            return Err("a list shows no first message".into());
        }
    }
    Ok(())
}

/// Copies of the file and of its branch hold what was read.
fn copied(session: &Session, bytes: &[u8]) -> Result<(), String> {
    let header = Header::new("copy".into(), Wall(1), "/w".into(), None);
    let tree = session.tree();
    let leaf = session.leaf_id().unwrap_or_default();
    let whole = fork::whole(bytes, tree, &header).bytes;
    let branch =
        fork::branch(bytes, tree, leaf, &header, &mut Entropy::new([1; 32])).map_err(|e| e.to_string())?;
    for copy in [whole, branch.bytes] {
        let copy = read(&copy, Want::Context)?;
        if copy.context().messages != session.context().messages {
            return Err("a copy gives another context".into());
        }
    }
    Ok(())
}

fn appendable(session: &mut Session, before: &[u8]) -> Result<(), String> {
    let leaf = session.leaf_id().map(str::to_owned);
    let count = session.tree().nodes().len();
    let message = Arc::new(Message::user("probe", Vec::new(), 9));
    let mut rng = Entropy::new([1; 32]);
    let plan = session.append(EntryBody::Message(message), Wall(9), &mut rng).map_err(|e| e.to_string())?;
    let op = plan.op.ok_or("nothing to write")?;
    if op.create || op.expect_len != Some(before.len() as u64) {
        return Err(format!("create {} expect {:?}", op.create, op.expect_len));
    }
    let after = read(&[before, &op.bytes].concat(), Want::Everything)?;
    let slot = after.tree().leaf().ok_or("no leaf")?;
    if after.tree().id(slot) != plan.id.as_str() || after.tree().parent_id(slot) != leaf.as_deref() {
        return Err("the new entry is not read back in its place".into());
    }
    if after.tree().nodes().len() != count + 1 {
        return Err(format!("{} entries became {}", count, after.tree().nodes().len()));
    }
    Ok(())
}
