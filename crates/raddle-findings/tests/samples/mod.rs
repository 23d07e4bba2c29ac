//! Findings with every field set: each kind, basis, action, place, detail, remark and attempt occurs. The matches without `_`
//! do nothing but refuse to compile when a variant is added that is missing here.
#![allow(dead_code)]

use raddle_findings::basis::{Ended, Step, ThreadState};
use raddle_findings::finding::{Assertion, Creation};
use raddle_findings::object::Allocation;
use raddle_findings::*;

/// A wording that says what the data says, unfiltered.
pub struct Raw;

impl Wording for Raw {
    fn headline(&self, finding: &Finding) -> String {
        finding.objects.iter().filter_map(|object| object.name.clone()).collect()
    }
    fn action(&self, party: &Party) -> String {
        party.action.object().and_then(|object| object.name.clone()).unwrap_or_default()
    }
    fn thread(&self, party: &Party) -> String {
        party.thread.path.clone()
    }
    fn notes(&self, finding: &Finding) -> Vec<String> {
        finding
            .parties
            .iter()
            .flat_map(|party| &party.stack)
            .filter_map(|frame| frame.function.clone())
            .collect()
    }
    fn acquired(&self, _: &Party, held: &HeldLock) -> String {
        held.lock.name.clone().unwrap_or_default()
    }
    fn created(&self, _: &Party, creation: &Creation) -> String {
        creation.by.path.clone()
    }
    fn allocated(&self, _: &Object, allocation: &Allocation) -> String {
        allocation.thread.path.clone()
    }
    fn kind(&self, kind: Kind) -> KindWords {
        KindWords { title: kind.name().into(), description: "description".into(), help: "help".into() }
    }
}

/// Makes findings in which every string is `text`.
pub struct Sampler<'a> {
    pub text: &'a str,
    pub file: &'a str,
}

impl Sampler<'_> {
    fn s(&self) -> String {
        self.text.to_owned()
    }

    pub fn thread(&self) -> Thread {
        Thread { path: self.s(), entry: Some(self.s()), name: Some(self.s()) }
    }

    pub fn frame(&self) -> Frame {
        Frame {
            function: Some(self.s()),
            file: Some(self.file.to_owned()),
            line: Some(12),
            column: Some(3),
            raw: Some(self.s()),
            source: Some(self.s()),
            library: false,
        }
    }

    fn stack(&self) -> Vec<Frame> {
        vec![
            Frame { library: true, ..self.frame() },
            self.frame(),
            Frame { raw: Some(self.s()), ..Frame::default() },
        ]
    }

    pub fn places(&self) -> Vec<Place> {
        let allocation = Allocation { thread: self.thread(), stack: self.stack() };
        let all = vec![
            Place::Global { module: self.s(), offset: 16 },
            Place::Heap { bytes: 48, offset: 8, allocated: Some(Box::new(allocation)) },
            Place::Stack { thread: Some(self.thread()), function: Some("main".to_owned()) },
            Place::ThreadLocal { thread: Some(self.thread()) },
            Place::Thread { thread: self.thread() },
            Place::Foreign,
            Place::Unknown { address: u64::MAX },
            Place::Nowhere,
        ];
        for place in &all {
            match place {
                Place::Global { .. }
                | Place::Heap { .. }
                | Place::Stack { .. }
                | Place::ThreadLocal { .. } => {}
                Place::Thread { .. } | Place::Foreign | Place::Unknown { .. } | Place::Nowhere => {}
            }
        }
        all
    }

    pub fn objects(&self) -> Vec<Object> {
        let whats = [
            What::Memory,
            What::Mutex,
            What::Rwlock,
            What::Condition,
            What::Barrier,
            What::Semaphore,
            What::Once,
            What::Futex,
            What::Thread,
            What::Other,
        ];
        let named = whats.map(|what| Object { name: Some(self.s()), what, place: Place::Nowhere });
        let places = self.places();
        let unnamed = whats.iter().flat_map(|&what| {
            places.iter().map(move |place| Object { name: None, what, place: place.clone() })
        });
        named.into_iter().chain(unnamed).collect()
    }

    pub fn actions(&self) -> Vec<Action> {
        let object =
            || Some(Object { name: Some(self.s()), what: What::Mutex, place: self.places().remove(1) });
        let mut all = Vec::new();
        for access in [Access::Read, Access::Write, Access::ReadWrite, Access::Any] {
            all.push(Action::Accesses { access, bytes: 4, atomic: true, vptr: true, object: object() });
            all.push(Action::access(access));
        }
        for wait in [
            Wait::Lock,
            Wait::ReadLock,
            Wait::ThreadEnd,
            Wait::Signal,
            Wait::Semaphore,
            Wait::Barrier,
            Wait::Initialiser,
            Wait::Futex,
            Wait::Other,
        ] {
            all.push(Action::Waits { wait, object: object(), holder: Some(self.s()), operation: self.s() });
            all.push(Action::waits(wait, None));
        }
        for role in [
            Role::BeginsSequence,
            Role::EndsSequence,
            Role::InterruptsSequence,
            Role::EndsInterruption,
            Role::CommitsRegion,
            Role::ClosesCycle,
            Role::AccessesTogether,
            Role::AccessesSome,
            Role::AccessesOthers,
            Role::AccessesOne,
            Role::AccessesOther,
            Role::BeginsRegion,
            Role::EndsRegion,
            Role::InsideRegion,
            Role::Interferes,
            Role::ComesFirst,
            Role::ShouldComeFirst,
            Role::Violates,
            Role::RepeatsItself,
            Role::AcquiresAgain,
            Role::Unknown,
        ] {
            all.push(Action::Plays { role, object: object() });
            all.push(Action::plays(role));
        }
        for object in [object(), None] {
            all.push(Action::Frees { object: object.clone() });
            all.push(Action::Acquires { object: object.clone(), read: true });
            all.push(Action::Releases { object: object.clone() });
            all.push(Action::Destroys { object: object.clone() });
            all.push(Action::SignalsNobody { object });
        }
        all.extend([Action::IsLeaked, Action::Crashes, Action::IsAt]);
        for action in &all {
            match action {
                Action::Accesses { .. }
                | Action::Frees { .. }
                | Action::Waits { .. }
                | Action::Acquires { .. } => {}
                Action::Releases { .. } | Action::Destroys { .. } | Action::SignalsNobody { .. } => {}
                Action::IsLeaked | Action::Crashes | Action::IsAt | Action::Plays { .. } => {}
            }
        }
        all
    }

    pub fn attempts(&self) -> Vec<Attempt> {
        let step = || Step { operation: self.s(), ordinal: 4, place: self.s() };
        let states = || vec![ThreadState { thread: self.s(), phase: self.s(), at: Some(step()) }];
        let diverged =
            |expected, found| Attempt::Diverged { after_steps: 7, thread: self.s(), expected, found };
        let all = vec![
            diverged(Some(step()), Some(step())),
            diverged(Some(step()), None),
            diverged(None, Some(step())),
            diverged(None, None),
            Attempt::Standstill { after_steps: 1, threads: states() },
            Attempt::Ended { how: Ended::Status(3) },
            Attempt::Ended { how: Ended::Signal(11) },
            Attempt::TimedOut { threads: states() },
            Attempt::OtherMemory,
            Attempt::OtherDeadlock { missing: vec![self.s()] },
            Attempt::Ordered,
            Attempt::Kept,
            Attempt::UncertainEvents { events: vec![self.s()] },
            Attempt::NotAgain { shown: 1, replays: 2 },
            Attempt::TooManyThreads,
            Attempt::OutOfTime,
            Attempt::ReadDecides { place: self.s() },
            Attempt::PutBack { fruitless: 10 },
            Attempt::Interrupted,
            Attempt::TooLong { steps: 1 << 40 },
            Attempt::NotStored { why: self.s() },
        ];
        for attempt in &all {
            match attempt {
                Attempt::Diverged { .. } | Attempt::Standstill { .. } | Attempt::Ended { .. } => {}
                Attempt::TimedOut { .. } | Attempt::OtherMemory | Attempt::OtherDeadlock { .. } => {}
                Attempt::Ordered | Attempt::Kept | Attempt::NotAgain { .. } | Attempt::TooManyThreads => {}
                Attempt::UncertainEvents { .. }
                | Attempt::OutOfTime
                | Attempt::ReadDecides { .. }
                | Attempt::PutBack { .. }
                | Attempt::Interrupted
                | Attempt::TooLong { .. }
                | Attempt::NotStored { .. } => {}
            }
        }
        all
    }

    pub fn bases(&self) -> Vec<Basis> {
        let attempts = || self.attempts();
        let mut all = Vec::new();
        for shown in [Shown::Parked, Shown::Blocked, Shown::Ended, Shown::Unordered, Shown::Violated] {
            all.extend([0, 1, 2].map(|replays| Basis::Replayed { shown, replays }));
        }
        let invisible = [
            InvisibleKind::InlineAssembly,
            InvisibleKind::NotInstrumented,
            InvisibleKind::LibraryNotRebuilt,
            InvisibleKind::KernelInterface,
        ]
        .map(|what| Invisible {
            what,
            module: self.s(),
            function: Some(self.s()),
            place: Some(self.s()),
        });
        all.push(Basis::observed());
        all.push(Basis::Observed { attempts: attempts() });
        all.push(Basis::unordered());
        all.push(Basis::Unordered { replays: 2, invisible: invisible.to_vec(), attempts: attempts() });
        for fidelity in [
            Fidelity::KeepsReads,
            Fidelity::KeepsEarlierReads,
            Fidelity::KeepsOrder,
            Fidelity::Reordered,
            Fidelity::Unknown,
        ] {
            all.push(Basis::Model { sound: true, fidelity, attempts: attempts() });
            all.push(Basis::model(false, fidelity));
        }
        all.push(Basis::Rule { attempts: attempts() });
        for basis in &all {
            match basis {
                Basis::Replayed { .. } | Basis::Observed { .. } | Basis::Unordered { .. } => {}
                Basis::Model { .. } | Basis::Rule { .. } => {}
            }
        }
        all
    }

    pub fn details(&self) -> Vec<Detail> {
        let assertion =
            Assertion { expression: self.s(), file: Some(self.s()), line: Some(3), function: Some(self.s()) };
        let misuses = Misuse::ALL.iter().copied().chain([Misuse::Unknown(9)]);
        let mut all = vec![
            Detail::None,
            Detail::NoCommonLock,
            Detail::NotReducible,
            Detail::Crash { signal: 6, assertion: Some(assertion), address: Some(0) },
            Detail::Crash { signal: 11, assertion: None, address: Some(8) },
            Detail::Ending { ended: Ended::Status(1) },
            Detail::Ending { ended: Ended::Signal(6) },
            Detail::Contract { line: 3 },
            Detail::Together { times: 5 },
            Detail::Without { progress_steps: 9 },
            Detail::MissedSignal { still_waits: true },
            Detail::MissedSignal { still_waits: false },
            Detail::AtEndOfTrace,
            Detail::Pattern { accesses: self.s() },
            Detail::Cycle { regions: 3 },
            Detail::Words { text: self.s() },
        ];
        all.extend(misuses.map(|misuse| Detail::Misuse { misuse }));
        for detail in &all {
            match detail {
                Detail::NotReducible => {}
                Detail::None | Detail::NoCommonLock | Detail::Misuse { .. } | Detail::Crash { .. } => {}
                Detail::Ending { .. } | Detail::Contract { .. } | Detail::Together { .. } => {}
                Detail::Without { .. } | Detail::MissedSignal { .. } | Detail::AtEndOfTrace => {}
                Detail::Pattern { .. } | Detail::Cycle { .. } | Detail::Words { .. } => {}
            }
        }
        all
    }

    pub fn remarks(&self) -> Vec<Remark> {
        let all = vec![
            Remark::AlsoFoundBy { detectors: vec![self.s()] },
            Remark::Occurrences { times: 3 },
            Remark::ObservedOrder { first: self.s(), then: self.s(), events: (1, 9) },
            Remark::HistoryLost,
            Remark::LeftOut { reports: 4 },
            Remark::CyclesCut,
            Remark::CheckedWithoutLock { thread: self.s(), frame: Box::new(self.frame()) },
            Remark::HolderEnded { thread: self.s() },
            Remark::WaitTimedOut { thread: self.s() },
            Remark::Reversed { frames: vec![self.frame(), self.frame()] },
            Remark::Interleaved { frames: vec![self.frame(), self.frame(), self.frame()] },
            Remark::Leads { to: self.s() },
        ];
        for remark in &all {
            match remark {
                Remark::AlsoFoundBy { .. } | Remark::Occurrences { .. } | Remark::ObservedOrder { .. } => {}
                Remark::HistoryLost | Remark::LeftOut { .. } | Remark::CyclesCut => {}
                Remark::CheckedWithoutLock { .. } | Remark::Leads { .. } => {}
                Remark::Reversed { .. } | Remark::Interleaved { .. } => {}
                Remark::HolderEnded { .. } | Remark::WaitTimedOut { .. } => {}
            }
        }
        all
    }

    pub fn party(&self, action: Action) -> Party {
        let lock = Object { name: Some(self.s()), what: What::Mutex, place: Place::Foreign };
        Party {
            thread: self.thread(),
            action,
            stack: self.stack(),
            locks: vec![HeldLock { lock, read: true, acquired: self.stack() }],
            created: Some(Box::new(Creation { by: self.thread(), stack: self.stack() })),
        }
    }

    pub fn full(&self, kind: Kind, basis: Basis, detail: Detail) -> Finding {
        let parties =
            vec![self.party(Action::access(Access::Write)), self.party(Action::waits(Wait::Lock, None))];
        let mut finding = Finding::about(kind, self.text, basis, self.objects(), parties, detail);
        finding.remarks = self.remarks();
        finding.seen = Some(Seen { count: 1, runs: 20, first_run: 7, seed: 42 });
        finding.schedule = Some(self.s());
        finding
    }

    /// Findings that together have everything, a few dozens.
    pub fn findings(&self) -> Vec<Finding> {
        let confirmed = || Basis::Replayed { shown: Shown::Parked, replays: 2 };
        let mut all: Vec<Finding> =
            Kind::ALL.into_iter().map(|kind| self.full(kind, confirmed(), Detail::None)).collect();
        all.extend(self.bases().into_iter().map(|basis| self.full(Kind::DataRace, basis, Detail::None)));
        all.extend(self.details().into_iter().map(|detail| self.full(Kind::Crash, confirmed(), detail)));
        let parties: Vec<Party> = self.actions().into_iter().map(|action| self.party(action)).collect();
        all.push(Finding::new(Kind::LockMisuse, self.text, Basis::rule(), parties, Detail::None));
        all.push(Finding::new(Kind::Crash, self.text, Basis::observed(), Vec::new(), Detail::None));
        let bare = Party::new(Thread::default(), Action::IsAt, Vec::new());
        all.push(Finding::new(Kind::Deadlock, self.text, Basis::observed(), vec![bare], Detail::None));
        all
    }
}
