//! `noise`: the threads run free, but some operations are preceded or followed by a sleep or a yield.
//!
//! Edelstein, Farchi, Nir, Ratsaby and Ur, *Multithreaded Java program test generation* (IBM Systems Journal 2002,
//! ConTest), and the survey by Lourenço, Fiedor, Křena and Vojnar, §8. Noise does not decide who goes next; it makes
//! the unusual orders of a free run more usual, at the full speed of a free run and with real parallelism.
//!
//! Whether there is noise at an operation depends on the run's seed, on the thread's spawn path and on the number of
//! the operation in its thread, and on nothing else: the same seed puts the same noise at the same places. The order
//! that results is still the system's.
//!
//! Parameters (`raddle_wire::region::noise`): probability in thousandths, longest sleep in microseconds (a strength of 0
//! yields), before or after operations or both, which operations, and which places in the code (in the blob).
//!
//! What noise does is one of four heuristics, of ConTest and of Křena, Letko, Tzoref, Ur and Vojnar, *Healing Data Races On-The-Fly* and ANaConDA: a sleep or a yield; *busy
//! waiting*, which keeps the processor; *halting one thread*, which the seed chooses, for as long as others get on; and a *barrier*, at which threads
//! wait for each other, so that they go on at the same time. Any of them can keep to the operations on some of the variables, which the seed chooses too.
//!
//! Deviation: of ConTest's noise, moving locks is not here.

use crate::real;
use crate::steer::schedule;
use crate::thread::Thread;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use raddle_wire::region::{BLOB_OFFSET, noise as parameter};
use raddle_wire::{Header, SyncOp, step};

static ON: AtomicBool = AtomicBool::new(false);
static SEED: AtomicU64 = AtomicU64::new(0);
/// Stretches of code with noise, by where they lie in this process; none: everywhere.
static RANGES: [[AtomicUsize; 2]; parameter::RANGES_MAX] =
    [const { [const { AtomicUsize::new(0) }; 2] }; parameter::RANGES_MAX];
static RANGE_COUNT: AtomicUsize = AtomicUsize::new(0);
static PARAMETERS: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];
/// Chances that threads have come to: others get on while it grows.
static CHANCES: AtomicU64 = AtomicU64::new(0);
/// Not 0: a thread waits at the barrier.
static WAITING: AtomicU32 = AtomicU32::new(0);

fn parameter(at: usize) -> u64 {
    PARAMETERS[at].load(Ordering::Relaxed)
}

/// Before or after an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Before,
    After,
}

#[inline]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

pub fn start(header: &'static Header) {
    SEED.store(crate::run::seed(header), Ordering::Relaxed);
    for (to, &from) in PARAMETERS.iter().zip(&header.parameters) {
        to.store(from, Ordering::Relaxed);
    }
    read_ranges(header);
    ON.store(true, Ordering::Relaxed);
}

fn read_ranges(header: &'static Header) {
    let words = (core::ptr::from_ref(header) as usize + BLOB_OFFSET) as *const u64;
    let total = header.blob_bytes as usize / 8;
    // SAFETY: reads inside the mapped blob only.
    let word = |at: usize| if at < total { unsafe { words.add(at).read_volatile() } } else { 0 };
    let count = (word(0) as usize).min(parameter::RANGES_MAX).min(total / parameter::RANGE_WORDS);
    for (i, range) in RANGES[..count].iter().enumerate() {
        let at = 1 + i * parameter::RANGE_WORDS;
        let bias = schedule::module_bias(header, word(at + 2));
        range[0].store(bias + word(at) as usize, Ordering::Relaxed);
        range[1].store(bias + word(at + 1) as usize, Ordering::Relaxed);
    }
    RANGE_COUNT.store(count, Ordering::Relaxed);
}

/// May there be noise at this place? A program counter is a return address: the call lies just before it.
fn is_wanted(pc: u64) -> bool {
    let count = RANGE_COUNT.load(Ordering::Relaxed);
    let call = (pc as usize).wrapping_sub(1);
    let inside = |[start, end]: &[AtomicUsize; 2]| {
        (start.load(Ordering::Relaxed)..end.load(Ordering::Relaxed)).contains(&call)
    };
    count == 0 || RANGES[..count].iter().any(inside)
}

/// Operations whose event is written after they have happened; of the others it is written before.
fn acquires(kind: u8) -> bool {
    matches!(
        kind,
        step::START
            | step::JOIN
            | step::LOCK
            | step::READ_LOCK
            | step::RELOCK
            | step::WAKE
            | step::BARRIER_EXIT
            | step::SEM_WAIT
            | step::ONCE_PASSED
            | step::FUTEX_WAIT
            | step::ACQUIRE
    )
}

/// The event of an operation is written now: just after an acquiring operation, just before a releasing one.
#[cold]
pub fn event(thread: &Thread, pc: u64, op: SyncOp, object: usize, argument: u64, moment: Moment) {
    let kind = step::of(op, argument);
    if kind != step::NONE && acquires(kind) == (moment == Moment::After) {
        strike(thread, pc, kind, object, moment);
    }
}

/// The other side of a releasing operation: it has been performed.
#[cold]
pub fn released(thread: &Thread, pc: u64, op: SyncOp, object: usize, argument: u64) {
    let kind = step::of(op, argument);
    if kind != step::NONE && !acquires(kind) {
        strike(thread, pc, kind, object, Moment::After);
    }
}

/// A chance for noise.
#[cold]
pub fn strike(thread: &Thread, pc: u64, kind: u8, object: usize, moment: Moment) {
    CHANCES.fetch_add(1, Ordering::Relaxed);
    let wanted = if moment == Moment::Before { parameter::BEFORE } else { parameter::AFTER };
    let kinds = parameter(parameter::KINDS);
    if parameter(parameter::PLACE) & wanted == 0 || (kinds != 0 && kinds >> kind & 1 == 0) || !is_wanted(pc) {
        return;
    }
    let seed = SEED.load(Ordering::Relaxed);
    // Addresses differ from run to run; the place in the code and the low bits of the object do not.
    let variable = mix(seed ^ mix(object as u64 & 0xfff));
    if parameter(parameter::ONE_VARIABLE) != 0 && !variable.is_multiple_of(parameter::VARIABLES) {
        return;
    }
    let ordinal = u64::from(thread.turns.steps()) << 1 | u64::from(moment == Moment::After);
    let draw = mix(seed ^ mix(thread.turns.path.get()) ^ mix(ordinal.wrapping_add(1)));
    if draw % 1000 >= parameter(parameter::PER_MILLE) {
        return;
    }
    let longest = parameter(parameter::STRENGTH_US);
    if longest == 0 {
        return real::yield_now();
    }
    let length = 1 + (draw >> 20) % longest;
    match parameter(parameter::HOW) {
        parameter::BUSY => busy(length),
        parameter::HALT => halt(thread, seed, length),
        parameter::MEET => meet(length),
        _ => real::sleep_us(length),
    }
}

/// Rounds of a loop in a microsecond, about.
const ROUNDS_US: u64 = 200;

fn busy(us: u64) {
    for _ in 0..us * ROUNDS_US {
        core::hint::spin_loop();
    }
}

/// Threads of which one is halted.
const VICTIMS: u64 = 3;
/// So often the halted thread looks whether others still get on.
const LOOKS: u32 = 50;

fn halt(thread: &Thread, seed: u64, us: u64) {
    if !mix(seed ^ mix(thread.turns.path.get() ^ 1)).is_multiple_of(VICTIMS) {
        return;
    }
    for _ in 0..LOOKS {
        let before = CHANCES.load(Ordering::Relaxed);
        real::sleep_us(us);
        if CHANCES.load(Ordering::Relaxed) == before {
            return;
        }
    }
}

/// The first to come waits for the second, and not for long.
fn meet(us: u64) {
    if WAITING.swap(1, Ordering::AcqRel) != 0 {
        WAITING.store(0, Ordering::Release);
        return;
    }
    for _ in 0..us.div_ceil(20).max(1) {
        real::sleep_us(20);
        if WAITING.load(Ordering::Acquire) == 0 {
            return;
        }
    }
    WAITING.store(0, Ordering::Release);
}

fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
