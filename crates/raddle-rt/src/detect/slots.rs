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
//!    generation of clocks ([`super::clock`]). No other thread has to stop: the name of a free slot can only stand in a
//!    cell that was written while the slot was owned, hence before the wipe. Threads that run meanwhile keep slot and
//!    epoch, so what they write before, during or after the wipe is still the only use of that name. What is lost is
//!    history: accesses from before are forgotten, as if they had been pushed out of their cells.
//!
//! If no slot is known whole (threads that nobody joined), an unused one is taken, then the one that has been free for
//! longest. In that last case accesses of the old owner are attributed to the new one: a race between the two goes
//! unseen. It never makes a race where there is none, because a clock that knows the new owner knows no less than it says.
//!
//! A thread that finds no slot at all (more than 255 run at once) checks its accesses against those of others but
//! leaves none behind, until it synchronises and a slot is free.

use super::clock::{self, Epoch, SLOTS};
use super::state::State;
use super::{history, state};
use crate::shadow::{self, EPOCH_MAX, EPOCH_SHIFT, SID_SHIFT};
use crate::spin::Spin;
use crate::thread::Thread;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Never,
    Owned,
    /// Free since this turn of the table.
    Free(u32),
    Spent,
}

struct Slots {
    used: [Use; SLOTS],
    last: [Epoch; SLOTS],
    turn: u32,
}

static TABLE: Spin<Slots> = Spin::new(Slots { used: [Use::Never; SLOTS], last: [0; SLOTS], turn: 0 });

impl Slots {
    fn choose(&mut self, state: &State) -> Option<u8> {
        let known = |slot: usize| state.clock.times[slot] >= self.last[slot];
        let slots = 1..SLOTS;
        let free = |slot: &usize| matches!(self.used[*slot], Use::Free(_));
        let choice = slots
            .clone()
            .find(|slot| free(slot) && known(*slot))
            .or_else(|| slots.clone().find(|&slot| self.used[slot] == Use::Never))
            .or_else(|| {
                slots.clone().filter(free).min_by_key(|&slot| match self.used[slot] {
                    Use::Free(turn) => turn,
                    _ => u32::MAX,
                })
            });
        choice.map(|slot| slot as u8)
    }

    fn start_over(&mut self) -> bool {
        let spent = |used: &[Use; SLOTS]| {
            let used = *used;
            (1..SLOTS).filter(move |&slot| used[slot] == Use::Spent).map(|slot| slot as u8)
        };
        if spent(&self.used).next().is_none() {
            return false;
        }
        shadow::wipe();
        clock::restart(spent(&self.used));
        for slot in spent(&self.used) {
            self.used[slot as usize] = Use::Free(0);
            self.last[slot as usize] = 0;
        }
        true
    }
}

/// Gives the thread a slot, if there is one.
pub fn attach(thread: &mut Thread) {
    let Some(state) = state::of(thread) else { return };
    let mut table = TABLE.lock();
    state.clock.refresh();
    let mut choice = table.choose(state);
    if choice.is_none() && table.start_over() {
        state.clock.refresh();
        choice = table.choose(state);
    }
    match choice {
        Some(slot) => {
            table.used[slot as usize] = Use::Owned;
            thread.sid = u32::from(slot);
            thread.epoch = u32::from(table.last[slot as usize]) + 1;
            clock::widen(thread.sid);
            drop(table);
            name_segment(thread);
            history::attach(thread);
        }
        None => {
            thread.sid = 0;
            thread.epoch = 0;
            thread.segment = 0;
        }
    }
}

fn name_segment(thread: &mut Thread) {
    thread.segment = thread.sid << SID_SHIFT | thread.epoch << EPOCH_SHIFT;
    if let Some(state) = state::of(thread) {
        state.clock.times[thread.sid as usize] = thread.epoch as Epoch;
        state.clock.empty = false;
    }
}

pub fn detach(thread: &mut Thread) {
    if thread.sid == 0 {
        return;
    }
    history::detach(thread);
    let mut table = TABLE.lock();
    let slot = thread.sid as usize;
    table.last[slot] = thread.epoch as Epoch;
    table.turn += 1;
    table.used[slot] = if thread.epoch >= EPOCH_MAX { Use::Spent } else { Use::Free(table.turn) };
    drop(table);
    thread.sid = 0;
    thread.segment = 0;
}

/// What the thread did so far was passed on: a new epoch begins.
#[inline]
pub fn advance(thread: &mut Thread) {
    if thread.sid != 0 && thread.epoch < EPOCH_MAX {
        thread.epoch += 1;
        return name_segment(thread);
    }
    detach(thread);
    attach(thread);
}

pub fn reset_after_fork() {
    TABLE.reset_after_fork();
}
