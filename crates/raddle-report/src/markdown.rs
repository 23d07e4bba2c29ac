//! Findings as Markdown, for the summary of a job and for merge requests: one line of numbers, one line a finding.

use crate::{English, Summary};
use raddle_findings::Finding;
use raddle_findings::wording::Wording;

/// More findings than anybody reads in a summary.
const FINDINGS_MAX: usize = 50;

/// A heading, how many findings there are, and a row for each of the first.
pub fn markdown(findings: &[Finding]) -> String {
    let wording = English::default();
    let line = Summary { shown: findings, ..Summary::default() }.line();
    let mut text = format!("## Raddle\n\n{}\n", escaped(&line));
    if findings.is_empty() {
        return text;
    }
    text.push_str("\n| grade | finding | again with |\n| --- | --- | --- |\n");
    for finding in findings.iter().take(FINDINGS_MAX) {
        let headline = escaped(&wording.headline(finding));
        let again = match finding.schedule {
            Some(_) => format!("`raddle replay {}`", finding.id),
            None => format!("`{}`", finding.id),
        };
        text.push_str(&format!("| {} | {headline} | {again} |\n", finding.grade().name()));
    }
    if let Some(more) = findings.len().checked_sub(FINDINGS_MAX).filter(|&more| more > 0) {
        text.push_str(&format!("\n{more} more are in the reports.\n"));
    }
    text
}

/// Text in which nothing is markup: names come from programs, and a `|` or a `<` of a template must not break the table.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '|' | '\\' | '*' | '_' | '[' | ']' | '!' | '#' => {
                safe.push('\\');
                safe.push(c);
            }
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(markdown(&[]), "## Raddle\n\nno findings\n");
    }

    #[test]
    fn names_are_no_markup() {
        assert_eq!(escaped("`a<b>|c`\n*"), "`a&lt;b&gt;\\|c` \\*");
    }
}
