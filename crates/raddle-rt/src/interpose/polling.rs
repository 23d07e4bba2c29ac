//! Waiting for descriptors and signals: `poll`, `select`, `epoll` and their kin.
//!
//! They wait for the outside world, so other threads go on meanwhile, and a demo holds what they brought.

use super::system::{NOTHING, answer, asks, raw, steered, up_to};
use crate::demo::{self, Length, Room};
use crate::steer;
use core::ffi::{c_int, c_long, c_void};

/// Waits for any of several descriptors, so long. Waits of no time at all are short.
fn waits<const N: usize>(number: c_long, arguments: [usize; 6], limit: Limit, rooms: [Room; N]) -> isize {
    let Some(thread) = steered() else { return answer(raw(number, arguments)) };
    let length = if limit == Limit::After(0) { Length::Short } else { Length::Long };
    let perform = || limit.passes(raw(number, arguments));
    answer(demo::outside(thread, number as u32, length, perform, |result| {
        rooms.map(|room| if result >= 0 { room } else { NOTHING })
    }))
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

pub(super) extern "C" fn poll(list: usize, count: usize, timeout: c_int) -> isize {
    let room = (list, count * size_of::<libc::pollfd>());
    waits(
        libc::SYS_poll,
        [list, count, timeout as isize as usize, 0, 0, 0],
        Limit::milliseconds(timeout),
        [room],
    )
}

pub(super) extern "C" fn ppoll(list: usize, count: usize, time: usize, mask: usize) -> isize {
    let room = (list, count * size_of::<libc::pollfd>());
    // The kernel would write what is left of the time into the program's constant.
    let mut left = time_at(time);
    let pointer = if time == 0 { 0 } else { &raw mut left as usize };
    let limit = if time == 0 { Limit::Never } else { Limit::After(seconds_ns(left.tv_sec, left.tv_nsec)) };
    waits(libc::SYS_ppoll, [list, count, pointer, mask, 8, 0], limit, [room])
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
    waits(libc::SYS_select, [count, reads, writes, others, time, 0], limit, rooms)
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
    if demo::on() {
        watched::note(fd as c_int, op as c_int, about as c_int, event);
    }
    asks(fd, libc::SYS_epoll_ctl, Length::Short, [fd, op, about, event, 0, 0])
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
    waits(libc::SYS_pause, [0; 6], Limit::Never, [NOTHING])
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
