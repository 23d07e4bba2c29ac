//! All threads: who is who, and how a thread begins and ends.

use crate::interpose::alternate_stack;
use crate::spin::{self, Spin};
use crate::thread::{self, Thread, phase};
use crate::{arch, detect, init, observe, real, record, segment, shadow, steer};
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};
use raddle_wire::{SyncOp, step};

struct Registry {
    /// Threads that were created and not yet joined or ended detached.
    live: *mut Thread,
    /// Structures to be used again.
    free: *mut Thread,
}

// SAFETY: the pointers are only followed under the registry's lock.
unsafe impl Send for Registry {}

static REGISTRY: Spin<Registry> =
    Spin::new(Registry { live: core::ptr::null_mut(), free: core::ptr::null_mut() });

/// Index for the next thread; 0 is the main thread.
static NEXT_INDEX: AtomicU32 = AtomicU32::new(0);

static END_KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// glibc runs destructors of thread-specific data this often; the last round is ours, so that the program's own
/// destructors are still observed.
const DESTRUCTOR_ROUNDS: u32 = 4;

pub fn adopt_main() -> Option<&'static mut Thread> {
    let main = Thread::map()?;
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: registers a C function as destructor.
    if unsafe { libc::pthread_key_create(&mut key, Some(end_destructor)) } == 0 {
        END_KEY.store(key, Ordering::Release);
    }
    // SAFETY: freshly mapped and ours.
    let main = unsafe { &mut *main };
    main.index = NEXT_INDEX.fetch_add(1, Ordering::Relaxed);
    // SAFETY: no arguments.
    main.pthread.store(unsafe { libc::pthread_self() } as usize, Ordering::Relaxed);
    main.phase.store(phase::RUNNING, Ordering::Relaxed);
    link(main);
    // It may end before the others, by `pthread_exit`.
    arm_end(main);
    if !detect::prepare(main) {
        return None;
    }
    Some(main)
}

/// The calling thread becomes `thread`, and its first event is written.
pub fn begin(thread: &'static mut Thread) {
    thread.os_tid.store(real::gettid(), Ordering::Relaxed);
    alternate_stack::adopt(thread);
    thread.shadow_base = shadow::base();
    thread.random = 0x9e37_79b9 ^ thread.index.wrapping_mul(0x85eb_ca6b);
    thread.observed = true;
    segment::attach(thread);
    if let Some(header) = init::header() {
        header.threads.fetch_add(1, Ordering::Relaxed);
    }
    arch::set_current(thread);
    let (routine, parent) = (thread.routine, u64::from(thread.parent));
    if steer::on() {
        steer::start(thread);
    }
    if thread.index == 0 {
        // The main thread is simply there: its beginning is no visible operation.
        observe::sync(thread, routine as u64, SyncOp::Start, routine, parent);
        thread.steps = 0;
    } else if steer::on() {
        let request = steer::Request { kind: step::START, object: 0, pc: routine as u64 };
        steer::visible(thread, request, |thread| {
            observe::sync(thread, routine as u64, SyncOp::Start, routine, parent);
        });
    } else {
        observe::sync(thread, routine as u64, SyncOp::Start, routine, parent);
    }
    thread::refresh_enabled(thread);
}

fn link(thread: &mut Thread) {
    let mut registry = REGISTRY.lock();
    thread.next = registry.live;
    registry.live = thread;
}

fn unlink(registry: &mut Registry, thread: *mut Thread) {
    let mut at = &raw mut registry.live;
    // SAFETY: the list is only changed under the lock, which the caller holds.
    unsafe {
        while !(*at).is_null() {
            if *at == thread {
                *at = (*thread).next;
                (*thread).next = registry.free;
                registry.free = thread;
                return;
            }
            at = &raw mut (**at).next;
        }
    }
}

/// A structure for a thread that is about to be created.
pub fn allocate(parent: u32) -> Option<*mut Thread> {
    let recycled = {
        let mut registry = REGISTRY.lock();
        let first = registry.free;
        if !first.is_null() {
            // SAFETY: on the free list, hence valid and ours under the lock.
            registry.free = unsafe { (*first).next };
        }
        first
    };
    let thread = if recycled.is_null() { Thread::map()? } else { recycled };
    // SAFETY: not yet known to any thread.
    let is_ready = unsafe {
        (*thread).prepare(parent);
        detect::prepare(&mut *thread)
    };
    if is_ready {
        return Some(thread);
    }
    discard(thread);
    None
}

/// Gives back a structure whose thread was never created.
pub fn discard(thread: *mut Thread) {
    let mut registry = REGISTRY.lock();
    // SAFETY: ours.
    unsafe { (*thread).next = registry.free };
    registry.free = thread;
}

/// The creation succeeded: the thread gets its index and can be found by its handle.
pub fn publish(thread: *mut Thread, handle: libc::pthread_t) -> u32 {
    // SAFETY: the new thread waits for its phase to change and does not touch the structure until then.
    let thread = unsafe { &mut *thread };
    thread.index = NEXT_INDEX.fetch_add(1, Ordering::Relaxed);
    thread.pthread.store(handle as usize, Ordering::Relaxed);
    link(thread);
    thread.index
}

/// Index of the live thread with this handle.
pub fn index_of(handle: libc::pthread_t) -> Option<u32> {
    find(handle).map(|(index, _)| index)
}

/// The structure of the live thread with this handle; null if there is none.
pub fn structure_of(handle: libc::pthread_t) -> *mut Thread {
    find(handle).map_or(core::ptr::null_mut(), |(_, thread)| thread)
}

fn find(handle: libc::pthread_t) -> Option<(u32, *mut Thread)> {
    let registry = REGISTRY.lock();
    let mut at = registry.live;
    while !at.is_null() {
        // SAFETY: the list is stable under the lock.
        let thread = unsafe { &*at };
        if thread.pthread.load(Ordering::Relaxed) == handle as usize {
            return Some((thread.index, at));
        }
        at = thread.next;
    }
    None
}

/// Looks at every thread that was created and neither joined nor ended detached.
pub fn for_each(look: impl Fn(&Thread)) {
    let registry = REGISTRY.lock();
    let mut at = registry.live;
    // SAFETY: the list is stable under the lock.
    while let Some(thread) = unsafe { at.as_ref() } {
        look(thread);
        at = thread.next;
    }
}

/// Looks at every thread that runs, from a handler. Whoever holds the lock may have been interrupted by that very handler, so it is
/// waited for only a while; without it the list may be changing, but it is always a list of valid structures.
pub fn look(see: impl Fn(&Thread)) {
    let guard = spin::lock_briefly(&REGISTRY);
    let mut at = match &guard {
        Some(registry) => registry.live,
        // SAFETY: reads one pointer.
        None => unsafe { (&raw const (*REGISTRY.peek()).live).read_volatile() },
    };
    for _ in 0..LOOK_MAX {
        // SAFETY: structures are never unmapped.
        let Some(thread) = (unsafe { at.as_ref() }) else { return };
        if thread.phase.load(Ordering::Acquire) & 0xff == phase::RUNNING {
            see(thread);
        }
        at = thread.next;
    }
}

/// No program has more threads at a time.
const LOOK_MAX: usize = 1 << 20;

/// The thread was joined: its structure can be used again.
pub fn joined(handle: libc::pthread_t) {
    if let Some((_, thread)) = find(handle) {
        let mut registry = REGISTRY.lock();
        unlink(&mut registry, thread);
    }
}

/// Nobody will join the thread.
pub fn detached(handle: libc::pthread_t) {
    let Some((_, thread)) = find(handle) else { return };
    let mut registry = REGISTRY.lock();
    // SAFETY: live under the lock.
    let before = unsafe { (*thread).phase.fetch_or(phase::DETACHED, Ordering::AcqRel) };
    if before & 0xff == phase::ENDED {
        unlink(&mut registry, thread);
    }
}

/// Arms the destructor that tells us about the end of the calling thread.
pub fn arm_end(thread: *mut Thread) {
    let key = END_KEY.load(Ordering::Acquire);
    if key != u32::MAX {
        // SAFETY: the key exists.
        unsafe { libc::pthread_setspecific(key, thread as *const c_void) };
    }
}

unsafe extern "C" fn end_destructor(value: *mut c_void) {
    let thread = value.cast::<Thread>();
    // SAFETY: the value is the calling thread's own structure.
    let this = unsafe { &mut *thread };
    this.destructor_rounds += 1;
    if this.destructor_rounds < DESTRUCTOR_ROUNDS {
        arm_end(thread);
        return;
    }
    end(this);
}

fn end(thread: &mut Thread) {
    if !thread.observed {
        return;
    }
    thread.uncancellable.store(true, Ordering::Relaxed);
    let routine = thread.routine;
    if steer::on() {
        let request = steer::Request { kind: step::END, object: 0, pc: routine as u64 };
        steer::visible(thread, request, |thread| {
            observe::sync(thread, routine as u64, SyncOp::End, 0, 0);
            steer::end_thread(thread);
        });
    } else {
        observe::sync(thread, routine as u64, SyncOp::End, 0, 0);
    }
    alternate_stack::release(thread);
    thread.enabled = 0;
    thread.observed = false;
    segment::detach(thread);
    record::close_slot(thread);
    arch::set_current(thread::idle());
    let mut registry = REGISTRY.lock();
    let before = thread.phase.swap(phase::ENDED, Ordering::AcqRel);
    if before & phase::DETACHED != 0 {
        unlink(&mut registry, thread);
    } else {
        thread.phase.store(phase::ENDED, Ordering::Release);
    }
}

pub fn reset_after_fork() {
    REGISTRY.reset_after_fork();
    let mut registry = REGISTRY.lock();
    registry.live = core::ptr::null_mut();
    registry.free = core::ptr::null_mut();
}
