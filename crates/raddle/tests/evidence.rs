//! What Raddle says, it can show again: ids, the store, schedules that need nothing but themselves.

mod common;
#[path = "evidence/ids.rs"]
mod ids;

use common::{compilers, folder, raddle, run};
use raddle_findings::{Access, Action, Finding, FindingsFile, Grade, Kind, Place, Store};
use raddle_trace::schedule::{Schedule, Stop, StopPlace};
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

/// Where the schedule of a race stops the threads is where the finding says they are, before what it says they do there.
#[test]
fn schedules_stop_before_what_the_finding_says() {
    let bank = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bank.c");
    let source = std::fs::read_to_string(bank).unwrap();
    for compiler in compilers() {
        for options in [&[][..], &["--keep-redundant"], &["--runs", "3"], &["--strategy", "random"]] {
            let folder = folder(&[("bank.c", &source)]);
            let findings = found(&run(raddle_in(folder.path())
                .args(["hunt", "--json", "--provoke", "off"])
                .args(options)
                .arg("bank.c")
                .env("RADDLE_CC", &compiler)));
            let races = confirmed(&findings).into_iter().filter(|finding| finding.kind == Kind::DataRace);
            let mut compared = 0;
            for race in races {
                compared += stops_are_parties(folder.path(), race);
            }
            assert!(
                compared >= 2 || options.contains(&"--strategy"),
                "{compiler} {options:?}: {findings:#?}"
            );
        }
    }
}

/// Compares the stops of a race's stored schedule with its parties, and tells how many there are.
fn stops_are_parties(folder: &Path, race: &Finding) -> usize {
    let path = Store::at(folder.join(".raddle")).schedule_path(&race.id);
    let text = std::fs::read_to_string(path).unwrap();
    let schedule = Schedule::parse(&text).unwrap();
    assert_eq!(schedule.stops.len(), race.parties.len(), "{race:#?}\n{text}");
    for party in &race.parties {
        let of_party = |stop: &&Stop| schedule.name(stop.thread) == party.thread.path;
        let stop = schedule.stops.iter().find(of_party).unwrap_or_else(|| panic!("{race:#?}\n{text}"));
        let Action::Accesses { access, bytes, object: Some(object), .. } = &party.action else {
            panic!("{race:#?}")
        };
        let frame = &party.stack[0];
        let StopPlace::Code(code) = stop.place else { panic!("{text}") };
        assert_eq!(Some(schedule.name(code)), frame.raw.as_deref(), "{race:#?}\n{text}");
        let deed = match access {
            Access::Read => "reads",
            Access::Write => "writes",
            Access::ReadWrite | Access::Any => panic!("a stop is before one access: {race:#?}"),
        };
        let Place::Global { module, offset } = &object.place else { panic!("{race:#?}") };
        let (function, line) = (frame.function.as_deref().unwrap(), frame.line.unwrap());
        let said = format!("bank.c:{line} {function}, {deed} {bytes} bytes of {module}+{offset:#x}");
        assert_eq!(schedule.name(stop.comment), said, "{race:#?}\n{text}");
    }
    schedule.stops.len()
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

/// What was built from its source by one compiler is replayed with that one, whatever the environment says later.
#[test]
fn the_compiler_is_part_of_the_schedule() {
    let compilers = compilers();
    for (compiler, other) in compilers.iter().zip(compilers.iter().rev()) {
        let folder = folder(&[("handover.c", HANDOVER)]);
        let findings = found(&run(raddle_in(folder.path())
            .args(["hunt", "--json", "handover.c"])
            .env("RADDLE_CC", compiler)));
        assert!(!confirmed(&findings).is_empty(), "{findings:#?}");
        for finding in confirmed(&findings) {
            let output = run(raddle_in(folder.path())
                .args(["replay", "--repeat", "5", &finding.id])
                .env("RADDLE_CC", other));
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{compiler}, then {other}: {said}");
        }
    }
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

/// Shown, gone and left the schedule are told apart, by the exit status too; where the program left it, thread, operation and place of both
/// what was expected and what was found are named.
#[test]
fn the_status_of_a_replay_says_what_became_of_the_error() {
    let folder = folder(&[("abba.c", ABBA), ("crash.c", CRASH)]);
    let deadlock = confirmed(&hunt(folder.path(), &[], "abba.c"))[0].id.clone();
    let crash = confirmed(&hunt(folder.path(), &[], "crash.c"))[0].id.clone();
    let replayed = |id: &str| {
        let output = run(raddle_in(folder.path()).args(["replay", id]));
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for id in [&deadlock, &crash] {
        let (status, text) = replayed(id);
        assert_eq!(status, Some(1), "{text}");
        assert!(text.contains("shown in 1 of 1 runs"), "{text}");
    }
    std::fs::write(folder.path().join("crash.c"), CRASH.replace("*(volatile int *)p = 1;", "(void)p;"))
        .unwrap();
    let (status, text) = replayed(&crash);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("gone; not shown in 1 of 1 runs") && text.contains("rebuilt since"), "{text}");
    assert!(text.contains("the replay ended with status 0 before the error was shown"), "{text}");
    let other = ABBA
        .replace("#include <stdio.h>", "#include <stdio.h>\npthread_cond_t c = PTHREAD_COND_INITIALIZER;")
        .replace(
            "    usleep(30000);\n    pthread_mutex_lock(&b);",
            "    usleep(30000);\n    pthread_cond_signal(&c);",
        );
    assert_ne!(other, ABBA);
    std::fs::write(folder.path().join("abba.c"), other).unwrap();
    let (status, text) = replayed(&deadlock);
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains("the program left the schedule in 1 of 1 runs"), "{text}");
    let found = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in
        ["expected thread 1.2 at operation", "(`lock`", "found it at operation", "(`signal` at abba.c:"]
    {
        assert!(found.contains(words), "{words}: {text}");
    }
}

/// `--json` is one object of the schema, whatever the program prints.
#[test]
fn machine_output_is_alone_on_its_stream() {
    let folder = folder(&[("abba.c", ABBA)]);
    for command in [
        &["hunt", "--json"][..],
        &["run", "--json"],
        &["explore", "--strategy", "random", "--json", "--runs", "50"],
    ] {
        let output = run(raddle_in(folder.path()).args(command).arg("abba.c"));
        found(&output);
    }
}

/// Errors of different objects and callers that go through the same lines of a library or helper.
const ALIKE: &str = r#"
#include <mutex>
#include <thread>
#include <vector>
#include <unistd.h>
std::mutex a, b, c, d;
std::vector<int> u, v;
int m, n;
static void inc(int *p) { (*p)++; }
static void first() {
    { std::lock_guard<std::mutex> x(a); std::lock_guard<std::mutex> y(b); }
    { std::lock_guard<std::mutex> x(c); std::lock_guard<std::mutex> y(d); }
    u.push_back(1);
    v.push_back(1);
    inc(&m); inc(&n);
}
static void second() {
    usleep(30000);
    { std::lock_guard<std::mutex> x(b); std::lock_guard<std::mutex> y(a); }
    { std::lock_guard<std::mutex> x(d); std::lock_guard<std::mutex> y(c); }
    u.push_back(2);
    v.push_back(2);
    inc(&m); inc(&n);
}
int main() {
    u.reserve(10);
    v.reserve(10);
    std::thread one(first), two(second);
    one.join();
    two.join();
}
"#;

/// Kinds and names of the objects of findings; the ids are all different.
fn objects(findings: &[Finding]) -> std::collections::BTreeSet<(Kind, Vec<String>)> {
    let ids: std::collections::BTreeSet<&str> = findings.iter().map(|finding| finding.id.as_str()).collect();
    assert_eq!(ids.len(), findings.len());
    let names = |finding: &Finding| -> Vec<String> {
        let mut names: Vec<String> =
            finding.objects.iter().filter_map(|object| object.name.clone()).collect();
        names.sort();
        names
    };
    findings.iter().map(|finding| (finding.kind, names(finding))).collect()
}

/// Whatever goes through one helper, or through the same lines of the C++ library, is shown for each object: two pairs of locks, two
/// vectors, two callers of a function.
#[test]
fn errors_behind_one_helper_are_all_shown() {
    let folder = folder(&[("alike.cpp", ALIKE)]);
    let hunted = hunt(folder.path(), &[], "alike.cpp");
    let names = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let found = objects(&hunted);
    for locks in [["a", "b"], ["c", "d"]] {
        assert!(found.contains(&(Kind::Deadlock, names(&locks))), "{locks:?}: {found:?}");
    }
    for memory in ["u", "v", "m", "n"] {
        assert!(found.contains(&(Kind::DataRace, names(&[memory]))), "{memory}: {found:?}");
    }
    let output = run(raddle_in(folder.path()).args(["run", "--json", "--all", "alike.cpp"]));
    let ran = self::found(&output);
    let found = objects(&ran);
    for locks in [["a", "b"], ["c", "d"]] {
        assert!(found.contains(&(Kind::LockOrder, names(&locks))), "{locks:?}: {found:?}");
    }
    for memory in ["u", "v", "m", "n"] {
        assert!(found.contains(&(Kind::DataRace, names(&[memory]))), "{memory}: {found:?}");
    }
    // Threads are called the same in every command.
    let threads = |findings: &[Finding]| -> std::collections::BTreeSet<String> {
        findings.iter().flat_map(|finding| &finding.parties).map(|party| party.thread.path.clone()).collect()
    };
    assert_eq!(threads(&hunted), threads(&ran));
    assert_eq!(threads(&ran).into_iter().collect::<Vec<_>>(), ["1.1", "1.2"]);
}

/// A baseline with one crash does not hide another.
#[test]
fn a_baseline_hides_what_is_in_it_and_nothing_else() {
    let folder = folder(&[("crash.c", CRASH)]);
    let hunt = |options: &[&str]| {
        run(raddle_in(folder.path()).args(["hunt", "--json"]).args(options).arg("crash.c"))
    };
    hunt(&["--output", "before.json"]);
    let again = hunt(&["--baseline", "before.json"]);
    assert!(found(&again).is_empty());
    let other = hunt(&["--baseline", "before.json", "--cflags", "-DABORT"]);
    assert_eq!(found(&other).len(), 1);
    assert_eq!(other.status.code(), Some(1));
}

/// Phases that a barrier separates: no more than a suspicion, in every command.
#[test]
fn lock_orders_of_separate_phases_are_at_most_suspected() {
    let source = ABBA
        .replace("#include <stdio.h>", "#include <stdio.h>\npthread_barrier_t phase;")
        .replace("    usleep(30000);", "    pthread_barrier_wait(&phase);")
        .replacen("    return 0;", "    pthread_barrier_wait(&phase);\n    return 0;", 1)
        .replace("    pthread_t x, y;", "    pthread_t x, y;\n    pthread_barrier_init(&phase, 0, 2);");
    let folder = folder(&[("phases.c", &source)]);
    for command in ["run", "hunt", "explore"] {
        let output = run(raddle_in(folder.path()).args([command, "--json", "--all", "phases.c"]));
        for finding in found(&output) {
            assert_eq!((finding.kind, finding.grade()), (Kind::LockOrder, Grade::Suspected), "{command}");
        }
        assert_eq!(output.status.code(), Some(0), "{command}");
    }
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

/// Crashes in two places, with the same signal; the second needs more of a search.
const TWO_CRASHES: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
int x;
int *_Atomic p, *_Atomic q;
static void *gives(void *n) { p = &x; q = &x; return n; }
static void *takes(void *n) {
    *p = 1; // FIRST
    *q = 1; // SECOND
    return n;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, gives, 0);
    pthread_create(&b, 0, takes, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
"#;

/// A schedule that leads to one crash does not show another, however alike they are; and none is shrunk into another.
#[test]
fn a_crash_is_not_shown_by_another_crash() {
    let folder = folder(&[("two.c", TWO_CRASHES)]);
    let output = run(raddle_in(folder.path()).args([
        "explore",
        "--strategy",
        "random",
        "--json",
        "--runs",
        "300",
        "two.c",
    ]));
    let findings = found(&output);
    assert_eq!(findings.len(), 2, "{findings:#?}");
    replays_always(folder.path(), &findings);
    let store = Store::at(folder.path().join(".raddle"));
    let line = |mark: &str| TWO_CRASHES.lines().position(|line| line.contains(mark)).unwrap() + 1;
    let places = ["FIRST", "SECOND"].map(|mark| format!("at \"two.c:{} takes\"", line(mark)));
    let mut seen = std::collections::BTreeSet::new();
    for finding in &findings {
        let path = store.schedule_path(&finding.id);
        let text = std::fs::read_to_string(&path).unwrap();
        let at = places.iter().position(|place| text.contains(place)).unwrap_or_else(|| panic!("{text}"));
        seen.insert(at);
        let loads = text.lines().filter(|line| line.starts_with("step 1.2 ") && line.contains(" load "));
        assert_eq!(loads.count(), at + 1, "{text}");
        // Whoever promises the other crash is not believed.
        std::fs::write(&path, text.replace(&places[at], &places[1 - at])).unwrap();
        assert_eq!(replay(folder.path(), &finding.id, 2), (0, Some(0)), "{text}");
    }
    assert_eq!(seen.len(), 2);
}

/// The same for deadlocks: the threads wait in the operations that the schedule names.
#[test]
fn a_deadlock_is_not_shown_by_another_deadlock() {
    let folder = folder(&[("abba.c", &ABBA.replace("    usleep(30000);\n", ""))]);
    let hunted = hunt(folder.path(), &[], "abba.c");
    let explored = found(&run(raddle_in(folder.path()).args([
        "explore",
        "--strategy",
        "random",
        "--json",
        "--runs",
        "200",
        "--keep",
        "explored",
        "abba.c",
    ])));
    for (keep, findings) in [(".raddle", hunted), ("explored", explored)] {
        let [finding] = confirmed(&findings)[..] else { panic!("{findings:#?}") };
        let path = Store::at(folder.path().join(keep)).schedule_path(&finding.id);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with("block ")).count(), 2, "{text}");
        let other: Vec<String> = text
            .lines()
            .map(|line| match line.strip_prefix("block 1.1 ").and_then(|rest| rest.split_once(' ')) {
                Some((_, rest)) => format!("block 1.1 77 {rest}"),
                None => line.to_owned(),
            })
            .collect();
        let replayed = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let output = run(raddle_in(folder.path()).args(["replay", "--json"]).arg(&path));
            let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            json["shown"].as_u64()
        };
        assert_eq!(replayed(&(other.join("\n") + "\n")), Some(0), "{text}");
        assert_eq!(replayed(&text), Some(1), "{text}");
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
    let output = run(raddle_in(folder.path()).args([
        "explore",
        "--strategy",
        "random",
        "--json",
        "--runs",
        "200",
        "abba.c",
    ]));
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

/// Whoever waits may be helped by a handler that runs in its own thread: that is no deadlock. A program with handlers can deadlock all the
/// same, and the schedule of that shows it again.
#[test]
fn a_handler_may_help_and_need_not() {
    let helped = include_str!("../../../corpus/invisible/handler_message.c");
    let include = format!("-I{}/../../corpus/include", env!("CARGO_MANIFEST_DIR"));
    let deadlocks = ABBA
        .replace("    usleep(30000);\n", "")
        .replace(
            "#include <stdio.h>",
            "#include <signal.h>\n#include <stdio.h>\nstatic void handler(int n) { (void)n; }",
        )
        .replace("    pthread_t x, y;", "    pthread_t x, y;\n    signal(SIGUSR1, handler);");
    let folder = folder(&[("helped.c", helped), ("abba.c", &deadlocks)]);
    let explore = |options: &[&str], source: &str| {
        let explored = raddle_in(folder.path())
            .args(["explore", "--json", "--runs", "100", "--strategy", "random"])
            .args(options)
            .arg(source)
            .env("CORPUS_TURN_MS", "0")
            .output();
        found(&explored.unwrap())
    };
    let findings = explore(&["--cflags", &include], "helped.c");
    assert!(findings.is_empty(), "{findings:#?}");
    let findings = explore(&[], "abba.c");
    assert_eq!(findings.iter().map(|finding| finding.kind).collect::<Vec<_>>(), [Kind::Deadlock]);
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

/// Findings in the store that is listed.
const STORED: usize = 10_000;

/// A large store is listed whole, by kind and by program; one unreadable finding does not hide the others.
#[test]
fn a_large_store_is_listed() {
    let folder = folder(&[("handover.c", HANDOVER)]);
    let findings = hunt(folder.path(), &[], "handover.c");
    let store = Store::at(folder.path().join(".raddle"));
    let template = store.read(&confirmed(&findings)[0].id).unwrap();
    for number in 0..STORED {
        let mut evidence = template.clone();
        evidence.finding.id = format!("{number:012x}");
        evidence.found_at = number as u64;
        evidence.program = vec![format!("./program{}", number % 10)];
        let place = store.folder().join(&evidence.finding.id);
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("finding.json"), serde_json::to_string(&evidence).unwrap()).unwrap();
    }
    std::fs::write(store.folder().join("000000000000/finding.json"), "{").unwrap();
    let report = |options: &[&str]| {
        let output = run(raddle_in(folder.path()).arg("report").args(options));
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stdout).unwrap()
    };
    let own = findings.iter().filter(|finding| finding.grade() >= Grade::Unordered).count();
    let listed = |text: &str| text.lines().filter(|line| line.contains("data-race")).count();
    assert_eq!(listed(&report(&[])), STORED - 1 + own);
    assert_eq!(listed(&report(&["--program", "program7"])), STORED / 10);
    assert_eq!(listed(&report(&["--latest", "5"])), 5);
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
