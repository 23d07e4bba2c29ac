//! Synchronisation objects as memory: what begins or ends their life races with their use.
//!
//! Initialising and destroying an object write it, using it reads it; one byte stands for the whole. The reads are atomic: objects are made for
//! being used by several at once. A use is looked at before it orders anything, for who finds an object must know already that
//! it is initialised. A wait that is over and a barrier that is left are no uses: the object may be gone by then, which is
//! legal.

use super::cells;
use crate::shadow::{ATOMIC, READ};
use crate::thread::Thread;
use raddle_wire::operations::ObjectKind;
use raddle_wire::record::access::{LIBRARY, WRITE};
use raddle_wire::record::lock as bits;
use raddle_wire::{Effect, Outcome, SyncOp};

#[inline]
pub fn touch(thread: &Thread, pc: u64, op: SyncOp, object: usize, argument: u64) {
    let is_object = matches!(
        op.object_kind(),
        ObjectKind::Lock | ObjectKind::Condition | ObjectKind::Barrier | ObjectKind::Semaphore
    );
    if !is_object || !thread.access.are_enabled() {
        return;
    }
    let effect = op.effect();
    let part = op.object_kind() == ObjectKind::Lock && argument & (bits::NESTED | bits::WAIT) != 0;
    let lives = matches!(effect, Effect::Creates | Effect::Destroys);
    let used = matches!(
        effect,
        Effect::Locks
            | Effect::LocksShared
            | Effect::Unlocks
            | Effect::Takes
            | Effect::Gives
            | Effect::Enters
            | Effect::Signals
            | Effect::SignalsAll
    );
    let (aux, flags) = match () {
        () if lives => (LIBRARY | WRITE, 0),
        () if used && !part && op.outcome() == Outcome::Done => (LIBRARY, READ | ATOMIC),
        () => return,
    };
    cells::access(thread, pc, aux, object, 1 << (object & 7), flags);
}

/// A thread is about to wait on a condition, which counts before it gives its mutex back: who has the mutex then may destroy the
/// condition, once it has sent its signal.
pub fn will_wait(thread: &Thread, pc: u64, condition: usize) {
    if thread.access.are_enabled() {
        cells::access(thread, pc, LIBRARY, condition, 1 << (condition & 7), READ | ATOMIC);
    }
}
