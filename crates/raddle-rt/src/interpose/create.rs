//! Threads: creation, joining, detaching, naming.

use crate::interpose::stack::{self, Stack};
use crate::steer::{self, Patience, Request};
use crate::thread::{self, Thread, phase};
use crate::{arch, detect, export_with_pc, message, observe, real, real_fn, record, registry, run, threads};
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::Ordering;
use raddle_wire::{SyncOp, step};

pub type Routine = extern "C" fn(*mut c_void) -> *mut c_void;

mod c {
    use super::*;
    real_fn! {
        fn pthread_create(handle: *mut libc::pthread_t, attr: *const c_void, routine: Routine, argument: *mut c_void) -> c_int;
        fn pthread_join(handle: libc::pthread_t, result: *mut *mut c_void) -> c_int;
        fn pthread_tryjoin_np(handle: libc::pthread_t, result: *mut *mut c_void) -> c_int;
        fn pthread_timedjoin_np(handle: libc::pthread_t, result: *mut *mut c_void, until: *const libc::timespec) -> c_int;
        fn pthread_clockjoin_np(handle: libc::pthread_t, result: *mut *mut c_void, clock: c_int, until: *const libc::timespec) -> c_int;
        fn pthread_detach(handle: libc::pthread_t) -> c_int;
        fn pthread_setname_np(handle: libc::pthread_t, name: *const c_char) -> c_int;
        fn pthread_attr_init(attr: *mut libc::pthread_attr_t) -> c_int;
        fn pthread_attr_getstacksize(attr: *const c_void, bytes: *mut usize) -> c_int;
        fn pthread_attr_getdetachstate(attr: *const c_void, state: *mut c_int) -> c_int;
    }
}

/// More than [`enter`] has on the stack, and less than the frames of the C library have that call it: nothing of the program's lies above.
const ENTRY_FRAME_BYTES: usize = 256;

/// The first code of a new thread: waits until its creator has recorded the fork.
extern "C" fn enter(block: *mut c_void) -> *mut c_void {
    // SAFETY: the creator passed a structure, which is never unmapped; this thread owns it once the phase has changed.
    let thread: &'static Thread = unsafe { &*block.cast::<Thread>() };
    while thread.life.phase.load(Ordering::Acquire) & 0xff == phase::NEW {
        real::futex_wait(&thread.life.phase, phase::NEW, None);
    }
    let (routine, argument) = (thread.life.routine.get(), thread.life.argument.get());
    threads::arm_end(thread);
    // The routine's frame lies below this one, or, where it is called by a jump, in its place.
    thread.home.settle(arch::stack_pointer() + ENTRY_FRAME_BYTES);
    threads::begin(thread);
    detect::clear_stack(thread::current());
    // SAFETY: the program passed this function to the creating call.
    let routine = unsafe { core::mem::transmute::<usize, Routine>(routine) };
    routine(argument as *mut c_void)
}

/// Creates and joins a thread that does nothing, so that the C library has done what it does for the first one: a fork
/// server does this once instead of every run.
const STACKS_KEPT: usize = 4;

pub fn rehearse() {
    extern "C" fn nothing(argument: *mut c_void) -> *mut c_void {
        argument
    }
    // The C library keeps the stacks of threads that have ended, up to 40 MiB of them, for those that follow.
    let mut handles: [libc::pthread_t; STACKS_KEPT] = [0; STACKS_KEPT];
    let mut made = 0;
    for handle in &mut handles {
        // SAFETY: a thread of our own, joined below.
        if unsafe { c::pthread_create(handle, core::ptr::null(), nothing, core::ptr::null_mut()) } != 0 {
            break;
        }
        made += 1;
    }
    for &handle in &handles[..made] {
        // SAFETY: as above.
        unsafe { c::pthread_join(handle, core::ptr::null_mut()) };
    }
}

pub extern "C" fn create(
    handle: *mut libc::pthread_t,
    attr: *const c_void,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    let Some(thread) = thread::observed() else {
        if let Some(parent) = run::take_parent() {
            message::warning_in(
                parent,
                format_args!(
                    "process {}, which the program forked, makes threads that are not observed: only the first process and those that call exec are; \
                     have the program work in its first process (servers often have an option for that)",
                    real::getpid()
                ),
            );
        }
        // SAFETY: as the program asks.
        return unsafe { c::pthread_create(handle, attr, routine, argument) };
    };
    let pc = thread.caller_pc();
    if !steer::on() {
        return create_observed(thread, pc, handle, attr, routine, argument);
    }
    let request = Request { kind: step::FORK, object: 0, pc };
    steer::visible(thread, request, |thread| create_observed(thread, pc, handle, attr, routine, argument))
        .unwrap_or(libc::EAGAIN)
}

/// Size of the stack that a thread with these attributes gets.
fn stack_bytes(attr: *const c_void) -> usize {
    let mut bytes = 0;
    // SAFETY: the program passes initialised attributes or null; ours are initialised here.
    unsafe {
        if attr.is_null() {
            let mut own: libc::pthread_attr_t = core::mem::zeroed();
            c::pthread_attr_init(&mut own);
            c::pthread_attr_getstacksize((&raw const own).cast(), &mut bytes);
        } else {
            c::pthread_attr_getstacksize(attr, &mut bytes);
        }
    }
    bytes
}

fn create_observed(
    thread: &Thread,
    pc: u64,
    handle: *mut libc::pthread_t,
    attr: *const c_void,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    // The runtime's own work is none of the program's, down to the `memset` that fills a new clock; and what glibc
    // releases meanwhile belonged to a thread that is gone (its thread-local memory on a stack that is used again):
    // glibc knows that, and no clock does. Creating a thread is no place where this one can be cancelled.
    let busy = thread::Busy::enter(thread);
    let Some(block) = threads::allocate(thread.index()) else { return libc::EAGAIN };
    block.life.routine.set(routine as usize);
    block.life.argument.set(argument as usize);
    block.home.ask(stack_bytes(attr));
    if run::becomes_threaded() {
        thread::refresh_enabled(thread);
    }
    let mut detached: c_int = 0;
    if !attr.is_null() {
        // SAFETY: the program passes initialised attributes.
        unsafe { c::pthread_attr_getdetachstate(attr, &mut detached) };
    }
    let mut own = Stack::take(attr);
    let attr = own.as_ref().map_or(attr, Stack::attributes);
    let start = core::ptr::from_ref(block).cast_mut().cast();
    // SAFETY: `enter` calls the program's routine with its argument.
    let result = unsafe {
        if steer::kept::on() {
            handle.write(steer::kept::fiber::create(attr, enter, start));
            0
        } else {
            c::pthread_create(handle, attr, enter, start)
        }
    };
    if let Some(own) = &mut own {
        own.forget();
        block.life.own_stack.set((own.start, own.bytes));
    }
    if result != 0 {
        registry::discard(block);
        return result;
    }
    // SAFETY: the handle was written by the successful call.
    let index = registry::publish(block, unsafe { *handle });
    steer::add_child(thread, block);
    detect::fork(thread, block, pc);
    if run::recording() {
        record::frames(thread, pc);
    }
    drop(busy);
    observe::sync(thread, pc, SyncOp::Fork, index as usize, 0);
    let running = if detached == libc::PTHREAD_CREATE_DETACHED {
        phase::RUNNING | phase::DETACHED
    } else {
        phase::RUNNING
    };
    // The new thread waits for exactly this store.
    let phase_word = &block.life.phase;
    phase_word.store(running, Ordering::Release);
    if !steer::kept::on() {
        real::futex_wake(phase_word, 1);
    }
    0
}

fn join_with(
    handle: libc::pthread_t,
    result: *mut *mut c_void,
    patience: Patience,
    until: *const libc::timespec,
    wait: impl Fn() -> c_int,
) -> c_int {
    let Some(thread) = thread::observed() else { return wait() };
    let pc = thread.caller_pc();
    // The handle means nothing after a successful join.
    let ended = registry::find(handle);
    let index = ended.map(Thread::index);
    if let (true, Some(index)) = (steer::on(), index) {
        let status = join_steered(thread, pc, handle, index, result, patience);
        if status == libc::ETIMEDOUT {
            // SAFETY: the program passes a valid time.
            unsafe { steer::clock::reach(until) };
        }
        return status;
    }
    let status = wait();
    let Some(index) = index else { return status };
    if status == 0 {
        detect::join(thread, ended);
    }
    report_join(thread, pc, handle, index, status);
    status
}

/// Waits for a thread that has done its last visible operation, or for what stands for it in a worker that keeps its process.
///
/// # Safety
/// As `pthread_join`.
unsafe fn wait_for_end(handle: libc::pthread_t, result: *mut *mut c_void) -> c_int {
    if steer::kept::on()
        && let Some(returned) = steer::kept::fiber::result_of(handle)
    {
        // SAFETY: the program passes a valid place or null.
        if let Some(result) = unsafe { result.as_mut() } {
            *result = returned;
        }
        return 0;
    }
    // SAFETY: by contract.
    unsafe { c::pthread_join(handle, result) }
}

/// The joined thread has done its last visible operation; what is left of it takes no decision.
fn join_steered(
    thread: &Thread,
    pc: u64,
    handle: libc::pthread_t,
    index: u32,
    result: *mut *mut c_void,
    patience: Patience,
) -> c_int {
    let request = Request { kind: step::JOIN, object: steer::join_token(index), pc };
    let ended = registry::find(handle);
    let joined = steer::blocking(thread, request, patience, |thread| {
        if !steer::has_ended(index) {
            return None;
        }
        // SAFETY: as the program asks.
        let status = unsafe { wait_for_end(handle, result) };
        if status == 0 {
            detect::join(thread, ended);
            let (start, bytes) = ended.map_or((0, 0), |ended| ended.life.own_stack.get());
            stack::give_back(start, bytes);
        }
        report_join(thread, pc, handle, index, status);
        Some(status)
    });
    joined.unwrap_or_else(|| {
        let status = if patience == Patience::Not { libc::EBUSY } else { libc::ETIMEDOUT };
        report_join(thread, pc, handle, index, status);
        steer::failed(thread);
        status
    })
}

fn report_join(thread: &Thread, pc: u64, handle: libc::pthread_t, index: u32, status: c_int) {
    match status {
        0 => {
            registry::joined(handle);
            observe::sync(thread, pc, SyncOp::Join, index as usize, 0);
        }
        // The C library refuses joins of oneself, and of a thread that joins this one.
        libc::EBUSY | libc::ETIMEDOUT | libc::EDEADLK => {
            observe::sync(thread, pc, SyncOp::JoinFailed, index as usize, 0)
        }
        _ => {}
    }
}

pub extern "C" fn join(handle: libc::pthread_t, result: *mut *mut c_void) -> c_int {
    // SAFETY: as the program asks (here and below).
    join_with(handle, result, Patience::Forever, core::ptr::null(), || unsafe {
        c::pthread_join(handle, result)
    })
}

extern "C" fn tryjoin(handle: libc::pthread_t, result: *mut *mut c_void) -> c_int {
    // SAFETY: as the program asks.
    join_with(handle, result, Patience::Not, core::ptr::null(), || unsafe {
        c::pthread_tryjoin_np(handle, result)
    })
}

extern "C" fn timedjoin(
    handle: libc::pthread_t,
    result: *mut *mut c_void,
    until: *const libc::timespec,
) -> c_int {
    // SAFETY: as the program asks.
    join_with(handle, result, Patience::Timed, until, || unsafe {
        c::pthread_timedjoin_np(handle, result, until)
    })
}

extern "C" fn clockjoin(
    handle: libc::pthread_t,
    result: *mut *mut c_void,
    clock: c_int,
    until: *const libc::timespec,
) -> c_int {
    // SAFETY: as the program asks.
    join_with(handle, result, Patience::Timed, until, || unsafe {
        c::pthread_clockjoin_np(handle, result, clock, until)
    })
}

pub extern "C" fn detach(handle: libc::pthread_t) -> c_int {
    let index = registry::index_of(handle);
    if let (Some(thread), Some(index)) = (thread::observed(), index) {
        let pc = thread.caller_pc();
        super::step(thread, pc, SyncOp::Detach, index as usize, 0);
        registry::detached(handle);
    }
    // SAFETY: as the program asks.
    unsafe { c::pthread_detach(handle) }
}

extern "C" fn setname(handle: libc::pthread_t, name: *const c_char) -> c_int {
    if let (Some(thread), Some(index)) = (thread::observed(), registry::index_of(handle)) {
        let pc = thread.caller_pc();
        // SAFETY: the program passes a C string.
        let text = unsafe { CStr::from_ptr(name) }.to_bytes();
        observe::sync_text(thread, pc, SyncOp::ThreadName, index as usize, 0, text);
    }
    // SAFETY: as the program asks.
    unsafe { c::pthread_setname_np(handle, name) }
}

export_with_pc! {
    pthread_create => create;
    pthread_join => join;
    pthread_tryjoin_np => tryjoin;
    pthread_timedjoin_np => timedjoin;
    pthread_clockjoin_np => clockjoin;
    pthread_detach => detach;
    pthread_setname_np => setname;
}
