//! Findings as SARIF 2.1.0, for code-scanning services and editors.
//!
//! A finding is a result whose first location is the innermost known place of its first party; the other parties are
//! related locations, and each party's stack is a thread flow, outermost call first. The stable id is a partial
//! fingerprint, so that services follow a finding from run to run. Files below the given root are written relative to
//! `%SRCROOT%`, others as `file:` URIs.

use crate::finding::{Finding, Frame, Grade, Kind, Party};
use serde_json::{Value, json};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The log of one run. `root` is the folder that relative paths start from; suppressed findings are marked so.
pub fn sarif(findings: &[Finding], suppressed: &[Finding], root: &str) -> Value {
    let mut kinds: Vec<Kind> = findings.iter().chain(suppressed).map(|finding| finding.kind).collect();
    kinds.sort();
    kinds.dedup();
    let rules: Vec<Value> = kinds.iter().map(|&kind| rule(kind)).collect();
    let mut results: Vec<Value> = findings.iter().map(|finding| result(finding, &kinds, root)).collect();
    results.extend(suppressed.iter().map(|finding| {
        let mut result = result(finding, &kinds, root);
        result["suppressions"] = json!([{ "kind": "external" }]);
        result
    }));
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "Raddle",
                "version": env!("CARGO_PKG_VERSION"),
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "utf16CodeUnits",
            "originalUriBaseIds": { "%SRCROOT%": { "uri": folder_uri(root) } },
            "results": results,
        }],
    })
}

/// The name of a kind as it is written in JSON.
pub fn kind_name(kind: Kind) -> String {
    match serde_json::to_value(kind) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

fn rule(kind: Kind) -> Value {
    let name = kind_name(kind);
    let words = name.replace('-', " ");
    let mut sentence = words.clone();
    if let Some(first) = sentence.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    json!({
        "id": name,
        "name": words.split(' ').map(capitalised).collect::<String>(),
        "shortDescription": { "text": sentence },
        "defaultConfiguration": { "level": "error" },
    })
}

fn capitalised(word: &str) -> String {
    let mut word = word.to_owned();
    if let Some(first) = word.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    word
}

fn result(finding: &Finding, kinds: &[Kind], root: &str) -> Value {
    let level = match finding.grade {
        Grade::Confirmed => "error",
        Grade::Predicted => "warning",
        Grade::Suspected => "note",
    };
    let mut places = finding.parties.iter().filter_map(|party| Some((party, known_place(party)?)));
    let locations: Vec<Value> =
        places.next().map(|(party, frame)| location(frame, &says(party), root)).into_iter().collect();
    let related: Vec<Value> = places
        .enumerate()
        .map(|(ix, (party, frame))| {
            let mut value = location(frame, &says(party), root);
            value["id"] = (ix + 1).into();
            value
        })
        .collect();
    let flows: Vec<Value> = finding
        .parties
        .iter()
        .filter(|party| !party.stack.is_empty())
        .map(|party| flow(party, root))
        .collect();
    let mut value = json!({
        "ruleId": kind_name(finding.kind),
        "ruleIndex": kinds.iter().position(|&kind| kind == finding.kind),
        "level": level,
        "message": { "text": message(finding) },
        "locations": locations,
        "partialFingerprints": { "raddleFinding/v1": finding.id },
        "properties": {
            "grade": finding.grade,
            "detector": finding.by,
            "objects": finding.objects,
            "schedule": finding.schedule,
        },
    });
    if !related.is_empty() {
        value["relatedLocations"] = related.into();
    }
    if !flows.is_empty() {
        value["codeFlows"] = json!([{ "threadFlows": flows }]);
    }
    value
}

fn message(finding: &Finding) -> String {
    let mut text = finding.message.clone();
    for note in &finding.notes {
        text.push('\n');
        text.push_str(note);
    }
    text
}

fn says(party: &Party) -> String {
    format!("thread {} {}", party.thread, party.action)
}

fn known_place(party: &Party) -> Option<&Frame> {
    party.stack.iter().find(|frame| frame.file.is_some())
}

fn location(frame: &Frame, message: &str, root: &str) -> Value {
    let mut value = json!({ "message": { "text": message } });
    if let Some(file) = &frame.file {
        let mut physical = json!({ "artifactLocation": artifact(file, root) });
        if let Some(line) = frame.line.filter(|&line| line > 0) {
            physical["region"] = json!({ "startLine": line });
            if let Some(column) = frame.column.filter(|&column| column > 0) {
                physical["region"]["startColumn"] = column.into();
            }
        }
        value["physicalLocation"] = physical;
    }
    if let Some(name) = frame.function.as_ref().or(frame.raw.as_ref()) {
        value["logicalLocations"] = json!([{ "fullyQualifiedName": name, "kind": "function" }]);
    }
    value
}

fn flow(party: &Party, root: &str) -> Value {
    let innermost = party.stack.len() - 1;
    let steps: Vec<Value> = party
        .stack
        .iter()
        .rev()
        .enumerate()
        .map(|(ix, frame)| {
            let text = if ix == innermost { party.action.clone() } else { "calls".to_owned() };
            json!({ "location": location(frame, &text, root), "nestingLevel": ix })
        })
        .collect();
    json!({ "id": party.thread, "message": { "text": says(party) }, "locations": steps })
}

fn artifact(file: &str, root: &str) -> Value {
    let root = root.trim_end_matches('/');
    let inside = file.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')).filter(|_| !root.is_empty());
    match inside {
        Some(relative) => json!({ "uri": escaped(relative), "uriBaseId": "%SRCROOT%" }),
        None if file.starts_with('/') => json!({ "uri": format!("file://{}", escaped(file)) }),
        None => json!({ "uri": escaped(file), "uriBaseId": "%SRCROOT%" }),
    }
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
