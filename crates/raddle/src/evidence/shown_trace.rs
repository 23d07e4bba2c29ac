//! The trace of a run that shows a finding, kept beside its schedule: what happened can then be looked at without running the
//! program again, on a machine that does not even have it.
//!
//! Each confirmed finding that is new to the store is replayed once more, with recording. The trace is kept if that very run was
//! judged to show the error; whatever goes wrong here takes nothing away from the finding, which is confirmed already.

use super::judge::{Judged, judge_recorded};
use super::replaying::{self, Rebuild};
use crate::commands::Ctx;
use crate::interrupt;
use crate::launch::Streams;
use crate::launch::steering::Then;
use raddle_findings::{Finding, Grade, Store};
use raddle_trace::schedule::Schedule;
use std::time::{Duration, Instant};

/// Larger traces are not kept: evidence is mailed.
const TRACE_BYTES_MAX: u64 = 4 << 20;
/// Time that a command spends on such runs: they come after the work, and somebody waits for the report.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Time for one such run.
const RUN_TIME_MAX: Duration = Duration::from_secs(5);

/// Keeps traces until the time for it is over.
#[derive(Debug)]
pub struct KeepTraces {
    until: Instant,
}

impl Default for KeepTraces {
    fn default() -> KeepTraces {
        KeepTraces { until: Instant::now() + TIME_MAX }
    }
}

impl KeepTraces {
    /// Replays a confirmed finding and keeps the trace of that run beside it.
    pub fn keep(&mut self, store: &Store, finding: &Finding, schedule: &Schedule, ctx: &Ctx) {
        let is_over = Instant::now() >= self.until || interrupt::signal().is_some();
        if finding.grade() != Grade::Confirmed || is_over {
            return;
        }
        // The trace is an extra. That it is missing, `report` and `replay --trace` can live with.
        if let Err(error) = replay(store, finding, schedule, ctx)
            && ctx.verbose > 0
        {
            eprintln!("raddle: note: no trace of a replay of {} was kept: {error:#}", finding.id);
        }
    }
}

fn replay(store: &Store, finding: &Finding, schedule: &Schedule, ctx: &Ctx) -> anyhow::Result<()> {
    // As it is in the store: places in the code are those of the program.
    let stored = Schedule::parse(&schedule.to_text())?;
    let folder = tempfile::Builder::new().prefix(".checking-").tempdir_in(store.folder())?;
    let file = folder.path().join("trace");
    let launch = replaying::launch(&stored, &store.root(), Rebuild::No)?.launch;
    let judged =
        judge_recorded(&launch, &stored, Then::RoundRobin, Streams::Silent, RUN_TIME_MAX, &file, ctx)?;
    anyhow::ensure!(matches!(judged, Judged::Shown(_)), "this replay did not show it");
    let bytes = std::fs::metadata(&file)?.len();
    anyhow::ensure!(bytes <= TRACE_BYTES_MAX, "it has {bytes} bytes");
    store.add_trace(&finding.id, &file)?;
    Ok(())
}
