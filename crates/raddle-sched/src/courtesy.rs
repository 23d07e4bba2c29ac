//! Does a thread that yields let somebody else go first?
//!
//! Nothing says that it must: after `sched_yield` or a sleep of any length a free run may go on with the same thread, and there
//! are errors that need just that. So giving way is a matter of chance, and fair all the same: a thread that insists does so
//! less and less often, and one that waits in a loop for the others lets them go sooner or later with certainty. In every second run
//! threads are *polite* and give way three times out of four; in the others they are *rude* and do so once in eight. After
//! [`PATIENCE`] refusals without anybody else's turn they give way fifteen times out of sixteen, but are never forced to.
//!
//! The same holds for a thread that takes many turns in a row, which may be a loop that waits as well: beyond the number that is
//! taken for honest work it gives way once in [`LONG_RUN_TURNS`] turns.
//!
//! Musuvathi and Qadeer, *Fair Stateless Model Checking* (PLDI 2008), lower the priority of a thread that yields until the
//! others have had a turn. That is fair, and leaves out the runs in which nobody came in between. Deviation: here priorities are
//! lowered by chance. The numbers come from a source of their own, so that programs which never yield have the same runs.

use crate::random::Random;

/// Refusals in a row after which a thread mostly gives way.
const PATIENCE: u32 = 16;
/// Beyond its honest turns a thread gives way once in so many.
const LONG_RUN_TURNS: u64 = 64;
/// What tells this source of numbers from the run's own.
const SOURCE: u64 = 0x636f_7572_7465_7379;

/// How a strategy wants yields to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// By chance.
    Chance,
    /// Each lets others go first: the strategy knows no chance.
    Always,
    /// None does: the strategy says itself who goes.
    Never,
}

#[derive(Clone, Debug)]
pub struct Courtesy {
    random: Random,
    polite: bool,
    /// Refusals since somebody else had a turn.
    refusals: u32,
}

impl Courtesy {
    pub const NONE: Courtesy = Courtesy { random: Random::new(0), polite: true, refusals: 0 };

    pub fn new(seed: u64) -> Courtesy {
        let mut random = Random::new(seed ^ SOURCE);
        let polite = random.draw() & 1 == 0;
        Courtesy { random, polite, refusals: 0 }
    }

    /// The thread whose turn it is has yielded.
    pub fn gives_way(&mut self, yields: Yields) -> bool {
        let draw = match yields {
            Yields::Always => return true,
            Yields::Never => return false,
            Yields::Chance => self.random.draw() % 16,
        };
        let gives = match (self.refusals >= PATIENCE, self.polite) {
            (true, _) => draw < 15,
            (false, true) => draw < 12,
            (false, false) => draw < 2,
        };
        self.refusals = if gives { 0 } else { self.refusals.saturating_add(1) };
        gives
    }

    /// The thread has taken more turns in a row than honest work needs.
    pub fn ends_long_run(&mut self, yields: Yields) -> bool {
        match yields {
            Yields::Chance => self.random.draw().is_multiple_of(LONG_RUN_TURNS),
            Yields::Always | Yields::Never => true,
        }
    }

    /// Somebody else had a turn.
    pub fn others_went(&mut self) {
        self.refusals = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_refusals_is_possible_and_none_lasts() {
        let (mut longest, mut shortest) = (0, u32::MAX);
        for seed in 0..2000 {
            let mut courtesy = Courtesy::new(seed);
            let refusals = (0..1000).take_while(|_| !courtesy.gives_way(Yields::Chance)).count() as u32;
            assert!(refusals < 1000, "seed {seed}: it never gives way");
            (longest, shortest) = (longest.max(refusals), shortest.min(refusals));
        }
        assert_eq!(shortest, 0);
        assert!(longest > PATIENCE, "{longest}: it is never forced to");
    }

    #[test]
    fn strategies_without_chance_have_none() {
        let mut courtesy = Courtesy::new(1);
        assert!((0..100).all(|_| courtesy.gives_way(Yields::Always)));
        assert!((0..100).all(|_| !courtesy.gives_way(Yields::Never)));
    }
}
