//! Weak behaviours: a load may read any store that C and C++11 allow, not only the last one.
//!
//! Machine and compiler show few of the behaviours that the language allows; a program that relies on the others not
//! happening is wrong all the same. Here the runtime keeps the last stores of each atomic location ([`super::stores`])
//! and chooses, by the run's one seed, from which of them a load reads. This is tsan11's technique (Lidbury's thesis,
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

use super::atomic::{Effect, SEQ_CST, Site, acquires, note, releases};
use super::clock::{Clock, Epoch, ObjectClock};
use super::state::State;
use super::stores::{self, Store};
use super::vars::{self, Locked};
use super::{slots, state};
use crate::spin::Spin;
use crate::thread::Thread;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use raddle_wire::Header;
use raddle_wire::region::{detect as setting, option, weak as choice};

static ON: AtomicBool = AtomicBool::new(false);
static CHOICE: AtomicU32 = AtomicU32::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);

/// What the threads' last `seq_cst` operations were (`S_F` and `S_W` of the thesis).
struct Global {
    fences: Clock,
    stores: Clock,
}

static GLOBAL: Spin<Global> = Spin::new(Global { fences: Clock::EMPTY, stores: Clock::EMPTY });

#[inline(always)]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

pub fn configure(header: &Header) {
    CHOICE.store(super::value_of(setting::WEAK_CHOICE) as u32, Ordering::Relaxed);
    SEED.store(crate::steer::server::seed(header), Ordering::Relaxed);
    ON.store(super::wants(option::WEAK), Ordering::Relaxed);
}

pub fn reset_after_fork() {
    ON.store(false, Ordering::Relaxed);
    GLOBAL.reset_after_fork();
    stores::reset_after_fork();
}

/// What the program asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    Load,
    Store,
    Update,
    /// Store if this value is read, with this order if not.
    Exchange {
        expected: u64,
        failure_mo: i32,
    },
}

/// What an operation did, from the one who performs it.
pub struct Outcome<T> {
    pub result: T,
    pub effect: Effect,
    pub mo: i32,
    pub written: u64,
}

/// Performs an operation on a store of the location's buffer. `action` is told the value that it reads, and then leaves
/// memory alone; or nothing, and then operates on memory.
pub fn perform<T>(
    thread: &mut Thread,
    site: &Site,
    wish: Wish,
    mo: i32,
    memory: impl FnOnce() -> u64,
    action: impl FnOnce(Option<u64>) -> Outcome<T>,
) -> T {
    let Some(state) = state::of(thread) else { return action(None).result };
    let Some(mut var) = vars::get_or_make(site.address) else { return action(None).result };
    state.refresh();
    if !var.buffer.prepare(memory(), site.log2) {
        return action(None).result;
    }
    let chosen = choose(thread, state, &mut var, wish, mo);
    // SAFETY: an element of the list, ours under the location's lock.
    let found = unsafe { &mut *chosen };
    let outcome = action(if found.is_last() { None } else { Some(found.value) });
    let mo = outcome.mo;
    if outcome.effect != Effect::Store {
        let to = if acquires(mo) { &mut state.clock } else { &mut state.fence_acquire };
        found.clock.acquire_into(to);
    }
    note(thread, site, outcome.effect);
    if outcome.effect == Effect::Load {
        if thread.sid != 0 {
            found.readers.first_at(thread.sid as u8, thread.epoch as Epoch);
        }
    } else {
        put(thread, state, &mut var, chosen, &outcome);
    }
    drop(var);
    if outcome.effect != Effect::Load && releases(mo) {
        slots::advance(thread);
    }
    outcome.result
}

/// Adds what was stored to the buffer, behind the store that was chosen.
fn put<T>(thread: &Thread, state: &mut State, var: &mut Locked, behind: *mut Store, outcome: &Outcome<T>) {
    let (me, sc, released) = (thread.index + 1, outcome.mo == SEQ_CST, releases(outcome.mo));
    let update = outcome.effect == Effect::Update;
    // SAFETY: an element of the list, ours under the location's lock.
    let before = unsafe { &mut *behind };
    let mut store = Store {
        thread: me,
        slot: thread.sid as u8,
        epoch: thread.epoch as Epoch,
        releases: released,
        update,
        sc,
        ..Store::initial(outcome.written)
    };
    // An acquiring update already knows what it found.
    let knows = acquires(outcome.mo) || before.clock.is_empty();
    if update && !(released && knows) {
        store.clock = before.clock.copy();
        if released {
            store.own.assign_from(&mut state.clock);
        }
    } else if !update && !released {
        store.clock = stores::sequence(var, behind, me);
        store.continues = !store.clock.is_empty();
    }
    if released {
        if store.clock.is_empty() {
            store.clock = stores::spare_clock(var, behind);
            store.clock.assign_from(&mut state.clock);
        } else {
            store.clock.release_from(&mut state.clock);
        }
    } else if !state.fence_release.empty {
        store.clock.release_from(&mut state.fence_release);
    }
    if sc {
        hide(state, var);
        if thread.sid != 0 {
            GLOBAL.lock().stores.set(thread.sid as u8, thread.epoch as Epoch);
        }
    }
    stores::insert(var, behind, store);
}

/// A `seq_cst` store hides what happens before it from `seq_cst` loads (rule 8).
fn hide(state: &State, var: &mut Locked) {
    let mut at = var.buffer.oldest;
    // SAFETY: null or an element of the list, ours under the location's lock.
    while let Some(store) = unsafe { at.as_mut() } {
        store.hidden = store.within(&state.clock);
        at = store.newer;
    }
}

const CANDIDATES_MAX: usize = stores::STORES_MAX as usize + 1;

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

fn choose(thread: &Thread, state: &mut State, var: &mut Locked, wish: Wish, mo: i32) -> *mut Store {
    let last = var.buffer.last;
    let reads_sc = match wish {
        Wish::Store => false,
        Wish::Exchange { failure_mo, .. } => mo == SEQ_CST || failure_mo == SEQ_CST,
        _ => mo == SEQ_CST,
    };
    if reads_sc {
        state.sc_read.join(&mut GLOBAL.lock().fences);
    }
    // A thread without a slot leaves no traces, so others could not see what it has read.
    if thread.sid == 0 {
        return last;
    }
    let mut candidates = Candidates::new();
    match wish {
        Wish::Load => readable(state, last, mo, |store| candidates.push(store)),
        Wish::Store => places(state, last, mo, |store| candidates.push(store)),
        Wish::Update => updatable(state, last, mo, |store| candidates.push(store)),
        Wish::Exchange { expected, failure_mo } => {
            updatable(state, last, mo, |store| {
                // SAFETY: an element of the list.
                if unsafe { (*store).value } == expected {
                    candidates.push(store);
                }
            });
            readable(state, last, failure_mo, |store| {
                // SAFETY: as above.
                if unsafe { (*store).value } != expected {
                    candidates.push(store);
                }
            });
        }
    }
    match candidates.count {
        0 => return last,
        1 => return candidates.get(0),
        _ => {}
    }
    let random = random(thread, state);
    // Stores seldom go elsewhere than to the end: only few behaviours need it.
    if wish == Wish::Store && random >> 62 != 0 {
        return last;
    }
    candidates.get(pick(candidates.count, random))
}

/// One of `count` places, 0 being the newest.
fn pick(count: usize, random: u64) -> usize {
    let steps = (random.trailing_ones() as usize).min(count - 1);
    match CHOICE.load(Ordering::Relaxed) {
        choice::UNIFORM => (random % count as u64) as usize,
        choice::NEWEST => steps,
        _ => count - 1 - steps,
    }
}

/// The next number of the run's one source of randomness that belongs to this thread: it does not depend on what other
/// threads do meanwhile.
fn random(thread: &Thread, state: &mut State) -> u64 {
    state.choices += 1;
    let name = if thread.path != 0 { thread.path } else { u64::from(thread.index) };
    let mut z = SEED
        .load(Ordering::Relaxed)
        .wrapping_mul(0xd134_2543_de82_ef95)
        .wrapping_add(name.rotate_left(17))
        .wrapping_add(state.choices.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The stores that a load may read.
fn readable(state: &State, last: *mut Store, mo: i32, mut each: impl FnMut(*mut Store)) {
    let mut at = last;
    let mut sc_found = false;
    // SAFETY: null or an element of the list, ours under the location's lock.
    while let Some(store) = unsafe { at.as_mut() } {
        let marked = store.sc || store.hidden;
        if mo != SEQ_CST || !marked || !sc_found {
            each(at);
        }
        sc_found |= marked;
        let cut = ordered(state, store)
            || store.sc && store.within(&state.sc_write)
            || mo == SEQ_CST && store.within(&state.sc_read);
        if cut {
            return;
        }
        at = store.older;
    }
}

/// The stores that a new store may be put behind.
fn places(state: &State, last: *mut Store, mo: i32, mut each: impl FnMut(*mut Store)) {
    let mut at = last;
    let mut newer_forbids = false;
    // SAFETY: null or an element of the list, ours under the location's lock.
    while let Some(store) = unsafe { at.as_mut() } {
        if !newer_forbids {
            each(at);
        }
        if ordered(state, store) || mo == SEQ_CST && store.sc {
            return;
        }
        newer_forbids = store.update || store.continues;
        at = store.older;
    }
}

/// The stores that a read-modify-write may read and be put behind.
fn updatable(state: &State, last: *mut Store, mo: i32, mut each: impl FnMut(*mut Store)) {
    let mut at = last;
    let mut sc_found = false;
    let mut newer_updates = false;
    // SAFETY: null or an element of the list, ours under the location's lock.
    while let Some(store) = unsafe { at.as_mut() } {
        let marked = store.sc || store.hidden;
        if !newer_updates && (mo != SEQ_CST || !marked || !sc_found) {
            each(at);
        }
        sc_found |= marked;
        let cut = ordered(state, store)
            || store.sc && (mo == SEQ_CST || store.within(&state.sc_write))
            || mo == SEQ_CST && store.within(&state.sc_read);
        if cut {
            return;
        }
        newer_updates = store.update;
        at = store.older;
    }
}

/// Nothing that the thread does next comes before this store: coherence, and rule 7.
fn ordered(state: &State, store: &mut Store) -> bool {
    store.within(&state.clock) || store.read_within(&state.clock) || store.within(&state.sc_fence)
}

/// A `seq_cst` fence: what others did before theirs may no longer be overlooked.
pub fn fence(thread: &Thread, state: &mut State) {
    state.refresh();
    let mut global = GLOBAL.lock();
    if thread.sid != 0 {
        global.fences.set(thread.sid as u8, thread.epoch as Epoch);
    }
    state.sc_fence.join(&mut global.fences);
    state.sc_write.join(&mut global.stores);
}

const _: () = assert!(size_of::<ObjectClock>() == 16);
