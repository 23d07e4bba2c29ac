//! Potential deadlocks from the lock dependencies of a run.

use super::finding::NAME;
use raddle_detect::lock_cycles::{Dependency, LockMode, cycles};
use raddle_findings::naming::Namer;
use raddle_findings::{Action, Basis, Detail, Finding, HeldLock, Kind, Object, Party, Thread, What};
use raddle_trace::report::{RawDependency, RawLockName};
use std::collections::BTreeMap;

/// Threads that do the same thing are looked at up to this number: more of them make no new cycle.
const THREADS_ALIKE_MAX: usize = 4;

/// The findings, and whether the search was cut short.
pub fn lock_orders(dependencies: &[RawDependency], namer: &mut Namer) -> (Vec<Finding>, bool) {
    let kept = without_crowds(dependencies);
    let mut numbers: BTreeMap<RawLockName, u64> = BTreeMap::new();
    let mut number = |lock: RawLockName| {
        let next = numbers.len() as u64;
        *numbers.entry(lock).or_insert(next)
    };
    let plain: Vec<Dependency> = kept
        .iter()
        .map(|raw| Dependency {
            thread: raw.thread,
            wanted: LockMode { lock: number(raw.wanted), read: raw.read },
            held: raw.held.iter().map(|held| LockMode { lock: number(held.lock), read: held.read }).collect(),
        })
        .collect();
    let found = cycles(&plain);
    let findings = found.cycles.iter().map(|cycle| {
        let parties: Vec<&RawDependency> = cycle.iter().map(|&ix| kept[ix]).collect();
        finding(&parties, namer)
    });
    (findings.collect(), !found.complete)
}

/// What dependencies of different threads have in common: lock and mode, place, locks held.
type Habit = (RawLockName, bool, u64, Vec<(RawLockName, bool)>);

fn without_crowds(dependencies: &[RawDependency]) -> Vec<&RawDependency> {
    let mut alike: BTreeMap<Habit, usize> = BTreeMap::new();
    dependencies
        .iter()
        .filter(|raw| {
            let mut held: Vec<(RawLockName, bool)> =
                raw.held.iter().map(|held| (held.lock, held.read)).collect();
            held.sort_unstable();
            let place = raw.frames.first().copied().unwrap_or(0);
            let count = alike.entry((raw.wanted, raw.read, place, held)).or_default();
            *count += 1;
            *count <= THREADS_ALIKE_MAX
        })
        .collect()
}

/// The spawn path of the thread, as every command calls it; its number where the path is not known.
fn path(raw: &RawDependency) -> String {
    if raw.thread != 0 && raw.ordinals.is_empty() {
        return format!("#{}", raw.thread);
    }
    let steps = raw.ordinals.iter().rev().map(|ordinal| format!(".{ordinal}"));
    format!("1{}", steps.collect::<String>())
}

fn finding(cycle: &[&RawDependency], namer: &mut Namer) -> Finding {
    let mutex = |namer: &mut Namer, address: u64| Object { what: What::Mutex, ..namer.data(address) };
    let mut parties = Vec::new();
    for raw in cycle {
        let stack = namer.stack(&raw.frames);
        let outermost = stack.iter().rev().find(|frame| !frame.library && frame.function.is_some());
        let path = path(raw);
        let thread = Thread { entry: outermost.and_then(|frame| frame.function.clone()), ..Thread::at(path) };
        let action = Action::Acquires { object: Some(mutex(namer, raw.wanted.object)), read: raw.read };
        let mut party = Party::new(thread, action, stack);
        for held in &raw.held {
            let lock = mutex(namer, held.lock.object);
            party.locks.push(HeldLock { lock, read: held.read, acquired: namer.frames(held.pc) });
        }
        parties.push(party);
    }
    Finding::new(Kind::LockOrder, NAME, Basis::rule(), parties, Detail::None)
}
