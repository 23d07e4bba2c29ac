//! Replay: turns are given in the order of a schedule.
//!
//! The schedule names, for each turn, the thread, which of its visible operations this is, and of what kind. A thread
//! that comes with something else has *diverged*, and so has one whose operation would block although the schedule
//! says that it completes: the run ends there and says what was expected and what was found. Operations marked as
//! failed are not performed; their failure is handed to the program.
//!
//! After the last step come the stop points: a thread is parked before a certain access. When all are parked at the
//! same time, the run has shown what it was meant to show. Without stop points the run goes on under the strategy.

use crate::effects::Conclusion;
use crate::roster::{Phase, ThreadIx};
use crate::sched::{Grant, Outside, Sched};
use raddle_wire::step::{self, HEAD_WORDS, PLACE_CODE, SITE_WORDS, STOP_WORDS, StepWord};

/// Stop points of one schedule: a race has two, a deadlock as many as its cycle has threads.
pub const STOPS_MAX: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Stop {
    thread: u64,
    after: u32,
    occurrence: u32,
    code: bool,
    address: usize,
    seen: u32,
    parked: bool,
}

impl Stop {
    const NONE: Stop =
        Stop { thread: 0, after: 0, occurrence: 0, code: true, address: 0, seen: 0, parked: false };
}

/// An access that a thread is about to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParkedAccess {
    pub pc: u64,
    pub address: usize,
    pub bytes: usize,
    pub aux: u8,
}

impl ParkedAccess {
    pub const NONE: ParkedAccess = ParkedAccess { pc: 0, address: 0, bytes: 0, aux: 0 };
}

/// A schedule, and how far it has been followed.
pub struct Replay<'t> {
    loaded: bool,
    words: &'t [u64],
    threads: usize,
    steps: usize,
    cursor: usize,
    stops: [Stop; STOPS_MAX],
    stop_count: usize,
    /// Words between which the payload still to be given lies.
    payload: usize,
    payload_end: usize,
    orders_calls: bool,
    orders_handlers: bool,
}

/// The counts at a schedule's head do not fit what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl<'t> Replay<'t> {
    pub(crate) const NONE: Replay<'t> = Replay {
        loaded: false,
        words: &[],
        threads: 0,
        steps: 0,
        cursor: 0,
        stops: [Stop::NONE; STOPS_MAX],
        stop_count: 0,
        payload: 0,
        payload_end: 0,
        orders_calls: false,
        orders_handlers: false,
    };

    /// Reads a schedule in its binary form (`raddle_wire::step`). `bias` says where a module is loaded, `site` is told of
    /// each place whose accesses are visible.
    pub fn load(
        words: &'t [u64],
        bias: impl Fn(u64) -> usize,
        mut site: impl FnMut(usize),
    ) -> Result<Replay<'t>, Damaged> {
        let Some(head) = words.first_chunk::<HEAD_WORDS>() else { return Err(Damaged) };
        let [threads, steps, stops, blocks, sites, payload] = head.map(|word| word as usize);
        let before_sites = threads
            .saturating_add(steps)
            .saturating_add(stops.saturating_mul(STOP_WORDS))
            .saturating_add(blocks);
        let needed = before_sites
            .saturating_add(sites.saturating_mul(SITE_WORDS))
            .saturating_add(payload.saturating_add(7) / 8);
        if stops > STOPS_MAX || needed.saturating_add(HEAD_WORDS) > words.len() {
            return Err(Damaged);
        }
        let mut replay = Replay { loaded: true, words, threads, steps, stop_count: stops, ..Replay::NONE };
        for (i, stop) in replay.stops[..stops].iter_mut().enumerate() {
            let at = HEAD_WORDS + threads + steps + i * STOP_WORDS;
            let thread = words[at] as usize;
            *stop = Stop {
                thread: if thread < threads { words[HEAD_WORDS + thread] } else { 0 },
                after: words[at + 1] as u32,
                occurrence: words[at + 2] as u32,
                code: words[at + 3] == PLACE_CODE,
                address: (words[at + 4] as usize).wrapping_add(bias(words[at + 5])),
                ..Stop::NONE
            };
        }
        let at = HEAD_WORDS + before_sites;
        for i in 0..sites {
            let place = &words[at + i * SITE_WORDS..];
            site((place[0] as usize).wrapping_add(bias(place[1])));
        }
        replay.payload = at + sites * SITE_WORDS;
        replay.payload_end = replay.payload + payload.div_ceil(8);
        let knows = |kind: u8| (0..steps).any(|at| replay.step(at).kind == kind);
        (replay.orders_calls, replay.orders_handlers) = (knows(step::SYSCALL), knows(step::HANDLER));
        Ok(replay)
    }

    /// Does the schedule still decide?
    #[inline]
    pub fn active(&self) -> bool {
        self.loaded && (self.cursor < self.steps || self.stop_count > 0)
    }

    fn step(&self, at: usize) -> StepWord {
        StepWord::unpack(self.words[HEAD_WORDS + self.threads + at])
    }

    pub fn next(&self) -> Option<StepWord> {
        if self.cursor < self.steps { Some(self.step(self.cursor)) } else { None }
    }

    pub fn steps_taken(&self) -> u64 {
        self.cursor as u64
    }

    /// Does the schedule know of system calls? One that was made from a trace does not.
    pub fn orders_calls(&self) -> bool {
        self.orders_calls
    }

    /// Does it know of signal handlers?
    pub fn orders_handlers(&self) -> bool {
        self.orders_handlers
    }

    /// The words that hold what the next step with a payload is to be given, and how many bytes of them. `None`: the
    /// schedule has no more.
    pub fn next_payload(&mut self) -> Option<(&'t [u64], usize)> {
        if !self.has_payload() {
            return None;
        }
        let bytes = self.words[self.payload] as usize;
        let count = bytes.div_ceil(8);
        if count > self.payload_end - self.payload - 1 {
            return None;
        }
        let words = &self.words[self.payload + 1..][..count];
        self.payload += 1 + count;
        Some((words, bytes))
    }

    fn has_payload(&self) -> bool {
        self.payload < self.payload_end
    }

    /// The schedule's number for a thread.
    pub(crate) fn thread_of(&self, path: u64) -> u32 {
        let names = if self.loaded { &self.words[HEAD_WORDS..][..self.threads] } else { &[] };
        names.iter().position(|&name| name == path).map_or(u32::MAX, |at| at as u32)
    }

    /// Which stops concern a thread, as bits.
    pub(crate) fn stops_of(&self, path: u64) -> u32 {
        let stops = self.stops[..self.stop_count].iter().enumerate();
        stops.filter(|(_, stop)| stop.thread == path).fold(0, |bits, (i, _)| bits | 1 << i)
    }

    /// Is this access one of a thread's stop points?
    fn reaches(&mut self, stops: u32, steps: u32, access: &ParkedAccess) -> bool {
        let mut reached = false;
        for (i, stop) in self.stops[..self.stop_count].iter_mut().enumerate() {
            if stops & 1 << i == 0 || stop.after != steps {
                continue;
            }
            let here = if stop.code {
                stop.address as u64 == access.pc
            } else {
                (access.address..access.address + access.bytes).contains(&stop.address)
            };
            if here {
                stop.seen += 1;
                stop.parked |= stop.seen == stop.occurrence;
                reached |= stop.parked;
            }
        }
        reached
    }

    fn all_parked(&self) -> bool {
        let stops = &self.stops[..self.stop_count];
        !stops.is_empty() && stops.iter().all(|stop| stop.parked) && self.cursor >= self.steps
    }
}

/// Whether the program knows the kind of its operation only when it performs it.
fn matches(expected: u8, found: u8) -> bool {
    expected == found || (found == step::ONCE_BEGIN && expected == step::ONCE_PASSED)
}

impl Sched<'_> {
    pub(crate) fn arrive_in_replay(&mut self, me: ThreadIx, outside: &impl Outside) -> Grant {
        let Some(expected) = self.replay.next() else {
            self.arrive_after_schedule(me);
            return Grant::Wait;
        };
        if self.one_at_a_time {
            if self.anybody_runs() {
                return Grant::Wait;
            }
            self.wake_due();
        }
        let entry = &self.roster[me];
        if u32::from(expected.thread) != entry.schedule_thread {
            return Grant::Wait;
        }
        let (found, ordinal) = (entry.request.kind, entry.steps + 1);
        if self.acts_on_cancel(me, outside) {
            return Grant::Cancel;
        }
        if expected.kind == step::HANDLER && found != step::HANDLER && expected.ordinal == ordinal {
            // Only a demo brings the signal along; otherwise it comes from the program, and the thread waits for it.
            if !self.replay.has_payload() {
                return Grant::Wait;
            }
            self.roster[me].phase = Phase::Acting;
            return Grant::Handler;
        }
        if !matches(expected.kind, found) || expected.ordinal != ordinal {
            self.diverge(me, Some(expected));
            return Grant::Wait;
        }
        self.roster[me].phase = Phase::Acting;
        if expected.failed && expected.kind != step::RMW { Grant::Fail } else { Grant::Go }
    }

    /// Does the schedule say that this thread, which has come to another operation, runs a handler first?
    pub fn handler_is_next(&self, me: ThreadIx) -> bool {
        let entry = &self.roster[me];
        self.replay.next().is_some_and(|next| {
            next.kind == step::HANDLER
                && u32::from(next.thread) == entry.schedule_thread
                && next.ordinal == entry.steps + 1
        })
    }

    /// Only stop points are left. An atomic operation can be one; a thread that comes past its own has missed it.
    fn arrive_after_schedule(&mut self, me: ThreadIx) {
        let entry = &self.roster[me];
        if entry.stops == 0 {
            return;
        }
        let request = entry.request;
        let is_atomic = matches!(request.kind, step::LOAD | step::STORE | step::RMW);
        let aux = if request.kind == step::LOAD { 0 } else { raddle_wire::record::access::WRITE };
        let access = ParkedAccess { pc: request.pc, address: request.object, bytes: 1, aux };
        let (stops, steps) = (entry.stops, entry.steps);
        if is_atomic && self.replay.reaches(stops, steps, &access) {
            self.park(me, access);
        } else {
            self.diverge(me, None);
        }
    }

    fn waiting_with_stops(&self) -> Option<ThreadIx> {
        let waits = |ix: &ThreadIx| {
            let entry = &self.roster[*ix];
            entry.phase == Phase::Waiting && entry.stops != 0
        };
        if self.is_over() { None } else { self.roster.living().find(waits) }
    }

    /// The step was taken.
    pub(crate) fn advance_replay(&mut self, outside: &impl Outside) {
        debug_assert!(self.replay.cursor < self.replay.steps, "a turn that the schedule does not have");
        self.replay.cursor += 1;
        self.progress.decisions += 1;
        match self.replay.next() {
            Some(_) => self.wake_due(),
            None if self.replay.active() => {
                // Threads that already wait at an operation stand at their stop point, or are past it.
                while let Some(ix) = self.waiting_with_stops() {
                    self.arrive_after_schedule(ix);
                }
                self.conclude_if_parked();
            }
            None => {
                self.effects.replay_is_over = true;
                self.chosen = ThreadIx::NOBODY;
                self.choose(outside);
            }
        }
    }

    /// Wakes the thread of the next step, if it has come to its operation and may begin.
    pub fn wake_due(&mut self) {
        let Some(next) = self.replay.next() else { return };
        if self.one_at_a_time && self.anybody_runs() {
            // The last one to arrive, to end or to go to sleep does it.
            return;
        }
        let waiting = self.roster.living().find(|&ix| {
            let entry = &self.roster[ix];
            entry.schedule_thread == u32::from(next.thread) && entry.phase == Phase::Waiting
        });
        if let Some(ix) = waiting {
            self.wake(ix);
        }
    }

    /// The thread of the next step, if it lives.
    pub fn due(&self) -> Option<ThreadIx> {
        let next = self.replay.next()?;
        self.roster.living().find(|&ix| self.roster[ix].schedule_thread == u32::from(next.thread))
    }

    /// Somebody was passed over in a replay: that counts as progress, and the next step may have become possible.
    pub fn passed_over_in_replay(&mut self) {
        self.progress.decisions += 1;
        self.wake_due();
    }

    pub fn diverge(&mut self, thread: ThreadIx, expected: Option<StepWord>) {
        self.conclude(Conclusion::Diverged { thread, expected });
    }

    /// In a replay the schedule knows who is woken: the waiting thread whose wake-up comes first.
    pub(crate) fn next_to_wake(&self, on: usize) -> Option<ThreadIx> {
        if !self.replay.active() {
            return None;
        }
        (self.replay.cursor..self.replay.steps).find_map(|at| {
            let next = self.replay.step(at);
            if !matches!(next.kind, step::WAKE | step::FUTEX_WAIT) || next.failed {
                return None;
            }
            self.roster.living().find(|&ix| {
                let entry = &self.roster[ix];
                entry.schedule_thread == u32::from(next.thread) && entry.waits_on == on && !entry.woken
            })
        })
    }

    /// A thread that has done so many operations is about to access memory. True: this is its stop point, it goes no further.
    pub fn access(&mut self, me: ThreadIx, steps: u32, access: ParkedAccess) -> bool {
        let stops = self.roster[me].stops;
        let reached = self.replay.reaches(stops, steps, &access);
        if reached {
            self.roster[me].steps = steps;
            self.park(me, access);
        }
        reached
    }

    fn park(&mut self, me: ThreadIx, access: ParkedAccess) {
        let entry = &mut self.roster[me];
        entry.phase = Phase::Parked;
        entry.access = access;
        self.conclude_if_parked();
        // With one thread at a time, whoever stops running lets the next one begin.
        self.wake_due();
    }

    fn conclude_if_parked(&mut self) {
        if self.replay.all_parked() {
            self.conclude(Conclusion::Parked);
        }
    }
}
