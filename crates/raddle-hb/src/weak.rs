//! Weak behaviours: a load may read any store that C and C++11 allow, not only the last one.
//!
//! Machine and compiler show few of the behaviours that the language allows; a program that relies on the others not
//! happening is wrong all the same. Here the runtime keeps the last stores of each atomic location ([`crate::stores`])
//! and chooses from which of them a load reads. This is tsan11's technique (Lidbury's thesis,
//! §3.4 and fig. 3.22; Lidbury and Donaldson, POPL 2017).
//!
//! # What may be read
//!
//! Going back from the last store in modification order, a load may read everything up to and including the first store
//! of which one of these is true; all before that is cut off.
//!
//! | rule | the store |
//! | --- | --- |
//! | CoWR | happens before the load |
//! | CoRR | was read by a load that happens before this one |
//! | 7 | is sequenced before a `seq_cst` fence that precedes a `seq_cst` fence before the load |
//! | 6 | is `seq_cst` and precedes a `seq_cst` fence before the load |
//! | 5 | is sequenced before a `seq_cst` fence that precedes the load, which is `seq_cst` |
//!
//! By rule 8 a `seq_cst` load moreover reads none of the `seq_cst` stores but the last, and no store that happens before
//! that one. The last store of all may always be read, so there is always a choice.
//!
//! # Where a store goes
//!
//! In the thesis modification order is the order in which stores happen, which hides the behaviours that need it to be
//! another one (2+2W, R, S). Here a store may be put in before others that have already happened: behind every store
//! that happens before it (CoWW), that was read by a load that happens before it (CoRW), that fences order before it
//! (consistent-mo, 3), and, if it is `seq_cst`, behind every `seq_cst` store. It is not put between a read-modify-write and
//! the store that it read, nor into a release sequence that a plain store of the same thread has continued: somebody
//! may have synchronised through it. A read-modify-write reads the store that it is put behind.
//!
//! What this reaches is every execution of the model in which sequenced-before, reads-from and the order of `seq_cst`
//! operations together have no cycle, but for that last restriction (release sequences through plain stores are gone
//! from the language since C++20). In the thesis modification order has to agree with these as well. What stays out is
//! load buffering, reading what has not been written yet.
//!
//! # Memory
//!
//! The location in memory always holds the last store in modification order: a store that is put in before others
//! leaves it alone. So code that is not instrumented, and plain accesses, see a value that is allowed. If memory is found
//! to hold something else than the last store, a plain access or an overlapping atomic of another size has written
//! it; the location starts anew with that value, known to everybody. (If it wrote the same value, that is not noticed.)
//! Atomics of 16 bytes always read the last store.

use crate::domain::Domain;
use crate::host::Host;
use crate::location::Location;
use crate::memory_order::MemoryOrder;
use crate::release_sequence::Effect;
use crate::segment::Segment;
use crate::stores::{STORES_MAX, Store};
use crate::thread_clocks::ThreadClocks;
use core::mem::MaybeUninit;

/// What the program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Load,
    Store,
    Update,
    /// Store if this value is read, with this order if not.
    Exchange {
        expected: u64,
        failure: MemoryOrder,
    },
}

/// Who performs an operation: what it knows, its segment, its number.
pub struct Performer<'a> {
    pub clocks: &'a mut ThreadClocks,
    pub segment: Segment,
    pub thread: u32,
}

/// The store of a location that an operation reads, or is put behind.
pub struct Chosen<'l> {
    location: &'l mut Location,
    /// An element of the location's list.
    store: *mut Store,
}

impl Location {
    /// Chooses a store for an operation on this location, of which memory holds `value` and which has `1 << log2` bytes.
    /// `pick` says which of two or more candidates, 0 being the newest. None: there is no memory for a buffer, the
    /// operation is to be done on memory alone.
    pub fn choose<H: Host>(
        &mut self,
        domain: &Domain<H>,
        performer: &mut Performer<'_>,
        (value, log2): (u64, u8),
        wish: Wish,
        order: MemoryOrder,
        pick: impl FnOnce(usize) -> usize,
    ) -> Option<Chosen<'_>> {
        let clocks = &mut *performer.clocks;
        clocks.refresh(&domain.generations);
        if !self.buffer.prepare(domain, (value, log2), &mut self.clock) {
            return None;
        }
        let last = self.buffer.last;
        let reads_sc = match wish {
            Wish::Store => false,
            Wish::Exchange { failure, .. } => order == MemoryOrder::SeqCst || failure == MemoryOrder::SeqCst,
            Wish::Load | Wish::Update => order == MemoryOrder::SeqCst,
        };
        if reads_sc {
            clocks.sc_read.join(&domain.generations, &mut domain.seq_cst.lock().fences);
        }
        // A thread without a slot leaves no traces, so others could not see what it has read.
        if performer.segment.is_none() {
            return Some(Chosen { location: self, store: last });
        }
        let mut candidates = Candidates::new();
        match wish {
            Wish::Load => readable(clocks, last, order, |store| candidates.push(store)),
            Wish::Store => places(clocks, last, order, |store| candidates.push(store)),
            Wish::Update => updatable(clocks, last, order, |store| candidates.push(store)),
            Wish::Exchange { expected, failure } => {
                updatable(clocks, last, order, |store| {
                    // SAFETY: an element of the list.
                    if unsafe { (*store).value } == expected {
                        candidates.push(store);
                    }
                });
                readable(clocks, last, failure, |store| {
                    // SAFETY: as above.
                    if unsafe { (*store).value } != expected {
                        candidates.push(store);
                    }
                });
            }
        }
        let store = match candidates.count {
            0 => last,
            1 => candidates.get(0),
            count => candidates.get(pick(count).min(count - 1)),
        };
        Some(Chosen { location: self, store })
    }
}

impl Chosen<'_> {
    fn found(&mut self) -> &mut Store {
        // SAFETY: an element of the list, ours under the location's lock.
        unsafe { &mut *self.store }
    }

    /// The value that is read; none: it is the last store, which is what memory holds.
    pub fn older_value(&mut self) -> Option<u64> {
        let found = self.found();
        if found.is_last() { None } else { Some(found.value) }
    }

    /// What reading the store means for the thread.
    pub fn read<H: Host>(&mut self, domain: &Domain<H>, clocks: &mut ThreadClocks, order: MemoryOrder) {
        let to = if order.acquires() { &mut clocks.clock } else { &mut clocks.fence_acquire };
        self.found().clock.acquire_into(domain, to);
    }

    /// The operation was a load, and nothing more: its thread has seen this store.
    pub fn note_reader<H: Host>(mut self, domain: &Domain<H>, segment: Segment) {
        if !segment.is_none() {
            self.found().readers.first_at(domain, segment.slot, segment.epoch);
        }
    }

    /// Adds what was stored to the buffer, behind the store that was chosen. The caller begins a new segment if the order
    /// releases.
    pub fn write<H: Host>(
        mut self,
        domain: &Domain<H>,
        performer: &mut Performer<'_>,
        written: u64,
        effect: Effect,
        order: MemoryOrder,
    ) {
        let Performer { clocks, segment, thread } = performer;
        let (me, sc, released) = (*thread + 1, order == MemoryOrder::SeqCst, order.releases());
        let update = effect == Effect::Update;
        let mut store = Store {
            thread: me,
            slot: segment.slot,
            epoch: segment.epoch,
            releases: released,
            update,
            sc,
            ..Store::initial(written)
        };
        // An acquiring update already knows what it found.
        let knows = order.acquires() || self.found().clock.is_empty();
        if update && !(released && knows) {
            store.clock = self.found().clock.copy(domain);
            if released {
                store.own.assign_from(domain, &mut clocks.clock);
            }
        } else if !update && !released {
            store.clock = self.location.sequence(domain, self.store, me);
            store.continues = !store.clock.is_empty();
        }
        if released {
            if store.clock.is_empty() {
                store.clock = self.location.spare_clock(domain, self.store);
                store.clock.assign_from(domain, &mut clocks.clock);
            } else {
                store.clock.release_from(domain, &mut clocks.clock);
            }
        } else if !clocks.fence_release.empty {
            store.clock.release_from(domain, &mut clocks.fence_release);
        }
        if sc {
            hide(clocks, self.location);
            if !segment.is_none() {
                let Segment { slot, epoch } = *segment;
                domain.seq_cst.lock().stores.set(&domain.generations, slot, epoch);
            }
        }
        // SAFETY: an element of the list. `spare_clock` lets go the oldest, but not this one.
        unsafe { self.location.insert(domain, self.store, store) };
    }
}

/// A `seq_cst` store hides what happens before it from `seq_cst` loads (rule 8).
fn hide(clocks: &ThreadClocks, location: &mut Location) {
    let mut at = location.buffer.oldest;
    // SAFETY: null or an element of the list, ours under the location's lock.
    while let Some(store) = unsafe { at.as_mut() } {
        store.hidden = store.within(&clocks.clock);
        at = store.newer;
    }
}

const CANDIDATES_MAX: usize = STORES_MAX as usize + 1;

/// Stores to choose from, the newest first.
struct Candidates {
    /// The first `count` are there. Clearing the others, of which there are many, would take longer than choosing.
    stores: [MaybeUninit<*mut Store>; CANDIDATES_MAX],
    count: usize,
}

impl Candidates {
    fn new() -> Candidates {
        Candidates { stores: [const { MaybeUninit::uninit() }; CANDIDATES_MAX], count: 0 }
    }

    fn push(&mut self, store: *mut Store) {
        if self.count < CANDIDATES_MAX {
            self.stores[self.count].write(store);
            self.count += 1;
        }
    }

    fn get(&self, ix: usize) -> *mut Store {
        assert!(ix < self.count);
        // SAFETY: pushed.
        unsafe { self.stores[ix].assume_init() }
    }
}

/// How a run chooses among stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// Each with the same probability.
    Uniform,
    /// The newest with probability 1/2, the one before it with 1/4, and so on.
    Newest,
    /// The other way round.
    Oldest,
}

/// The choices of a run: from its one seed, and for each thread by itself, so that a choice does not depend on what other
/// threads do meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Chooser {
    pub seed: u64,
    pub preference: Preference,
}

impl Chooser {
    /// One of `count` candidates (two or more), 0 being the newest: the `nth` choice of the thread with this name.
    pub fn pick(&self, name: u64, nth: u64, wish: Wish, count: usize) -> usize {
        let random = self.random(name, nth);
        // Stores seldom go elsewhere than to the end: only few behaviours need it.
        if wish == Wish::Store && random >> 62 != 0 {
            return 0;
        }
        let steps = (random.trailing_ones() as usize).min(count - 1);
        match self.preference {
            Preference::Uniform => (random % count as u64) as usize,
            Preference::Newest => steps,
            Preference::Oldest => count - 1 - steps,
        }
    }

    fn random(&self, name: u64, nth: u64) -> u64 {
        let mut z = self
            .seed
            .wrapping_mul(0xd134_2543_de82_ef95)
            .wrapping_add(name.rotate_left(17))
            .wrapping_add(nth.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// The stores that a load may read.
fn readable(clocks: &ThreadClocks, last: *mut Store, order: MemoryOrder, mut each: impl FnMut(*mut Store)) {
    let mut at = last;
    let mut sc_found = false;
    // SAFETY: null or an element of the list, ours under the location's lock.
    while let Some(store) = unsafe { at.as_mut() } {
        let marked = store.sc || store.hidden;
        if order != MemoryOrder::SeqCst || !marked || !sc_found {
            each(at);
        }
        sc_found |= marked;
        let cut = ordered(clocks, store)
            || store.sc && store.within(&clocks.sc_write)
            || order == MemoryOrder::SeqCst && store.within(&clocks.sc_read);
        if cut {
            return;
        }
        at = store.older;
    }
}

/// The stores that a new store may be put behind.
fn places(clocks: &ThreadClocks, last: *mut Store, order: MemoryOrder, mut each: impl FnMut(*mut Store)) {
    let mut at = last;
    let mut newer_forbids = false;
    // SAFETY: null or an element of the list, ours under the location's lock.
    while let Some(store) = unsafe { at.as_mut() } {
        if !newer_forbids {
            each(at);
        }
        if ordered(clocks, store) || order == MemoryOrder::SeqCst && store.sc {
            return;
        }
        newer_forbids = store.update || store.continues;
        at = store.older;
    }
}

/// The stores that a read-modify-write may read and be put behind.
fn updatable(clocks: &ThreadClocks, last: *mut Store, order: MemoryOrder, mut each: impl FnMut(*mut Store)) {
    let mut at = last;
    let mut sc_found = false;
    let mut newer_updates = false;
    // SAFETY: null or an element of the list, ours under the location's lock.
    while let Some(store) = unsafe { at.as_mut() } {
        let marked = store.sc || store.hidden;
        if !newer_updates && (order != MemoryOrder::SeqCst || !marked || !sc_found) {
            each(at);
        }
        sc_found |= marked;
        let cut = ordered(clocks, store)
            || store.sc && (order == MemoryOrder::SeqCst || store.within(&clocks.sc_write))
            || order == MemoryOrder::SeqCst && store.within(&clocks.sc_read);
        if cut {
            return;
        }
        newer_updates = store.update;
        at = store.older;
    }
}

/// Nothing that the thread does next comes before this store: coherence, and rule 7.
fn ordered(clocks: &ThreadClocks, store: &mut Store) -> bool {
    store.within(&clocks.clock) || store.read_within(&clocks.clock) || store.within(&clocks.sc_fence)
}

/// A `seq_cst` fence: what others did before theirs may no longer be overlooked.
pub(crate) fn fence<H: Host>(clocks: &mut ThreadClocks, domain: &Domain<H>, segment: Segment) {
    clocks.refresh(&domain.generations);
    let mut global = domain.seq_cst.lock();
    if !segment.is_none() {
        global.fences.set(&domain.generations, segment.slot, segment.epoch);
    }
    clocks.sc_fence.join(&domain.generations, &mut global.fences);
    clocks.sc_write.join(&domain.generations, &mut global.stores);
}
