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

use raddle_wire::step;

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

    /// Does it act on the lock at this address?
    fn touches_lock(&self, lock: u64) -> bool {
        match self.kind {
            step::LOCK | step::READ_LOCK | step::UNLOCK | step::RELOCK => self.object == lock,
            step::WAIT => self.second == lock,
            _ => false,
        }
    }
}

const fn is_lock(kind: u8) -> bool {
    matches!(kind, step::LOCK | step::READ_LOCK | step::UNLOCK | step::RELOCK)
}

const fn is_access(kind: u8) -> bool {
    matches!(kind, step::LOAD | step::STORE | step::RMW | step::READ | step::WRITE)
}

const fn reads_only(kind: u8) -> bool {
    matches!(kind, step::LOAD | step::READ)
}

/// Does the order of two operations of different threads matter?
pub fn dependent(a: &Operation, b: &Operation) -> bool {
    if a.has(FINAL) || b.has(FINAL) {
        return true;
    }
    match (a.kind, b.kind) {
        (step::FENCE, _) | (_, step::FENCE) => false,
        // What a signal handler, a cancelled thread or the system does is not known.
        (step::CANCEL | step::HANDLER, _) | (_, step::CANCEL | step::HANDLER) => true,
        (step::SYSCALL, step::SYSCALL) => true,
        (one, other) if is_access(one) && is_access(other) => {
            let commute = a.has(COMMUTES) && b.has(COMMUTES);
            a.overlaps(b) && !(reads_only(one) && reads_only(other)) && !commute
        }
        (step::READ_LOCK, step::READ_LOCK) => false,
        (one, _) if is_lock(one) => b.touches_lock(a.object),
        (_, other) if is_lock(other) => a.touches_lock(b.object),
        // Each is the only one that waits with its mutex; who waits first does not matter to whom a signal wakes.
        (step::WAIT, step::WAIT) => a.second == b.second,
        (step::WAIT, step::WAKE) | (step::WAKE, step::WAIT) => false,
        (step::SIGNAL | step::BROADCAST, step::SIGNAL | step::BROADCAST) => false,
        (step::SEM_POST, step::SEM_POST) => false,
        // A barrier that lets a thread out has been entered by all; those who enter again come to its next round.
        (step::BARRIER_EXIT, step::BARRIER_EXIT) => false,
        // A futex word is an atomic variable too: whether a thread goes to sleep depends on its value.
        (step::FUTEX_WAIT, other) if is_access(other) => a.overlaps(b) && !reads_only(other),
        (other, step::FUTEX_WAIT) if is_access(other) => a.overlaps(b) && !reads_only(other),
        (one, other) if is_access(one) || is_access(other) => false,
        (step::START, step::START) | (step::FORK, step::FORK) | (step::END, step::END) => false,
        _ => a.object == b.object,
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
