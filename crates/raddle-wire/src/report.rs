//! Reports of the online detector: what the runtime knows about an error, in numbers.
//!
//! The runtime finds an error while the program runs, but names, sources and suppressions are the business of the
//! `raddle` process. So a report crosses the boundary as addresses: program counters, stacks, objects. It is written into
//! an entry of the region before the program goes on, so that a program which crashes or is killed a moment later has
//! still delivered it.
//!
//! The body of an entry is a sequence of *items*: one head word and `count` payload words.
//!
//! ```text
//! 63..56 tag   47..32 count   31..0 small
//! ```
//!
//! | tag | small | payload |
//! | --- | --- | --- |
//! | `KIND` | one of [`kind`] | address, bytes |
//! | `PARTY` | thread index | [`party`] word, address, frames innermost first |
//! | `LOCK`, of the party before it | [`lock`] bits | object, frames where it was acquired |
//! | `BLOCK` | thread index | start, bytes, frames where it was allocated |
//! | `TEXT` | one of [`text`] | bytes, the text in words |
//! | `THREAD` | thread index | parent's index and, above 32 bits, which child it is; two words of name, frames where it was created |
//! | `OWNER` | thread index | one of [`home`], thread pointer, and, for a known frame, a program counter in its function and its canonical address |
//!
//! A reader skips items whose tag it does not know.

use core::sync::atomic::AtomicU32;

/// Entries of the region. Further reports are counted and dropped.
pub const REPORTS_MAX: usize = 1024;
pub const REPORT_BYTES: usize = 8192;
pub const REPORT_WORDS: usize = REPORT_BYTES / 8 - 1;

/// Words for lock dependencies, behind the reports. Each dependency is one [`tag::DEPENDENCY`] item:
/// `small` is the thread, the payload is the lock that is taken, [`dependency`] bits and the number of locks held, where
/// it is taken (frames up to a zero), for each held lock the lock and its first frame, and the thread's spawn path from its own end:
/// which child of its parent it is, which one that is, and so on (nothing for the main thread, or where it is not known). A lock is
/// its address and a serial number, because addresses are used again: two words.
pub const DEPENDENCY_WORDS: usize = 1 << 20;

/// Frames of one stack in a report.
pub const FRAMES_MAX: usize = 64;

/// Values of [`ReportEntry::state`].
pub mod state {
    pub const EMPTY: u32 = 0;
    /// The body is complete.
    pub const COMPLETE: u32 = 1;
    /// `raddle` has looked at it and shows it.
    pub const SHOWN: u32 = 2;
    /// `raddle` has looked at it and somebody does not want to see it.
    pub const SUPPRESSED: u32 = 3;
}

#[repr(C)]
pub struct ReportEntry {
    pub state: AtomicU32,
    /// Words of the body that are used.
    pub used: AtomicU32,
    pub body: [u64; REPORT_WORDS],
}

const _: () = assert!(size_of::<ReportEntry>() == REPORT_BYTES);

pub mod tag {
    pub const KIND: u8 = 1;
    pub const PARTY: u8 = 2;
    pub const LOCK: u8 = 3;
    pub const BLOCK: u8 = 4;
    pub const THREAD: u8 = 5;
    pub const DEPENDENCY: u8 = 6;
    /// A text of the program's, one of [`super::text`]: its length in bytes, then the bytes.
    pub const TEXT: u8 = 7;
    /// Whose memory the address of the report is.
    pub const OWNER: u8 = 8;
}

/// `small` of a text item.
pub mod text {
    /// What the program's `__tsan_default_options` returns.
    pub const OPTIONS: u32 = 1;
    /// What its `__tsan_default_suppressions` returns.
    pub const SUPPRESSIONS: u32 = 2;
}

/// Which memory of a thread.
pub mod home {
    pub const STACK: u32 = 1;
    pub const THREAD_LOCAL: u32 = 2;
}

/// Kinds of reports, one a line: its name, its constant and number, what the error is about, and what its party does with it (at a race
/// each party's access says so itself). `misuses` are all alike to those who read them; the others are known one by one.
#[macro_export]
macro_rules! report_kinds {
    ($make:ident) => {
        $make! {
        //  name              constant             no  about   deed
            others {
                DataRace          DATA_RACE            = 1  Memory Accesses;
                /// One of the accesses is the release of the memory.
                UseAfterFree      USE_AFTER_FREE       = 2  Memory Accesses;
                /// Locks are taken in an order that can close a cycle.
                LockOrder         LOCK_ORDER           = 3  Mutex  Acquires;
                ThreadLeak        THREAD_LEAK          = 8  Memory IsLeaked;
                /// Memory is used after its release, ordered or not.
                AccessAfterFree   ACCESS_AFTER_FREE    = 9  Memory Accesses;
            }
            misuses {
                UnlockNotHeld     UNLOCK_NOT_HELD      = 4  Mutex  Releases;
                DoubleLock        DOUBLE_LOCK          = 5  Mutex  Acquires;
                DestroyedHeld     DESTROYED_HELD       = 6  Mutex  Destroys;
                ReadUnlockNotHeld READ_UNLOCK_NOT_HELD = 7  Rwlock Releases;
                /// A thread ends and holds a lock.
                EndedHolding      ENDED_HOLDING        = 10 Mutex  Acquires;
                /// The object is none: not initialised, or destroyed.
                InvalidObject     INVALID_OBJECT       = 11 Mutex  Acquires;
                /// A signal handler calls a function that it must not call.
                SignalUnsafe      SIGNAL_UNSAFE        = 12 Memory IsAt;
                /// A signal handler has changed `errno`.
                ErrnoSpoiled      ERRNO_SPOILED        = 13 Memory IsAt;
            /// A condition or barrier is initialised while threads wait at it.
            CreatedInUse      CREATED_IN_USE       = 14 Mutex  Destroys;
            }
            }
    };
}

/// What an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    Memory,
    Mutex,
    Rwlock,
}

/// What a party does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Accesses,
    Acquires,
    Releases,
    Destroys,
    /// It stands somewhere.
    IsAt,
    IsLeaked,
}

macro_rules! kinds {
    (
        others { $($(#[$_other:meta])* $other:ident $OTHER:ident = $other_number:literal $other_about:ident $other_deed:ident;)* }
        misuses { $($(#[$_misuse:meta])* $misuse:ident $MISUSE:ident = $number:literal $about:ident $deed:ident;)* }
    ) => {
        pub mod kind {
            $(pub const $OTHER: u32 = $other_number;)*
            $(pub const $MISUSE: u32 = $number;)*
        }

        /// What kind of error it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ReportKind {
            $($other,)*
            $($misuse,)*
            /// Of a newer runtime.
            Unknown(u32),
        }

        impl ReportKind {
            pub const fn from_number(number: u32) -> ReportKind {
                match number {
                    $($other_number => ReportKind::$other,)*
                    $($number => ReportKind::$misuse,)*
                    unknown => ReportKind::Unknown(unknown),
                }
            }

            pub const fn about(self) -> About {
                match self {
                    $(ReportKind::$other => About::$other_about,)*
                    $(ReportKind::$misuse => About::$about,)*
                    ReportKind::Unknown(_) => About::Mutex,
                }
            }

            pub const fn deed(self) -> Deed {
                match self {
                    $(ReportKind::$other => Deed::$other_deed,)*
                    $(ReportKind::$misuse => Deed::$deed,)*
                    ReportKind::Unknown(_) => Deed::Accesses,
                }
            }
        }
    };
}

report_kinds!(kinds);

/// First payload word of a party: `aux` bits of [`crate::record::access`] below, bytes above.
pub mod party {
    pub const AUX_MASK: u64 = 0xff;
    pub const ATOMIC: u64 = 1 << 8;
    /// The access is the release of the memory.
    pub const FREE: u64 = 1 << 9;
    /// Pc and stack are no longer known.
    pub const LOST: u64 = 1 << 10;
    pub const BYTES_SHIFT: u32 = 32;
}

/// Bits of a dependency's third payload word: low half the number of held locks.
pub mod dependency {
    pub const READ: u64 = 1 << 32;
    /// Bit of a held lock's serial number word: it is held in read mode.
    pub const HELD_READ: u64 = 1 << 63;
}

/// `small` of a lock item.
pub mod lock {
    pub const READ: u32 = 1;
}

pub const fn head(tag: u8, count: usize, small: u32) -> u64 {
    (tag as u64) << 56 | ((count & 0xffff) as u64) << 32 | small as u64
}

pub const fn tag_of(head: u64) -> u8 {
    (head >> 56) as u8
}

pub const fn count_of(head: u64) -> usize {
    (head >> 32 & 0xffff) as usize
}

pub const fn small_of(head: u64) -> u32 {
    head as u32
}
