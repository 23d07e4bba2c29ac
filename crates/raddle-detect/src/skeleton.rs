//! The skeleton of a trace: as much of it as is needed to compute sync-preserving closures.
//!
//! A reordering of a trace is *sync-preserving* if critical sections of the same lock that take part in it keep their
//! observed order (Mathur, Pavlogiannis, Viswanathan, *Optimal prediction of synchronization-preserving races*, 2021).
//! A set of events can be executed by such a reordering exactly if it is an *ideal*:
//!
//! 1. closed under thread order, forks, joins and what every read saw (here: [`Skeleton::clock_at`]), and
//! 2. of two critical sections of a lock that have both begun in it, the earlier one has also ended in it.
//!
//! An ideal is a prefix of every thread, so a vector of lengths is all there is to store, and the observed order
//! restricted to it is the reordering: the witness. The least ideal that contains given events is found by adding what
//! the two rules ask for until nothing is missing; [`Skeleton::close`] does this *incrementally*, looking only at what
//! was added since an ideal that was closed before.
//!
//! # Deviations
//!
//! The papers know mutexes, forks and joins. Everything else that orders threads (conditions, barriers, semaphores,
//! one-time initialisers, atomics, annotations, read-write locks, lives of objects) is taken as fixed: a receive keeps
//! all sends that were observed before it. That keeps witnesses valid ([`raddle_trace::model`] agrees, see the tests)
//! and gives up reorderings across those primitives. The papers walk through lists of critical sections with one
//! pointer for each pair of threads and variable; we find the last section of a lock within an ideal by binary search,
//! which makes the cost of a closure independent of how long the trace has been running.

use crate::clock::Clock;
use crate::step::{ChannelIx, LockIx, Step, Sync};
use raddle_trace::model::{begins_or_ends_life, object_of};
use raddle_trace::{EventIx, MemoryTrace, ObjectId, Op, ThreadIx, ops_beside};
use rustc_hash::FxHashMap;

/// For each thread, how many of its events belong to a reordering.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ideal(pub Vec<u32>);

impl Ideal {
    pub fn len_of(&self, thread: ThreadIx) -> u32 {
        self.0.get(thread.index()).copied().unwrap_or(0)
    }

    fn raise(&mut self, thread: usize, len: u32) {
        if self.0.len() <= thread {
            self.0.resize(thread + 1, 0);
        }
        self.0[thread] = self.0[thread].max(len);
    }

    /// The reordering that the ideal stands for: its events in the observed order.
    pub fn schedule(&self, trace: &MemoryTrace) -> Vec<EventIx> {
        let mut left = self.0.clone();
        let mut schedule = Vec::with_capacity(left.iter().map(|&len| len as usize).sum());
        for (position, event) in trace.events.iter().enumerate() {
            if let Some(left) = left.get_mut(event.thread.index())
                && *left > 0
            {
                *left -= 1;
                schedule.push(EventIx(position as u32));
            }
        }
        schedule
    }
}

/// The release of a section that has not ended.
const OPEN: u32 = u32::MAX;

/// A critical section of a mutex; events are counted from 1 within their thread.
#[derive(Clone, Copy, Debug)]
struct Section {
    acquire: u32,
    release: u32,
    position: u64,
}

/// A moment at which a thread learnt something from another one.
#[derive(Clone, Copy, Debug)]
struct Lesson {
    index: u32,
    len: u32,
    start: usize,
}

#[derive(Clone, Debug, Default)]
struct ThreadPart {
    /// Events so far.
    len: u32,
    known: Clock,
    lessons: Vec<Lesson>,
    /// Acquisitions in order: local index and lock.
    acquires: Vec<(u32, LockIx)>,
    forked: bool,
    /// It will not act any more.
    ended: bool,
}

/// Clocks of an object that can begin and end its life.
#[derive(Clone, Debug, Default)]
struct Life {
    born: Clock,
    used: Clock,
    begun: bool,
}

/// Clocks of a read-write lock.
#[derive(Clone, Debug, Default)]
struct Shared {
    writes: Clock,
    reads: Clock,
    rwlock: bool,
}

#[derive(Debug, Default)]
pub struct Skeleton {
    threads: Vec<ThreadPart>,
    /// Clocks of lessons, one behind the other.
    arena: Vec<u32>,
    /// By lock and thread.
    sections: Vec<Vec<Vec<Section>>>,
    shared: Vec<Shared>,
    channels: Vec<Clock>,
    lives: FxHashMap<ObjectId, Life>,
    /// A thread has acted that was not forked by another, beside the first.
    orphans: bool,
    /// Scratch of `close`.
    seen: Vec<u32>,
    marks: Vec<u32>,
    mark: u32,
    touched: Vec<LockIx>,
}

fn slot<T: Default + Clone>(slots: &mut Vec<T>, index: usize) -> &mut T {
    if slots.len() <= index {
        slots.resize(index + 1, T::default());
    }
    &mut slots[index]
}

impl Skeleton {
    /// Enters an event. Returns its number within its thread, counted from 1. What a plain read saw is told separately
    /// by [`Skeleton::saw`], so that a detector can look at the state in between.
    pub fn step(&mut self, step: &Step<'_>) -> u32 {
        let thread = step.thread();
        let first = self.threads.is_empty();
        let part = slot(&mut self.threads, thread.index());
        part.len += 1;
        let index = part.len;
        if index == 1 {
            self.orphans |= !first && !part.forked;
        }
        // Whoever is said to have ended and goes on after all takes part again.
        part.ended = matches!(step.event.op, Op::End);
        part.known.set(thread, index);
        if step.plain_access().is_some() {
            return index;
        }
        self.live(thread, &step.event.op);
        match step.sync {
            Sync::None => {}
            Sync::Acquire { lock, read } => {
                let shared = slot(&mut self.shared, lock.index());
                let flags = match step.event.op {
                    Op::Lock { flags, .. } | Op::ReadLock { flags, .. } => flags,
                    Op::LockFailed { .. }
                    | Op::ReadLockFailed { .. }
                    | Op::Unlock { .. }
                    | Op::Request { .. }
                    | ops_beside!(Lock) => Default::default(),
                };
                shared.rwlock |= read || flags.rwlock;
                if shared.rwlock {
                    let (writes, reads) = (shared.writes.clone(), shared.reads.clone());
                    self.learn(thread, &writes);
                    if !read {
                        self.learn(thread, &reads);
                    }
                } else {
                    let by_thread = slot(&mut self.sections, lock.index());
                    let sections = slot(by_thread, thread.index());
                    sections.push(Section { acquire: index, release: OPEN, position: step.position });
                    self.threads[thread.index()].acquires.push((index, lock));
                }
            }
            Sync::Release { lock, read } => {
                let known = &self.threads[thread.index()].known;
                let shared = slot(&mut self.shared, lock.index());
                if read {
                    shared.reads.join(known);
                } else {
                    shared.writes.join(known);
                }
                let by_thread = slot(&mut self.sections, lock.index());
                if let Some(section) = slot(by_thread, thread.index()).last_mut()
                    && section.release == OPEN
                {
                    section.release = index;
                }
            }
            Sync::Fork(child) => {
                let known = self.threads[thread.index()].known.clone();
                slot(&mut self.threads, child.index()).forked = true;
                self.learn(child, &known);
            }
            Sync::Join(child) => {
                let part = slot(&mut self.threads, child.index());
                part.ended = true;
                let known = part.known.clone();
                self.learn(thread, &known);
            }
            Sync::Receive(channel) => self.receive(thread, channel),
            Sync::Send(channel) => self.send(thread, channel),
            Sync::Exchange(channel) => {
                self.receive(thread, channel);
                self.send(thread, channel);
            }
        }
        index
    }

    fn receive(&mut self, thread: ThreadIx, channel: ChannelIx) {
        let sent = slot(&mut self.channels, channel.index()).clone();
        self.learn(thread, &sent);
    }

    fn send(&mut self, thread: ThreadIx, channel: ChannelIx) {
        let known = &self.threads[thread.index()].known;
        slot(&mut self.channels, channel.index()).join(known);
    }

    /// Uses of an object stay between its beginning and its end.
    fn live(&mut self, thread: ThreadIx, op: &Op) {
        let Some(object) = object_of(op) else { return };
        let life = self.lives.entry(object).or_default();
        if begins_or_ends_life(op) {
            let used = life.used.clone();
            self.learn(thread, &used);
            let known = self.threads[thread.index()].known.clone();
            let life = self.lives.entry(object).or_default();
            life.born.copy_from(&known);
            life.used.copy_from(&known);
            life.begun = true;
        } else {
            if life.begun {
                let born = life.born.clone();
                self.learn(thread, &born);
            }
            let known = &self.threads[thread.index()].known;
            self.lives.entry(object).or_default().used.join(known);
        }
    }

    /// The last event of `thread` was a read that saw the event `index` of `writer`.
    pub fn saw(&mut self, thread: ThreadIx, writer: ThreadIx, index: u32) {
        if thread == writer || self.threads[thread.index()].known.get(writer) >= index {
            return;
        }
        let mut clock = Clock::default();
        for (other, value) in self.clock_at(writer, index) {
            clock.set(other, value);
        }
        clock.set(writer, index);
        self.learn(thread, &clock);
    }

    fn learn(&mut self, thread: ThreadIx, news: &Clock) {
        let part = &mut self.threads[thread.index()];
        if !part.known.join(news) {
            return;
        }
        part.known.set(thread, part.len);
        let lesson =
            Lesson { index: part.len, len: part.known.as_slice().len() as u32, start: self.arena.len() };
        self.arena.extend_from_slice(part.known.as_slice());
        match part.lessons.last_mut() {
            Some(last) if last.index == part.len => *last = lesson,
            _ => part.lessons.push(lesson),
        }
    }

    /// What a thread knows now of another: how many of its events are certainly before.
    #[inline]
    pub fn knows(&self, thread: ThreadIx, other: ThreadIx) -> u32 {
        self.threads[thread.index()].known.get(other)
    }

    /// How many of a thread's events are known to all other threads that can still act. A thread that will be forked
    /// knows what its parent knows. One that comes out of nowhere knows nothing; recorded programs have none, but
    /// converted traces may leave forks out: after the first such thread the answer is always 0.
    pub fn known_by_all(&self, thread: ThreadIx) -> u32 {
        if self.orphans {
            return 0;
        }
        let others =
            self.threads.iter().enumerate().filter(|(other, part)| *other != thread.index() && !part.ended);
        others.map(|(_, part)| part.known.get(thread)).min().unwrap_or(0)
    }

    /// How many times threads have learnt something; two equal values mean that nothing happened in between.
    pub fn lessons_of(&self, thread: ThreadIx) -> usize {
        self.threads[thread.index()].lessons.len()
    }

    /// What the first `index` events of a thread need of the other threads.
    fn clock_at(&self, thread: ThreadIx, index: u32) -> impl Iterator<Item = (ThreadIx, u32)> + '_ {
        let lessons = self.threads.get(thread.index()).map_or(&[][..], |part| part.lessons.as_slice());
        let count = last_at_most(lessons, index, |lesson| lesson.index);
        let entries = match count.checked_sub(1) {
            Some(last) => {
                let lesson = lessons[last];
                &self.arena[lesson.start..lesson.start + lesson.len as usize]
            }
            None => &[],
        };
        entries
            .iter()
            .enumerate()
            .map(|(other, &value)| (ThreadIx(other as u32), value))
            .filter(move |(other, _)| *other != thread)
    }

    /// Adds to an ideal what must come before the event `index` of a thread, without what an access sees.
    pub fn ask_before_access(&self, ideal: &mut Ideal, thread: ThreadIx, index: u32) {
        self.ask(ideal, thread, index - 1, index - 1);
    }

    /// Adds to an ideal what must come before the synchronisation event `index` of a thread.
    pub fn ask_before_sync(&self, ideal: &mut Ideal, thread: ThreadIx, index: u32) {
        self.ask(ideal, thread, index, index - 1);
    }

    fn ask(&self, ideal: &mut Ideal, thread: ThreadIx, clock_index: u32, len: u32) {
        ideal.raise(thread.index(), len);
        for (other, value) in self.clock_at(thread, clock_index) {
            ideal.raise(other.index(), value);
        }
    }

    /// Makes an ideal of `ideal`, which contains the ideal `closed`. False if there is none, because a section that
    /// would have to end never does.
    pub fn close(&mut self, ideal: &mut Ideal, closed: &Ideal) -> bool {
        self.seen.clear();
        self.seen.extend_from_slice(&closed.0);
        self.seen.resize(self.threads.len().max(ideal.0.len()), 0);
        ideal.0.resize(self.seen.len(), 0);
        while let Some(thread) = (0..ideal.0.len()).find(|&thread| ideal.0[thread] > self.seen[thread]) {
            let (before, now) = (self.seen[thread], ideal.0[thread]);
            self.seen[thread] = now;
            self.ask(ideal, ThreadIx(thread as u32), now, now);
            self.touch_locks(thread, before, now);
            while let Some(lock) = self.touched.pop() {
                if !self.settle(lock, ideal) {
                    self.touched.clear();
                    return false;
                }
            }
        }
        true
    }

    /// Collects the locks that a thread acquires in its events after `before` up to `now`.
    fn touch_locks(&mut self, thread: usize, before: u32, now: u32) {
        let Some(part) = self.threads.get(thread) else { return };
        let low = last_at_most(&part.acquires, before, |acquire| acquire.0);
        let high = last_at_most(&part.acquires, now, |acquire| acquire.0);
        self.marks.resize(self.sections.len(), 0);
        if high - low > 4 * self.sections.len() {
            self.touched.extend((0..self.sections.len() as u32).map(LockIx));
            return;
        }
        self.mark += 1;
        for &(_, lock) in &part.acquires[low..high] {
            if self.marks[lock.index()] != self.mark {
                self.marks[lock.index()] = self.mark;
                self.touched.push(lock);
            }
        }
    }

    /// The second rule for one lock.
    fn settle(&self, lock: LockIx, ideal: &mut Ideal) -> bool {
        let mut latest: Option<(usize, Section)> = None;
        for (thread, sections) in self.sections[lock.index()].iter().enumerate() {
            let len = ideal.0[thread];
            let count = last_at_most(sections, len, |section| section.acquire);
            let Some(section) = count.checked_sub(1).map(|last| sections[last]) else { continue };
            let earlier = match latest {
                Some((_, other)) if other.position > section.position => (thread, section),
                Some(other) => {
                    latest = Some((thread, section));
                    other
                }
                None => {
                    latest = Some((thread, section));
                    continue;
                }
            };
            if earlier.1.release == OPEN {
                return false;
            }
            ideal.raise(earlier.0, earlier.1.release);
        }
        true
    }
}

/// How many of the sorted items have a key of at most `bound`. Looks near the end first: that is where ideals of the
/// current event end.
#[inline]
fn last_at_most<T>(items: &[T], bound: u32, key: impl Fn(&T) -> u32) -> usize {
    let mut width = 1;
    let mut high = items.len();
    loop {
        let low = items.len().saturating_sub(width);
        if low == 0 || key(&items[low]) <= bound {
            return low + items[low..high].partition_point(|item| key(item) <= bound);
        }
        high = low;
        width *= 4;
    }
}
