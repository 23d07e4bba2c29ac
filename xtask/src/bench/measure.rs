//! Running subjects in turns and taking their times.
//!
//! A process is measured from outside: CPU time of it and of all its descendants that were waited for (`wait4`), wall time, and
//! peak memory. The peak of a *tree* of processes (`raddle record` and the recorded program) is the sum of their high-water
//! marks, sampled while they run; of descendants, memory shared with others is left out, because whoever is measured has it
//! mapped too and it is there only once. A function is measured by the CPU clock of this process.

use super::outcome::Row;
use anyhow::{Context, bail};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often the memory of running processes is looked at.
const SAMPLE_EVERY: Duration = Duration::from_millis(2);

type MakeCommand<'a> = Box<dyn Fn() -> Command + 'a>;
type Function<'a> = Box<dyn FnMut() + 'a>;

enum Kind<'a> {
    Process(MakeCommand<'a>),
    Function(Function<'a>),
}

/// Something that can be measured.
pub struct Subject<'a> {
    name: String,
    kind: Kind<'a>,
}

impl<'a> Subject<'a> {
    /// A program; its output is thrown away, and it must succeed.
    pub fn process(name: &str, command: impl Fn() -> Command + 'a) -> Subject<'a> {
        Subject { name: name.to_owned(), kind: Kind::Process(Box::new(command)) }
    }

    /// A function of this process.
    pub fn function(name: &str, function: impl FnMut() + 'a) -> Subject<'a> {
        Subject { name: name.to_owned(), kind: Kind::Function(Box::new(function)) }
    }

    fn run(&mut self) -> anyhow::Result<Sample> {
        match &mut self.kind {
            Kind::Process(command) => measure_process(command()),
            Kind::Function(function) => Ok(measure_function(function)),
        }
    }
}

struct Sample {
    cpu_s: f64,
    wall_s: f64,
    peak_kib: Option<u64>,
}

/// How a group measures.
pub struct Bench {
    pub rounds: u32,
}

impl Bench {
    /// One row for each subject, in the order given. The first subject is the one others are compared with in tables.
    pub fn measure(&self, case: &str, mut subjects: Vec<Subject<'_>>) -> anyhow::Result<Vec<Row>> {
        let mut rows: Vec<Option<Row>> = subjects.iter().map(|_| None).collect();
        for round in 0..self.rounds.max(1) {
            for (subject, row) in subjects.iter_mut().zip(&mut rows) {
                eprint!("\r{case}: round {}/{}: {:<24}", round + 1, self.rounds, subject.name);
                let sample = subject.run().with_context(|| format!("{case}: {}", subject.name))?;
                let row = row.get_or_insert_with(|| Row {
                    case: case.to_owned(),
                    subject: subject.name.clone(),
                    cpu_s: f64::INFINITY,
                    wall_s: f64::INFINITY,
                    peak_kib: None,
                });
                row.cpu_s = row.cpu_s.min(sample.cpu_s);
                row.wall_s = row.wall_s.min(sample.wall_s);
                row.peak_kib = row.peak_kib.max(sample.peak_kib);
            }
        }
        eprint!("\r{:<70}\r", "");
        Ok(rows.into_iter().flatten().collect())
    }
}

fn measure_function(function: &mut dyn FnMut()) -> Sample {
    let cpu = || {
        let now = clock_gettime(ClockId::ProcessCPUTime);
        now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
    };
    let (cpu_before, wall_before) = (cpu(), Instant::now());
    function();
    Sample { cpu_s: cpu() - cpu_before, wall_s: wall_before.elapsed().as_secs_f64(), peak_kib: None }
}

fn measure_process(mut command: Command) -> anyhow::Result<Sample> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let shown = format!("{command:?}");
    let wall = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {shown}"))?;
    let messages = drain(&mut child);
    let mut tree = Tree::default();
    let (status, usage) = loop {
        if let Some(ended) = try_wait(child.id())? {
            break ended;
        }
        tree.sample(child.id());
        std::thread::sleep(SAMPLE_EVERY);
    };
    let wall_s = wall.elapsed().as_secs_f64();
    if !(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0) {
        bail!("{shown} failed (wait status {status:#x})\n{}", messages.join().unwrap_or_default());
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    let largest = u64::try_from(usage.ru_maxrss).unwrap_or(0);
    Ok(Sample {
        cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        wall_s,
        peak_kib: Some(largest.max(tree.total_kib())),
    })
}

/// Keeps a talkative program from filling its pipe.
fn drain(child: &mut Child) -> std::thread::JoinHandle<String> {
    let mut stderr = child.stderr.take().expect("stderr is piped");
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = std::io::Read::read_to_end(&mut stderr, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Reaps the child if it has ended.
fn try_wait(pid: u32) -> anyhow::Result<Option<(libc::c_int, libc::rusage)>> {
    let mut status = 0;
    // SAFETY: `rusage` is plain numbers, for which all zeroes is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live variables of the right type; the pid is that of our own child, which nobody
    // else waits for.
    let reaped = unsafe { libc::wait4(pid as libc::pid_t, &mut status, libc::WNOHANG, &mut usage) };
    match reaped {
        0 => Ok(None),
        -1 => Err(std::io::Error::last_os_error()).context("wait4"),
        _ => Ok(Some((status, usage))),
    }
}

/// High-water marks of a process and its descendants.
#[derive(Default)]
struct Tree {
    peak_kib: BTreeMap<u32, u64>,
}

impl Tree {
    fn sample(&mut self, pid: u32) {
        self.note(pid, high_water_kib(pid));
        self.descend(pid);
    }

    fn descend(&mut self, pid: u32) {
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|word| word.parse().ok()) {
            self.note(child, unshared_kib(child));
            self.descend(child);
        }
    }

    fn note(&mut self, pid: u32, kib: Option<u64>) {
        if let Some(kib) = kib {
            let known = self.peak_kib.entry(pid).or_default();
            *known = (*known).max(kib);
        }
    }

    fn total_kib(&self) -> u64 {
        self.peak_kib.values().sum()
    }
}

fn high_water_kib(pid: u32) -> Option<u64> {
    status_kib(pid, "VmHWM:")
}

fn unshared_kib(pid: u32) -> Option<u64> {
    Some(status_kib(pid, "RssAnon:")? + status_kib(pid, "RssFile:")?)
}

fn status_kib(pid: u32, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_take_turns() {
        let order = std::cell::RefCell::new(String::new());
        let subjects = vec![
            Subject::function("a", || order.borrow_mut().push('a')),
            Subject::function("b", || order.borrow_mut().push('b')),
        ];
        let rows = Bench { rounds: 3 }.measure("case", subjects).unwrap();
        assert_eq!(*order.borrow(), "ababab");
        assert_eq!(rows.iter().map(|row| row.subject.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn processes_have_memory_and_must_succeed() {
        let bench = Bench { rounds: 1 };
        let rows = bench.measure("case", vec![Subject::process("true", || Command::new("true"))]).unwrap();
        assert!(rows[0].peak_kib.unwrap() > 0);
        let failing = || {
            let mut command = Command::new("sh");
            command.args(["-c", "echo oops >&2; exit 3"]);
            command
        };
        let error = bench.measure("case", vec![Subject::process("false", failing)]).unwrap_err();
        assert!(format!("{error:#}").contains("oops"), "{error:#}");
    }
}
