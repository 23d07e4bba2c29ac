//! What a thread does, as the end of a sentence about it.

use super::object::{lock, object, path, short};
use crate::text::{code, count};
use raddle_findings::{Access, Action, Object, Place, Role, Wait};

pub(crate) fn action(action: &Action) -> String {
    match action {
        Action::Accesses { access, bytes, atomic, vptr, object } => {
            accesses(*access, *bytes, *atomic, *vptr, object.as_ref())
        }
        Action::Frees { object } => {
            let freed = object.as_ref().map_or_else(|| "the memory".to_owned(), freed);
            format!("frees {freed}")
        }
        // Nobody holds the end of a thread.
        Action::Waits { wait: Wait::ThreadEnd, object: None, holder: Some(ending), .. } => {
            format!("waits for {} to end", path(ending))
        }
        Action::Waits { wait: wait @ Wait::ThreadEnd, object, operation, .. } => {
            waits(*wait, object.as_ref(), operation)
        }
        Action::Waits { wait, object, holder, operation } => {
            let held =
                holder.as_ref().map_or_else(String::new, |holder| format!(", held by {}", path(holder)));
            format!("{}{held}", waits(*wait, object.as_ref(), operation))
        }
        Action::Acquires { object, read } => {
            let shared = if *read { " for reading" } else { "" };
            format!("acquires {}{shared}", or_lock(object))
        }
        Action::Releases { object } => format!("releases {}", or_lock(object)),
        Action::Destroys { object } => format!("destroys {}", or_lock(object)),
        Action::SignalsNobody { object } => {
            let condition = object.as_ref().map_or_else(|| "a condition variable".to_owned(), short);
            format!("signals {condition} while no thread waits")
        }
        Action::IsLeaked => "ended without being joined or detached".to_owned(),
        Action::Crashes => "crashes".to_owned(),
        Action::IsAt => "was here when the process ended".to_owned(),
        Action::Plays { role, object } => plays(*role, object.as_ref()),
    }
}

/// Memory is freed as a whole block, wherever in it the other access is.
fn freed(found: &Object) -> String {
    match (&found.name, &found.place) {
        (None, Place::Heap { bytes, .. }) => format!("the {bytes}-byte heap block"),
        _ => object(found),
    }
}

fn or_lock(found: &Option<Object>) -> String {
    found.as_ref().map_or_else(|| "a lock".to_owned(), lock)
}

fn accesses(access: Access, bytes: u64, atomic: bool, vptr: bool, object: Option<&Object>) -> String {
    let verb = match access {
        Access::Read => "reads",
        Access::Write => "writes",
        Access::ReadWrite => "reads and writes",
        Access::Any => "accesses",
    };
    let atomically = if atomic { "atomically " } else { "" };
    let target = object.map(short);
    let what = match (vptr, bytes, target) {
        (true, _, Some(target)) => format!("the virtual table pointer of {target}"),
        (true, _, None) => "a virtual table pointer".to_owned(),
        (false, 0, Some(target)) => target,
        (false, 0, None) => "the memory".to_owned(),
        (false, bytes, Some(target)) => format!("{} of {target}", count(bytes, "byte")),
        (false, bytes, None) => count(bytes, "byte"),
    };
    format!("{atomically}{verb} {what}")
}

pub(super) fn waits(wait: Wait, object: Option<&Object>, operation: &str) -> String {
    let known = |otherwise: &str| object.map_or_else(|| otherwise.to_owned(), self::object);
    match wait {
        Wait::Lock => format!("waits for {}", object.map_or_else(|| "a lock".to_owned(), lock)),
        Wait::ReadLock => {
            format!("waits to read-lock {}", object.map_or_else(|| "a read-write lock".to_owned(), lock))
        }
        Wait::ThreadEnd => format!("waits for {} to end", known("another thread")),
        Wait::Signal => format!("waits for a signal on {}", known("a condition variable")),
        Wait::Semaphore => format!("waits for {}", known("a semaphore")),
        Wait::Barrier => format!("waits at {}", known("a barrier")),
        Wait::Initialiser => format!("waits for {} to finish", known("a one-time initialiser")),
        Wait::Futex => format!("waits on {}", known("a futex")),
        Wait::Other => match (operation, object) {
            ("", Some(object)) => format!("waits for {}", self::object(object)),
            ("", None) => "is blocked".to_owned(),
            (operation, Some(object)) => {
                format!("is blocked in {} on {}", code(operation), self::object(object))
            }
            (operation, None) => format!("is blocked in {}", code(operation)),
        },
    }
}

fn plays(role: Role, object: Option<&Object>) -> String {
    let known = |otherwise: &str| object.map_or_else(|| otherwise.to_owned(), short);
    match role {
        Role::BeginsSequence => "begins the call sequence".to_owned(),
        Role::EndsSequence => "ends the call sequence".to_owned(),
        Role::InterruptsSequence => "calls in between".to_owned(),
        Role::EndsInterruption => "ends the calls in between".to_owned(),
        Role::AccessesTogether => {
            format!("accesses {} in one critical section", known("the variables"))
        }
        Role::AccessesSome => {
            format!("accesses only {}", known("some of them"))
        }
        Role::AccessesOthers => format!("accesses {} in another critical section", known("the others")),
        Role::AccessesOne => format!("accesses {}", known("one of the variables")),
        Role::AccessesOther => format!("accesses {} at another time", known("the other variable")),
        Role::BeginsRegion => format!("begins the region that should be atomic{}", with(object)),
        Role::CommitsRegion => format!("commits the region that should be atomic{}", with(object)),
        Role::ClosesCycle => format!("depends on a step that depends on the region{}", with(object)),
        Role::EndsRegion => format!("ends the region that should be atomic{}", with(object)),
        Role::InsideRegion => format!("is inside the region that should be atomic{}", with(object)),
        Role::Interferes => format!("interferes{}", with(object)),
        Role::ComesFirst => format!("comes first{}", with(object)),
        Role::Violates => "makes the event that violates it".to_owned(),
        Role::ShouldComeFirst => format!("should come first{}", with(object)),
        Role::RepeatsItself => "repeats the same steps".to_owned(),
        Role::AcquiresAgain => {
            format!("acquires {} again", object.map_or_else(|| "the lock".to_owned(), lock))
        }
        Role::Unknown => "accessed the memory earlier; the place is no longer known".to_owned(),
    }
}

fn with(object: Option<&Object>) -> String {
    object.map_or_else(String::new, |object| format!(", accessing {}", short(object)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_thread_is_held_by_nobody() {
        let joins = |holder: Option<&str>| {
            let holder = holder.map(str::to_owned);
            action(&Action::Waits { wait: Wait::ThreadEnd, object: None, holder, operation: String::new() })
        };
        assert_eq!(joins(Some("1.2")), "waits for thread 1.2 to end");
        assert_eq!(joins(None), "waits for another thread to end");
    }
}
