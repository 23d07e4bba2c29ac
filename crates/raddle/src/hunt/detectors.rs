//! Detectors over the run that was just recorded. What comes with a witness is replayed, like a prediction.

use super::confirm::{finish, located};
use super::{Hunt, Witnessed};
use crate::commands::Ctx;
use crate::commands::detect::detect;
use crate::detector_options::DetectorOptions;
use crate::evidence::judge::{Judged, judge};
use crate::evidence::verify::verify;
use crate::launch::Streams;
use crate::launch::steering::Then;
use raddle_findings::naming::Namer;
use raddle_findings::{Attempt, Basis};
use std::path::Path;

/// The detectors that were asked for, and what they are told.
pub struct Detectors<'a> {
    pub names: &'a [String],
    pub told: &'a DetectorOptions,
}

impl Detectors<'_> {
    /// Runs them over the trace.
    pub fn run(
        &self,
        hunt: &Hunt<'_>,
        trace: &Path,
        namer: &mut Namer,
        ctx: &Ctx,
    ) -> anyhow::Result<Vec<Witnessed>> {
        if self.names.is_empty() {
            return Ok(Vec::new());
        }
        let detected = detect(
            trace,
            Default::default(),
            self.names,
            &self.told.settings(trace, self.names)?,
            true,
            ctx,
        )?;
        let mut found = Vec::new();
        for (mut finding, schedule) in detected.findings {
            let Some(mut schedule) = schedule else {
                found.push(Witnessed::new(finding, None));
                continue;
            };
            schedule.head = hunt.head.clone();
            schedule.head.options.one_at_a_time = true;
            let attempt =
                match judge(hunt.launch, &schedule, Then::RoundRobin, Streams::Silent, hunt.timeout, ctx)? {
                    Judged::Shown(_) => match verify(&schedule, hunt.store, hunt.timeout, ctx)? {
                        Ok((shown, replays)) => {
                            finding.basis = Basis::Replayed { shown, replays };
                            None
                        }
                        Err(attempt) => Some(attempt),
                    },
                    Judged::Not(attempt) => Some(attempt),
                    Judged::Followed(status) => {
                        Some(Attempt::Ended { how: crate::evidence::judge::ended(status) })
                    }
                };
            if let Some(attempt) = attempt {
                finding.basis.tried(located(attempt, namer));
            }
            finish(&mut schedule, &finding, namer);
            found.push(Witnessed::new(finding, Some(schedule)));
        }
        Ok(found)
    }
}
