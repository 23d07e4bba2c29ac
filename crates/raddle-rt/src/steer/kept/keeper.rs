//! The server's side: starts workers, compares their first runs with those of forked children, and decides how far they are trusted.

use super::super::server;
use super::{Digest, Shared, command, prepare, verdict, worker};
use crate::real;
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use raddle_wire::Header;
use raddle_wire::server::{kept_reason, kept_state, mode};

/// So many runs are compared before a worker makes them alone.
const COMPARED_RUNS: u32 = 20;
/// So many repeated runs are taken in any case.
const REPEATED_MIN: u32 = 3;
/// Beyond that, one of so many runs may be repeated: more, and forks alone are faster.
const RUNS_FOR_A_REPEATED: u64 = 32;
/// Threads of a worker besides those that the program was seen to make.
const SPARE_THREADS: usize = 2;

pub struct Keeper {
    header: &'static Header,
    /// Until trust is lost.
    shared: Option<&'static Shared>,
    /// The process that waits for runs to compare.
    worker: Option<c_int>,
    agreed: u32,
    repeated: u32,
    threads: usize,
}

/// What has become of the runs that a worker was to make.
pub struct GoneOn {
    /// The next run.
    pub run: u32,
    /// It is to be made by a fork.
    pub repeats: bool,
}

impl Keeper {
    pub fn new(header: &'static Header) -> Keeper {
        let prepared = prepare(header);
        let state = if prepared.is_ok() { kept_state::COMPARED } else { kept_state::OFF };
        header.server.kept_reason.store(prepared.err().unwrap_or(kept_reason::NONE), Ordering::Relaxed);
        header.server.kept_state.store(state, Ordering::Release);
        Keeper { header, shared: prepared.ok(), worker: None, agreed: 0, repeated: 0, threads: 1 }
    }

    pub fn is_trusted(&self) -> bool {
        self.shared.is_some() && self.agreed >= COMPARED_RUNS
    }

    pub fn compares(&self) -> bool {
        self.shared.is_some() && self.agreed < COMPARED_RUNS
    }

    /// No workers from here on.
    fn give_up(&mut self, reason: u32, detail: u64) {
        self.shared = None;
        let server = &self.header.server;
        server.kept_reason.store(reason, Ordering::Relaxed);
        server.kept_detail.store(detail, Ordering::Relaxed);
        server.kept_state.store(kept_state::OFF, Ordering::Release);
        self.dismiss();
    }

    fn dismiss(&mut self) {
        if let Some(process) = self.worker.take() {
            // SAFETY: our own child, which has not been waited for.
            unsafe {
                real::own_syscall(libc::SYS_kill, [process as usize, libc::SIGKILL as usize, 0, 0, 0, 0])
            };
            server::wait(process);
        }
    }

    /// Starts a worker. `None`: this is it.
    fn start(&mut self, shared: &Shared, run: u32, modules: u32) -> Option<c_int> {
        if let Some(process) = self.worker {
            return Some(process);
        }
        shared.verdict.store(verdict::NONE, Ordering::Relaxed);
        // SAFETY: the process has one thread, and the child goes on as the program would.
        let child = unsafe { server::fork() };
        match child {
            0 => {
                server::become_child(self.header);
                worker::begin(self.threads, run, modules);
                None
            }
            child if child < 0 => server::cannot_fork(),
            child => {
                self.worker = Some(child);
                Some(child)
            }
        }
    }

    /// A worker is gone: why, and what does that say about the next one?
    fn gone(&mut self, shared: &Shared) {
        self.worker = None;
        let (reason, detail) = match shared.verdict.load(Ordering::Acquire) {
            verdict::RETIRED => return,
            verdict::BROKEN => {
                return self.give_up(kept_reason::MEMORY, shared.detail.load(Ordering::Relaxed));
            }
            verdict::REPEAT => (shared.reason.load(Ordering::Relaxed), shared.detail.load(Ordering::Relaxed)),
            _ => (kept_reason::GONE, 0),
        };
        let server = &self.header.server;
        self.repeated += 1;
        server.repeated.store(self.repeated, Ordering::Relaxed);
        if reason == kept_reason::THREADS {
            self.threads = detail as usize * 2;
        }
        server.kept_reason.store(reason, Ordering::Relaxed);
        server.kept_detail.store(detail, Ordering::Relaxed);
        let made = u64::from(self.agreed) + server.kept_runs.load(Ordering::Relaxed);
        let patient = server.mode == mode::FIBERS;
        if !patient && self.repeated > REPEATED_MIN && u64::from(self.repeated) * RUNS_FOR_A_REPEATED > made {
            self.give_up(reason, detail);
        }
    }

    /// The run has been made by a fork; makes it once more. Do they agree? `None`: this is the worker.
    pub fn compare(&mut self, forked: [u64; Digest::WORDS], run: u32, modules: u32) -> Option<bool> {
        let Some(shared) = self.shared else { return Some(true) };
        let threads = self.header.threads.load(Ordering::Relaxed) as usize + SPARE_THREADS;
        if threads > self.threads {
            self.threads = threads;
            self.dismiss();
        }
        let asked = shared.asked.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        shared.command.store(command::COMPARE, Ordering::Release);
        let worker = self.start(shared, run, modules)?;
        real::futex_wake(&shared.asked, 1);
        self.header.server.child.store(worker as u32, Ordering::Release);
        let told = loop {
            let done = shared.done.load(Ordering::Acquire);
            if done == asked {
                break true;
            }
            if server::has_ended(worker) {
                break false;
            }
            real::futex_wait(&shared.done, done, Some(COMPARE_WAIT_US));
        };
        self.header.server.child.store(0, Ordering::Release);
        if !told {
            self.gone(shared);
            return Some(false);
        }
        if shared.digest.get() != forked {
            self.give_up(kept_reason::DISAGREED, crate::run::seed(self.header));
            return Some(false);
        }
        self.agreed += 1;
        if self.agreed == COMPARED_RUNS {
            self.header.server.kept_state.store(kept_state::ON, Ordering::Release);
        }
        Some(true)
    }

    /// Lets a worker make the runs from this one on. `None`: this is the worker.
    pub fn serve(&mut self, run: u32, modules: u32) -> Option<GoneOn> {
        let Some(shared) = self.shared else { return Some(GoneOn { run, repeats: true }) };
        shared.command.store(command::SERVE, Ordering::Release);
        let worker = self.start(shared, run, modules)?;
        self.header.server.child.store(worker as u32, Ordering::Release);
        shared.asked.fetch_add(1, Ordering::AcqRel);
        real::futex_wake(&shared.asked, 1);
        server::wait(worker);
        self.header.server.child.store(0, Ordering::Release);
        let retired = shared.verdict.load(Ordering::Acquire) == verdict::RETIRED;
        self.gone(shared);
        Some(GoneOn { run: self.header.server.published.load(Ordering::Acquire), repeats: !retired })
    }
}

/// A worker that dies wakes nobody, so the server looks.
const COMPARE_WAIT_US: u64 = 2_000;
