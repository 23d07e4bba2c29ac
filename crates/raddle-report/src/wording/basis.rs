//! How a finding is known, and why a replay did not show it.

use super::object::path;
use super::signal::signal;
use crate::text::{code, count, list, name, words};
use raddle_findings::basis::{Ended, Step, ThreadState};
use raddle_findings::{Attempt, Basis, Fidelity, Finding, Grade, Invisible, InvisibleKind, Kind, Shown};

/// Attempts that are told one by one.
const ATTEMPTS_MAX: usize = 4;
/// Threads of a standstill that are told.
const THREADS_MAX: usize = 8;

/// The first note says how the finding is known, the others what was tried.
pub(super) fn notes(finding: &Finding, verbose: bool) -> Vec<String> {
    let grade = finding.grade().name();
    let mut notes = match &finding.basis {
        Basis::Replayed { shown, replays } => vec![format!("{grade}: {}", replayed(*shown, *replays))],
        Basis::Observed { .. } => vec![format!("{grade}: it happened in the run that Raddle watched")],
        Basis::Unordered { replays, invisible, .. } => unordered(finding.grade(), *replays, invisible),
        Basis::Model { sound, fidelity, .. } => {
            vec![format!("{grade}: {}", model(finding.kind, *sound, *fidelity, verbose))]
        }
        Basis::Rule { .. } => vec![format!("{grade}: {}", rule(finding.kind))],
    };
    let attempts = finding.basis.attempts();
    notes.extend(attempts.iter().take(ATTEMPTS_MAX).map(attempt));
    if attempts.len() > ATTEMPTS_MAX {
        let more = u64::try_from(attempts.len() - ATTEMPTS_MAX).unwrap_or(u64::MAX);
        notes.push(format!("{} failed too", count(more, "further replay")));
    }
    notes
}

fn replayed(shown: Shown, replays: u32) -> String {
    let seen = match shown {
        Shown::Parked => "both threads stood before their accesses at the same moment",
        Shown::Blocked => "all threads involved were blocked and no other thread could wake them",
        Shown::Ended => "the program ended in the same way each time",
        Shown::Violated => "the events of the run violated the property",
        Shown::Unordered => "no synchronisation visible to Raddle orders the two accesses",
    };
    match (replays, shown) {
        (0, Shown::Ended) => "the program ended in this way under the stored schedule".to_owned(),
        (0, _) => format!("under the stored schedule {seen}"),
        (1, Shown::Ended) => {
            "replayed from the stored schedule once: the program ended in the same way".to_owned()
        }
        (1, _) => format!("replayed from the stored schedule once: {seen}"),
        (replays, _) => format!("replayed from the stored schedule {replays} times: {seen}"),
    }
}

fn unordered(grade: Grade, replays: u32, invisible: &[Invisible]) -> Vec<String> {
    let grade = grade.name();
    let mut first = format!("{grade}: no synchronisation visible to Raddle orders the two accesses");
    if replays > 0 {
        first.push_str(&format!(", also in {} from the stored schedule", count(replays.into(), "replay")));
    }
    let mut notes = vec![first];
    notes.extend(invisible.iter().map(|code| format!("{} could have ordered the accesses", hidden(code))));
    // Compiling inline assembly again, or calling the kernel from other code, makes neither visible.
    let rebuildable = |code: &Invisible| {
        matches!(code.what, InvisibleKind::NotInstrumented | InvisibleKind::LibraryNotRebuilt)
    };
    if invisible.iter().any(rebuildable) {
        notes.push("code rebuilt with `raddle cc` is visible to Raddle".to_owned());
    }
    notes
}

fn hidden(invisible: &Invisible) -> String {
    let function = invisible.function.as_ref().map(|function| format!("{} of ", code(function)));
    let module = format!("{}{}", function.unwrap_or_default(), code(&invisible.module));
    let place = invisible.place.as_ref().map_or_else(String::new, |place| format!(" ({})", name(place)));
    match invisible.what {
        InvisibleKind::InlineAssembly => format!("inline assembly in {module}{place}"),
        InvisibleKind::NotInstrumented => format!("code in {module}{place}, which is not instrumented,"),
        InvisibleKind::LibraryNotRebuilt => format!("library {module}{place}, which was not rebuilt,"),
        InvisibleKind::KernelInterface => format!("a kernel interface used by {module}{place}"),
    }
}

fn model(kind: Kind, sound: bool, fidelity: Fidelity, verbose: bool) -> String {
    let mut text = match sound {
        true => "analysis of the recorded run found a schedule that ",
        // Threads that read other values may do something else: whether the schedule can be followed is not known.
        false => "the recorded synchronisation allows, if threads follow it, a schedule that ",
    }
    .to_owned();
    text.push_str(match kind {
        Kind::Deadlock => "leads to the deadlock",
        Kind::DataRace => "brings the two accesses together",
        _ => "leads to the error",
    });
    text.push_str("; ");
    text.push_str(match fidelity {
        Fidelity::KeepsReads => "every read returns the same value as in the recorded run",
        Fidelity::KeepsEarlierReads => {
            "every read except those just before the error returns the same value as in the recorded run"
        }
        Fidelity::KeepsOrder => {
            "the schedule omits some recorded events; some reads return different values than in the recorded run"
        }
        Fidelity::Reordered => "the schedule runs some steps in a different order than in the recorded run",
        Fidelity::Unknown => "only synchronisation was analysed, not the values that threads read",
    });
    if verbose {
        text.push_str(match sound {
            true => "; the predictor is sound: its witness is a correct reordering of the trace",
            false => "; the predictor is not sound: its witness may not be a correct reordering of the trace",
        });
    }
    text
}

fn rule(kind: Kind) -> &'static str {
    match kind {
        Kind::LockOrder => "the lock order alone says so; other synchronisation may keep the threads apart",
        Kind::DataRace => "no lock is held at all accesses; other synchronisation may order them",
        Kind::HighLevelRace => "a pattern of critical sections says so; the program may intend it",
        Kind::AtomicityViolation => "a pattern of accesses says so; the program may intend it",
        _ => "a heuristic reports it; it may be harmless",
    }
}

pub(super) fn attempt(attempt: &Attempt) -> String {
    match attempt {
        Attempt::Diverged { after_steps, thread, expected, found } => {
            diverged(*after_steps, thread, expected.as_ref(), found.as_ref())
        }
        Attempt::Standstill { after_steps, threads } => format!(
            "the replay came to a standstill after {}{}",
            count(*after_steps, "step"),
            states(threads)
        ),
        Attempt::Ended { how: Ended::Status(status) } => {
            format!("the replay ended with status {status} before the error was shown")
        }
        Attempt::Ended { how: Ended::Signal(number) } => {
            format!("the replay was killed by {} before the error was shown", signal(*number))
        }
        Attempt::TimedOut { threads } => {
            format!("the replay took too long and was stopped{}", states(threads))
        }
        Attempt::OtherMemory => "in the replay the two threads accessed different memory".to_owned(),
        Attempt::OtherDeadlock { missing } => {
            let missing: Vec<String> = missing.iter().map(|thread| path(thread)).collect();
            match missing.len() {
                0 => "the replay deadlocked in a different way".to_owned(),
                1 => format!("the replay deadlocked, but {} was not part of it", list(&missing)),
                _ => format!("the replay deadlocked, but {} were not part of it", list(&missing)),
            }
        }
        Attempt::Ordered => {
            "the replay followed the schedule, but the two accesses were ordered in it".to_owned()
        }
        Attempt::Kept => "the replay followed the schedule, but its events keep the property".to_owned(),
        Attempt::UncertainEvents { events } => {
            let events: Vec<String> = events.iter().map(|event| code(event)).collect();
            format!(
                "the replay's events violate the property, but those of {} are not certain (see the warnings about the aspects)",
                list(&events)
            )
        }
        Attempt::NotAgain { shown, replays } => {
            format!(
                "the error was shown once, but in only {shown} of {} of the stored schedule",
                count((*replays).into(), "replay")
            )
        }
        Attempt::TooManyThreads => {
            "not replayed: the program has more threads than a replay can follow".to_owned()
        }
        Attempt::OutOfTime => "not replayed: no time was left".to_owned(),
        Attempt::ReadDecides { place } => format!(
            "not replayed: the schedule changes what is read at {}, and other replays have shown that this read decides \
             what its thread does",
            name(place)
        ),
        Attempt::PutBack { fruitless } => format!(
            "not replayed: {} had shown nothing before its turn came; --fruitless allows more",
            count((*fruitless).into(), "replay")
        ),
        Attempt::Interrupted => "not replayed to the end: Raddle was interrupted".to_owned(),
        Attempt::TooLong { steps } => {
            format!("not replayed: the run has {}, too many to replay one by one", count(*steps, "step"))
        }
        Attempt::NotStored { why } => {
            format!("not replayed: the schedule could not be stored: {}", words(why))
        }
    }
}

fn diverged(after_steps: u64, thread: &str, expected: Option<&Step>, found: Option<&Step>) -> String {
    let mut text = format!("the replay left the schedule after {}", count(after_steps, "step"));
    let who = path(thread);
    match (expected, found) {
        (Some(expected), Some(found)) => {
            text.push_str(&format!(": expected {who} at {}, found it at {}", step(expected), step(found)));
        }
        (Some(expected), None) => {
            text.push_str(&format!(": expected {who} at {}, which it never reached", step(expected)));
        }
        (None, Some(found)) => {
            text.push_str(&format!(
                ": found {who} at {}, where the schedule has no step for it",
                step(found)
            ));
        }
        (None, None) => text.push_str(&format!(" in {who}")),
    }
    text
}

/// ``operation 4 (`lock` at bank.c:12)``.
fn step(step: &Step) -> String {
    let place = if step.place.is_empty() { String::new() } else { format!(" at {}", name(&step.place)) };
    format!("operation {} ({}{place})", step.ordinal, code(&step.operation))
}

fn states(threads: &[ThreadState]) -> String {
    if threads.is_empty() {
        return String::new();
    }
    let mut told: Vec<String> = threads.iter().take(THREADS_MAX).map(state).collect();
    if threads.len() > THREADS_MAX {
        told.push(format!("{} more threads", threads.len() - THREADS_MAX));
    }
    format!(": {}", told.join("; "))
}

fn state(state: &ThreadState) -> String {
    let at = state.at.as_ref().map_or_else(String::new, |at| format!(" at {}", step(at)));
    format!("{} {}{at}", path(&state.thread), name(&state.phase))
}
