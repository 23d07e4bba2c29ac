//! Steering, from the command line: the same seed gives the same run, schedules and demos can be given again, and random
//! schedules reach what enumeration reaches.

mod common;

use common::{raddle, run, succeed};
use raddle_trace::schedule::StepKind;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

/// How often things are repeated; `RADDLE_TEST_CASES` says otherwise.
fn cases(default: u32) -> u32 {
    std::env::var("RADDLE_TEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// Compiles a program of the corpus.
fn build(folder: &Path, name: &str) -> PathBuf {
    let program = folder.join(Path::new(name).file_name().unwrap());
    succeed(
        raddle()
            .args(["cc", "-std=gnu11", "-O0", "-g", "-pthread", "-I"])
            .arg(corpus().join("include"))
            .arg(corpus().join(format!("{name}.c")))
            .arg("-o")
            .arg(&program),
    );
    program
}

/// What `raddle explore --json` says, without the paths of schedules.
fn explore(folder: &Path, program: &Path, options: &[&str]) -> BTreeMap<String, (u64, u64)> {
    // Unless a test wants another one: a portfolio decides itself how many runs are worth it.
    let strategy: &[&str] =
        match options.iter().any(|option| matches!(*option, "--strategy" | "--exhaustive")) {
            true => &[],
            false => &["--strategy", "random"],
        };
    let output = run(raddle()
        .args(["-q", "explore", "--json", "--no-schedules", "--keep"])
        .arg(folder.join("kept"))
        .args(strategy)
        .args(options)
        .arg("--")
        .arg(program));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let json: serde_json::Value = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    let outcomes = json["exploration"]["outcomes"].as_array().expect("a list of outcomes");
    outcomes
        .iter()
        .map(|outcome| {
            let what = format!("{} {}", outcome["ending"], outcome["stdout"]);
            (what, (outcome["count"].as_u64().unwrap(), outcome["first_run"].as_u64().unwrap()))
        })
        .collect()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let folder = tempfile::tempdir().unwrap();
    let runs = cases(40).to_string();
    for name in ["explore/lost_update", "deadlock/abba", "explore/order_violation"] {
        let program = build(folder.path(), name);
        for strategy in ["random", "round-robin", "pct:3", "pos", "surw", "delay:2"] {
            let options = ["--strategy", strategy, "--runs", &runs, "--seed", "5"];
            let first = explore(folder.path(), &program, &options);
            let again = explore(folder.path(), &program, &options);
            assert_eq!(first, again, "{name} under {strategy}, forked twice");
            let mut started = options.to_vec();
            started.extend(["--exec", "--workers", "1"]);
            assert_eq!(first, explore(folder.path(), &program, &started), "{name} under {strategy}, started");
        }
    }
}

/// Compiles a program given as text, after the corpus's header.
fn build_text(folder: &Path, name: &str, text: &str) -> PathBuf {
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, format!("#include \"corpus.h\"\n{text}")).unwrap();
    succeed(
        raddle()
            .args(["cc", "-std=gnu11", "-O0", "-g", "-pthread", "-I"])
            .arg(corpus().join("include"))
            .arg(&source)
            .arg("-o")
            .arg(&program),
    );
    program
}

/// The schedules of the findings that were kept in this folder.
fn kept_schedules(kept: &Path) -> Vec<PathBuf> {
    let store = raddle_findings::Store::at(kept);
    let ids = store.ids("").unwrap();
    ids.iter().map(|id| store.schedule_path(id)).filter(|path| path.exists()).collect()
}

/// Records a demo and gives it again so many times.
fn given_again(program: &Path, arguments: &[&str], demo: &Path, options: &[&str], times: u32) {
    let mut record = raddle();
    record.args(["-q", "record", "--demo"]).args(options).arg("-o").arg(demo);
    succeed(record.arg("--").arg(program).args(arguments));
    succeed(raddle().args(["-q", "replay", "--repeat", &times.to_string()]).arg(demo));
}

/// A kept schedule shows its error every time.
fn shown_again(schedule: &Path, program: &Path, times: u32) {
    let repeat = times.to_string();
    let output = run(raddle().args(["replay", "--repeat", &repeat]).arg(schedule).arg("--").arg(program));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("shown in {repeat} of {repeat} runs")), "{}: {said}", schedule.display());
}

/// A clock that went on by itself would let this loop run another number of times in every run.
#[test]
fn a_seed_decides_what_the_clock_says() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        #include <time.h>
        static long now(void) {
            struct timespec t;
            clock_gettime(CLOCK_MONOTONIC, &t);
            return t.tv_sec * 1000000000L + t.tv_nsec;
        }
        static long looks;
        static void wait_for_time(void) {
            for (long until = now() + 300000; now() < until; looks++) usleep(looks < 2 ? 100 : 0);
        }
        int main(void) {
            time_t day = time(NULL);
            finish(start(wait_for_time));
            printf("%ld %ld\n", looks, (long)day);
        }"#;
    let program = build_text(folder.path(), "clock", text);
    for strategy in ["random", "pct:3"] {
        let options = ["--strategy", strategy, "--runs", "4", "--same-seed"];
        let forked = explore(folder.path(), &program, &options);
        assert_eq!(forked.len(), 1, "{strategy}: {forked:?}");
        let started: Vec<&str> = options.into_iter().chain(["--exec"]).collect();
        assert_eq!(forked, explore(folder.path(), &program, &started), "{strategy}");
    }
}

/// A thread that sleeps in a loop until it is cancelled, or until it sees a plain variable change, comes to no other
/// operation; the others must be able to go on.
#[test]
fn sleeping_in_a_loop_lets_others_go() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        static volatile int flag;
        static void *sleeps(void *unused) {
            for (;;) usleep(10);
            return unused;
        }
        static void *polls(void *unused) {
            while (!flag) usleep(10);
            return unused;
        }
        int main(int argc, char **argv) {
            (void)argv;
            pthread_t sleeper = start_with(sleeps, NULL);
            void *result;
            if (argc == 1) {
                pthread_t poller = start_with(polls, NULL);
                flag = 1;
                pthread_join(poller, NULL);
            }
            pthread_cancel(sleeper);
            pthread_join(sleeper, &result);
            printf("%d\n", result == PTHREAD_CANCELED);
        }"#;
    let program = build_text(folder.path(), "loops", text);
    for strategy in ["random", "round-robin", "pct:3", "pos"] {
        let found = explore(folder.path(), &program, &["--strategy", strategy, "--runs", "5"]);
        assert_eq!(found.keys().collect::<Vec<_>>(), [r#"{"exit":0} "1\n""#], "{strategy}");
    }
    // How often a plain variable is looked at is not part of a demo: only the cancelled thread.
    let demo = folder.path().join("loops.demo");
    for strategy in ["queue", "random"] {
        given_again(&program, &["cancelled"], &demo, &["--strategy", strategy], 3);
    }
}

/// Who waits for a word may be woken although the word has not changed.
#[test]
fn a_wake_without_a_change_is_given_again() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        #include <linux/futex.h>
        #include <stdatomic.h>
        #include <sys/syscall.h>
        static int word;
        static atomic_int done;
        static void waits(void) {
            while (syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) != 0) {}
            atomic_store(&done, 1);
        }
        int main(void) {
            pthread_t waiter = start(waits);
            while (!atomic_load(&done)) syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
            finish(waiter);
            puts("woken");
        }"#;
    let program = build_text(folder.path(), "wake", text);
    let demo = folder.path().join("wake.demo");
    for strategy in ["queue", "random"] {
        given_again(&program, &[], &demo, &["--strategy", strategy], 3);
    }
}

/// A program knows itself by the number that it had when it was recorded; a signal to that number is for itself, and one to
/// a number from outside is for nobody, because somebody else may have it by now.
#[test]
fn a_replay_sends_signals_to_itself_only() {
    sends_to_itself_only("kill(to, number)");
}

#[test]
fn a_replay_queues_signals_for_itself_only() {
    sends_to_itself_only("sigqueue(to, number, (union sigval){0})");
}

fn sends_to_itself_only(call: &str) {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        #include <signal.h>
        static int sends(pid_t to, int number) { return CALL; }
        int main(int count, char **words) {
            int stranger = -1;
            FILE *file = fopen(words[1], "r");
            if (fscanf(file, "%d", &stranger) != 1) return 3;
            printf("%d\n", sends(stranger, SIGKILL));
            fflush(stdout);
            sends(getpid(), SIGTERM);
            pause();
        }"#;
    let program = build_text(folder.path(), "kills", &text.replace("CALL", call));
    let (demo, list) = (folder.path().join("kills.demo"), folder.path().join("pid"));
    let stranger = || std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let mut first = stranger();
    std::fs::write(&list, first.id().to_string()).unwrap();
    let mut record = raddle();
    record.args(["-q", "record", "--demo", "-o"]).arg(&demo).arg("--").arg(&program).arg(&list);
    assert_eq!(record.status().unwrap().code(), Some(128 + 15));
    assert_eq!(first.wait().unwrap().signal(), Some(9));
    let mut second = stranger();
    std::fs::write(&list, second.id().to_string()).unwrap();
    let output = raddle().args(["replay", "--repeat", "5"]).arg(&demo).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the same in 5 of 5"), "{said}");
    assert!(second.try_wait().unwrap().is_none(), "a replay has killed a stranger");
    second.kill().unwrap();
    second.wait().unwrap();
}

/// What a race gives between visible operations is part of a demo if threads run one at a time.
#[test]
fn a_race_is_given_again_when_threads_run_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        static volatile int x;
        static void adds(void) {
            for (int i = 0; i < 200000; i++) x = x + 1;
        }
        int main(void) {
            pthread_t one = start(adds), other = start(adds);
            for (int i = 0; i < 200000; i++) x = x + 1;
            printf("%d\n", x);
            finish(one);
            finish(other);
            printf("%d\n", x);
        }"#;
    let program = build_text(folder.path(), "race", text);
    let demo = folder.path().join("race.demo");
    given_again(&program, &[], &demo, &["--strategy", "queue", "--one-at-a-time"], 10);
}

/// Two increments by load and store: enumeration gives the results 1 and 2, and so must chance.
#[test]
fn random_runs_reach_all_outcomes() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), "explore/lost_update");
    let plain = build(folder.path(), "explore/lost_update_plain");
    let outputs = |program: &Path, options: &[&str]| -> Vec<String> {
        explore(folder.path(), program, options).into_keys().collect()
    };
    let both = [r#"{"exit":0} "1\n""#, r#"{"exit":0} "2\n""#];
    for strategy in ["random", "pct:3", "pos", "surw", "delay:2"] {
        assert_eq!(outputs(&program, &["--runs", "200", "--strategy", strategy]), both, "{strategy}");
    }
    assert_eq!(outputs(&plain, &["--runs", "200"]), both[1..], "plain accesses are no scheduling points");
    for visible in ["shared", "all"] {
        assert_eq!(outputs(&plain, &["--runs", "200", "--visible", visible]), both, "{visible}");
    }
}

#[test]
fn kept_schedules_are_small_and_show_the_error_again() {
    let folder = tempfile::tempdir().unwrap();
    for (name, word) in
        [("deadlock/abba", "expect deadlock"), ("explore/order_violation", "expect signal 11")]
    {
        let program = build(folder.path(), name);
        let kept = folder.path().join("kept");
        let output = run(raddle()
            .args(["explore", "--strategy", "random", "--runs", "200", "--keep"])
            .arg(&kept)
            .arg("--")
            .arg(&program));
        assert_eq!(output.status.code(), Some(1), "{name}: an error was seen");
        let schedule = kept_schedules(&kept)
            .into_iter()
            .find(|path| std::fs::read_to_string(path).unwrap().contains(word))
            .unwrap_or_else(|| panic!("{name}: no schedule with `{word}`"));
        let parsed =
            raddle_trace::schedule::Schedule::parse(&std::fs::read_to_string(&schedule).unwrap()).unwrap();
        assert!(parsed.context_switches() <= 3, "{name}: {} switches", parsed.context_switches());
        shown_again(&schedule, &program, cases(5));
        std::fs::remove_dir_all(&kept).unwrap();
    }
}

/// The last operation before a run ends is what decides that it ends this way: a replay that lets another thread go in its place
/// shows something else. Whether the program crashes behind an access, in an operation, or ends itself, it is in the schedule.
#[test]
fn the_last_operation_of_a_run_is_part_of_its_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let programs = [
        (
            "division",
            "expect signal 8",
            StepKind::Read,
            "static int ready, divisor = 1;
             static void checker(void) { if (ready) use(100 / divisor); }
             static void changer(void) { divisor = 0; ready = 1; divisor = 1; }",
        ),
        (
            "pointer",
            "expect signal 11",
            StepKind::Read,
            "static int ready, value; static int *pointer = &value;
             static void checker(void) { if (ready) use(*pointer); }
             static void changer(void) { pointer = NULL; ready = 1; pointer = &value; }",
        ),
        (
            "mutex",
            "expect signal 11",
            StepKind::Lock,
            "MUTEX(m); static int ready; static pthread_mutex_t *mutex = &m;
             static void checker(void) { if (ready) pthread_mutex_lock(mutex); }
             static void changer(void) { mutex = NULL; ready = 1; mutex = &m; }",
        ),
        (
            "atomic",
            "expect signal 11",
            StepKind::Load,
            "#include <stdatomic.h>
             static int ready; static atomic_int value; static atomic_int *pointer = &value;
             static void checker(void) { if (ready) use(atomic_load(pointer)); }
             static void changer(void) { pointer = NULL; ready = 1; pointer = &value; }",
        ),
        (
            "abort",
            "expect signal 6",
            StepKind::Read,
            "static int ready, flag;
             static void checker(void) { if (ready && flag) abort(); }
             static void changer(void) { flag = 1; ready = 1; flag = 0; }",
        ),
        (
            "exit",
            "expect exit 3",
            StepKind::Read,
            "static int ready, flag;
             static void checker(void) { if (ready && flag) exit(3); }
             static void changer(void) { flag = 1; ready = 1; flag = 0; }",
        ),
        (
            "_exit",
            "expect exit 3",
            StepKind::Read,
            "static int ready, flag;
             static void checker(void) { if (ready && flag) _exit(3); }
             static void changer(void) { flag = 1; ready = 1; flag = 0; }",
        ),
    ];
    for (name, word, last, text) in programs {
        let text = format!("{text}\nint main(void) {{ RUN(checker, changer); return 0; }}");
        let program = build_text(folder.path(), name, &text);
        let kept = folder.path().join("kept");
        run(raddle()
            .args(["explore", "--strategy", "random", "--visible", "all", "--runs", "300", "--keep"])
            .arg(&kept)
            .arg("--")
            .arg(&program));
        let schedule = kept_schedules(&kept)
            .into_iter()
            .find(|path| std::fs::read_to_string(path).unwrap().contains(word))
            .unwrap_or_else(|| panic!("{name}: no schedule with `{word}`"));
        let kept_text = std::fs::read_to_string(&schedule).unwrap();
        let parsed = raddle_trace::schedule::Schedule::parse(&kept_text).unwrap();
        assert_eq!(parsed.steps.last().map(|step| step.kind), Some(last), "{name}: {kept_text}");
        shown_again(&schedule, &program, 20);
        std::fs::remove_dir_all(&kept).unwrap();
    }
}

/// A handler begins in its thread's turn, in runs with a seed as well, and a kept schedule says when.
#[test]
fn a_handler_begins_when_the_schedule_says() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        #include <signal.h>
        #include <stdatomic.h>
        static atomic_int ready, work;
        static volatile sig_atomic_t got;
        static void handler(int number) { got = number; }
        static void target(void) {
            atomic_store(&ready, 1);
            for (int i = 0; i < 3; i++) atomic_fetch_add(&work, 1);
            if (got && atomic_load(&work) == 2) abort();
            while (atomic_load(&work) != 4) sched_yield();
        }
        int main(void) {
            signal(SIGUSR1, handler);
            pthread_t thread = start(target);
            while (!atomic_load(&ready)) sched_yield();
            atomic_fetch_sub(&work, 1);
            pthread_kill(thread, SIGUSR1);
            atomic_fetch_add(&work, 2);
            finish(thread);
        }"#;
    let program = build_text(folder.path(), "handler", text);
    let kept = folder.path().join("kept");
    let mut explore = raddle();
    explore
        .args(["-q", "explore", "--strategy", "random", "--runs", "400", "--first", "--keep"])
        .arg(&kept)
        .arg("--");
    assert_eq!(run(explore.arg(&program)).status.code(), Some(1), "some order lets it abort");
    let schedule = kept_schedules(&kept).into_iter().next().expect("a schedule was kept");
    let kept = std::fs::read_to_string(&schedule).unwrap();
    assert!(kept.contains("expect signal 6 at ") && kept.contains(" handler"), "{kept}");
    shown_again(&schedule, &program, 5);
}

/// What freed memory holds is the C library's secret and another one in every process, unless memory is stable: then a seed decides
/// here too, and the kept schedule remembers that it was so.
#[test]
fn a_seed_decides_what_freed_memory_holds() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        static void *block;
        static void frees(void) { free(block); }
        int main(void) {
            block = malloc(64);
            ((unsigned char *)block)[8] = 0;
            RUN(frees);
            unsigned char found = ((volatile unsigned char *)block)[8];
            void *other = malloc(64);
            printf("%d\n", found);
            return 3 + (other == block);
        }"#;
    let program = build_text(folder.path(), "freed", text);
    let options = ["--runs", "6", "--same-seed", "--stable-memory"];
    let forked = explore(folder.path(), &program, &options);
    assert_eq!(forked.keys().collect::<Vec<_>>(), [r#"{"exit":3} "0\n""#], "a thread keeps what it frees");
    let started: Vec<&str> = options.into_iter().chain(["--exec"]).collect();
    assert_eq!(forked, explore(folder.path(), &program, &started));
    let kept = folder.path().join("kept");
    let mut explore = raddle();
    explore
        .args(["-q", "explore", "--strategy", "random", "--runs", "1", "--stable-memory", "--keep"])
        .arg(&kept);
    assert_eq!(run(explore.arg("--").arg(&program)).status.code(), Some(1), "the status is an error");
    let schedule = kept_schedules(&kept).into_iter().next().expect("a schedule was kept");
    assert!(std::fs::read_to_string(&schedule).unwrap().contains(" stable-memory"));
    shown_again(&schedule, &program, 5);
}

/// System calls, epoll, pipes, time, random numbers and signals: recorded and given again.
#[test]
fn demos_are_given_again() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["epoll_server", "pipe_ping_pong", "poll_select", "scatter", "signal_driven", "time_random"] {
        let program = build(folder.path(), &format!("replay/{name}"));
        for strategy in ["queue", "random"] {
            let demo = folder.path().join(format!("{name}.{strategy}.demo"));
            succeed(
                raddle()
                    .args(["-q", "record", "--demo", "--strategy", strategy, "-o"])
                    .arg(&demo)
                    .arg("--")
                    .arg(&program),
            );
            let repeat = cases(3).max(2).to_string();
            let output = run(raddle().args(["replay", "--repeat", &repeat]).arg(&demo));
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                text.contains(&format!("the same in {repeat} of {repeat} runs")),
                "{name} under {strategy}: {text}"
            );
        }
    }
}

/// Functions that a demo leaves out are called again: time goes on, and the replay is no longer the same.
#[test]
fn a_demo_holds_the_functions_that_it_is_told_to() {
    let folder = common::folder(&[(
        "now.c",
        "#define _GNU_SOURCE\n#include <stdio.h>\n#include <sys/random.h>\n#include <time.h>\n\
         int main(void) { struct timespec t; unsigned long r = 0; clock_gettime(CLOCK_MONOTONIC, &t);\n\
         getrandom(&r, sizeof r, 0); printf(\"%ld %lu\\n\", t.tv_nsec, r); return 0; }\n",
    )]);
    let program = folder.path().join("now");
    succeed(raddle().args(["cc", "-O1"]).arg(folder.path().join("now.c")).arg("-o").arg(&program));
    let recorded = |options: &[&str]| -> (String, std::process::Output) {
        let demo = folder.path().join("now.demo");
        let printed = succeed(
            raddle()
                .args(["-q", "record", "--demo"])
                .args(options)
                .arg("-o")
                .arg(&demo)
                .arg("--")
                .arg(&program),
        );
        (printed, run(raddle().arg("replay").arg(&demo)))
    };
    let (printed, replayed) = recorded(&[]);
    assert_eq!(String::from_utf8_lossy(&replayed.stdout), printed);
    let (printed, replayed) = recorded(&["--no-calls", "getrandom"]);
    let (was, is) = (printed, String::from_utf8_lossy(&replayed.stdout).into_owned());
    assert_eq!(was.split(' ').next(), is.split(' ').next(), "the time is held");
    assert_ne!(was, is, "random numbers are not");
    assert!(String::from_utf8_lossy(&replayed.stderr).contains("soft desynchronisation"));
    let (was, replayed) = recorded(&["--calls", "getrandom"]);
    let is = String::from_utf8_lossy(&replayed.stdout).into_owned();
    assert_eq!(was.split(' ').nth(1), is.split(' ').nth(1), "random numbers are held");
    assert_ne!(was, is, "the time is not");
    let text = common::refused(
        raddle()
            .args(["record", "--demo", "--no-calls", "fly", "--"])
            .arg(&program)
            .current_dir(folder.path()),
    );
    assert!(text.contains("`fly`"), "{text}");
}

/// A demo of another program cannot be enforced, and says so.
#[test]
fn a_demo_of_another_program_desynchronises() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) =
        (build(folder.path(), "replay/time_random"), build(folder.path(), "replay/pipe_ping_pong"));
    let demo = folder.path().join("one.demo");
    succeed(raddle().args(["-q", "record", "--demo", "-o"]).arg(&demo).arg("--").arg(&one));
    let output = run(raddle().arg("replay").arg(&demo).arg("--").arg(&other));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("hard desynchronisation"), "{text}");
}

#[test]
fn a_run_that_takes_too_long_says_where_its_threads_are() {
    let folder = common::folder(&[(
        "stuck.c",
        "#include <pthread.h>\n#include <unistd.h>\n\
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;\n\
         static void *f(void *a) { pthread_mutex_lock(&m); for (;;) sched_yield(); return a; }\n\
         int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); return 0; }\n",
    )]);
    let program = folder.path().join("stuck");
    succeed(
        raddle()
            .args(["cc", "-pthread", "-D_GNU_SOURCE", "-include", "sched.h"])
            .arg(folder.path().join("stuck.c"))
            .arg("-o")
            .arg(&program),
    );
    let outcomes = explore(folder.path(), &program, &["--runs", "1", "--timeout", "1"]);
    let text = format!("{outcomes:?}");
    assert!(text.contains("timed-out"), "{text}");
}
