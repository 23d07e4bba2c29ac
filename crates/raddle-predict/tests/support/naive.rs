//! The naive twin: all interleavings of all events, one by one.
//!
//! Written from the table in `program.rs` and nothing else of the crate: memory accesses are steps of their own, states
//! are cloned and compared whole, nothing is reduced. Only for traces of a few dozen events.

use raddle_trace::conditions::Conditions;
use raddle_trace::model::EventIx;
use raddle_trace::{Addr, AtomicKind, LocationIx, MemoryTrace, ObjectId, Op, Patience, ThreadIx};
use std::collections::{BTreeMap, BTreeSet, HashSet};

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Lock {
    writer: Option<usize>,
    readers: BTreeSet<usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    next: Vec<usize>,
    locks: BTreeMap<u64, Lock>,
    semaphores: BTreeMap<u64, u32>,
    /// Threads inside a barrier that is not full.
    barriers: BTreeMap<u64, BTreeSet<usize>>,
    /// Threads whose signal came, or whose barrier is full.
    woken: BTreeSet<usize>,
    values: BTreeMap<u64, Option<u64>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Can {
    Move,
    Wait,
    Stray,
    Ended,
    /// At its end, but the trace does not say what comes next.
    Open,
}

/// A trace prepared for enumeration.
pub struct Naive<'t> {
    trace: &'t MemoryTrace,
    threads: Vec<Vec<usize>>,
    /// What a thread was waiting for when the trace ended.
    pending: Vec<Option<Op>>,
    open: Vec<bool>,
    conditions: Conditions,
    guarded: HashSet<usize>,
    barrier_counts: BTreeMap<u64, u32>,
    starts: BTreeMap<u64, u32>,
    first_values: BTreeMap<u64, u64>,
    atomics: bool,
    /// Reads, plain and atomic, keep their writers: the event that each saw, if any.
    seen: Option<BTreeMap<usize, Option<usize>>>,
    states_max: usize,
}

/// What enumeration found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Pairs of code locations that two threads can be before at once, conflicting.
    pub races: BTreeSet<(LocationIx, LocationIx)>,
    /// Some state is stuck, with every thread ended or waiting.
    pub stuck: bool,
    /// Kinds of waiting threads in such states: the locations they are blocked at.
    pub stuck_places: BTreeSet<BTreeSet<(usize, LocationIx)>>,
    pub states: usize,
}

fn overlap(a: (Addr, u64), b: (Addr, u64)) -> bool {
    a.0.0 < b.0.0 + b.1 && b.0.0 < a.0.0 + a.1
}

/// Address, size, whether it writes, whether it is atomic.
fn access(op: &Op) -> Option<(Addr, u64, bool, bool)> {
    match *op {
        Op::Read { addr, size, .. } => Some((addr, size.into(), false, false)),
        Op::Write { addr, size, .. } => Some((addr, size.into(), true, false)),
        Op::Atomic { addr, size, kind, .. } => Some((addr, size.into(), kind.writes(), true)),
        _ => None,
    }
}

fn reads(op: &Op) -> bool {
    match op {
        Op::Read { .. } => true,
        Op::Atomic { kind, .. } => kind.reads(),
        _ => false,
    }
}

fn conflict(a: &Op, b: &Op) -> bool {
    let (Some((x, n, w, at)), Some((y, m, v, bt))) = (access(a), access(b)) else { return false };
    overlap((x, n), (y, m)) && (w || v) && !(at && bt)
}

/// Addresses of atomics, and those at which every access holds one and the same lock from the moment on in which a second
/// thread comes.
fn handed_over(trace: &MemoryTrace) -> BTreeSet<u64> {
    let mut held: Vec<BTreeMap<u64, bool>> = vec![BTreeMap::new(); trace.tables.threads.len()];
    let mut owners: BTreeMap<u64, usize> = BTreeMap::new();
    let mut common: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let mut atomics = BTreeSet::new();
    let mut forked = false;
    for event in &trace.events {
        let thread = event.thread.index();
        match event.op {
            Op::Lock { lock, .. } => drop(held[thread].insert(lock.0, false)),
            Op::ReadLock { lock, .. } => drop(held[thread].insert(lock.0, true)),
            Op::Unlock { lock, .. } => drop(held[thread].remove(&lock.0)),
            Op::Fork { .. } => forked = true,
            _ => {}
        }
        let Some((addr, _, writes, atomic)) = access(&event.op) else { continue };
        if atomic {
            atomics.insert(addr.0);
        }
        // Before there is anybody else, nothing is shared.
        if !forked && thread == 0 {
            continue;
        }
        let owner = *owners.entry(addr.0).or_insert(thread);
        if owner == thread && !common.contains_key(&addr.0) {
            continue;
        }
        let locks = held[thread].iter().filter(|(_, shared)| !(**shared && writes)).map(|(lock, _)| *lock);
        let locks: BTreeSet<u64> = locks.collect();
        common.entry(addr.0).and_modify(|known| *known = &*known & &locks).or_insert(locks);
    }
    let protected = common.into_iter().filter(|(_, locks)| !locks.is_empty()).map(|(addr, _)| addr);
    protected.chain(atomics).collect()
}

impl<'t> Naive<'t> {
    pub fn new(trace: &'t MemoryTrace, atomics: bool, states_max: usize) -> Naive<'t> {
        let count = trace.tables.threads.len();
        let mut threads = vec![Vec::new(); count];
        for (ix, event) in trace.events.iter().enumerate() {
            threads[event.thread.index()].push(ix);
        }
        let mut naive = Naive {
            trace,
            pending: vec![None; count],
            open: vec![false; count],
            conditions: Conditions::of(&trace.events),
            guarded: HashSet::new(),
            barrier_counts: BTreeMap::new(),
            starts: BTreeMap::new(),
            first_values: BTreeMap::new(),
            atomics,
            seen: None,
            states_max,
            threads,
        };
        naive.find_ends();
        naive.find_starts();
        naive.find_guards();
        naive
    }

    /// Only reorderings in which every read sees the write that it saw. For traces in which no two accesses overlap in part.
    pub fn keeping_reads(trace: &'t MemoryTrace, states_max: usize) -> Naive<'t> {
        let mut naive = Naive::new(trace, true, states_max);
        let mut last: BTreeMap<u64, usize> = BTreeMap::new();
        let mut seen = BTreeMap::new();
        for (ix, event) in trace.events.iter().enumerate() {
            let Some((addr, _, writes, _)) = access(&event.op) else { continue };
            if reads(&event.op) {
                seen.insert(ix, last.get(&addr.0).copied());
            }
            if writes {
                last.insert(addr.0, ix);
            }
        }
        naive.seen = Some(seen);
        naive
    }

    /// Only reorderings in which atomic reads, and reads of what one lock protects, see the write that they saw. For traces in which no two
    /// accesses overlap in part.
    pub fn keeping_hand_overs(trace: &'t MemoryTrace, states_max: usize) -> Naive<'t> {
        let mut naive = Naive::keeping_reads(trace, states_max);
        let kept = handed_over(trace);
        let address = |ix: usize| access(&trace.events[ix].op).map(|(addr, ..)| addr.0);
        let seen = naive.seen.as_mut().expect("reads are kept");
        seen.retain(|&ix, _| address(ix).is_some_and(|address| kept.contains(&address)));
        naive
    }

    fn find_ends(&mut self) {
        for (thread, events) in self.threads.iter().enumerate() {
            let ops = events.iter().map(|&ix| self.trace.events[ix].op);
            let (mut held, mut started, mut ended, mut last) = (BTreeSet::new(), false, false, None);
            for op in ops {
                match op {
                    Op::Lock { lock, .. } | Op::ReadLock { lock, .. } => drop(held.insert(lock.0)),
                    Op::Unlock { lock, .. } => drop(held.remove(&lock.0)),
                    Op::Start { .. } => started = true,
                    Op::End => ended = true,
                    _ => {}
                }
                if !matches!(op, Op::Read { .. } | Op::Write { .. }) {
                    last = Some(op);
                }
            }
            self.pending[thread] = match last {
                Some(Op::Request { lock, read: true, flags }) => Some(Op::ReadLock { lock, flags }),
                Some(Op::Request { lock, read: false, flags }) => Some(Op::Lock { lock, flags }),
                Some(Op::SemRequest { sem }) => Some(Op::SemWait { sem }),
                Some(Op::BarrierEnter { barrier }) => Some(Op::BarrierExit { barrier }),
                _ => None,
            };
            let waits = matches!(last, Some(Op::WaitBegin { .. }));
            self.open[thread] =
                (started && !ended) || !held.is_empty() || waits || self.pending[thread].is_some();
        }
    }

    fn find_starts(&mut self) {
        for event in &self.trace.events {
            match event.op {
                Op::BarrierInit { barrier, count } => drop(self.barrier_counts.insert(barrier.0, count)),
                Op::SemInit { sem, value } => drop(self.starts.insert(sem.0, value)),
                Op::Atomic { addr, kind, read, .. } => {
                    // The first access says what was there, unless it overwrites it.
                    if kind.reads() {
                        self.first_values.entry(addr.0).or_insert(read);
                    } else {
                        self.first_values.entry(addr.0).or_insert(u64::MAX);
                    }
                }
                _ => {}
            }
        }
    }

    /// A wait is guarded if somebody else writes, while it lasts, what the thread read in the segment before it.
    fn find_guards(&mut self) {
        for events in &self.threads {
            for (place, &ix) in events.iter().enumerate() {
                if !matches!(self.trace.events[ix].op, Op::WaitBegin { .. }) {
                    continue;
                }
                let mut reads = Vec::new();
                // Backwards: skip the unlock that belongs to the wait, stop at the next synchronisation.
                for &earlier in events[..place].iter().rev() {
                    match self.trace.events[earlier].op {
                        Op::Read { addr, size, .. } => {
                            reads.push((addr.0 / 8, (addr.0 + u64::from(size) - 1) / 8))
                        }
                        Op::Unlock { flags, .. } if flags.wait => {}
                        Op::Write { .. } | Op::Request { .. } | Op::SemRequest { .. } => {}
                        Op::Atomic { .. } => break,
                        _ => break,
                    }
                }
                let end = events.get(place + 1).copied().unwrap_or(self.trace.events.len());
                let thread = self.trace.events[ix].thread;
                let written = self.trace.events[ix..end].iter().filter(|event| event.thread != thread);
                let hit =
                    written.filter_map(|event| access(&event.op)).filter(|access| access.2).any(|access| {
                        let (from, to) = (access.0.0 / 8, (access.0.0 + access.1 - 1) / 8);
                        reads.iter().any(|&(low, high)| from <= high && low <= to)
                    });
                if hit {
                    self.guarded.insert(ix);
                }
            }
        }
    }

    fn next_op(&self, state: &State, thread: usize) -> Option<(Option<usize>, Op)> {
        let place = state.next[thread];
        match self.threads[thread].get(place) {
            Some(&ix) => Some((Some(ix), self.trace.events[ix].op)),
            None if place == self.threads[thread].len() => self.pending[thread].map(|op| (None, op)),
            None => None,
        }
    }

    fn executed(&self, state: &State, event: EventIx) -> bool {
        let thread = self.trace.events[event.index()].thread.index();
        self.threads[thread][..state.next[thread].min(self.threads[thread].len())].contains(&event.index())
    }

    fn lock<'s>(&self, state: &'s State, lock: ObjectId) -> Option<&'s Lock> {
        state.locks.get(&lock.0)
    }

    fn can(&self, state: &State, thread: usize) -> Can {
        let Some((ix, op)) = self.next_op(state, thread) else {
            return if self.open[thread] { Can::Open } else { Can::Ended };
        };
        if state.next[thread] == 0 {
            let me = ThreadIx(thread as u32);
            let fork =
                self.trace.events.iter().position(|e| matches!(e.op, Op::Fork { child } if child == me));
            if fork.is_some_and(|fork| !self.executed(state, EventIx(fork as u32))) {
                return Can::Wait;
            }
        }
        if let (Some(seen), Some(ix), Some((addr, ..))) = (&self.seen, ix, access(&op)) {
            let last = state.values.get(&addr.0).copied().flatten();
            let seen = seen.get(&ix).map(|writer| writer.map(|writer| writer as u64));
            let kept = !reads(&op) || seen.is_none_or(|seen| last == seen);
            return if kept { Can::Move } else { Can::Stray };
        }
        if self.seen.is_some() {
            // What failed has to fail again.
            let lock = |lock| self.lock(state, lock);
            match op {
                Op::LockFailed { lock: object, .. } => {
                    let taken = lock(object).is_some_and(|l| l.writer.is_some() || !l.readers.is_empty());
                    return if taken { Can::Move } else { Can::Stray };
                }
                Op::ReadLockFailed { lock: object, .. } => {
                    let taken = lock(object).is_some_and(|l| l.writer.is_some());
                    return if taken { Can::Move } else { Can::Stray };
                }
                Op::SemWaitFailed { sem } if state.semaphores.get(&sem.0).is_some_and(|&n| n > 0) => {
                    return Can::Stray;
                }
                _ => {}
            }
        }
        let wait_if = |waits| if waits { Can::Wait } else { Can::Move };
        let stray_if = |strays| if strays { Can::Stray } else { Can::Move };
        match op {
            Op::Join { child } => wait_if(state.next[child.index()] < self.threads[child.index()].len()),
            Op::Lock { lock, flags } => {
                let taken = self
                    .lock(state, lock)
                    .is_some_and(|lock| lock.writer.is_some() || !lock.readers.is_empty());
                if flags.patience == Patience::Blocking { wait_if(taken) } else { stray_if(taken) }
            }
            Op::ReadLock { lock, flags } => {
                let taken = self.lock(state, lock).is_some_and(|lock| lock.writer.is_some());
                if flags.patience == Patience::Blocking { wait_if(taken) } else { stray_if(taken) }
            }
            Op::WaitBegin { .. } => {
                let ix = ix.expect("not pending");
                let guarded = self.guarded.contains(&ix);
                let instance = self
                    .conditions
                    .instances
                    .iter()
                    .find(|i| i.woken.iter().any(|woken| woken.began == Some(EventIx(ix as u32))));
                stray_if(guarded && instance.is_some_and(|i| self.executed(state, i.signal)))
            }
            Op::Wait { .. } => wait_if(!state.woken.contains(&thread)),
            Op::BarrierExit { .. } => wait_if(!state.woken.contains(&thread)),
            Op::SemWait { sem } => wait_if(state.semaphores.get(&sem.0).copied().unwrap_or(0) == 0),
            Op::OncePassed { once } => {
                let begin = self.trace.events.iter().position(|e| e.op == Op::OnceBegin { once });
                let end = self.trace.events.iter().position(|e| e.op == Op::OnceEnd { once });
                let (Some(begin), Some(end)) = (begin, end) else { return Can::Move };
                if self.trace.events[begin].thread.index() == thread
                    || self.executed(state, EventIx(end as u32))
                {
                    Can::Move
                } else if self.executed(state, EventIx(begin as u32)) {
                    Can::Wait
                } else {
                    Can::Stray
                }
            }
            Op::Atomic { addr, kind, read, .. } if kind.reads() && self.atomics => {
                stray_if(state.values.get(&addr.0).copied().flatten() != Some(read))
            }
            _ => Can::Move,
        }
    }

    fn take(&self, state: &State, thread: usize) -> State {
        let (ix, op) = self.next_op(state, thread).expect("can move");
        let mut state = state.clone();
        state.next[thread] += 1;
        if let (true, Some(ix), Some((addr, _, true, _))) = (self.seen.is_some(), ix, access(&op)) {
            state.values.insert(addr.0, Some(ix as u64));
            return state;
        }
        match op {
            Op::Lock { lock, .. } => state.locks.entry(lock.0).or_default().writer = Some(thread),
            Op::ReadLock { lock, .. } => drop(state.locks.entry(lock.0).or_default().readers.insert(thread)),
            Op::Unlock { lock, flags } if !flags.wait => release(&mut state, lock, thread),
            Op::WaitBegin { lock, .. } => release(&mut state, lock, thread),
            Op::Signal { .. } | Op::Broadcast { .. } => {
                let signal = EventIx(ix.expect("not pending") as u32);
                let instance = self.conditions.instances.iter().find(|i| i.signal == signal);
                for woken in instance.into_iter().flat_map(|i| &i.woken) {
                    let waiter = self.trace.events[woken.wait.index()].thread.index();
                    let began = woken.began.expect("generated traces have beginnings");
                    if self.executed(&state, began) && !self.executed(&state, woken.wait) {
                        state.woken.insert(waiter);
                    }
                }
            }
            Op::Wait { .. } | Op::BarrierExit { .. } => drop(state.woken.remove(&thread)),
            Op::BarrierEnter { barrier } => {
                let inside = state.barriers.entry(barrier.0).or_default();
                inside.insert(thread);
                if inside.len() == self.barrier_counts[&barrier.0] as usize {
                    let inside = std::mem::take(inside);
                    state.woken.extend(inside);
                }
            }
            Op::SemWait { sem } => *state.semaphores.get_mut(&sem.0).expect("initialised") -= 1,
            Op::SemPost { sem } => *state.semaphores.entry(sem.0).or_default() += 1,
            Op::Atomic { addr, kind: AtomicKind::Store | AtomicKind::Rmw, written, .. } if self.atomics => {
                state.values.insert(addr.0, Some(written));
            }
            _ => {}
        }
        state
    }

    fn first_state(&self) -> State {
        State {
            next: vec![0; self.threads.len()],
            semaphores: self.starts.clone(),
            values: match self.seen {
                Some(_) => BTreeMap::new(),
                None => self.first_values.iter().map(|(&addr, &value)| (addr, Some(value))).collect(),
            },
            ..State::default()
        }
    }

    /// Is the thread blocked at this event, or at what it asked for there when the trace ended?
    fn is_blocked_at(&self, state: &State, thread: usize, event: usize) -> bool {
        let place = state.next[thread];
        let asked = place.checked_sub(1).and_then(|before| self.threads[thread].get(before)).copied();
        let here = match self.threads[thread].get(place) {
            Some(&next) => next == event,
            None => asked == Some(event),
        };
        here && self.can(state, thread) == Can::Wait
    }

    /// Is there a reachable state in which each of these threads is blocked at its event? `None` if there are too many states.
    pub fn reaches_blocked(&self, parties: &[(usize, usize)]) -> Option<bool> {
        let first = self.first_state();
        let mut seen = HashSet::from([first.clone()]);
        let mut work = vec![first];
        while let Some(state) = work.pop() {
            if seen.len() > self.states_max {
                return None;
            }
            if parties.iter().all(|&(thread, event)| self.is_blocked_at(&state, thread, event)) {
                return Some(true);
            }
            for thread in 0..self.threads.len() {
                if self.can(&state, thread) == Can::Move {
                    let next = self.take(&state, thread);
                    if seen.insert(next.clone()) {
                        work.push(next);
                    }
                }
            }
        }
        Some(false)
    }

    /// Signals of one waiter each that wake each other's waiter: the pairs for which that changes anything.
    pub fn exchanges(&self) -> Vec<(usize, usize)> {
        let single: Vec<usize> = (0..self.conditions.instances.len())
            .filter(|&n| {
                let instance = &self.conditions.instances[n];
                !instance.broadcast && instance.woken.len() == 1 && instance.woken[0].began.is_some()
            })
            .collect();
        let mut pairs = Vec::new();
        for &a in &single {
            for &b in &single {
                let (x, y) = (&self.conditions.instances[a], &self.conditions.instances[b]);
                if a != b && x.cond == y.cond {
                    pairs.push((a, b));
                }
            }
        }
        pairs
    }

    /// The same trace, with the waits of two signals exchanged.
    pub fn exchanged(mut self, (a, b): (usize, usize)) -> Naive<'t> {
        let woken = std::mem::take(&mut self.conditions.instances[a].woken);
        let other = std::mem::replace(&mut self.conditions.instances[b].woken, woken);
        self.conditions.instances[a].woken = other;
        self
    }

    /// Cycles of waits that leaving events out leads to, by trying all prefixes of all threads: the observed order restricted to them
    /// has to be a run. A cycle is a row of threads each of which waits for what the next one has yet to do (the signal of its
    /// wait, its end), up to one that is blocked at a lock which a thread of the row holds; the first holds a lock.
    pub fn wait_cycles(&self) -> BTreeSet<BTreeSet<(usize, usize)>> {
        let mut found = BTreeSet::new();
        let mut prefix = vec![0; self.threads.len()];
        loop {
            if let Some(state) = self.restricted(&prefix) {
                for start in 0..self.threads.len() {
                    self.extend_cycle(&state, &mut vec![start], &mut found);
                }
            }
            // The next vector of prefixes.
            let mut thread = 0;
            loop {
                if thread == prefix.len() {
                    return found;
                }
                if prefix[thread] < self.threads[thread].len() {
                    prefix[thread] += 1;
                    break;
                }
                prefix[thread] = 0;
                thread += 1;
            }
        }
    }

    /// The state after the observed order, restricted to prefixes; `None` if that is no run.
    fn restricted(&self, prefix: &[usize]) -> Option<State> {
        let mut state = self.first_state();
        for event in &self.trace.events {
            let thread = event.thread.index();
            // Events of a thread come in their order, so the next one is this one.
            if state.next[thread] >= prefix[thread] {
                continue;
            }
            if self.can(&state, thread) != Can::Move {
                return None;
            }
            state = self.take(&state, thread);
        }
        Some(state)
    }

    fn extend_cycle(
        &self,
        state: &State,
        path: &mut Vec<usize>,
        found: &mut BTreeSet<BTreeSet<(usize, usize)>>,
    ) {
        let thread = *path.last().expect("never empty");
        if self.can(state, thread) != Can::Wait || state.next[thread] == 0 {
            return;
        }
        let Some((ix, op)) = self.next_op(state, thread) else { return };
        let asked = self.threads[thread][state.next[thread] - 1];
        let holds = |thread: usize, object: ObjectId, read: bool| {
            self.lock(state, object)
                .is_some_and(|lock| lock.writer == Some(thread) || (!read && lock.readers.contains(&thread)))
        };
        match op {
            Op::Lock { lock, .. } | Op::ReadLock { lock, .. } => {
                let read = matches!(op, Op::ReadLock { .. });
                if path.len() > 1 && path[..path.len() - 1].iter().any(|&other| holds(other, lock, read)) {
                    let last = ix.unwrap_or(asked);
                    let parties = path[..path.len() - 1].iter().map(|&t| (t, self.threads[t][state.next[t]]));
                    found.insert(parties.chain([(thread, last)]).collect());
                }
            }
            Op::Wait { .. } | Op::Join { .. } => {
                let holds_any = state
                    .locks
                    .values()
                    .any(|lock| lock.writer == Some(thread) || lock.readers.contains(&thread));
                if path.len() == 1 && !holds_any {
                    return;
                }
                let by = match op {
                    Op::Join { child } => child.index(),
                    _ => {
                        let wait = EventIx(ix.expect("waits at the end of a trace are not pending") as u32);
                        let wakes = |i: &&raddle_trace::conditions::Instance| {
                            i.woken.iter().any(|woken| woken.wait == wait)
                        };
                        let Some(instance) = self.conditions.instances.iter().find(wakes) else { return };
                        if self.executed(state, instance.signal) {
                            return;
                        }
                        self.trace.events[instance.signal.index()].thread.index()
                    }
                };
                if !path.contains(&by) {
                    path.push(by);
                    self.extend_cycle(state, path, found);
                    path.pop();
                }
            }
            _ => {}
        }
    }

    /// Visits every reachable state. `None` if there are too many.
    pub fn enumerate(&self) -> Option<Found> {
        let first = self.first_state();
        let mut found = Found::default();
        let mut seen = HashSet::from([first.clone()]);
        let mut work = vec![first];
        while let Some(state) = work.pop() {
            if seen.len() > self.states_max {
                return None;
            }
            self.look(&state, &mut found);
            for thread in 0..self.threads.len() {
                if self.can(&state, thread) == Can::Move {
                    let next = self.take(&state, thread);
                    if seen.insert(next.clone()) {
                        work.push(next);
                    }
                }
            }
        }
        found.states = seen.len();
        Some(found)
    }

    fn look(&self, state: &State, found: &mut Found) {
        let can: Vec<Can> = (0..self.threads.len()).map(|thread| self.can(state, thread)).collect();
        let stuck = can.iter().all(|can| matches!(can, Can::Wait | Can::Ended)) && can.contains(&Can::Wait);
        if stuck {
            found.stuck = true;
            let places = can.iter().enumerate().filter(|(_, can)| **can == Can::Wait).map(|(thread, _)| {
                let ix = self.threads[thread].get(state.next[thread]).copied();
                (thread, ix.map_or(LocationIx::UNKNOWN, |ix| self.trace.events[ix].location))
            });
            found.stuck_places.insert(places.collect());
        }
        // Two threads about to make conflicting accesses. An atomic counts even if it would read another value.
        let about: Vec<Option<(usize, Op)>> = (0..self.threads.len())
            .map(|thread| {
                let (ix, op) = self.next_op(state, thread)?;
                let ready = can[thread] == Can::Move || (can[thread] == Can::Stray && access(&op).is_some());
                ix.filter(|_| ready).map(|ix| (ix, op))
            })
            .collect();
        for (place, a) in about.iter().enumerate() {
            for b in &about[place + 1..] {
                if let (Some((x, a)), Some((y, b))) = (a, b)
                    && conflict(a, b)
                {
                    let (x, y) = (self.trace.events[*x].location, self.trace.events[*y].location);
                    found.races.insert((x.min(y), x.max(y)));
                }
            }
        }
    }
}

fn release(state: &mut State, lock: ObjectId, thread: usize) {
    let lock = state.locks.entry(lock.0).or_default();
    if lock.writer == Some(thread) {
        lock.writer = None;
    } else {
        lock.readers.remove(&thread);
    }
}
