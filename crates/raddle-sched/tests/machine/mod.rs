//! Programs of words (`crates/raddle/tests/steering/threads.c`) run by the scheduler without threads.
//!
//! Each thread is a list of operations; main creates the others and joins them. Threads that run arrive in an order of the
//! machine's own choosing, which must not matter. Effects are carried out and accounted for: a thread that is woken slept,
//! nobody sleeps for ever unless the scheduler says so, and when nothing is left to do everybody has ended.

#![allow(dead_code)] // Each test takes what it needs.

pub mod model;

use model::End;
use raddle_sched::{
    AnyStrategy, Arrival, Conclusion, Detail, Entry, Grant, Note, Outside, Phase, Replay, Request, Sched,
    Settings, Tables, ThreadIx, join_token,
};
use raddle_wire::step::{self, StepWord};

/// Addresses of the objects that the letters stand for.
pub const VARIABLES: usize = 0x1000;
pub const MUTEXES: usize = 0x2000;
pub const NOTES: usize = 0x3000;
pub const OWN: usize = 0x4000;

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
    fn mutex_holder(&self, mutex: usize) -> u32 {
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

/// What a run came to.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    pub end: Option<End>,
    pub conclusion: Option<Conclusion>,
    pub turns: Vec<StepWord>,
    pub hash: u64,
    pub decisions: u64,
}

impl Outcome {
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
    register: i32,
    exists: bool,
    asleep: bool,
    ended: bool,
}

pub struct Machine<'a, 't> {
    sched: Sched<'t>,
    world: World,
    threads: Vec<Thread>,
    variables: [i32; 4],
    notes: String,
    turns: Vec<StepWord>,
    words: &'a [&'a str],
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
                register: 0,
                exists: thread == 0,
                asleep: false,
                ended: false,
            })
            .collect(),
        variables: [0; 4],
        notes: String::new(),
        turns: Vec::new(),
        words,
    };
    if let Some(schedule) = plan.schedule {
        machine.sched.replay = Replay::load(schedule, |_| 0, |_| {}).expect("the schedule is whole");
    }
    let settings = Settings { seed: plan.seed, strategy: plan.strategy, one_at_a_time: plan.one_at_a_time };
    machine.sched.start(room.tables(), settings);
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
                'a'..='d' => (step::LOAD, VARIABLES + letter as usize - 'a' as usize),
                _ => (step::STORE, VARIABLES + letter as usize - 'A' as usize),
            },
        };
        Request { kind, object, pc: thread as u64 }
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
        let steps = self.threads[thread].at as u32;
        let arrival =
            Arrival { request: self.request(thread), steps, detail: Detail::NONE, yields: &mut false };
        let grant = self.sched.arrive(me, arrival, &self.world);
        self.threads[thread].asleep = grant == Grant::Wait;
        self.carry_out();
        match grant {
            Grant::Go => {
                assert_eq!(self.sched.roster[me].phase(), Phase::Acting);
                if self.perform(thread) {
                    let ended = self.threads[thread].ended;
                    let steps = self.threads[thread].at as u32;
                    let request = self.sched.roster[me].request;
                    let word =
                        StepWord { thread: thread as u16, kind: request.kind, failed: false, ordinal: steps };
                    self.turns.push(word);
                    self.sched.finish(me, steps, &self.world);
                    assert_eq!(ended, self.sched.has_ended(thread as u32));
                } else {
                    assert!(!self.sched.set_aside(me, false, &self.world));
                }
            }
            Grant::Wait => {}
            other => panic!("nobody asked for {other:?}"),
        }
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

    /// Performs the thread's operation; false if it would block.
    fn perform(&mut self, thread: usize) -> bool {
        let operation = self.threads[thread].operations[self.threads[thread].at];
        match operation {
            Operation::Fork(other) => {
                self.register(other);
                self.sched.born(ThreadIx(thread as u32), ThreadIx(other as u32));
            }
            Operation::Join(other) if !self.sched.has_ended(other as u32) => return false,
            Operation::Join(_) | Operation::Start => {}
            Operation::End => {
                self.sched.end(ThreadIx(thread as u32));
                self.threads[thread].ended = true;
            }
            Operation::Letter(letter) => {
                let me = thread as u32 + 1;
                match letter {
                    'l' | 'm' => {
                        let holder = &mut self.world.holders[usize::from(letter == 'm')];
                        if *holder != 0 {
                            return false;
                        }
                        *holder = me;
                    }
                    'u' | 'v' => {
                        let mutex = usize::from(letter == 'v');
                        assert_eq!(self.world.holders[mutex], me, "who unlocks holds");
                        self.world.holders[mutex] = 0;
                        self.sched.release(MUTEXES + mutex);
                    }
                    'o' => self.notes.push_str(&thread.to_string()),
                    'x' => {}
                    'a'..='d' => {
                        self.threads[thread].register = self.variables[letter as usize - 'a' as usize]
                    }
                    _ => self.variables[letter as usize - 'A' as usize] = self.threads[thread].register + 1,
                }
            }
        }
        self.threads[thread].at += 1;
        true
    }

    fn outcome(mut self) -> Outcome {
        assert_eq!(self.sched.effects.take_wakes().count(), 0, "every effect has been carried out");
        let conclusion = self.sched.effects.conclusion();
        let end = match conclusion {
            Some(Conclusion::Deadlock { .. }) => Some(End::Deadlock),
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
