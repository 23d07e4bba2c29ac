//! `contracts`: sequences of calls that must be atomic.
//!
//! **Definition** (Sousa, Dias, Ferreira, Lourenço, *Preventing atomicity violations with contracts*, 2015; Dias et
//! al., *Verifying concurrent programs using contracts*, ICST 2017; the survey's §7). A *contract* lists sequences of
//! calls of a module. The basic form asks that such a sequence, the *target*, is atomic with respect to every target of
//! the file. The extended form adds *parameters* (the sequence counts only for calls on the same object) and *context*
//! (atomic with respect to the named *spoiler* sequences only):
//!
//! ```text
//! # a comment
//! contains get                              basic
//! contains(M) get(M) <- remove(M)           extended: parameter and context
//! begin(F) commit(F) <- begin(F) | abort(F) several spoilers
//! ```
//!
//! **Validation by happens-before** (the extended paper): a target `t1 .. tn` of one thread and a spoiler `s1 .. sm` of
//! another violate the contract unless `s1` happens before `t1` or `tn` happens before `sm`: otherwise some schedule with
//! the same synchronisation runs the whole spoiler inside the target. **Precise** for happens-before; like every
//! happens-before argument it holds for the first violation and is indicative after it. Grade *suspected*, because no
//! witness is built.
//!
//! A target of one call is atomic; in the basic form it is there to spoil others.
//!
//! **Deviations**: calls are the events that a program announces (`RADDLE_EVENT(name, object)`; STD `call(name,X)`), so a
//! call has one parameter. A sequence is broken by another call of its own names (on the same object). For each thread
//! and sequence the last [`WINDOW`] instances are compared.
//!
//! **Cost**: instances in the window, a completed instance.

use crate::clock::Clock;
use crate::detector::{Detector, End};
use crate::happens_before::HappensBefore;
use crate::race::Site;
use crate::report::{Report, Reports, Subject, place_key};
use crate::step::Step;
use raddle_findings::{Basis, Detail, Kind, Role, What};
use raddle_trace::{ObjectId, Op, Tables, TextIx, ThreadIx, ops_beside};
use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

pub const NAME: &str = "contracts";

/// Instances kept of a sequence in a thread.
pub const WINDOW: usize = 64;

/// A call in a contract: its name, and its parameter if the call has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub parameter: Option<String>,
}

pub type Sequence = Vec<Call>;

/// One line of a contract file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contract {
    pub target: Sequence,
    /// Empty in the basic form.
    pub spoilers: Vec<Sequence>,
    pub line: u32,
}

/// A contract file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct ContractError {
    pub line: u32,
    pub column: usize,
    pub problem: String,
}

/// Reads a contract file.
pub fn parse(text: &str) -> Result<Vec<Contract>, ContractError> {
    let mut contracts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let number = number as u32 + 1;
        let code = line.split('#').next().unwrap_or("");
        if code.trim().is_empty() {
            continue;
        }
        let (target, spoilers) = match code.find("<-") {
            Some(arrow) => {
                let mut spoilers = Vec::new();
                let mut column = arrow + 2;
                for part in code[arrow + 2..].split('|') {
                    spoilers.push(sequence(part, number, column)?);
                    column += part.len() + 1;
                }
                (sequence(&code[..arrow], number, 0)?, spoilers)
            }
            None => (sequence(code, number, 0)?, Vec::new()),
        };
        contracts.push(Contract { target, spoilers, line: number });
    }
    Ok(contracts)
}

fn sequence(text: &str, line: u32, start: usize) -> Result<Sequence, ContractError> {
    let mut calls = Vec::new();
    let mut rest = text;
    let error =
        |at: usize, problem: &str| ContractError { line, column: start + at + 1, problem: problem.into() };
    loop {
        rest = rest.trim_start();
        let at = text.len() - rest.len();
        if rest.is_empty() {
            break;
        }
        let word = |text: &str| {
            text.find(|c: char| !c.is_alphanumeric() && !"_:.~".contains(c)).unwrap_or(text.len())
        };
        let len = word(rest);
        if len == 0 {
            return Err(error(at, "expected the name of a call"));
        }
        let name = rest[..len].to_owned();
        rest = &rest[len..];
        let mut parameter = None;
        if let Some(inside) = rest.strip_prefix('(') {
            let Some(close) = inside.find(')') else { return Err(error(at + len, "expected `)`")) };
            let written = inside[..close].trim();
            if written.is_empty() || word(written) != written.len() {
                return Err(error(at + len + 1, "expected the name of a parameter, or `_` for any"));
            }
            parameter = (written != "_").then(|| written.to_owned());
            rest = &inside[close + 1..];
        }
        calls.push(Call { name, parameter });
    }
    if calls.is_empty() {
        return Err(error(text.len(), "expected a sequence of calls"));
    }
    Ok(calls)
}

/// What the parameters of a sequence stand for.
type Binding = Vec<(String, ObjectId)>;

/// Time and knowledge at a call.
#[derive(Clone, Debug)]
struct Moment {
    time: u32,
    clock: Clock,
    site: Site,
}

#[derive(Clone, Debug)]
struct Partial {
    next: usize,
    binding: Binding,
    first: Moment,
}

#[derive(Clone, Debug)]
struct Instance {
    thread: ThreadIx,
    slot: ThreadIx,
    binding: Binding,
    first: Moment,
    last: Moment,
}

/// Matches one sequence in all threads.
#[derive(Clone, Debug, Default)]
struct Matcher {
    sequence: Sequence,
    partial: Vec<Vec<Partial>>,
    instances: Vec<VecDeque<Instance>>,
}

fn bind(binding: &Binding, call: &Call, object: ObjectId) -> Option<Binding> {
    let Some(parameter) = &call.parameter else { return Some(binding.clone()) };
    match binding.iter().find(|(name, _)| name == parameter) {
        Some((_, bound)) => (*bound == object).then(|| binding.clone()),
        None => {
            let mut binding = binding.clone();
            binding.push((parameter.clone(), object));
            Some(binding)
        }
    }
}

fn compatible(a: &Binding, b: &Binding) -> bool {
    a.iter().all(|(name, object)| b.iter().all(|(other, bound)| name != other || object == bound))
}

impl Matcher {
    /// A call; returns the instance it completes.
    fn call(&mut self, name: &str, object: ObjectId, slot: ThreadIx, moment: &Moment) -> Option<Instance> {
        let thread = moment.site.thread.index();
        if self.partial.len() <= thread {
            self.partial.resize(thread + 1, Vec::new());
        }
        if !self.sequence.iter().any(|call| call.name == name) {
            return None;
        }
        let mut done = None;
        let mut partials = Vec::new();
        for mut partial in std::mem::take(&mut self.partial[thread]) {
            let call = &self.sequence[partial.next];
            match bind(&partial.binding, call, object) {
                Some(binding) if call.name == name => {
                    partial.next += 1;
                    partial.binding = binding;
                    if partial.next == self.sequence.len() {
                        done = Some((partial.binding, partial.first));
                    } else {
                        partials.push(partial);
                    }
                }
                // A call of the sequence's names on another object does not concern it.
                _ if !partial.binding.is_empty() && !partial.binding.iter().any(|(_, o)| *o == object) => {
                    partials.push(partial);
                }
                _ => {}
            }
        }
        let first = &self.sequence[0];
        if first.name == name
            && let Some(binding) = bind(&Binding::new(), first, object)
        {
            if self.sequence.len() == 1 {
                done = Some((binding, moment.clone()));
            } else {
                partials.push(Partial { next: 1, binding, first: moment.clone() });
            }
        }
        self.partial[thread] = partials;
        let (binding, first) = done?;
        Some(Instance { thread: moment.site.thread, slot, binding, first, last: moment.clone() })
    }

    fn keep(&mut self, instance: Instance) {
        let thread = instance.thread.index();
        if self.instances.len() <= thread {
            self.instances.resize(thread + 1, VecDeque::new());
        }
        let window = &mut self.instances[thread];
        if window.len() == WINDOW {
            window.pop_front();
        }
        window.push_back(instance);
    }
}

/// A target and the sequences that must not run inside it.
#[derive(Clone, Debug)]
struct Rule {
    line: u32,
    target: usize,
    spoilers: Vec<usize>,
}

#[derive(Clone, Debug, Default)]
pub struct Contracts {
    order: HappensBefore,
    matchers: Vec<Matcher>,
    rules: Vec<Rule>,
    reports: Reports,
    /// Last events of target and spoiler of each violation.
    violations: Vec<(u64, u64)>,
    /// Names are looked up in the trace's tables, which are handed in as they grow.
    names: Vec<String>,
}

impl Contracts {
    pub fn new(contracts: &[Contract]) -> Contracts {
        let mut detector = Contracts::default();
        let mut add = |sequence: &Sequence| {
            detector.matchers.push(Matcher { sequence: sequence.clone(), ..Matcher::default() });
            detector.matchers.len() - 1
        };
        let targets: Vec<usize> = contracts.iter().map(|contract| add(&contract.target)).collect();
        let mut rules = Vec::new();
        for (contract, &target) in contracts.iter().zip(&targets) {
            let spoilers = if contract.spoilers.is_empty() {
                targets.clone()
            } else {
                contract.spoilers.iter().map(&mut add).collect()
            };
            rules.push(Rule { line: contract.line, target, spoilers });
        }
        detector.rules = rules;
        detector
    }

    pub fn violations(&self) -> &[(u64, u64)] {
        &self.violations
    }

    /// The texts of the trace, as far as they are known; to be called before the steps that use them.
    pub fn learn_names(&mut self, tables: &Tables, upto: TextIx) {
        while self.names.len() <= upto.index() {
            self.names.push(tables.text(TextIx(self.names.len() as u32)).to_owned());
        }
    }

    fn compare(&mut self, rule: usize, target: &Instance, spoiler: &Instance) {
        let knows = |who: &Moment, slot: ThreadIx, time: u32| who.clock.get(slot) >= time;
        let before = knows(&target.first, spoiler.slot, spoiler.first.time);
        let after = knows(&spoiler.last, target.slot, target.last.time);
        // A single call has no inside.
        if target.thread == spoiler.thread
            || target.first.site.position == target.last.site.position
            || before
            || after
            || !compatible(&target.binding, &spoiler.binding)
        {
            return;
        }
        self.violations.push((target.last.site.position, spoiler.last.site.position));
        let sites = [target.first.site, target.last.site, spoiler.first.site, spoiler.last.site];
        let line = self.rules[rule].line;
        self.reports.add(place_key(&sites, u64::from(line)), || {
            let roles =
                [Role::BeginsSequence, Role::EndsSequence, Role::InterruptsSequence, Role::EndsInterruption];
            let objects = target.binding.iter().map(|&(_, object)| Subject::Object(object, What::Other));
            let report = Report::new(NAME, Kind::ContractViolation, Basis::rule())
                .detail(Detail::Contract { line })
                .objects(objects);
            sites.iter().zip(roles).fold(report, |report, (site, role)| report.part(site.plays(role, None)))
        });
    }
}

impl Detector for Contracts {
    fn step(&mut self, step: &Step<'_>) {
        self.order.step(step);
        let Op::Custom { name, object } = step.event.op else { return };
        let Some(name) = self.names.get(name.index()).cloned() else { return };
        let slot = self.order.slot(step.thread());
        let clock = self.order.clock(slot).clone();
        let moment = Moment { time: clock.get(slot), clock, site: Site::of(step) };
        let mut completed = Vec::new();
        for (number, matcher) in self.matchers.iter_mut().enumerate() {
            if let Some(instance) = matcher.call(&name, object, slot, &moment) {
                completed.push((number, instance));
            }
        }
        for (number, instance) in completed {
            for rule in 0..self.rules.len() {
                let Rule { target, spoilers, .. } = self.rules[rule].clone();
                if target == number {
                    for &spoiler in &spoilers {
                        let others: Vec<Instance> =
                            self.matchers[spoiler].instances.iter().flatten().cloned().collect();
                        others.iter().for_each(|other| self.compare(rule, &instance, other));
                    }
                }
                if spoilers.contains(&number) {
                    let others: Vec<Instance> =
                        self.matchers[target].instances.iter().flatten().cloned().collect();
                    others.iter().for_each(|other| self.compare(rule, other, &instance));
                }
            }
            self.matchers[number].keep(instance);
        }
    }

    fn learn(&mut self, tables: &Tables, events: &[raddle_trace::Event]) {
        let last = events.iter().filter_map(|event| match event.op {
            Op::Custom { name, .. } => Some(name),
            Op::Acquire { .. } | Op::Release { .. } | Op::BenignRace { .. } | ops_beside!(Annotated) => None,
        });
        if let Some(last) = last.max() {
            self.learn_names(tables, last);
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        self.reports.take()
    }
}

/// Collects the names of the calls that a trace announces, to tell those of contracts that it never has.
#[derive(Clone, Debug, Default)]
pub struct CallNames(Rc<RefCell<BTreeSet<String>>>);

impl CallNames {
    pub fn names(&self) -> BTreeSet<String> {
        self.0.borrow().clone()
    }
}

impl Detector for CallNames {
    fn learn(&mut self, tables: &Tables, events: &[raddle_trace::Event]) {
        let mut names = self.0.borrow_mut();
        for event in events {
            if let Op::Custom { name, .. } = event.op
                && !names.contains(tables.text(name))
            {
                names.insert(tables.text(name).to_owned());
            }
        }
    }

    fn step(&mut self, _step: &Step<'_>) {}

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contracts_are_read() {
        let file = "# maps\ncontains get\ncontains(M) get(M) <- remove(M) | clear(_) put(M)\n";
        let contracts = parse(file).unwrap();
        assert_eq!(contracts.len(), 2);
        assert_eq!(contracts[0].target.len(), 2);
        assert!(contracts[0].spoilers.is_empty());
        assert_eq!(contracts[1].spoilers.len(), 2);
        assert_eq!(contracts[1].spoilers[1][0].parameter, None);
        assert_eq!(contracts[1].target[0].parameter.as_deref(), Some("M"));
    }

    #[test]
    fn broken_contracts_are_named_by_line_and_column() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(error("a b\nc(X d\n").starts_with("line 2, column 2: expected `)`"));
        assert!(error("a <- \n").starts_with("line 1, column 6: expected a sequence"));
        assert!(error("a ) b\n").starts_with("line 1, column 3: expected the name of a call"));
        assert!(error("a() b\n").starts_with("line 1, column 3: expected the name of a parameter"));
    }
}
