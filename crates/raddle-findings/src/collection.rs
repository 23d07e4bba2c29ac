//! Many findings: de-duplication and comparison with a baseline.

use crate::finding::{Finding, Remark};
use std::collections::{BTreeMap, BTreeSet};

/// Makes one finding of those with the same id: the one of the highest grade, the first of these if there are several. It
/// tells who else found it; nothing else of the others is taken over, so that what is said about one witness never
/// decorates another. Keeps the order of first appearance.
pub fn deduplicate(findings: Vec<Finding>) -> Vec<Finding> {
    let mut kept: Vec<Finding> = Vec::new();
    let mut by_id: BTreeMap<String, usize> = BTreeMap::new();
    let mut others: Vec<BTreeSet<String>> = Vec::new();
    for finding in findings {
        let Some(&at) = by_id.get(&finding.id) else {
            by_id.insert(finding.id.clone(), kept.len());
            kept.push(finding);
            others.push(BTreeSet::new());
            continue;
        };
        let better = finding.grade() > kept[at].grade();
        let worse = if better { std::mem::replace(&mut kept[at], finding) } else { finding };
        others[at].extend(worse.remarks.iter().flat_map(also_found_by).cloned());
        others[at].insert(worse.by);
    }
    for (finding, mut others) in kept.iter_mut().zip(others) {
        others.extend(finding.remarks.iter().flat_map(also_found_by).cloned());
        others.remove(&finding.by);
        finding.remarks.retain(|remark| also_found_by(remark).is_empty());
        if !others.is_empty() {
            finding.remarks.push(Remark::AlsoFoundBy { detectors: others.into_iter().collect() });
        }
    }
    kept
}

fn also_found_by(remark: &Remark) -> &[String] {
    match remark {
        Remark::AlsoFoundBy { detectors } => detectors,
        _ => &[],
    }
}

/// How findings differ from those of an earlier run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Not in the baseline.
    pub new: Vec<Finding>,
    /// In both.
    pub known: Vec<Finding>,
    /// Only in the baseline.
    pub gone: Vec<Finding>,
}

/// Compares by id.
pub fn compare(baseline: &[Finding], now: Vec<Finding>) -> Comparison {
    let before: BTreeSet<&str> = baseline.iter().map(|finding| finding.id.as_str()).collect();
    let ids: BTreeSet<String> = now.iter().map(|finding| finding.id.clone()).collect();
    let (known, new) = now.into_iter().partition(|finding| before.contains(finding.id.as_str()));
    let gone = baseline.iter().filter(|finding| !ids.contains(&finding.id)).cloned().collect();
    Comparison { new, known, gone }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Access, Action};
    use crate::basis::{Attempt, Basis, Fidelity, Grade, Shown};
    use crate::finding::{Detail, Frame, Party, Thread};
    use crate::kind::Kind;

    fn sample(line: u32, basis: Basis, by: &str) -> Finding {
        let frame = Frame { file: Some("/a/bank.c".into()), line: Some(line), ..Frame::default() };
        let party = Party::new(Thread::at("1.1"), Action::access(Access::Write), vec![frame]);
        Finding::new(Kind::DataRace, by, basis, vec![party], Detail::None)
    }

    fn replayed() -> Basis {
        Basis::Replayed { shown: Shown::Parked, replays: 2 }
    }

    #[test]
    fn the_highest_grade_stays_and_nothing_decorates_it() {
        let mut failed = Basis::model(false, Fidelity::Reordered);
        failed.tried(Attempt::OtherMemory);
        let list = deduplicate(vec![
            sample(1, Basis::rule(), "eraser"),
            sample(2, Basis::model(true, Fidelity::KeepsReads), "shb"),
            sample(1, replayed(), "predict"),
            sample(1, failed, "predict"),
        ]);
        assert_eq!(list.len(), 2);
        assert_eq!((list[0].grade(), list[0].by.as_str()), (Grade::Confirmed, "predict"));
        assert_eq!(list[0].basis, replayed());
        assert_eq!(list[0].remarks, [Remark::AlsoFoundBy { detectors: vec!["eraser".into()] }]);
        assert!(list[1].remarks.is_empty());
        assert_eq!(deduplicate(list.clone()), list, "doing it again changes nothing");
    }

    #[test]
    fn baselines_tell_new_from_known() {
        let baseline = [sample(1, replayed(), "x"), sample(2, replayed(), "x")];
        let comparison = compare(&baseline, vec![sample(2, replayed(), "y"), sample(3, replayed(), "x")]);
        let ids =
            |list: &[Finding]| list.iter().map(|f| f.parties[0].stack[0].line.unwrap()).collect::<Vec<_>>();
        assert_eq!(
            (ids(&comparison.new), ids(&comparison.known), ids(&comparison.gone)),
            (vec![3], vec![2], vec![1])
        );
    }
}
