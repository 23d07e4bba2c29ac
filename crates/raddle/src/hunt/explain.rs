//! A candidate in words: who does what, where, with which locks held.

use raddle_findings::finding::HeldLock;
use raddle_findings::{Finding, Frame, Grade, Kind, Party};
use raddle_predict::{Candidate, CandidateKind, Prediction, Role};
use raddle_trace::symbols::{CodeFrame, Symbolizer};
use raddle_trace::{Event, MemoryTrace, Op};

/// Turns candidates of one trace into findings.
pub struct Explainer<'a> {
    trace: &'a MemoryTrace,
    prediction: &'a Prediction,
    symbols: Symbolizer,
}

impl<'a> Explainer<'a> {
    pub fn new(trace: &'a MemoryTrace, prediction: &'a Prediction) -> Explainer<'a> {
        let symbols = Symbolizer::new(&trace.tables.modules);
        Explainer { trace, prediction, symbols }
    }

    /// The finding of a candidate whose parties are `parties` (its own, or those of an alternative).
    pub fn finding(
        &mut self,
        candidate: &Candidate,
        parties: &[raddle_predict::Party],
        grade: Grade,
        notes: Vec<String>,
    ) -> Finding {
        let kind = match candidate.kind {
            CandidateKind::DataRace => Kind::DataRace,
            CandidateKind::UseAfterFree => Kind::UseAfterFree,
            CandidateKind::Deadlock => Kind::Deadlock,
            CandidateKind::BlockedThread => Kind::BlockedThread,
            CandidateKind::MissedSignal => Kind::MissedSignal,
        };
        let told: Vec<Party> = parties.iter().map(|party| self.party(party)).collect();
        let objects = self.objects(parties);
        let message = message(candidate.kind, parties.len(), objects.first());
        let mut finding = Finding::new(kind, grade, "predict", message, told);
        finding.objects = objects;
        finding.notes = notes;
        finding
    }

    fn event(&self, party: &raddle_predict::Party) -> &'a Event {
        &self.trace.events[party.event.index()]
    }

    fn party(&mut self, party: &raddle_predict::Party) -> Party {
        let event = self.event(party);
        let thread = &self.trace.tables.threads[party.thread.index()];
        let name = match &thread.given_name {
            Some(given) => format!("{} ({given})", thread.name),
            None => thread.name.clone(),
        };
        let action = match party.role {
            Role::Accesses => self.access(&event.op),
            Role::Blocked => self.waiting(&event.op),
        };
        let locks = party
            .held
            .iter()
            .map(|&held| {
                let event = &self.trace.events[held.index()];
                HeldLock { lock: self.object(&event.op), acquired: self.stack(event) }
            })
            .collect();
        Party { thread: name, action, stack: self.stack(event), locks }
    }

    fn stack(&mut self, event: &Event) -> Vec<Frame> {
        self.symbols.stack_of(&self.trace.tables, event).into_iter().map(frame).collect()
    }

    fn objects(&mut self, parties: &[raddle_predict::Party]) -> Vec<String> {
        let mut objects = Vec::new();
        for party in parties {
            let name = self.object(&self.event(party).op.clone());
            if !name.is_empty() && !objects.contains(&name) {
                objects.push(name);
            }
        }
        // Both halves of a race touch the same memory: one name is enough.
        if parties.iter().all(|party| party.role == Role::Accesses) {
            objects.truncate(1);
        }
        objects
    }

    /// A variable's name where there is one, the trace's own name for the object otherwise.
    fn object(&mut self, op: &Op) -> String {
        let address = match *op {
            Op::Read { addr, .. } | Op::Write { addr, .. } | Op::Atomic { addr, .. } | Op::Free { addr } => {
                addr.0
            }
            Op::Lock { lock, .. }
            | Op::ReadLock { lock, .. }
            | Op::Request { lock, .. }
            | Op::Unlock { lock, .. } => lock.0,
            Op::Wait { cond, .. }
            | Op::WaitBegin { cond, .. }
            | Op::Signal { cond }
            | Op::Broadcast { cond } => cond.0,
            Op::SemWait { sem } | Op::SemRequest { sem } | Op::SemPost { sem } => sem.0,
            Op::BarrierEnter { barrier } | Op::BarrierExit { barrier } => barrier.0,
            _ => return self.prediction.names.object_of(&self.trace.tables, op),
        };
        match self.symbols.variable(address) {
            Some(variable) => variable.to_string(),
            None => {
                let name = self.prediction.names.object_of(&self.trace.tables, op);
                if name.is_empty() { self.symbols.describe(address) } else { name }
            }
        }
    }

    fn access(&mut self, op: &Op) -> String {
        let object = self.object(op);
        let bytes = |size: u64| format!("{size} byte{}", if size == 1 { "" } else { "s" });
        match *op {
            Op::Read { size, .. } => format!("reads {} of `{object}`", bytes(u64::from(size))),
            Op::Write { size, .. } => format!("writes {} of `{object}`", bytes(u64::from(size))),
            Op::Atomic { size, kind, .. } => {
                let verb = if kind.writes() { "atomically writes" } else { "atomically reads" };
                format!("{verb} {} of `{object}`", bytes(u64::from(size)))
            }
            Op::Free { .. } => format!("releases `{object}`"),
            _ => String::new(),
        }
    }

    fn waiting(&mut self, op: &Op) -> String {
        let object = self.object(op);
        match op {
            Op::Lock { .. } | Op::Request { .. } | Op::ReadLock { .. } => {
                format!("waits for lock `{object}`")
            }
            Op::Wait { .. } | Op::WaitBegin { .. } => format!("waits on condition `{object}`"),
            Op::SemWait { .. } | Op::SemRequest { .. } => format!("waits for semaphore `{object}`"),
            Op::BarrierEnter { .. } | Op::BarrierExit { .. } => format!("waits at barrier `{object}`"),
            Op::Join { .. } => format!("waits for the end of thread {object}"),
            Op::OnceBegin { .. } | Op::OncePassed { .. } => {
                format!("waits for the initialisation of `{object}`")
            }
            _ => format!("waits for `{object}`"),
        }
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

fn message(kind: CandidateKind, parties: usize, object: Option<&String>) -> String {
    let on = |word: &str| object.map_or(String::new(), |object| format!(" {word} `{object}`"));
    match kind {
        CandidateKind::DataRace => format!("data race{}", on("on")),
        CandidateKind::UseAfterFree => format!("memory{} is used while another thread releases it", on("at")),
        CandidateKind::Deadlock => format!("deadlock: {parties} threads wait for each other for ever"),
        CandidateKind::BlockedThread => format!("a thread waits for ever{}", on("for")),
        CandidateKind::MissedSignal => format!("a signal is missed, and a thread waits for ever{}", on("on")),
    }
}
