//! Crash reports, as a launcher reads them: what the program died of, and where each of its threads stood, in every mode.

mod common;

use common::{raddle, run, succeed};
use raddle_trace::crash::{CrashReport, CrashedThread, End, Wait};
use raddle_trace::region::{Region, RegionConfig};
use raddle_trace::schedule::StepKind;
use raddle_trace::symbols::Symbolizer;
use raddle_wire::region::{ENV_REGION, observe, option, outcome, steer, strategy};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// Compiles a program of the corpus.
fn build(folder: &Path, name: &str, compiler: &str, flags: &[&str]) -> PathBuf {
    let program = folder.join(Path::new(name).file_name().unwrap());
    let source = corpus().join(format!("{name}.c"));
    let cxx = !source.exists();
    let source = if cxx { source.with_extension("cpp") } else { source };
    let mut command = raddle();
    let driver =
        if cxx { compiler.replace("gcc", "g++").replace("clang", "clang++") } else { compiler.to_owned() };
    command.env(if cxx { "RADDLE_CXX" } else { "RADDLE_CC" }, driver);
    command.args([if cxx { "c++" } else { "cc" }, "-g", "-pthread"]).args(flags);
    succeed(command.arg("-I").arg(corpus().join("include")).arg(source).arg("-o").arg(&program));
    program
}

/// A way to run a program.
fn mode(name: &str) -> RegionConfig {
    let record = RegionConfig::default();
    let control = RegionConfig {
        steer: steer::CONTROL,
        strategy: strategy::ROUND_ROBIN,
        options: option::ONE_AT_A_TIME,
        ..RegionConfig::default()
    };
    match name {
        "record" => record,
        "detect" => RegionConfig { observe: observe::DETECT, ..record },
        "nothing" => RegionConfig { observe: 0, options: 0, ..record },
        "steered" => RegionConfig { observe: 0, ..control },
        // Along a schedule without steps.
        "replay" => RegionConfig {
            observe: 0,
            steer: steer::REPLAY,
            options: control.options | option::THEN_ROUND_ROBIN,
            blob: vec![0; raddle_wire::step::HEAD_WORDS * 8],
            ..control
        },
        "all visible" => RegionConfig {
            observe: 0,
            options: control.options | option::MEMORY | option::KEEP_REDUNDANT | option::VISIBLE_ALL,
            ..control
        },
        _ => unreachable!(),
    }
}

const MODES: [&str; 6] = ["record", "detect", "nothing", "steered", "replay", "all visible"];

/// How a program ended, and what its runtime left.
struct Ran {
    region: Region,
    status: ExitStatus,
}

impl Ran {
    fn new(program: &Path, config: &RegionConfig) -> Ran {
        let mut command = Command::new(program);
        Ran::command(command.env_remove("LD_PRELOAD"), config)
    }

    fn preloaded(program: &Path, config: &RegionConfig, runtime: &Path) -> Ran {
        Ran::command(Command::new(program).env("LD_PRELOAD", runtime), config)
    }

    fn command(command: &mut Command, config: &RegionConfig) -> Ran {
        let region = Region::create(config).unwrap();
        command.env(ENV_REGION, region.env_value()).env("CORPUS_TURN_MS", "40");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let started = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if started.elapsed() > Duration::from_secs(60) {
                child.kill().unwrap();
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        Ran { region, status }
    }

    fn crash(&self) -> CrashReport {
        let end = self.region.end().expect("the report is whole");
        end.and_then(End::crash).unwrap_or_else(|| panic!("{} without a report", self.status))
    }

    /// Functions and lines of a stack.
    fn places(&self, thread: &CrashedThread) -> Vec<(String, u32)> {
        let module = |index| {
            let entry = self.region.module(index);
            raddle_trace::tables::Module {
                path: String::from_utf8_lossy(&entry.path[..usize::from(entry.path_bytes)]).into_owned(),
                start: entry.start,
                end: entry.end,
                bias: entry.bias,
                build_id: entry.build_id[..usize::from(entry.build_id_bytes)].to_vec(),
            }
        };
        let modules: Vec<_> = (0..self.region.modules()).map(module).collect();
        let mut symbols = Symbolizer::new(&modules);
        let mut places = Vec::new();
        for &pc in &thread.frames {
            for frame in symbols.call_frames(pc) {
                places.push((frame.function.unwrap_or_default(), frame.line.unwrap_or(0)));
            }
        }
        places
    }

    fn functions(&self, thread: &CrashedThread) -> Vec<String> {
        self.places(thread).into_iter().map(|(function, _)| function).collect()
    }
}

/// The line of a marker in a program of the corpus.
fn line_of(name: &str, marker: &str) -> u32 {
    let source = corpus().join(format!("{name}.c"));
    let text = std::fs::read_to_string(&source)
        .or_else(|_| std::fs::read_to_string(source.with_extension("cpp")))
        .unwrap();
    let at = text.lines().position(|line| line.ends_with(&format!("// {marker}"))).expect("a marker");
    at as u32 + 1
}

fn contains_in_order(functions: &[String], wanted: &[&str]) -> bool {
    let mut rest = functions.iter();
    wanted.iter().all(|wanted| rest.any(|function| function == wanted))
}

#[test]
fn a_crash_is_told_in_every_mode() {
    let folder = tempfile::tempdir().unwrap();
    for compiler in common::compilers() {
        let name = "crashes/segv_thread";
        let program = build(folder.path(), name, &compiler, &["-O0"]);
        for mode_name in MODES {
            let ran = Ran::new(&program, &mode(mode_name));
            let about = format!("{compiler}, {mode_name}");
            assert_eq!(ran.status.signal(), Some(11), "{about}");
            let report = ran.crash();
            assert_eq!((report.signal, report.code, report.address), (11, 1, 0), "{about}");
            assert_eq!(report.thread, "1.1", "{about}");
            assert!(report.complete && report.alive == 2, "{about}: {report:?}");
            assert_eq!(report.threads[0].frames[0], report.pc + 1, "{about}");
            let places = ran.places(&report.threads[0]);
            assert_eq!(places[0], ("inner".to_owned(), line_of(name, "CRASH")), "{about}");
            let functions = ran.functions(&report.threads[0]);
            assert!(
                functions.starts_with(&["inner", "outer", "worker"].map(str::to_owned)),
                "{about}: {functions:?}"
            );
            let main = &report.threads[1];
            assert_eq!(main.name, "1", "{about}");
            assert!(contains_in_order(&ran.functions(main), &["main"]), "{about}: {:?}", ran.functions(main));
            // It may not have come to wait yet.
            let steered = matches!(mode_name, "steered" | "replay" | "all visible");
            match &main.waits {
                None => {}
                Some(Wait::Operation { kind: StepKind::Join, .. }) => assert!(steered, "{about}"),
                Some(Wait::Call { .. }) => assert!(!steered, "{about}"),
                other => panic!("{about}: {other:?}"),
            }
        }
    }
}

#[test]
fn signal_place_and_text_are_those_of_the_crash() {
    let folder = tempfile::tempdir().unwrap();
    for (name, signal, function) in [
        ("crashes/division", 8, "worker"),
        ("crashes/trap", 5, "worker"),
        ("crashes/in_handler", 11, "on_signal"),
        ("crashes/reset_handler", 11, "worker"),
        ("crashes/stack_overflow", 11, "deeper"),
        ("crashes/abort_main", 6, "main"),
        ("crashes/assertion", 6, "withdraw"),
        ("crashes/double_free", 6, "worker"),
        ("crashes/suspended", 6, "main"),
        ("crashes/in_atomic", 11, "worker"),
        ("crashes/at_once", 11, "worker"),
    ] {
        let program = build(folder.path(), name, "gcc", &["-O0", "-w"]);
        for mode_name in MODES {
            let ran = Ran::new(&program, &mode(mode_name));
            let about = format!("{name}, {mode_name}");
            assert_eq!(ran.status.signal(), Some(signal), "{about}");
            let report = ran.crash();
            assert_eq!(report.signal, signal, "{about}");
            let places = ran.places(&report.threads[0]);
            let own = places.iter().find(|(name, _)| name == function);
            let line = line_of(name, "CRASH");
            // An overflow may come at the opening of the function.
            let fits = own.is_some_and(|&(_, at)| at == line || (function == "deeper" && at > 0));
            assert!(fits, "{about}: {places:?}, expected {function}:{line}");
            assert_eq!(report.threads[0].cut, function == "deeper", "{about}");
        }
    }
}

#[test]
fn assertions_carry_their_text() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), "crashes/assertion", "gcc", &["-O0"]);
    let assertion = Ran::new(&program, &mode("record")).crash().assertion.expect("an assertion");
    assert_eq!(assertion.expression, "balance >= 0");
    assert!(assertion.file.ends_with("assertion.c"), "{assertion:?}");
    assert_eq!((assertion.line, &*assertion.function), (line_of("crashes/assertion", "CRASH"), "withdraw"));
    let program = build(folder.path(), "crashes/assertion_cpp", "gcc", &["-O0", "-D_GLIBCXX_ASSERTIONS"]);
    let assertion = Ran::new(&program, &mode("record")).crash().assertion.expect("an assertion");
    assert_eq!(assertion.expression, "__n < this->size()");
    let program = build(folder.path(), "crashes/double_free", "gcc", &["-O0", "-w"]);
    let report = Ran::new(&program, &mode("record")).crash();
    assert_eq!(report.assertion, None);
    let program_smashed =
        build(folder.path(), "crashes/smashed_stack", "gcc", &["-O0", "-fstack-protector-all"]);
    let ran = Ran::new(&program_smashed, &mode("record"));
    let smashed = ran.crash();
    assert!(
        smashed.message.as_deref().is_some_and(|text| text.contains("stack smashing detected")),
        "{:?}",
        smashed.message
    );
    assert!(
        contains_in_order(&ran.functions(&smashed.threads[0]), &["worker", "corpus_body"]),
        "{smashed:?}"
    );
    assert!(
        report.message.as_deref().is_some_and(|text| text.contains("double free")),
        "{:?}",
        report.message
    );
}

#[test]
fn what_the_others_wait_for_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), "crashes/abort_main", "gcc", &["-O0"]);
    // Of the runs in which both have come to wait, one.
    let random = |seed| RegionConfig { seed, strategy: strategy::RANDOM, ..mode("steered") };
    let report = (0..100)
        .map(|seed| Ran::new(&program, &random(seed)).crash())
        .find(|report| {
            report.threads.len() == 3 && report.threads[1..].iter().all(|thread| thread.waits.is_some())
        })
        .expect("a seed that lets both wait");
    let waits: Vec<_> =
        report.threads[1..].iter().map(|thread| (&*thread.name, thread.waits.clone())).collect();
    for (name, wait) in waits {
        match (name, wait) {
            ("1.1", Some(Wait::Operation { kind: StepKind::Lock, holder, .. })) => {
                assert_eq!(holder, Some(0))
            }
            ("1.2", Some(Wait::Operation { kind: StepKind::Wake, .. })) => {}
            other => panic!("{other:?}"),
        }
    }
    let ran = Ran::new(&program, &mode("record"));
    for thread in &ran.crash().threads[1..] {
        const FUTEX: u32 = 202;
        assert!(matches!(thread.waits, Some(Wait::Call { number: FUTEX, .. })), "{thread:?}");
        let own = if thread.name == "1.1" { "locker" } else { "waiter" };
        assert!(
            contains_in_order(&ran.functions(thread), &[own, "corpus_body"]),
            "{:?}",
            ran.functions(thread)
        );
    }
}

#[test]
fn every_thread_of_many_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), "crashes/many_threads", "gcc", &["-O0"]);
    for mode_name in ["record", "steered"] {
        let report = Ran::new(&program, &mode(mode_name)).crash();
        assert_eq!((report.threads.len(), report.alive), (301, 301), "{mode_name}");
        assert!(report.threads.iter().all(|thread| !thread.frames.is_empty() && !thread.cut), "{mode_name}");
    }
}

/// Programs that handle their signals themselves, or whose children crash, leave no report.
#[test]
fn what_is_no_crash_of_the_program_leaves_no_report() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["recover", "own_view", "large_handler", "fork_child"] {
        let program = build(folder.path(), &format!("crashes/{name}"), "gcc", &["-O0"]);
        for mode_name in MODES {
            let ran = Ran::new(&program, &mode(mode_name));
            assert_eq!(ran.status.code(), Some(0), "{name}, {mode_name}");
            assert_eq!(ran.region.end(), Ok(None), "{name}, {mode_name}");
        }
    }
    // The kernel ends a program whose handler of SIGSEGV crashes without asking anybody.
    let program = build(folder.path(), "crashes/double_fault", "gcc", &["-O0"]);
    assert_eq!(Ran::new(&program, &mode("record")).status.signal(), Some(11));
}

#[test]
fn a_deadlock_has_the_stacks_of_its_parties() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), "deadlock/abba", "gcc", &["-O0"]);
    let random = |seed| RegionConfig { seed, strategy: strategy::RANDOM, ..mode("steered") };
    let ran = (0..200)
        .map(|seed| Ran::new(&program, &random(seed)))
        .find(|ran| ran.region.header().outcome.load(Ordering::Relaxed) == outcome::DEADLOCK)
        .expect("a seed that deadlocks");
    let Ok(Some(End::Outcome(stacks))) = ran.region.end() else { panic!("{:?}", ran.region.end()) };
    assert_eq!(stacks.outcome, outcome::DEADLOCK);
    let header = ran.region.header();
    assert_eq!(header.party_count.load(Ordering::Relaxed), 2);
    for (party, thread) in header.parties.iter().zip(&stacks.threads[..2]) {
        assert_eq!(party.thread.load(Ordering::Relaxed), thread.index);
        assert_eq!(party.path.load(Ordering::Relaxed), thread.path);
        assert_eq!(party.pc.load(Ordering::Relaxed), thread.frames[0]);
        let holder = Some(party.holder.load(Ordering::Relaxed));
        assert!(
            matches!(thread.waits, Some(Wait::Operation { kind: StepKind::Lock, holder: found, .. }) if found == holder)
        );
        assert!(ran.functions(thread).len() >= 2, "{:?}", ran.functions(thread));
    }
    assert_eq!(stacks.threads[2].name, "1", "main, which waits for the others");
}

/// Each run of a fork server has a report of its own, and one that ends well has none.
#[test]
fn a_fork_server_keeps_the_report_of_each_run() {
    const RUNS: u32 = 5;
    let folder = tempfile::tempdir().unwrap();
    for (name, crashes) in [("crashes/segv_thread", true), ("crashes/recover", false)] {
        let program = build(folder.path(), name, "gcc", &["-O0"]);
        let region = Region::create(&RegionConfig { server: true, ..mode("steered") }).unwrap();
        let mut command = Command::new(&program);
        command.env(ENV_REGION, region.env_value()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let server = &region.header().server;
        server.requested.store(RUNS, Ordering::Release);
        let started = Instant::now();
        while server.published.load(Ordering::Acquire) != RUNS && started.elapsed() < Duration::from_secs(60)
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        server.quit.store(1, Ordering::Release);
        child.wait().unwrap();
        assert_eq!(server.published.load(Ordering::Acquire), RUNS, "{name}");
        for number in 0..RUNS {
            let status = region.run_entry(number).status.load(Ordering::Relaxed) as i32;
            let end = region.end_of_run(number).unwrap();
            assert_eq!(end.is_some(), crashes, "{name}, run {number}");
            let Some(report) = end.and_then(End::crash) else { continue };
            assert_eq!(ExitStatus::from_raw(status).signal(), Some(report.signal), "{name}, run {number}");
            assert_eq!((&*report.thread, report.threads.len()), ("1.1", 2), "{name}, run {number}");
        }
    }
}

/// A program that was not rebuilt: the stack is that of its frame pointers.
#[test]
fn a_program_that_was_not_rebuilt_is_told_by_its_frame_pointers() {
    let folder = tempfile::tempdir().unwrap();
    // Where the runtime's library is: a program that was linked to it says so.
    let linked = folder.path().join("linked");
    let source = corpus().join("crashes/segv_thread.c");
    let include = corpus().join("include");
    let mut command = raddle();
    command.env("RADDLE_LINK", "shared").args(["cc", "-g", "-pthread", "-I"]).arg(&include);
    succeed(command.arg(&source).arg("-o").arg(&linked));
    let libraries = succeed(Command::new("ldd").arg(&linked));
    let runtime = libraries
        .lines()
        .filter_map(|line| line.trim().strip_prefix("libraddle_rt.so => ")?.split(' ').next())
        .next()
        .unwrap_or_else(|| panic!("no runtime in {libraries}"));
    let program = folder.path().join("native");
    let mut command = Command::new("gcc");
    command.args(["-O0", "-g", "-pthread", "-I"]).arg(include).arg(source);
    succeed(command.arg("-o").arg(&program));
    let ran = Ran::preloaded(&program, &mode("nothing"), Path::new(runtime));
    assert_eq!(ran.status.signal(), Some(11));
    let report = ran.crash();
    assert_eq!((&*report.thread, report.threads.len()), ("1.1", 2));
    let functions = ran.functions(&report.threads[0]);
    assert!(functions.starts_with(&["inner", "outer", "worker"].map(str::to_owned)), "{functions:?}");
}

/// A core file is written as it would be: the kernel says so in the status.
#[test]
fn the_kernel_dumps_core_as_it_would() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), "crashes/segv_thread", "gcc", &["-O0"]);
    let native = folder.path().join("native");
    succeed(
        Command::new("gcc")
            .args(["-g", "-pthread", "-I"])
            .arg(corpus().join("include"))
            .arg(corpus().join("crashes/segv_thread.c"))
            .arg("-o")
            .arg(&native),
    );
    let natively = run(Command::new(&native).current_dir(folder.path())).status;
    assert_eq!(Ran::new(&program, &mode("nothing")).status.core_dumped(), natively.core_dumped());
}
