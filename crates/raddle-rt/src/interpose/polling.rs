//! Waiting for descriptors and signals: `poll`, `select`, `epoll` and their kin.
//!
//! Descriptors of the program's own are ready or not by what its threads do: waiting for them is an operation that blocks, like any other. All
//! else waits for the outside world, so other threads go on meanwhile. A demo holds what was brought in either case.

use super::system::{NOTHING, answer, asks, raw, steered, up_to};
use crate::demo::descriptors::{self, Leads, PIPES};
use crate::demo::{self, Length, Room, numbers};
use crate::steer::{self, Patience, Request};
use crate::thread::Thread;
use core::ffi::{c_int, c_long, c_void};
use raddle_wire::step;

/// Waits for any of several descriptors, so long. Waits of no time at all are short.
///
/// Descriptors that all lead back into the program (`inside`) are ready or not by what the program does: a thread that waits for them is set aside,
/// and tries again (`attempt`, which does not wait) when something happens to one. Otherwise others go on while it waits in the
/// kernel, unless there is something at once.
fn waits<const N: usize>(
    number: c_long,
    arguments: [usize; 6],
    limit: Limit,
    rooms: [Room; N],
    inside: impl FnOnce() -> bool,
    attempt: impl Fn() -> isize,
) -> isize {
    let Some(thread) = steered() else { return answer(raw(number, arguments)) };
    if demo::on() {
        let length = if limit == Limit::After(0) { Length::Short } else { Length::Long };
        let perform = || limit.passes(raw(number, arguments));
        return answer(demo::outside(thread, number as u32, length, perform, |result| {
            rooms.map(|room| if result >= 0 { room } else { NOTHING })
        }));
    }
    if steer::orders_calls() && inside() {
        return answer(waits_inside(thread, limit, attempt));
    }
    answer(waits_outside(thread, limit, attempt, || raw(number, arguments)))
}

/// Waits for what only other threads can do.
fn waits_inside(thread: &Thread, limit: Limit, attempt: impl Fn() -> isize) -> isize {
    let pc = thread.caller_pc();
    let request = Request { kind: step::SYSCALL, object: PIPES, pc };
    let patience = if limit == Limit::Never { Patience::Forever } else { Patience::Timed };
    let done = steer::blocking(thread, request, patience, |thread| {
        let result = attempt();
        if result == 0 && limit != Limit::After(0) {
            return None;
        }
        demo::note_inside(thread, pc);
        Some(result)
    });
    let result = done.unwrap_or_else(|| {
        if limit == Limit::Never {
            return -(libc::EINTR as isize);
        }
        demo::note_failed(thread, pc);
        steer::failed(thread);
        limit.passes(0)
    });
    if result == 0 {
        // Whoever asks again and again waits for others, as one that sleeps does.
        steer::yielded(thread);
    }
    result
}

/// Waits for the outside world: others go on meanwhile, unless something is there already.
fn waits_outside(
    thread: &Thread,
    limit: Limit,
    attempt: impl Fn() -> isize,
    perform: impl FnOnce() -> isize,
) -> isize {
    if !steer::on() {
        return perform();
    }
    match attempt() {
        0 if limit != Limit::After(0) => limit.passes(demo::left_out(thread, perform)),
        0 => {
            steer::yielded(thread);
            limit.passes(0)
        }
        result => limit.passes(result),
    }
}

/// Is there a descriptor, and do all of them lead back into the program? Negative ones are passed over, as the kernel does.
fn all_inside(mut fds: impl Iterator<Item = c_int>) -> bool {
    let mut some = false;
    let all = fds.by_ref().filter(|&fd| fd >= 0).all(|fd| {
        some = true;
        descriptors::leads(fd) == Leads::Inside
    });
    some && all
}

/// How long a call waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    Never,
    /// After so many nanoseconds.
    After(u64),
}

impl Limit {
    fn milliseconds(limit: c_int) -> Limit {
        u64::try_from(limit).map_or(Limit::Never, |limit| Limit::After(limit * 1_000_000))
    }

    /// A call that waited in vain has taken its time.
    fn passes(self, result: isize) -> isize {
        if let (0, Limit::After(nanoseconds)) = (result, self) {
            steer::clock::pass(nanoseconds);
        }
        result
    }
}

/// The descriptors of a list that is polled.
fn polled(list: usize, count: usize) -> impl Iterator<Item = c_int> {
    // SAFETY: the program passes this many entries.
    (0..count).map(move |at| unsafe { (*(list as *const libc::pollfd).add(at)).fd })
}

fn poll_now(list: usize, count: usize) -> isize {
    raw(libc::SYS_poll, [list, count, 0, 0, 0, 0])
}

pub(super) extern "C" fn poll(list: usize, count: usize, timeout: c_int) -> isize {
    let room = (list, count * size_of::<libc::pollfd>());
    waits(
        libc::SYS_poll,
        [list, count, timeout as isize as usize, 0, 0, 0],
        Limit::milliseconds(timeout),
        [room],
        || all_inside(polled(list, count)),
        || poll_now(list, count),
    )
}

pub(super) extern "C" fn ppoll(list: usize, count: usize, time: usize, mask: usize) -> isize {
    let room = (list, count * size_of::<libc::pollfd>());
    // The kernel would write what is left of the time into the program's constant.
    let mut left = time_at(time);
    let pointer = if time == 0 { 0 } else { &raw mut left as usize };
    let limit = if time == 0 { Limit::Never } else { Limit::After(seconds_ns(left.tv_sec, left.tv_nsec)) };
    waits(
        libc::SYS_ppoll,
        [list, count, pointer, mask, 8, 0],
        limit,
        [room],
        // Signals that only come meanwhile are the kernel's business.
        || mask == 0 && all_inside(polled(list, count)),
        || poll_now(list, count),
    )
}

fn seconds_ns(seconds: i64, nanoseconds: i64) -> u64 {
    (seconds.max(0) as u64).saturating_mul(1_000_000_000).saturating_add(nanoseconds.max(0) as u64)
}

fn time_at(pointer: usize) -> libc::timespec {
    if pointer == 0 {
        return libc::timespec { tv_sec: 0, tv_nsec: 0 };
    }
    // SAFETY: the program passes a valid time.
    unsafe { *(pointer as *const libc::timespec) }
}

pub(super) extern "C" fn select(
    count: usize,
    reads: usize,
    writes: usize,
    others: usize,
    time: usize,
) -> isize {
    let bytes = count.div_ceil(64) * 8;
    let set = |address: usize| if address == 0 { NOTHING } else { (address, bytes) };
    let left = if time == 0 { NOTHING } else { (time, size_of::<libc::timeval>()) };
    let rooms = [set(reads), set(writes), set(others), left];
    let limit = if time == 0 {
        Limit::Never
    } else {
        // SAFETY: the program passes a valid time.
        let time = unsafe { *(time as *const libc::timeval) };
        Limit::After(seconds_ns(time.tv_sec, time.tv_usec.saturating_mul(1000)))
    };
    let sets = [reads, writes, others];
    waits(
        libc::SYS_select,
        [count, reads, writes, others, time, 0],
        limit,
        rooms,
        || count <= libc::FD_SETSIZE && all_inside(selected(count, sets)),
        || select_now(count, sets),
    )
}

type Set = [u64; libc::FD_SETSIZE / 64];

fn set_at(address: usize, count: usize) -> Set {
    let mut set = [0; libc::FD_SETSIZE / 64];
    let words = if address == 0 { 0 } else { count.div_ceil(64).min(set.len()) };
    for (at, word) in set[..words].iter_mut().enumerate() {
        // SAFETY: the program passes a set of so many descriptors, or none.
        *word = unsafe { *(address as *const u64).add(at) };
    }
    set
}

/// The descriptors of the three sets.
fn selected(count: usize, sets: [usize; 3]) -> impl Iterator<Item = c_int> {
    let all = sets.map(|set| set_at(set, count));
    let has = move |fd: &usize| all.iter().any(|set| set[fd / 64] >> (fd % 64) & 1 != 0);
    (0..count.min(libc::FD_SETSIZE)).filter(has).map(|fd| fd as c_int)
}

/// Who waits in vain keeps what it asked for.
fn select_now(count: usize, sets: [usize; 3]) -> isize {
    if count > libc::FD_SETSIZE {
        return 0;
    }
    let mut copies = sets.map(|set| set_at(set, count));
    let mut none = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let [reads, writes, others] =
        core::array::from_fn(|at| if sets[at] == 0 { 0 } else { copies[at].as_mut_ptr() as usize });
    let result = raw(libc::SYS_select, [count, reads, writes, others, &raw mut none as usize, 0]);
    if result > 0 {
        for (&set, copy) in sets.iter().zip(&copies).filter(|(set, _)| **set != 0) {
            for (at, &word) in copy[..count.div_ceil(64)].iter().enumerate() {
                // SAFETY: a set of the program, of so many descriptors.
                unsafe { *(set as *mut u64).add(at) = word };
            }
        }
    }
    result
}

pub(super) extern "C" fn epoll_wait(fd: usize, events: usize, most: usize, timeout: c_int) -> isize {
    epoll_pwait(fd, events, most, timeout, 0)
}

pub(super) extern "C" fn epoll_pwait(
    fd: usize,
    events: usize,
    most: usize,
    timeout: c_int,
    mask: usize,
) -> isize {
    let arguments = [fd, events, most, timeout as isize as usize, mask, 8];
    let Some(thread) = steered() else { return answer(raw(libc::SYS_epoll_pwait, arguments)) };
    if !demo::on() {
        let limit = Limit::milliseconds(timeout);
        let attempt = || raw(libc::SYS_epoll_pwait, [fd, events, most, 0, 0, 8]);
        if mask == 0 && steer::orders_calls() && watched::all_inside(fd as c_int) {
            return answer(waits_inside(thread, limit, attempt));
        }
        return answer(waits_outside(thread, limit, attempt, || raw(libc::SYS_epoll_pwait, arguments)));
    }
    let length = if timeout == 0 { Length::Short } else { Length::Long };
    let perform = || {
        let count = Limit::milliseconds(timeout).passes(raw(libc::SYS_epoll_pwait, arguments));
        if demo::on() {
            watched::to_descriptors(fd as c_int, events, count);
        }
        count
    };
    let count = demo::outside(thread, libc::SYS_epoll_pwait as u32, length, perform, |count| {
        [up_to(
            events,
            count * size_of::<libc::epoll_event>() as isize,
            most * size_of::<libc::epoll_event>(),
        )]
    });
    if demo::on() {
        watched::to_data(fd as c_int, events, count);
    }
    answer(count)
}

pub(super) extern "C" fn epoll_ctl(fd: usize, op: usize, about: usize, event: usize) -> isize {
    if steer::on() {
        watched::note(fd as c_int, op as c_int, about as c_int, event);
    }
    let arguments = [fd, op, about, event, 0, 0];
    match steered() {
        // Who waits may have to look again.
        Some(thread) if !demo::on() && steer::orders_calls() => {
            answer(numbers::changes(thread, || raw(libc::SYS_epoll_ctl, arguments)))
        }
        _ => asks(fd, libc::SYS_epoll_ctl, Length::Short, arguments),
    }
}

/// What a program hangs on a watched descriptor is often an address, which is another one in a replay. So the record
/// has the descriptor in its place, and what the program hung on it this time is put back.
mod watched {
    use super::*;
    use crate::spin::Spin;

    #[derive(Clone, Copy)]
    struct Watch {
        epoll: c_int,
        fd: c_int,
        data: u64,
    }

    const WATCHES_MAX: usize = 4096;
    const NONE: Watch = Watch { epoll: 0, fd: 0, data: 0 };
    static TABLE: Spin<([Watch; WATCHES_MAX], usize)> = Spin::new(([NONE; WATCHES_MAX], 0));

    pub fn note(epoll: c_int, op: c_int, fd: c_int, event: usize) {
        let mut table = TABLE.lock();
        let (watches, used) = &mut *table;
        let known = watches[..*used].iter().position(|watch| watch.epoll == epoll && watch.fd == fd);
        if op == libc::EPOLL_CTL_DEL {
            if let Some(at) = known {
                watches[at] = watches[*used - 1];
                *used -= 1;
            }
            return;
        }
        // SAFETY: the program passes a valid event with these operations.
        let data = if event == 0 { 0 } else { unsafe { (*(event as *const libc::epoll_event)).u64 } };
        let at = known.unwrap_or(*used);
        if at < WATCHES_MAX {
            watches[at] = Watch { epoll, fd, data };
            *used = (*used).max(at + 1);
        }
    }

    /// Do all descriptors that this one watches lead back into the program?
    pub fn all_inside(epoll: c_int) -> bool {
        let table = TABLE.lock();
        let watches = &table.0[..table.1];
        table.1 < WATCHES_MAX
            && super::all_inside(watches.iter().filter(|watch| watch.epoll == epoll).map(|watch| watch.fd))
    }

    fn each(events: usize, count: isize, mut change: impl FnMut(u64) -> Option<u64>) {
        for at in 0..count.max(0) as usize {
            // SAFETY: the call wrote this many events.
            let event = unsafe { &mut *(events as *mut libc::epoll_event).add(at) };
            if let Some(data) = change(event.u64) {
                event.u64 = data;
            }
        }
    }

    pub fn to_descriptors(epoll: c_int, events: usize, count: isize) {
        let table = TABLE.lock();
        let watches = &table.0[..table.1];
        each(events, count, |data| {
            let found = watches.iter().rev().find(|watch| watch.epoll == epoll && watch.data == data);
            found.map(|watch| watch.fd as u64)
        });
    }

    pub fn to_data(epoll: c_int, events: usize, count: isize) {
        let table = TABLE.lock();
        let watches = &table.0[..table.1];
        each(events, count, |fd| {
            let found = watches.iter().find(|watch| watch.epoll == epoll && watch.fd as u64 == fd);
            found.map(|watch| watch.data)
        });
    }
}

pub(super) extern "C" fn pause() -> isize {
    let Some(thread) = steered() else { return answer(raw(libc::SYS_pause, [0; 6])) };
    let perform = || raw(libc::SYS_pause, [0; 6]);
    answer(demo::outside(thread, libc::SYS_pause as u32, Length::Long, perform, |_| [NOTHING]))
}

/// Returns an error number instead of setting it.
pub(super) extern "C" fn sigwait(set: *const c_void, signal: *mut c_int) -> isize {
    const KERNEL_SET_BYTES: usize = 8;
    let arguments = [set as usize, 0, 0, KERNEL_SET_BYTES, 0, 0];
    let wait = || loop {
        let result = raw(libc::SYS_rt_sigtimedwait, arguments);
        if result != -(libc::EINTR as isize) {
            return result;
        }
    };
    let result = match steered() {
        Some(thread) => {
            demo::outside(thread, libc::SYS_rt_sigtimedwait as u32, Length::Long, wait, |_| [NOTHING])
        }
        None => wait(),
    };
    if result < 0 {
        return -result;
    }
    // SAFETY: the program passes a valid pointer.
    unsafe { *signal = result as c_int };
    0
}

/// Takes a signal, with what is known about it, or gives up after some time.
pub(super) extern "C" fn sigtimedwait(set: usize, info: usize, time: usize) -> isize {
    const KERNEL_SET_BYTES: usize = 8;
    let limit = match time {
        0 => Limit::Never,
        _ => {
            let time = time_at(time);
            Limit::After(seconds_ns(time.tv_sec, time.tv_nsec))
        }
    };
    let arguments = [set, info, time, KERNEL_SET_BYTES, 0, 0];
    let Some(thread) = steered() else { return answer(raw(libc::SYS_rt_sigtimedwait, arguments)) };
    let length = if limit == Limit::After(0) { Length::Short } else { Length::Long };
    let perform = || {
        let result = raw(libc::SYS_rt_sigtimedwait, arguments);
        if result == -(libc::EAGAIN as isize) {
            limit.passes(0);
        }
        result
    };
    answer(demo::outside(thread, libc::SYS_rt_sigtimedwait as u32, length, perform, |result| {
        [if result >= 0 && info != 0 { (info, size_of::<libc::siginfo_t>()) } else { NOTHING }]
    }))
}

pub(super) extern "C" fn sigwaitinfo(set: usize, info: usize) -> isize {
    sigtimedwait(set, info, 0)
}
