//! Start-up: attaches to the region that the `raddle` process left in the environment, before `main` runs.
//!
//! Without a region the runtime stays idle and the program runs as it is. Each process has a region of its own
//! ([`crate::attach`]). A runtime that was loaded into a program which carries one stays idle as well: the program's own
//! functions come first.

use crate::steer::server;
use crate::{arena, interpose, message, probe, real, run, shadow, standalone, steer, thread, threads};
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};
use raddle_wire::region::{ENV_REGION, Header, option, state, steer as steering};

static STARTED: AtomicBool = AtomicBool::new(false);

/// Called by the constructors of instrumented modules.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_init() {
    run::set_instrumented();
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
    run::attach(header);
    prepare(header);
    // Returns at once, or in a child for each run.
    server::serve(header, || {
        interpose::mutex::rehearse();
        interpose::create::rehearse();
        interpose::allocator::rehearse();
    });
    configure(header);
    header.state.store(state::RUNNING, Ordering::Release);
}

/// What is the same for every run of the program.
fn prepare(header: &'static Header) {
    interpose::system::find_all();
    interpose::layout::check();
    if matches!(header.steer, steering::CONTROL | steering::REPLAY)
        && header.options & option::ONE_AT_A_TIME != 0
    {
        // Threads that run one at a time do not get in each other's way, and a heap of its own for each is 64 MiB of address space.
        // SAFETY: sets a number.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
    if header.processor != 0 {
        real::stay_on(header.processor - 1);
    }
    interpose::modules::register(run::image());
    // Before large tables are mapped: stubs have to lie near their modules.
    probe::start();
    let wants_accesses = run::options(header) & option::MEMORY != 0;
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
}

fn configure(header: &'static Header) {
    let Some(main) = threads::adopt_main() else {
        message::fatal(format_args!("cannot map memory for the first thread; raise or remove `ulimit -v`"));
    };
    run::begin(header);
    if header.options & option::STABLE_MEMORY != 0 {
        interpose::stable::start();
    }
    crate::crash::start(header);
    interpose::process::prepare_for_forks();
    // SAFETY: registers a C function.
    unsafe { on_exit(at_exit, core::ptr::null_mut()) };
    // From here on everything may differ from run to run.
    steer::kept::worker::remember();
    steer::adopt_main(main);
    main.home.settle_main();
    threads::begin(main);
}

unsafe extern "C" {
    /// As `atexit`, but the handler is told the status.
    fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

extern "C" fn at_exit(status: c_int, _argument: *mut c_void) {
    let Some(header) = run::header() else { return };
    if header.claimed_pid.load(Ordering::Relaxed) != real::getpid() {
        return;
    }
    if let Some(thread) = thread::observed() {
        steer::before_exit(thread);
        crate::observe::sync(thread, 0, raddle_wire::SyncOp::ProcessExit, status as usize, 0);
    }
    crate::detect::finish();
    if header.server.wanted != 0 && !steer::kept::on() {
        steer::warm::tell();
    }
    header.exit_status.store(status, Ordering::Relaxed);
    header.state.store(state::EXITED, Ordering::Release);
}

/// Runs before the constructors of the program and of the compilers' modules.
extern "C" fn constructor(argc: c_int, argv: *const *const c_char, envp: *const *const c_char) {
    // Only a program that carries the runtime reports by itself, not what it was loaded into.
    if real::environment(c_region_name()).is_none() && !is_second() {
        standalone::become_raddle(argc, argv, envp);
    }
    start();
}

#[used]
#[unsafe(link_section = ".init_array.00001")]
static CONSTRUCTOR: extern "C" fn(c_int, *const *const c_char, *const *const c_char) = constructor;
