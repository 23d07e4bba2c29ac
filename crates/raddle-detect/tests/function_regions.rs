//! Function regions against their definition: one activation of a chosen function, from entry to exit.

mod common;

use common::{cases, run};
use raddle_detect::Feed;
use raddle_detect::detectors::aerodrome::Aerodrome;
use raddle_detect::detectors::velodrome::Velodrome;
use raddle_detect::region::{FunctionPlaces, RegionTracker, Regions};
use raddle_trace::generate::Rng;
use raddle_trace::{
    AccessFlags, Addr, ContextIx, Event, Location, LocationIx, LockFlags, MemoryTrace, ObjectId, Op, ThreadIx,
};
use std::sync::Arc;

/// Places of a function.
const PLACES: u32 = 4;

/// Programs whose functions are numbers: function `f` has the places `10 f ..`.
#[derive(Default)]
struct Program {
    trace: MemoryTrace,
    threads: Vec<Stack>,
    /// The activation of the outermost chosen function at each event.
    regions: Vec<Option<usize>>,
    activations: usize,
}

/// The calls of a thread: where each was made, which function it called, and a number for the activation.
#[derive(Clone, Default)]
struct Stack {
    calls: Vec<(LocationIx, u32, usize)>,
    kept: usize,
}

impl Program {
    fn place(&mut self, function: u32, number: u32) -> LocationIx {
        self.trace.tables.intern_location(Location::Foreign(10 * function + number))
    }

    fn stack(&mut self, thread: usize) -> &mut Stack {
        while self.threads.len() <= thread {
            self.threads.push(Stack::default());
            if self.threads.len() > 1 {
                self.trace.tables.add_thread(Some(ThreadIx::MAIN));
            }
        }
        &mut self.threads[thread]
    }

    fn top(&mut self, thread: usize) -> u32 {
        self.stack(thread).calls.last().map_or(0, |call| call.1)
    }

    fn call(&mut self, thread: usize, from: u32, function: u32) {
        let caller = self.top(thread);
        let place = self.place(caller, from);
        self.activations += 1;
        let activation = self.activations;
        self.stack(thread).calls.push((place, function, activation));
    }

    fn leave(&mut self, thread: usize) {
        let stack = self.stack(thread);
        stack.calls.pop();
        stack.kept = stack.kept.min(stack.calls.len());
    }

    fn event(&mut self, thread: usize, place: u32, op: Op, chosen: &[u32]) {
        let top = self.top(thread);
        let location = self.place(top, place);
        let stack = self.stack(thread).clone();
        let context = stack
            .calls
            .iter()
            .fold(ContextIx::ROOT, |context, call| self.trace.tables.intern_context(context, call.0));
        self.stack(thread).kept = stack.calls.len();
        let thread = ThreadIx(thread as u32);
        let kept_calls = stack.kept as u32;
        self.trace.events.push(Event { thread, location, context, kept_calls, op });
        let outermost = stack.calls.iter().find(|(_, function, _)| chosen.contains(function));
        self.regions.push(outermost.map(|call| call.2));
    }

    fn functions(&self, chosen: &[u32]) -> Regions {
        let places = FunctionPlaces::find(
            &mut self.trace.source(),
            &mut |tables, location| matches!(tables.location(location), Location::Foreign(number) if chosen.contains(&(number / 10))),
        );
        Regions::Functions(Arc::new(places.unwrap()))
    }
}

#[test]
fn a_region_is_an_activation() {
    let (mut again, mut inside_itself) = (0, 0);
    for seed in 0..cases(300) {
        let mut rng = Rng::new(seed);
        let chosen = [2, 3];
        let mut program = Program::default();
        for _ in 0..120 {
            let thread = rng.below(2) as usize;
            let depth = program.stack(thread).calls.len();
            match rng.below(6) {
                0 | 1 if depth < 5 => {
                    let (from, function) = (rng.below(2), 1 + rng.below(4));
                    inside_itself += u32::from(program.top(thread) == function && function == 2);
                    program.call(thread, from, function);
                }
                2 | 3 if depth > 0 => program.leave(thread),
                _ => {
                    let place = rng.below(PLACES);
                    program.event(thread, place, Op::Yield, &chosen);
                }
            }
        }
        let mut tracker = RegionTracker::new(program.functions(&chosen));
        let mut feed = Feed::new();
        let mut last: [Option<usize>; 2] = [None; 2];
        for (event, &region) in program.trace.events.iter().zip(&program.regions) {
            let place = tracker.step(&feed.step(event));
            let before = std::mem::replace(&mut last[event.thread.index()], region);
            let case = format!("seed {seed}, {event:?}");
            assert_eq!(place.inside, region.is_some(), "{case}");
            assert_eq!(place.begins, region.is_some() && region != before, "{case}");
            assert_eq!(place.ended_before, before.is_some() && region != before, "{case}");
            again += u32::from(before.is_some() && region.is_some() && before != region);
        }
    }
    assert!(again > 100 && inside_itself > 100, "{again} calls back to back, {inside_itself} recursive ones");
}

/// `incr` is one critical section. Two threads call it by turns, each always from the same place.
#[test]
fn calls_one_after_the_other_are_not_one_region() {
    let (lock, addr, size) = (ObjectId(1), Addr(8), 8);
    let (flags, access) = (LockFlags::default(), AccessFlags::default());
    let section = [
        Op::Lock { lock, flags },
        Op::Read { addr, size, flags: access },
        Op::Write { addr, size, flags: access },
        Op::Unlock { lock, flags },
    ];
    // Whether a function that calls `incr` twice is chosen instead.
    for (chosen, violated) in [([2], false), ([1], true)] {
        let mut program = Program::default();
        program.stack(1);
        program.event(0, 0, Op::Fork { child: ThreadIx(1) }, &[]);
        for thread in [0, 1] {
            program.call(thread, 0, 1);
        }
        for turn in 0..4 {
            program.call(turn % 2, 0, 2);
            for (place, &op) in section.iter().enumerate() {
                program.event(turn % 2, place as u32, op, &chosen);
            }
            program.leave(turn % 2);
        }
        let regions = program.functions(&chosen);
        let mut velodrome = Velodrome::new(regions.clone());
        run(&program.trace, &mut velodrome);
        assert_eq!(!velodrome.violations().is_empty(), violated, "{chosen:?}");
        let mut aerodrome = Aerodrome::new(regions);
        run(&program.trace, &mut aerodrome);
        assert_eq!(!aerodrome.violations().is_empty(), violated, "{chosen:?}");
    }
}
