//! `delay`: delay-bounded scheduling.
//!
//! Emmi, Qadeer and Rakamarić, *Delay-Bounded Scheduling* (POPL 2011). The base schedule is deterministic and does not
//! preempt: the same thread goes on while it can, otherwise the next one in order of creation. At up to d choices of the run the
//! thread that would go is delayed: the next one goes instead; several delays at one choice pass over as many threads.
//!
//! The paper enumerates where the delays are. So does this: with at most d delays and k choices in a run there are
//! C(k + d, d) ways to place them, and a seed is the number of one. Seeds that follow each other are spread over all of them
//! (a step of about the golden section, made coprime to their number), and no two below that number are the same.
//!
//! Deviations: k (parameter 1) is what a run before had, so a delay may lie beyond the end of a run, or pass over more threads than there
//! are; the run is then one that another seed has as well, and whoever counts schedules leaves it out. Where the ways are more
//! than 64 bits can number, the points are drawn. Parameter 0 is d.

use super::Strategy;
use super::pct::{DEPTH_MAX, STEPS_DEFAULT};
use crate::roster::ThreadIx;
use crate::view::{Tools, View};

pub struct Delay {
    /// At which choice each delay is; 0: at none.
    at: [u64; DEPTH_MAX],
    wanted: usize,
    steps: u64,
}

/// Ways to choose `k` of `n`; none: more than can be numbered.
fn choose(n: u64, k: u64) -> Option<u64> {
    let mut ways: u128 = 1;
    for i in 1..=k {
        // Exact at each step: a product of i numbers in a row is divisible by i!.
        ways = ways.checked_mul(u128::from(n.checked_sub(k)?.checked_add(i)?))? / u128::from(i);
        if ways > u128::from(u64::MAX) {
            return None;
        }
    }
    Some(ways as u64)
}

/// How many schedules there are with so many delays in so many choices, if they can be numbered.
pub fn schedules(delays: u64, steps: u64) -> Option<u64> {
    let delays = delays.min(DEPTH_MAX as u64 - 1);
    choose(steps.max(1).checked_add(delays)?, delays)
}

/// A number below `count` for each seed, another one for each of `count` seeds in a row.
fn spread(seed: u64, count: u64) -> u64 {
    let common = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    // 0.618 of the way; the next coprime number is near, and 1 always is one.
    let golden = ((u128::from(count) * 0x9e37_79b9_7f4a_7c15) >> 64) as u64;
    let step =
        (golden.max(1)..=golden.saturating_add(64)).find(|&step| common(step, count) == 1).unwrap_or(1);
    (u128::from(seed % count) * u128::from(step) % u128::from(count)) as u64
}

impl Delay {
    pub fn new(delays: u64, steps: u64) -> Delay {
        let steps = if steps == 0 { STEPS_DEFAULT } else { steps };
        Delay { at: [0; DEPTH_MAX], wanted: delays.min(DEPTH_MAX as u64 - 1) as usize, steps }
    }

    /// The way with this number: `wanted` places, each 0 to `steps`, in ascending order. Places that may be the same are
    /// places that differ, moved apart by one each; those are told from the largest down.
    fn place(&mut self, mut number: u64) {
        for k in (1..=self.wanted as u64).rev() {
            let (mut low, mut high) = (k - 1, self.steps + k - 1);
            while low < high {
                let middle = high - (high - low) / 2;
                match choose(middle, k) {
                    Some(ways) if ways <= number => low = middle,
                    _ => high = middle - 1,
                }
            }
            number -= choose(low, k).unwrap_or(0);
            self.at[k as usize - 1] = low - (k - 1);
        }
    }
}

impl Strategy for Delay {
    fn prepare(&mut self, tools: &mut Tools<'_>) {
        match schedules(self.wanted as u64, self.steps) {
            Some(count) => self.place(spread(tools.random.seed(), count)),
            None => {
                for point in &mut self.at[..self.wanted] {
                    *point = 1 + tools.random.draw() % self.steps;
                }
            }
        }
    }

    fn pick(&mut self, view: &View<'_, '_>, _tools: &mut Tools<'_>) -> ThreadIx {
        let last = view.progress.last;
        let delays = self.at.iter().filter(|&&at| at != 0 && at == view.progress.choices).count();
        let goes_on = view.candidates().any(|ix| ix == last);
        let mut chosen = if goes_on { last } else { view.next_after(last) };
        for _ in 0..delays {
            chosen = view.next_after(chosen);
        }
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_has_a_number() {
        for (delays, steps) in [(0, 5), (1, 7), (2, 6), (3, 5)] {
            let count = schedules(delays, steps).unwrap();
            let mut seen: [[u64; DEPTH_MAX]; 200] = [[u64::MAX; DEPTH_MAX]; 200];
            for seed in 100..100 + count {
                let mut delay = Delay::new(delays, steps);
                delay.place(spread(seed, count));
                assert!(delay.at.iter().all(|&at| at <= steps), "{:?}", delay.at);
                assert!(delay.at[..delays as usize].is_sorted(), "{:?}", delay.at);
                assert!(!seen.contains(&delay.at), "{:?} twice", delay.at);
                seen[(seed - 100) as usize] = delay.at;
            }
        }
        assert_eq!((schedules(2, 6), schedules(1, 7)), (Some(28), Some(8)));
        assert_eq!(schedules(15, 1_000_000), None);
    }
}
