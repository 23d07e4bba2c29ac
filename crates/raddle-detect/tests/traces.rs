//! Small traces, one a file: what a detector finds and what it must not report.
//!
//! A file `NAME[.what].finds.std` or `NAME[.what].clean.std` is run through detector NAME. Its head says what is
//! expected (`# expect: KIND`) and what the detector is told (`# regions:`, `# contract:`, `# pairs:`, bounds).

use raddle_detect::calls::CallPlaces;
use raddle_detect::contract;
use raddle_detect::detectors::order::{OrderFacts, parse_pairs};
use raddle_detect::region::Regions;
use raddle_detect::registry::{ENTRIES, Settings, create, find};
use raddle_trace::MemoryTrace;
use raddle_trace::std_format::StdReader;
use std::collections::BTreeSet;
use std::sync::Arc;

fn settings(text: &str) -> Settings {
    let mut settings = Settings::default();
    for line in text.lines().filter_map(|line| line.strip_prefix("# ")) {
        let Some((key, value)) = line.split_once(": ") else { continue };
        match key {
            "regions" if value == "critical-sections" => settings.regions = Regions::CriticalSections,
            "contract" => settings.contracts = contract::parse(value).expect("a contract"),
            "pairs" => {
                let pairs = parse_pairs(value).expect("pairs");
                settings.order = Some(OrderFacts::given(&pairs, &mut |_, _| Vec::new()));
            }
            "steps-bound" => settings.steps_bound = value.parse().ok(),
            "turns-bound" => settings.turns_bound = value.parse().ok(),
            _ => {}
        }
    }
    settings
}

#[test]
fn every_trace_gets_its_verdict() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces");
    let mut seen: BTreeSet<(String, bool)> = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let name = file.split('.').next().unwrap();
        let expected = text.lines().find_map(|line| line.strip_prefix("# expect: ")).expect("an expectation");
        assert_eq!(file.ends_with(".clean.std"), expected == "clean", "{file}");
        let trace = MemoryTrace::read(&mut StdReader::new(text.as_bytes(), file.as_str(), None)).unwrap();
        let mut settings = settings(&text);
        let names = contract::call_names(&settings.contracts);
        let calls = CallPlaces::find(&mut trace.source(), &names, &mut |_, _| None).unwrap();
        settings.calls = Arc::new(calls);
        let mut detector = create(name, &settings).unwrap_or_else(|| panic!("{file}: no detector {name}"));
        let reports = raddle_detect::run_on(&trace, &mut *detector);
        let kinds: BTreeSet<String> = reports.iter().map(|report| report.kind.name().to_owned()).collect();
        let grades = find(name).expect("a detector").grades();
        for report in &reports {
            assert!(grades.contains(&report.basis.grade()), "{file}: {:?}", report.basis);
        }
        let right = if expected == "clean" { kinds.is_empty() } else { kinds.contains(expected) };
        if !right {
            wrong.push(format!("{file}: expected {expected}, got {kinds:?}"));
        }
        seen.insert((name.to_owned(), expected == "clean"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for entry in ENTRIES {
        for clean in [false, true] {
            assert!(
                seen.contains(&(entry.name.to_owned(), clean)),
                "{} has no trace (clean: {clean})",
                entry.name
            );
        }
    }
}
