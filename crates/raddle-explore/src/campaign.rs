//! A campaign: many runs of one program, and the distinct ways in which they ended.

use std::collections::{BTreeMap, HashSet};

/// How one run ended, apart from its output.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    Exit(i32),
    Signal(i32),
    /// Operations in which threads wait, sorted.
    Deadlock(Vec<Blocked>),
    /// Nothing moved any more: what the threads were doing, sorted.
    Stuck(Vec<String>),
    /// It made more threads than a steered run can follow.
    TooManyThreads,
    /// It took too long: what the threads were doing, if that is known.
    TimedOut(Vec<String>),
}

/// Where a deadlocked thread waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct Blocked {
    /// Word of the operation.
    pub operation: String,
    /// Place in the code: `module+0x1234`.
    pub site: String,
}

impl Ending {
    /// Is this ending an error of the program?
    pub fn is_error(&self) -> bool {
        !matches!(self, Ending::Exit(0))
    }
}

/// What one run showed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct Observation {
    pub ending: Ending,
    /// Where it crashed, if it did: crashes at different places are different errors.
    pub place: String,
    pub stdout: Vec<u8>,
}

/// One distinct observation.
#[derive(Clone, Debug)]
pub struct Seen {
    pub count: u64,
    /// Number of the first run that showed it, and its seed.
    pub first_run: u64,
    pub first_seed: u64,
    /// Decisions of that run.
    pub steps: u64,
}

/// All runs so far.
#[derive(Clone, Debug, Default)]
pub struct Campaign {
    seen: BTreeMap<Observation, Seen>,
    /// Hashes of the runs' turns.
    schedules: HashSet<u64>,
    runs: u64,
    steps_max: u64,
}

impl Campaign {
    /// Adds a run; true if it showed something new. `turns` is a hash of its schedule.
    pub fn add(&mut self, run: u64, seed: u64, steps: u64, turns: u64, observation: Observation) -> bool {
        self.runs += 1;
        self.schedules.insert(turns);
        self.steps_max = self.steps_max.max(steps);
        let mut new = false;
        let seen = self.seen.entry(observation).or_insert_with(|| {
            new = true;
            Seen { count: 0, first_run: run, first_seed: seed, steps }
        });
        seen.count += 1;
        // Runs are added in the order in which they end; the first is the one with the lowest number.
        if run < seen.first_run {
            *seen = Seen { count: seen.count, first_run: run, first_seed: seed, steps };
        }
        new
    }

    pub fn runs(&self) -> u64 {
        self.runs
    }

    pub fn distinct(&self) -> usize {
        self.seen.len()
    }

    /// How many different schedules were run.
    pub fn schedules(&self) -> usize {
        self.schedules.len()
    }

    pub fn errors(&self) -> usize {
        self.seen.keys().filter(|observation| observation.ending.is_error()).count()
    }

    /// Most decisions that a run took: the estimate that PCT and delay bounding need.
    pub fn steps_max(&self) -> u64 {
        self.steps_max
    }

    /// Distinct observations, the earliest first.
    pub fn outcomes(&self) -> Vec<(&Observation, &Seen)> {
        let mut outcomes: Vec<_> = self.seen.iter().collect();
        outcomes.sort_by_key(|(_, seen)| seen.first_run);
        outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_run_is_the_first() {
        let mut campaign = Campaign::default();
        let seen = Observation { ending: Ending::Exit(0), place: String::new(), stdout: b"1\n".to_vec() };
        assert!(campaign.add(7, 70, 5, 1, seen.clone()));
        assert!(!campaign.add(3, 30, 9, 1, seen));
        assert!(campaign.add(
            4,
            40,
            2,
            3,
            Observation { ending: Ending::Signal(6), place: String::new(), stdout: Vec::new() }
        ));
        let outcomes = campaign.outcomes();
        assert_eq!((outcomes[0].1.first_seed, outcomes[0].1.count), (30, 2));
        assert_eq!((campaign.errors(), campaign.distinct(), campaign.runs()), (1, 2, 3));
        assert_eq!((campaign.steps_max(), campaign.schedules()), (9, 2));
    }
}
