//! The system calls of a run in a worker: which are let through, and what they leave in the kernel.
//!
//! The kernel hands every system call that is not made at the runtime's own gate (`arch::gate`) to a handler, as a signal. A call is
//! let through if it cannot wait and leaves nothing behind, or leaves what can be taken back ([`undo`]): new mappings, files
//! opened for reading, the end of the heap, actions and masks of signals. A call that may be let through is also one that may be
//! made again: the run may be repeated from its start later on. Everything else ends the worker at that call ([`super::repeat`]).

use super::fiber;
use super::{Shared, end_with_exit, repeat};
use crate::{arch, real};
use core::cell::Cell;
use core::ffi::{c_int, c_long, c_void};
use raddle_wire::server::kept_reason;

pub const SIGNALS: usize = 65;
const PR_SET_SYSCALL_USER_DISPATCH: usize = 59;
/// What `si_code` of a handed-over system call says.
const SYS_USER_DISPATCH: c_int = 2;
const ALLOWED: u32 = 0;
const SEEN: u32 = 1;

/// The kernel's own form of an action.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Action {
    handler: usize,
    flags: usize,
    restorer: usize,
    mask: u64,
}

const MAPPINGS_MAX: usize = 128;
const FILES_MAX: i32 = 256;

/// What the run has left in the kernel. Ordinary memory: it is put back with the rest, after [`undo`].
struct Traces {
    mappings: Cell<[(usize, usize); MAPPINGS_MAX]>,
    mapping_count: Cell<usize>,
    /// Bits of open files that were not open before.
    files: [Cell<u64>; FILES_MAX as usize / 64],
    /// Where the heap ended before the run, and whether it has moved.
    heap_end: Cell<usize>,
    heap_moved: Cell<bool>,
    /// Signals whose actions have changed.
    actions: Cell<u64>,
    mask: Cell<u64>,
    stack: Cell<Option<libc::stack_t>>,
    stack_changed: Cell<bool>,
    name: Cell<[u8; 16]>,
    name_changed: Cell<bool>,
    /// The program has asked for its kernel thread's number, which several threads share here.
    asked_who: Cell<bool>,
}

// SAFETY: touched by the one kernel thread of a worker.
unsafe impl Sync for Traces {}

static TRACES: Traces = Traces {
    mappings: Cell::new([(0, 0); MAPPINGS_MAX]),
    mapping_count: Cell::new(0),
    files: [const { Cell::new(0) }; FILES_MAX as usize / 64],
    heap_end: Cell::new(0),
    heap_moved: Cell::new(false),
    actions: Cell::new(0),
    mask: Cell::new(0),
    stack: Cell::new(None),
    stack_changed: Cell::new(false),
    name: Cell::new([0; 16]),
    name_changed: Cell::new(false),
    asked_who: Cell::new(false),
};

fn own(number: c_long, arguments: [usize; 6]) -> isize {
    // SAFETY: each caller passes what the call asks for, or what the program passed.
    unsafe { real::own_syscall(number, arguments) }
}

/// Before the first run: remembers the kernel's state and has system calls handed over. False: the kernel does not do that.
pub fn start(shared: &Shared) -> bool {
    fiber::learn_mask();
    TRACES.mask.set(fiber::kernel_mask());
    TRACES.heap_end.set(own(libc::SYS_brk, [0; 6]) as usize);
    // SAFETY: plain data.
    let mut stack: libc::stack_t = unsafe { core::mem::zeroed() };
    own(libc::SYS_sigaltstack, [0, &raw mut stack as usize, 0, 0, 0, 0]);
    TRACES.stack.set(Some(stack));
    let mut name = [0u8; 16];
    own(libc::SYS_prctl, [libc::PR_GET_NAME as usize, name.as_mut_ptr() as usize, 0, 0, 0, 0]);
    TRACES.name.set(name);
    let handler = Action {
        handler: arrive as *const () as usize,
        flags: (libc::SA_SIGINFO | libc::SA_NODEFER | SA_RESTORER) as usize,
        restorer: arch::gate_return(),
        mask: 0,
    };
    set_action(libc::SIGSYS as usize, &handler);
    // SAFETY: nobody else looks at the actions.
    let actions = unsafe { &mut *shared.actions.get() };
    for (signal, action) in actions.iter_mut().enumerate().skip(1) {
        own(libc::SYS_rt_sigaction, [signal, 0, core::ptr::from_mut(action) as usize, 8, 0, 0]);
    }
    allow(shared);
    let (gate, bytes) = arch::gate();
    let arguments = [PR_SET_SYSCALL_USER_DISPATCH, 1, gate, bytes, shared.selector.as_ptr() as usize, 0];
    own(libc::SYS_prctl, arguments) == 0
}

const SA_RESTORER: c_int = 0x0400_0000;

fn set_action(signal: usize, action: &Action) {
    own(libc::SYS_rt_sigaction, [signal, core::ptr::from_ref(action) as usize, 0, 8, 0, 0]);
}

/// System calls are seen from here on.
pub fn see(shared: &Shared) {
    shared.selector.store(SEEN, core::sync::atomic::Ordering::Relaxed);
}

/// They are not: what follows is the runtime's.
pub fn allow(shared: &Shared) {
    shared.selector.store(ALLOWED, core::sync::atomic::Ordering::Relaxed);
}

/// Takes back what the run has left in the kernel.
pub fn undo(shared: &Shared) {
    let mappings = TRACES.mappings.get();
    for &(start, bytes) in &mappings[..TRACES.mapping_count.get()] {
        own(libc::SYS_munmap, [start, bytes, 0, 0, 0, 0]);
    }
    if TRACES.heap_moved.get() {
        own(libc::SYS_brk, [TRACES.heap_end.get(), 0, 0, 0, 0, 0]);
    }
    for (word, files) in TRACES.files.iter().enumerate() {
        let mut left = files.get();
        while left != 0 {
            own(libc::SYS_close, [word * 64 + left.trailing_zeros() as usize, 0, 0, 0, 0, 0]);
            left &= left - 1;
        }
    }
    let mut changed = TRACES.actions.get();
    // SAFETY: nobody else looks at the actions.
    let actions = unsafe { &*shared.actions.get() };
    while changed != 0 {
        let signal = changed.trailing_zeros() as usize + 1;
        set_action(signal, &actions[signal]);
        changed &= changed - 1;
    }
    // A handler that was left by the end of the run had a mask of its own.
    if fiber::kernel_mask() != TRACES.mask.get() || TRACES.actions.get() != 0 || died(shared) {
        fiber::set_signal_mask(TRACES.mask.get());
    }
    if let (true, Some(stack)) = (TRACES.stack_changed.get(), TRACES.stack.get()) {
        own(libc::SYS_sigaltstack, [&raw const stack as usize, 0, 0, 0, 0, 0]);
    }
    if TRACES.name_changed.get() {
        let name = TRACES.name.get();
        own(libc::SYS_prctl, [libc::PR_SET_NAME as usize, name.as_ptr() as usize, 0, 0, 0, 0]);
    }
}

fn died(shared: &Shared) -> bool {
    shared.status.load(core::sync::atomic::Ordering::Relaxed) & 0x7f != 0
}

/// Has the run asked for what is different here from a process of its own?
pub fn asked_who() -> bool {
    TRACES.asked_who.get() && fiber::has_threads()
}

enum Answer {
    /// The call is made.
    Pass,
    /// It is not made, and has this result.
    Is(isize),
    /// It cannot be made here.
    No,
}
use Answer::{Is, No, Pass};

extern "C" fn arrive(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: what the kernel passes to a handler.
    let (code, registers) =
        unsafe { ((*info).si_code, &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs) };
    if code != SYS_USER_DISPATCH {
        return crate::crash::arrive(signal, info, context);
    }
    let register = |at: c_int| registers[at as usize] as usize;
    let number = register(libc::REG_RAX) as c_long;
    let arguments = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9]
        .map(register);
    if number == libc::SYS_rt_sigreturn {
        // It is made where the handler returns to, with the stack as it is there.
        registers[libc::REG_RIP as usize] = arch::gate_return() as i64;
        return;
    }
    let result = match answer(number, arguments) {
        Pass => own(number, arguments),
        Is(result) => result,
        No => repeat(kept_reason::CALL, number as u64),
    };
    registers[libc::REG_RAX as usize] = result as i64;
}

fn answer(number: c_long, a: [usize; 6]) -> Answer {
    match number {
        libc::SYS_exit_group => {
            end_with_exit(a[0] as i32);
            No
        }
        libc::SYS_write | libc::SYS_writev => only(matches!(a[0], 1 | 2)),
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_readv | libc::SYS_getdents64 => only(is_opened(a[0])),
        libc::SYS_lseek => only(is_opened(a[0]) || a[0] == 1),
        libc::SYS_fstat | libc::SYS_newfstatat | libc::SYS_stat | libc::SYS_lstat | libc::SYS_statx => Pass,
        libc::SYS_access
        | libc::SYS_faccessat
        | libc::SYS_faccessat2
        | libc::SYS_readlink
        | libc::SYS_readlinkat => Pass,
        libc::SYS_getcwd | libc::SYS_uname | libc::SYS_sysinfo | libc::SYS_getrandom | libc::SYS_statfs => {
            Pass
        }
        libc::SYS_clock_gettime | libc::SYS_clock_getres | libc::SYS_gettimeofday | libc::SYS_time => Pass,
        libc::SYS_getpid | libc::SYS_getppid | libc::SYS_getuid | libc::SYS_geteuid | libc::SYS_getgid => {
            Pass
        }
        libc::SYS_getegid
        | libc::SYS_getpgrp
        | libc::SYS_getpgid
        | libc::SYS_getsid
        | libc::SYS_getgroups => Pass,
        libc::SYS_sched_yield | libc::SYS_getcpu | libc::SYS_getrusage | libc::SYS_times => Pass,
        libc::SYS_sched_getaffinity => Is(own(number, [0, a[1], a[2], 0, 0, 0])),
        libc::SYS_prlimit64 => only(a[2] == 0),
        libc::SYS_getrlimit => Pass,
        libc::SYS_ioctl => only(a[1] == libc::TCGETS as usize),
        libc::SYS_fcntl => only(matches!(a[1] as i32, libc::F_GETFL | libc::F_GETFD)),
        libc::SYS_poll => only(a[2] == 0),
        libc::SYS_futex => futex(a),
        libc::SYS_openat => open(number, a, a[2]),
        libc::SYS_open => open(number, a, a[1]),
        libc::SYS_close => close(a),
        libc::SYS_mmap => map(a),
        libc::SYS_munmap => unmap(a),
        libc::SYS_mprotect | libc::SYS_madvise => only(is_mapped(a[0], a[1])),
        libc::SYS_mremap => remap(a),
        libc::SYS_brk => move_heap(a),
        libc::SYS_rt_sigaction => action(a),
        libc::SYS_rt_sigprocmask => mask(a),
        libc::SYS_sigaltstack => alternate_stack(a),
        libc::SYS_prctl => name(a),
        libc::SYS_gettid => {
            TRACES.asked_who.set(true);
            Pass
        }
        libc::SYS_tgkill => signal(a),
        _ => No,
    }
}

fn only(known: bool) -> Answer {
    if known { Pass } else { No }
}

/// A wait that would really wait is nobody's whom the scheduler knows.
fn futex(a: [usize; 6]) -> Answer {
    match a[1] as i32 & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) {
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => Pass,
        _ => No,
    }
}

fn file_bit(file: usize) -> Option<(&'static Cell<u64>, u64)> {
    TRACES.files.get(file / 64).map(|word| (word, 1 << (file % 64)))
}

fn is_opened(file: usize) -> bool {
    file_bit(file).is_some_and(|(word, bit)| word.get() & bit != 0)
}

/// Files that are only read. One that waits for somebody at its other end is no plain file.
fn open(number: c_long, a: [usize; 6], flags: usize) -> Answer {
    let changes = libc::O_CREAT | libc::O_TRUNC | libc::O_TMPFILE & !libc::O_DIRECTORY | libc::O_ACCMODE;
    if flags as i32 & changes != libc::O_RDONLY {
        return No;
    }
    let file = own(number, a);
    if file < 0 {
        return Is(file);
    }
    // SAFETY: plain data.
    let mut status: libc::stat = unsafe { core::mem::zeroed() };
    own(libc::SYS_fstat, [file as usize, &raw mut status as usize, 0, 0, 0, 0]);
    match file_bit(file as usize)
        .filter(|_| matches!(status.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFDIR))
    {
        Some((word, bit)) => {
            word.set(word.get() | bit);
            Is(file)
        }
        None => No,
    }
}

fn close(a: [usize; 6]) -> Answer {
    match file_bit(a[0]).filter(|(word, bit)| word.get() & bit != 0) {
        Some((word, bit)) => {
            word.set(word.get() & !bit);
            Pass
        }
        // Closing what is not open leaves nothing.
        None => only(own(libc::SYS_fcntl, [a[0], libc::F_GETFD as usize, 0, 0, 0, 0]) < 0),
    }
}

fn rounded(bytes: usize) -> usize {
    bytes.next_multiple_of(super::image::PAGE_BYTES)
}

fn is_mapped(start: usize, bytes: usize) -> bool {
    let mappings = TRACES.mappings.get();
    mappings[..TRACES.mapping_count.get()]
        .iter()
        .any(|&(from, length)| start >= from && start + rounded(bytes) <= from + length)
}

fn add_mapping(start: usize, bytes: usize) -> bool {
    let (mut mappings, count) = (TRACES.mappings.get(), TRACES.mapping_count.get());
    let Some(place) = mappings.get_mut(count) else { return false };
    *place = (start, bytes);
    TRACES.mappings.set(mappings);
    TRACES.mapping_count.set(count + 1);
    true
}

/// Takes a stretch out of the mappings that the run has made. False: it is not theirs.
fn remove_mapping(start: usize, bytes: usize) -> bool {
    let (mut mappings, count) = (TRACES.mappings.get(), TRACES.mapping_count.get());
    let within = |&(from, length): &(usize, usize)| start >= from && start + bytes <= from + length;
    let Some(at) = mappings[..count].iter().position(within) else { return false };
    let (from, length) = mappings[at];
    mappings[at] = mappings[count - 1];
    TRACES.mappings.set(mappings);
    TRACES.mapping_count.set(count - 1);
    let before = start - from;
    let behind = from + length - (start + bytes);
    (before == 0 || add_mapping(from, before)) && (behind == 0 || add_mapping(start + bytes, behind))
}

fn map(a: [usize; 6]) -> Answer {
    let flags = a[3] as i32;
    let fixed = libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE | libc::MAP_GROWSDOWN;
    let private = flags & libc::MAP_TYPE == libc::MAP_PRIVATE;
    if flags & fixed != 0 && !(private && flags & libc::MAP_FIXED != 0 && is_mapped(a[0], a[1])) || !private {
        return No;
    }
    let start = own(libc::SYS_mmap, a);
    if start > 0 && !is_mapped(start as usize, a[1]) && !add_mapping(start as usize, rounded(a[1])) {
        return No;
    }
    Is(start)
}

fn unmap(a: [usize; 6]) -> Answer {
    if is_mapped(a[0], a[1]) { only(remove_mapping(a[0], rounded(a[1]))) } else { No }
}

fn remap(a: [usize; 6]) -> Answer {
    if !is_mapped(a[0], a[1]) || a[3] & !(libc::MREMAP_MAYMOVE as usize) != 0 {
        return No;
    }
    let start = own(libc::SYS_mremap, a);
    if start > 0 && !(remove_mapping(a[0], rounded(a[1])) && add_mapping(start as usize, rounded(a[2]))) {
        return No;
    }
    Is(start)
}

/// The heap may grow; below where it was, it is part of what is put back.
fn move_heap(a: [usize; 6]) -> Answer {
    if a[0] == 0 {
        return Pass;
    }
    if a[0] < TRACES.heap_end.get() {
        return No;
    }
    TRACES.heap_moved.set(true);
    Pass
}

fn action(a: [usize; 6]) -> Answer {
    let (signal, new) = (a[0], a[1] as *const Action);
    if signal == libc::SIGSYS as usize {
        return No;
    }
    // SAFETY: the program passes a valid action or null.
    if let Some(new) = unsafe { new.as_ref() } {
        if new.mask & 1 << (libc::SIGSYS - 1) != 0 || !(1..SIGNALS).contains(&signal) {
            return No;
        }
        TRACES.actions.set(TRACES.actions.get() | 1 << (signal - 1));
    }
    Pass
}

/// Each thread has a mask of its own, which goes along when threads are switched.
fn mask(a: [usize; 6]) -> Answer {
    let (how, new, old) = (a[0] as i32, a[1] as *const u64, a[2] as *mut u64);
    let before = fiber::mask();
    // SAFETY: the program passes a valid set or null.
    let after = match (unsafe { new.as_ref() }, how) {
        (None, _) => before,
        (Some(set), libc::SIG_BLOCK) => before | set,
        (Some(set), libc::SIG_UNBLOCK) => before & !set,
        (Some(set), libc::SIG_SETMASK) => *set,
        _ => return Pass,
    };
    let unblockable = 1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1);
    fiber::set_mask(after & !unblockable);
    // SAFETY: as above.
    if let Some(old) = unsafe { old.as_mut() } {
        *old = before;
    }
    Is(0)
}

/// The kernel knows one for all threads here, so only the main thread may set it.
fn alternate_stack(a: [usize; 6]) -> Answer {
    if a[0] != 0 {
        if !fiber::is_main() {
            return No;
        }
        TRACES.stack_changed.set(true);
    }
    Pass
}

fn name(a: [usize; 6]) -> Answer {
    if a[0] != libc::PR_SET_NAME as usize {
        return No;
    }
    TRACES.name_changed.set(true);
    Pass
}

/// A thread may send a signal to itself. `abort` is repeated in a forked child: its handler would run upon the one of this call, and
/// the report could not look through to where the program was.
fn signal(a: [usize; 6]) -> Answer {
    if a[2] as c_int == libc::SIGABRT {
        return No;
    }
    if a[0] != real::getpid() as usize || a[1] != real::gettid() as usize {
        return No;
    }
    // That is what it wanted to know its number for.
    TRACES.asked_who.set(false);
    Pass
}
