//! The threads of a worker: real threads of the C library's, made beforehand, whose kernel threads have ended.
//!
//! Each begins in [`rest`], saves where it is, and ends its kernel thread without the C library knowing: stack, thread-local storage and
//! control block stay as the C library made them. A thread that the program creates goes on from there. It ends as any thread does,
//! through the C library's own code, up to the last round of destructors of thread-specific data; there it leaves for good.
//!
//! Everything here is ordinary memory of the process, so it is put back with the rest after each run.

use super::repeat;
use crate::steer::stations::grant;
use crate::{arch, real, real_fn};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use raddle_wire::server::kept_reason;

real_fn! {
    fn pthread_create(handle: *mut libc::pthread_t, attr: *const c_void, routine: Routine, argument: *mut c_void) -> c_int;
    fn pthread_join(handle: libc::pthread_t, result: *mut *mut c_void) -> c_int;
    fn pthread_attr_getstack(attr: *const c_void, start: *mut usize, bytes: *mut usize) -> c_int;
    fn pthread_attr_getstacksize(attr: *const c_void, bytes: *mut usize) -> c_int;
    fn pthread_attr_getinheritsched(attr: *const c_void, inherits: *mut c_int) -> c_int;
    fn pthread_attr_init(attr: *mut libc::pthread_attr_t) -> c_int;
}

type Routine = extern "C" fn(*mut c_void) -> *mut c_void;

/// Threads that a run may make, and the main thread.
pub const FIBERS_MAX: usize = 64;

mod state {
    /// There is no thread.
    pub const NONE: u32 = 0;
    /// Waits to be taken.
    pub const RESTS: u32 = 1;
    /// Part of the program.
    pub const RUNS: u32 = 2;
    pub const ENDED: u32 = 3;
}

struct Fiber {
    /// Where it goes on.
    stack: Cell<usize>,
    thread_pointer: Cell<usize>,
    /// The number that its kernel thread had. The C library still writes it into the mutexes that the thread holds.
    number: Cell<u32>,
    state: Cell<u32>,
    /// It can go on when this word says that its turn has come. Null: always.
    waits_for: Cell<*const AtomicU32>,
    routine: Cell<Option<Routine>>,
    argument: Cell<*mut c_void>,
    /// Cleared by the kernel when the kernel thread is gone.
    gone: AtomicU32,
    /// The signals that it has blocked.
    mask: Cell<u64>,
}

struct Fibers([Fiber; FIBERS_MAX]);

// SAFETY: made before there is a second thread, and touched by the one kernel thread of a worker; while a thread is made, it
// touches its own entry alone and its maker waits.
unsafe impl Sync for Fibers {}

static FIBERS: Fibers = Fibers(
    [const {
        Fiber {
            stack: Cell::new(0),
            thread_pointer: Cell::new(0),
            number: Cell::new(0),
            state: Cell::new(state::NONE),
            waits_for: Cell::new(core::ptr::null()),
            routine: Cell::new(None),
            argument: Cell::new(core::ptr::null_mut()),
            gone: AtomicU32::new(0),
            mask: Cell::new(0),
        }
    }; FIBERS_MAX],
);

/// How many there are, with the main thread.
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// Whose turn on the processor it is.
static CURRENT: AtomicUsize = AtomicUsize::new(0);
/// Signals that the kernel thread has blocked.
static KERNEL_MASK: Cell64 = Cell64(Cell::new(0));

struct Cell64(Cell<u64>);
// SAFETY: as for `Fibers`.
unsafe impl Sync for Cell64 {}

/// Where the C library keeps what a thread returned, counted from its handle. Found out in [`prepare`].
static RESULT_OFFSET: AtomicUsize = AtomicUsize::new(0);

const MAGIC: usize = 0x5ead_11f0_7e57_ab1e;
/// The control block is at least so large in every version.
const BLOCK_WORDS: usize = 2048 / 8;

/// In the server: finds out what has to be known about the C library. False: it is not as expected.
pub fn prepare() -> bool {
    extern "C" fn returns(_: *mut c_void) -> *mut c_void {
        MAGIC as *mut c_void
    }
    unsafe extern "C" fn look(_: *mut c_void) {
        let block = arch::fiber::thread_pointer() as *const usize;
        // SAFETY: the control block of the calling thread is at least so large.
        let word = |at: usize| unsafe { block.add(at).read_volatile() };
        let mut found = (0..BLOCK_WORDS).filter(|&at| word(at) == MAGIC);
        if let (Some(at), None) = (found.next(), found.next()) {
            RESULT_OFFSET.store(at * 8, Ordering::Release);
        }
    }
    extern "C" fn enter(key: *mut c_void) -> *mut c_void {
        // SAFETY: the key exists; any value but null has the destructor called.
        unsafe { libc::pthread_setspecific(key as usize as libc::pthread_key_t, core::ptr::dangling()) };
        returns(key)
    }
    let mut key: libc::pthread_key_t = 0;
    let mut handle: libc::pthread_t = 0;
    // SAFETY: a thread of our own, joined here.
    unsafe {
        if libc::pthread_key_create(&mut key, Some(look)) != 0 {
            return false;
        }
        let argument = key as usize as *mut c_void;
        if pthread_create(&mut handle, core::ptr::null(), enter, argument) == 0 {
            pthread_join(handle, core::ptr::null_mut());
        }
        libc::pthread_key_delete(key);
    }
    RESULT_OFFSET.load(Ordering::Acquire) != 0
}

extern "C" fn rest(place: *mut c_void) -> *mut c_void {
    let fiber = &FIBERS.0[place as usize];
    fiber.thread_pointer.set(arch::fiber::thread_pointer());
    fiber.number.set(real::gettid());
    fiber.state.set(state::RESTS);
    // SAFETY: the entry is a static; a kernel thread that ends here leaves nothing that anybody needs.
    unsafe { arch::fiber::leave_stack(fiber.stack.as_ptr(), &fiber.gone) };
    // The program has created a thread.
    fiber.routine.get().map_or(core::ptr::null_mut(), |routine| routine(fiber.argument.get()))
}

/// In a worker: makes as many threads, and takes the calling one for the main thread.
pub fn make(count: usize) {
    let main = &FIBERS.0[0];
    main.thread_pointer.set(arch::fiber::thread_pointer());
    main.number.set(real::gettid());
    main.state.set(state::RUNS);
    let mut made = 1;
    while made < (count + 1).min(FIBERS_MAX) {
        let fiber = &FIBERS.0[made];
        fiber.gone.store(1, Ordering::Release);
        let mut handle: libc::pthread_t = 0;
        // SAFETY: `rest` knows what to do with the number.
        if unsafe { pthread_create(&mut handle, core::ptr::null(), rest, made as *mut c_void) } != 0 {
            break;
        }
        while fiber.gone.load(Ordering::Acquire) != 0 {
            real::futex_wait(&fiber.gone, 1, None);
        }
        made += 1;
    }
    COUNT.store(made, Ordering::Relaxed);
}

pub fn main_thread_pointer() -> usize {
    FIBERS.0[0].thread_pointer.get()
}

/// Where the main thread is to save its stack before the first run.
pub fn main_stack() -> *mut usize {
    FIBERS.0[0].stack.as_ptr()
}

/// Does the handle belong to one of these threads?
fn find(handle: usize) -> Option<&'static Fiber> {
    FIBERS.0[1..COUNT.load(Ordering::Relaxed).max(1)]
        .iter()
        .find(|fiber| fiber.thread_pointer.get() == handle)
}

/// Creates a thread: `routine` is called with `argument` when the others let it go on.
///
/// # Safety
/// `attr` is null or initialised.
pub unsafe fn create(attr: *const c_void, routine: Routine, argument: *mut c_void) -> libc::pthread_t {
    // SAFETY: by contract.
    if !unsafe { is_plain(attr) } {
        repeat(kept_reason::ATTRIBUTES, 0);
    }
    let count = COUNT.load(Ordering::Relaxed);
    let Some(fiber) = FIBERS.0[..count].iter().find(|fiber| fiber.state.get() == state::RESTS) else {
        repeat(kept_reason::THREADS, count as u64)
    };
    fiber.routine.set(Some(routine));
    fiber.argument.set(argument);
    fiber.mask.set(FIBERS.0[CURRENT.load(Ordering::Relaxed)].mask.get());
    fiber.state.set(state::RUNS);
    fiber.thread_pointer.get() as libc::pthread_t
}

/// Do these attributes ask for nothing that the threads here do not have?
unsafe fn is_plain(attr: *const c_void) -> bool {
    if attr.is_null() {
        return true;
    }
    let (mut start, mut whole, mut bytes, mut usual, mut inherits) = (0, 0, 0, 0, 0);
    // SAFETY: initialised attributes, by contract and here.
    unsafe {
        let mut own: libc::pthread_attr_t = core::mem::zeroed();
        pthread_attr_init(&mut own);
        pthread_attr_getstacksize((&raw const own).cast(), &mut usual);
        pthread_attr_getstack(attr, &mut start, &mut whole);
        pthread_attr_getstacksize(attr, &mut bytes);
        pthread_attr_getinheritsched(attr, &mut inherits);
    }
    // Without a stack of its own, the answer is one that ends at zero.
    start.wrapping_add(whole) == 0 && bytes <= usual && inherits == libc::PTHREAD_INHERIT_SCHED
}

/// What the thread returned, once it has ended. `None`: it is none of these.
pub fn result_of(handle: libc::pthread_t) -> Option<*mut c_void> {
    find(handle as usize)?;
    let at = handle as usize + RESULT_OFFSET.load(Ordering::Relaxed);
    // SAFETY: inside the control block, which exists as long as the process.
    Some(unsafe { (at as *const *mut c_void).read_volatile() })
}

/// The next one that can go on, the calling one last.
fn next(me: usize) -> Option<usize> {
    let count = COUNT.load(Ordering::Relaxed);
    (1..=count).map(|step| (me + step) % count).find(|&at| {
        let fiber = &FIBERS.0[at];
        // SAFETY: null, or a static of the scheduler's.
        let word = unsafe { fiber.waits_for.get().as_ref() };
        let granted = || word.is_none_or(|word| word.load(Ordering::Acquire) == grant::GIVEN);
        fiber.state.get() == state::RUNS && granted()
    })
}

fn go_on_with(me: usize, other: usize) {
    CURRENT.store(other, Ordering::Relaxed);
    let (from, to) = (&FIBERS.0[me], &FIBERS.0[other]);
    if to.mask.get() != KERNEL_MASK.0.get() {
        set_kernel_mask(to.mask.get());
    }
    // SAFETY: the other one has saved its stack and waits.
    unsafe { arch::fiber::switch(from.stack.as_ptr(), to.stack.get(), to.thread_pointer.get()) };
}

/// Waits until the word says that the calling thread's turn has come; others go on meanwhile.
pub fn wait(word: &AtomicU32) {
    let me = CURRENT.load(Ordering::Relaxed);
    FIBERS.0[me].waits_for.set(word);
    while word.load(Ordering::Acquire) != grant::GIVEN {
        match next(me) {
            Some(other) if other != me => go_on_with(me, other),
            Some(_) => break,
            None => repeat(kept_reason::NOBODY, 0),
        }
    }
    FIBERS.0[me].waits_for.set(core::ptr::null());
}

/// The calling thread has ended. Returns only when it was the last one: the process ends then.
pub fn depart() {
    let me = CURRENT.load(Ordering::Relaxed);
    FIBERS.0[me].state.set(state::ENDED);
    if FIBERS.0.iter().all(|fiber| fiber.state.get() != state::RUNS) {
        // SAFETY: what the C library does in the last thread.
        unsafe { libc::exit(0) };
    }
    match next(me) {
        Some(other) => go_on_with(me, other),
        None => repeat(kept_reason::NOBODY, 0),
    }
}

/// The calling thread blocks these signals: what it had blocked before.
pub fn set_mask(mask: u64) -> u64 {
    let before = FIBERS.0[CURRENT.load(Ordering::Relaxed)].mask.replace(mask);
    if mask != KERNEL_MASK.0.get() {
        set_kernel_mask(mask);
    }
    before
}

pub fn mask() -> u64 {
    FIBERS.0[CURRENT.load(Ordering::Relaxed)].mask.get()
}

/// The kernel is told everything but the signal by which system calls are seen.
fn set_kernel_mask(mask: u64) {
    KERNEL_MASK.0.set(mask);
    set_signal_mask(mask);
}

pub fn set_signal_mask(mask: u64) {
    let told = mask & !(1 << (libc::SIGSYS - 1));
    let arguments = [libc::SIG_SETMASK as usize, &raw const told as usize, 0, size_of::<u64>(), 0, 0];
    // SAFETY: the set is valid for the call.
    unsafe { real::own_syscall(libc::SYS_rt_sigprocmask, arguments) };
}

/// Before the first run: what is blocked now.
pub fn learn_mask() {
    let mut mask = 0u64;
    let arguments = [libc::SIG_SETMASK as usize, 0, &raw mut mask as usize, size_of::<u64>(), 0, 0];
    // SAFETY: the set is valid for the call.
    unsafe { real::own_syscall(libc::SYS_rt_sigprocmask, arguments) };
    KERNEL_MASK.0.set(mask);
    FIBERS.0.iter().for_each(|fiber| fiber.mask.set(mask));
}

pub fn kernel_mask() -> u64 {
    KERNEL_MASK.0.get()
}

/// Is anybody but the main thread part of the program, or was?
pub fn has_threads() -> bool {
    FIBERS.0[1..].iter().any(|fiber| fiber.state.get() >= state::RUNS)
}

/// The number by which the C library knows the calling thread.
pub fn number() -> u32 {
    FIBERS.0[CURRENT.load(Ordering::Relaxed)].number.get()
}

/// Is the main thread the calling one?
pub fn is_main() -> bool {
    CURRENT.load(Ordering::Relaxed) == 0
}
