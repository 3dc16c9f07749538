//! Shortest edit script between two lists of lines: Myers' greedy algorithm, forward only (spec 50 §4.4).

use alloc::vec::Vec;

/// What happens to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It is in both.
    Same,
    /// It is only in the old list.
    Remove,
    /// It is only in the new list.
    Insert,
}

/// Above this many differences the middle is shown as removed and inserted as a whole: the search costs their square.
const MAX_DIFFERENCES: usize = 1000;

/// The steps that lead from `old` to `new`.
pub(super) fn align<T: PartialEq>(old: &[T], new: &[T]) -> Vec<Step> {
    let prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let mut steps = alloc::vec![Step::Same; prefix];
    let (old, new) = (old.get(prefix..).unwrap_or_default(), new.get(prefix..).unwrap_or_default());
    let suffix = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    // When one side is all suffix there is nothing to search.
    let one_sided = suffix == old.len() || suffix == new.len();
    match if one_sided { None } else { search(old, new) } {
        Some(found) => steps.extend(found),
        None => {
            steps.extend((suffix..old.len()).map(|_| Step::Remove));
            steps.extend((suffix..new.len()).map(|_| Step::Insert));
            steps.extend((0..suffix).map(|_| Step::Same));
        }
    }
    steps
}

/// Furthest old positions per diagonal (old − new = `k`), for each number of differences.
struct Fronts(Vec<Vec<Option<usize>>>);

impl Fronts {
    /// Diagonals of front `d` are −d, −d+2, … d.
    fn get(&self, d: usize, k: isize) -> Option<usize> {
        let index = usize::try_from(k + d as isize).ok()? / 2;
        self.0.get(d)?.get(index).copied().flatten()
    }
}

/// How a path reaches diagonal `k` from the front before: with an insertion from `k + 1`, else with a removal from
/// `k - 1`; `None` when neither stays inside the lists.
fn enter(fronts: &Fronts, d: usize, k: isize, lens: (usize, usize)) -> Option<(Step, usize)> {
    let above = fronts.get(d - 1, k + 1).filter(|x| (*x as isize - k) as usize <= lens.1);
    let below = fronts.get(d - 1, k - 1).filter(|x| *x < lens.0);
    match (above, below) {
        (Some(x), None) => Some((Step::Insert, x)),
        (Some(x), Some(left)) if left < x => Some((Step::Insert, x)),
        (_, Some(left)) => Some((Step::Remove, left + 1)),
        (None, None) => None,
    }
}

fn search<T: PartialEq>(old: &[T], new: &[T]) -> Option<Vec<Step>> {
    let lens = (old.len(), new.len());
    let slide = |mut x: usize, k: isize| {
        while let (Some(a), Some(b)) = (old.get(x), new.get((x as isize - k) as usize))
            && a == b
        {
            x += 1;
        }
        x
    };
    let done = |x: usize, k: isize| x == lens.0 && x as isize - k == lens.1 as isize;
    let mut fronts = Fronts(alloc::vec![alloc::vec![Some(slide(0, 0))]]);
    for d in 1..=MAX_DIFFERENCES.min(lens.0 + lens.1) {
        let mut front = Vec::with_capacity(d + 1);
        for k in (-(d as isize)..=d as isize).step_by(2) {
            let x = enter(&fronts, d, k, lens).map(|(_, x)| slide(x, k));
            front.push(x);
            if x.is_some_and(|x| done(x, k)) {
                fronts.0.push(front);
                return Some(walk_back(&fronts, d, k, lens));
            }
        }
        fronts.0.push(front);
    }
    None
}

/// The steps of the path that ends on diagonal `k` with `d` differences.
fn walk_back(fronts: &Fronts, mut d: usize, mut k: isize, lens: (usize, usize)) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut x = lens.0;
    while d > 0 {
        let Some((step, entered)) = enter(fronts, d, k, lens) else { break };
        steps.extend((entered..x).map(|_| Step::Same));
        steps.push(step);
        (x, k) = match step {
            Step::Insert => (entered, k + 1),
            Step::Remove | Step::Same => (entered - 1, k - 1),
        };
        d -= 1;
    }
    steps.extend((0..x).map(|_| Step::Same));
    steps.reverse();
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(old: &[u8], new: &[u8], steps: &[Step]) {
        let (mut o, mut n) = (old.iter(), new.iter());
        for step in steps {
            match step {
                Step::Same => assert_eq!(o.next(), n.next()),
                Step::Remove => assert!(o.next().is_some()),
                Step::Insert => assert!(n.next().is_some()),
            }
        }
        assert_eq!((o.next(), n.next()), (None, None));
    }

    #[test]
    fn leads_from_one_list_to_the_other() {
        let texts: [&[u8]; 8] = [b"", b"a", b"abc", b"abcabba", b"cbabac", b"aaaa", b"xaxbxc", b"zzabczz"];
        for old in texts {
            for new in texts {
                replay(old, new, &align(old, new));
            }
        }
    }

    #[test]
    fn large_differences_are_bounded() {
        let old: Vec<u8> = (0..5000u32).map(|i| (i % 7) as u8).collect();
        let new: Vec<u8> = (0..5000u32).map(|i| (i % 11) as u8 + 100).collect();
        let steps = align(&old, &new);
        replay(&old, &new, &steps);
    }
}
