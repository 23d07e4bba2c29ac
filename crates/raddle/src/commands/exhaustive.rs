//! `raddle explore --exhaustive`: what is asked for, and what the result allows to say.

use super::Ctx;
use crate::launch::exploring::Plan;
use crate::launch::searching::{Engine, Searching};
use indicatif::{ProgressBar, ProgressStyle};
use raddle_explore::systematic::bounded::{Bounded, Cost};
use raddle_explore::systematic::{Reduction, Search};
use raddle_findings::file;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

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

    fn engine(&self) -> Engine {
        match self.cost() {
            Some((cost, most)) => {
                Engine::Within(Bounded::new(cost, most, self.reduction() != ReductionArg::None))
            }
            None => Engine::Whole(Search::new(self.reduction().reduction(), None)),
        }
    }

    /// Does the search.
    pub fn run(&self, plan: &Plan<'_>, stop: &AtomicBool, ctx: &Ctx) -> anyhow::Result<Searching> {
        let bar = progress(ctx);
        let mut searching = Searching::new(self.engine());
        searching.run(plan, stop, |searching| {
            let told = self.told(searching);
            let about = match told.bound {
                Some(_) => String::new(),
                None => format!(" of about {} (+- {})", told.estimate.executions, told.estimate.error),
            };
            bar.set_position(told.executions + told.blocked);
            bar.set_message(format!(
                "{} executions{about}, {} blocked, {} failures",
                told.executions, told.blocked, told.failures
            ));
        })?;
        bar.finish_and_clear();
        Ok(searching)
    }

    /// How far the search got, as machines are told.
    pub fn told(&self, searching: &Searching) -> file::Search {
        let (executions, blocked, bound, estimate) = match &searching.engine {
            Engine::Whole(search) => {
                let (estimate, error) = search.estimate();
                let estimate =
                    file::Estimate { executions: estimate.round() as u64, error: error.round() as u64 };
                (search.statistics.executions, search.statistics.blocked, None, estimate)
            }
            Engine::Within(bounded) => {
                let of = match bounded.cost {
                    Cost::Preemptions => "preemptions",
                    Cost::Delays => "delays",
                };
                let bound = file::Bound {
                    of: of.to_owned(),
                    most: bounded.bound,
                    executions: bounded.counts.clone(),
                };
                // Each prefix that waits leads to one execution at least, or to a state met before.
                let estimate = file::Estimate {
                    executions: bounded.executions() + bounded.waiting() as u64,
                    error: bounded.waiting() as u64,
                };
                (bounded.executions(), bounded.repeated, Some(bound), estimate)
            }
        };
        let reduction = match (&bound, self.reduction()) {
            (Some(_), reduction) if reduction != ReductionArg::None => HISTORIES,
            (_, reduction) => reduction.word(),
        };
        file::Search {
            reduction: reduction.to_owned(),
            executions,
            blocked,
            deadlocks: searching.deadlocks,
            failures: searching.failures,
            complete: searching.complete,
            bound,
            estimate,
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
    let why = match searching.cut_off {
        true => "a run took longer than --timeout",
        false => "stopped",
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
