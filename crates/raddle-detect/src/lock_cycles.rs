//! Cycles of lock dependencies, for `raddle run`.
//!
//! **Definition** (Havelund's GoodLock for any number of threads; iGoodlock, Joshi et al., PLDI 2009). A dependency says that
//! a thread asked for a lock while it held others. A *cycle* is a sequence of dependencies of different threads in which
//! each one's wanted lock is held by the next one, the last one's by the first, and no two hold locks that exclude each
//! other (a *gate* lock would keep them from being there at once). Locks held and wanted in read mode do not exclude
//! each other. There is no limit on the length of a cycle, only on the work.
//!
//! The same definition as [`crate::detectors::lockdep`], over dependencies that were collected while the program ran
//! instead of over a trace; depth first instead of length by length, because a run may have many dependencies and hardly
//! ever a long chain.

use rustc_hash::FxHashMap;

/// A lock and whether it is held, or wanted, in read mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockMode {
    pub lock: u64,
    pub read: bool,
}

impl LockMode {
    fn excludes(self, other: LockMode) -> bool {
        self.lock == other.lock && !(self.read && other.read)
    }
}

/// A thread asked for a lock while it held others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    pub thread: u32,
    pub wanted: LockMode,
    pub held: Vec<LockMode>,
}

impl Dependency {
    /// Does this thread hold what the other wants?
    fn blocks(&self, other: &Dependency) -> bool {
        self.held.iter().any(|held| held.excludes(other.wanted))
    }

    fn coexists(&self, other: &Dependency) -> bool {
        self.thread != other.thread && !self.held.iter().any(|a| other.held.iter().any(|b| a.excludes(*b)))
    }
}

/// Steps of the search before it gives up.
pub const STEPS_MAX: u64 = 20_000_000;
/// Cycles that are reported.
pub const CYCLES_MAX: usize = 1000;

/// What the search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cycles {
    /// Indices of dependencies; each cycle begins with its smallest.
    pub cycles: Vec<Vec<usize>>,
    /// Everything was looked at.
    pub complete: bool,
}

struct Search<'a> {
    dependencies: &'a [Dependency],
    holders: FxHashMap<u64, Vec<usize>>,
    chain: Vec<usize>,
    cycles: Vec<Vec<usize>>,
    steps: u64,
}

/// All cycles of the dependencies.
pub fn cycles(dependencies: &[Dependency]) -> Cycles {
    let mut holders: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    for (ix, dependency) in dependencies.iter().enumerate() {
        for held in &dependency.held {
            holders.entry(held.lock).or_default().push(ix);
        }
    }
    let mut search = Search { dependencies, holders, chain: Vec::new(), cycles: Vec::new(), steps: 0 };
    for start in 0..dependencies.len() {
        search.chain.push(start);
        search.extend();
        search.chain.pop();
    }
    let complete = search.steps < STEPS_MAX && search.cycles.len() < CYCLES_MAX;
    Cycles { cycles: search.cycles, complete }
}

impl Search<'_> {
    fn extend(&mut self) {
        let (first, last) = (self.chain[0], self.chain[self.chain.len() - 1]);
        let Some(holders) = self.holders.get(&self.dependencies[last].wanted.lock) else { return };
        for next in holders.clone() {
            self.steps += 1;
            if self.steps >= STEPS_MAX || self.cycles.len() >= CYCLES_MAX {
                return;
            }
            let candidate = &self.dependencies[next];
            let fits = next > first
                && candidate.blocks(&self.dependencies[last])
                && self.chain.iter().all(|&other| candidate.coexists(&self.dependencies[other]));
            if !fits {
                continue;
            }
            self.chain.push(next);
            if self.dependencies[first].blocks(candidate) {
                self.cycles.push(self.chain.clone());
            } else {
                self.extend();
            }
            self.chain.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn mode(lock: u64, read: bool) -> LockMode {
        LockMode { lock, read }
    }

    fn dependency(thread: u32, wanted: u64, held: &[u64]) -> Dependency {
        Dependency {
            thread,
            wanted: mode(wanted, false),
            held: held.iter().map(|&l| mode(l, false)).collect(),
        }
    }

    #[test]
    fn two_locks_in_two_orders() {
        let found = cycles(&[dependency(1, 2, &[1]), dependency(2, 1, &[2])]);
        assert_eq!(found, Cycles { cycles: vec![vec![0, 1]], complete: true });
    }

    #[test]
    fn no_alarm_for_one_thread_a_gate_or_readers() {
        assert!(cycles(&[dependency(1, 2, &[1]), dependency(1, 1, &[2])]).cycles.is_empty());
        assert!(cycles(&[dependency(1, 2, &[9, 1]), dependency(2, 1, &[9, 2])]).cycles.is_empty());
        let reader = |thread, wanted, held| Dependency {
            thread,
            wanted: mode(wanted, true),
            held: vec![mode(held, true)],
        };
        assert!(cycles(&[reader(1, 2, 1), reader(2, 1, 2)]).cycles.is_empty());
    }

    #[test]
    fn a_ring_of_a_hundred() {
        let ring: Vec<Dependency> =
            (0..100).map(|n| dependency(n, (u64::from(n) + 1) % 100, &[u64::from(n)])).collect();
        assert_eq!(cycles(&ring).cycles, [(0..100).collect::<Vec<usize>>()]);
    }

    /// The definition: every sequence of different dependencies, tried out.
    fn naive(dependencies: &[Dependency]) -> BTreeSet<Vec<usize>> {
        fn grow(all: &[Dependency], chain: &mut Vec<usize>, found: &mut BTreeSet<Vec<usize>>) {
            for next in 0..all.len() {
                if chain.contains(&next) {
                    continue;
                }
                chain.push(next);
                let count = chain.len();
                let links = (0..count).all(|ix| all[chain[(ix + 1) % count]].blocks(&all[chain[ix]]));
                let apart = (0..count).all(|a| (0..a).all(|b| all[chain[a]].coexists(&all[chain[b]])));
                // A cycle that a shorter part of it closes already is not told again.
                let minimal =
                    (1..count - usize::from(count > 0)).all(|ix| !all[chain[0]].blocks(&all[chain[ix]]));
                if count > 1 && links && apart && minimal && chain[0] == *chain.iter().min().unwrap() {
                    found.insert(chain.clone());
                }
                grow(all, chain, found);
                chain.pop();
            }
        }
        let mut found = BTreeSet::new();
        grow(dependencies, &mut Vec::new(), &mut found);
        found
    }

    fn any_dependency() -> impl Strategy<Value = Dependency> {
        let lock = || (0u64..4, any::<bool>()).prop_map(|(lock, read)| mode(lock, read));
        (0u32..4, lock(), prop::collection::vec(lock(), 1..3)).prop_map(|(thread, wanted, held)| Dependency {
            thread,
            wanted,
            held,
        })
    }

    proptest! {
        #[test]
        fn as_defined(dependencies in prop::collection::vec(any_dependency(), 0..6)) {
            let found: BTreeSet<Vec<usize>> = cycles(&dependencies).cycles.into_iter().collect();
            prop_assert_eq!(found, naive(&dependencies));
        }
    }
}
