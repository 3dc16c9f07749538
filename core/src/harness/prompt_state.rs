//! The system prompt as named sections, and what the model has been told of it (spec 10 §2.5, D10).

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::convert;
use crate::message::{Message, SystemMessage, Text};

/// Named sections in order.
pub type Sections = Vec<(String, Text)>;

/// The patch that turns what the system messages of a transcript say into `wanted`: sections that are new, changed or gone. `None` when
/// the model knows everything. A first message tells all.
pub(super) fn patch(systems: &[Arc<Message>], wanted: &Sections, now_ms: i64) -> Option<Arc<Message>> {
    let told = convert::fold(systems);
    let changed = wanted.iter().filter(|(name, text)| {
        !told.sections.iter().any(|(known, old)| *known == name.as_str() && old.as_str() == text.as_str())
    });
    let mut sections: Vec<(String, Option<Text>)> =
        changed.map(|(name, text)| (name.clone(), Some(text.clone()))).collect();
    let gone = told.sections.iter().filter(|(known, _)| !wanted.iter().any(|(name, _)| name == known));
    sections.extend(gone.map(|(name, _)| (String::from(*name), None)));
    (!sections.is_empty()).then(|| {
        Arc::new(Message::System(SystemMessage { sections, timestamp: now_ms, ..SystemMessage::default() }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn tells_only_what_changed() {
        let section = |name: &str, text: &str| (String::from(name), Text::from(text));
        let first = patch(&[], &vec![section("a", "1"), section("b", "2")], 5).unwrap();
        assert!(
            patch(core::slice::from_ref(&first), &vec![section("a", "1"), section("b", "2")], 6).is_none()
        );
        let second = patch(&[first], &vec![section("a", "3")], 7).unwrap();
        let Message::System(second) = &*second else { panic!("not a system message") };
        assert_eq!(second.sections, [("a".into(), Some("3".into())), ("b".into(), None)]);
    }
}
