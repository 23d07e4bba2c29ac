//! What the columns say must fit together.

use super::*;
use crate::record::lock;

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

/// The rule against the textbook: a lock has one writer or any number of readers, and so on. `revokes` is what follows from it.
#[test]
fn effects_revoke_exactly_the_demands_that_they_make_unmet() {
    // Before and after each effect, as somebody else sees the object.
    let cases = [
        (Effect::Locks, Situation::lock(false, false), Situation::lock(true, false)),
        (Effect::LocksShared, Situation::lock(false, false), Situation::lock(false, true)),
        (Effect::Takes, Situation::count(1), Situation::count(0)),
        (Effect::Gives, Situation::count(1), Situation::count(2)),
        (Effect::OnceBegins, Situation::once(false, false), Situation::once(true, false)),
        (Effect::OnceEnds, Situation::once(true, false), Situation::once(true, true)),
        (Effect::Unlocks, Situation::lock(true, false), Situation::lock(false, false)),
        (Effect::Ends, Situation::thread(true, false), Situation::thread(true, true)),
        (Effect::Sends, Situation::channel(false), Situation::channel(true)),
    ];
    let demands = SyncOp::ALL.iter().map(|op| op.effect().demand());
    for demand in demands {
        for (effect, before, after) in cases {
            let revoked = demand.is_met(before) && !demand.is_met(after);
            assert_eq!(effect.revokes(demand), revoked, "{effect:?} {demand:?}");
        }
    }
    assert!(Demand::NotWriteLocked.is_met(Situation::lock(false, true)), "readers share");
    assert!(!Demand::Signalled.is_met(Situation::waiter(false)));
    assert!(Demand::RoundComplete.is_met(Situation::waiter(true)));
}

#[test]
fn the_halves_of_a_condition_wait_are_steps_of_their_own() {
    assert_eq!(SyncOp::Lock.step(0), Some(StepKind::Lock));
    assert_eq!(SyncOp::Lock.step(lock::WAIT), Some(StepKind::Relock));
    assert_eq!(SyncOp::Unlock.step(lock::WAIT), None);
    assert_eq!(SyncOp::SemWait.step(lock::WAIT), Some(StepKind::SemWait));
}
