//! Contracts that correct runs keep.
//!
//! A module's contract is often written nowhere; its correct clients know it. Candidates are pairs of calls that a thread makes one
//! after the other on the same first value (or without values), `a(X) b(X)`, with a call `c(X)` that could spoil them. A candidate is
//! learnt if in the good runs
//!
//! * it was met at least [`SUPPORT`] times: an `a b` of one thread and a `c` of another on the same value, and
//! * the locks of the clients, and nothing else, kept every `c` out. Pairs that forks, joins or other
//!   synchronisation keep apart say nothing; one that nothing keeps apart says that the pair need not be atomic.
//!
//! The more such runs, the fewer wrong guesses; the result is a contract file to be read by a person ([`Learnt::contracts`] and its
//! `Display`). The idea of asking correct runs is that of AVIO (Lu et al. 2006), applied to calls.
//!
//! **Cost**: candidates are counted first, and the [`CANDIDATES_MAX`] most frequent pairs are checked as contracts are.

use crate::call_sequences::CallSequences;
use crate::calls::{CallPlaces, CallTracker, Edge, NameIx, Texts};
use crate::contract::{Call, Contract, Sequence};
use crate::step::Feed;
use raddle_trace::MemoryTrace;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Encounters in good runs that make a contract likely.
pub const SUPPORT: u64 = 3;

/// Pairs of calls that are looked at in a run.
pub const CANDIDATES_MAX: usize = 256;

/// What was seen of a candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    /// Kept apart by the clients' locks.
    kept: u64,
    violated: bool,
}

/// What good runs taught.
#[derive(Clone, Debug, Default)]
pub struct Learnt {
    candidates: BTreeMap<(Sequence, Sequence), Tally>,
}

/// The names of the calls that a trace announces, to be looked for.
pub fn announced(trace: &MemoryTrace) -> Vec<String> {
    let none = CallPlaces::find(&mut trace.source(), &[], &mut |_, _| None);
    none.map(|places| places.announced().iter().cloned().collect()).unwrap_or_default()
}

impl Learnt {
    /// Learns from a good run.
    pub fn add(&mut self, trace: &MemoryTrace, places: &Arc<CallPlaces>) {
        let contracts = candidates(trace, places);
        let mut tallies = vec![Tally::default(); contracts.len()];
        let mut sequences = CallSequences::new(&contracts, places.clone());
        sequences.learn(&trace.tables, &trace.events);
        let mut feed = Feed::new();
        let mut meet = |encounter: &crate::call_sequences::Encounter<'_>| {
            if !encounter.ordered_without_locks {
                let tally = &mut tallies[encounter.contract];
                tally.kept += u64::from(encounter.ordered);
                tally.violated |= !encounter.ordered;
            }
        };
        for event in &trace.events {
            sequences.step(&feed.step(event), &mut meet);
        }
        sequences.finish(&mut meet);
        for (contract, tally) in contracts.into_iter().zip(tallies) {
            let [spoiler] =
                <[Sequence; 1]>::try_from(contract.spoilers).expect("candidates have one spoiler");
            let known = self.candidates.entry((contract.target, spoiler)).or_default();
            known.kept += tally.kept;
            known.violated |= tally.violated;
        }
    }

    /// The contracts that all runs kept, one a target.
    pub fn contracts(&self) -> Vec<Contract> {
        let mut contracts: Vec<Contract> = Vec::new();
        for ((target, spoiler), tally) in &self.candidates {
            if tally.violated || tally.kept < SUPPORT {
                continue;
            }
            match contracts.last_mut() {
                Some(last) if last.target == *target => last.spoilers.push(spoiler.clone()),
                _ => {
                    let line = contracts.len() as u32 + 1;
                    contracts.push(Contract {
                        target: target.clone(),
                        spoilers: vec![spoiler.clone()],
                        line,
                    });
                }
            }
        }
        contracts
    }
}

/// Pairs of calls that some thread makes one after the other, with every call that could spoil them.
fn candidates(trace: &MemoryTrace, places: &Arc<CallPlaces>) -> Vec<Contract> {
    let mut pairs: FxHashMap<(NameIx, NameIx), u64> = FxHashMap::default();
    let mut with_value: FxHashMap<NameIx, bool> = FxHashMap::default();
    // The last outermost call of each thread with each first value, and the calls that go on.
    let mut last: FxHashMap<(u32, Option<String>), NameIx> = FxHashMap::default();
    let mut open: FxHashMap<u32, Vec<NameIx>> = FxHashMap::default();
    let (mut tracker, mut texts, mut feed) = (CallTracker::default(), Texts::default(), Feed::new());
    texts.learn(&trace.tables, &trace.events);
    let mut told = Vec::new();
    for event in &trace.events {
        let step = feed.step(event);
        tracker.before(places, &step, &mut told);
        tracker.announced(places, &texts, &step, &mut told);
        for told in told.drain(..) {
            let open = open.entry(told.site.thread.0).or_default();
            match told.edge {
                Edge::Return { name, .. } => {
                    let place = open.iter().rposition(|&called| called == name);
                    open.truncate(place.unwrap_or(open.len()));
                }
                Edge::Entry { name, values } => {
                    if open.is_empty() {
                        let value = values.first().map(|value| value.to_string());
                        *with_value.entry(name).or_insert(true) &= value.is_some();
                        if let Some(before) = last.insert((told.site.thread.0, value), name) {
                            *pairs.entry((before, name)).or_default() += 1;
                        }
                    }
                    open.push(name);
                }
            }
        }
    }
    let mut pairs: Vec<_> = pairs.into_iter().collect();
    pairs.sort_unstable_by_key(|&(pair, count)| (std::cmp::Reverse(count), pair));
    pairs.truncate(CANDIDATES_MAX);
    let mut names: Vec<NameIx> = with_value.keys().copied().collect();
    names.sort_unstable();
    let call = |name: NameIx, of_value: bool| Call {
        name: places.names()[name.0 as usize].clone(),
        parameters: if of_value { vec![Some("X".to_owned())] } else { Vec::new() },
    };
    let mut contracts = Vec::new();
    for ((a, b), _) in pairs {
        for &c in &names {
            let of_value = [a, b, c].iter().all(|name| with_value[name]);
            let target = vec![call(a, of_value), call(b, of_value)];
            contracts.push(Contract { target, spoilers: vec![vec![call(c, of_value)]], line: 0 });
        }
    }
    contracts
}
