//! Which parts of a thread's run are meant to be atomic.
//!
//! * *marked*: between `RADDLE_ATOMIC_BEGIN` and `RADDLE_ATOMIC_END` (STD: `begin`, `end`);
//! * *critical sections*: from the outermost acquisition to the release of the last lock;
//! * *functions*: an activation of one of the chosen functions, from its entry to its exit, with all that it calls. The
//!   instrumentation tells entries and exits; places are chosen by the caller, who knows the program's symbols
//!   ([`FunctionPlaces`]). Two calls one after the other are two regions, even if they come from the same place; a
//!   chosen function inside another one, or inside itself, is part of the outermost one. A function that the compiler
//!   put into its caller (inlined) has neither entry nor exit: its code belongs to the caller.
//!
//! Nested regions are part of the outermost one. What is outside any region is atomic by itself, one event at a time.

use crate::step::{Step, Sync};
use raddle_trace::{ContextIx, Event, EventSource, LocationIx, Op, Tables, TextIx, TraceError, ops_about};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub enum Regions {
    #[default]
    Marked,
    CriticalSections,
    /// Where one of the functions is active.
    Functions(Arc<FunctionPlaces>),
}

/// The places of a trace in which one of the chosen functions is active: code of the function itself, and contexts in
/// which it has called something.
#[derive(Clone, Debug, Default)]
pub struct FunctionPlaces {
    pub locations: FxHashSet<LocationIx>,
    /// For each context the number of calls that lead to the outermost chosen function that is active in it.
    pub contexts: FxHashMap<ContextIx, u32>,
    /// Calls of each context in which a location of the function itself may stand.
    depths: FxHashMap<ContextIx, u32>,
}

impl FunctionPlaces {
    /// Reads a trace once to find all places; `wanted` says whether a place lies in one of the functions.
    pub fn find(
        source: &mut dyn EventSource,
        wanted: &mut dyn FnMut(&Tables, LocationIx) -> bool,
    ) -> Result<FunctionPlaces, TraceError> {
        let (mut locations, mut seen) = (FxHashSet::default(), FxHashSet::default());
        let mut batch = Vec::new();
        loop {
            source.next_batch(&mut batch)?;
            if batch.is_empty() {
                break;
            }
            locations.extend(batch.iter().map(|event| event.location));
            seen.extend(batch.iter().map(|event| event.context));
        }
        let tables = source.tables();
        locations.retain(|&location| wanted(tables, location));
        let (mut contexts, mut depths) = (FxHashMap::default(), FxHashMap::default());
        for context in seen {
            // The call with n calls before it was made by the function to which n calls lead.
            let calls = tables.stack(context);
            depths.insert(context, calls.len() as u32);
            if let Some(outermost) = calls.iter().rev().position(|&call| wanted(tables, call)) {
                contexts.insert(context, outermost as u32);
            }
        }
        Ok(FunctionPlaces { locations, contexts, depths })
    }

    /// How many calls lead to the outermost chosen function that is active at an event.
    fn level(&self, event: &Event) -> Option<u32> {
        let inside =
            || self.locations.contains(&event.location).then(|| self.depths.get(&event.context).copied());
        self.contexts.get(&event.context).copied().or_else(|| inside().flatten())
    }
}

/// How a step lies to the region of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// A region begins just before this step.
    pub begins: bool,
    /// The step is inside a region.
    pub inside: bool,
    /// The region ends just after this step.
    pub ends: bool,
    /// A function's region ended between the thread's last step and this one.
    pub ended_before: bool,
}

#[derive(Clone, Debug, Default)]
struct Actor {
    depth: u32,
    name: TextIx,
}

/// Follows the regions of all threads.
#[derive(Clone, Debug, Default)]
pub struct RegionTracker {
    regions: Regions,
    actors: Vec<Actor>,
}

impl RegionTracker {
    pub fn new(regions: Regions) -> RegionTracker {
        RegionTracker { regions, actors: Vec::new() }
    }

    /// Name of the thread's current region, 0 if it has none.
    pub fn name(&self, step: &Step<'_>) -> TextIx {
        self.actors[step.thread().index()].name
    }

    pub fn step(&mut self, step: &Step<'_>) -> Place {
        let thread = step.thread().index();
        if self.actors.len() <= thread {
            self.actors.resize(thread + 1, Actor::default());
        }
        let actor = &mut self.actors[thread];
        let was_inside = actor.depth > 0;
        let mut place = Place { begins: false, inside: was_inside, ends: false, ended_before: false };
        match &self.regions {
            Regions::Marked => match step.event.op {
                Op::AtomicBegin { name } => {
                    if !was_inside {
                        actor.name = name;
                    }
                    actor.depth += 1;
                    (place.begins, place.inside) = (!was_inside, true);
                }
                Op::AtomicEnd { .. } => {
                    actor.depth = actor.depth.saturating_sub(1);
                    place.ends = was_inside && actor.depth == 0;
                }
                Op::ProcessFork { .. }
                | Op::ProcessExec { .. }
                | Op::ProcessExit { .. }
                | Op::Yield
                | ops_about!(
                    Memory, Thread, Lock, Condition, Barrier, Semaphore, Once, Futex, Annotated, Signal,
                    Channel, Life
                ) => {}
            },
            Regions::CriticalSections => match step.sync {
                Sync::Acquire { .. } => {
                    actor.depth += 1;
                    (place.begins, place.inside) = (!was_inside, true);
                }
                Sync::Release { .. } => {
                    actor.depth = actor.depth.saturating_sub(1);
                    place.ends = was_inside && actor.depth == 0;
                }
                Sync::None
                | Sync::Fork(_)
                | Sync::Join(_)
                | Sync::Receive(_)
                | Sync::Send(_)
                | Sync::Exchange(_) => {}
            },
            Regions::Functions(places) => {
                let level = places.level(step.event);
                // The calls that lead to the function are those of the step before: it is the same activation.
                let goes_on = was_inside && level.is_some_and(|level| step.event.kept_calls >= level);
                actor.depth = u32::from(level.is_some());
                place.begins = level.is_some() && !goes_on;
                place.ended_before = was_inside && !goes_on;
                place.inside = level.is_some();
            }
        }
        place
    }
}
