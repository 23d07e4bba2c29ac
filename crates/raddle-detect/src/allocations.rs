//! Which block of the heap an address belonged to at a moment of the trace.
//!
//! Memory is given out again and again, so the address of a report alone does not say which block it means, and a finding
//! that names the wrong allocation would have the wrong id too. All allocations are kept while the trace is read, and when the
//! reports are there, one walk backwards finds those that they mean ([`Allocations::keep`]); the rest is dropped.
//!
//! What is kept is small beside what detectors know about the variables in the blocks. If there are more than
//! [`ALLOCATIONS_MAX`], the older half is forgotten: its blocks lose their places of allocation.

use raddle_trace::{ContextIx, LocationIx, ThreadIx};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// One allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    pub addr: u64,
    pub bytes: u64,
    /// Place in the observed order.
    pub position: u64,
    pub thread: ThreadIx,
    pub location: LocationIx,
    pub context: ContextIx,
}

/// An address at a place of the observed order.
pub type Moment = (u64, u64);

/// Allocations that are kept while a trace is read: 160 MiB of them.
pub const ALLOCATIONS_MAX: usize = 4 << 20;

#[derive(Clone, Debug, Default)]
pub struct Allocations {
    /// In the observed order.
    list: Vec<Allocation>,
    kept: FxHashMap<Moment, Allocation>,
}

impl Allocations {
    pub fn push(&mut self, allocation: Allocation) {
        if self.list.len() >= ALLOCATIONS_MAX {
            self.list.drain(..ALLOCATIONS_MAX / 2);
        }
        self.list.push(allocation);
    }

    /// Looks up what is wanted, and forgets everything else.
    pub fn keep(&mut self, wanted: impl Iterator<Item = Moment>) {
        let mut open: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (addr, position) in wanted {
            let positions = open.entry(addr).or_default();
            if !positions.contains(&position) {
                positions.push(position);
            }
        }
        for allocation in std::mem::take(&mut self.list).into_iter().rev() {
            if open.is_empty() {
                break;
            }
            let end = allocation.addr.saturating_add(allocation.bytes);
            let mut done = Vec::new();
            for (&addr, positions) in open.range_mut(allocation.addr..end) {
                positions.retain(|&position| {
                    let meant = allocation.position <= position;
                    if meant {
                        self.kept.insert((addr, position), allocation);
                    }
                    !meant
                });
                if positions.is_empty() {
                    done.push(addr);
                }
            }
            done.iter().for_each(|addr| drop(open.remove(addr)));
        }
    }

    /// The block that was looked up.
    pub fn get(&self, moment: Moment) -> Option<&Allocation> {
        self.kept.get(&moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition: the last allocation before the moment that covers the address.
    fn naive(list: &[Allocation], (addr, position): Moment) -> Option<Allocation> {
        let covers = |a: &&Allocation| a.addr <= addr && addr - a.addr < a.bytes && a.position <= position;
        list.iter().rev().find(covers).copied()
    }

    proptest! {
        #[test]
        fn as_defined(
            blocks in prop::collection::vec((0u64..40, 0u64..12), 0..30),
            wanted in prop::collection::vec((0u64..50, 0u64..70), 0..20),
        ) {
            let list: Vec<Allocation> = blocks
                .iter()
                .enumerate()
                .map(|(number, &(addr, bytes))| Allocation {
                    addr,
                    bytes,
                    position: 2 * number as u64,
                    thread: ThreadIx::MAIN,
                    location: LocationIx(number as u32),
                    context: ContextIx::ROOT,
                })
                .collect();
            let mut allocations = Allocations { list: list.clone(), ..Allocations::default() };
            allocations.keep(wanted.iter().copied());
            for &moment in &wanted {
                prop_assert_eq!(allocations.get(moment).copied(), naive(&list, moment), "{:?}", moment);
            }
        }
    }
}
