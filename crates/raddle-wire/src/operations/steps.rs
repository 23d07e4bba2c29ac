//! Steps: visible operations as schedules name and number them, with the rule and the order that they take from the table.

use super::{Demand, Effect, Order, Outcome, SyncOp};
use crate::record::lock;

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

/// The line of the table that each kind of step is when it succeeds. Accesses, fences, system calls and handlers are no lines.
const LINES: [Option<SyncOp>; StepKind::WORDS.len()] = {
    let mut lines = [None; StepKind::WORDS.len()];
    let mut at = 0;
    while at < SyncOp::ALL.len() {
        let op = SyncOp::ALL[at];
        // The half of a condition wait has a kind of its own.
        let kinds = [op.step(0), op.step(lock::WAIT)];
        let mut which = 0;
        while which < kinds.len() {
            if let (Some(kind), Outcome::Done) = (kinds[which], op.outcome()) {
                lines[kind as usize] = Some(op);
            }
            which += 1;
        }
        at += 1;
    }
    lines
};

impl StepKind {
    /// What a step of this kind does to its object, where the table says it.
    pub const fn effect(self) -> Effect {
        match LINES[self as usize] {
            Some(op) => op.effect(),
            None => Effect::Nothing,
        }
    }

    /// When a step of this kind can be taken. Atomics and system calls are decided elsewhere.
    pub const fn demand(self) -> Demand {
        self.effect().demand()
    }

    /// What a step of this kind passes on. Atomics say so by their memory order.
    pub const fn order(self) -> Order {
        match LINES[self as usize] {
            Some(op) => op.order(),
            None => Order::None,
        }
    }
}
