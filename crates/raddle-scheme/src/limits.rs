//! How long an analysis may take, how much memory it may use, and how it is told to stop.
//!
//! Every loop whose length depends on the program asks a [`Clock`] once a round, and a round is no longer than the
//! program itself. So one deadline, one bound on memory and one interrupt hold for the reader, the expander, all phases of
//! the analysis and what is derived from their results.
//!
//! Memory is what the kernel says that the process has (resident set), looked up at most every few milliseconds: no
//! table of ours can be forgotten in the sum. A test needs neither time nor memory to run out: a clock with a fuse
//! ([`Clock::after_polls`]) ends after a number of questions, so that every place that asks can be made to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks at the memory of the process.
const MEMORY_LOOK: Duration = Duration::from_millis(5);

/// A deadline, a bound on memory and a flag that an interrupt handler may set. Cheap to ask.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Instant,
    deadline: Option<Instant>,
    budget: Option<Duration>,
    stop: Arc<AtomicBool>,
    memory: Option<Arc<Memory>>,
    /// Questions that are still answered with no.
    fuse: Option<Arc<AtomicU64>>,
}

#[derive(Debug)]
struct Memory {
    bytes_max: u64,
    /// Microseconds after `start` of the last look.
    looked: AtomicU64,
    over: AtomicBool,
}

impl Clock {
    pub fn unlimited() -> Clock {
        Clock::new(None, Arc::default())
    }

    pub fn new(budget: Option<Duration>, stop: Arc<AtomicBool>) -> Clock {
        let start = Instant::now();
        Clock { start, deadline: budget.map(|b| start + b), budget, stop, memory: None, fuse: None }
    }

    /// This clock, which also ends when the process holds more than `bytes_max` bytes.
    pub fn with_memory(mut self, bytes_max: u64) -> Clock {
        self.memory =
            Some(Arc::new(Memory { bytes_max, looked: AtomicU64::new(0), over: AtomicBool::new(false) }));
        self
    }

    /// A clock that ends when it has been asked `polls` times.
    pub fn after_polls(polls: u64) -> Clock {
        Clock { fuse: Some(Arc::new(AtomicU64::new(polls))), ..Clock::unlimited() }
    }

    /// A clock that also ends after `budget` from now. Memory that ran out before may be there again.
    pub fn at_most(&self, budget: Duration) -> Clock {
        let deadline = Instant::now() + budget;
        let deadline = self.deadline.map_or(deadline, |old| old.min(deadline));
        let budget = self.budget.or(Some(budget));
        let clock = Clock { deadline: Some(deadline), budget, ..self.clone() };
        match &self.memory {
            Some(memory) => clock.with_memory(memory.bytes_max),
            None => clock,
        }
    }

    pub fn is_over(&self) -> bool {
        if let Some(fuse) = &self.fuse
            && fuse.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
        {
            return true;
        }
        if self.stop.load(Ordering::Relaxed) {
            return true;
        }
        if self.deadline.is_none() && self.memory.is_none() {
            return false;
        }
        let now = Instant::now();
        self.deadline.is_some_and(|deadline| now >= deadline)
            || self.memory.as_ref().is_some_and(|memory| memory.is_over(now - self.start))
    }

    pub fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn reason(&self) -> String {
        if self.interrupted() {
            return "interrupted".to_owned();
        }
        if let Some(memory) = self.memory.as_ref().filter(|memory| memory.over.load(Ordering::Relaxed)) {
            return format!("the memory limit of {} MB was reached", memory.bytes_max >> 20);
        }
        match self.budget {
            Some(budget) => format!("the time limit of {} s was reached", budget.as_secs_f64()),
            None => "out of time".to_owned(),
        }
    }
}

impl Memory {
    fn is_over(&self, now: Duration) -> bool {
        let now = now.as_micros() as u64;
        if now.saturating_sub(self.looked.load(Ordering::Relaxed)) >= MEMORY_LOOK.as_micros() as u64 {
            self.looked.store(now, Ordering::Relaxed);
            if resident_bytes().is_some_and(|bytes| bytes > self.bytes_max) {
                self.over.store(true, Ordering::Relaxed);
            }
        }
        self.over.load(Ordering::Relaxed)
    }
}

/// Memory of this process that is in use, where the system tells.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fuse_burns_once_for_all_clones() {
        let clock = Clock::after_polls(3);
        let other = clock.at_most(Duration::from_secs(1_000_000));
        assert_eq!([clock.is_over(), other.is_over(), clock.is_over()], [false; 3]);
        assert_eq!([clock.is_over(), other.is_over()], [true; 2]);
    }

    #[test]
    fn memory_deadline_and_interrupt_say_which_of_them_it_was() {
        let start = Clock::unlimited().with_memory(1 << 20);
        let mut waited = 0;
        // The first look comes a few milliseconds after the start; how many questions that takes is no matter.
        while !start.is_over() {
            waited += 1;
            assert!(waited < 1_000_000_000);
        }
        assert_eq!(start.reason(), "the memory limit of 1 MB was reached");
        let expired = Clock::new(Some(Duration::ZERO), Arc::default());
        assert!(expired.is_over());
        assert_eq!(expired.reason(), "the time limit of 0 s was reached");
        let stopped = Clock::new(None, Arc::new(AtomicBool::new(true)));
        assert!(stopped.is_over());
        assert_eq!(stopped.reason(), "interrupted");
    }
}
