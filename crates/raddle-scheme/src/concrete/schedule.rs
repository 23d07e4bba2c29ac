//! Schedules as plain text: one step a line, so that they can be mailed, diffed and put into a bug tracker.
//!
//! ```text
//! raddle scheme schedule 1
//! 1.1 read counter 3:32
//! 1.2 choose 1
//! # anything after a hash sign
//! ```
//!
//! A line names the thread that performs its next visible operation. What the operation is stands behind it and is
//! checked on replay, so that a schedule that no longer fits its program is found out at the first difference. A
//! `choose` line gives the outcome of the next call of `random`. The short form `1.1,1.2,1.1` is accepted as well.

use super::state::path_name;
use std::fmt::Write as _;
use std::rc::Rc;

pub const HEADER: &str = "raddle scheme schedule 1";
/// Steps in one schedule.
const STEPS_MAX: usize = 10_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A thread and, where known, what it does.
    Act {
        thread: Rc<[u32]>,
        what: Option<String>,
    },
    Choose(i64),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    pub steps: Vec<Step>,
}

impl Schedule {
    pub fn text(&self, remark: &str) -> String {
        let mut out = format!("{HEADER}\n");
        for step in &self.steps {
            let _ = match step {
                Step::Act { thread, what: Some(what) } => writeln!(out, "{} {what}", path_name(thread)),
                Step::Act { thread, what: None } => writeln!(out, "{}", path_name(thread)),
                Step::Choose(value) => writeln!(out, "choose {value}"),
            };
        }
        for line in remark.lines() {
            let _ = writeln!(out, "# {line}");
        }
        out
    }

    /// Reads either form. The error names the line.
    pub fn parse(text: &str) -> Result<Schedule, String> {
        let mut steps = Vec::new();
        let lines: Vec<&str> = if text.contains('\n') || text.starts_with("raddle") {
            let mut lines = text.lines();
            match lines.next() {
                Some(HEADER) => lines.collect(),
                first => return Err(format!("line 1: expected `{HEADER}`, found `{}`", first.unwrap_or(""))),
            }
        } else {
            text.split(',').collect()
        };
        for (at, line) in lines.into_iter().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            if steps.len() == STEPS_MAX {
                return Err(format!("more than {STEPS_MAX} steps"));
            }
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let error = |what: &str| format!("line {}: {what}: `{line}`", at + 2);
            if word == "choose" {
                steps.push(Step::Choose(rest.trim().parse().map_err(|_| error("choose needs a number"))?));
                continue;
            }
            let path: Option<Rc<[u32]>> = word.split('.').map(|part| part.parse().ok()).collect();
            let thread = path.ok_or_else(|| error("a step begins with a thread such as 1.2"))?;
            let what = rest.trim();
            steps.push(Step::Act { thread, what: (!what.is_empty()).then(|| what.to_owned()) });
        }
        Ok(Schedule { steps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let schedule = Schedule {
            steps: vec![
                Step::Act { thread: [1, 2].into(), what: Some("read counter 3:4".into()) },
                Step::Choose(7),
                Step::Act { thread: [1].into(), what: None },
            ],
        };
        assert_eq!(Schedule::parse(&schedule.text("race\nhere")), Ok(schedule));
    }

    #[test]
    fn short_form() {
        let schedule = Schedule::parse("1.1,1.2, 1").expect("well formed");
        assert_eq!(schedule.steps.len(), 3);
    }

    #[test]
    fn errors_name_the_line() {
        assert!(Schedule::parse("nonsense\n1").is_err_and(|e| e.starts_with("line 1")));
        assert!(Schedule::parse(&format!("{HEADER}\n1\nx.y")).is_err_and(|e| e.starts_with("line 3")));
        assert!(Schedule::parse(&format!("{HEADER}\nchoose many")).is_err_and(|e| e.contains("number")));
    }
}
