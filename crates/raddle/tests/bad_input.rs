//! Bad input: for everything that people get wrong, one sentence that says what it is and what to do, and status 2.

mod common;

use common::{RADDLE, folder, raddle, run, succeed};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const RACY: &str = r#"
#include <pthread.h>
static int counter;
static void *body(void *x) { counter++; return x; }
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, body, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
"#;

/// What is wrong: variables of the environment (`A=b`) and the words behind `raddle`, and what is said about it.
struct Row(&'static str, &'static str);

fn check(folder: &Path, rows: &[Row]) {
    let mut wrong = String::new();
    for Row(line, sentence) in rows {
        let mut command = raddle();
        let (variables, words): (Vec<_>, Vec<_>) = line.split(' ').partition(|word| {
            word.split_once('=')
                .is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        });
        for variable in variables {
            let (name, value) = variable.split_once('=').expect("a variable");
            command.env(name, value);
        }
        let output = run(command.args(&words).current_dir(folder).stdin(Stdio::null()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() != Some(2) || !said.contains(sentence) || said.contains("panicked") {
            wrong += &format!("raddle {line}\n  {:?}, not saying {sentence:?}:\n{said}\n", output.status);
        }
    }
    assert_eq!(wrong, "");
}

fn executable(path: &Path) {
    succeed(Command::new("chmod").arg("+x").arg(path));
}

#[test]
fn words_and_sources() {
    let folder = folder(&[
        ("racy.c", RACY),
        ("empty.c", ""),
        ("blank.c", "\n\n  \n"),
        ("syntax.c", "int main( {\n"),
        ("binary.c", "\u{7f}ELF\u{2}\u{1}"),
    ]);
    fs::create_dir(folder.path().join("folder.c")).unwrap();
    check(
        folder.path(),
        &[
            Row("frob", "unrecognized subcommand 'frob'"),
            Row("hnt", "a similar subcommand exists: 'hunt'"),
            Row("hunt", "nothing to run; give source files, or a program behind `--`"),
            Row("hunt --frob racy.c", "unexpected argument '--frob'"),
            Row("hunt none.c", "cannot read none.c: No such file"),
            Row("hunt empty.c", "empty.c is empty; there is nothing to compile"),
            Row("hunt blank.c", "blank.c is empty; there is nothing to compile"),
            Row("hunt folder.c", "folder.c is a folder, not a source file"),
            Row(
                "hunt binary.c",
                "binary.c is a binary, not a source file; to run a program, name it behind `--`",
            ),
            Row("hunt syntax.c", "syntax.c did not compile; the compiler's messages are above"),
            Row("hunt --cflags=-fno-such-flag racy.c", "racy.c did not compile"),
            Row("hunt --cflags=-m32 racy.c", "-m32 asks for what Raddle cannot observe"),
            Row("hunt --cflags=-mx32 racy.c", "build without -mx32"),
            Row(
                "cc --target=x86_64-linux-musl racy.c",
                "on Linux with glibc only; build without --target=x86_64-linux-musl",
            ),
            Row("cc -specs=/usr/lib/musl-gcc.specs racy.c", "build without -specs=/usr/lib/musl-gcc.specs"),
            Row(
                "hunt --cflags=-fsanitize=address racy.c",
                "-fsanitize=address and Raddle's runtime cannot be in one program",
            ),
            Row(
                "RADDLE_CC=/no/such/cc hunt racy.c",
                "the compiler \"/no/such/cc\" named by RADDLE_CC was not found",
            ),
            Row("RADDLE_CC=/bin/true hunt racy.c", "/bin/true reports success and has made no program"),
            Row("RADDLE_CC=/bin/false hunt racy.c", "racy.c did not compile"),
            Row(
                "PATH=/no/such hunt racy.c",
                "no C compiler was found; install clang or gcc, or name one in RADDLE_CC",
            ),
            Row(
                "XDG_CACHE_HOME=/proc/no hunt racy.c",
                "point XDG_CACHE_HOME at a folder that can be written",
            ),
        ],
    );
    // The super-user reads everything.
    let unreadable = folder.path().join("unreadable.c");
    fs::write(&unreadable, RACY).unwrap();
    succeed(Command::new("chmod").arg("0").arg(&unreadable));
    if fs::read(&unreadable).is_err() {
        check(folder.path(), &[Row("hunt unreadable.c", "cannot read unreadable.c: Permission denied")]);
    }
    let output = run(raddle().stdin(Stdio::null()));
    assert_eq!(output.status.code(), Some(2), "no argument at all: {output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage:"), "{output:?}");
}

#[test]
fn programs() {
    let folder = folder(&[
        ("racy.c", RACY),
        ("empty", ""),
        ("text", "just a few words\n"),
        ("script", "#!/bin/sh\nexit 0\n"),
        ("lost", "#!/no/such/shell\n"),
        ("folder.d", ""),
    ]);
    let at = folder.path();
    succeed(raddle().args(["cc", "-pthread", "racy.c", "-o", "racy"]).current_dir(at));
    for (flags, name) in
        [(&["-static"][..], "static"), (&["-fsanitize=address"], "asan"), (&["-fsanitize=thread"], "tsan")]
    {
        succeed(Command::new("gcc").args(["-pthread", "racy.c", "-o", name]).args(flags).current_dir(at));
    }
    let whole = fs::read(at.join("racy")).unwrap();
    fs::write(at.join("cut"), &whole[..200]).unwrap();
    // The class of 32-bit files, and the number of their processor.
    let mut narrow = whole[..4096].to_vec();
    (narrow[4], narrow[18]) = (1, 3);
    fs::write(at.join("narrow"), narrow).unwrap();
    for name in ["empty", "text", "script", "lost", "cut", "narrow"] {
        executable(&at.join(name));
    }
    fs::copy(at.join("racy.c"), at.join("resting")).unwrap();
    let rows = [
        ("./empty", "./empty is an empty file, not a program"),
        ("./text", "./text is neither a program nor a script that names its interpreter"),
        ("./script", "no instrumented program was run by ./script"),
        ("./lost", "./lost is a script for /no/such/shell, which is not there"),
        ("./static", "./static is a fully static program"),
        ("./asan", "./asan contains the compiler's own runtime of -fsanitize=address"),
        ("./tsan", "./tsan contains the compiler's own runtime of -fsanitize=thread"),
        ("./narrow", "./narrow is not a 64-bit x86 program"),
        ("./cut", "./cut is not a sound ELF file"),
        ("./gone", "there is no program ./gone"),
        ("/no/such/program", "there is no program /no/such/program"),
        (
            "no-such-program",
            "there is no program no-such-program in PATH; for one in this folder write ./no-such-program",
        ),
        ("./resting", "./resting is not executable; make it so with `chmod +x ./resting`"),
        (".", ". is a folder, not a program"),
    ];
    for command in ["hunt", "run", "record", "explore"] {
        let mut wrong = String::new();
        for (program, sentence) in rows {
            let output = run(raddle().args([command, "--", program]).current_dir(at).stdin(Stdio::null()));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.code() != Some(2) || !said.contains(sentence) {
                wrong += &format!("{command} {program}: {:?}: {said}\n", output.status);
            }
        }
        assert_eq!(wrong, "");
    }
}

#[test]
fn options_and_places() {
    let folder = folder(&[
        ("racy.c", RACY),
        ("file", ""),
        ("broken.json", "{\"x\":"),
        ("empty", ""),
        ("broken.supp", "frob\n"),
    ]);
    let at = folder.path();
    succeed(raddle().args(["cc", "-pthread", "racy.c", "-o", "racy"]).current_dir(at));
    fs::create_dir_all(at.join("full/traces")).unwrap();
    std::os::unix::fs::symlink("/dev/full", at.join("full/traces/racy.trace")).unwrap();
    check(
        at,
        &[
            Row(
                "record -o /proc/no/t.trace -- ./racy",
                "/proc/no/t.trace: No such file or directory (os error 2); choose another place with -o",
            ),
            Row(
                "record -o /dev/full -- ./racy",
                "/dev/full: No space left on device (os error 28); choose another place with -o",
            ),
            Row(
                "run --trace /dev/full -- ./racy",
                "No space left on device (os error 28); choose another place with --trace",
            ),
            Row(
                "hunt --keep full -- ./racy",
                "No space left on device (os error 28); choose another place with --keep",
            ),
            Row("hunt --keep file -- ./racy", "cannot create the folder file"),
            Row("hunt --keep /proc/no -- ./racy", "choose another with --keep"),
            Row("record --demo -o /dev/full -- ./racy", "cannot write /dev/full"),
            Row("run --sarif /dev/full -- ./racy", "cannot write /dev/full: No space left"),
            Row("hunt --sarif no/such/x.sarif -- ./racy", "there is no folder no/such; create it first"),
            Row("run --junit no/such/x.xml -- ./racy", "there is no folder no/such; create it first"),
            Row("explore --output no/such/x.json -- ./racy", "there is no folder no/such; create it first"),
            Row("hunt --baseline none.json -- ./racy", "none.json: cannot read: No such file"),
            Row("hunt --baseline broken.json -- ./racy", "broken.json: not a findings file"),
            Row("hunt --baseline empty -- ./racy", "empty: not a findings file"),
            Row("hunt --suppressions none.supp -- ./racy", "cannot read none.supp: No such file"),
            Row(
                "hunt --suppressions broken.supp -- ./racy",
                "broken.supp: line 1: `frob` is not of the form type:pattern",
            ),
            Row("explore --strategy frob -- ./racy", "there is no strategy `frob`; choose one of random"),
            Row("explore --strategy pct:x -- ./racy", "there is no strategy `pct:x`"),
            Row("explore --strategy pct:0 -- ./racy", "`pct:0` looks for nothing"),
            Row("explore --workers 0 -- ./racy", "it must be at least 1"),
            Row("explore --runs 0 -- ./racy", "0 is not in 1.."),
            Row("explore --runs=-1 -- ./racy", "-1 is not in 1.."),
            Row("hunt --timeout 0 -- ./racy", "0 is not in 1.."),
            Row("hunt --run-timeout 0 -- ./racy", "0 is not in 1.."),
            Row("record --demo --calls fly -- ./racy", "a demo knows no function `fly`"),
        ],
    );
    // An empty list of suppressions is a list.
    let output = run(raddle().args(["run", "-q", "--suppressions", "empty", "--", "./racy"]).current_dir(at));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

#[test]
fn traces_schedules_and_findings() {
    let folder =
        folder(&[("racy.c", RACY), ("empty.trace", ""), ("text.trace", "hello\n"), ("empty.schedule", "")]);
    let at = folder.path();
    succeed(raddle().args(["cc", "-g", "-pthread", "racy.c", "-o", "racy"]).current_dir(at));
    let hunted = run(raddle().args(["-q", "hunt", "--json", "--", "./racy"]).current_dir(at));
    let value: serde_json::Value = serde_json::from_slice(&hunted.stdout).expect("findings");
    let id = value["findings"][0]["id"].as_str().expect("a finding").to_owned();
    let mut trace = fs::read(at.join(".raddle/traces/racy.trace")).unwrap();
    fs::write(at.join("whole.trace"), &trace).unwrap();
    trace[8] = 9;
    fs::write(at.join("newer.trace"), &trace).unwrap();
    let schedule = fs::read_to_string(at.join(".raddle").join(&id).join("schedule")).unwrap();
    let edit = |name: &str, text: String| fs::write(at.join(name), text).unwrap();
    edit("newer.schedule", schedule.replacen("raddle-schedule 2", "raddle-schedule 9", 1));
    edit("frob.schedule", schedule.replacen("step 1 1 fork", "frob", 1));
    edit("typo.schedule", schedule.replacen("step 1 1 fork", "step 1 1 frok", 1));
    edit("number.schedule", schedule.replacen("step 1 1 fork", "step 1 one fork", 1));
    check(
        at,
        &[
            Row("detect none.trace", "none.trace: offset 0x0: cannot open the trace: No such file"),
            Row(
                "detect empty.trace",
                "empty.trace: offset 0x0: the trace is empty; record one with `raddle record`",
            ),
            Row("detect text.trace", "neither a Raddle trace nor STD text"),
            Row(
                "predict newer.trace",
                "the trace has format version 9 and this raddle reads up to 1; use the raddle that wrote it",
            ),
            Row("trace info .", "this is a folder; name the trace file in it"),
            Row("detect --with frob whole.trace", "frob"),
            Row("replay abcdef12", "there is no schedule abcdef12, and no finding abcdef12 in .raddle"),
            Row("report abcdef12", "there is no findings file abcdef12, and no finding abcdef12 in .raddle"),
            Row("explain frob", "frob"),
            Row("replay whole.trace", "not a schedule"),
            Row("replay empty.schedule", "empty; a schedule begins with `raddle-schedule 2`"),
            Row("replay newer.schedule", "version 9 is not known; this raddle reads versions 1 to 2"),
            Row("replay frob.schedule", "found `frob`"),
            Row("replay typo.schedule", "typo.schedule: line"),
            Row("replay number.schedule", "number.schedule: line"),
        ],
    );
    // A trace that was cut is read as far as it goes, and the cut is told.
    fs::write(at.join("cut.trace"), &fs::read(at.join("whole.trace")).unwrap()[..100]).unwrap();
    let output = run(raddle().args(["detect", "cut.trace"]).current_dir(at));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("the trace does not cover the whole run"),
        "{output:?}"
    );
    // Without gdb: the id is known, the debugger is not there.
    let output =
        run(Command::new(RADDLE).args(["replay", "--gdb", &id]).env("PATH", "/no/such").current_dir(at));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("gdb"), "{output:?}");
    for words in [
        &["trace", "dump", "whole.trace"][..],
        &["report"],
        &["completions", "bash"],
        &["explain", "deadlock"],
    ] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = run(raddle().args(words).current_dir(at).stdout(full).stderr(Stdio::piped()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains("cannot write to standard output: No space left"), "{words:?}: {said}");
    }
}

/// Every command that runs programs, with one that hangs in a deadlock and one that never ends: each ends by itself, and says where it stood.
#[test]
fn programs_that_do_not_end() {
    const DEADLOCK: &str = "#include <pthread.h>\n\
        static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;\n\
        static pthread_barrier_t b;\n\
        static void *f(void *x) { pthread_mutex_lock(&m); pthread_barrier_wait(&b); pthread_mutex_lock(&n); return x; }\n\
        int main(void) { pthread_t t; pthread_barrier_init(&b, 0, 2); pthread_create(&t, 0, f, 0);\n\
        pthread_mutex_lock(&n); pthread_barrier_wait(&b); pthread_mutex_lock(&m); return 0; }\n";
    const ENDLESS: &str = "#include <pthread.h>\nstatic volatile int stop;\n\
        static void *f(void *x) { while (!stop) { } return x; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); return 0; }\n";
    let folder = folder(&[("deadlock.c", DEADLOCK), ("endless.c", ENDLESS)]);
    let at = folder.path();
    for name in ["deadlock", "endless"] {
        let source = format!("{name}.c");
        succeed(raddle().args(["cc", "-g", "-pthread", &source, "-o", name]).current_dir(at));
    }
    for (line, sentence) in [
        ("hunt -- ./deadlock", "deadlock"),
        ("run -- ./deadlock", "could go on"),
        ("record -- ./deadlock", "could go on"),
        ("record --demo -- ./deadlock", "deadlock"),
        ("explore --runs 3 -- ./deadlock", "deadlock"),
        ("ci -- ./deadlock", "deadlock"),
        ("hunt --run-timeout 1 -- ./endless", "its time was up (--run-timeout)"),
        ("run --run-timeout 1 -- ./endless", "its time was up (--run-timeout)"),
        ("record --run-timeout 1 -- ./endless", "its time was up (--run-timeout)"),
        ("explore --runs 1 --strategy random --timeout 1 -- ./endless", "took too long"),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        let output = run(raddle().args(&words).current_dir(at).stdin(Stdio::null()));
        let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(sentence), "{line}: {said}");
        if !line.starts_with("explore --runs 1") {
            assert_ne!(output.status.code(), Some(0), "{line}: {said}");
        }
    }
}
