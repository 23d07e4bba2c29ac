//! Loops that wait: a thread that looks at the same thing again and again.
//!
//! `while (!load(&flag));` has as many runs as it has rounds, and all but one of them are the same. A thread that has performed the
//! same operation at the same place in the code for [`ROUNDS`] times, without any effect (a load, an exchange that changed
//! nothing, a lock that was tried in vain) and while nobody changed what it looks at, is not chosen again before somebody does; unless
//! nobody else can go, because a loop may be finite. What comes between two rounds without being visible is not known, so a loop
//! that gives up after a number of rounds is followed for [`ROUNDS`] rounds and then only when all others wait: that much a
//! complete search does not prove, and it says so.
//!
//! The idea is the fairness of Musuvathi and Qadeer, *Fair Stateless Model Checking* (PLDI 2008), with the yield found out
//! instead of told, and of the spin loops of Kokologiannakis et al. (GenMC: *await*). Deviation: a loop that looks at two
//! things in turn is not recognised.

use crate::dependence::{Operation, dependent};

/// Rounds after which a loop waits.
pub const ROUNDS: u32 = 2;

/// Rounds without anybody else after which it is endless.
pub const ENDLESS_ROUNDS: u32 = 1000;

#[derive(Clone, Copy, Debug)]
pub struct WaitingLoop {
    last: Operation,
    pc: u64,
    /// How often the thread did that without effect and without news.
    rounds: u32,
    /// Rounds that it made because nobody else could go.
    alone: u32,
    waits: bool,
    repeats: bool,
    /// It may go although nothing has changed.
    let_go: bool,
}

impl WaitingLoop {
    pub const NONE: WaitingLoop = WaitingLoop {
        last: Operation::new(raddle_wire::step::NONE, 0),
        pc: 0,
        rounds: 0,
        alone: 0,
        waits: false,
        repeats: false,
        let_go: false,
    };

    fn is_same(&self, operation: &Operation, pc: u64) -> bool {
        (self.last.kind, self.last.object, self.pc) == (operation.kind, operation.object, pc)
    }

    /// The thread has come to an operation.
    pub fn arrive(&mut self, operation: &Operation, pc: u64) {
        self.repeats = self.is_same(operation, pc) && self.rounds >= ROUNDS;
        self.waits = self.repeats;
    }

    /// It has performed it. `idle`: without effect.
    pub fn finish(&mut self, operation: &Operation, pc: u64, idle: bool) {
        let same = self.is_same(operation, pc);
        (self.waits, self.repeats) = (false, false);
        self.alone += u32::from(core::mem::take(&mut self.let_go));
        self.rounds = match (idle, same) {
            (true, true) => self.rounds + 1,
            (true, false) => 1,
            (false, _) => 0,
        };
        if !same || !idle {
            self.alone = 0;
        }
        (self.last, self.pc) = (*operation, pc);
    }

    /// Somebody else has changed something.
    pub fn hear(&mut self, operation: &Operation) {
        if dependent(operation, &self.last) {
            (self.rounds, self.alone, self.waits, self.let_go) = (0, 0, false, false);
        }
    }

    /// Nobody else can go.
    pub fn go_on(&mut self) {
        self.let_go |= core::mem::take(&mut self.waits);
    }

    /// Somebody else was chosen: it waits again.
    pub fn stay(&mut self) {
        self.waits |= core::mem::take(&mut self.let_go);
    }

    /// How many rounds it has made because nobody else could go.
    pub fn alone(&self) -> u32 {
        self.alone
    }

    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Was it in its loop when it came to its operation?
    pub fn is_repeating(&self) -> bool {
        self.repeats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_wire::step;

    fn rounds(waiting: &mut WaitingLoop, count: u32) {
        for _ in 0..count {
            waiting.arrive(&Operation::new(step::LOAD, 8), 1);
            waiting.go_on();
            waiting.finish(&Operation::new(step::LOAD, 8), 1, true);
        }
    }

    #[test]
    fn a_loop_waits_until_somebody_writes() {
        let mut waiting = WaitingLoop::NONE;
        rounds(&mut waiting, ROUNDS);
        waiting.arrive(&Operation::new(step::LOAD, 8), 1);
        assert!(waiting.waits());
        waiting.hear(&Operation::new(step::STORE, 16));
        assert!(waiting.waits(), "that was something else");
        waiting.hear(&Operation::new(step::STORE, 8));
        assert!(!waiting.waits());
    }

    #[test]
    fn other_places_and_effects_are_no_loop() {
        let mut waiting = WaitingLoop::NONE;
        rounds(&mut waiting, ROUNDS);
        waiting.arrive(&Operation::new(step::LOAD, 8), 2);
        assert!(!waiting.waits());
        waiting.finish(&Operation::new(step::RMW, 8), 1, false);
        waiting.arrive(&Operation::new(step::RMW, 8), 1);
        assert!(!waiting.waits());
    }

    #[test]
    fn a_loop_that_nobody_can_end_is_endless() {
        let mut waiting = WaitingLoop::NONE;
        rounds(&mut waiting, ENDLESS_ROUNDS);
        assert_eq!(waiting.alone(), ENDLESS_ROUNDS - ROUNDS);
        rounds(&mut waiting, ROUNDS);
        assert_eq!(waiting.alone(), ENDLESS_ROUNDS);
        waiting.arrive(&Operation::new(step::LOAD, 8), 1);
        waiting.go_on();
        waiting.stay();
        assert!(waiting.waits(), "somebody else was chosen");
    }
}
