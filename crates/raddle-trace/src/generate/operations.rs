//! The operations that an actor of the simulated machine may take next: what each asks of the machine's state, what it
//! does to it, and the events it writes.

use super::{Activity, Generator, Once, Other};
use crate::event::{AccessFlags, AtomicKind, LockFlags, Op, Order, Patience};
use crate::ids::{Addr, ObjectId};

impl Generator {
    pub(super) fn lock_step(&mut self, actor: usize) {
        let held = self.actors[actor].held.len() as u32;
        let wants_more = self.rng.below(self.shape.nesting_max.max(1)) >= held;
        if !wants_more {
            return self.release(actor);
        }
        let lock = self.rng.below(self.holders.len() as u32) as usize;
        let read = self.is_rwlock(lock) && self.rng.percent(60);
        if self.actors[actor].held.contains(&lock) {
            return if held > 0 { self.release(actor) } else { self.access(actor) };
        }
        if self.shape.requests {
            self.actors[actor].activity = Activity::Requesting { lock, read };
            let flags = self.flags(lock);
            let lock = self.lock_id(lock);
            self.emit(actor, Op::Request { lock, read, flags });
        } else if self.is_free(lock, read) {
            self.acquire(actor, lock, read);
        } else if self.shape.failures {
            let flags = LockFlags { patience: Patience::Try, ..self.flags(lock) };
            let lock = self.lock_id(lock);
            let op = if read { Op::ReadLockFailed { lock, flags } } else { Op::LockFailed { lock, flags } };
            self.emit(actor, op);
        } else {
            self.access(actor);
        }
    }

    pub(super) fn is_free(&self, lock: usize, read: bool) -> bool {
        let holder = &self.holders[lock];
        holder.writer.is_none() && (read || holder.readers.is_empty())
    }

    pub(super) fn acquire(&mut self, actor: usize, lock: usize, read: bool) {
        assert!(self.is_free(lock, read));
        if read {
            self.holders[lock].readers.push(actor);
        } else {
            self.holders[lock].writer = Some(actor);
        }
        self.actors[actor].held.push(lock);
        self.actors[actor].activity = Activity::Running;
        let flags = self.flags(lock);
        let lock = self.lock_id(lock);
        self.emit(actor, if read { Op::ReadLock { lock, flags } } else { Op::Lock { lock, flags } });
    }

    /// Releases a lock, usually the innermost one.
    pub(super) fn release(&mut self, actor: usize) {
        let count = self.actors[actor].held.len();
        let index = if self.rng.percent(85) { count - 1 } else { self.rng.below(count as u32) as usize };
        let lock = self.actors[actor].held.remove(index);
        self.let_go(actor, lock);
        let flags = self.flags(lock);
        let lock = self.lock_id(lock);
        self.emit(actor, Op::Unlock { lock, flags });
    }

    pub(super) fn let_go(&mut self, actor: usize, lock: usize) {
        let holder = &mut self.holders[lock];
        if holder.writer == Some(actor) {
            holder.writer = None;
        } else {
            let place = holder.readers.iter().position(|&reader| reader == actor).expect("the actor reads");
            holder.readers.swap_remove(place);
        }
    }

    pub(super) fn other_step(&mut self, actor: usize, other: Other) {
        match other {
            Other::Condition => self.condition_step(actor),
            Other::Barrier => self.barrier_step(actor),
            Other::Semaphore => {
                let index = self.rng.below(self.shape.semaphores) as usize;
                let sem = self.semaphore_id(index);
                if self.semaphores[index] > 0 && self.rng.percent(60) {
                    self.semaphores[index] -= 1;
                    self.emit(actor, Op::SemWait { sem });
                } else {
                    self.semaphores[index] += 1;
                    self.emit(actor, Op::SemPost { sem });
                }
            }
            Other::Atomic => self.atomic_step(actor),
            Other::Once => {
                let index = self.rng.below(self.shape.onces) as usize;
                match self.onces[index] {
                    Once::Fresh => {
                        self.onces[index] = Once::Running(actor);
                        let once = self.once_id(index);
                        self.emit(actor, Op::OnceBegin { once });
                    }
                    Once::Running(owner) if owner == actor => self.finish_once(actor, index),
                    Once::Running(_) => self.access(actor),
                    Once::Done => {
                        let once = self.once_id(index);
                        self.emit(actor, Op::OncePassed { once });
                    }
                }
            }
            Other::Region => {
                if !self.actors[actor].regions.is_empty() && self.rng.percent(60) {
                    let name = self.actors[actor].regions.pop().expect("not empty");
                    self.emit(actor, Op::AtomicEnd { name });
                } else {
                    let name = self.texts[self.rng.below(self.texts.len() as u32) as usize];
                    self.actors[actor].regions.push(name);
                    self.emit(actor, Op::AtomicBegin { name });
                }
            }
            Other::Call => {
                let name = self.texts[self.rng.below(self.texts.len() as u32) as usize];
                let object = ObjectId(1_000_000 + u64::from(self.rng.below(self.shape.calls)));
                self.emit(actor, Op::Custom { name, object });
            }
        }
    }

    pub(super) fn finish_once(&mut self, actor: usize, index: usize) {
        self.onces[index] = Once::Done;
        let once = self.once_id(index);
        self.emit(actor, Op::OnceEnd { once });
    }

    pub(super) fn condition_step(&mut self, actor: usize) {
        let cond = self.rng.below(self.shape.conditions) as usize;
        let waiting: Vec<usize> = (0..self.actors.len())
            .filter(|&a| matches!(self.actors[a].activity, Activity::Waiting { cond: c, .. } if c == cond))
            .collect();
        let mutex = self.actors[actor].held.last().copied().filter(|&lock| !self.is_rwlock(lock));
        let running =
            self.actors.iter().filter(|a| matches!(a.activity, Activity::Running | Activity::Fresh)).count();
        if let (Some(lock), true) = (mutex, running > 1 && self.rng.percent(50)) {
            self.actors[actor].held.pop();
            self.let_go(actor, lock);
            self.actors[actor].activity = Activity::Waiting { cond, lock };
            let flags = LockFlags { wait: true, ..self.flags(lock) };
            let (cond, lock) = (self.condition_id(cond), self.lock_id(lock));
            self.emit(actor, Op::Unlock { lock, flags });
            self.emit(actor, Op::WaitBegin { cond, lock });
        } else if self.rng.percent(30) {
            self.broadcast(actor, cond);
        } else {
            if !waiting.is_empty() {
                let chosen = waiting[self.rng.below(waiting.len() as u32) as usize];
                self.wake(chosen);
            }
            let cond = self.condition_id(cond);
            self.emit(actor, Op::Signal { cond });
        }
    }

    pub(super) fn broadcast(&mut self, actor: usize, cond: usize) {
        for waiter in 0..self.actors.len() {
            if matches!(self.actors[waiter].activity, Activity::Waiting { cond: c, .. } if c == cond) {
                self.wake(waiter);
            }
        }
        let cond = self.condition_id(cond);
        self.emit(actor, Op::Broadcast { cond });
    }

    pub(super) fn wake(&mut self, waiter: usize) {
        let Activity::Waiting { cond, lock } = self.actors[waiter].activity else { return };
        self.actors[waiter].activity = Activity::Woken { cond, lock };
    }

    pub(super) fn barrier_step(&mut self, actor: usize) {
        let index = self.rng.below(self.shape.barriers) as usize;
        let running =
            self.actors.iter().filter(|a| matches!(a.activity, Activity::Running | Activity::Fresh)).count();
        let missing = self.barriers[index].count - self.barriers[index].entered;
        // Entering when nobody could come after us, or with locks that the others may need, would end the trace here.
        if (running as u32) < missing || !self.actors[actor].held.is_empty() {
            return self.access(actor);
        }
        let state = &mut self.barriers[index];
        self.actors[actor].activity = Activity::InBarrier { barrier: index, generation: state.generation };
        state.entered += 1;
        if state.entered == state.count {
            state.entered = 0;
            state.generation += 1;
        }
        let barrier = self.barrier_id(index);
        self.emit(actor, Op::BarrierEnter { barrier });
    }

    pub(super) fn atomic_step(&mut self, actor: usize) {
        let mut order = |choices: &[Order]| {
            if self.shape.weak_orders {
                choices[self.rng.below(choices.len() as u32) as usize]
            } else {
                Order::SeqCst
            }
        };
        let rmw_order = order(&Order::ALL);
        let load_order = order(&[Order::Relaxed, Order::Acquire, Order::SeqCst]);
        let store_order = order(&[Order::Relaxed, Order::Release, Order::SeqCst]);
        let fence_order = order(&[Order::Acquire, Order::Release, Order::AcqRel, Order::SeqCst]);
        let index = self.rng.below(self.shape.atomics) as usize;
        let addr = Addr(8 * (1 + u64::from(self.shape.variables) + index as u64));
        let read = self.atomics[index];
        let written = self.next_value;
        let (kind, order, read, written) = match self.rng.below(10) {
            0..=3 => (AtomicKind::Load, load_order, read, 0),
            4..=6 => (AtomicKind::Store, store_order, 0, written),
            7 => (AtomicKind::Rmw, rmw_order, read, written),
            8 => (AtomicKind::CasFailed, load_order, read, 0),
            _ if self.shape.weak_orders => return self.emit(actor, Op::Fence { order: fence_order }),
            _ => (AtomicKind::Rmw, rmw_order, read, written),
        };
        if kind.writes() {
            self.atomics[index] = written;
            self.next_value += 1;
        }
        self.emit(actor, Op::Atomic { addr, size: 8, kind, order, read, written });
    }

    pub(super) fn access(&mut self, actor: usize) {
        let variable = self.choose_variable(actor);
        let (mut offset, mut size) = (0, 8);
        if self.shape.mixed_sizes {
            size = 1 << self.rng.below(4);
            offset = size * self.rng.below(8 / size);
        }
        let addr = Addr(8 * (1 + u64::from(variable)) + u64::from(offset));
        let flags = AccessFlags::default();
        let write = self.rng.percent(self.shape.write_percent);
        self.emit(
            actor,
            if write { Op::Write { addr, size, flags } } else { Op::Read { addr, size, flags } },
        );
    }

    /// Variables are numbered: guarded ones first, then private ones, then those that anybody accesses.
    pub(super) fn choose_variable(&mut self, actor: usize) -> u32 {
        let shape = &self.shape;
        let guarded = (u64::from(shape.variables) * u64::from(shape.guarded_percent) / 100) as u32;
        let private = (u64::from(shape.variables) * u64::from(shape.private_percent) / 100) as u32;
        let shared = shape.variables - guarded - private;
        if let Some(&lock) = self.actors[actor].held.last()
            && lock < shape.locks as usize
            && self.rng.percent(80)
        {
            let (lock, locks) = (lock as u32, shape.locks);
            if guarded > lock {
                let choices = (guarded - lock).div_ceil(locks);
                return lock + locks * self.rng.below(choices);
            }
        }
        let (actor, threads) = (actor as u32, shape.threads);
        if private > actor && (shared == 0 || self.rng.percent(95)) {
            let choices = (private - actor).div_ceil(threads);
            return guarded + actor + threads * self.rng.below(choices);
        }
        if shared == 0 { self.rng.below(shape.variables) } else { guarded + private + self.rng.below(shared) }
    }
}
