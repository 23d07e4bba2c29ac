//! The findings file satisfies the published schema, and the schema refuses what it does not know.

mod samples;

use raddle_findings::{Finding, FindingsFile};
use samples::{Raw, Sampler};
use serde_json::Value;

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../docs/finding-schema.json")).unwrap()
}

fn violations(value: &Value) -> Vec<String> {
    let validator = jsonschema::draft202012::new(&schema()).expect("the schema is one");
    validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

fn written(findings: Vec<Finding>) -> Value {
    let mut file = FindingsFile::new("hunt", vec!["./bank".into()], findings);
    let outcome = raddle_findings::file::Outcome {
        ending: serde_json::json!({ "exit": 3 }),
        stdout: "x".into(),
        count: 2,
        first_run: 1,
        seed: 7,
        finding: Some("0123456789ab".into()),
    };
    let search = raddle_findings::file::Search {
        reduction: "source".into(),
        executions: 8,
        blocked: 1,
        deadlocks: 1,
        failures: 2,
        complete: true,
        bound: Some(raddle_findings::file::Bound {
            of: "preemptions".into(),
            most: 1,
            executions: vec![3, 5],
        }),
        estimate: raddle_findings::file::Estimate { executions: 8, error: 0 },
        restarts: 1,
        visible: vec!["bank.c:5".into()],
    };
    file.exploration = Some(raddle_findings::file::Exploration {
        runs: 9,
        schedules: Some(2),
        outcomes: vec![outcome],
        search: Some(search),
        sampled: Some("pct:3".into()),
        races: Some(1),
        reads_from: Some(raddle_findings::file::Pairs { covered: 3, predicted: 4 }),
    });
    serde_json::from_str(&file.to_json(&Raw)).unwrap()
}

const SAMPLER: Sampler = Sampler { text: "balance", file: "/src/my bank/bank.c" };

#[test]
fn every_finding_satisfies_the_schema() {
    for finding in SAMPLER.findings() {
        let value = written(vec![finding]);
        assert_eq!(violations(&value), Vec::<String>::new(), "{value:#}");
    }
    assert_eq!(violations(&written(Vec::new())), Vec::<String>::new());
}

#[test]
fn what_is_written_is_read_back_the_same() {
    let file = FindingsFile::new("hunt", Vec::new(), SAMPLER.findings());
    assert_eq!(FindingsFile::parse("f", &file.to_json(&Raw)).unwrap(), file);
}

/// Every object that occurs, by its path.
fn objects(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.push(path.to_owned());
            for (name, member) in members {
                objects(member, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                objects(item, &format!("{path}/{at}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn an_unknown_field_is_refused_wherever_it_is() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    let mut tried = 0;
    for finding in SAMPLER.findings() {
        // Every part once is enough: the findings repeat the same objects hundreds of times.
        let finding = Finding { objects: finding.objects.into_iter().take(12).collect(), ..finding };
        let value = written(vec![finding]);
        let mut paths = Vec::new();
        objects(&value, "", &mut paths);
        for path in paths {
            let mut changed = value.clone();
            changed.pointer_mut(&path).unwrap()["unheard-of"] = true.into();
            assert!(!validator.is_valid(&changed), "{path} accepts an unknown field");
            tried += 1;
        }
    }
    assert!(tried > 1000, "{tried}");
}

#[test]
fn wrong_values_are_refused() {
    let good = written(SAMPLER.findings());
    let change = |path: &str, to: Value| {
        let mut value = good.clone();
        *value.pointer_mut(path).unwrap_or_else(|| panic!("{path}")) = to;
        assert!(!violations(&value).is_empty(), "{path}");
    };
    change("/version", 1.into());
    change("/findings/0/kind", "typo".into());
    change("/findings/0/grade", "certain".into());
    change("/findings/0/parties/0/stack/0/line", "12".into());
    change("/findings/0/parties/0/stack/0/line", (-1).into());
    change("/findings/0/parties/0/action/does", "dances".into());
    change("/findings/0/basis/by", "magic".into());
    let mut missing = good.clone();
    missing["findings"][0].as_object_mut().unwrap().remove("message");
    assert!(!violations(&missing).is_empty());
}
