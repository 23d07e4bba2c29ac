//! Naive twins: definitions of the papers spelt out over small traces, with no cleverness.
#![allow(dead_code, clippy::needless_range_loop)]

use raddle_trace::generate::Shape;
use raddle_trace::model::{begins_or_ends_life, object_of};
use raddle_trace::{Event, MemoryTrace, ObjectId, Op, ThreadIx};

/// How many random traces each property is tried on.
pub fn cases(usual: u64) -> u64 {
    match std::env::var("RADDLE_TEST_CASES") {
        Ok(text) => text.parse().expect("RADDLE_TEST_CASES is a number"),
        Err(_) => usual,
    }
}

pub use raddle_detect::run_on as run;

pub fn shapes() -> Vec<Shape> {
    vec![
        Shape::locks_only(3, 2, 3, 60),
        Shape { nesting_max: 3, ..Shape::locks_only(4, 3, 3, 90) },
        Shape { guarded_percent: 60, ..Shape::locks_only(3, 3, 5, 90) },
        Shape { mixed_sizes: true, ..Shape::locks_only(3, 2, 2, 60) },
        Shape::everything(4, 120),
        Shape { mixed_sizes: true, requests: true, ..Shape::everything(3, 90) },
    ]
}

/// A set of events of a small trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set(Vec<u64>);

impl Set {
    pub fn contains(&self, event: usize) -> bool {
        self.0.get(event / 64).is_some_and(|word| word >> (event % 64) & 1 == 1)
    }

    /// True if it was not there.
    pub fn insert(&mut self, event: usize) -> bool {
        let new = !self.contains(event);
        if self.0.len() <= event / 64 {
            self.0.resize(event / 64 + 1, 0);
        }
        self.0[event / 64] |= 1 << (event % 64);
        new
    }

    pub fn add_all(&mut self, other: &Set) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }
}

/// Bytes of an access and whether it writes; plain accesses only.
pub fn plain(event: &Event) -> Option<(u64, u64, bool)> {
    match event.op {
        Op::Read { addr, size, .. } => Some((addr.0, addr.0 + u64::from(size), false)),
        Op::Write { addr, size, .. } => Some((addr.0, addr.0 + u64::from(size), true)),
        _ => None,
    }
}

pub fn conflict(a: &Event, b: &Event) -> bool {
    match (plain(a), plain(b)) {
        (Some((from_a, to_a, write_a)), Some((from_b, to_b, write_b))) => {
            a.thread != b.thread && (write_a || write_b) && from_a < to_b && from_b < to_a
        }
        _ => false,
    }
}

/// Does the operation pass something on to later operations of the same object?
pub fn sends(op: &Op) -> Option<(bool, u64)> {
    Some(match *op {
        Op::Signal { cond } | Op::Broadcast { cond } => (false, cond.0),
        Op::BarrierEnter { barrier } => (false, barrier.0),
        Op::SemPost { sem } => (false, sem.0),
        Op::OnceEnd { once } => (false, once.0),
        Op::Atomic { addr, kind, .. } if kind.writes() => (true, addr.0),
        _ => return None,
    })
}

pub fn receives(op: &Op) -> Option<(bool, u64)> {
    Some(match *op {
        Op::Wait { cond, .. } => (false, cond.0),
        Op::BarrierExit { barrier } => (false, barrier.0),
        Op::SemWait { sem } => (false, sem.0),
        Op::OncePassed { once } => (false, once.0),
        Op::Atomic { addr, kind, .. } if kind.reads() => (true, addr.0),
        _ => return None,
    })
}

/// A critical section: acquisition, release if there is one, lock, mode.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    pub acquire: usize,
    pub release: Option<usize>,
    pub lock: ObjectId,
    pub thread: ThreadIx,
    pub read: bool,
    pub rwlock: bool,
}

impl Section {
    pub fn contains(&self, event: usize, trace: &MemoryTrace) -> bool {
        trace.events[event].thread == self.thread
            && event > self.acquire
            && self.release.is_none_or(|release| event < release)
    }
}

pub fn sections(trace: &MemoryTrace) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for (index, event) in trace.events.iter().enumerate() {
        match event.op {
            Op::Lock { lock, flags } | Op::ReadLock { lock, flags } => sections.push(Section {
                acquire: index,
                release: None,
                lock,
                thread: event.thread,
                read: matches!(event.op, Op::ReadLock { .. }),
                rwlock: flags.rwlock,
            }),
            Op::Unlock { lock, .. } => {
                let open =
                    |s: &&mut Section| s.lock == lock && s.thread == event.thread && s.release.is_none();
                sections.iter_mut().find(open).expect("generated traces release what they hold").release =
                    Some(index);
            }
            _ => {}
        }
    }
    sections
}

/// Which orders an analysis respects beside thread order, forks and joins.
#[derive(Clone, Copy, Debug)]
pub struct Edges {
    /// Sends before receives of everything that is not a lock, and read-write locks.
    pub channels: bool,
    pub mutexes: bool,
    /// Writes before the reads that saw them.
    pub reads_from: bool,
    /// Lives of objects.
    pub lives: bool,
}

pub const HB: Edges = Edges { channels: true, mutexes: true, reads_from: false, lives: false };
pub const SHB: Edges = Edges { reads_from: true, ..HB };
pub const FIXED: Edges = Edges { channels: true, mutexes: false, reads_from: true, lives: true };

pub struct Naive<'t> {
    pub trace: &'t MemoryTrace,
    pub sections: Vec<Section>,
    /// All events before each event, without itself.
    pub before: Vec<Set>,
    /// The same, without what is before it only because it reads from there.
    pub before_unread: Vec<Set>,
}

/// The last writes of the bytes of a read.
pub fn writers(trace: &MemoryTrace, read: usize) -> Vec<usize> {
    let Some((from, to, false)) = plain(&trace.events[read]) else { return Vec::new() };
    let mut found: Vec<usize> = (from..to)
        .filter_map(|byte| {
            (0..read).rev().find(|&earlier| {
                matches!(plain(&trace.events[earlier]), Some((f, t, true)) if f <= byte && byte < t)
            })
        })
        .collect();
    found.dedup();
    found
}

impl<'t> Naive<'t> {
    pub fn new(trace: &'t MemoryTrace, edges: Edges) -> Naive<'t> {
        let sections = sections(trace);
        let mut before: Vec<Set> = Vec::new();
        let mut before_unread: Vec<Set> = Vec::new();
        for (index, event) in trace.events.iter().enumerate() {
            let mut set = Set::default();
            for earlier in 0..index {
                if direct(trace, &sections, edges, earlier, index) {
                    set.insert(earlier);
                    set.add_all(&before[earlier]);
                }
            }
            before_unread.push(set.clone());
            if edges.reads_from && plain(event).is_some() {
                for writer in writers(trace, index) {
                    set.insert(writer);
                    set.add_all(&before[writer]);
                }
            }
            before.push(set);
        }
        Naive { trace, sections, before, before_unread }
    }

    /// Pairs of conflicting accesses, in observed order, that are not ordered.
    pub fn races(&self) -> Vec<(usize, usize)> {
        let mut races = Vec::new();
        for (second, event) in self.trace.events.iter().enumerate() {
            for first in 0..second {
                if conflict(&self.trace.events[first], event) && !self.before_unread[second].contains(first) {
                    races.push((first, second));
                }
            }
        }
        races
    }

    /// The least set with these events that is closed under `before` and the rule of critical sections. `None` if a
    /// section that has to end never does.
    pub fn closure(&self, mut set: Set) -> Option<Set> {
        loop {
            let mut grown = set.clone();
            for event in 0..self.trace.events.len() {
                if set.contains(event) {
                    grown.add_all(&self.before[event]);
                }
            }
            for early in self.sections.iter().filter(|s| !s.rwlock) {
                for late in self.sections.iter().filter(|s| !s.rwlock && s.lock == early.lock) {
                    let both = set.contains(early.acquire) && set.contains(late.acquire);
                    if both && early.acquire < late.acquire {
                        grown.insert(early.release?);
                    }
                }
            }
            if grown == set {
                return Some(set);
            }
            set = grown;
        }
    }
}

fn direct(trace: &MemoryTrace, sections: &[Section], edges: Edges, early: usize, late: usize) -> bool {
    let (a, b) = (&trace.events[early], &trace.events[late]);
    if a.thread == b.thread {
        return true;
    }
    if matches!(a.op, Op::Fork { child } if child == b.thread)
        || matches!(b.op, Op::Join { child } if child == a.thread)
    {
        return true;
    }
    if edges.channels {
        if let (Some(sent), Some(received)) = (sends(&a.op), receives(&b.op))
            && sent == received
        {
            return true;
        }
        if lock_edge(sections, early, late, true) {
            return true;
        }
    }
    if edges.lives
        && object_of(&a.op).is_some_and(|object| Some(object) == object_of(&b.op))
        && (begins_or_ends_life(&a.op) || begins_or_ends_life(&b.op))
    {
        return true;
    }
    edges.mutexes && lock_edge(sections, early, late, false)
}

/// Is `early` the release of a section and `late` the acquisition of another one that excludes it?
fn lock_edge(sections: &[Section], early: usize, late: usize, rwlock: bool) -> bool {
    let Some(first) = sections.iter().find(|s| s.release == Some(early)) else { return false };
    let Some(second) = sections.iter().find(|s| s.acquire == late) else { return false };
    first.lock == second.lock && first.rwlock == rwlock && !(first.read && second.read)
}
