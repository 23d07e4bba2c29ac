//! `hb11`: races by the happens-before of C and C++11.
//!
//! **Definition** (Lidbury, Donaldson, *Dynamic race detection for C++11*, POPL 2017, and Lidbury's thesis §3.3, fig.
//! 3.12). An acquire load synchronises with a release store if it reads from the store's *release sequence*: the store,
//! the following stores of the same thread, and read-modify-writes of anybody; a store by another thread blocks it.
//! Fences stand in for orders on the accesses: a relaxed load counts once an acquire fence follows, a relaxed store
//! counts as of the last release fence before it.
//!
//! Clocks: `C` for threads, `L` for locations (what an acquire load gets), `V` for locations and threads (each thread's
//! own release sequence, what survives when it stores again relaxed), and the fence clocks `F_rel`, `F_acq`.
//!
//! **Precise up to the first race** for executions in which every atomic load reads the last store of the trace, which
//! is what a trace contains. Two accesses race if they conflict, are unordered, and are not both atomic. Grade
//! *unordered*: that is what these rules decide. This is the reference for the runtime's online detection.
//!
//! **Deviations**: the end of a one-time initialisation is also a release store to its control word, because compilers
//! look at the guards of function-local statics by an acquire load of their own. `seq_cst` is treated as acquire and release. Other primitives order as in
//! [`crate::happens_before`].
//!
//! **Cost**: threads an access.

use crate::clock::Clock;
use crate::detector::{Detector, End};
use crate::happens_before::HappensBefore;
use crate::race::{Races, Site};
use crate::report::Report;
use crate::step::{PerVar, Step, VarIx};
use raddle_findings::Basis;
use raddle_trace::{Addr, AtomicKind, Op, Order, ThreadIx, ops_about};
use rustc_hash::FxHashMap;

pub const NAME: &str = "hb11";

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    time: u32,
    site: Site,
}

/// Last accesses of each slot, plain and atomic.
#[derive(Clone, Debug, Default)]
struct Variable {
    reads: Vec<Last>,
    writes: Vec<Last>,
    atomic_reads: Vec<Last>,
    atomic_writes: Vec<Last>,
}

/// An atomic location: `L` and `V`.
#[derive(Clone, Debug, Default)]
struct Location {
    released: Clock,
    sequences: FxHashMap<ThreadIx, Clock>,
}

#[derive(Clone, Debug, Default)]
struct Fences {
    release: Clock,
    acquire: Clock,
}

#[derive(Debug)]
pub struct Hb11 {
    order: HappensBefore,
    variables: PerVar<Variable>,
    locations: FxHashMap<Addr, Location>,
    /// By thread, not by slot: a new thread does not continue another's sequences.
    fences: Vec<Fences>,
    races: Races,
}

impl Default for Hb11 {
    fn default() -> Hb11 {
        Hb11 {
            order: HappensBefore::new(),
            variables: PerVar::default(),
            locations: FxHashMap::default(),
            fences: Vec::new(),
            races: Races::new(NAME, Basis::unordered()),
        }
    }
}

impl Hb11 {
    pub fn keep_all() -> Hb11 {
        Hb11 { races: Races::new(NAME, Basis::unordered()).keep_all(), ..Hb11::default() }
    }

    pub fn races(&self) -> &Races {
        &self.races
    }

    fn fences(&mut self, thread: ThreadIx) -> &mut Fences {
        if self.fences.len() <= thread.index() {
            self.fences.resize(thread.index() + 1, Fences::default());
        }
        &mut self.fences[thread.index()]
    }

    fn check(&mut self, step: &Step<'_>, var: VarIx, slot: ThreadIx, write: bool, atomic: bool) {
        let (clock, now) = (self.order.clock(slot), self.order.now(slot));
        let variable = self.variables.get_mut(var);
        let unknown = |accesses: &[Last]| {
            let mut entries = accesses.iter().enumerate();
            entries
                .find(|(other, last)| last.time > clock.as_slice().get(*other).copied().unwrap_or(0))
                .map(|(_, last)| last.site)
        };
        let mut first = unknown(&variable.writes);
        if !atomic {
            first = first.or_else(|| unknown(&variable.atomic_writes));
        }
        if write {
            first = first.or_else(|| unknown(&variable.reads));
        }
        if write && !atomic {
            first = first.or_else(|| unknown(&variable.atomic_reads));
        }
        if let Some(first) = first {
            self.races.race(var, first, step);
        }
        let mine = match (atomic, write) {
            (false, false) => &mut variable.reads,
            (false, true) => &mut variable.writes,
            (true, false) => &mut variable.atomic_reads,
            (true, true) => &mut variable.atomic_writes,
        };
        if mine.len() <= slot.index() {
            mine.resize(slot.index() + 1, Last::default());
        }
        mine[slot.index()] = Last { time: now, site: Site::of(step) };
    }

    fn load(&mut self, thread: ThreadIx, slot: ThreadIx, addr: Addr, order: Order) {
        let Some(location) = self.locations.get(&addr) else { return };
        if order.acquires() {
            self.order.join(slot, &location.released);
        } else {
            let released = location.released.clone();
            self.fences(thread).acquire.join(&released);
        }
    }

    fn store(&mut self, thread: ThreadIx, slot: ThreadIx, addr: Addr, order: Order, rmw: bool) {
        let fence = self.fences(thread).release.clone();
        let clock = self.order.clock(slot).clone();
        let location = self.locations.entry(addr).or_default();
        match (order.releases(), rmw) {
            (true, false) => {
                location.sequences.clear();
                location.sequences.insert(thread, clock.clone());
                location.released = clock;
            }
            (false, false) => {
                let own = location.sequences.remove(&thread).unwrap_or_default();
                location.released = own.clone();
                location.released.join(&fence);
                location.sequences.clear();
                location.sequences.insert(thread, own);
            }
            (true, true) => {
                location.released.join(&clock);
                location.sequences.insert(thread, clock);
            }
            (false, true) => {
                location.released.join(&fence);
            }
        }
        self.order.tick(slot);
    }

    fn fence(&mut self, thread: ThreadIx, slot: ThreadIx, order: Order) {
        if order.acquires() {
            let acquired = self.fences(thread).acquire.clone();
            self.order.join(slot, &acquired);
        }
        if order.releases() {
            let clock = self.order.clock(slot).clone();
            self.fences(thread).release = clock;
            self.order.tick(slot);
        }
    }
}

impl Detector for Hb11 {
    fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        let thread = step.thread();
        let slot = self.order.slot(thread);
        match step.event.op {
            Op::Read { .. } | Op::Write { .. } => {
                let write = matches!(step.event.op, Op::Write { .. });
                for &var in step.vars {
                    self.check(step, var, slot, write, false);
                }
            }
            Op::Atomic { addr, kind, order, .. } => {
                // The load synchronises first: what it thereby knows does not race with it.
                if kind.reads() {
                    self.load(thread, slot, addr, order);
                }
                for &var in step.vars {
                    self.check(step, var, slot, kind.writes(), true);
                }
                if kind.writes() {
                    self.store(thread, slot, addr, order, kind == AtomicKind::Rmw);
                }
            }
            Op::Fence { order } => self.fence(thread, slot, order),
            // The guard of a function-local static is an atomic to the code that looks whether it is made already.
            Op::OnceEnd { once } => {
                self.store(thread, slot, Addr(once.0), Order::Release, false);
                self.order.step(step);
            }
            Op::Alloc { .. }
            | Op::Free { .. }
            | Op::Lost { .. }
            | Op::OnceBegin { .. }
            | Op::OncePassed { .. }
            | ops_about!(
                Nothing, Thread, Lock, Condition, Barrier, Semaphore, Futex, Annotated, Signal, Channel, Life
            ) => self.order.step(step),
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.races.take()
    }
}
