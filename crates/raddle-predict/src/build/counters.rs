//! Reference counts: atomics whose values do not matter, but for one.
//!
//! `shared_ptr`, `Arc` and their like add one for every owner and take one away; who takes the last one destroys the object. The values
//! that the others read decide nothing, so these steps commute. As registers they would not: each reads what the one before wrote, and
//! prediction could reorder nothing around them.
//!
//! An address is a counter if all atomics on it, in one life of its memory, are read-modify-writes that change it by one, up or down, never
//! from zero, and at least once down. Its *last* step is the one that makes it zero; it needs all the others before it, in every reordering, so nobody
//! else ever finds himself the last. After it only its own thread may look (libraries do, to acquire what the others released).
//!
//! A lock built from read-modify-writes is none of these: it goes up from zero. A count that the program reads and decides by is none: it has loads.

use super::*;

/// What is known of an address before the program is built.
#[derive(Default)]
struct Use {
    is_other: bool,
    falls: bool,
    last: Option<(EventIx, ThreadIx)>,
}

/// Counters by their (moved) addresses.
#[derive(Default)]
pub(super) struct Counters {
    last: FxHashMap<u64, Option<EventIx>>,
    /// Steps so far, as what the last one needs.
    steps: FxHashMap<u64, Vec<Need>>,
}

impl Counters {
    /// One pass over the trace, with the lives of memory as the builder will see them.
    pub(super) fn of(events: &[Event]) -> Counters {
        let mut space = AddressSpace::default();
        let mut uses: FxHashMap<u64, Use> = FxHashMap::default();
        for (index, event) in events.iter().enumerate() {
            match event.op {
                Op::Alloc { addr, size } => space.allocate(addr, size),
                Op::Free { addr } => {
                    if space.size_of(addr).is_some() {
                        space.free(addr);
                    }
                }
                Op::Atomic { addr, size, kind, read, written, .. } => {
                    let known = uses.entry(space.translate(addr)).or_default();
                    let width = u32::from(size).saturating_mul(8).min(64);
                    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
                    let (up, down) = (read.wrapping_add(1) & mask, read.wrapping_sub(1) & mask);
                    let after_end = known.last.is_some();
                    match kind {
                        AtomicKind::Rmw if !after_end && read & mask != 0 && written & mask == up => {}
                        AtomicKind::Rmw if !after_end && read & mask != 0 && written & mask == down => {
                            known.falls = true;
                            if written & mask == 0 {
                                known.last = Some((EventIx(index as u32), event.thread));
                            }
                        }
                        AtomicKind::Load if known.last.is_some_and(|(_, thread)| thread == event.thread) => {}
                        AtomicKind::Load | AtomicKind::Store | AtomicKind::Rmw | AtomicKind::CasFailed => {
                            known.is_other = true;
                        }
                    }
                }
                ops_about!(
                    Nothing, Thread, Lock, Condition, Barrier, Semaphore, Once, Futex, Annotated, Signal,
                    Channel, Life
                )
                | Op::Read { .. }
                | Op::Write { .. }
                | Op::Fence { .. }
                | Op::Lost { .. } => {}
            }
        }
        let counters = uses.into_iter().filter(|(_, known)| known.falls && !known.is_other);
        let last = counters.map(|(addr, known)| (addr, known.last.map(|(event, _)| event))).collect();
        Counters { last, steps: FxHashMap::default() }
    }

    pub(super) fn has(&self, memory: u64) -> bool {
        self.last.contains_key(&memory)
    }
}

impl Builder<'_> {
    /// A step of a counter.
    pub(super) fn count(&mut self, ix: EventIx, thread: ThreadIx, memory: u64) {
        let pos = self.push(ix, thread, Action::Free, true);
        let steps = self.counters.steps.entry(memory).or_default();
        if self.counters.last[&memory] == Some(ix) {
            let others = std::mem::take(steps);
            self.needs.extend(
                others.into_iter().filter(|need| need.thread != thread).map(|need| (thread, pos, need)),
            );
        } else {
            // The latest step of a thread implies its earlier ones.
            steps.retain(|need| need.thread != thread);
            steps.push(Need { thread, pos: pos + 1 });
        }
    }
}
