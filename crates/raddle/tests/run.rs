//! `raddle run` from outside: options, misuse of locks, and programs that synchronise and fork without end.

mod common;

use common::{folder, raddle, succeed};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program, built once for a test.
struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    fn new(source: &str) -> Program {
        let folder = folder(&[("program.c", source)]);
        let at = |name: &str| folder.path().join(name);
        succeed(
            raddle().args(["cc", "-O1", "-g", "-pthread"]).arg(at("program.c")).arg("-o").arg(at("program")),
        );
        Program { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    fn file(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, contents).unwrap();
        path
    }

    fn run(&self, options: &str, arguments: &[&str]) -> Ran {
        let mut command = raddle();
        command.args(["run", "--output"]).arg(self.folder.path().join("findings.json"));
        command.args(arguments).arg("--").arg(self.path()).env("RADDLE_OPTIONS", options);
        Ran::new(&mut command, &self.folder.path().join("findings.json"))
    }
}

struct Ran {
    status: Option<i32>,
    stdout: String,
    stderr: String,
    /// Kinds of the findings.
    kinds: Vec<String>,
}

impl Ran {
    fn new(command: &mut Command, findings: &Path) -> Ran {
        let Output { status, stdout, stderr } = common::run(command);
        let text = std::fs::read_to_string(findings).unwrap_or_default();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let kinds = json["findings"].as_array().into_iter().flatten();
        Ran {
            status: status.code(),
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            stderr: String::from_utf8_lossy(&stderr).into_owned(),
            kinds: kinds.filter_map(|finding| finding["kind"].as_str().map(str::to_owned)).collect(),
        }
    }

    #[track_caller]
    fn expect(&self, status: i32, kinds: &[&str]) {
        assert_eq!(self.status, Some(status), "{}", self.stderr);
        assert_eq!(self.kinds, kinds, "{}", self.stderr);
    }
}

const RACE: &str = r#"
#include <pthread.h>
#include <stdio.h>
static int shared;
static void *racy_body(void *unused) { shared++; return unused; }
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, racy_body, 0);
    pthread_create(&b, 0, racy_body, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    puts("end");
    return 0;
}
"#;

#[test]
fn a_race_is_found_and_the_options_change_what_is_done_about_it() {
    let program = Program::new(RACE);
    let plain = program.run("", &[]);
    plain.expect(1, &["data-race"]);
    assert_eq!(plain.stdout, "end\n");
    assert!(plain.stderr.contains("racy_body") && plain.stderr.contains("shared"), "{}", plain.stderr);

    program.run("exitcode=77", &[]).expect(77, &["data-race"]);
    let halted = program.run("halt_on_error=1", &[]);
    halted.expect(1, &["data-race"]);
    assert_eq!(halted.stdout, "", "the program ended at the first report");
    let silent = program.run("report_bugs=0", &[]);
    assert_eq!(silent.status, Some(0), "{}", silent.stderr);
    let misspelt = program.run("halt_on_eror=1", &[]);
    assert!(misspelt.stderr.contains("halt_on_eror"), "{}", misspelt.stderr);
    let known = program.run("io_sync=0", &[]);
    assert!(!known.stderr.contains("io_sync"), "{}", known.stderr);

    let file = program.file("race.supp", "# theirs\nrace:racy_body\n");
    let suppressed = program.run(&format!("suppressions={}", file.display()), &[]);
    suppressed.expect(0, &[]);
    assert!(suppressed.stderr.contains("1 suppressed"), "{}", suppressed.stderr);
    program.run("", &["--suppressions", &file.display().to_string()]).expect(0, &[]);
    let other = program.file("other.supp", "race:somebody_else\ndeadlock:racy_body\n");
    program.run("", &["--suppressions", &other.display().to_string()]).expect(1, &["data-race"]);
}

#[test]
fn a_steered_run_with_weak_behaviours_is_the_same_for_the_same_seed() {
    let program = Program::new(
        r#"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
static atomic_int x, y;
static void *writer(void *unused) {
    for (int i = 1; i < 100; i++) {
        atomic_store_explicit(&x, i, memory_order_relaxed);
        atomic_store_explicit(&y, i, memory_order_relaxed);
    }
    return unused;
}
static void *reader(void *unused) {
    for (int i = 0; i < 100; i++) {
        int a = atomic_load_explicit(&y, memory_order_relaxed);
        int b = atomic_load_explicit(&x, memory_order_relaxed);
        printf("%d %d\n", a, b);
    }
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, writer, 0);
    pthread_create(&b, 0, reader, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
"#,
    );
    let run = |seed: &str, weak: &str| {
        let ran = program.run("", &["--strategy", "random", "--seed", seed, weak]);
        ran.expect(0, &[]);
        ran.stdout
    };
    let first = run("1", "--weak");
    assert_eq!(first, run("1", "--weak"));
    assert_ne!(first, run("2", "--weak"));
    let overtaken = |text: &str| {
        text.lines().any(|line| {
            let (y, x) = line.split_once(' ').unwrap();
            x.parse::<i32>().unwrap() < y.parse::<i32>().unwrap()
        })
    };
    assert!(overtaken(&first), "an older x than y was read");
    for choice in ["--weak=uniform", "--weak=newest"] {
        assert!(overtaken(&run("1", choice)), "{choice}");
    }
    let strong = program.run("", &["--strategy", "random", "--seed", "1"]);
    assert!(!overtaken(&strong.stdout), "without --weak loads read the last store");
}

#[test]
fn misuse_of_locks_and_leaked_threads_are_told() {
    let cases = [
        ("unlock of what is not held", "pthread_mutex_unlock(&m);", "lock-misuse", "report_mutex_bugs=0"),
        (
            "destroyed while held",
            "pthread_mutex_lock(&m); pthread_mutex_destroy(&m);",
            "lock-misuse",
            "report_destroy_locked=0",
        ),
        (
            "read-unlock of what is not held",
            "pthread_rwlock_unlock(&r);",
            "lock-misuse",
            "report_mutex_bugs=0",
        ),
        ("two orders", "both(&m, &n); both(&n, &m);", "lock-order", "detect_deadlocks=0"),
        (
            "a leaked thread",
            "pthread_t t; pthread_create(&t, 0, body, 0); usleep(100000);",
            "thread-leak",
            "report_thread_leaks=0",
        ),
    ];
    for (what, statements, kind, off) in cases {
        // The two orders are taken by two threads, one after the other.
        let program = Program::new(&format!(
            r#"
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t r = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t *first, *second;
static void *body(void *unused) {{ return unused; }}
static void *nested(void *unused) {{
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
    return unused;
}}
static void both(pthread_mutex_t *a, pthread_mutex_t *b) {{
    pthread_t t;
    first = a;
    second = b;
    pthread_create(&t, 0, nested, 0);
    pthread_join(t, 0);
}}
int main(void) {{
    (void)body, (void)both, (void)m, (void)n, (void)r;
    {statements}
    return 0;
}}
"#
        ));
        let ran = program.run("", &[]);
        assert_eq!(ran.kinds, [kind], "{what}: {}", ran.stderr);
        // A lock order is only suspected: shown, and no failure.
        assert_eq!(ran.status, Some(i32::from(kind != "lock-order")), "{what}");
        let ran = program.run(off, &[]);
        assert_eq!((ran.status, ran.kinds.len()), (Some(0), 0), "{what} with {off}: {}", ran.stderr);
    }
}

/// More than 2^20 synchronisations: epochs and slots are used up many times, nothing is made up, and a race is still seen.
#[test]
fn clocks_go_on_for_more_than_a_million_synchronisations() {
    let program = Program::new(
        r#"
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long counter, shared;
static void *count(void *unused) {
    for (int i = 0; i < 300000; i++) {
        pthread_mutex_lock(&m);
        counter++;
        pthread_mutex_unlock(&m);
    }
    return unused;
}
static void *racy(void *unused) { shared++; return unused; }
static void twice(void *(*body)(void *)) {
    pthread_t a, b;
    pthread_create(&a, 0, body, 0);
    pthread_create(&b, 0, body, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
}
int main(int count_of_arguments, char **arguments) {
    twice(count);
    twice(count);
    if (count_of_arguments > 1) twice(racy);
    printf("%ld\n", counter);
    (void)arguments;
    return 0;
}
"#,
    );
    // Where the system is strict about memory, tables are kept in another way.
    for options in ["", "shared_tables=1"] {
        let clean = program.run(options, &[]);
        clean.expect(0, &[]);
        assert_eq!(clean.stdout, "1200000\n");
    }
    for options in ["", "shared_tables=1"] {
        let mut command = raddle();
        command.arg("run").arg("--").arg(program.path()).arg("race").env("RADDLE_OPTIONS", options);
        let output = common::run(&mut command);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("racy") && text.contains("1 finding"), "{text}");
    }
}

/// A thread that has used up its slot takes another one. Its history goes along: what it did under its old name is still
/// found, and going through many slots costs no memory.
#[test]
fn a_thread_that_changes_its_slot_keeps_its_history() {
    let program = Program::new(
        r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static volatile long shared;
static volatile long sections;
static void critical_sections(int count) {
    for (int i = 0; i < count; i++) {
        pthread_mutex_lock(&m);
        sections++;
        pthread_mutex_unlock(&m);
    }
}
static long resident(void) {
    long total = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &total, &pages) != 2) return -1;
    fclose(file);
    return pages * 4;
}
static void *early(void *unused) {
    /* A slot has 16,383 epochs. */
    critical_sections(16300);
    shared = 1;
    critical_sections(200);
    usleep(1000000);
    return unused;
}
static void *late(void *unused) {
    usleep(500000);
    shared = 2;
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, early, 0);
    pthread_create(&b, 0, late, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    long before = resident();
    critical_sections(600000);
    printf("%ld\n", resident() - before);
    return 0;
}
"#,
    );
    let ran = program.run("", &[]);
    ran.expect(1, &["data-race"]);
    assert!(ran.stderr.contains("early") && ran.stderr.contains("late"), "{}", ran.stderr);
    let grown: u64 = ran.stdout.trim().parse().unwrap();
    assert!(grown < 2048, "37 slots cost {grown} KiB");
}

/// A handler that interrupts a thread: the stack shows the program's functions and none of the runtime's.
#[test]
fn the_runtime_is_not_in_the_stack_of_a_signal_handler() {
    let program = Program::new(
        r#"
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static volatile int shared, begun;
static void handler(int number) { shared = number; }
static __attribute__((noinline)) void interrupted(void) {
    begun = 1;
    usleep(200000);
    raise(SIGUSR1);
    begun = 2;
}
static void *caller(void *unused) {
    interrupted();
    return begun ? unused : 0;
}
int main(void) {
    pthread_t thread;
    signal(SIGUSR1, handler);
    pthread_create(&thread, 0, caller, 0);
    shared = 1;
    pthread_join(thread, 0);
    return 0;
}
"#,
    );
    let ran = program.run("", &[]);
    ran.expect(1, &["data-race"]);
    assert!(ran.stderr.contains("#1 caller"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("raddle_rt"), "{}", ran.stderr);
}

/// More than 100,000 threads over a run, some joined at once and some in heaps.
#[test]
fn thread_slots_are_used_again_for_a_hundred_thousand_threads() {
    let program = Program::new(
        r#"
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static long counter, slots[8], shared;
static void *count(void *slot) {
    (*(long *)slot)++;
    pthread_mutex_lock(&m);
    counter++;
    pthread_mutex_unlock(&m);
    return 0;
}
static void *racy(void *unused) { shared++; return unused; }
int main(void) {
    pthread_t threads[8];
    for (int round = 0; round < 12501; round++) {
        for (int i = 0; i < 8; i++) pthread_create(&threads[i], 0, count, &slots[i]);
        for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
    }
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, racy, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%ld\n", counter);
    return 0;
}
"#,
    );
    let ran = program.run("", &[]);
    ran.expect(1, &["data-race"]);
    assert_eq!(ran.stdout, "100008\n");
    assert!(ran.stderr.contains("racy"), "{}", ran.stderr);
    assert!(ran.stderr.contains("100011 threads"), "{}", ran.stderr);
}

/// A program that hears of its reports and looks into them, as ThreadSanitizer's interface says.
#[test]
fn the_program_hears_of_its_reports() {
    let program = Program::new(
        r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
extern int __tsan_get_report_data(void *, const char **, int *, int *, int *, int *, int *, int *, int *, void **, unsigned long);
extern int __tsan_get_report_mop(void *, unsigned long, int *, void **, int *, int *, int *, void **, unsigned long);
extern int __tsan_get_report_loc(void *, unsigned long, const char **, void **, unsigned long *, unsigned long *, int *, int *, int *, void **, unsigned long);
extern int __tsan_get_report_mutex(void *, unsigned long, unsigned long *, void **, int *, void **, unsigned long);
extern int __tsan_get_report_thread(void *, unsigned long, int *, unsigned long *, int *, const char **, int *, void **, unsigned long);
extern int __tsan_get_report_unique_tid(void *, unsigned long, int *);
extern void *__tsan_get_current_report(void);
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static int *shared;
void __tsan_on_report(void *report) {
    const char *what, *type;
    int count, stacks, mops, locs, mutexes, threads, tids, size, write, atomic, tid, fd, suppressable, destroyed, running, parent;
    unsigned long id, start, bytes, os;
    const char *name;
    void *at, *trace[8];
    __tsan_get_report_data(report, &what, &count, &stacks, &mops, &locs, &mutexes, &threads, &tids, trace, 8);
    printf("%s, %d stacks, %d accesses, %d places, %d mutexes, %d threads\n", what, stacks, mops, locs, mutexes, tids);
    if (report != __tsan_get_current_report()) puts("another report");
    for (int i = 0; i < mops; i++) {
        __tsan_get_report_mop(report, i, &tid, &at, &size, &write, &atomic, trace, 8);
        printf("%s of %d at +%ld by one of us: %d, stack: %d\n", write ? "write" : "read", size, (long)((char *)at - (char *)shared), tid > 0, trace[0] != 0);
    }
    for (int i = 0; i < locs; i++) {
        __tsan_get_report_loc(report, i, &type, &at, &start, &bytes, &tid, &fd, &suppressable, trace, 8);
        printf("%s of %lu bytes, here: %d\n", type, bytes, (void *)start == shared);
    }
    for (int i = 0; i < mutexes; i++) {
        __tsan_get_report_mutex(report, i, &id, &at, &destroyed, trace, 8);
        printf("our mutex: %d\n", at == &m);
    }
    if (__tsan_get_report_mop(report, mops, &tid, &at, &size, &write, &atomic, trace, 8)) puts("too many");
    for (int i = 0; i < threads; i++) {
        __tsan_get_report_thread(report, i, &tid, &os, &running, &name, &parent, trace, 8);
        if (tid > 0 && parent != 0) puts("another parent");
    }
    if (!__tsan_get_report_unique_tid(report, 0, &tid)) puts("nobody");
    fflush(stdout);
}
static void *with_lock(void *unused) {
    pthread_mutex_lock(&m);
    shared[1] = 1;
    pthread_mutex_unlock(&m);
    return unused;
}
static void *without(void *unused) {
    usleep(100000);
    return (void *)(long)(shared[1] + (unused != 0));
}
int main(void) {
    pthread_t a, b;
    shared = malloc(8);
    pthread_create(&a, 0, with_lock, 0);
    pthread_create(&b, 0, without, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    free(shared);
    return 0;
}
"#,
    );
    let ran = program.run("", &[]);
    ran.expect(1, &["data-race"]);
    assert_eq!(
        ran.stdout,
        "data-race, 0 stacks, 2 accesses, 1 places, 1 mutexes, 2 threads\n\
         read of 4 at +4 by one of us: 1, stack: 1\n\
         write of 4 at +4 by one of us: 1, stack: 1\n\
         heap of 8 bytes, here: 1\n\
         our mutex: 1\n"
    );
}

/// Both threads come to memory that nobody has touched before, at about the same time.
#[test]
fn threads_that_begin_together_do_not_wipe_out_each_others_accesses() {
    let program = Program::new(RACE);
    for _ in 0..30 {
        program.run("", &[]).expect(1, &["data-race"]);
    }
}

#[test]
fn a_program_can_bring_its_own_options_and_suppressions() {
    let with = |functions: &str| Program::new(&format!("{RACE}\n{functions}"));
    let options =
        with("const char *__tsan_default_options(void) { return \"exitcode=55:halt_on_error=1\"; }");
    let ran = options.run("", &[]);
    ran.expect(55, &["data-race"]);
    assert_eq!(ran.stdout, "", "it ended at the first report");
    // The environment has the last word.
    let ran = options.run("halt_on_error=0", &[]);
    ran.expect(55, &["data-race"]);
    assert_eq!(ran.stdout, "end\n");

    let suppressions =
        with("const char *__tsan_default_suppressions(void) { return \"race:racy_body\\n\"; }");
    suppressions.run("", &[]).expect(0, &[]);
    let wrong = with("const char *__tsan_default_suppressions(void) { return \"nonsense\"; }").run("", &[]);
    wrong.expect(1, &["data-race"]);
    assert!(wrong.stderr.contains("__tsan_default_suppressions: line 1"), "{}", wrong.stderr);
}

/// The memory of the detector stays bounded, and a race after everything was forgotten is still found.
#[test]
fn a_memory_limit_forgets_accesses_and_nothing_else() {
    let program = Program::new(
        r#"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static char *large;
static int shared;
enum { BYTES = 32 << 20 };
static void *touch(void *unused) {
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < BYTES; i += 8) large[i] = (char)round;
    return unused;
}
static void *racy(void *unused) { shared++; return unused; }
int main(void) {
    pthread_t a, b;
    large = malloc(BYTES);
    pthread_create(&a, 0, touch, 0);
    pthread_join(a, 0);
    free(large);
    /* From here on little memory is used, once the last of what came before is forgotten. */
    usleep(700000);
    pthread_create(&a, 0, racy, 0);
    pthread_join(a, 0);
    pthread_create(&a, 0, racy, 0);
    pthread_create(&b, 0, racy, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
"#,
    );
    let limited = program.run("", &["--memory-limit", "40"]);
    limited.expect(1, &["data-race"]);
    assert!(limited.stderr.contains("accesses were forgotten"), "{}", limited.stderr);
    let other = program.run("memory_limit_mb=40", &[]);
    assert!(other.stderr.contains("accesses were forgotten"), "{}", other.stderr);
    let free = program.run("", &[]);
    free.expect(1, &["data-race"]);
    assert!(!free.stderr.contains("forgotten"), "{}", free.stderr);
}
