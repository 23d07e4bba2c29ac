//! Objects of the kernel that order threads: System V semaphores and messages, POSIX message queues, locks of files, timers with
//! descriptors.
//!
//! The call is the C library's own; what it passes on between threads becomes events ([`super::channel`]). A steered thread that has to
//! wait in one sleeps in the kernel and is passed over, like in any other system call.
//!
//! Locks of `fcntl` that belong to the process (`F_SETLK`, `lockf`) are left out: two threads of one process hold them at once, so
//! they order nothing. Those that belong to the open file (`F_OFD_SETLK`) do.

use super::channel::{self, Kind, named};
use crate::{export_with_pc, real_fn};
use core::ffi::{c_int, c_long, c_uint, c_void};

mod c {
    use super::*;
    real_fn! {
        fn semop(set: c_int, operations: *mut libc::sembuf, count: usize) -> c_int;
        fn semtimedop(set: c_int, operations: *mut libc::sembuf, count: usize, time: *const libc::timespec) -> c_int;
        fn semctl(set: c_int, number: c_int, command: c_int, argument: usize) -> c_int;
        fn msgsnd(queue: c_int, message: *const c_void, bytes: usize, flags: c_int) -> c_int;
        fn msgrcv(queue: c_int, message: *mut c_void, bytes: usize, kind: c_long, flags: c_int) -> isize;
        fn mq_send(queue: c_int, message: usize, bytes: usize, priority: c_uint) -> c_int;
        fn mq_timedsend(queue: c_int, message: usize, bytes: usize, priority: c_uint, until: usize) -> c_int;
        fn mq_receive(queue: c_int, message: usize, bytes: usize, priority: usize) -> isize;
        fn mq_timedreceive(queue: c_int, message: usize, bytes: usize, priority: usize, until: usize) -> isize;
        fn flock(fd: c_int, operation: c_int) -> c_int;
        fn fcntl(fd: c_int, command: c_int, argument: usize) -> c_int;
        fn fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int;
        fn timerfd_settime(fd: c_int, flags: c_int, new: usize, old: usize) -> c_int;
    }
}

/// More operations than the kernel takes in one call.
const OPERATIONS_MAX: usize = 1 << 15;

/// A semaphore that is raised lets those go on that want to lower it; one that is lowered, those that wait for zero.
fn semaphores(
    set: c_int,
    operations: *const libc::sembuf,
    count: usize,
    call: impl FnOnce() -> c_int,
) -> c_int {
    let (raised, lowered) = (named(Kind::Raised, set as u64), named(Kind::Lowered, set as u64));
    let count = if operations.is_null() || count > OPERATIONS_MAX { 0 } else { count };
    // SAFETY: the program passes this many operations.
    let changes = || (0..count).map(|at| unsafe { (*operations.add(at)).sem_op });
    if changes().any(|by| by > 0) {
        channel::send(raised);
    }
    if changes().any(|by| by < 0) {
        channel::send(lowered);
    }
    let result = call();
    if result == 0 && changes().any(|by| by < 0) {
        channel::receive(raised);
    }
    if result == 0 && changes().any(|by| by == 0) {
        channel::receive(lowered);
    }
    result
}

extern "C" fn do_semop(set: c_int, operations: *mut libc::sembuf, count: usize) -> c_int {
    // SAFETY: as the program asks (here and below).
    semaphores(set, operations, count, || unsafe { c::semop(set, operations, count) })
}

extern "C" fn do_semtimedop(
    set: c_int,
    operations: *mut libc::sembuf,
    count: usize,
    time: *const libc::timespec,
) -> c_int {
    // SAFETY: as the program asks.
    semaphores(set, operations, count, || unsafe { c::semtimedop(set, operations, count, time) })
}

/// Setting a value raises or lowers; looking at one may be how a thread waits.
extern "C" fn do_semctl(set: c_int, number: c_int, command: c_int, argument: usize) -> c_int {
    let both = [named(Kind::Raised, set as u64), named(Kind::Lowered, set as u64)];
    if matches!(command, libc::SETVAL | libc::SETALL | libc::IPC_RMID) {
        both.into_iter().for_each(channel::send);
    }
    // SAFETY: as the program asks.
    let result = unsafe { c::semctl(set, number, command, argument) };
    if result >= 0 && matches!(command, libc::GETVAL | libc::GETALL) {
        both.into_iter().for_each(channel::receive);
    }
    result
}

extern "C" fn do_msgsnd(queue: c_int, message: *const c_void, bytes: usize, flags: c_int) -> c_int {
    channel::send(named(Kind::Messages, queue as u64));
    // SAFETY: as the program asks.
    unsafe { c::msgsnd(queue, message, bytes, flags) }
}

extern "C" fn do_msgrcv(
    queue: c_int,
    message: *mut c_void,
    bytes: usize,
    kind: c_long,
    flags: c_int,
) -> isize {
    // SAFETY: as the program asks.
    let result = unsafe { c::msgrcv(queue, message, bytes, kind, flags) };
    if result >= 0 {
        channel::receive(named(Kind::Messages, queue as u64));
    }
    result
}

/// A message queue is a file of its own kind to the kernel.
fn queue_channel(queue: c_int) -> Option<usize> {
    channel::object(queue as usize)
}

fn queue_send(queue: c_int) {
    if let Some(object) = queue_channel(queue) {
        channel::send(object);
    }
}

fn queue_received(queue: c_int, result: isize) -> isize {
    if result >= 0
        && let Some(object) = queue_channel(queue)
    {
        channel::receive(object);
    }
    result
}

extern "C" fn do_mq_send(queue: c_int, message: usize, bytes: usize, priority: c_uint) -> c_int {
    queue_send(queue);
    // SAFETY: as the program asks (here and below).
    unsafe { c::mq_send(queue, message, bytes, priority) }
}

extern "C" fn do_mq_timedsend(
    queue: c_int,
    message: usize,
    bytes: usize,
    priority: c_uint,
    until: usize,
) -> c_int {
    queue_send(queue);
    // SAFETY: as the program asks.
    unsafe { c::mq_timedsend(queue, message, bytes, priority, until) }
}

extern "C" fn do_mq_receive(queue: c_int, message: usize, bytes: usize, priority: usize) -> isize {
    // SAFETY: as the program asks.
    queue_received(queue, unsafe { c::mq_receive(queue, message, bytes, priority) })
}

extern "C" fn do_mq_timedreceive(
    queue: c_int,
    message: usize,
    bytes: usize,
    priority: usize,
    until: usize,
) -> isize {
    // SAFETY: as the program asks.
    queue_received(queue, unsafe { c::mq_timedreceive(queue, message, bytes, priority, until) })
}

/// Does an operation on a lock of a file give something back, and does it take something?
#[derive(Clone, Copy, PartialEq, Eq)]
enum FileLock {
    Takes,
    /// An exclusive lock becomes a shared one.
    TakesShared,
    GivesBack,
    Other,
}

fn file_lock(fd: c_int, what: FileLock, call: impl FnOnce() -> c_int) -> c_int {
    if what == FileLock::Other {
        return call();
    }
    let object = channel::object(fd as usize);
    if let (FileLock::GivesBack | FileLock::TakesShared, Some(object)) = (what, object) {
        channel::send(object);
    }
    let result = call();
    if let (0, FileLock::Takes | FileLock::TakesShared, Some(object)) = (result, what, object) {
        channel::receive(object);
    }
    result
}

extern "C" fn do_flock(fd: c_int, operation: c_int) -> c_int {
    let what = match operation & !libc::LOCK_NB {
        libc::LOCK_EX => FileLock::Takes,
        libc::LOCK_SH => FileLock::TakesShared,
        libc::LOCK_UN => FileLock::GivesBack,
        _ => FileLock::Other,
    };
    // SAFETY: as the program asks.
    file_lock(fd, what, || unsafe { c::flock(fd, operation) })
}

fn open_file_lock(command: c_int, argument: usize) -> FileLock {
    if !matches!(command, libc::F_OFD_SETLK | libc::F_OFD_SETLKW) || argument == 0 {
        return FileLock::Other;
    }
    // SAFETY: these commands take a pointer to a lock.
    let kind = unsafe { (*(argument as *const libc::flock)).l_type };
    match c_int::from(kind) {
        libc::F_WRLCK => FileLock::Takes,
        libc::F_RDLCK => FileLock::TakesShared,
        libc::F_UNLCK => FileLock::GivesBack,
        _ => FileLock::Other,
    }
}

/// Variadic, but the argument travels in the same register as a fixed one.
extern "C" fn do_fcntl(fd: c_int, command: c_int, argument: usize) -> c_int {
    if crate::steer::on() && matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        return super::files::duplicate(fd, command, argument);
    }
    // SAFETY: as the program asks.
    file_lock(fd, open_file_lock(command, argument), || unsafe { c::fcntl(fd, command, argument) })
}

extern "C" fn do_fcntl64(fd: c_int, command: c_int, argument: usize) -> c_int {
    if crate::steer::on() && matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        return super::files::duplicate(fd, command, argument);
    }
    // SAFETY: as the program asks.
    file_lock(fd, open_file_lock(command, argument), || unsafe { c::fcntl64(fd, command, argument) })
}

extern "C" fn do_timerfd_settime(fd: c_int, flags: c_int, new: usize, old: usize) -> c_int {
    if let Some(object) = channel::object(fd as usize) {
        channel::send(object);
    }
    // SAFETY: as the program asks.
    unsafe { c::timerfd_settime(fd, flags, new, old) }
}

export_with_pc! {
    semop => do_semop;
    semtimedop => do_semtimedop;
    semctl => do_semctl;
    msgsnd => do_msgsnd;
    msgrcv => do_msgrcv;
    mq_send => do_mq_send;
    mq_timedsend => do_mq_timedsend;
    mq_receive => do_mq_receive;
    mq_timedreceive => do_mq_timedreceive;
    flock => do_flock;
    fcntl => do_fcntl;
    fcntl64 => do_fcntl64;
    timerfd_settime => do_timerfd_settime;
}
