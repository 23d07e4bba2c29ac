//! What online detection keeps for a thread. It lives as long as the thread's structure and is recycled with it.

use super::DOMAIN;
use super::locks::Held;
use crate::arena;
use crate::thread::Thread;
use raddle_hb::ThreadClocks;

#[repr(C)]
pub struct State {
    pub clocks: ThreadClocks,
    /// Choices made among stores so far.
    pub choices: u64,
    pub held: Held,
    /// Threads created so far.
    pub children: u32,
    /// The condition or barrier that the thread is at, as [`vars::pin`](super::vars::pin) numbers it; 0: none.
    pub waits_at: u32,
    /// Generations of that barrier when the thread came.
    pub generation: u32,
    /// The segment under which memory begins and ends, while the thread is in the one that follows ([`super::marks`]).
    pub mark: u32,
    pub marks_in: u32,
    /// Blocks that the thread has released and the allocator has not got yet ([`super::quarantine`]), and how many it has released.
    pub waiting: [usize; 64],
    pub released: u32,
}

/// The state of an observed thread; none when detection is off.
#[inline]
pub fn of(thread: &Thread) -> Option<&'static mut State> {
    // SAFETY: null, or mapped for this thread and used by nobody else while the thread runs.
    unsafe { thread.detection.state.get().cast::<State>().as_mut() }
}

/// Maps the state of a new thread structure, or empties that of a recycled one.
pub fn prepare(thread: &Thread) -> bool {
    if thread.detection.state.get().is_null() {
        match arena::map(size_of::<State>()) {
            Some(start) => thread.detection.state.set(start),
            None => return false,
        }
    }
    if let Some(state) = of(thread) {
        state.clocks.clear(&DOMAIN.generations);
        state.choices = 0;
        state.held.clear();
        state.children = 0;
        state.waits_at = 0;
        state.generation = 0;
        state.mark = 0;
        state.marks_in = 0;
    }
    true
}
