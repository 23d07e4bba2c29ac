//! Exhaustive search over real runs: a [`systematic`] search decides along which threads the next run goes, the runtime's strategy
//! `follow` goes that way, and the journal of the run says what happened and who else could have gone.
//!
//! Every run is looked at by the race detector. When it shows a race that nobody had seen, the accesses of the race become visible
//! and the search begins anew: without them its scheduling points were not enough. A search that ends without a race has
//! seen all that the program can do.

use super::exploring::{JOURNAL_BYTES_MAX, Limits, Plan, observation, processors};
use super::racing::{self, Race, Races};
use super::server::ForkServer;
use super::steering::{self, Outcome, Steered};
use crate::compiler::Refusal;
use anyhow::Context;
use raddle_explore::systematic::bounded::{Bounded, Cost};
use raddle_explore::systematic::reading::{self, Ended, Threads};
use raddle_explore::systematic::search::{Shard, Strayed, Verdict};
use raddle_explore::systematic::{Order, Reduction, Run, Search};
use raddle_explore::{Campaign, Observation};
use raddle_trace::region::RegionConfig;
use raddle_wire::journal::marks;
use raddle_wire::region::strategy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Words of the region's blob that an order may take.
const ORDER_WORDS_MAX: usize = 1 << 17;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub reduction: Reduction,
    pub within: Option<(Cost, u32)>,
    pub shard: Option<Shard>,
}

/// What decides which run comes next.
#[derive(Serialize, Deserialize)]
pub enum Engine {
    /// All of them.
    Whole(Search),
    /// Those within a bound, the cheapest first.
    Within(Bounded),
}

impl Engine {
    fn new(wanted: &Wanted) -> Engine {
        match wanted.within {
            Some((cost, most)) => {
                Engine::Within(Bounded::new(cost, most, wanted.reduction != Reduction::None))
            }
            None => Engine::Whole(Search::new(wanted.reduction, wanted.shard)),
        }
    }

    fn next_order(&mut self) -> Option<Order> {
        match self {
            Engine::Whole(search) => search.next_order(),
            Engine::Within(bounded) => bounded.next_order(),
        }
    }

    fn absorb(&mut self, order: &Order, run: &Run) -> Result<Verdict, Strayed> {
        match self {
            Engine::Whole(search) => search.absorb(order, run),
            Engine::Within(bounded) => {
                order.check(run)?;
                Ok(if bounded.absorb(order, run) { Verdict::Execution } else { Verdict::Blocked })
            }
        }
    }
}

/// A search and what it has found so far, in a form that can be put aside and taken up again.
#[derive(Serialize, Deserialize)]
pub struct State {
    pub wanted: Wanted,
    pub engine: Engine,
    threads: Threads,
    pub campaign: Campaign,
    /// The threads of the first run of each outcome, in the order of their turns, by number of the run.
    prefixes: BTreeMap<u64, Vec<u64>>,
    /// Executions that ended in a deadlock, and in any failure.
    pub deadlocks: u64,
    pub failures: u64,
    /// Runs since the search began, or began anew.
    pub runs: u64,
    /// How often it began anew because a race was found.
    pub restarts: u32,
    /// Accesses that are visible because they race.
    pub sites: Vec<String>,
    pub complete: bool,
}

impl State {
    fn new(wanted: Wanted, sites: Vec<String>, restarts: u32) -> State {
        State {
            engine: Engine::new(&wanted),
            wanted,
            threads: Threads::default(),
            campaign: Campaign::default(),
            prefixes: BTreeMap::new(),
            deadlocks: 0,
            failures: 0,
            runs: 0,
            restarts,
            sites,
            complete: false,
        }
    }
}

pub struct Searching {
    pub state: State,
    pub races: Races,
    /// Races that were found while the search was to stay as it is.
    pub unseen_accesses: bool,
    /// A run took longer than allowed, so that nobody knows how it would have gone on.
    pub cut_off: bool,
    /// Runs that count are kept until somebody takes them ([`Searching::recent`]).
    pub keeps_recent: bool,
    pub recent: Vec<Recent>,
    program: Option<Program>,
}

/// A run that counts.
pub struct Recent {
    pub observation: Observation,
    pub steps: u64,
    pub turns_hash: u64,
    /// Its threads in the order of their turns.
    pub prefix: Vec<u64>,
    /// What was visible.
    pub sites: Vec<String>,
}

impl Searching {
    pub fn new(wanted: Wanted) -> Searching {
        Searching::from(State::new(wanted, Vec::new(), 0))
    }

    /// Goes on where a search was left.
    pub fn from(state: State) -> Searching {
        Searching {
            state,
            races: Races::default(),
            unseen_accesses: false,
            cut_off: false,
            keeps_recent: false,
            recent: Vec::new(),
            program: None,
        }
    }

    /// The plan, with the accesses visible that this search has found to race.
    pub fn plan<'a>(&self, plan: &Plan<'a>) -> Plan<'a> {
        match self.state.sites.is_empty() {
            true => plan.clone(),
            false => plan.with_sites(&[&plan.site_names[..], &self.state.sites].concat()),
        }
    }

    /// The region of a run that goes as the first run of an outcome did.
    pub fn again(&self, plan: &Plan<'_>, run: u64) -> RegionConfig {
        along(&self.plan(plan), self.prefix(run))
    }

    /// The threads of the first run of an outcome, in the order of their turns.
    pub fn prefix(&self, run: u64) -> &[u64] {
        self.state.prefixes.get(&run).map_or(&[][..], Vec::as_slice)
    }

    /// The order in the form that the runtime reads (`raddle_sched::strategy::follow`).
    fn words(&self, order: &Order) -> Vec<u64> {
        let path = |thread| self.state.threads.path(thread).unwrap_or(0);
        let mut words = vec![order.prefix.len() as u64, order.asleep_at as u64, order.asleep.len() as u64];
        words.extend(order.prefix.iter().map(|&thread| path(thread)));
        for event in &order.asleep {
            words.push(path(event.thread));
            words.extend(event.op.pack());
        }
        words
    }

    /// Runs until the search is complete, or somebody or something stops it, or after so many runs in all.
    pub fn run(
        &mut self,
        plan: &Plan<'_>,
        limits: Limits<'_>,
        most: u64,
        mut progress: impl FnMut(&Searching),
    ) -> anyhow::Result<()> {
        let mut own = self.plan(plan);
        while self.state.runs < most && !self.state.complete && !self.cut_off && !limits.reached() {
            let Some(order) = self.state.engine.next_order() else {
                self.state.complete = true;
                break;
            };
            let words = self.words(&order);
            if words.len() > ORDER_WORDS_MAX {
                return Err(Refusal(format!(
                    "a run takes more than {} operations: too long for an exhaustive search; make the input smaller",
                    order.prefix.len()
                ))
                .into());
            }
            let program = match &mut self.program {
                Some(program) => program,
                none => none.insert(Program::start(&own)?),
            };
            let Some(ran) = program.run(&own, &words, limits)? else { break };
            if self.hear_of_races(plan, ran.races.clone()) {
                own = self.plan(plan);
                self.program = None;
                progress(self);
                continue;
            }
            let ended = match &ran.steered.outcome {
                Outcome::Ended(_) => Ended::Gone,
                Outcome::Deadlock(_) | Outcome::Stuck(_) => Ended::Still,
                Outcome::TimedOut(_) => {
                    self.cut_off = true;
                    break;
                }
                Outcome::TooManyThreads => return Err(Refusal(steering::TOO_MANY_THREADS.into()).into()),
                Outcome::Parked(_) | Outcome::Diverged(_) => unreachable!("there is no schedule to follow"),
            };
            let run = reading::read(&mut self.state.threads, marks(&ran.journal), ended)
                .map_err(|problem| Refusal(format!("{problem}: no exhaustive search is possible")))?;
            let absorbed = self.state.engine.absorb(&order, &run);
            let verdict = absorbed.map_err(|strayed| Refusal(strayed.to_string()))?;
            if verdict == Verdict::Execution {
                self.add(plan, self.state.runs, &run, &ran);
            }
            self.state.runs += 1;
            progress(self);
            if plan.first && self.state.failures > 0 {
                break;
            }
        }
        Ok(())
    }

    /// True if the search began anew, with more visible accesses.
    fn hear_of_races(&mut self, plan: &Plan<'_>, races: Vec<Race>) -> bool {
        let mut sites = self.state.sites.clone();
        for race in races {
            let known = |place: &String| sites.contains(place) || plan.site_names.contains(place);
            let new: Vec<String> = race.places.iter().filter(|&place| !known(place)).cloned().collect();
            sites.extend(new);
            self.races.add(race);
        }
        if sites.len() == self.state.sites.len() || plan.sees_all() {
            return false;
        }
        if self.state.wanted.shard.is_some() {
            // Other shards would not do the same.
            self.unseen_accesses = true;
            return false;
        }
        sites.sort();
        self.state = State::new(self.state.wanted, sites, self.state.restarts + 1);
        true
    }

    fn add(&mut self, plan: &Plan<'_>, number: u64, run: &Run, ran: &Ran) {
        let observation = plan.judged(observation(&ran.steered, ran.stdout.clone()));
        let state = &mut self.state;
        state.deadlocks += u64::from(matches!(ran.steered.outcome, Outcome::Deadlock(_)));
        state.failures += u64::from(observation.ending.is_error());
        let steered = &ran.steered;
        let path = |step: &raddle_explore::systematic::Step| state.threads.path(step.event.thread);
        let prefix = || -> Vec<u64> { run.steps.iter().filter_map(path).collect() };
        if self.keeps_recent {
            self.recent.push(Recent {
                observation: observation.clone(),
                steps: steered.steps,
                turns_hash: steered.turns_hash,
                prefix: prefix(),
                sites: [&plan.site_names[..], &state.sites].concat(),
            });
        }
        let prefix = prefix();
        if state.campaign.add(number, plan.seed, steered.steps, steered.turns_hash, observation) {
            state.prefixes.insert(number, prefix);
        }
    }

    pub fn executions(&self) -> u64 {
        match &self.state.engine {
            Engine::Whole(search) => search.statistics.executions,
            Engine::Within(bounded) => bounded.executions(),
        }
    }

    /// Executions in all and the error, as far as can be told now.
    pub fn estimate(&self) -> (f64, f64) {
        match &self.state.engine {
            Engine::Whole(search) => search.estimate(),
            // Each prefix that waits leads to one execution at least, or to a state met before.
            Engine::Within(bounded) => {
                let waiting = bounded.waiting() as f64;
                (bounded.executions() as f64 + waiting, waiting)
            }
        }
    }
}

/// The region of a run along these threads, and then on by itself.
pub fn along(plan: &Plan<'_>, prefix: &[u64]) -> RegionConfig {
    let mut words = vec![prefix.len() as u64, prefix.len() as u64, 0];
    words.extend(prefix);
    words.extend(plan.site_words());
    let plan = Plan { checked: false, ..plan.clone() };
    RegionConfig { blob: bytes(&words), ..config(&plan) }
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// What all runs of a search have in common.
fn config(plan: &Plan<'_>) -> RegionConfig {
    let config = plan.config(plan.seed, processors().first().copied());
    RegionConfig { strategy: strategy::FOLLOW, journal_max: JOURNAL_BYTES_MAX, ..config }
}

/// What a run left.
struct Ran {
    steered: Steered,
    stdout: Vec<u8>,
    journal: Vec<u8>,
    races: Vec<Race>,
}

/// The program, ready to be run.
struct Program {
    server: Option<ForkServer>,
    config: RegionConfig,
}

impl Program {
    fn start(plan: &Plan<'_>) -> anyhow::Result<Program> {
        let mut words = vec![0; ORDER_WORDS_MAX];
        // The visible sites stand at the end, and stay there.
        words.extend(plan.site_words());
        let config = RegionConfig { blob: bytes(&words), ..config(plan) };
        let server = if plan.exec { None } else { ForkServer::start(plan.launch, &config)? };
        Ok(Program { server, config })
    }

    /// One run along an order. `None`: it was stopped.
    fn run(&mut self, plan: &Plan<'_>, order: &[u64], limits: Limits<'_>) -> anyhow::Result<Option<Ran>> {
        let order = bytes(order);
        let Some(server) = &mut self.server else {
            self.config.blob[..order.len()].copy_from_slice(&order);
            let (steered, stdout, region) = steering::run_shared(plan.launch, &self.config, plan.timeout)?;
            let (journal, races) = (region.journal(), racing::take(&region));
            return Ok(Some(Ran { steered, stdout, journal, races }));
        };
        assert!(server.rewrite_blob(&order), "there is room for an order");
        let mut ran = None;
        server
            .run((plan.seed, 0), 1, plan.timeout, limits.stop, |served| ran = Some(served))
            .context("try again with --exec, which starts the program for each run")?;
        let (journal, races) = (server.journal_bytes(), racing::take(server.region()));
        Ok(ran.map(|served| Ran { steered: served.steered, stdout: served.stdout, journal, races }))
    }
}
