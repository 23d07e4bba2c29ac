//! How far a reordering has come, and which steps it can take next: the rules of [`super`]'s table.

use super::object::Object;
use super::{EventIx, Fact, Model, NONE, Obstacle, ReadsFrom, access_range, begins_or_ends_life};
use crate::event::{Event, LockFlags, Op, Patience};
use crate::ids::{ObjectId, ThreadIx};
use crate::ops_about;
use raddle_wire::{Effect, Situation};

/// How far a reordering has come.
#[derive(Clone)]
pub struct State<'m> {
    pub(super) model: &'m Model<'m>,
    pub(super) next: Vec<u32>,
    pub(super) objects: Vec<Object>,
    /// Last writer of each cell: event number + 1, or 0.
    pub(super) memory: Vec<u32>,
    pub(super) taken: u32,
}

impl<'m> State<'m> {
    pub fn model(&self) -> &'m Model<'m> {
        self.model
    }

    /// How many events have been executed.
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// How many events of a thread have been executed.
    pub fn position(&self, thread: ThreadIx) -> u32 {
        self.next[thread.index()]
    }

    pub fn positions(&self) -> &[u32] {
        &self.next
    }

    /// The event that a thread would execute next.
    pub fn next(&self, thread: ThreadIx) -> Option<EventIx> {
        self.model.events_of(thread).get(self.position(thread) as usize).copied()
    }

    /// The threads whose next event can be executed now.
    pub fn enabled(&self) -> impl Iterator<Item = ThreadIx> + '_ {
        (0..self.model.threads()).map(ThreadIx).filter(|&thread| self.obstacle(thread).is_none())
    }

    /// Who holds a lock now: the writer, or the first reader.
    pub fn holder(&self, lock: ObjectId) -> Option<ThreadIx> {
        let number = self.model.objects.iter().position(|&object| object == lock)?;
        let object = &self.objects[number];
        object.writer.or(object.readers.first().copied())
    }

    /// Executes a thread's next event if it is enabled.
    pub fn step(&mut self, thread: ThreadIx) -> Result<EventIx, Obstacle> {
        match self.obstacle(thread) {
            Some(obstacle) => Err(obstacle),
            None => Ok(self.take(thread)),
        }
    }

    /// What keeps a thread from executing its next event, if anything does.
    pub fn obstacle(&self, thread: ThreadIx) -> Option<Obstacle> {
        let Some(ix) = self.next(thread) else { return Some(Obstacle::Finished) };
        let fact = &self.model.facts[ix.index()];
        let event = self.model.event(ix);
        if self.position(thread) == 0
            && let Some(fork) = self.model.forked_by[thread.index()]
            && !fact.odd
            && !self.executed(fork)
        {
            return Some(Obstacle::NotForked);
        }
        if fact.odd {
            return None;
        }
        if fact.object != NONE {
            let object = &self.objects[fact.object as usize];
            let waits_for_all = begins_or_ends_life(&event.op);
            if object.lives != fact.lives || (waits_for_all && object.executed != fact.earlier) {
                return Some(Obstacle::LifeCycle(self.model.objects[fact.object as usize]));
            }
        }
        self.obstacle_of(thread, event, fact)
    }

    fn executed(&self, event: EventIx) -> bool {
        self.next(self.model.event(event).thread).is_none_or(|next| next > event)
    }

    /// The rule is the table's ([`Effect::demand`]); here are the facts, and what to call it when the rule is not met.
    fn obstacle_of(&self, thread: ThreadIx, event: &Event, fact: &Fact) -> Option<Obstacle> {
        let object = || &self.objects[fact.object as usize];
        let exact = self.model.rules.exact_failures;
        let possible = |effect: Effect, now: Situation| effect.demand().is_met(now);
        let ended = |child: ThreadIx| Situation::thread(true, self.next(child).is_none());
        match event.op {
            Op::Join { child } => {
                (!possible(Effect::Joins, ended(child))).then_some(Obstacle::ChildRuns(child))
            }
            Op::JoinFailed { child } => {
                (exact && possible(Effect::Joins, ended(child))).then_some(Obstacle::WouldSucceed)
            }
            Op::Lock { lock, flags } => self.lock_obstacle(object(), lock, thread, flags, false),
            Op::ReadLock { lock, flags } => self.lock_obstacle(object(), lock, thread, flags, true),
            Op::LockFailed { lock, flags } | Op::ReadLockFailed { lock, flags } => {
                let read = matches!(event.op, Op::ReadLockFailed { .. });
                let free = self.lock_obstacle(object(), lock, thread, flags, read).is_none();
                (exact && free && flags.patience == Patience::Try).then_some(Obstacle::WouldSucceed)
            }
            Op::Wait { cond, .. } => {
                let now = Situation::waiter(object().usable_signal(thread).is_some());
                (!possible(Effect::IsWoken, now)).then_some(Obstacle::NoSignal(cond))
            }
            Op::BarrierExit { barrier } => {
                let count = object().count.max(self.model.barrier_counts[fact.object as usize]).max(1);
                let place = object().inside.iter().find(|(who, _)| *who == thread).map(|&(_, place)| place);
                let full = place.is_none_or(|place| object().entered >= place.div_ceil(count) * count);
                (!possible(Effect::Leaves, Situation::waiter(full)))
                    .then_some(Obstacle::BarrierNotFull(barrier))
            }
            Op::SemWait { sem } => (!possible(Effect::Takes, Situation::count(object().count)))
                .then_some(Obstacle::SemaphoreEmpty(sem)),
            Op::SemWaitFailed { .. } => (exact && possible(Effect::Takes, Situation::count(object().count)))
                .then_some(Obstacle::WouldSucceed),
            Op::OnceBegin { once } => {
                let now = Situation::once(object().once_begun, object().once_done);
                (!possible(Effect::OnceBegins, now)).then_some(Obstacle::OnceTaken(once))
            }
            Op::OncePassed { once } => {
                let now = Situation::once(object().once_begun, object().once_done);
                (!possible(Effect::OncePasses, now)).then_some(Obstacle::OnceNotDone(once))
            }
            Op::Acquire { .. } | Op::FutexWait { .. } | Op::Receive { .. } => {
                let released = object().releases >= self.releases_before(event, fact);
                (!possible(Effect::Receives, Situation::channel(released)))
                    .then_some(Obstacle::NotReleased(self.model.objects[fact.object as usize]))
            }
            Op::Read { .. } | Op::Atomic { .. } => self.read_obstacle(event, fact),
            Op::Write { .. }
            | Op::Fence { .. }
            | Op::Alloc { .. }
            | Op::Free { .. }
            | Op::Start { .. }
            | Op::End
            | Op::Fork { .. }
            | Op::Detach { .. }
            | Op::Cancel { .. }
            | Op::Request { .. }
            | Op::Unlock { .. }
            | Op::Signal { .. }
            | Op::Broadcast { .. }
            | Op::WaitBegin { .. }
            | Op::WaitFailed { .. }
            | Op::BarrierInit { .. }
            | Op::BarrierEnter { .. }
            | Op::SemInit { .. }
            | Op::SemRequest { .. }
            | Op::SemPost { .. }
            | Op::OnceEnd { .. }
            | Op::Init { .. }
            | Op::Destroy { .. }
            | Op::FutexWake { .. }
            | Op::FutexWaitFailed { .. }
            | Op::SignalEnter { .. }
            | Op::SignalExit { .. }
            | Op::ProcessFork { .. }
            | Op::ProcessExec { .. }
            | Op::ProcessExit { .. }
            | Op::Custom { .. }
            | Op::AtomicBegin { .. }
            | Op::AtomicEnd { .. }
            | Op::Release { .. }
            | Op::Send { .. }
            | Op::BenignRace { .. }
            | Op::Yield
            | Op::Lost { .. } => None,
        }
    }

    fn lock_obstacle(
        &self,
        object: &Object,
        lock: ObjectId,
        thread: ThreadIx,
        flags: LockFlags,
        read: bool,
    ) -> Option<Obstacle> {
        // Holders that do not stand in this thread's way: itself, where the lock is nested, and one that died with the lock.
        let in_the_way = |holder: &ThreadIx| *holder != thread || !flags.nested;
        let writer = object.writer.filter(in_the_way);
        let writer = writer.filter(|&writer| !(flags.owner_died && self.next(writer).is_none()));
        let reader = match object.writer {
            Some(_) => None,
            None => object.readers.iter().copied().find(in_the_way),
        };
        let effect = if read { Effect::LocksShared } else { Effect::Locks };
        let possible = effect.demand().is_met(Situation::lock(writer.is_some(), reader.is_some()));
        let by = if possible { None } else { writer.or(reader) };
        by.map(|by| Obstacle::LockHeld { lock, by })
    }

    /// How many releases of the object were observed before this event.
    fn releases_before(&self, event: &Event, fact: &Fact) -> u32 {
        let futex = matches!(event.op, Op::FutexWait { .. });
        let events = &self.model.trace.events;
        let ix = self.next(event.thread).expect("the event is the thread's next one");
        let count = self.model.facts[..ix.index()].iter().zip(events).filter(|(other, event)| {
            let releases = match event.op {
                Op::FutexWake { .. } => futex,
                Op::Release { .. } | Op::Send { .. } => !futex,
                Op::FutexWait { .. }
                | Op::FutexWaitFailed { .. }
                | Op::Custom { .. }
                | Op::Acquire { .. }
                | Op::BenignRace { .. }
                | Op::Receive { .. }
                | ops_about!(
                    Memory, Nothing, Thread, Lock, Condition, Barrier, Semaphore, Once, Signal, Life
                ) => false,
            };
            releases && other.object == fact.object
        });
        count.count() as u32
    }

    fn read_obstacle(&self, event: &Event, fact: &Fact) -> Option<Obstacle> {
        let (_, _, reads, _) = access_range(&event.op)?;
        if !reads || self.model.rules.reads_from == ReadsFrom::Any {
            return None;
        }
        let range = fact.cells.0 as usize..fact.cells.1 as usize;
        let expected = &self.model.writers[fact.writers as usize..fact.writers as usize + range.len()];
        let wrong = self.memory[range].iter().zip(expected).find(|(found, expected)| found != expected);
        let name = |writer: u32| writer.checked_sub(1).map(EventIx);
        wrong
            .map(|(&found, &expected)| Obstacle::WrongWriter { expected: name(expected), found: name(found) })
    }

    /// Executes a thread's next event whether or not it is enabled.
    pub(super) fn take(&mut self, thread: ThreadIx) -> EventIx {
        let ix = self.next(thread).expect("the thread has a next event");
        let fact = self.model.facts[ix.index()];
        let event = self.model.event(ix);
        self.next[thread.index()] += 1;
        self.taken += 1;
        if let Some((_, _, _, true)) = access_range(&event.op) {
            self.memory[fact.cells.0 as usize..fact.cells.1 as usize].fill(ix.0 + 1);
        }
        if fact.object != NONE {
            let moment = self.taken;
            let object = &mut self.objects[fact.object as usize];
            object.executed += 1;
            object.lives += u32::from(begins_or_ends_life(&event.op));
            object.take(thread, &event.op, moment);
        }
        ix
    }
}
