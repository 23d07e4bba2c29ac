//! The rules of a composition: how steps of the leaves make steps of the whole.
//!
//! A supercombinator (Goldsmith; Gibson-Robinson et al., "FDR3", 2014) replaces a tree of operators by a flat set of
//! rules over the vector of its leaves: a rule names some leaves with the event each must do, and what the whole then
//! does. The tree is walked once, bottom up; afterwards a state is a vector of leaf states and a step is a rule.
//!
//! FDR keeps a *format*, a global mode, for operators that switch operands on and off, and a rule set per format. Here
//! each switching operator gets a small *controller* leaf instead, whose states are its modes, and rules name the step
//! of the controller like that of any other leaf. The effect is the same, but modes of independent operators do not
//! multiply into rule sets, and packing, bisimulation and partial order reduction need no second mechanism. Leaves of an
//! operand that is not running rest in their initial state: rules that switch an operand off *reset* its leaves, so
//! that a vector has one representation.
//!
//! Termination needs one trick. The `✓` of an operand of a parallel composition becomes a `τ` that leaves the operand in
//! `Ω`; the composition does `✓` when all are there. [`OMEGA`] is a pseudo-event that a leaf offers in `Ω` and that
//! changes nothing; "all operands offer `OMEGA`" is the test. A parallel composition below another one would change
//! nothing by its `✓`, so the outer one drops that rule and tests the inner leaves directly. (In timed sections operands
//! do `✓` together; there it is an event like the others.) This skips a `τ` from the
//! firing rules and is the only difference: the skipped state has that `τ` as its single transition.

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::machine::{Machine, State};
use super::verdict::CheckError;
use crate::process::{EventId, EventSet};

/// Offered by a leaf in `Ω`; changes nothing.
pub const OMEGA: EventId = EventId(u32::MAX);
/// First number of controller events; above every event of a script and below [`OMEGA`].
const CONTROL: u32 = 0x8000_0000;
/// Modes of a controller.
const MODES_MAX: u32 = 0x7fff;
/// Rules of one composition; beyond, memory would go into rules instead of states.
pub const RULES_MAX: usize = 20_000_000;

/// The controller event that goes from mode `from` to mode `to`.
fn control(from: u32, to: u32) -> EventId {
    assert!(from < MODES_MAX && to < MODES_MAX, "modes are bounded by the operands of one operator");
    EventId(CONTROL | from << 15 | to)
}

/// The event by which a leaf that several branches of a choice share goes from rest to the start of branch `branch`.
pub fn enter(branch: u32) -> EventId {
    assert!(branch < MODES_MAX, "branches are bounded by the operands of one operator");
    EventId(CONTROL | MODES_MAX << 15 | branch)
}

/// The most branches that may share leaves.
pub const BRANCHES_MAX: usize = MODES_MAX as usize;

/// Whether the event belongs to a controller, not to the script.
pub fn is_control(event: EventId) -> bool {
    event.0 >= CONTROL && event != OMEGA
}

/// Index of a leaf in the vector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LeafId(pub u32);

/// If every part's leaf can do its event, the whole can do `result`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Rule {
    pub parts: SmallVec<[(LeafId, EventId); 3]>,
    pub result: EventId,
    /// Leaves that return to their initial state, after the parts moved.
    pub resets: SmallVec<[LeafId; 2]>,
}

/// The rules of an operator tree and the leaves (a contiguous range) below it.
pub struct Subtree {
    pub rules: Vec<Rule>,
    pub leaves: std::ops::Range<u32>,
    /// Whether `✓` rules only observe that all leaves are in `Ω`, changing nothing.
    tick_changes_nothing: bool,
}

impl Subtree {
    /// A single leaf with its machine.
    pub fn leaf(id: LeafId, machine: &Machine) -> Subtree {
        let rule = |e| Rule { parts: smallvec![(id, e)], result: e, resets: smallvec![] };
        let own = machine.alphabet().into_iter().filter(|&e| !is_control(e));
        let mut rules: Vec<Rule> = own.map(rule).collect();
        if machine.omega().is_some() {
            rules.push(rule(OMEGA));
        }
        Subtree { rules, leaves: id.0..id.0 + 1, tick_changes_nothing: false }
    }

    /// The same rules over leaves that stand `by` places further on.
    pub fn moved(mut self, by: u32) -> Subtree {
        if by > 0 {
            for rule in &mut self.rules {
                rule.parts.iter_mut().for_each(|(leaf, _)| leaf.0 += by);
                rule.resets.iter_mut().for_each(|leaf| leaf.0 += by);
            }
            self.leaves = self.leaves.start + by..self.leaves.end + by;
        }
        self
    }

    /// Hiding and renaming: each visible result becomes each of `images`.
    pub fn relabelled<I: IntoIterator<Item = EventId>>(self, images: impl Fn(EventId) -> I) -> Subtree {
        let mut rules = Vec::with_capacity(self.rules.len());
        for rule in self.rules {
            if is_visible(rule.result) {
                for result in images(rule.result) {
                    rules.push(Rule { result, ..rule.clone() });
                }
            } else {
                rules.push(rule);
            }
        }
        rules.sort_unstable();
        rules.dedup();
        Subtree { rules, ..self }
    }
}

fn is_visible(event: EventId) -> bool {
    event.is_visible() && event != OMEGA
}

fn span(children: &[Subtree]) -> std::ops::Range<u32> {
    children[0].leaves.start..children[children.len() - 1].leaves.end
}

/// Rules that happen together: all parts, all resets.
fn joined(a: &Rule, b: &Rule, result: EventId) -> Rule {
    let mut parts = a.parts.clone();
    parts.extend_from_slice(&b.parts);
    let mut resets = a.resets.clone();
    resets.extend_from_slice(&b.resets);
    Rule { parts, result, resets }
}

/// Which operands take part in a visible event; see [`compose`].
pub enum Sharing<'a> {
    /// All operands in the events of the set, each alone in the others.
    Common(&'a EventSet),
    /// Operand `i` only in the events of set `i`, together with all whose set has the event.
    Alphabets(&'a [EventSet]),
}

/// Parallel composition.
pub fn compose(children: Vec<Subtree>, sharing: &Sharing<'_>, name: &str) -> Result<Subtree, CheckError> {
    let leaves = span(&children);
    // Operands that terminate together do `✓` like a shared event; `Ω` is only what an outer operator asks for.
    let joint_tick = match sharing {
        Sharing::Common(set) => set.contains(EventId::TICK),
        Sharing::Alphabets(sets) => sets.iter().all(|set| set.contains(EventId::TICK)),
    };
    let mut rules: Vec<Rule> = Vec::new();
    let mut shared: FxHashMap<EventId, Vec<Vec<&Rule>>> = FxHashMap::default();
    for (i, child) in children.iter().enumerate() {
        for rule in &child.rules {
            let e = rule.result;
            match e {
                EventId::TAU => rules.push(rule.clone()),
                EventId::TICK if joint_tick => group(&mut shared, e, children.len(), i).push(rule),
                EventId::TICK if child.tick_changes_nothing => {}
                EventId::TICK => rules.push(Rule { result: EventId::TAU, ..rule.clone() }),
                OMEGA => group(&mut shared, e, children.len(), i).push(rule),
                _ => match sharing {
                    Sharing::Common(set) if !set.contains(e) => rules.push(rule.clone()),
                    Sharing::Alphabets(sets) if !sets[i].contains(e) => {}
                    _ => group(&mut shared, e, children.len(), i).push(rule),
                },
            }
        }
    }
    let mut events: Vec<_> = shared.into_iter().collect();
    events.sort_unstable_by_key(|&(e, _)| e);
    for (event, by_child) in events {
        let mut joint: Vec<Rule> = Vec::new();
        let mut first = true;
        for (i, own) in by_child.iter().enumerate() {
            let takes_part = match sharing {
                Sharing::Alphabets(sets) if event != OMEGA => sets[i].contains(event),
                _ => true,
            };
            if !takes_part {
                continue;
            }
            joint = if first {
                own.iter().map(|&r| r.clone()).collect()
            } else {
                joint.iter().flat_map(|a| own.iter().map(move |b| joined(a, b, event))).collect()
            };
            first = false;
            if rules.len() + joint.len() > RULES_MAX {
                return Err(CheckError::TooManyRules { name: name.to_string(), limit: RULES_MAX });
            }
        }
        for rule in joint {
            if event == OMEGA && !joint_tick {
                rules.push(Rule { result: EventId::TICK, ..rule.clone() });
            }
            rules.push(rule);
        }
    }
    Ok(Subtree { rules, leaves, tick_changes_nothing: !joint_tick })
}

fn group<'m, 'r>(
    shared: &'m mut FxHashMap<EventId, Vec<Vec<&'r Rule>>>,
    event: EventId,
    children: usize,
    child: usize,
) -> &'m mut Vec<&'r Rule> {
    &mut shared.entry(event).or_insert_with(|| vec![Vec::new(); children])[child]
}

/// Linked parallel.
pub fn link(left: Subtree, links: &[(EventId, EventId)], right: Subtree) -> Subtree {
    let leaves = left.leaves.start..right.leaves.end;
    let mut rules = Vec::new();
    for (child, is_left) in [(&left, true), (&right, false)] {
        for rule in &child.rules {
            let linked =
                |&&(a, b): &&(EventId, EventId)| if is_left { a == rule.result } else { b == rule.result };
            match rule.result {
                OMEGA => {}
                EventId::TICK if child.tick_changes_nothing => {}
                EventId::TICK | EventId::TAU => rules.push(Rule { result: EventId::TAU, ..rule.clone() }),
                _ if links.iter().any(|l| linked(&l)) => {}
                _ => rules.push(rule.clone()),
            }
        }
    }
    for a in &left.rules {
        for b in &right.rules {
            if links.contains(&(a.result, b.result)) {
                rules.push(joined(a, b, EventId::TAU));
            } else if a.result == OMEGA && b.result == OMEGA {
                rules.push(joined(a, b, EventId::TICK));
                rules.push(joined(a, b, OMEGA));
            }
        }
    }
    Subtree { rules, leaves, tick_changes_nothing: true }
}

/// Builds the rules of a switching operator around its controller leaf.
pub struct Switch {
    controller: LeafId,
    modes: u32,
    steps: Vec<(u32, u32)>,
    rules: Vec<Rule>,
}

impl Switch {
    pub fn new(controller: LeafId, modes: u32) -> Switch {
        Switch { controller, modes, steps: Vec::new(), rules: Vec::new() }
    }

    fn add(&mut self, rule: &Rule, from: u32, to: u32, result: EventId, off: &[&Subtree]) {
        self.steps.push((from, to));
        let mut rule = Rule { result, ..rule.clone() };
        rule.parts.push((self.controller, control(from, to)));
        rule.resets.extend(off.iter().flat_map(|s| s.leaves.clone()).map(LeafId));
        self.rules.push(rule);
    }

    /// A step of the operator itself.
    fn step(&mut self, from: u32, to: u32, result: EventId, off: &[&Subtree]) {
        self.add(&Rule { parts: smallvec![], result, resets: smallvec![] }, from, to, result, off);
    }

    /// Runs a child alone in a mode: its `✓` ends everything (mode `done`), all else stays in the mode.
    fn run(&mut self, child: &Subtree, mode: u32, done: u32) {
        for rule in &child.rules {
            match rule.result {
                OMEGA => {}
                EventId::TICK => self.add(rule, mode, done, EventId::TICK, &[child]),
                result => self.add(rule, mode, mode, result, &[]),
            }
        }
    }

    /// The subtree and the controller's machine. `done` is the mode after `✓`.
    fn finish(mut self, leaves: std::ops::Range<u32>, done: u32) -> (Subtree, Machine) {
        self.step(done, done, OMEGA, &[]);
        self.steps.sort_unstable();
        self.steps.dedup();
        let mut lists: Vec<Vec<(EventId, State)>> = vec![Vec::new(); self.modes as usize];
        for &(from, to) in &self.steps {
            lists[from as usize].push((control(from, to), to));
        }
        let machine = Machine::numbered(lists);
        self.rules.sort_unstable();
        self.rules.dedup();
        (Subtree { rules: self.rules, leaves, tick_changes_nothing: false }, machine)
    }
}

/// `P ; Q`. The controller must be the leaf after those of the operands, here and below.
pub fn sequence(controller: LeafId, p: Subtree, q: Subtree) -> (Subtree, Machine) {
    let mut switch = Switch::new(controller, 3);
    for rule in &p.rules {
        match rule.result {
            OMEGA => {}
            EventId::TICK => switch.add(rule, 0, 1, EventId::TAU, &[&p]),
            result => switch.add(rule, 0, 0, result, &[]),
        }
    }
    switch.run(&q, 1, 2);
    switch.finish(p.leaves.start..controller.0 + 1, 2)
}

/// `[]`.
pub fn external_choice(controller: LeafId, children: Vec<Subtree>) -> (Subtree, Machine) {
    let done = children.len() as u32 + 1;
    let mut switch = Switch::new(controller, done + 1);
    for (i, child) in children.iter().enumerate() {
        let chosen = i as u32 + 1;
        let others: Vec<&Subtree> =
            children.iter().enumerate().filter(|&(j, _)| j != i).map(|(_, c)| c).collect();
        let all: Vec<&Subtree> = children.iter().collect();
        for rule in &child.rules {
            match rule.result {
                OMEGA => {}
                EventId::TAU => switch.add(rule, 0, 0, EventId::TAU, &[]),
                EventId::TICK => switch.add(rule, 0, done, EventId::TICK, &all),
                result => switch.add(rule, 0, chosen, result, &others),
            }
        }
        switch.run(child, chosen, done);
    }
    switch.finish(children[0].leaves.start..controller.0 + 1, done)
}

/// The steps by which the leaves that branches share go to the start of one of them.
pub type Entry = SmallVec<[(LeafId, EventId); 3]>;

/// `|~|`. Each child stands for as many branches as it has entries.
pub fn internal_choice(controller: LeafId, children: Vec<(Subtree, Vec<Entry>)>) -> (Subtree, Machine) {
    let done = children.len() as u32 + 1;
    let mut switch = Switch::new(controller, done + 1);
    for (i, (child, entries)) in children.iter().enumerate() {
        for entry in entries {
            let parts = entry.clone();
            let rule = Rule { parts, result: EventId::TAU, resets: smallvec![] };
            switch.add(&rule, 0, i as u32 + 1, EventId::TAU, &[]);
        }
        switch.run(child, i as u32 + 1, done);
    }
    switch.finish(children[0].0.leaves.start..controller.0 + 1, done)
}

/// `P [> Q`.
pub fn sliding(controller: LeafId, p: Subtree, q: Subtree) -> (Subtree, Machine) {
    const BOTH: u32 = 0;
    const LEFT: u32 = 1;
    const RIGHT: u32 = 2;
    const DONE: u32 = 3;
    let mut switch = Switch::new(controller, 4);
    for rule in &p.rules {
        match rule.result {
            OMEGA => {}
            EventId::TAU => switch.add(rule, BOTH, BOTH, EventId::TAU, &[]),
            EventId::TICK => switch.add(rule, BOTH, DONE, EventId::TICK, &[&p]),
            result => switch.add(rule, BOTH, LEFT, result, &[]),
        }
    }
    switch.step(BOTH, RIGHT, EventId::TAU, &[&p]);
    switch.run(&p, LEFT, DONE);
    switch.run(&q, RIGHT, DONE);
    switch.finish(p.leaves.start..controller.0 + 1, DONE)
}

/// `P [+ A +] Q` (`stay` false) and `P /+ A +\ Q` (`stay` true: events of `P` do not switch `Q` off). `P /\ Q` is the
/// latter with the empty set.
pub fn synchronised(
    controller: LeafId,
    p: Subtree,
    set: &EventSet,
    q: Subtree,
    stay: bool,
) -> (Subtree, Machine) {
    const BOTH: u32 = 0;
    const LEFT: u32 = 1;
    const RIGHT: u32 = 2;
    const DONE: u32 = 3;
    let mut switch = Switch::new(controller, 4);
    for (child, other, is_left) in [(&p, &q, true), (&q, &p, false)] {
        for rule in &child.rules {
            match rule.result {
                OMEGA => {}
                EventId::TAU => switch.add(rule, BOTH, BOTH, EventId::TAU, &[]),
                EventId::TICK => switch.add(rule, BOTH, DONE, EventId::TICK, &[&p, &q]),
                e if set.contains(e) => {
                    if is_left {
                        for partner in other.rules.iter().filter(|r| r.result == e) {
                            switch.add(&joined(rule, partner, e), BOTH, BOTH, e, &[]);
                        }
                    }
                }
                e if is_left && stay => switch.add(rule, BOTH, BOTH, e, &[]),
                e => switch.add(rule, BOTH, if is_left { LEFT } else { RIGHT }, e, &[other]),
            }
        }
    }
    if !stay {
        switch.run(&p, LEFT, DONE);
    }
    switch.run(&q, RIGHT, DONE);
    switch.finish(p.leaves.start..controller.0 + 1, DONE)
}

/// `P [| A |> Q`.
pub fn exception(controller: LeafId, p: Subtree, set: &EventSet, q: Subtree) -> (Subtree, Machine) {
    let mut switch = Switch::new(controller, 3);
    for rule in &p.rules {
        match rule.result {
            OMEGA => {}
            EventId::TICK => switch.add(rule, 0, 2, EventId::TICK, &[&p]),
            e if e.is_visible() && set.contains(e) => switch.add(rule, 0, 1, e, &[&p]),
            e => switch.add(rule, 0, 0, e, &[]),
        }
    }
    switch.run(&q, 1, 2);
    switch.finish(p.leaves.start..controller.0 + 1, 2)
}
