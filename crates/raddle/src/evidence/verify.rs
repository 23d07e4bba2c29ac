//! From "it worked once" to *confirmed*: the schedule is written to a file as it will be stored, read back, and replayed in
//! fresh processes with nothing but what the file says.

use super::judge::{Judged, judge};
use super::replaying::{self, Rebuild};
use crate::commands::Ctx;
use crate::interrupt;
use crate::launch::Streams;
use crate::launch::steering::Then;
use anyhow::Context;
use raddle_findings::Store;
use raddle_findings::basis::{Attempt, Shown};
use raddle_findings::store::read_schedule;
use raddle_trace::schedule::Schedule;
use std::io::Write;
use std::time::Duration;

/// Replays that have to show it.
pub const REPLAYS: u32 = 2;
/// The same where threads run beside each other between their operations, and chance has a say.
pub const REPLAYS_BESIDE: u32 = 5;

/// Does the schedule, read from a file in the store's folder, show its error each time?
pub fn verify(
    schedule: &Schedule,
    store: &Store,
    timeout: Duration,
    ctx: &Ctx,
) -> anyhow::Result<Result<(Shown, u32), Attempt>> {
    let mut file = match tempfile::Builder::new().prefix(".checking-").tempfile_in(store.folder()) {
        Ok(file) => file,
        Err(error) => return Ok(Err(Attempt::NotStored { why: error.to_string() })),
    };
    if let Err(error) = file.write_all(schedule.to_text().as_bytes()) {
        return Ok(Err(Attempt::NotStored { why: error.to_string() }));
    }
    let text = read_schedule(file.path())?;
    let stored = Schedule::parse(&text).context("a schedule that was just written cannot be read")?;
    let launch = replaying::launch(&stored, &store.root(), Rebuild::No)?.launch;
    let replays = if stored.head.options.one_at_a_time { REPLAYS } else { REPLAYS_BESIDE };
    let mut last = None;
    for shown in 0..replays {
        match judge(&launch, &stored, Then::RoundRobin, Streams::Silent, timeout, ctx)? {
            Judged::Shown(how) => last = Some(how),
            _ if interrupt::signal().is_some() => return Ok(Err(Attempt::Interrupted)),
            // Again and again, and still not certain.
            Judged::Not(attempt @ Attempt::UncertainEvents { .. }) => return Ok(Err(attempt)),
            Judged::Not(_) | Judged::Followed(_) => return Ok(Err(Attempt::NotAgain { shown, replays })),
        }
    }
    Ok(last.map(|how| (how, replays)).ok_or(Attempt::NotAgain { shown: 0, replays }))
}
