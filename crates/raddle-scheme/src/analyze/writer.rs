//! Observations and suspects as findings.
//!
//! # Conflicts that are no races
//!
//! The paper's filter (§4.2.1) forgives a variable that is only read and swapped, between two threads. Here it works for
//! any number of threads and any number of procedures: conflicts on a location are harmless if all of them are between a
//! plain read and a `cas` or between two `cas`, and no procedure contributes more than one of the reads. (Two reads in one
//! attempt can see two values: pcounter-buggy.) A `cas` that fails for good is a finding of its own.

use super::cores::Cores;
use crate::abs::explore::{self as abstract_explore, Graph, StateId};
use crate::abs::space::{Space, TidId};
use crate::concrete::explore::{self, Observed, RaceKey, Stand};
use crate::concrete::state::{Origin, origin_name, path_name};
use crate::finding::*;
use crate::limits::Clock;
use crate::machine::access::{Action, SitePair};
use crate::modular;
use crate::suspect::Suspects;
use crate::syntax::core::{BodyId, ExprId, Program};
use std::collections::{BTreeMap, BTreeSet};

/// Of modular suspects of one kind, those that are listed.
const LISTED_MAX: usize = 20;

/// A location, as far as conflicts are concerned: all cells of one origin and index.
type Place = (Origin, u32);

/// Locations whose conflicts are all harmless. See the head of this file.
pub fn harmless(
    program: &Program,
    races: impl Iterator<Item = (SitePair, (Action, Action), Place)>,
) -> BTreeSet<Place> {
    let mut only_cas: BTreeMap<Place, bool> = BTreeMap::new();
    let mut reads: BTreeMap<Place, BTreeSet<(BodyId, ExprId)>> = BTreeMap::new();
    for (sites, actions, place) in races {
        let fine = only_cas.entry(place).or_insert(true);
        match actions {
            (Action::CasSucceeds, Action::CasSucceeds) => {}
            (Action::Read, Action::CasSucceeds) | (Action::CasSucceeds, Action::Read) => {
                let site = if actions.0 == Action::Read { sites.0 } else { sites.1 };
                reads.entry(place).or_default().insert((program.homes[site.index()], site));
            }
            _ => *fine = false,
        }
    }
    only_cas
        .into_iter()
        .filter(|(place, fine)| {
            let bodies: Vec<BodyId> = reads.get(place).into_iter().flatten().map(|read| read.0).collect();
            let distinct: BTreeSet<&BodyId> = bodies.iter().collect();
            *fine && distinct.len() == bodies.len()
        })
        .map(|(place, _)| place)
        .collect()
}

/// Turns observations into findings.
pub(super) struct Writer<'a> {
    pub(super) program: &'a Program,
    pub(super) observed: &'a Observed,
    pub(super) cores: &'a Cores,
}

impl Writer<'_> {
    fn part(&self, site: ExprId, thread: String, what: String, deed: Deed) -> Part {
        let span = self.program.span(site);
        let place = self.program.source.place(span);
        Part { span, place, thread, what, deed, path: None, object: None }
    }

    fn thread(&self, path: &[u32]) -> String {
        match self.observed.spawn_sites.get(path) {
            Some(site) => {
                format!(
                    "thread {}, spawned at {}",
                    path_name(path),
                    self.program.source.place(self.program.span(*site))
                )
            }
            None => "the main thread".to_owned(),
        }
    }

    fn tid(&self, space: &Space, tid: TidId) -> String {
        match space.tid_of(tid).last() {
            Some((site, _)) => {
                format!("a thread spawned at {}", self.program.source.place(self.program.span(*site)))
            }
            None => "the main thread".to_owned(),
        }
    }

    fn stand(&self, stand: &Stand) -> Part {
        let (what, deed) = match stand.action {
            Action::Acquire => ("waits for this lock", Deed::WaitsForLock),
            Action::Join => ("waits for this thread to end", Deed::WaitsForThread),
            Action::CasFails => ("fails to swap, again and again", Deed::Spins),
            Action::Read => ("reads, again and again", Deed::Spins),
            _ => ("stands here", Deed::Waits),
        };
        self.part(stand.site, self.thread(&stand.thread), what.to_owned(), deed).by(&stand.thread)
    }

    pub(super) fn confirmed(&self, out: &mut Vec<Finding>) {
        let observed = self.observed;
        let keys = observed.races.keys().map(|key| (key.sites, key.actions, (key.origin, key.cell)));
        let harmless = harmless(self.program, keys);
        // A race is benign only if every conflict on its location is: the two writes of a lost update write the same.
        let mut benign: BTreeMap<Place, bool> = BTreeMap::new();
        for (key, seen) in &observed.races {
            *benign.entry((key.origin, key.cell)).or_insert(true) &= seen.benign;
        }
        let mut reported: BTreeSet<ExprId> = BTreeSet::new();
        let mut merged: BTreeMap<(SitePair, (Action, Action), Origin), bool> = BTreeMap::new();
        for (key, seen) in &observed.races {
            let place = (key.origin, key.cell);
            if harmless.contains(&place) {
                continue;
            }
            // Cells of one vector that race in the same way are one finding.
            let group = (key.sites, key.actions, key.origin);
            let is_benign = benign[&place];
            match merged.get(&group) {
                Some(&known) if known <= is_benign => continue,
                Some(_) => {
                    let message = self.race_message(key);
                    out.retain(|f: &Finding| !(f.kind == Kind::Race && f.message == message));
                }
                None => {}
            }
            merged.insert(group, is_benign);
            reported.extend([key.sites.0, key.sites.1]);
            out.push(Finding {
                kind: Kind::Race,
                grade: Grade::Confirmed,
                benign: is_benign,
                message: self.race_message(key),
                parts: vec![
                    self.access(key, key.sites.0, key.actions.0, self.thread(&seen.threads.0))
                        .by(&seen.threads.0),
                    self.access(key, key.sites.1, key.actions.1, self.thread(&seen.threads.1))
                        .by(&seen.threads.1),
                ],
                schedule: Some(seen.schedule.clone()),
                path: Vec::new(),
            });
        }
        for (stuck, schedule) in
            observed.deadlocks.iter().filter(|seen| self.cores.deadlocks.contains(seen.0))
        {
            let message = match stuck.len() {
                1 => "a thread waits for ever".to_owned(),
                n => format!("{n} threads wait for ever"),
            };
            out.push(self.situation(Kind::Deadlock, message, stuck, schedule));
        }
        for (stuck, schedule) in
            observed.livelocks.iter().filter(|seen| self.cores.livelocks.contains(seen.0))
        {
            let threads: BTreeSet<_> = stuck.iter().map(|s| &s.thread).collect();
            let message = match threads.len() {
                1 => "a thread spins for ever".to_owned(),
                n => format!("{n} threads spin for ever"),
            };
            out.push(self.situation(Kind::Livelock, message, stuck, schedule));
        }
        let mut by_place: BTreeMap<Place, Vec<&explore::Unretried>> = BTreeMap::new();
        for (site, seen) in &observed.unretried {
            if !reported.contains(site) {
                by_place.entry((seen.origin, seen.cell)).or_default().push(seen);
            }
        }
        for ((origin, cell), seen) in by_place {
            let name = origin_name(self.program, origin, cell);
            let part = |u: &&explore::Unretried| {
                self.part(
                    u.stand.site,
                    self.thread(&u.stand.thread),
                    "may fail and is not tried again".to_owned(),
                    Deed::SwapsOnce,
                )
                .by(&u.stand.thread)
                .of(name.clone())
            };
            out.push(Finding {
                kind: Kind::UnretriedCas,
                grade: Grade::Confirmed,
                benign: false,
                message: format!("a failed swap of {name} is never retried"),
                parts: seen.iter().map(part).collect(),
                schedule: Some(seen[0].schedule.clone()),
                path: Vec::new(),
            });
        }
        for ((site, message), seen) in &observed.errors {
            out.push(Finding {
                kind: Kind::Error,
                grade: Grade::Confirmed,
                benign: false,
                message: message.clone(),
                parts: vec![
                    self.part(*site, self.thread(&seen.thread), "fails here".to_owned(), Deed::Fails)
                        .by(&seen.thread),
                ],
                schedule: Some(seen.schedule.clone()),
                path: Vec::new(),
            });
        }
    }

    fn situation(
        &self,
        kind: Kind,
        message: String,
        stuck: &[Stand],
        schedule: &crate::concrete::schedule::Schedule,
    ) -> Finding {
        Finding {
            kind,
            grade: Grade::Confirmed,
            benign: false,
            message,
            parts: stuck.iter().map(|stand| self.stand(stand)).collect(),
            schedule: Some(schedule.clone()),
            path: Vec::new(),
        }
    }

    fn race_message(&self, key: &RaceKey) -> String {
        let cell = if matches!(key.origin, Origin::Vector(_)) { 0 } else { key.cell };
        let name = match key.origin {
            Origin::Vector(site) => {
                format!(
                    "an element of the vector made at {}",
                    self.program.source.place(self.program.span(site))
                )
            }
            origin => origin_name(self.program, origin, cell),
        };
        let a = self.program.source.place(self.program.span(key.sites.0));
        let b = self.program.source.place(self.program.span(key.sites.1));
        format!("{} and {} of {name} ({a}, {b})", noun(key.actions.0), noun(key.actions.1))
    }

    /// One side of a race.
    fn access(&self, key: &RaceKey, site: ExprId, action: Action, thread: String) -> Part {
        let name = origin_name(self.program, key.origin, key.cell);
        let (verb, deed) = match action {
            Action::Read => ("reads", Deed::Reads),
            Action::Write => ("writes", Deed::Writes),
            _ => ("swaps", Deed::Swaps),
        };
        self.part(site, thread, format!("{verb} {name}"), deed).of(name)
    }

    /// What the abstract machine suspects and the concrete one, which did not see everything, has not met. Gives a reason
    /// when it does not come to an end.
    pub(super) fn suspected(
        &self,
        space: &mut Space,
        graph: &Graph,
        suspects: &Suspects,
        clock: &Clock,
        out: &mut Vec<Finding>,
    ) -> Option<String> {
        let keys = suspects.races.keys().map(|race| (race.sites, race.actions, (race.origin, race.cell)));
        let harmless = harmless(self.program, keys);
        let mut benign: BTreeMap<Place, bool> = BTreeMap::new();
        for (race, evidence) in &suspects.races {
            *benign.entry((race.origin, race.cell)).or_insert(true) &= evidence.benign;
        }
        let known = out.iter().filter(|f| f.kind == Kind::Race).map(|f| f.message.clone());
        let mut known: BTreeSet<String> = known.collect();
        for (race, evidence) in &suspects.races {
            let place = (race.origin, race.cell);
            if clock.is_over() {
                return Some(clock.reason());
            }
            let key =
                RaceKey { sites: race.sites, actions: race.actions, origin: race.origin, cell: race.cell };
            let message = self.race_message(&key);
            if harmless.contains(&place) || !known.insert(message.clone()) {
                continue;
            }
            let parts = vec![
                self.access(&key, race.sites.0, race.actions.0, self.tid(space, evidence.tids.0)),
                self.access(&key, race.sites.1, race.actions.1, self.tid(space, evidence.tids.1)),
            ];
            let path = self.path(space, graph, evidence.state);
            out.push(suspected(Kind::Race, benign[&place], message, parts, path));
        }
        let confirmed = out.iter().any(|f| f.kind == Kind::Deadlock);
        for (stuck, &state) in suspects.deadlocks.iter().filter(|_| !confirmed) {
            if clock.is_over() {
                return Some(clock.reason());
            }
            let parts = stuck
                .iter()
                .map(|&(tid, site)| {
                    self.part(site, self.tid(space, tid), "may wait here for ever".to_owned(), Deed::Waits)
                })
                .collect();
            let path = self.path(space, graph, state);
            out.push(suspected(
                Kind::Deadlock,
                false,
                "threads may wait for each other".to_owned(),
                parts,
                path,
            ));
        }
        let failed = out.iter().filter(|f| f.kind == Kind::Error).map(|f| f.parts[0].place.clone());
        let failed: BTreeSet<String> = failed.collect();
        for (&site, failure) in &suspects.errors {
            if clock.is_over() {
                return Some(clock.reason());
            }
            if failed.contains(&self.program.source.place(self.program.span(site))) {
                continue;
            }
            let parts =
                vec![self.part(site, self.tid(space, failure.tid), "may be reached".to_owned(), Deed::Fails)];
            let path = self.path(space, graph, failure.state);
            let message =
                if failure.raised { "an error may be raised" } else { "this operation cannot work" };
            out.push(suspected(Kind::Error, false, message.to_owned(), parts, path));
        }
        None
    }

    /// What the modular analysis could not exclude, where the abstract machine saw too little to say more.
    pub(super) fn left(&self, outcome: &modular::Outcome, out: &mut Vec<Finding>) {
        let known: BTreeSet<String> =
            out.iter().flat_map(|finding| finding.parts.iter().map(|part| part.place.clone())).collect();
        let is_known = |site: ExprId| known.contains(&self.program.source.place(self.program.span(site)));
        let somebody = || "some thread".to_owned();
        for race in
            outcome.races.iter().filter(|r| !(is_known(r.sites.0) && is_known(r.sites.1))).take(LISTED_MAX)
        {
            let name = origin_name(self.program, race.origin, race.cell.min(u32::MAX - 1));
            let part = |site| {
                self.part(site, somebody(), format!("may access {name}"), Deed::Accesses).of(name.clone())
            };
            let parts = vec![part(race.sites.0), part(race.sites.1)];
            let message = format!("accesses of {name} may happen at the same time");
            out.push(suspected(Kind::Race, false, message, parts, Vec::new()));
        }
        if !outcome.deadlocks.is_empty() && !out.iter().any(|finding| finding.kind == Kind::Deadlock) {
            let part = |&site: &ExprId| {
                self.part(site, somebody(), "may wait here for ever".to_owned(), Deed::Waits)
            };
            let parts = outcome.deadlocks.iter().take(LISTED_MAX).map(part).collect();
            let message = "threads may wait for ever".to_owned();
            out.push(suspected(Kind::Deadlock, false, message, parts, Vec::new()));
        }
        for &site in outcome.errors.iter().chain(&outcome.wrong).filter(|s| !is_known(**s)).take(LISTED_MAX) {
            let parts = vec![self.part(site, somebody(), "may be reached".to_owned(), Deed::Fails)];
            out.push(suspected(Kind::Error, false, "an error may be raised".to_owned(), parts, Vec::new()));
        }
    }

    fn path(&self, space: &Space, graph: &Graph, to: StateId) -> Vec<String> {
        let line = |edge: &abstract_explore::AbsEdge| {
            let place = self.program.source.place(self.program.span(edge.site));
            let what = edge.done.map_or("step", |op| op.action.word());
            format!("{}: {what} at {place}", self.tid(space, edge.tid))
        };
        graph.path(to).iter().map(line).collect()
    }
}

fn suspected(kind: Kind, benign: bool, message: String, parts: Vec<Part>, path: Vec<String>) -> Finding {
    Finding { kind, grade: Grade::Suspected, benign, message, parts, schedule: None, path }
}

fn noun(action: Action) -> &'static str {
    match action {
        Action::Read => "read",
        Action::Write => "write",
        _ => "cas",
    }
}
