//! Every kind is explained, and the examples are C.

use raddle_findings::{Kind, Wording};
use raddle_report::{English, explain, grades};
use std::io::Write;
use std::process::{Command, Stdio};

/// The C code of a page.
fn examples(page: &str) -> Vec<String> {
    let mut blocks = page.split("```c\n").skip(1);
    blocks.by_ref().map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

fn compiles(code: &str) -> String {
    let mut compiler = Command::new("gcc")
        .args(["-fsyntax-only", "-Wall", "-Werror", "-xc", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("gcc is installed");
    compiler.stdin.take().unwrap().write_all(code.as_bytes()).unwrap();
    let output = compiler.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_kind_has_a_page_with_an_example_that_compiles() {
    for kind in Kind::ALL {
        let page = explain(kind);
        for part in
            ["Why it is an error", "Example", "How Raddle finds it", "What to do", "How to suppress it"]
        {
            assert!(page.contains(&format!("\n## {part}\n")), "{}: {part}", kind.name());
        }
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{} is too wide", kind.name());
        let examples = examples(&page);
        assert_eq!(examples.len(), 1, "{}", kind.name());
        let lines = examples[0].lines().count();
        assert!((8..=15).contains(&lines), "{}: {lines} lines", kind.name());
        assert_eq!(compiles(&examples[0]), "", "{}", kind.name());
    }
}

#[test]
fn short_texts_come_from_the_pages() {
    for kind in Kind::ALL {
        let words = English::default().kind(kind);
        assert!(!words.title.is_empty() && !words.title.contains('#'), "{words:?}");
        assert!(words.description.ends_with('.'), "{words:?}");
        assert!(words.help.ends_with('.'), "{words:?}");
    }
}

#[test]
fn the_table_of_grades_fits() {
    let table = grades();
    assert!(table.lines().all(|line| line.chars().count() <= 80));
    for grade in raddle_findings::Grade::ALL {
        assert!(table.lines().any(|line| line.starts_with(grade.name())));
    }
}
