//! A run that was ended by a signal of its own making is an error that has happened. Its schedule is replayed: if the replay
//! ends in the same way each time, the crash is confirmed.

use super::confirm::finish;
use super::{Hunt, Witnessed};
use crate::commands::Ctx;
use crate::evidence::ending;
use crate::evidence::verify::verify;
use crate::launch::recording::Recording;
use raddle_findings::Basis;
use raddle_findings::naming::Namer;
use raddle_trace::crash::End;
use raddle_trace::observed_schedule::observed_schedule;
use raddle_trace::schedule::Expected;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

/// What finds them.
const BY: &str = "record";

/// Signals that a program brings upon itself.
const SELF_INFLICTED: [i32; 7] =
    [libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV, libc::SIGSYS];

/// The crash of a recorded run, if it is one.
pub fn crash(
    hunt: &Hunt<'_>,
    recording: &Recording,
    trace: &Path,
    namer: &mut Namer,
    ctx: &Ctx,
) -> anyhow::Result<Option<Witnessed>> {
    let Some(signal) = recording.status.signal().filter(|signal| SELF_INFLICTED.contains(signal)) else {
        return Ok(None);
    };
    let mut names = Namer::new(&recording.modules);
    let mut finding = match &recording.end {
        Some(End::Crash(report)) => ending::crash(report, BY, Basis::observed(), &mut names),
        _ => ending::bare_crash(signal, BY, Basis::observed()),
    };
    let mut schedule = observed_schedule(raddle_trace::open(trace)?.as_mut(), "")?;
    schedule.head = hunt.head.clone();
    schedule.head.options.one_at_a_time = true;
    schedule.expected = u32::try_from(signal).ok().map(Expected::Signal);
    let schedule = match verify(&schedule, hunt.store, hunt.timeout, ctx)? {
        Ok((shown, replays)) => {
            finding.basis = Basis::Replayed { shown, replays };
            finish(&mut schedule, &finding, namer);
            Some(schedule)
        }
        Err(attempt) => {
            finding.basis.tried(attempt);
            None
        }
    };
    Ok(Some(Witnessed { finding, schedule }))
}
