//! Crashes: what the runtime says when the program is about to die of a signal.
//!
//! Signals that say that something is wrong (SIGSEGV, SIGABRT and their like) have a handler of the runtime's as long as the
//! program leaves them their default action ([`action`]). It writes the crash report (`raddle_wire::crash`) into the region, gives
//! the signal back its default action, and sends it to its thread again, with the description that came with it. The handler then
//! returns, and the signal arrives at the very instruction that it came from the first time: status, core file and what a
//! debugger shows are those of a program without a runtime.
//!
//! Nothing here allocates, waits for a lock for long, or trusts the program's memory: that is read through the kernel
//! ([`memory`]), which refuses where an access would be the second crash. The handler runs on a stack of its own
//! (`interpose::alternate_stack`), because the program's may be what has overflowed. The report is sealed in stages, so that
//! whatever happens to the rest, signal and place are told.
//!
//! When several threads crash, the first one reports and the others wait for it, for a while.

pub mod action;
mod last_words;
pub mod memory;
pub mod stack;
mod waiting;

use crate::steer;
use crate::thread::{self, Thread};
use crate::{real, registry, run};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use raddle_wire::Header;
use raddle_wire::crash::{Head, NAME_MAX, NO_HOLDER, THREADS_MAX, ThreadHead, Writer, cause, state, text};
use stack::{Registers, Stack};

/// How long a thread that crashes waits for the report of another one.
const WAIT_FOR_REPORT_MS: u64 = 2_000;

/// A new run: handlers for the signals that have their default action.
pub fn start(header: &Header) {
    // A debugger has its own way with signals, and its user wants to see the program, not us.
    if header.options & raddle_wire::region::option::DEBUGGER == 0 {
        run::end_block(header).clear();
        last_words::find_message();
        action::install();
    }
}

crate::crash_entry!(entry, arrive);

/// The handler, on a stack of its own.
pub extern "C" fn arrive(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let context = context.cast::<libc::ucontext_t>();
    if let Some(header) = run::header()
        && header.claimed_pid.load(Ordering::Relaxed) == real::getpid()
    {
        report(header, signal, info, context);
    }
    // SAFETY: the kernel passes a valid description and context.
    unsafe { action::die(signal, info, context) };
}

fn report(header: &Header, signal: c_int, info: *const libc::siginfo_t, context: *const libc::ucontext_t) {
    let block = run::end_block(header);
    if !block.claim() {
        let start = real::now_ms();
        while block.state.load(Ordering::Acquire) != state::COMPLETE
            && real::now_ms() - start < WAIT_FOR_REPORT_MS
        {
            real::sleep_us(1_000);
        }
        return;
    }
    header.death_signal.store(signal as u32, Ordering::Relaxed);
    let thread = thread::current();
    // SAFETY: the kernel passes a valid description and context.
    let (code, address, registers) =
        unsafe { ((*info).si_code, (*info).si_addr() as u64, Registers::of(&*context)) };
    // Only a fault has an address; in its place others have who sent them.
    let address = if code > 0 && signal != libc::SIGABRT { address } else { 0 };
    let head = Head {
        cause: cause::SIGNAL,
        signal: signal as u32,
        code,
        address,
        pc: registers.pc,
        thread: index_of(thread),
    };
    let mut writer = Writer::begin(block, head);
    if signal == libc::SIGABRT {
        last_words::tell(thread, &mut writer);
    }
    writer.seal(false, 1);
    steer::note_crash(thread);
    // A breakpoint and a forbidden system call are noticed when they are over, everything else before it is.
    let over = code > 0 && matches!(signal, libc::SIGTRAP | libc::SIGSYS);
    let frames = Stack::of_crash(thread, registers, registers.pc + u64::from(!over));
    writer.thread(head_of(thread, &thread.turns.name.get()), frames.as_slice());
    writer.seal(false, 1);
    let alive = tell_others(&mut writer, thread);
    writer.seal(true, alive);
}

/// Every other thread; returns how many there are in all.
fn tell_others(writer: &mut Writer<'_>, crashed: &Thread) -> u32 {
    let sched = steer::look();
    let alive = Cell::new(1u32);
    let writer = Cell::new(Some(writer));
    registry::look(|thread| {
        if core::ptr::eq(thread, crashed) {
            return;
        }
        alive.set(alive.get() + 1);
        if alive.get() as usize > THREADS_MAX {
            return;
        }
        if let Some(into) = writer.take() {
            let standing = sched.as_ref().and_then(|sched| sched.standing(thread));
            waiting::tell(into, thread, standing);
            writer.set(Some(into));
        }
    });
    alive.get()
}

fn index_of(thread: &Thread) -> u32 {
    // The idle thread stands for all that the runtime does not know.
    if thread.is_observed() { thread.index() } else { NO_HOLDER }
}

fn head_of<'a>(thread: &Thread, name: &'a [u8; NAME_MAX]) -> ThreadHead<'a> {
    let bytes = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    ThreadHead {
        index: index_of(thread),
        path: thread.turns.path.get(),
        name: &name[..bytes],
        flags: 0,
        what: 0,
        object: 0,
        holder: NO_HOLDER,
        phase: 0,
    }
}

/// A steered run is ended by decree: where each thread stood, its parties first.
pub fn tell_outcome<'a>(
    header: &Header,
    outcome: u32,
    standing: impl Iterator<Item = (&'a Thread, steer::Standing)>,
) {
    let block = run::end_block(header);
    if !block.claim() {
        return;
    }
    let head = Head { cause: cause::OUTCOME, signal: outcome, thread: NO_HOLDER, ..Head::default() };
    let mut writer = Writer::begin(block, head);
    let mut alive = 0;
    for (thread, standing) in standing {
        alive += 1;
        waiting::tell(&mut writer, thread, Some(standing));
    }
    writer.seal(true, alive);
}

const _: () = assert!(text::NONE == 0);
