//! All threads: structures in use, structures to be used again, and who is who.
//!
//! One lock guards both lists. A crash handler may have interrupted its holder, so it waits for the lock only a while and then reads
//! without it ([`look`]): structures are never unmapped, and a list that is changing is still a list of structures.

use crate::spin::{self, Spin};
use crate::thread::{Thread, phase};
use core::sync::atomic::{AtomicU32, Ordering};

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

/// The thread gets its number and can be found.
pub fn link(thread: &'static Thread) {
    thread.life.index.set(NEXT_INDEX.fetch_add(1, Ordering::Relaxed));
    let mut registry = REGISTRY.lock();
    thread.life.next.set(registry.live);
    registry.live = core::ptr::from_ref(thread).cast_mut();
}

fn unlink(registry: &mut Registry, thread: &Thread) {
    let wanted = core::ptr::from_ref(thread).cast_mut();
    let mut before: Option<&Thread> = None;
    let mut at = registry.live;
    // SAFETY: the list is only changed under the lock, which the caller holds; structures are never unmapped.
    while let Some(here) = unsafe { at.as_ref() } {
        let next = here.life.next.get();
        if at == wanted {
            match before {
                Some(before) => before.life.next.set(next),
                None => registry.live = next,
            }
            here.life.next.set(registry.free);
            registry.free = wanted;
            return;
        }
        (before, at) = (Some(here), next);
    }
}

/// A structure for a thread that is about to be created.
pub fn allocate(parent: u32) -> Option<&'static Thread> {
    let recycled = {
        let mut registry = REGISTRY.lock();
        // SAFETY: on the free list, hence a structure, which is never unmapped.
        let first: Option<&'static Thread> = unsafe { registry.free.as_ref() };
        if let Some(first) = first {
            registry.free = first.life.next.get();
        }
        first
    };
    let thread = match recycled {
        Some(thread) => thread,
        None => Thread::map()?,
    };
    thread.prepare(parent);
    Some(thread)
}

/// Gives back a structure whose thread was never created.
pub fn discard(thread: &'static Thread) {
    let mut registry = REGISTRY.lock();
    thread.life.next.set(registry.free);
    registry.free = core::ptr::from_ref(thread).cast_mut();
}

/// The creation succeeded: the thread gets its index and can be found by its handle. It waits for its phase to change, and does not
/// touch the structure until then.
pub fn publish(thread: &'static Thread, handle: libc::pthread_t) -> u32 {
    thread.life.pthread.store(handle as usize, Ordering::Relaxed);
    link(thread);
    thread.index()
}

/// Index of the live thread with this handle.
pub fn index_of(handle: libc::pthread_t) -> Option<u32> {
    find(handle).map(Thread::index)
}

/// The live thread with this handle.
pub fn find(handle: libc::pthread_t) -> Option<&'static Thread> {
    let registry = REGISTRY.lock();
    let mut at = registry.live;
    // SAFETY: the list is stable under the lock, and structures are never unmapped.
    while let Some(thread) = unsafe { at.as_ref() } {
        if thread.life.pthread.load(Ordering::Relaxed) == handle as usize {
            return Some(thread);
        }
        at = thread.life.next.get();
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
        at = thread.life.next.get();
    }
}

/// Looks at threads as [`for_each`] does, until it is told that it is enough.
pub fn for_each_until(mut is_enough: impl FnMut(&Thread) -> bool) {
    let registry = REGISTRY.lock();
    let mut at = registry.live;
    // SAFETY: the list is stable under the lock.
    while let Some(thread) = unsafe { at.as_ref() } {
        if is_enough(thread) {
            return;
        }
        at = thread.life.next.get();
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
        if thread.life.phase.load(Ordering::Acquire) & phase::MASK == phase::RUNNING {
            see(thread);
        }
        at = thread.life.next.get();
    }
}

/// No program has more threads at a time.
const LOOK_MAX: usize = 1 << 20;

/// The thread was joined: its structure can be used again.
pub fn joined(handle: libc::pthread_t) {
    if let Some(thread) = find(handle) {
        let mut registry = REGISTRY.lock();
        unlink(&mut registry, thread);
    }
}

/// Nobody will join the thread.
pub fn detached(handle: libc::pthread_t) {
    let Some(thread) = find(handle) else { return };
    let mut registry = REGISTRY.lock();
    let before = thread.life.phase.fetch_or(phase::DETACHED, Ordering::AcqRel);
    if before & phase::MASK == phase::ENDED {
        unlink(&mut registry, thread);
    }
}

/// The calling thread has ended. Nobody will join a detached one, so its structure is free.
pub fn ended(thread: &Thread) {
    let mut registry = REGISTRY.lock();
    let before = thread.life.phase.swap(phase::ENDED, Ordering::AcqRel);
    if before & phase::DETACHED != 0 {
        unlink(&mut registry, thread);
    }
}

pub fn reset_after_fork() {
    REGISTRY.reset_after_fork();
    let mut registry = REGISTRY.lock();
    registry.live = core::ptr::null_mut();
    registry.free = core::ptr::null_mut();
}
