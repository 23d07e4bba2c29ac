//! What else a reader should know.

use super::object::{path, place, short, story};
use super::signal::signal;
use crate::text::{code, count, name};
use raddle_findings::{Detail, Finding, Kind, Remark, Seen, What};

/// The objects that the headline does not explain.
pub(super) fn objects(finding: &Finding) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    match finding.kind {
        Kind::Deadlock | Kind::LockOrder if !finding.objects.is_empty() => notes.push(involved(finding)),
        _ => {}
    }
    notes.extend(finding.objects.iter().filter_map(story));
    notes
}

/// ``locks involved: `bob`, `alice` ``; where not all are locks, each with what it is.
fn involved(finding: &Finding) -> String {
    let are_locks = finding.objects.iter().all(|object| matches!(object.what, What::Mutex | What::Rwlock));
    let call = if are_locks { short } else { super::object::object };
    let names: Vec<String> = finding.objects.iter().map(call).collect();
    format!("{} involved: {}", if are_locks { "locks" } else { "objects" }, names.join(", "))
}

pub(super) fn detail(finding: &Finding) -> Option<String> {
    match &finding.detail {
        Detail::NoCommonLock => Some("no lock is held at every access to this memory".to_owned()),
        Detail::Crash { signal: number, assertion: Some(assertion), .. } => {
            let function =
                assertion.function.as_ref().map_or_else(String::new, |name| format!(" in {}", code(name)));
            let at = match (&assertion.file, assertion.line) {
                (Some(file), Some(line)) => format!(" at {}:{line}", name(file)),
                (Some(file), None) => format!(" in {}", name(file)),
                (None, _) => String::new(),
            };
            Some(format!("the assertion{function}{at} ended the program with {}", signal(*number)))
        }
        Detail::Together { times } => {
            Some(format!("elsewhere they are accessed together {}", count(*times, "time")))
        }
        Detail::Pattern { accesses } => {
            Some(format!("the accesses {} have no equivalent serial order", code(accesses)))
        }
        Detail::NotReducible => {
            Some("the region is not reducible: another thread can act in the middle of it".to_owned())
        }
        Detail::Cycle { regions: 0 } => {
            Some("regions depend on each other in a cycle; no serial order explains them".to_owned())
        }
        Detail::Cycle { regions } => Some(format!(
            "{} depend on each other in a cycle; no serial order explains them",
            count(*regions, "region")
        )),
        Detail::AtEndOfTrace => Some("the recorded run ends in this state".to_owned()),
        Detail::MissedSignal { still_waits: false } => {
            Some("in the recorded run a later signal woke the thread".to_owned())
        }
        Detail::None
        | Detail::Misuse { .. }
        | Detail::Crash { .. }
        | Detail::Ending { .. }
        | Detail::Contract { .. }
        | Detail::Without { .. }
        | Detail::MissedSignal { .. }
        | Detail::Words { .. } => None,
    }
}

pub(super) fn remark(remark: &Remark, verbose: bool) -> String {
    match remark {
        Remark::AlsoFoundBy { detectors } => {
            let detectors: Vec<String> = detectors.iter().map(|detector| code(detector)).collect();
            format!("also found by {}", detectors.join(", "))
        }
        Remark::Occurrences { times } => format!("seen {} at these places", count(*times, "time")),
        Remark::ObservedOrder { first, then, events } => {
            let numbers =
                if verbose { format!(" (events {} and {})", events.0, events.1) } else { String::new() };
            format!("in the recorded run {} came first, then {}{numbers}", path(first), path(then))
        }
        Remark::HistoryLost => {
            "the other access is no longer in the thread's history; a larger history may show its stack"
                .to_owned()
        }
        Remark::LeftOut { reports } => {
            format!("{} of this detector not listed", count(*reports, "further report"))
        }
        Remark::CyclesCut => {
            "the search for cycles of locks stopped at its limit; there may be more".to_owned()
        }
        Remark::CheckedWithoutLock { thread, frame } => format!(
            "{} checked the condition at {} without holding the lock that protects it; \
             the signal can come between this check and the wait",
            path(thread),
            place(frame)
        ),
        Remark::HolderEnded { thread } => {
            format!("{} ended without releasing the lock", path(thread))
        }
        Remark::WaitTimedOut { thread } => format!("{} gave up waiting when its time was over", path(thread)),
        Remark::Reversed { frames } => match &frames[..] {
            [first, second] => format!(
                "provoked: the schedule runs what begins at {} before what begins at {}; in the recorded run it came after",
                place(second),
                place(first)
            ),
            _ => "provoked: the schedule runs two critical sections in the reverse of their recorded order"
                .to_owned(),
        },
        Remark::Interleaved { frames } => match &frames[..] {
            [first, second, between] => format!(
                "provoked: the schedule runs what begins at {} between the two critical sections of another thread at {} and {}",
                place(between),
                place(first),
                place(second)
            ),
            _ => "provoked: the schedule runs a critical section between two of another thread".to_owned(),
        },
        Remark::Leads { to } => format!("this leads to finding {}", name(to)),
    }
}

pub(super) fn seen(seen: &Seen) -> String {
    format!(
        "{} of {} ended like this, the first was run {} (seed {})",
        seen.count,
        count(seen.runs, "explored run"),
        seen.first_run,
        seen.seed
    )
}
