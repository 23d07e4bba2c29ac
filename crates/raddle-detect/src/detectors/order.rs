//! `order`: pairs "a before b", given or learnt.
//!
//! **Definition** (the survey's definition 4 and §7; learning after Yu, Narayanasamy 2009 and others: compare the order
//! of instructions with that of correct runs). A *pair* says that the first execution of a place `a` on an object comes
//! before the first execution of a place `b` by another thread on the same object. Pairs are given by the user or learnt
//! from good runs: those that occurred in this order in some run and in the other order in none.
//!
//! **Neither sound nor complete**: a learnt pair may be a coincidence. Grade *suspected*, also for given pairs, because
//! the run shows the order of events, which for plain accesses of different threads is only approximately known.
//!
//! **Deviations**: places are those of accesses and announced calls; objects are variables and call objects. At most
//! [`PLACES_MAX`] places an object are followed.
//!
//! **Cost**: places seen on the object, an access.

use crate::detector::{Detector, End};
use crate::race::Site;
use crate::report::{Report, Reports, place_key};
use crate::step::{PerVar, Step};
use crate::training::{PlaceName, place_name};
use raddle_findings::{Grade, Kind};
use raddle_trace::{LocationIx, ObjectId, Op, Tables};
use rustc_hash::{FxHashMap, FxHashSet};

pub const NAME: &str = "order";

pub const PLACES_MAX: usize = 32;

/// Orders seen in good runs, or given.
#[derive(Clone, Debug, Default)]
pub struct OrderFacts {
    pub seen: FxHashSet<(PlaceName, PlaceName)>,
}

impl OrderFacts {
    pub fn add(&mut self, other: OrderFacts) {
        self.seen.extend(other.seen);
    }

    /// Must the first come before the second?
    fn requires(&self, first: &PlaceName, second: &PlaceName) -> bool {
        self.seen.contains(&(first.clone(), second.clone()))
            && !self.seen.contains(&(second.clone(), first.clone()))
    }

    /// Reads pairs of STD locations, one a line: `12 < 34`. Lines with `#` are comments.
    pub fn parse(text: &str) -> Result<OrderFacts, String> {
        let mut facts = OrderFacts::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let pair = line
                .split_once('<')
                .and_then(|(first, second)| Some((first.trim().parse().ok()?, second.trim().parse().ok()?)));
            let Some((first, second)) = pair else {
                return Err(format!("line {}: expected `LOCATION < LOCATION`, two numbers", number + 1));
            };
            facts.seen.insert((PlaceName::Foreign(first), PlaceName::Foreign(second)));
        }
        Ok(facts)
    }
}

/// First executions on one object, in order.
type Firsts = Vec<Site>;

#[derive(Clone, Debug, Default)]
pub struct Order {
    facts: Option<OrderFacts>,
    variables: PerVar<Firsts>,
    objects: FxHashMap<ObjectId, Firsts>,
    pairs: FxHashMap<(LocationIx, LocationIx), (Site, Site)>,
    violations: Vec<(u64, u64)>,
}

impl Order {
    /// Without facts nothing is reported; [`Order::facts`] can be used to learn.
    pub fn new(facts: Option<OrderFacts>) -> Order {
        Order { facts, ..Order::default() }
    }

    /// What this run teaches.
    pub fn facts(&self, tables: &Tables) -> OrderFacts {
        let name = |&(first, second): &(LocationIx, LocationIx)| {
            (place_name(tables, first), place_name(tables, second))
        };
        OrderFacts { seen: self.pairs.keys().map(name).collect() }
    }

    /// Places of the two events of each violation.
    pub fn violations(&self) -> &[(u64, u64)] {
        &self.violations
    }
}

fn enter(firsts: &mut Firsts, site: Site, pairs: &mut FxHashMap<(LocationIx, LocationIx), (Site, Site)>) {
    if firsts.len() >= PLACES_MAX || firsts.iter().any(|first| first.location == site.location) {
        return;
    }
    for first in firsts.iter().filter(|first| first.thread != site.thread) {
        pairs.entry((first.location, site.location)).or_insert((*first, site));
    }
    firsts.push(site);
}

impl Detector for Order {
    fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        let site = Site::of(step);
        if step.plain_access().is_some() {
            for &var in step.vars {
                enter(self.variables.get_mut(var), site, &mut self.pairs);
            }
        } else if let Op::Custom { object, .. } = step.event.op {
            enter(self.objects.entry(object).or_default(), site, &mut self.pairs);
        }
    }

    fn finish(&mut self, end: &End<'_>) -> Vec<Report> {
        let Some(facts) = &self.facts else { return Vec::new() };
        let mut reports = Reports::default();
        let mut pairs: Vec<_> = self.pairs.iter().collect();
        pairs.sort_by_key(|(_, (first, second))| (second.position, first.position));
        for (&(first, second), &(early, late)) in pairs {
            if facts.requires(&place_name(end.tables, second), &place_name(end.tables, first)) {
                self.violations.push((early.position, late.position));
                let places = [early, late].map(|site| (site.location, site.context));
                reports.add(place_key(&places, early.position), || {
                    let message = "two steps happen in the opposite of their required order";
                    Report::new(NAME, Kind::OrderViolation, Grade::Suspected, message)
                        .part(early.part("comes first here"))
                        .part(late.part("should have come before"))
                });
            }
        }
        reports.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_and_broken_lines_named() {
        let facts = OrderFacts::parse("# init before use\n 3 < 14 \n\n").unwrap();
        assert!(facts.requires(&PlaceName::Foreign(3), &PlaceName::Foreign(14)));
        assert!(OrderFacts::parse("3 < 4\n3 > 4\n").unwrap_err().starts_with("line 2"));
    }
}
