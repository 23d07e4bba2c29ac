//! Which events are visible operations.
//!
//! The kinds and their words come from the table of operations (`raddle_wire::operations`); so does what is visible.

use crate::encode::sync_words;
use crate::event::{AtomicKind, Op};
pub use raddle_wire::StepKind;
use raddle_wire::operations::Outcome;

/// The visible operation that an event stands for and whether it failed; `None` for what is not visible: plain
/// accesses, allocations, requests (the operation itself follows), the unlock inside a condition wait (its
/// [`StepKind::Wait`] follows), initialisations, signal handlers, yields.
///
/// Ordinals in schedules are counted by it. The runtime counts by the same table.
pub fn step_of(op: &Op) -> Option<(StepKind, bool)> {
    if let Some((sync, _, argument)) = sync_words(op) {
        return sync.step(argument).map(|kind| (kind, sync.outcome() == Outcome::Failed));
    }
    match op {
        Op::Atomic { kind: AtomicKind::Load, .. } => Some((StepKind::Load, false)),
        Op::Atomic { kind: AtomicKind::Store, .. } => Some((StepKind::Store, false)),
        Op::Atomic { kind: AtomicKind::Rmw, .. } => Some((StepKind::Rmw, false)),
        Op::Atomic { kind: AtomicKind::CasFailed, .. } => Some((StepKind::Rmw, true)),
        Op::Fence { .. } => Some((StepKind::Fence, false)),
        Op::Read { .. } | Op::Write { .. } | Op::Alloc { .. } | Op::Free { .. } | Op::Lost { .. } => None,
        Op::Start { .. }
        | Op::End
        | Op::Fork { .. }
        | Op::Join { .. }
        | Op::JoinFailed { .. }
        | Op::Detach { .. }
        | Op::Cancel { .. }
        | Op::Request { .. }
        | Op::Lock { .. }
        | Op::LockFailed { .. }
        | Op::ReadLock { .. }
        | Op::ReadLockFailed { .. }
        | Op::Unlock { .. }
        | Op::Signal { .. }
        | Op::Broadcast { .. }
        | Op::WaitBegin { .. }
        | Op::Wait { .. }
        | Op::WaitFailed { .. }
        | Op::BarrierInit { .. }
        | Op::BarrierEnter { .. }
        | Op::BarrierExit { .. }
        | Op::SemInit { .. }
        | Op::SemRequest { .. }
        | Op::SemWait { .. }
        | Op::SemWaitFailed { .. }
        | Op::SemPost { .. }
        | Op::OnceBegin { .. }
        | Op::OnceEnd { .. }
        | Op::OncePassed { .. }
        | Op::Init { .. }
        | Op::Destroy { .. }
        | Op::FutexWake { .. }
        | Op::FutexWait { .. }
        | Op::FutexWaitFailed { .. }
        | Op::SignalEnter { .. }
        | Op::SignalExit { .. }
        | Op::ProcessFork { .. }
        | Op::ProcessExec { .. }
        | Op::ProcessExit { .. }
        | Op::Custom { .. }
        | Op::AtomicBegin { .. }
        | Op::AtomicEnd { .. }
        | Op::Acquire { .. }
        | Op::Release { .. }
        | Op::BenignRace { .. }
        | Op::Yield => unreachable!("has a line in the table"),
    }
}
