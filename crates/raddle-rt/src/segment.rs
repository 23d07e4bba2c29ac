//! Which segment a thread is in ([`raddle_hb::segment`] says what that is).
//!
//! Runs that detect races take the names from [`detect::slots`], because there they are columns of clocks, too.

use crate::detect;
use crate::shadow;
use crate::spin::Spin;
use crate::thread::Thread;
use raddle_hb::Segment;
use raddle_hb::segment::SegmentTable;

static TABLE: Spin<SegmentTable> = Spin::new(SegmentTable::new());

/// Gives the thread a slot, if there is one.
pub fn attach(thread: &Thread) {
    if detect::on() {
        return detect::slots::attach(thread);
    }
    let first = TABLE.lock().attach(shadow::wipe);
    thread.access.enter(first);
}

pub fn detach(thread: &Thread) {
    if detect::on() {
        return detect::slots::detach(thread);
    }
    if thread.access.has_slot() {
        TABLE.lock().detach(thread.access.current());
        thread.access.enter(Segment::NONE);
    }
}

/// The thread has synchronised: a new segment begins.
#[inline]
pub fn advance(thread: &Thread) {
    if detect::on() {
        return detect::slots::advance(thread);
    }
    if let Some(next) = thread.access.current().next() {
        return thread.access.enter(next);
    }
    detach(thread);
    attach(thread);
}

pub fn reset_after_fork() {
    TABLE.reset_after_fork();
}
