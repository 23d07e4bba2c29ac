//! Names of signals on Linux, x86-64 and AArch64.

/// ``SIGSEGV (segmentation fault)``, or its number.
pub(crate) fn signal(number: i32) -> String {
    let (name, meaning) = match number {
        1 => ("SIGHUP", ""),
        2 => ("SIGINT", "interrupted"),
        3 => ("SIGQUIT", ""),
        4 => ("SIGILL", "illegal instruction"),
        5 => ("SIGTRAP", "breakpoint"),
        6 => ("SIGABRT", "aborted"),
        7 => ("SIGBUS", "bus error"),
        8 => ("SIGFPE", "arithmetic error"),
        9 => ("SIGKILL", "killed"),
        10 => ("SIGUSR1", ""),
        11 => ("SIGSEGV", "segmentation fault"),
        12 => ("SIGUSR2", ""),
        13 => ("SIGPIPE", "broken pipe"),
        14 => ("SIGALRM", "alarm clock"),
        15 => ("SIGTERM", "terminated"),
        24 => ("SIGXCPU", "CPU time limit exceeded"),
        25 => ("SIGXFSZ", "file size limit exceeded"),
        31 => ("SIGSYS", "bad system call"),
        _ => return format!("signal {number}"),
    };
    match meaning {
        "" => name.to_owned(),
        meaning => format!("{name} ({meaning})"),
    }
}
