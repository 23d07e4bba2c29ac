//! `views`: view consistency.
//!
//! **Definition** (Artho, Havelund, Biere, *High-level data races*, 2003; the survey's §5.2). The *view* of a critical
//! section is the set of variables accessed in it. Of each thread the maximal views are those contained in no other of
//! its views. A thread's views are compatible with a maximal view of another thread if their intersections with it form
//! a chain: each is contained in the next. If not, one thread treats variables as belonging together that the other
//! updates apart.
//!
//! **Neither sound nor complete** for errors; the report names the views that do not fit. Grade *suspected*.
//!
//! **Deviations**: nested sections give a view each, as in the paper. So do the regions that a user marked or named: a pair that
//! is read in two steps, each under its own lock, has no section of its own, and only the user knows that it belongs
//! together. Views of more than [`VARIABLES_MAX`] variables and
//! more than [`VIEWS_MAX`] views a thread are left out.
//!
//! **Cost**: an insertion for each access in a critical section; pairs of views of pairs of threads at the end.

use crate::detector::{Detector, End};
use crate::race::Site;
use crate::region::{RegionTracker, Regions};
use crate::report::{Report, Reports, Subject, place_key};
use crate::step::{LockIx, Step, Sync, VarIx};
use raddle_findings::{Basis, Kind, Role};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

pub const NAME: &str = "views";

pub const VARIABLES_MAX: usize = 4096;
pub const VIEWS_MAX: usize = 2_000;

type View = BTreeSet<VarIx>;

#[derive(Clone, Debug, Default)]
struct Actor {
    open: Vec<(LockIx, View, Site)>,
    /// The user's region that the thread is in.
    region: Option<(View, Site)>,
    /// Views and where one of their sections began.
    views: FxHashMap<View, Site>,
}

#[derive(Clone, Debug, Default)]
pub struct Views {
    /// `None`: critical sections alone.
    tracker: Option<RegionTracker>,
    actors: Vec<Actor>,
    /// Pairs of threads that are inconsistent: whose maximal view, whose views.
    inconsistent: Vec<(usize, usize)>,
}

impl Actor {
    fn close_region(&mut self) {
        if let Some((view, site)) = self.region.take()
            && !view.is_empty()
            && self.views.len() < VIEWS_MAX
        {
            self.views.entry(view).or_insert(site);
        }
    }
}

impl Views {
    pub fn new(regions: Regions) -> Views {
        let tracker = match regions {
            Regions::CriticalSections => None,
            Regions::Marked | Regions::Functions(_) => Some(RegionTracker::new(regions)),
        };
        Views { tracker, ..Views::default() }
    }

    pub fn inconsistent(&self) -> &[(usize, usize)] {
        &self.inconsistent
    }
}

impl Detector for Views {
    fn step(&mut self, step: &Step<'_>) {
        let thread = step.thread().index();
        if self.actors.len() <= thread {
            self.actors.resize(thread + 1, Actor::default());
        }
        for &(old, new) in step.splits {
            for actor in &mut self.actors {
                let open = actor.open.iter_mut().map(|(_, view, _)| view);
                for view in open.chain(actor.region.iter_mut().map(|(view, _)| view)) {
                    if view.contains(&old) {
                        view.insert(new);
                    }
                }
                let cut: Vec<(View, Site)> = actor
                    .views
                    .iter()
                    .filter(|(view, _)| view.contains(&old))
                    .map(|(v, s)| (v.clone(), *s))
                    .collect();
                for (mut view, site) in cut {
                    actor.views.remove(&view);
                    view.insert(new);
                    actor.views.insert(view, site);
                }
            }
        }
        let place = self.tracker.as_mut().map(|tracker| tracker.step(step));
        let actor = &mut self.actors[thread];
        if place.is_some_and(|place| place.begins || place.ended_before) {
            actor.close_region();
        }
        if place.is_some_and(|place| place.begins) {
            actor.region = Some((View::new(), Site::of(step)));
        }
        if place.is_some_and(|place| place.ends) {
            actor.close_region();
        }
        if step.plain_access().is_some() {
            let open = actor.open.iter_mut().map(|(_, view, _)| view);
            for view in open.chain(actor.region.iter_mut().map(|(view, _)| view)) {
                if view.len() < VARIABLES_MAX {
                    view.extend(step.vars);
                }
            }
            return;
        }
        match step.sync {
            Sync::Acquire { lock, .. } => actor.open.push((lock, View::new(), Site::of(step))),
            Sync::Release { lock, .. } => {
                let Some(place) = actor.open.iter().position(|(open, ..)| *open == lock) else { return };
                let (_, view, site) = actor.open.remove(place);
                if !view.is_empty() && actor.views.len() < VIEWS_MAX {
                    actor.views.entry(view).or_insert(site);
                }
            }
            Sync::None
            | Sync::Fork(_)
            | Sync::Join(_)
            | Sync::Receive(_)
            | Sync::Send(_)
            | Sync::Exchange(_) => {}
        }
    }

    fn finish(&mut self, _end: &End<'_>) -> Vec<Report> {
        let mut reports = Reports::default();
        for (owner, actor) in self.actors.iter().enumerate() {
            let maximal: Vec<(&View, &Site)> = actor
                .views
                .iter()
                .filter(|(view, _)| !actor.views.keys().any(|other| *view != other && view.is_subset(other)))
                .collect();
            for (other, reader) in self.actors.iter().enumerate().filter(|(other, _)| *other != owner) {
                let mut found = false;
                for (max, max_site) in &maximal {
                    let meets: Vec<(View, &Site)> = reader
                        .views
                        .iter()
                        .map(|(view, site)| (max.intersection(view).copied().collect::<View>(), site))
                        .filter(|(meet, _)| !meet.is_empty())
                        .collect();
                    for (place, (a, a_site)) in meets.iter().enumerate() {
                        for (b, b_site) in &meets[..place] {
                            if a.is_subset(b) || b.is_subset(a) {
                                continue;
                            }
                            found = true;
                            let sites = [**max_site, **a_site, **b_site];
                            reports.add(place_key(&sites, max_site.position), || {
                                // One variable of each that the other does not have stands for the rest.
                                let only = |these: &View, those: &View| {
                                    these.difference(those).next().copied().map(Subject::Variable)
                                };
                                Report::new(NAME, Kind::HighLevelRace, Basis::rule())
                                    .part(sites[0].plays(Role::AccessesTogether, None))
                                    .part(sites[1].plays(Role::AccessesSome, only(a, b)))
                                    .part(sites[2].plays(Role::AccessesOthers, only(b, a)))
                            });
                        }
                    }
                }
                if found {
                    self.inconsistent.push((owner, other));
                }
            }
        }
        reports.take()
    }
}
