//! What a thread may still do: the accesses that are reachable from a place in the code, on whichever branches, and the locks that
//! are surely held there.
//!
//! Wang, Yang, Gupta and Gopalakrishnan (*Dynamic Model Checking with Property Driven Pruning to Detect Race Conditions*, ATVA 2008)
//! tell the scheduler at each branch what the side not taken would have accessed, and under which locks (`mayUse` and the locks acquired and released). They
//! rewrite the source for that. Here it is read from machine code, once, and asked for by program counter: the rest of a thread
//! is everything that the control flow allows from there to its end, observed or not. That covers the sides not taken of all
//! branches that are still to come.
//!
//! Everything errs to one side. An address that is not a constant may be any; a lock that is not known was not
//! acquired; an unlock that is not known releases all; a call of something that is not known may access anything. Functions are looked
//! at without their callers, so the rest of a function that is called from several places is the rest of all of its callers.
//!
//! # Definition
//!
//! For each instruction the set of locks held on *all* paths from the beginning of the thread (a forward analysis, intersected where
//! paths meet; a function begins with what all of its callers hold, one that runs as a thread with nothing). A call of a function
//! that touches locks itself leaves none held: its effect is not summarised.

mod flow;

use crate::image::{FunctionIx, Image};
pub use flow::Address;
use flow::{Effect, Flow};
use std::collections::{BTreeMap, BTreeSet};

/// An access that a thread may make.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// What the hook calls its program counter: the address behind the call.
    pub pc: u64,
    pub address: Address,
    /// 0: not known.
    pub bytes: u32,
    pub reads: bool,
    pub writes: bool,
    pub atomic: bool,
    /// Surely held, in the numbering of the file.
    pub locks: BTreeSet<u64>,
}

/// What is known about a program.
pub struct Facts {
    flows: BTreeMap<FunctionIx, Flow>,
    /// Who calls a function, and where that goes on.
    callers: BTreeMap<FunctionIx, Vec<(FunctionIx, u64)>>,
    /// Locks held at each instruction of each function.
    held: BTreeMap<FunctionIx, BTreeMap<u64, BTreeSet<u64>>>,
    /// Somebody calls through a pointer, so nobody knows all callers.
    calls_through_pointers: bool,
    /// Where each function is.
    ranges: BTreeMap<u64, (u64, FunctionIx)>,
}

impl Facts {
    pub fn of(image: &Image) -> Facts {
        let flows = flow::all(image);
        let mut callers: BTreeMap<FunctionIx, Vec<(FunctionIx, u64)>> = BTreeMap::new();
        let mut calls_through_pointers = false;
        for (&ix, flow) in &flows {
            for (&at, step) in &flow.steps {
                match &step.effect {
                    Effect::Calls(callee) => callers.entry(*callee).or_default().push((ix, at)),
                    // Whoever is unknown may call back. What has no hooks is the runtime's, and the C library's start.
                    Effect::CallsAny | Effect::Unknown => calls_through_pointers |= flow.has_hooks,
                    _ => {}
                }
            }
        }
        let ranges = image
            .functions()
            .iter()
            .enumerate()
            .map(|(ix, function)| (function.start, (function.end, FunctionIx(ix as u32))))
            .collect();
        let mut facts = Facts { flows, callers, held: BTreeMap::new(), calls_through_pointers, ranges };
        facts.find_locks();
        facts
    }

    /// Does the function, or one that it calls, touch a lock?
    fn touches_locks(&self) -> BTreeSet<FunctionIx> {
        let own = |flow: &Flow| {
            flow.steps.values().any(|step| {
                matches!(
                    step.effect,
                    Effect::Acquires(_) | Effect::Releases(_) | Effect::CallsAny | Effect::Unknown
                )
            })
        };
        let mut touching: BTreeSet<FunctionIx> =
            self.flows.iter().filter(|(_, flow)| own(flow)).map(|(&ix, _)| ix).collect();
        let mut work: Vec<FunctionIx> = touching.iter().copied().collect();
        while let Some(callee) = work.pop() {
            for &(caller, _) in self.callers.get(&callee).map_or(&[][..], Vec::as_slice) {
                if touching.insert(caller) {
                    work.push(caller);
                }
            }
        }
        touching
    }

    fn find_locks(&mut self) {
        let touching = self.touches_locks();
        // Nobody knows of a function without callers who begins it; a thread does so with nothing.
        let mut begins: BTreeMap<FunctionIx, BTreeSet<u64>> = BTreeMap::new();
        let mut work: Vec<FunctionIx> = Vec::new();
        for (&ix, flow) in &self.flows {
            if flow.is_taken || !self.callers.contains_key(&ix) {
                begins.insert(ix, BTreeSet::new());
                work.push(ix);
            }
        }
        // Sets only shrink, so this ends.
        while let Some(ix) = work.pop() {
            let held = locks_in(&self.flows[&ix], &begins[&ix], &touching);
            for (at, step) in &self.flows[&ix].steps {
                let (Effect::Calls(callee), Some(now)) = (&step.effect, held.get(at)) else { continue };
                if !self.flows.contains_key(callee) {
                    continue;
                }
                let shrunk = match begins.get(callee) {
                    None => now.clone(),
                    Some(before) => before & now,
                };
                if begins.get(callee) != Some(&shrunk) {
                    begins.insert(*callee, shrunk);
                    work.push(*callee);
                }
            }
            self.held.insert(ix, held);
        }
    }

    fn function_of(&self, pc: u64) -> Option<FunctionIx> {
        let (_, &(end, ix)) = self.ranges.range(..=pc).next_back()?;
        (pc < end).then_some(ix)
    }

    /// Is the call before this place one that joins a thread and does not want its result?
    pub fn ignores_result(&self, pc: u64) -> bool {
        let flow = pc.checked_sub(1).and_then(|pc| self.function_of(pc)).and_then(|ix| self.flows.get(&ix));
        let call = flow.and_then(|flow| flow.steps.range(..pc).next_back());
        call.is_some_and(|(_, step)| step.effect == Effect::Joins { ignores_result: true })
    }

    /// What is known about the address that the hook before this place is given.
    pub fn address_at(&self, pc: u64) -> Option<Address> {
        let flow = pc.checked_sub(1).and_then(|pc| self.function_of(pc)).and_then(|ix| self.flows.get(&ix));
        let (_, step) = flow?.steps.range(..pc).next_back()?;
        match step.effect {
            Effect::Accesses { address, .. } => Some(address),
            _ => None,
        }
    }

    /// Everything that a thread may access from this place on, where it stands behind a call. None: nobody knows.
    pub fn rest(&self, pc: u64) -> Option<BTreeSet<Access>> {
        let mut found = BTreeSet::new();
        // A call may be a function's last instruction; the function is that of the call.
        let ix = self.function_of(pc.checked_sub(1)?)?;
        let mut work: Vec<(FunctionIx, u64)> = vec![(ix, pc)];
        let mut seen: BTreeSet<(FunctionIx, u64)> = BTreeSet::new();
        let mut returned: BTreeSet<FunctionIx> = BTreeSet::new();
        let mut entered: BTreeSet<FunctionIx> = BTreeSet::new();
        while let Some((ix, at)) = work.pop() {
            if !seen.insert((ix, at)) {
                continue;
            }
            let flow = self.flows.get(&ix)?;
            // Behind the last instruction there is nothing: it does not return.
            let Some(step) = flow.steps.get(&at) else { continue };
            let locks = || self.held.get(&ix).and_then(|held| held.get(&at)).cloned().unwrap_or_default();
            match &step.effect {
                Effect::Accesses { pc, address, bytes, reads, writes, atomic } => {
                    found.insert(Access {
                        pc: *pc,
                        address: *address,
                        bytes: *bytes,
                        reads: *reads,
                        writes: *writes,
                        atomic: *atomic,
                        locks: locks(),
                    });
                }
                Effect::Calls(callee) if entered.insert(*callee) => {
                    let start = self.flows.get(callee)?.start;
                    work.push((*callee, start));
                }
                Effect::CallsAny | Effect::Unknown => return None,
                Effect::Calls(_)
                | Effect::Acquires(_)
                | Effect::Releases(_)
                | Effect::Joins { .. }
                | Effect::Nothing => {}
            }
            if step.returns && returned.insert(ix) {
                // Entered from here or not: the rest of all callers is a superset.
                if self.calls_through_pointers && flow.is_taken {
                    return None;
                }
                for &(caller, call) in self.callers.get(&ix).map_or(&[][..], Vec::as_slice) {
                    let after = self.flows.get(&caller)?.steps.get(&call)?.next.clone();
                    work.extend(after.into_iter().map(|at| (caller, at)));
                }
            }
            work.extend(step.next.iter().map(|&at| (ix, at)));
        }
        Some(found)
    }
}

/// Locks held before each instruction of a function, on all paths.
fn locks_in(
    flow: &Flow,
    begin: &BTreeSet<u64>,
    touching: &BTreeSet<FunctionIx>,
) -> BTreeMap<u64, BTreeSet<u64>> {
    let mut held: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::from([(flow.start, begin.clone())]);
    let mut work = vec![flow.start];
    while let Some(at) = work.pop() {
        let (Some(step), Some(before)) = (flow.steps.get(&at), held.get(&at)) else { continue };
        let mut after = before.clone();
        match &step.effect {
            Effect::Acquires(Some(lock)) => {
                after.insert(*lock);
            }
            Effect::Releases(Some(lock)) => {
                after.remove(lock);
            }
            Effect::Releases(None) | Effect::CallsAny | Effect::Unknown => after.clear(),
            Effect::Calls(callee) if touching.contains(callee) => after.clear(),
            Effect::Calls(_)
            | Effect::Acquires(None)
            | Effect::Accesses { .. }
            | Effect::Joins { .. }
            | Effect::Nothing => {}
        }
        for &next in &step.next {
            let met = match held.get(&next) {
                None => after.clone(),
                Some(known) => known & &after,
            };
            if held.get(&next) != Some(&met) {
                held.insert(next, met);
                work.push(next);
            }
        }
    }
    held
}
