//! Potential deadlocks from the lock dependencies of a run.

use super::finding::{CYCLE, NAME, stack};
use raddle_detect::lock_cycles::{Dependency, LockMode, cycles};
use raddle_findings::{Finding, Grade, HeldLock, Kind, Party};
use raddle_trace::report::{RawDependency, RawLockName};
use raddle_trace::symbols::Symbolizer;
use raddle_trace::tables::Module;
use std::collections::BTreeMap;

/// Threads that do the same thing are looked at up to this number: more of them make no new cycle.
const THREADS_ALIKE_MAX: usize = 4;

/// The findings, and whether the search was cut short.
pub fn lock_orders(dependencies: &[RawDependency], modules: &[Module]) -> (Vec<Finding>, bool) {
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
    let mut symbols = Symbolizer::new(modules);
    let findings = found.cycles.iter().map(|cycle| {
        let parties: Vec<&RawDependency> = cycle.iter().map(|&ix| kept[ix]).collect();
        finding(&parties, &mut symbols)
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

fn finding(cycle: &[&RawDependency], symbols: &mut Symbolizer) -> Finding {
    let parties = cycle.iter().map(|raw| Party {
        thread: if raw.thread == 0 { "1".to_owned() } else { format!("#{}", raw.thread) },
        action: format!("takes `{}`", symbols.describe(raw.wanted.object)),
        stack: stack(&raw.frames, symbols),
        locks: raw
            .held
            .iter()
            .map(|held| HeldLock {
                lock: symbols.describe(held.lock.object),
                acquired: stack(&[held.pc], symbols),
            })
            .collect(),
    });
    let parties: Vec<Party> = parties.collect();
    let mut finding = Finding::new(Kind::LockOrder, Grade::Predicted, NAME, CYCLE.to_owned(), parties);
    finding.objects = cycle.iter().map(|raw| symbols.describe(raw.wanted.object)).collect();
    finding
}
