//! Prediction when something is wrong with what it is given: cut traces, traces that cannot be, programs that do not do the
//! same again. Each has a clear outcome, and nothing is lost.

mod common;

use common::{folder, raddle, run, succeed};
use std::process::Stdio;

const RACY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int shared;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *first(void *a) { shared = 1; pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex); return a; }
static void *second(void *a) {
    usleep(50000);
    pthread_mutex_lock(&mutex); pthread_mutex_unlock(&mutex);
    shared = 2;
    return a;
}
/* How often the program ran in this folder before. */
static int earlier_runs(void) {
    FILE *file = fopen("runs", "a");
    long runs = ftell(file);
    fputc('x', file);
    fclose(file);
    return (int)runs;
}
int main(int argc, char **argv) {
    pthread_t a, b;
    int again = argc > 1 && earlier_runs() > 0;
    if (again && argv[1][0] == 'd') pthread_mutex_lock(&mutex);
    if (again && argv[1][0] == 'h') for (;;) pause();
    pthread_create(&a, NULL, first, NULL);
    pthread_create(&b, NULL, second, NULL);
    if (again && argv[1][0] == 'd') pthread_mutex_unlock(&mutex);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%d\n", shared);
    return 0;
}
"#;

#[test]
fn a_cut_trace_is_predicted_from_as_far_as_it_goes() {
    let folder = folder(&[("racy.c", RACY)]);
    let at = folder.path();
    succeed(raddle().args(["record", "-q", "-o", "whole.trace", "racy.c"]).current_dir(at));
    let whole = std::fs::read(at.join("whole.trace")).unwrap();
    // The index at the end and a little more is missing.
    std::fs::write(at.join("cut.trace"), &whole[..whole.len() - 40]).unwrap();
    let output = run(raddle().args(["predict", "cut.trace"]).current_dir(at));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{text}");
    assert!(text.contains("does not cover the whole run"), "{text}");
}

#[test]
fn a_trace_that_cannot_be_is_told_to_be_one() {
    let text = "T0|fork(T1)|1\nT0|rel(l)|2\nT0|w(x)|3\nT1|acq(l)|4\nT1|acq(l)|5\nT0|acq(l)|6\nT1|w(x)|7\n";
    let folder = folder(&[("odd.std", text)]);
    let output = run(raddle().args(["predict", "odd.std"]).current_dir(folder.path()));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{text}");
    assert!(text.contains("not possible where the trace has them"), "{text}");
    // With their lines, whatever looks at the trace.
    for command in [&["predict", "odd.std"][..], &["detect", "odd.std"], &["coverage", "odd.std"]] {
        let output = run(raddle().args(command).current_dir(folder.path()));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            text.contains("odd.std: line 2: thread T0 releases lock l, which it does not have"),
            "{text}"
        );
        assert!(
            text.contains("line 6: thread T0 takes lock l while thread T1 has it since line 4"),
            "{text}"
        );
        assert!(text.contains("STD text as RAPID writes it (recognised)"), "{text}");
    }
}

/// What covers code of one program means nothing in another.
#[test]
fn coverage_tells_when_traces_are_of_different_programs() {
    let other = RACY.replace("shared = 2", "shared = 3");
    let folder = folder(&[("racy.c", RACY), ("other.c", &other), ("foreign.std", "T1|w(x)|1\nT2|r(x)|2\n")]);
    let at = folder.path();
    for name in ["racy", "other"] {
        succeed(raddle().args(["cc", "-g", "-pthread", &format!("{name}.c"), "-o", name]).current_dir(at));
        for run in ["1", "2"] {
            let trace = format!("{name}{run}.trace");
            let program = format!("./{name}");
            succeed(raddle().args(["record", "-o", &trace, "--", &program]).current_dir(at));
        }
    }
    // The trace that each of the warnings is about, beside the first one.
    let warned = |traces: &[&str]| -> Vec<String> {
        let output = run(raddle().arg("coverage").args(traces).current_dir(at));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{text}");
        let start = format!("raddle: warning: {} and ", traces[0]);
        text.lines()
            .filter(|line| line.contains("are not of the same build of one program"))
            .map(|line| line.strip_prefix(&start).unwrap_or(line).split(' ').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(warned(&["racy1.trace", "racy2.trace"]), Vec::<String>::new());
    assert_eq!(warned(&["other1.trace", "other2.trace"]), Vec::<String>::new());
    assert_eq!(warned(&["racy1.trace", "other1.trace"]), ["other1.trace"]);
    assert_eq!(
        warned(&["racy1.trace", "racy2.trace", "other1.trace", "other2.trace"]),
        ["other1.trace", "other2.trace"]
    );
    assert_eq!(warned(&["racy1.trace", "foreign.std"]), ["foreign.std"]);
    assert_eq!(warned(&["foreign.std", "racy1.trace"]), ["racy1.trace"]);
    // Without the linker's names of builds the paths tell them apart.
    for name in ["racy", "other"] {
        let source = format!("{name}.c");
        succeed(
            raddle()
                .args(["cc", "-g", "-pthread", "-Wl,--build-id=none", &source, "-o", name])
                .current_dir(at),
        );
        let (trace, program) = (format!("{name}-nameless.trace"), format!("./{name}"));
        succeed(raddle().args(["record", "-o", &trace, "--", &program]).current_dir(at));
    }
    assert_eq!(warned(&["racy-nameless.trace", "other-nameless.trace"]), ["other-nameless.trace"]);
}

/// The words and the data of the two levels.
#[test]
fn a_foreign_trace_is_predicted_soundly_unless_told_otherwise() {
    // The second read saw the write: with the write still to come it would have seen something else before.
    let folder = folder(&[("t.std", "T1|w(x)|1\nT2|r(x)|2\nT2|r(x)|3\n")]);
    let races = |options: &[&str]| {
        let output =
            run(raddle().args(["predict", "t.std", "--json"]).args(options).current_dir(folder.path()));
        let file: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = file["findings"].as_array().unwrap().clone();
        let sound: Vec<bool> =
            findings.iter().map(|f| f["basis"]["sound"].as_bool().unwrap_or(false)).collect();
        (findings.len(), sound)
    };
    assert_eq!(races(&[]), (1, vec![true]));
    assert_eq!(races(&["--sound"]), (1, vec![true]));
    let (count, mut sound) = races(&["--optimistic"]);
    sound.sort_unstable();
    assert_eq!((count, sound), (2, vec![false, true]));
    // Budgets that are none are refused.
    let output = run(raddle().args(["predict", "t.std", "--budget", "3h"]).current_dir(folder.path()));
    assert_eq!(output.status.code(), Some(2));
    let output = run(raddle().args(["predict", "t.std", "--budget", "1000,2s"]).current_dir(folder.path()));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Hunts in the program, which does something else from its second run on, and returns the notes of what was not confirmed.
fn hunt(mode: &str) -> String {
    let folder = folder(&[("racy.c", RACY)]);
    let at = folder.path();
    succeed(raddle().args(["cc", "-g", "-pthread", "racy.c", "-o", "racy"]).current_dir(at));
    let output = run(raddle()
        .args(["hunt", "--json", "--all", "--timeout", "3", "--workers", "1", "--", "./racy", mode])
        .current_dir(at)
        .stdin(Stdio::null()));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let (kept, _) = raddle_findings::Store::at(at.join(".raddle")).list().unwrap();
    let races: Vec<_> = kept
        .iter()
        .map(|evidence| &evidence.finding)
        .filter(|finding| finding.kind == raddle_findings::Kind::DataRace)
        .collect();
    assert!(!races.is_empty(), "the prediction is kept");
    for race in &races {
        assert_eq!(race.grade(), raddle_findings::Grade::Predicted, "{race:?}");
        assert!(at.join(race.schedule.as_ref().unwrap()).exists(), "its schedule is kept");
    }
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let notes =
        json["findings"].as_array().unwrap().iter().flat_map(|finding| finding["notes"].as_array().unwrap());
    notes.map(|note| note.as_str().unwrap().to_owned()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_program_that_does_something_else_is_not_confirmed() {
    let notes = hunt("different");
    assert!(notes.contains("left the schedule") || notes.contains("standstill"), "{notes}");
}

#[test]
fn a_program_that_hangs_in_replay_is_stopped() {
    let notes = hunt("hangs");
    assert!(notes.contains("took too long") || notes.contains("standstill"), "{notes}");
}
