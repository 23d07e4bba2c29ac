//! Online detection: races are found while the program runs.
//!
//! This is the *observe: detect* setting of the runtime, ThreadSanitizer's job by tsan11's rules (Lidbury's thesis, §3).
//! Threads carry vector clocks ([`state`]) that synchronisation passes from one to the other through objects ([`vars`]);
//! atomics do so by their memory orders ([`atomic`]). Each access is compared with the last ones to the same bytes
//! ([`cells`]). Loads may read older stores where the rules allow it ([`weak`]). What is found is told with both stacks ([`history`], [`report`]).
//! The rules themselves are in [`raddle_hb`]; here is what ties them to a process: tables found by address, threads, reports.
//!
//! [`crate::observe`] calls in here, like the recorder: a primitive that emits events is detected with no further work.

pub mod atomic;
pub mod blocks;
pub mod cells;
pub mod crowds;
pub mod history;
pub mod locks;
pub mod marks;
pub mod misuse;
pub mod objects;
pub mod order;
mod owner;
pub mod program;
pub mod report;
pub mod slots;
pub mod state;
pub mod thread_table;
pub mod vars;
pub mod weak;

use crate::spin::Process;
use crate::thread::{Busy, Thread};
use crate::{message, run, shadow};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use locks::HeldLock;
use raddle_hb::Domain;
use raddle_wire::operations::ObjectKind;
use raddle_wire::record::lock as bits;
use raddle_wire::region::detect as setting;
use raddle_wire::report::kind;
use raddle_wire::{Effect, Header, Order, Outcome, SyncOp, region};

/// What all clocks of the process share.
pub static DOMAIN: Domain<Process> = Domain::new();

/// The run's settings: what `raddle` said, or what it answered to the program's own wishes.
static OPTIONS: AtomicU64 = AtomicU64::new(0);
static SETTINGS: [AtomicU64; setting::COUNT] = [const { AtomicU64::new(0) }; setting::COUNT];

/// Is online detection part of this run?
#[inline(always)]
pub fn on() -> bool {
    run::detecting()
}

/// Is online detection all that this run wants of plain accesses?
#[inline(always)]
pub fn alone() -> bool {
    run::only_detecting()
}

/// Is an option ([`region::option`]) wanted?
pub fn wants(option: u64) -> bool {
    OPTIONS.load(Ordering::Relaxed) & option != 0
}

/// The value of a setting ([`setting`]).
pub fn value_of(setting: usize) -> u64 {
    SETTINGS[setting].load(Ordering::Relaxed)
}

fn settle(header: &Header) {
    let answered = report::announce_defaults();
    let options = if answered { header.options_answered.load(Ordering::Acquire) } else { header.options };
    OPTIONS.store(options, Ordering::Relaxed);
    for (ix, cell) in SETTINGS.iter().enumerate() {
        let value =
            if answered { header.detect_answered[ix].load(Ordering::Acquire) } else { header.detect[ix] };
        cell.store(value, Ordering::Relaxed);
    }
}

/// `raddle` says that the program has too much memory: forgets the accesses so far, once for each time it says so. As when
/// slots start over ([`slots`]), that can hide a race and makes none up.
#[cold]
pub fn forget_if_asked() {
    static FORGOTTEN: AtomicU32 = AtomicU32::new(0);
    let Some(header) = run::header() else { return };
    let asked = header.forget.load(Ordering::Relaxed);
    if FORGOTTEN.swap(asked, Ordering::Relaxed) != asked {
        shadow::wipe();
    }
}

/// Reserves the tables. Called once, before the first thread begins.
pub fn configure(header: &Header) {
    if header.observe & region::observe::DETECT == 0 {
        return;
    }
    settle(header);
    let history_bits = value_of(setting::HISTORY_BITS);
    if history_bits != 0 {
        history::configure(1u32.checked_shl((history_bits as u32).saturating_sub(10)).unwrap_or(u32::MAX));
    }
    if !(vars::reserve() && blocks::reserve() && thread_table::reserve()) {
        message::fatal(format_args!(
            "cannot reserve 17 TiB of address space for the clocks of synchronisation objects; raise or remove `ulimit -v`"
        ));
    }
    weak::configure(header);
    let alone = header.observe & region::observe::RECORD == 0 && header.steer == region::steer::FREE;
    run::begin_detection(alone);
}

/// A thread structure is about to be used for a new thread.
pub fn prepare(thread: &Thread) -> bool {
    !on() || state::prepare(thread)
}

/// A thread is created: the child knows what its creator knows.
pub fn fork(parent: &Thread, child: &Thread, pc: u64) {
    if !on() {
        return;
    }
    let _busy = Busy::enter(parent);
    forget_if_asked();
    if let (Some(from), Some(to)) = (state::of(parent), state::of(child)) {
        from.children += 1;
        thread_table::created(parent, child.index(), from.children, pc);
        to.clocks.clock.copy_from(&DOMAIN.generations, &mut from.clocks.clock);
        slots::advance(parent);
    }
}

/// What one knows becomes known to the other; neither runs meanwhile.
pub fn hand_over(from: &Thread, to: &Thread) {
    if let (true, Some(giver), Some(taker)) = (on(), state::of(from), state::of(to)) {
        taker.clocks.clock.join(&DOMAIN.generations, &mut giver.clocks.clock);
        slots::advance(from);
    }
}

/// How long an annotated lock lasts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lasting {
    Unknown,
    /// It was created, and can be destroyed.
    FromCreation,
    /// From before the program's beginning.
    Always,
}

pub fn lasts(object: usize, how: Lasting) {
    if let Some(mut var) = vars::get_or_make(object) {
        var.lasting = how;
    }
}

pub fn lasting(object: usize) -> Lasting {
    vars::get(object).map_or(Lasting::Unknown, |var| var.lasting)
}

/// A thread has ended and was joined. The structure of the ended thread is still its own.
pub fn join(thread: &Thread, ended: Option<&Thread>) {
    let (true, Some(ended)) = (on(), ended) else { return };
    let _busy = Busy::enter(thread);
    if let (Some(to), Some(from)) = (state::of(thread), state::of(ended)) {
        to.clocks.clock.join(&DOMAIN.generations, &mut from.clocks.clock);
    }
}

/// The program ends: threads that nobody joined are told.
pub fn finish() {
    if on() && wants(region::option::THREAD_LEAKS) {
        crate::registry::for_each(misuse::leaked);
    }
}

/// A new thread's stack: what earlier threads did there is over.
///
/// glibc keeps a thread's descriptor at the top of its stack, with the thread-local variables just below it.
pub fn clear_stack(thread: &Thread) {
    if on() && thread.access.are_enabled() && thread.home.bytes() != 0 {
        // SAFETY: no arguments.
        let top = (unsafe { libc::pthread_self() } as usize + 1).next_multiple_of(4096);
        let start = top.saturating_sub(thread.home.bytes());
        shadow::clear(start, top - start);
        vars::forget_range(start, top - start);
    }
}

fn acquire(thread: &Thread, object: usize) {
    if let (Some(state), Some(mut var)) = (state::of(thread), vars::get(object)) {
        var.location.acquire(&DOMAIN, &mut state.clocks.clock);
    }
}

fn release(thread: &Thread, object: usize) {
    if let (Some(state), Some(mut var)) = (state::of(thread), vars::get_or_make(object)) {
        var.location.release(&DOMAIN, &mut state.clocks.clock);
        drop(var);
        slots::advance(thread);
    }
}

fn lock(thread: &Thread, pc: u64, object: usize, read: bool, argument: u64) {
    let Some(state) = state::of(thread) else { return };
    if argument & bits::NESTED != 0 {
        return;
    }
    if state.held.find(object).is_some() {
        if read {
            state.held.read_again(object);
        }
        return;
    }
    let mut serial = 0;
    if let Some(mut var) = vars::get_or_make(object) {
        var.location.acquire(&DOMAIN, &mut state.clocks.clock);
        if !read {
            var.location.acquire_from_readers(&DOMAIN, &mut state.clocks.clock);
            var.holder = thread.index() + 1;
        }
        serial = var.serial;
    }
    let taken = HeldLock {
        object,
        serial,
        read,
        again: 0,
        robust: argument & bits::ROBUST != 0,
        frames: locks::frames(thread, pc),
    };
    // Try and timed acquisitions do not wait for ever, so they close no cycle.
    if argument & (bits::TRY | bits::TIMED) == 0 && !state.held.as_slice().is_empty() {
        order::note(thread.index(), &taken, state.held.as_slice());
    }
    state.held.push(taken);
    history::lock(thread, pc, object, read);
}

/// A thread is about to wait for a lock.
fn request(thread: &Thread, pc: u64, object: usize, argument: u64) {
    let Some(state) = state::of(thread) else { return };
    let may_wait = argument & (bits::TRY | bits::TIMED | bits::RECURSIVE) == 0;
    if !may_wait || state.held.as_slice().is_empty() {
        return;
    }
    let read = argument & bits::READ != 0;
    if state.held.find(object).is_some_and(|held| !(held.read && read)) {
        return misuse::tell(thread, pc, kind::DOUBLE_LOCK, object);
    }
    // The program may never get the lock: the dependency is known already.
    let serial = vars::get_or_make(object).map_or(0, |var| var.serial);
    let wanted =
        HeldLock { object, serial, read, again: 0, robust: false, frames: locks::frames(thread, pc) };
    order::note(thread.index(), &wanted, state.held.as_slice());
}

/// An object begins its life. Where threads wait, one lives: they are lost.
fn create(thread: &Thread, pc: u64, op: SyncOp, object: usize, argument: u64) {
    if crowds::are_waiting(object) {
        misuse::tell(thread, pc, kind::CREATED_IN_USE, object);
    }
    if op == SyncOp::BarrierInit {
        crowds::make_barrier(object, argument);
    } else {
        vars::forget(object);
    }
}

fn destroy(thread: &Thread, pc: u64, object: usize) {
    // POSIX allows to destroy a condition as soon as all who wait on it have been woken; they need not have returned.
    let in_use = vars::get(object).is_some_and(|var| var.holder != 0 || var.waiters > var.signalled);
    if in_use {
        misuse::tell(thread, pc, kind::DESTROYED_HELD, object);
    }
    vars::forget(object);
}

/// A thread ends. What it holds is passed on as if it gave it back: whoever is told that the holder of a robust lock has died comes
/// after the holder.
fn ends(thread: &Thread) {
    let Some(state) = state::of(thread) else { return };
    let mut released = false;
    for held in state.held.as_slice() {
        if let Some(mut var) = vars::get(held.object).filter(|_| !held.read) {
            var.location.release(&DOMAIN, &mut state.clocks.clock);
            released = true;
        }
        if !held.robust {
            misuse::tell_from(thread, &held.frames, kind::ENDED_HOLDING, held.object);
        }
    }
    if released {
        slots::advance(thread);
    }
}

fn unlock(thread: &Thread, pc: u64, object: usize, argument: u64) {
    if argument & bits::NESTED != 0 {
        return;
    }
    let Some(state) = state::of(thread) else { return };
    if state.held.still_read(object) {
        return;
    }
    let held = state.held.remove(object);
    // A lock that is given back by somebody else than its holder still orders the two.
    let read = held.map_or(argument & bits::READ != 0, |held| held.read);
    if held.is_some() {
        history::unlock(thread, object);
    } else {
        let what = if read { kind::READ_UNLOCK_NOT_HELD } else { kind::UNLOCK_NOT_HELD };
        misuse::tell(thread, pc, what, object);
    }
    if let Some(mut var) = vars::get_or_make(object) {
        if read {
            var.location.release_by_reader(&DOMAIN, &mut state.clocks.clock);
        } else {
            var.location.release(&DOMAIN, &mut state.clocks.clock);
            var.holder = 0;
        }
        drop(var);
        slots::advance(thread);
    }
}

/// A synchronisation operation, as [`crate::observe::sync`] hears of it.
pub fn sync(thread: &Thread, pc: u64, op: SyncOp, object: usize, argument: u64) {
    let done = op.outcome() == Outcome::Done;
    objects::touch(thread, pc, op, object, argument);
    match op.effect() {
        Effect::Locks if done => lock(thread, pc, object, false, argument),
        Effect::LocksShared if done => lock(thread, pc, object, true, argument),
        Effect::Unlocks => unlock(thread, pc, object, argument),
        // Only locks have an order that a wait can close to a cycle.
        Effect::Asks if op.object_kind() == ObjectKind::Lock => request(thread, pc, object, argument),
        Effect::BeginsWait => crowds::begin_wait(thread, object),
        Effect::IsWoken => crowds::end_wait(thread, done),
        Effect::Signals => {
            crowds::signal(object, 1);
            release(thread, object);
        }
        Effect::SignalsAll => {
            crowds::signal(object, u32::MAX);
            release(thread, object);
        }
        Effect::Enters => crowds::enter_barrier(thread, object),
        Effect::Leaves => crowds::leave_barrier(thread),
        Effect::Destroys if op == SyncOp::BarrierDestroy => crowds::destroy_barrier(thread, pc, object),
        Effect::Destroys => destroy(thread, pc, object),
        Effect::Creates => create(thread, pc, op, object, argument),
        Effect::Excuses => report::benign(object, argument as usize),
        // Threads pass their clocks on themselves: `fork`, `join`.
        Effect::Ends => ends(thread),
        Effect::Begins | Effect::Forks | Effect::Joins => {}
        Effect::Locks
        | Effect::LocksShared
        | Effect::Asks
        | Effect::Takes
        | Effect::Gives
        | Effect::OnceBegins
        | Effect::OnceEnds
        | Effect::OncePasses
        | Effect::Sends
        | Effect::Receives
        | Effect::Nothing => match op.order() {
            Order::Acquires => acquire(thread, object),
            Order::Releases => release(thread, object),
            Order::None => {}
        },
    }
}

/// Memory was allocated: a new object, of which nobody knows anything.
pub fn alloc(thread: &Thread, pc: u64, address: usize, bytes: usize) {
    blocks::note(thread, pc, address, bytes);
    anew(address, bytes);
    if thread.access.are_enabled() {
        cells::alloc(thread, pc, address, bytes);
    }
}

/// Memory is another object now, of which nobody knows anything.
pub fn anew(address: usize, bytes: usize) {
    // All that a later release will mark, which may be more than was asked for.
    let bytes = usable(address).max(bytes);
    shadow::clear(address, bytes);
    vars::forget_range(address, bytes);
}

/// Released blocks larger than this go back to the system, which may put something else there.
const STAYS_BYTES_MAX: usize = 1 << 16;

fn usable(address: usize) -> usize {
    // SAFETY: the program passes what an allocation function returned.
    unsafe { crate::real::usable_size(address) }
}

/// Memory is about to be released.
pub fn free(thread: &Thread, pc: u64, address: usize) {
    if thread.access.are_enabled() {
        let bytes = usable(address);
        cells::free(thread, pc, address, bytes, bytes <= STAYS_BYTES_MAX);
        vars::forget_range(address, bytes);
    }
}

/// Released blocks up to this size wait before the allocator may hand them out again.
const WAITING_BYTES_MAX: usize = 1024;

/// A block is released: which one to give to the allocator in its place. A block that is used again at once is another object, and who still
/// uses the old one is not caught; so small ones wait until their thread has released some more. 0: none.
pub fn quarantine(thread: &Thread, address: usize) -> usize {
    let Some(state) = state::of(thread).filter(|_| address != 0 && thread.access.are_enabled()) else {
        return address;
    };
    if usable(address) > WAITING_BYTES_MAX {
        return address;
    }
    let at = state.released as usize % state.waiting.len();
    state.released = state.released.wrapping_add(1);
    core::mem::replace(&mut state.waiting[at], address)
}

/// Memory is unmapped, or something is mapped over it.
pub fn unmapped(address: usize, bytes: usize) {
    shadow::clear(address, bytes);
    vars::forget_range(address, bytes);
}

pub fn reset_after_fork() {
    DOMAIN.reset_after_fork();
    slots::reset_after_fork();
    vars::reset_after_fork();
    report::reset_after_fork();
    weak::reset_after_fork();
}
