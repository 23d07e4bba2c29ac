//! `order`: pairs "a before b", given or learnt.
//!
//! **Definition** (the survey's definition 4 and §7; learning after Yu, Narayanasamy 2009 and others: compare the order
//! of instructions with that of correct runs). A *pair* says that the first execution of a place `a` on an object comes
//! before the first execution of a place `b` by another thread on the same object. Pairs are given by the user or learnt
//! from good runs: those that occurred in this order in some run and in the other order in none. If the first of a pair never
//! happens at all although the second does, the order is broken too: reported for pairs that were given, and for those
//! that every good run with the second place showed.
//!
//! **Neither sound nor complete**: a learnt pair may be a coincidence. Grade *suspected*, also for given pairs, because
//! the run shows the order of events, which for plain accesses of different threads is only approximately known.
//!
//! **Deviations**: places are those of accesses, plain or atomic, and announced calls; objects are variables and call objects. At most
//! [`PLACES_MAX`] places an object are followed.
//!
//! **Cost**: places seen on the object, an access.

use crate::detector::{Detector, End};
use crate::race::Site;
use crate::report::{Report, Reports, Subject, place_key};
use crate::step::{PerVar, Step};
use crate::training::{PlaceName, place_name};
use raddle_findings::{Basis, Detail, Kind, Role, What};
use raddle_trace::{LocationIx, ObjectId, Op, Tables};
use rustc_hash::{FxHashMap, FxHashSet};

pub const NAME: &str = "order";

pub const PLACES_MAX: usize = 32;

/// Orders seen in good runs, or given.
#[derive(Clone, Debug, Default)]
pub struct OrderFacts {
    pub seen: FxHashSet<(PlaceName, PlaceName)>,
    /// Pairs whose first place every good run had before the second one, or that were given.
    always: FxHashSet<(PlaceName, PlaceName)>,
    /// Places of the good runs.
    places: FxHashSet<PlaceName>,
}

impl OrderFacts {
    pub fn add(&mut self, other: OrderFacts) {
        // A pair goes on being one that always holds if the other runs had it, or did not have its second place.
        let holds = |facts: &OrderFacts, pair: &(PlaceName, PlaceName)| {
            facts.always.contains(pair) || !facts.places.contains(&pair.1)
        };
        let mut always: FxHashSet<_> =
            self.always.iter().filter(|pair| holds(&other, pair)).cloned().collect();
        always.extend(other.always.iter().filter(|pair| holds(self, pair)).cloned());
        self.always = always;
        self.places.extend(other.places);
        self.seen.extend(other.seen);
    }

    /// Pairs with this second place whose first one must not be missing.
    fn needs<'a>(&'a self, second: &'a PlaceName) -> impl Iterator<Item = &'a PlaceName> + 'a {
        self.always.iter().filter(move |pair| pair.1 == *second).map(|pair| &pair.0)
    }

    /// Must the first come before the second?
    fn requires(&self, first: &PlaceName, second: &PlaceName) -> bool {
        self.seen.contains(&(first.clone(), second.clone()))
            && !self.seen.contains(&(second.clone(), first.clone()))
    }

    /// Pairs that a user gave. `places` has the code places of a line of a source file.
    pub fn given(
        pairs: &[(GivenPlace, GivenPlace)],
        places: &mut dyn FnMut(&str, u32) -> Vec<PlaceName>,
    ) -> OrderFacts {
        let mut names = |place: &GivenPlace| match place {
            GivenPlace::Location(number) => vec![PlaceName::Foreign(*number)],
            GivenPlace::Line(file, line) => places(file, *line),
        };
        let mut facts = OrderFacts::default();
        for (first, second) in pairs {
            let seconds = names(second);
            for first in names(first) {
                facts.seen.extend(seconds.iter().map(|second| (first.clone(), second.clone())));
            }
        }
        facts.always.clone_from(&facts.seen);
        facts
    }
}

/// A place as a user writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenPlace {
    /// A location of STD text: `12`.
    Location(u32),
    /// A line of a source file: `bank.c:12`, `src/bank.c:12`.
    Line(String, u32),
}

impl GivenPlace {
    fn parse(text: &str) -> Option<GivenPlace> {
        let text = text.trim();
        match text.rsplit_once(':') {
            Some((file, line)) if !file.is_empty() => Some(GivenPlace::Line(file.into(), line.parse().ok()?)),
            Some(_) => None,
            None => Some(GivenPlace::Location(text.parse().ok()?)),
        }
    }
}

/// Reads pairs, one a line: `12 < 34` or `bank.c:12 < bank.c:34`. What follows a `#` is a comment.
pub fn parse_pairs(text: &str) -> Result<Vec<(GivenPlace, GivenPlace)>, String> {
    let mut pairs = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let pair = line
            .split_once('<')
            .and_then(|(first, second)| Some((GivenPlace::parse(first)?, GivenPlace::parse(second)?)));
        pairs.push(pair.ok_or_else(|| {
            format!(
                "line {}: expected `PLACE < PLACE`, each `FILE:LINE` or the number of an STD location",
                number + 1
            )
        })?);
    }
    Ok(pairs)
}

/// First executions on one object, in order.
type Firsts = Vec<Site>;

/// Pairs of places that were seen in this order, with an example each: the steps and their object.
type Pairs = FxHashMap<(LocationIx, LocationIx), (Site, Site, Subject)>;

#[derive(Clone, Debug, Default)]
pub struct Order {
    facts: Option<OrderFacts>,
    variables: PerVar<Firsts>,
    objects: FxHashMap<ObjectId, Firsts>,
    pairs: Pairs,
    /// The first event of each place.
    places: FxHashMap<LocationIx, (Site, Subject)>,
    violations: Vec<(u64, u64)>,
    missing: Vec<u64>,
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
        let seen: FxHashSet<(PlaceName, PlaceName)> = self.pairs.keys().map(name).collect();
        let places = self.places.keys().map(|&place| place_name(tables, place)).collect();
        OrderFacts { always: seen.clone(), seen, places }
    }

    /// Positions of events without what should have come before them.
    pub fn missing(&self) -> &[u64] {
        &self.missing
    }

    /// Places of the two events of each violation.
    pub fn violations(&self) -> &[(u64, u64)] {
        &self.violations
    }
}

fn enter(firsts: &mut Firsts, site: Site, subject: Subject, pairs: &mut Pairs) {
    if firsts.len() >= PLACES_MAX || firsts.iter().any(|first| first.location == site.location) {
        return;
    }
    for first in firsts.iter().filter(|first| first.thread != site.thread) {
        pairs.entry((first.location, site.location)).or_insert((*first, site, subject));
    }
    firsts.push(site);
}

impl Detector for Order {
    fn step(&mut self, step: &Step<'_>) {
        self.variables.follow(step);
        let site = Site::of(step);
        if step.plain_access().is_some() || matches!(step.event.op, Op::Atomic { .. }) {
            for &var in step.vars {
                self.places.entry(site.location).or_insert((site, Subject::Variable(var)));
                enter(self.variables.get_mut(var), site, Subject::Variable(var), &mut self.pairs);
            }
        } else if let Op::Custom { object, .. } = step.event.op {
            let subject = Subject::Object(object, What::Other);
            self.places.entry(site.location).or_insert((site, subject));
            enter(self.objects.entry(object).or_default(), site, subject, &mut self.pairs);
        }
    }

    fn finish(&mut self, end: &End<'_>) -> Vec<Report> {
        let Some(facts) = &self.facts else { return Vec::new() };
        let mut reports = Reports::default();
        let happened: FxHashSet<PlaceName> =
            self.places.keys().map(|&place| place_name(end.tables, place)).collect();
        let mut places: Vec<_> = self.places.iter().collect();
        places.sort_by_key(|(_, (site, _))| site.position);
        for (&place, &(late, subject)) in places {
            let name = place_name(end.tables, place);
            if name == PlaceName::Unknown {
                continue;
            }
            if let Some(missing) = facts.needs(&name).find(|first| !happened.contains(first)) {
                let text = format!("order violation: {missing}, which has to come first, was never reached");
                self.missing.push(late.position);
                reports.add(place_key(&[late], late.position), || {
                    Report::new(NAME, Kind::OrderViolation, Basis::rule())
                        .detail(Detail::Words { text })
                        .part(late.plays(Role::ComesFirst, Some(subject)))
                });
            }
        }
        let mut pairs: Vec<_> = self.pairs.iter().collect();
        pairs.sort_by_key(|(_, (first, second, _))| (second.position, first.position));
        for (&(first, second), &(early, late, subject)) in pairs {
            if facts.requires(&place_name(end.tables, second), &place_name(end.tables, first)) {
                self.violations.push((early.position, late.position));
                reports.add(place_key(&[early, late], early.position), || {
                    Report::new(NAME, Kind::OrderViolation, Basis::rule())
                        .part(early.plays(Role::ComesFirst, Some(subject)))
                        .part(late.plays(Role::ShouldComeFirst, Some(subject)))
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
        let pairs = parse_pairs("# init before use\n 3 < 14 \n\na.c:3<b/a.c:7").unwrap();
        let line = |file: &str, line| GivenPlace::Line(file.into(), line);
        assert_eq!(pairs[1], (line("a.c", 3), line("b/a.c", 7)));
        let facts = OrderFacts::given(&pairs, &mut |_, line| vec![PlaceName::Absolute(line.into())]);
        assert!(facts.requires(&PlaceName::Foreign(3), &PlaceName::Foreign(14)));
        assert!(facts.requires(&PlaceName::Absolute(3), &PlaceName::Absolute(7)));
        for broken in ["3 > 4", "3 <", ":3 < 4", "a.c:x < 4", "a.c < 4"] {
            assert!(
                parse_pairs(&format!("3 < 4\n{broken}\n")).unwrap_err().starts_with("line 2"),
                "{broken}"
            );
        }
    }
}
