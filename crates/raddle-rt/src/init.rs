//! Start-up: attaches to the region that the `raddle` process left in the environment, before `main` runs.
//!
//! Without a region the runtime stays idle and the program runs as it is. Each process has a region of its own
//! ([`crate::attach`]). A runtime that was loaded into a program which carries one stays idle as well: the program's own
//! functions come first.

use crate::steer::server;
use crate::thread::{self, Thread};
use crate::{arch, arena, interpose, message, real, segment, shadow, steer, threads};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use raddle_wire::region::{ENV_REGION, Header, observe, option, state};

static HEADER: AtomicUsize = AtomicUsize::new(0);
static STARTED: AtomicBool = AtomicBool::new(false);
/// The program is observed or steered.
static OBSERVING: AtomicBool = AtomicBool::new(false);
static RECORDING: AtomicBool = AtomicBool::new(false);
static ACCESSES: AtomicBool = AtomicBool::new(false);
static KEEP_REDUNDANT: AtomicBool = AtomicBool::new(false);
static ALLOCATIONS: AtomicBool = AtomicBool::new(false);
/// A second thread exists or has existed.
static THREADED: AtomicBool = AtomicBool::new(false);
/// Some module of the program was compiled with hooks.
static INSTRUMENTED: AtomicBool = AtomicBool::new(false);
static IMAGE: AtomicU32 = AtomicU32::new(0);

/// The region's header, once attached.
#[inline]
pub fn header() -> Option<&'static Header> {
    let address = HEADER.load(Ordering::Acquire);
    // SAFETY: the address is that of a mapped region, which is never unmapped.
    if address == 0 { None } else { Some(unsafe { &*(address as *const Header) }) }
}

#[inline]
pub fn recording() -> bool {
    RECORDING.load(Ordering::Relaxed)
}

#[inline]
pub fn keep_redundant() -> bool {
    KEEP_REDUNDANT.load(Ordering::Relaxed)
}

pub fn records_allocations() -> bool {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Do the accesses of library functions matter? Not in a program none of whose own accesses are seen.
#[inline]
pub fn instrumented() -> bool {
    INSTRUMENTED.load(Ordering::Relaxed)
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
    header().is_some_and(|header| header.options & option::BEFORE_FIRST_FORK != 0)
}

pub fn image() -> u32 {
    IMAGE.load(Ordering::Relaxed)
}

/// A second thread is about to exist: from now on accesses matter.
pub fn first_fork(thread: &mut Thread) {
    if !THREADED.swap(true, Ordering::Relaxed) {
        thread::refresh_enabled(thread);
    }
}

/// The recorder is gone, or this is a forked child: the program goes on by itself.
pub fn stop_observing() {
    RECORDING.store(false, Ordering::Relaxed);
    OBSERVING.store(false, Ordering::Relaxed);
    ACCESSES.store(false, Ordering::Relaxed);
    ALLOCATIONS.store(false, Ordering::Relaxed);
    crate::detect::stop();
    let thread = thread::current();
    thread.enabled = 0;
}

/// Called by the constructors of instrumented modules.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_init() {
    INSTRUMENTED.store(true, Ordering::Relaxed);
    start();
}

/// The first call wins.
fn start() {
    if STARTED.swap(true, Ordering::AcqRel) {
        return;
    }
    let Some(path) = real::environment(c_region_name()) else { return };
    if !is_second() {
        attach(path);
    }
}

/// Is there another copy of the runtime in this process, which the program's calls come to first?
fn is_second() -> bool {
    let base = |address: *const c_void| {
        // SAFETY: all fields may be zero.
        let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
        // SAFETY: any address may be asked about.
        let known = unsafe { libc::dladdr(address, &raw mut found) } != 0;
        known.then_some(found.dli_fbase as usize)
    };
    // SAFETY: looks a name up.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__tsan_init".as_ptr()) };
    // A name that is nobody else's, unlike `__tsan_init` itself.
    !first.is_null() && base(first) != base(core::ptr::from_ref(&STARTED).cast())
}

fn c_region_name() -> &'static core::ffi::CStr {
    const _: () = assert!(matches!(ENV_REGION.as_bytes(), b"RADDLE_REGION"));
    c"RADDLE_REGION"
}

fn attach(path: &core::ffi::CStr) {
    let Some(header) = crate::attach::region(path) else { return };
    HEADER.store(core::ptr::from_ref(header) as usize, Ordering::Release);
    IMAGE.store(header.images.fetch_add(1, Ordering::AcqRel), Ordering::Relaxed);
    prepare(header);
    // Returns at once, or in a child for each run.
    server::serve(header);
    configure(header);
    header.state.store(state::RUNNING, Ordering::Release);
}

/// What is the same for every run of the program.
fn prepare(header: &'static Header) {
    interpose::system::find_all();
    if header.processor != 0 {
        real::stay_on(header.processor - 1);
    }
    let wants_accesses = header.options & option::MEMORY != 0;
    if header.options & option::SHARED_TABLES != 0 {
        arena::share_tables();
    }
    if wants_accesses && !shadow::reserve() {
        message::fatal(format_args!(
            "cannot reserve {} TiB of address space for shadow memory; raise or remove `ulimit -v`, or record \
             synchronisation only (`--sync-only`)",
            shadow::SHADOW_BYTES >> 40
        ));
    }
    crate::detect::configure(header);
    interpose::modules::register(image());
}

fn configure(header: &'static Header) {
    let wants_accesses = header.options & option::MEMORY != 0;
    let Some(main) = threads::adopt_main() else {
        message::fatal(format_args!("cannot map memory for the first thread; raise or remove `ulimit -v`"));
    };
    RECORDING.store(header.observe & observe::RECORD != 0, Ordering::Relaxed);
    ACCESSES.store(wants_accesses, Ordering::Relaxed);
    KEEP_REDUNDANT.store(header.options & option::KEEP_REDUNDANT != 0, Ordering::Relaxed);
    ALLOCATIONS.store(
        header.observe & observe::RECORD != 0 && header.options & option::ALLOCATIONS != 0,
        Ordering::Relaxed,
    );
    OBSERVING.store(true, Ordering::Relaxed);
    if header.options & option::STABLE_MEMORY != 0 {
        interpose::stable::start();
    }
    steer::adopt_main(main);
    crate::crash::start(header);
    threads::begin(main);
    interpose::process::prepare_for_forks();
    // SAFETY: registers a C function.
    unsafe { on_exit(at_exit, core::ptr::null_mut()) };
}

unsafe extern "C" {
    /// As `atexit`, but the handler is told the status.
    fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

extern "C" fn at_exit(status: c_int, _argument: *mut c_void) {
    let Some(header) = header() else { return };
    if header.claimed_pid.load(Ordering::Relaxed) != real::getpid() {
        return;
    }
    if let Some(thread) = thread::observed() {
        steer::before_exit(thread);
        crate::observe::sync(thread, 0, raddle_wire::SyncOp::ProcessExit, status as usize, 0);
    }
    crate::detect::finish();
    if header.server.wanted != 0 {
        steer::warm::tell();
    }
    header.exit_status.store(status, Ordering::Relaxed);
    header.state.store(state::EXITED, Ordering::Release);
}

/// In a forked child: nothing here is observed any more, and locks that other threads held are free.
pub fn become_child() {
    stop_observing();
    crate::demo::stop();
    interpose::alternate_stack::release(thread::current());
    HEADER.store(0, Ordering::Release);
    arch::set_current(thread::idle());
    segment::reset_after_fork();
    crate::stripe::reset_after_fork();
    crate::detect::reset_after_fork();
    threads::reset_after_fork();
    steer::stop_steering();
}

/// Runs before the constructors of the program and of the compilers' modules.
extern "C" fn constructor(_argc: c_int, _argv: usize, _envp: usize) {
    start();
}

#[used]
#[unsafe(link_section = ".init_array.00001")]
static CONSTRUCTOR: extern "C" fn(c_int, usize, usize) = constructor;
