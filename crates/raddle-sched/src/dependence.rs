//! When does the order of two operations matter?
//!
//! Two operations are *independent* when neither enables, disables or changes the other: wherever both can go, either order leads
//! to the same state. Runs that differ only in the order of adjacent independent operations are one Mazurkiewicz trace, and a
//! search needs to see one of them. Here is the relation, from what is known about an operation *before* it is performed: a
//! relation that looked at the outcome (this exchange failed, so it was only a read) would judge a thread that is still to go
//! differently from one that went.
//!
//! The relation is conservative where a finer one would have to know the state: two waits for one semaphore are dependent although
//! they commute while its value is two, and entering a barrier is dependent on entering it although only the last one differs.

use raddle_wire::{StepKind, step};

/// It never waits: when it cannot proceed it gives up. Operations with a time limit are of this kind in a search: whether they
/// succeed depends only on when they are tried.
pub const GIVES_UP: u8 = 1;
/// The thread that holds the lock already may take it again, or is told so.
pub const REENTERS: u8 = 2;
/// The run ended after it (a crash, an exit): everything that others could still have done comes before it or not at all.
pub const FINAL: u8 = 4;
/// An atomic update whose order among updates of its like does not matter to the program (asked for by the user).
pub const COMMUTES: u8 = 8;
/// The thread has tried the same several times, and nothing has changed: it waits in a loop ([`crate::waiting_loop`]).
pub const SPINS: u8 = 16;

/// What is known about a request besides its kind and its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Detail {
    pub flags: u8,
    /// Bytes of the object, for accesses.
    pub bytes: u32,
    /// The mutex of a wait, the value of a semaphore, how many a barrier waits for.
    pub second: u64,
}

impl Detail {
    pub const NONE: Detail = Detail { flags: 0, bytes: 0, second: 0 };
}

/// What a thread is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Operation {
    /// `raddle_wire::step`.
    pub kind: u8,
    pub flags: u8,
    /// Bytes from `object` on, for accesses.
    pub bytes: u32,
    pub object: u64,
    /// The mutex that a wait for a condition releases.
    pub second: u64,
}

impl Operation {
    pub const fn new(kind: u8, object: u64) -> Operation {
        Operation { kind, flags: 0, bytes: 1, object, second: 0 }
    }

    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    pub const fn pack(&self) -> [u64; 3] {
        [self.object, self.second, self.kind as u64 | (self.flags as u64) << 8 | (self.bytes as u64) << 32]
    }

    pub const fn unpack([object, second, word]: [u64; 3]) -> Operation {
        Operation { kind: word as u8, flags: (word >> 8) as u8, bytes: (word >> 32) as u32, object, second }
    }

    /// An operation of which everything is known that was told with its request.
    pub const fn with(kind: u8, object: u64, detail: Detail) -> Operation {
        Operation { kind, flags: detail.flags, bytes: detail.bytes, object, second: detail.second }
    }

    /// Kind, flags and size in one word, as journals have them.
    pub const fn word(&self) -> u64 {
        self.pack()[2]
    }

    fn overlaps(&self, other: &Operation) -> bool {
        self.object < other.object + u64::from(other.bytes.max(1))
            && other.object < self.object + u64::from(self.bytes.max(1))
    }

    /// Does it change nothing, wherever it is performed?
    pub const fn only_looks(&self) -> bool {
        reads_only(self.kind)
    }

    fn class(&self) -> Class {
        // The end of the process has no kind.
        CLASSES.get(usize::from(self.kind)).copied().unwrap_or(Class::Object)
    }

    /// Does it act on the lock at this address?
    fn touches_lock(&self, lock: u64) -> bool {
        match self.class() {
            Class::Lock { .. } => self.object == lock,
            Class::BeginsWait => self.second == lock,
            Class::Object
            | Class::CommutesWithItself
            | Class::Nothing
            | Class::Anything
            | Class::System
            | Class::Access { .. }
            | Class::EndsWait
            | Class::Signals
            | Class::LooksAtWord => false,
        }
    }
}

const fn reads_only(kind: u8) -> bool {
    matches!(kind, step::LOAD | step::READ)
}

/// What decides about the order of operations of this kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// Its object: with any other operation on the same one it is dependent.
    Object,
    /// As [`Class::Object`], and two of a kind commute.
    CommutesWithItself,
    /// It orders the accesses of its own thread only.
    Nothing,
    /// What it does is not known.
    Anything,
    System,
    Access {
        reads_only: bool,
    },
    Lock {
        shared: bool,
    },
    BeginsWait,
    EndsWait,
    Signals,
    /// A futex word is an atomic variable too.
    LooksAtWord,
}

impl Class {
    const fn of(kind: StepKind) -> Class {
        match kind {
            StepKind::Fence => Class::Nothing,
            // What a signal handler, a cancelled thread or the system does is not known.
            StepKind::Cancel | StepKind::Handler => Class::Anything,
            StepKind::Syscall => Class::System,
            StepKind::Load | StepKind::Read => Class::Access { reads_only: true },
            StepKind::Store | StepKind::Rmw | StepKind::Write => Class::Access { reads_only: false },
            StepKind::ReadLock => Class::Lock { shared: true },
            StepKind::Lock | StepKind::Unlock | StepKind::Relock => Class::Lock { shared: false },
            StepKind::Wait => Class::BeginsWait,
            StepKind::Wake => Class::EndsWait,
            StepKind::Signal | StepKind::Broadcast => Class::Signals,
            StepKind::FutexWait => Class::LooksAtWord,
            // Posts add up. A barrier that lets a thread out has been entered by all; those who enter again come to its next round.
            StepKind::SemPost | StepKind::BarrierExit | StepKind::Start | StepKind::Fork | StepKind::End => {
                Class::CommutesWithItself
            }
            StepKind::Join
            | StepKind::Detach
            | StepKind::BarrierEnter
            | StepKind::SemWait
            | StepKind::OnceBegin
            | StepKind::OnceEnd
            | StepKind::OncePassed
            | StepKind::FutexWake
            | StepKind::Acquire
            | StepKind::Release
            | StepKind::Custom => Class::Object,
        }
    }
}

/// The class of each kind: the relation is asked for every pair of a run's operations.
const CLASSES: [Class; StepKind::WORDS.len()] = {
    let mut classes = [Class::Object; StepKind::WORDS.len()];
    let mut at = 0;
    while at < classes.len() {
        classes[at] = Class::of(StepKind::WORDS[at].0);
        at += 1;
    }
    classes
};

/// Does the order of two operations of different threads matter?
pub fn dependent(a: &Operation, b: &Operation) -> bool {
    if a.has(FINAL) || b.has(FINAL) {
        return true;
    }
    match (a.class(), b.class()) {
        (Class::Nothing, _) | (_, Class::Nothing) => false,
        (Class::Anything, _) | (_, Class::Anything) => true,
        (Class::System, Class::System) => true,
        (Class::Access { reads_only: one }, Class::Access { reads_only: other }) => {
            let commute = a.has(COMMUTES) && b.has(COMMUTES);
            a.overlaps(b) && !(one && other) && !commute
        }
        (Class::Lock { shared: true }, Class::Lock { shared: true }) => false,
        (Class::Lock { .. }, _) => b.touches_lock(a.object),
        (_, Class::Lock { .. }) => a.touches_lock(b.object),
        // Each is the only one that waits with its mutex; who waits first does not matter to whom a signal wakes.
        (Class::BeginsWait, Class::BeginsWait) => a.second == b.second,
        (Class::BeginsWait, Class::EndsWait) | (Class::EndsWait, Class::BeginsWait) => false,
        (Class::Signals, Class::Signals) => false,
        // Whether a thread goes to sleep depends on the word's value.
        (Class::LooksAtWord, Class::Access { reads_only })
        | (Class::Access { reads_only }, Class::LooksAtWord) => a.overlaps(b) && !reads_only,
        (Class::Access { .. }, _) | (_, Class::Access { .. }) => false,
        (Class::CommutesWithItself, Class::CommutesWithItself) if a.kind == b.kind => false,
        (
            Class::Object
            | Class::CommutesWithItself
            | Class::System
            | Class::BeginsWait
            | Class::EndsWait
            | Class::Signals
            | Class::LooksAtWord,
            _,
        ) => a.object == b.object,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(kind: u8, object: u64) -> Operation {
        Operation::new(kind, object)
    }

    #[test]
    fn the_relation_is_symmetric_and_knows_ranges() {
        for a in 0..step::WORDS.len() as u8 {
            for b in 0..step::WORDS.len() as u8 {
                for (x, y) in [(8, 8), (8, 16)] {
                    let (one, other) = (op(a, x), Operation { second: 8, ..op(b, y) });
                    assert_eq!(dependent(&one, &other), dependent(&other, &one), "{a} {b}");
                }
            }
        }
        let wide = Operation { bytes: 8, ..op(step::WRITE, 100) };
        assert!(dependent(&wide, &op(step::LOAD, 107)));
        assert!(!dependent(&wide, &op(step::LOAD, 108)));
        assert!(!dependent(&op(step::LOAD, 100), &op(step::READ, 100)));
        assert!(dependent(&op(step::FENCE, 0), &Operation { flags: FINAL, ..op(step::LOAD, 1) }));
    }

    #[test]
    fn a_wait_releases_its_mutex() {
        let wait = Operation { second: 40, ..op(step::WAIT, 8) };
        assert!(dependent(&wait, &op(step::LOCK, 40)));
        assert!(!dependent(&wait, &op(step::LOCK, 8)));
        assert!(dependent(&wait, &op(step::SIGNAL, 8)));
    }

    #[test]
    fn words_keep_their_fields() {
        let wait = Operation { kind: step::WAIT, flags: REENTERS, bytes: 9, object: 77, second: 78 };
        assert_eq!(Operation::unpack(wait.pack()), wait);
    }
}
