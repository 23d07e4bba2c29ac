//! Thread slots under online detection: who owns which column of the clocks.
//!
//! A slot has 8 bits in a shadow cell and its epochs have 14. Threads come and go and synchronise without end, so both
//! are used again. Three rules keep this sound; the first two give up nothing.
//!
//! 1. **An ended thread's slot goes to a thread that knows all of it.** If the new thread's clock holds the last epoch of
//!    the slot, everything that the old owner did happens before everything that the new one does, and one counter
//!    serves both. Threads that are created after others were joined find such a slot.
//! 2. **Epochs of a slot only grow.** A thread whose slot is used up takes another one and keeps the old one's last
//!    epoch in its clock, like anybody's.
//! 3. **Starting over.** When all free slots are used up, the shadow is wiped and those slots begin again at zero in a new
//!    generation of clocks ([`crate::clock`]). No other thread has to stop: the name of a free slot can only stand in a
//!    cell that was written while the slot was owned, hence before the wipe. Threads that run meanwhile keep slot and
//!    epoch, so what they write before, during or after the wipe is still the only use of that name. What is lost is
//!    history: accesses from before are forgotten, as if they had been pushed out of their cells.
//!
//! If no slot is known whole (threads that nobody joined), an unused one is taken, then the one that has been free for
//! longest. In that last case accesses of the old owner are attributed to the new one: a race between the two goes
//! unseen. It never makes a race where there is none, because a clock that knows the new owner knows no less than it says.
//!
//! A thread that finds no slot at all (more than 254 run at once) checks its accesses against those of others but
//! leaves none behind, until it synchronises and a slot is free.

use crate::cell::EPOCH_MAX;
use crate::clock::{Clock, Epoch, Generations, SLOTS};
use crate::segment::Segment;

/// Slots of threads; the last one is [`crate::cell::RELEASED`].
pub const THREAD_SLOTS: usize = SLOTS - 1;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Never,
    Owned,
    /// Free since this turn of the table.
    Free(u32),
    Spent,
}

pub struct SlotTable {
    used: [Use; SLOTS],
    last: [Epoch; SLOTS],
    turn: u32,
}

impl SlotTable {
    pub const fn new() -> SlotTable {
        SlotTable { used: [Use::Never; SLOTS], last: [0; SLOTS], turn: 0 }
    }

    fn choose(&self, clock: &Clock) -> Option<u8> {
        let known = |slot: usize| clock.times[slot] >= self.last[slot];
        let slots = 1..THREAD_SLOTS;
        let free = |slot: &usize| matches!(self.used[*slot], Use::Free(_));
        let choice = slots
            .clone()
            .find(|slot| free(slot) && known(*slot))
            .or_else(|| slots.clone().find(|&slot| self.used[slot] == Use::Never))
            .or_else(|| {
                slots.clone().filter(free).min_by_key(|&slot| match self.used[slot] {
                    Use::Free(turn) => turn,
                    Use::Never | Use::Owned | Use::Spent => u32::MAX,
                })
            });
        choice.map(|slot| slot as u8)
    }

    fn start_over(&mut self, generations: &Generations, wipe: impl FnOnce()) -> bool {
        let spent = |used: &[Use; SLOTS]| {
            let used = *used;
            (1..SLOTS).filter(move |&slot| used[slot] == Use::Spent).map(|slot| slot as u8)
        };
        if spent(&self.used).next().is_none() {
            return false;
        }
        wipe();
        generations.restart(spent(&self.used));
        for slot in spent(&self.used) {
            self.used[usize::from(slot)] = Use::Free(0);
            self.last[usize::from(slot)] = 0;
        }
        true
    }

    /// The first segment of a thread with this clock; [`Segment::NONE`] when all slots are owned. `wipe` forgets all
    /// accesses.
    pub fn attach(&mut self, generations: &Generations, clock: &mut Clock, wipe: impl FnOnce()) -> Segment {
        clock.refresh(generations);
        let mut choice = self.choose(clock);
        if choice.is_none() && self.start_over(generations, wipe) {
            clock.refresh(generations);
            choice = self.choose(clock);
        }
        let Some(slot) = choice else { return Segment::NONE };
        self.used[usize::from(slot)] = Use::Owned;
        generations.widen(slot);
        Segment { slot, epoch: self.last[usize::from(slot)] + 1 }
    }

    /// The slot's owner gives it up after this segment.
    pub fn detach(&mut self, last: Segment) {
        if last.is_none() {
            return;
        }
        let slot = usize::from(last.slot);
        self.last[slot] = last.epoch;
        self.turn += 1;
        self.used[slot] = if u32::from(last.epoch) >= EPOCH_MAX { Use::Spent } else { Use::Free(self.turn) };
    }
}

impl Default for SlotTable {
    fn default() -> Self {
        SlotTable::new()
    }
}
