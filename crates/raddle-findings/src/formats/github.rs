//! Annotations of GitHub's workflows: lines `::error file=F,line=N,title=T::message` on standard output.
//!
//! `%` and ends of lines are escaped in messages, `:` and `,` in properties as well, as the workflow commands' reader undoes
//! it. Paths are relative to the root, where the service finds the file.

use super::text::one_line;
use super::{Listing, file, main_place};
use crate::basis::Grade;
use crate::finding::Finding;
use crate::wording::Wording;

pub fn github(listing: &Listing, wording: &dyn Wording) -> String {
    listing.findings.iter().map(|finding| line(finding, listing.root, wording)).collect()
}

fn line(finding: &Finding, root: &str, wording: &dyn Wording) -> String {
    let command = match finding.grade() {
        Grade::Confirmed | Grade::Observed | Grade::Unordered => "error",
        Grade::Predicted => "warning",
        Grade::Suspected => "notice",
    };
    let mut properties = Vec::new();
    if let Some((_, frame)) = main_place(finding) {
        properties.push(format!("file={}", property(&one_line(file(frame, root)))));
        properties.extend(frame.line.map(|line| format!("line={}", line.max(1))));
        properties.extend(frame.column.map(|column| format!("col={}", column.max(1))));
    }
    let title = format!("{} ({})", wording.kind(finding.kind).title, finding.grade().name());
    properties.push(format!("title={}", property(&one_line(&title))));
    let sentences: Vec<String> = std::iter::once(wording.headline(finding))
        .chain(
            finding
                .parties
                .iter()
                .map(|party| format!("{} {}", wording.thread(party), wording.action(party))),
        )
        .chain(wording.notes(finding))
        .map(|sentence| escaped(&one_line(&sentence)))
        .collect();
    format!("::{command} {}::{}\n", properties.join(","), sentences.join("%0A"))
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}
