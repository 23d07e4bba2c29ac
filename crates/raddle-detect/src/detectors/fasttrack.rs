//! `fasttrack`: races by epochs.
//!
//! **Definition** (Flanagan, Freund, *FastTrack: efficient and precise dynamic race detection*, PLDI 2009). Like
//! [`super::djit`], but the writes of a variable are ordered as long as there is no race, so the last one stands for
//! all: an *epoch*, one thread's time, instead of a clock. Reads need a clock only while several threads read
//! concurrently.
//!
//! **Precise up to the first race of each variable**: that is found at the same access as by `djit`. After it, fewer
//! pairs are compared, but each pair that is reported is unordered. Grade *unordered*, for the same reason as there.
//!
//! **Deviations**: locations are kept beside epochs, so that a report can name both sides. A read of the variable's own
//! epoch returns at once, as in the paper, and then the earlier location of that epoch stays.
//!
//! **Cost**: constant for nearly every access.

use crate::detector::{Detector, End};
use crate::happens_before::HappensBefore;
use crate::race::{Races, Site, Touch};
use crate::report::Report;
use crate::step::{PerVar, Step, VarIx};
use raddle_findings::Basis;
use raddle_trace::{ContextIx, LocationIx, ThreadIx};
use rustc_hash::FxHashMap;

pub const NAME: &str = "fasttrack";

/// A thread's time, in one word: the thread above, the time below. Zero is before everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Epoch(u64);

/// Stands for the last reads of several threads, which are kept elsewhere.
const SHARED: Epoch = Epoch(u64::MAX);

impl Epoch {
    #[inline(always)]
    fn of(thread: ThreadIx, time: u32) -> Epoch {
        Epoch(u64::from(thread.0) << 32 | u64::from(time))
    }

    #[inline(always)]
    fn time(self) -> u32 {
        self.0 as u32
    }

    #[inline(always)]
    fn thread(self) -> ThreadIx {
        ThreadIx((self.0 >> 32) as u32)
    }
}

/// Where an epoch was.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    location: LocationIx,
    context: ContextIx,
    /// The place in the observed order above, what the access does below: two of these and two epochs are less than a line of
    /// the cache.
    position_and_touch: u64,
}

impl Place {
    #[inline(always)]
    fn of(step: &Step<'_>) -> Place {
        let touch = u64::from(Touch::of(&step.event.op).bits());
        Place {
            location: step.event.location,
            context: step.event.context,
            position_and_touch: step.position << Touch::BITS | touch,
        }
    }

    fn site(self, epoch: Epoch) -> Site {
        Site {
            thread: epoch.thread(),
            location: self.location,
            context: self.context,
            touch: Touch::from_bits(self.position_and_touch as u32 & ((1 << Touch::BITS) - 1)),
            position: self.position_and_touch >> Touch::BITS,
        }
    }
}

/// The last write and the last read of a variable. Together, because an access reads the epochs and writes one of the
/// places: that is one line of the cache, usually.
#[derive(Clone, Copy, Debug, Default)]
struct Variable {
    write: Epoch,
    read: Epoch,
    write_place: Place,
    read_place: Place,
}

/// The thread that acts, its slot and its time, as long as nothing but accesses happens.
#[derive(Clone, Copy, Debug)]
struct Now {
    epoch: Epoch,
    slot: ThreadIx,
}

/// Belongs to no thread.
const NOBODY: Now = Now { epoch: SHARED, slot: ThreadIx::MAIN };

#[derive(Debug)]
pub struct FastTrack {
    order: HappensBefore,
    now: Now,
    variables: PerVar<Variable>,
    /// Last reads of the variables whose epoch is [`SHARED`]: few at a time.
    shared: FxHashMap<VarIx, Vec<(Epoch, Place)>>,
    races: Races,
}

impl Default for FastTrack {
    fn default() -> FastTrack {
        FastTrack {
            order: HappensBefore::new(),
            now: NOBODY,
            variables: PerVar::default(),
            shared: FxHashMap::default(),
            races: Races::new(NAME, Basis::unordered()),
        }
    }
}

impl FastTrack {
    pub fn keep_all() -> FastTrack {
        FastTrack { races: Races::new(NAME, Basis::unordered()).keep_all(), ..FastTrack::default() }
    }

    pub fn races(&self) -> &Races {
        &self.races
    }

    #[inline(always)]
    fn now(&mut self, thread: ThreadIx) -> Now {
        if self.now.epoch.thread() != thread {
            let slot = self.order.slot(thread);
            self.now = Now { epoch: Epoch::of(thread, self.order.now(slot)), slot };
        }
        self.now
    }

    #[inline]
    fn read(&mut self, step: &Step<'_>) {
        let Now { epoch: now, slot } = self.now(step.thread());
        for &var in step.vars {
            let variable = self.variables.get_mut(var);
            if variable.read == now {
                continue;
            }
            if !known(&self.order, slot, variable.write) {
                self.races.race(var, variable.write_place.site(variable.write), step);
            }
            if variable.read == SHARED {
                let reads = self.shared.entry(var).or_default();
                match reads.iter_mut().find(|(epoch, _)| self.order.same_slot(epoch.thread(), step.thread()))
                {
                    Some(entry) => *entry = (now, Place::of(step)),
                    None => reads.push((now, Place::of(step))),
                }
            } else if known(&self.order, slot, variable.read) {
                variable.read = now;
                variable.read_place = Place::of(step);
            } else {
                self.shared.insert(var, vec![(variable.read, variable.read_place), (now, Place::of(step))]);
                variable.read = SHARED;
            }
        }
    }

    #[inline]
    fn write(&mut self, step: &Step<'_>) {
        let Now { epoch: now, slot } = self.now(step.thread());
        for &var in step.vars {
            let variable = self.variables.get_mut(var);
            if variable.write == now {
                continue;
            }
            if !known(&self.order, slot, variable.write) {
                self.races.race(var, variable.write_place.site(variable.write), step);
            }
            if variable.read == SHARED {
                let reads = self.shared.remove(&var).unwrap_or_default();
                if let Some((epoch, place)) =
                    reads.iter().find(|(epoch, _)| !known(&self.order, slot, *epoch))
                {
                    self.races.race(var, place.site(*epoch), step);
                }
                variable.read = Epoch::default();
            } else if !known(&self.order, slot, variable.read) {
                self.races.race(var, variable.read_place.site(variable.read), step);
            }
            variable.write = now;
            variable.write_place = Place::of(step);
        }
    }

    /// Variables were cut, or their memory begins a new life.
    #[cold]
    fn follow(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        for &(old, new) in step.splits {
            if let Some(reads) = self.shared.get(&old).cloned() {
                self.shared.insert(new, reads);
            }
        }
        for var in step.reborn {
            self.shared.remove(var);
        }
    }
}

/// Does the thread in this slot know the epoch? Time 0 is known to everybody.
#[inline(always)]
fn known(order: &HappensBefore, slot: ThreadIx, epoch: Epoch) -> bool {
    epoch.time() <= order.known_of(slot, epoch.thread())
}

impl Detector for FastTrack {
    fn soon(&mut self, vars: &[VarIx]) {
        let times = vars.iter().filter_map(|&var| self.variables.get(var)).map(|variable| variable.write.0);
        // The sum is of no interest: reading is.
        std::hint::black_box(times.fold(0_u64, |sum, time| sum ^ time));
    }

    #[inline]
    fn step(&mut self, step: &Step<'_>) {
        if !step.splits.is_empty() || !step.reborn.is_empty() {
            self.follow(step);
        }
        match step.plain_access() {
            Some(true) => self.write(step),
            Some(false) => self.read(step),
            None => {
                self.now = NOBODY;
                self.order.step(step);
            }
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.races.take()
    }
}
