//! Making an error happen again, and being sure of it.
//!
//! [`judge`] runs a program along a schedule once and says what that showed; [`replaying`] gets everything that the run
//! needs from the schedule's own head; [`verify`] is what stands between a replay that worked and the word *confirmed*:
//! the schedule is written to a file, read back, and replayed from there in fresh processes. [`ending`] makes findings of crashes
//! and deadlocks; [`shown_trace`] keeps a trace of the run that showed the error.

pub mod ending;
pub mod judge;
pub mod replaying;
pub mod shown_trace;
pub mod verify;
