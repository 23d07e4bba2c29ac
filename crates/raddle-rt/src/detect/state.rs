//! What online detection keeps for a thread. It lives as long as the thread's structure and is recycled with it.

use super::clock::Clock;
use super::locks::Held;
use crate::arena;
use crate::thread::Thread;

#[repr(C)]
pub struct State {
    /// What the thread knows. Its own entry is its current epoch.
    pub clock: Clock,
    /// What it knew at its last release fence; passed on by relaxed stores.
    pub fence_release: Clock,
    /// What it read relaxed; known from the next acquire fence on.
    pub fence_acquire: Clock,
    pub held: Held,
    /// Threads created so far.
    pub children: u32,
}

/// The state of an observed thread; none when detection is off.
#[inline]
pub fn of(thread: &Thread) -> Option<&'static mut State> {
    // SAFETY: null, or mapped for this thread and used by nobody else while the thread runs.
    unsafe { thread.detect.cast::<State>().as_mut() }
}

/// Maps the state of a new thread structure, or empties that of a recycled one.
pub fn prepare(thread: &mut Thread) -> bool {
    if thread.detect.is_null() {
        match arena::map(size_of::<State>()) {
            Some(start) => thread.detect = start,
            None => return false,
        }
    }
    if let Some(state) = of(thread) {
        state.clock.clear();
        state.fence_release.clear();
        state.fence_acquire.clear();
        state.held.clear();
        state.children = 0;
    }
    true
}
