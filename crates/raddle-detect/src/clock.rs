//! Vector clocks: for each thread, how much of it is known.
//!
//! A clock is a map from threads to counters, zero where nothing is stored. Clocks are ordered pointwise; the join is
//! the pointwise maximum (Mattern 1989). Everything here costs time in the number of threads, which is why
//! [`crate::detectors::fasttrack`] replaces most clocks by single entries.
//!
//! [Tree clocks](crate::tree_clock) save work when joins change few entries of long clocks. `detect_bench N clocks` compares
//! the two; `docs/detectors.md` has the figures and what follows from them.

use raddle_trace::ThreadIx;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock(Vec<u32>);

impl Clock {
    #[inline]
    pub fn get(&self, thread: ThreadIx) -> u32 {
        self.0.get(thread.index()).copied().unwrap_or(0)
    }

    #[inline]
    pub fn set(&mut self, thread: ThreadIx, value: u32) {
        self.room_for(thread);
        self.0[thread.index()] = value;
    }

    /// Counts one step of a thread.
    #[inline]
    pub fn tick(&mut self, thread: ThreadIx) {
        self.room_for(thread);
        let entry = &mut self.0[thread.index()];
        *entry = entry.checked_add(1).expect("fewer than 2^32 synchronisation steps in one thread");
    }

    #[inline]
    fn room_for(&mut self, thread: ThreadIx) {
        if self.0.len() <= thread.index() {
            self.0.resize(thread.index() + 1, 0);
        }
    }

    /// Pointwise maximum. True if anything grew.
    #[inline]
    pub fn join(&mut self, other: &Clock) -> bool {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        let mut grew = false;
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            grew |= *theirs > *mine;
            *mine = (*mine).max(*theirs);
        }
        grew
    }

    /// Is every entry at most the other's?
    #[inline]
    pub fn le(&self, other: &Clock) -> bool {
        self.0.iter().enumerate().all(|(index, &mine)| mine <= other.0.get(index).copied().unwrap_or(0))
    }

    /// The threads whose entry is above the other's.
    pub fn above<'a>(&'a self, other: &'a Clock) -> impl Iterator<Item = ThreadIx> + 'a {
        self.entries().filter(|&(thread, mine)| mine > other.get(thread)).map(|(thread, _)| thread)
    }

    pub fn entries(&self) -> impl Iterator<Item = (ThreadIx, u32)> + '_ {
        self.0.iter().enumerate().map(|(index, &value)| (ThreadIx(index as u32), value))
    }

    pub fn copy_from(&mut self, other: &Clock) {
        self.0.clone_from(&other.0);
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }
}

impl From<Vec<u32>> for Clock {
    fn from(entries: Vec<u32>) -> Clock {
        Clock(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_are_least_upper_bounds() {
        let a = Clock::from(vec![1, 5, 0]);
        let b = Clock::from(vec![2, 3]);
        let mut joined = a.clone();
        assert!(joined.join(&b));
        assert_eq!(joined, Clock::from(vec![2, 5, 0]));
        assert!(a.le(&joined) && b.le(&joined) && !joined.le(&a));
        assert!(!joined.join(&b));
        assert_eq!(a.above(&b).collect::<Vec<_>>(), vec![ThreadIx(1)]);
    }
}
