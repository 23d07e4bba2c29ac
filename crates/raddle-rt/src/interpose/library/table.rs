//! The table: one line for each function of the C library that touches memory of the program.
//!
//! A line is the function with its arguments, what is told before the call, and behind `=>`, where the result has a name, what is told after it:
//! `r(address, bytes)`, `w(address, bytes)`, `rw(address, bytes)`. Arguments and results are integers and pointers where nothing else is said.
//! `by` names what does the work in a steered program, `from` the stream that a function reads from ([`crate::interpose::input`]).
//! Which functions there are follows glibc's headers (`string.h`, `strings.h`, `wchar.h`, `stdlib.h`, `stdio.h`, `time.h`, `unistd.h`,
//! `sys/*.h`, `arpa/inet.h`, `netdb.h`, `pwd.h`, `grp.h`, `dirent.h`, `math.h`) with the names that fortified headers (`__*_chk`) and newer
//! standards (`__isoc23_*`) use instead. Functions whose calls are blocking, synchronise or can be in a demo have files of their own.

use super::measure::*;
use super::{r, rw, streams, w, watched};
use crate::interpose::{channel, files, input, random, system};
use crate::steer;
use core::ffi::c_int;

macro_rules! kind {
    () => {
        usize
    };
    ($kind:ty) => {
        $kind
    };
}

macro_rules! library {
    ($($name:ident($($arg:ident $(: $kind:ty)?),*) $(by $module:ident::$held:ident)? $(from $stream:ident)? $(-> $ret:ty)? { $($before:tt)* } $(=> $out:ident { $($after:tt)* })?;)*) => {
        mod entry {
            use super::*;
            use crate::real::Real;
            $(
                #[allow(unused_variables, non_snake_case)]
                pub extern "C" fn $name($($arg: kind!($($kind)?)),*) -> kind!($($ret)?) {
                    static BEHIND: Real = Real::new(match core::ffi::CStr::from_bytes_with_nul(
                        concat!(stringify!($name), "\0").as_bytes(),
                    ) {
                        Ok(name) => name,
                        Err(_) => panic!("function names have no inner NUL"),
                    });
                    type Function = unsafe extern "C" fn($(kind!($($kind)?)),*) -> kind!($($ret)?);
                    let address = BEHIND.get();
                    $(
                        const HELD: Function = $module::$held;
                        let address = if steer::on() { HELD as *const () as usize } else { address };
                    )?
                    // SAFETY: the C function of this name, whose arguments and result are in the registers of this signature.
                    let function = unsafe { core::mem::transmute::<usize, Function>(address) };
                    let call = || {
                        $(
                            let own = $stream;
                            let $stream = input::of(own);
                        )?
                        // SAFETY: as the program asks, perhaps with another stream in the place of its own.
                        let result = unsafe { function($($arg),*) };
                        $(input::settle(own, $stream);)?
                        result
                    };
                    let Some(thread) = watched() else { return call() };
                    let pc = thread.caller_pc();
                    $($before)*
                    let result = call();
                    $(
                        // What the function has called back may have made calls of its own.
                        thread.caller.set(pc);
                        let $out = result;
                        $($after)*
                    )?
                    result
                }
            )*
        }
        mod exported {
            use super::entry;
            crate::export_with_pc! { $($name => entry::$name;)* }
        }
    };
}

fn int(result: usize) -> i32 {
    result as i32
}

/// The bytes, if the call went well as `int` functions say it.
fn if_zero(result: usize, bytes: usize) -> usize {
    if int(result) == 0 { bytes } else { 0 }
}

/// The bytes, if the call has returned something.
fn if_any(result: usize, bytes: usize) -> usize {
    if result == 0 { 0 } else { bytes }
}

/// What a function has written that returns how much, or less than zero.
fn count(result: usize) -> usize {
    (result as isize).max(0) as usize
}

fn product(count: usize, bytes: usize) -> usize {
    count.saturating_mul(bytes)
}

/// A path, or a name: read to its end.
fn path(s: usize) {
    r(s, text(s));
}

/// A number that was read from a string, up to where it ended.
fn parsed(s: usize, end: usize, base: usize) {
    let bytes = if end == 0 { number(s, base) } else { up_to(s, word_at(end)) };
    r(s, bytes);
    w(end, 8);
}

fn parsed_real(s: usize, end: usize) {
    crate::real_fn! { fn strtod(s: usize, end: *mut usize) -> f64; }
    let mut stop = word_at(end);
    if end == 0 {
        // SAFETY: the string that the program has just passed to a function of this kind.
        unsafe { strtod(s, &raw mut stop) };
    }
    r(s, up_to(s, stop));
    w(end, 8);
}

/// Names of files say that there is a file, which is how some threads tell others: a directory is one channel.
fn appears() {
    if channel::on() {
        channel::send(channel::NAMES);
    }
}

fn is_seen() {
    if channel::on() {
        channel::receive(channel::NAMES);
    }
}

const TM: usize = size_of::<libc::tm>();
const SPEC: usize = size_of::<libc::timespec>();
const VAL: usize = size_of::<libc::timeval>();
const STAT: usize = size_of::<libc::stat>();
const MAX: usize = usize::MAX;

library! {
    // string.h, strings.h
    bcopy(from, to, n) { r(from, n); w(to, n); };
    bzero(to, n) { w(to, n); };
    explicit_bzero(to, n) { w(to, n); };
    index(s, byte) {} => out { r(s, up_to(s, out)); };
    rindex(s, byte) { r(s, text(s)); };
    memccpy(to, from, byte, n) {} => out {
        let bytes = if out == 0 { n } else { out - to };
        r(from, bytes);
        w(to, bytes);
    };
    mempcpy(to, from, n) { r(from, n); w(to, n); };
    __mempcpy(to, from, n) { r(from, n); w(to, n); };
    memmem(s, n, part, m) {} => out { r(part, m); r(s, if out == 0 { n } else { out - s + m }); };
    memrchr(s, byte, n) {} => out { if out == 0 { r(s, n); } else { r(out, s + n - out); } };
    rawmemchr(s, byte) {} => out { r(s, up_to(s, out)); };
    stpcpy(to, from) { r(from, text(from)); w(to, text(from)); };
    stpncpy(to, from, n) { r(from, text_up_to(from, n)); w(to, n); };
    strcasecmp(a, b) { r(a, alike(a, b, MAX)); r(b, alike(a, b, MAX)); };
    strncasecmp(a, b, n) { r(a, alike(a, b, n)); r(b, alike(a, b, n)); };
    strcasestr(s, part) { r(part, text(part)); } => out { r(s, if out == 0 { text(s) } else { out - s + length(part) }); };
    strchrnul(s, byte) {} => out { r(s, up_to(s, out)); };
    strcoll(a, b) { r(a, same(a, b, MAX)); r(b, same(a, b, MAX)); };
    strcspn(s, set) { r(set, text(set)); } => out { r(s, out + 1); };
    strspn(s, set) { r(set, text(set)); } => out { r(s, out + 1); };
    strpbrk(s, set) { r(set, text(set)); } => out { r(s, up_to(s, out)); };
    strsep(at, set) { r(at, 8); r(set, text(set)); let start = word_at(at); let end = start + length(start); } => out { w(at, 8); token(start, end, out); };
    strtok(s, set) { r(set, text(set)); let end = s + length(s); } => out { if s != 0 { token(s, end, out); } };
    strtok_r(s, set, at) { r(set, text(set)); let start = begin(s, at); let end = start + length(start); } => out { w(at, 8); token(start, end, out); };
    __strtok_r(s, set, at) { r(set, text(set)); let start = begin(s, at); let end = start + length(start); } => out { w(at, 8); token(start, end, out); };
    __strdup(s) { r(s, text(s)); };
    strndup(s, n) { r(s, text_up_to(s, n)); };
    __strndup(s, n) { r(s, text_up_to(s, n)); };
    strxfrm(to, from, n) { r(from, text(from)); } => out { if out < n { w(to, out + 1); } };
    strerror_r(error, to, n) {} => out { if out == to { w(to, text(to).min(n)); } };
    __xpg_strerror_r(error, to, n) {} => out { w(to, if_zero(out, text(to).min(n))); };
    strverscmp(a, b) { r(a, same(a, b, MAX)); r(b, same(a, b, MAX)); };
    swab(from, to, n) { let n = if n as isize > 0 { n & !1 } else { 0 }; r(from, n); w(to, n); };
    __memcpy_chk(to, from, n, room) { r(from, n); w(to, n); };
    __memmove_chk(to, from, n, room) { r(from, n); w(to, n); };
    __mempcpy_chk(to, from, n, room) { r(from, n); w(to, n); };
    __memset_chk(to, byte, n, room) { w(to, n); };
    __explicit_bzero_chk(to, n, room) { w(to, n); };
    __strcpy_chk(to, from, room) { r(from, text(from)); w(to, text(from)); };
    __stpcpy_chk(to, from, room) { r(from, text(from)); w(to, text(from)); };
    __strncpy_chk(to, from, n, room) { r(from, text_up_to(from, n)); w(to, n); };
    __stpncpy_chk(to, from, n, room) { r(from, text_up_to(from, n)); w(to, n); };
    __strcat_chk(to, from, room) { r(from, text(from)); r(to, text(to)); w(to + length(to), text(from)); };
    __strncat_chk(to, from, n, room) {
        let bytes = text_up_to(from, n);
        r(from, bytes);
        r(to, text(to));
        w(to + length(to), bytes);
    };

    // wchar.h
    wcslen(s) {} => out { r(s, (out + 1) * 4); };
    wcsnlen(s, n) {} => out { r(s, product(n.min(out + 1), 4)); };
    wcscpy(to, from) { r(from, wide_text(from)); w(to, wide_text(from)); };
    wcpcpy(to, from) { r(from, wide_text(from)); w(to, wide_text(from)); };
    wcsncpy(to, from, n) { r(from, wide_up_to(from, n)); w(to, product(n, 4)); };
    wcpncpy(to, from, n) { r(from, wide_up_to(from, n)); w(to, product(n, 4)); };
    wcscat(to, from) { r(from, wide_text(from)); r(to, wide_text(to)); w(to + wide_length(to), wide_text(from)); };
    wcsncat(to, from, n) { let bytes = wide_up_to(from, n); r(from, bytes); r(to, wide_text(to)); w(to + wide_length(to), bytes); };
    wcscmp(a, b) { r(a, wide_same(a, b, MAX)); r(b, wide_same(a, b, MAX)); };
    wcsncmp(a, b, n) { r(a, wide_same(a, b, n)); r(b, wide_same(a, b, n)); };
    wcscasecmp(a, b) { r(a, wide_same(a, b, MAX)); r(b, wide_same(a, b, MAX)); };
    wcsncasecmp(a, b, n) { r(a, wide_same(a, b, n)); r(b, wide_same(a, b, n)); };
    wcscoll(a, b) { r(a, wide_same(a, b, MAX)); r(b, wide_same(a, b, MAX)); };
    wcschr(s, wide) {} => out { r(s, wide_to(s, out)); };
    wcschrnul(s, wide) {} => out { r(s, wide_to(s, out)); };
    wcsrchr(s, wide) { r(s, wide_text(s)); };
    wcsstr(s, part) { r(part, wide_text(part)); } => out { r(s, if out == 0 { wide_text(s) } else { out - s + wide_length(part) }); };
    wcsspn(s, set) { r(set, wide_text(set)); } => out { r(s, (out + 1) * 4); };
    wcscspn(s, set) { r(set, wide_text(set)); } => out { r(s, (out + 1) * 4); };
    wcspbrk(s, set) { r(set, wide_text(set)); } => out { r(s, wide_to(s, out)); };
    wcstok(s, set, at) { r(set, wide_text(set)); if s == 0 { r(at, 8); } else { r(s, wide_text(s)); } } => out { w(at, 8); if out != 0 { r(out, wide_text(out)); } };
    wcsdup(s) { r(s, wide_text(s)); };
    wmemcpy(to, from, n) { r(from, product(n, 4)); w(to, product(n, 4)); };
    wmempcpy(to, from, n) { r(from, product(n, 4)); w(to, product(n, 4)); };
    wmemmove(to, from, n) { r(from, product(n, 4)); w(to, product(n, 4)); };
    wmemset(to, wide, n) { w(to, product(n, 4)); };
    wmemcmp(a, b, n) { r(a, product(n, 4)); r(b, product(n, 4)); };
    wmemchr(s, wide, n) {} => out { r(s, if out == 0 { product(n, 4) } else { out - s + 4 }); };
    wcstol(s, end, base) {} => out { if end != 0 { r(s, wide_to(s, word_at(end))); w(end, 8); } };
    wcstoul(s, end, base) {} => out { if end != 0 { r(s, wide_to(s, word_at(end))); w(end, 8); } };
    mbstowcs(to, from, n) {} => out { if out as isize >= 0 { r(from, text(from)); w(to, product(n.min(out + 1), 4)); } };
    wcstombs(to, from, n) {} => out { if out as isize >= 0 { r(from, wide_text(from)); w(to, n.min(out + 1)); } };
    mbtowc(to, s, n) {} => out { r(s, int(out).max(1) as usize); w(to, if int(out) >= 0 { 4 } else { 0 }); };
    mbrtowc(to, s, n, state) {} => out { if out as isize >= 0 { r(s, out.max(1)); w(to, 4); } };
    wcrtomb(to, wide, state) {} => out { if out as isize > 0 { w(to, out); } };

    // stdlib.h
    atoi(s) { r(s, number(s, 10)); };
    atol(s) { r(s, number(s, 10)); };
    atoll(s) { r(s, number(s, 10)); };
    atof(s) -> f64 { parsed_real(s, 0); };
    strtol(s, end, base) {} => out { parsed(s, end, base); };
    strtoul(s, end, base) {} => out { parsed(s, end, base); };
    strtoll(s, end, base) {} => out { parsed(s, end, base); };
    strtoull(s, end, base) {} => out { parsed(s, end, base); };
    strtoimax(s, end, base) {} => out { parsed(s, end, base); };
    strtoumax(s, end, base) {} => out { parsed(s, end, base); };
    __isoc23_strtol(s, end, base) {} => out { parsed(s, end, base); };
    __isoc23_strtoul(s, end, base) {} => out { parsed(s, end, base); };
    __isoc23_strtoll(s, end, base) {} => out { parsed(s, end, base); };
    __isoc23_strtoull(s, end, base) {} => out { parsed(s, end, base); };
    strtod(s, end) -> f64 {} => out { parsed_real(s, end); };
    strtof(s, end) -> f32 {} => out { parsed_real(s, end); };
    qsort(array, n, size, compare) { rw(array, product(n, size)); };
    qsort_r(array, n, size, compare, argument) { rw(array, product(n, size)); };
    lsearch(key, array, n, size, compare) { rw(n, 8); };
    mktemp(template) { path(template); } => out { w(template + length(template).saturating_sub(6), 6); };
    mkstemp(template) by files::mkstemp { path(template); appears(); } => out { if int(out) >= 0 { w(template + length(template).saturating_sub(6), 6); } };
    mkstemp64(template) by files::mkstemp { path(template); appears(); } => out { if int(out) >= 0 { w(template + length(template).saturating_sub(6), 6); } };
    mkdtemp(template) { path(template); appears(); } => out { if out != 0 { w(template + length(template).saturating_sub(6), 6); } };
    realpath(name, to) { path(name); } => out { w(to, text(to).min(if_any(out, MAX))); };
    __realpath_chk(name, to, room) { path(name); } => out { w(to, text(to).min(if_any(out, MAX))); };
    rand_r(seed) { rw(seed, 4); };
    drand48_r(state, to) { rw(state, 24); w(to, 8); };
    erand48(state) -> f64 { rw(state, 6); };
    nrand48(state) { rw(state, 6); };
    jrand48(state) { rw(state, 6); };
    random_r(state, to) { rw(state, 48); w(to, 4); };
    srandom_r(seed, state) { rw(state, 48); };
    initstate_r(seed, memory, n, state) { w(memory, n); w(state, 48); };
    getloadavg(to, n) {} => out { w(to, int(out).max(0) as usize * 8); };
    system(command) { path(command); };

    // math.h
    frexp(x: f64, to: usize) -> f64 {} => out { w(to, 4); };
    frexpf(x: f32, to: usize) -> f32 {} => out { w(to, 4); };
    modf(x: f64, to: usize) -> f64 {} => out { w(to, 8); };
    modff(x: f32, to: usize) -> f32 {} => out { w(to, 4); };
    lgamma_r(x: f64, to: usize) -> f64 {} => out { w(to, 4); };
    lgammaf_r(x: f32, to: usize) -> f32 {} => out { w(to, 4); };
    remquo(x: f64, y: f64, to: usize) -> f64 {} => out { w(to, 4); };
    sincos(x: f64, sine: usize, cosine: usize) {} => out { w(sine, 8); w(cosine, 8); };
    sincosf(x: f32, sine: usize, cosine: usize) {} => out { w(sine, 4); w(cosine, 4); };

    // time.h, sys/time.h
    gmtime(time) { r(time, 8); } => out { w(out, if_any(out, TM)); };
    localtime(time) { r(time, 8); } => out { w(out, if_any(out, TM)); };
    gmtime_r(time, to) { r(time, 8); } => out { w(to, if_any(out, TM)); };
    localtime_r(time, to) { r(time, 8); } => out { w(to, if_any(out, TM)); };
    ctime(time) { r(time, 8); } => out { w(out, if_any(out, text(out))); };
    asctime(time) { r(time, TM); } => out { w(out, if_any(out, text(out))); };
    ctime_r(time, to) { r(time, 8); } => out { w(to, if_any(out, text(to))); };
    asctime_r(time, to) { r(time, TM); } => out { w(to, if_any(out, text(to))); };
    mktime(time) { r(time, TM); } => out { w(time, TM); };
    timegm(time) { r(time, TM); } => out { w(time, TM); };
    timelocal(time) { r(time, TM); } => out { w(time, TM); };
    strftime(to, n, format, time) { path(format); r(time, TM); } => out { w(to, if out == 0 { 0 } else { out + 1 }); };
    strptime(s, format, to) { path(format); } => out { r(s, up_to(s, out)); w(to, if_any(out, TM)); };
    clock_getres(clock, to) {} => out { w(to, if_zero(out, SPEC)); };
    clock_settime(clock, time) { r(time, SPEC); };
    timespec_get(to, base) {} => out { w(to, if int(out) != 0 { SPEC } else { 0 }); };
    getitimer(which, to) {} => out { w(to, if_zero(out, 2 * VAL)); };
    settimeofday(time, zone) { r(time, VAL); };
    adjtime(delta, old) { r(delta, VAL); } => out { w(old, if_zero(out, VAL)); };
    times(to) {} => out { w(to, if out as isize == -1 { 0 } else { size_of::<libc::tms>() }); };
    ftime(to) {} => out { w(to, 16); };
    utime(name, times) { path(name); r(times, 16); };
    utimes(name, times) { path(name); r(times, 2 * VAL); };
    utimensat(folder, name, times, flags) { path(name); r(times, 2 * SPEC); };
    futimens(fd, times) { r(times, 2 * SPEC); };
    timer_settime(timer, flags, new, old) { r(new, 2 * SPEC); } => out { w(old, if_zero(out, 2 * SPEC)); };
    timer_gettime(timer, to) {} => out { w(to, if_zero(out, 2 * SPEC)); };
    timerfd_gettime(fd, to) {} => out { w(to, if_zero(out, 2 * SPEC)); };

    // unistd.h, fcntl.h, sys/stat.h
    pread(fd, to, n, at) {} => out { w(to, count(out).min(n)); if out as isize >= 0 { channel::after(channel::Flow::In, fd & 0xffff_ffff, 0); } };
    pread64(fd, to, n, at) {} => out { w(to, count(out).min(n)); if out as isize >= 0 { channel::after(channel::Flow::In, fd & 0xffff_ffff, 0); } };
    pwrite(fd, from, n, at) { r(from, n); channel::before(channel::Flow::Out, fd & 0xffff_ffff); };
    pwrite64(fd, from, n, at) { r(from, n); channel::before(channel::Flow::Out, fd & 0xffff_ffff); };
    __read_chk(fd, to, n, room) by system::read_checked {} => out { w(to, count(out).min(n)); channel::after(channel::Flow::In, fd & 0xffff_ffff, out as isize); };
    __pread_chk(fd, to, n, at, room) {} => out { w(to, count(out).min(n)); channel::after(channel::Flow::In, fd & 0xffff_ffff, out as isize); };
    __recv_chk(fd, to, n, room, flags) by system::recv_checked {} => out { w(to, count(out).min(n)); channel::after(channel::Flow::In, fd & 0xffff_ffff, out as isize); };
    __recvfrom_chk(fd, to, n, room, flags, from, length) by system::recvfrom_checked {} => out { w(to, count(out).min(n)); channel::after(channel::Flow::In, fd & 0xffff_ffff, out as isize); };
    __poll_chk(list, n, limit, room) by system::poll_checked {};
    __ppoll_chk(list, n, limit, mask, room) by system::ppoll_checked {};
    dup2(old, new) by files::dup2 { channel::forget(new & 0xffff_ffff); };
    dup3(old, new, flags) by files::dup3 { channel::forget(new & 0xffff_ffff); };
    getcwd(to, n) {} => out { if to != 0 { w(to, if_any(out, text(to))); } };
    __getcwd_chk(to, n, room) {} => out { if to != 0 { w(to, if_any(out, text(to))); } };
    readlink(name, to, n) { path(name); } => out { w(to, count(out).min(n)); };
    __readlink_chk(name, to, n, room) { path(name); } => out { w(to, count(out).min(n)); };
    readlinkat(folder, name, to, n) { path(name); } => out { w(to, count(out).min(n)); };
    gethostname(to, n) {} => out { w(to, if_zero(out, text(to).min(n))); };
    sethostname(name, n) { r(name, n); };
    getdomainname(to, n) {} => out { w(to, if_zero(out, text(to).min(n))); };
    getlogin_r(to, n) {} => out { w(to, if_zero(out, text(to).min(n))); };
    ttyname_r(fd, to, n) {} => out { w(to, if_zero(out, text(to).min(n))); };
    ptsname_r(fd, to, n) {} => out { w(to, if_zero(out, text(to).min(n))); };
    confstr(name, to, n) {} => out { w(to, out.min(n)); };
    getgroups(n, to) {} => out { if n & 0xffff_ffff != 0 { w(to, int(out).max(0) as usize * 4); } };
    getresuid(a, b, c) {} => out { w(a, if_zero(out, 4)); w(b, if_zero(out, 4)); w(c, if_zero(out, 4)); };
    getresgid(a, b, c) {} => out { w(a, if_zero(out, 4)); w(b, if_zero(out, 4)); w(c, if_zero(out, 4)); };
    access(name, mode) { path(name); } => out { is_seen(); };
    faccessat(folder, name, mode, flags) { path(name); } => out { is_seen(); };
    chdir(name) { path(name); };
    chmod(name, mode) { path(name); };
    chown(name, user, group) { path(name); };
    truncate(name, n) { path(name); };
    link(old, new) { path(old); path(new); appears(); };
    symlink(old, new) { path(old); path(new); appears(); };
    rename(old, new) { path(old); path(new); appears(); };
    renameat(old_folder, old, new_folder, new) { path(old); path(new); appears(); };
    unlink(name) { path(name); appears(); };
    unlinkat(folder, name, flags) { path(name); appears(); };
    remove(name) { path(name); appears(); };
    mkdir(name, mode) { path(name); appears(); } => out { is_seen(); };
    mkdirat(folder, name, mode) { path(name); appears(); } => out { is_seen(); };
    mkfifo(name, mode) { path(name); appears(); };
    rmdir(name) { path(name); appears(); };
    open(name, flags, mode) by files::open { path(name); opens(flags); } => out { is_seen(); };
    open64(name, flags, mode) by files::open { path(name); opens(flags); } => out { is_seen(); };
    openat(folder, name, flags, mode) by files::openat { path(name); opens(flags); } => out { is_seen(); };
    openat64(folder, name, flags, mode) by files::openat { path(name); opens(flags); } => out { is_seen(); };
    __open_2(name, flags) by files::open_2 { path(name); opens(flags); } => out { is_seen(); };
    __open64_2(name, flags) by files::open_2 { path(name); opens(flags); } => out { is_seen(); };
    creat(name, mode) by files::creat { path(name); appears(); };
    creat64(name, mode) by files::creat { path(name); appears(); };
    mkostemp(name, flags) by files::mkostemp { path(name); appears(); };
    mkostemp64(name, flags) by files::mkostemp { path(name); appears(); };
    mkstemps(name, suffix) by files::mkstemps { path(name); appears(); };
    mkstemps64(name, suffix) by files::mkstemps { path(name); appears(); };
    mkostemps(name, suffix, flags) by files::mkostemps { path(name); appears(); };
    mkostemps64(name, suffix, flags) by files::mkostemps { path(name); appears(); };
    dup(old) by files::dup {};
    close_range(first, last, flags) by files::close_range {};
    closefrom(first) by files::closefrom -> () {};
    memfd_create(name, flags) by files::memfd_create { path(name); };
    timerfd_create(clock, flags) by files::timerfd_create {};
    signalfd(fd, mask, flags) by files::signalfd { r(mask, 8); };
    inotify_init() by files::inotify_init {};
    inotify_init1(flags) by files::inotify_init1 {};
    arc4random() by random::arc4random {};
    arc4random_uniform(bound) by random::arc4random_uniform {};
    arc4random_buf(to, n) by random::arc4random_buf -> () {} => _out { w(to, n); };
    _ZNSt13random_device9_M_getvalEv(device) by random::random_device {};
    stat(name, to) { path(name); } => out { w(to, if_zero(out, STAT)); is_seen(); };
    stat64(name, to) { path(name); } => out { w(to, if_zero(out, STAT)); is_seen(); };
    lstat(name, to) { path(name); } => out { w(to, if_zero(out, STAT)); is_seen(); };
    lstat64(name, to) { path(name); } => out { w(to, if_zero(out, STAT)); is_seen(); };
    fstat(fd, to) {} => out { w(to, if_zero(out, STAT)); };
    fstat64(fd, to) {} => out { w(to, if_zero(out, STAT)); };
    fstatat(folder, name, to, flags) { path(name); } => out { w(to, if_zero(out, STAT)); is_seen(); };
    fstatat64(folder, name, to, flags) { path(name); } => out { w(to, if_zero(out, STAT)); is_seen(); };
    statx(folder, name, flags, mask, to) { path(name); } => out { w(to, if_zero(out, 256)); is_seen(); };
    statfs(name, to) { path(name); } => out { w(to, if_zero(out, size_of::<libc::statfs>())); };
    fstatfs(fd, to) {} => out { w(to, if_zero(out, size_of::<libc::statfs>())); };
    statvfs(name, to) { path(name); } => out { w(to, if_zero(out, size_of::<libc::statvfs>())); };
    fstatvfs(fd, to) {} => out { w(to, if_zero(out, size_of::<libc::statvfs>())); };
    getxattr(file, name, to, n) { path(file); path(name); } => out { w(to, count(out).min(n)); };
    setxattr(file, name, from, n, flags) { path(file); path(name); r(from, n); };

    // sys/*.h
    eventfd_write(fd, value) by system::eventfd_write { channel::before(channel::Flow::Out, fd & 0xffff_ffff); };
    eventfd_read(fd, to) by system::eventfd_read {} => out { w(to, if_zero(out, 8)); channel::after(channel::Flow::In, fd & 0xffff_ffff, out as isize); };
    preadv(fd, list, n, at) {} => out { pieces(list, n, count(out)); };
    pwritev(fd, list, n, at) { pieces_read(list, n); };
    process_vm_writev(process, list, n, remote, m, flags) { pieces_read(list, n); r(remote, product(m, 16)); };
    process_vm_readv(process, list, n, remote, m, flags) { r(remote, product(m, 16)); } => out { pieces(list, n, count(out)); };
    sendmmsg(fd, list, n, flags) { r(list, product(n & 0xffff_ffff, 64)); };
    getrusage(who, to) {} => out { w(to, if_zero(out, size_of::<libc::rusage>())); };
    getrlimit(what, to) {} => out { w(to, if_zero(out, 16)); };
    getrlimit64(what, to) {} => out { w(to, if_zero(out, 16)); };
    setrlimit(what, from) { r(from, 16); };
    setrlimit64(what, from) { r(from, 16); };
    uname(to) {} => out { w(to, if int(out) >= 0 { size_of::<libc::utsname>() } else { 0 }); };
    sysinfo(to) {} => out { w(to, if_zero(out, size_of::<libc::sysinfo>())); };
    sigpending(set) {} => out { w(set, if_zero(out, 8)); };
    sched_getaffinity(process, n, to) {} => out { w(to, if_zero(out, n)); };
    sched_setaffinity(process, n, from) { r(from, n); };
    sched_getparam(process, to) {} => out { w(to, if_zero(out, 4)); };
    tcgetattr(fd, to) {} => out { w(to, if_zero(out, size_of::<libc::termios>())); };
    tcsetattr(fd, how, from) { r(from, size_of::<libc::termios>()); };

    // arpa/inet.h, netdb.h
    inet_aton(s, to) { path(s); } => out { w(to, if int(out) != 0 { 4 } else { 0 }); };
    inet_addr(s) { path(s); };
    inet_network(s) { path(s); };
    inet_pton(family, s, to) { path(s); } => out { w(to, if int(out) == 1 { address(family) } else { 0 }); };
    inet_ntop(family, from, to, n) { r(from, address(family)); } => out { w(to, if_any(out, text(to))); };
    getaddrinfo(node, service, hints, to) { path(node); path(service); r(hints, 48); } => out { w(to, if_zero(out, 8)); };
    getnameinfo(from, n, host, host_bytes, service, service_bytes, flags) { r(from, n & 0xffff_ffff); } => out {
        if int(out) == 0 {
            w(host, if host_bytes & 0xffff_ffff == 0 { 0 } else { text(host) });
            w(service, if service_bytes & 0xffff_ffff == 0 { 0 } else { text(service) });
        }
    };
    gethostbyname(name) { path(name); };
    if_nametoindex(name) { path(name); };
    if_indextoname(number, to) {} => out { w(to, if_any(out, text(to))); };

    // pwd.h, grp.h, dirent.h
    getpwnam_r(name, to, buffer, n, found) { path(name); } => out { w(to, if_zero(out, 48)); w(found, 8); };
    getpwuid_r(user, to, buffer, n, found) {} => out { w(to, if_zero(out, 48)); w(found, 8); };
    getgrnam_r(name, to, buffer, n, found) { path(name); } => out { w(to, if_zero(out, 32)); w(found, 8); };
    getgrgid_r(group, to, buffer, n, found) {} => out { w(to, if_zero(out, 32)); w(found, 8); };
    getpwnam(name) { path(name); } => out { w(out, if_any(out, 48)); };
    getpwuid(user) {} => out { w(out, if_any(out, 48)); };
    opendir(name) by files::opendir { path(name); } => out { is_seen(); };
    closedir(folder) by files::closedir {};
    readdir(folder) {} => out { w(out, if_any(out, 19)); };
    readdir64(folder) {} => out { w(out, if_any(out, 19)); };

    // stdio.h, without those that have a format
    fopen(name, mode) by files::fopen { path(name); path(mode); appears(); } => out { is_seen(); };
    fopen64(name, mode) by files::fopen { path(name); path(mode); appears(); } => out { is_seen(); };
    fdopen(fd, mode) by files::fdopen { path(mode); };
    freopen(name, mode, stream) by files::freopen { path(name); path(mode); streams::writes(stream); };
    fmemopen(memory, n, mode) { path(mode); };
    fclose(stream) by files::fclose { streams::ends(stream); };
    pclose(stream) by files::pclose { streams::ends(stream); };
    popen(command, mode) by files::popen { path(command); path(mode); };
    fflush(stream) { streams::writes(stream); };
    fread(to, size, n, stream) from stream { streams::reads(stream); } => out { w(to, product(out, size)); streams::has_read(stream); };
    fread_unlocked(to, size, n, stream) from stream { streams::reads(stream); } => out { w(to, product(out, size)); streams::has_read(stream); };
    __fread_chk(to, room, size, n, stream) from stream { streams::reads(stream); } => out { w(to, product(out, size)); streams::has_read(stream); };
    fwrite(from, size, n, stream) { r(from, product(n, size)); streams::writes(stream); };
    fwrite_unlocked(from, size, n, stream) { r(from, product(n, size)); streams::writes(stream); };
    fgets(to, n, stream) from stream { streams::reads(stream); } => out { w(to, if_any(out, text(to))); streams::has_read(stream); };
    fgets_unlocked(to, n, stream) from stream { streams::reads(stream); } => out { w(to, if_any(out, text(to))); streams::has_read(stream); };
    __fgets_chk(to, room, n, stream) from stream { streams::reads(stream); } => out { w(to, if_any(out, text(to))); streams::has_read(stream); };
    fputs(s, stream) { path(s); streams::writes(stream); };
    fputs_unlocked(s, stream) { path(s); streams::writes(stream); };
    puts(s) { path(s); streams::writes(streams::output()); };
    fputc(byte, stream) { streams::writes(stream); };
    putc(byte, stream) { streams::writes(stream); };
    putchar(byte) { streams::writes(streams::output()); };
    fgetc(stream) from stream { streams::reads(stream); } => out { streams::has_read(stream); };
    getc(stream) from stream { streams::reads(stream); } => out { streams::has_read(stream); };
    _IO_getc(stream) from stream { streams::reads(stream); } => out { streams::has_read(stream); };
    _IO_putc(byte, stream) { streams::writes(stream); };
    getchar() by input::getchar { streams::reads(streams::input()); } => out { streams::has_read(streams::input()); };
    getline(at, room, stream) from stream { line_before(at, room, stream); } => out { line_after(at, room, stream, out); };
    __getdelim(at, room, end, stream) from stream { line_before(at, room, stream); } => out { line_after(at, room, stream, out); };
    getdelim(at, room, end, stream) from stream { line_before(at, room, stream); } => out { line_after(at, room, stream, out); };
    perror(s) { path(s); };
    tmpfile() by files::tmpfile {};
    tmpfile64() by files::tmpfile {};
    fgetc_unlocked(stream) from stream { streams::reads(stream); } => out { streams::has_read(stream); };
    getc_unlocked(stream) from stream { streams::reads(stream); } => out { streams::has_read(stream); };
    getchar_unlocked() by input::getchar { streams::reads(streams::input()); } => out { streams::has_read(streams::input()); };
    __uflow(stream) from stream { streams::reads(stream); } => out { streams::has_read(stream); };
    __underflow(stream) from stream { streams::reads(stream); } => out { streams::has_read(stream); };
    ungetc(byte, stream) from stream { streams::reads(stream); };
    clearerr(stream) by input::clearerr -> () { streams::reads(stream); };
    clearerr_unlocked(stream) by input::clearerr -> () { streams::reads(stream); };
    tmpnam(to) {} => out { w(to, if_any(out, text(to))); };
    setvbuf(stream, buffer, mode, n) by input::setvbuf { streams::reads(stream); };
    flockfile(stream) {} => out { streams::is_locked(stream); };
    ftrylockfile(stream) {} => out { if int(out) == 0 { streams::is_locked(stream); } };
    funlockfile(stream) { streams::unlocks(stream); };
    fseek(stream, at, from) { streams::reads(stream); };
    rewind(stream) { streams::reads(stream); };
    fgetpos(stream, to) { streams::reads(stream); } => out { w(to, if_zero(out, 16)); };
    fsetpos(stream, from) { streams::reads(stream); r(from, 16); };

    // wchar.h's streams and others
    fputws(s, stream) { r(s, wide_text(s)); streams::writes(stream); };
    fgetwc(stream) from stream { streams::reads(stream); } => out { streams::has_read(stream); };
    getwc(stream) from stream { streams::reads(stream); } => out { streams::has_read(stream); };
    ungetwc(letter, stream) from stream { streams::reads(stream); };
    fgetws(to, n, stream) from stream { streams::reads(stream); } => out { w(to, if_any(out, wide_text(to))); streams::has_read(stream); };
    iconv(converter, from, from_left, to, to_left) {
        if from != 0 {
            rw(from, 8);
            rw(from_left, 8);
            r(word_at(from), word_at(from_left));
        }
    } => out {
        if to != 0 {
            w(to, 8);
            rw(to_left, 8);
        }
    };
    crypt_r(key, salt, to) { path(key); path(salt); };
    wordexp(words, to, flags) { path(words); } => out { w(to, if_zero(out, 24)); };
    fnmatch(pattern, s, flags) { path(pattern); path(s); };
    glob(pattern, flags, error, to) { path(pattern); } => out { w(to, if_zero(out, 72)); };
    regcomp(to, pattern, flags) { path(pattern); } => out { w(to, if_zero(out, 64)); };
    regexec(compiled, s, n, to, flags) { r(compiled, 64); path(s); } => out { w(to, if_zero(out, product(n, 8))); };
    regfree(compiled) { w(compiled, 64); };
}

/// Where a search for a token goes on: at a string, or where the last one ended.
fn begin(s: usize, at: usize) -> usize {
    if s != 0 {
        return s;
    }
    r(at, 8);
    word_at(at)
}

/// A token was cut out of a string: everything up to its end was read, and what followed it is an end now.
fn token(start: usize, end: usize, token: usize) {
    if start == 0 {
        return;
    }
    let stop = if token == 0 { end } else { token + length(token) };
    r(start, stop - start + 1);
    if token != 0 && stop < end {
        w(stop, 1);
    }
}

fn opens(flags: usize) {
    if flags as c_int & libc::O_CREAT != 0 {
        appears();
    }
}

fn address(family: usize) -> usize {
    match family as c_int {
        libc::AF_INET => 4,
        libc::AF_INET6 => 16,
        _ => 0,
    }
}

/// Pieces that a result of so many bytes has filled.
fn pieces(list: usize, n: usize, bytes: usize) {
    super::kernel::scattered(&[0, list, n & 0xffff_ffff, 0, 0, 0], bytes as isize);
}

fn pieces_read(list: usize, n: usize) {
    super::kernel::gathers(&[0, list, n & 0xffff_ffff, 0, 0, 0]);
}

fn line_before(at: usize, room: usize, stream: usize) {
    streams::reads(stream);
    r(at, 8);
    r(room, 8);
}

fn line_after(at: usize, room: usize, stream: usize, result: usize) {
    if result as isize >= 0 {
        w(at, 8);
        w(room, 8);
        w(word_at(at), result + 1);
    }
    streams::has_read(stream);
}
