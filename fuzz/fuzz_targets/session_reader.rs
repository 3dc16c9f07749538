//! Session files of any bytes: no panic, the split changes nothing, and what is appended is read back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tau_core::entropy::Entropy;
use tau_core::message::Message;
use tau_core::now::Wall;
use tau_core::session::{Context, EntryBody, InfoReader, OpenError, Reader, Session, Want, migrate, open};

fn read(file: &[u8], chunk: usize, want: Want) -> Result<Session, OpenError> {
    let mut reader = Reader::new(want);
    file.chunks(chunk).for_each(|piece| reader.feed(piece));
    let mut loading = reader.finish()?;
    assert!(loading.next_range().is_none(), "a small file is kept");
    Ok(loading.finish("/s.jsonl".into(), "/"))
}

fn outline(session: &Session) -> Vec<(&str, Option<&str>)> {
    let tree = session.tree();
    tree.slots().map(|slot| (tree.id(slot), tree.parent_id(slot))).collect()
}

fuzz_target!(|data: &[u8]| {
    let Some((&seed, file)) = data.split_first() else { return };
    let mut list = InfoReader::default();
    list.feed(file);
    let _ = list.finish(Wall(0));
    let mut rng = Entropy::new([seed; 32]);
    let whole = read(file, file.len().max(1), Want::Everything);
    let pieces = read(file, usize::from(seed) + 1, Want::Everything);
    let (mut session, pieces) = match (whole, pieces) {
        (Ok(whole), Ok(pieces)) => (whole, pieces),
        (Err(OpenError::Old), Err(OpenError::Old)) => {
            if let Some(new) = migrate::rewrite(file, &mut rng) {
                assert!(open(&new, "/s.jsonl".into(), "/", Want::Everything).is_ok());
            }
            return;
        }
        (Err(a), Err(b)) => return assert_eq!(a, b),
        _ => panic!("the split decides whether this is a session"),
    };
    assert_eq!(outline(&session), outline(&pieces));
    assert_eq!(session.context().messages, pieces.context().messages);
    let tree = session.tree();
    assert!(tree.view().len() <= tree.nodes().len() * 4);
    for slot in tree.slots() {
        let _ = Context::build(tree, Some(slot));
    }
    let body = EntryBody::message(Message::user("next", Vec::new(), 1));
    let Ok(plan) = session.append(body, Wall(1), &mut rng) else { return };
    let added = plan.op.map(|op| op.bytes).unwrap_or_default();
    let again = read(&[file, &added].concat(), 4096, Want::Everything).expect("it was a session before");
    assert_eq!(again.leaf_id(), Some(plan.id.as_str()));
    assert_eq!(again.tree().nodes().len(), session.tree().nodes().len());
});
