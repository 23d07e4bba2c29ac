//! Findings satisfy the published schema, and the schema knows every kind and field.

use raddle_findings::{Finding, FindingsFile, Frame, Grade, HeldLock, Kind, Party, sarif};
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../docs/finding-schema.json");

/// Checks the part of JSON Schema that our schema uses: type, required, properties, additionalProperties, items, enum,
/// $ref. A keyword that it does not know is an error, so that the schema cannot outgrow the check.
fn violations(schema: &Value, root: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        match keyword.as_str() {
            "$schema" | "title" | "description" | "$defs" => {}
            "$ref" => {
                let name = rule.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                violations(&root["$defs"][name], root, value, path, found);
            }
            "type" => {
                let right = match rule.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_i64() || value.is_u64(),
                    other => panic!("unknown type {other}"),
                };
                if !right {
                    found.push(format!("{path}: not of type {rule}"));
                }
            }
            "enum" => {
                if !rule.as_array().unwrap().contains(value) {
                    found.push(format!("{path}: {value} is not in {rule}"));
                }
            }
            "required" => {
                for name in rule.as_array().unwrap() {
                    if value.get(name.as_str().unwrap()).is_none() {
                        found.push(format!("{path}: {name} is missing"));
                    }
                }
            }
            "properties" => {
                for (name, member) in value.as_object().into_iter().flatten() {
                    match rule.get(name) {
                        Some(rule) => violations(rule, root, member, &format!("{path}/{name}"), found),
                        None if schema["additionalProperties"] == false => {
                            found.push(format!("{path}: {name} is not in the schema"));
                        }
                        None => {}
                    }
                }
            }
            "additionalProperties" => assert_eq!(rule, false),
            "items" => {
                for (ix, item) in value.as_array().into_iter().flatten().enumerate() {
                    violations(rule, root, item, &format!("{path}/{ix}"), found);
                }
            }
            other => panic!("the check does not know the keyword {other}"),
        }
    }
}

fn check(value: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let mut found = Vec::new();
    violations(&schema, &schema, value, "", &mut found);
    found
}

const KINDS: [Kind; 18] = [
    Kind::DataRace,
    Kind::UseAfterFree,
    Kind::HighLevelRace,
    Kind::AtomicityViolation,
    Kind::OrderViolation,
    Kind::Deadlock,
    Kind::LockOrder,
    Kind::MissedSignal,
    Kind::BlockedThread,
    Kind::Livelock,
    Kind::Starvation,
    Kind::NonProgress,
    Kind::ContractViolation,
    Kind::LockMisuse,
    Kind::ThreadLeak,
    Kind::Crash,
    Kind::AssertionFailure,
    Kind::PropertyViolation,
];

fn full(kind: Kind, grade: Grade) -> Finding {
    let frame = Frame {
        function: Some("deposit".into()),
        file: Some("/src/my bank/bank.c".into()),
        line: Some(12),
        column: Some(3),
        raw: Some("bank+0x12".into()),
    };
    let party = Party {
        thread: "1.1".into(),
        action: "writes 4 bytes".into(),
        stack: vec![frame.clone(), Frame { raw: Some("libc.so.6+0x1".into()), ..Frame::default() }],
        locks: vec![HeldLock { lock: "m".into(), acquired: vec![frame] }],
    };
    let mut finding = Finding::new(kind, grade, "fasttrack", "a race".into(), vec![party.clone(), party]);
    finding.objects.push("balance".into());
    finding.notes.push("note".into());
    finding.schedule = Some("a.schedule".into());
    finding
}

fn all() -> Vec<Finding> {
    let mut findings: Vec<Finding> = KINDS.iter().map(|&kind| full(kind, Grade::Confirmed)).collect();
    findings.push(full(Kind::DataRace, Grade::Predicted));
    findings.push(full(Kind::DataRace, Grade::Suspected));
    findings.push(Finding::new(Kind::Crash, Grade::Confirmed, "runtime", "bare".into(), Vec::new()));
    findings
}

#[test]
fn findings_satisfy_the_schema() {
    let file = FindingsFile::new(vec!["./bank".into()], all());
    let value: Value = serde_json::from_str(&file.to_json()).unwrap();
    assert_eq!(check(&value), Vec::<String>::new());
    let empty: Value = serde_json::from_str(&FindingsFile::new(Vec::new(), Vec::new()).to_json()).unwrap();
    assert_eq!(check(&empty), Vec::<String>::new());
}

#[test]
fn the_check_can_fail() {
    let mut value = serde_json::to_value(FindingsFile::new(Vec::new(), all())).unwrap();
    value["findings"][0]["kind"] = "typo".into();
    value["findings"][1].as_object_mut().unwrap().remove("message");
    value["findings"][2]["parties"][0]["stack"][0]["line"] = "12".into();
    value["findings"][3]["extra"] = 1.into();
    assert_eq!(check(&value).len(), 4, "{:?}", check(&value));
}

#[test]
fn sarif_has_what_scanners_ask_for() {
    let value = sarif(&all(), &[full(Kind::Deadlock, Grade::Confirmed)], "/src");
    assert_eq!(value["version"], "2.1.0");
    let run = &value["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), KINDS.len());
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), all().len() + 1);
    for result in results {
        let rule = &rules[result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(result["message"]["text"].is_string());
    }
    let first = &results[0];
    assert_eq!(first["level"], "error");
    let physical = &first["locations"][0]["physicalLocation"];
    assert_eq!(physical["artifactLocation"]["uri"], "my%20bank/bank.c");
    assert_eq!(physical["artifactLocation"]["uriBaseId"], "%SRCROOT%");
    assert_eq!(physical["region"]["startLine"], 12);
    assert_eq!(first["relatedLocations"][0]["id"], 1);
    assert_eq!(first["codeFlows"][0]["threadFlows"].as_array().unwrap().len(), 2);
    assert_eq!(results[KINDS.len()]["level"], "warning");
    assert_eq!(results.last().unwrap()["suppressions"][0]["kind"], "external");
    let outside = sarif(&[full(Kind::DataRace, Grade::Confirmed)], &[], "/elsewhere");
    let artifact = &outside["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(artifact["uri"], "file:///src/my%20bank/bank.c");
}
