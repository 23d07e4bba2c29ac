//! How far a reordering has come, and what each thread can do next.
//!
//! Most of the state follows from the positions alone (who holds which lock, the counts of semaphores, who has been
//! forked). What depends on the order is one bit per thread (its signal came while it waited; its barrier is full) and
//! the values of atomics. A state is changed in place and undone; its [`State::fingerprint`] is kept up to date, so that
//! a search can remember where it has been in 16 bytes. Two different states have the same fingerprint with probability
//! 2^-128 per pair, which is neglected.

use crate::ids::{LockIx, Pos, RegisterIx, ValueIx};
use crate::program::{Action, Need, Program, Step};
use raddle_trace::ThreadIx;
use raddle_wire::Situation;
use smallvec::SmallVec;

#[derive(Clone, Copy, Debug, Default)]
struct LockNow {
    /// Thread number plus one.
    writer: u32,
    readers: u32,
}

/// What a thread can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has no further step (within its limit).
    Done,
    Enabled,
    /// It waits.
    Blocked,
    /// It would leave the observed path.
    Stray,
}

/// See the module's text.
#[derive(Clone)]
pub struct State<'p> {
    pub program: &'p Program,
    pub at: Vec<Pos>,
    woken: Vec<bool>,
    locks: Vec<LockNow>,
    semaphores: Vec<u32>,
    /// Threads inside that wait for others.
    barriers: Vec<u32>,
    registers: Vec<ValueIx>,
    fingerprint: u128,
}

/// What undoing a step needs to know beside the step.
#[derive(Clone, Debug)]
pub struct Undo {
    fingerprint: u128,
    woke: SmallVec<[ThreadIx; 2]>,
    old_value: ValueIx,
    old_count: u32,
}

/// Mixes what is part of the state into 128 random-looking bits.
fn mix(kind: u64, index: usize, value: u32) -> u128 {
    let word = |seed: u64| {
        let mut z = (kind << 60 ^ (index as u64) << 32 ^ u64::from(value)).wrapping_add(seed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    u128::from(word(0x9e37_79b9_7f4a_7c15)) << 64 | u128::from(word(0xd1b5_4a32_d192_ed03))
}

const POSITION: u64 = 1;
const WOKEN: u64 = 2;
const VALUE: u64 = 3;

impl<'p> State<'p> {
    /// Nothing has happened yet.
    pub fn new(program: &'p Program) -> State<'p> {
        State {
            program,
            at: vec![0; program.thread_count()],
            woken: vec![false; program.thread_count()],
            locks: vec![LockNow::default(); program.locks.len()],
            semaphores: program.semaphores.iter().map(|semaphore| semaphore.start).collect(),
            barriers: vec![0; program.barriers.len()],
            registers: program.registers.iter().map(|register| register.start).collect(),
            fingerprint: 0,
        }
    }

    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    pub fn next_step(&self, thread: ThreadIx) -> Option<&'p Step> {
        self.program.step(thread, self.at[thread.index()])
    }

    /// What the thread's next step lacks.
    pub fn unmet_need(&self, step: &Step) -> Option<Need> {
        self.program.needs_of(step).iter().copied().find(|need| self.at[need.thread.index()] < need.pos)
    }

    /// The facts that the table's rule for the thread's next step is about.
    fn situation(&self, thread: ThreadIx, action: Action) -> Situation {
        match action {
            Action::Lock { lock, .. } => {
                let lock = &self.locks[lock.index()];
                Situation::lock(lock.writer != 0, lock.readers > 0)
            }
            Action::Wait { .. } | Action::BarrierExit { .. } => Situation::waiter(self.woken[thread.index()]),
            Action::SemWait { sem } => Situation::count(self.semaphores[sem.index()]),
            Action::OncePassed { once } => {
                let once = &self.program.onces[once.index()];
                let at = self.at[once.thread.index()];
                Situation::once(at > once.begin, at > once.end)
            }
            Action::Free
            | Action::Unlock { .. }
            | Action::Signal { .. }
            | Action::WaitBegin { .. }
            | Action::BarrierEnter { .. }
            | Action::SemPost { .. }
            | Action::Atomic { .. } => Situation::UNKNOWN,
        }
    }

    pub fn writer_of(&self, lock: LockIx) -> Option<ThreadIx> {
        self.locks[lock.index()].writer.checked_sub(1).map(ThreadIx)
    }

    /// Threads that have the lock in some mode.
    pub fn holders_of(&self, lock: LockIx) -> impl Iterator<Item = ThreadIx> {
        let uses = &self.program.locks[lock.index()].uses;
        uses.iter()
            .filter(|(thread, uses)| uses.open_at(self.at[thread.index()]).is_some())
            .map(|(thread, _)| *thread)
    }

    pub fn value_of(&self, register: RegisterIx) -> ValueIx {
        self.registers[register.index()]
    }

    pub fn is_woken(&self, thread: ThreadIx) -> bool {
        self.woken[thread.index()]
    }

    /// Will the thread never come beyond its next step? Where every write is a value of its own, a read whose write was
    /// overwritten has lost it for good.
    pub fn is_lost(&self, thread: ThreadIx) -> bool {
        let Some(step) = self.next_step(thread).filter(|_| self.program.keeps_reads) else { return false };
        match step.action {
            Action::Atomic { register, expects, .. } => {
                let other = expects != ValueIx::NONE && self.registers[register.index()] != expects;
                other && self.unmet_need(step).is_none()
            }
            Action::Free
            | Action::Lock { .. }
            | Action::Unlock { .. }
            | Action::Signal { .. }
            | Action::WaitBegin { .. }
            | Action::Wait { .. }
            | Action::BarrierEnter { .. }
            | Action::BarrierExit { .. }
            | Action::SemWait { .. }
            | Action::SemPost { .. }
            | Action::OncePassed { .. } => false,
        }
    }

    /// What the thread can do, if it may go up to `limit`.
    pub fn status(&self, thread: ThreadIx, limit: Pos) -> Status {
        if self.at[thread.index()] >= limit {
            return Status::Done;
        }
        let Some(step) = self.next_step(thread) else { return Status::Done };
        let now = self.situation(thread, step.action);
        let possible = step.action.effect().demand().is_met(now);
        let waits_or = |strays| match (possible, strays) {
            (true, _) => Status::Enabled,
            (false, true) => Status::Stray,
            (false, false) => Status::Blocked,
        };
        if let Action::OncePassed { .. } = step.action {
            // Had nobody begun, the thread would run the initialiser itself.
            return waits_or(!now.begun);
        }
        if self.unmet_need(step).is_some() {
            return if step.waits { Status::Blocked } else { Status::Stray };
        }
        match step.action {
            Action::Lock { tries, .. } => waits_or(tries),
            Action::WaitBegin { instance, guarded: true, .. } => {
                let instance = &self.program.instances[instance.index()];
                // It would have seen what the signal tells, and not have waited.
                let late = self.at[instance.thread.index()] > instance.signal;
                if late { Status::Stray } else { Status::Enabled }
            }
            Action::Atomic { register, expects, .. } => {
                let other = expects != ValueIx::NONE && self.registers[register.index()] != expects;
                if other { Status::Stray } else { Status::Enabled }
            }
            Action::Free
            | Action::Unlock { .. }
            | Action::Signal { .. }
            | Action::WaitBegin { guarded: false, .. }
            | Action::Wait { .. }
            | Action::BarrierEnter { .. }
            | Action::BarrierExit { .. }
            | Action::SemWait { .. }
            | Action::SemPost { .. }
            | Action::OncePassed { .. } => waits_or(false),
        }
    }

    fn wake(&mut self, thread: ThreadIx) {
        self.woken[thread.index()] = true;
        self.fingerprint ^= mix(WOKEN, thread.index(), 1);
    }

    fn forget_wake(&mut self, thread: ThreadIx) {
        if std::mem::take(&mut self.woken[thread.index()]) {
            self.fingerprint ^= mix(WOKEN, thread.index(), 1);
        }
    }

    /// Takes the thread's next step, whatever its status.
    pub fn take(&mut self, thread: ThreadIx) -> Undo {
        let pos = self.at[thread.index()];
        let step = &self.program.steps(thread)[pos as usize];
        let mut undo = Undo {
            fingerprint: self.fingerprint,
            woke: SmallVec::new(),
            old_value: ValueIx::NONE,
            old_count: 0,
        };
        self.fingerprint ^= mix(POSITION, thread.index(), pos) ^ mix(POSITION, thread.index(), pos + 1);
        self.at[thread.index()] = pos + 1;
        match step.action {
            Action::Free | Action::OncePassed { .. } => {}
            Action::Lock { lock, shared, .. } => {
                let lock = &mut self.locks[lock.index()];
                if shared {
                    lock.readers += 1;
                } else {
                    lock.writer = thread.0 + 1;
                }
            }
            Action::Unlock { lock, shared } => self.release(lock, shared),
            Action::Signal { instance } => {
                for &(waiter, waits_at) in &self.program.instances[instance.index()].woken {
                    if self.at[waiter.index()] == waits_at && !self.woken[waiter.index()] {
                        self.wake(waiter);
                        undo.woke.push(waiter);
                    }
                }
            }
            Action::WaitBegin { lock, .. } => {
                if lock != LockIx::NONE {
                    self.release(lock, false);
                }
            }
            Action::Wait { .. } | Action::BarrierExit { .. } => self.forget_wake(thread),
            Action::BarrierEnter { barrier } => {
                undo.old_count = self.barriers[barrier.index()];
                self.barriers[barrier.index()] += 1;
                if self.barriers[barrier.index()] >= self.program.barriers[barrier.index()].count {
                    self.barriers[barrier.index()] = 0;
                    for (inside, enters) in self.program.barriers[barrier.index()].enters.iter() {
                        let at = self.at[inside.index()];
                        let waits = at > 0 && enters.binary_search(&(at - 1)).is_ok();
                        if waits && !self.woken[inside.index()] {
                            self.wake(inside);
                            undo.woke.push(inside);
                        }
                    }
                }
            }
            Action::SemWait { sem } => {
                undo.old_count = self.semaphores[sem.index()];
                self.semaphores[sem.index()] = undo.old_count.saturating_sub(1);
            }
            Action::SemPost { sem } => self.semaphores[sem.index()] += 1,
            Action::Atomic { register, sets, .. } => {
                undo.old_value = self.registers[register.index()];
                if sets != ValueIx::NONE {
                    self.set_register(register, sets);
                }
            }
        }
        undo
    }

    fn set_register(&mut self, register: RegisterIx, value: ValueIx) {
        let old = std::mem::replace(&mut self.registers[register.index()], value);
        self.fingerprint ^= mix(VALUE, register.index(), old.0) ^ mix(VALUE, register.index(), value.0);
    }

    fn release(&mut self, lock: LockIx, shared: bool) {
        let lock = &mut self.locks[lock.index()];
        if shared {
            lock.readers -= 1;
        } else {
            lock.writer = 0;
        }
    }

    /// Takes the thread's last step back.
    pub fn undo(&mut self, thread: ThreadIx, undo: &Undo) {
        self.at[thread.index()] -= 1;
        let step = &self.program.steps(thread)[self.at[thread.index()] as usize];
        for &woke in &undo.woke {
            self.woken[woke.index()] = false;
        }
        let acquire = |lock: &mut LockNow, shared: bool| {
            if shared {
                lock.readers += 1;
            } else {
                lock.writer = thread.0 + 1;
            }
        };
        match step.action {
            Action::Free | Action::OncePassed { .. } | Action::Signal { .. } => {}
            Action::Lock { lock, shared, .. } => self.release(lock, shared),
            Action::Unlock { lock, shared } => acquire(&mut self.locks[lock.index()], shared),
            Action::WaitBegin { lock, .. } => {
                if lock != LockIx::NONE {
                    acquire(&mut self.locks[lock.index()], false);
                }
            }
            Action::Wait { .. } | Action::BarrierExit { .. } => self.woken[thread.index()] = true,
            Action::BarrierEnter { barrier } => self.barriers[barrier.index()] = undo.old_count,
            Action::SemWait { sem } => self.semaphores[sem.index()] = undo.old_count,
            Action::SemPost { sem } => self.semaphores[sem.index()] -= 1,
            Action::Atomic { register, .. } => self.registers[register.index()] = undo.old_value,
        }
        self.fingerprint = undo.fingerprint;
    }
}
