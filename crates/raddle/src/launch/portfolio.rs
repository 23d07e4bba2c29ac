//! A campaign of runs: under one strategy, or under several that share the budget.
//!
//! Runs are done in batches. What a batch has shown, races above all, decides what the next one sees and who does it; inside of
//! a batch a run depends on its number alone. So the same seed gives the same campaign, whatever the number of workers.
//!
//! Without a strategy from the user, a search of all schedules comes first: many programs are small, and then everything is known
//! after a few runs. What it leaves is for the arms of a portfolio ([`raddle_explore::portfolio`]).

use super::exploring::{self, Batch, Limits, Plan, Workers, observation};
use super::racing::Races;
use super::searching::{self, Searching, Wanted};
use raddle_explore::feedback::Feedback;
use raddle_explore::portfolio::{Gain, Portfolio};
use raddle_explore::systematic::Reduction;
use raddle_explore::{Campaign, Estimate, Strategy};
use raddle_trace::region::RegionConfig;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a run that showed something new was made.
#[derive(Clone)]
struct Way {
    sites: Arc<Vec<String>>,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Seeded { strategy: Strategy, estimate: Arc<Estimate>, constraints: Vec<u64>, seed: u64 },
    Along(Vec<u64>),
}

/// What a campaign has come to.
#[derive(Default)]
pub struct Explored {
    pub campaign: Campaign,
    pub races: Races,
    ways: BTreeMap<u64, Way>,
    /// Runs that repeated a schedule, of strategies that never do.
    pub repeated: u64,
    /// All schedules were tried: how many inequivalent ones there are.
    pub complete: Option<u64>,
    /// Reads-from pairs that were seen, and how many there could be.
    pub pairs: Option<(usize, usize)>,
}

impl Explored {
    /// The plan under which a run was made, and the region in which it happens again.
    pub fn again<'a>(&self, plan: &Plan<'a>, run: u64) -> (Plan<'a>, RegionConfig) {
        let Some(way) = self.ways.get(&run) else {
            return (plan.clone(), plan.journaled(plan.seed_of(run)));
        };
        let seen = if way.sites.is_empty() { plan.clone() } else { plan.with_sites(&way.sites) };
        match &way.kind {
            Kind::Seeded { strategy, estimate, constraints, seed } => {
                let estimate = Estimate { constraints: constraints.clone(), ..Estimate::clone(estimate) };
                let own = Plan { strategy: *strategy, estimate, ..seen };
                let config = own.journaled(*seed);
                (own, config)
            }
            Kind::Along(prefix) => {
                let config = searching::along(&seen, prefix);
                (seen, config)
            }
        }
    }

    /// Takes in a batch; what was new in it.
    fn add(
        &mut self,
        plan: &Plan<'_>,
        estimate: &Arc<Estimate>,
        sites: &Arc<Vec<String>>,
        batch: Batch,
    ) -> Gain {
        let mut gain = Gain::default();
        // With one seed every run is the same one, and that is what is looked at.
        let never_repeats = plan.strategy.schedules(1).is_some() && !plan.same_seed;
        let schedules = self.campaign.schedules() as u64;
        for ran in batch.ran {
            gain.runs += 1;
            if never_repeats && self.campaign.knows_schedule(ran.steered.turns_hash) {
                self.repeated += 1;
                continue;
            }
            let number = plan.number_of(ran.run);
            let seen = plan.judged(observation(&ran.steered, ran.stdout));
            let (steps, turns) = (ran.steered.steps, ran.steered.turns_hash);
            if self.campaign.add(number, ran.seed, steps, turns, seen) {
                gain.outcomes += 1;
                let kind = Kind::Seeded {
                    strategy: plan.strategy,
                    estimate: Arc::clone(estimate),
                    constraints: ran.constraints,
                    seed: ran.seed,
                };
                self.ways.insert(number, Way { sites: Arc::clone(sites), kind });
            }
        }
        for race in batch.races {
            self.races.add(race);
        }
        gain.schedules = self.campaign.schedules() as u64 - schedules;
        gain
    }

    fn failed(&self, plan: &Plan<'_>) -> bool {
        plan.first && self.campaign.errors() > 0
    }
}

/// Runs of a batch at first and at most. Small ones, so that what was learnt is used soon.
const BATCH_FIRST: u64 = 32;
const BATCH_MAX: u64 = 2048;
/// So many runs that only repeat a schedule are made for each that is wanted, and at least so many.
const REPEATS_FOR_A_RUN: u64 = 20;
const REPEATS_MIN: u64 = 1000;

/// All runs of the plan under its strategy. `learns`: accesses that race become visible.
pub fn explore(
    plan: &Plan<'_>,
    learns: bool,
    limits: Limits<'_>,
    progress: &(dyn Fn(&Explored, u64) + Sync),
) -> anyhow::Result<Explored> {
    let mut explored = Explored::default();
    let mut feedback = plan.strategy.learns().then(|| Feedback::new(plan.seed));
    let mut sites = Arc::new(plan.site_names.clone());
    let mut own = plan.clone();
    let mut estimate = Arc::new(plan.estimate.clone());
    let mut workers = Workers::new(plan.workers);
    let most = plan.own_runs(plan.runs);
    let mut room = plan.strategy.schedules(plan.estimate.steps).map_or(u64::MAX, |all| plan.own_runs(all));
    let mut size = BATCH_FIRST;
    let (mut next, mut counted) = (0, 0);
    // Where nearly every delay falls on a place at which it changes nothing, there may be no other schedule left to find.
    let repeats_max = most.saturating_mul(REPEATS_FOR_A_RUN).max(REPEATS_MIN);
    while counted < most
        && next < room
        && explored.repeated < repeats_max
        && !limits.reached()
        && !explored.failed(plan)
    {
        let count = size.min(most - counted).min(room - next);
        let done = &|_| ();
        let batch = match &mut feedback {
            Some(feedback) => workers.learn(&own, feedback, (next, count), limits, done)?,
            None => workers.run(&own, (next, count), limits, done)?,
        };
        let before = explored.repeated;
        let ran = explored.add(&own, &estimate, &sites, batch).runs;
        next += count;
        counted += ran - (explored.repeated - before);
        size = (size * 2).min(BATCH_MAX);
        progress(&explored, next);
        if learns && !plan.sees_all() && own.strategy.stays_on_one_processor() {
            let found = explored.races.sites();
            if found != *sites && !found.is_empty() {
                sites = Arc::new(found);
                own = plan.with_sites(&sites);
                if own.strategy.needs_estimate() {
                    own.estimate = exploring::estimate(&own)?;
                    estimate = Arc::new(own.estimate.clone());
                    room = own
                        .strategy
                        .schedules(own.estimate.steps)
                        .map_or(u64::MAX, |all| next + own.own_runs(all));
                }
                if let Some(feedback) = &mut feedback {
                    *feedback = Feedback::new(plan.seed);
                }
                workers.renew();
            }
        }
    }
    explored.pairs = feedback.map(|feedback| (feedback.covered(), feedback.predicted()));
    Ok(explored)
}

/// What shares the budget, besides the search. Those that see races' accesses do so from the batch on in which one was found.
const ARMS: [(Strategy, bool); 8] = [
    (Strategy::Rff, true),
    (Strategy::Surw, true),
    (Strategy::Pos, true),
    (Strategy::Delay { delays: 2 }, true),
    (Strategy::Pct { depth: 3 }, true),
    (Strategy::Period { periods: 3 }, true),
    (Strategy::Random, false),
    (Strategy::Pct { depth: 2 }, false),
];

/// Names of what shares the budget.
pub const WORDS: &str = "a portfolio (search, rff, surw, pos, delay, pct, period, random)";

/// First runs of the search, and how many it may have if it seems that it will then be complete.
const SEARCH_FIRST: u64 = 10;
const SEARCH_MOST: u64 = 500;
/// After so many rounds of the others it goes on, in pieces.
const SEARCH_AGAIN: u64 = 3;
const SEARCH_PIECE: u64 = 32;

struct Arm<'a> {
    plan: Plan<'a>,
    sees: bool,
    workers: Workers,
    feedback: Feedback,
    estimate: Arc<Estimate>,
    sites: Arc<Vec<String>>,
    /// It has been prepared for these sites.
    ready: bool,
}

impl Arm<'_> {
    fn prepare(&mut self, sites: &Arc<Vec<String>>) -> anyhow::Result<()> {
        let changed = self.sees && self.sites != *sites;
        if self.ready && !changed {
            return Ok(());
        }
        if self.sees && !sites.is_empty() {
            self.plan = self.plan.with_sites(sites);
            self.sites = Arc::clone(sites);
            self.feedback = Feedback::new(self.plan.seed);
            self.workers.renew();
        }
        if self.plan.strategy.needs_estimate() {
            self.plan.estimate = exploring::estimate(&self.plan)?;
            self.estimate = Arc::new(self.plan.estimate.clone());
        }
        self.ready = true;
        Ok(())
    }
}

/// All runs of the plan, under whatever finds new things.
pub fn portfolio(
    plan: &Plan<'_>,
    limits: Limits<'_>,
    progress: &(dyn Fn(&Explored, u64) + Sync),
) -> anyhow::Result<Explored> {
    let mut explored = Explored::default();
    let mut next = 0;
    let mut search = Search::new();
    search.advance(plan, &mut explored, &mut next, SEARCH_FIRST.min(plan.runs / 4), limits);
    progress(&explored, next);
    let mut arms: Vec<Arm<'_>> = ARMS
        .iter()
        .enumerate()
        .map(|(at, &(strategy, sees))| Arm {
            // Arms that draw the same numbers would do the same before they differ.
            plan: Plan { strategy, seed: plan.seed.wrapping_add((at as u64) << 40), ..plan.clone() },
            sees,
            workers: Workers::new(if strategy.learns() { 1 } else { plan.workers }),
            feedback: Feedback::new(plan.seed),
            estimate: Arc::default(),
            sites: Arc::new(plan.site_names.clone()),
            ready: false,
        })
        .collect();
    let mut portfolio = Portfolio::new(arms.len());
    while explored.complete.is_none()
        && explored.campaign.runs() < plan.runs
        && !limits.reached()
        && !explored.failed(plan)
    {
        if portfolio.rounds() >= SEARCH_AGAIN && !search.closed {
            // By now everybody has had a chance, and what is small is better done completely.
            let wanted = if search.is_small(plan) { SEARCH_PIECE } else { 0 };
            let count = wanted.min(plan.runs - explored.campaign.runs());
            search.advance(plan, &mut explored, &mut next, count, limits);
            search.closed |= wanted == 0 || search.runs >= 2 * SEARCH_MOST;
            progress(&explored, next);
            if explored.complete.is_some() || explored.failed(plan) || explored.campaign.runs() >= plan.runs {
                continue;
            }
        }
        let Some((at, share)) = portfolio.next_share() else { break };
        let sites = Arc::new(if plan.sees_all() { Vec::new() } else { explored.races.sites() });
        let arm = &mut arms[at];
        arm.prepare(&sites)?;
        if arm.plan.strategy.schedules(arm.plan.estimate.steps).is_some_and(|all| all <= portfolio.runs(at)) {
            portfolio.close(at);
            continue;
        }
        let count = share.min(plan.runs - explored.campaign.runs());
        let done = &|_| ();
        let batch = match arm.plan.strategy.learns() {
            true => arm.workers.learn(&arm.plan, &mut arm.feedback, (next, count), limits, done)?,
            false => arm.workers.run(&arm.plan, (next, count), limits, done)?,
        };
        let gain = explored.add(&arm.plan, &arm.estimate, &arm.sites, batch);
        next += count;
        portfolio.earn(at, gain);
        progress(&explored, explored.campaign.runs());
    }
    explored.pairs = arms.first().map(|arm| (arm.feedback.covered(), arm.feedback.predicted()));
    Ok(explored)
}

/// A search of all schedules, as far as it is worth it.
struct Search {
    searching: Searching,
    runs: u64,
    /// It has nothing more to give.
    closed: bool,
}

impl Search {
    fn new() -> Search {
        let wanted = Wanted { reduction: Reduction::Source, within: None, shard: None };
        let mut searching = Searching::new(wanted);
        searching.keeps_recent = true;
        Search { searching, runs: 0, closed: false }
    }

    /// Does it seem that so many runs would be all?
    fn is_small(&self, plan: &Plan<'_>) -> bool {
        let all = self.searching.estimate().0;
        all <= SEARCH_MOST as f64 && all < plan.runs as f64
    }

    /// Makes so many runs.
    fn advance(
        &mut self,
        plan: &Plan<'_>,
        explored: &mut Explored,
        next: &mut u64,
        count: u64,
        limits: Limits<'_>,
    ) {
        let mut left = count;
        while left > 0 && !self.closed && !limits.reached() && !explored.failed(plan) {
            let searching = &mut self.searching;
            // A program that a search cannot follow can be explored all the same.
            let went = searching.run(plan, limits, searching.state.runs + left, |_| ()).is_ok();
            let before = *next;
            for recent in searching.recent.drain(..) {
                let number = *next;
                *next += 1;
                if explored.campaign.add(
                    number,
                    plan.seed,
                    recent.steps,
                    recent.turns_hash,
                    recent.observation,
                ) {
                    let kind = Kind::Along(recent.prefix);
                    explored.ways.insert(number, Way { sites: Arc::new(recent.sites), kind });
                }
            }
            for race in searching.races.iter() {
                explored.races.add(race.clone());
            }
            if searching.state.complete && !searching.unseen_accesses {
                explored.complete = Some(searching.executions());
            }
            let done = *next - before;
            self.runs += done;
            left = left.saturating_sub(done.max(1));
            self.closed |= !went || searching.cut_off || searching.state.complete;
        }
    }
}
