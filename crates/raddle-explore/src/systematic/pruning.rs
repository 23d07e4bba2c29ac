//! Property driven pruning: no backtracking into a subspace that has no race.
//!
//! Wang, Yang, Gupta and Gopalakrishnan, *Dynamic Model Checking with Property Driven Pruning to Detect Race Conditions* (ATVA 2008).
//! Partial order reduction tries everything that is not equivalent; for somebody who looks for data races most of it is all the
//! same. Before a state is given a backtracking point (figure 7, line 27), SUBSPACERACEFREE (figure 4) asks whether any race can happen in any run that
//! shares the prefix up to it: for each two threads, whatever they may still access, under which locks. If two accesses that conflict have no lock
//! in common, there may be a race; otherwise the state is skipped, and an earlier one is looked for.
//!
//! NEC has applied for a patent on this method (US20090282288A1, 2008). Whether it is in force where you are, ask somebody who knows.
//!
//! # What a thread may still access
//!
//! Of the run everything up to the thread's first operation that brings it a value (a load, an attempt, an end of a wait with a limit) is
//! *fixed*: nothing that others do changes what the thread does until then, so these accesses are known exactly, with the locks held. What comes
//! after it is told by the program's code ([`Foresight`]): all that can be reached from there on any branch, which covers COMPUTELOCKSETS
//! (figure 5) and the recorded facts of branches not taken (figure 3); where the code does not say, there may be a race.
//!
//! What a thread does after it has joined another one, and before it creates one, is ordered with all that that one does, as far as
//! joins and creations are fixed.
//!
//! Deviations: the paper takes the observed rest of a thread as it is, with the other side of each branch added; here nothing that
//! depends on a value is taken from the run, because another value may lead to another address. The paper stops at the first race; here the search
//! goes on, and states below a race are never race-free, so nothing is lost. Locks are the only protection that is understood: accesses ordered
//! by conditions, semaphores or atomics may race as far as this is concerned.
//!
//! # Other properties
//!
//! The argument is one about two operations that have to be possible at the same time. It carries over to a *deadlock of mutexes*, which needs
//! threads that each hold a lock and ask for another one: no cycle in the orders of locks of the rests, no deadlock. That is not
//! built. A *failed assertion* needs a value, and no set of locks says which values are possible; only where the assertion
//! depends on nothing that another thread writes could it be left out, and then it fails in the first run or never. So there is none.

use super::run::{Event, Run, Step, ThreadId};
use raddle_sched::dependence::GIVES_UP;
use raddle_wire::step;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What the code says about where an access is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// On the thread's own stack: others come there through a pointer only.
    Own,
    /// A variable of the program.
    Global,
    /// Through a pointer.
    Any,
}

/// An access that a thread may still make.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// None: it may be any.
    pub object: Option<u64>,
    pub place: Place,
    pub bytes: u32,
    pub writes: bool,
    pub atomic: bool,
    /// Surely held.
    pub locks: BTreeSet<u64>,
}

impl Access {
    fn races_with(&self, other: &Access) -> bool {
        let overlap = match (self.object, other.object) {
            (Some(a), Some(b)) => {
                a < b + u64::from(other.bytes.max(1)) && b < a + u64::from(self.bytes.max(1))
            }
            _ => !matches!(
                (self.place, other.place),
                (Place::Own, Place::Own | Place::Global) | (Place::Global, Place::Own)
            ),
        };
        overlap
            && (self.writes || other.writes)
            && !(self.atomic && other.atomic)
            && self.locks.is_disjoint(&other.locks)
    }
}

/// Knows the code of the program.
pub trait Foresight {
    /// All that a thread may access which stands at this place in the code, until its end. None: nobody knows.
    fn rest(&mut self, pc: u64) -> Option<BTreeSet<Access>>;

    /// What is known about the access at this place.
    fn place(&mut self, pc: u64) -> Place;

    /// Is the result of the thread that is joined here surely not looked at?
    fn ignores_result(&mut self, pc: u64) -> bool;
}

/// The columns of the paper's table 1: checks, how many said that there is no race, and backtracking points that were skipped for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub checks: u64,
    pub race_free: u64,
    pub skipped: u64,
}

/// Asks about the states of one run; each once.
pub struct Pruner<'a> {
    foresight: &'a mut dyn Foresight,
    run: &'a Run,
    known: BTreeMap<usize, bool>,
    pub counts: Counts,
}

/// What one thread may still do, each access with the threads that it is ordered with as a whole.
type Rest = BTreeSet<(Access, BTreeSet<ThreadId>)>;

/// Does the operation bring its thread a value that others could change?
fn brings_value(event: &Event) -> bool {
    match event.op.kind {
        step::LOAD | step::READ | step::RMW => true,
        step::WRITE | step::STORE | step::UNLOCK | step::SIGNAL | step::BROADCAST | step::SEM_POST => false,
        step::FORK | step::JOIN | step::START | step::END | step::WAIT => false,
        // Which thread of a barrier is told that it is the serial one depends on the order.
        step::BARRIER_EXIT | step::ONCE_BEGIN | step::ONCE_PASSED => true,
        _ => event.op.flags & GIVES_UP != 0 || event.failed,
    }
}

fn access_of(event: &Event, locks: &BTreeSet<u64>) -> Option<Access> {
    let (writes, atomic) = match event.op.kind {
        step::READ => (false, false),
        step::WRITE => (true, false),
        step::LOAD => (false, true),
        step::STORE | step::RMW => (true, true),
        _ => return None,
    };
    let object = Some(event.op.object);
    Some(Access { object, place: Place::Any, bytes: event.op.bytes, writes, atomic, locks: locks.clone() })
}

fn follow_locks(event: &Event, locks: &mut BTreeSet<u64>) {
    if event.failed {
        return;
    }
    match event.op.kind {
        step::LOCK | step::RELOCK => {
            locks.insert(event.op.object);
        }
        step::UNLOCK => {
            locks.remove(&event.op.object);
        }
        step::WAIT => {
            locks.remove(&event.op.second);
        }
        _ => {}
    }
}

impl<'a> Pruner<'a> {
    pub fn new(foresight: &'a mut dyn Foresight, run: &'a Run) -> Pruner<'a> {
        Pruner { foresight, run, known: BTreeMap::new(), counts: Counts::default() }
    }

    /// Is every run that shares the first `at` steps without a race from there on?
    pub fn is_race_free(&mut self, at: usize) -> bool {
        let free = match self.known.get(&at) {
            Some(&free) => free,
            None => {
                self.counts.checks += 1;
                let free = self.ask(at);
                self.counts.race_free += u64::from(free);
                self.known.insert(at, free);
                free
            }
        };
        self.counts.skipped += u64::from(free);
        free
    }

    fn ask(&mut self, at: usize) -> bool {
        let run = self.run;
        let stepped = run.steps.iter().map(|step| step.event.thread);
        let threads: BTreeSet<ThreadId> =
            stepped.chain(run.pending.iter().map(|event| event.thread)).collect();
        let mut rests: Vec<(ThreadId, Rest)> = Vec::new();
        for thread in threads {
            let Some(rest) = self.rest_of(thread, at) else { return false };
            rests.push((thread, rest));
        }
        rests.iter().enumerate().all(|(i, (one, first))| {
            rests[i + 1..].iter().all(|(other, second)| {
                let left: BTreeSet<&Access> = towards(first, *other).collect();
                let right: BTreeSet<&Access> = towards(second, *one).collect();
                left.iter().all(|a| right.iter().all(|b| !a.races_with(b)))
            })
        })
    }

    /// What the thread may do after the first `at` steps. None: nobody knows.
    fn rest_of(&mut self, thread: ThreadId, at: usize) -> Option<Rest> {
        let run = self.run;
        let mut locks = BTreeSet::new();
        run.steps[..at]
            .iter()
            .filter(|step| step.event.thread == thread)
            .for_each(|step| follow_locks(&step.event, &mut locks));
        let mut accesses: Vec<(Access, BTreeSet<ThreadId>)> = Vec::new();
        let mut joined: BTreeSet<ThreadId> = BTreeSet::new();
        for step in run.steps[at..].iter().filter(|step| step.event.thread == thread) {
            let event = &step.event;
            let access = access_of(event, &locks).map(|access| {
                let place = self.foresight.place(step.pc);
                Access { place, ..access }
            });
            let own = access.as_ref().is_some_and(|access| access.place == Place::Own);
            accesses.extend(access.map(|access| (access, joined.clone())));
            // Somebody who changes it without a lock races with this access, so nobody does.
            let is_fixed = own && locks.is_empty() && event.op.kind == step::READ;
            follow_locks(event, &mut locks);
            match event.op.kind {
                step::JOIN => joined.extend(self.thread_of(event, step::END)),
                step::FORK => {
                    if let Some(child) = self.thread_of(event, step::START) {
                        for (_, ordered) in &mut accesses {
                            ordered.insert(child);
                        }
                    }
                }
                _ => {}
            }
            let looks = event.op.kind == step::JOIN && !self.foresight.ignores_result(step.pc);
            if looks || brings_value(event) && !is_fixed {
                let after = self.foresight.rest(step.pc)?;
                accesses.extend(after.into_iter().map(|access| (access, joined.clone())));
                return Some(accesses.into_iter().collect());
            }
        }
        // It was cut short, by a deadlock or by the end of the process: who knows what it would have done.
        let is_whole = run.pending.iter().all(|event| event.thread != thread);
        is_whole.then(|| accesses.into_iter().collect())
    }

    /// The thread that an operation on a thread is about.
    fn thread_of(&self, event: &Event, its: u8) -> Option<ThreadId> {
        let same = |other: &&Step| other.event.op.kind == its && other.event.op.object == event.op.object;
        self.run.steps.iter().find(same).map(|step| step.event.thread)
    }
}

/// What is not ordered with all that the other thread does.
fn towards(rest: &Rest, other: ThreadId) -> impl Iterator<Item = &Access> {
    rest.iter().filter(move |(_, ordered)| !ordered.contains(&other)).map(|(access, _)| access)
}
