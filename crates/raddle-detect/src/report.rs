//! What detectors say: data that names threads, code and memory by the numbers of the trace.
//!
//! [`crate::builder`] turns a [`Report`] into a finding once the trace's tables are complete. Nothing here is a text, and no
//! detector chooses a grade: it says what it has seen ([`Basis`]), and the grade follows. Detectors report the same code
//! locations once and count the rest ([`Reports`]).

use crate::race::{Site, Touch};
use crate::skeleton::Ideal;
use crate::step::{Held, LockIx, Step, Sync, VarIx};
use raddle_findings::{Basis, Detail, Kind, Role, Wait, What};
use raddle_trace::{ContextIx, LocationIx, ObjectId, ThreadIx};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What a report is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    Variable(VarIx),
    /// A lock, by its number: while the trace is read, that is all that a step says.
    Lock(LockIx),
    Object(ObjectId, What),
}

impl Subject {
    /// What an access or a lock operation is about.
    pub fn of(step: &Step<'_>) -> Option<Subject> {
        match step.sync {
            Sync::Acquire { lock, .. } | Sync::Release { lock, .. } => Some(Subject::Lock(lock)),
            Sync::None
            | Sync::Fork(_)
            | Sync::Join(_)
            | Sync::Receive(_)
            | Sync::Send(_)
            | Sync::Exchange(_) => step.vars.first().copied().map(Subject::Variable),
        }
    }
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartAction {
    Accesses { touch: Touch, subject: Option<Subject> },
    Waits { wait: Wait, subject: Subject, holder: Option<ThreadIx> },
    Acquires { subject: Option<Subject>, read: bool },
    SignalsNobody { subject: Subject },
    Plays { role: Role, subject: Option<Subject> },
}

impl PartAction {
    pub fn plays(role: Role) -> PartAction {
        PartAction::Plays { role, subject: None }
    }

    pub fn subject(&self) -> Option<Subject> {
        match *self {
            PartAction::Accesses { subject, .. }
            | PartAction::Acquires { subject, .. }
            | PartAction::Plays { subject, .. } => subject,
            PartAction::Waits { subject, .. } | PartAction::SignalsNobody { subject } => Some(subject),
        }
    }
}

/// A lock that a thread holds, and where it was acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holding {
    pub lock: Subject,
    pub read: bool,
    /// Unknown if the detector remembers sets of locks only.
    pub location: LocationIx,
    pub context: ContextIx,
}

impl Holding {
    /// The place of the acquisition is not known.
    pub fn somewhere(lock: LockIx) -> Holding {
        let (location, context) = (LocationIx::UNKNOWN, ContextIx::ROOT);
        Holding { lock: Subject::Lock(lock), read: false, location, context }
    }
}

impl From<&Held> for Holding {
    fn from(held: &Held) -> Holding {
        let &Held { lock, read, location, context, .. } = held;
        Holding { lock: Subject::Lock(lock), read, location, context }
    }
}

/// One thread's part in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    pub thread: ThreadIx,
    pub location: LocationIx,
    pub context: ContextIx,
    /// Place of the event in the observed order.
    pub position: u64,
    pub action: PartAction,
    /// Locks that the thread holds there, as far as the detector knows them.
    pub held: Vec<Holding>,
}

impl Part {
    pub fn holding(mut self, held: impl IntoIterator<Item = Holding>) -> Part {
        self.held.extend(held);
        self
    }
}

/// What a reader has to know to judge a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remark {
    /// The thread that holds the awaited lock has ended.
    HolderEnded(ThreadIx),
    /// The wait was given up after its time limit.
    WaitTimedOut(ThreadIx),
    /// The search for lock cycles ended at a limit.
    CyclesCut,
    /// So many further reports of the detector were left out.
    LeftOut(u64),
}

/// One possible error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub kind: Kind,
    /// Name of the detector.
    pub by: &'static str,
    pub basis: Basis,
    pub detail: Detail,
    /// The memory or objects concerned.
    pub objects: Vec<Subject>,
    pub parts: Vec<Part>,
    pub remarks: Vec<Remark>,
    /// The reordering that leads to it, if the detector has one.
    pub witness: Option<Ideal>,
    /// How often the same locations were seen.
    pub occurrences: u64,
}

impl Report {
    pub fn new(by: &'static str, kind: Kind, basis: Basis) -> Report {
        Report {
            kind,
            by,
            basis,
            detail: Detail::None,
            objects: Vec::new(),
            parts: Vec::new(),
            remarks: Vec::new(),
            witness: None,
            occurrences: 1,
        }
    }

    pub fn detail(mut self, detail: Detail) -> Report {
        self.detail = detail;
        self
    }

    /// Adds a part. What its action is about is one of the report's objects.
    pub fn part(mut self, part: Part) -> Report {
        let subject = part.action.subject();
        self.parts.push(part);
        self.objects(subject)
    }

    pub fn objects(mut self, subjects: impl IntoIterator<Item = Subject>) -> Report {
        for subject in subjects {
            if !self.objects.contains(&subject) {
                self.objects.push(subject);
            }
        }
        self
    }

    pub fn remark(mut self, remark: Remark) -> Report {
        self.remarks.push(remark);
        self
    }
}

/// What makes two reports the same: locations, or objects where the trace has no locations.
pub type Key = SmallVec<[u64; 4]>;

/// At most so many different reports a detector; the rest is only counted.
pub const REPORTS_MAX: usize = 10_000;

/// The reports of one detector.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    seen: FxHashMap<Key, usize>,
    list: Vec<Report>,
    left_out: u64,
}

impl Reports {
    /// Adds a report unless one with the same key is there, which is then counted once more.
    pub fn add(&mut self, mut key: Key, report: impl FnOnce() -> Report) {
        key.sort_unstable();
        if let Some(&index) = self.seen.get(&key) {
            if let Some(report) = self.list.get_mut(index) {
                report.occurrences += 1;
            }
            return;
        }
        if self.list.len() >= REPORTS_MAX {
            self.left_out += 1;
            return;
        }
        self.seen.insert(key, self.list.len());
        self.list.push(report());
    }

    pub fn contains(&self, mut key: Key) -> bool {
        key.sort_unstable();
        self.seen.contains_key(&key)
    }

    pub fn take(&mut self) -> Vec<Report> {
        let mut list = std::mem::take(&mut self.list);
        if self.left_out > 0
            && let Some(last) = list.last_mut()
        {
            last.remarks.push(Remark::LeftOut(self.left_out));
        }
        list
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// The key of a race: the two places, or the address if the trace has no places.
pub fn place_key(sites: &[Site], fallback: u64) -> Key {
    let mut key: Key = sites.iter().map(|site| u64::from(site.location.0)).collect();
    if sites.iter().any(|site| site.location == LocationIx::UNKNOWN) {
        key.push(fallback | 1 << 63);
    }
    key
}
