//! The tree of a session as lists to be read from top to bottom: the current branch, and what stands beside it.

use tau_core::session::tree::{Slot, Tree};

/// No entry.
const NONE: Slot = Slot::MAX;

/// All entries, each exactly once.
#[derive(Debug, Default)]
pub struct Chains {
    /// From the root to the leaf.
    pub main: Vec<Slot>,
    /// Other branches, in the order of the file.
    pub others: Vec<Branch>,
}

/// Entries that follow one another and are not on the current branch.
#[derive(Debug)]
pub struct Branch {
    /// The entry it goes on from, which was named before; `None` = it starts by itself.
    pub parent: Option<Slot>,
    /// Its entries.
    pub slots: Vec<Slot>,
}

impl Chains {
    /// Divides a tree. A branch goes on with the last child of each entry; the other children start branches.
    #[must_use]
    pub fn of(tree: &Tree, leaf: Option<Slot>) -> Self {
        let main = tree.path(leaf);
        let (parents, last_child, elder) = relations(tree);
        let mut shown = vec![false; parents.len()];
        let is_shown = |shown: &[bool], slot: Slot| shown.get(slot as usize).copied().unwrap_or(true);
        let show = |shown: &mut [bool], slot: Slot| {
            if let Some(mark) = shown.get_mut(slot as usize) {
                *mark = true;
            }
        };
        main.iter().for_each(|slot| show(&mut shown, *slot));
        let mut others = Vec::new();
        for first in tree.slots() {
            if is_shown(&shown, first) {
                continue;
            }
            let parent =
                Some(at(&parents, first)).filter(|parent| *parent != NONE && is_shown(&shown, *parent));
            let (mut slots, mut next) = (Vec::new(), first);
            while next != NONE {
                show(&mut shown, next);
                slots.push(next);
                next = at(&last_child, next);
                while next != NONE && is_shown(&shown, next) {
                    next = at(&elder, next);
                }
            }
            others.push(Branch { parent, slots });
        }
        Self { main, others }
    }
}

fn at(list: &[Slot], slot: Slot) -> Slot {
    list.get(slot as usize).copied().unwrap_or(NONE)
}

/// Of each entry its parent, its last child, and the child of the same parent that comes before it in the file.
fn relations(tree: &Tree) -> (Vec<Slot>, Vec<Slot>, Vec<Slot>) {
    let parents: Vec<Slot> = tree.slots().map(|slot| tree.parent(slot).unwrap_or(NONE)).collect();
    let (mut last_child, mut elder) = (vec![NONE; parents.len()], vec![NONE; parents.len()]);
    for (slot, parent) in tree.slots().zip(&parents) {
        if let (Some(last), Some(elder)) =
            (last_child.get_mut(*parent as usize), elder.get_mut(slot as usize))
        {
            *elder = std::mem::replace(last, slot);
        }
    }
    (parents, last_child, elder)
}

#[cfg(test)]
mod tests {
    use tau_core::session::EntryKind;
    use tau_core::session::tree::{NewNode, Place};

    use super::*;

    fn tree(nodes: &[(&str, Option<&str>)]) -> Tree {
        let mut tree = Tree::default();
        for (id, parent) in nodes {
            let new = NewNode {
                id,
                parent: *parent,
                time: None,
                kind: EntryKind::User,
                at: Place::default(),
                body: None,
            };
            tree.push(new);
        }
        tree
    }

    #[test]
    fn every_entry_has_one_place() {
        let root = None;
        for (nodes, main, others) in [
            (&[][..], &[][..], &[][..]),
            (&[("a", root), ("b", Some("a"))], &[0, 1], &[]),
            // Two branches beside the current one; the second has a branch of its own.
            (
                &[
                    ("a", root),
                    ("b", Some("a")),
                    ("c", Some("b")),
                    ("d", Some("a")),
                    ("e", Some("d")),
                    ("f", Some("d")),
                    ("g", Some("f")),
                    ("h", Some("a")),
                ],
                &[0, 7],
                &[(Some(0), &[1, 2][..]), (Some(0), &[3, 5, 6]), (Some(3), &[4])],
            ),
            // Other roots, a missing parent, a cycle, an id twice.
            (&[("a", root), ("b", Some("x")), ("z", root)], &[2], &[(None, &[0]), (None, &[1])]),
            (&[("a", Some("b")), ("b", Some("a")), ("z", root)], &[2], &[(None, &[0, 1])]),
            (&[("a", root), ("a", root), ("b", Some("a"))], &[1, 2], &[(None, &[0])]),
            (&[("a", Some("a")), ("z", root)], &[1], &[(None, &[0])]),
        ] {
            let tree = tree(nodes);
            let chains = Chains::of(&tree, tree.leaf());
            assert_eq!(chains.main, main, "{nodes:?}");
            let found: Vec<_> =
                chains.others.iter().map(|branch| (branch.parent, branch.slots.as_slice())).collect();
            assert_eq!(found, others, "{nodes:?}");
        }
    }
}
