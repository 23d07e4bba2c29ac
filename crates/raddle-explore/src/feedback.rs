//! Feedback: which writes have been seen by which reads, and which abstract schedule is worth the next run.
//!
//! Wolff, Shi, Duck, Mathur and Roychoudhury, *Greybox Fuzzing for Concurrency Testing* (ASPLOS 2024). A corpus of abstract
//! schedules, sets of reads-from constraints, grows by those that showed something new: a pair of read and write, or a set of
//! pairs. The next run is along a mutation of one of them: a constraint is added, taken back, turned round or replaced. The runtime
//! steers towards it (`raddle_sched::strategy::rff`). A program of a hundred threads that all do the same has few pairs, however
//! many schedules it has; that is what makes rare combinations of them quick to find.
//!
//! Deviations: with a probability of one half a new constraint is a pair that is *predicted* (the read and the write have been seen at
//! the same object) and has not been seen itself; members of the corpus that were tried least often come first, which is simpler than the paper's
//! schedule of powers; only objects that two threads use are looked at.
//!
//! The same pairs are what coverage by reads-from counts: predicted and covered ones.

use raddle_sched::Random;
use raddle_sched::strategy::rff::{CONSTRAINTS_MAX, reads, writes};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// One operation of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub thread: usize,
    /// `raddle_wire::step`.
    pub kind: u8,
    pub pc: u64,
    pub object: u64,
}

/// The read at a place sees the write of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    pub object: u64,
    pub read: u64,
    /// 0: what was there before anybody wrote.
    pub write: u64,
}

/// A pair that is wanted, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constraint {
    pub pair: Pair,
    pub sees: bool,
}

pub type Abstract = Vec<Constraint>;

/// The abstract schedule as the runtime reads it.
pub fn words(schedule: &Abstract) -> Vec<u64> {
    let mut words = vec![schedule.len() as u64];
    for Constraint { pair, sees } in schedule {
        words.extend([pair.read, pair.object, pair.write, u64::from(*sees)]);
    }
    words
}

struct Member {
    schedule: Abstract,
    tried: u64,
}

pub struct Feedback {
    random: Random,
    corpus: Vec<Member>,
    /// The member that the last schedule was made from.
    parent: usize,
    covered: BTreeSet<Pair>,
    signatures: HashSet<u64>,
    /// For each object that threads share: where it is read and written.
    places: BTreeMap<u64, Places>,
}

#[derive(Default)]
struct Places {
    reads: BTreeSet<u64>,
    writes: BTreeSet<u64>,
}

/// What a run has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    pub pairs: usize,
    pub is_new_set: bool,
}

impl Feedback {
    pub fn new(seed: u64) -> Feedback {
        Feedback {
            random: Random::new(seed ^ 0x7265_6164_735f_6672),
            corpus: vec![Member { schedule: Vec::new(), tried: 0 }],
            parent: 0,
            covered: BTreeSet::new(),
            signatures: HashSet::new(),
            places: BTreeMap::new(),
        }
    }

    pub fn covered(&self) -> usize {
        self.covered.len()
    }

    /// Pairs of reads and writes at one object, seen or not.
    pub fn predicted(&self) -> usize {
        self.places.values().map(|places| places.reads.len() * (places.writes.len() + 1)).sum()
    }

    /// Predicted and not covered.
    pub fn missing(&self) -> Vec<Pair> {
        let mut missing = Vec::new();
        for (&object, places) in &self.places {
            for &read in &places.reads {
                for write in std::iter::once(0).chain(places.writes.iter().copied()) {
                    let pair = Pair { object, read, write };
                    if !self.covered.contains(&pair) {
                        missing.push(pair);
                    }
                }
            }
        }
        missing
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.random.below(from.len())]) }
    }

    fn any_pair(&mut self) -> Option<Pair> {
        if self.random.below(2) == 0
            && let missing = self.missing()
            && let Some(pair) = self.choose(&missing)
        {
            return Some(pair);
        }
        let objects: Vec<u64> = self
            .places
            .iter()
            .filter(|(_, places)| !places.reads.is_empty())
            .map(|(&object, _)| object)
            .collect();
        let object = self.choose(&objects)?;
        let places = &self.places[&object];
        let reads: Vec<u64> = places.reads.iter().copied().collect();
        let writes: Vec<u64> = std::iter::once(0).chain(places.writes.iter().copied()).collect();
        let read = self.choose(&reads)?;
        let write = self.choose(&writes)?;
        Some(Pair { object, read, write })
    }

    /// The abstract schedule of the next run. The first has no constraints.
    pub fn next_schedule(&mut self) -> Abstract {
        let least = self.corpus.iter().map(|member| member.tried).min().unwrap_or(0);
        let least_tried: Vec<usize> =
            (0..self.corpus.len()).filter(|&at| self.corpus[at].tried == least).collect();
        self.parent = self.choose(&least_tried).unwrap_or(0);
        let member = &mut self.corpus[self.parent];
        member.tried += 1;
        let mut schedule = member.schedule.clone();
        if self.places.is_empty() {
            return schedule;
        }
        for _ in 0..1 + self.random.below(2) {
            self.mutate(&mut schedule);
        }
        schedule
    }

    fn mutate(&mut self, schedule: &mut Abstract) {
        let at = if schedule.is_empty() { 0 } else { self.random.below(schedule.len()) };
        match self.random.below(8) {
            0 if !schedule.is_empty() => {
                schedule.remove(at);
            }
            1 if !schedule.is_empty() => schedule[at].sees = !schedule[at].sees,
            2 if !schedule.is_empty() => {
                let read = schedule.remove(at).pair;
                let writes: Vec<u64> = self.places.get(&read.object).map_or(Vec::new(), |places| {
                    std::iter::once(0).chain(places.writes.iter().copied()).collect()
                });
                if let Some(write) = self.choose(&writes) {
                    schedule.push(Constraint { pair: Pair { write, ..read }, sees: true });
                }
            }
            _ => {
                let Some(pair) = self.any_pair() else { return };
                // One read sees one write.
                schedule.retain(|other| (other.pair.object, other.pair.read) != (pair.object, pair.read));
                let sees = self.random.below(8) != 0;
                schedule.push(Constraint { pair, sees });
                if schedule.len() > CONSTRAINTS_MAX {
                    schedule.remove(0);
                }
            }
        }
    }

    /// Takes in the run along a schedule, and keeps the schedule if it showed something new.
    pub fn learn(&mut self, schedule: Abstract, run: &[Seen]) -> News {
        let mut users: BTreeMap<u64, (usize, bool)> = BTreeMap::new();
        for seen in run.iter().filter(|seen| reads(seen.kind) || writes(seen.kind)) {
            let user = users.entry(seen.object).or_insert((seen.thread, false));
            user.1 |= user.0 != seen.thread;
        }
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        let mut pairs: BTreeSet<Pair> = BTreeSet::new();
        for seen in run.iter().filter(|seen| users.get(&seen.object).is_some_and(|user| user.1)) {
            let places = self.places.entry(seen.object).or_default();
            if reads(seen.kind) {
                places.reads.insert(seen.pc);
                let write = last.get(&seen.object).copied().unwrap_or(0);
                pairs.insert(Pair { object: seen.object, read: seen.pc, write });
            }
            if writes(seen.kind) {
                places.writes.insert(seen.pc);
                last.insert(seen.object, seen.pc);
            }
        }
        let signature = pairs.iter().fold(0, |state, pair| {
            let words = [pair.object, pair.read, pair.write];
            words.iter().fold(state, |state, &word| crate::systematic::history::mix(state ^ word))
        });
        let before = self.covered.len();
        self.covered.extend(pairs);
        let news = News { pairs: self.covered.len() - before, is_new_set: self.signatures.insert(signature) };
        if news.is_new_set && !schedule.is_empty() {
            self.corpus.push(Member { schedule, tried: 0 });
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_wire::step;

    fn seen(thread: usize, kind: u8, pc: u64, object: u64) -> Seen {
        Seen { thread, kind, pc, object }
    }

    #[test]
    fn pairs_are_covered_and_predicted() {
        let mut feedback = Feedback::new(1);
        let first = [seen(0, step::STORE, 1, 80), seen(1, step::LOAD, 2, 80), seen(1, step::LOAD, 3, 88)];
        let news = feedback.learn(Vec::new(), &first);
        assert_eq!(news, News { pairs: 1, is_new_set: true });
        assert_eq!(feedback.predicted(), 2, "object 88 is one thread's own");
        assert_eq!(feedback.missing(), [Pair { object: 80, read: 2, write: 0 }]);
        assert_eq!(feedback.learn(Vec::new(), &first), News::default());
        let second = [seen(1, step::LOAD, 2, 80), seen(0, step::STORE, 1, 80)];
        assert_eq!(feedback.learn(Vec::new(), &second).pairs, 1);
        assert!(feedback.missing().is_empty());
    }

    #[test]
    fn mutations_ask_for_one_write_a_read() {
        let mut feedback = Feedback::new(7);
        let run: Vec<Seen> = (0..6)
            .flat_map(|i| {
                [
                    seen(0, step::STORE, 10 + i, 80 + 8 * (i % 2)),
                    seen(1, step::LOAD, 20 + i, 80 + 8 * (i % 2)),
                ]
            })
            .collect();
        feedback.learn(Vec::new(), &run);
        let mut longest = 0;
        for _ in 0..500 {
            let schedule = feedback.next_schedule();
            let reads: BTreeSet<_> = schedule.iter().map(|c| (c.pair.object, c.pair.read)).collect();
            assert_eq!(reads.len(), schedule.len(), "{schedule:?}");
            assert!(schedule.len() <= CONSTRAINTS_MAX);
            longest = longest.max(schedule.len());
            // Every run shows something new.
            let pc = 1000 + feedback.covered() as u64;
            feedback.learn(schedule, &[seen(0, step::STORE, pc, 80), seen(1, step::LOAD, 20, 80)]);
        }
        assert!(longest >= 2, "schedules grow from those that were kept");
    }

    /// The paper's figure 1 in small: a hundred setters of a and then b, one checker of both. An error needs one combination of
    /// pairs, of which there are four; a model of the scheduler that obeys constraints finds it soon, whatever the number of setters.
    #[test]
    fn rare_combinations_of_frequent_pairs_are_found() {
        let (a, b) = (80, 88);
        let mut runs = Vec::new();
        for seed in 0..20 {
            let mut feedback = Feedback::new(seed);
            let mut random = Random::new(seed * 31 + 1);
            for run in 1.. {
                let schedule = feedback.next_schedule();
                let wants = |object, write| {
                    schedule.iter().any(|c| c.sees && c.pair.object == object && c.pair.write == write)
                };
                // Left alone the checker comes first or last.
                let early = random.below(2) == 0;
                let sees_a = if wants(a, 0) { false } else { wants(a, 1) || wants(b, 0) || !early };
                let sees_b = if wants(b, 0) { false } else { wants(b, 2) || !early };
                let mut events = vec![];
                if !sees_a {
                    events.push(seen(1, step::LOAD, 3, a));
                }
                events.push(seen(0, step::STORE, 1, a));
                if sees_a {
                    events.push(seen(1, step::LOAD, 3, a));
                }
                if !sees_b {
                    events.push(seen(1, step::LOAD, 4, b));
                }
                events.push(seen(0, step::STORE, 2, b));
                if sees_b {
                    events.push(seen(1, step::LOAD, 4, b));
                }
                feedback.learn(schedule, &events);
                if sees_a && !sees_b {
                    runs.push(run);
                    break;
                }
                assert!(run < 200, "seed {seed}");
            }
        }
        runs.sort_unstable();
        assert!(runs[10] <= 20, "median of {runs:?}");
    }
}
