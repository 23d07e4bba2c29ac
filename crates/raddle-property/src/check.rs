//! Deciding the assertions of a property, of all interleavings of a trace or of the one that was observed.

#![warn(clippy::wildcard_enum_match_arm)]

use crate::PropertyError;
use crate::automaton::{Automaton, Moved};
use crate::events::{Events, Value};
use crate::script::{MARK, Program as Subject, Property, compose, step_events};
use crate::search::{Found, search};
use raddle_csp::engine::{CheckOptions, Counterexample, Outcome};
use raddle_csp::lang::diagnostic::{Diagnostic, render};
use raddle_csp::lang::eval::Limits;
use raddle_csp::lang::load::{Disk, Files, load_text};
use raddle_csp::lang::session::{Refused, Script};
use raddle_csp::process::{EventId, EventName};
use raddle_predict::Keeps;
use raddle_predict::build::build;
use raddle_predict::csp::{Model, model};
use raddle_predict::ids::Pos;
use raddle_predict::names::Names;
use raddle_predict::program::{Action, Program};
use raddle_trace::model::EventIx;
use raddle_trace::{MemoryTrace, Op, ThreadIx};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::path::Path;

/// How hard to look.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// States of the direct search, and pairs of states of the engine.
    pub states_max: u64,
    /// Different violations of one assertion.
    pub ways_max: usize,
    /// Leave everything to the engine.
    pub engine_only: bool,
    /// Values that atomics read constrain what can happen.
    pub atomics: bool,
}

impl Default for Effort {
    fn default() -> Effort {
        Effort { states_max: 2_000_000, ways_max: 8, engine_only: false, atomics: true }
    }
}

/// A way to break an assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Counted from 1.
    pub assertion: u32,
    /// The threads that take steps, in order; after the last one the assertion is violated.
    pub moves: Vec<ThreadIx>,
    /// What the last step is an event of, if the violation is an event.
    pub event: Option<EventIx>,
    /// Events of the program's own on the way, in order.
    pub way: Vec<EventIx>,
    /// Nothing can happen after it (an assertion about refusals).
    pub stuck: bool,
}

/// What became of one assertion.
#[derive(Clone, Debug)]
pub struct Decided {
    pub text: String,
    pub violations: Vec<Violation>,
    /// Why the answer may not be the whole truth.
    pub undecided: Option<String>,
    pub by_engine: bool,
    pub states: u64,
}

/// All assertions of a property.
#[derive(Debug)]
pub struct Checked {
    pub assertions: Vec<Decided>,
    pub program: Program,
    pub names: Names,
}

/// The script with the model of a trace.
struct Subjected<'a> {
    property: &'a Property,
    events: Events,
    model: Model,
    program: Program,
    names: Names,
}

const MODEL_FILE: &str = "the model of the trace";

/// Files of the disk, and the model.
struct WithModel<'a> {
    model: &'a str,
}

impl Files for WithModel<'_> {
    fn read(&self, path: &Path) -> Result<String, String> {
        match path.ends_with(MODEL_FILE) {
            true => Ok(self.model.to_owned()),
            false => Disk.read(path),
        }
    }
}

impl<'a> Subjected<'a> {
    fn new(trace: &MemoryTrace, property: &'a Property, atomics: bool) -> Subjected<'a> {
        let program = build(trace, atomics, &Keeps::Nothing).program;
        let names = Names::of(trace);
        let events = Events::of(trace, |name| property.mentions(name));
        let marked: FxHashMap<EventIx, String> =
            events.spoken.iter().map(|(ix, text)| (*ix, marked(text))).collect();
        let model = model(trace, &program, &names, &marked, &property.synchronisation());
        Subjected { property, events, model, program, names }
    }

    fn script(&self, subject: &Subject<'_>) -> Result<Script, PropertyError> {
        let model = compose(self.property, &self.events, &self.model, subject);
        let text = format!("{}\ninclude \"{MODEL_FILE}\"\n", self.property.text);
        let loaded = load_text(&WithModel { model: &model }, &self.property.name, text);
        Script::new(loaded, Limits::default()).map_err(|Refused { sources, diagnostics }| {
            let errors: Vec<Diagnostic> = diagnostics.into_iter().filter(Diagnostic::is_error).collect();
            PropertyError::Script(render(&sources, &errors, false))
        })
    }

    /// Events of each step, as the script calls them.
    fn steps(&self) -> Vec<Vec<Vec<String>>> {
        let named = |step: &Vec<String>| step_events(step, self.property, &self.events);
        self.model.steps.iter().map(|thread| thread.iter().map(named).collect()).collect()
    }

    /// Events of the program's own in a sequence of moves.
    fn way(&self, moves: &[ThreadIx]) -> (Vec<EventIx>, Option<EventIx>) {
        let mut at: Vec<Pos> = vec![0; self.program.thread_count()];
        let mut way = Vec::new();
        let mut last = None;
        for thread in moves {
            let step = self.program.step(*thread, at[thread.index()]);
            at[thread.index()] += 1;
            last = step.map(|step| step.event);
            way.extend(last.filter(|event| self.events.spoken.contains_key(event)));
        }
        (way, last)
    }
}

/// Marks what a thread says itself, so that it is not renamed with the model's words.
fn marked(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut inside = false;
    for c in text.chars() {
        if !inside && c.is_ascii_alphabetic() {
            out.push_str(MARK);
        }
        inside = c.is_alphanumeric() || matches!(c, '_' | '\'');
        out.push(c);
    }
    out
}

fn rendered(script: &Script, diagnostic: Diagnostic) -> String {
    render(script.sources(), &[diagnostic], false)
}

/// Refuses a script that says nothing about the program, at its first assertion.
fn says_something(property: &Property) -> Result<(), PropertyError> {
    let asserts = property.text.lines().position(|line| line.trim_start().starts_with("assert"));
    let wrong = match asserts {
        None => Some((
            property.text.lines().count().max(1),
            "there is no assertion",
            "write `assert SPEC [T= PROGRAM`",
        )),
        Some(line) if !property.mentions("PROGRAM") => Some((
            line + 1,
            "no assertion mentions PROGRAM, so none is about the program",
            "write PROGRAM behind `[T=`",
        )),
        Some(_) => None,
    };
    match wrong {
        Some((line, message, help)) => Err(PropertyError::Script(format!(
            "error: {message}\n --> {}:{line}:1\nhelp: {help}\n",
            property.name
        ))),
        None => Ok(()),
    }
}

/// Number of an event that a text stands for, if the script knows it.
fn event_of(script: &Script, text: &str) -> Option<EventId> {
    let mut parts = text.split('.');
    let channel = parts.next()?.into();
    let fields: Vec<std::sync::Arc<str>> = parts.map(Into::into).collect();
    script.arena().events.find(&EventName { channel, fields: fields.into() })
}

/// Makes the events of PROGRAM known to the script.
fn meet_events(script: &mut Script) {
    if let Ok(program) = script.process("PROGRAM") {
        let options = CheckOptions::default();
        // What cannot be compiled here will be an error where it is needed.
        let _ = script.with_checker(&options, |checker| checker.machine(program, false).map(|_| ()));
    }
}

/// Can some interleaving of the trace violate an assertion?
pub fn check(trace: &MemoryTrace, property: &Property, effort: &Effort) -> Result<Checked, PropertyError> {
    says_something(property)?;
    let subjected = Subjected::new(trace, property, effort.atomics);
    let steps = subjected.steps();
    let mut script = subjected.script(&Subject::Open)?;
    meet_events(&mut script);
    let texts: Vec<String> = script.assertions().map(|assertion| assertion.text.clone()).collect();
    let mut whole: Option<Script> = None;
    let mut assertions = Vec::new();
    for (index, text) in texts.into_iter().enumerate() {
        let automaton = if effort.engine_only { None } else { automaton(&mut script, index, &subjected)? };
        let mut decided = Decided {
            text,
            violations: Vec::new(),
            undecided: None,
            by_engine: automaton.is_none(),
            states: 0,
        };
        let violation = |moves: Vec<ThreadIx>, stuck: bool| {
            let (way, event) = subjected.way(&moves);
            let event = event.filter(|_| !stuck);
            Violation { assertion: index as u32 + 1, moves, event, way, stuck }
        };
        match automaton {
            Some((mut automaton, ids)) => {
                let found: Found = search(
                    &subjected.program,
                    &ids_of(&steps, &ids),
                    &mut automaton,
                    effort.ways_max,
                    effort.states_max,
                    true,
                );
                decided.states = found.states;
                decided.violations = found.ways.into_iter().map(|way| violation(way.moves, false)).collect();
                if !found.complete && decided.violations.is_empty() {
                    decided.undecided =
                        Some(format!("{} states were visited, and there are more", found.states));
                }
            }
            None => {
                let script = match &mut whole {
                    Some(script) => script,
                    None => whole.insert(subjected.script(&Subject::Model)?),
                };
                let options = CheckOptions {
                    counterexamples: effort.ways_max.max(1),
                    pairs_max: Some(effort.states_max),
                    ..CheckOptions::default()
                };
                match script.check(index, &options) {
                    Ok(outcome) => {
                        decided.states = outcome.statistics.pairs;
                        let names = |event: EventId| script.event_name(event);
                        decided.violations = ways(&subjected.program, &steps, &outcome, names)
                            .into_iter()
                            .map(|(moves, stuck)| violation(moves, stuck))
                            .collect();
                        if !outcome.holds && decided.violations.is_empty() {
                            decided.undecided =
                                Some("its counterexample is no interleaving of the trace".to_owned());
                        }
                    }
                    Err(diagnostic) => decided.undecided = Some(rendered(script, diagnostic)),
                }
            }
        }
        assertions.push(decided);
    }
    Ok(Checked { assertions, program: subjected.program, names: subjected.names })
}

type Ids = FxHashMap<String, EventId>;

fn automaton(
    script: &mut Script,
    index: usize,
    subjected: &Subjected<'_>,
) -> Result<Option<(Automaton, Ids)>, PropertyError> {
    let assertion = match script.assertion(index) {
        Ok(assertion) => assertion,
        Err(diagnostic) => return Err(PropertyError::Script(rendered(script, diagnostic))),
    };
    let Ok(program) = script.process("PROGRAM") else { return Ok(None) };
    let mut ids = Ids::default();
    for text in subjected.steps().into_iter().flatten().flatten() {
        if let Some(id) = event_of(script, &text) {
            ids.insert(text, id);
        }
    }
    let own: FxHashSet<EventId> = ids.values().copied().collect();
    Ok(Automaton::of(script, &assertion, program, &own).map(|automaton| (automaton, ids)))
}

fn ids_of(steps: &[Vec<Vec<String>>], ids: &Ids) -> Vec<Vec<Vec<EventId>>> {
    let known = |step: &Vec<String>| step.iter().filter_map(|text| ids.get(text).copied()).collect();
    steps.iter().map(|thread| thread.iter().map(known).collect()).collect()
}

/// The moves of each counterexample of the engine, and whether it is about what cannot happen.
fn ways(
    program: &Program,
    steps: &[Vec<Vec<String>>],
    outcome: &Outcome,
    name: impl Fn(EventId) -> String,
) -> Vec<(Vec<ThreadIx>, bool)> {
    use raddle_csp::engine::Behaviour;
    outcome
        .counterexamples
        .iter()
        .filter_map(|counterexample| {
            let stuck = !matches!(counterexample.behaviour, Behaviour::Event { .. });
            Some((moves(program, steps, counterexample, &name)?, stuck))
        })
        .collect()
}

/// Follows what the threads' processes do in a counterexample.
fn moves(
    program: &Program,
    steps: &[Vec<Vec<String>>],
    counterexample: &Counterexample,
    name: &impl Fn(EventId) -> String,
) -> Option<Vec<ThreadIx>> {
    let mut at: Vec<usize> = vec![0; program.thread_count()];
    let mut within: Vec<usize> = vec![0; program.thread_count()];
    let mut moves = Vec::new();
    // Steps without events happen when they are needed: right before the thread's next event.
    let settle = |at: &mut Vec<usize>, moves: &mut Vec<ThreadIx>, thread: usize| {
        while steps[thread].get(at[thread]).is_some_and(Vec::is_empty) {
            at[thread] += 1;
            moves.push(ThreadIx(thread as u32));
        }
    };
    for step in &counterexample.path {
        let done: FxHashSet<String> =
            step.parts.iter().map(|(_, event)| *event).chain([step.event]).map(name).collect();
        let mut taken = false;
        for thread in 0..steps.len() {
            let mut ahead = at[thread];
            while steps[thread].get(ahead).is_some_and(Vec::is_empty) {
                ahead += 1;
            }
            let next = steps[thread].get(ahead).and_then(|events| events.get(within[thread]));
            if taken || !next.is_some_and(|next| done.contains(next)) {
                continue;
            }
            settle(&mut at, &mut moves, thread);
            within[thread] += 1;
            if within[thread] == steps[thread][at[thread]].len() {
                within[thread] = 0;
                at[thread] += 1;
                moves.push(ThreadIx(thread as u32));
            }
            taken = true;
        }
    }
    if matches!(
        counterexample.behaviour,
        raddle_csp::engine::Behaviour::Refusal { .. } | raddle_csp::engine::Behaviour::Deadlock
    ) {
        for thread in 0..steps.len() {
            settle(&mut at, &mut moves, thread);
        }
    }
    Some(moves)
}

/// Threads that wait, in a state that these moves lead to: for schedules of violations that are about refusals.
pub fn waiting(program: &Program, moves: &[ThreadIx]) -> Vec<(ThreadIx, Pos)> {
    let mut state = raddle_predict::state::State::new(program);
    for &thread in moves {
        let limit = program.steps(thread).len() as Pos;
        if state.status(thread, limit) == raddle_predict::state::Status::Enabled {
            state.take(thread);
        }
    }
    let blocked = |thread: &ThreadIx| {
        let limit = program.steps(*thread).len() as Pos;
        let waits =
            state.next_step(*thread).is_some_and(|step| !matches!(step.action, Action::Free) || step.waits);
        waits && state.status(*thread, limit) == raddle_predict::state::Status::Blocked
    };
    program.thread_ids().filter(blocked).map(|thread| (thread, state.at[thread.index()])).collect()
}

/// Names of the property's events that carry a value which could not be read: what they are about is not known.
pub fn unreadable(trace: &MemoryTrace, property: &Property) -> Vec<String> {
    let events = Events::of(trace, |name| property.mentions(name));
    let carries =
        |fields: &[BTreeSet<Value>]| fields.iter().any(|values| values.contains(&Value::Unreadable));
    let found = events.channels.iter().filter(|(_, fields)| carries(fields));
    found.map(|(name, _)| name.clone()).collect()
}

/// Does the run that the trace shows violate the assertion with this number, counted from 1? Nothing is searched for: the run has one order.
pub fn observed(trace: &MemoryTrace, property: &Property, number: u32) -> Result<bool, PropertyError> {
    says_something(property)?;
    let subjected = Subjected::new(trace, property, false);
    let steps = subjected.steps();
    let mut script = subjected.script(&Subject::Open)?;
    meet_events(&mut script);
    let index = (number as usize).checked_sub(1).filter(|&index| index < script.assertions().len());
    let Some(index) = index else {
        let reason = "the script has no such assertion".to_owned();
        return Err(PropertyError::Undecided { number: number as usize, reason });
    };
    let order = subjected.program.order.iter().scan(vec![0usize; steps.len()], |at, thread| {
        let events = steps[thread.index()].get(at[thread.index()]);
        at[thread.index()] += 1;
        Some(events.cloned().unwrap_or_default())
    });
    if let Some((mut automaton, ids)) = automaton(&mut script, index, &subjected)? {
        let mut state = automaton.start();
        if automaton.reports(state) {
            return Ok(true);
        }
        for event in order.flatten().filter_map(|text| ids.get(&text).copied()) {
            match automaton.step(state, event) {
                Moved::To(next) => state = next,
                Moved::Violation => return Ok(true),
                // The watchdog takes part in all that it shares, or it would not be one.
                Moved::Refused => return Ok(false),
            }
        }
        return Ok(false);
    }
    let done: Vec<String> = order.flatten().collect();
    let ended = trace.events.iter().any(|event| matches!(event.op, Op::ProcessExit { .. }));
    let mut script = subjected.script(&Subject::Sequence(&done, ended))?;
    match script.check(index, &CheckOptions::default()) {
        Ok(outcome) => Ok(!outcome.holds),
        Err(diagnostic) => {
            let reason = rendered(&script, diagnostic);
            Err(PropertyError::Undecided { number: number as usize, reason })
        }
    }
}
