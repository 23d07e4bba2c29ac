//! Exhaustive search over real runs: a [`systematic`] search decides along which threads the next run goes, the runtime's strategy
//! `follow` goes that way, and the journal of the run says what happened and who else could have gone.

use super::exploring::{JOURNAL_BYTES_MAX, Plan, observation, processors};
use super::server::ForkServer;
use super::steering::{self, Outcome, Steered};
use crate::compiler::Refusal;
use anyhow::Context;
use raddle_explore::Campaign;
use raddle_explore::systematic::bounded::Bounded;
use raddle_explore::systematic::reading::{self, Ended, Threads};
use raddle_explore::systematic::search::{Strayed, Verdict};
use raddle_explore::systematic::{Order, Run, Search};
use raddle_trace::region::RegionConfig;
use raddle_wire::journal::marks;
use raddle_wire::region::strategy;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Words of the region's blob that an order may take.
const ORDER_WORDS_MAX: usize = 1 << 17;

/// What decides which run comes next.
pub enum Engine {
    /// All of them.
    Whole(Search),
    /// Those within a bound, the cheapest first.
    Within(Bounded),
}

impl Engine {
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

/// A search and what it has found so far.
pub struct Searching {
    pub engine: Engine,
    threads: Threads,
    pub campaign: Campaign,
    /// The threads of the first run of each outcome, in the order of their turns, by number of the run.
    prefixes: BTreeMap<u64, Vec<u64>>,
    /// Executions that ended in a deadlock, and in any failure.
    pub deadlocks: u64,
    pub failures: u64,
    /// A run took longer than allowed, so that nobody knows how it would have gone on.
    pub cut_off: bool,
    pub complete: bool,
}

impl Searching {
    pub fn new(engine: Engine) -> Searching {
        Searching {
            engine,
            threads: Threads::default(),
            campaign: Campaign::default(),
            prefixes: BTreeMap::new(),
            deadlocks: 0,
            failures: 0,
            cut_off: false,
            complete: false,
        }
    }

    /// The region of a run that goes as the first run of an outcome did.
    pub fn again(&self, plan: &Plan<'_>, run: u64) -> RegionConfig {
        let prefix = self.prefixes.get(&run).map_or(&[][..], Vec::as_slice);
        let mut words = vec![prefix.len() as u64, prefix.len() as u64, 0];
        words.extend(prefix);
        words.extend(plan.site_words());
        RegionConfig { blob: bytes(&words), ..config(plan) }
    }

    /// The order in the form that the runtime reads (`raddle_sched::strategy::follow`).
    fn words(&self, order: &Order) -> Vec<u64> {
        let path = |thread| self.threads.path(thread).unwrap_or(0);
        let mut words = vec![order.prefix.len() as u64, order.asleep_at as u64, order.asleep.len() as u64];
        words.extend(order.prefix.iter().map(|&thread| path(thread)));
        for event in &order.asleep {
            words.push(path(event.thread));
            words.extend(event.op.pack());
        }
        words
    }

    /// Runs until the search is complete, or until somebody or something stops it.
    pub fn run(
        &mut self,
        plan: &Plan<'_>,
        stop: &AtomicBool,
        mut progress: impl FnMut(&Searching),
    ) -> anyhow::Result<()> {
        let mut program = Program::start(plan)?;
        let mut number = 0;
        while number < plan.runs && !stop.load(Ordering::Relaxed) {
            let Some(order) = self.engine.next_order() else {
                self.complete = true;
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
            let Some(ran) = program.run(plan, &words, stop)? else { break };
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
            let run = reading::read(&mut self.threads, marks(&ran.journal), ended)
                .map_err(|problem| Refusal(format!("{problem}: no exhaustive search is possible")))?;
            let verdict = self.engine.absorb(&order, &run).map_err(|strayed| Refusal(strayed.to_string()))?;
            if verdict == Verdict::Execution {
                self.add(plan, number, &run, &ran);
            }
            number += 1;
            progress(self);
            if plan.first && self.failures > 0 {
                break;
            }
        }
        Ok(())
    }

    fn add(&mut self, plan: &Plan<'_>, number: u64, run: &Run, ran: &Ran) {
        let observation = observation(&ran.steered, ran.stdout.clone());
        self.deadlocks += u64::from(matches!(ran.steered.outcome, Outcome::Deadlock(_)));
        self.failures += u64::from(observation.ending.is_error());
        let steered = &ran.steered;
        if self.campaign.add(number, plan.seed, steered.steps, steered.turns_hash, observation) {
            let path = |step: &raddle_explore::systematic::Step| self.threads.path(step.event.thread);
            self.prefixes.insert(number, run.steps.iter().filter_map(path).collect());
        }
    }
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
    fn run(&mut self, plan: &Plan<'_>, order: &[u64], stop: &AtomicBool) -> anyhow::Result<Option<Ran>> {
        let order = bytes(order);
        let Some(server) = &mut self.server else {
            self.config.blob[..order.len()].copy_from_slice(&order);
            return steering::run_with_journal(plan.launch, &self.config, plan.timeout)
                .map(|(steered, stdout, journal)| Some(Ran { steered, stdout, journal }));
        };
        assert!(server.rewrite_blob(&order), "there is room for an order");
        let mut ran = None;
        server
            .run((plan.seed, 0), 1, plan.timeout, stop, |served| ran = Some(served))
            .context("try again with --exec, which starts the program for each run")?;
        let journal = server.journal_bytes();
        Ok(ran.map(|served| Ran { steered: served.steered, stdout: served.stdout, journal }))
    }
}
