//! From a trace to the [`Program`] it shows.
//!
//! One pass over the observed order. Everything that a trace may lack or get wrong is settled here, so that the rest of
//! the crate can rely on a well-formed program: threads without a start or end event (foreign traces) get one, locks
//! that are taken or released out of turn become free steps and are counted as oddities, semaphores and barriers whose
//! initialisation was not seen get the smallest count that explains what was. A thread that was waiting when the trace
//! ended gets the step that it was waiting for, so that a recorded deadlock is a deadlock of the program.

mod cells;
mod counters;
mod locks;
mod memory;

use crate::address_space::AddressSpace;
use crate::guards::Guards;
use crate::ids::{BarrierIx, InstanceIx, LockIx, LocksetIx, OnceIx, Pos, RegisterIx, SemIx, ValueIx};
use crate::intervals::drop_private;
use crate::options::Keeps;
use crate::program::{
    Access, AccessKind, Action, Barrier, Hold, Instance, Lock, LockUse, Need, Once, Program, Register,
    Semaphore, Step, ThreadSteps,
};
use crate::stolen_signals::Exchange;
use cells::Cells;
use raddle_trace::conditions::Conditions;
use raddle_trace::model::EventIx;
use raddle_trace::schedule::step_of;
use raddle_trace::{
    AtomicKind, Event, LockFlags, MemoryTrace, ObjectId, Op, Patience, ThreadIx, ops_about, ops_beside,
};
use rustc_hash::FxHashMap;

/// An order between steps that holds in the observed run and, with it, in every reordering that keeps who met whom: the
/// post that a semaphore wait used, the round of a barrier, the writer of an atomic read.
#[derive(Clone, Copy, Debug)]
pub struct ObservedEdge {
    pub from: Need,
    pub thread: ThreadIx,
    /// The step that the edge leads to.
    pub pos: Pos,
}

/// A program and the edges of the observed run.
pub struct Built {
    pub program: Program,
    pub edges: Vec<ObservedEdge>,
}

#[derive(Default)]
struct ThreadState {
    held: Vec<Held>,
    lockset: Option<LocksetIx>,
    request: Option<(EventIx, Op)>,
    wait_unlock: Option<(EventIx, ObjectId)>,
    /// Synchronisation so far.
    segment: u32,
    fork: Option<Need>,
    has_start: bool,
    ended: bool,
    /// Barrier that it is in, with the step that entered and its place in the row of all that entered.
    inside: Option<(BarrierIx, Pos, usize)>,
    waiting: bool,
}

#[derive(Clone, Copy)]
struct Held {
    lock: LockIx,
    shared: bool,
    depth: u32,
}

/// A synchronisation object, from one initialisation to the next.
#[derive(Default)]
struct Life {
    /// Last step of each thread that used it, plus one.
    uses: Vec<(ThreadIx, Pos)>,
    began: Option<Need>,
    lock: Option<LockIx>,
    sem: Option<SemIx>,
    barrier: Option<BarrierIx>,
    once: Option<OnceIx>,
}

#[derive(Default)]
struct SemState {
    value: i64,
    initialised: bool,
    posts: Vec<Need>,
    waits: Vec<(ThreadIx, Pos)>,
}

#[derive(Default)]
struct BarrierState {
    entered: Vec<Need>,
}

#[derive(Clone, Copy, Default)]
struct LockState {
    writer: Option<ThreadIx>,
    readers: u32,
}

struct RegisterState {
    now: ValueIx,
    /// The step that wrote `now`.
    writer: Option<Need>,
}

struct Builder<'t> {
    events: &'t [Event],
    atomics: bool,
    /// Every thread but main is forked somewhere in the trace.
    all_forked: bool,
    forked_any: bool,
    program: Program,
    threads: Vec<ThreadState>,
    lives: FxHashMap<ObjectId, Life>,
    lock_states: Vec<LockState>,
    sem_states: Vec<SemState>,
    barrier_states: Vec<BarrierState>,
    releases: FxHashMap<(bool, u64), Vec<Need>>,
    registers: FxHashMap<u64, RegisterIx>,
    register_states: Vec<RegisterState>,
    values: FxHashMap<(RegisterIx, u64), ValueIx>,
    /// Memory whose reads must keep their writers, if they must.
    cells: Option<Cells>,
    /// Signals whose waits are exchanged.
    exchange: Option<Exchange>,
    /// The event that wrote each register last, plus one.
    last_writers: Vec<u64>,
    /// What was done last to each protected cell.
    last_touches: FxHashMap<RegisterIx, memory::Touch>,
    lockset_index: FxHashMap<Vec<(LockIx, bool)>, LocksetIx>,
    space: AddressSpace,
    benign: Vec<(u64, u64)>,
    guards: Guards,
    /// Where the events of conditions became steps.
    condition_steps: FxHashMap<EventIx, (ThreadIx, Pos)>,
    counters: counters::Counters,
    needs: Vec<(ThreadIx, Pos, Need)>,
    edges: Vec<ObservedEdge>,
}

/// Builds the program of a trace. `atomics`: values read by atomics constrain it.
///
/// Where reads are kept, accesses to memory that threads share are steps of it, and one that would read from another write leads
/// off the observed path. With [`Keeps::Reads`] a reordering of this program is a *correct reordering* of the trace in the sense of
/// the literature on predictive analysis, and each correct reordering (with the failed try operations where they were) is one of
/// this program.
pub fn build(trace: &MemoryTrace, atomics: bool, keeps: &Keeps) -> Built {
    build_exchanged(trace, atomics, keeps, None)
}

/// The same with the waits of two signals exchanged.
pub(crate) fn build_exchanged(
    trace: &MemoryTrace,
    atomics: bool,
    keeps: &Keeps,
    exchange: Option<Exchange>,
) -> Built {
    if *keeps == Keeps::Nothing {
        return build_with(trace, atomics, None, exchange);
    }
    let mut plain = build_with(trace, true, None, None).program;
    // What has no cell need not be remembered.
    drop_private(&mut plain.accesses, &trace.events);
    let cells = Cells::of(&plain, &trace.events, keeps);
    drop(plain);
    if cells.is_empty() && *keeps != Keeps::Reads {
        return build_with(trace, atomics, None, exchange);
    }
    let mut built = build_with(trace, true, Some(cells), exchange);
    built.program.keeps_reads = true;
    built
}

fn build_with(trace: &MemoryTrace, atomics: bool, cells: Option<Cells>, exchange: Option<Exchange>) -> Built {
    let events = &trace.events;
    let mut thread_count = trace.tables.threads.len();
    let mut forked = vec![false; thread_count];
    let mut waits = false;
    for event in events {
        thread_count = thread_count.max(event.thread.index() + 1);
        forked.resize(thread_count, false);
        match event.op {
            Op::Fork { child } if child.index() < thread_count => forked[child.index()] = true,
            Op::WaitBegin { .. } => waits = true,
            Op::Signal { .. }
            | Op::Broadcast { .. }
            | Op::Wait { .. }
            | Op::WaitFailed { .. }
            | ops_beside!(Condition) => {}
        }
    }
    let mut builder = Builder {
        events,
        atomics,
        all_forked: forked.iter().skip(1).all(|&forked| forked),
        forked_any: false,
        program: Program {
            threads: vec![
                ThreadSteps { locksets: vec![LocksetIx(0)], ..ThreadSteps::default() };
                thread_count
            ],
            locksets: vec![Vec::new()],
            ..Program::default()
        },
        threads: (0..thread_count).map(|_| ThreadState::default()).collect(),
        lives: FxHashMap::default(),
        lock_states: Vec::new(),
        sem_states: Vec::new(),
        barrier_states: Vec::new(),
        releases: FxHashMap::default(),
        registers: FxHashMap::default(),
        register_states: Vec::new(),
        values: FxHashMap::default(),
        cells,
        exchange,
        last_writers: Vec::new(),
        last_touches: FxHashMap::default(),
        lockset_index: FxHashMap::from_iter([(Vec::new(), LocksetIx(0))]),
        space: AddressSpace::default(),
        benign: Vec::new(),
        guards: Guards::new(thread_count, waits),
        condition_steps: FxHashMap::default(),
        counters: counters::Counters::of(events),
        needs: Vec::new(),
        edges: Vec::new(),
    };
    for (index, event) in events.iter().enumerate() {
        builder.event(EventIx(u32::try_from(index).expect("event numbers have 32 bits")), event);
    }
    builder.finish(waits)
}

impl Builder<'_> {
    fn event(&mut self, ix: EventIx, event: &Event) {
        let thread = event.thread;
        match event.op {
            Op::Read { addr, size, .. } => {
                return self.access(ix, event, addr.0, u64::from(size), AccessKind::Read);
            }
            Op::Write { addr, size, .. } => {
                return self.access(ix, event, addr.0, u64::from(size), AccessKind::Write);
            }
            Op::Alloc { addr, size } => return self.space.allocate(addr, size),
            Op::Free { addr } => return self.free(ix, event, addr),
            Op::Request { .. } | Op::SemRequest { .. } => {
                self.program.synchronisation += 1;
                self.threads[thread.index()].request = Some((ix, event.op));
                return;
            }
            Op::BenignRace { addr, size } => {
                let start = self.space.translate(addr);
                self.benign.push((start, start.saturating_add(u64::from(size))));
                return;
            }
            Op::Lost { count } => {
                self.program.lost_accesses += count;
                return;
            }
            Op::Atomic { .. }
            | Op::Fence { .. }
            | Op::Lock { .. }
            | Op::LockFailed { .. }
            | Op::ReadLock { .. }
            | Op::ReadLockFailed { .. }
            | Op::Unlock { .. }
            | Op::SemInit { .. }
            | Op::SemWait { .. }
            | Op::SemWaitFailed { .. }
            | Op::SemPost { .. }
            | Op::Custom { .. }
            | Op::Acquire { .. }
            | Op::Release { .. }
            | ops_about!(Nothing, Thread, Condition, Barrier, Once, Futex, Signal, Channel, Life) => {}
        }
        self.program.synchronisation += 1;
        if let Op::Unlock { lock, flags } = event.op
            && flags.wait
        {
            self.threads[thread.index()].wait_unlock = Some((ix, lock));
            return;
        }
        self.settle_wait_unlock(thread, &event.op);
        self.threads[thread.index()].request = None;
        self.threads[thread.index()].segment += 1;
        self.synchronise(ix, thread, event);
        self.guards.new_segment(thread);
    }

    /// An unlock announced as half of a condition wait that did not follow was an ordinary unlock.
    fn settle_wait_unlock(&mut self, thread: ThreadIx, op: &Op) {
        if let Some((ix, lock)) = self.threads[thread.index()].wait_unlock.take()
            && !matches!(op, Op::WaitBegin { .. })
        {
            self.unlock(ix, thread, lock, false);
        }
    }

    fn synchronise(&mut self, ix: EventIx, thread: ThreadIx, event: &Event) {
        let visible = step_of(&event.op).is_some();
        match event.op {
            Op::Start { .. } => {
                self.threads[thread.index()].has_start = true;
                self.push(ix, thread, Action::Free, visible);
            }
            Op::End => {
                self.push(ix, thread, Action::Free, visible);
                self.threads[thread.index()].ended = true;
            }
            Op::Fork { child } => {
                let pos = self.push(ix, thread, Action::Free, visible);
                self.forked_any = true;
                if let Some(state) = self.threads.get_mut(child.index()) {
                    state.fork.get_or_insert(Need { thread, pos: pos + 1 });
                }
            }
            Op::Join { child } => self.join(ix, thread, child, visible),
            Op::Lock { lock, flags } => self.lock(ix, thread, lock, flags, false),
            Op::ReadLock { lock, flags } => self.lock(ix, thread, lock, flags, true),
            Op::Unlock { lock, .. } => self.unlock(ix, thread, lock, visible),
            Op::Signal { .. } | Op::Broadcast { .. } | Op::Wait { .. } | Op::WaitFailed { .. } => {
                let pos = self.push(ix, thread, Action::Free, visible);
                self.condition_steps.insert(ix, (thread, pos));
                if matches!(event.op, Op::Wait { .. } | Op::WaitFailed { .. }) {
                    self.guards.woke(thread);
                    self.threads[thread.index()].waiting = false;
                }
            }
            Op::WaitBegin { lock, .. } => self.wait_begin(ix, thread, lock),
            Op::BarrierInit { barrier, count } => {
                self.begin_life(ix, thread, barrier);
                let number = BarrierIx::from_len(self.program.barriers.len());
                self.program.barriers.push(Barrier { count, ..Barrier::default() });
                self.barrier_states.push(BarrierState::default());
                self.lives.entry(barrier).or_default().barrier = Some(number);
            }
            Op::BarrierEnter { barrier } => self.barrier_enter(ix, thread, barrier),
            Op::BarrierExit { .. } => self.barrier_exit(ix, thread),
            Op::SemInit { sem, value } => {
                self.begin_life(ix, thread, sem);
                let number = self.new_semaphore(sem);
                self.program.semaphores[number.index()].start = value;
                let state = &mut self.sem_states[number.index()];
                (state.value, state.initialised) = (i64::from(value), true);
            }
            Op::SemWait { sem } => self.sem_wait(ix, thread, sem),
            Op::SemPost { sem } => {
                let number = self.semaphore(sem);
                let pos = self.push(ix, thread, Action::SemPost { sem: number }, visible);
                self.use_object(sem, thread, pos);
                self.program.semaphores[number.index()].posts.add(thread, pos);
                let state = &mut self.sem_states[number.index()];
                state.value += 1;
                state.posts.push(Need { thread, pos: pos + 1 });
            }
            Op::OnceBegin { once } => {
                let pos = self.push(ix, thread, Action::Free, visible);
                let number = OnceIx::from_len(self.program.onces.len());
                self.program.onces.push(Once { thread, begin: pos, end: Pos::MAX });
                self.lives.entry(once).or_default().once = Some(number);
            }
            Op::OnceEnd { once } => {
                let pos = self.push(ix, thread, Action::Free, visible);
                if let Some(number) = self.lives.entry(once).or_default().once {
                    self.program.onces[number.index()].end = pos;
                }
            }
            Op::OncePassed { once } => {
                let number = self.lives.entry(once).or_default().once;
                let known = number.filter(|number| {
                    let once = &self.program.onces[number.index()];
                    once.end != Pos::MAX && once.thread != thread
                });
                let action = known.map_or(Action::Free, |once| Action::OncePassed { once });
                let pos = self.push(ix, thread, action, visible);
                if let Some(number) = known {
                    let once = &self.program.onces[number.index()];
                    self.needs.push((thread, pos, Need { thread: once.thread, pos: once.end + 1 }));
                }
            }
            Op::Init { object, .. } | Op::Destroy { object, .. } => self.begin_life(ix, thread, object),
            Op::Atomic { addr, size, kind, read, written, .. } => {
                self.access(ix, event, addr.0, u64::from(size), atomic_access(kind));
                self.atomic(ix, thread, addr, kind, read, written);
            }
            Op::Release { object } | Op::Send { channel: object } => {
                self.release(ix, thread, (false, object.0), visible)
            }
            Op::FutexWake { word, .. } => self.release(ix, thread, (true, word.0), visible),
            Op::Acquire { object } | Op::Receive { channel: object } => {
                self.acquire(ix, thread, (false, object.0), visible)
            }
            Op::FutexWait { word } => self.acquire(ix, thread, (true, word.0), visible),
            Op::LockFailed { lock: object, .. }
            | Op::ReadLockFailed { lock: object, .. }
            | Op::SemWaitFailed { sem: object } => self.failed(ix, thread, Some(object)),
            Op::Read { .. }
            | Op::Write { .. }
            | Op::Fence { .. }
            | Op::Alloc { .. }
            | Op::Free { .. }
            | Op::Lost { .. }
            | Op::JoinFailed { .. }
            | Op::Detach { .. }
            | Op::Cancel { .. }
            | Op::Request { .. }
            | Op::SemRequest { .. }
            | Op::FutexWaitFailed { .. }
            | Op::Custom { .. }
            | Op::BenignRace { .. }
            | ops_about!(Nothing, Signal) => {
                if visible {
                    self.push(ix, thread, Action::Free, visible);
                }
            }
        }
    }

    // Steps.

    fn push(&mut self, ix: EventIx, thread: ThreadIx, action: Action, visible: bool) -> Pos {
        self.ensure_started(ix, thread, matches!(self.events[ix.index()].op, Op::Start { .. }));
        self.push_raw(ix, thread, action, visible)
    }

    fn push_raw(&mut self, ix: EventIx, thread: ThreadIx, action: Action, visible: bool) -> Pos {
        let steps = &mut self.program.threads[thread.index()];
        let pos = steps.steps.len() as Pos;
        let op = &self.events[ix.index()].op;
        let waits = pos == 0 || matches!(op, Op::Join { .. } | Op::Wait { .. } | Op::FutexWait { .. });
        steps.steps.push(Step::new(ix, action, visible, waits));
        let lockset = self.threads[thread.index()].lockset.unwrap_or(LocksetIx(0));
        steps.locksets.push(lockset);
        self.program.order.push(thread);
        if pos == 0
            && let Some(fork) = self.threads[thread.index()].fork
        {
            self.needs.push((thread, 0, fork));
        }
        pos
    }

    /// A thread that begins with something else than its start event gets one, so that position 0 is before it exists.
    fn ensure_started(&mut self, ix: EventIx, thread: ThreadIx, starts: bool) {
        let empty = self.program.threads[thread.index()].steps.is_empty();
        if empty && !starts && self.threads[thread.index()].fork.is_some() {
            self.push_raw(ix, thread, Action::Free, false);
        }
    }

    fn join(&mut self, ix: EventIx, thread: ThreadIx, child: ThreadIx, visible: bool) {
        let known = child.index() < self.threads.len() && child != thread;
        if known && !self.threads[child.index()].ended {
            self.push(ix, child, Action::Free, false);
            self.threads[child.index()].ended = true;
        }
        let pos = self.push(ix, thread, Action::Free, visible);
        if known {
            let end = self.program.threads[child.index()].steps.len() as Pos;
            self.needs.push((thread, pos, Need { thread: child, pos: end }));
        }
    }

    // Lives of objects.

    /// Records a use: it comes after the object's initialisation, and before its next one.
    fn use_object(&mut self, object: ObjectId, thread: ThreadIx, pos: Pos) {
        let life = self.lives.entry(object).or_default();
        match life.uses.iter_mut().find(|(user, _)| *user == thread) {
            Some((_, last)) => *last = pos + 1,
            None => {
                life.uses.push((thread, pos + 1));
                if let Some(began) = life.began.filter(|began| began.thread != thread) {
                    self.needs.push((thread, pos, began));
                }
            }
        }
    }

    fn begin_life(&mut self, ix: EventIx, thread: ThreadIx, object: ObjectId) {
        let pos = self.push(ix, thread, Action::Free, false);
        let began = Some(Need { thread, pos: pos + 1 });
        let old = self.lives.insert(object, Life { began, ..Life::default() }).unwrap_or_default();
        for (user, last) in old.uses {
            if user != thread {
                self.needs.push((thread, pos, Need { thread: user, pos: last }));
            }
        }
        if let Some(began) = old.began.filter(|began| began.thread != thread) {
            self.needs.push((thread, pos, began));
        }
    }

    // Semaphores and barriers.

    fn new_semaphore(&mut self, object: ObjectId) -> SemIx {
        let number = SemIx::from_len(self.program.semaphores.len());
        self.program.semaphores.push(Semaphore::default());
        self.sem_states.push(SemState::default());
        self.lives.entry(object).or_default().sem = Some(number);
        number
    }

    fn semaphore(&mut self, object: ObjectId) -> SemIx {
        match self.lives.entry(object).or_default().sem {
            Some(number) => number,
            None => self.new_semaphore(object),
        }
    }

    fn sem_wait(&mut self, ix: EventIx, thread: ThreadIx, object: ObjectId) {
        let sem = self.semaphore(object);
        let state = &mut self.sem_states[sem.index()];
        if state.value <= 0 && state.initialised {
            self.program.oddities += 1;
            self.push(ix, thread, Action::Free, true);
            return;
        }
        if state.value <= 0 {
            self.program.semaphores[sem.index()].start += 1;
        } else {
            state.value -= 1;
        }
        let pos = self.push(ix, thread, Action::SemWait { sem }, true);
        self.use_object(object, thread, pos);
        self.sem_states[sem.index()].waits.push((thread, pos));
        self.program.semaphores[sem.index()].waits.add(thread, pos);
    }

    /// First in, first out: the k-th wait used the token that was there at the beginning, or that post.
    fn finish_semaphores(&mut self) {
        for (semaphore, state) in self.program.semaphores.iter().zip(&self.sem_states) {
            for (&(thread, pos), &post) in state.waits.iter().skip(semaphore.start as usize).zip(&state.posts)
            {
                if post.thread != thread {
                    self.edges.push(ObservedEdge { from: post, thread, pos });
                }
            }
        }
    }

    fn barrier_enter(&mut self, ix: EventIx, thread: ThreadIx, object: ObjectId) {
        let barrier = match self.lives.entry(object).or_default().barrier {
            Some(barrier) => barrier,
            None => {
                let number = BarrierIx::from_len(self.program.barriers.len());
                self.program.barriers.push(Barrier::default());
                self.barrier_states.push(BarrierState::default());
                self.lives.entry(object).or_default().barrier = Some(number);
                number
            }
        };
        let pos = self.push(ix, thread, Action::BarrierEnter { barrier }, true);
        self.use_object(object, thread, pos);
        self.program.barriers[barrier.index()].enters.add(thread, pos);
        let entered = &mut self.barrier_states[barrier.index()].entered;
        self.threads[thread.index()].inside = Some((barrier, pos, entered.len()));
        entered.push(Need { thread, pos: pos + 1 });
    }

    fn barrier_exit(&mut self, ix: EventIx, thread: ThreadIx) {
        let pos = self.push(ix, thread, Action::Free, true);
        let Some((barrier, entered_at, place)) = self.threads[thread.index()].inside.take() else {
            self.program.oddities += 1;
            return;
        };
        let entered = &self.barrier_states[barrier.index()].entered;
        let count = &mut self.program.barriers[barrier.index()].count;
        if *count == 0 {
            *count = entered.len() as u32;
        }
        let round = place / *count as usize;
        let range = round * *count as usize..(round + 1) * *count as usize;
        if entered_at + 1 != pos || range.end > entered.len() {
            self.program.oddities += 1;
            return;
        }
        self.program.threads[thread.index()].steps[pos as usize].action = Action::BarrierExit { barrier };
        for &from in &entered[range] {
            if from.thread != thread {
                self.edges.push(ObservedEdge { from, thread, pos });
            }
        }
    }

    // Annotations and futexes: ordered after every release seen before.

    fn release(&mut self, ix: EventIx, thread: ThreadIx, key: (bool, u64), visible: bool) {
        let pos = self.push(ix, thread, Action::Free, visible);
        let releases = self.releases.entry(key).or_default();
        match releases.iter_mut().find(|need| need.thread == thread) {
            Some(need) => need.pos = pos + 1,
            None => releases.push(Need { thread, pos: pos + 1 }),
        }
    }

    fn acquire(&mut self, ix: EventIx, thread: ThreadIx, key: (bool, u64), visible: bool) {
        let pos = self.push(ix, thread, Action::Free, visible);
        for &need in self.releases.get(&key).into_iter().flatten() {
            if need.thread != thread {
                self.needs.push((thread, pos, need));
            }
        }
    }

    // The end of the trace.

    /// What threads were waiting for when the trace ended becomes their last step.
    fn finish_threads(&mut self) {
        for index in 0..self.threads.len() {
            let thread = ThreadIx(index as u32);
            self.settle_wait_unlock(thread, &Op::End);
            self.program.threads[index].observed = self.program.threads[index].steps.len() as Pos;
            let taken = self.program.order.len();
            let state = &self.threads[index];
            let recorded = state.has_start && !state.ended;
            // Who is seen to end holding a lock will not give it back; without an end, the trace just does not show it.
            let holding = !state.held.is_empty() && !state.ended;
            self.program.threads[index].open_ended =
                recorded || holding || state.waiting || state.inside.is_some();
            let pending = match (state.request, state.inside) {
                (Some((ix, Op::Request { lock, read, .. })), _) => {
                    let lock = self.lock_number(lock);
                    Some((ix, Action::Lock { lock, shared: read, tries: false }))
                }
                (Some((ix, Op::SemRequest { sem })), _) => {
                    Some((ix, Action::SemWait { sem: self.semaphore(sem) }))
                }
                (_, Some((barrier, pos, _))) => {
                    let ix = self.program.threads[index].steps[pos as usize].event;
                    (self.program.barriers[barrier.index()].count > 0)
                        .then_some((ix, Action::BarrierExit { barrier }))
                }
                _ => None,
            };
            // A thread that asks for a lock which it has waits for itself: also a step that it cannot take.
            let Some((ix, action)) = pending else { continue };
            if let Action::Lock { lock, shared: true, .. } = action
                && self.threads[index].held.iter().any(|held| held.lock == lock && held.shared)
            {
                continue;
            }
            let pos = self.push(ix, thread, action, true);
            self.program.order.truncate(taken);
            self.program.threads[index].open_ended = true;
            match action {
                Action::Lock { lock, shared, .. } => {
                    self.add_hold(lock, thread, Hold { acquire: pos, release: Pos::MAX, event: ix, shared });
                }
                Action::SemWait { sem } => self.program.semaphores[sem.index()].waits.add(thread, pos),
                Action::Free
                | Action::Unlock { .. }
                | Action::Signal { .. }
                | Action::WaitBegin { .. }
                | Action::Wait { .. }
                | Action::BarrierEnter { .. }
                | Action::BarrierExit { .. }
                | Action::SemPost { .. }
                | Action::OncePassed { .. }
                | Action::Atomic { .. } => {}
            }
        }
    }

    fn finish(mut self, waits: bool) -> Built {
        self.finish_threads();
        if waits || !self.condition_steps.is_empty() {
            self.finish_conditions();
        }
        self.finish_semaphores();
        self.finish_atomics();
        self.program.set_needs(self.needs);
        Built { program: self.program, edges: self.edges }
    }
}

fn atomic_access(kind: AtomicKind) -> AccessKind {
    if kind.writes() { AccessKind::AtomicWrite } else { AccessKind::AtomicRead }
}
