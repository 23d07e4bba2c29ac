//! Kinds of visible operations, their words, and which events are such operations.

use crate::event::{AtomicKind, Op};

/// Kind of a visible operation: what a replayer compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StepKind {
    Fork,
    Start,
    End,
    Join,
    Detach,
    Cancel,
    Lock,
    ReadLock,
    Unlock,
    /// The mutex is taken back after a condition wait.
    Relock,
    Signal,
    Broadcast,
    /// A condition wait begins; the mutex is released.
    Wait,
    /// A condition wait ends: woken, or with `failed` timed out.
    Wake,
    BarrierEnter,
    BarrierExit,
    SemWait,
    SemPost,
    OnceBegin,
    OnceEnd,
    OncePassed,
    Load,
    Store,
    /// Read-modify-write; with `failed` a compare-exchange that did not store.
    Rmw,
    Fence,
    FutexWake,
    FutexWait,
    Acquire,
    Release,
    Custom,
    /// A plain access, in a schedule that has `visible` lines.
    Read,
    Write,
    /// A system call whose result a demo holds.
    Syscall,
    /// A signal handler runs.
    Handler,
}

impl StepKind {
    /// Every kind with its word in the text format.
    pub const WORDS: [(StepKind, &'static str); 34] = [
        (StepKind::Fork, "fork"),
        (StepKind::Start, "start"),
        (StepKind::End, "end"),
        (StepKind::Join, "join"),
        (StepKind::Detach, "detach"),
        (StepKind::Cancel, "cancel"),
        (StepKind::Lock, "lock"),
        (StepKind::ReadLock, "read-lock"),
        (StepKind::Unlock, "unlock"),
        (StepKind::Relock, "relock"),
        (StepKind::Signal, "signal"),
        (StepKind::Broadcast, "broadcast"),
        (StepKind::Wait, "wait"),
        (StepKind::Wake, "wake"),
        (StepKind::BarrierEnter, "barrier-enter"),
        (StepKind::BarrierExit, "barrier-exit"),
        (StepKind::SemWait, "sem-wait"),
        (StepKind::SemPost, "sem-post"),
        (StepKind::OnceBegin, "once-begin"),
        (StepKind::OnceEnd, "once-end"),
        (StepKind::OncePassed, "once-passed"),
        (StepKind::Load, "load"),
        (StepKind::Store, "store"),
        (StepKind::Rmw, "rmw"),
        (StepKind::Fence, "fence"),
        (StepKind::FutexWake, "futex-wake"),
        (StepKind::FutexWait, "futex-wait"),
        (StepKind::Acquire, "acquire"),
        (StepKind::Release, "release"),
        (StepKind::Custom, "custom"),
        (StepKind::Read, "read"),
        (StepKind::Write, "write"),
        (StepKind::Syscall, "syscall"),
        (StepKind::Handler, "handler"),
    ];

    pub fn word(self) -> &'static str {
        StepKind::WORDS[self as usize].1
    }

    pub fn from_word(word: &str) -> Option<StepKind> {
        StepKind::WORDS.iter().find(|(_, w)| *w == word).map(|&(kind, _)| kind)
    }

    /// The visible operation that an event stands for and whether it failed; `None` for what is not visible: plain
    /// accesses, allocations, requests (the operation itself follows), the unlock inside a condition wait (its
    /// [`StepKind::Wait`] follows), initialisations, signal handlers, yields.
    ///
    /// This is the one definition of *visible* that ordinals in schedules are counted by.
    pub fn of(op: &Op) -> Option<(StepKind, bool)> {
        let done = |kind| Some((kind, false));
        let failed = |kind| Some((kind, true));
        match op {
            Op::Fork { .. } => done(StepKind::Fork),
            Op::Start { .. } => done(StepKind::Start),
            Op::End => done(StepKind::End),
            Op::Join { .. } => done(StepKind::Join),
            Op::JoinFailed { .. } => failed(StepKind::Join),
            Op::Detach { .. } => done(StepKind::Detach),
            Op::Cancel { .. } => done(StepKind::Cancel),
            Op::Lock { flags, .. } if flags.wait => done(StepKind::Relock),
            Op::Lock { .. } => done(StepKind::Lock),
            Op::LockFailed { .. } => failed(StepKind::Lock),
            Op::ReadLock { .. } => done(StepKind::ReadLock),
            Op::ReadLockFailed { .. } => failed(StepKind::ReadLock),
            Op::Unlock { flags, .. } if flags.wait => None,
            Op::Unlock { .. } => done(StepKind::Unlock),
            Op::Signal { .. } => done(StepKind::Signal),
            Op::Broadcast { .. } => done(StepKind::Broadcast),
            Op::WaitBegin { .. } => done(StepKind::Wait),
            Op::Wait { .. } => done(StepKind::Wake),
            Op::WaitFailed { .. } => failed(StepKind::Wake),
            Op::BarrierEnter { .. } => done(StepKind::BarrierEnter),
            Op::BarrierExit { .. } => done(StepKind::BarrierExit),
            Op::SemWait { .. } => done(StepKind::SemWait),
            Op::SemWaitFailed { .. } => failed(StepKind::SemWait),
            Op::SemPost { .. } => done(StepKind::SemPost),
            Op::OnceBegin { .. } => done(StepKind::OnceBegin),
            Op::OnceEnd { .. } => done(StepKind::OnceEnd),
            Op::OncePassed { .. } => done(StepKind::OncePassed),
            Op::Atomic { kind: AtomicKind::Load, .. } => done(StepKind::Load),
            Op::Atomic { kind: AtomicKind::Store, .. } => done(StepKind::Store),
            Op::Atomic { kind: AtomicKind::Rmw, .. } => done(StepKind::Rmw),
            Op::Atomic { kind: AtomicKind::CasFailed, .. } => failed(StepKind::Rmw),
            Op::Fence { .. } => done(StepKind::Fence),
            Op::FutexWake { .. } => done(StepKind::FutexWake),
            Op::FutexWait { .. } => done(StepKind::FutexWait),
            Op::FutexWaitFailed { .. } => failed(StepKind::FutexWait),
            Op::Acquire { .. } => done(StepKind::Acquire),
            Op::Release { .. } => done(StepKind::Release),
            Op::Custom { .. } => done(StepKind::Custom),
            Op::Read { .. }
            | Op::Write { .. }
            | Op::Alloc { .. }
            | Op::Free { .. }
            | Op::Request { .. }
            | Op::SemRequest { .. }
            | Op::BarrierInit { .. }
            | Op::SemInit { .. }
            | Op::Init { .. }
            | Op::Destroy { .. }
            | Op::SignalEnter { .. }
            | Op::SignalExit { .. }
            | Op::ProcessFork { .. }
            | Op::ProcessExec { .. }
            | Op::ProcessExit { .. }
            | Op::AtomicBegin { .. }
            | Op::AtomicEnd { .. }
            | Op::BenignRace { .. }
            | Op::Yield
            | Op::Lost { .. } => None,
        }
    }
}
