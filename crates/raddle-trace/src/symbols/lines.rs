//! From a line of source to the code that was made of it: the reverse of what symbols are mostly asked for.

use super::debug_file::{self, DebugFiles};
use std::path::Path;

/// The stretches of code (first byte, and the byte behind the last one, in the file's own numbering) that the debug
/// information of a program ascribes to a line. A file is meant by the end of its path: `bank.c` is also `src/bank.c`.
pub fn code_of_line(program: &Path, file: &str, line: u32) -> Result<Vec<(u64, u64)>, String> {
    let DebugFiles { dwarf, supplement, .. } = debug_file::find(program, &[])?;
    let problem = |error: &dyn std::fmt::Display| format!("no lines of {}: {error}", program.display());
    let loader = addr2line::Loader::new_with_sup(&dwarf, supplement.as_ref()).map_err(|e| problem(&e))?;
    let all = loader.find_location_range(0, u64::MAX).map_err(|error| problem(&error))?;
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (start, bytes, location) in all {
        let here = location.line == Some(line) && location.file.is_some_and(|name| is_file(name, file));
        if here && bytes > 0 {
            ranges.push((start, start.saturating_add(bytes)));
        }
    }
    ranges.sort_unstable();
    ranges.dedup();
    Ok(ranges)
}

fn is_file(path: &str, wanted: &str) -> bool {
    path.strip_suffix(wanted).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_the_end_of_their_path() {
        assert!(is_file("/src/bank.c", "bank.c") && is_file("bank.c", "bank.c"));
        assert!(is_file("/src/bank.c", "src/bank.c"));
        assert!(!is_file("/src/mybank.c", "bank.c") && !is_file("/src/bank.c", "bank.h"));
    }

    /// This test's own line, found in its own program and read back.
    #[test]
    fn lines_lead_to_code_and_back() {
        let program = std::env::current_exe().unwrap();
        let found = code_of_line(&program, "symbols/lines.rs", line!()).unwrap();
        assert!(!found.is_empty(), "a test is built with debug information");
        assert!(found.iter().all(|&(start, end)| start < end));
        assert_eq!(code_of_line(&program, "symbols/lines.rs", 1), Ok(Vec::new()), "a comment has no code");
        assert!(code_of_line(Path::new("/nonexistent"), "x.c", 1).is_err());
    }
}
