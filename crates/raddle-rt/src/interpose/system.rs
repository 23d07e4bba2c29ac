//! System calls that bring something into the program, through the C library's functions for them.
//!
//! Without steering each is the plain call behind one check. With steering, calls on pipes of the program's own are ordered
//! like other blocking operations, and calls that wait for the outside world let other threads go on. With a demo, what
//! came from outside is recorded, or given from the record ([`crate::demo`]).
//!
//! Covered: tsan11rec's list (thesis §4.4.4: read, write, recv, recvmsg, send, sendmsg, accept, accept4, clock_gettime,
//! ioctl, select, bind, poll) and beyond it readv, writev, recvfrom, sendto, socket, connect, listen, the names and
//! options of sockets, epoll, eventfd, getrandom, gettimeofday, time, pause, sigwait, sigwaitinfo, sigtimedwait. Calls that the C library makes
//! for itself (`fgets` on a terminal) do not come by here.

use super::channel::{self, Flow};
use super::clock_queries::{clock_gettime, getentropy, getpid, getrandom, gettimeofday, time};
use super::library::kernel;
use super::polling::{
    epoll_ctl, epoll_pwait, epoll_wait, pause, poll, ppoll, select, sigtimedwait, sigwait, sigwaitinfo,
};
use super::scatter::{readv, recvmsg};
use crate::demo::descriptors::{self, Leads, PIPES};
use crate::demo::numbers::{self, Made};
use crate::demo::{self, Length, Room};
use crate::real;
use crate::steer::{self, Patience, Request};
use crate::thread::{self, Thread};
use core::ffi::{c_int, c_long, c_uint};
use raddle_wire::step;

pub(super) const NOTHING: Room = (0, 0);

/// The thread; the exported functions have made sure that there is one.
pub(super) fn steered() -> Option<&'static Thread> {
    thread::observed()
}

/// A C function of up to six integer arguments. Calling one with more than it takes does no harm.
type Six = extern "C" fn(usize, usize, usize, usize, usize, usize) -> isize;

/// Exports a stand-in for each function. Unless the program is steered, the C library's own does everything: it knows
/// about cancellation and about the kernel's fast ways to tell the time.
///
/// Each says which way it passes something on ([`channel`]), and which memory it reads before and has written after ([`kernel`]).
macro_rules! stand_in {
    ($($name:ident $flow:ident $before:ident $after:ident;)*) => {
        #[allow(non_upper_case_globals)]
        mod behind {
            use crate::real::Real;
            $(pub static $name: Real = Real::new(match core::ffi::CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => panic!("function names have no inner NUL"),
            });)*
        }
        mod entry {
            use super::{Flow, Six, behind, channel, demo, kernel, steer, thread};
            $(pub extern "C" fn $name(a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> isize {
                const NUMBER: u32 = match raddle_wire::calls::index_of(stringify!($name)) {
                    Some(number) => number,
                    None => panic!("raddle-wire lists all functions"),
                };
                let seen = thread::observed().is_some();
                let ours = steer::on() && seen;
                if ours && demo::leaves_out(NUMBER) {
                    return super::left_out(&behind::$name, [a, b, c, d, e, f]);
                }
                let function = if ours { super::$name as *const () as usize } else { behind::$name.get() };
                // SAFETY: both are C functions with at most six integer arguments.
                let function = unsafe { core::mem::transmute::<usize, Six>(function) };
                // Steered calls come by when they are made, in their turn.
                let flow = if seen && !ours { Flow::$flow } else { Flow::None };
                let arguments = [a, b, c, d, e, f];
                const BEFORE: kernel::Before = kernel::$before;
                const AFTER: kernel::After = kernel::$after;
                let pc = thread::current().caller_pc();
                BEFORE(&arguments);
                channel::before(flow, a);
                let result = function(a, b, c, d, e, f);
                if seen {
                    // A handler of the program may have made calls of its own meanwhile.
                    thread::current().caller.set(pc);
                }
                AFTER(&arguments, result);
                channel::after(flow, a, result);
                if const { super::waits_for_signal(stringify!($name)) } {
                    channel::receive(channel::SIGNALS);
                }
                result
            })*
        }
        /// Finds all functions now: a signal handler may be the first to call one, and must not look it up.
        pub fn find_all() {
            $(behind::$name.find();)*
        }
        mod exported {
            use super::entry;
            crate::export_with_pc! { $($name => entry::$name;)* }
        }
    };
}

/// Is it a function that takes a signal which somebody has sent?
const fn waits_for_signal(name: &str) -> bool {
    matches!(name.as_bytes(), b"sigwait" | b"sigwaitinfo" | b"sigtimedwait")
}

pub(super) fn raw(number: c_long, arguments: [usize; 6]) -> isize {
    let flow = Flow::of(number);
    channel::before(flow, arguments[0]);
    // SAFETY: as the program asks.
    let result = unsafe { real::syscall(number, arguments) };
    channel::after(flow, arguments[0], result);
    result
}

/// What the C function returns for a kernel's result.
pub(super) fn answer(result: isize) -> isize {
    if (-4095..0).contains(&result) {
        real::set_errno(-result as c_int);
        return -1;
    }
    result
}

pub(super) fn up_to(address: usize, result: isize, room: usize) -> Room {
    (address, if result > 0 { (result as usize).min(room) } else { 0 })
}

/// A function that the demo leaves out: the C library's own does everything.
fn left_out(function: &real::Real, [a, b, c, d, e, f]: [usize; 6]) -> isize {
    // SAFETY: a C function with at most six integer arguments.
    let function = unsafe { core::mem::transmute::<usize, Six>(function.get()) };
    match steered() {
        Some(thread) => demo::left_out(thread, || function(a, b, c, d, e, f)),
        None => function(a, b, c, d, e, f),
    }
}

/// A call on a pipe of the program's own: made when it would not wait, in the thread's turn.
pub(super) fn inside(
    thread: &Thread,
    fd: usize,
    events: i16,
    number: c_long,
    arguments: [usize; 6],
) -> isize {
    let pc = thread.caller_pc();
    let request = Request { kind: step::SYSCALL, object: PIPES, pc };
    // A descriptor that does not wait fails at once instead.
    let flags = raw(libc::SYS_fcntl, [fd, libc::F_GETFL as usize, 0, 0, 0, 0]);
    let patient = flags >= 0 && flags as i32 & libc::O_NONBLOCK == 0;
    let done = steer::blocking(thread, request, Patience::Forever, |thread| {
        let mut poll = libc::pollfd { fd: fd as c_int, events, revents: 0 };
        let ready = raw(libc::SYS_poll, [&raw mut poll as usize, 1, 0, 0, 0, 0]);
        if ready == 0 && patient {
            return None;
        }
        let result = raw(number, arguments);
        demo::note_inside(thread, pc);
        steer::released(PIPES);
        Some(result)
    });
    done.unwrap_or(-(libc::EINTR as isize))
}

/// Does a call on this descriptor wait? A demo asks at any rate.
pub(super) fn patience_of(fd: usize, events: i16) -> Length {
    let mut poll = libc::pollfd { fd: fd as c_int, events, revents: 0 };
    let mut is_ready = || raw(libc::SYS_poll, [&raw mut poll as usize, 1, 0, 0, 0, 0]) != 0;
    let never_waits = || {
        let flags = raw(libc::SYS_fcntl, [fd, libc::F_GETFL as usize, 0, 0, 0, 0]);
        flags < 0 || flags as i32 & libc::O_NONBLOCK != 0
    };
    if demo::on() || steer::on() && !(never_waits() || is_ready()) { Length::Long } else { Length::Short }
}

/// A call on a descriptor that may write one piece of the program's memory.
fn transfer(fd: usize, events: i16, number: c_long, arguments: [usize; 6], room: Room) -> isize {
    let Some(thread) = steered() else { return answer(raw(number, arguments)) };
    let result = match descriptors::leads(fd as c_int) {
        Leads::Nowhere => raw(number, arguments),
        Leads::Inside if !steer::orders_calls() => raw(number, arguments),
        Leads::Inside => inside(thread, fd, events, number, arguments),
        Leads::Outside => demo::outside(
            thread,
            number as u32,
            patience_of(fd, events),
            || raw(number, arguments),
            |result| [up_to(room.0, result, room.1)],
        ),
    };
    answer(result)
}

pub(super) extern "C" fn read(fd: usize, buffer: usize, bytes: usize) -> isize {
    transfer(fd, libc::POLLIN, libc::SYS_read, [fd, buffer, bytes, 0, 0, 0], (buffer, bytes))
}

extern "C" fn write(fd: usize, buffer: usize, bytes: usize) -> isize {
    transfer(fd, libc::POLLOUT, libc::SYS_write, [fd, buffer, bytes, 0, 0, 0], NOTHING)
}

extern "C" fn send(fd: usize, buffer: usize, bytes: usize, flags: usize) -> isize {
    transfer(fd, libc::POLLOUT, libc::SYS_sendto, [fd, buffer, bytes, flags, 0, 0], NOTHING)
}

extern "C" fn sendto(
    fd: usize,
    buffer: usize,
    bytes: usize,
    flags: usize,
    to: usize,
    length: usize,
) -> isize {
    transfer(fd, libc::POLLOUT, libc::SYS_sendto, [fd, buffer, bytes, flags, to, length], NOTHING)
}

extern "C" fn sendmsg(fd: usize, message: usize, flags: usize) -> isize {
    transfer(fd, libc::POLLOUT, libc::SYS_sendmsg, [fd, message, flags, 0, 0, 0], NOTHING)
}

extern "C" fn writev(fd: usize, pieces: usize, count: usize) -> isize {
    transfer(fd, libc::POLLOUT, libc::SYS_writev, [fd, pieces, count, 0, 0, 0], NOTHING)
}

pub(super) extern "C" fn recv(fd: usize, buffer: usize, bytes: usize, flags: usize) -> isize {
    transfer(fd, libc::POLLIN, libc::SYS_recvfrom, [fd, buffer, bytes, flags, 0, 0], (buffer, bytes))
}

/// The length behind a pointer of the program, 0 if there is none.
fn length_at(pointer: usize) -> usize {
    // SAFETY: null, or a valid pointer to a socket address length.
    if pointer == 0 { 0 } else { unsafe { *(pointer as *const c_uint) as usize } }
}

pub(super) extern "C" fn recvfrom(
    fd: usize,
    buffer: usize,
    bytes: usize,
    flags: usize,
    from: usize,
    length: usize,
) -> isize {
    let arguments = [fd, buffer, bytes, flags, from, length];
    let Some(thread) = steered() else { return answer(raw(libc::SYS_recvfrom, arguments)) };
    if descriptors::leads(fd as c_int) == Leads::Inside && steer::orders_calls() {
        return answer(inside(thread, fd, libc::POLLIN, libc::SYS_recvfrom, arguments));
    }
    let room = length_at(length);
    answer(demo::outside(
        thread,
        libc::SYS_recvfrom as u32,
        patience_of(fd, libc::POLLIN),
        || raw(libc::SYS_recvfrom, arguments),
        |result| {
            let named = result >= 0 && from != 0 && length != 0;
            [
                up_to(buffer, result, bytes),
                (from, if named { room } else { 0 }),
                (length, if named { size_of::<c_uint>() } else { 0 }),
            ]
        },
    ))
}

// The same with the room that a fortified program knows of.
pub extern "C" fn read_checked(fd: usize, buffer: usize, bytes: usize, room: usize) -> usize {
    within(bytes, room);
    read(fd, buffer, bytes) as usize
}

pub extern "C" fn recv_checked(fd: usize, buffer: usize, bytes: usize, room: usize, flags: usize) -> usize {
    within(bytes, room);
    recv(fd, buffer, bytes, flags) as usize
}

pub extern "C" fn recvfrom_checked(
    fd: usize,
    buffer: usize,
    bytes: usize,
    room: usize,
    flags: usize,
    from: usize,
    length: usize,
) -> usize {
    within(bytes, room);
    recvfrom(fd, buffer, bytes, flags, from, length) as usize
}

pub extern "C" fn poll_checked(list: usize, count: usize, timeout: usize, room: usize) -> usize {
    within(count.saturating_mul(size_of::<libc::pollfd>()), room);
    poll(list, count, timeout as c_int) as usize
}

pub extern "C" fn ppoll_checked(list: usize, count: usize, time: usize, mask: usize, room: usize) -> usize {
    within(count.saturating_mul(size_of::<libc::pollfd>()), room);
    ppoll(list, count, time, mask) as usize
}

/// As glibc's fortified functions: a program that would overflow its buffer ends.
fn within(bytes: usize, room: usize) {
    crate::real_fn! { fn __chk_fail(); }
    if bytes > room {
        // SAFETY: no arguments; does not return.
        unsafe { __chk_fail() };
    }
}

/// A call that makes a new descriptor which leads outside, and writes a peer's name.
fn opens(number: c_long, length: Length, arguments: [usize; 6], name: usize, name_bytes: usize) -> isize {
    let Some(thread) = steered() else { return answer(raw(number, arguments)) };
    let room = length_at(name_bytes);
    answer(demo::outside_pieces(
        thread,
        number as u32,
        length,
        || raw(number, arguments),
        |result, each| {
            let named = result >= 0 && name != 0 && name_bytes != 0;
            each((name, if named { room } else { 0 }));
            each((name_bytes, if named { size_of::<c_uint>() } else { 0 }));
        },
        |result| {
            if result >= 0 {
                demo::opened(thread, result as c_int);
            }
        },
    ))
}

extern "C" fn socket(domain: usize, kind: usize, protocol: usize) -> isize {
    opens(libc::SYS_socket, Length::Short, [domain, kind, protocol, 0, 0, 0], 0, 0)
}

extern "C" fn accept(fd: usize, name: usize, length: usize) -> isize {
    opens(libc::SYS_accept, patience_of(fd, libc::POLLIN), [fd, name, length, 0, 0, 0], name, length)
}

extern "C" fn accept4(fd: usize, name: usize, length: usize, flags: usize) -> isize {
    opens(libc::SYS_accept4, patience_of(fd, libc::POLLIN), [fd, name, length, flags, 0, 0], name, length)
}

extern "C" fn epoll_create1(flags: usize) -> isize {
    opens(libc::SYS_epoll_create1, Length::Short, [flags, 0, 0, 0, 0, 0], 0, 0)
}

extern "C" fn epoll_create(size: usize) -> isize {
    opens(libc::SYS_epoll_create, Length::Short, [size, 0, 0, 0, 0, 0], 0, 0)
}

/// A call on a socket that only has a result.
pub(super) fn asks(fd: usize, number: c_long, length: Length, arguments: [usize; 6]) -> isize {
    let Some(thread) = steered() else { return answer(raw(number, arguments)) };
    if descriptors::leads(fd as c_int) != Leads::Outside {
        return answer(raw(number, arguments));
    }
    answer(demo::outside(thread, number as u32, length, || raw(number, arguments), |_| [NOTHING]))
}

extern "C" fn connect(fd: usize, name: usize, length: usize) -> isize {
    let patience = if demo::on() { Length::Long } else { Length::Short };
    asks(fd, libc::SYS_connect, patience, [fd, name, length, 0, 0, 0])
}

extern "C" fn bind(fd: usize, name: usize, length: usize) -> isize {
    asks(fd, libc::SYS_bind, Length::Short, [fd, name, length, 0, 0, 0])
}

extern "C" fn listen(fd: usize, backlog: usize) -> isize {
    asks(fd, libc::SYS_listen, Length::Short, [fd, backlog, 0, 0, 0, 0])
}

extern "C" fn shutdown(fd: usize, how: usize) -> isize {
    asks(fd, libc::SYS_shutdown, Length::Short, [fd, how, 0, 0, 0, 0])
}

extern "C" fn setsockopt(fd: usize, level: usize, option: usize, value: usize, bytes: usize) -> isize {
    asks(fd, libc::SYS_setsockopt, Length::Short, [fd, level, option, value, bytes, 0])
}

/// A call on a socket that writes a value and its length.
fn asks_for(fd: usize, number: c_long, arguments: [usize; 6], value: usize, bytes: usize) -> isize {
    let Some(thread) = steered() else { return answer(raw(number, arguments)) };
    if descriptors::leads(fd as c_int) != Leads::Outside {
        return answer(raw(number, arguments));
    }
    let room = length_at(bytes);
    answer(demo::outside(
        thread,
        number as u32,
        Length::Short,
        || raw(number, arguments),
        |result| {
            let written = result >= 0;
            [(value, if written { room } else { 0 }), (bytes, if written { size_of::<c_uint>() } else { 0 })]
        },
    ))
}

extern "C" fn getsockname(fd: usize, name: usize, length: usize) -> isize {
    asks_for(fd, libc::SYS_getsockname, [fd, name, length, 0, 0, 0], name, length)
}

extern "C" fn getpeername(fd: usize, name: usize, length: usize) -> isize {
    asks_for(fd, libc::SYS_getpeername, [fd, name, length, 0, 0, 0], name, length)
}

extern "C" fn getsockopt(fd: usize, level: usize, option: usize, value: usize, bytes: usize) -> isize {
    asks_for(fd, libc::SYS_getsockopt, [fd, level, option, value, bytes, 0], value, bytes)
}

/// Requests whose argument is one number that the kernel writes (`FIONREAD`), or nothing.
extern "C" fn ioctl(fd: usize, request: usize, argument: usize) -> isize {
    let arguments = [fd, request, argument, 0, 0, 0];
    let Some(thread) = steered() else { return answer(raw(libc::SYS_ioctl, arguments)) };
    if descriptors::leads(fd as c_int) != Leads::Outside {
        return answer(raw(libc::SYS_ioctl, arguments));
    }
    let bytes = if request == libc::FIONREAD as usize { size_of::<c_int>() } else { 0 };
    let perform = || raw(libc::SYS_ioctl, arguments);
    answer(demo::outside(thread, libc::SYS_ioctl as u32, Length::Short, perform, |result| {
        [(argument, if result >= 0 { bytes } else { 0 })]
    }))
}

/// The order of closing decides which number the next descriptor gets.
pub(super) extern "C" fn close(fd: usize) -> isize {
    let arguments = [fd, 0, 0, 0, 0, 0];
    let Some(thread) = steered() else { return answer(raw(libc::SYS_close, arguments)) };
    let leads = descriptors::leads(fd as c_int);
    descriptors::closed(fd as c_int);
    if demo::on() {
        return answer(numbers::changes(thread, || raw(libc::SYS_close, arguments)));
    }
    let result = raw(libc::SYS_close, arguments);
    if leads == Leads::Inside {
        steer::released(PIPES);
    }
    answer(result)
}

extern "C" fn pipe(ends: *mut [c_int; 2]) -> isize {
    pipe2(ends, 0)
}

extern "C" fn pipe2(ends: *mut [c_int; 2], flags: usize) -> isize {
    pair(libc::SYS_pipe2, ends, |ends| [ends, flags, 0, 0, 0, 0])
}

extern "C" fn socketpair(domain: usize, kind: usize, protocol: usize, ends: *mut [c_int; 2]) -> isize {
    pair(libc::SYS_socketpair, ends, |ends| [domain, kind, protocol, ends, 0, 0])
}

/// A call that makes two descriptors which lead to each other.
fn pair(number: c_long, ends: *mut [c_int; 2], arguments: impl Fn(usize) -> [usize; 6]) -> isize {
    let perform = || {
        let mut fds = [-1; 2];
        let result = raw(number, arguments(&raw mut fds as usize));
        if result == 0 && steer::on() {
            fds.iter().for_each(|&fd| descriptors::set(fd, Leads::Inside));
        }
        Made { result, fds }
    };
    let made = match steered().filter(|_| demo::on()) {
        Some(thread) => numbers::makes_again(thread, number as u32, perform).0,
        None => perform(),
    };
    if made.result == 0 {
        // SAFETY: the program passes room for two numbers.
        unsafe { *ends = made.fds };
        if steer::on() {
            made.fds.iter().for_each(|&fd| descriptors::set(fd, Leads::Inside));
        }
    }
    answer(made.result)
}

extern "C" fn eventfd(value: usize, flags: usize) -> isize {
    let perform = || Made::one(raw(libc::SYS_eventfd2, [value, flags, 0, 0, 0, 0]));
    let made = match steered().filter(|_| demo::on()) {
        Some(thread) => numbers::makes_again(thread, libc::SYS_eventfd2 as u32, perform).0,
        None => perform(),
    };
    if made.result >= 0 && steer::on() {
        descriptors::set(made.result as c_int, Leads::Inside);
    }
    answer(made.result)
}

/// The two helpers of the library, which would make their calls by themselves.
pub extern "C" fn eventfd_write(fd: usize, value: usize) -> usize {
    let result = write(fd, &raw const value as usize, size_of::<u64>());
    if result == size_of::<u64>() as isize { 0 } else { -1i32 as usize }
}

pub extern "C" fn eventfd_read(fd: usize, value: usize) -> usize {
    let result = read(fd, value, size_of::<u64>());
    if result == size_of::<u64>() as isize { 0 } else { -1i32 as usize }
}

/// Sends a piece of a file. What is sent goes outside; where the file is read from next, a replay has to be told.
extern "C" fn sendfile(to: usize, from: usize, offset: usize, bytes: usize) -> isize {
    let arguments = [to, from, offset, bytes, 0, 0];
    let Some(thread) = steered() else { return answer(raw(libc::SYS_sendfile, arguments)) };
    match descriptors::leads(to as c_int) {
        Leads::Inside if steer::orders_calls() => {
            answer(inside(thread, to, libc::POLLOUT, libc::SYS_sendfile, arguments))
        }
        Leads::Inside | Leads::Nowhere => answer(raw(libc::SYS_sendfile, arguments)),
        Leads::Outside => {
            let perform = || raw(libc::SYS_sendfile, arguments);
            let room = if offset == 0 { 0 } else { size_of::<libc::off_t>() };
            answer(demo::outside(
                thread,
                libc::SYS_sendfile as u32,
                patience_of(to, libc::POLLOUT),
                perform,
                |result| [(offset, if result >= 0 { room } else { 0 })],
            ))
        }
    }
}

extern "C" fn sendfile64(to: usize, from: usize, offset: usize, bytes: usize) -> isize {
    sendfile(to, from, offset, bytes)
}

stand_in! {
    read In nothing received;
    write Out sends no_result;
    readv In scatters scattered;
    writev Out gathers no_result;
    recv In nothing received;
    recvfrom In nothing received_from;
    recvmsg In receives_message received_message;
    send Out sends no_result;
    sendto Out sends_to no_result;
    sendmsg Out sends_message no_result;
    sendfile Out nothing sent_file;
    sendfile64 Out nothing sent_file;
    socket None nothing no_result;
    accept In nothing was_named;
    accept4 In nothing was_named;
    connect Out names no_result;
    bind None names no_result;
    listen None nothing no_result;
    shutdown Out nothing no_result;
    setsockopt None sets_option no_result;
    getsockopt None nothing got_option;
    getsockname None nothing was_named;
    getpeername None nothing was_named;
    ioctl None sets_up controls;
    close Out closes no_result;
    pipe None nothing made_pair;
    pipe2 None nothing made_pair;
    socketpair None nothing made_sockets;
    eventfd None nothing no_result;
    poll None polls polled;
    ppoll None polls polled;
    select None selects selected;
    epoll_create None nothing no_result;
    epoll_create1 None nothing no_result;
    epoll_ctl Out watches no_result;
    epoll_wait In nothing happened;
    epoll_pwait In nothing happened;
    clock_gettime None nothing told_time;
    gettimeofday None nothing told_day;
    time None nothing told_seconds;
    getrandom None nothing filled;
    getentropy None nothing filled_all;
    getpid None nothing no_result;
    pause None nothing no_result;
    sigwait None awaits awaited;
    sigwaitinfo None awaits awaited_about;
    sigtimedwait None awaits_so_long awaited_about;
}
