//! A machine that executes litmus tests on clocks, cells and buffers, in every way that the scheduler and the choice among
//! stores allow.
//!
//! An execution is a list of choices. The next one is made by changing the last choice that has an alternative, and doing
//! everything again: the machine keeps nothing from one execution to the next but the epochs of its slots, which only
//! grow, so that what an earlier execution left behind is known to everybody.

use crate::common::Heap;
use crate::program::{Order, Program, Statement};
use raddle_hb::cell::{Cell, EPOCH_MAX, READ};
use raddle_hb::race;
use raddle_hb::release_sequence::Effect;
use raddle_hb::weak::{Performer, Wish};
use raddle_hb::{Clock, Domain, Location, MemoryOrder, Segment, ThreadClocks};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Found {
    pub printed: BTreeSet<String>,
    pub races: bool,
    pub executions: u64,
}

fn order_of(order: Order) -> MemoryOrder {
    match order {
        Order::Relaxed => MemoryOrder::Relaxed,
        Order::Acquire => MemoryOrder::Acquire,
        Order::Release => MemoryOrder::Release,
        Order::AcqRel => MemoryOrder::AcqRel,
        Order::SeqCst => MemoryOrder::SeqCst,
    }
}

/// Choices made so far, each with the number of alternatives.
#[derive(Default)]
struct Choices {
    made: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    fn choose(&mut self, count: usize) -> usize {
        if self.at == self.made.len() {
            self.made.push((0, count));
        }
        let (chosen, known) = self.made[self.at];
        assert_eq!(known, count, "the same choices lead to the same place");
        self.at += 1;
        chosen
    }

    /// Goes to the next list of choices; false when there is none.
    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((chosen, count)) = self.made.pop() {
            if chosen + 1 < count {
                self.made.push((chosen + 1, count));
                return true;
            }
        }
        false
    }
}

struct Thread {
    clocks: Box<ThreadClocks>,
    segment: Segment,
}

struct Atomic {
    location: Location,
    memory: u64,
}

struct Machine<'d> {
    domain: &'d Domain<Heap>,
    threads: Vec<Thread>,
    atomics: BTreeMap<String, Atomic>,
    plain: BTreeMap<String, (Cell, i64)>,
    registers: BTreeMap<String, i64>,
    races: bool,
}

pub fn explore(program: &Program) -> Found {
    let mut found = Found::default();
    let mut choices = Choices::default();
    let count = program.threads.len() + 1;
    let mut domain = Domain::new();
    let mut epochs = vec![0; count];
    loop {
        // Room for an execution: every statement may begin a segment.
        if epochs.iter().any(|&epoch| u32::from(epoch) + 64 > EPOCH_MAX) {
            domain = Domain::new();
            epochs = vec![0; count];
        }
        let mut machine = Machine::new(&domain, &epochs);
        let line = machine.run(program, &mut choices);
        found.races |= machine.races;
        found.printed.insert(line);
        found.executions += 1;
        epochs = machine.threads.iter().map(|thread| thread.segment.epoch).collect();
        for atomic in machine.atomics.values_mut() {
            atomic.location.clear(&domain);
        }
        if !choices.advance() {
            return found;
        }
    }
}

impl<'d> Machine<'d> {
    /// The last thread is the one that starts and joins the others.
    fn new(domain: &'d Domain<Heap>, epochs: &[u16]) -> Machine<'d> {
        let threads = (0..epochs.len())
            .map(|ix| {
                let mut clocks = Box::new(ThreadClocks::EMPTY);
                for (other, &epoch) in epochs.iter().enumerate() {
                    clocks.clock.set(&domain.generations, other as u8 + 1, epoch);
                }
                let segment = Segment { slot: ix as u8 + 1, epoch: epochs[ix] + 1 };
                clocks.enter(segment);
                Thread { clocks, segment }
            })
            .collect();
        Machine {
            domain,
            threads,
            atomics: BTreeMap::new(),
            plain: BTreeMap::new(),
            registers: BTreeMap::new(),
            races: false,
        }
    }

    fn run(&mut self, program: &Program, choices: &mut Choices) -> String {
        let mut left: Vec<Vec<Statement>> =
            program.threads.iter().map(|thread| thread.iter().rev().cloned().collect()).collect();
        loop {
            let ready: Vec<usize> = (0..left.len()).filter(|&ix| !left[ix].is_empty()).collect();
            let who = match ready.len() {
                0 => break,
                1 => ready[0],
                count => ready[choices.choose(count)],
            };
            let statement = left[who].pop().unwrap();
            let then = self.execute(who, &statement, choices);
            left[who].extend(then.into_iter().rev());
        }
        let main = self.threads.len() - 1;
        for ix in 0..main {
            let [ended, joiner] = self.threads.get_disjoint_mut([ix, main]).unwrap();
            joiner.clocks.clock.join(&self.domain.generations, &mut ended.clocks.clock);
        }
        for statement in &program.at_end {
            self.execute(main, statement, choices);
        }
        let value = |register: &String| self.registers.get(register).copied().unwrap_or(0).to_string();
        program.printed.iter().map(value).collect::<Vec<_>>().join(" ")
    }

    /// Executes a statement; the result is what has to be done next.
    fn execute(&mut self, who: usize, statement: &Statement, choices: &mut Choices) -> Vec<Statement> {
        match statement {
            Statement::Load { register, location, order } => {
                let read = self.atomic(who, location, Wish::Load, *order, choices, |_| None);
                self.registers.insert(register.clone(), read);
            }
            Statement::Store { location, value, order } => {
                self.atomic(who, location, Wish::Store, *order, choices, |_| Some((*value, *order)));
            }
            Statement::Add { register, location, amount, order } => {
                let added = |found: i64| Some((found + amount, *order));
                let read = self.atomic(who, location, Wish::Update, *order, choices, added);
                if let Some(register) = register {
                    self.registers.insert(register.clone(), read);
                }
            }
            Statement::Exchange { register, location, expected, value, success, failure } => {
                let wish = Wish::Exchange { expected: *expected as u64, failure: order_of(*failure) };
                let swapped = |found: i64| (found == *expected).then_some((*value, *success));
                let read = self.atomic(who, location, wish, *success, choices, swapped);
                self.registers.insert(register.clone(), read);
            }
            Statement::Fence(order) => {
                let Thread { clocks, segment } = &mut self.threads[who];
                clocks.fence(self.domain, *segment, order_of(*order), true);
                self.begin_segment(who, *order);
            }
            Statement::PlainRead { register, location } => {
                let value = self.plain(who, location, None);
                if let Some(register) = register {
                    self.registers.insert(register.clone(), value);
                }
            }
            Statement::PlainWrite { location, value } => {
                self.plain(who, location, Some(*value));
            }
            Statement::If { register, value, then } => {
                let found = self.registers.get(register).copied().unwrap_or(0);
                if value.map_or(found != 0, |value| found == value) {
                    return then.clone();
                }
            }
        }
        Vec::new()
    }

    fn begin_segment(&mut self, who: usize, order: Order) {
        if order.releases() {
            let Thread { clocks, segment } = &mut self.threads[who];
            *segment = segment.next().unwrap();
            clocks.enter(*segment);
        }
    }

    /// An atomic operation: `written` says what it stores, and with which order, after it has read.
    fn atomic(
        &mut self,
        who: usize,
        name: &str,
        wish: Wish,
        order: Order,
        choices: &mut Choices,
        written: impl Fn(i64) -> Option<(i64, Order)>,
    ) -> i64 {
        let fresh = || Atomic { location: Location::NONE, memory: 0 };
        let Atomic { location, memory } = self.atomics.entry(name.to_owned()).or_insert_with(fresh);
        let Thread { clocks, segment } = &mut self.threads[who];
        let mut performer = Performer { clocks, segment: *segment, thread: who as u32 };
        let mut chosen = location
            .choose(self.domain, &mut performer, (*memory, 2), wish, order_of(order), |count| {
                choices.choose(count)
            })
            .expect("there is memory");
        let older = chosen.older_value();
        let read = older.unwrap_or(*memory) as i64;
        let stored = written(read);
        let effect = match (wish, stored) {
            (_, None) => Effect::Load,
            (Wish::Store, Some(_)) => Effect::Store,
            (_, Some(_)) => Effect::Update,
        };
        // A compare-exchange that fails has the other order.
        let order = match (wish, stored) {
            (_, Some((_, order))) => order_of(order),
            (Wish::Exchange { failure, .. }, None) => failure,
            (_, None) => order_of(order),
        };
        if effect != Effect::Store {
            chosen.read(self.domain, performer.clocks, order);
        }
        match stored {
            None => chosen.note_reader(self.domain, performer.segment),
            Some((value, _)) => {
                chosen.write(self.domain, &mut performer, value as u64, effect, order);
                if older.is_none() {
                    *memory = value as u64;
                }
            }
        }
        if let Some((_, order)) = stored {
            self.begin_segment(who, order);
        }
        read
    }

    fn plain(&mut self, who: usize, name: &str, written: Option<i64>) -> i64 {
        let (cell, value) = self.plain.entry(name.to_owned()).or_insert_with(|| (Cell::new(), 0));
        let read = if written.is_none() { READ } else { 0 };
        let Thread { clocks, segment } = &self.threads[who];
        let clock: &Clock = &clocks.clock;
        let entry = segment.name() | 0x0f | read;
        let mut look = race::look(clock, cell, entry, || 0);
        if look.place != race::REDUNDANT {
            race::put(clock, cell, entry, &mut look, || 0);
        }
        self.races |= look.race != 0;
        let found = *value;
        *value = written.unwrap_or(found);
        found
    }
}
