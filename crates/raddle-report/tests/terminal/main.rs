//! Golden diagnostics: each kind of finding, each grade, folded and whole stacks, with and without the source.

mod ending;
#[path = "../findings/mod.rs"]
mod findings;
mod grades;
mod memory;
mod style;
mod waiting;

use expect_test::Expect;
use findings::{BANK, race};
use raddle_findings::{Basis, Finding};
use raddle_report::{Sources, Style, render};

fn rendered(finding: &Finding, with_source: bool, style: Style) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut sources = Sources::new(vec![folder.path().to_owned()]);
    if with_source {
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/bank.c"), BANK).unwrap();
    }
    render(finding, &mut sources, style)
}

/// As on a terminal of 80 columns.
fn check(finding: &Finding, expected: Expect) {
    let text = rendered(finding, true, Style { width: 80, ..Style::default() });
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "wider than the terminal");
    expected.assert_eq(&text);
}

fn with_basis(basis: Basis) -> Finding {
    Finding { basis, schedule: None, remarks: Vec::new(), ..race() }
}
