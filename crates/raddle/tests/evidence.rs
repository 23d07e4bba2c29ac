//! What Raddle says, it can show again: ids, the store, schedules that need nothing but themselves.

mod common;

use common::{compilers, folder, raddle, run};
use raddle_findings::{Finding, FindingsFile, Grade, Kind, Store};
use std::path::Path;
use std::process::{Command, Output};

/// `raddle` in a folder.
fn raddle_in(folder: &Path) -> Command {
    let mut command = raddle();
    command.current_dir(folder);
    command
}

/// What a command with `--json` found.
fn found(output: &Output) -> Vec<Finding> {
    let text = String::from_utf8_lossy(&output.stdout);
    let file = FindingsFile::parse("stdout", &text)
        .unwrap_or_else(|error| panic!("{error}\n{text}{}", String::from_utf8_lossy(&output.stderr)));
    file.findings
}

fn hunt(folder: &Path, options: &[&str], source: &str) -> Vec<Finding> {
    found(&run(raddle_in(folder).args(["hunt", "--json"]).args(options).arg(source)))
}

fn confirmed(findings: &[Finding]) -> Vec<&Finding> {
    findings.iter().filter(|finding| finding.grade() == Grade::Confirmed).collect()
}

/// How often a replay shows a finding, and how the command ends.
fn replay(folder: &Path, id: &str, times: u32) -> (u64, Option<i32>) {
    let output = run(raddle_in(folder).args(["replay", "--json", "--repeat", &times.to_string(), id]));
    let text = String::from_utf8_lossy(&output.stdout);
    let json: serde_json::Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}\n{text}{}", String::from_utf8_lossy(&output.stderr)));
    (json["shown"].as_u64().unwrap(), output.status.code())
}

fn replays_always(folder: &Path, findings: &[Finding]) {
    let confirmed = confirmed(findings);
    assert!(!confirmed.is_empty(), "{findings:#?}");
    for finding in confirmed {
        assert_eq!(replay(folder, &finding.id, 10), (10, Some(1)), "{finding:#?}");
    }
}

const HANDOVER: &str = r#"
#include <pthread.h>
#include <unistd.h>
int state;
static void *first(void *p) { (void)p; state = 1; return 0; }
static void *second(void *p) { (void)p; usleep(30000); if (state == 1) state = 2; return 0; }
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, first, 0);
    pthread_create(&b, 0, second, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
"#;

const ABBA: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static void *one(void *p) {
    (void)p;
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&b);
    pthread_mutex_unlock(&b);
    pthread_mutex_unlock(&a);
    return 0;
}
static void *two(void *p) {
    (void)p;
    usleep(30000);
    pthread_mutex_lock(&b);
    pthread_mutex_lock(&a);
    pthread_mutex_unlock(&a);
    pthread_mutex_unlock(&b);
    return 0;
}
int main(void) {
    pthread_t x, y;
    puts("[ the program's own output ]");
    pthread_create(&x, 0, one, 0);
    pthread_create(&y, 0, two, 0);
    pthread_join(x, 0);
    pthread_join(y, 0);
    return 0;
}
"#;

/// A later, unconfirmed candidate on the same pair of lines must not overwrite the confirmed one's schedule.
#[test]
fn a_confirmed_finding_keeps_its_schedule() {
    let folder = folder(&[("handover.c", HANDOVER)]);
    let findings = hunt(folder.path(), &[], "handover.c");
    replays_always(folder.path(), &findings);
    for finding in confirmed(&findings) {
        assert!(finding.basis.attempts().is_empty(), "nothing decorates it: {finding:#?}");
    }
    // Hunting again, also over several runs, changes nothing about it.
    let again = hunt(folder.path(), &["--runs", "3"], "handover.c");
    assert!(confirmed(&findings).iter().all(|finding| again.iter().any(|other| other.id == finding.id)));
    replays_always(folder.path(), &findings);
}

/// A schedule knows its program: another one hunted in the same folder does not take its place.
#[test]
fn findings_of_several_programs_live_in_one_store() {
    let folder = folder(&[("handover.c", HANDOVER), ("abba.c", ABBA)]);
    let races = hunt(folder.path(), &[], "handover.c");
    let deadlocks = hunt(folder.path(), &[], "abba.c");
    replays_always(folder.path(), &races);
    replays_always(folder.path(), &deadlocks);
    let (stored, problems) = Store::at(folder.path().join(".raddle")).list().unwrap();
    assert!(problems.is_empty());
    assert!(races.iter().chain(&deadlocks).all(|f| stored.iter().any(|s| s.finding.id == f.id)));
}

/// Options of the recorded run are part of the schedule.
#[test]
fn every_recording_option_is_replayed() {
    for options in
        [&["--keep-redundant"][..], &["--from-start"], &["--no-allocations"], &["--strategy", "random"]]
    {
        let folder = folder(&[("handover.c", HANDOVER)]);
        let findings = hunt(folder.path(), options, "handover.c");
        if options[0] == "--strategy" && confirmed(&findings).is_empty() {
            continue;
        }
        replays_always(folder.path(), &findings);
    }
}

/// The evidence moves with the folder.
#[test]
fn a_copy_of_the_folder_replays() {
    let folder = folder(&[("abba.c", ABBA)]);
    let findings = hunt(folder.path(), &[], "abba.c");
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("copy");
    common::succeed(Command::new("cp").arg("-r").arg(folder.path()).arg(&copy));
    drop(folder);
    replays_always(&copy, &findings);
}

/// A program of the user's own, with arguments, a folder and standard input.
#[test]
fn replays_take_arguments_folder_and_input_from_the_schedule() {
    let source = ABBA.replace(
        "    puts(\"[ the program's own output ]\");",
        "    char line[9] = \"\";\n    if (count < 2 || !fgets(line, 9, stdin) || line[0] != 'g' || access(words[1], R_OK)) return 0;",
    );
    let source = source.replace("int main(void)", "int main(int count, char **words)");
    let folder = folder(&[("abba.c", &source), ("input", "go\n"), ("config", "")]);
    common::succeed(raddle_in(folder.path()).args(["cc", "-g", "-pthread", "abba.c", "-o", "abba"]));
    let input = std::fs::File::open(folder.path().join("input")).unwrap();
    let output =
        run(raddle_in(folder.path()).args(["hunt", "--json", "--", "./abba", "config"]).stdin(input));
    let findings = found(&output);
    replays_always(folder.path(), &findings);
    // From another folder, by the path of the schedule.
    let schedule = Store::at(folder.path().join(".raddle")).schedule_path(&confirmed(&findings)[0].id);
    let output = run(raddle_in(Path::new("/")).args(["replay", "-q"]).arg(schedule));
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Whoever repairs the program is told that the error is gone.
#[test]
fn a_repaired_program_is_noticed() {
    let folder = folder(&[("abba.c", ABBA)]);
    let findings = hunt(folder.path(), &[], "abba.c");
    let id = confirmed(&findings)[0].id.clone();
    let repaired = ABBA.replace(
        "    pthread_mutex_lock(&b);\n    pthread_mutex_lock(&a);",
        "    pthread_mutex_lock(&a);\n    pthread_mutex_lock(&b);",
    );
    assert_ne!(repaired, ABBA);
    std::fs::write(folder.path().join("abba.c"), repaired).unwrap();
    let output = run(raddle_in(folder.path()).args(["replay", &id]));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{text}");
    assert!(text.contains("changed or rebuilt since"), "{text}");
    assert!(!text.contains("shown in 1"), "{text}");
}

/// `--json` is one object of the schema, whatever the program prints.
#[test]
fn machine_output_is_alone_on_its_stream() {
    let folder = folder(&[("abba.c", ABBA)]);
    for command in [&["hunt", "--json"][..], &["run", "--json"], &["explore", "--json", "--runs", "50"]] {
        let output = run(raddle_in(folder.path()).args(command).arg("abba.c"));
        found(&output);
    }
}

/// A comment added above, another folder, optimisation and compiler do not change an id.
#[test]
fn ids_survive_what_does_not_matter() {
    let ids = |source: &str, options: &[&str], compiler: &str| -> Vec<(Kind, String)> {
        let folder = folder(&[("abba.c", source)]);
        let mut command = raddle_in(folder.path());
        command.args(["hunt", "--json"]).args(options).arg("abba.c").env("RADDLE_CC", compiler);
        let mut ids: Vec<_> = found(&run(&mut command)).into_iter().map(|f| (f.kind, f.id)).collect();
        ids.sort();
        ids
    };
    let compilers = compilers();
    let expected = ids(ABBA, &[], &compilers[0]);
    assert!(!expected.is_empty());
    let commented = format!("// One more line.\n/* And\n   two more. */\n{ABBA}");
    assert_eq!(ids(&commented, &[], &compilers[0]), expected);
    for compiler in &compilers {
        for level in ["-O0", "-O2"] {
            assert_eq!(ids(ABBA, &["--cflags", level], compiler), expected, "{compiler} {level}");
        }
    }
}

/// Different errors have different ids: two objects, two callers of one helper.
#[test]
fn ids_tell_errors_apart() {
    let source = r#"
#include <pthread.h>
#include <unistd.h>
static int a, b;
static void inc(int *p) { (*p)++; }
static void *one(void *p) { (void)p; inc(&a); b = 1; return 0; }
static void *two(void *p) { (void)p; usleep(30000); inc(&a); b = 2; return 0; }
int main(void) {
    pthread_t x, y;
    pthread_create(&x, 0, one, 0);
    pthread_create(&y, 0, two, 0);
    pthread_join(x, 0);
    pthread_join(y, 0);
    return 0;
}
"#;
    let folder = folder(&[("inc.c", source)]);
    let findings = hunt(folder.path(), &[], "inc.c");
    let names: std::collections::BTreeSet<_> = confirmed(&findings)
        .iter()
        .flat_map(|finding| &finding.objects)
        .filter_map(|object| object.name.clone())
        .collect();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a", "b"], "{findings:#?}");
    replays_always(folder.path(), &findings);
}

const CRASH: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static void *crash(void *p) {
#ifdef ABORT
    abort();
#else
    *(volatile int *)p = 1;
#endif
    return 0;
}
int main(void) {
    pthread_t x;
    pthread_create(&x, 0, crash, 0);
    pthread_join(x, 0);
    return 0;
}
"#;

/// Two crashes are two errors, each with its place; the exit status is never 0.
#[test]
fn crashes_have_places_and_ids_of_their_own() {
    let folder = folder(&[("crash.c", CRASH)]);
    let crash = |options: &[&str]| {
        let output = run(raddle_in(folder.path()).args(["hunt", "--json"]).args(options).arg("crash.c"));
        assert_eq!(output.status.code(), Some(1));
        let findings = found(&output);
        let crash = findings.iter().find(|finding| finding.kind == Kind::Crash).cloned();
        crash.unwrap_or_else(|| panic!("{findings:#?}"))
    };
    let (segv, abort) = (crash(&[]), crash(&["--cflags", "-DABORT"]));
    assert_ne!(segv.id, abort.id);
    for finding in [&segv, &abort] {
        let at = finding.parties.iter().flat_map(|party| &party.stack);
        assert!(
            at.filter_map(|frame| frame.function.as_deref()).any(|name| name == "crash"),
            "the place is named: {finding:#?}"
        );
        assert_eq!(finding.grade(), Grade::Confirmed, "{finding:#?}");
        assert_eq!(replay(folder.path(), &finding.id, 10).0, 10);
    }
}

/// A racy program prints many things; what counts is how it ends.
#[test]
fn explored_runs_are_grouped_by_their_ending() {
    let source = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
int x;
static void *add(void *p) { for (int i = 0; i < 20; i++) x += (int)(long)p; return 0; }
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, add, (void *)1L);
    pthread_create(&b, 0, add, (void *)100L);
    pthread_join(a, 0);
    pthread_join(b, 0);
    printf("%d\n", x);
    return x == 2020 ? 0 : 3;
}
"#;
    let folder = folder(&[("add.c", source)]);
    let output = run(raddle_in(folder.path()).args([
        "explore",
        "--json",
        "--visible",
        "all",
        "--runs",
        "100",
        "add.c",
    ]));
    let findings = found(&output);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].kind, Kind::FailedStatus);
    assert!(findings[0].seen.is_some_and(|seen| seen.count > 1 && seen.runs == 100));
    replays_always(folder.path(), &findings);
    assert_eq!(output.status.code(), Some(1));
}

/// A deadlock that exploring finds is a finding like any other: source lines, names, a schedule.
#[test]
fn explored_deadlocks_have_names() {
    let folder = folder(&[("abba.c", &ABBA.replace("    usleep(30000);\n", ""))]);
    let output = run(raddle_in(folder.path()).args(["explore", "--json", "--runs", "200", "abba.c"]));
    let findings = found(&output);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].kind, Kind::Deadlock);
    let mut names: Vec<_> = findings[0].objects.iter().filter_map(|object| object.name.as_deref()).collect();
    names.sort_unstable();
    assert!(names.contains(&"a") && names.contains(&"b"), "{findings:#?}");
    let lines =
        findings[0].parties.iter().flat_map(|party| &party.stack).filter(|frame| frame.line.is_some());
    assert!(lines.count() >= 2, "{findings:#?}");
    replays_always(folder.path(), &findings);
}

/// A lock order is a suspicion: shown by `run`, and no reason to fail.
#[test]
fn lock_orders_are_suspected() {
    let source = ABBA
        .replace("    pthread_join(x, 0);\n", "")
        .replace("    pthread_create(&y", "    pthread_join(x, 0);\n    pthread_create(&y");
    let folder = folder(&[("phases.c", &source)]);
    let output = run(raddle_in(folder.path()).args(["run", "--json", "phases.c"]));
    for finding in found(&output) {
        assert_eq!((finding.kind, finding.grade()), (Kind::LockOrder, Grade::Suspected));
    }
    assert_eq!(output.status.code(), Some(0));
}

/// What an option cannot do is said before the program runs.
#[test]
fn replays_of_what_is_not_there_are_refused_with_a_sentence() {
    let folder = folder(&[("abba.c", ABBA), ("old.schedule", "raddle-schedule 1\nstep 1 1 fork\n")]);
    let refused = |words: &[&str]| common::refused(raddle_in(folder.path()).args(words));
    assert!(refused(&["replay", "abcdef"]).contains("no finding abcdef"));
    assert!(refused(&["replay", "old.schedule"]).contains("does not say which program"));
    assert!(refused(&["hunt", "--sarif", "no/where.sarif", "abba.c"]).contains("no folder no"));
    assert!(refused(&["report", "abcdef"]).contains("no finding abcdef"));
}
