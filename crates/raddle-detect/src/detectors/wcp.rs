//! `wcp`: weak-causally-precedes races.
//!
//! **Definition** (Kini, Mathur, Viswanathan, *Dynamic race prediction in linear time*, PLDI 2017). `<wcp` is the
//! least relation such that
//!
//! * (a) a release comes before an access in a later critical section of the same lock if the released section contains
//!   a conflicting access;
//! * (b) a release comes before a later release of the same lock if the two sections contain events `e1 <wcp e2`;
//! * (c) it is closed under composition with happens-before on both sides.
//!
//! Two conflicting accesses race if they are ordered neither by `<wcp` nor by thread order, forks and joins.
//!
//! **Weakly sound**: the first such race of a trace is a real race or there is a real deadlock. Every happens-before
//! race is one. Grade *suspected*; [`super::syncp`] gives witnesses.
//!
//! **How**. Three clocks a thread: `H` happens-before, `P` what is `<wcp`, `K` what is ordered for certain (threads,
//! forks, joins, and all primitives that are not mutexes). For (a), each lock remembers for each variable the `H` of
//! the last releases of sections that read it and wrote it, those of the thread itself aside (they do not conflict). For (b), each lock has a queue of its sections; at a release by
//! `t`, the sections whose acquisition is in `P_t` are passed, and their release's `H` is joined to
//! `P_t`. A queue is shared by all threads, with a position for each; what all have passed is dropped.
//!
//! **Deviations**: the paper's two queues for each pair of lock and thread are one a lock. An acquisition is compared by
//! its owner's entry only, which is enough because counters grow at every release. Read-write locks and all other
//! primitives are ordered for certain.
//!
//! **Cost**: threads x locks held an access; memory grows with the sections that some thread has not passed.

use crate::clock::Clock;
use crate::detector::{Detector, End};
use crate::race::{Races, Site};
use crate::report::Report;
use crate::step::{ChannelIx, LockIx, PerVar, Step, Sync, VarIx};
use raddle_findings::Grade;
use raddle_trace::{Op, ThreadIx};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

pub const NAME: &str = "wcp";

#[derive(Clone, Debug, Default)]
struct Clocks {
    happened: Clock,
    weak: Clock,
    certain: Clock,
}

impl Clocks {
    fn join(&mut self, other: &Clocks) {
        self.happened.join(&other.happened);
        self.weak.join(&other.weak);
        self.certain.join(&other.certain);
    }
}

#[derive(Clone, Debug)]
struct Section {
    owner: ThreadIx,
    /// Owner's counter at the acquisition.
    acquired: u32,
    /// `H` at the release.
    released: Clock,
}

/// Sections of a lock that some thread has not passed.
#[derive(Clone, Debug, Default)]
struct Queue {
    sections: VecDeque<Section>,
    dropped: usize,
    /// By thread: how many it has passed.
    passed: Vec<usize>,
}

/// `H` of the last release by a thread and of the last one by any other. Sections of a lock follow each other in
/// happens-before, so the last one that is not the asking thread's own knows all that matters.
#[derive(Clone, Debug, Default)]
struct LastReleases {
    last: (ThreadIx, Clock),
    other: (ThreadIx, Clock),
}

impl LastReleases {
    fn push(&mut self, thread: ThreadIx, clock: &Clock) {
        if self.last.0 != thread {
            std::mem::swap(&mut self.last, &mut self.other);
            self.last.0 = thread;
        }
        self.last.1.copy_from(clock);
    }

    fn by_others_than(&self, thread: ThreadIx) -> &Clock {
        if self.last.0 == thread { &self.other.1 } else { &self.last.1 }
    }
}

/// What the sections of a lock did to one variable: the releases of those that read it and that wrote it.
#[derive(Clone, Debug, Default)]
struct Touched {
    read: LastReleases,
    wrote: LastReleases,
}

#[derive(Clone, Debug, Default)]
struct Lock {
    happened: Clock,
    weak: Clock,
    queue: Queue,
    touched: FxHashMap<VarIx, Touched>,
    /// Clocks of a read-write lock: writers, readers.
    writers: Clocks,
    readers: Clocks,
    rwlock: bool,
}

/// A section that a thread is in.
#[derive(Clone, Debug)]
struct Open {
    lock: LockIx,
    acquired: u32,
    /// Variables accessed in it, and whether written.
    accessed: FxHashMap<VarIx, (bool, bool)>,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    clocks: Clocks,
    open: Vec<Open>,
    known: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Last {
    time: u32,
    site: Site,
}

#[derive(Clone, Debug, Default)]
struct Variable {
    reads: Vec<Last>,
    writes: Vec<Last>,
}

#[derive(Debug)]
pub struct Wcp {
    threads: Vec<Thread>,
    locks: Vec<Lock>,
    channels: Vec<Clocks>,
    variables: PerVar<Variable>,
    races: Races,
}

impl Default for Wcp {
    fn default() -> Wcp {
        Wcp {
            threads: Vec::new(),
            locks: Vec::new(),
            channels: Vec::new(),
            variables: PerVar::default(),
            races: Races::new(NAME, Grade::Suspected),
        }
    }
}

fn entry<T: Default + Clone>(items: &mut Vec<T>, index: usize) -> &mut T {
    if items.len() <= index {
        items.resize(index + 1, T::default());
    }
    &mut items[index]
}

impl Wcp {
    pub fn keep_all() -> Wcp {
        Wcp { races: Races::new(NAME, Grade::Suspected).keep_all(), ..Wcp::default() }
    }

    pub fn races(&self) -> &Races {
        &self.races
    }

    #[inline]
    fn thread(&mut self, thread: ThreadIx) -> &mut Thread {
        let state = entry(&mut self.threads, thread.index());
        if !state.known {
            state.known = true;
            state.clocks.happened.set(thread, 1);
            state.clocks.certain.set(thread, 1);
        }
        state
    }

    /// What follows is a new time: other threads may know what came before.
    fn tick(&mut self, thread: ThreadIx) {
        let clocks = &mut self.threads[thread.index()].clocks;
        clocks.happened.tick(thread);
        clocks.certain.tick(thread);
    }

    fn acquire(&mut self, step: &Step<'_>, lock: LockIx, read: bool) {
        let thread = step.thread();
        let rwlock = match step.event.op {
            Op::Lock { flags, .. } | Op::ReadLock { flags, .. } => flags.rwlock || read,
            _ => read,
        };
        let lock_state = entry(&mut self.locks, lock.index());
        lock_state.rwlock |= rwlock;
        let state = &mut self.threads[thread.index()];
        if lock_state.rwlock {
            state.clocks.join(&lock_state.writers);
            if !read {
                state.clocks.join(&lock_state.readers);
            }
            return;
        }
        state.clocks.happened.join(&lock_state.happened);
        state.clocks.weak.join(&lock_state.weak);
        let acquired = state.clocks.certain.get(thread);
        state.open.push(Open { lock, acquired, accessed: FxHashMap::default() });
    }

    fn release(&mut self, thread: ThreadIx, lock: LockIx, read: bool) {
        let lock_state = entry(&mut self.locks, lock.index());
        let state = &mut self.threads[thread.index()];
        let place = state.open.iter().position(|open| open.lock == lock);
        let Some(place) = place else {
            if read { &mut lock_state.readers } else { &mut lock_state.writers }.join(&state.clocks);
            return self.tick(thread);
        };
        let open = state.open.remove(place);
        let queue = &mut lock_state.queue;
        // Rule (b).
        let mut at = *entry(&mut queue.passed, thread.index()).max(&mut queue.dropped);
        while let Some(section) = queue.sections.get(at - queue.dropped) {
            // Its own sections count as well: a thread's section can be weakly before a later one of the same thread, by
            // way of others. A section that is known implies that all before it are.
            if section.acquired > state.clocks.weak.get(section.owner) {
                break;
            }
            state.clocks.weak.join(&section.released);
            at += 1;
        }
        queue.passed[thread.index()] = at;
        for (var, (was_read, was_written)) in open.accessed {
            let touched = lock_state.touched.entry(var).or_default();
            if was_read {
                touched.read.push(thread, &state.clocks.happened);
            }
            if was_written {
                touched.wrote.push(thread, &state.clocks.happened);
            }
        }
        lock_state.happened.copy_from(&state.clocks.happened);
        lock_state.weak.copy_from(&state.clocks.weak);
        let released = state.clocks.happened.clone();
        let queue = &mut lock_state.queue;
        queue.sections.push_back(Section { owner: thread, acquired: open.acquired, released });
        queue.drop_passed(&self.threads);
        // In case the lock turns out to be a read-write lock.
        let clocks = &self.threads[thread.index()].clocks;
        if lock_state.rwlock {
            lock_state.writers.join(clocks);
        }
        self.tick(thread);
    }

    fn access(&mut self, step: &Step<'_>, write: bool) {
        let thread = step.thread();
        for &var in step.vars {
            let state = &mut self.threads[thread.index()];
            // Rule (a).
            for open in &mut state.open {
                if let Some(touched) = self.locks[open.lock.index()].touched.get(&var) {
                    state.clocks.weak.join(touched.wrote.by_others_than(thread));
                    if write {
                        state.clocks.weak.join(touched.read.by_others_than(thread));
                    }
                }
                let accessed = open.accessed.entry(var).or_default();
                accessed.0 |= !write;
                accessed.1 |= write;
            }
        }
        let clocks = &self.threads[thread.index()].clocks;
        let now = clocks.certain.get(thread);
        for &var in step.vars {
            let variable = self.variables.get_mut(var);
            let unknown = |accesses: &[Last]| {
                accesses
                    .iter()
                    .enumerate()
                    .find(|(other, last)| {
                        let other = ThreadIx(*other as u32);
                        last.time > clocks.weak.get(other) && last.time > clocks.certain.get(other)
                    })
                    .map(|(_, last)| last.site)
            };
            if let Some(first) = unknown(&variable.writes) {
                self.races.race(var, first, true, step, write);
            } else if write && let Some(first) = unknown(&variable.reads) {
                self.races.race(var, first, false, step, true);
            }
            let mine = if write { &mut variable.writes } else { &mut variable.reads };
            *entry(mine, thread.index()) = Last { time: now, site: Site::of(step) };
        }
    }

    fn receive(&mut self, thread: ThreadIx, channel: ChannelIx) {
        let sent = entry(&mut self.channels, channel.index());
        self.threads[thread.index()].clocks.join(sent);
    }

    fn send(&mut self, thread: ThreadIx, channel: ChannelIx) {
        entry(&mut self.channels, channel.index()).join(&self.threads[thread.index()].clocks);
        self.tick(thread);
    }

    fn split(&mut self, old: VarIx, new: VarIx) {
        for lock in &mut self.locks {
            if let Some(touched) = lock.touched.get(&old).cloned() {
                lock.touched.insert(new, touched);
            }
        }
        for open in self.threads.iter_mut().flat_map(|thread| &mut thread.open) {
            if let Some(accessed) = open.accessed.get(&old).copied() {
                open.accessed.insert(new, accessed);
            }
        }
    }
}

impl Queue {
    /// Forgets sections that every thread seen so far has passed or owns and that cannot matter to a new thread before
    /// it has passed them by itself. A thread that has not released this lock yet keeps them.
    fn drop_passed(&mut self, threads: &[Thread]) {
        if self.sections.len() < 64 || !self.sections.len().is_power_of_two() {
            return;
        }
        let passed = (0..threads.len()).filter(|&thread| threads[thread].known);
        let least = passed.map(|thread| self.passed.get(thread).copied().unwrap_or(0)).min().unwrap_or(0);
        while self.dropped < least && self.sections.pop_front().is_some() {
            self.dropped += 1;
        }
    }
}

impl Detector for Wcp {
    fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        for &(old, new) in step.splits {
            self.split(old, new);
        }
        let thread = step.thread();
        self.thread(thread);
        if let Some(write) = step.plain_access() {
            return self.access(step, write);
        }
        match step.sync {
            Sync::None => {}
            Sync::Acquire { lock, read } => self.acquire(step, lock, read),
            Sync::Release { lock, read } => self.release(thread, lock, read),
            Sync::Fork(child) => {
                let clocks = self.threads[thread.index()].clocks.clone();
                self.thread(child).clocks.join(&clocks);
                self.tick(thread);
            }
            Sync::Join(child) => {
                let clocks = self.thread(child).clocks.clone();
                self.threads[thread.index()].clocks.join(&clocks);
            }
            Sync::Receive(channel) => self.receive(thread, channel),
            Sync::Send(channel) => self.send(thread, channel),
            Sync::Exchange(channel) => {
                self.receive(thread, channel);
                self.send(thread, channel);
            }
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.races.take()
    }
}
