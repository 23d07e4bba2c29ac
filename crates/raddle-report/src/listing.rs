//! The store as a list: a line for each finding, a heading for each program.

use crate::text::printable;
use crate::wording::English;
use raddle_findings::{Evidence, Wording, headline_frame};
use std::collections::HashMap;

/// Columns of the fixed part of a line: id, grade and kind.
const FIXED: usize = 13 + 10 + 20;

/// Evidence as lines, grouped by program in the order of first appearance.
pub fn list(evidence: &[Evidence], width: usize) -> String {
    let mut programs: Vec<(&[String], Vec<&Evidence>)> = Vec::new();
    let mut known: HashMap<&[String], usize> = HashMap::new();
    for one in evidence {
        let at = *known.entry(&one.program).or_insert(programs.len());
        if at == programs.len() {
            programs.push((&one.program, Vec::new()));
        }
        programs[at].1.push(one);
    }
    let mut text = String::new();
    for (program, findings) in programs {
        let name = if program.is_empty() { "program not known".to_owned() } else { program.join(" ") };
        text.push_str(&printable(&name));
        text.push_str(":\n");
        for one in findings {
            text.push_str(&line(one, width));
            text.push('\n');
        }
    }
    text
}

fn line(evidence: &Evidence, width: usize) -> String {
    let finding = &evidence.finding;
    let place = finding.parties.iter().find_map(|party| headline_frame(&party.stack)).map(|frame| {
        let file = frame.file.as_deref().unwrap_or_default();
        format!("{}:{}", file.rsplit('/').next().unwrap_or(file), frame.line.unwrap_or(0))
    });
    let about = match place {
        Some(place) => format!("{place}: {}", English::default().headline(finding)),
        None => English::default().headline(finding),
    };
    let about: String = printable(&about).chars().take(width.saturating_sub(FIXED + 2).max(20)).collect();
    format!("  {:<13}{:<10}{:<20}{about}", finding.id, finding.grade().name(), finding.kind.name())
        .trim_end()
        .to_owned()
}
