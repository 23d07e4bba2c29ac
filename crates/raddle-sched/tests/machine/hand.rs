//! Tables of threads that a test moves by hand, in a world in which everything can be set.

use super::Room;
use raddle_sched::{AnyStrategy, Entry, Outside, Sched, Settings, ThreadIx};

/// A world in which everything can be set.
#[derive(Default)]
pub struct World {
    pub asleep: Vec<u32>,
    pub signals: bool,
    pub asks: bool,
    pub due: bool,
    pub ends_waiting: bool,
}

impl Outside for World {
    fn is_asleep(&self, ix: ThreadIx, _: &Entry) -> bool {
        self.asleep.contains(&ix.0)
    }
    fn mutex_holder(&self, _: ThreadIx, _: usize) -> u32 {
        0
    }
    fn cancel_is_due(&self, _: ThreadIx, _: u8) -> bool {
        self.due
    }
    fn cancel_ends_waiting(&self, _: ThreadIx, _: u8) -> bool {
        self.ends_waiting
    }
    fn expects_signal(&self) -> bool {
        self.signals
    }
    fn asks_sleepers(&self) -> bool {
        self.asks
    }
}

/// What arrives. Whether its thread yields is looked at by nobody, unless a variable is given.
#[macro_export]
macro_rules! request {
    ($kind:expr, $object:expr) => {
        $crate::request!($kind, $object, false)
    };
    ($kind:expr, $object:expr, $yields:expr) => {
        raddle_sched::Arrival {
            request: raddle_sched::Request { kind: $kind, object: $object, pc: 0 },
            steps: 0,
            detail: raddle_sched::Detail::NONE,
            yields: &mut $yields,
        }
    };
}

/// Some threads that all exist, under a strategy.
pub fn with_threads(count: usize, strategy: AnyStrategy<'static>, each: impl FnOnce(&mut Sched<'_>)) {
    seeded_threads(count, 1, strategy, each);
}

pub fn seeded_threads(
    count: usize,
    seed: u64,
    strategy: AnyStrategy<'static>,
    each: impl FnOnce(&mut Sched<'_>),
) {
    let mut room = Room::new(count);
    let mut sched = Sched::idle();
    let settings = Settings { seed, strategy, one_at_a_time: false };
    sched.start(room.tables(), settings);
    for thread in 0..count {
        sched.register(thread as u32, thread as u64 + 1).expect("there is room");
    }
    each(&mut sched);
}

/// Who was woken.
pub fn woken(sched: &mut Sched<'_>) -> Vec<u32> {
    sched.effects.take_wakes().map(|ix| ix.0).collect()
}

pub fn round_robin() -> AnyStrategy<'static> {
    AnyStrategy::new(raddle_wire::region::strategy::ROUND_ROBIN, &[0; 8], &[], false)
}
