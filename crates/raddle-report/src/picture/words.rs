//! Steps and edges in few words.

#![warn(clippy::wildcard_enum_match_arm)]

use super::order::Why;
use crate::text::name;
use raddle_trace::schedule::StepKind;

/// What a step does: `locks m`. `object` may be empty.
pub(super) fn step(kind: StepKind, object: &str, failed: bool) -> String {
    let object = name(object);
    let (verb, rest) = match (kind, failed) {
        (StepKind::Fork, _) => ("creates thread", ""),
        (StepKind::Start, _) => ("starts", ""),
        (StepKind::End, _) => ("ends", ""),
        (StepKind::Join, false) => ("joins thread", ""),
        (StepKind::Join, true) => ("fails to join thread", ""),
        (StepKind::Detach, _) => ("detaches thread", ""),
        (StepKind::Cancel, _) => ("cancels thread", ""),
        (StepKind::Lock, false) => ("locks", ""),
        (StepKind::Lock, true) => ("fails to lock", ""),
        (StepKind::ReadLock, false) => ("locks", " for reading"),
        (StepKind::ReadLock, true) => ("fails to lock", " for reading"),
        (StepKind::Unlock, _) => ("unlocks", ""),
        (StepKind::Relock, _) => ("locks", " again after its wait"),
        (StepKind::Signal, _) => ("signals", ""),
        (StepKind::Broadcast, _) => ("broadcasts", ""),
        (StepKind::Wait, _) => ("begins to wait for", ""),
        (StepKind::Wake, false) => ("is woken from", ""),
        (StepKind::Wake, true) => ("stops waiting for", " (time over)"),
        (StepKind::BarrierEnter, _) => ("arrives at barrier", ""),
        (StepKind::BarrierExit, _) => ("passes barrier", ""),
        (StepKind::SemWait, false) => ("takes from semaphore", ""),
        (StepKind::SemWait, true) => ("finds semaphore", " empty"),
        (StepKind::SemPost, _) => ("posts to semaphore", ""),
        (StepKind::OnceBegin, _) => ("begins to initialise", ""),
        (StepKind::OnceEnd, _) => ("has initialised", ""),
        (StepKind::OncePassed, _) => ("finds initialised", ""),
        (StepKind::Load, _) => ("loads atomically", ""),
        (StepKind::Store, _) => ("stores atomically", ""),
        (StepKind::Rmw, false) => ("updates atomically", ""),
        (StepKind::Rmw, true) => ("compares in vain", ""),
        (StepKind::Fence, _) => ("passes a fence", ""),
        (StepKind::FutexWake, _) => ("wakes futex", ""),
        (StepKind::FutexWait, false) => ("waits on futex", ""),
        (StepKind::FutexWait, true) => ("finds futex", " changed"),
        (StepKind::Acquire, _) => ("acquires", ""),
        (StepKind::Release, _) => ("releases", ""),
        (StepKind::Custom, _) => ("reports", ""),
        (StepKind::Read, _) => ("reads", ""),
        (StepKind::Write, _) => ("writes", ""),
        (StepKind::Syscall, _) => ("calls the kernel", ""),
        (StepKind::Handler, _) => ("runs a signal handler", ""),
    };
    let space = if object.is_empty() { "" } else { " " };
    format!("{verb}{space}{object}{rest}")
}

pub(super) fn link(why: Why, object: &str) -> String {
    let object = name(object);
    match why {
        Why::Creates => "creation comes before start".to_owned(),
        Why::Ends => "end comes before join".to_owned(),
        Why::HandsOver => format!("{object} is handed over").trim_start().to_owned(),
        Why::Wakes => format!("wakes a waiter of {object}").trim_end_matches(" of ").to_owned(),
        Why::Posts => format!("post to {object} lets the other take").replace("  ", " "),
        Why::Arrives => "the last arrival opens the barrier".to_owned(),
        Why::Initialises => "initialisation comes before use".to_owned(),
        Why::Precedes => format!("{object} is accessed later; orders more only with acquire and release")
            .trim_start()
            .to_owned(),
    }
}
