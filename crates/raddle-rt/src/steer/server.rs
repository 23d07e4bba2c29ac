//! The fork server: one start of the program, many runs.
//!
//! Starting a program costs an exec, the dynamic linker and the runtime's own start; forking a process that has done all
//! of it costs a tenth. So the runtime stops in its constructor, before any code of the program has run, and forks a
//! child for each run that is asked for (`raddle_wire::server`). The child goes on into the program as if it had just
//! been started: no state of an earlier run exists in it, because the server itself never runs the program.
//!
//! Everything stays on one processor: hand-offs between threads are then a switch and no wake-up of another processor
//! (a factor of seven for small programs), and there is one server for each processor.
//!
//! A run that takes too long is ended by `raddle`, which sees the child's process id. A server whose `raddle` is gone ends
//! with it, and so does the run that is going on.
//!
//! The standard output is a file that belongs to `raddle`. Its offset is shared by server and children: after a run it
//! tells how much was printed.

use super::kept::Digest;
use super::kept::keeper::Keeper;
use super::warm;
use crate::{message, real, real_fn};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, Ordering};
use raddle_wire::Header;
use raddle_wire::crash::EndBlock;
use raddle_wire::region::{PARTIES_MAX, outcome, state};
use raddle_wire::server::{
    RUN_BYTES, RUN_OUTPUT_MAX, RUNS_MAX, RunEntry, end_offset, ring_offset, server_state,
};

real_fn! {
    fn fork() -> c_int;
}

/// How long the server waits at a time before it checks that `raddle` still lives.
pub const WAIT_US: u64 = 500_000;

/// If a server is wanted: serves until `raddle` is done, and returns only in children, one for each run, and in workers.
/// `rehearse` does beforehand what the C library does only once in a process.
pub fn serve(header: &'static Header, rehearse: fn()) {
    let server = &header.server;
    if server.wanted == 0 || server.state.load(Ordering::Acquire) != server_state::NONE {
        return;
    }
    if !alone() {
        server.state.store(server_state::REFUSED, Ordering::Release);
        real::futex_wake(&server.published, 1);
        return;
    }
    no_core_files();
    rehearse();
    let mut keeper = Keeper::new(header);
    warm::prepare();
    let modules = header.modules.load(Ordering::Relaxed);
    server.state.store(server_state::SERVING, Ordering::Release);
    real::futex_wake(&server.published, 1);
    let mut run: u32 = 0;
    loop {
        wait_for_request(header, run);
        if keeper.is_trusted() {
            let Some(gone_on) = keeper.serve(run, modules) else { return };
            run = gone_on.run;
            if !gone_on.repeats {
                continue;
            }
            // The worker may be gone because everything is over.
            wait_for_request(header, run);
        }
        let Some(mut status) = fork_run(header, modules) else { return };
        if keeper.compares() {
            let forked = digest(header, status);
            let Some(agrees) = keeper.compare(forked, run, modules) else { return };
            if !agrees {
                let Some(again) = fork_run(header, modules) else { return };
                status = again;
            }
        }
        publish(header, run, status);
        run = run.wrapping_add(1);
    }
}

/// One run in a forked child: how it ended. `None`: this is the child.
fn fork_run(header: &'static Header, modules: u32) -> Option<u32> {
    let server = &header.server;
    reset(header, modules);
    // SAFETY: the process has one thread, and the child goes on as the program would.
    let child = unsafe { fork() };
    if child == 0 {
        become_child(header);
        warm::populate(core::ptr::from_ref(header) as usize);
        return None;
    }
    if child < 0 {
        cannot_fork();
    }
    server.child.store(child as u32, Ordering::Release);
    let status = wait(child);
    server.child.store(0, Ordering::Release);
    warm::learn();
    Some(status)
}

pub(super) fn cannot_fork() -> ! {
    message::fatal(format_args!("the fork server cannot fork: too many processes, or too little memory"))
}

pub(super) fn become_child(header: &Header) {
    if !crate::arena::renew() {
        message::fatal(format_args!("the fork server cannot map new tables for a run: too little memory"));
    }
    die_with_server();
    header.claimed_pid.store(real::getpid(), Ordering::Release);
}

pub(super) fn wait_for_request(header: &Header, run: u32) {
    let server = &header.server;
    loop {
        if server.quit.load(Ordering::Acquire) != 0 || !real::process_exists(header.collector_pid) {
            real::exit_group(0);
        }
        let requested = server.requested.load(Ordering::Acquire);
        let consumed = server.consumed.load(Ordering::Acquire);
        if requested == run {
            real::futex_wait(&server.requested, requested, Some(WAIT_US));
        } else if run.wrapping_sub(consumed) as usize >= RUNS_MAX || must_be_read(header, run) {
            real::futex_wait(&server.consumed, consumed, Some(WAIT_US));
        } else {
            return;
        }
    }
}

/// Does the run before wait with output that did not fit into its entry?
fn must_be_read(header: &Header, run: u32) -> bool {
    let before = run.wrapping_sub(1);
    header.server.consumed.load(Ordering::Acquire) == before
        && entry(header, before).output_bytes.load(Ordering::Relaxed) > RUN_OUTPUT_MAX as u64
}

pub(super) fn reset(header: &Header, modules: u32) {
    header.modules.store(modules, Ordering::Relaxed);
    header.state.store(state::NONE, Ordering::Relaxed);
    header.exit_status.store(0, Ordering::Relaxed);
    header.death_signal.store(0, Ordering::Relaxed);
    header.threads.store(0, Ordering::Relaxed);
    header.party_count.store(0, Ordering::Relaxed);
    header.report.store(0, Ordering::Relaxed);
    header.steps.store(0, Ordering::Relaxed);
    header.turns_hash.store(0, Ordering::Relaxed);
    header.outcome.store(outcome::NONE, Ordering::Relaxed);
    crate::run::end_block(header).clear();
    // SAFETY: standard output belongs to raddle; a failure means that it is no file, and then there is no output to tell.
    unsafe { real::own_syscall(libc::SYS_lseek, [1, 0, libc::SEEK_SET as usize, 0, 0, 0]) };
}

pub(super) fn wait(child: c_int) -> u32 {
    let mut status: c_int = 0;
    loop {
        // SAFETY: the status is valid for the call.
        let ended = unsafe {
            real::own_syscall(libc::SYS_wait4, [child as usize, &raw mut status as usize, 0, 0, 0, 0])
        };
        if ended != -(libc::EINTR as isize) {
            return status as u32;
        }
    }
}

/// Has this child ended? Asked once after it has.
pub(super) fn has_ended(child: c_int) -> bool {
    let arguments = [child as usize, 0, libc::WNOHANG as usize, 0, 0, 0];
    // SAFETY: no status is wanted.
    unsafe { real::own_syscall(libc::SYS_wait4, arguments) != 0 }
}

fn entry(header: &Header, run: u32) -> &'static RunEntry {
    let ring = core::ptr::from_ref(header) as usize + ring_offset(header.blob_bytes as usize);
    // SAFETY: the ring was mapped with the region.
    unsafe { &*((ring + run as usize % RUNS_MAX * RUN_BYTES) as *const RunEntry) }
}

/// The crash report of a run, beside its entry.
fn end_of(header: &Header, run: u32) -> &'static EndBlock {
    let ring = core::ptr::from_ref(header) as usize + ring_offset(header.blob_bytes as usize);
    // SAFETY: the ring was mapped with the region.
    unsafe { &*((ring + end_offset(run)) as *const EndBlock) }
}

pub(super) fn publish(header: &Header, run: u32, status: u32) {
    let entry = entry(header, run);
    entry.seed.store(crate::run::seed(header), Ordering::Relaxed);
    entry.steps.store(header.steps.load(Ordering::Relaxed), Ordering::Relaxed);
    entry.turns_hash.store(header.turns_hash.load(Ordering::Relaxed), Ordering::Relaxed);
    entry.threads.store(header.threads.load(Ordering::Relaxed), Ordering::Relaxed);
    entry.status.store(status, Ordering::Relaxed);
    entry.outcome.store(header.outcome.load(Ordering::Acquire), Ordering::Relaxed);
    let parties = (header.party_count.load(Ordering::Relaxed) as usize).min(PARTIES_MAX);
    entry.party_count.store(parties as u32, Ordering::Relaxed);
    for (to, from) in entry.parties[..parties].iter().zip(&header.parties) {
        to.copy_from(from);
    }
    end_of(header, run).copy_from(crate::run::end_block(header));
    entry.output_bytes.store(collect_output(&entry.output), Ordering::Relaxed);
    let server = &header.server;
    server.published.store(run.wrapping_add(1), Ordering::Release);
    let waiting = run.wrapping_add(1).wrapping_sub(server.consumed.load(Ordering::Relaxed)) as usize;
    let last = server.requested.load(Ordering::Relaxed) == run.wrapping_add(1);
    if last || waiting == RUNS_MAX / 2 || entry.output_bytes.load(Ordering::Relaxed) > RUN_OUTPUT_MAX as u64 {
        real::futex_wake(&server.published, 1);
    }
}

/// What the run that has just ended is compared by.
pub(super) fn digest(header: &Header, status: u32) -> [u64; Digest::WORDS] {
    const SIGNAL_OR_STATUS: u32 = 0xff7f;
    let outcome = header.outcome.load(Ordering::Acquire);
    let parties = (header.party_count.load(Ordering::Relaxed) as usize).min(PARTIES_MAX);
    let mut waits = 0;
    for party in &header.parties[..parties] {
        let words = [
            party.path.load(Ordering::Relaxed),
            party.pc.load(Ordering::Relaxed),
            u64::from(party.kind.load(Ordering::Relaxed)),
        ];
        // Threads stand in the order of a list, which is no part of the outcome.
        waits ^= words.iter().fold(FNV_START, |hash, &word| (hash ^ word).wrapping_mul(FNV_FACTOR));
    }
    [
        u64::from(status & SIGNAL_OR_STATUS) << 32 | u64::from(outcome),
        header.steps.load(Ordering::Relaxed),
        header.turns_hash.load(Ordering::Relaxed),
        u64::from(header.threads.load(Ordering::Relaxed)),
        waits,
        output_hash(),
    ]
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_FACTOR: u64 = 0x0100_0000_01b3;

/// Hash of what the run has printed.
fn output_hash() -> u64 {
    let mut hash = FNV_START;
    // SAFETY: asks for the offset of standard output.
    let printed = unsafe { real::own_syscall(libc::SYS_lseek, [1, 0, libc::SEEK_CUR as usize, 0, 0, 0]) }
        .max(0) as usize;
    let mut at = 0;
    let mut buffer = [0u8; 4096];
    while at < printed {
        let wanted = (printed - at).min(buffer.len());
        let arguments = [1, buffer.as_mut_ptr() as usize, wanted, at, 0, 0];
        // SAFETY: the buffer is valid for its length.
        let read = unsafe { real::own_syscall(libc::SYS_pread64, arguments) };
        if read <= 0 {
            break;
        }
        for &byte in &buffer[..read as usize] {
            hash = (hash ^ u64::from(byte)).wrapping_mul(FNV_FACTOR);
        }
        at += read as usize;
    }
    hash
}

fn collect_output(into: &[AtomicU8; RUN_OUTPUT_MAX]) -> u64 {
    // SAFETY: asks for the offset of standard output; the buffer is valid for its length.
    unsafe {
        let bytes = real::own_syscall(libc::SYS_lseek, [1, 0, libc::SEEK_CUR as usize, 0, 0, 0]);
        if bytes <= 0 {
            return 0;
        }
        let now = (bytes as usize).min(RUN_OUTPUT_MAX);
        real::own_syscall(libc::SYS_pread64, [1, into.as_ptr() as usize, now, 0, 0, 0]);
        bytes as u64
    }
}

/// A crash is a result like any other; hundreds of core files are not wanted.
fn no_core_files() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is valid for the call.
    unsafe {
        real::own_syscall(
            libc::SYS_prlimit64,
            [0, libc::RLIMIT_CORE as usize, &raw const none as usize, 0, 0, 0],
        );
    }
}

fn die_with_server() {
    // SAFETY: takes no pointers.
    unsafe {
        real::own_syscall(
            libc::SYS_prctl,
            [libc::PR_SET_PDEATHSIG as usize, libc::SIGKILL as usize, 0, 0, 0, 0],
        );
    }
}

/// Has the process one thread only? A library loaded before us may have started some.
fn alone() -> bool {
    let mut info = [0u8; 512];
    // SAFETY: the path is a C string, the buffer is valid for its length, the descriptor is closed again.
    let bytes = unsafe {
        let fd = real::own_syscall(
            libc::SYS_openat,
            [libc::AT_FDCWD as usize, c"/proc/self/stat".as_ptr() as usize, 0, 0, 0, 0],
        );
        if fd < 0 {
            return true;
        }
        let bytes =
            real::own_syscall(libc::SYS_read, [fd as usize, info.as_mut_ptr() as usize, info.len(), 0, 0, 0]);
        real::own_syscall(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]);
        bytes.max(0) as usize
    };
    let text = &info[..bytes];
    let after_name = text.iter().rposition(|&byte| byte == b')').map_or(0, |end| end + 2);
    // The state is field 3, the number of threads field 20.
    text[after_name..].split(|&byte| byte == b' ').nth(17).is_none_or(|count| count == b"1")
}
