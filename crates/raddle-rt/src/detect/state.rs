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
    /// `seq_cst` fences before the thread's last one, `seq_cst` stores before that, fences before its last `seq_cst` load
    /// (`S_F`, `S_W`, `S_R` of [`super::weak`]).
    pub sc_fence: Clock,
    pub sc_write: Clock,
    pub sc_read: Clock,
    /// Choices made among stores so far.
    pub choices: u64,
    pub held: Held,
    /// Threads created so far.
    pub children: u32,
}

impl State {
    /// Makes the clocks that stores are compared with say nothing about slots that have started over.
    pub fn refresh(&mut self) {
        for clock in [&mut self.clock, &mut self.sc_fence, &mut self.sc_write, &mut self.sc_read] {
            clock.refresh();
        }
    }
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
        state.sc_fence.clear();
        state.sc_write.clear();
        state.sc_read.clear();
        state.choices = 0;
        state.held.clear();
        state.children = 0;
    }
    true
}
