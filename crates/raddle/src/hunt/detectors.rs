//! Detectors over the run that was just recorded. What comes with a witness is replayed, like a prediction.

use super::confirm::{Settings, shows};
use crate::commands::Ctx;
use crate::commands::detect::{detect, write_schedule};
use crate::detector_options::DetectorOptions;
use crate::launch::Launch;
use crate::launch::steering::{self, Streams};
use raddle_findings::{Finding, Grade, Kind};
use raddle_predict::CandidateKind;
use std::path::Path;

/// The detectors that were asked for, and what they are told.
pub struct Detectors<'a> {
    pub names: &'a [String],
    pub told: &'a DetectorOptions,
}

impl Detectors<'_> {
    /// Runs them over the trace. Schedules of witnesses are kept in the folder.
    pub fn run(
        &self,
        launch: &Launch,
        trace: &Path,
        folder: &Path,
        settings: &Settings,
        ctx: &Ctx,
    ) -> anyhow::Result<Vec<Finding>> {
        if self.names.is_empty() {
            return Ok(Vec::new());
        }
        let detected = detect(trace, self.names, &self.told.settings(trace, self.names)?, true, ctx)?;
        let mut findings = Vec::new();
        for (mut finding, schedule) in detected.findings {
            if let Some(schedule) = schedule {
                let kind = match finding.kind {
                    Kind::Deadlock => CandidateKind::Deadlock,
                    _ => CandidateKind::DataRace,
                };
                let steered =
                    steering::replay(launch, &schedule, settings.options, Streams::Silent, settings.timeout)?;
                match shows(kind, &schedule, &steered) {
                    Ok(()) => finding.grade = Grade::Confirmed,
                    Err(why) => finding.notes.push(why),
                }
                finding.schedule = Some(write_schedule(&schedule, &finding.id, folder)?);
            }
            findings.push(finding);
        }
        Ok(findings)
    }
}
