//! Which events are visible operations.
//!
//! The kinds and their words come from the table of operations (`raddle_wire::operations`); so does what is visible.

use crate::event::{AtomicKind, Op};
use crate::ops_about;
pub use raddle_wire::StepKind;
use raddle_wire::operations::Outcome;

/// The visible operation that an event stands for and whether it failed; `None` for what is not visible: plain
/// accesses, allocations, requests (the operation itself follows), the unlock inside a condition wait (its
/// [`StepKind::Wait`] follows), initialisations, signal handlers, yields.
///
/// Ordinals in schedules are counted by it. The runtime counts by the same table.
pub fn step_of(op: &Op) -> Option<(StepKind, bool)> {
    match op {
        Op::Atomic { kind: AtomicKind::Load, .. } => Some((StepKind::Load, false)),
        Op::Atomic { kind: AtomicKind::Store, .. } => Some((StepKind::Store, false)),
        Op::Atomic { kind: AtomicKind::Rmw, .. } => Some((StepKind::Rmw, false)),
        Op::Atomic { kind: AtomicKind::CasFailed, .. } => Some((StepKind::Rmw, true)),
        Op::Fence { .. } => Some((StepKind::Fence, false)),
        Op::Read { .. } | Op::Write { .. } | Op::Alloc { .. } | Op::Free { .. } | Op::Lost { .. } => None,
        ops_about!(Sync) => {
            let (sync, _, argument) = op.sync_words()?;
            sync.step(argument).map(|kind| (kind, sync.outcome() == Outcome::Failed))
        }
    }
}
