//! Atomic operations and fences.
//!
//! While they are observed, an operation and its sequence number happen together under the lock of its address
//! ([`crate::stripe`]), so that the order of the trace is the order in memory: every load has read the last store
//! before it. The operation itself is always sequentially consistent on the machine; the order that the program asked
//! for is what is recorded.

use crate::detect::weak::{Outcome, Wish};
use crate::probe::globals;
use crate::steer::noise;
use crate::steer::{self, Detail, Request};
use crate::thread::{self, Busy, Thread};
use crate::{detect, export_with_pc, record, run, segment, stripe};
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
use raddle_hb::MemoryOrder;
use raddle_wire::record::atomic as wire;
use raddle_wire::step;

const RELAXED: i32 = 0;
const RELEASE: i32 = 3;
const SEQ_CST: i32 = 5;

/// Memory orders come in the low bits; gcc adds hints for hardware lock elision above them.
fn order(mo: i32) -> i32 {
    mo & 0x7fff
}

fn memory_order(mo: i32) -> MemoryOrder {
    MemoryOrder::from_c(order(mo))
}

fn releases(mo: i32) -> bool {
    (RELEASE..=SEQ_CST).contains(&order(mo))
}

/// Integers that the machine can access atomically.
trait Word: Copy + PartialEq {
    const LOG2: u8;
    unsafe fn load(at: *mut Self) -> Self;
    unsafe fn store(at: *mut Self, value: Self, mo: i32);
    unsafe fn swap(at: *mut Self, value: Self) -> Self;
    /// The value found; it equals `expected` exactly when `value` was stored.
    unsafe fn cas(at: *mut Self, expected: Self, value: Self) -> Self;
    fn widen(self) -> u128;
    /// The lowest bits of a value.
    fn narrow(value: u64) -> Self;

    unsafe fn update(at: *mut Self, f: impl Fn(Self) -> Self) -> (Self, Self) {
        // SAFETY: by the caller's contract.
        let mut old = unsafe { Self::load(at) };
        loop {
            let new = f(old);
            // SAFETY: by the caller's contract.
            let found = unsafe { Self::cas(at, old, new) };
            if found == old {
                return (old, new);
            }
            old = found;
        }
    }
}

macro_rules! word {
    ($int:ty, $atomic:ty, $log2:expr) => {
        impl Word for $int {
            const LOG2: u8 = $log2;
            unsafe fn load(at: *mut Self) -> Self {
                // SAFETY: the program accesses this address atomically itself.
                unsafe { <$atomic>::from_ptr(at) }.load(Ordering::SeqCst)
            }
            unsafe fn store(at: *mut Self, value: Self, mo: i32) {
                // SAFETY: as above.
                let cell = unsafe { <$atomic>::from_ptr(at) };
                match order(mo) {
                    RELAXED => cell.store(value, Ordering::Relaxed),
                    RELEASE => cell.store(value, Ordering::Release),
                    _ => cell.store(value, Ordering::SeqCst),
                }
            }
            unsafe fn swap(at: *mut Self, value: Self) -> Self {
                // SAFETY: as above.
                unsafe { <$atomic>::from_ptr(at) }.swap(value, Ordering::SeqCst)
            }
            unsafe fn cas(at: *mut Self, expected: Self, value: Self) -> Self {
                // SAFETY: as above.
                match unsafe { <$atomic>::from_ptr(at) }.compare_exchange(
                    expected,
                    value,
                    Ordering::SeqCst,
                    Ordering::SeqCst,
                ) {
                    Ok(found) | Err(found) => found,
                }
            }
            fn widen(self) -> u128 {
                self as u128
            }
            fn narrow(value: u64) -> Self {
                value as $int
            }
        }
    };
}

word!(u8, AtomicU8, 0);
word!(u16, AtomicU16, 1);
word!(u32, AtomicU32, 2);
word!(u64, AtomicU64, 3);

impl Word for u128 {
    const LOG2: u8 = 4;
    unsafe fn load(at: *mut Self) -> Self {
        // SAFETY: by contract; a compare-exchange of a value with itself is a load.
        unsafe { Self::cas(at, 0, 0) }
    }
    unsafe fn store(at: *mut Self, value: Self, _mo: i32) {
        // SAFETY: by contract.
        unsafe { Self::update(at, |_| value) };
    }
    unsafe fn swap(at: *mut Self, value: Self) -> Self {
        // SAFETY: by contract.
        unsafe { Self::update(at, |_| value) }.0
    }
    unsafe fn cas(at: *mut Self, expected: Self, value: Self) -> Self {
        // SAFETY: a program that uses 16-byte atomics was compiled for a processor that has the instruction.
        unsafe { crate::arch::compare_exchange_16(at, expected, value) }
    }
    fn widen(self) -> u128 {
        self
    }
    fn narrow(value: u64) -> Self {
        u128::from(value)
    }
}

/// What an operation did: which kind it turned out to be, what it read and what it wrote.
struct Done<T> {
    op: u8,
    mo: i32,
    read: u128,
    written: u128,
    result: T,
}

impl<T> Done<T> {
    fn effect(&self) -> detect::atomic::Effect {
        match self.op {
            wire::LOAD | wire::CAS_FAILED => detect::atomic::Effect::Load,
            wire::STORE => detect::atomic::Effect::Store,
            _ => detect::atomic::Effect::Update,
        }
    }
}

/// An operation on an atomic object.
struct Operation<W> {
    at: *mut W,
    wish: Wish,
    mo: i32,
}

impl<W> Operation<W> {
    fn kind(&self) -> u8 {
        match self.wish {
            Wish::Load => step::LOAD,
            Wish::Store => step::STORE,
            Wish::Update | Wish::Exchange { .. } => step::RMW,
        }
    }
}

/// `action` operates on memory, or is told the value to read and then leaves memory alone ([`detect::weak`]).
#[inline]
fn perform<W: Word, T>(operation: Operation<W>, action: impl FnOnce(Option<W>) -> Done<T>) -> T {
    let thread = thread::current();
    if !thread.is_observed() || thread.is_busy() || !run::atomics_observed() {
        return action(None).result;
    }
    let pc = thread.caller_pc();
    let (address, bytes) = (operation.at as usize, 1 << W::LOG2);
    if globals::concerns(address, bytes) {
        let (reads, writes) = (operation.wish != Wish::Store, operation.wish != Wish::Load);
        globals::before(thread, pc, address, bytes, reads, writes);
    }
    if !steer::on() {
        return match noise::on() {
            true => observe_with_noise(thread, pc, &operation, action),
            false => observe(thread, pc, &operation, action),
        };
    }
    let request = Request { kind: operation.kind(), object: operation.at as usize, pc };
    let mut action = Some(action);
    let mut act = |thread: &Thread| {
        let action = action.take().expect("an operation is performed once");
        let notes = steer::is_searched() && operation.kind() == step::RMW;
        observe(thread, pc, &operation, |older| {
            let done = action(older);
            if notes && (done.op == wire::CAS_FAILED || done.read == done.written) {
                steer::note_unchanged(thread);
            }
            done
        })
    };
    let detail = Detail { bytes: 1 << W::LOG2, ..Detail::NONE };
    match steer::visible_with(thread, request, detail, &mut act) {
        Some(result) => result,
        // A schedule cannot make an atomic operation fail.
        None => {
            let result = act(thread);
            steer::failed(thread);
            result
        }
    }
}

#[cold]
fn observe_with_noise<W: Word, T>(
    thread: &Thread,
    pc: u64,
    operation: &Operation<W>,
    action: impl FnOnce(Option<W>) -> Done<T>,
) -> T {
    let object = operation.at as usize;
    noise::strike(thread, pc, operation.kind(), object, noise::Moment::Before);
    let result = observe(thread, pc, operation, action);
    noise::strike(thread, pc, operation.kind(), object, noise::Moment::After);
    result
}

fn observe<W: Word, T>(
    thread: &Thread,
    pc: u64,
    operation: &Operation<W>,
    action: impl FnOnce(Option<W>) -> Done<T>,
) -> T {
    let _busy = Busy::enter(thread);
    let Operation { at, wish, mo } = *operation;
    let recorded = |action: &mut dyn FnMut() -> Done<T>| {
        let guard = stripe::lock(at as usize);
        let done = action();
        let sequence = record::next_sequence();
        drop(guard);
        (done, sequence)
    };
    let site = detect::atomic::Site { pc, address: at as usize, log2: W::LOG2 };
    if detect::weak::on() && W::LOG2 < 4 {
        thread.turns.count_step();
        // SAFETY: the program accesses this address atomically itself.
        let memory = || unsafe { W::load(at) }.widen() as u64;
        return detect::weak::perform(thread, &site, wish, memory_order(mo), memory, |value| {
            let done = action(value.map(W::narrow));
            let (effect, order, written) = (done.effect(), memory_order(done.mo), done.written as u64);
            Outcome { result: done.result, effect, order, written }
        });
    }
    if detect::alone() {
        thread.turns.count_step();
        return detect::atomic::perform(thread, &site, wish != Wish::Load, memory_order(mo), || {
            let done = action(None);
            let (effect, mo) = (done.effect(), memory_order(done.mo));
            (done.result, effect, mo)
        });
    }
    let mut action = Some(action);
    let mut once = || (action.take().expect("an operation is performed once"))(None);
    let (done, sequence) = if detect::on() {
        detect::atomic::perform(thread, &site, wish != Wish::Load, memory_order(mo), || {
            let (done, sequence) = if run::recording() { recorded(&mut once) } else { (once(), 0) };
            let (effect, mo) = (done.effect(), memory_order(done.mo));
            ((done, sequence), effect, mo)
        })
    } else {
        recorded(&mut once)
    };
    thread.turns.count_step();
    if run::recording() {
        record::atomic(
            thread,
            &record::AtomicEvent {
                pc,
                aux: W::LOG2 | done.op << wire::OP_SHIFT,
                address: at as usize,
                flags: order(done.mo) as u64 & wire::ORDER_MASK,
                sequence,
                read: done.read,
                written: done.written,
                wide: W::LOG2 == 4,
            },
        );
    }
    if releases(done.mo) && !detect::on() {
        segment::advance(thread);
    }
    done.result
}

fn load<W: Word>(at: *mut W, mo: i32) -> W {
    perform(Operation { at, wish: Wish::Load, mo }, |older| {
        // SAFETY: the program asked for this load.
        let value = older.unwrap_or_else(|| unsafe { W::load(at) });
        Done { op: wire::LOAD, mo, read: value.widen(), written: 0, result: value }
    })
}

fn store<W: Word>(at: *mut W, value: W, mo: i32) {
    perform(Operation { at, wish: Wish::Store, mo }, |older| {
        if older.is_none() {
            // SAFETY: the program asked for this store.
            unsafe { W::store(at, value, mo) };
        }
        Done { op: wire::STORE, mo, read: 0, written: value.widen(), result: () }
    })
}

fn exchange<W: Word>(at: *mut W, value: W, mo: i32) -> W {
    perform(Operation { at, wish: Wish::Update, mo }, |older| {
        // SAFETY: the program asked for this exchange.
        let old = older.unwrap_or_else(|| unsafe { W::swap(at, value) });
        Done { op: wire::EXCHANGE, mo, read: old.widen(), written: value.widen(), result: old }
    })
}

fn update<W: Word>(at: *mut W, op: u8, mo: i32, f: impl Fn(W) -> W) -> W {
    perform(Operation { at, wish: Wish::Update, mo }, |older| {
        let (old, new) = match older {
            Some(old) => (old, f(old)),
            // SAFETY: the program asked for this update.
            None => unsafe { W::update(at, f) },
        };
        Done { op, mo, read: old.widen(), written: new.widen(), result: old }
    })
}

fn cas<W: Word>(at: *mut W, expected: W, value: W, mo: i32, failure_mo: i32) -> W {
    let wish = Wish::Exchange { expected: expected.widen() as u64, failure: memory_order(failure_mo) };
    perform(Operation { at, wish, mo }, |older| {
        // SAFETY: the program asked for this compare-exchange.
        let found = older.unwrap_or_else(|| unsafe { W::cas(at, expected, value) });
        if found == expected {
            Done { op: wire::CAS, mo, read: found.widen(), written: value.widen(), result: found }
        } else {
            Done { op: wire::CAS_FAILED, mo: failure_mo, read: found.widen(), written: 0, result: found }
        }
    })
}

/// gcc's form: `expected` is updated on failure, the result says whether the value was stored.
fn cas_bool<W: Word>(at: *mut W, expected: *mut W, value: W, mo: i32, failure_mo: i32) -> i32 {
    // SAFETY: the program passes a valid pointer.
    let wanted = unsafe { *expected };
    let found = cas(at, wanted, value, mo, failure_mo);
    if found == wanted {
        return 1;
    }
    // SAFETY: as above.
    unsafe { *expected = found };
    0
}

macro_rules! atomics {
    ($int:ty, $module:ident, $load:ident, $store:ident, $exchange:ident, $add:ident, $sub:ident, $and:ident, $or:ident,
     $xor:ident, $nand:ident, $strong:ident, $weak:ident, $val:ident) => {
        mod $module {
            use super::wire;
            type T = $int;
            pub extern "C" fn load(at: *mut T, mo: i32) -> T {
                super::load(at, mo)
            }
            pub extern "C" fn store(at: *mut T, value: T, mo: i32) {
                super::store(at, value, mo)
            }
            pub extern "C" fn exchange(at: *mut T, value: T, mo: i32) -> T {
                super::exchange(at, value, mo)
            }
            pub extern "C" fn fetch_add(at: *mut T, value: T, mo: i32) -> T {
                super::update(at, wire::ADD, mo, |old: T| old.wrapping_add(value))
            }
            pub extern "C" fn fetch_sub(at: *mut T, value: T, mo: i32) -> T {
                super::update(at, wire::SUB, mo, |old: T| old.wrapping_sub(value))
            }
            pub extern "C" fn fetch_and(at: *mut T, value: T, mo: i32) -> T {
                super::update(at, wire::AND, mo, |old: T| old & value)
            }
            pub extern "C" fn fetch_or(at: *mut T, value: T, mo: i32) -> T {
                super::update(at, wire::OR, mo, |old: T| old | value)
            }
            pub extern "C" fn fetch_xor(at: *mut T, value: T, mo: i32) -> T {
                super::update(at, wire::XOR, mo, |old: T| old ^ value)
            }
            pub extern "C" fn fetch_nand(at: *mut T, value: T, mo: i32) -> T {
                super::update(at, wire::NAND, mo, |old: T| !(old & value))
            }
            pub extern "C" fn cas_bool(
                at: *mut T,
                expected: *mut T,
                value: T,
                mo: i32,
                failure_mo: i32,
            ) -> i32 {
                super::cas_bool(at, expected, value, mo, failure_mo)
            }
            pub extern "C" fn cas_val(at: *mut T, expected: T, value: T, mo: i32, failure_mo: i32) -> T {
                super::cas(at, expected, value, mo, failure_mo)
            }
        }
        export_with_pc! {
            $load => $module::load;
            $store => $module::store;
            $exchange => $module::exchange;
            $add => $module::fetch_add;
            $sub => $module::fetch_sub;
            $and => $module::fetch_and;
            $or => $module::fetch_or;
            $xor => $module::fetch_xor;
            $nand => $module::fetch_nand;
            $strong => $module::cas_bool;
            $weak => $module::cas_bool;
            $val => $module::cas_val;
        }
    };
}

atomics!(
    u8,
    a8,
    __tsan_atomic8_load,
    __tsan_atomic8_store,
    __tsan_atomic8_exchange,
    __tsan_atomic8_fetch_add,
    __tsan_atomic8_fetch_sub,
    __tsan_atomic8_fetch_and,
    __tsan_atomic8_fetch_or,
    __tsan_atomic8_fetch_xor,
    __tsan_atomic8_fetch_nand,
    __tsan_atomic8_compare_exchange_strong,
    __tsan_atomic8_compare_exchange_weak,
    __tsan_atomic8_compare_exchange_val
);
atomics!(
    u16,
    a16,
    __tsan_atomic16_load,
    __tsan_atomic16_store,
    __tsan_atomic16_exchange,
    __tsan_atomic16_fetch_add,
    __tsan_atomic16_fetch_sub,
    __tsan_atomic16_fetch_and,
    __tsan_atomic16_fetch_or,
    __tsan_atomic16_fetch_xor,
    __tsan_atomic16_fetch_nand,
    __tsan_atomic16_compare_exchange_strong,
    __tsan_atomic16_compare_exchange_weak,
    __tsan_atomic16_compare_exchange_val
);
atomics!(
    u32,
    a32,
    __tsan_atomic32_load,
    __tsan_atomic32_store,
    __tsan_atomic32_exchange,
    __tsan_atomic32_fetch_add,
    __tsan_atomic32_fetch_sub,
    __tsan_atomic32_fetch_and,
    __tsan_atomic32_fetch_or,
    __tsan_atomic32_fetch_xor,
    __tsan_atomic32_fetch_nand,
    __tsan_atomic32_compare_exchange_strong,
    __tsan_atomic32_compare_exchange_weak,
    __tsan_atomic32_compare_exchange_val
);
atomics!(
    u64,
    a64,
    __tsan_atomic64_load,
    __tsan_atomic64_store,
    __tsan_atomic64_exchange,
    __tsan_atomic64_fetch_add,
    __tsan_atomic64_fetch_sub,
    __tsan_atomic64_fetch_and,
    __tsan_atomic64_fetch_or,
    __tsan_atomic64_fetch_xor,
    __tsan_atomic64_fetch_nand,
    __tsan_atomic64_compare_exchange_strong,
    __tsan_atomic64_compare_exchange_weak,
    __tsan_atomic64_compare_exchange_val
);
atomics!(
    u128,
    a128,
    __tsan_atomic128_load,
    __tsan_atomic128_store,
    __tsan_atomic128_exchange,
    __tsan_atomic128_fetch_add,
    __tsan_atomic128_fetch_sub,
    __tsan_atomic128_fetch_and,
    __tsan_atomic128_fetch_or,
    __tsan_atomic128_fetch_xor,
    __tsan_atomic128_fetch_nand,
    __tsan_atomic128_compare_exchange_strong,
    __tsan_atomic128_compare_exchange_weak,
    __tsan_atomic128_compare_exchange_val
);

extern "C" fn thread_fence(mo: i32) {
    fence(Ordering::SeqCst);
    let thread = thread::current();
    if !thread.is_observed() || thread.is_busy() || !run::atomics_observed() {
        return;
    }
    let pc = thread.caller_pc();
    if steer::on() {
        let request = Request { kind: step::FENCE, object: 0, pc };
        steer::visible(thread, request, |thread| observe_fence(thread, pc, mo));
    } else {
        observe_fence(thread, pc, mo);
    }
}

fn observe_fence(thread: &Thread, pc: u64, mo: i32) {
    let _busy = Busy::enter(thread);
    thread.turns.count_step();
    if run::recording() {
        let event = record::AtomicEvent {
            pc,
            aux: wire::FENCE << wire::OP_SHIFT,
            address: 0,
            flags: order(mo) as u64 & wire::ORDER_MASK,
            sequence: record::next_sequence(),
            read: 0,
            written: 0,
            wide: false,
        };
        record::atomic(thread, &event);
    }
    if detect::on() {
        detect::atomic::fence(thread, memory_order(mo));
    } else if releases(mo) {
        segment::advance(thread);
    }
}

/// A signal fence orders a thread with its own handlers; between threads it is nothing.
extern "C" fn signal_fence(_mo: i32) {
    core::sync::atomic::compiler_fence(Ordering::SeqCst);
}

export_with_pc! {
    __tsan_atomic_thread_fence => thread_fence;
    __tsan_atomic_signal_fence => signal_fence;
}
