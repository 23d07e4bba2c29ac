//! From candidates to findings: who does what to which object, and how close the schedule stays to the observed run.

use crate::candidate::{Candidate, CandidateKind, Party, Role};
use crate::ids::Pos;
use crate::prediction::Prediction;
use crate::program::Program;
use crate::races::held_at;
use crate::witness::{Fidelity, Witness};
use raddle_findings::naming::Namer;
use raddle_findings::{
    Access, Action, Basis, Detail, Finding, HeldLock, Kind, Object, Place, Remark, Wait, What, headline_frame,
};
use raddle_trace::model::EventIx;
use raddle_trace::schedule::step_of;
use raddle_trace::{MemoryTrace, ObjectId, Op, ThreadIx, ops_about, ops_beside};
use rustc_hash::FxHashMap;

/// What findings of this crate are made `by`.
pub const BY: &str = "predict";

impl CandidateKind {
    pub fn finding_kind(self) -> Kind {
        match self {
            CandidateKind::DataRace => Kind::DataRace,
            CandidateKind::UseAfterFree => Kind::UseAfterFree,
            CandidateKind::Deadlock => Kind::Deadlock,
            CandidateKind::BlockedThread => Kind::BlockedThread,
            CandidateKind::MissedSignal => Kind::MissedSignal,
        }
    }
}

impl Prediction {
    /// A candidate as a finding that the model of the trace allows: whoever replays it may know more.
    pub fn finding(&self, trace: &MemoryTrace, namer: &mut Namer, candidate: &Candidate) -> Finding {
        self.finding_of(trace, namer, candidate, &candidate.parties, &candidate.witness)
    }

    /// The same with the parties and the witness of one of the candidate's alternatives.
    pub fn finding_of(
        &self,
        trace: &MemoryTrace,
        namer: &mut Namer,
        candidate: &Candidate,
        parties: &[Party],
        witness: &Witness,
    ) -> Finding {
        let mut builder = Builder { trace, program: &self.program, end: witness.end(), namer };
        let mut told: Vec<raddle_findings::Party> =
            parties.iter().map(|party| builder.party(parties, party)).collect();
        let fidelity = if self.is_sound() {
            Fidelity::KeepsReads
        } else if self.knows_memory {
            fidelity(trace, &self.program, parties, witness)
        } else {
            Fidelity::Unknown
        };
        let basis = Basis::model(fidelity == Fidelity::KeepsReads, fidelity);
        let mut remarks: Vec<Remark> = builder.observed(candidate.kind, parties).into_iter().collect();
        remarks.extend(builder.ended_holding(parties));
        let mut detail = Detail::None;
        if candidate.kind == CandidateKind::MissedSignal
            && let [waiter] = parties
        {
            detail = Detail::MissedSignal { still_waits: true };
            if let Some(signal) = missed_signal(trace, &self.program, waiter, witness) {
                told.push(builder.signaller(signal));
                remarks.extend(builder.unlocked_check(waiter, signal));
            }
        }
        let mut finding = Finding::new(candidate.kind.finding_kind(), BY, basis, told, detail);
        finding.remarks = remarks;
        finding
    }
}

struct Builder<'a> {
    trace: &'a MemoryTrace,
    program: &'a Program,
    /// Where each thread is at the end of the witness.
    end: Vec<Pos>,
    namer: &'a mut Namer,
}

impl Builder<'_> {
    fn op(&self, event: EventIx) -> Op {
        self.trace.events[event.index()].op
    }

    fn stack(&mut self, event: EventIx) -> Vec<raddle_findings::Frame> {
        let event = &self.trace.events[event.index()];
        self.namer.stack_of(&self.trace.tables, event.location, event.context)
    }

    fn memory(&mut self, address: u64) -> Option<Object> {
        Some(self.namer.memory(&self.trace.tables, address))
    }

    fn object(&mut self, op: &Op) -> Option<Object> {
        if let Op::Join { child } | Op::JoinFailed { child } = *op {
            let thread = self.namer.thread(&self.trace.tables, child);
            return Some(Object { name: None, what: What::Thread, place: Place::Thread { thread } });
        }
        let (object, what) = object_of(op)?;
        Some(self.namer.object(&self.trace.tables, object, what))
    }

    fn party(&mut self, all: &[Party], party: &Party) -> raddle_findings::Party {
        let op = self.op(party.event);
        let action = match party.role {
            Role::Accesses => self.access(&op),
            Role::Blocked => self.waits(all, party, &op),
        };
        let stack = self.stack(party.event);
        let thread = self.thread(party.thread, &stack);
        let locks = party.held.iter().filter_map(|&held| self.held(held)).collect();
        raddle_findings::Party { thread, action, stack, locks, created: None }
    }

    /// The thread with the function that it runs: the outermost call of the user's own code.
    fn thread(&self, thread: ThreadIx, stack: &[raddle_findings::Frame]) -> raddle_findings::Thread {
        let mut named = self.namer.thread(&self.trace.tables, thread);
        let outermost = stack.iter().rev().find(|frame| !frame.library && frame.function.is_some());
        named.entry = outermost.and_then(|frame| frame.function.clone());
        named
    }

    fn held(&mut self, event: EventIx) -> Option<HeldLock> {
        let op = self.op(event);
        let read = matches!(op, Op::ReadLock { .. });
        Some(HeldLock { lock: self.object(&op)?, read, acquired: self.stack(event) })
    }

    fn access(&mut self, op: &Op) -> Action {
        let (access, addr, size, atomic) = match *op {
            Op::Read { addr, size, .. } => (Access::Read, addr, u64::from(size), false),
            Op::Write { addr, size, .. } => (Access::Write, addr, u64::from(size), false),
            Op::Atomic { addr, size, kind, .. } => {
                let access = if kind.writes() { Access::Write } else { Access::Read };
                (access, addr, u64::from(size), true)
            }
            Op::Free { addr } => return Action::Frees { object: self.memory(addr.0) },
            Op::Fence { .. } | Op::Alloc { .. } | Op::Lost { .. } | ops_about!(Sync) => {
                return Action::access(Access::Any);
            }
        };
        Action::Accesses { access, bytes: size, atomic, vptr: false, object: self.memory(addr.0) }
    }

    fn waits(&mut self, all: &[Party], party: &Party, op: &Op) -> Action {
        let wait = match op {
            Op::Join { .. } | Op::JoinFailed { .. } => Wait::ThreadEnd,
            Op::Wait { .. } => Wait::Signal,
            Op::SemWait { .. } | Op::SemRequest { .. } => Wait::Semaphore,
            Op::BarrierExit { .. } | Op::BarrierEnter { .. } => Wait::Barrier,
            Op::ReadLock { .. } | Op::Request { read: true, .. } => Wait::ReadLock,
            Op::Lock { .. } | Op::Request { .. } => Wait::Lock,
            Op::OncePassed { .. } => Wait::Initialiser,
            Op::FutexWait { .. } => Wait::Futex,
            Op::Start { .. }
            | Op::Fork { .. }
            | Op::Detach { .. }
            | Op::Cancel { .. }
            | Op::End
            | Op::LockFailed { .. }
            | Op::ReadLockFailed { .. }
            | Op::Unlock { .. }
            | Op::Signal { .. }
            | Op::Broadcast { .. }
            | Op::WaitBegin { .. }
            | Op::WaitFailed { .. }
            | Op::BarrierInit { .. }
            | Op::SemInit { .. }
            | Op::SemWaitFailed { .. }
            | Op::SemPost { .. }
            | Op::OnceBegin { .. }
            | Op::OnceEnd { .. }
            | Op::FutexWake { .. }
            | Op::FutexWaitFailed { .. }
            | ops_about!(Memory, Nothing, Annotated, Signal, Channel, Life) => Wait::Other,
        };
        // One of the others has the lock that this party waits for, or somebody who takes no part in this.
        let holder = lock_of(op).and_then(|lock| {
            let has = |other: &&Party| {
                other.thread != party.thread
                    && other.held.iter().any(|&held| lock_of(&self.op(held)) == Some(lock))
            };
            all.iter().find(has).map(|other| other.thread).or_else(|| self.holder(party.thread, lock))
        });
        let holder = holder.map(|holder| self.namer.thread(&self.trace.tables, holder).path);
        let operation = match wait {
            Wait::Other => step_of(op).map_or(String::new(), |(kind, _)| kind.word().to_owned()),
            Wait::Lock
            | Wait::ReadLock
            | Wait::ThreadEnd
            | Wait::Signal
            | Wait::Semaphore
            | Wait::Barrier
            | Wait::Initialiser
            | Wait::Futex => String::new(),
        };
        Action::Waits { wait, object: self.object(op), holder, operation }
    }

    /// Who has a lock at the end of the witness, beside this thread.
    fn holder(&self, beside: ThreadIx, lock: u64) -> Option<ThreadIx> {
        let is_it = |&event: &EventIx| lock_of(&self.op(event)) == Some(lock);
        let has = |&thread: &ThreadIx| {
            thread != beside && held_at(self.program, thread, self.end[thread.index()]).iter().any(is_it)
        };
        self.program.thread_ids().find(has)
    }

    /// Threads that have come to their end with a lock that a party waits for.
    fn ended_holding(&self, parties: &[Party]) -> Vec<Remark> {
        let mut holders: Vec<ThreadIx> = parties
            .iter()
            .filter_map(|party| self.holder(party.thread, lock_of(&self.op(party.event))?))
            .filter(|holder| self.end[holder.index()] as usize == self.program.steps(*holder).len())
            .filter(|holder| parties.iter().all(|party| party.thread != *holder))
            .collect();
        holders.sort_unstable();
        holders.dedup();
        let path = |holder| self.namer.thread(&self.trace.tables, holder).path;
        holders.into_iter().map(|holder| Remark::HolderEnded { thread: path(holder) }).collect()
    }

    fn signaller(&mut self, signal: EventIx) -> raddle_findings::Party {
        let op = self.op(signal);
        let stack = self.stack(signal);
        let thread = self.thread(self.trace.events[signal.index()].thread, &stack);
        raddle_findings::Party::new(thread, Action::SignalsNobody { object: self.object(&op) }, stack)
    }

    /// The place where the waiter looked at what the signaller changes without holding the lock it waits with.
    fn unlocked_check(&mut self, waiter: &Party, signal: EventIx) -> Option<Remark> {
        let Op::Wait { lock, .. } = self.op(waiter.event) else { return None };
        let events = &self.trace.events;
        let signaller = events[signal.index()].thread;
        let recent = |before: usize, thread: ThreadIx| {
            events[..before]
                .iter()
                .enumerate()
                .rev()
                .filter(move |(_, event)| event.thread == thread)
                .take(LOOK_BACK)
        };
        let written: Vec<(u64, u64)> = recent(signal.index(), signaller)
            .filter_map(|(_, event)| match event.op {
                Op::Write { addr, size, .. } => Some((addr.0, addr.0 + u64::from(size))),
                Op::Atomic { addr, size, kind, .. } if kind.writes() => {
                    Some((addr.0, addr.0 + u64::from(size)))
                }
                Op::Read { .. }
                | Op::Atomic { .. }
                | Op::Fence { .. }
                | Op::Alloc { .. }
                | Op::Free { .. }
                | Op::Lost { .. }
                | ops_about!(Sync) => None,
            })
            .collect();
        // Reads after the lock was taken are under it; the first one before is not.
        let locked = recent(waiter.event.index(), waiter.thread)
            .find(|(_, event)| matches!(event.op, Op::Lock { lock: taken, .. } if taken == lock))?
            .0;
        let unlocked = recent(locked, waiter.thread).find(|(_, event)| {
            let range = match event.op {
                Op::Read { addr, size, .. } => (addr.0, addr.0 + u64::from(size)),
                Op::Atomic { addr, size, kind, .. } if kind.reads() => (addr.0, addr.0 + u64::from(size)),
                Op::Write { .. }
                | Op::Atomic { .. }
                | Op::Fence { .. }
                | Op::Alloc { .. }
                | Op::Free { .. }
                | Op::Lost { .. }
                | ops_about!(Sync) => return false,
            };
            written.iter().any(|other| range.0 < other.1 && other.0 < range.1)
        })?;
        let stack = self.stack(EventIx(unlocked.0 as u32));
        let frame = headline_frame(&stack)?.clone();
        let thread = self.namer.thread(&self.trace.tables, waiter.thread).path;
        Some(Remark::CheckedWithoutLock { thread, frame: Box::new(frame) })
    }

    /// What the observed run did instead.
    fn observed(&self, kind: CandidateKind, parties: &[Party]) -> Option<Remark> {
        let [first, second] = parties else { return None };
        if !kind.is_race() {
            return None;
        }
        let (earlier, later) = if first.event < second.event { (first, second) } else { (second, first) };
        let path = |party: &Party| self.namer.thread(&self.trace.tables, party.thread).path;
        Some(Remark::ObservedOrder {
            first: path(earlier),
            then: path(later),
            events: (u64::from(earlier.event.0), u64::from(later.event.0)),
        })
    }
}

/// Events of a thread that are looked at before a wait or a signal.
const LOOK_BACK: usize = 500;

/// The last signal on the waiter's condition that is sent within the witness.
fn missed_signal(
    trace: &MemoryTrace,
    program: &Program,
    waiter: &Party,
    witness: &Witness,
) -> Option<EventIx> {
    let Op::Wait { cond: wanted, .. } = trace.events[waiter.event.index()].op else { return None };
    let end = witness.end();
    let mut found = None;
    for thread in program.thread_ids().filter(|&thread| thread != waiter.thread) {
        for step in &program.steps(thread)[..end[thread.index()] as usize] {
            if let Op::Signal { cond } | Op::Broadcast { cond } = trace.events[step.event.index()].op
                && cond == wanted
            {
                found = found.max(Some(step.event));
            }
        }
    }
    found
}

/// Traces longer than this are not gone through for one candidate.
const EXACT_EVENTS_MAX: usize = 200_000;

/// How close the witness really stays to the observed run.
///
/// The closure works on segments, so its claim that all reads keep their writers does not cover reads in the last segment of
/// each thread that come before the party's access. Here the run is gone through read by read; where that would take too
/// long, less is claimed.
pub fn fidelity(trace: &MemoryTrace, program: &Program, parties: &[Party], witness: &Witness) -> Fidelity {
    if witness.fidelity != Fidelity::KeepsReads {
        return witness.fidelity;
    }
    if trace.events.len() > EXACT_EVENTS_MAX {
        return Fidelity::KeepsEarlierReads;
    }
    match keeps_every_read(trace, program, parties, &witness.end()) {
        true => Fidelity::KeepsReads,
        false => Fidelity::KeepsEarlierReads,
    }
}

/// Does each read of the run that is left (the observed order up to the given positions, and up to the parties' accesses)
/// see the write that it saw in the observed run?
fn keeps_every_read(trace: &MemoryTrace, program: &Program, parties: &[Party], end: &[Pos]) -> bool {
    // First event of each thread that is left out.
    let limits: Vec<usize> = program
        .thread_ids()
        .map(|thread| match parties.iter().find(|party| party.thread == thread) {
            Some(party) => party.event.index(),
            None => {
                let steps = program.steps(thread);
                let last = (end[thread.index()] as usize).checked_sub(1);
                last.and_then(|last| steps.get(last)).map_or(0, |step| step.event.index() + 1)
            }
        })
        .collect();
    // Byte by byte: the last write of the observed run, and the last one that is left.
    let mut observed: FxHashMap<u64, usize> = FxHashMap::default();
    let mut left: FxHashMap<u64, usize> = FxHashMap::default();
    for (at, event) in trace.events.iter().enumerate() {
        let stays = limits.get(event.thread.index()).is_some_and(|&limit| at < limit);
        let (addr, size, reads, writes) = match event.op {
            Op::Read { addr, size, .. } => (addr.0, size, true, false),
            Op::Write { addr, size, .. } => (addr.0, size, false, true),
            Op::Atomic { addr, size, kind, .. } => (addr.0, size.into(), kind.reads(), kind.writes()),
            Op::Fence { .. } | Op::Alloc { .. } | Op::Free { .. } | Op::Lost { .. } | ops_about!(Sync) => {
                continue;
            }
        };
        for byte in addr..addr.saturating_add(u64::from(size).min(BYTES_MAX)) {
            if reads && stays && observed.get(&byte) != left.get(&byte) {
                return false;
            }
            if writes {
                observed.insert(byte, at);
                if stays {
                    left.insert(byte, at);
                }
            }
        }
    }
    true
}

/// Bytes of one access that are followed.
const BYTES_MAX: u64 = 4096;

fn lock_of(op: &Op) -> Option<u64> {
    match *op {
        Op::Lock { lock, .. } | Op::ReadLock { lock, .. } | Op::Request { lock, .. } => Some(lock.0),
        Op::LockFailed { .. } | Op::ReadLockFailed { .. } | Op::Unlock { .. } | ops_beside!(Lock) => None,
    }
}

/// The object of an operation that can block or signal, and what it is.
fn object_of(op: &Op) -> Option<(ObjectId, What)> {
    let lock = |rwlock: bool| if rwlock { What::Rwlock } else { What::Mutex };
    Some(match *op {
        Op::Lock { lock: object, flags } | Op::Request { lock: object, flags, .. } => {
            (object, lock(flags.rwlock))
        }
        Op::ReadLock { lock, .. } => (lock, What::Rwlock),
        Op::Wait { cond, .. } | Op::WaitBegin { cond, .. } | Op::Signal { cond } | Op::Broadcast { cond } => {
            (cond, What::Condition)
        }
        Op::SemWait { sem } | Op::SemPost { sem } | Op::SemRequest { sem } => (sem, What::Semaphore),
        Op::BarrierEnter { barrier } | Op::BarrierExit { barrier } => (barrier, What::Barrier),
        Op::OncePassed { once } | Op::OnceBegin { once } => (once, What::Once),
        Op::LockFailed { .. }
        | Op::ReadLockFailed { .. }
        | Op::Unlock { .. }
        | Op::WaitFailed { .. }
        | Op::BarrierInit { .. }
        | Op::SemInit { .. }
        | Op::SemWaitFailed { .. }
        | Op::OnceEnd { .. }
        | ops_about!(Memory, Nothing, Thread, Futex, Annotated, Signal, Channel, Life) => return None,
    })
}
