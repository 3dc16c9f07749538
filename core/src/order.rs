//! Sorting where speed is no concern. The library's sort is compiled anew for every type and order, some kilobytes each
//! time; this is one sort of places, whatever lies at them.

use alloc::vec::Vec;
use core::cmp::Ordering;

/// Puts items in order; equal ones keep theirs.
pub fn sort<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let order = places(items.len(), &mut |a, b| match (items.get(a), items.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    arrange(order, &mut |a, b| items.swap(a, b));
}

/// The numbers below `count` in an order; equal ones keep theirs.
#[must_use]
#[inline(never)]
pub fn places(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    places.sort_by(|a, b| compare(*a, *b));
    places
}

/// Swaps until the item that `order` names for a place is there.
#[inline(never)]
fn arrange(mut order: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut at = start;
        // Around the circle of places that give each other their items.
        while let Some(slot) = order.get_mut(at) {
            let from = core::mem::replace(slot, at);
            if from == start {
                break;
            }
            swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_like_the_library_and_stably() {
        let mut seed = 1_u32;
        for len in 0..60 {
            let mut items: Vec<(u32, usize)> = (0..len)
                .map(|at| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (seed >> 29, at)
                })
                .collect();
            let mut wanted = items.clone();
            wanted.sort_by_key(|(key, _)| *key);
            sort(&mut items, |a, b| a.0.cmp(&b.0));
            assert_eq!(items, wanted);
        }
    }
}
