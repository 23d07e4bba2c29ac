//! Sequences of calls of a module, and how those of different threads lie to each other: what contracts are checked by.
//!
//! An *instance* of a sequence is a row of calls of one thread. It lasts from the entry of its first call to the return of its last
//! one. Calls inside a call of the same sequence's names are part of that one (a `get` that calls `contains` is one call), and a call
//! of its names that does not go on with a sequence breaks it, unless its values say that it is about something else.
//!
//! An instance of a spoiler can run as a whole inside an instance of a target unless its beginning is before the target's beginning,
//! or the target's end before its end. Because an instance lasts for the whole of its calls, locks that a call takes and gives
//! back inside do not order it with another call: only what the clients do around their calls does. Where an announced call is a
//! moment, it depends on where that moment is.
//!
//! Three answers are computed for each pair ([`Encounter`]): the order by all synchronisation of this run; the order without
//! locks, which another run may take in another order; and whether one lock that the target holds all the time is needed by the spoiler.

use crate::calls::{CallPlaces, CallTracker, Edge, NameIx, Texts, Told, Value};
use crate::clock::Clock;
use crate::contract::{Call, Contract, Sequence};
use crate::happens_before::HappensBefore;
use crate::race::Site;
use crate::step::{Held, HeldLocks, LockIx, Step, Sync};
use raddle_trace::{Event, Op, Tables, ThreadIx};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Instances kept of a sequence in a thread.
pub const WINDOW: usize = 64;

/// Begun sequences kept in a thread: more are begun only with many different values.
pub const BEGUN_MAX: usize = 1024;

/// Time and knowledge of a thread, by an order.
#[derive(Clone, Debug)]
struct Knowledge {
    time: u32,
    clock: Clock,
}

impl Knowledge {
    fn of(order: &HappensBefore, slot: ThreadIx) -> Knowledge {
        Knowledge { time: order.now(slot), clock: order.clock(slot).clone() }
    }
}

/// The beginning or the end of a call.
#[derive(Clone, Debug)]
struct Moment {
    site: Site,
    slot: ThreadIx,
    /// Column in the order without locks.
    hard_slot: ThreadIx,
    order: Knowledge,
    hard: Knowledge,
    held: HeldLocks,
    /// The next event, of all threads.
    position: u64,
}

/// What the parameters of a sequence stand for.
type Binding = Vec<(String, Value)>;

fn bind(binding: &Binding, call: &Call, values: &[Value]) -> Option<Binding> {
    let mut binding = binding.clone();
    for (parameter, value) in call.parameters.iter().zip(values) {
        let Some(parameter) = parameter else { continue };
        match binding.iter().find(|(name, _)| name == parameter) {
            Some((_, bound)) if bound != value => return None,
            Some(_) => {}
            None => binding.push((parameter.clone(), value.clone())),
        }
    }
    Some(binding)
}

fn compatible(a: &Binding, b: &Binding) -> bool {
    a.iter().all(|(name, value)| b.iter().all(|(other, bound)| name != other || value == bound))
}

/// A row of calls that is complete.
#[derive(Clone, Debug)]
pub struct Instance {
    pub thread: ThreadIx,
    binding: Binding,
    first: Rc<Moment>,
    last: Rc<Moment>,
    /// Locks held from the first entry to the last return, with their mode.
    guards: Vec<(LockIx, bool)>,
    /// Locks held somewhere in between.
    needs: Vec<(LockIx, bool)>,
}

impl Instance {
    pub fn begins(&self) -> Site {
        self.first.site
    }

    pub fn ends(&self) -> Site {
        self.last.site
    }

    /// What the parameters stand for.
    pub fn values(&self) -> impl Iterator<Item = &str> {
        self.binding.iter().map(|(_, value)| &**value)
    }
}

/// A sequence of which a part was called.
#[derive(Clone, Debug)]
struct Begun {
    next: usize,
    binding: Binding,
    first: Rc<Moment>,
}

/// A call that goes on.
#[derive(Clone, Debug)]
struct Open {
    names: Vec<NameIx>,
    values: Vec<Value>,
    entry: Rc<Moment>,
}

/// What one thread does of one sequence.
#[derive(Clone, Debug, Default)]
struct Actor {
    open: Option<Open>,
    begun: Vec<Begun>,
    instances: VecDeque<Instance>,
}

/// Matches one sequence in all threads.
#[derive(Clone, Debug)]
struct Matcher {
    sequence: Sequence,
    /// Names of its calls, in their order.
    names: Vec<NameIx>,
    actors: Vec<Actor>,
}

impl Matcher {
    fn entry(&mut self, name: NameIx, values: &[Value], moment: &Rc<Moment>) {
        if !self.names.contains(&name) {
            return;
        }
        let thread = moment.site.thread.index();
        if self.actors.len() <= thread {
            self.actors.resize(thread + 1, Actor::default());
        }
        match &mut self.actors[thread].open {
            Some(open) => open.names.push(name),
            none => *none = Some(Open { names: vec![name], values: values.to_vec(), entry: moment.clone() }),
        }
    }

    /// A return; hands out first and last moment and the binding of the instance that it completes.
    fn returns(
        &mut self,
        name: NameIx,
        values: &[Value],
        moment: &Rc<Moment>,
    ) -> Option<(Binding, Rc<Moment>, Rc<Moment>)> {
        let actor = self.actors.get_mut(moment.site.thread.index())?;
        let open = actor.open.as_mut()?;
        // Calls that did not return before their caller did are over with it.
        let place = open.names.iter().rposition(|&called| called == name)?;
        open.names.truncate(place);
        if !open.names.is_empty() {
            return None;
        }
        let mut open = actor.open.take()?;
        open.values.extend_from_slice(values);
        let done = self.call(name, &open.values, &open.entry);
        done.map(|(binding, first)| (binding, first, moment.clone()))
    }

    /// A call has ended: sequences go on, begin, or break.
    fn call(&mut self, name: NameIx, values: &[Value], entry: &Rc<Moment>) -> Option<(Binding, Rc<Moment>)> {
        let actor = &mut self.actors[entry.site.thread.index()];
        let mut done = None;
        let mut kept = Vec::with_capacity(actor.begun.len() + 1);
        for mut begun in actor.begun.drain(..) {
            let goes_on = (self.names[begun.next] == name)
                .then(|| bind(&begun.binding, &self.sequence[begun.next], values))
                .flatten();
            if let Some(binding) = goes_on {
                begun.next += 1;
                begun.binding = binding;
                if begun.next == self.sequence.len() {
                    done = Some((begun.binding, begun.first));
                } else {
                    kept.push(begun);
                }
                continue;
            }
            let concerns = self
                .sequence
                .iter()
                .zip(&self.names)
                .any(|(call, own)| *own == name && bind(&begun.binding, call, values).is_some());
            if !concerns {
                kept.push(begun);
            }
        }
        if self.names[0] == name
            && let Some(binding) = bind(&Binding::new(), &self.sequence[0], values)
        {
            if self.sequence.len() == 1 {
                done = Some((binding, entry.clone()));
            } else {
                kept.push(Begun { next: 1, binding, first: entry.clone() });
            }
        }
        let many = kept.len().saturating_sub(BEGUN_MAX);
        kept.drain(..many);
        actor.begun = kept;
        done
    }

    fn keep(&mut self, instance: Instance) {
        let window = &mut self.actors[instance.thread.index()].instances;
        if window.len() == WINDOW {
            window.pop_front();
        }
        window.push_back(instance);
    }

    fn others(&self, thread: ThreadIx) -> Vec<Instance> {
        let actors = self.actors.iter().enumerate().filter(|(ix, _)| *ix != thread.index());
        actors.flat_map(|(_, actor)| &actor.instances).cloned().collect()
    }
}

/// A target and the sequences that must not run inside it.
#[derive(Clone, Debug)]
struct Rule {
    target: usize,
    spoilers: Vec<usize>,
}

/// A target of one thread and a spoiler of another, on values that fit.
#[derive(Clone, Copy, Debug)]
pub struct Encounter<'a> {
    /// Number of the contract.
    pub contract: usize,
    pub target: &'a Instance,
    pub spoiler: &'a Instance,
    /// The synchronisation of this run keeps the spoiler out.
    pub ordered: bool,
    /// So does the synchronisation without locks.
    pub ordered_without_locks: bool,
    /// The target holds a lock all the time that the spoiler needs.
    pub guarded: bool,
}

/// Looks for the sequences of contracts in all threads and tells which meet.
#[derive(Clone, Debug, Default)]
pub struct CallSequences {
    places: Arc<CallPlaces>,
    tracker: CallTracker,
    texts: Texts,
    order: HappensBefore,
    /// The order without what locks add.
    hard: HappensBefore,
    matchers: Vec<Matcher>,
    /// Matchers that look at a call.
    by_name: FxHashMap<NameIx, Vec<usize>>,
    rules: Vec<Rule>,
    /// Where each thread took a lock last, by lock and mode.
    taken: Vec<FxHashMap<(LockIx, bool), u64>>,
    /// Locks of each thread after its last step.
    held: Vec<HeldLocks>,
    told: Vec<Told>,
}

impl CallSequences {
    /// Contracts whose calls are not in `places` are never met.
    pub fn new(contracts: &[Contract], places: Arc<CallPlaces>) -> CallSequences {
        let mut matchers: Vec<Matcher> = Vec::new();
        let mut add = |sequence: &Sequence| {
            let place = |call: &Call| places.names().iter().position(|name| *name == call.name);
            // A name that nobody looked for is one that no call has.
            let names = sequence.iter().map(|call| NameIx(place(call).map_or(u32::MAX, |ix| ix as u32)));
            matchers.push(Matcher { sequence: sequence.clone(), names: names.collect(), actors: Vec::new() });
            matchers.len() - 1
        };
        let targets: Vec<usize> = contracts.iter().map(|contract| add(&contract.target)).collect();
        let rules = contracts.iter().zip(&targets).map(|(contract, &target)| {
            let spoilers = match contract.spoilers.as_slice() {
                [] => targets.clone(),
                spoilers => spoilers.iter().map(&mut add).collect(),
            };
            Rule { target, spoilers }
        });
        let rules = rules.collect();
        let mut by_name: FxHashMap<NameIx, Vec<usize>> = FxHashMap::default();
        for (number, matcher) in matchers.iter().enumerate() {
            for &name in &matcher.names {
                let of_name = by_name.entry(name).or_default();
                if of_name.last() != Some(&number) {
                    of_name.push(number);
                }
            }
        }
        let hard = HappensBefore::without_locks();
        CallSequences { places, matchers, by_name, rules, hard, ..CallSequences::default() }
    }

    pub fn learn(&mut self, tables: &Tables, events: &[Event]) {
        self.texts.learn(tables, events);
    }

    pub fn step(&mut self, step: &Step<'_>, meet: &mut dyn FnMut(&Encounter<'_>)) {
        let mut told = std::mem::take(&mut self.told);
        if let Sync::Join(child) = step.sync {
            // Before another thread gets its column.
            self.end(child, meet);
        }
        self.tracker.before(&self.places, step, &mut told);
        self.tell(&mut told, step.held, step.position, meet);
        self.order.step(step);
        self.hard.step(step);
        self.tracker.announced(&self.places, &self.texts, step, &mut told);
        self.tell(&mut told, step.held, step.position, meet);
        self.told = told;
        self.note_locks(step);
        if step.event.op == Op::End {
            self.end(step.thread(), meet);
        }
    }

    /// A thread does nothing more.
    fn end(&mut self, thread: ThreadIx, meet: &mut dyn FnMut(&Encounter<'_>)) {
        let mut told = Vec::new();
        self.tracker.end(thread, &mut told);
        let held = self.held.get(thread.index()).cloned().unwrap_or_default();
        self.tell(&mut told, &held, u64::MAX, meet);
    }

    fn note_locks(&mut self, step: &Step<'_>) {
        let (lock, read, taken) = match step.sync {
            Sync::Acquire { lock, read } => (lock, read, true),
            Sync::Release { lock, read } => (lock, read, false),
            Sync::None
            | Sync::Fork(_)
            | Sync::Join(_)
            | Sync::Receive(_)
            | Sync::Send(_)
            | Sync::Exchange(_) => return,
        };
        let thread = step.thread().index();
        if self.taken.len() <= thread {
            self.taken.resize(thread + 1, FxHashMap::default());
            self.held.resize(thread + 1, HeldLocks::default());
        }
        let held = &mut self.held[thread];
        held.clear();
        held.extend(step.held.iter().copied());
        if taken {
            self.taken[thread].insert((lock, read), step.position);
            let &Event { location, context, .. } = step.event;
            held.push(Held { lock, read, again: 0, position: step.position, location, context });
        } else if let Some(place) = held.iter().position(|held| held.lock == lock) {
            held.remove(place);
        }
    }

    /// The trace is over: calls that did not return last until here.
    pub fn finish(&mut self, meet: &mut dyn FnMut(&Encounter<'_>)) {
        for thread in self.tracker.threads() {
            self.end(thread, meet);
        }
    }

    fn tell(
        &mut self,
        told: &mut Vec<Told>,
        held: &[Held],
        position: u64,
        meet: &mut dyn FnMut(&Encounter<'_>),
    ) {
        for Told { edge, site } in told.drain(..) {
            let (Edge::Entry { name, .. } | Edge::Return { name, .. }) = edge;
            let Some(concerned) = self.by_name.get(&name).cloned() else { continue };
            let slot = self.order.slot(site.thread);
            let hard_slot = self.hard.slot(site.thread);
            let moment = Rc::new(Moment {
                site,
                slot,
                hard_slot,
                order: Knowledge::of(&self.order, slot),
                hard: Knowledge::of(&self.hard, hard_slot),
                held: held.into(),
                position,
            });
            for number in concerned {
                let done = match &edge {
                    Edge::Entry { values, .. } => {
                        self.matchers[number].entry(name, values, &moment);
                        None
                    }
                    Edge::Return { values, .. } => self.matchers[number].returns(name, values, &moment),
                };
                if let Some((binding, first, last)) = done {
                    self.completed(number, binding, first, last, meet);
                }
            }
        }
    }

    fn completed(
        &mut self,
        number: usize,
        binding: Binding,
        first: Rc<Moment>,
        last: Rc<Moment>,
        meet: &mut dyn FnMut(&Encounter<'_>),
    ) {
        let thread = first.site.thread;
        let through = |held: &&Held| {
            last.held.iter().any(|after| (after.lock, after.position) == (held.lock, held.position))
        };
        let guards = first.held.iter().filter(through).map(|held| (held.lock, held.read)).collect();
        let taken = self.taken.get(thread.index()).into_iter().flatten();
        let inside = taken.filter(|(_, position)| **position >= first.position).map(|(lock, _)| *lock);
        let needs = first.held.iter().map(|held| (held.lock, held.read)).chain(inside).collect();
        let instance = Instance { thread, binding, first, last, guards, needs };
        for contract in 0..self.rules.len() {
            let Rule { target, spoilers } = self.rules[contract].clone();
            if target == number {
                for &spoiler in &spoilers {
                    for other in self.matchers[spoiler].others(thread) {
                        self.compare(contract, &instance, &other, meet);
                    }
                }
            }
            if spoilers.contains(&number) {
                for other in self.matchers[target].others(thread) {
                    self.compare(contract, &other, &instance, meet);
                }
            }
        }
        self.matchers[number].keep(instance);
    }

    fn compare(
        &self,
        contract: usize,
        target: &Instance,
        spoiler: &Instance,
        meet: &mut dyn FnMut(&Encounter<'_>),
    ) {
        // A single call has no inside.
        let single = self.matchers[self.rules[contract].target].sequence.len() == 1;
        if single || !compatible(&target.binding, &spoiler.binding) {
            return;
        }
        let (t, s) = (target, spoiler);
        let before = t.first.order.clock.get(s.first.slot) >= s.first.order.time;
        let after = s.last.order.clock.get(t.last.slot) >= t.last.order.time;
        let hard_before = t.first.hard.clock.get(s.first.hard_slot) >= s.first.hard.time;
        let hard_after = s.last.hard.clock.get(t.last.hard_slot) >= t.last.hard.time;
        let guarded = t.guards.iter().any(|(lock, read)| {
            s.needs.iter().any(|(needed, needs_read)| lock == needed && !(*read && *needs_read))
        });
        meet(&Encounter {
            contract,
            target,
            spoiler,
            ordered: before || after,
            ordered_without_locks: hard_before || hard_after,
            guarded,
        });
    }
}
