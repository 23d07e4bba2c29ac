//! Signal handlers.
//!
//! The program's handlers are called through one of ours, which reports when they begin and end. A signal that arrives
//! while the thread is inside the runtime waits until it has left: the handler might use the very lock or buffer that
//! was interrupted. One that waits already is not taken twice, as the kernel does with those that it holds back. When it is
//! handled at last, what its handler holds back is ours to keep, because for the kernel the handler has returned long ago.
//! Signals that the processor raises itself cannot wait, and do not arise inside the runtime.

use crate::crash::action;
use crate::demo::Arrival;
use crate::interpose::{alternate_stack, channel};
use crate::steer::{self, Request};
use crate::thread::{self, Deferred, Thread};
use crate::{demo, detect, export_with_pc, observe, real_fn};
use core::ffi::{c_int, c_uint, c_void};
use core::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};
use raddle_wire::report::kind;
use raddle_wire::{SyncOp, step};

mod c {
    use super::*;
    real_fn! {
        fn sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
        fn sysv_signal(signal: c_int, function: usize) -> usize;
        fn __sysv_signal(signal: c_int, function: usize) -> usize;
        fn sigset(signal: c_int, function: usize) -> usize;
        fn raise(signal: c_int) -> c_int;
        fn kill(process: libc::pid_t, signal: c_int) -> c_int;
        fn pthread_kill(thread: libc::pthread_t, signal: c_int) -> c_int;
        fn sigqueue(process: libc::pid_t, signal: c_int, value: usize) -> c_int;
        fn pthread_sigqueue(thread: libc::pthread_t, signal: c_int, value: usize) -> c_int;
        fn setitimer(which: c_int, new: *const libc::itimerval, old: *mut libc::itimerval) -> c_int;
        fn alarm(seconds: c_uint) -> c_uint;
    }
}

const SIGNALS: usize = 65;

/// The program's handler of each signal, with its flags, and the signals that wait while it runs, as bits.
struct Handler {
    function: AtomicUsize,
    flags: AtomicUsize,
    mask: AtomicU64,
}

static HANDLERS: [Handler; SIGNALS] = [const {
    Handler { function: AtomicUsize::new(0), flags: AtomicUsize::new(0), mask: AtomicU64::new(0) }
}; SIGNALS];

fn bit(signal: c_int) -> u64 {
    1 << (signal - 1)
}

fn raised_by_processor(signal: c_int, info: *const libc::siginfo_t) -> bool {
    matches!(signal, libc::SIGSEGV | libc::SIGBUS | libc::SIGILL | libc::SIGFPE | libc::SIGTRAP | libc::SIGSYS)
        // SAFETY: the kernel passes a valid description.
        && unsafe { (*info).si_code } > 0
}

extern "C" fn arrive(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if HANDLERS[signal as usize].flags.load(Ordering::Relaxed) & libc::SA_RESETHAND as usize != 0 {
        action::restored(signal);
    }
    if alternate_stack::in_use() {
        // SAFETY: what the kernel passed.
        return unsafe { alternate_stack::on_interrupted_stack(arrived, signal, info, context) };
    }
    arrived(signal, info, context);
}

/// Lets the signal wait. False: too many wait already.
fn defer(thread: &Thread, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) -> bool {
    // SAFETY: only called from handlers, with what the kernel passed to them.
    unsafe { thread.signals.defer(signal, info, context) }
}

extern "C" fn arrived(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let thread = thread::current();
    let processor = raised_by_processor(signal, info);
    if !processor {
        match demo::arrival(thread, signal) {
            Arrival::Drop => return,
            // A signal that waits already is not waited for twice: so does the kernel with those that it holds back.
            Arrival::Keep if thread.signals.waits(signal) || defer(thread, signal, info, context) => {
                if thread.turns.away.get() {
                    demo::signal_point(thread);
                }
                return;
            }
            Arrival::Keep | Arrival::Handle => {}
        }
    }
    // Those from here on are queued by the kernel.
    const FIRST_QUEUED: c_int = 32;
    let repeated = || signal < FIRST_QUEUED && thread.signals.waits(signal);
    let waits = thread.is_busy() || thread.signals.holds(signal);
    if waits && !processor && (repeated() || defer(thread, signal, info, context)) {
        return;
    }
    if !processor {
        let held = hold(thread, signal);
        begin(thread, signal);
        thread.signals.hold_only(held);
    }
    handle(signal, info, context);
}

/// What waits while the signal's handler runs is held back from now on; returns what was before.
pub fn hold(thread: &Thread, signal: c_int) -> u64 {
    let handler = &HANDLERS[signal as usize];
    let own =
        if handler.flags.load(Ordering::Relaxed) & libc::SA_NODEFER as usize != 0 { 0 } else { bit(signal) };
    thread.signals.hold(own | handler.mask.load(Ordering::Relaxed))
}

/// A steered thread's handler begins in its turn.
fn begin(thread: &Thread, signal: c_int) {
    if !steer::orders_handlers() || !steer::on() || !thread.is_observed() || thread.is_busy() {
        return;
    }
    let request = Request { kind: step::HANDLER, object: signal as usize, pc: 0 };
    steer::visible(thread, request, demo::note_handler);
}

/// The signal that has waited longest. Where the seed decides everything, the one with the smallest number: in which order
/// they came while the thread waited for its turn is a question of time.
pub fn take_deferred(thread: &Thread) -> Option<Deferred> {
    thread.signals.take(steer::clock::on())
}

/// The thread has left the runtime: handlers that waited run now, in order of arrival. With a demo they wait for the
/// next visible operation.
#[cold]
pub fn deliver_deferred(thread: &Thread) {
    if demo::has_signal(thread) {
        return;
    }
    while let Some(mut first) = take_deferred(thread) {
        let held = hold(thread, first.signal);
        begin(thread, first.signal);
        handle(first.signal, &mut first.info, (&raw mut first.context).cast());
        thread.signals.hold_only(held);
    }
}

/// The thread waits for its turn inside the runtime, and handlers of what has come in the meantime run first.
pub fn deliver_waiting(thread: &Thread) {
    let busy = thread.open();
    deliver_deferred(thread);
    thread.close(busy);
}

extern "C" fn do_setitimer(which: c_int, new: *const libc::itimerval, old: *mut libc::itimerval) -> c_int {
    // SAFETY: null, or a valid structure of the program.
    let armed = !new.is_null() && unsafe { (*new).it_value.tv_sec != 0 || (*new).it_value.tv_usec != 0 };
    steer::expect_signal(armed);
    // SAFETY: as the program asks.
    unsafe { c::setitimer(which, new, old) }
}

extern "C" fn do_alarm(seconds: c_uint) -> c_uint {
    steer::expect_signal(seconds != 0);
    // SAFETY: as the program asks.
    unsafe { c::alarm(seconds) }
}

pub fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let handler = &HANDLERS[signal as usize];
    let function = handler.function.load(Ordering::Acquire);
    if function == libc::SIG_DFL || function == libc::SIG_IGN {
        return;
    }
    // SAFETY: the calling thread's own errno, which a handler must not be seen to change.
    let errno = unsafe { *libc::__errno_location() };
    if let Some(thread) = thread::observed() {
        observe::sync(thread, function as u64, SyncOp::SignalEnter, signal as usize, 0);
    }
    channel::receive(channel::of_signal(signal));
    crate::real::set_errno(errno);
    // A handler that the thread has called for itself interrupts nothing; neither do those of what the processor raises, which the
    // code they interrupt has to live with.
    let interrupts = !thread::current().signals.raises.get() && !raised_by_processor(signal, info);
    let within = thread::current().signals.within.replace(interrupts);
    let flags = handler.flags.load(Ordering::Relaxed);
    let held = hold(thread::current(), signal);
    // SAFETY: the kernel's context, or a copy of it (here and below).
    let hidden = unsafe { alternate_stack::hide(context) };
    if flags & libc::SA_SIGINFO as usize != 0 {
        // SAFETY: the program registered this function with SA_SIGINFO.
        let function = unsafe {
            core::mem::transmute::<usize, extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)>(function)
        };
        function(signal, info, context);
    } else {
        // SAFETY: the program registered this function.
        let function = unsafe { core::mem::transmute::<usize, extern "C" fn(c_int)>(function) };
        function(signal);
    }
    if hidden {
        // SAFETY: the context is the one that the kernel passed to this handler, from which the stack was hidden above.
        unsafe { alternate_stack::show(context) };
    }
    thread::current().signals.hold_only(held);
    thread::current().signals.within.set(within);
    let before = errno;
    // SAFETY: as above.
    let errno = unsafe { *libc::__errno_location() };
    if let Some(thread) = thread::observed() {
        if errno != before && interrupts {
            misuse(thread, function as u64, kind::ERRNO_SPOILED);
        }
        observe::sync(thread, function as u64, SyncOp::SignalExit, signal as usize, 0);
    }
    crate::real::set_errno(errno);
}

fn misuse(thread: &Thread, pc: u64, what: u32) {
    if detect::on() {
        let _busy = thread::Busy::enter(thread);
        detect::misuse::tell(thread, pc, what, 0);
    }
}

/// The program calls a function of which a handler must keep away, because it may have interrupted the same one.
pub fn not_in_handler(thread: &Thread, pc: u64) {
    if thread.signals.within.get() {
        misuse(thread, pc, kind::SIGNAL_UNSAFE);
    }
}

/// A set of signals as bits.
fn mask_of(set: &libc::sigset_t) -> u64 {
    // SAFETY: a set is at least one word, whose bits are the signals up to the 64th.
    unsafe { *core::ptr::from_ref(set).cast() }
}

extern "C" fn do_sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    let known = (1..SIGNALS as c_int).contains(&signal);
    if !known || crate::run::header().is_none() {
        // SAFETY: as the program asks. A forked child may still have our handler.
        return unsafe {
            let result = c::sigaction(signal, new, old);
            if result == 0 {
                action::disguise(signal, old);
            }
            result
        };
    }
    let handler = &HANDLERS[signal as usize];
    let before = (handler.function.load(Ordering::Acquire), handler.flags.load(Ordering::Relaxed));
    let mut changed;
    let mut argument = new;
    if !new.is_null() {
        // SAFETY: the program passes a valid structure.
        changed = unsafe { *new };
        let function = changed.sa_sigaction;
        if function != libc::SIG_DFL && function != libc::SIG_IGN {
            handler.flags.store(changed.sa_flags as usize, Ordering::Relaxed);
            handler.mask.store(mask_of(&changed.sa_mask), Ordering::Relaxed);
            handler.function.store(function, Ordering::Release);
            steer::note_handlers();
            changed.sa_sigaction = arrive as *const () as usize;
            changed.sa_flags |= libc::SA_SIGINFO;
        }
        argument = &raw const changed;
    }
    // What was done before a handler is installed happens before it runs.
    channel::send(channel::of_signal(signal));
    // SAFETY: as the program asks, with our handler in the place of its own.
    let result = unsafe { c::sigaction(signal, argument, old) };
    if result != 0 && !new.is_null() {
        handler.function.store(before.0, Ordering::Release);
        handler.flags.store(before.1, Ordering::Relaxed);
    }
    // SAFETY: the program passes a valid structure or null.
    if result == 0 && !old.is_null() && unsafe { (*old).sa_sigaction } == arrive as *const () as usize {
        // SAFETY: as above.
        unsafe {
            (*old).sa_sigaction = before.0;
            (*old).sa_flags = before.1 as c_int;
        }
    }
    if result == 0 {
        // SAFETY: as above.
        unsafe { action::disguise(signal, old) };
        // SAFETY: as above.
        if !new.is_null() && unsafe { (*new).sa_sigaction } == libc::SIG_DFL {
            action::restored(signal);
        }
    }
    result
}

/// After one of the old functions, which are not observed: the handler that it returns is the program's.
fn after_old_call(signal: c_int, function: usize, before: usize) -> usize {
    if function == libc::SIG_DFL {
        action::restored(signal);
    }
    match before {
        before if action::is_ours(before) => libc::SIG_DFL,
        before if before == arrive as *const () as usize => {
            HANDLERS[signal as usize].function.load(Ordering::Acquire)
        }
        before => before,
    }
}

macro_rules! old_calls {
    ($($name:ident, $body:ident;)*) => {
        $(extern "C" fn $body(signal: c_int, function: usize) -> usize {
            // SAFETY: as the program asks.
            after_old_call(signal, function, unsafe { c::$name(signal, function) })
        })*
        export_with_pc! { $($name => $body;)* }
    };
}

old_calls! {
    sysv_signal, do_sysv_signal;
    __sysv_signal, do_underscore_sysv_signal;
    sigset, do_sigset;
}

extern "C" fn do_signal(signal: c_int, function: usize) -> usize {
    // SAFETY: plain data.
    let (mut new, mut old): (libc::sigaction, libc::sigaction) = unsafe { core::mem::zeroed() };
    new.sa_sigaction = function;
    new.sa_flags = libc::SA_RESTART;
    if do_sigaction(signal, &new, &mut old) != 0 { libc::SIG_ERR } else { old.sa_sigaction }
}

/// A signal that the program sends itself is there when the call returns. With a demo, signals wait for a visible operation: this
/// is one, for the thread that sent it.
fn sent(result: c_int) -> c_int {
    if let Some(thread) = thread::observed().filter(|_| demo::on()) {
        let pc = thread.caller_pc();
        let request = Request { kind: step::SYSCALL, object: 0, pc };
        thread.cancellation.tries.set(true);
        steer::visible(thread, request, |thread| demo::note_inside(thread, pc));
        thread.cancellation.tries.set(false);
    }
    result
}

extern "C" fn do_raise(signal: c_int) -> c_int {
    channel::send(channel::SIGNALS);
    let before = thread::current().signals.raises.replace(true);
    // SAFETY: as the program asks (here and below).
    let result = sent(unsafe { c::raise(signal) });
    thread::current().signals.raises.set(before);
    result
}

/// What a replay told the program when it asked for its own number.
static RECORDED_PID: AtomicI32 = AtomicI32::new(0);

/// In a replay the program knows itself by the number that it had in the recorded run.
pub(super) fn note_recorded_pid(pid: isize) {
    if demo::is_replay() && pid as u32 != crate::real::getpid() {
        RECORDED_PID.store(pid as i32, Ordering::Relaxed);
    }
}

/// Whom a signal is really for. In a replay the numbers of processes outside are those of the recorded run, and somebody
/// else may have them now: `None`.
fn addressee(process: libc::pid_t) -> Option<libc::pid_t> {
    if !demo::is_replay() || process == 0 {
        return Some(process);
    }
    let own = crate::real::getpid() as libc::pid_t;
    if process == own || process == RECORDED_PID.load(Ordering::Relaxed) {
        return Some(own);
    }
    is_child(process.unsigned_abs()).then_some(process)
}

fn is_child(process: u32) -> bool {
    let how = (libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) as usize;
    // SAFETY: asks about a process without taking its status; no pointers are passed.
    unsafe {
        crate::real::syscall(libc::SYS_waitid, [libc::P_PID as usize, process as usize, 0, how, 0, 0]) == 0
    }
}

extern "C" fn do_kill(process: libc::pid_t, signal: c_int) -> c_int {
    channel::send(channel::SIGNALS);
    channel::send(channel::of_signal(signal));
    sent(match addressee(process) {
        // SAFETY: no pointers are passed.
        Some(process) => unsafe { c::kill(process, signal) },
        None => 0,
    })
}

extern "C" fn do_pthread_kill(thread: libc::pthread_t, signal: c_int) -> c_int {
    channel::send(channel::SIGNALS);
    channel::send(channel::of_signal(signal));
    // SAFETY: the thread is one that the program says is alive, as the C function asks.
    sent(unsafe { c::pthread_kill(thread, signal) })
}

extern "C" fn do_sigqueue(process: libc::pid_t, signal: c_int, value: usize) -> c_int {
    channel::send(channel::SIGNALS);
    channel::send(channel::of_signal(signal));
    sent(match addressee(process) {
        // SAFETY: no pointers are passed.
        Some(process) => unsafe { c::sigqueue(process, signal, value) },
        None => 0,
    })
}

extern "C" fn do_pthread_sigqueue(thread: libc::pthread_t, signal: c_int, value: usize) -> c_int {
    channel::send(channel::SIGNALS);
    channel::send(channel::of_signal(signal));
    // SAFETY: as for `pthread_kill`.
    sent(unsafe { c::pthread_sigqueue(thread, signal, value) })
}

export_with_pc! {
    raise => do_raise;
    kill => do_kill;
    pthread_kill => do_pthread_kill;
    sigqueue => do_sigqueue;
    pthread_sigqueue => do_pthread_sigqueue;
    sigaction => do_sigaction;
    setitimer => do_setitimer;
    alarm => do_alarm;
    signal => do_signal;
    bsd_signal => do_signal;
    ssignal => do_signal;
}
