//! Shrinking: the schedule with the fewest context switches that still shows the same.
//!
//! A run is written down as the list of its changes of thread: *after its n-th operation, thread T hands over to U*. With
//! changes left out, T goes on for as long as it can (the runtime's `guided` strategy), so every list is a legal
//! description of some run; the question is only whether that run still shows the error. Zeller and Hildebrandt's ddmin
//! (*Simplifying and Isolating Failure-Inducing Input*, IEEE TSE 2002) finds a list from which no single change can be
//! left out. The run that belongs to a list usually has other changes of its own (where a thread had to stop); the caller
//! starts the next round from these, as long as they get fewer.
//!
//! The result is minimal in this sense and not the smallest there is: finding that one would mean trying all lists.

/// After its `ordinal`-th operation, `thread` hands over to `next`. Threads are path hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    pub thread: u64,
    pub ordinal: u32,
    pub next: u64,
}

/// What a run with given changes did.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// It showed the error.
    pub shows: bool,
}

/// Most runs that shrinking may take.
pub const ATTEMPTS_MAX: usize = 2000;

/// Leaves out changes as long as `attempt` still shows the error. The result is a list whose run shows it.
///
/// `changes` must itself show the error (checked by the caller).
pub fn shrink<E>(
    changes: Vec<Change>,
    mut attempt: impl FnMut(&[Change]) -> Result<Attempt, E>,
) -> Result<Vec<Change>, E> {
    let mut best = changes;
    let mut attempts = 0;
    let mut parts = 2;
    while !best.is_empty() && parts <= 2 * best.len() && attempts < ATTEMPTS_MAX {
        let parts_now = parts.min(best.len());
        let mut smaller = None;
        for part in 0..parts_now {
            let (from, to) = (part * best.len() / parts_now, (part + 1) * best.len() / parts_now);
            let kept: Vec<Change> = best[..from].iter().chain(&best[to..]).copied().collect();
            attempts += 1;
            if attempt(&kept)?.shows {
                smaller = Some(kept);
                break;
            }
            if attempts >= ATTEMPTS_MAX {
                break;
            }
        }
        match smaller {
            Some(kept) => {
                best = kept;
                parts = parts_now.saturating_sub(1).max(2);
            }
            None if parts_now == best.len() => break,
            None => parts = parts_now * 2,
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(ordinal: u32) -> Change {
        Change { thread: 1, ordinal, next: 2 }
    }

    fn run(needed: &[u32], from: u32) -> Vec<u32> {
        let shows = |list: &[Change]| needed.iter().all(|&n| list.contains(&change(n)));
        let all: Vec<Change> = (0..from).map(change).collect();
        let result = shrink(all, |list| Ok::<_, std::convert::Infallible>(Attempt { shows: shows(list) }));
        result.unwrap_or_else(|never| match never {}).iter().map(|change| change.ordinal).collect()
    }

    #[test]
    fn exactly_what_is_needed_is_left() {
        assert_eq!(run(&[], 40), Vec::<u32>::new());
        assert_eq!(run(&[7], 40), [7]);
        assert_eq!(run(&[0, 13, 39], 40), [0, 13, 39]);
        let all: Vec<u32> = (0..9).collect();
        assert_eq!(run(&all, 9), all);
    }

    /// Against the textbook: whatever subset is needed, what is left is that subset.
    #[test]
    fn every_small_subset_is_found() {
        for mask in 0u32..1 << 8 {
            let needed: Vec<u32> = (0..8).filter(|bit| mask >> bit & 1 != 0).collect();
            assert_eq!(run(&needed, 8), needed, "mask {mask}");
        }
    }
}
