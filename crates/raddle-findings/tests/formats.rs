//! The machine formats: what each contains, and that each stays well-formed whatever strings a finding carries.

mod samples;

use proptest::prelude::*;
use quick_xml::events::Event;
use raddle_findings::formats::{gcc, github, gitlab, junit, sarif};
use raddle_findings::{Basis, Detail, Fidelity, Finding, Grade, Kind, Listing, Shown};
use samples::{Raw, Sampler};
use serde_json::Value;
use std::sync::LazyLock;

const SAMPLER: Sampler = Sampler { text: "balance", file: "/src/my bank/bank.c" };

fn confirmed(kind: Kind) -> Finding {
    SAMPLER.full(kind, Basis::Replayed { shown: Shown::Parked, replays: 2 }, Detail::None)
}

fn of_grades() -> Vec<Finding> {
    [
        Basis::Replayed { shown: Shown::Parked, replays: 2 },
        Basis::observed(),
        Basis::unordered(),
        Basis::model(true, Fidelity::KeepsReads),
        Basis::rule(),
    ]
    .map(|basis| SAMPLER.full(Kind::DataRace, basis, Detail::None))
    .to_vec()
}

/// The schema that the crate of the format was made from, wherever cargo has put it.
static SARIF_SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(cargo);
    // Packages of other platforms need not be there.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    command.args(["metadata", "--format-version", "1", "--offline", "--filter-platform", &platform]);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    let metadata: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|package| package["name"] == "serde-sarif").unwrap();
    let manifest = std::path::Path::new(package["manifest_path"].as_str().unwrap());
    let schema = std::fs::read_to_string(manifest.parent().unwrap().join("src/schema.json")).unwrap();
    // The published pattern of languages has a bracket too many and is no regular expression; nothing here has a language.
    serde_json::from_str(&schema.replace("[a-zA-Z]{2}]?$", "[a-zA-Z]{2}$")).unwrap()
});

static SARIF_VALIDATOR: LazyLock<jsonschema::Validator> =
    LazyLock::new(|| jsonschema::draft7::new(&SARIF_SCHEMA).unwrap());

/// A log that satisfies SARIF's schema and what the schema cannot say: indices and ids fit together.
fn checked_sarif(text: &str) -> Value {
    let value: Value = serde_json::from_str(text).unwrap();
    let violations: Vec<String> = SARIF_VALIDATOR
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert_eq!(violations, Vec::<String>::new());
    let run = &value["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for rule in rules {
        for text in ["shortDescription", "fullDescription", "help"] {
            assert!(rule[text]["text"].is_string(), "{text}");
        }
    }
    for result in run["results"].as_array().unwrap() {
        let at = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[at]["id"], result["ruleId"]);
        for (at, related) in result["relatedLocations"].as_array().into_iter().flatten().enumerate() {
            assert_eq!(related["id"], at + 1);
        }
        assert!(result["partialFingerprints"]["raddleFinding/v2"].is_string());
    }
    value
}

fn checked_xml(text: &str) -> usize {
    let mut reader = quick_xml::Reader::from_str(text);
    let (mut open, mut cases) = (Vec::new(), 0);
    loop {
        match reader.read_event().unwrap() {
            Event::Start(tag) => {
                cases += usize::from(tag.name().as_ref() == b"testcase");
                tag.attributes().for_each(|attribute| drop(attribute.unwrap()));
                open.push(tag.name().as_ref().to_owned());
            }
            Event::Empty(tag) => tag.attributes().for_each(|attribute| drop(attribute.unwrap())),
            Event::End(tag) => assert_eq!(open.pop().as_deref(), Some(tag.name().as_ref())),
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(open.is_empty());
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    assert!(text.chars().all(allowed), "a character that XML does not allow");
    quick_junit::Report::deserialize_from_str(text).expect("JUnit reads it back");
    cases
}

fn checked_github(text: &str) {
    for line in text.lines() {
        let rest = ["::error ", "::warning ", "::notice "].iter().find_map(|start| line.strip_prefix(start));
        let (properties, message) = rest.expect(line).split_once("::").expect(line);
        for property in properties.split(',') {
            let (name, value) = property.split_once('=').expect(line);
            assert!(["file", "line", "col", "title"].contains(&name), "{line}");
            assert!(!value.contains(':'), "{line}");
        }
        assert!(!message.contains('\r') && !line.contains('\x1b'));
    }
}

fn checked_gcc(text: &str, findings: usize) {
    let heads = text.lines().filter(|line| !line.contains(": note: ")).count();
    assert!(heads <= findings, "{heads} lines for {findings} findings");
    for line in text.lines() {
        assert!(
            [": error: ", ": warning: ", ": note: "].iter().any(|level| line.contains(level)),
            "{line:?}"
        );
        assert!(!line.chars().any(char::is_control));
    }
}

fn check_all(findings: &[Finding]) {
    let listing = Listing {
        held_back: findings,
        suppressed: &findings[..1],
        known: Some(&findings[..1]),
        ..Listing::new(findings, "/src")
    };
    checked_sarif(&sarif(&listing, &Raw));
    assert_eq!(checked_xml(&junit(&listing, &Raw)), 2 * findings.len() + 2);
    let issues: Vec<Value> = serde_json::from_str(&gitlab(&listing, &Raw)).unwrap();
    assert_eq!(issues.len(), findings.len());
    checked_github(&github(&listing, &Raw));
    assert_eq!(github(&listing, &Raw).lines().count(), findings.len());
    checked_gcc(&gcc(&listing, &Raw), findings.len());
}

#[test]
fn every_kind_of_finding_has_every_format() {
    check_all(&SAMPLER.findings());
}

#[test]
fn sarif_has_what_scanners_ask_for() {
    let findings: Vec<Finding> = Kind::ALL.into_iter().map(confirmed).chain(of_grades()).collect();
    let suppressed = [confirmed(Kind::Deadlock)];
    let listing = Listing { suppressed: &suppressed, ..Listing::new(&findings, "/src") };
    let value = checked_sarif(&sarif(&listing, &Raw));
    let run = &value["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), Kind::ALL.len());
    assert_eq!(run["originalUriBaseIds"]["%SRCROOT%"]["uri"], "file:///src/");
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), findings.len() + 1);
    let first = &results[0];
    let physical = &first["locations"][0]["physicalLocation"];
    assert_eq!(physical["artifactLocation"]["uri"], "my%20bank/bank.c");
    assert_eq!(physical["artifactLocation"]["uriBaseId"], "%SRCROOT%");
    assert_eq!(physical["region"]["startLine"], 12);
    assert_eq!(first["codeFlows"][0]["threadFlows"].as_array().unwrap().len(), 2);
    let properties = &first["properties"];
    assert_eq!((&properties["grade"], &properties["basis"]["by"]), (&"confirmed".into(), &"replayed".into()));
    assert_eq!((&properties["detector"], &properties["schedule"]), (&"balance".into(), &"balance".into()));
    let levels: Vec<&Value> = results[Kind::ALL.len()..][..5].iter().map(|result| &result["level"]).collect();
    assert_eq!(levels, ["error", "error", "error", "warning", "note"]);
    assert_eq!(results.last().unwrap()["suppressions"][0]["kind"], "external");
    assert!(results[0].get("suppressions").is_none() && results[0].get("baselineState").is_none());
    let outside = checked_sarif(&sarif(&Listing::new(&findings[..1], "/elsewhere"), &Raw));
    let artifact = &outside["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!(artifact["uri"], "file:///src/my%20bank/bank.c");
}

#[test]
fn with_a_baseline_every_result_has_its_state() {
    let (new, known) = ([confirmed(Kind::DataRace)], [confirmed(Kind::Deadlock)]);
    let listing = Listing { known: Some(&known), ..Listing::new(&new, "/src") };
    let value = checked_sarif(&sarif(&listing, &Raw));
    let states: Vec<&Value> = (0..2).map(|at| &value["runs"][0]["results"][at]["baselineState"]).collect();
    assert_eq!(states, ["new", "unchanged"]);
}

#[test]
fn junit_fails_for_failing_grades_only() {
    let findings = of_grades();
    let count = |listing: &Listing, tag: &str| junit(listing, &Raw).matches(tag).count();
    let listing = Listing { held_back: &findings[..2], ..Listing::new(&findings, "/src") };
    assert_eq!((count(&listing, "<failure "), count(&listing, "<skipped ")), (3, 4));
    let strict = Listing { fail_on: Grade::Suspected, ..Listing::new(&findings, "/src") };
    assert_eq!((count(&strict, "<failure "), count(&strict, "<skipped ")), (5, 0));
}

#[test]
fn short_formats() {
    let sampler = Sampler { text: "x", file: "/src/a,b:%.c" };
    let mut finding = sampler.full(Kind::DataRace, Basis::unordered(), Detail::None);
    finding.parties.truncate(1);
    finding.objects.truncate(1);
    let list = [finding];
    let listing = Listing::new(&list, "/src");
    assert_eq!(
        github(&listing, &Raw),
        "::error file=a%2Cb%3A%25.c,line=12,col=3,title=data-race (unordered)::x%0Ax %0Ax%0Ax\n"
    );
    let expected = "a,b:%.c:12:3: error: x [data-race]\na,b:%.c:12:3: note: x \n\
                    a,b:%.c:12:3: note: x\na,b:%.c:12:3: note: x\n";
    assert_eq!(gcc(&listing, &Raw), expected);
    let issue = &serde_json::from_str::<Value>(&gitlab(&listing, &Raw)).unwrap()[0];
    assert_eq!(issue["location"], serde_json::json!({ "path": "a,b:%.c", "lines": { "begin": 12 } }));
    assert_eq!((&issue["severity"], &issue["check_name"]), (&"major".into(), &"data-race".into()));
    assert_eq!(issue["fingerprint"], list[0].id);
}

/// What the property test meets only by chance.
#[test]
fn empty_and_very_long_names_break_no_format() {
    for text in [String::new(), "x".repeat(100_000)] {
        let sampler = Sampler { text: &text, file: &text };
        let mut finding = sampler.full(Kind::Deadlock, Basis::rule(), Detail::Words { text: text.clone() });
        finding.objects.truncate(14);
        check_all(&[finding]);
    }
}

/// Strings that break naive writers, beside arbitrary ones.
fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => any::<String>(),
        4 => "[\\x00-\\x7f]{0,40}",
        4 => "[\u{202a}-\u{202e}\u{2066}-\u{2069}\u{2028}\u{feff}a]{0,10}",
        2 => Just("]]>\"'&<!--\r\n::error file=x::y\x1b[31m%0A".to_owned()),
        2 => Just("\u{fffe}\u{ffff}\0\u{10ffff}".to_owned()),
        1 => Just("x\n".repeat(50_000)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn no_string_breaks_a_format(text in hostile(), file in hostile(), at in 0_usize..1000) {
        let sampler = Sampler { text: &text, file: &file };
        let basis = sampler.bases();
        let details = sampler.details();
        let kind = Kind::ALL[at % Kind::ALL.len()];
        let (basis, detail) = (basis[at % basis.len()].clone(), details[at % details.len()].clone());
        let mut finding = sampler.full(kind, basis, detail);
        finding.objects.truncate(14);
        check_all(&[finding]);
    }
}
