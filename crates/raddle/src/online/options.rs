//! `RADDLE_OPTIONS`: the options that people know from `TSAN_OPTIONS`, under the same names.
//!
//! `name=value`, separated by `:`, `,` or blanks; a value may stand in quotes. Options of ThreadSanitizer that make no
//! sense here are accepted and ignored, so that a setting can be taken over as it is; anything else is pointed out.

use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub halt_on_error: bool,
    /// Exit status when something was found; none: as the command line says.
    pub exitcode: Option<u8>,
    /// Powers of two above the default history.
    pub history_size: u32,
    /// Forget accesses when the program has more memory than this.
    pub memory_limit_mb: Option<u64>,
    pub suppressions: Vec<PathBuf>,
    pub print_suppressions: bool,
    pub report_bugs: bool,
    pub detect_deadlocks: bool,
    pub report_thread_leaks: bool,
    pub report_destroy_locked: bool,
    pub report_mutex_bugs: bool,
    /// Keep the detector's tables in files in memory; see docs/run.md.
    pub shared_tables: bool,
    pub strip_path_prefix: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            halt_on_error: false,
            exitcode: None,
            history_size: 0,
            memory_limit_mb: None,
            suppressions: Vec::new(),
            print_suppressions: true,
            report_bugs: true,
            detect_deadlocks: true,
            report_thread_leaks: true,
            report_destroy_locked: true,
            report_mutex_bugs: true,
            shared_tables: false,
            strip_path_prefix: None,
        }
    }
}

/// Options of ThreadSanitizer that change nothing here.
const IGNORED: &[&str] = &[
    "abort_on_error",
    "allocator_may_return_null",
    "atexit_sleep_ms",
    "color",
    "disable_coredump",
    "enable_adaptive_delay",
    "external_symbolizer_path",
    "flush_memory_ms",
    "flush_symbolizer_ms",
    "force_seq_cst_atomics",
    "handle_abort",
    "handle_segv",
    "ignore_interceptors_accesses",
    "ignore_noninstrumented_modules",
    "intercept_send",
    "io_sync",
    "log_exe_name",
    "log_path",
    "print_benign",
    "profile_memory",
    "report_atomic_races",
    "report_signal_unsafe",
    "second_deadlock_stack",
    "shared_ptr_interceptor",
    "stack_trace_format",
    // The program's runtime has done what it asks for.
    "standalone",
    "stop_on_start",
    "suppress_equal_addresses",
    "suppress_equal_stacks",
    "symbolize",
    "use_sigaltstack",
    "verbosity",
];

/// Reads a setting. Returns what could not be used, one sentence each.
pub fn parse(text: &str) -> (Options, Vec<String>) {
    let mut options = Options::default();
    let mut problems = Vec::new();
    for (name, value) in pairs(text) {
        let Some(value) = value else {
            problems.push(format!("`{name}` is not of the form name=value"));
            continue;
        };
        if let Err(problem) = options.set(&name, &value) {
            problems.push(problem);
        }
    }
    (options, problems)
}

fn pairs(text: &str) -> Vec<(String, Option<String>)> {
    let mut pairs = Vec::new();
    let mut rest = text;
    let is_separator = |c: char| c == ':' || c == ',' || c.is_whitespace();
    loop {
        rest = rest.trim_start_matches(is_separator);
        if rest.is_empty() {
            return pairs;
        }
        let end = rest.find(|c| is_separator(c) || c == '=').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let Some(value) = after.strip_prefix('=') else {
            pairs.push((name.to_owned(), None));
            rest = after;
            continue;
        };
        let quote = value.chars().next().filter(|&c| c == '"' || c == '\'');
        let (value, after) = match quote {
            Some(quote) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            None => value.split_at(value.find(is_separator).unwrap_or(value.len())),
        };
        pairs.push((name.to_owned(), Some(value.to_owned())));
        rest = after;
    }
}

impl Options {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let flag = || match value {
            "1" | "true" | "yes" => Ok(true),
            "0" | "false" | "no" => Ok(false),
            _ => Err(format!("{name}={value}: the value must be 0 or 1")),
        };
        fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
            value.parse().map_err(|_| format!("{name}={value}: the value is not a number in range"))
        }
        match name {
            "halt_on_error" => self.halt_on_error = flag()?,
            "exitcode" => self.exitcode = Some(number(name, value)?),
            "history_size" => self.history_size = number::<u32>(name, value)?.min(7),
            "memory_limit_mb" => self.memory_limit_mb = Some(number(name, value)?).filter(|&mib| mib > 0),
            "suppressions" => self.suppressions.push(PathBuf::from(value)),
            "print_suppressions" => self.print_suppressions = flag()?,
            "report_bugs" => self.report_bugs = flag()?,
            "detect_deadlocks" => self.detect_deadlocks = flag()?,
            "report_thread_leaks" => self.report_thread_leaks = flag()?,
            "report_destroy_locked" => self.report_destroy_locked = flag()?,
            "report_mutex_bugs" => self.report_mutex_bugs = flag()?,
            "shared_tables" => self.shared_tables = flag()?,
            "strip_path_prefix" => self.strip_path_prefix = Some(value.to_owned()),
            _ if IGNORED.contains(&name) => {}
            _ => return Err(format!("`{name}` is no option")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_ones() {
        let (options, problems) =
            parse("halt_on_error=1:exitcode=3 suppressions='my file.supp',history_size=9:detect_deadlocks=0");
        assert_eq!(problems, Vec::<String>::new());
        assert!(options.halt_on_error && !options.detect_deadlocks);
        assert_eq!((options.exitcode, options.history_size), (Some(3), 7));
        assert_eq!(options.suppressions, [PathBuf::from("my file.supp")]);
        assert_eq!(parse(""), (Options::default(), Vec::new()));
        assert_eq!(parse("symbolize=1 :: color=always"), (Options::default(), Vec::new()));
    }

    #[test]
    fn mistakes_are_pointed_out() {
        let (options, problems) = parse("halt_on_eror=1:exitcode=many:report_bugs:suppressions=\"x");
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].contains("halt_on_eror"));
        assert_eq!(options.suppressions, [PathBuf::from("x")]);
    }
}
