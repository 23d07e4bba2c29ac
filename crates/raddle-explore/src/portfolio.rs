//! A portfolio: several ways to search share a budget of runs, and who finds new things gets more of it.
//!
//! No strategy is best for all programs: errors of small depth in long runs are for `pct` and `delay`, rare orders of a few
//! operations for `surw`, rare combinations of reads and writes for `rff`. Each *arm* begins with the same small share. After that an arm's
//! share of a round follows what its last runs have shown: outcomes that nobody had seen count most, schedules that nobody had
//! run count little. The shares depend on nothing but the results, so the same seed gives the same campaign.
//!
//! The rule is that of a bandit with forgetting (Auer, Cesa-Bianchi, Fischer, *Finite-time Analysis of the Multiarmed Bandit Problem*,
//! 2002, in its simplest form): rewards fade by half a round, and an arm that earns nothing keeps the least share, because
//! what it is good at may still come.

/// Runs of an arm in a round at least.
const LEAST: u64 = 2;
/// And at most.
const MOST: u64 = 64;
/// A new outcome is worth so many new schedules.
const OUTCOME_WORTH: f64 = 16.0;

#[derive(Clone, Debug, Default)]
struct Arm {
    reward: f64,
    open: bool,
    runs: u64,
}

/// What a share of the budget brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gain {
    pub runs: u64,
    pub outcomes: u64,
    pub schedules: u64,
}

#[derive(Clone, Debug)]
pub struct Portfolio {
    arms: Vec<Arm>,
    at: usize,
    rounds: u64,
}

impl Portfolio {
    pub fn new(arms: usize) -> Portfolio {
        Portfolio { arms: vec![Arm { open: true, ..Arm::default() }; arms], at: 0, rounds: 0 }
    }

    /// Who goes next, and with how many runs. None: all arms are closed.
    pub fn next_share(&mut self) -> Option<(usize, u64)> {
        if !self.arms.iter().any(|arm| arm.open) {
            return None;
        }
        loop {
            if self.at == self.arms.len() {
                self.at = 0;
                self.rounds += 1;
            }
            let at = self.at;
            self.at += 1;
            if self.arms[at].open {
                return Some((at, self.share(at)));
            }
        }
    }

    fn share(&self, at: usize) -> u64 {
        if self.rounds < 2 {
            return LEAST;
        }
        // Rounds grow, because starting an arm costs something.
        let room = (LEAST << self.rounds.min(5)) as f64;
        let best = self.arms.iter().map(|arm| arm.reward).fold(1.0, f64::max);
        ((room * self.arms[at].reward / best) as u64).clamp(LEAST, MOST)
    }

    pub fn earn(&mut self, at: usize, gain: Gain) {
        let arm = &mut self.arms[at];
        arm.runs += gain.runs;
        let worth = gain.outcomes as f64 * OUTCOME_WORTH + gain.schedules as f64;
        arm.reward = arm.reward / 2.0 + worth / gain.runs.max(1) as f64;
    }

    /// The arm has nothing more to show.
    pub fn close(&mut self, at: usize) {
        self.arms[at].open = false;
    }

    /// How often everybody has had a share.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    pub fn runs(&self, at: usize) -> u64 {
        self.arms[at].runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_finds_more_gets_more_and_nobody_starves() {
        let mut portfolio = Portfolio::new(3);
        for _ in 0..60 {
            let (at, runs) = portfolio.next_share().unwrap();
            let outcomes = u64::from(at == 1);
            portfolio.earn(at, Gain { runs, outcomes, schedules: if at == 2 { 0 } else { runs } });
        }
        let runs: Vec<u64> = (0..3).map(|at| portfolio.runs(at)).collect();
        assert!(runs[1] > runs[0] && runs[0] > runs[2], "{runs:?}");
        assert_eq!(runs[2], 20 * LEAST, "the least share stays");
    }

    #[test]
    fn closed_arms_are_passed_over() {
        let mut portfolio = Portfolio::new(2);
        portfolio.close(0);
        assert!((0..5).all(|_| portfolio.next_share().unwrap().0 == 1));
        portfolio.close(1);
        assert_eq!(portfolio.next_share(), None);
    }
}
