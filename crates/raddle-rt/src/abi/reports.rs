//! `__tsan_on_report` and its relatives: the program hears of a report while it runs, and looks into it.
//!
//! ThreadSanitizer calls `__tsan_on_report` for each report, and debuggers and test frameworks ask about it with
//! `__tsan_get_report_*`. Here a report is the entry that was written for the `raddle` process ([`crate::detect::report`]); the
//! functions read its items. A report is heard of before `raddle` has decided whether it is suppressed.
//!
//! Deviations: stacks are those of the report (at most 64 calls); a lock has no number but its address; the system's
//! number of a thread and whether it still runs are only told of threads that are alive.

use crate::detect::program;
use crate::registry;
use crate::thread::Thread;
use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::Ordering;
use raddle_wire::report::{self as wire, ReportEntry, count_of, home, kind, party, small_of, tag, tag_of};

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_get_current_report() -> *const c_void {
    program::current_report().cast()
}

/// One item of a report.
struct Item {
    tag: u8,
    small: u32,
    words: &'static [u64],
}

/// Calls `each` for the items of a report until it returns false.
fn each_item(report: *const c_void, mut each: impl FnMut(&Item) -> bool) {
    let entry = report.cast::<ReportEntry>();
    if entry.is_null() {
        return;
    }
    // SAFETY: the program passes what `__tsan_on_report` was given: an entry of the region, which is never unmapped
    // and no longer written.
    let body = unsafe {
        let used = ((*entry).used.load(Ordering::Relaxed) as usize).min(wire::REPORT_WORDS);
        core::slice::from_raw_parts((&raw const (*entry).body).cast::<u64>(), used)
    };
    let mut at = 0;
    while at < body.len() {
        let head = body[at];
        let end = (at + 1 + count_of(head)).min(body.len());
        if !each(&Item { tag: tag_of(head), small: small_of(head), words: &body[at + 1..end] }) {
            return;
        }
        at = end;
    }
}

fn nth(report: *const c_void, wanted: u8, index: usize) -> Option<Item> {
    let (mut seen, mut found) = (0, None);
    each_item(report, |item| {
        if item.tag == wanted {
            if seen == index {
                found = Some(Item { tag: item.tag, small: item.small, words: item.words });
            }
            seen += 1;
        }
        found.is_none()
    });
    found
}

fn count(report: *const c_void, wanted: u8) -> c_int {
    let mut count = 0;
    each_item(report, |item| {
        count += c_int::from(item.tag == wanted);
        true
    });
    count
}

fn kind_of(report: *const c_void) -> u32 {
    nth(report, tag::KIND, 0).map_or(0, |item| item.small)
}

fn is_race(report: *const c_void) -> bool {
    matches!(kind_of(report), kind::DATA_RACE | kind::USE_AFTER_FREE | kind::ACCESS_AFTER_FREE)
}

/// ThreadSanitizer's names.
fn description(kind: u32) -> &'static CStr {
    match kind {
        kind::DATA_RACE => c"data-race",
        kind::USE_AFTER_FREE | kind::ACCESS_AFTER_FREE => c"heap-use-after-free",
        kind::LOCK_ORDER => c"lock-order-inversion",
        kind::UNLOCK_NOT_HELD => c"mutex-bad-unlock",
        kind::READ_UNLOCK_NOT_HELD => c"mutex-bad-read-unlock",
        kind::DOUBLE_LOCK => c"mutex-double-lock",
        kind::DESTROYED_HELD => c"mutex-destroy-locked",
        kind::THREAD_LEAK => c"thread-leak",
        kind::INVALID_OBJECT => c"mutex-invalid-access",
        kind::SIGNAL_UNSAFE => c"signal-unsafe-call",
        kind::ERRNO_SPOILED => c"errno-in-signal-handler",
        _ => c"",
    }
}

/// Writes through a pointer of the program, which may be null.
fn give<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the program passes valid pointers.
        unsafe { to.write(value) };
    }
}

/// Copies a stack, and a zero behind it if there is room.
fn give_stack(to: *mut usize, room: usize, frames: &[u64]) {
    if to.is_null() {
        return;
    }
    for at in 0..room {
        let frame = frames.get(at).copied().unwrap_or(0);
        // SAFETY: the program has room for so many.
        unsafe { to.add(at).write(frame as usize) };
        if frame == 0 {
            return;
        }
    }
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub extern "C" fn __tsan_get_report_data(
    report: *const c_void,
    text: *mut *const c_char,
    duplicates: *mut c_int,
    stacks: *mut c_int,
    accesses: *mut c_int,
    locations: *mut c_int,
    mutexes: *mut c_int,
    threads: *mut c_int,
    unique_threads: *mut c_int,
    sleep_trace: *mut usize,
    room: usize,
) -> c_int {
    let parties = count(report, tag::PARTY);
    let race = is_race(report);
    give(text, description(kind_of(report)).as_ptr());
    give(duplicates, 0);
    give(stacks, if race { 0 } else { parties });
    give(accesses, if race { parties } else { 0 });
    give(locations, count(report, tag::BLOCK) + count(report, tag::OWNER));
    give(mutexes, count(report, tag::LOCK));
    give(threads, count(report, tag::THREAD));
    give(unique_threads, parties);
    give_stack(sleep_trace, room, &[]);
    1
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_get_report_tag(_report: *const c_void, tag: *mut usize) -> c_int {
    give(tag, 0);
    1
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_get_report_stack(
    report: *const c_void,
    index: usize,
    trace: *mut usize,
    room: usize,
) -> c_int {
    match nth(report, tag::PARTY, index) {
        Some(item) if !is_race(report) => {
            give_stack(trace, room, item.words.get(2..).unwrap_or(&[]));
            1
        }
        _ => 0,
    }
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub extern "C" fn __tsan_get_report_mop(
    report: *const c_void,
    index: usize,
    thread: *mut c_int,
    address: *mut usize,
    bytes: *mut c_int,
    write: *mut c_int,
    atomic: *mut c_int,
    trace: *mut usize,
    room: usize,
) -> c_int {
    let Some(item) = nth(report, tag::PARTY, index).filter(|_| is_race(report)) else { return 0 };
    let &[word, at, ref frames @ ..] = item.words else { return 0 };
    give(thread, item.small as c_int);
    give(address, at as usize);
    give(bytes, (word >> party::BYTES_SHIFT) as c_int);
    let writes = word & u64::from(raddle_wire::record::access::WRITE) != 0 || word & party::FREE != 0;
    give(write, c_int::from(writes));
    give(atomic, c_int::from(word & party::ATOMIC != 0));
    give_stack(trace, room, frames);
    1
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub extern "C" fn __tsan_get_report_loc(
    report: *const c_void,
    index: usize,
    kind: *mut *const c_char,
    address: *mut usize,
    start: *mut usize,
    bytes: *mut usize,
    thread: *mut c_int,
    descriptor: *mut c_int,
    suppressable: *mut c_int,
    trace: *mut usize,
    room: usize,
) -> c_int {
    let Some(place) = location(report, index) else { return 0 };
    let at = nth(report, tag::KIND, 0).and_then(|item| item.words.first().copied()).unwrap_or(place.start);
    give(kind, place.kind.as_ptr());
    give(address, at as usize);
    give(start, place.start as usize);
    give(bytes, place.bytes as usize);
    give(thread, place.thread as c_int);
    give(descriptor, 0);
    give(suppressable, 0);
    give_stack(trace, room, place.frames);
    1
}

/// Which memory a report is about.
struct Location {
    kind: &'static core::ffi::CStr,
    start: u64,
    bytes: u64,
    thread: u32,
    frames: &'static [u64],
}

/// The n-th location of a report: a block of the heap, then a thread's own memory, of which only the owner is told.
fn location(report: *const c_void, index: usize) -> Option<Location> {
    if let Some(item) = nth(report, tag::BLOCK, index) {
        let &[start, bytes, ref frames @ ..] = item.words else { return None };
        return Some(Location { kind: c"heap", start, bytes, thread: item.small, frames });
    }
    let item = nth(report, tag::OWNER, index.checked_sub(count(report, tag::BLOCK) as usize)?)?;
    let kind = match item.words.first() {
        Some(&part) if part == u64::from(home::STACK) => c"stack",
        _ => c"tls",
    };
    Some(Location { kind, start: 0, bytes: 0, thread: item.small, frames: &[] })
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_get_report_loc_object_type(
    report: *const c_void,
    index: usize,
    object_type: *mut *const c_char,
) -> c_int {
    give(object_type, c"".as_ptr());
    c_int::from(location(report, index).is_some())
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_get_report_mutex(
    report: *const c_void,
    index: usize,
    number: *mut usize,
    address: *mut usize,
    destroyed: *mut c_int,
    trace: *mut usize,
    room: usize,
) -> c_int {
    let Some(item) = nth(report, tag::LOCK, index) else { return 0 };
    let &[object, ref frames @ ..] = item.words else { return 0 };
    give(number, object as usize);
    give(address, object as usize);
    give(destroyed, 0);
    give_stack(trace, room, frames);
    1
}

/// The system's number of a thread that is alive.
fn alive(index: u32) -> Option<u32> {
    let found = Cell::new(None);
    registry::for_each(|thread: &Thread| {
        if thread.index() == index {
            found.set(Some(thread.os_tid()));
        }
    });
    found.get()
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub extern "C" fn __tsan_get_report_thread(
    report: *const c_void,
    index: usize,
    thread: *mut c_int,
    os_number: *mut u64,
    running: *mut c_int,
    name: *mut *const c_char,
    parent: *mut c_int,
    trace: *mut usize,
    room: usize,
) -> c_int {
    let Some(item) = nth(report, tag::THREAD, index) else { return 0 };
    let &[family, _, last, ref frames @ ..] = item.words else { return 0 };
    let os = alive(item.small);
    give(thread, item.small as c_int);
    give(os_number, u64::from(os.unwrap_or(0)));
    give(running, c_int::from(os.is_some()));
    // A name of sixteen bytes has no zero behind it.
    let named = last >> 56 == 0;
    let text = if named { (&raw const item.words[1]).cast() } else { c"".as_ptr() };
    give(name, text);
    give(parent, family as u32 as c_int);
    give_stack(trace, room, frames);
    1
}

#[unsafe(no_mangle)]
pub extern "C" fn __tsan_get_report_unique_tid(
    report: *const c_void,
    index: usize,
    thread: *mut c_int,
) -> c_int {
    match nth(report, tag::PARTY, index) {
        Some(item) => {
            give(thread, item.small as c_int);
            1
        }
        None => 0,
    }
}
