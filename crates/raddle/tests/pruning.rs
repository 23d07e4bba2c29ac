//! Property driven pruning over real programs, shaped like those of table 1 of Wang et al. (ATVA 2008): the same races as `dpor`
//! with every access visible, and fewer executions.

mod common;

use common::{raddle, run, succeed};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

struct Row {
    name: &'static str,
    defines: &'static [&'static str],
    races: usize,
    /// Executions with pruning at most, if the program has no race.
    pruned_most: u64,
    /// How many times as many `dpor` needs at least. 0: it is not run to its end.
    ratio: u64,
}

const TABLE: [Row; 9] = [
    Row { name: "fdrd2", defines: &[], races: 1, pruned_most: 60, ratio: 1 },
    Row { name: "qsort", defines: &[], races: 0, pruned_most: 1, ratio: 4 },
    Row { name: "pfscan", defines: &[], races: 0, pruned_most: 1, ratio: 4 },
    Row { name: "pfscan", defines: &["-DBUG"], races: 1, pruned_most: 1000, ratio: 1 },
    Row { name: "aget", defines: &["-DTHREADS=2"], races: 0, pruned_most: 1, ratio: 10 },
    Row { name: "aget", defines: &["-DTHREADS=3"], races: 0, pruned_most: 1, ratio: 0 },
    Row { name: "aget", defines: &["-DTHREADS=5"], races: 0, pruned_most: 1, ratio: 0 },
    Row { name: "bzip2smp", defines: &["-DTHREADS=3"], races: 0, pruned_most: 1, ratio: 4 },
    Row { name: "bzip2smp", defines: &["-DTHREADS=6"], races: 0, pruned_most: 1, ratio: 0 },
];

/// Where `dpor` is run to its end only so far.
const RUNS: &str = "2000";

fn search(program: &Path, store: &Path, options: &[&str]) -> Value {
    let output = run(raddle()
        .args([
            "-q",
            "explore",
            "--exhaustive",
            "--visible",
            "all",
            "--races",
            "--json",
            "--no-schedules",
            "--keep",
        ])
        .arg(store)
        .args(options)
        .arg("--")
        .arg(program));
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn races(json: &Value) -> BTreeSet<String> {
    let findings = json["findings"].as_array().unwrap().iter();
    findings
        .filter(|finding| finding["kind"] == "data-race")
        .map(|finding| finding["id"].to_string())
        .collect()
}

#[test]
fn the_table() {
    let folder = tempfile::tempdir().unwrap();
    for Row { name, defines, races: expected, pruned_most, ratio } in TABLE {
        let path = folder.path().join(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/pruning/{name}.c"));
        succeed(
            raddle().args(["cc", "-O0", "-g", "-pthread"]).args(defines).arg(source).arg("-o").arg(&path),
        );
        let pruned = search(&path, folder.path(), &["--prune", "races"]);
        let told = &pruned["exploration"]["search"];
        let about = format!("{name} {defines:?}: {told:#}");
        assert_eq!(told["complete"], true, "{about}");
        let executions = told["executions"].as_u64().unwrap();
        assert!(executions <= pruned_most, "{about}");
        assert_eq!(races(&pruned).is_empty(), expected == 0, "{about}");
        let counts = &told["pruned"];
        assert!(
            counts["race_free"].as_u64() <= counts["checks"].as_u64() && counts["skipped"].as_u64() > Some(0),
            "{about}"
        );
        if expected == 0 {
            assert_eq!(counts["race_free"], counts["checks"], "{about}");
        }
        if ratio > 0 {
            let all = search(&path, folder.path(), &["--reduction", "dpor", "--runs", RUNS]);
            let told = &all["exploration"]["search"];
            assert!(told["executions"].as_u64().unwrap() >= ratio * executions, "{about} against {told:#}");
            assert!(races(&all).is_subset(&races(&pruned)) || told["complete"] == false, "{about}");
            if told["complete"] == true {
                assert_eq!(races(&all), races(&pruned), "{about}");
            }
        }
    }
}

/// Where the code does not tell what is accessed, nothing is left out.
#[test]
fn what_is_unknown_is_not_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("pointer.c");
    std::fs::write(
        &source,
        "#include <pthread.h>\n#include <stddef.h>\nstatic int x, y;\nstatic int *volatile where = &x;\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static void *run(void *unused) {\n  pthread_mutex_lock(&m);\n  int first = y++ == 0;\n  pthread_mutex_unlock(&m);\n\
         if (first) (*where)++;\n  return unused;\n}\n\
         int main(void) { pthread_t a, b; pthread_create(&a, NULL, run, NULL); pthread_create(&b, NULL, run, NULL);\n\
         pthread_join(a, NULL); pthread_join(b, NULL); return x; }\n",
    )
    .unwrap();
    let path = folder.path().join("pointer");
    succeed(raddle().args(["cc", "-O0", "-g", "-pthread"]).arg(&source).arg("-o").arg(&path));
    let pruned = search(&path, folder.path(), &["--prune", "races"]);
    let all = search(&path, folder.path(), &["--reduction", "dpor"]);
    assert_eq!(races(&pruned), races(&all));
    assert!(pruned["exploration"]["search"]["executions"].as_u64() > Some(1), "{:#}", pruned["exploration"]);
}
