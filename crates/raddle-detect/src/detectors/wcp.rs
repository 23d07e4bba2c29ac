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
//! race is one. Grade *suspected*: what is reported as a race may be a deadlock or, after the first, nothing, and there is no
//! schedule to show. [`super::syncp`] gives witnesses.
//!
//! **How**. Three clocks a thread: `H` happens-before, `P` what is `<wcp`, `K` what is ordered for certain (threads,
//! forks, joins, and all primitives that are not mutexes). For (a), each lock remembers for each variable the last
//! releases of sections that read it and wrote it, those of the thread itself aside (they do not conflict); the `H` of a
//! release is stored once for all variables of its section. For (b), each lock has a queue of its sections; at a release by `t`, the sections whose acquisition is in `P_t` are passed, and their release's `H` is joined to
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
use raddle_findings::Basis;
use raddle_trace::{Op, ThreadIx, ops_beside};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::rc::Rc;

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

/// A release: who, when, and `H` then. The clock is shared by all that remember the release.
#[derive(Clone, Debug)]
struct Release {
    owner: ThreadIx,
    time: u32,
    happened: Rc<Clock>,
}

impl Release {
    /// Joins `H` of the release to `weak`. Whoever knows the owner's time of the release knows all that the owner knew
    /// then, because the owner's counter grows at every release; so one entry decides whether there is anything to do.
    #[inline]
    fn join_to(&self, weak: &mut Clock) {
        if weak.get(self.owner) < self.time {
            weak.join(&self.happened);
        }
    }
}

#[derive(Clone, Debug)]
struct Section {
    /// Owner's counter at the acquisition.
    acquired: u32,
    released: Release,
}

/// Sections of a lock that some thread has not passed.
#[derive(Clone, Debug, Default)]
struct Queue {
    sections: VecDeque<Section>,
    dropped: usize,
    /// By thread: how many it has passed.
    passed: Vec<usize>,
}

/// The last release, and the last one by another thread than that. Sections of a lock follow each other in
/// happens-before, so the last one that is not the asking thread's own knows all that matters.
#[derive(Clone, Debug, Default)]
struct LastReleases {
    last: Option<Release>,
    other: Option<Release>,
}

impl LastReleases {
    fn push(&mut self, release: &Release) {
        let before = self.last.replace(release.clone());
        if before.as_ref().is_some_and(|before| before.owner != release.owner) {
            self.other = before;
        }
    }

    #[inline]
    fn by_others_than(&self, thread: ThreadIx) -> Option<&Release> {
        match &self.last {
            Some(last) if last.owner != thread => Some(last),
            _ => self.other.as_ref(),
        }
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
    accessed: Accessed,
}

/// Variables accessed in a section, and whether the access wrote; nearly without repetitions.
#[derive(Clone, Debug, Default)]
struct Accessed {
    list: Vec<(VarIx, bool)>,
    /// At this length repetitions are taken out.
    tidy_at: usize,
}

impl Accessed {
    #[inline]
    fn push(&mut self, var: VarIx, write: bool) {
        if self.list.last() == Some(&(var, write)) {
            return;
        }
        self.list.push((var, write));
        if self.list.len() >= self.tidy_at.max(TIDY_MIN) {
            self.tidy();
        }
    }

    #[cold]
    fn tidy(&mut self) {
        self.list.sort_unstable();
        self.list.dedup();
        self.tidy_at = 2 * self.list.len();
    }
}

/// Shorter lists are left as they are.
const TIDY_MIN: usize = 64;

#[derive(Clone, Debug, Default)]
struct Thread {
    clocks: Clocks,
    open: Vec<Open>,
    known: bool,
}

/// Times and places of each thread's last access of one type; time 0 is never. The times stand together: they are what
/// every access looks at.
#[derive(Clone, Debug, Default)]
struct Lasts {
    times: SmallVec<[u32; 8]>,
    sites: Vec<Site>,
}

impl Lasts {
    /// An access that the thread with these clocks does not know.
    #[inline]
    fn unknown(&self, clocks: &Clocks) -> Option<Site> {
        let thread = self.times.iter().enumerate().position(|(other, &time)| {
            let other = ThreadIx(other as u32);
            time > clocks.weak.get(other) && time > clocks.certain.get(other)
        });
        thread.map(|thread| self.sites[thread])
    }

    #[inline]
    fn set(&mut self, thread: ThreadIx, time: u32, site: Site) {
        if self.times.len() <= thread.index() {
            self.times.resize(thread.index() + 1, 0);
            self.sites.resize(thread.index() + 1, Site::default());
        }
        self.times[thread.index()] = time;
        self.sites[thread.index()] = site;
    }
}

#[derive(Clone, Debug, Default)]
struct Variable {
    reads: Lasts,
    writes: Lasts,
}

#[derive(Debug)]
pub struct Wcp {
    threads: Vec<Thread>,
    locks: Vec<Lock>,
    channels: Vec<Clocks>,
    variables: PerVar<Variable>,
    /// Lists of closed sections, to be used again.
    spare: Vec<Accessed>,
    races: Races,
}

impl Default for Wcp {
    fn default() -> Wcp {
        Wcp {
            threads: Vec::new(),
            locks: Vec::new(),
            channels: Vec::new(),
            variables: PerVar::default(),
            spare: Vec::new(),
            races: Races::new(NAME, Basis::rule()),
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
        Wcp { races: Races::new(NAME, Basis::rule()).keep_all(), ..Wcp::default() }
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
            Op::LockFailed { .. }
            | Op::ReadLockFailed { .. }
            | Op::Unlock { .. }
            | Op::Request { .. }
            | ops_beside!(Lock) => read,
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
        state.open.push(Open { lock, acquired, accessed: self.spare.pop().unwrap_or_default() });
    }

    fn release(&mut self, thread: ThreadIx, lock: LockIx, read: bool) {
        let lock_state = entry(&mut self.locks, lock.index());
        let state = &mut self.threads[thread.index()];
        let place = state.open.iter().position(|open| open.lock == lock);
        let Some(place) = place else {
            if read { &mut lock_state.readers } else { &mut lock_state.writers }.join(&state.clocks);
            return self.tick(thread);
        };
        let mut open = state.open.remove(place);
        let queue = &mut lock_state.queue;
        // Rule (b).
        let mut at = *entry(&mut queue.passed, thread.index()).max(&mut queue.dropped);
        while let Some(section) = queue.sections.get(at - queue.dropped) {
            // Its own sections count as well: a thread's section can be weakly before a later one of the same thread, by
            // way of others. A section that is known implies that all before it are.
            if section.acquired > state.clocks.weak.get(section.released.owner) {
                break;
            }
            section.released.join_to(&mut state.clocks.weak);
            at += 1;
        }
        queue.passed[thread.index()] = at;
        let time = state.clocks.happened.get(thread);
        let released = Release { owner: thread, time, happened: Rc::new(state.clocks.happened.clone()) };
        for (var, write) in open.accessed.list.drain(..) {
            let touched = lock_state.touched.entry(var).or_default();
            if write { &mut touched.wrote } else { &mut touched.read }.push(&released);
        }
        open.accessed.tidy_at = 0;
        self.spare.push(open.accessed);
        lock_state.happened.copy_from(&state.clocks.happened);
        lock_state.weak.copy_from(&state.clocks.weak);
        let queue = &mut lock_state.queue;
        queue.sections.push_back(Section { acquired: open.acquired, released });
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
                    if let Some(release) = touched.wrote.by_others_than(thread) {
                        release.join_to(&mut state.clocks.weak);
                    }
                    if write && let Some(release) = touched.read.by_others_than(thread) {
                        release.join_to(&mut state.clocks.weak);
                    }
                }
                open.accessed.push(var, write);
            }
        }
        let clocks = &self.threads[thread.index()].clocks;
        let now = clocks.certain.get(thread);
        for &var in step.vars {
            let variable = self.variables.get_mut(var);
            if let Some(first) = variable.writes.unknown(clocks) {
                self.races.race(var, first, step);
            } else if write && let Some(first) = variable.reads.unknown(clocks) {
                self.races.race(var, first, step);
            }
            let mine = if write { &mut variable.writes } else { &mut variable.reads };
            mine.set(thread, now, Site::of(step));
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
            for write in [false, true] {
                if open.accessed.list.contains(&(old, write)) {
                    open.accessed.push(new, write);
                }
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
    fn soon(&mut self, vars: &[VarIx]) {
        let variables = vars.iter().filter_map(|&var| self.variables.get(var));
        // The sum is of no interest: reading is.
        std::hint::black_box(variables.fold(0, |sum, variable| sum + variable.writes.times.len()));
    }

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
