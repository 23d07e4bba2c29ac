//! A campaign: many runs of one program, and the distinct ways in which they ended.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// How one run ended, apart from its output.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    Exit(i32),
    /// With another status than 0, which is allowed.
    Allowed(i32),
    /// With status 0, where another one is wanted.
    Unwanted,
    /// It printed something else than it should.
    WrongOutput(i32),
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
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Blocked {
    /// Word of the operation.
    pub operation: String,
    /// Place in the code: `module+0x1234`.
    pub site: String,
}

impl Ending {
    /// Is this ending an error of the program?
    pub fn is_error(&self) -> bool {
        !matches!(self, Ending::Exit(0) | Ending::Allowed(_))
    }
}

/// What one run showed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Observation {
    pub ending: Ending,
    /// Where it crashed, if it did: crashes at different places are different errors.
    pub place: String,
    pub stdout: Vec<u8>,
}

/// One distinct observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub count: u64,
    /// Number of the first run that showed it, and its seed.
    pub first_run: u64,
    pub first_seed: u64,
    /// Decisions of that run.
    pub steps: u64,
}

/// All runs so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Campaign {
    seen: BTreeMap<Observation, Seen>,
    /// Hashes of the runs' turns.
    schedules: HashSet<u64>,
    runs: u64,
    steps_max: u64,
}

/// A campaign in a form that files can hold, always in the same order.
#[derive(Serialize, Deserialize)]
struct Written {
    seen: Vec<(Observation, Seen)>,
    schedules: BTreeSet<u64>,
    runs: u64,
    steps_max: u64,
}

impl From<Written> for Campaign {
    fn from(written: Written) -> Campaign {
        Campaign {
            seen: written.seen.into_iter().collect(),
            schedules: written.schedules.into_iter().collect(),
            runs: written.runs,
            steps_max: written.steps_max,
        }
    }
}

impl From<Campaign> for Written {
    fn from(campaign: Campaign) -> Written {
        Written {
            seen: campaign.seen.into_iter().collect(),
            schedules: campaign.schedules.into_iter().collect(),
            runs: campaign.runs,
            steps_max: campaign.steps_max,
        }
    }
}

impl Campaign {
    /// Adds what others have seen in runs of their own.
    pub fn merge(&mut self, other: Campaign) {
        self.runs += other.runs;
        self.steps_max = self.steps_max.max(other.steps_max);
        self.schedules.extend(other.schedules);
        for (observation, theirs) in other.seen {
            match self.seen.entry(observation) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(theirs);
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    let count = entry.get().count + theirs.count;
                    if theirs.first_run < entry.get().first_run {
                        entry.insert(theirs);
                    }
                    entry.get_mut().count = count;
                }
            }
        }
    }

    /// Has a run with these turns been seen?
    pub fn knows_schedule(&self, turns: u64) -> bool {
        self.schedules.contains(&turns)
    }

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
        let text = serde_json::to_string(&campaign).unwrap();
        let read: Campaign = serde_json::from_str(&text).unwrap();
        assert_eq!(read.outcomes(), campaign.outcomes());
    }

    /// Whoever does which runs, together they have seen the same.
    #[test]
    fn parts_add_up_to_the_whole() {
        let (mut whole, mut parts) = (Campaign::default(), vec![Campaign::default(); 3]);
        for run in 0..50u64 {
            let ending = Ending::Exit((run * 7 % 5 % 3) as i32);
            let seen = Observation { ending, place: String::new(), stdout: vec![(run % 4) as u8] };
            whole.add(run, 100 + run, run, run % 11, seen.clone());
            parts[run as usize % 3].add(run, 100 + run, run, run % 11, seen);
        }
        let mut merged = Campaign::default();
        parts.into_iter().for_each(|part| merged.merge(part));
        assert_eq!(merged.outcomes(), whole.outcomes());
        assert_eq!((merged.runs(), merged.schedules()), (whole.runs(), whole.schedules()));
    }
}
