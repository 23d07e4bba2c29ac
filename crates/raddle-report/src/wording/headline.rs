//! A finding in one sentence.

use super::action::waits;
use super::object::{lock, object, short, thread, thread_in_function, threads, threads_in_functions};
use super::signal::signal;
use crate::text::{code, count, list, words};
use raddle_findings::basis::Ended;
use raddle_findings::finding::Assertion;
use raddle_findings::{Action, Basis, Detail, Finding, Kind, Misuse, Object, Party, Role, What};

pub(super) fn headline(finding: &Finding) -> String {
    let parties: Vec<&Party> = finding.parties.iter().collect();
    // A program may say nothing; then the kind speaks.
    if let Detail::Words { text } = &finding.detail
        && !text.trim().is_empty()
    {
        return match finding.kind {
            Kind::PropertyViolation => format!("property violated: {}", words(text)),
            _ => words(text),
        };
    }
    match finding.kind {
        Kind::DataRace => data_race(finding, &parties),
        Kind::UseAfterFree => use_after_free(finding, &parties),
        Kind::HighLevelRace => high_level_race(finding, &parties),
        Kind::AtomicityViolation => atomicity_violation(finding, &parties),
        Kind::OrderViolation => order_violation(finding, &parties),
        Kind::Deadlock => deadlock(finding, &parties),
        Kind::LockOrder => match names(&finding.objects).as_slice() {
            [] | [_] => format!("{} acquire locks in conflicting orders", threads_in_functions(&parties)),
            locks => {
                format!("locks {} are acquired in conflicting orders by {}", list(locks), threads(&parties))
            }
        },
        Kind::MissedSignal => missed_signal(finding, &parties),
        Kind::BlockedThread => blocked(&parties),
        Kind::Livelock => {
            format!("{} keep running without making progress (livelock)", threads_in_functions(&parties))
        }
        Kind::Starvation => starvation(finding, &parties),
        Kind::NonProgress => match finding.detail {
            Detail::Without { progress_steps } => {
                format!(
                    "{} made no progress for {}",
                    threads_in_functions(&parties),
                    count(progress_steps, "step")
                )
            }
            _ => format!("{} can run forever without making progress", threads_in_functions(&parties)),
        },
        Kind::ContractViolation => contract_violation(finding, &parties),
        Kind::LockMisuse => lock_misuse(finding, &parties),
        Kind::ThreadLeak => {
            format!("{} ended but {} never joined or detached", threads(&parties), were(&parties))
        }
        Kind::Crash | Kind::AssertionFailure => crash(finding, &parties),
        Kind::PropertyViolation => "a property of the program is violated".to_owned(),
        Kind::FailedStatus => match finding.detail {
            Detail::Ending { ended: Ended::Status(status) } => {
                format!("the program exited with status {status}")
            }
            Detail::Ending { ended: Ended::Signal(number) } => {
                format!("the program was killed by {}", signal(number))
            }
            _ => "the program failed".to_owned(),
        },
        Kind::WrongOutput => "the program's output differs from the expected output".to_owned(),
    }
}

fn were(parties: &[&Party]) -> &'static str {
    if parties.len() > 1 { "were" } else { "was" }
}

/// The objects, each by its short name.
fn names(objects: &[Object]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in objects.iter().map(short) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// ` on balance`, if it is known what.
fn on(finding: &Finding) -> String {
    match names(&finding.objects).as_slice() {
        [] => String::new(),
        names => format!(" on {}", list(names)),
    }
}

fn between(parties: &[&Party]) -> String {
    match parties {
        [] => String::new(),
        [one] => format!(" in {}", thread_in_function(one)),
        [first, rest @ ..]
            if rest.iter().all(|party| party.thread == first.thread) && !first.thread.path.is_empty() =>
        {
            format!(" in {}", thread_in_function(first))
        }
        several => format!(" between {}", threads_in_functions(several)),
    }
}

fn data_race(finding: &Finding, parties: &[&Party]) -> String {
    let vptr = parties.iter().any(|party| matches!(party.action, Action::Accesses { vptr: true, .. }));
    let pointer = if vptr { " on a virtual table pointer" } else { "" };
    let on = if vptr { on(finding).replacen(" on ", " of ", 1) } else { on(finding) };
    match finding.detail {
        Detail::NoCommonLock => format!(
            "no common lock protects the accesses{on}{}",
            between(parties).replacen(" between ", " by ", 1)
        ),
        _ => format!("data race{pointer}{on}{}", between(parties)),
    }
}

fn use_after_free(finding: &Finding, parties: &[&Party]) -> String {
    let frees = |party: &&&Party| matches!(party.action, Action::Frees { .. });
    let freeing = parties.iter().find(frees);
    let using = parties.iter().find(|party| !frees(party));
    let memory = match names(&finding.objects).as_slice() {
        [] => "memory".to_owned(),
        names => list(names),
    };
    match (using, freeing) {
        (Some(using), Some(freeing)) => format!(
            "use after free: {} can access {memory} after {} frees it",
            thread_in_function(using),
            thread_in_function(freeing)
        ),
        _ => format!("use after free of {memory}{}", between(parties)),
    }
}

fn high_level_race(finding: &Finding, parties: &[&Party]) -> String {
    let together: Vec<&Party> = with_role(parties, &[Role::AccessesTogether]);
    let apart: Vec<&Party> = with_role(parties, &[Role::AccessesSome, Role::AccessesOthers]);
    let variables = match names(&finding.objects).as_slice() {
        [] => "variables that belong together".to_owned(),
        names => list(names),
    };
    match (together.as_slice(), apart.as_slice()) {
        ([first, ..], [other, ..]) => format!(
            "{variables}: {} accesses them in one critical section, {} in several",
            thread_in_function(first),
            thread_in_function(other)
        ),
        _ => format!("{variables} are not always accessed together by {}", threads_in_functions(parties)),
    }
}

fn with_role<'a>(parties: &[&'a Party], roles: &[Role]) -> Vec<&'a Party> {
    let plays = |party: &&&Party| matches!(party.action, Action::Plays { role, .. } if roles.contains(&role));
    parties.iter().filter(plays).copied().collect()
}

fn atomicity_violation(finding: &Finding, parties: &[&Party]) -> String {
    let on = on(finding);
    let region = with_role(parties, &[Role::BeginsRegion, Role::EndsRegion, Role::InsideRegion]);
    let other = with_role(parties, &[Role::Interferes]);
    match (region.as_slice(), other.as_slice()) {
        ([region, ..], [other, ..]) => format!(
            "atomicity violation{on}: {} can interfere with {}",
            thread_in_function(other),
            thread_in_function(region)
        ),
        _ => format!("atomicity violation{on}{}", between(parties)),
    }
}

fn order_violation(finding: &Finding, parties: &[&Party]) -> String {
    let on = on(finding);
    let first = with_role(parties, &[Role::ComesFirst]);
    let late = with_role(parties, &[Role::ShouldComeFirst]);
    match (first.as_slice(), late.as_slice()) {
        ([first, ..], [late, ..]) => {
            format!(
                "order violation{on}: {} can run before {}",
                thread_in_function(first),
                thread_in_function(late)
            )
        }
        _ => format!("order violation{on}{}", between(parties)),
    }
}

fn happened(finding: &Finding) -> bool {
    matches!(finding.detail, Detail::AtEndOfTrace) || matches!(finding.basis, Basis::Observed { .. })
}

fn deadlock(finding: &Finding, parties: &[&Party]) -> String {
    let mut paths: Vec<&str> = parties.iter().map(|party| party.thread.path.as_str()).collect();
    paths.dedup();
    let verb = if happened(finding) { "deadlocked" } else { "can deadlock" };
    match paths.as_slice() {
        [one] if !one.is_empty() => format!("{} {verb} with itself", threads(parties)),
        _ => format!("{} {verb}", threads(parties)),
    }
}

fn missed_signal(finding: &Finding, parties: &[&Party]) -> String {
    let signals = |party: &&&Party| matches!(party.action, Action::SignalsNobody { .. });
    let waiter = parties.iter().find(|party| !signals(party));
    let signaller = parties.iter().find(signals);
    let condition = parties.iter().filter_map(|party| party.action.object()).chain(&finding.objects);
    let on = condition
        .into_iter()
        .find(|object| matches!(object.what, What::Condition | What::Futex | What::Other))
        .map_or_else(String::new, |condition| format!(" on {}", object(condition)));
    let sent = signaller.map_or_else(String::new, |party| format!(" sent by {}", thread_in_function(party)));
    let who = waiter.map_or_else(|| "a thread".to_owned(), |party| thread_in_function(party));
    match finding.detail {
        Detail::MissedSignal { still_waits: true } => {
            format!("{who} waits forever: it missed the signal{on}{sent}")
        }
        _ => format!("{who} can miss the signal{on}{sent}"),
    }
}

fn blocked(parties: &[&Party]) -> String {
    if let [party] = parties
        && let Action::Waits { wait, object, operation, .. } = &party.action
    {
        let waits = waits(*wait, object.as_ref(), operation);
        return match waits.strip_prefix("waits ") {
            Some(rest) => format!("{} waits forever {rest}", thread_in_function(party)),
            None => format!("{} {waits} forever", thread_in_function(party)),
        };
    }
    match parties.len() {
        0 => "a thread is blocked forever".to_owned(),
        1 => format!("{} is blocked forever", threads_in_functions(parties)),
        _ => format!("{} are blocked forever", threads_in_functions(parties)),
    }
}

fn starvation(finding: &Finding, parties: &[&Party]) -> String {
    let waiting = |party: &&&Party| matches!(party.action, Action::Waits { .. });
    let victim = parties.iter().find(waiting).or(parties.first());
    let who = victim.map_or_else(|| "a thread".to_owned(), |party| thread_in_function(party));
    let what = finding.objects.first().map_or_else(|| "a lock".to_owned(), lock);
    match finding.detail {
        Detail::Without { progress_steps } => format!(
            "{who} is starved: other threads acquired {what} {} while it waited",
            count(progress_steps, "time")
        ),
        _ => format!("{who} is starved while it waits for {what}"),
    }
}

fn contract_violation(finding: &Finding, parties: &[&Party]) -> String {
    let contract = match finding.detail {
        Detail::Contract { line } => format!("contract on line {line} violated"),
        _ => "contract violated".to_owned(),
    };
    let sequence = with_role(parties, &[Role::BeginsSequence, Role::EndsSequence]);
    let other = with_role(parties, &[Role::InterruptsSequence]);
    match (sequence.as_slice(), other.as_slice()) {
        ([sequence, ..], [other, ..]) => format!(
            "{contract}: {} can call in the middle of the call sequence of {}",
            thread_in_function(other),
            thread_in_function(sequence)
        ),
        _ => format!("{contract} by {}", threads_in_functions(parties)),
    }
}

fn lock_misuse(finding: &Finding, parties: &[&Party]) -> String {
    let who = parties.first().map_or_else(|| "a thread".to_owned(), |party| thread_in_function(party));
    let what = finding.objects.first().map_or_else(|| "a lock".to_owned(), lock);
    match finding.detail {
        Detail::Misuse { misuse: Misuse::UnlockNotHeld } => {
            format!("{who} unlocks {what}, which it does not hold")
        }
        Detail::Misuse { misuse: Misuse::ReadUnlockNotHeld } => {
            format!("{who} releases {what}, which it does not hold for reading")
        }
        Detail::Misuse { misuse: Misuse::DoubleLock } => {
            format!("{who} locks {what}, which it already holds")
        }
        Detail::Misuse { misuse: Misuse::DestroyedHeld } => format!("{who} destroys {what} while it is held"),
        Detail::Misuse { misuse: Misuse::EndedHolding } => format!("{who} ends while it holds {what}"),
        Detail::Misuse { misuse: Misuse::InvalidObject } => {
            format!("{who} uses {what}, which was destroyed or never initialised")
        }
        Detail::Misuse { misuse: Misuse::SignalUnsafe } => {
            format!("{who} calls, in a signal handler, a function that is not safe there")
        }
        Detail::Misuse { misuse: Misuse::ErrnoSpoiled } => {
            format!("a signal handler of {who} changes errno for the code that it interrupts")
        }
        Detail::Misuse { misuse: Misuse::CreatedInUse } => {
            format!("{who} initialises {what} while other threads wait at it")
        }
        Detail::Misuse { misuse: Misuse::Unknown(number) } => {
            format!("{who} misuses {what} (unknown report {number} of the runtime)")
        }
        _ => format!("{who} misuses {what}"),
    }
}

fn crash(finding: &Finding, parties: &[&Party]) -> String {
    let crashing = |party: &&&Party| matches!(party.action, Action::Crashes);
    let party = parties.iter().find(crashing).or(parties.first());
    let within = party.map_or_else(String::new, |party| format!(" in {}", thread_in_function(party)));
    match &finding.detail {
        Detail::Crash { assertion: Some(assertion), .. } => format!("{} failed{within}", asserted(assertion)),
        Detail::Crash { signal: number, address, .. } => {
            let at = address.map_or_else(String::new, |address| format!(" at address {address:#x}"));
            let who = party.map_or_else(
                || "the program".to_owned(),
                |party| match party.thread.path.is_empty() {
                    true => "the program".to_owned(),
                    false => thread_in_function(party),
                },
            );
            format!("{who} crashed with {}{at}", signal(*number))
        }
        Detail::Ending { ended: Ended::Signal(number) } => {
            format!("the program crashed with {}", signal(*number))
        }
        Detail::Ending { ended: Ended::Status(status) } => format!("the program exited with status {status}"),
        _ if finding.kind == Kind::AssertionFailure => format!("an assertion failed{within}"),
        _ => party.map_or_else(
            || "the program crashed".to_owned(),
            |party| format!("{} crashed", thread(&party.thread)),
        ),
    }
}

fn asserted(assertion: &Assertion) -> String {
    match assertion.expression.as_str() {
        "" => "an assertion".to_owned(),
        expression => format!("assertion {}", code(expression)),
    }
}
