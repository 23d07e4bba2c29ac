//! Memory of the calls of [`crate::interpose::system`], which have their arguments in an array: what the kernel reads, and what it has written.

use super::measure::{int_at, word_at};
use super::{r, w};
use crate::interpose::channel;

pub type Arguments = [usize; 6];
pub type Before = fn(&Arguments);
pub type After = fn(&Arguments, isize);

/// Most pieces that the kernel takes (`UIO_MAXIOV`).
const PIECES_MAX: usize = 1024;

pub fn nothing(_: &Arguments) {}
pub fn no_result(_: &Arguments, _: isize) {}

/// The upper half of the register is not defined for a function that returns an `int`.
fn int(result: isize) -> i32 {
    result as i32
}

/// Each piece of memory that a result of so many bytes covers.
fn pieces(list: usize, count: usize, bytes: usize, each: fn(usize, usize)) {
    let mut left = bytes;
    for at in 0..count.min(PIECES_MAX) {
        let (start, room) = (word_at(list + at * 16), word_at(list + at * 16 + 8));
        each(start, room.min(left));
        left -= room.min(left);
    }
}

fn list(list: usize, count: usize) {
    r(list, count.min(PIECES_MAX) * size_of::<libc::iovec>());
}

pub fn sends(a: &Arguments) {
    r(a[1], a[2]);
}

pub fn sends_to(a: &Arguments) {
    r(a[1], a[2]);
    r(a[4], if a[4] == 0 { 0 } else { a[5] });
}

pub fn received(a: &Arguments, result: isize) {
    w(a[1], (result.max(0) as usize).min(a[2]));
}

pub fn received_from(a: &Arguments, result: isize) {
    received(a, result);
    if result >= 0 {
        // How long the name is stands behind it now, and may be more than there was room for.
        named(a[4], a[5]);
    }
}

/// A peer's name, with its length where the program asked for it.
fn named(name: usize, length: usize) {
    if length != 0 {
        w(name, int_at(length).min(size_of::<libc::sockaddr_un>()));
        w(length, size_of::<libc::socklen_t>());
    }
}

pub fn gathers(a: &Arguments) {
    list(a[1], a[2]);
    pieces(a[1], a[2], usize::MAX, r);
}

pub fn scatters(a: &Arguments) {
    list(a[1], a[2]);
}

pub fn scattered(a: &Arguments, result: isize) {
    pieces(a[1], a[2], result.max(0) as usize, w);
}

/// Fields of `struct msghdr`.
fn message(at: usize) -> (usize, usize) {
    (word_at(at + 16), word_at(at + 24))
}

pub fn sends_message(a: &Arguments) {
    r(a[1], size_of::<libc::msghdr>());
    let (start, count) = message(a[1]);
    list(start, count);
    pieces(start, count, usize::MAX, r);
}

pub fn receives_message(a: &Arguments) {
    r(a[1], size_of::<libc::msghdr>());
    let (start, count) = message(a[1]);
    list(start, count);
}

pub fn received_message(a: &Arguments, result: isize) {
    let (start, count) = message(a[1]);
    pieces(start, count, result.max(0) as usize, w);
}

/// Where in the file to go on.
pub fn sent_file(a: &Arguments, result: isize) {
    w(a[2], if result >= 0 { size_of::<libc::off_t>() } else { 0 });
}

/// The name that a socket is given, or connected to.
pub fn names(a: &Arguments) {
    r(a[1], a[2] & 0xffff_ffff);
}

pub fn was_named(a: &Arguments, result: isize) {
    let result = int(result);
    if result >= 0 {
        named(a[1], a[2]);
    }
}

pub fn sets_option(a: &Arguments) {
    r(a[3], a[4] & 0xffff_ffff);
}

pub fn got_option(a: &Arguments, result: isize) {
    let result = int(result);
    if result >= 0 && a[4] != 0 {
        w(a[3], int_at(a[4]));
        w(a[4], size_of::<libc::socklen_t>());
    }
}

pub fn closes(a: &Arguments) {
    channel::forget(a[0]);
}

pub fn made_pair(a: &Arguments, result: isize) {
    let result = int(result);
    w(a[0], if result == 0 { 8 } else { 0 });
}

pub fn made_sockets(a: &Arguments, result: isize) {
    let result = int(result);
    w(a[3], if result == 0 { 8 } else { 0 });
}

const POLLED: usize = size_of::<libc::pollfd>();
/// More descriptors than anybody polls at once.
const POLLED_MAX: usize = 1 << 16;

pub fn polls(a: &Arguments) {
    // The kernel reads what is asked for and writes what has come, of each descriptor.
    for at in 0..a[1].min(POLLED_MAX) {
        r(a[0] + at * POLLED, 6);
    }
}

pub fn polled(a: &Arguments, result: isize) {
    let result = int(result);
    for at in 0..if result >= 0 { a[1].min(POLLED_MAX) } else { 0 } {
        let entry = a[0] + at * POLLED;
        w(entry + 6, 2);
        // SAFETY: the kernel has just written this entry of the program's list.
        let polled = unsafe { (entry as *const libc::pollfd).read_unaligned() };
        if polled.revents & (libc::POLLIN | libc::POLLPRI | libc::POLLHUP) != 0 {
            channel::after(channel::Flow::In, polled.fd as usize, 0);
        }
    }
}

fn sets(a: &Arguments, each: fn(usize, usize)) {
    let bytes = a[0].min(1 << 16).div_ceil(64) * 8;
    a[1..4].iter().for_each(|&set| each(set, bytes));
}

pub fn selects(a: &Arguments) {
    sets(a, r);
    r(a[4], size_of::<libc::timeval>());
}

pub fn selected(a: &Arguments, result: isize) {
    let result = int(result);
    if result >= 0 {
        sets(a, w);
        for fd in 0..a[0].min(libc::FD_SETSIZE) {
            // SAFETY: a set of the program has a bit for each of these descriptors.
            if a[1] != 0 && unsafe { libc::FD_ISSET(fd as i32, a[1] as *const libc::fd_set) } {
                channel::after(channel::Flow::In, fd, 0);
            }
        }
        w(a[4], size_of::<libc::timeval>());
    }
}

pub fn watches(a: &Arguments) {
    channel::note_watching();
    let deletes = a[1] as i32 == libc::EPOLL_CTL_DEL;
    r(if deletes { 0 } else { a[3] }, size_of::<libc::epoll_event>());
}

pub fn happened(a: &Arguments, result: isize) {
    let result = int(result);
    w(a[1], result.max(0) as usize * size_of::<libc::epoll_event>());
}

pub fn told_time(a: &Arguments, result: isize) {
    let result = int(result);
    w(a[1], if result == 0 { size_of::<libc::timespec>() } else { 0 });
}

pub fn told_day(a: &Arguments, result: isize) {
    let result = int(result);
    if result == 0 {
        w(a[0], size_of::<libc::timeval>());
    }
}

pub fn told_seconds(a: &Arguments, _: isize) {
    w(a[0], 8);
}

pub fn filled(a: &Arguments, result: isize) {
    w(a[0], (result.max(0) as usize).min(a[1]));
}

pub fn filled_all(a: &Arguments, result: isize) {
    let result = int(result);
    w(a[0], if result == 0 { a[1] } else { 0 });
}

pub fn awaits(a: &Arguments) {
    r(a[0], size_of::<libc::sigset_t>());
}

pub fn awaited(a: &Arguments, result: isize) {
    let result = int(result);
    w(a[1], if result == 0 { 4 } else { 0 });
}

pub fn awaited_about(a: &Arguments, result: isize) {
    let result = int(result);
    w(a[1], if result > 0 { size_of::<libc::siginfo_t>() } else { 0 });
}

pub fn awaits_so_long(a: &Arguments) {
    awaits(a);
    r(a[2], if a[2] == 0 { 0 } else { size_of::<libc::timespec>() });
}

pub fn controls(a: &Arguments, result: isize) {
    let result = int(result);
    if result >= 0 && a[1] == libc::FIONREAD as usize {
        w(a[2], 4);
    }
}

pub fn sets_up(a: &Arguments) {
    if a[1] == libc::FIONBIO as usize {
        r(a[2], 4);
    }
}
