//! The scheduler: turns, and the choice of who has the next.

use crate::courtesy::Courtesy;
use crate::dependence::{Detail, Operation, SPINS};
use crate::effects::{Conclusion, Effects};
use crate::objects::{BARRIERS_MAX, Barrier};
use crate::random::Random;
use crate::replay::Replay;
use crate::roster::{Entry, Phase, Roster, Tables, ThreadIx};
use crate::strategy::{AnyStrategy, Note, OpenTurn, Served, Strategy};
use crate::tokens::Tokens;
use crate::view::{Progress, Tools, View};
use crate::waiting_loop::ENDLESS_ROUNDS;
use crate::{Request, join_token};
use raddle_wire::{Demand, Situation, StepKind, step};

/// What the scheduler asks about the world outside of it. Answers must not change while the scheduler's lock is held.
pub trait Outside {
    /// Does the thread sleep in the kernel?
    fn is_asleep(&self, thread: ThreadIx, entry: &Entry) -> bool;

    /// Who holds what the thread waits for, as the kernel calls it; 0: that is not known, for instance because it is no mutex.
    fn mutex_holder(&self, thread: ThreadIx, object: usize) -> u32;

    /// A thread that was cancelled comes to an operation of this kind: does it act on that there?
    fn cancel_is_due(&self, thread: ThreadIx, kind: u8) -> bool;

    /// The same while the operation waits.
    fn cancel_ends_waiting(&self, thread: ThreadIx, kind: u8) -> bool;

    /// Can a signal still come that changes who can go?
    fn expects_signal(&self) -> bool;

    /// Is this thread, which is set aside, going to run a handler of a signal first? Whoever says so makes the scheduler choose again
    /// ([`Sched::choose`]) when nothing has come of it.
    fn is_about_to_handle(&self, ix: ThreadIx, entry: &Entry) -> bool {
        let _ = (ix, entry);
        false
    }

    /// May threads that sleep be asked at every decision whether they have been woken? Where everything else is decided by
    /// the seed, that is.
    fn asks_sleepers(&self) -> bool;
}

/// A thread comes to a visible operation.
pub struct Arrival<'a> {
    pub request: Request,
    /// Visible operations that it has done.
    pub steps: u32,
    pub detail: Detail,
    /// It has yielded or slept since its last turn. Taken back once somebody else has been let go first.
    pub yields: &'a mut bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    Go,
    /// The schedule says that the operation fails.
    Fail,
    Wait,
    /// A signal handler comes first.
    Handler,
    /// The thread was cancelled: its next operation is another one. The turn stays its own.
    Cancel,
}

pub struct Settings<'t> {
    pub seed: u64,
    pub strategy: AnyStrategy<'t>,
    /// Nobody's turn begins while somebody runs.
    pub one_at_a_time: bool,
}

pub struct Sched<'t> {
    pub roster: Roster<'t>,
    pub(crate) tools: Tools<'t>,
    pub(crate) strategy: AnyStrategy<'t>,
    /// Whose turn it is or will be.
    pub(crate) chosen: ThreadIx,
    pub(crate) progress: Progress,
    courtesy: Courtesy,
    /// Hash of all turns so far.
    turns_hash: u64,
    pub(crate) tickets: u64,
    pub replay: Replay<'t>,
    pub effects: Effects,
    pub(crate) one_at_a_time: bool,
    pub(crate) barriers: [Barrier; BARRIERS_MAX],
    /// Signals that nobody has taken yet, in an exhaustive search.
    pub(crate) signals: Tokens,
}

impl<'t> Sched<'t> {
    /// A scheduler that knows no threads and has room for none.
    pub const fn idle() -> Sched<'t> {
        Sched {
            roster: Roster::empty(),
            tools: Tools { random: Random::new(1), notes: &mut [] },
            strategy: AnyStrategy::RANDOM,
            chosen: ThreadIx::NOBODY,
            progress: Progress::START,
            courtesy: Courtesy::NONE,
            turns_hash: 0,
            tickets: 0,
            replay: Replay::NONE,
            effects: Effects::NONE,
            one_at_a_time: false,
            barriers: [const { Barrier::NONE }; BARRIERS_MAX],
            signals: Tokens::NONE,
        }
    }

    /// A run begins.
    pub fn start(&mut self, tables: Tables<'t>, settings: Settings<'t>) {
        assert_eq!(tables.entries.len(), tables.notes.len(), "one note a thread");
        self.roster = Roster::new(tables.entries, tables.living);
        self.tools = Tools { random: Random::new(settings.seed), notes: tables.notes };
        self.courtesy = Courtesy::new(settings.seed);
        self.one_at_a_time = settings.one_at_a_time;
        self.strategy = settings.strategy;
        self.strategy.prepare(&mut self.tools);
    }

    /// The run, where nobody is to be picked.
    fn view(&self) -> View<'_, 't> {
        View { roster: &self.roster, progress: self.progress, skip_yielded: false, candidate_count: 0 }
    }

    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// How far the run has come, as it is shown: steps of the schedule, or choices between threads.
    pub fn steps_shown(&self) -> u64 {
        // Nobody chooses while the schedule decides, and afterwards what it decided still counts.
        self.replay.steps_taken() + self.progress.choices
    }

    pub fn turns_hash(&self) -> u64 {
        self.turns_hash
    }

    pub fn chosen(&self) -> ThreadIx {
        self.chosen
    }

    pub fn one_at_a_time(&self) -> bool {
        self.one_at_a_time
    }

    pub(crate) fn is_over(&self) -> bool {
        self.effects.conclusion().is_some()
    }

    pub fn conclude(&mut self, conclusion: Conclusion) {
        self.effects.conclude(conclusion);
    }

    /// A thread exists now; called inside its creator's turn. None, and the run is over, when there is no room.
    pub fn register(&mut self, index: u32, path: u64) -> Option<ThreadIx> {
        let Some(ix) = self.roster.add() else {
            self.conclude(Conclusion::TooManyThreads);
            return None;
        };
        // Drawn whatever the strategy: the same seed means the same run for as many of them as possible.
        let draw = self.tools.random.draw();
        self.roster[ix] = Entry {
            phase: Phase::Running,
            index,
            path,
            schedule_thread: self.replay.thread_of(path),
            stops: self.replay.stops_of(path),
            ..Entry::FREE
        };
        *self.tools.note(ix) = Note::EMPTY;
        self.strategy.registered(&mut self.tools, ix, path, draw);
        if ix == ThreadIx(0) {
            // The first thread is there before anybody chooses.
            self.chosen = ix;
        }
        Some(ix)
    }

    /// The thread was created by another one.
    pub fn born(&mut self, parent: ThreadIx, child: ThreadIx) {
        if !parent.is_nobody() && !child.is_nobody() {
            self.strategy.born(&mut self.tools, parent, child);
        }
    }

    pub fn set_os_tid(&mut self, ix: ThreadIx, os_tid: u32) {
        self.roster[ix].os_tid = os_tid;
    }

    /// The thread has come to a visible operation.
    pub fn arrive(&mut self, me: ThreadIx, arrival: Arrival<'_>, outside: &impl Outside) -> Grant {
        self.tickets += 1;
        let ticket = self.tickets;
        let entry = &mut self.roster[me];
        entry.request = arrival.request;
        entry.steps = arrival.steps;
        entry.operation =
            Operation::with(arrival.request.kind, arrival.request.object as u64, arrival.detail);
        if matches!(arrival.request.kind, step::START | step::END) {
            // Threads are the objects of these, and all have the same number here.
            entry.operation.object = entry.path;
        }
        if !entry.is_aside() {
            // A thread that is woken for its turn comes by here again: its operation is not a new one.
            let is_new = entry.phase != Phase::Waiting;
            entry.phase = Phase::Waiting;
            entry.lost = false;
            entry.ticket = ticket;
            if is_new {
                self.strategy.arrived(&mut self.tools, me);
            }
            let entry = &mut self.roster[me];
            if is_new && self.strategy.is_exhaustive() {
                entry.waiting_loop.arrive(&entry.operation, entry.request.pc);
                entry.is_news = true;
            }
            if entry.waiting_loop.is_repeating() {
                entry.operation.flags |= SPINS;
            }
        }
        if self.replay.active() {
            return self.arrive_in_replay(me, outside);
        }
        if self.chosen.is_nobody() {
            let view = View {
                roster: &self.roster,
                progress: self.progress,
                skip_yielded: false,
                candidate_count: 0,
            };
            match self.strategy.open_turn(&view, me) {
                OpenTurn::Choose => self.choose(outside),
                OpenTurn::Take => self.chosen = me,
                OpenTurn::StaysOpen => {}
            }
        }
        if self.chosen == me && core::mem::take(arrival.yields) && !self.strategy.is_exhaustive() {
            // It has yielded or slept since its last turn: somebody else may go first. Only now, because what
            // others may choose from must not depend on how far this thread has come by itself.
            if self.others_can_go(me) && self.courtesy.gives_way(self.strategy.yields()) {
                self.let_others_go(me);
                self.choose(outside);
            }
        }
        if self.chosen == me && !self.is_over() {
            if self.acts_on_cancel(me, outside) {
                return Grant::Cancel;
            }
            self.roster[me].phase = Phase::Acting;
            return Grant::Go;
        }
        Grant::Wait
    }

    /// What the thread has come to, if it has just come to it and a search wants to know.
    pub fn take_news(&mut self, me: ThreadIx) -> Option<Operation> {
        let entry = &mut self.roster[me];
        core::mem::take(&mut entry.is_news).then_some(entry.operation)
    }

    fn others_can_go(&self, me: ThreadIx) -> bool {
        self.roster.living().any(|ix| ix != me && self.roster[ix].eligible())
    }

    /// The thread goes after everybody else who can go. When all have yielded, a new round begins: whoever yields would
    /// otherwise wait for others that are passed over like itself, and by priority the same one might be taken for ever.
    fn let_others_go(&mut self, me: ThreadIx) {
        self.roster[me].yielded = true;
        if !self.roster.living_entries().any(|entry| entry.eligible() && !entry.yielded) {
            self.roster.for_each(|_, entry| entry.yielded = false);
            self.roster[me].yielded = true;
        }
    }

    /// Is this where the thread acts on having been cancelled? It runs on then, to its clean-up.
    pub(crate) fn acts_on_cancel(&mut self, me: ThreadIx, outside: &impl Outside) -> bool {
        let entry = &mut self.roster[me];
        let acts = entry.cancelled && outside.cancel_is_due(me, entry.request.kind);
        if acts {
            entry.phase = Phase::Running;
        }
        acts
    }

    pub fn is_acting(&self, me: ThreadIx) -> bool {
        self.roster[me].phase == Phase::Acting
    }

    /// The operation of this turn did not succeed.
    pub fn fail(&mut self, me: ThreadIx) {
        self.roster[me].failed = true;
    }

    /// Puts the thread's turn into the hash of all turns.
    fn note_turn(&mut self, me: ThreadIx, failed: bool, ordinal: u32) {
        let entry = &self.roster[me];
        self.turns_hash = step::turn_hash(self.turns_hash, entry.path, entry.request.kind, failed, ordinal);
    }

    /// The turn of a visible access begins, and lasts until the thread's next visible operation. There may be none: the access
    /// can crash, or decide that the program exits or computes for ever. So the caller writes its turn down now, and not when it is
    /// finished ([`Entry::is_noted`]). False: the thread was given no turn.
    pub fn begin_access(&mut self, me: ThreadIx, ordinal: u32) -> bool {
        let acts = self.is_acting(me);
        if acts {
            self.note_turn(me, false, ordinal);
            self.roster[me].noted = true;
        }
        acts
    }

    /// The thread crashes. If it does so in the middle of an operation (a lock or an atomic variable that does not exist), its turn
    /// is the last one of the run: which of its operations that is, unless it has been written down.
    pub fn note_crash(&mut self, me: ThreadIx) -> Option<u32> {
        let ordinal = self.roster[me].steps + 1;
        if !self.is_acting(me) || core::mem::replace(&mut self.roster[me].noted, true) {
            return None;
        }
        self.note_turn(me, false, ordinal);
        Some(ordinal)
    }

    /// The operation has been performed; so many has the thread done now.
    pub fn finish(&mut self, me: ThreadIx, steps: u32, outside: &impl Outside) {
        let entry = &mut self.roster[me];
        if entry.phase == Phase::Acting {
            entry.phase = Phase::Running;
        }
        entry.steps = steps;
        let failed = core::mem::take(&mut entry.failed);
        if self.strategy.is_exhaustive() {
            self.note_progress(me, failed);
        }
        if !core::mem::take(&mut self.roster[me].noted) {
            self.note_turn(me, failed, steps);
        }
        let again = self.progress.last == me;
        self.progress.run_length = if again { self.progress.run_length + 1 } else { 1 };
        if !again {
            self.courtesy.others_went();
            self.roster.for_each(|_, entry| entry.yielded = false);
        }
        self.progress.last = me;
        if self.progress.run_length > self.strategy.spin_turns_max()
            && self.courtesy.ends_long_run(self.strategy.yields())
        {
            self.let_others_go(me);
        }
        if self.replay.active() {
            return self.advance_replay(outside);
        }
        let view =
            View { roster: &self.roster, progress: self.progress, skip_yielded: false, candidate_count: 0 };
        if self.strategy.finished(&view, &mut self.tools, me) {
            self.progress.decisions += 1;
            self.chosen = ThreadIx::NOBODY;
            return;
        }
        self.choose(outside);
    }

    /// Others that wait in loops for what this operation has changed look again.
    fn note_progress(&mut self, me: ThreadIx, failed: bool) {
        let entry = &mut self.roster[me];
        let (operation, pc) = (entry.operation, entry.request.pc);
        let idle = failed || core::mem::take(&mut entry.unchanged) || operation.only_looks();
        entry.waiting_loop.finish(&operation, pc, idle);
        if !idle {
            self.roster.for_each(|ix, entry| {
                if ix != me {
                    entry.waiting_loop.hear(&operation);
                }
            });
        }
    }

    /// The operation of this turn left its object as it was.
    pub fn note_unchanged(&mut self, me: ThreadIx) {
        self.roster[me].unchanged = true;
    }

    pub fn is_exhaustive(&self) -> bool {
        self.strategy.is_exhaustive()
    }

    /// The operation would block: somebody else's turn. True when the thread has been cancelled.
    pub fn set_aside(&mut self, me: ThreadIx, timed: bool, outside: &impl Outside) -> bool {
        let entry = &self.roster[me];
        if entry.cancelled && outside.cancel_ends_waiting(me, entry.request.kind) {
            return true;
        }
        if self.replay.active() {
            // The schedule says that it completes.
            self.diverge(me, self.replay.next());
            return false;
        }
        self.roster[me].phase = if timed { Phase::AsideTimed } else { Phase::Aside };
        if !self.strategy.is_exhaustive() {
            // Otherwise others go on first: when a cycle is seen would depend on who tries what, which is no turn.
            self.check_cycle(me, outside);
        }
        if !self.is_over() {
            self.choose(outside);
        }
        false
    }

    /// A timed operation was given its turn and still would block: does it give up?
    pub fn times_out(&mut self, me: ThreadIx) -> bool {
        if self.replay.active() {
            return false;
        }
        if self.strategy.is_exhaustive() {
            // That it waits longer is the same as being chosen later.
            return true;
        }
        let others = self
            .roster
            .living()
            .filter(|&ix| ix != me)
            .any(|ix| matches!(self.roster[ix].phase, Phase::Running | Phase::Waiting));
        // Once in four: often enough to see it happen, seldom enough to see the others.
        !others || self.tools.random.draw() & 3 == 0
    }

    pub fn anybody_runs(&self) -> bool {
        self.roster.living_entries().any(|entry| entry.phase == Phase::Running)
    }

    /// Threads that were passed over and have been woken since, by a signal from another thread for one, run again: whether
    /// they have come to their next operation already is a question of time.
    fn welcome_back(&mut self, outside: &impl Outside) {
        self.roster.for_each(|ix, entry| {
            if entry.phase == Phase::Away && !entry.lost && !outside.is_asleep(ix, entry) {
                entry.phase = Phase::Running;
            }
        });
    }

    /// Chooses who is next, and wakes it if it is waiting.
    pub fn choose(&mut self, outside: &impl Outside) {
        if outside.asks_sleepers() {
            self.welcome_back(outside);
        }
        if (self.one_at_a_time || self.strategy.looks_ahead()) && self.anybody_runs() {
            // The last one to arrive chooses.
            self.chosen = ThreadIx::NOBODY;
            return;
        }
        self.progress.decisions += 1;
        match self.strategy.serve(&self.view()) {
            Served::Thread(first) => {
                self.chosen = first;
                return self.wake(first);
            }
            Served::LiesOpen => {
                self.chosen = ThreadIx::NOBODY;
                return;
            }
            Served::ByPick => {}
        }
        if self.strategy.is_exhaustive() {
            self.let_loops_go();
        }
        let skip_yielded = !self.strategy.is_bound()
            && self.roster.living_entries().any(|entry| entry.eligible() && !entry.yielded);
        let mut view =
            View { roster: &self.roster, progress: self.progress, skip_yielded, candidate_count: 0 };
        let (mut first, mut count) = (ThreadIx::NOBODY, 0);
        for ix in view.candidates() {
            if count == 0 {
                first = ix;
            }
            count += 1;
        }
        view.candidate_count = count;
        if count > 1 {
            self.progress.choices += 1;
            view.progress = self.progress;
        }
        let best = match count {
            0 => {
                self.chosen = ThreadIx::NOBODY;
                return self.nobody_can_go(outside);
            }
            1 => first,
            _ => self.strategy.pick(&view, &mut self.tools),
        };
        self.strategy.chosen(&view, &mut self.tools, best);
        if self.strategy.is_exhaustive() {
            self.roster.for_each(|ix, entry| {
                if ix != best {
                    entry.waiting_loop.stay();
                }
            });
        }
        self.chosen = best;
        self.wake(best);
    }

    /// When nobody else can go, threads that wait in loops do: a loop may be finite. Those that have made the fewest rounds in
    /// that way, unless a prefix says who: one that never ends must not keep the others from theirs.
    fn let_loops_go(&mut self) {
        if self.roster.living_entries().any(Entry::eligible) {
            return;
        }
        let waiting = self.roster.living_entries().filter(|entry| entry.waiting_loop.waits());
        let Some(fewest) = waiting.map(|entry| entry.waiting_loop.alone()).min() else { return };
        if fewest >= ENDLESS_ROUNDS {
            return self.conclude(Conclusion::Stuck);
        }
        let is_bound = self.strategy.is_bound();
        self.roster.for_each(|_, entry| {
            if is_bound || entry.waiting_loop.alone() == fewest {
                entry.waiting_loop.go_on();
            }
        });
    }

    fn nobody_can_go(&mut self, outside: &impl Outside) {
        let outside_busy = outside.expects_signal()
            || self.roster.living_entries().any(|entry| matches!(entry.phase, Phase::Away | Phase::Parked));
        let waiting = self.roster.living_entries().any(|entry| entry.phase == Phase::Aside);
        let about_to_handle = |ix| {
            let entry = &self.roster[ix];
            entry.phase == Phase::Aside && outside.is_about_to_handle(ix, entry)
        };
        if waiting && !outside_busy && self.roster.living().any(about_to_handle) {
            return;
        }
        if waiting && !outside_busy && self.strategy.is_exhaustive() {
            for at in 0..self.roster.live_count() {
                let Some(ix) = self.roster.living().nth(at) else { break };
                self.check_cycle(ix, outside);
                if self.is_over() {
                    return;
                }
            }
        }
        if waiting && !outside_busy {
            self.conclude(Conclusion::Deadlock { on_cycle: false });
        }
    }

    /// A thread that is on its way needs no waking: it comes by itself.
    pub(crate) fn wake(&mut self, ix: ThreadIx) {
        if self.roster[ix].phase != Phase::Running {
            self.effects.wake(ix);
        }
    }

    /// Who holds what this thread waits for, as far as that can be known.
    pub fn holder(&self, ix: ThreadIx, outside: &impl Outside) -> Option<ThreadIx> {
        let Request { kind, object, .. } = self.roster[ix].request;
        // The rule that the operation waits by says who could make it hold.
        match StepKind::from_u8(kind)?.demand() {
            Demand::Unlocked => {
                let tid = outside.mutex_holder(ix, object);
                self.roster.living().find(|&other| tid != 0 && self.roster[other].os_tid == tid)
            }
            Demand::Ended => {
                self.roster.living().find(|&other| join_token(self.roster[other].index) == object)
            }
            Demand::Nothing
            | Demand::Forked
            | Demand::NotWriteLocked
            | Demand::Signalled
            | Demand::RoundComplete
            | Demand::Positive
            | Demand::NotBegun
            | Demand::Initialised
            | Demand::Sent => None,
        }
    }

    /// Do threads wait for each other in a cycle that nobody else can break?
    fn check_cycle(&mut self, start: ThreadIx, outside: &impl Outside) {
        let mut at = start;
        for _ in 0..self.roster.live_count() {
            if self.roster[at].phase != Phase::Aside {
                return;
            }
            match self.holder(at, outside) {
                Some(next) if next == start => return self.conclude_cycle(start, outside),
                Some(next) => at = next,
                None => return,
            }
        }
    }

    fn conclude_cycle(&mut self, start: ThreadIx, outside: &impl Outside) {
        let mut on = start;
        loop {
            self.roster[on].on_cycle = true;
            match self.holder(on, outside) {
                Some(next) if !self.roster[next].on_cycle => on = next,
                _ => break,
            }
        }
        self.conclude(Conclusion::Deadlock { on_cycle: true });
    }

    /// The thread goes into a system call that waits for the outside world: others go on.
    pub fn leave(&mut self, me: ThreadIx, outside: &impl Outside) {
        self.roster[me].phase = Phase::Away;
        if self.replay.active() {
            self.wake_due();
        } else if self.chosen == me || self.chosen.is_nobody() {
            self.choose(outside);
        }
    }

    pub fn come_back(&mut self, me: ThreadIx) {
        self.roster[me].phase = Phase::Running;
    }

    /// A signal has arrived at a thread that waits for its turn: it is no longer waiting.
    pub fn interrupt(&mut self, me: ThreadIx) {
        let entry = &mut self.roster[me];
        if entry.phase != Phase::Acting {
            entry.phase = Phase::Running;
        }
    }

    /// The thread acts on having been cancelled where it is, and runs to its clean-up.
    pub fn strike(&mut self, ix: ThreadIx) {
        let entry = &mut self.roster[ix];
        entry.phase = Phase::Running;
        entry.cancelled = false;
    }

    /// Nobody waits for this thread any more. `lost`: although it is awake.
    pub fn pass_over(&mut self, ix: ThreadIx, lost: bool) {
        let entry = &mut self.roster[ix];
        entry.phase = Phase::Away;
        entry.lost = lost;
    }

    /// The same for all running threads of which `which` says so, and whether they are lost. True if there were any.
    pub fn pass_over_where(&mut self, mut which: impl FnMut(ThreadIx, &Entry) -> Option<bool>) -> bool {
        let mut passed = false;
        self.roster.for_each(|ix, entry| {
            if entry.phase == Phase::Running
                && let Some(lost) = which(ix, entry)
            {
                entry.phase = Phase::Away;
                entry.lost = lost;
                passed = true;
            }
        });
        passed
    }

    /// The thread's last operation; called inside its turn.
    pub fn end(&mut self, me: ThreadIx) {
        self.roster[me].phase = Phase::Ended;
        self.roster.remove(me);
        self.release(join_token(self.roster[me].index));
    }

    /// Has the thread with this number ended? It exists, because somebody asks.
    pub fn has_ended(&self, index: u32) -> bool {
        let lives = self.roster.living_entries().any(|entry| entry.index == index);
        StepKind::Join.demand().is_met(Situation::thread(true, !lives))
    }

    /// Can the turn lie open under this strategy, so that those who wait have to look for it?
    pub fn may_lie_open(&self) -> bool {
        self.strategy.may_lie_open()
    }

    /// How a waiting thread looks after an open turn; none: it does not.
    pub fn patience(&self, me: ThreadIx, looks: u32) -> Option<crate::strategy::queue::Patience> {
        if self.replay.active() { None } else { self.strategy.patience(&self.view(), me, looks) }
    }

    /// The turn may have been lying open for long enough. A thread that waits with a time limit takes it for itself if nobody
    /// is in line.
    pub fn claim(
        &mut self,
        me: ThreadIx,
        in_line: Option<crate::strategy::queue::Patience>,
        outside: &impl Outside,
    ) {
        if !self.chosen.is_nobody() || self.replay.active() {
            return;
        }
        if let Some(patience) = in_line {
            if patience.decisions == self.progress.decisions {
                self.choose(outside);
            }
        } else if self.roster[me].phase == Phase::AsideTimed
            && !matches!(self.strategy.serve(&self.view()), Served::Thread(_))
        {
            self.chosen = me;
            self.wake(me);
        }
    }
}
