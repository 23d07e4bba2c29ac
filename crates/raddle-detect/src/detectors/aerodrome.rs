//! `aerodrome`: serialisability by vector clocks.
//!
//! **Definition** (Mathur, Viswanathan, *Atomicity checking in linear time using vector clocks*, ASPLOS 2020). The
//! property of [`super::velodrome`]: the observed run is serialisable. Instead of a graph, each thread, lock and
//! variable has a clock of the transactions that are before it, where a thread's entry counts its transactions. When a
//! running transaction learns of something that already knows its own beginning, there is a path from the transaction
//! out and back: a cycle.
//!
//! When a transaction ends, everything that knew its beginning also comes to be after all of it, so its clock is passed
//! on to them; for threads with a running transaction this can again close a cycle.
//!
//! **Sound and complete** for the question whether a violation exists; the first is reported where it is noticed. What
//! comes after it is a cycle of the observed run as well, because clocks only ever pass on what a path of transactions
//! carries, but some are missed. Grade *observed*: this very run is not serialisable.
//!
//! **Deviations**: the paper's three versions differ in how the end of a transaction finds the clocks to be updated;
//! here a log of clocks that changed since the transaction began is walked. Reported once a pair of locations.
//!
//! **Cost**: threads an event, plus, for the end of a transaction, the clocks that changed meanwhile.

use crate::clock::Clock;
use crate::detector::{Detector, End};
use crate::race::Site;
use crate::region::{RegionTracker, Regions};
use crate::report::{Report, Reports, Subject, place_key};
use crate::step::{Step, Sync, VarIx};
use raddle_findings::{Basis, Detail, Kind, Role};
use raddle_trace::ThreadIx;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

pub const NAME: &str = "aerodrome";

/// Something that carries a clock between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Carrier {
    Written(VarIx),
    ReadOf(VarIx),
    Lock(u32),
    ReadUnlock(u32),
    Channel(u32),
}

/// What threads left at a carrier: the last writer or releaser, or one entry for each reader or sender. What a thread
/// left itself is no news to it.
#[derive(Clone, Debug, Default)]
struct Carried {
    left: SmallVec<[(ThreadIx, Clock); 1]>,
    /// Where it stands in the log last.
    logged: u64,
}

#[derive(Clone, Debug, Default)]
struct Actor {
    clock: Clock,
    /// Number of the running transaction, 0 if none runs.
    running: u32,
    begin: Site,
    log_start: u64,
    begun: u32,
    told: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Aerodrome {
    tracker: RegionTracker,
    actors: Vec<Actor>,
    carried: FxHashMap<Carrier, Carried>,
    log: std::collections::VecDeque<Carrier>,
    log_base: u64,
    reports: Reports,
    violations: Vec<u64>,
}

impl Aerodrome {
    pub fn new(regions: Regions) -> Aerodrome {
        Aerodrome { tracker: RegionTracker::new(regions), ..Aerodrome::default() }
    }

    /// Places of the steps at which a cycle was noticed.
    pub fn violations(&self) -> &[u64] {
        &self.violations
    }

    fn actor(&mut self, thread: ThreadIx) -> &mut Actor {
        if self.actors.len() <= thread.index() {
            self.actors.resize(thread.index() + 1, Actor::default());
        }
        &mut self.actors[thread.index()]
    }

    fn begin(&mut self, step: &Step<'_>) {
        let log_end = self.log_base + self.log.len() as u64;
        let thread = step.thread();
        let actor = self.actor(thread);
        actor.begun += 1;
        actor.running = actor.begun;
        actor.begin = Site::of(step);
        actor.log_start = log_end;
        actor.told = false;
        let begun = actor.begun;
        actor.clock.set(thread, begun);
    }

    /// A thread learns a clock; if that knows the thread's running transaction there is a cycle.
    fn learn(&mut self, thread: ThreadIx, news: &Clock, step: &Step<'_>) {
        let actor = self.actor(thread);
        let cycle = actor.running > 0 && news.get(thread) >= actor.running;
        actor.clock.join(news);
        if cycle && !actor.told {
            actor.told = true;
            let begin = actor.begin;
            self.tell(begin, step);
        }
    }

    fn tell(&mut self, begin: Site, step: &Step<'_>) {
        self.violations.push(step.position);
        let closing = Site::of(step);
        self.reports.add(place_key(&[begin, closing], closing.position), || {
            Report::new(NAME, Kind::AtomicityViolation, Basis::observed())
                // Clocks know that there is a cycle, not its way.
                .detail(Detail::Cycle { regions: 0 })
                .part(begin.plays(Role::BeginsRegion, None))
                .part(closing.plays(Role::ClosesCycle, Subject::of(step)))
        });
    }

    fn take_from(&mut self, thread: ThreadIx, carrier: Carrier, step: &Step<'_>) {
        // Taken out meanwhile: learning does not look at carriers.
        let Some(carried) = self.carried.get_mut(&carrier) else { return };
        let left = std::mem::take(&mut carried.left);
        for (owner, clock) in &left {
            if *owner != thread {
                self.learn(thread, clock, step);
            }
        }
        if let Some(carried) = self.carried.get_mut(&carrier) {
            carried.left = left;
        }
    }

    fn leave(&mut self, thread: ThreadIx, carrier: Carrier, replace: bool) {
        let log_end = self.log_base + self.log.len() as u64;
        let clock = &self.actors[thread.index()].clock;
        let carried = self.carried.entry(carrier).or_default();
        if replace {
            carried.left.truncate(1);
        }
        let place = if replace {
            0
        } else {
            carried.left.iter().position(|(owner, _)| *owner == thread).unwrap_or(carried.left.len())
        };
        match carried.left.get_mut(place) {
            Some((owner, left)) => {
                *owner = thread;
                left.copy_from(clock);
            }
            None => carried.left.push((thread, clock.clone())),
        }
        carried.logged = log_end;
        self.log.push_back(carrier);
    }

    /// The running transaction of a thread ends.
    fn end(&mut self, thread: ThreadIx, step: &Step<'_>) {
        let actor = self.actor(thread);
        let (number, log_start) = (actor.running, actor.log_start);
        if number == 0 {
            return;
        }
        actor.running = 0;
        let clock = actor.clock.clone();
        for other in 0..self.actors.len() {
            let other_thread = ThreadIx(other as u32);
            if other_thread != thread && self.actors[other].clock.get(thread) >= number {
                self.learn(other_thread, &clock, step);
            }
        }
        for place in log_start.max(self.log_base)..self.log_base + self.log.len() as u64 {
            let carrier = self.log[(place - self.log_base) as usize];
            if let Some(carried) = self.carried.get_mut(&carrier)
                && carried.logged == place
            {
                for (_, left) in &mut carried.left {
                    if left.get(thread) >= number {
                        left.join(&clock);
                    }
                }
            }
        }
        self.trim();
    }

    /// Forgets the part of the log that is older than every running transaction.
    fn trim(&mut self) {
        let log_end = self.log_base + self.log.len() as u64;
        let running = self.actors.iter().filter(|actor| actor.running > 0);
        let oldest = running.map(|actor| actor.log_start).min().unwrap_or(log_end);
        while self.log_base < oldest && self.log.pop_front().is_some() {
            self.log_base += 1;
        }
    }

    fn event(&mut self, step: &Step<'_>) {
        let thread = step.thread();
        if let Some(write) = step.plain_access() {
            for &var in step.vars {
                self.take_from(thread, Carrier::Written(var), step);
                if write {
                    self.take_from(thread, Carrier::ReadOf(var), step);
                    self.leave(thread, Carrier::Written(var), true);
                } else {
                    self.leave(thread, Carrier::ReadOf(var), false);
                }
            }
            return;
        }
        match step.sync {
            Sync::None => {}
            Sync::Acquire { lock, read } => {
                self.take_from(thread, Carrier::Lock(lock.0), step);
                if !read {
                    self.take_from(thread, Carrier::ReadUnlock(lock.0), step);
                }
            }
            Sync::Release { lock, read: false } => self.leave(thread, Carrier::Lock(lock.0), true),
            Sync::Release { lock, read: true } => self.leave(thread, Carrier::ReadUnlock(lock.0), false),
            Sync::Fork(child) => {
                let clock = self.actor(thread).clock.clone();
                self.actor(child).clock.join(&clock);
            }
            Sync::Join(child) => {
                if self.actor(child).running > 0 {
                    self.end(child, step);
                }
                let clock = self.actor(child).clock.clone();
                self.learn(thread, &clock, step);
            }
            Sync::Receive(channel) => self.take_from(thread, Carrier::Channel(channel.0), step),
            Sync::Send(channel) => self.leave(thread, Carrier::Channel(channel.0), false),
            Sync::Exchange(channel) => {
                self.take_from(thread, Carrier::Channel(channel.0), step);
                self.leave(thread, Carrier::Channel(channel.0), false);
            }
        }
    }
}

impl Detector for Aerodrome {
    fn step(&mut self, step: &Step<'_>) {
        for &(old, new) in step.splits {
            for (from, to) in
                [(Carrier::Written(old), Carrier::Written(new)), (Carrier::ReadOf(old), Carrier::ReadOf(new))]
            {
                if let Some(mut carried) = self.carried.get(&from).cloned() {
                    carried.logged = self.log_base + self.log.len() as u64;
                    self.log.push_back(to);
                    self.carried.insert(to, carried);
                }
            }
        }
        for &var in step.reborn {
            self.carried.remove(&Carrier::Written(var));
            self.carried.remove(&Carrier::ReadOf(var));
        }
        let place = self.tracker.step(step);
        let thread = step.thread();
        self.actor(thread);
        if place.ended_before || place.begins {
            self.end(thread, step);
        }
        if self.actors[thread.index()].running == 0 {
            self.begin(step);
        }
        self.event(step);
        if !place.inside || place.ends {
            self.end(thread, step);
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.reports.take()
    }
}
