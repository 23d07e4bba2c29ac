//! The actions of the signals that end a program because something is wrong: ours, as long as the program has none.
//!
//! What the program asks about them is answered as if ours were not there: it is told the default action, with the flags and the
//! mask that it last gave (the kernel keeps them, although they mean nothing for a default action). A handler of its own
//! replaces ours; when it goes back to the default action, ours comes back.

use crate::{real, real_fn, run};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

mod c {
    use super::*;
    real_fn! {
        fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
    }
}

const COVERED: [c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];

/// What the kernel would tell the program about a signal whose action is the default.
struct DefaultAction {
    flags: AtomicUsize,
    mask: AtomicU64,
    restorer: AtomicUsize,
}

static DEFAULT_ACTIONS: [DefaultAction; COVERED.len()] = [const {
    DefaultAction { flags: AtomicUsize::new(0), mask: AtomicU64::new(0), restorer: AtomicUsize::new(0) }
}; COVERED.len()];

fn default_action(signal: c_int) -> Option<&'static DefaultAction> {
    COVERED.iter().position(|&covered| covered == signal).map(|at| &DEFAULT_ACTIONS[at])
}

/// Is this the runtime's handler of crashes?
pub fn is_ours(function: usize) -> bool {
    function == super::entry as *const () as usize
}

/// Ours for all signals that have their default action.
pub fn install() {
    for signal in COVERED {
        cover(signal);
    }
}

/// The program may have given the signal its default action: ours takes its place.
pub fn restored(signal: c_int) {
    if run::header().is_some_and(|header| {
        header.options & raddle_wire::region::option::DEBUGGER == 0
            && header.claimed_pid.load(Ordering::Relaxed) == real::getpid()
    }) {
        cover(signal);
    }
}

fn cover(signal: c_int) {
    let Some(default) = default_action(signal) else { return };
    // SAFETY: plain data; the kernel fills it.
    let mut now: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: the structure is valid for the call.
    if unsafe { c::sigaction(signal, core::ptr::null(), &mut now) } != 0 || now.sa_sigaction != libc::SIG_DFL
    {
        return;
    }
    default.flags.store(now.sa_flags as usize, Ordering::Relaxed);
    default.mask.store(first_word(&now.sa_mask), Ordering::Relaxed);
    default
        .restorer
        .store(now.sa_restorer.map_or(0, |function| function as *const () as usize), Ordering::Relaxed);
    // SAFETY: plain data.
    let mut ours: libc::sigaction = unsafe { core::mem::zeroed() };
    ours.sa_sigaction = super::entry as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: the set is valid; nothing else is handled while a crash is told.
    unsafe {
        libc::sigfillset(&mut ours.sa_mask);
        // By which a worker that keeps its process sees system calls.
        libc::sigdelset(&mut ours.sa_mask, libc::SIGSYS);
    }
    // SAFETY: a handler that takes these arguments.
    unsafe { c::sigaction(signal, &ours, core::ptr::null_mut()) };
}

fn first_word(set: &libc::sigset_t) -> u64 {
    // SAFETY: a set is at least one word, and the kernel knows no more than that.
    unsafe { *core::ptr::from_ref(set).cast() }
}

/// Hides our handler in what the kernel told about a signal.
///
/// # Safety
/// `old` is null or valid, and was filled for this signal.
pub unsafe fn disguise(signal: c_int, old: *mut libc::sigaction) {
    // SAFETY: by contract.
    let Some(old) = (unsafe { old.as_mut() }) else { return };
    let Some(default) = default_action(signal).filter(|_| is_ours(old.sa_sigaction)) else { return };
    old.sa_sigaction = libc::SIG_DFL;
    old.sa_flags = default.flags.load(Ordering::Relaxed) as c_int;
    let restorer = default.restorer.load(Ordering::Relaxed);
    // SAFETY: a set is at least one word; the restorer is null or what the kernel had told.
    unsafe {
        *(&raw mut old.sa_mask).cast() = default.mask.load(Ordering::Relaxed);
        old.sa_restorer = core::mem::transmute::<usize, Option<extern "C" fn()>>(restorer);
    }
}

/// The signal's default action comes when the handler returns.
///
/// # Safety
/// Called from the handler, with what the kernel passed to it.
pub unsafe fn die(signal: c_int, info: *const libc::siginfo_t, context: *mut libc::ucontext_t) {
    crate::steer::kept::end_run(signal as u32);
    /// The kernel's own form of an action.
    #[repr(C)]
    struct Action {
        handler: usize,
        flags: usize,
        restorer: usize,
        mask: u64,
    }
    let default = Action { handler: libc::SIG_DFL, flags: 0, restorer: 0, mask: 0 };
    let (process, thread) = (real::getpid() as usize, real::gettid() as usize);
    // SAFETY: valid structures. The mask that comes back when the handler returns may hold the signal: it may have arrived in a
    // `sigsuspend`, which lets it through for a while.
    unsafe {
        real::own_syscall(
            libc::SYS_rt_sigaction,
            [signal as usize, &raw const default as usize, 0, size_of::<u64>(), 0, 0],
        );
        *(&raw mut (*context).uc_sigmask).cast::<u64>() &= !(1 << (signal - 1));
        let sent = real::own_syscall(
            libc::SYS_rt_tgsigqueueinfo,
            [process, thread, signal as usize, info as usize, 0, 0],
        );
        if sent != 0 {
            real::own_syscall(libc::SYS_tgkill, [process, thread, signal as usize, 0, 0, 0]);
        }
    }
}
