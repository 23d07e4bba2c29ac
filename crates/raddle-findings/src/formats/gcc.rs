//! Lines as compilers print them, `file:line:column: error: message [kind]`: every editor can jump to these.
//!
//! The other parties follow as notes. A finding without a place in the source begins with `raddle:`, as gcc's own errors do
//! with `cc1:`. Column 1 stands for an unknown one.

use super::text::one_line;
use super::{Listing, file, main_place, other_places};
use crate::basis::Grade;
use crate::finding::{Finding, Frame};
use crate::wording::Wording;

pub fn gcc(listing: &Listing, wording: &dyn Wording) -> String {
    listing.findings.iter().map(|finding| lines(finding, listing.root, wording)).collect()
}

fn lines(finding: &Finding, root: &str, wording: &dyn Wording) -> String {
    let level = match finding.grade() {
        Grade::Confirmed | Grade::Observed | Grade::Unordered => "error",
        // A note would belong to the diagnostic before it.
        Grade::Predicted | Grade::Suspected => "warning",
    };
    let main = main_place(finding);
    let place = main.map_or_else(|| "raddle".to_owned(), |(_, frame)| place(frame, root));
    let message = one_line(&wording.headline(finding));
    let mut text = format!("{place}: {level}: {message} [{}]\n", finding.kind.name());
    let mut note = |place: &str, said: &str| text.push_str(&format!("{place}: note: {}\n", one_line(said)));
    if let Some(party) = main.and_then(|(at, _)| finding.parties.get(at)) {
        note(&place, &format!("{} {}", wording.thread(party), wording.action(party)));
    }
    for (party, frame) in other_places(finding) {
        note(&self::place(frame, root), &format!("{} {}", wording.thread(party), wording.action(party)));
    }
    for said in wording.notes(finding) {
        note(&place, &said);
    }
    text
}

fn place(frame: &Frame, root: &str) -> String {
    let (line, column) = (frame.line.unwrap_or(1), frame.column.unwrap_or(1));
    format!("{}:{}:{}", one_line(file(frame, root)), line.max(1), column.max(1))
}
