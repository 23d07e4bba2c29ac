//! Events at accesses to global variables: the compiler's hooks see the accesses, the plan says which bytes matter.
//!
//! A hook stands before its access. An event that is to come after it waits until the thread's next hook.

use super::hooks;
use super::plan;
use super::value::{Situation, Text};
use crate::thread::{Busy, Thread};
use crate::{run, segment};
use core::sync::atomic::{AtomicUsize, Ordering};
use raddle_wire::probe::access::{READS, WRITES};
use raddle_wire::region::option;

/// All ranges lie between these addresses; most accesses do not. Nothing is wanted while the second is 0.
static FIRST: AtomicUsize = AtomicUsize::new(0);
static LAST: AtomicUsize = AtomicUsize::new(0);

pub(super) fn start() {
    if plan::plan().is_some_and(|plan| plan.ranges() > 0) {
        run::wish(option::MEMORY | option::BEFORE_FIRST_FORK);
    }
}

/// A module of the plan was loaded: its variables have addresses now.
pub(super) fn placed() {
    let Some(plan) = plan::plan() else { return };
    let ranges = (0..plan.ranges()).filter_map(|ix| plan.range(ix));
    let placed = ranges.filter_map(|range| Some((plan::bias(range[0] as usize)?, range)));
    let (mut first, mut last) = (usize::MAX, 0);
    for (bias, range) in placed {
        first = first.min(bias + range[1] as usize);
        last = last.max(bias + range[2] as usize);
    }
    FIRST.store(first, Ordering::Relaxed);
    LAST.store(last, Ordering::Relaxed);
}

/// May an access to these bytes be an event?
#[inline]
pub fn concerns(address: usize, bytes: usize) -> bool {
    address < LAST.load(Ordering::Relaxed) && address + bytes > FIRST.load(Ordering::Relaxed)
}

/// Tells of an access that is about to be made.
#[cold]
#[inline(never)]
pub fn before(thread: &Thread, pc: u64, address: usize, bytes: usize, reads: bool, writes: bool) {
    let Some(plan) = plan::plan() else { return };
    let bits = if reads { READS } else { 0 } | if writes { WRITES } else { 0 };
    for range in (0..plan.ranges()).filter_map(|ix| plan.range(ix)) {
        let Some(bias) = plan::bias(range[0] as usize) else { continue };
        let (start, end) = (bias + range[1] as usize, bias + range[2] as usize);
        if range[3] & bits == 0 || address >= end || address + bytes <= start {
            continue;
        }
        let situation = Situation { address, bytes, ..Situation::default() };
        if let Some(event) = plan.event(range[4] as usize)
            && situation.meets(event)
        {
            let mut text = Text::new();
            situation.write(plan, event, &mut text);
            hooks::say(thread, pc, text.as_bytes());
        }
    }
}

/// After an access that was an event, a new segment begins: the next one to the same bytes must not be taken for a repetition.
pub fn after(thread: &Thread) {
    let _busy = Busy::enter(thread);
    segment::advance(thread);
}
