//! Numbers of descriptors are part of the demo.
//!
//! The kernel gives the lowest free number, so who opens first decides what everybody is given. A call that makes descriptors is
//! therefore a step, also when what it makes is a file, which a replay really opens again: what the replay has made is then moved to the
//! recorded numbers. Closing is a step as well, so that a number which is to be given is free. What leads outside is not opened in a
//! replay; a stand-in takes its number.
//!
//! The C library opens files of its own for a moment (locales, host names). In a replay such a one can hold a number that is wanted: it is
//! waited for.

use super::descriptors::{self, Leads};
use super::{NO_MORE_RESULTS, Payload, beyond_the_end, bytes_of, on, replaying};
use crate::real;
use crate::steer::{self, Request, journal};
use crate::thread::Thread;
use core::ffi::c_int;
use raddle_wire::step;

/// What a call has made: its result, and the numbers of its descriptors.
#[derive(Clone, Copy)]
pub struct Made<const N: usize> {
    pub result: isize,
    pub fds: [c_int; N],
}

impl Made<1> {
    /// The result is the number, or a negative error number.
    pub fn one(result: isize) -> Made<1> {
        Made { result, fds: [result as c_int] }
    }
}

/// What stands behind descriptors that a demo has the numbers of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Behind {
    /// The call failed.
    Nothing,
    /// Files and pipes of the program's own: a replay has made them, too.
    Own,
    /// They lead outside: in a replay there are stand-ins.
    StandIn,
}

const REALLY_MADE: u64 = 0;
const LEADS_OUTSIDE: u64 = 1;

/// A call that makes descriptors, in its thread's turn. It must not wait. What leads outside is not made in a replay.
pub fn makes<const N: usize>(
    thread: &Thread,
    call: u32,
    perform: impl FnOnce() -> Made<N>,
) -> (Made<N>, Behind) {
    in_turn(thread, call, perform, behind)
}

/// The same for a call that a replay always makes, wherever its descriptors lead.
pub fn makes_again<const N: usize>(
    thread: &Thread,
    call: u32,
    perform: impl FnOnce() -> Made<N>,
) -> (Made<N>, Behind) {
    in_turn(thread, call, perform, |made| if made.result < 0 { Behind::Nothing } else { Behind::Own })
}

fn in_turn<const N: usize>(
    thread: &Thread,
    call: u32,
    perform: impl FnOnce() -> Made<N>,
    behind: impl Fn(&Made<N>) -> Behind,
) -> (Made<N>, Behind) {
    let failed = (Made { result: -(libc::EIO as isize), fds: [-1; N] }, Behind::Nothing);
    let request = Request { kind: step::SYSCALL, object: call as usize, pc: thread.caller_pc() };
    if replaying() {
        return match steer::visible(thread, request, |thread| given(thread, call, perform)) {
            Some(Some(made)) => made,
            Some(None) => beyond_the_end(thread),
            None => failed,
        };
    }
    if !on() {
        let made = perform();
        let behind = behind(&made);
        return (made, behind);
    }
    let recorded = steer::visible(thread, request, |thread| {
        let made = perform();
        thread.turns.count_step();
        let behind = behind(&made);
        let way = if behind == Behind::StandIn { LEADS_OUTSIDE } else { REALLY_MADE };
        let words = [u64::from(call), made.result as u64, way];
        let bytes = size_of_val(&words) + N * size_of::<u64>();
        journal::turn_with(steer::step_of(thread, step::SYSCALL), request.pc, bytes, |sink| {
            sink.put(bytes_of(&words));
            made.fds.iter().for_each(|&fd| sink.put(bytes_of(&[fd as u64])));
        });
        (made, behind)
    });
    recorded.unwrap_or(failed)
}

fn behind<const N: usize>(made: &Made<N>) -> Behind {
    if made.result < 0 {
        return Behind::Nothing;
    }
    if made.fds.iter().any(|&fd| descriptors::leads(fd) == Leads::Outside) {
        Behind::StandIn
    } else {
        Behind::Own
    }
}

/// In a replay: what was recorded. `None`: the demo is over.
fn given<const N: usize>(
    thread: &Thread,
    call: u32,
    perform: impl FnOnce() -> Made<N>,
) -> Option<(Made<N>, Behind)> {
    thread.turns.count_step();
    let mut payload = Payload { rest: steer::next_payload().unwrap_or(&[]) };
    let (found, result, way) = (payload.word(), payload.word(), payload.word());
    let (Some(found), Some(result), Some(way)) = (found, result, way) else {
        if steer::replaying() {
            steer::desynchronised(thread, NO_MORE_RESULTS);
        }
        return None;
    };
    if found != u64::from(call) {
        steer::desynchronised(thread, "the demo has the result of another system call here")
    }
    let fds: [c_int; N] = core::array::from_fn(|_| payload.word().unwrap_or(u64::MAX) as c_int);
    let recorded = Made { result: result as isize, fds };
    if recorded.result < 0 {
        return Some((recorded, Behind::Nothing));
    }
    if way == LEADS_OUTSIDE {
        fds.iter().for_each(|&fd| stand_in(thread, fd));
        return Some((recorded, Behind::StandIn));
    }
    let mut now = perform();
    if now.result < 0 {
        steer::desynchronised(thread, refused(now.result));
    }
    move_all(thread, &mut now.fds, fds);
    Some((recorded, Behind::Own))
}

fn refused(error: isize) -> &'static str {
    match -error as c_int {
        libc::EEXIST => {
            "a file that the recorded run created exists already; remove what the recorded run has left, or replay in a copy of the folder"
        }
        libc::ENOENT => {
            "a file that the recorded run opened is not there; replay in the folder where it was recorded, with its files"
        }
        _ => "a file that the recorded run opened cannot be opened now",
    }
}

/// Moves each descriptor to the number that it had.
fn move_all<const N: usize>(thread: &Thread, fds: &mut [c_int; N], wanted: [c_int; N]) {
    for at in 0..N {
        if let Some(other) = (at + 1..N).find(|&other| fds[other] == wanted[at]) {
            fds[other] = elsewhere(fds[other]);
        }
        place(thread, fds[at], wanted[at]);
        fds[at] = wanted[at];
    }
}

fn call(number: libc::c_long, a: c_int, b: c_int, c: c_int) -> isize {
    // SAFETY: calls on descriptors, which take no pointers.
    unsafe { real::syscall(number, [a as usize, b as usize, c as usize, 0, 0, 0]) }
}

/// Any other number for a descriptor.
fn elsewhere(fd: c_int) -> c_int {
    let close_on_exec = call(libc::SYS_fcntl, fd, libc::F_GETFD, 0) & libc::FD_CLOEXEC as isize != 0;
    let command = if close_on_exec { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    let moved = call(libc::SYS_fcntl, fd, command, 0);
    call(libc::SYS_close, fd, 0, 0);
    moved as c_int
}

/// So long the C library may hold a number that the demo wants.
const FREE_WAIT_MS: u64 = 1_000;

/// Gives the descriptor another number.
fn place(thread: &Thread, fd: c_int, wanted: c_int) {
    if fd == wanted {
        return;
    }
    let start = real::now_ms();
    while call(libc::SYS_fcntl, wanted, libc::F_GETFD, 0) >= 0 {
        if real::now_ms() - start > FREE_WAIT_MS {
            steer::desynchronised(thread, "the number of a descriptor that the demo gives is in use");
        }
        real::sleep_us(100);
    }
    let close_on_exec = call(libc::SYS_fcntl, fd, libc::F_GETFD, 0) & libc::FD_CLOEXEC as isize != 0;
    call(libc::SYS_dup3, fd, wanted, if close_on_exec { libc::O_CLOEXEC } else { 0 });
    call(libc::SYS_close, fd, 0, 0);
}

/// Makes a descriptor exist in the place of one that led outside.
pub fn stand_in(thread: &Thread, fd: c_int) {
    // SAFETY: opens a file by a constant path.
    let opened = unsafe {
        let flags = (libc::O_RDWR | libc::O_CLOEXEC) as usize;
        let path = c"/dev/null".as_ptr() as usize;
        real::syscall(libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, 0, 0, 0])
    };
    if opened >= 0 {
        place(thread, opened as c_int, fd);
    }
    descriptors::set(fd, Leads::Outside);
}

/// A call that frees numbers, or takes those that the program names: really made in a replay too, in its thread's turn.
pub fn changes<T>(thread: &Thread, perform: impl FnOnce() -> T) -> T {
    let pc = thread.caller_pc();
    let request = Request { kind: step::SYSCALL, object: descriptors::PIPES, pc };
    let mut perform = Some(perform);
    let mut act = || perform.take().map(|perform| perform());
    let result = steer::visible(thread, request, |thread| {
        let result = act();
        super::note_inside(thread, pc);
        steer::released(descriptors::PIPES);
        result
    });
    // A demo has no step that fails; were there one, the call would still have to be made.
    match result.flatten().or_else(act) {
        Some(result) => result,
        None => unreachable!("performed once"),
    }
}
