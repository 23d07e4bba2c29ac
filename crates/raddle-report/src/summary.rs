//! The last line: how many findings of which grade, and what was kept back.

use crate::text::count;
use raddle_findings::{Finding, Grade};

/// What a command has found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary<'a> {
    pub shown: &'a [Finding],
    /// Not shown, because their grade was not asked for.
    pub held_back: &'a [Finding],
    pub suppressed: usize,
    /// Known from the baseline.
    pub known: usize,
}

impl Summary<'_> {
    /// `2 findings: 2 confirmed; not shown: 1 predicted (see --all), 3 suppressed, 1 known from the baseline`, or that there is
    /// nothing.
    pub fn line(&self) -> String {
        let mut hidden = grades(self.held_back);
        if let Some(last) = hidden.last_mut() {
            last.push_str(" (see --all)");
        }
        if self.suppressed > 0 {
            hidden.push(format!("{} suppressed", self.suppressed));
        }
        if self.known > 0 {
            hidden.push(format!("{} known from the baseline", self.known));
        }
        let mut line = match self.shown.len() {
            0 => "no findings".to_owned(),
            number => {
                let number = count(u64::try_from(number).unwrap_or(u64::MAX), "finding");
                format!("{number}: {}", grades(self.shown).join(", "))
            }
        };
        if !hidden.is_empty() {
            line.push_str("; not shown: ");
            line.push_str(&hidden.join(", "));
        }
        line
    }
}

/// What to try after a hunt that found nothing.
pub const AFTER_NOTHING: &str = "to look further: `--runs 5` hunts in more runs, `raddle explore` tries many schedules, `raddle run --weak` weak memory";

fn grades(list: &[Finding]) -> Vec<String> {
    let count = |grade| list.iter().filter(|finding| finding.grade() == grade).count();
    let counted = Grade::ALL.into_iter().map(|grade| (count(grade), grade.name()));
    counted.filter(|(number, _)| *number > 0).map(|(number, name)| format!("{number} {name}")).collect()
}
