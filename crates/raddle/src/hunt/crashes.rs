//! A run that was ended by a signal of its own making, or in which no thread could go on, is an error that has happened. Its
//! schedule is replayed: if the replay ends in the same way each time, the error is confirmed.

use super::confirm::finish;
use super::{Hunt, Witnessed};
use crate::commands::Ctx;
use crate::evidence::ending;
use crate::evidence::verify::verify;
use crate::launch::halting::Halt;
use crate::launch::recording::Recording;
use raddle_findings::naming::Namer;
use raddle_findings::{Basis, Finding, Grade, Kind};
use raddle_trace::crash::End;
use raddle_trace::observed_schedule::observed_schedule;
use raddle_trace::schedule::Expected;
use std::os::unix::process::ExitStatusExt;

/// What finds them.
const BY: &str = "record";

/// Signals that a program brings upon itself.
const SELF_INFLICTED: [i32; 7] =
    [libc::SIGILL, libc::SIGTRAP, libc::SIGABRT, libc::SIGBUS, libc::SIGFPE, libc::SIGSEGV, libc::SIGSYS];

/// A recorded run in which nobody could go on any more, unless `known` has findings that say why.
pub fn stuck(
    hunt: &Hunt<'_>,
    recording: &Recording,
    known: &[Witnessed],
    namer: &mut Namer,
    ctx: &Ctx,
) -> anyhow::Result<Option<Witnessed>> {
    let explains = |kind| matches!(kind, Kind::Deadlock | Kind::BlockedThread | Kind::MissedSignal);
    let explained = known
        .iter()
        .any(|witnessed| explains(witnessed.finding.kind) && witnessed.finding.grade() == Grade::Confirmed);
    match (&recording.end, recording.halt) {
        (Some(End::Crash(report)), Some(Halt::Stuck)) if !explained => {
            let finding = ending::stuck(report, BY, &mut Namer::new(&recording.modules));
            again(hunt, recording, finding, (Expected::Deadlock, String::new()), namer, ctx).map(Some)
        }
        _ => Ok(None),
    }
}

/// The crash of a recorded run, if it is one.
pub fn crash(
    hunt: &Hunt<'_>,
    recording: &Recording,
    namer: &mut Namer,
    ctx: &Ctx,
) -> anyhow::Result<Option<Witnessed>> {
    let signal = recording.status.signal().filter(|signal| SELF_INFLICTED.contains(signal));
    let (Some(signal), None) = (signal, recording.halt) else { return Ok(None) };
    let mut names = Namer::new(&recording.modules);
    let (finding, place) = match &recording.end {
        Some(End::Crash(report)) => {
            (ending::crash(report, BY, Basis::observed(), &mut names), ending::place(report, &mut names))
        }
        _ => (ending::bare_crash(signal, BY, Basis::observed()), String::new()),
    };
    let expected = Expected::Signal(u32::try_from(signal).unwrap_or_default());
    again(hunt, recording, finding, (expected, place), namer, ctx).map(Some)
}

/// Replays the recorded run: does it end in the same way each time?
fn again(
    hunt: &Hunt<'_>,
    recording: &Recording,
    mut finding: Finding,
    (expected, crash_place): (Expected, String),
    namer: &mut Namer,
    ctx: &Ctx,
) -> anyhow::Result<Witnessed> {
    let mut schedule = observed_schedule(raddle_trace::open(&recording.summary.path)?.as_mut(), "")?;
    schedule.head = hunt.head.clone();
    schedule.head.options.one_at_a_time = true;
    schedule.expected = Some(expected);
    schedule.crash_place = crash_place;
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
    Ok(Witnessed::new(finding, schedule))
}
