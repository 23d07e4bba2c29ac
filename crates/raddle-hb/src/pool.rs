//! Memory for many small things of one kind: taken from a list of free ones, which chunks are added to. Never given back
//! to the system.

use crate::host::Host;
use crate::spin::Spin;

/// A free thing holds the address of the next free one in its own memory.
struct Free<T>(*mut T);
// SAFETY: only used under the lock.
unsafe impl<T> Send for Free<T> {}

pub struct Pool<T, H> {
    free: Spin<Free<T>, H>,
}

/// Bytes that are asked for at once: a program with one atomic needs one chunk, and one with thousands asks seldom.
const CHUNK_BYTES: usize = 1 << 16;

impl<T, H: Host> Pool<T, H> {
    pub const fn new() -> Pool<T, H> {
        const { assert!(size_of::<T>() >= size_of::<*mut T>() && align_of::<T>() >= align_of::<*mut T>()) };
        Pool { free: Spin::new(Free(core::ptr::null_mut())) }
    }

    /// Memory for one thing, whose contents mean nothing; none when the host has no more.
    pub fn take(&self) -> Option<*mut T> {
        let mut free = self.free.lock();
        if free.0.is_null() {
            let chunk = H::map(CHUNK_BYTES)?.as_ptr().cast::<T>();
            for ix in 0..CHUNK_BYTES / size_of::<T>() {
                // SAFETY: inside the chunk, which is ours.
                unsafe {
                    let at = chunk.add(ix);
                    at.cast::<*mut T>().write(free.0);
                    free.0 = at;
                }
            }
        }
        let first = free.0;
        // SAFETY: on the list.
        free.0 = unsafe { first.cast::<*mut T>().read() };
        Some(first)
    }

    /// # Safety
    /// The memory is from this pool and nobody uses it any more.
    pub unsafe fn give_back(&self, at: *mut T) {
        let mut free = self.free.lock();
        // SAFETY: by contract.
        unsafe { at.cast::<*mut T>().write(free.0) };
        free.0 = at;
    }

    pub fn reset_after_fork(&self) {
        self.free.reset_after_fork();
    }
}

impl<T, H: Host> Default for Pool<T, H> {
    fn default() -> Self {
        Pool::new()
    }
}
