//! `lockdep`: chains of the lock-dependency relation.
//!
//! **Definition** (Joshi, Park, Sen, Naik, *A randomized dynamic program analysis technique for detecting real
//! deadlocks*, PLDI 2009: iGoodlock; the survey's §6). The relation has an entry (thread, held locks, lock) for each
//! kind of acquisition. A *dependency chain* is a sequence of entries with different threads, each wanting a lock that
//! the next one holds, with nothing held in common. A chain whose last entry wants a lock that the first one holds is a
//! potential deadlock. Chains are computed length by length, each set from the one before: no search in a graph, at the
//! price of memory.
//!
//! **Complete** for the observed acquisitions up to [`super::goodlock::THREADS_MAX`] threads, **not sound**; finds the
//! lock cycles that [`super::goodlock`] finds. Grade *suspected*, kind *lock order*.
//!
//! **Deviations**: a chain starts with its smallest entry, so that each cycle is found once (the paper removes
//! duplicates by thread numbers, which is the same for cycles). Read-write locks as in `goodlock`. The number of chains
//! is limited.
//!
//! **Cost**: the number of chains.

use super::goodlock::{THREADS_MAX, cycle_key, learn_lock, requested, tell};
use crate::detector::{Detector, End};
use crate::lockgraph::{Ask, LockGraph};
use crate::report::{Remark, Report, Reports};
use crate::step::{LockIx, Step};
use raddle_findings::Kind;
use raddle_trace::ObjectId;
use rustc_hash::FxHashMap;

pub const NAME: &str = "lockdep";

/// Chains of one length that are kept.
const CHAINS_MAX: usize = 2_000_000;

#[derive(Clone, Debug, Default)]
pub struct Lockdep {
    relation: LockGraph,
    locks: FxHashMap<ObjectId, LockIx>,
}

impl Detector for Lockdep {
    fn step(&mut self, step: &Step<'_>) {
        if step.plain_access().is_some() {
            return;
        }
        learn_lock(&mut self.locks, step);
        self.relation.step(step, || requested(&self.locks, step));
    }

    fn finish(&mut self, end: &End<'_>) -> Vec<Report> {
        let asks = self.relation.asks();
        let mut reports = Reports::default();
        let mut chains: Vec<Vec<u32>> = (0..asks.len() as u32).map(|number| vec![number]).collect();
        let mut complete = true;
        for _ in 2..=THREADS_MAX {
            let mut longer = Vec::new();
            'chains: for chain in &chains {
                let last = &asks[*chain.last().expect("chains are not empty") as usize];
                for (number, next) in asks.iter().enumerate().skip(chain[0] as usize + 1) {
                    let fits = next.blocks(last) && chain.iter().all(|&c| asks[c as usize].coexists(next));
                    if !fits {
                        continue;
                    }
                    let mut chain = chain.clone();
                    chain.push(number as u32);
                    if asks[chain[0] as usize].blocks(next) {
                        let cycle: Vec<&Ask> = chain.iter().map(|&number| &asks[number as usize]).collect();
                        reports.add(cycle_key(&cycle), || tell(NAME, Kind::LockOrder, &cycle, end.names));
                    } else if longer.len() < CHAINS_MAX {
                        longer.push(chain);
                    } else {
                        complete = false;
                        break 'chains;
                    }
                }
            }
            chains = longer;
        }
        let mut list = reports.take();
        if !complete && let Some(last) = list.last_mut() {
            last.remarks.push(Remark::CyclesCut);
        }
        list
    }
}
