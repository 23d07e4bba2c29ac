//! Sets of locks, each stored once.
//!
//! A program has few different sets of locks held together (Eraser, 1997, counts on it), so a set is a number and
//! intersections are remembered.

use crate::step::{Held, LockIx};
use rustc_hash::FxHashMap;

/// A set of locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockSetIx(pub u32);

impl LockSetIx {
    pub const EMPTY: LockSetIx = LockSetIx(0);
}

#[derive(Clone, Debug)]
pub struct LockSets {
    sets: Vec<Box<[LockIx]>>,
    index: FxHashMap<Box<[LockIx]>, LockSetIx>,
    meets: FxHashMap<(LockSetIx, LockSetIx), LockSetIx>,
    /// Bit `n % 64` is set if lock n is a member: a quick proof of disjointness.
    masks: Vec<u64>,
    scratch: Vec<LockIx>,
}

impl Default for LockSets {
    fn default() -> LockSets {
        let mut index = FxHashMap::default();
        index.insert(Box::default(), LockSetIx::EMPTY);
        LockSets {
            sets: vec![Box::default()],
            index,
            meets: FxHashMap::default(),
            masks: vec![0],
            scratch: vec![],
        }
    }
}

impl LockSets {
    /// The set of these locks.
    pub fn intern(&mut self, locks: impl Iterator<Item = LockIx>) -> LockSetIx {
        self.scratch.clear();
        self.scratch.extend(locks);
        if self.scratch.is_empty() {
            return LockSetIx::EMPTY;
        }
        self.scratch.sort_unstable();
        self.scratch.dedup();
        if let Some(&ix) = self.index.get(self.scratch.as_slice()) {
            return ix;
        }
        let ix = LockSetIx(self.sets.len() as u32);
        let set: Box<[LockIx]> = self.scratch.as_slice().into();
        self.masks.push(set.iter().fold(0, |mask, lock| mask | 1 << (lock.0 % 64)));
        self.sets.push(set.clone());
        self.index.insert(set, ix);
        ix
    }

    /// The locks held, whatever their mode.
    pub fn of_held(&mut self, held: &[Held]) -> LockSetIx {
        self.intern(held.iter().map(|held| held.lock))
    }

    pub fn get(&self, set: LockSetIx) -> &[LockIx] {
        &self.sets[set.0 as usize]
    }

    pub fn contains(&self, set: LockSetIx, lock: LockIx) -> bool {
        self.get(set).binary_search(&lock).is_ok()
    }

    #[inline]
    pub fn disjoint(&self, a: LockSetIx, b: LockSetIx) -> bool {
        if self.masks[a.0 as usize] & self.masks[b.0 as usize] == 0 {
            return true;
        }
        a != b && !self.get(a).iter().any(|&lock| self.contains(b, lock))
    }

    pub fn meet(&mut self, a: LockSetIx, b: LockSetIx) -> LockSetIx {
        if a == b {
            return a;
        }
        if self.masks[a.0 as usize] & self.masks[b.0 as usize] == 0 {
            return LockSetIx::EMPTY;
        }
        let key = (a.min(b), a.max(b));
        if let Some(&meet) = self.meets.get(&key) {
            return meet;
        }
        let both: Vec<LockIx> = self.get(a).iter().copied().filter(|&lock| self.contains(b, lock)).collect();
        let meet = self.intern(both.into_iter());
        self.meets.insert(key, meet);
        meet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_stored_once() {
        let mut sets = LockSets::default();
        let locks = |numbers: &[u32]| numbers.iter().copied().map(LockIx).collect::<Vec<_>>();
        let a = sets.intern(locks(&[3, 1, 67]).into_iter());
        let b = sets.intern(locks(&[67, 3, 1, 1]).into_iter());
        let c = sets.intern(locks(&[65, 2]).into_iter());
        assert_eq!(a, b);
        // 65 and 1 share a bit of the mask but are different locks.
        assert!(sets.disjoint(a, c) && !sets.disjoint(a, b));
        assert_eq!(sets.meet(a, c), LockSetIx::EMPTY);
        let d = sets.intern(locks(&[1, 2]).into_iter());
        let one = sets.intern(locks(&[1]).into_iter());
        assert_eq!(sets.meet(a, d), one);
        assert_eq!(sets.meet(d, a), one);
    }
}
