//! How large is the tree that a depth-first search has seen part of?
//!
//! Knuth (*Estimating the efficiency of backtrack programs*, 1975) gives each leaf the probability with which a random walk
//! from the root comes to it: one over the product of the branches on the way. A depth-first search sees leaves in order
//! and not at random; Kilby, Slaney, Thiébaux and Walsh (*Estimating Search Tree Size*, AAAI 2006) weigh what was seen by those
//! probabilities all the same: if the leaves seen so far have the share W of all probability, and are n, the tree has about n/W
//! leaves, and exactly so at the end, when W is one.
//!
//! Deviation: reductions find out about branches late, so W may fall. The error is told from how the estimate has moved: its standard
//! deviation over the second half of the runs, at powers of 2^(1/4).

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Weights {
    leaves: u64,
    /// Share of the tree that lies before the current path.
    share: f64,
    /// Estimates at growing distances: runs and estimate.
    taken: Vec<(u64, f64)>,
    runs: u64,
}

impl Weights {
    /// A leaf, by the branches at each state above it: which one it lies in, and how many there are.
    pub fn add(&mut self, path: impl Iterator<Item = (u32, u32)>, counts: bool) {
        self.runs += 1;
        self.leaves += u64::from(counts);
        let (mut before, mut room) = (0.0, 1.0);
        for (tried, branches) in path {
            room /= f64::from(branches.max(1));
            before += room * f64::from(tried.saturating_sub(1));
        }
        self.share = before + room;
        let due = self.taken.last().is_none_or(|&(runs, _)| self.runs as f64 >= runs as f64 * 1.19);
        if due {
            self.taken.push((self.runs, self.leaves as f64 / self.share.max(f64::MIN_POSITIVE)));
        }
    }

    /// Leaves in all, and the standard error.
    pub fn estimate(&self, complete: bool) -> (f64, f64) {
        if complete || self.runs == 0 {
            return (self.leaves as f64, 0.0);
        }
        let now = self.leaves as f64 / self.share.max(f64::MIN_POSITIVE);
        let late = self.taken.iter().filter(|(runs, _)| runs * 2 >= self.runs).map(|&(_, estimate)| estimate);
        let values: Vec<f64> = late.chain([now]).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64;
        (now, variance.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regular_tree_is_known_from_its_first_leaf() {
        let mut weights = Weights::default();
        weights.add([(1, 2), (1, 3), (1, 2)].into_iter(), true);
        assert_eq!(weights.estimate(false), (12.0, 0.0));
    }

    #[test]
    fn at_the_end_the_estimate_is_the_count() {
        let mut weights = Weights::default();
        for path in [[(1, 2), (1, 2)], [(1, 2), (2, 2)], [(2, 2), (1, 1)]] {
            weights.add(path.into_iter(), true);
        }
        assert!((weights.estimate(false).0 - 3.0).abs() < 1e-9);
        assert_eq!(weights.estimate(true), (3.0, 0.0));
    }
}
