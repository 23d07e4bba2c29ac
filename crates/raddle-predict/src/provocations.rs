//! Schedules that provoke consequences: orders of critical sections that the recorded run did not show.
//!
//! A lock keeps accesses from racing, and says nothing about their order or about what belongs together. Two patterns of
//! critical sections are looked for, and for each a reordering that shows it:
//!
//! * *reversed*: two conflicting sections of different threads, the later one first. What was read then sees another write
//!   (a reads-from flip); if the earlier one prepared what the later one uses, this is an order violation.
//! * *interleaved*: two sections of one thread under the same lock, and between them one of another thread that conflicts with
//!   both. With single variables these are the unserialisable interleavings of AVIO (Lu, Tucek, Qin, Zhou, ASPLOS
//!   2006); where the two touch different variables, a high-level race (Artho, Havelund, Biere 2003). The conflicts with both are
//!   what makes a cycle of the transactional happens-before (Velodrome, PLDI 2008).
//!
//! An access without a lock counts as a section of its own, from the operation before it to the one behind it. Nothing is claimed of
//! these schedules: they are to be run to the end. The values that the reversed sections read are others than
//! observed, by intention; so a witness goes as far as the pattern and no further.
//!
//! # Deviation
//!
//! AVIO learns which interleavings are harmless from correct runs. Here none is a finding by itself; only what the program does then
//! can be one.

use crate::build::build;
use crate::clocks::Clocks;
use crate::closure::Target;
use crate::ids::{LockIx, Pos};
use crate::intervals::Intervals;
use crate::names::Names;
use crate::options::{Keeps, Options};
use crate::prediction::Stats;
use crate::program::Program;
use crate::reach::{Answer, Question, Reach};
use crate::search::Budget;
use crate::sites::{SiteIx, Sites};
use crate::witness::Witness;
use raddle_trace::model::EventIx;
use raddle_trace::schedule::Schedule;
use raddle_trace::{MemoryTrace, ThreadIx};
use rustc_hash::{FxHashMap, FxHashSet};

/// Sections of other threads that one section is paired with.
const NEIGHBOURS: usize = 4;
/// Variables of one section that are looked at.
const VARIABLES_MAX: usize = 64;
/// Patterns of the same places that are tried.
const INSTANCES_MAX: u32 = 2;
/// Patterns in all.
const PATTERNS_MAX: usize = 4_000;
/// States for all searches together.
const STATES_MAX: u64 = 100_000;
/// Programs with more steps are not searched; leaving events out has to do.
const SEARCHED_STEPS_MAX: usize = 50_000;

/// What a schedule does to the sections of the recorded run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pattern {
    /// A section of another thread comes between two of one thread.
    Interleaved,
    /// The later section comes first.
    Reversed,
}

/// A pattern and a way to it.
#[derive(Clone, Debug)]
pub struct Provocation {
    pub pattern: Pattern,
    /// Where the sections begin: the earlier and the later one; the two of one thread and the one between them.
    pub events: Vec<EventIx>,
    pub witness: Witness,
}

/// All that can be tried with one trace.
pub struct Provocations {
    pub program: Program,
    pub names: Names,
    /// The closest to the recorded run first.
    pub all: Vec<Provocation>,
}

impl Provocations {
    /// The schedule that leads to the pattern.
    pub fn schedule(&self, trace: &MemoryTrace, provocation: &Provocation) -> Schedule {
        provocation.witness.schedule(trace, &self.program, &self.names, "provocation", &[])
    }
}

/// A critical section, or an access without a lock.
struct Section {
    thread: ThreadIx,
    lock: LockIx,
    /// The thread has not begun it at this position, and is done with it at that one.
    enter: Pos,
    leave: Pos,
    event: EventIx,
    site: SiteIx,
    /// Intervals, and whether they are written; sorted.
    variables: Vec<(u32, bool)>,
}

impl Section {
    fn conflicts(&self, other: &Section) -> bool {
        self.variables.iter().any(|&(variable, writes)| {
            let from = other.variables.partition_point(|&(its, _)| its < variable);
            other.variables[from..]
                .iter()
                .take_while(|&&(its, _)| its == variable)
                .any(|&(_, its)| writes || its)
        })
    }
}

/// A pattern whose way is still to be found.
struct Wanted {
    pattern: Pattern,
    events: Vec<EventIx>,
    targets: Vec<Target>,
}

/// Finds what can be tried: at most so many.
pub fn provocations(trace: &MemoryTrace, options: &Options, most: usize) -> Provocations {
    let built = build(trace, options.atomics, &Keeps::Nothing);
    let mut program = built.program;
    let mut stats = Stats::default();
    let mut intervals = Intervals::new(&mut program, trace, options.reductions, &mut stats);
    let reads = intervals.read_edges(&program);
    intervals.sort(options.reductions, &mut stats);
    let sections = sections(trace, &program, &intervals);
    drop(intervals);
    let wanted = wanted(&program, &sections);
    let must = Clocks::must(&program);
    let observed = Clocks::observed(&program, &built.edges, Vec::new());
    let with_reads = Clocks::observed(&program, &built.edges, reads.clone());
    let (budget, searched) = (Budget::new(STATES_MAX), program.order.len() <= SEARCHED_STEPS_MAX);
    let mut reach =
        Reach::new(&program, &must, &observed, &with_reads, (&built.edges, reads), options.closure, budget);
    let mut all: Vec<Provocation> = Vec::new();
    let mut questions = Vec::new();
    for (number, pattern) in wanted.iter().enumerate() {
        match reach.ask(&pattern.targets) {
            Answer::Yes(witness) => all.push(pattern.by(witness)),
            Answer::No | Answer::Unknown if searched && questions.len() < most => {
                questions.push(Question { targets: pattern.targets.clone(), key: number });
            }
            Answer::No | Answer::Unknown => {}
        }
    }
    if all.len() < most {
        reach.search_all(
            questions,
            |_| true,
            |number, answer, _| {
                if let Answer::Yes(witness) = answer {
                    all.push(wanted[number].by(witness));
                }
            },
        );
    }
    drop(reach);
    let mut known: FxHashSet<(Vec<Pos>, Vec<ThreadIx>)> = FxHashSet::default();
    all.sort_by_key(|one| (one.witness.fidelity, one.events.iter().copied().max(), one.pattern));
    all.retain(|one| known.insert((one.witness.positions.clone(), one.witness.then.clone())));
    all.truncate(most);
    Provocations { program, names: Names::of(trace), all }
}

impl Wanted {
    fn by(&self, witness: Witness) -> Provocation {
        Provocation { pattern: self.pattern, events: self.events.clone(), witness }
    }
}

/// All sections that touch shared memory, in the order in which they begin.
fn sections(trace: &MemoryTrace, program: &Program, intervals: &Intervals) -> Vec<Section> {
    let sites = Sites::new(&trace.tables);
    let mut sections: Vec<Section> = Vec::new();
    let mut known: FxHashMap<(LockIx, ThreadIx, Pos), usize> = FxHashMap::default();
    for (variable, interval) in intervals.iter() {
        for entry in &interval.entries {
            let held = program.lockset(entry.thread, entry.pos);
            let bare = [(LockIx::NONE, false)];
            for &(lock, _) in if held.is_empty() { &bare[..] } else { held } {
                let Some((enter, leave, event)) = extent(program, entry.thread, entry.pos, lock, entry.event)
                else {
                    continue;
                };
                let at = *known.entry((lock, entry.thread, enter)).or_insert_with(|| {
                    let at = &trace.events[event.index()];
                    let site = sites.of(at.location, at.context);
                    let (thread, variables) = (entry.thread, Vec::new());
                    sections.push(Section { thread, lock, enter, leave, event, site, variables });
                    sections.len() - 1
                });
                let variables = &mut sections[at].variables;
                if variables.len() < VARIABLES_MAX {
                    variables.push((variable.0, entry.kind.writes()));
                }
            }
        }
    }
    for section in &mut sections {
        section.variables.sort_unstable();
        section.variables.dedup();
    }
    sections.sort_by_key(|section| (section.event, section.lock));
    sections
}

/// Where a section begins and ends, and the event that stands for its beginning.
fn extent(
    program: &Program,
    thread: ThreadIx,
    pos: Pos,
    lock: LockIx,
    access: EventIx,
) -> Option<(Pos, Pos, EventIx)> {
    if lock == LockIx::NONE {
        let last = program.steps(thread).len() as Pos;
        return (pos > 0 && pos < last).then(|| (pos - 1, pos + 1, access));
    }
    let hold = program.locks[lock.index()].use_by(thread)?.open_at(pos)?;
    (hold.release != Pos::MAX).then(|| (hold.acquire, hold.release + 1, hold.event))
}

/// The patterns that the sections allow, each pair or triple of places a few times.
fn wanted(program: &Program, sections: &[Section]) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    let mut counts: FxHashMap<Vec<SiteIx>, u32> = FxHashMap::default();
    let mut add = |wanted: &mut Vec<Wanted>, pattern, parts: &[&Section], targets: [(&Section, Pos); 2]| {
        let count = counts.entry(parts.iter().map(|section| section.site).collect()).or_default();
        *count += 1;
        if *count <= INSTANCES_MAX && wanted.len() < PATTERNS_MAX {
            let mut targets = targets.map(|(section, pos)| Target { thread: section.thread, pos }).to_vec();
            targets.sort_by_key(|target| target.thread);
            wanted.push(Wanted {
                pattern,
                events: parts.iter().map(|section| section.event).collect(),
                targets,
            });
        }
    };
    let mut by_lock: Vec<Vec<&Section>> = vec![Vec::new(); program.locks.len() + 1];
    for section in sections {
        let at = if section.lock == LockIx::NONE { program.locks.len() } else { section.lock.index() };
        by_lock[at].push(section);
    }
    for (lock, row) in by_lock.iter().enumerate() {
        for (at, &second) in row.iter().enumerate() {
            let others = |section: &&&Section| section.thread != second.thread;
            for first in row[..at].iter().rev().filter(others).take(NEIGHBOURS) {
                if first.conflicts(second) {
                    let targets = [(*first, first.enter), (second, second.leave)];
                    add(&mut wanted, Pattern::Reversed, &[first, second], targets);
                }
            }
            let before = row[..at].iter().rposition(|section| section.thread == second.thread);
            let Some(before) = before.filter(|_| lock < program.locks.len()) else { continue };
            let first = row[before];
            let later = row[at + 1..].iter().filter(others).take(NEIGHBOURS);
            let earlier = row[..before].iter().rev().filter(others).take(NEIGHBOURS);
            for between in later.chain(earlier) {
                if between.conflicts(first) && between.conflicts(second) && first.leave <= second.enter {
                    let targets = [(first, first.leave), (*between, between.leave)];
                    add(&mut wanted, Pattern::Interleaved, &[first, second, between], targets);
                }
            }
        }
    }
    // An access without a lock, and one in a section.
    if let Some((bare, locked)) = by_lock.split_last() {
        for &alone in bare.iter().take(PATTERNS_MAX) {
            for row in locked {
                let place = row.partition_point(|section| section.event < alone.event);
                let others = |section: &&&Section| section.thread != alone.thread && section.conflicts(alone);
                for first in row[..place].iter().rev().take(NEIGHBOURS).filter(others) {
                    let targets = [(*first, first.enter), (alone, alone.leave)];
                    add(&mut wanted, Pattern::Reversed, &[first, alone], targets);
                }
                for second in row[place..].iter().take(NEIGHBOURS).filter(others) {
                    let targets = [(alone, alone.enter), (*second, second.leave)];
                    add(&mut wanted, Pattern::Reversed, &[alone, second], targets);
                }
            }
        }
    }
    wanted
}
