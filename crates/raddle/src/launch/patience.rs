//! How long a steered run has taken, without the time for which a busy machine kept it waiting for a processor.
//!
//! A limit on a run is there to end programs that do not get anywhere. By the clock on the wall a program on a loaded machine gets nowhere
//! either, and would be called slow for what others do. The kernel counts for each thread how long it was ready to run and did not
//! (`/proc/PID/task/TID/schedstat`); in a steered run one thread runs at a time, so the sum over the threads is the time that the run was
//! kept waiting. It is looked at only when the wall's time is up.

use std::time::{Duration, Instant};

/// However long a run was kept waiting, after so many times its limit it is over: no machine may make a limit endless.
const STRETCH_MAX: u32 = 10;
/// How often the kernel is asked once the wall's time is up.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// The patience with one run.
pub struct Patience {
    began: Instant,
    limit: Duration,
    /// What the run was kept waiting for when the kernel was last asked, and when that was.
    starved: Duration,
    asked: Option<Instant>,
}

impl Patience {
    pub fn new(limit: Duration) -> Patience {
        Patience { began: Instant::now(), limit, starved: Duration::ZERO, asked: None }
    }

    /// Has the process used up its time, and `more` besides?
    pub fn is_over(&mut self, pid: u32, more: Duration) -> bool {
        let elapsed = self.began.elapsed();
        let limit = self.limit + more;
        if elapsed > limit * STRETCH_MAX {
            return true;
        }
        if elapsed <= limit + self.starved {
            return false;
        }
        if self.asked.is_none_or(|asked| asked.elapsed() > ASK_EVERY) {
            self.asked = Some(Instant::now());
            // Threads that ended take their count with them; time once granted is not taken back.
            self.starved = self.starved.max(starved(pid));
        }
        elapsed > limit + self.starved
    }
}

/// How long the threads of a process were ready and had no processor. Nothing where the kernel does not count it.
fn starved(pid: u32) -> Duration {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Duration::ZERO };
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok())
        .map(|line| delay(&line))
        .sum()
}

/// The second number of a line of `schedstat`: nanoseconds spent ready, without a processor.
fn delay(line: &str) -> Duration {
    let nanoseconds = line.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_delay() {
        for (line, expected) in
            [("17 22237496 1\n", 22_237_496), ("0 0 0", 0), ("5", 0), ("", 0), ("1 x 2", 0), ("1 -3 2", 0)]
        {
            assert_eq!(delay(line), Duration::from_nanos(expected), "{line:?}");
        }
    }

    #[test]
    fn time_without_a_processor_is_not_counted() {
        let limit = Duration::from_secs(10);
        let began =
            |ago| Instant::now().checked_sub(Duration::from_secs(ago)).expect("the machine is up for longer");
        let patience = |ago, starved| Patience {
            began: began(ago),
            limit,
            starved: Duration::from_secs(starved),
            // Nobody is asked: there is no such process here.
            asked: Some(Instant::now()),
        };
        assert!(!patience(9, 0).is_over(0, Duration::ZERO));
        assert!(patience(11, 0).is_over(0, Duration::ZERO));
        assert!(!patience(11, 0).is_over(0, Duration::from_secs(2)));
        assert!(!patience(25, 20).is_over(0, Duration::ZERO));
        assert!(patience(35, 20).is_over(0, Duration::ZERO));
        assert!(patience(101, 1_000).is_over(0, Duration::ZERO), "an end, whatever was waited for");
    }
}
