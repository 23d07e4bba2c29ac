//! Processes: fork, exec, wait, exit.

use crate::arch::Variadic;
use crate::thread;
use crate::{export_variadic_with_pc, export_with_pc, observe, real, real_fn, run};
use core::ffi::{CStr, c_char, c_int, c_uint};
use core::sync::atomic::Ordering;
use raddle_wire::SyncOp;
use raddle_wire::region::state;

type Strings = *const *const c_char;

mod c {
    use super::*;
    real_fn! {
        fn fork() -> c_int;
        fn waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int;
        fn wait4(pid: c_int, status: *mut c_int, options: c_int, usage: *mut libc::rusage) -> c_int;
        fn waitid(kind: c_uint, id: c_uint, info: *mut libc::siginfo_t, options: c_int) -> c_int;
        fn _exit(status: c_int);
        fn execve(path: *const c_char, argv: Strings, envp: Strings) -> c_int;
        fn execv(path: *const c_char, argv: Strings) -> c_int;
        fn execvp(path: *const c_char, argv: Strings) -> c_int;
        fn execvpe(path: *const c_char, argv: Strings, envp: Strings) -> c_int;
        fn fexecve(fd: c_int, argv: Strings, envp: Strings) -> c_int;
    }
}

unsafe extern "C" {
    /// What `pthread_atfork` calls; that one is linked into each program and need not be there.
    fn __register_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
        module: *const core::ffi::c_void,
    ) -> c_int;
}

extern "C" fn forked() {
    become_child();
}

/// In a forked child: nothing here is observed any more, and locks that other threads held are free.
fn become_child() {
    run::stop();
    let thread = thread::current();
    thread.access.enabled.set(0);
    crate::demo::stop();
    crate::thread::crash_stack::release(thread);
    run::detach();
    crate::arch::set_current(thread::idle());
    crate::segment::reset_after_fork();
    crate::stripe::reset_after_fork();
    crate::detect::reset_after_fork();
    crate::registry::reset_after_fork();
    crate::steer::stop_steering();
}

/// The program's own handlers for the child (`pthread_atfork`) run inside `fork`. Ours was registered before theirs, so it runs
/// before them: they are not observed, and wait for nobody's turn.
pub fn prepare_for_forks() {
    // SAFETY: registers a C function that stays.
    unsafe { __register_atfork(None, None, Some(forked), core::ptr::null()) };
}

/// The child of a fork has one thread and its own memory: it is not observed.
extern "C" fn do_fork() -> c_int {
    let pc = thread::current().caller_pc();
    // No lock of the runtime may be held by a thread that the child will not have.
    // SAFETY: as the program asks.
    let pid = unsafe { c::fork() };
    if pid == 0 {
        become_child();
    } else if pid > 0
        && let Some(thread) = thread::observed()
    {
        if crate::steer::on() {
            crate::demo::descriptors::forked();
            crate::steer::tasks::remember_child(pid);
        }
        observe::sync(thread, pc, SyncOp::ProcessFork, pid as usize, 0);
    }
    pid
}

/// Waits for a child, or for any, and says so: whoever watches over the turns then knows what the thread sleeps for.
fn awaiting(child: c_int, wait: impl FnOnce() -> c_int) -> c_int {
    let Some(thread) = thread::observed().filter(|_| crate::steer::on()) else { return wait() };
    thread.turns.awaits.store(if child > 0 { child } else { -1 }, Ordering::Relaxed);
    let result = wait();
    thread.turns.awaits.store(0, Ordering::Relaxed);
    result
}

extern "C" fn do_wait(status: *mut c_int) -> c_int {
    do_waitpid(-1, status, 0)
}

extern "C" fn do_waitpid(pid: c_int, status: *mut c_int, options: c_int) -> c_int {
    // SAFETY: as the program asks (here and below).
    awaiting(pid, || unsafe { c::waitpid(pid, status, options) })
}

extern "C" fn do_wait3(status: *mut c_int, options: c_int, usage: *mut libc::rusage) -> c_int {
    do_wait4(-1, status, options, usage)
}

extern "C" fn do_wait4(pid: c_int, status: *mut c_int, options: c_int, usage: *mut libc::rusage) -> c_int {
    // SAFETY: as the program asks.
    awaiting(pid, || unsafe { c::wait4(pid, status, options, usage) })
}

extern "C" fn do_waitid(kind: c_uint, id: c_uint, info: *mut libc::siginfo_t, options: c_int) -> c_int {
    let child = if kind == libc::P_PID { id as c_int } else { -1 };
    // SAFETY: as the program asks.
    awaiting(child, || unsafe { c::waitid(kind, id, info, options) })
}

fn ours() -> bool {
    run::header().is_some_and(|header| header.claimed_pid.load(Ordering::Relaxed) == real::getpid())
}

fn before_exec(path: *const c_char) {
    if !ours() {
        return;
    }
    if let Some(thread) = thread::observed() {
        let pc = thread.caller_pc();
        // SAFETY: the program passes a C string.
        let text = unsafe { CStr::from_ptr(path) }.to_bytes();
        observe::sync_text(thread, pc, SyncOp::ProcessExec, 0, 0, text);
    }
    if let Some(header) = run::header() {
        header.state.store(state::EXECED, Ordering::Release);
    }
}

/// An exec that returns has failed: the program goes on.
fn after_exec(result: c_int) -> c_int {
    if ours()
        && let Some(header) = run::header()
    {
        header.state.store(state::RUNNING, Ordering::Release);
    }
    result
}

extern "C" fn do_execve(path: *const c_char, argv: Strings, envp: Strings) -> c_int {
    before_exec(path);
    // SAFETY: as the program asks (here and below).
    after_exec(unsafe { c::execve(path, argv, envp) })
}

extern "C" fn do_execv(path: *const c_char, argv: Strings) -> c_int {
    before_exec(path);
    // SAFETY: as the program asks.
    after_exec(unsafe { c::execv(path, argv) })
}

extern "C" fn do_execvp(path: *const c_char, argv: Strings) -> c_int {
    before_exec(path);
    // SAFETY: as the program asks.
    after_exec(unsafe { c::execvp(path, argv) })
}

extern "C" fn do_execvpe(path: *const c_char, argv: Strings, envp: Strings) -> c_int {
    before_exec(path);
    // SAFETY: as the program asks.
    after_exec(unsafe { c::execvpe(path, argv, envp) })
}

extern "C" fn do_fexecve(fd: c_int, argv: Strings, envp: Strings) -> c_int {
    before_exec(c"(an open file)".as_ptr());
    // SAFETY: as the program asks.
    after_exec(unsafe { c::fexecve(fd, argv, envp) })
}

/// The list of arguments of `execl` and its variants as an array.
struct List {
    few: [*const c_char; List::FEW],
    /// Number of the argument behind the list.
    next: usize,
}

impl List {
    const FEW: usize = 256;

    /// Reads the list in place: `self.few` must not move afterwards.
    fn read(&mut self, arguments: Variadic) -> Option<Strings> {
        // SAFETY: the program ends its list with a null pointer (here and below).
        let length = (1..).take_while(|&number| unsafe { arguments.get(number) } != 0).count();
        let array: *mut *const c_char = if length < List::FEW {
            self.few.as_mut_ptr()
        } else {
            let bytes = (length + 1) * size_of::<*const c_char>();
            // Never given back: exec does that, and a list of this length whose exec fails is not seen twice.
            crate::arena::map(bytes)?.cast()
        };
        for index in 0..=length {
            // SAFETY: there is room for the list and its null pointer.
            unsafe { *array.add(index) = arguments.get(index + 1) as *const c_char };
        }
        self.next = length + 2;
        Some(array)
    }

    const fn new() -> List {
        List { few: [core::ptr::null(); List::FEW], next: 0 }
    }
}

fn no_memory() -> c_int {
    // SAFETY: the calling thread's own errno.
    unsafe { *libc::__errno_location() = libc::ENOMEM };
    -1
}

extern "C" fn do_execl(registers: *const [usize; 6], stack: *const usize) -> c_int {
    let arguments = Variadic { registers, stack };
    // SAFETY: the path is always there.
    let path = unsafe { arguments.get(0) } as *const c_char;
    let mut list = List::new();
    match list.read(arguments) {
        Some(argv) => do_execv(path, argv),
        None => no_memory(),
    }
}

extern "C" fn do_execlp(registers: *const [usize; 6], stack: *const usize) -> c_int {
    let arguments = Variadic { registers, stack };
    // SAFETY: the path is always there.
    let path = unsafe { arguments.get(0) } as *const c_char;
    let mut list = List::new();
    match list.read(arguments) {
        Some(argv) => do_execvp(path, argv),
        None => no_memory(),
    }
}

extern "C" fn do_execle(registers: *const [usize; 6], stack: *const usize) -> c_int {
    let arguments = Variadic { registers, stack };
    let mut list = List::new();
    let Some(argv) = list.read(arguments) else { return no_memory() };
    // SAFETY: the path comes first and the environment behind the list.
    let (path, envp) = unsafe { (arguments.get(0) as *const c_char, arguments.get(list.next) as Strings) };
    do_execve(path, argv, envp)
}

extern "C" fn do_underscore_exit(status: c_int) {
    if ours() {
        if let Some(thread) = thread::observed() {
            let pc = thread.caller_pc();
            observe::sync(thread, pc, SyncOp::ProcessExit, status as usize, 0);
        }
        if let Some(header) = run::header() {
            header.exit_status.store(status, Ordering::Relaxed);
            header.state.store(state::EXITED, Ordering::Release);
        }
    }
    // SAFETY: does not return.
    unsafe { c::_exit(status) }
}

export_with_pc! {
    fork => do_fork;
    wait => do_wait;
    waitpid => do_waitpid;
    wait3 => do_wait3;
    wait4 => do_wait4;
    waitid => do_waitid;
    _exit => do_underscore_exit;
    _Exit => do_underscore_exit;
    execve => do_execve;
    execv => do_execv;
    execvp => do_execvp;
    execvpe => do_execvpe;
    fexecve => do_fexecve;
}

export_variadic_with_pc! {
    execl => do_execl;
    execlp => do_execlp;
    execle => do_execle;
}
