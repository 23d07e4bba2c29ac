//! `raddle ci`, and what a project says once and for all in raddle.toml.

mod common;

use common::{folder, raddle, run, succeed};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

const RACY: &str = r#"
#include <pthread.h>
static int counter;
static void *body(void *unused) {
    counter++;
    return unused;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, body, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

const REPORTS: [&str; 5] =
    ["findings.json", "findings.sarif", "junit.xml", "report.html", "code-quality.json"];

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn every_report_is_left_and_the_services_are_told() {
    let folder = folder(&[("racy.c", RACY), ("summary.md", "before\n")]);
    succeed(raddle().args(["cc", "-g", "-pthread", "racy.c", "-o", "racy"]).current_dir(&folder));
    let output = run(raddle()
        .args(["ci", "--", "./racy"])
        .env("GITHUB_ACTIONS", "true")
        .env("GITHUB_STEP_SUMMARY", folder.path().join("summary.md"))
        .current_dir(&folder));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let reports = folder.path().join("raddle-report");
    for name in REPORTS {
        assert!(!text(&reports.join(name)).is_empty(), "{name}");
    }
    let findings: Value = serde_json::from_str(&text(&reports.join("findings.json"))).expect("JSON");
    let id = findings["findings"][0]["id"].as_str().expect("a finding").to_owned();
    let quality: Value = serde_json::from_str(&text(&reports.join("code-quality.json"))).expect("JSON");
    assert_eq!(quality[0]["fingerprint"], id.as_str());
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.contains("::error file=racy.c,line="), "{stdout}");
    let summary = text(&folder.path().join("summary.md"));
    assert!(summary.starts_with("before\n## Raddle\n"), "{summary}");
    assert!(
        summary.contains("| confirmed |") && summary.contains(&format!("`raddle replay {id}`")),
        "{summary}"
    );

    // Known findings fail nothing, and nothing of the first run is left in the reports.
    std::fs::copy(reports.join("findings.json"), folder.path().join("known.json")).expect("a copy");
    let output = run(raddle().args(["ci", "--baseline", "known.json", "--", "./racy"]).current_dir(&folder));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(text(&reports.join("code-quality.json")).trim(), "[]");
}

#[test]
fn the_projects_file_speaks_where_the_user_is_silent() {
    let settings = "baseline = \"known.json\"\n";
    let folder = folder(&[("racy.c", RACY), ("raddle.toml", settings)]);
    succeed(raddle().args(["cc", "-g", "-pthread", "racy.c", "-o", "racy"]).current_dir(&folder));
    let below = folder.path().join("below");
    std::fs::create_dir(&below).expect("a folder");

    // The baseline is missing: the file is read, its paths are its folder's, and the message names it.
    let output = run(raddle().args(["run", "--", "../racy"]).current_dir(&below));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(said(&output).contains("known.json"), "{}", said(&output));

    std::fs::write(folder.path().join("raddle.toml"), "[run]\nfail-on = \"never\"\n").expect("a file");
    let output = run(raddle().args(["run", "--", "../racy"]).current_dir(&below));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = run(raddle().args(["run", "--fail-on", "suspected", "--", "../racy"]).current_dir(&below));
    assert_eq!(output.status.code(), Some(1), "the command line comes first: {output:?}");

    std::fs::write(folder.path().join("raddle.toml"), "[run]\nfail_on = \"never\"\n").expect("a file");
    let output = run(raddle().args(["run", "--", "../racy"]).current_dir(&below));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let expected = "raddle.toml:2: `raddle run` has no option --fail_on";
    assert!(said(&output).contains(expected), "{}", said(&output));

    // Beyond the root of the repository nothing is read.
    std::fs::create_dir(below.join(".git")).expect("a folder");
    let output = run(raddle().args(["run", "--", "../racy"]).current_dir(&below));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}
