//! How long a steered run has taken, without the time for which a busy machine kept it waiting for a processor.
//!
//! A limit on a run is there to end programs that do not get anywhere. By the clock on the wall a program on a loaded machine gets nowhere
//! either, and would be called slow for what others do. The kernel counts for each thread how long it was ready to run and did not
//! (`/proc/PID/task/TID/schedstat`); in a steered run one thread runs at a time, so the sum over the threads is the time that the run was
//! kept waiting. Threads that spin unseen keep each other waiting; so a run that has had the processor for as long as its limit is over,
//! whatever its threads waited for. The kernel is asked only when the wall's time is up.

use std::time::{Duration, Instant};

/// However long a run was kept waiting, after so many times its limit it is over: no machine may make a limit endless.
const STRETCH_MAX: u32 = 4;
/// How often the kernel is asked once the wall's time is up.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// The patience with one run.
pub struct Patience {
    began: Instant,
    limit: Duration,
    /// How long it had run and was kept waiting when the kernel was last asked, and when that was.
    ran: Duration,
    starved: Duration,
    asked: Option<Instant>,
}

impl Patience {
    pub fn new(limit: Duration) -> Patience {
        Patience { began: Instant::now(), limit, ran: Duration::ZERO, starved: Duration::ZERO, asked: None }
    }

    /// Has the process used up its time, and `more` besides?
    pub fn is_over(&mut self, pid: u32, more: Duration) -> bool {
        let elapsed = self.began.elapsed();
        let limit = self.limit + more;
        if elapsed > limit * STRETCH_MAX {
            return true;
        }
        if elapsed <= limit {
            return false;
        }
        if self.asked.is_none_or(|asked| asked.elapsed() > ASK_EVERY) {
            self.asked = Some(Instant::now());
            let used = used(pid);
            self.ran = self.ran.max(used.ran);
            // Threads that ended take their count with them; time once granted is not taken back.
            self.starved = self.starved.max(used.starved);
        }
        elapsed > limit + self.starved || self.ran > limit
    }
}

/// What the threads of a process had of the processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    ran: Duration,
    /// Ready, and without a processor.
    starved: Duration,
}

/// Nothing where the kernel does not count it.
fn used(pid: u32) -> Used {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Used::default() };
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok())
        .map(|line| used_by(&line))
        .fold(Used::default(), |sum, used| Used {
            ran: sum.ran + used.ran,
            starved: sum.starved + used.starved,
        })
}

/// The first two numbers of a line of `schedstat`: nanoseconds on a processor, nanoseconds ready without one.
fn used_by(line: &str) -> Used {
    let mut words = line.split_whitespace().map(|word| Duration::from_nanos(word.parse().unwrap_or(0)));
    let mut next = || words.next().unwrap_or_default();
    Used { ran: next(), starved: next() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_two_numbers_count() {
        for (line, ran, starved) in [
            ("17 22237496 1\n", 17, 22_237_496),
            ("0 0 0", 0, 0),
            ("5", 5, 0),
            ("", 0, 0),
            ("1 x 2", 1, 0),
            ("-3 1 2", 0, 1),
        ] {
            let expected = Used { ran: Duration::from_nanos(ran), starved: Duration::from_nanos(starved) };
            assert_eq!(used_by(line), expected, "{line:?}");
        }
    }

    #[test]
    fn time_without_a_processor_is_not_counted() {
        let limit = Duration::from_secs(10);
        let began =
            |ago| Instant::now().checked_sub(Duration::from_secs(ago)).expect("the machine is up for longer");
        let after = |ago, starved, ran| Patience {
            began: began(ago),
            limit,
            ran: Duration::from_secs(ran),
            starved: Duration::from_secs(starved),
            // Nobody is asked: there is no such process here.
            asked: Some(Instant::now()),
        };
        let patience = |ago, starved| after(ago, starved, 0);
        assert!(!patience(9, 0).is_over(0, Duration::ZERO));
        assert!(patience(11, 0).is_over(0, Duration::ZERO));
        assert!(!patience(11, 0).is_over(0, Duration::from_secs(2)));
        assert!(!patience(25, 20).is_over(0, Duration::ZERO));
        assert!(patience(35, 20).is_over(0, Duration::ZERO));
        assert!(after(25, 20, 11).is_over(0, Duration::ZERO), "its threads kept each other waiting");
        assert!(patience(41, 1_000).is_over(0, Duration::ZERO), "an end, whatever was waited for");
    }
}
