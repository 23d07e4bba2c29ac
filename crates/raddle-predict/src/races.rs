//! Data races: every pair of sites whose accesses two threads can be about to make at the same time.
//!
//! Two accesses race if they conflict and some reordering brings both threads before them at once (§5.3.1; there, the
//! two are next to each other in the trace). Plain accesses constrain nothing, so this is a question about the *segments*
//! they lie in: all accesses of the same two segments have the same answer, which is remembered.
//!
//! The hybrid filter of §5.5.2 comes first. Accesses of one interval that are alike (same thread, site, kind,
//! locks held) form a group, sorted by position. For two groups with a common lock there is nothing to ask. Otherwise the
//! positions of the second group that are not ordered with a position of the first form a range whose ends move only
//! forward ([`Clocks::must`] is monotone), so all unordered pairs are found without looking at the ordered ones.
//!
//! The paper looks for one race an interval; here every pair of locations is looked for, and for each up to
//! [`Options::alternatives`] witnesses are kept, those that keep all reads first.

use crate::candidate::{Candidate, CandidateKind, Party, Role};
use crate::clocks::Clocks;
use crate::closure::Target;
use crate::ids::{LockIx, LocksetIx, Pos};
use crate::intervals::{Entry, Group, IntervalIx, Intervals};
use crate::options::Options;
use crate::prediction::{OpenQuestion, Stats, Unexplored, Verdict};
use crate::program::{AccessKind, Program};
use crate::reach::{Answer, Question, Reach};
use crate::sites::SiteIx;
use crate::witness::{Fidelity, Witness};
use raddle_trace::ThreadIx;
use rustc_hash::FxHashMap;

/// Pairs of segments tried by closure for one pair of locations before giving up on it.
const PAIRS_MAX: u64 = 50_000;
/// Pairs tried after a witness was found, in the hope of one that keeps all reads.
const BETTER_TRIES: u64 = 64;
/// Questions put off for the search; more are counted as undecided.
const QUESTIONS_MAX: usize = 2_000_000;

/// Two sites; where one is unknown, the interval too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct RaceKey {
    first: SiteIx,
    second: SiteIx,
    interval: u32,
}

/// Two positions, in the order of the threads.
type Segments = (ThreadIx, Pos, ThreadIx, Pos);

#[derive(Default)]
struct Race {
    /// The two accesses and how to get there.
    witnesses: Vec<(Entry, Entry, Witness)>,
    tries: u64,
    tries_since_found: u64,
}

impl Race {
    fn is_settled(&self, alternatives: usize) -> bool {
        let strict = self.witnesses.iter().any(|(.., witness)| witness.fidelity == Fidelity::KeepsReads);
        let enough = self.witnesses.len() > alternatives && strict;
        enough || (!self.witnesses.is_empty() && self.tries_since_found > BETTER_TRIES)
    }
}

/// What is known about two segments.
enum Known {
    Yes(Witness),
    Asked,
}

pub struct Races<'a, 'p> {
    program: &'p Program,
    must: &'a Clocks,
    options: &'a Options,
    reach: &'a mut Reach<'p>,
    races: FxHashMap<RaceKey, Race>,
    known: FxHashMap<Segments, Known>,
    questions: Vec<Question<(RaceKey, IntervalIx, Entry, Entry)>>,
    racy: Vec<IntervalIx>,
    disjoint: FxHashMap<(LocksetIx, LocksetIx), bool>,
    undecided: u64,
    open: Vec<OpenQuestion>,
}

impl<'a, 'p> Races<'a, 'p> {
    pub fn new(
        program: &'p Program,
        must: &'a Clocks,
        options: &'a Options,
        reach: &'a mut Reach<'p>,
    ) -> Races<'a, 'p> {
        Races {
            program,
            must,
            options,
            reach,
            races: FxHashMap::default(),
            known: FxHashMap::default(),
            questions: Vec::new(),
            racy: Vec::new(),
            disjoint: FxHashMap::default(),
            undecided: 0,
            open: Vec::new(),
        }
    }

    /// Looks at all intervals. Fills in the statistics and what the model says about each interval.
    pub fn find(
        mut self,
        intervals: &Intervals,
        stats: &mut Stats,
        verdict: &mut Verdict,
        unexplored: &mut Vec<Unexplored>,
    ) -> Vec<Candidate> {
        for (number, interval) in intervals.iter() {
            if interval.merged_into.is_some() {
                continue;
            }
            if self.options.reductions.locksets && interval.is_protected(self.program) {
                stats.hybrid_removed += interval.entries.len() as u64;
                continue;
            }
            let groups: Vec<Group<'_>> = interval.groups().collect();
            let mut alive = vec![false; groups.len()];
            for (first, a) in groups.iter().enumerate() {
                for (second, b) in groups.iter().enumerate().skip(first + 1) {
                    if a[0].thread == b[0].thread || !a[0].kind.conflicts(b[0].kind) {
                        continue;
                    }
                    if self.options.reductions.locksets && !self.are_disjoint(a[0].lockset, b[0].lockset) {
                        continue;
                    }
                    if self.pair(number, a, b) {
                        (alive[first], alive[second]) = (true, true);
                    }
                }
            }
            let removed: usize =
                groups.iter().zip(&alive).filter(|(_, alive)| !**alive).map(|(group, _)| group.len()).sum();
            stats.hybrid_removed += removed as u64;
            stats.final_checks += u64::from(alive.contains(&true));
        }
        self.search();
        self.racy.sort_unstable();
        self.racy.dedup();
        let mut racy = self.racy.clone();
        let merged = intervals.iter().filter(|(_, interval)| {
            interval.merged_into.is_some_and(|other| self.racy.binary_search(&other).is_ok())
        });
        racy.extend(merged.map(|(number, _)| number));
        racy.sort_unstable();
        verdict.racy = racy;
        self.candidates(unexplored)
    }

    /// Asks about two groups. True if the filters leave any pair of them.
    fn pair(&mut self, interval: IntervalIx, a: Group<'_>, b: Group<'_>) -> bool {
        let key = key_of(interval, &a[0], &b[0]);
        if self.is_settled(key) && self.racy.last() == Some(&interval) {
            return true;
        }
        let mut any = false;
        let (mut low, mut high) = (0, 0);
        for first in a {
            if self.options.reductions.weak_order {
                let least = self.must.at(first.thread, first.pos)[b[0].thread.index()];
                let ordered_before =
                    |entry: &Entry| self.must.at(entry.thread, entry.pos)[first.thread.index()] <= first.pos;
                while low < b.len() && b[low].pos < least {
                    low += 1;
                }
                high = high.max(low);
                while high < b.len() && ordered_before(&b[high]) {
                    high += 1;
                }
            } else {
                high = b.len();
            }
            for second in &b[low..high] {
                any = true;
                if self.is_settled(key) && self.racy.last() == Some(&interval) {
                    return true;
                }
                self.ask(key, interval, *first, *second);
            }
        }
        any
    }

    fn is_settled(&self, key: RaceKey) -> bool {
        self.races.get(&key).is_some_and(|race| race.is_settled(self.options.alternatives))
    }

    fn are_disjoint(&mut self, a: LocksetIx, b: LocksetIx) -> bool {
        let locksets = &self.program.locksets;
        *self.disjoint.entry((a, b)).or_insert_with(|| disjoint(&locksets[a.index()], &locksets[b.index()]))
    }

    fn ask(&mut self, key: RaceKey, interval: IntervalIx, first: Entry, second: Entry) {
        let race = self.races.entry(key).or_default();
        race.tries += 1;
        race.tries_since_found += u64::from(!race.witnesses.is_empty());
        if race.tries > PAIRS_MAX {
            self.undecided += 1;
            return;
        }
        let targets = targets_of(&first, &second);
        let segments = (targets[0].thread, targets[0].pos, targets[1].thread, targets[1].pos);
        let witness = match self.known.get(&segments) {
            Some(Known::Yes(witness)) => witness.clone(),
            Some(Known::Asked) => return self.put_off(key, interval, first, second),
            None => match self.reach.ask(&targets) {
                Answer::Yes(witness) => {
                    self.known.insert(segments, Known::Yes(witness.clone()));
                    witness
                }
                Answer::No | Answer::Unknown => {
                    self.known.insert(segments, Known::Asked);
                    return self.put_off(key, interval, first, second);
                }
            },
        };
        self.found(key, interval, first, second, witness);
    }

    fn put_off(&mut self, key: RaceKey, interval: IntervalIx, first: Entry, second: Entry) {
        if self.questions.len() >= QUESTIONS_MAX {
            self.undecided += 1;
            return;
        }
        let targets = targets_of(&first, &second).to_vec();
        self.questions.push(Question { targets, key: (key, interval, first, second) });
    }

    fn found(&mut self, key: RaceKey, interval: IntervalIx, first: Entry, second: Entry, witness: Witness) {
        if self.racy.last() != Some(&interval) {
            self.racy.push(interval);
        }
        let alternatives = self.options.alternatives;
        let race = self.races.entry(key).or_default();
        race.add(first, second, witness, alternatives);
    }

    /// Answers what was put off. The same two segments are asked about once.
    fn search(&mut self) {
        let mut asked: FxHashMap<Segments, Vec<(RaceKey, IntervalIx, Entry, Entry)>> = FxHashMap::default();
        for question in self.questions.drain(..) {
            let [a, b] = targets_of(&question.key.2, &question.key.3);
            asked.entry((a.thread, a.pos, b.thread, b.pos)).or_default().push(question.key);
        }
        let mut questions: Vec<Question<Segments>> = asked
            .keys()
            .map(|&segments| {
                let (a, a_pos, b, b_pos) = segments;
                let targets = vec![Target { thread: a, pos: a_pos }, Target { thread: b, pos: b_pos }];
                Question { targets, key: segments }
            })
            .collect();
        // A fixed order, so that two runs that exhaust the budget stop at the same place.
        questions.sort_by_key(|question| question.key);
        let alternatives = self.options.alternatives;
        let mut racy: rustc_hash::FxHashSet<IntervalIx> = self.racy.iter().copied().collect();
        let races = std::cell::RefCell::new(std::mem::take(&mut self.races));
        let racy_cell = std::cell::RefCell::new(&mut racy);
        let (undecided, left_open) = (&mut self.undecided, &mut self.open);
        self.reach.search_all(
            questions,
            |segments| {
                // Still worth it if some pair of locations has no witness, or some interval no race.
                asked[segments].iter().any(|(key, interval, ..)| {
                    let open = races.borrow().get(key).is_none_or(|race| race.witnesses.is_empty());
                    open || !racy_cell.borrow().contains(interval)
                })
            },
            |segments, answer, size| match answer {
                Answer::Yes(witness) => {
                    for &(key, interval, first, second) in &asked[&segments] {
                        racy_cell.borrow_mut().insert(interval);
                        let mut races = races.borrow_mut();
                        races.entry(key).or_default().add(first, second, witness.clone(), alternatives);
                    }
                }
                Answer::No => {}
                Answer::Unknown => {
                    *undecided += 1;
                    if let Some((.., a, b)) = asked[&segments].first() {
                        let events = [a.event.min(b.event).0, a.event.max(b.event).0];
                        left_open.push(OpenQuestion { events, steps: size.steps, states: size.states });
                    }
                }
            },
        );
        self.races = races.into_inner();
        self.racy = racy.into_iter().collect();
    }

    fn candidates(self, unexplored: &mut Vec<Unexplored>) -> Vec<Candidate> {
        let program = self.program;
        let mut candidates: Vec<Candidate> = self
            .races
            .into_iter()
            .filter(|(_, race)| !race.witnesses.is_empty())
            .map(|(_, mut race)| {
                // Fewest deviations first; then earliest, so that the outcome does not depend on hashing.
                race.witnesses.sort_by_key(|(a, b, witness)| {
                    (witness.fidelity, a.event.max(b.event), a.event.min(b.event))
                });
                let mut all = race.witnesses.into_iter().map(|(a, b, witness)| {
                    let frees = a.kind == AccessKind::Free || b.kind == AccessKind::Free;
                    (frees, parties(program, a, b), witness)
                });
                let (frees, parties, witness) = all.next().expect("not empty");
                let kind = if frees { CandidateKind::UseAfterFree } else { CandidateKind::DataRace };
                let alternatives = all.map(|(_, parties, witness)| (parties, witness)).collect();
                Candidate { kind, parties, witness, alternatives }
            })
            .collect();
        candidates.sort_by_key(|candidate| (candidate.parties[0].event, candidate.parties[1].event));
        if candidates.len() > self.options.candidates_max {
            let left_out = (candidates.len() - self.options.candidates_max) as u64;
            unexplored.push(Unexplored::Candidates { left_out });
            candidates.truncate(self.options.candidates_max);
        }
        if self.undecided > 0 {
            let mut open = self.open;
            open.sort_by_key(|question| (question.steps, question.events));
            unexplored.push(Unexplored::Pairs { count: self.undecided, open });
        }
        candidates
    }
}

impl Race {
    fn add(&mut self, first: Entry, second: Entry, witness: Witness, alternatives: usize) {
        if self.witnesses.len() <= alternatives {
            self.witnesses.push((first, second, witness));
            return;
        }
        let worst = self.witnesses.iter_mut().max_by_key(|(.., other)| other.fidelity);
        if let Some(worst) = worst.filter(|(.., other)| witness.fidelity < other.fidelity) {
            *worst = (first, second, witness);
        }
    }
}

fn key_of(interval: IntervalIx, a: &Entry, b: &Entry) -> RaceKey {
    let (first, second) = (a.site.min(b.site), a.site.max(b.site));
    let interval = if first == SiteIx::UNKNOWN { interval.0 } else { u32::MAX };
    RaceKey { first, second, interval }
}

fn targets_of(first: &Entry, second: &Entry) -> [Target; 2] {
    let mut targets =
        [Target { thread: first.thread, pos: first.pos }, Target { thread: second.thread, pos: second.pos }];
    targets.sort_by_key(|target| target.thread);
    targets
}

/// No lock is in both sets, except shared in both.
fn disjoint(a: &[(LockIx, bool)], b: &[(LockIx, bool)]) -> bool {
    !a.iter().any(|(lock, shared)| {
        b.iter().any(|(other, other_shared)| lock == other && !(*shared && *other_shared))
    })
}

fn parties(program: &Program, a: Entry, b: Entry) -> Vec<Party> {
    let mut parties: Vec<Party> = [a, b]
        .into_iter()
        .map(|entry| Party {
            thread: entry.thread,
            event: entry.event,
            role: Role::Accesses,
            held: held_at(program, entry.thread, entry.pos),
        })
        .collect();
    parties.sort_by_key(|party| party.thread);
    parties
}

/// The events that acquired the locks held at a position, outermost first.
pub fn held_at(program: &Program, thread: ThreadIx, pos: Pos) -> Vec<raddle_trace::model::EventIx> {
    let mut held: Vec<_> = program
        .lockset(thread, pos)
        .iter()
        .filter_map(|(lock, _)| {
            program.locks[lock.index()].use_by(thread)?.open_at(pos).map(|hold| hold.event)
        })
        .collect();
    held.sort_unstable();
    held
}
