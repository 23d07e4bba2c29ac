//! Findings for machines: SARIF, JUnit, GitLab Code Quality, annotations of GitHub, lines as gcc prints them.
//!
//! Each format is a function from a [`Listing`] and a [`Wording`](crate::Wording) to a text. None of them makes a sentence, and
//! each stays well-formed whatever strings a finding carries: names come from debug information, which is hostile input.

pub mod gcc;
pub mod github;
pub mod gitlab;
pub mod junit;
pub mod sarif;
mod text;

pub use gcc::gcc;
pub use github::github;
pub use gitlab::gitlab;
pub use junit::junit;
pub use sarif::sarif;

use crate::basis::Grade;
use crate::finding::{Finding, Frame, Party, headline_frame};

/// What a command has found, as it is handed to a format.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'a> {
    /// Those that are shown.
    pub findings: &'a [Finding],
    /// Not shown, because their grade was not asked for.
    pub held_back: &'a [Finding],
    pub suppressed: &'a [Finding],
    /// Those of the baseline that were found again; `None`: there is no baseline.
    pub known: Option<&'a [Finding]>,
    /// Findings of this grade and above make the command fail.
    pub fail_on: Grade,
    /// The folder that relative paths start from.
    pub root: &'a str,
}

impl<'a> Listing<'a> {
    /// Nothing held back, suppressed or known before.
    pub fn new(findings: &'a [Finding], root: &'a str) -> Listing<'a> {
        Listing { findings, held_back: &[], suppressed: &[], known: None, fail_on: Grade::Unordered, root }
    }
}

/// The first party with a place in the source, and that place.
fn main_place(finding: &Finding) -> Option<(usize, &Frame)> {
    finding.parties.iter().enumerate().find_map(|(at, party)| Some((at, headline_frame(&party.stack)?)))
}

/// The other parties that have a place.
fn other_places(finding: &Finding) -> impl Iterator<Item = (&Party, &Frame)> {
    let main = main_place(finding).map(|(at, _)| at);
    let others = finding.parties.iter().enumerate().filter(move |(at, _)| Some(*at) != main);
    others.filter_map(|(_, party)| Some((party, headline_frame(&party.stack)?)))
}

/// A file below the root, relative to it.
fn relative<'a>(file: &'a str, root: &str) -> Option<&'a str> {
    let root = root.trim_end_matches('/');
    match file.starts_with('/') {
        true if root.is_empty() => None,
        true => file.strip_prefix(root).and_then(|rest| rest.strip_prefix('/')),
        false => Some(file.strip_prefix("./").unwrap_or(file)),
    }
}

/// The file as it is best written in a list: relative to the root where it lies below it.
fn file<'a>(frame: &'a Frame, root: &str) -> &'a str {
    let file = frame.file.as_deref().unwrap_or_default();
    relative(file, root).unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_root_are_relative() {
        assert_eq!(relative("/src/a.c", "/src"), Some("a.c"));
        assert_eq!(relative("/src/a.c", "/src/"), Some("a.c"));
        assert_eq!(relative("/srcs/a.c", "/src"), None);
        assert_eq!(relative("./a.c", "/src"), Some("a.c"));
        assert_eq!(relative("/a.c", "/"), None);
    }
}
