//! Programs of words ([`model`]) run by the scheduler without threads.
//!
//! Each thread is a list of operations; main creates the others and joins them. Threads that run arrive in an order of the
//! machine's own choosing, which must not matter. Effects are carried out and accounted for: a thread that is woken slept,
//! nobody sleeps for ever unless the scheduler says so, and when nothing is left to do everybody has ended.

#![allow(dead_code)] // Each test takes what it needs.

pub mod hand;
pub mod model;

use model::End;
use raddle_sched::{
    AnyStrategy, Arrival, Conclusion, Detail, Entry, Grant, Note, Operation as Visible, Outside, Phase,
    Replay, Request, Sched, Settings, Tables, ThreadIx, dependence, join_token,
};
use raddle_wire::step::{self, StepWord};

/// Addresses of the objects that the letters stand for.
pub const VARIABLES: usize = 0x1000;
pub const MUTEXES: usize = 0x2000;
pub const NOTES: usize = 0x3000;
pub const OWN: usize = 0x4000;
pub const CONDITION: usize = 0x5000;
pub const BARRIER: usize = 0x6000;

pub const MAIN_PATH: u64 = 77;

pub fn path_of(thread: usize) -> u64 {
    if thread == 0 { MAIN_PATH } else { step::child_hash(MAIN_PATH, thread as u32) }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Fork(usize),
    Join(usize),
    Start,
    Letter(char),
    End,
}

/// The world around the scheduler: who holds which mutex, by kernel id.
#[derive(Default)]
struct World {
    holders: [u32; 2],
}

impl Outside for World {
    fn is_asleep(&self, _: ThreadIx, _: &Entry) -> bool {
        false
    }
    fn mutex_holder(&self, _: ThreadIx, mutex: usize) -> u32 {
        self.holders[mutex - MUTEXES]
    }
    fn cancel_is_due(&self, _: ThreadIx, _: u8) -> bool {
        false
    }
    fn cancel_ends_waiting(&self, _: ThreadIx, _: u8) -> bool {
        false
    }
    fn expects_signal(&self) -> bool {
        false
    }
    fn asks_sleepers(&self) -> bool {
        false
    }
}

/// What the run does: free under a strategy, or along a schedule.
pub struct Plan<'a> {
    pub seed: u64,
    /// Decides the order of arrivals.
    pub arrivals: u64,
    pub strategy: AnyStrategy<'a>,
    pub one_at_a_time: bool,
    pub schedule: Option<&'a [u64]>,
}

impl<'a> Plan<'a> {
    pub fn new(seed: u64, strategy: AnyStrategy<'a>) -> Plan<'a> {
        Plan { seed, arrivals: seed, strategy, one_at_a_time: false, schedule: None }
    }
}

/// The place of a thread's n-th operation in its code, from 1.
pub fn pc_of(thread: usize, operation: usize) -> u64 {
    (thread * 0x100 + operation) as u64
}

/// A load, by its place, and the place of the store whose value it saw; 0: there was none before it.
pub type Read = (u64, u64);

/// What a run came to.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub end: Option<End>,
    pub conclusion: Option<Conclusion>,
    pub turns: Vec<StepWord>,
    /// What each turn did.
    pub operations: Vec<Visible>,
    pub reads: Vec<Read>,
    pub hash: u64,
    pub decisions: u64,
}

impl Outcome {
    /// The thread of each turn.
    pub fn order(&self) -> Vec<usize> {
        self.turns.iter().map(|turn| usize::from(turn.thread)).collect()
    }

    /// What was written down, or how the run ended otherwise.
    pub fn note(&self) -> String {
        match &self.end {
            Some(End::Prints(text)) => text.split_whitespace().nth_back(0).unwrap_or_default().to_owned(),
            Some(End::Deadlock) => "deadlock".to_owned(),
            None => format!("{:?}", self.conclusion),
        }
    }
}

struct Thread {
    operations: Vec<Operation>,
    at: usize,
    /// Turns that it has had.
    steps: u32,
    register: i32,
    /// The round of the barrier that it entered.
    generation: u32,
    exists: bool,
    asleep: bool,
    ended: bool,
}

pub struct Machine<'a, 't> {
    sched: Sched<'t>,
    world: World,
    threads: Vec<Thread>,
    variables: [i32; 4],
    /// The place of the last store to each.
    stored: [u64; 4],
    notes: String,
    turns: Vec<StepWord>,
    operations: Vec<Visible>,
    reads: Vec<Read>,
    words: &'a [&'a str],
}

/// What became of an operation that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tried {
    Done,
    /// A wait that gave up.
    Failed,
    /// It would block.
    Blocks {
        timed: bool,
    },
}

/// Memory for a run.
pub struct Room {
    entries: Vec<Entry>,
    living: Vec<ThreadIx>,
    notes: Vec<Note>,
}

impl Room {
    pub fn new(threads: usize) -> Room {
        Room {
            entries: (0..threads).map(|_| Entry::FREE).collect(),
            living: vec![ThreadIx::NOBODY; threads],
            notes: vec![Note::EMPTY; threads],
        }
    }

    pub fn tables(&mut self) -> Tables<'_> {
        Tables { entries: &mut self.entries, living: &mut self.living, notes: &mut self.notes }
    }
}

/// Runs a program of words to its end.
pub fn run(words: &[&str], plan: Plan<'_>) -> Outcome {
    let mut room = Room::new(words.len() + 1);
    let mut machine = Machine {
        sched: Sched::idle(),
        world: World::default(),
        threads: (0..=words.len())
            .map(|thread| Thread {
                operations: operations(words, thread),
                at: 0,
                steps: 0,
                register: 0,
                generation: 0,
                exists: thread == 0,
                asleep: false,
                ended: false,
            })
            .collect(),
        variables: [0; 4],
        stored: [0; 4],
        notes: String::new(),
        turns: Vec::new(),
        operations: Vec::new(),
        reads: Vec::new(),
        words,
    };
    if let Some(schedule) = plan.schedule {
        machine.sched.replay = Replay::load(schedule, |_| 0, |_| {}).expect("the schedule is whole");
    }
    let settings = Settings { seed: plan.seed, strategy: plan.strategy, one_at_a_time: plan.one_at_a_time };
    machine.sched.start(room.tables(), settings);
    machine.sched.barrier_init(BARRIER, model::barrier_count(words) as u32);
    machine.register(0);
    machine.go(plan.arrivals)
}

fn operations(words: &[&str], thread: usize) -> Vec<Operation> {
    if thread == 0 {
        let forks = (1..=words.len()).map(Operation::Fork);
        return forks.chain((1..=words.len()).map(Operation::Join)).collect();
    }
    let letters = words[thread - 1].chars().map(Operation::Letter);
    [Operation::Start].into_iter().chain(letters).chain([Operation::End]).collect()
}

impl Machine<'_, '_> {
    fn register(&mut self, thread: usize) {
        let ix = self.sched.register(thread as u32, path_of(thread)).expect("there is room");
        assert_eq!(ix.at(), thread, "threads are registered in order of creation");
        self.sched.set_os_tid(ix, thread as u32 + 1);
        self.threads[thread].exists = true;
    }

    fn request(&self, thread: usize) -> Request {
        let (kind, object) = match self.threads[thread].operations[self.threads[thread].at] {
            Operation::Fork(_) => (step::FORK, 0),
            Operation::Join(other) => (step::JOIN, join_token(other as u32)),
            Operation::Start => (step::START, 0),
            Operation::End => (step::END, 0),
            Operation::Letter(letter) => match letter {
                'l' => (step::LOCK, MUTEXES),
                'm' => (step::LOCK, MUTEXES + 1),
                'u' => (step::UNLOCK, MUTEXES),
                'v' => (step::UNLOCK, MUTEXES + 1),
                'x' => (step::RMW, OWN + thread),
                'o' => (step::RMW, NOTES),
                'p' => (step::WAIT, CONDITION),
                'q' | 'y' => (step::WAKE, CONDITION),
                's' => (step::SIGNAL, CONDITION),
                't' => (step::BROADCAST, CONDITION),
                'e' => (step::BARRIER_ENTER, BARRIER),
                'f' => (step::BARRIER_EXIT, BARRIER),
                'w' => (step::LOAD, VARIABLES),
                'a'..='d' => (step::LOAD, VARIABLES + letter as usize - 'a' as usize),
                _ => (step::STORE, VARIABLES + letter as usize - 'A' as usize),
            },
        };
        Request { kind, object, pc: pc_of(thread, self.threads[thread].at + 1) }
    }

    /// What else is known about the operation.
    fn detail(&self, thread: usize) -> Detail {
        match self.threads[thread].operations[self.threads[thread].at] {
            Operation::Letter('y') => Detail { flags: dependence::GIVES_UP, ..Detail::NONE },
            // Waits have mutexes of their own.
            Operation::Letter('p') => Detail { second: (OWN + thread) as u64, ..Detail::NONE },
            _ => Detail::NONE,
        }
    }

    /// Everybody who runs arrives, in any order, until nobody does.
    fn go(mut self, arrivals: u64) -> Outcome {
        let mut order = raddle_sched::Random::new(arrivals);
        loop {
            let awake: Vec<usize> = (0..self.threads.len())
                .filter(|&t| {
                    let thread = &self.threads[t];
                    thread.exists && !thread.asleep && !thread.ended && thread.at < thread.operations.len()
                })
                .collect();
            if awake.is_empty() || self.sched.effects.conclusion().is_some() {
                return self.outcome();
            }
            let thread = awake[order.below(awake.len())];
            self.arrive(thread);
            self.carry_out();
        }
    }

    fn arrive(&mut self, thread: usize) {
        let me = ThreadIx(thread as u32);
        let steps = self.threads[thread].steps;
        let (request, detail) = (self.request(thread), self.detail(thread));
        let is_new =
            !matches!(self.sched.roster[me].phase(), Phase::Waiting | Phase::Aside | Phase::AsideTimed);
        let grant =
            self.sched.arrive(me, Arrival { request, steps, detail, yields: &mut false }, &self.world);
        let news = self.sched.take_news(me);
        assert_eq!(news.is_some(), is_new && self.sched.is_exhaustive(), "a search is told once");
        assert!(news.is_none_or(|operation| operation == self.sched.roster[me].operation));
        self.threads[thread].asleep = grant == Grant::Wait;
        self.carry_out();
        let tried = match grant {
            Grant::Go => self.perform(thread),
            Grant::Fail => self.give_up(thread),
            Grant::Wait => return,
            other => panic!("nobody asked for {other:?}"),
        };
        match tried {
            Tried::Done | Tried::Failed => self.finish(thread, tried == Tried::Failed),
            Tried::Blocks { timed } => assert!(!self.sched.set_aside(me, timed, &self.world)),
        }
    }

    fn finish(&mut self, thread: usize, failed: bool) {
        let me = ThreadIx(thread as u32);
        assert!(matches!(self.sched.roster[me].phase(), Phase::Acting | Phase::Ended));
        self.threads[thread].steps += 1;
        let ordinal = self.threads[thread].steps;
        let kind = self.sched.roster[me].request.kind;
        self.turns.push(StepWord { thread: thread as u16, kind, failed, ordinal });
        self.operations.push(self.sched.roster[me].operation);
        if failed {
            self.sched.fail(me);
        }
        let ended = self.threads[thread].ended;
        self.sched.finish(me, ordinal, &self.world);
        assert_eq!(ended, self.sched.has_ended(thread as u32));
    }

    /// Does what the scheduler wants done.
    fn carry_out(&mut self) {
        for ix in self.sched.effects.take_wakes() {
            assert!(
                self.threads[ix.at()].exists && !self.threads[ix.at()].ended,
                "a thread is woken that is none"
            );
            self.threads[ix.at()].asleep = false;
        }
    }

    /// Performs the thread's operation.
    fn perform(&mut self, thread: usize) -> Tried {
        const BLOCKS: Tried = Tried::Blocks { timed: false };
        let me = ThreadIx(thread as u32);
        let operation = self.threads[thread].operations[self.threads[thread].at];
        match operation {
            Operation::Fork(other) => {
                self.register(other);
                self.sched.born(me, ThreadIx(other as u32));
            }
            Operation::Join(other) if !self.sched.has_ended(other as u32) => return BLOCKS,
            Operation::Join(_) | Operation::Start => {}
            Operation::End => {
                self.sched.end(me);
                self.threads[thread].ended = true;
            }
            Operation::Letter(letter) => {
                let os_tid = thread as u32 + 1;
                match letter {
                    'l' | 'm' => {
                        let holder = &mut self.world.holders[usize::from(letter == 'm')];
                        if *holder != 0 {
                            return BLOCKS;
                        }
                        *holder = os_tid;
                    }
                    'u' | 'v' => {
                        let mutex = usize::from(letter == 'v');
                        assert_eq!(self.world.holders[mutex], os_tid, "who unlocks holds");
                        self.world.holders[mutex] = 0;
                        self.sched.release(MUTEXES + mutex);
                    }
                    'p' => self.sched.begin_wait(me, CONDITION),
                    'q' if !self.sched.signalled(me, false) => return BLOCKS,
                    'y' if !self.sched.signalled(me, false) => {
                        if !self.sched.times_out(me) {
                            return Tried::Blocks { timed: true };
                        }
                        return self.give_up(thread);
                    }
                    'q' | 'y' => {}
                    's' => assert!(self.sched.signal(CONDITION, 1) <= 1),
                    't' => assert!(self.sched.signal(CONDITION, usize::MAX) <= self.words.len()),
                    'e' => self.threads[thread].generation = self.sched.arrive_barrier(BARRIER).0,
                    'f' if !self.sched.barrier_passed(BARRIER, self.threads[thread].generation) => {
                        return BLOCKS;
                    }
                    'f' => {}
                    // Another round of the loop: a turn, and the same operation again.
                    'w' if self.variables[0] == 0 => return Tried::Done,
                    'w' => {}
                    'o' => self.notes.push_str(&thread.to_string()),
                    'x' => {}
                    'a'..='d' => {
                        let variable = letter as usize - 'a' as usize;
                        self.threads[thread].register = self.variables[variable];
                        self.reads.push((self.sched.roster[me].request.pc, self.stored[variable]));
                    }
                    _ => {
                        let variable = letter as usize - 'A' as usize;
                        self.variables[variable] = self.threads[thread].register + 1;
                        self.stored[variable] = self.sched.roster[me].request.pc;
                    }
                }
            }
        }
        self.threads[thread].at += 1;
        Tried::Done
    }

    /// The thread's wait ends without a signal.
    fn give_up(&mut self, thread: usize) -> Tried {
        assert!(
            !self.sched.signalled(ThreadIx(thread as u32), true),
            "who has been signalled does not give up"
        );
        self.threads[thread].register = model::GAVE_UP;
        self.threads[thread].at += 1;
        Tried::Failed
    }

    fn outcome(mut self) -> Outcome {
        assert_eq!(self.sched.effects.take_wakes().count(), 0, "every effect has been carried out");
        let conclusion = self.sched.effects.conclusion();
        let end = match conclusion {
            // Somebody waits for ever, asleep or in a loop.
            Some(Conclusion::Deadlock { .. } | Conclusion::Stuck) => Some(End::Deadlock),
            Some(_) => None,
            None => {
                let over = self.threads.iter().all(|thread| thread.at == thread.operations.len());
                assert!(over, "somebody sleeps and the scheduler does not say so");
                let registers = self.threads[1..].iter().map(|thread| thread.register);
                let numbers: Vec<String> =
                    self.variables.iter().copied().chain(registers).map(|n| n.to_string()).collect();
                Some(End::Prints(format!("{} {}\n", numbers.join(" "), self.notes)))
            }
        };
        Outcome {
            end,
            conclusion,
            turns: self.turns,
            operations: self.operations,
            reads: self.reads,
            hash: self.sched.turns_hash(),
            decisions: self.sched.progress().decisions,
        }
    }
}

/// A schedule of these turns, in its binary form, and stop points: thread, after so many operations, address.
pub fn schedule(threads: usize, turns: &[StepWord], stops: &[(usize, u32, usize)]) -> Vec<u64> {
    let mut words = vec![threads as u64, turns.len() as u64, stops.len() as u64, 0, 0, 0];
    words.extend((0..threads).map(path_of));
    words.extend(turns.iter().map(|turn| turn.pack()));
    for &(thread, after, address) in stops {
        words.extend([thread as u64, u64::from(after), 1, step::PLACE_OBJECT, address as u64, 0]);
    }
    words
}
