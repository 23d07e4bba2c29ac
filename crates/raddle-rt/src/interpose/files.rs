//! Files in a demo: what opens and closes them is a step, because the numbers are part of the demo ([`crate::demo::numbers`]).
//!
//! Without a demo each is the C library's own function. The kernel's side of the calls is in [`super::library::table`] as for all others.

use super::system::{answer, raw};
use crate::demo;
use crate::demo::descriptors::{self, Leads};
use crate::demo::numbers::{self, Behind, Made};
use crate::thread::{self, Thread};
use crate::{real, real_fn, steer};
use core::ffi::{CStr, c_char, c_int, c_long};

mod c {
    use super::*;
    real_fn! {
        fn fopen(name: usize, mode: usize) -> usize;
        fn freopen(name: usize, mode: usize, stream: usize) -> usize;
        fn fdopen(fd: c_int, mode: usize) -> usize;
        fn fclose(stream: usize) -> c_int;
        fn fflush(stream: usize) -> c_int;
        fn fileno(stream: usize) -> c_int;
        fn popen(command: usize, mode: usize) -> usize;
        fn pclose(stream: usize) -> c_int;
        fn tmpfile() -> usize;
        fn opendir(name: usize) -> usize;
        fn fdopendir(fd: c_int) -> usize;
        fn closedir(folder: usize) -> c_int;
        fn dirfd(folder: usize) -> c_int;
        fn mkstemp(template: usize) -> c_int;
        fn mkostemp(template: usize, flags: c_int) -> c_int;
        fn mkstemps(template: usize, suffix: c_int) -> c_int;
        fn mkostemps(template: usize, suffix: c_int, flags: c_int) -> c_int;
    }
}

/// The thread, while a demo is recorded or given again.
fn held() -> Option<&'static Thread> {
    thread::observed().filter(|_| demo::on())
}

/// What a call that makes one descriptor returns, with what is known about where it leads.
fn one(thread: &Thread, number: c_long, leads: Option<Leads>, arguments: [usize; 6]) -> isize {
    let (made, behind) = numbers::makes(thread, number as u32, || {
        let result = raw(number, arguments);
        if let (true, Some(leads)) = (result >= 0, leads) {
            descriptors::set(result as c_int, leads);
        }
        Made::one(result)
    });
    if let (Behind::Own, Some(leads)) = (behind, leads) {
        descriptors::set(made.fds[0], leads);
    }
    answer(made.result)
}

/// As [`one`], where it does not matter that nobody is steered.
fn plain_or_one(number: c_long, leads: Option<Leads>, arguments: [usize; 6]) -> isize {
    match held() {
        Some(thread) => one(thread, number, leads, arguments),
        None => {
            let result = raw(number, arguments);
            if let (true, true, Some(leads)) = (result >= 0, steer::on(), leads) {
                descriptors::set(result as c_int, leads);
            }
            answer(result)
        }
    }
}

fn mode_at(folder: usize, name: usize) -> Option<libc::mode_t> {
    // SAFETY: plain data; the kernel checks the name, the structure is valid for the call.
    unsafe {
        let mut about: libc::stat = core::mem::zeroed();
        let arguments = [folder, name, &raw mut about as usize, 0, 0, 0];
        (real::syscall(libc::SYS_newfstatat, arguments) == 0).then_some(about.st_mode & libc::S_IFMT)
    }
}

/// Opening a named pipe waits for its other end, which is somebody outside: others go on meanwhile.
fn opens(folder: usize, name: usize, flags: usize, mode: usize) -> isize {
    let arguments = [folder, name, flags, mode, 0, 0];
    let Some(thread) = held() else { return answer(raw(libc::SYS_openat, arguments)) };
    let perform = || raw(libc::SYS_openat, arguments);
    let is_pipe = flags as c_int & libc::O_NONBLOCK == 0 && mode_at(folder, name) == Some(libc::S_IFIFO);
    let early = (is_pipe && !demo::replaying()).then(|| demo::away(thread, perform));
    let (made, _) =
        numbers::makes(thread, libc::SYS_openat as u32, || Made::one(early.unwrap_or_else(perform)));
    answer(made.result)
}

const HERE: usize = libc::AT_FDCWD as usize;

pub extern "C" fn open(name: usize, flags: usize, mode: usize) -> usize {
    opens(HERE, name, flags, mode) as usize
}

pub extern "C" fn open_2(name: usize, flags: usize) -> usize {
    open(name, flags, 0)
}

pub extern "C" fn openat(folder: usize, name: usize, flags: usize, mode: usize) -> usize {
    opens(folder as c_int as usize, name, flags, mode) as usize
}

pub extern "C" fn creat(name: usize, mode: usize) -> usize {
    open(name, (libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC) as usize, mode)
}

/// The flags of `open` for a mode of `fopen`. `None`: something that only the library understands (`ccs=`).
fn flags_of(mode: usize) -> Option<c_int> {
    // SAFETY: the program passes a C string.
    let text = unsafe { CStr::from_ptr(mode as *const c_char) }.to_bytes();
    let (first, rest) = text.split_first()?;
    let has = |letter: u8| rest.contains(&letter);
    let way = match (first, has(b'+')) {
        (b'r' | b'w' | b'a', true) => libc::O_RDWR,
        (b'r', false) => libc::O_RDONLY,
        (b'w' | b'a', false) => libc::O_WRONLY,
        _ => return None,
    };
    let makes = match first {
        b'w' => libc::O_CREAT | libc::O_TRUNC,
        b'a' => libc::O_CREAT | libc::O_APPEND,
        _ => 0,
    };
    let exclusive = if has(b'x') { libc::O_EXCL } else { 0 };
    let closes = if has(b'e') { libc::O_CLOEXEC } else { 0 };
    (!has(b',')).then_some(way | makes | exclusive | closes)
}

/// As the library does it: a descriptor, and then a stream that has it.
pub extern "C" fn fopen(name: usize, mode: usize) -> usize {
    const EVERYBODY: usize = 0o666;
    let flags = held().and_then(|_| flags_of(mode));
    let Some(flags) = flags else {
        // SAFETY: as the program asks (here and below).
        return unsafe { c::fopen(name, mode) };
    };
    let fd = opens(HERE, name, flags as usize, EVERYBODY) as c_int;
    if fd < 0 {
        return 0;
    }
    if flags & libc::O_APPEND != 0 {
        raw(libc::SYS_lseek, [fd as usize, 0, libc::SEEK_END as usize, 0, 0, 0]);
    }
    // SAFETY: a descriptor that was opened in this mode.
    let stream = unsafe { c::fdopen(fd, mode) };
    if stream == 0 {
        super::system::close(fd as usize);
    }
    stream
}

/// A stream writes to its descriptor when the library thinks fit.
pub extern "C" fn fdopen(fd: usize, mode: usize) -> usize {
    descriptors::goes_unseen(fd as c_int);
    // SAFETY: as the program asks.
    unsafe { c::fdopen(fd as c_int, mode) }
}

/// What is still to be written may have to wait; the rest of the end does not.
fn ends<T>(thread: &Thread, stream: usize, end: impl FnOnce() -> T) -> T {
    // SAFETY: a stream of the program (here and below).
    let fd = unsafe {
        c::fflush(stream);
        c::fileno(stream)
    };
    super::input::ends(stream);
    numbers::changes(thread, || {
        let result = end();
        descriptors::closed(fd);
        result
    })
}

pub extern "C" fn fclose(stream: usize) -> usize {
    // SAFETY: as the program asks.
    let end = || unsafe { c::fclose(stream) } as usize;
    match held() {
        Some(thread) => ends(thread, stream, end),
        None => end(),
    }
}

pub extern "C" fn pclose(stream: usize) -> usize {
    // SAFETY: as the program asks.
    let end = || unsafe { c::pclose(stream) } as usize;
    match held() {
        Some(thread) => ends(thread, stream, end),
        None => end(),
    }
}

/// The stream keeps its number.
pub extern "C" fn freopen(name: usize, mode: usize, stream: usize) -> usize {
    // SAFETY: as the program asks.
    let again = || unsafe { c::freopen(name, mode, stream) };
    match held() {
        Some(thread) => ends(thread, stream, again),
        None => again(),
    }
}

/// Where glibc keeps the number of a stream, which is part of its binary interface (`struct _IO_FILE`).
const NUMBER_OFFSET: usize = 112;

/// A stream whose descriptor the library makes itself. A replay makes it as well, and gives it its number.
fn stream_of_own(open: impl FnOnce() -> usize) -> usize {
    let Some(thread) = held() else { return open() };
    let mut stream = 0;
    let (made, behind) = numbers::makes_again(thread, libc::SYS_openat as u32, || {
        stream = open();
        // SAFETY: a stream that was just opened.
        let fd = if stream == 0 { -1 } else { unsafe { c::fileno(stream) } };
        Made::one(if fd < 0 { -(libc::EMFILE as isize) } else { fd as isize })
    });
    if behind == Behind::Nothing || stream == 0 {
        return 0;
    }
    // SAFETY: the field of the stream; nobody else has it yet.
    unsafe { ((stream + NUMBER_OFFSET) as *mut c_int).write(made.fds[0]) };
    stream
}

/// The command is no part of the demo, but what it says is, when the program reads it.
pub extern "C" fn popen(command: usize, mode: usize) -> usize {
    // SAFETY: as the program asks.
    let stream = stream_of_own(|| unsafe { c::popen(command, mode) });
    if steer::on() {
        descriptors::forked();
    }
    stream
}

pub extern "C" fn tmpfile() -> usize {
    // SAFETY: no arguments.
    stream_of_own(|| unsafe { c::tmpfile() })
}

pub extern "C" fn opendir(name: usize) -> usize {
    if held().is_none() {
        // SAFETY: as the program asks.
        return unsafe { c::opendir(name) };
    }
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let fd = opens(HERE, name, flags as usize, 0) as c_int;
    if fd < 0 {
        return 0;
    }
    // SAFETY: a descriptor of a folder.
    let folder = unsafe { c::fdopendir(fd) };
    if folder == 0 {
        super::system::close(fd as usize);
    }
    folder
}

pub extern "C" fn closedir(folder: usize) -> usize {
    // SAFETY: as the program asks.
    let end = || unsafe { c::closedir(folder) } as usize;
    match held() {
        Some(thread) if folder != 0 => numbers::changes(thread, || {
            // SAFETY: a folder that the program has opened.
            let fd = unsafe { c::dirfd(folder) };
            let result = end();
            descriptors::closed(fd);
            result
        }),
        _ => end(),
    }
}

/// A temporary file: its name is made of what nobody holds, its number is held.
fn temporary(open: impl FnOnce() -> c_int) -> usize {
    let Some(thread) = held() else { return open() as usize };
    let (made, _) = numbers::makes_again(thread, libc::SYS_openat as u32, || {
        let fd = open();
        Made::one(if fd < 0 { -(libc::EEXIST as isize) } else { fd as isize })
    });
    answer(made.result) as usize
}

pub extern "C" fn mkstemp(template: usize) -> usize {
    // SAFETY: as the program asks (here and below).
    temporary(|| unsafe { c::mkstemp(template) })
}

pub extern "C" fn mkostemp(template: usize, flags: usize) -> usize {
    // SAFETY: as the program asks.
    temporary(|| unsafe { c::mkostemp(template, flags as c_int) })
}

pub extern "C" fn mkstemps(template: usize, suffix: usize) -> usize {
    // SAFETY: as the program asks.
    temporary(|| unsafe { c::mkstemps(template, suffix as c_int) })
}

pub extern "C" fn mkostemps(template: usize, suffix: usize, flags: usize) -> usize {
    // SAFETY: as the program asks.
    temporary(|| unsafe { c::mkostemps(template, suffix as c_int, flags as c_int) })
}

/// A duplicate leads where the other one does.
fn leads_of(fd: usize) -> Option<Leads> {
    steer::on().then(|| descriptors::leads(fd as c_int))
}

pub extern "C" fn dup(old: usize) -> usize {
    plain_or_one(libc::SYS_dup, leads_of(old), [old, 0, 0, 0, 0, 0]) as usize
}

/// `fcntl` with a command that makes a duplicate.
pub fn duplicate(old: c_int, command: c_int, lowest: usize) -> c_int {
    plain_or_one(libc::SYS_fcntl, leads_of(old as usize), [old as usize, command as usize, lowest, 0, 0, 0])
        as c_int
}

fn onto(old: usize, new: usize, call: impl FnOnce() -> isize) -> usize {
    let leads = leads_of(old);
    let perform = || {
        let result = call();
        if let (true, Some(leads)) = (result >= 0, leads) {
            descriptors::set(new as c_int, leads);
        }
        result
    };
    answer(match held() {
        Some(thread) => numbers::changes(thread, perform),
        None => perform(),
    }) as usize
}

pub extern "C" fn dup2(old: usize, new: usize) -> usize {
    onto(old, new, || raw(libc::SYS_dup2, [old, new, 0, 0, 0, 0]))
}

pub extern "C" fn dup3(old: usize, new: usize, flags: usize) -> usize {
    onto(old, new, || raw(libc::SYS_dup3, [old, new, flags, 0, 0, 0]))
}

pub extern "C" fn close_range(first: usize, last: usize, flags: usize) -> usize {
    const ON_EXEC: usize = 1 << 2;
    let perform = || {
        let result = raw(libc::SYS_close_range, [first, last, flags, 0, 0, 0]);
        if result == 0 && flags & ON_EXEC == 0 {
            descriptors::closed_range(first & 0xffff_ffff, last & 0xffff_ffff);
        }
        result
    };
    answer(match held() {
        Some(thread) => numbers::changes(thread, perform),
        None => perform(),
    }) as usize
}

pub extern "C" fn closefrom(first: usize) {
    close_range(first, u32::MAX as usize, 0);
}

pub extern "C" fn memfd_create(name: usize, flags: usize) -> usize {
    plain_or_one(libc::SYS_memfd_create, None, [name, flags, 0, 0, 0, 0]) as usize
}

/// What a timer counts is the outside's business, and so are signals and changes of files that are read from a descriptor.
pub extern "C" fn timerfd_create(clock: usize, flags: usize) -> usize {
    plain_or_one(libc::SYS_timerfd_create, Some(Leads::Outside), [clock, flags, 0, 0, 0, 0]) as usize
}

pub extern "C" fn signalfd(fd: usize, mask: usize, flags: usize) -> usize {
    const KERNEL_SET_BYTES: usize = 8;
    let arguments = [fd, mask, KERNEL_SET_BYTES, flags, 0, 0];
    plain_or_one(libc::SYS_signalfd4, Some(Leads::Outside), arguments) as usize
}

pub extern "C" fn inotify_init1(flags: usize) -> usize {
    plain_or_one(libc::SYS_inotify_init1, Some(Leads::Outside), [flags, 0, 0, 0, 0, 0]) as usize
}

pub extern "C" fn inotify_init() -> usize {
    inotify_init1(0)
}
