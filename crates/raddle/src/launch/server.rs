//! Many runs of one program from a fork server (`raddle_wire::server`): this side asks for runs and reads their results.

use super::steering::{self, Outcome, Steered};
use super::{Launch, Streams};
use crate::compiler::Refusal;
use anyhow::Context;
use raddle_report::pace::{Pace, Why};
use raddle_trace::journal::Journal;
use raddle_trace::region::{Region, RegionConfig};
use raddle_wire::server::{RUN_OUTPUT_MAX, RunEntry, kept_reason, kept_state, mode, server_state};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::futex;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long this side sleeps at a time: so fresh are progress, Ctrl-C and time limits.
const WAIT: Duration = Duration::from_millis(50);
/// A program whose runtime does not answer for so long has none, or another one.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// A server ends at once; one that does not is ended.
const QUIT_TIMEOUT: Duration = Duration::from_millis(500);
const QUIT_LOOK: Duration = Duration::from_micros(200);

/// How many runs of one program are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// As fast as the program allows: fibers if it can be run that way, otherwise fork.
    #[default]
    Auto,
    /// A forked child for each run.
    Fork,
    /// Threads as stacks in one kernel thread, memory put back after each run; what cannot be done that way is forked, run by run.
    Fibers,
    /// The program is started for each run.
    Exec,
}

/// What fork servers of a program are asked for, and what became of it: shared by all copies of a launch.
#[derive(Clone, Debug, Default)]
pub struct Serving {
    pub mode: Mode,
    pace: Arc<Mutex<Pace>>,
}

impl Serving {
    pub fn new(mode: Mode) -> Serving {
        Serving { mode, pace: Arc::default() }
    }

    /// How the runs so far were made.
    pub fn pace(&self) -> Pace {
        self.pace.lock().expect("no holder panics").clone()
    }
}

/// A program that waits before its first own code, and what it prints.
pub struct ForkServer {
    region: Region,
    child: Child,
    output: File,
    runs: u32,
    serving: Serving,
}

/// What one run showed.
pub struct ServedRun {
    pub steered: Steered,
    pub stdout: Vec<u8>,
}

impl ForkServer {
    /// Starts the server. `None`: the program cannot be served this way and has to be started for each run.
    pub fn start(launch: &Launch, config: &RegionConfig) -> anyhow::Result<Option<ForkServer>> {
        let server_mode = match launch.serving.mode {
            Mode::Auto => mode::AUTO,
            Mode::Fork => mode::FORK,
            Mode::Fibers => mode::FIBERS,
            Mode::Exec => return Ok(None),
        };
        let config = RegionConfig { server: true, server_mode, ..config.clone() };
        let region = Region::create(&config).map_err(|error| {
            Refusal(format!("cannot create the memory shared with the program ({error})"))
        })?;
        let output = File::from(rustix::fs::memfd_create("raddle-output", rustix::fs::MemfdFlags::CLOEXEC)?);
        let mut command = launch.command(&region, Streams::Silent)?;
        // Look-ups of functions are then done once, in the server, and not again in every run.
        command.env("LD_BIND_NOW", "1").stdout(output.try_clone()?).process_group(0);
        super::process::die_with_us(&mut command);
        let child = launch.spawn(&mut command)?;
        let mut server = ForkServer { region, child, output, runs: 0, serving: launch.serving.clone() };
        Ok(if server.serves()? { Some(server) } else { None })
    }

    fn serves(&mut self) -> anyhow::Result<bool> {
        let started = Instant::now();
        loop {
            match self.region.header().server.state.load(Ordering::Acquire) {
                server_state::SERVING => return Ok(true),
                server_state::REFUSED => return Ok(false),
                _ => {}
            }
            if self.child.try_wait()?.is_some() || started.elapsed() > START_TIMEOUT {
                return Ok(false);
            }
            wait(&self.region.header().server.published, 0, Duration::from_millis(1));
        }
    }

    /// Replaces the region's blob for the runs that follow. False: it does not fit.
    pub fn rewrite_blob(&self, bytes: &[u8]) -> bool {
        self.region.rewrite_blob(bytes)
    }

    /// What the program shares with this process. Reports of its runs are added up there.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The journal of the last run as it was written.
    pub fn journal_bytes(&self) -> Vec<u8> {
        self.region.journal()
    }

    /// Turns of the last run, if the configuration asks for a journal.
    pub fn journal(&self) -> Journal {
        Journal::read(&self.region.journal())
    }

    /// Runs the program `count` times, the first time with `seed` and each time after that with one that is `stride`
    /// larger, and hands every result to `each`, in order. A server that was stopped early serves no further runs.
    pub fn run(
        &mut self,
        (seed, stride): (u64, u64),
        count: u32,
        timeout: Duration,
        stop: &AtomicBool,
        mut each: impl FnMut(ServedRun),
    ) -> anyhow::Result<()> {
        let first = self.runs;
        let end = first.wrapping_add(count);
        let region = &self.region;
        let server = &region.header().server;
        let before = stride.wrapping_mul(u64::from(first));
        server.seed.store(seed.wrapping_sub(before), Ordering::Relaxed);
        server.stride.store(stride, Ordering::Relaxed);
        server.requested.store(end, Ordering::Release);
        let _ = futex::wake(&server.requested, futex::Flags::empty(), 1);
        let mut moved = Instant::now();
        while self.runs != end && !stop.load(Ordering::Relaxed) {
            let published = server.published.load(Ordering::Acquire);
            if published == self.runs {
                wait(&server.published, published, WAIT);
                if server.published.load(Ordering::Acquire) != published {
                    continue;
                }
                if let Some(status) = self.child.try_wait()? {
                    anyhow::bail!("the fork server of the program {}", super::process::describe(status));
                }
                if moved.elapsed() > timeout + steering::REPORT_TIMEOUT {
                    end_run(region, self.runs);
                    moved = Instant::now();
                } else if moved.elapsed() > timeout {
                    server.ended.store(self.runs.wrapping_add(1), Ordering::Release);
                    region.header().report.store(1, Ordering::Release);
                }
                continue;
            }
            while self.runs != published {
                each(self.result(self.runs)?);
                self.runs = self.runs.wrapping_add(1);
                region.header().server.consumed.store(self.runs, Ordering::Release);
            }
            let _ = futex::wake(&server.consumed, futex::Flags::empty(), 1);
            moved = Instant::now();
        }
        Ok(())
    }

    fn result(&self, run: u32) -> anyhow::Result<ServedRun> {
        let entry = self.region.run_entry(run);
        let late = self.region.header().server.ended.load(Ordering::Acquire) == run.wrapping_add(1);
        let status = ExitStatus::from_raw(entry.status.load(Ordering::Relaxed) as i32);
        let count = entry.party_count.load(Ordering::Relaxed) as usize;
        let parties = &entry.parties[..count.min(entry.parties.len())];
        let found = entry.outcome.load(Ordering::Relaxed);
        let outcome = match steering::outcome_of(&self.region, Some(status), found, parties) {
            Outcome::Stuck(parties) if late => Outcome::TimedOut(parties),
            Outcome::Ended(status) if late && status.signal() == Some(Signal::KILL.as_raw()) => {
                Outcome::TimedOut(Vec::new())
            }
            outcome => outcome,
        };
        let end = self.region.end_of_run(run).ok().flatten();
        let steered = Steered {
            crash_place: steering::crash_place(&self.region, end.as_ref()),
            modules: steering::modules_of_crash(&self.region, end.as_ref()),
            end,
            outcome,
            steps: entry.steps.load(Ordering::Relaxed),
            turns_hash: entry.turns_hash.load(Ordering::Relaxed),
        };
        Ok(ServedRun { steered, stdout: self.output(entry)? })
    }

    fn output(&self, entry: &RunEntry) -> anyhow::Result<Vec<u8>> {
        let bytes = entry.output_bytes.load(Ordering::Relaxed).min(steering::OUTPUT_BYTES_MAX) as usize;
        if bytes <= RUN_OUTPUT_MAX {
            return Ok(entry.output[..bytes].iter().map(|cell| cell.load(Ordering::Relaxed)).collect());
        }
        let mut all = vec![0; bytes];
        self.output.read_exact_at(&mut all, 0).context("cannot read what the program printed")?;
        Ok(all)
    }
}

impl ForkServer {
    /// How its runs were made.
    fn pace(&self) -> Pace {
        let server = &self.region.header().server;
        let detail = server.kept_detail.load(Ordering::Relaxed);
        let why = match server.kept_reason.load(Ordering::Relaxed) {
            kept_reason::NOT_WANTED => Why::NotWanted,
            kept_reason::STRATEGY => Why::Strategy,
            kept_reason::OPTIONS => Why::Options,
            kept_reason::SYSTEM => Why::System,
            kept_reason::CALL => Why::Call(match syscalls::Sysno::new(detail as usize) {
                Some(call) => call.name().to_owned(),
                None => detail.to_string(),
            }),
            kept_reason::THREADS => Why::Threads,
            kept_reason::ATTRIBUTES => Why::Attributes,
            kept_reason::NOBODY => Why::Nobody,
            kept_reason::GONE => Why::Gone,
            kept_reason::DISAGREED => Why::Disagreed(detail),
            kept_reason::MEMORY => Why::Memory(detail),
            _ => Why::Unknown,
        };
        Pace {
            servers: 1,
            given_up: u32::from(server.kept_state.load(Ordering::Acquire) == kept_state::OFF),
            runs: u64::from(self.runs),
            kept: server.kept_runs.load(Ordering::Relaxed),
            repeated: u64::from(server.repeated.load(Ordering::Relaxed)),
            why,
        }
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        self.serving.pace.lock().expect("no holder panics").add(self.pace());
        let server = &self.region.header().server;
        server.quit.store(1, Ordering::Release);
        end_run(&self.region, self.runs);
        let _ = futex::wake(&server.requested, futex::Flags::empty(), 1);
        let _ = futex::wake(&server.consumed, futex::Flags::empty(), 1);
        // It has heard, and takes leave of its own children; whatever happens, nothing of it remains.
        let asked = Instant::now();
        while asked.elapsed() < QUIT_TIMEOUT && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(QUIT_LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends the run that is going on.
fn end_run(region: &Region, run: u32) {
    let server = &region.header().server;
    server.ended.store(run.wrapping_add(1), Ordering::Release);
    if let Some(pid) = Pid::from_raw(server.child.load(Ordering::Acquire) as i32) {
        // It may have ended by itself in this moment.
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn wait(word: &AtomicU32, value: u32, longest: Duration) {
    let timeout =
        futex::Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) };
    // Any reason to wake up is good: the caller looks again.
    let _ = futex::wait(word, futex::Flags::empty(), value, Some(&timeout));
}
