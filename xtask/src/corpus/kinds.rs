//! Names of events as manifests use them: `lock`, `lock:try`, `read:volatile`.

#![warn(clippy::wildcard_enum_match_arm)]

use raddle_trace::{AccessFlags, AtomicKind, LockFlags, Op, Patience, describe, ops_about};
use std::collections::BTreeSet;

/// Adds the plain name of an event and every qualified one that fits it.
pub fn add(op: &Op, kinds: &mut BTreeSet<String>) {
    let plain = match op {
        Op::Atomic { .. } => "atomic",
        Op::Read { .. }
        | Op::Write { .. }
        | Op::Fence { .. }
        | Op::Alloc { .. }
        | Op::Free { .. }
        | Op::Lost { .. }
        | ops_about!(Sync) => describe::kind(op),
    };
    if !kinds.contains(plain) {
        kinds.insert(plain.to_owned());
    }
    let mut qualify = |word: &str| {
        kinds.insert(format!("{plain}:{word}"));
    };
    match op {
        Op::Request { flags, .. }
        | Op::Lock { flags, .. }
        | Op::LockFailed { flags, .. }
        | Op::ReadLock { flags, .. }
        | Op::ReadLockFailed { flags, .. }
        | Op::Unlock { flags, .. } => lock_words(flags).into_iter().for_each(&mut qualify),
        Op::Read { flags, .. } | Op::Write { flags, .. } => {
            access_words(flags).into_iter().for_each(&mut qualify)
        }
        Op::Atomic { kind, .. } => qualify(match kind {
            AtomicKind::Load => "load",
            AtomicKind::Store => "store",
            AtomicKind::Rmw => "rmw",
            AtomicKind::CasFailed => "cas-failed",
        }),
        Op::Fence { .. }
        | Op::Alloc { .. }
        | Op::Free { .. }
        | Op::Lost { .. }
        | ops_about!(
            Nothing, Thread, Condition, Barrier, Semaphore, Once, Futex, Annotated, Signal, Channel, Life
        ) => {}
    }
}

fn lock_words(flags: &LockFlags) -> Vec<&'static str> {
    [
        (flags.patience == Patience::Try, "try"),
        (flags.patience == Patience::Timed, "timed"),
        (flags.rwlock, "rwlock"),
        (flags.spin, "spin"),
        (flags.wait, "wait"),
        (flags.nested, "nested"),
        (flags.owner_died, "owner-died"),
    ]
    .into_iter()
    .filter_map(|(holds, word)| holds.then_some(word))
    .collect()
}

fn access_words(flags: &AccessFlags) -> Vec<&'static str> {
    [(flags.volatile, "volatile"), (flags.vptr, "vptr"), (flags.library, "library")]
        .into_iter()
        .filter_map(|(holds, word)| holds.then_some(word))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_trace::ObjectId;

    #[test]
    fn every_fitting_name_is_there() {
        let mut kinds = BTreeSet::new();
        let flags = LockFlags { patience: Patience::Try, rwlock: true, ..LockFlags::default() };
        add(&Op::Lock { lock: ObjectId(1), flags }, &mut kinds);
        assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["lock", "lock:rwlock", "lock:try"]);
    }
}
