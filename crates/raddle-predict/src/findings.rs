//! From candidates to findings: names, stacks, sentences.

use crate::candidate::{Candidate, CandidateKind, Party};
use crate::names::Names;
use crate::prediction::Prediction;
use crate::witness::{Fidelity, Witness};
use raddle_findings::{Finding, Frame, Grade, HeldLock, Kind};
use raddle_trace::model::EventIx;
use raddle_trace::schedule::StepKind;
use raddle_trace::symbols::{CodeFrame, Symbolizer};
use raddle_trace::{MemoryTrace, Op};

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
    /// A candidate in words, graded *predicted*: whoever replays it may raise the grade.
    pub fn finding(&self, trace: &MemoryTrace, symbols: &mut Symbolizer, candidate: &Candidate) -> Finding {
        let mut words = Words { prediction: self, trace, symbols };
        let parties = candidate.parties.iter().map(|party| words.party(candidate, party)).collect();
        let message = words.message(candidate);
        let objects = words.objects(candidate);
        let mut finding = Finding::new(candidate.kind.finding_kind(), Grade::Predicted, BY, message, parties);
        finding.objects = objects;
        finding.notes.push(how(&candidate.witness));
        finding.notes.extend(words.observed(candidate));
        finding
    }
}

fn how(witness: &Witness) -> String {
    match witness.fidelity {
        Fidelity::KeepsReads => {
            "the schedule leaves out events of the observed run; every read sees the write it saw there"
                .to_owned()
        }
        Fidelity::KeepsEarlierReads => {
            "the schedule leaves out events of the observed run; up to the last stretch of \
                                        each thread every read sees the write it saw there"
                .to_owned()
        }
        Fidelity::KeepsOrder => {
            "the schedule leaves out events of the observed run; some reads see other writes than there"
                .to_owned()
        }
        Fidelity::Reordered => format!(
            "the schedule follows the observed run and then takes {} step{} in another order",
            witness.then.len(),
            if witness.then.len() == 1 { "" } else { "s" }
        ),
    }
}

struct Words<'a> {
    prediction: &'a Prediction,
    trace: &'a MemoryTrace,
    symbols: &'a mut Symbolizer,
}

impl Words<'_> {
    fn names(&self) -> &Names {
        &self.prediction.names
    }

    fn op(&self, event: EventIx) -> &Op {
        &self.trace.events[event.index()].op
    }

    fn stack(&mut self, event: EventIx) -> Vec<Frame> {
        let frames = self.symbols.stack_of(&self.trace.tables, &self.trace.events[event.index()]);
        frames.into_iter().map(frame).collect()
    }

    /// An address in words: variable, allocation, place in a module, number.
    fn memory(&mut self, addr: u64) -> String {
        if let Some(variable) = self.symbols.variable(addr) {
            return variable.to_string();
        }
        self.names().memory(&self.trace.tables, addr).unwrap_or_else(|| format!("{addr:#x}"))
    }

    fn object(&mut self, event: EventIx) -> String {
        let op = *self.op(event);
        if let Some(addr) = object_address(&op)
            && let Some(variable) = self.symbols.variable(addr)
        {
            return variable.to_string();
        }
        self.names().object_of(&self.trace.tables, &op)
    }

    fn action(&mut self, party: &Party) -> String {
        let op = *self.op(party.event);
        let bytes = |size: u64| format!("{size} byte{}", if size == 1 { "" } else { "s" });
        match op {
            Op::Read { addr, size, .. } => {
                format!("reads {} of `{}`", bytes(size.into()), self.memory(addr.0))
            }
            Op::Write { addr, size, .. } => {
                format!("writes {} of `{}`", bytes(size.into()), self.memory(addr.0))
            }
            Op::Atomic { addr, size, kind, .. } => {
                let verb = if kind.writes() { "atomically writes" } else { "atomically reads" };
                format!("{verb} {} of `{}`", bytes(size.into()), self.memory(addr.0))
            }
            Op::Free { addr } => format!("releases the memory at `{}`", self.memory(addr.0)),
            _ => self.waits(party.event),
        }
    }

    fn waits(&mut self, event: EventIx) -> String {
        let object = self.object(event);
        match self.op(event) {
            Op::Join { .. } => format!("waits for thread {object} to end"),
            Op::Wait { .. } => format!("waits for a signal on condition `{object}`"),
            Op::SemWait { .. } | Op::SemRequest { .. } => format!("waits for semaphore `{object}`"),
            Op::BarrierExit { .. } | Op::BarrierEnter { .. } => format!("waits at barrier `{object}`"),
            Op::ReadLock { .. } | Op::Request { read: true, .. } => format!("waits to read-lock `{object}`"),
            Op::Lock { .. } | Op::Request { .. } => format!("waits for lock `{object}`"),
            Op::OncePassed { .. } => format!("waits for the initialiser `{object}`"),
            op => {
                let kind = StepKind::of(op).map_or("an operation", |(kind, _)| kind.word());
                format!("cannot complete {kind} {object}").trim_end().to_owned()
            }
        }
    }

    fn party(&mut self, candidate: &Candidate, party: &Party) -> raddle_findings::Party {
        let mut action = self.action(party);
        // Who has the lock that this party waits for, if it is one of the others?
        if let Some(lock) = lock_of(self.op(party.event)) {
            let holder = candidate.parties.iter().find(|other| {
                other.thread != party.thread
                    && other.held.iter().any(|&held| lock_of(self.op(held)) == Some(lock))
            });
            if let Some(holder) = holder {
                action.push_str(&format!(" held by {}", self.thread(holder)));
            }
        }
        let locks = party
            .held
            .iter()
            .map(|&held| HeldLock { lock: self.object(held), acquired: self.stack(held) })
            .collect();
        raddle_findings::Party { thread: self.thread(party), action, stack: self.stack(party.event), locks }
    }

    fn thread(&self, party: &Party) -> String {
        self.trace
            .tables
            .threads
            .get(party.thread.index())
            .map_or_else(|| "?".to_owned(), |thread| thread.name.clone())
    }

    fn message(&mut self, candidate: &Candidate) -> String {
        let threads: Vec<String> = candidate.parties.iter().map(|party| self.thread(party)).collect();
        let listed = match threads.as_slice() {
            [one] => format!("thread {one}"),
            [first @ .., last] => format!("threads {} and {last}", first.join(", ")),
            [] => "threads".to_owned(),
        };
        match candidate.kind {
            CandidateKind::DataRace | CandidateKind::UseAfterFree => {
                let what = self.objects(candidate).into_iter().next().unwrap_or_default();
                let verb =
                    if candidate.kind == CandidateKind::DataRace { "access" } else { "access and release" };
                format!("{listed} can {verb} `{what}` at the same time")
            }
            CandidateKind::Deadlock => format!("{listed} can wait for each other for ever"),
            CandidateKind::BlockedThread => format!("{listed} can wait for something that nobody will do"),
            CandidateKind::MissedSignal => format!("{listed} can begin to wait after the signal was sent"),
        }
    }

    fn objects(&mut self, candidate: &Candidate) -> Vec<String> {
        let mut objects = Vec::new();
        for party in &candidate.parties {
            let name = match *self.op(party.event) {
                Op::Read { addr, .. }
                | Op::Write { addr, .. }
                | Op::Free { addr }
                | Op::Atomic { addr, .. } => self.memory(addr.0),
                _ => self.object(party.event),
            };
            if !name.is_empty() && !objects.contains(&name) {
                objects.push(name);
            }
        }
        objects
    }

    /// What the observed run did instead.
    fn observed(&self, candidate: &Candidate) -> Option<String> {
        let [first, second] = candidate.parties.as_slice() else { return None };
        if !candidate.kind.is_race() {
            return None;
        }
        let (earlier, later) = if first.event < second.event { (first, second) } else { (second, first) };
        Some(format!(
            "in the observed run thread {} came first (event {}), then thread {} (event {})",
            self.thread(earlier),
            earlier.event.0,
            self.thread(later),
            later.event.0
        ))
    }
}

fn lock_of(op: &Op) -> Option<u64> {
    match *op {
        Op::Lock { lock, .. } | Op::ReadLock { lock, .. } | Op::Request { lock, .. } => Some(lock.0),
        _ => None,
    }
}

fn object_address(op: &Op) -> Option<u64> {
    match *op {
        Op::Wait { cond, .. } | Op::WaitBegin { cond, .. } | Op::Signal { cond } | Op::Broadcast { cond } => {
            Some(cond.0)
        }
        Op::SemWait { sem } | Op::SemPost { sem } | Op::SemRequest { sem } => Some(sem.0),
        Op::BarrierEnter { barrier } | Op::BarrierExit { barrier } => Some(barrier.0),
        op => lock_of(&op),
    }
}

fn frame(frame: CodeFrame) -> Frame {
    Frame {
        function: frame.function,
        file: frame.file,
        line: frame.line,
        column: frame.column,
        raw: frame.raw,
    }
}
