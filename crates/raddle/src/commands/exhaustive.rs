//! `raddle explore --exhaustive`: what is asked for, and what the result allows to say.

use super::Ctx;
use crate::compiler::Refusal;
use crate::launch::exploring::{Limits, Plan};
use crate::launch::searching::{Engine, Searching, State, Wanted};
use crate::launch::shards;
use indicatif::{ProgressBar, ProgressStyle};
use raddle_explore::systematic::Reduction;
use raddle_explore::systematic::bounded::Cost;
use raddle_findings::{Store, file};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Which runs are left out because they are equivalent to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReductionArg {
    /// None: every interleaving is run.
    None,
    /// Sleep sets (Godefroid).
    Sleep,
    /// Dynamic partial order reduction (Flanagan and Godefroid).
    Dpor,
    /// Source sets (Abdulla et al.).
    Source,
    /// Wakeup trees (Abdulla et al.): no run is blocked.
    Optimal,
}

impl ReductionArg {
    fn reduction(self) -> Reduction {
        match self {
            ReductionArg::None => Reduction::None,
            ReductionArg::Sleep => Reduction::Sleep,
            ReductionArg::Dpor => Reduction::Dpor,
            ReductionArg::Source => Reduction::Source,
            ReductionArg::Optimal => Reduction::Optimal,
        }
    }

    fn word(self) -> &'static str {
        match self {
            ReductionArg::None => "none",
            ReductionArg::Sleep => "sleep",
            ReductionArg::Dpor => "dpor",
            ReductionArg::Source => "source",
            ReductionArg::Optimal => "optimal",
        }
    }
}

#[derive(clap::Args)]
pub struct SearchArgs {
    /// With --exhaustive: which equivalent runs are left out (default: source).
    #[arg(long, value_enum, requires = "exhaustive")]
    reduction: Option<ReductionArg>,
    /// With --exhaustive: only schedules with at most so many preemptions, those with few first.
    #[arg(long, value_name = "K", requires = "exhaustive", conflicts_with = "delay_bound")]
    bound: Option<u32>,
    /// With --exhaustive: only schedules with at most so many delays, those with few first.
    #[arg(long, value_name = "K", requires = "exhaustive")]
    delay_bound: Option<u32>,
    /// With --exhaustive: go on where an interrupted search stopped. What it needs for that is in the store.
    #[arg(long, requires = "exhaustive", conflicts_with = "shard")]
    resume: bool,
}

/// A search that was put aside.
#[derive(Serialize, Deserialize)]
struct Aside {
    program: Vec<String>,
    code_id: String,
    options: u64,
    state: State,
}

/// What is being written.
#[derive(Serialize)]
struct Putting<'a> {
    program: Vec<String>,
    code_id: &'a str,
    options: u64,
    state: &'a State,
}

/// How often a search is put aside while it goes on, so that a crash of the machine does not cost more.
const ASIDE_EVERY: Duration = Duration::from_secs(20);

fn aside_path(store: &Store) -> PathBuf {
    store.folder().join("search.json")
}

fn put_aside(searching: &Searching, plan: &Plan<'_>, store: &Store) -> anyhow::Result<()> {
    store.create()?;
    let program = plan.launch.words();
    let putting =
        Putting { program, code_id: &plan.head.code_id, options: plan.options, state: &searching.state };
    shards::put(&aside_path(store), &putting)
}

/// The reduction of a bounded search: states are recognised by their histories.
const HISTORIES: &str = "histories";

impl SearchArgs {
    fn reduction(&self) -> ReductionArg {
        self.reduction.unwrap_or(ReductionArg::Source)
    }

    fn cost(&self) -> Option<(Cost, u32)> {
        let preemptions = self.bound.map(|most| (Cost::Preemptions, most));
        preemptions.or(self.delay_bound.map(|most| (Cost::Delays, most)))
    }

    fn wanted(&self, plan: &Plan<'_>) -> anyhow::Result<Wanted> {
        let wanted =
            Wanted { reduction: self.reduction().reduction(), within: self.cost(), shard: plan.shard };
        if wanted.shard.is_some() && wanted.within.is_some() {
            return Err(Refusal(
                "a bounded search knows states by their histories and cannot be dealt out; leave out --shard or the bound"
                    .into(),
            )
            .into());
        }
        Ok(wanted)
    }

    fn taken_up(&self, plan: &Plan<'_>, wanted: Wanted, store: &Store) -> anyhow::Result<Searching> {
        let path = aside_path(store);
        let aside: Aside = shards::get(&path)?;
        let same_program = aside.program == plan.launch.words() && aside.code_id == plan.head.code_id;
        if !same_program || aside.options != plan.options || aside.state.wanted != wanted {
            return Err(Refusal(format!(
                "{} is a search of another program, another build of it, or with other options; begin a new one without --resume",
                path.display()
            ))
            .into());
        }
        Ok(Searching::from(aside.state))
    }

    /// What was asked for, in words.
    pub fn words(&self) -> String {
        format!("exhaustive, {}, {:?}", self.reduction().word(), self.cost())
    }

    /// Does the search.
    pub fn run(
        &self,
        plan: &Plan<'_>,
        limits: Limits<'_>,
        store: &Store,
        ctx: &Ctx,
    ) -> anyhow::Result<Searching> {
        let bar = progress(ctx);
        let wanted = self.wanted(plan)?;
        let mut searching = match self.resume {
            true => self.taken_up(plan, wanted, store)?,
            false => Searching::new(wanted),
        };
        let (mut aside, mut failed) = (Instant::now(), None);
        let most = plan.runs.saturating_add(searching.state.runs);
        searching.run(plan, limits, most, |searching| {
            if aside.elapsed() > ASIDE_EVERY {
                failed = put_aside(searching, plan, store).err();
                aside = Instant::now();
            }
            if !ctx.progress() {
                return;
            }
            let told = self.told(searching);
            let about = match told.bound {
                Some(_) => String::new(),
                None => format!(" of about {} (+- {})", told.estimate.executions, told.estimate.error),
            };
            bar.set_position(told.executions + told.blocked);
            bar.set_message(format!(
                "{} executions{about}, {} blocked, {} deadlocks, {} failures, {} races",
                told.executions,
                told.blocked,
                told.deadlocks,
                told.failures,
                searching.races.count()
            ));
        })?;
        bar.finish_and_clear();
        match searching.state.complete || wanted.shard.is_some() {
            true => drop(std::fs::remove_file(aside_path(store))),
            false => failed = put_aside(&searching, plan, store).err(),
        }
        if let Some(error) = failed.filter(|_| !ctx.quiet) {
            eprintln!("raddle: warning: the search cannot be resumed: {error:#}");
        }
        Ok(searching)
    }

    /// How far the search got, as machines are told.
    pub fn told(&self, searching: &Searching) -> file::Search {
        let (executions, error) = searching.estimate();
        let estimate = file::Estimate { executions: executions.round() as u64, error: error.round() as u64 };
        let (blocked, bound) = match &searching.state.engine {
            Engine::Whole(search) => (search.statistics.blocked, None),
            Engine::Within(bounded) => {
                let of = match bounded.cost {
                    Cost::Preemptions => "preemptions",
                    Cost::Delays => "delays",
                };
                let executions = bounded.counts.clone();
                (bounded.repeated, Some(file::Bound { of: of.to_owned(), most: bounded.bound, executions }))
            }
        };
        let reduction = match (&bound, self.reduction()) {
            (Some(_), reduction) if reduction != ReductionArg::None => HISTORIES,
            (_, reduction) => reduction.word(),
        };
        file::Search {
            reduction: reduction.to_owned(),
            executions: searching.executions(),
            blocked,
            deadlocks: searching.state.deadlocks,
            failures: searching.state.failures,
            complete: searching.state.complete && !searching.unseen_accesses,
            bound,
            estimate,
            restarts: searching.state.restarts,
            visible: searching.state.sites.clone(),
        }
    }
}

/// What the result allows to say.
pub fn sentence(searching: &Searching, search: &file::Search) -> String {
    let what = match search.reduction.as_str() {
        "none" => "executions",
        _ => "inequivalent executions",
    };
    let counts = format!("{} {what}, {} failures", search.executions, search.failures);
    let within = match &search.bound {
        Some(bound) => format!(" with at most {} {}", bound.most, bound.of),
        None => String::new(),
    };
    if search.complete {
        return format!("complete: {counts}{within}, for this program and this input");
    }
    let why = match (searching.cut_off, searching.unseen_accesses) {
        (true, _) => "a run took longer than --timeout",
        (false, true) => "there are races, and shards do not see their accesses; use --visible all",
        (false, false) => "stopped; --resume goes on",
    };
    let rest = match &search.bound {
        Some(_) => String::new(),
        None => {
            format!("; about {} (+- {}) in all", search.estimate.executions, search.estimate.error)
        }
    };
    format!("not complete ({why}): {counts}{within} so far{rest}")
}

fn progress(ctx: &Ctx) -> ProgressBar {
    if !ctx.progress() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {pos} runs, {per_sec}, {msg} [{elapsed}]")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::no_length().with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
