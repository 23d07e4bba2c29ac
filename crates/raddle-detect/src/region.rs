//! Which parts of a thread's run are meant to be atomic.
//!
//! * *marked*: between `RADDLE_ATOMIC_BEGIN` and `RADDLE_ATOMIC_END` (STD: `begin`, `end`);
//! * *critical sections*: from the outermost acquisition to the release of the last lock;
//! * *functions*: while a call of one of the chosen functions is on the stack. Contexts are chosen by the caller, who
//!   knows the program's symbols ([`Regions::Functions`]).
//!
//! Nested regions are part of the outermost one. What is outside any region is atomic by itself, one event at a time.

use crate::step::{Step, Sync};
use raddle_trace::{ContextIx, Op, TextIx};
use rustc_hash::FxHashSet;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub enum Regions {
    #[default]
    Marked,
    CriticalSections,
    /// The contexts in which one of the functions is active.
    Functions(Arc<FxHashSet<ContextIx>>),
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
                _ => {}
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
                _ => {}
            },
            Regions::Functions(contexts) => {
                let now = contexts.contains(&step.event.context);
                actor.depth = u32::from(now);
                place.begins = now && !was_inside;
                place.ended_before = was_inside && !now;
                place.inside = now;
            }
        }
        place
    }
}
