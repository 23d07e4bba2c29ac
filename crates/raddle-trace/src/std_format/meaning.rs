//! What a line means beyond its words: waits of the dialects, names of threads, and what cannot be so.

use super::dialect::{InputDialect, Waiting};
use super::{Fault, StdReader};
use crate::event::{Event, LockFlags, Op};
use crate::ids::{ObjectId, ThreadIx};
use crate::ops_about;
use std::io::Read;

impl<R: Read> StdReader<R> {
    /// Is this argument of a fork or join the number of a thread that is called `T` and that number elsewhere?
    pub(super) fn means_numbered(&self, name: &[u8]) -> bool {
        match self.dialect {
            InputDialect::Auto => self.numbered_threads && is_number(name),
            InputDialect::Sunhang => is_number(name),
            InputDialect::Rapid | InputDialect::RffC | InputDialect::RvPredict => false,
        }
    }

    /// `pthread(P) = tid(T)`: two names of one thread.
    pub(super) fn alias(&mut self, line: &[u8]) -> Result<(), Fault> {
        let expected = || Fault(0, "expected `pthread(NUMBER) = tid(NUMBER)`".into());
        let text = std::str::from_utf8(line).map_err(|_| expected())?;
        let (posix, rest) = text["pthread(".len()..].split_once(')').ok_or_else(expected)?;
        let kernel = rest.trim().strip_prefix('=').and_then(|rest| rest.trim().strip_prefix("tid("));
        let kernel = kernel.and_then(|rest| rest.strip_suffix(')')).ok_or_else(expected)?;
        let numbers = [posix, kernel].map(|name| is_number(name.as_bytes()));
        if numbers != [true, true] {
            return Err(expected());
        }
        self.marks.rff = true;
        // The fork may be told before or after this line.
        let known = |name: &str| {
            let place = self.threads.names().iter().position(|known| known == name)?;
            self.thread_ix.get(place).copied()
        };
        match (known(posix), known(kernel)) {
            (Some(thread), None) => {
                self.aliases.insert(kernel.as_bytes().into(), thread);
                self.tables.threads[thread.index()].given_name = Some(kernel.to_owned());
            }
            (_, known) => {
                let thread = known.unwrap_or_else(|| self.thread(kernel.as_bytes(), None));
                self.aliases.insert(posix.as_bytes().into(), thread);
            }
        }
        Ok(())
    }

    /// The mutex of a wait that names its condition alone: the one that the thread took last, if it has any.
    pub(super) fn lock_of_wait(&self, thread: ThreadIx, cond: ObjectId) -> ObjectId {
        let waiting = self.waiting.get(thread.index()).copied().flatten().map(|waiting| waiting.lock);
        let held = self.held.get(thread.index()).and_then(|held| held.last().copied());
        waiting.or(held).unwrap_or(cond)
    }

    /// What a line means where the dialects differ.
    pub(super) fn meant(&mut self, word: &[u8], single: bool, thread: ThreadIx, op: Op) -> Op {
        let begins = |reader: &StdReader<R>, lock: ObjectId| match reader.dialect {
            InputDialect::Sunhang => true,
            InputDialect::Auto => !reader.faults.holds(thread, lock.0),
            InputDialect::Rapid | InputDialect::RffC | InputDialect::RvPredict => false,
        };
        match op {
            Op::Wait { cond, lock } if word == b"wait" && single && !self.is_waiting(thread) => {
                if !begins(self, lock)
                    || !self.released_last(thread, lock) && self.dialect == InputDialect::Auto
                {
                    return op;
                }
                self.marks.sunhang = true;
                self.begin_wait(thread, cond, lock);
                Op::WaitBegin { cond, lock }
            }
            Op::WaitBegin { cond, lock } if word == b"wait_sleep" => {
                self.begin_wait(thread, cond, lock);
                op
            }
            Op::Wait { lock, .. } if word == b"wait_wake" => {
                let waiting = self.end_wait(thread);
                if waiting.is_some_and(|waiting| waiting.implied) {
                    self.behind.push(Op::Lock { lock, flags: LockFlags::default() });
                }
                op
            }
            Op::Request { lock, .. } | Op::Lock { lock, .. } if self.waits_with(thread, lock) => {
                if let Some(Waiting { cond, lock, .. }) = self.end_wait(thread) {
                    self.before.push(Op::Wait { cond, lock });
                }
                op
            }
            ops_about!(
                Memory, Nothing, Thread, Lock, Condition, Barrier, Semaphore, Once, Futex, Annotated, Signal,
                Channel, Life
            ) => op,
        }
    }

    fn is_waiting(&self, thread: ThreadIx) -> bool {
        self.waiting.get(thread.index()).is_some_and(Option::is_some)
    }

    /// In a dialect that does not say when a waiter was woken, it asks for its lock then.
    fn waits_with(&self, thread: ThreadIx, lock: ObjectId) -> bool {
        let waiting = self.waiting.get(thread.index()).copied().flatten();
        waiting.is_some_and(|waiting| waiting.lock == lock && waiting.cond == lock)
    }

    /// Did the thread have the lock and give it back? Then it may wait with it.
    fn released_last(&self, thread: ThreadIx, lock: ObjectId) -> bool {
        self.held.get(thread.index()).is_some_and(|held| !held.contains(&lock))
    }

    fn begin_wait(&mut self, thread: ThreadIx, cond: ObjectId, lock: ObjectId) {
        let implied = self.faults.holds(thread, lock.0);
        if implied {
            let flags = LockFlags { wait: true, ..LockFlags::default() };
            self.check(thread, &Op::Unlock { lock, flags });
            self.before.push(Op::Unlock { lock, flags });
        }
        if self.waiting.len() <= thread.index() {
            self.waiting.resize(thread.index() + 1, None);
        }
        self.waiting_count += usize::from(self.waiting[thread.index()].is_none());
        self.waiting[thread.index()] = Some(Waiting { cond, lock, implied });
    }

    fn end_wait(&mut self, thread: ThreadIx) -> Option<Waiting> {
        let waiting = self.waiting.get_mut(thread.index())?.take()?;
        self.waiting_count -= 1;
        if waiting.implied {
            self.faults.acquire(thread, waiting.lock.0, self.line);
            self.hold(thread, waiting.lock);
        }
        Some(waiting)
    }

    fn hold(&mut self, thread: ThreadIx, lock: ObjectId) {
        if self.held.len() <= thread.index() {
            self.held.resize(thread.index() + 1, Vec::new());
        }
        self.held[thread.index()].push(lock);
    }

    /// Notes what cannot be so.
    #[inline]
    pub(super) fn check(&mut self, thread: ThreadIx, op: &Op) {
        if !self.faults.acts(thread, self.line) {
            let name = self.thread_name(thread);
            self.faults.acts_after_join(thread, self.line, &name);
        }
        match *op {
            Op::Lock { lock, flags } if !flags.rwlock => {
                self.hold(thread, lock);
                if let Some((holder, since)) = self.faults.acquire(thread, lock.0, self.line) {
                    let (name, holder_name) = (self.thread_name(thread), self.thread_name(holder));
                    let text = format!(
                        "thread {name} takes lock {} while thread {holder_name} has it since line {since}",
                        self.objects.names()[lock.0 as usize]
                    );
                    self.faults.two_holders(lock.0, holder, self.line, text);
                }
            }
            Op::Unlock { lock, flags } if !flags.rwlock => {
                if let Some(held) = self.held.get_mut(thread.index())
                    && let Some(place) = held.iter().rposition(|&held| held == lock)
                {
                    held.remove(place);
                }
                if !self.faults.release(thread, lock.0) {
                    let (name, lock) = (self.thread_name(thread), &self.objects.names()[lock.0 as usize]);
                    let text = format!("thread {name} releases lock {lock}, which it does not have");
                    self.faults.not_held(self.line, text);
                }
            }
            Op::Wait { lock, .. } if self.faults_lock_is_others(thread, lock) => {
                self.faults.was_waiting(thread, lock.0, self.line);
            }
            Op::WaitBegin { lock, .. } if self.faults.holds(thread, lock.0) => {
                // It gives the lock back whether or not a line says so.
                while self.faults.release(thread, lock.0) {}
                if let Some(held) = self.held.get_mut(thread.index()) {
                    held.retain(|&held| held != lock);
                }
            }
            Op::Fork { child } => {
                let name = self.thread_name(child);
                self.faults.forked(child, self.line, &name);
            }
            Op::Join { child } => self.faults.joined(child, self.line),
            Op::Start { .. }
            | Op::JoinFailed { .. }
            | Op::Detach { .. }
            | Op::Cancel { .. }
            | Op::End
            | ops_about!(
                Memory, Nothing, Lock, Condition, Barrier, Semaphore, Once, Futex, Annotated, Signal,
                Channel, Life
            ) => {}
        }
    }

    /// Where a trace shows no beginning of a wait, the waiter seems to have had the lock all the time.
    fn faults_lock_is_others(&self, thread: ThreadIx, lock: ObjectId) -> bool {
        let had = self.held.get(thread.index()).is_some_and(|held| held.contains(&lock));
        had && !self.faults.holds(thread, lock.0)
    }
}

pub(super) fn is_number(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(u8::is_ascii_digit)
}

/// A release just before its thread begins to wait is part of the wait, unless somebody took the lock in between.
pub(super) fn join_wait(batch: &mut [Event], begins: &Event) {
    let Op::WaitBegin { lock: wanted, .. } = begins.op else { return };
    for event in batch.iter_mut().rev() {
        let own = event.thread == begins.thread;
        if let (Op::Unlock { lock, flags }, true) = (&mut event.op, own) {
            flags.wait |= *lock == wanted;
            return;
        }
        if own || matches!(event.op, Op::Lock { lock, .. } if lock == wanted) {
            return;
        }
    }
}
