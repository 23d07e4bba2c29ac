//! The run that this process is part of: the shared region, and what `raddle` wants of the program.
//!
//! Everybody asks here, on frequent paths too, so each question is one relaxed load. `init` answers them, once, before the program
//! begins; afterwards the answers only change to *no more* ([`stop`]).

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use raddle_wire::region::{Header, observe, option};

static HEADER: AtomicUsize = AtomicUsize::new(0);
/// Which image of this process this is: a process that becomes another program by `exec` has several.
static IMAGE: AtomicU32 = AtomicU32::new(0);
/// Options that probes need beside those of the region.
static WISHES: AtomicU64 = AtomicU64::new(0);
/// The program is observed or steered.
static OBSERVING: AtomicBool = AtomicBool::new(false);
static RECORDING: AtomicBool = AtomicBool::new(false);
static DETECTING: AtomicBool = AtomicBool::new(false);
static ONLY_DETECTING: AtomicBool = AtomicBool::new(false);
static ACCESSES: AtomicBool = AtomicBool::new(false);
static KEEP_REDUNDANT: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicBool = AtomicBool::new(false);
/// A second thread exists or has existed.
static THREADED: AtomicBool = AtomicBool::new(false);
/// Some module of the program was compiled with hooks.
static INSTRUMENTED: AtomicBool = AtomicBool::new(false);

/// The region's header, once attached.
#[inline]
pub fn header() -> Option<&'static Header> {
    let address = HEADER.load(Ordering::Acquire);
    // SAFETY: the address is that of a mapped region, which is never unmapped.
    if address == 0 { None } else { Some(unsafe { &*(address as *const Header) }) }
}

/// This process has found its region.
pub fn attach(header: &'static Header) {
    HEADER.store(core::ptr::from_ref(header) as usize, Ordering::Release);
    IMAGE.store(header.images.fetch_add(1, Ordering::AcqRel), Ordering::Relaxed);
}

/// The region is another process's: this one is a forked child.
pub fn detach() {
    let address = HEADER.swap(0, Ordering::AcqRel);
    // It is called by the library's own `fork` and by ours.
    if address != 0 {
        PARENT.store(address, Ordering::Release);
    }
}

/// The region of the process that this one was forked from, once: for the word that it is not observed.
pub fn take_parent() -> Option<&'static Header> {
    if PARENT.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let address = PARENT.swap(0, Ordering::AcqRel);
    // SAFETY: what `attach` has stored; the region stays mapped.
    (address != 0).then(|| unsafe { &*(address as *const Header) })
}

static PARENT: AtomicUsize = AtomicUsize::new(0);

pub fn image() -> u32 {
    IMAGE.load(Ordering::Relaxed)
}

/// Asks for options whatever the region says: before [`begin`].
pub fn wish(options: u64) {
    WISHES.fetch_or(options, Ordering::Relaxed);
}

/// What the region says, and what was wished for.
pub fn options(header: &Header) -> u64 {
    header.options | WISHES.load(Ordering::Relaxed)
}

/// What is wanted of the program, from here on.
pub fn begin(header: &Header) {
    let records = header.observe & observe::RECORD != 0;
    RECORDING.store(records, Ordering::Relaxed);
    ACCESSES.store(options(header) & option::MEMORY != 0, Ordering::Relaxed);
    KEEP_REDUNDANT.store(header.options & option::KEEP_REDUNDANT != 0, Ordering::Relaxed);
    ALLOCATIONS.store(records && header.options & option::ALLOCATIONS != 0, Ordering::Relaxed);
    OBSERVING.store(true, Ordering::Relaxed);
}

/// The detector's tables are there; `only`: nobody else wants plain accesses.
pub fn begin_detection(only: bool) {
    DETECTING.store(true, Ordering::Release);
    ONLY_DETECTING.store(only, Ordering::Release);
}

/// The recorder is gone, or this is a forked child: the program goes on by itself.
pub fn stop() {
    for wish in [&RECORDING, &OBSERVING, &ACCESSES, &ALLOCATIONS, &DETECTING, &ONLY_DETECTING] {
        wish.store(false, Ordering::Relaxed);
    }
}

#[inline]
pub fn recording() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

/// Is online detection part of this run?
#[inline(always)]
pub fn detecting() -> bool {
    DETECTING.load(Ordering::Relaxed)
}

/// Is online detection all that this run wants of plain accesses?
#[inline(always)]
pub fn only_detecting() -> bool {
    ONLY_DETECTING.load(Ordering::Relaxed)
}

#[inline]
pub fn keep_redundant() -> bool {
    KEEP_REDUNDANT.load(Ordering::Relaxed)
}

pub fn records_allocations() -> bool {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// A module with hooks has been loaded.
pub fn set_instrumented() {
    INSTRUMENTED.store(true, Ordering::Relaxed);
}

/// Do the accesses of library functions matter? Not in a program none of whose own accesses are seen.
#[inline]
pub fn instrumented() -> bool {
    INSTRUMENTED.load(Ordering::Relaxed)
}

/// A second thread is about to exist: from now on accesses matter. True the first time.
pub fn becomes_threaded() -> bool {
    !THREADED.swap(true, Ordering::Relaxed)
}

/// Are plain accesses and atomics observed at this moment?
#[inline]
pub fn accesses_observed() -> bool {
    ACCESSES.load(Ordering::Relaxed) && (THREADED.load(Ordering::Relaxed) || before_first_fork())
}

/// Are atomics observed at this moment? They are synchronisation, but nobody can see them before the first fork.
#[inline]
pub fn atomics_observed() -> bool {
    OBSERVING.load(Ordering::Relaxed) && (THREADED.load(Ordering::Relaxed) || before_first_fork())
}

fn before_first_fork() -> bool {
    header().is_some_and(|header| options(header) & option::BEFORE_FIRST_FORK != 0)
}

/// Seed of the run that this process is: a fork server counts its runs.
pub fn seed(header: &Header) -> u64 {
    let server = &header.server;
    if server.wanted == 0 {
        return header.seed;
    }
    let run = server.published.load(Ordering::Relaxed);
    let stride = server.stride.load(Ordering::Relaxed);
    server.seed.load(Ordering::Relaxed).wrapping_add(stride.wrapping_mul(u64::from(run)))
}

/// Where the report of a crash, or of how a steered run ended, goes.
pub fn end_block(header: &Header) -> &'static raddle_wire::crash::EndBlock {
    let at = core::ptr::from_ref(header) as usize + raddle_wire::region::END_OFFSET;
    // SAFETY: the region is mapped whole and never unmapped.
    unsafe { &*(at as *const raddle_wire::crash::EndBlock) }
}
