//! The segment under which memory begins and ends its life.
//!
//! Allocation and release are writes to the whole block. They must not hide what the same thread does to it next, though, as a
//! covering access of the same segment would: the report is to show that access, and one after the release is an error. So the thread goes on in a new segment. One is enough for all
//! blocks until the thread passes something on: nobody can know the last segment until then.

use super::{slots, state};
use crate::thread::Thread;

/// The name that stands in the cells of a block; the thread is behind it afterwards.
pub fn segment(thread: &Thread) -> u32 {
    let Some(state) = state::of(thread) else { return 0 };
    let now = thread.access.segment.get();
    if state.marks_in != now || state.mark == 0 {
        slots::advance(thread);
        (state.mark, state.marks_in) = (now, thread.access.segment.get());
    }
    state.mark
}
