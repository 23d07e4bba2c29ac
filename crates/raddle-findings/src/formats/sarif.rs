//! Findings as SARIF 2.1.0, for code-scanning services and editors.
//!
//! A finding is a result whose location is the first frame of the user's own code of its first party; the other parties, the
//! places where locks were acquired, threads created and memory allocated are related locations, and each party's stack is a
//! thread flow, outermost call first. The id is a partial fingerprint, so that services follow a finding from run to run.
//! Suppressed results carry a suppression; with a baseline each result carries its state. Files below the root are written
//! relative to `%SRCROOT%`, others as `file:` URIs.

use super::{Listing, main_place, other_places, relative};
use crate::basis::Grade;
use crate::finding::{Finding, Frame, Party, headline_frame};
use crate::kind::Kind;
use crate::object::Place;
use crate::wording::Wording;
use serde_json::{Value, json};
use serde_sarif::sarif::{
    ArtifactLocation, CodeFlow, Location, LogicalLocation, Message, MultiformatMessageString,
    PhysicalLocation, PropertyBag, Region, ReportingConfiguration, ReportingDescriptor,
    Result as SarifResult, ResultLevel, Run, Sarif, Suppression, ThreadFlow, ThreadFlowLocation, Tool,
    ToolComponent,
};
use std::collections::BTreeMap;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
const ROOT: &str = "%SRCROOT%";
/// Version of the ids: those of version 1 depended on line numbers.
const FINGERPRINT: &str = "raddleFinding/v2";

/// The log of one run.
pub fn sarif(listing: &Listing, wording: &dyn Wording) -> String {
    let mut text = serde_json::to_string_pretty(&log(listing, wording)).expect("a log is plain data");
    text.push('\n');
    text
}

fn log(listing: &Listing, wording: &dyn Wording) -> Sarif {
    let known = listing.known.unwrap_or_default();
    let mut kinds: Vec<Kind> =
        listing.findings.iter().chain(listing.suppressed).chain(known).map(|finding| finding.kind).collect();
    kinds.sort();
    kinds.dedup();
    let make = |finding: &Finding, baseline: &str| {
        let mut result = result(finding, &kinds, listing.root, wording);
        result.baseline_state = listing.known.map(|_| baseline.into());
        result
    };
    let mut results: Vec<SarifResult> = listing.findings.iter().map(|finding| make(finding, "new")).collect();
    results.extend(known.iter().map(|finding| make(finding, "unchanged")));
    results.extend(listing.suppressed.iter().map(|finding| {
        let mut result = make(finding, "new");
        result.suppressions = Some(vec![Suppression::builder().kind("external").build()]);
        result
    }));
    let mut driver = ToolComponent::builder().name("Raddle").build();
    driver.version = Some(env!("CARGO_PKG_VERSION").to_owned());
    driver.semantic_version = driver.version.clone();
    driver.rules = Some(kinds.iter().map(|&kind| rule(kind, wording)).collect());
    let mut root = ArtifactLocation::builder().build();
    root.uri = Some(folder_uri(listing.root));
    let mut run = Run::builder().tool(Tool::from(driver)).build();
    run.column_kind = Some("utf16CodeUnits".into());
    run.original_uri_base_ids = Some(BTreeMap::from([(ROOT.to_owned(), root)]));
    run.results = Some(results);
    let mut log = Sarif::builder().runs(vec![run]).version("2.1.0").build();
    log.schema = Some(SCHEMA.to_owned());
    log
}

fn rule(kind: Kind, wording: &dyn Wording) -> ReportingDescriptor {
    let words = wording.kind(kind);
    let mut rule = ReportingDescriptor::builder().id(kind.name()).build();
    rule.name = Some(kind.name().split('-').map(capitalised).collect());
    rule.short_description = Some(multiformat(words.title));
    rule.full_description = Some(multiformat(words.description));
    rule.help = Some(multiformat(words.help));
    let mut configuration = ReportingConfiguration::builder().build();
    configuration.level = Some("error".into());
    rule.default_configuration = Some(configuration);
    // No precision is claimed for a rule: that depends on the grade of each result.
    rule.properties = Some(bag(
        [("problem.severity", json!("error"))],
        vec!["concurrency".to_owned(), kind.name().to_owned()],
    ));
    rule
}

fn bag<const N: usize>(properties: [(&str, Value); N], tags: Vec<String>) -> PropertyBag {
    let properties: BTreeMap<String, Value> =
        properties.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let mut bag = PropertyBag::builder().additional_properties(properties).build();
    bag.tags = (!tags.is_empty()).then_some(tags);
    bag
}

fn multiformat(text: String) -> MultiformatMessageString {
    MultiformatMessageString::builder().text(text).build()
}

fn capitalised(word: &str) -> String {
    let mut word = word.to_owned();
    if let Some(first) = word.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    word
}

fn message(text: &str) -> Message {
    Message::from(text)
}

fn result(finding: &Finding, kinds: &[Kind], root: &str, wording: &dyn Wording) -> SarifResult {
    let text: Vec<String> =
        std::iter::once(wording.headline(finding)).chain(wording.notes(finding)).collect();
    let mut result = SarifResult::builder().message(message(&text.join("\n"))).build();
    result.rule_id = Some(finding.kind.name().to_owned());
    result.rule_index = kinds.iter().position(|&kind| kind == finding.kind).and_then(|ix| ix.try_into().ok());
    result.level = Some(match finding.grade() {
        Grade::Confirmed | Grade::Observed | Grade::Unordered => ResultLevel::Error,
        Grade::Predicted => ResultLevel::Warning,
        Grade::Suspected => ResultLevel::Note,
    });
    let main =
        main_place(finding).map(|(at, frame)| location(frame, &says(&finding.parties[at], wording), root));
    result.locations = Some(main.into_iter().collect());
    let related = related(finding, root, wording);
    result.related_locations = (!related.is_empty()).then_some(related);
    let flows: Vec<ThreadFlow> =
        finding.parties.iter().filter_map(|party| flow(party, root, wording)).collect();
    result.code_flows = (!flows.is_empty()).then(|| vec![CodeFlow::builder().thread_flows(flows).build()]);
    result.partial_fingerprints = Some(BTreeMap::from([(FINGERPRINT.to_owned(), finding.id.clone())]));
    let mut properties = bag(
        [
            ("grade", json!(finding.grade())),
            ("basis", json!(finding.basis)),
            ("detector", json!(finding.by)),
            ("objects", json!(finding.objects)),
        ],
        Vec::new(),
    );
    if let Some(schedule) = &finding.schedule {
        properties.additional_properties.insert("schedule".to_owned(), json!(schedule));
    }
    result.properties = Some(properties);
    result
}

fn says(party: &Party, wording: &dyn Wording) -> String {
    format!("{} {}", wording.thread(party), wording.action(party))
}

/// The places beside the main one. Their texts are those of the parties: what is related is told by the thread flows.
fn related(finding: &Finding, root: &str, wording: &dyn Wording) -> Vec<Location> {
    let mut list: Vec<Location> =
        other_places(finding).map(|(party, frame)| location(frame, &says(party, wording), root)).collect();
    for party in &finding.parties {
        let acquired = party.locks.iter().map(|held| (&held.acquired, wording.acquired(party, held)));
        let created =
            party.created.iter().map(|creation| (&creation.stack, wording.created(party, creation)));
        for (stack, text) in acquired.chain(created) {
            list.extend(headline_frame(stack).map(|frame| location(frame, &text, root)));
        }
    }
    for object in &finding.objects {
        if let Place::Heap { allocated: Some(allocation), .. } = &object.place
            && let Some(frame) = headline_frame(&allocation.stack)
        {
            list.push(location(frame, &wording.allocated(object, allocation), root));
        }
    }
    for (at, location) in list.iter_mut().enumerate() {
        location.id = i64::try_from(at + 1).ok();
    }
    list
}

fn location(frame: &Frame, text: &str, root: &str) -> Location {
    let mut location = place(frame, root);
    location.message = Some(message(text));
    location
}

fn place(frame: &Frame, root: &str) -> Location {
    let mut location = Location::builder().build();
    if let Some(file) = &frame.file {
        let mut physical = PhysicalLocation::builder().build();
        physical.artifact_location = Some(artifact(file, root));
        if let Some(line) = frame.line.filter(|&line| line > 0) {
            let mut region = Region::builder().build();
            region.start_line = Some(line.into());
            region.start_column = frame.column.filter(|&column| column > 0).map(i64::from);
            physical.region = Some(region);
        }
        location.physical_location = Some(physical);
    }
    if let Some(name) = frame.function.as_ref().or(frame.raw.as_ref()) {
        let mut logical = LogicalLocation::builder().build();
        logical.fully_qualified_name = Some(name.clone());
        logical.kind = Some("function".to_owned());
        location.logical_locations = Some(vec![logical]);
    }
    location
}

fn flow(party: &Party, root: &str, wording: &dyn Wording) -> Option<ThreadFlow> {
    let innermost = party.stack.len().checked_sub(1)?;
    let steps = party.stack.iter().rev().enumerate().map(|(at, frame)| {
        let mut step = ThreadFlowLocation::builder().build();
        step.location = Some(match at == innermost {
            true => location(frame, &wording.action(party), root),
            false => place(frame, root),
        });
        step.nesting_level = i64::try_from(at).ok();
        step
    });
    let mut flow = ThreadFlow::builder().locations(steps.collect::<Vec<_>>()).build();
    flow.id = Some(party.thread.path.clone());
    flow.message = Some(message(&says(party, wording)));
    Some(flow)
}

fn artifact(file: &str, root: &str) -> ArtifactLocation {
    let mut artifact = ArtifactLocation::builder().build();
    match relative(file, root) {
        Some(inside) => {
            artifact.uri = Some(escaped(inside));
            artifact.uri_base_id = Some(ROOT.to_owned());
        }
        None => artifact.uri = Some(format!("file://{}", escaped(file))),
    }
    artifact
}

fn folder_uri(root: &str) -> String {
    format!("file://{}/", escaped(root.trim_end_matches('/')))
}

/// Percent-encodes what may not stand in the path of a URI.
fn escaped(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' | b'+' => {
                uri.push(byte as char)
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}
