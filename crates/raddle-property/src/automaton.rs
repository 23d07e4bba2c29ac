//! Assertions as automata that walk along with the program.
//!
//! Two shapes of trace refinement need no refinement engine, because PROGRAM stands in them alone:
//!
//! * *specification*: `SPEC [T= PROGRAM |\ A` (or `\ H`, or PROGRAM itself). Violated by an event of A that SPEC, made deterministic, does not
//!   offer;
//! * *watchdog*: `STOP [T= (PROGRAM [| A |] W) |\ E`, with E apart from what the program does. Violated when W, made deterministic, can do an event
//!   of E by itself. An event of A that W does not offer cannot happen.
//!
//! States are sets of the states of SPEC or W, closed under silent steps, made when they are first met.

use raddle_csp::assertion::{Assertion, Property, SemanticModel};
use raddle_csp::engine::model::Model;
use raddle_csp::lang::session::Script;
use raddle_csp::process::{EventId, EventSet, ProcId, Process};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// A state's number.
pub type StateIx = u32;

/// What becomes of an automaton at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    To(StateIx),
    Violation,
    /// The program cannot do it beside the watchdog.
    Refused,
}

#[derive(Clone, Debug)]
enum Shape {
    /// Events that are seen.
    Specification { seen: Seen },
    /// Events that are shared, and those that are errors.
    Watchdog { shared: EventSet, errors: EventSet },
}

#[derive(Clone, Debug)]
enum Seen {
    All,
    Only(EventSet),
    AllBut(EventSet),
}

/// An assertion that needs no engine.
pub struct Automaton {
    shape: Shape,
    model: Rc<Model>,
    states: Vec<Vec<Box<[u64]>>>,
    known: FxHashMap<Vec<Box<[u64]>>, StateIx>,
    moves: FxHashMap<(StateIx, EventId), Moved>,
    /// Watchdogs that can report, by state.
    reports: Vec<bool>,
}

/// States of an automaton at most: more are left to the engine.
const STATES_MAX: usize = 1 << 20;

impl Automaton {
    /// The automaton of an assertion, if it has one of the shapes. `program`: what PROGRAM is in the script; `own`: events of the program.
    pub fn of(
        script: &mut Script,
        assertion: &Assertion,
        program: ProcId,
        own: &FxHashSet<EventId>,
    ) -> Option<Automaton> {
        let Property::Refines { model: SemanticModel::Traces, spec, implementation } = assertion.property
        else {
            return None;
        };
        if assertion.negated || assertion.tau_priority.is_some() {
            return None;
        }
        let arena = script.arena();
        let set = |set| arena.events_of(set).clone();
        let (shape, process) = match *arena.get(implementation) {
            _ if implementation == program => (Shape::Specification { seen: Seen::All }, spec),
            Process::Project(inner, only) if inner == program => {
                (Shape::Specification { seen: Seen::Only(set(only)) }, spec)
            }
            Process::Hide(inner, hidden) if inner == program => {
                (Shape::Specification { seen: Seen::AllBut(set(hidden)) }, spec)
            }
            Process::Project(inner, errors) if *arena.get(spec) == Process::Stop => {
                let Process::Parallel(ref operands, shared) = *arena.get(inner) else { return None };
                let watchdog = match **operands {
                    [first, second] if first == program => second,
                    [first, second] if second == program => first,
                    _ => return None,
                };
                let (shared, errors) = (set(shared), set(errors));
                let apart = errors.iter().all(|error| !own.contains(&error) && !shared.contains(error));
                if !apart {
                    return None;
                }
                (Shape::Watchdog { shared, errors }, watchdog)
            }
            _ => return None,
        };
        let options = raddle_csp::engine::CheckOptions::default();
        let model = script.with_checker(&options, |checker| checker.compile(process)).ok()?;
        let mut automaton = Automaton {
            shape,
            model: Rc::new(model),
            states: Vec::new(),
            known: FxHashMap::default(),
            moves: FxHashMap::default(),
            reports: Vec::new(),
        };
        let start = automaton.model.start();
        automaton.state(vec![start]);
        Some(automaton)
    }

    pub fn start(&self) -> StateIx {
        0
    }

    /// Can an event change the automaton, or violate the assertion?
    pub fn concerns(&self, event: EventId) -> bool {
        match &self.shape {
            Shape::Specification { seen: Seen::All } => true,
            Shape::Specification { seen: Seen::Only(only) } => only.contains(event),
            Shape::Specification { seen: Seen::AllBut(hidden) } => !hidden.contains(event),
            Shape::Watchdog { shared, .. } => shared.contains(event),
        }
    }

    /// Is the assertion violated before anything has happened?
    pub fn reports(&self, state: StateIx) -> bool {
        self.reports[state as usize]
    }

    pub fn step(&mut self, state: StateIx, event: EventId) -> Moved {
        if !self.concerns(event) {
            return Moved::To(state);
        }
        if let Some(&known) = self.moves.get(&(state, event)) {
            return known;
        }
        let mut next = Vec::new();
        for key in &self.states[state as usize].clone() {
            for (label, to, _) in self.model.successors(key) {
                if self.model.event(label) == event {
                    next.push(to);
                }
            }
        }
        let moved = match (next.is_empty(), &self.shape) {
            (true, Shape::Specification { .. }) => Moved::Violation,
            (true, Shape::Watchdog { .. }) => Moved::Refused,
            (false, _) if self.states.len() >= STATES_MAX => Moved::Refused,
            (false, _) => match self.state(next) {
                to if self.reports[to as usize] => Moved::Violation,
                to => Moved::To(to),
            },
        };
        self.moves.insert((state, event), moved);
        moved
    }

    /// Closes a set of states under what happens unseen, and gives it a number.
    fn state(&mut self, start: Vec<Box<[u64]>>) -> StateIx {
        let mut seen: FxHashSet<Box<[u64]>> = start.iter().cloned().collect();
        let mut work = start;
        let mut reports = false;
        while let Some(key) = work.pop() {
            for (label, to, _) in self.model.successors(&key) {
                let event = self.model.event(label);
                let unseen = match &self.shape {
                    Shape::Specification { .. } => event == EventId::TAU,
                    Shape::Watchdog { shared, errors } => {
                        reports |= errors.contains(event);
                        event == EventId::TAU || event.is_visible() && !shared.contains(event)
                    }
                };
                if unseen && seen.insert(to.clone()) {
                    work.push(to);
                }
            }
        }
        let mut states: Vec<Box<[u64]>> = seen.into_iter().collect();
        states.sort_unstable();
        if let Some(&known) = self.known.get(&states) {
            return known;
        }
        let number = self.states.len() as StateIx;
        self.known.insert(states.clone(), number);
        self.states.push(states);
        self.reports.push(reports);
        number
    }
}
