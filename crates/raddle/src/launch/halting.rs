//! Ending a process that does not end by itself.
//!
//! A process is *stuck* when each of its threads waits for a futex word without a time limit, in memory that no other
//! process shares, and no signal handler of its own could help: then no thread can ever go on. Locks, conditions,
//! semaphores, barriers and joins all wait in this way, so a deadlock is noticed as soon as it is there, without knowing what
//! the threads wait for. The kernel tells it (`/proc/PID/task/TID/syscall`); a process that waits for input, for
//! time, for a child or for another process is never taken for stuck.
//!
//! A process that is stuck, or whose time is up, gets SIGABRT: its runtime then writes down where each thread stands
//! (`raddle-rt/src/crash`). One that does not die of it is killed.

use raddle_trace::region::Region;
use rustix::process::{Pid, Signal, kill_process};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Why a run was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// No thread could ever go on.
    Stuck,
    /// It took longer than `--run-timeout` allows.
    TimedOut,
}

impl Halt {
    /// What became of the process, as the end of a sentence.
    pub fn describe(self) -> &'static str {
        match self {
            Halt::Stuck => "was ended because none of its threads could go on",
            Halt::TimedOut => "was ended because its time was up (--run-timeout)",
        }
    }
}

/// How often a process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// So many looks in a row must find every thread where it was: two could fall between a wake-up and its effect.
const LOOKS: u32 = 3;
/// How long it has to write down where its threads stand.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Watches one process.
pub struct Warden {
    began: Instant,
    timeout: Option<Duration>,
    looked: Instant,
    /// How often all threads were found waiting since one of them last ran, and how often they had been switched by then.
    looks: u32,
    switches: u64,
    halted: Option<(Halt, Instant)>,
}

impl Warden {
    pub fn new(timeout: Option<Duration>) -> Warden {
        let now = Instant::now();
        Warden { began: now, timeout, looked: now, looks: 0, switches: 0, halted: None }
    }

    /// Looks at the process of a region, if it is time to, and ends it if it has to be.
    pub fn look(&mut self, region: &Region) {
        let Some(pid) =
            i32::try_from(region.header().claimed_pid.load(Ordering::Acquire)).ok().and_then(Pid::from_raw)
        else {
            return;
        };
        match self.halted {
            Some((_, since)) if since.elapsed() > LAST_WORDS => {
                let _ = kill_process(pid, Signal::KILL);
            }
            Some(_) => {}
            None => {
                let late = self.timeout.is_some_and(|timeout| self.began.elapsed() > timeout);
                let halt = match late {
                    true => Some(Halt::TimedOut),
                    false => self.is_stuck(pid, region).then_some(Halt::Stuck),
                };
                if let Some(halt) = halt {
                    self.halted = Some((halt, Instant::now()));
                    let _ = kill_process(pid, Signal::ABORT);
                }
            }
        }
    }

    /// Why the process was ended, if it was.
    pub fn halted(&self) -> Option<Halt> {
        self.halted.map(|(halt, _)| halt)
    }

    fn is_stuck(&mut self, pid: Pid, region: &Region) -> bool {
        if self.looked.elapsed() < LOOK_EVERY {
            return false;
        }
        self.looked = Instant::now();
        // Threads that wait for the collector are no concern of the program's.
        let collecting = region.header().pending.load(Ordering::Acquire) > 0;
        let switches = if collecting { None } else { switches_if_waiting(pid) };
        self.looks = match switches {
            Some(switches) if switches == self.switches => self.looks + 1,
            Some(_) => 1,
            None => 0,
        };
        self.switches = switches.unwrap_or(0);
        self.looks >= LOOKS && !can_be_helped(pid)
    }
}

/// How often the threads of a process were switched, if all of them wait for futex words without a time limit.
fn switches_if_waiting(pid: Pid) -> Option<u64> {
    let folder = format!("/proc/{}/task", pid.as_raw_nonzero());
    let mut switches = 0;
    for task in std::fs::read_dir(folder).ok()? {
        let task = task.ok()?.path();
        if !waits_for_ever(&std::fs::read_to_string(task.join("syscall")).ok()?) {
            return None;
        }
        let status = std::fs::read_to_string(task.join("status")).ok()?;
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        switches +=
            counts.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum::<u64>();
    }
    Some(switches)
}

/// Operations of the futex call that wait: `FUTEX_WAIT`, `FUTEX_LOCK_PI`, `FUTEX_WAIT_BITSET`, `FUTEX_LOCK_PI2`.
const WAITING: [u64; 4] = [0, 6, 9, 13];
/// Bits of the operation that say how, not what.
const OPERATION_MASK: u64 = 0x7f;

/// Is this the state of a thread that waits for a futex word without a time limit? A line of `/proc/PID/task/TID/syscall` has the number
/// of the call and its six arguments.
fn waits_for_ever(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let number = words.next().and_then(|word| word.parse::<i64>().ok());
    let hexadecimal = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let arguments: Option<Vec<u64>> = words.take(6).map(hexadecimal).collect();
    match (number, arguments.as_deref()) {
        (Some(libc::SYS_futex), Some([_, operation, _, timeout, ..])) => {
            WAITING.contains(&(operation & OPERATION_MASK)) && *timeout == 0
        }
        _ => false,
    }
}

/// Signals that glibc keeps for itself, and those that the runtime catches to report crashes.
const OWN_SIGNALS: [i32; 9] = [
    32,
    33,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
];

/// Could something from outside wake a thread: a handler for a signal, a timer, another process through shared memory?
fn can_be_helped(pid: Pid) -> bool {
    let pid = pid.as_raw_nonzero();
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}"));
    let Ok(status) = read("status") else { return true };
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let Some(caught) = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()) else { return true };
    let own = OWN_SIGNALS.iter().fold(0, |mask, signal| mask | 1_u64 << (signal - 1));
    let has_timers = read("timers").is_ok_and(|timers| !timers.trim().is_empty());
    caught & !own != 0 || has_timers || waits_in_shared_memory(pid.get())
}

/// Does a thread wait for a word in memory that other processes may have as well?
fn waits_in_shared_memory(pid: i32) -> bool {
    let Ok(maps) = std::fs::read_to_string(format!("/proc/{pid}/maps")) else { return true };
    let shared: Vec<(u64, u64)> = maps
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            words.next()?.ends_with('s').then_some((number(start)?, number(end)?))
        })
        .collect();
    let word_of = |path: std::path::PathBuf| {
        let line = std::fs::read_to_string(path.join("syscall")).ok()?;
        u64::from_str_radix(line.split_whitespace().nth(1)?.strip_prefix("0x")?, 16).ok()
    };
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    let mut words = tasks.flatten().map(|task| word_of(task.path()));
    words.any(|word| word.is_none_or(|word| shared.iter().any(|&(start, end)| (start..end).contains(&word))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_futex_waits_without_a_limit_are_for_ever() {
        for (line, expected) in [
            ("202 0x55d0 0x80 0x2 0x0 0x0 0xffffffff 0x7ffe 0x7f01", true),
            ("202 0x55d0 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe 0x7f01", true),
            ("202 0x55d0 0x109 0x1234 0x0 0x0 0xffffffff 0x7ffe 0x7f01", true),
            ("202 0x55d0 0x189 0x0 0x7ffe10 0x0 0xffffffff 0x7ffe 0x7f01", false),
            ("202 0x55d0 0x81 0x1 0x0 0x0 0x0 0x7ffe 0x7f01", false),
            ("0 0x0 0x7ffe 0x400 0x0 0x0 0x0 0x7ffe 0x7f01", false),
            ("61 0xffffffff 0x7ffe 0x0 0x0 0x0 0x0 0x7ffe 0x7f01", false),
            ("-1 0x7ffe 0x7f01", false),
            ("running", false),
            ("", false),
            ("202", false),
        ] {
            assert_eq!(waits_for_ever(line), expected, "{line}");
        }
    }
}
