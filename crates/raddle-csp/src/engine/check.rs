//! The way in: compile, search, explain.
//!
//! ```
//! use raddle_csp::assertion::{Assertion, Property, SemanticModel};
//! use raddle_csp::engine::{CheckOptions, check};
//! use raddle_csp::process::{Equations, Processes};
//!
//! // SPEC = a -> b -> SPEC,  IMPL = a -> IMPL
//! let mut arena = Processes::default();
//! let mut equations = Equations::default();
//! let (a, b) = (arena.events.plain("a"), arena.events.plain("b"));
//! let spec = arena.call("SPEC");
//! let body = arena.chain(&[a, b], spec);
//! equations.define(&arena, spec, body);
//! let implementation = arena.call("IMPL");
//! let body = arena.prefix(a, implementation);
//! equations.define(&arena, implementation, body);
//!
//! let property = Property::Refines { model: SemanticModel::Traces, spec, implementation };
//! let outcome = check(&mut arena, &mut equations, &Assertion::new(property), &CheckOptions::default()).unwrap();
//! assert!(!outcome.holds);
//! assert_eq!(outcome.counterexamples[0].trace, [a]); // … and then a second `a`
//! ```

use std::sync::Mutex;
use std::time::Instant;

use super::combinator::Label;
use super::compile::Compiler;
use super::determinism::{self, Flaw};
use super::layout::Key;
use super::machine::Machine;
use super::model::{Emit, Model, WORDS, with_words};
use super::normal::{LabelSet, NormalForm};
use super::reduction::{Preserve, Reduction};
use super::refusals::AfterRefusal;
use super::room::{Room, Work};
use super::rules::{OMEGA, is_control};
use super::search::{Claims, Fault, Search, Specification, Violation};
use super::store::Store;
use super::verdict::{
    Behaviour, CheckError, CheckOptions, Component, Counterexample, Offered, Outcome, Statistics, Step,
};
use super::witness;
use crate::assertion::{Assertion, PartialOrder, Property, SemanticModel};
use crate::process::{Definitions, EventId, EventSetId, ProcId, Processes};

/// A specification with at most this many nodes (holding at most that many states) is normalised before the search, so
/// that its numbers take few bits; a larger one while the search goes on.
const EAGER_NODES_MAX: usize = 4096;
const EAGER_MEMBERS_MAX: usize = 1 << 20;

/// Checks one assertion. To check several of one script, use a [`Checker`], which compiles shared leaves once.
pub fn check(
    arena: &mut Processes,
    definitions: &mut dyn Definitions,
    assertion: &Assertion,
    options: &CheckOptions,
) -> Result<Outcome, CheckError> {
    Checker::new(arena, definitions, options.clone()).check(assertion)
}

/// Checks assertions over one arena.
pub struct Checker<'a> {
    compiler: Compiler<'a>,
    options: CheckOptions,
}

impl<'a> Checker<'a> {
    pub fn new(
        arena: &'a mut Processes,
        definitions: &'a mut dyn Definitions,
        options: CheckOptions,
    ) -> Checker<'a> {
        let mut compiler = Compiler::new(arena, definitions, options.leaf_states_max);
        compiler.cancelled_by(options.cancel.clone());
        compiler.watched_by(options.progress.clone());
        compiler.limited_to(options.leaf_memory_max_bytes);
        Checker { compiler, options }
    }

    /// The arena, for names.
    pub fn arena(&mut self) -> &mut Processes {
        self.compiler.arena()
    }

    /// Compiles a process, to walk it with a [`super::walk::Walk`] or to look at its sizes.
    pub fn compile(&mut self, process: ProcId) -> Result<Model, CheckError> {
        self.compiler.compile(process)
    }

    /// The explicit machine of a process, for graphs.
    pub fn machine(&mut self, process: ProcId, reduce: bool) -> Result<Machine, CheckError> {
        self.compiler.machine(process, reduce)
    }

    /// Decides an assertion.
    pub fn check(&mut self, assertion: &Assertion) -> Result<Outcome, CheckError> {
        let started = Instant::now();
        let priority = assertion.tau_priority;
        let effort = assertion.partial_order;
        let (counterexamples, mut statistics) = match &assertion.property {
            Property::Refines { model, spec, implementation } => {
                let room = |this: &Self| this.compiler.room_for_normal_form(Work::Specification, *spec);
                self.compiler.forget_coarse();
                let compiled = self.compile_with(*spec, priority)?;
                let implementation = self.compile_with(*implementation, priority)?;
                if claims_of(*model).after_refusal.is_some() && self.compiler.meets_coarse() {
                    return Err(CheckError::Unsupported(format!(
                        "`normal` and `diamond` do not keep what the model {} sees; use `sbisim` or `dbisim`",
                        model.name()
                    )));
                }
                self.refine(
                    Some((&compiled, room(self))),
                    &implementation,
                    claims_of(*model),
                    effort,
                    started,
                )?
            }
            Property::DeadlockFree { model: SemanticModel::Traces, .. } => {
                return Err(CheckError::Unsupported(
                    "deadlock freedom cannot be seen in the traces model; ask in [F] or [FD]".into(),
                ));
            }
            Property::DeadlockFree { model, process } => {
                let compiled = self.compile_with(*process, priority)?;
                let divergences = model.has_divergences();
                let claims = Claims { deadlocks: true, divergences, ..Claims::default() };
                self.refine(None, &compiled, claims, effort, started)?
            }
            Property::DivergenceFree { process } => {
                let compiled = self.compile_with(*process, priority)?;
                let claims = Claims { divergences: true, ..Claims::default() };
                self.refine(None, &compiled, claims, effort, started)?
            }
            Property::Deterministic { model, process } => {
                let compiled = self.compile_with(*process, priority)?;
                let room = self.compiler.room_for_normal_form(Work::Determinism, *process);
                self.deterministic(&compiled, *model, room, started)?
            }
            Property::HasTrace { model, process, trace } => {
                self.has_trace(*model, *process, trace, priority, started)?
            }
        };
        statistics.compile_time = started.elapsed().saturating_sub(statistics.explore_time);
        let property_holds = counterexamples.is_empty();
        let holds = property_holds != assertion.negated;
        Ok(Outcome { holds, property_holds, counterexamples, statistics })
    }

    fn compile_with(&mut self, process: ProcId, priority: Option<EventSetId>) -> Result<Model, CheckError> {
        let process = match priority {
            None => process,
            Some(set) => {
                let arena = self.compiler.arena();
                let none = arena.set_of([]);
                arena.prioritise(process, vec![none, set])
            }
        };
        self.compiler.compile(process)
    }

    fn refine(
        &self,
        spec: Option<(&Model, Room)>,
        implementation: &Model,
        claims: Claims,
        effort: PartialOrder,
        started: Instant,
    ) -> Result<(Vec<Counterexample>, Statistics), CheckError> {
        let mut layout = implementation.combinator.layout.clone();
        let (specification, nodes) = match spec {
            None => (Specification::Anything, 1),
            Some((spec, room)) => {
                let nodes_max = self.options.leaf_states_max;
                let mut form = NormalForm::new(spec, &implementation.labels, nodes_max, room)?;
                let all = form.complete(EAGER_NODES_MAX, EAGER_MEMBERS_MAX)?;
                // Refusal testing makes parts of nodes while it goes on.
                let all = all && claims.after_refusal != Some(AfterRefusal::Testing);
                let nodes = if all { form.len() } else { 1 << 32 };
                (Specification::Normal(Box::new(Mutex::new(form))), nodes)
            }
        };
        let node_field = layout.field(nodes);
        let limit = WORDS[WORDS.len() - 1];
        if layout.words() > limit {
            return Err(CheckError::VectorTooLong { bits: layout.bits(), limit: limit * 64 });
        }
        let reducible =
            effort != PartialOrder::Off && implementation.outer.is_empty() && claims.after_refusal.is_none();
        let preserve = match claims {
            Claims { deadlocks: true, divergences: false, .. } => Preserve::Deadlocks,
            Claims { divergences: true, .. } => Preserve::Divergences,
            _ => Preserve::Failures,
        };
        let reduction = reducible.then(|| Reduction::new(&implementation.combinator, effort, preserve));
        let folder = self.options.spill_folder.clone().unwrap_or_else(std::env::temp_dir);
        let compile_time = started.elapsed();
        with_words!(layout.words(), W => {
            let options = &self.options;
            let held_bytes = self.compiler.held_bytes();
            let store = Store::new(options.workers.max(1), options.memory_limit_bytes, held_bytes, folder);
            let search: Search<'_, W> =
                Search::new(implementation, &specification, node_field, claims, reduction, options, store);
            let (counterexamples, mut statistics) = explained(search, self.options.counterexamples.max(1))?;
            statistics.state_bits = layout.bits();
            statistics.compile_time = compile_time;
            Ok((counterexamples, statistics))
        })
    }

    fn deterministic(
        &self,
        model: &Model,
        semantic: SemanticModel,
        room: Room,
        started: Instant,
    ) -> Result<(Vec<Counterexample>, Statistics), CheckError> {
        if semantic == SemanticModel::Traces {
            let message = "determinism cannot be seen in the traces model; ask in [F] or [FD]";
            return Err(CheckError::Unsupported(message.into()));
        }
        let compile_time = started.elapsed();
        let exploring = Instant::now();
        let with_divergence = semantic.has_divergences();
        let wanted = self.options.counterexamples.max(1);
        let (flaws, nodes) =
            determinism::flaws(model, with_divergence, wanted, self.options.leaf_states_max, room)?;
        let mut counterexamples = Vec::new();
        for (trace, flaw) in flaws {
            let (run, behaviour) = match flaw {
                Flaw::Choice { event, offers } => {
                    let run =
                        determinism::run_for(model, &trace, |k| determinism::accepts_only(model, k, &offers));
                    (run, Behaviour::Nondeterminism { event, offers })
                }
                Flaw::Divergence => {
                    let run = determinism::run_for(model, &trace, |k| {
                        determinism::loop_through(model, k).is_some()
                    });
                    let end = run.as_ref().expect("a diverging node has a state on a loop").1.clone();
                    let cycle = determinism::loop_through(model, &end).expect("the run ends on a loop");
                    let cycle = cycle.iter().map(|&(label, _, rule)| step(model, label, rule)).collect();
                    (run, Behaviour::Divergence { cycle })
                }
            };
            let (steps, _) = run.expect("a node's behaviour belongs to one of its states");
            counterexamples.push(Counterexample {
                trace,
                path: steps.iter().map(|&(label, _, rule)| step(model, label, rule)).collect(),
                behaviour,
                components: components(model),
                on_the_way: Vec::new(),
            });
        }
        let statistics = Statistics {
            pairs: nodes as u64,
            spec_nodes: nodes as u64,
            components: components(model).len(),
            state_bits: model.combinator.layout.bits(),
            state_bytes: 8 * model.words(),
            explore_time: exploring.elapsed(),
            compile_time,
            ..Statistics::default()
        };
        Ok((counterexamples, statistics))
    }

    fn has_trace(
        &mut self,
        semantic: SemanticModel,
        process: ProcId,
        trace: &[EventId],
        priority: Option<EventSetId>,
        started: Instant,
    ) -> Result<(Vec<Counterexample>, Statistics), CheckError> {
        let (body, ends) = match trace.split_last() {
            Some((&EventId::TICK, body)) => (body, true),
            _ => (trace, false),
        };
        if body.iter().any(|e| !e.is_visible()) {
            return Err(CheckError::Unsupported(
                "a trace consists of visible events and perhaps a final ✓".into(),
            ));
        }
        let arena = self.compiler.arena();
        let end = if ends { arena.skip() } else { arena.stop() };
        let chain = arena.chain(body, end);
        let spec = self.compile_with(process, priority)?;
        let implementation = self.compiler.compile(chain)?;
        let claims = claims_of(semantic);
        let room = self.compiler.room_for_normal_form(Work::Specification, process);
        let (mut found, statistics) =
            self.refine(Some((&spec, room)), &implementation, claims, PartialOrder::Off, started)?;
        for counterexample in &mut found {
            counterexample.behaviour =
                match std::mem::replace(&mut counterexample.behaviour, Behaviour::Deadlock) {
                    Behaviour::Event { event, allowed } => {
                        Behaviour::MissingTrace { event: Some(event), possible: allowed }
                    }
                    Behaviour::Refusal { required, .. } => {
                        let mut possible: Vec<EventId> = required.concat();
                        possible.sort_unstable();
                        possible.dedup();
                        Behaviour::MissingTrace { event: None, possible }
                    }
                    other => other,
                };
        }
        Ok((found, statistics))
    }
}

fn claims_of(model: SemanticModel) -> Claims {
    use SemanticModel::{Failures, FailuresDivergences};
    use SemanticModel::{Refusals, RefusalsDivergences, Revivals, RevivalsDivergences, Traces};
    let after_refusal = match model {
        Traces | Failures | FailuresDivergences => None,
        Revivals | RevivalsDivergences => Some(AfterRefusal::Revivals),
        Refusals | RefusalsDivergences => Some(AfterRefusal::Testing),
    };
    Claims {
        refusals: matches!(model, Failures | FailuresDivergences),
        divergences: model.has_divergences(),
        deadlocks: false,
        after_refusal,
    }
}

/// Runs the search and turns its faults into counterexamples.
fn explained<const W: usize>(
    mut search: Search<'_, W>,
    wanted: usize,
) -> Result<(Vec<Counterexample>, Statistics), CheckError> {
    let faults = search.run(wanted)?;
    let mut counterexamples = Vec::new();
    for (fault, violation) in &faults {
        counterexamples.push(explain(&search, fault, violation)?);
    }
    Ok((counterexamples, search.statistics()))
}

fn explain<const W: usize>(
    search: &Search<'_, W>,
    fault: &Fault,
    violation: &Violation<W>,
) -> Result<Counterexample, CheckError> {
    let model = search.model;
    let taken = witness::path(search, violation)?;
    let mut path: Vec<Step> = taken.iter().map(|t| step(model, t.label, t.rule)).collect();
    let trace = path.iter().map(|s| s.event).filter(|&e| e != EventId::TAU).collect();
    let node = search.node_of(&violation.key)?;
    let behaviour = match fault {
        Fault::Event(label) => {
            let rule = rule_for(search, &violation.key, *label);
            path.push(step(model, *label, rule));
            let allowed = node.map_or_else(Vec::new, |n| n.allowed.clone());
            Behaviour::Event { event: model.event(*label), allowed }
        }
        Fault::Refusal(offers) => Behaviour::Refusal {
            offers: events_of(model, offers),
            required: node.map_or_else(Vec::new, |n| n.required.clone()),
        },
        Fault::Revival(label, offers) => {
            let rule = rule_for(search, &violation.key, *label);
            path.push(step(model, *label, rule));
            Behaviour::Revival { event: model.event(*label), offers: events_of(model, offers) }
        }
        Fault::Deadlock => Behaviour::Deadlock,
        Fault::Divergence => {
            let cycle = witness::cycle(search, &violation.key);
            Behaviour::Divergence { cycle: cycle.iter().map(|t| step(model, t.label, t.rule)).collect() }
        }
    };
    let components = components_after(model, &path, &violation.key);
    let on_the_way = witness::refusals_on(search, &taken)?
        .iter()
        .map(|(position, offers)| Offered { position: *position, offers: events_of(model, offers) })
        .collect();
    Ok(Counterexample { trace, path, behaviour, components, on_the_way })
}

/// The leaves with what happened inside those that are compressed, on a path that ends in `key`.
fn components_after(model: &Model, path: &[Step], key: &[u64]) -> Vec<Component> {
    let mut list = components(model);
    let leaves = model.combinator.leaves.iter().filter(|l| !l.is_controller);
    for (i, (component, leaf)) in list.iter_mut().zip(leaves).enumerate() {
        if let Some(inner) = &leaf.inside {
            let own = super::render::own_events(path, i);
            let offers = super::inside::offers_of(leaf, leaf.field.get(key));
            component.inside = super::inside::components_of(inner, &own, offers.as_deref());
        }
    }
    list
}

fn rule_for<const W: usize>(search: &Search<'_, W>, key: &Key<W>, wanted: Label) -> u32 {
    let mut least = u32::MAX;
    let mut keep = |label: Label, _: &Key<W>, rule: u32| {
        if label == wanted {
            least = least.min(rule);
        }
        false
    };
    search.visibles(key, &mut keep as Emit<'_, W>);
    least
}

fn events_of(model: &Model, set: &LabelSet) -> Vec<EventId> {
    (0..model.labels.len()).filter(|l| set[l / 64] & 1 << (l % 64) != 0).map(|l| model.labels[l]).collect()
}

/// The leaves a user knows: all but the controllers.
pub fn components(model: &Model) -> Vec<Component> {
    let leaves = model.combinator.leaves.iter().filter(|l| !l.is_controller);
    leaves.map(|l| Component { name: l.name.clone(), states: l.machine.len(), inside: Vec::new() }).collect()
}

/// A step split to the components that take part in it.
pub fn step(model: &Model, label: Label, rule: u32) -> Step {
    let combinator = &model.combinator;
    let mut parts = Vec::new();
    for &(leaf, event) in &combinator.rules[rule as usize].parts {
        if !is_control(event) && event != OMEGA {
            let leaf = leaf.0 as usize;
            let component = combinator.leaves[..leaf].iter().filter(|l| !l.is_controller).count();
            parts.push((component, event));
        }
    }
    parts.sort_unstable();
    Step { event: model.event(label), parts }
}
