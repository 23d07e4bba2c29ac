//! The last line: how many findings of which grade, and what was kept back.

use raddle_findings::{Finding, Grade};

/// `2 confirmed, 1 predicted (not shown: --all), 3 suppressed`, or that there is nothing.
pub fn summary_line(shown: &[Finding], held_back: &[Finding], suppressed: usize) -> String {
    let count = |list: &[Finding], grade| list.iter().filter(|finding| finding.grade == grade).count();
    let mut parts = Vec::new();
    for (grade, name) in
        [(Grade::Confirmed, "confirmed"), (Grade::Predicted, "predicted"), (Grade::Suspected, "suspected")]
    {
        let (visible, hidden) = (count(shown, grade), count(held_back, grade));
        if visible > 0 {
            parts.push(format!("{visible} {name}"));
        }
        if hidden > 0 {
            parts.push(format!("{hidden} {name} (not shown, see --all)"));
        }
    }
    if suppressed > 0 {
        parts.push(format!("{suppressed} suppressed"));
    }
    match parts.is_empty() {
        true => "no findings".to_owned(),
        false => parts.join(", "),
    }
}
