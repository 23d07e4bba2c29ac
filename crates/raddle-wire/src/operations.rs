//! The table of operations: everything that is known about an operation, on one line.
//!
//! An *operation* is something that a thread does to a synchronisation object, to another thread or to its process. The columns:
//!
//! | column | meaning |
//! | --- | --- |
//! | name, number | the variant of [`SyncOp`] and the byte that stands for it in records |
//! | word | what `raddle trace dump` and the corpus call the event |
//! | object | the kind of object that it concerns ([`ObjectKind`]) |
//! | effect | what it does to that object ([`Effect`]); from it follows when it can be taken ([`Effect::demand`]) |
//! | blocks | may its thread have to wait for it? |
//! | outcome | it was done, it failed, or it is announced ([`Outcome`]) |
//! | order | what it passes on between threads ([`Order`]) |
//! | segment | does it end the thread segment? Operations that order nothing do not |
//! | step | the visible operation that it is in schedules ([`StepKind`]), or `-`; behind a slash, what it is as the mutex half of a condition wait |
//!
//! From this table come `SyncOp` and the way back from its number, the kinds and words of steps, visibility
//! ([`crate::step::of`]), segment ends, the class of the online detector, and the descriptions of events. A match over
//! operations should have no `_` arm, so that the compiler shows every place that a new line concerns.

use crate::record::lock;

/// Kinds of objects that operations concern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// None: the operation concerns its thread or its process only.
    Nothing,
    Thread,
    /// A mutex, a spin lock, a read-write lock.
    Lock,
    Condition,
    Barrier,
    Semaphore,
    /// The control word of a one-time initialisation.
    Once,
    /// A futex word.
    Futex,
    /// What annotations and custom events name.
    Annotated,
    Signal,
}

/// What an operation does to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing that another operation could depend on.
    Nothing,
    /// A thread begins, ends, is created, is waited for.
    Begins,
    Ends,
    Forks,
    Joins,
    /// A lock is taken, taken for reading, given back.
    Locks,
    LocksShared,
    Unlocks,
    /// The thread is about to wait for the object.
    Asks,
    /// A condition wakes one waiter, wakes all.
    Signals,
    SignalsAll,
    /// A thread begins to wait on a condition; its wait is over.
    BeginsWait,
    IsWoken,
    /// A barrier is entered, left.
    Enters,
    Leaves,
    /// One is taken from a semaphore, given to it.
    Takes,
    Gives,
    /// An initialiser begins, has ended, is found to have ended.
    OnceBegins,
    OnceEnds,
    OncePasses,
    /// Something is passed on through the object; what was passed on is received.
    Sends,
    Receives,
    /// The object's life begins, ends.
    Creates,
    Destroys,
    /// Races on the object are expected.
    Excuses,
}

/// What has to hold of an object before an operation on it can be taken: the enabling rule.
///
/// The rule is written down here and nowhere else. Whoever asks it supplies the facts by a [`Situation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Demand {
    Nothing,
    /// The thread was created.
    Forked,
    /// The thread has ended.
    Ended,
    /// Nobody holds the lock.
    Unlocked,
    /// Nobody holds the lock for writing.
    NotWriteLocked,
    /// A signal has come since the wait began.
    Signalled,
    /// Enough threads have entered for the round.
    RoundComplete,
    /// The count is above zero.
    Positive,
    /// Nobody has begun the initialiser.
    NotBegun,
    /// The initialiser has ended.
    Initialised,
    /// All that was observed to be sent before has been sent.
    Sent,
}

/// The facts that a [`Demand`] is about, as they are for one thread and one object at one moment.
pub trait Situation {
    fn forked(&self) -> bool;
    fn ended(&self) -> bool;
    /// Somebody holds the lock for writing, so that this thread has to wait.
    fn write_locked(&self) -> bool;
    /// Somebody holds the lock for reading, so that a writer has to wait.
    fn read_locked(&self) -> bool;
    fn signalled(&self) -> bool;
    fn round_complete(&self) -> bool;
    fn count(&self) -> u32;
    fn begun(&self) -> bool;
    fn initialised(&self) -> bool;
    fn sent(&self) -> bool;
}

impl Demand {
    /// Is the demand met?
    #[inline]
    pub fn is_met(self, now: &impl Situation) -> bool {
        match self {
            Demand::Nothing => true,
            Demand::Forked => now.forked(),
            Demand::Ended => now.ended(),
            Demand::Unlocked => !now.write_locked() && !now.read_locked(),
            Demand::NotWriteLocked => !now.write_locked(),
            Demand::Signalled => now.signalled(),
            Demand::RoundComplete => now.round_complete(),
            Demand::Positive => now.count() > 0,
            Demand::NotBegun => !now.begun(),
            Demand::Initialised => now.initialised(),
            Demand::Sent => now.sent(),
        }
    }
}

impl Effect {
    /// When an operation with this effect can be taken.
    pub const fn demand(self) -> Demand {
        match self {
            Effect::Begins => Demand::Forked,
            Effect::Joins => Demand::Ended,
            Effect::Locks => Demand::Unlocked,
            Effect::LocksShared => Demand::NotWriteLocked,
            Effect::IsWoken => Demand::Signalled,
            Effect::Leaves => Demand::RoundComplete,
            Effect::Takes => Demand::Positive,
            Effect::OnceBegins => Demand::NotBegun,
            Effect::OncePasses => Demand::Initialised,
            Effect::Receives => Demand::Sent,
            Effect::Nothing
            | Effect::Ends
            | Effect::Forks
            | Effect::Unlocks
            | Effect::Asks
            | Effect::Signals
            | Effect::SignalsAll
            | Effect::BeginsWait
            | Effect::Enters
            | Effect::Gives
            | Effect::OnceEnds
            | Effect::Sends
            | Effect::Creates
            | Effect::Destroys
            | Effect::Excuses => Demand::Nothing,
        }
    }

    /// Does it begin or end the life of its object?
    pub const fn begins_or_ends_life(self) -> bool {
        matches!(self, Effect::Creates | Effect::Destroys)
    }
}

/// How an operation went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Done,
    /// It gave up (a try, a time limit) or was refused: its effect did not take place.
    Failed,
}

/// What an operation passes on between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Nothing.
    None,
    /// The thread learns what was released to the object.
    Acquires,
    /// What the thread has done becomes known through the object.
    Releases,
}

macro_rules! step_kind {
    (-) => {
        None
    };
    ($kind:ident) => {
        Some(StepKind::$kind)
    };
}

macro_rules! half_kind {
    ($step:tt) => {
        step_kind!($step)
    };
    ($step:tt / $half:tt) => {
        step_kind!($half)
    };
}

macro_rules! yes {
    (blocks) => {
        true
    };
    (ends) => {
        true
    };
    (-) => {
        false
    };
}

macro_rules! operations {
    ($(
        $(#[$meta:meta])*
        $name:ident = $number:literal $word:literal $object:ident $effect:ident $blocks:tt $outcome:ident $order:ident
        $segment:tt $step:tt $(/ $half:tt)?;
    )*) => {
        /// Aux of `Sync` records, and the meaning of word1 (`object`) and of the `Ext` argument (`arg`).
        ///
        /// Events are written when the operation has completed, except those that say *before*.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum SyncOp {
            $($(#[$meta])* $name = $number,)*
        }

        impl SyncOp {
            /// Every operation, in the order of its number.
            pub const ALL: &[SyncOp] = &[$(SyncOp::$name),*];
            pub const LAST: u8 = SyncOp::ALL.len() as u8;

            pub const fn from_u8(value: u8) -> Option<SyncOp> {
                Some(match value {
                    $($number => SyncOp::$name,)*
                    _ => return None,
                })
            }

            /// What the event is called.
            pub const fn word(self) -> &'static str {
                match self {
                    $(SyncOp::$name => $word,)*
                }
            }

            pub const fn object_kind(self) -> ObjectKind {
                match self {
                    $(SyncOp::$name => ObjectKind::$object,)*
                }
            }

            pub const fn effect(self) -> Effect {
                match self {
                    $(SyncOp::$name => Effect::$effect,)*
                }
            }

            /// May a thread have to wait for it?
            pub const fn blocks(self) -> bool {
                match self {
                    $(SyncOp::$name => yes!($blocks),)*
                }
            }

            pub const fn outcome(self) -> Outcome {
                match self {
                    $(SyncOp::$name => Outcome::$outcome,)*
                }
            }

            pub const fn order(self) -> Order {
                match self {
                    $(SyncOp::$name => Order::$order,)*
                }
            }

            /// Does a thread segment end with it?
            pub const fn ends_segment(self) -> bool {
                match self {
                    $(SyncOp::$name => yes!($segment),)*
                }
            }

            /// The visible operation that it is, if it is one; this is the definition of *visible*.
            pub const fn step(self, argument: u64) -> Option<StepKind> {
                let half_of_wait = argument & lock::WAIT != 0;
                match self {
                    $(SyncOp::$name => if half_of_wait { half_kind!($step $(/ $half)?) } else { step_kind!($step) },)*
                }
            }
        }
    };
}

macro_rules! steps {
    ($($(#[$meta:meta])* $name:ident $constant:ident = $number:literal $word:literal;)*) => {
        /// Kind of a visible operation: what a replayer compares.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum StepKind {
            $($(#[$meta])* $name = $number,)*
        }

        impl StepKind {
            /// Every kind with its word in the text format.
            pub const WORDS: [(StepKind, &'static str); [$($number),*].len()] = [$((StepKind::$name, $word)),*];

            pub fn word(self) -> &'static str {
                StepKind::WORDS[self as usize].1
            }

            pub fn from_word(word: &str) -> Option<StepKind> {
                StepKind::WORDS.iter().find(|(_, w)| *w == word).map(|&(kind, _)| kind)
            }

            pub const fn from_u8(value: u8) -> Option<StepKind> {
                Some(match value {
                    $($number => StepKind::$name,)*
                    _ => return None,
                })
            }
        }

        /// The kinds as the bytes that stand for them in the region.
        pub(crate) mod constants {
            $(pub const $constant: u8 = $number;)*
            /// The words of the text format, by kind.
            pub const WORDS: &[&str] = &[$($word),*];
        }
    };
}

steps! {
    Fork FORK = 0 "fork";
    Start START = 1 "start";
    End END = 2 "end";
    Join JOIN = 3 "join";
    Detach DETACH = 4 "detach";
    Cancel CANCEL = 5 "cancel";
    Lock LOCK = 6 "lock";
    ReadLock READ_LOCK = 7 "read-lock";
    Unlock UNLOCK = 8 "unlock";
    /// The mutex is taken back after a condition wait.
    Relock RELOCK = 9 "relock";
    Signal SIGNAL = 10 "signal";
    Broadcast BROADCAST = 11 "broadcast";
    /// A condition wait begins; the mutex is released.
    Wait WAIT = 12 "wait";
    /// A condition wait ends: woken, or with `failed` timed out.
    Wake WAKE = 13 "wake";
    BarrierEnter BARRIER_ENTER = 14 "barrier-enter";
    BarrierExit BARRIER_EXIT = 15 "barrier-exit";
    SemWait SEM_WAIT = 16 "sem-wait";
    SemPost SEM_POST = 17 "sem-post";
    OnceBegin ONCE_BEGIN = 18 "once-begin";
    OnceEnd ONCE_END = 19 "once-end";
    OncePassed ONCE_PASSED = 20 "once-passed";
    Load LOAD = 21 "load";
    Store STORE = 22 "store";
    /// Read-modify-write; with `failed` a compare-exchange that did not store.
    Rmw RMW = 23 "rmw";
    Fence FENCE = 24 "fence";
    FutexWake FUTEX_WAKE = 25 "futex-wake";
    FutexWait FUTEX_WAIT = 26 "futex-wait";
    Acquire ACQUIRE = 27 "acquire";
    Release RELEASE = 28 "release";
    Custom CUSTOM = 29 "custom";
    /// A plain access, in a schedule that has `visible` lines.
    Read READ = 30 "read";
    Write WRITE = 31 "write";
    /// A system call whose result a demo holds.
    Syscall SYSCALL = 32 "syscall";
    /// A signal handler runs.
    Handler HANDLER = 33 "handler";
}

operations! {
//  name             no   word                object     effect      blocks  outcome order    segment step
    /// A thread began. object: start routine; arg: index of the parent thread. First event of a thread.
    Start           = 1  "start"             Thread     Begins      -       Done   Acquires ends    Start;
    /// A thread ended. Last event of a thread.
    End             = 2  "end"               Thread     Ends        -       Done   Releases ends    End;
    /// object: index of the new thread. Written *before* the child can run.
    Fork            = 3  "fork"              Thread     Forks       -       Done   Releases ends    Fork;
    /// object: index of the joined thread.
    Join            = 4  "join"              Thread     Joins       blocks  Done   Acquires ends    Join;
    /// try/timed join that gave up. object: index of the thread.
    JoinFailed      = 5  "join-failed"       Thread     Joins       -       Failed None     -       Join;
    Detach          = 6  "detach"            Thread     Nothing     -       Done   None     ends    Detach;
    /// object: mutex, rwlock in write mode, or spin lock; arg: [`lock`] bits.
    Lock            = 7  "lock"              Lock       Locks       blocks  Done   Acquires ends    Lock / Relock;
    LockFailed      = 8  "lock-failed"       Lock       Locks       -       Failed None     -       Lock;
    ReadLock        = 9  "read-lock"         Lock       LocksShared blocks  Done   Acquires ends    ReadLock;
    ReadLockFailed  = 10 "read-lock-failed"  Lock       LocksShared -       Failed None     -       ReadLock;
    /// Written *before* the lock is released. arg: [`lock`] bits.
    Unlock          = 11 "unlock"            Lock       Unlocks     -       Done   Releases ends    Unlock / -;
    /// *Before* a lock operation that has to wait. arg: [`lock`] bits (READ for a read lock).
    Request         = 12 "request"           Lock       Asks        -       Done   None     -       -;
    /// object: condition variable. Written *before* the signal is sent.
    Signal          = 13 "signal"            Condition  Signals     -       Done   Releases ends    Signal;
    Broadcast       = 14 "broadcast"         Condition  SignalsAll  -       Done   Releases ends    Broadcast;
    /// *Before* a thread waits on a condition. object: condition; arg: low 48 bits of the mutex. Follows the Unlock of that mutex.
    WaitBegin       = 15 "wait-begin"        Condition  BeginsWait  -       Done   None     ends    Wait;
    /// The wait returned, was signalled. Followed by the Lock of the mutex.
    Wait            = 16 "wait"              Condition  IsWoken     blocks  Done   Acquires ends    Wake;
    /// The wait timed out. Followed by the Lock of the mutex.
    WaitFailed      = 17 "wait-failed"       Condition  IsWoken     -       Failed None     ends    Wake;
    /// arg: count.
    BarrierInit     = 18 "barrier-init"      Barrier    Creates     -       Done   None     ends    -;
    BarrierEnter    = 19 "barrier-enter"     Barrier    Enters      -       Done   Releases ends    BarrierEnter;
    BarrierExit     = 20 "barrier-exit"      Barrier    Leaves      blocks  Done   Acquires ends    BarrierExit;
    BarrierDestroy  = 21 "destroy"           Barrier    Destroys    -       Done   None     ends    -;
    /// arg: value.
    SemInit         = 22 "sem-init"          Semaphore  Creates     -       Done   None     ends    -;
    SemWait         = 23 "sem-wait"          Semaphore  Takes       blocks  Done   Acquires ends    SemWait;
    SemWaitFailed   = 24 "sem-wait-failed"   Semaphore  Takes       -       Failed None     -       SemWait;
    /// *Before* the post.
    SemPost         = 25 "sem-post"          Semaphore  Gives       -       Done   Releases ends    SemPost;
    /// *Before* a semaphore wait that has to wait.
    SemRequest      = 26 "sem-request"       Semaphore  Asks        -       Done   None     -       -;
    /// This thread runs the initialiser. object: the once control or guard variable.
    OnceBegin       = 27 "once-begin"        Once       OnceBegins  -       Done   Acquires ends    OnceBegin;
    OnceEnd         = 28 "once-end"          Once       OnceEnds    -       Done   Releases ends    OnceEnd;
    /// The initialiser had been run by somebody else, and this thread now knows.
    OncePassed      = 29 "once-passed"       Once       OncePasses  blocks  Done   Acquires ends    OncePassed;
    /// object: mutex; arg: [`lock`] kind bits.
    MutexInit       = 30 "init"              Lock       Creates     -       Done   None     -       -;
    MutexDestroy    = 31 "destroy"           Lock       Destroys    -       Done   None     ends    -;
    RwlockInit      = 32 "init"              Lock       Creates     -       Done   None     -       -;
    RwlockDestroy   = 33 "destroy"           Lock       Destroys    -       Done   None     ends    -;
    CondInit        = 34 "init"              Condition  Creates     -       Done   None     -       -;
    CondDestroy     = 35 "destroy"           Condition  Destroys    -       Done   None     ends    -;
    SemDestroy      = 36 "destroy"           Semaphore  Destroys    -       Done   None     ends    -;
    /// object: futex word; arg: number of threads woken at most.
    FutexWake       = 37 "futex-wake"        Futex      Sends       -       Done   Releases ends    FutexWake;
    FutexWait       = 38 "futex-wait"        Futex      Receives    blocks  Done   Acquires ends    FutexWait;
    FutexWaitFailed = 39 "futex-wait-failed" Futex      Receives    -       Failed None     ends    FutexWait;
    /// A signal handler began. object: signal number.
    SignalEnter     = 40 "signal-enter"      Signal     Nothing     -       Done   None     ends    -;
    SignalExit      = 41 "signal-exit"       Signal     Nothing     -       Done   None     ends    -;
    /// object: process id of the child.
    ProcessFork     = 42 "process-fork"      Nothing    Nothing     -       Done   None     ends    -;
    /// The program is about to become another one. Followed by Text: the path.
    ProcessExec     = 43 "process-exec"      Nothing    Nothing     -       Done   None     ends    -;
    /// object: exit status.
    ProcessExit     = 44 "process-exit"      Nothing    Nothing     -       Done   None     ends    -;
    /// A module was loaded; the module table was extended.
    ModuleLoad      = 45 "module-load"       Nothing    Nothing     -       Done   None     -       -;
    /// `RADDLE_EVENT(name, pointer)`. object: the pointer; followed by Text: the name.
    Custom          = 46 "custom"            Annotated  Nothing     -       Done   None     ends    Custom;
    /// `RADDLE_ATOMIC_BEGIN/END`. Followed by Text: the name, if any.
    AtomicBegin     = 47 "atomic-begin"      Nothing    Nothing     -       Done   None     ends    -;
    AtomicEnd       = 48 "atomic-end"        Nothing    Nothing     -       Done   None     ends    -;
    /// Followed by Text: the name given to the thread. object: index of the thread.
    ThreadName      = 49 "thread-name"       Thread     Nothing     -       Done   None     -       -;
    /// `__tsan_acquire(object)`, `AnnotateHappensAfter`.
    Acquire         = 50 "acquire"           Annotated  Receives    -       Done   Acquires ends    Acquire;
    /// `__tsan_release(object)`, `AnnotateHappensBefore`.
    Release         = 51 "release"           Annotated  Sends       -       Done   Releases ends    Release;
    /// pthread_cancel was called. object: index of the thread.
    Cancel          = 52 "cancel"            Thread     Nothing     -       Done   None     ends    Cancel;
    /// `AnnotateBenignRace(object, size)`; arg: size.
    BenignRace      = 53 "benign-race"       Annotated  Excuses     -       Done   None     -       -;
    /// `sched_yield`, `usleep`, `nanosleep`: the thread lets others go.
    Yield           = 54 "yield"             Nothing    Nothing     -       Done   None     -       -;
    /// A place in the global order, and nothing more: what follows takes it.
    Other           = 55 "mark"              Nothing    Nothing     -       Done   None     ends    -;
}

/// The demand of each kind of step: that of the operation which it is when it succeeds.
const DEMANDS: [Demand; StepKind::WORDS.len()] = {
    let mut demands = [Demand::Nothing; StepKind::WORDS.len()];
    let mut at = 0;
    while at < SyncOp::ALL.len() {
        let op = SyncOp::ALL[at];
        // The half of a condition wait has a kind of its own.
        let kinds = [op.step(0), op.step(lock::WAIT)];
        let mut which = 0;
        while which < kinds.len() {
            if let (Some(kind), Outcome::Done) = (kinds[which], op.outcome()) {
                demands[kind as usize] = op.effect().demand();
            }
            which += 1;
        }
        at += 1;
    }
    demands
};

const ORDERS: [Order; StepKind::WORDS.len()] = {
    let mut orders = [Order::None; StepKind::WORDS.len()];
    let mut at = 0;
    while at < SyncOp::ALL.len() {
        let op = SyncOp::ALL[at];
        let kinds = [op.step(0), op.step(lock::WAIT)];
        let mut which = 0;
        while which < kinds.len() {
            if let (Some(kind), Outcome::Done) = (kinds[which], op.outcome()) {
                orders[kind as usize] = op.order();
            }
            which += 1;
        }
        at += 1;
    }
    orders
};

impl StepKind {
    /// When a step of this kind can be taken. Atomics and system calls are decided elsewhere.
    pub const fn demand(self) -> Demand {
        DEMANDS[self as usize]
    }

    /// What a step of this kind passes on. Atomics say so by their memory order.
    pub const fn order(self) -> Order {
        ORDERS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_gap_and_lead_back() {
        for (index, &op) in SyncOp::ALL.iter().enumerate() {
            assert_eq!(op as usize, index + 1, "{op:?}");
            assert_eq!(SyncOp::from_u8(op as u8), Some(op));
        }
        assert_eq!(SyncOp::from_u8(0), None);
        assert_eq!(SyncOp::from_u8(SyncOp::LAST + 1), None);
        for (index, &(kind, word)) in StepKind::WORDS.iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert_eq!(StepKind::from_u8(kind as u8), Some(kind));
            assert_eq!(StepKind::from_word(word), Some(kind));
        }
        assert_eq!(StepKind::from_u8(StepKind::WORDS.len() as u8), None);
    }

    /// What the columns say about a line must fit together.
    #[test]
    fn the_columns_of_a_line_agree() {
        for &op in SyncOp::ALL {
            let demand = op.effect().demand();
            if op.blocks() {
                assert_ne!(demand, Demand::Nothing, "{op:?} blocks for no reason");
                assert_eq!(op.order(), Order::Acquires, "{op:?} waits and learns nothing");
            }
            if op.outcome() == Outcome::Failed {
                assert_eq!(op.order(), Order::None, "{op:?} failed and passes something on");
                assert!(!op.blocks(), "{op:?}");
                let done = SyncOp::ALL.iter().find(|other| {
                    other.outcome() == Outcome::Done
                        && (other.effect(), other.object_kind(), other.step(0))
                            == (op.effect(), op.object_kind(), op.step(0))
                });
                assert!(done.is_some(), "{op:?} is the failure of no operation");
            }
            if op.order() != Order::None {
                assert!(op.ends_segment(), "{op:?} orders and does not end the segment");
            }
            if op.effect().begins_or_ends_life() {
                assert_eq!(op.step(0), None, "{op:?}");
            }
        }
    }

    #[test]
    fn steps_take_their_rule_from_their_operation() {
        assert_eq!(StepKind::Lock.demand(), Demand::Unlocked);
        assert_eq!(StepKind::Relock.demand(), Demand::Unlocked);
        assert_eq!(StepKind::ReadLock.demand(), Demand::NotWriteLocked);
        assert_eq!(StepKind::SemWait.demand(), Demand::Positive);
        assert_eq!(StepKind::Join.demand(), Demand::Ended);
        assert_eq!(StepKind::Unlock.demand(), Demand::Nothing);
        assert_eq!(StepKind::Load.demand(), Demand::Nothing);
        assert_eq!(StepKind::Wake.order(), Order::Acquires);
    }

    #[test]
    fn the_halves_of_a_condition_wait_are_steps_of_their_own() {
        assert_eq!(SyncOp::Lock.step(0), Some(StepKind::Lock));
        assert_eq!(SyncOp::Lock.step(lock::WAIT), Some(StepKind::Relock));
        assert_eq!(SyncOp::Unlock.step(lock::WAIT), None);
        assert_eq!(SyncOp::SemWait.step(lock::WAIT), Some(StepKind::SemWait));
    }
}
