//! Objects of the kernel that order threads: what they order is seen online and in traces, and what they do not order is a race.

mod common;

use common::{folder, raddle, run, succeed};
use std::path::Path;

/// Programs of the corpus in which one object of the kernel orders everything.
const CORRECT: &[&str] = &[
    "sysv_semaphore",
    "sysv_messages",
    "posix_messages",
    "flock_lock",
    "fcntl_lock",
    "timerfd_turns",
    "signalfd_turns",
    "sigwait_turns",
    "pipe_token",
    "socketpair_turns",
    "eventfd_turns",
];

#[test]
fn correct_programs_have_no_finding_of_any_grade() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus");
    let folder = folder(&[]);
    for program in CORRECT {
        let source = corpus.join(format!("invisible/{program}.c"));
        let include = format!("-I{}", corpus.join("include").display());
        let mut compile = raddle();
        compile.args(["cc", "-g", "-O1", "-pthread", &include, &format!("-I{}", corpus.display())]);
        succeed(compile.arg(&source).args(["-o", program, "-lrt"]).current_dir(&folder));
        let program_path = format!("./{program}");
        let online = ["run", "--fail-on", "suspected", "--", &program_path];
        let output = run(raddle().args(online).current_dir(&folder));
        assert_eq!(output.status.code(), Some(0), "{program}: {output:?}");
        succeed(raddle().args(["record", "-o", "t", "--", &program_path]).current_dir(&folder));
        let detect = ["detect", "--all", "--fail-on", "suspected", "t"];
        let output = run(raddle().args(detect).current_dir(&folder));
        assert_eq!(output.status.code(), Some(0), "{program}: {output:?}");
    }
}

/// Locks of `fcntl` that belong to the process: both threads hold the lock at once.
const PROCESS_LOCK: &str = r#"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int file;
long counter;
static void *body(void *unused) {
    for (int i = 0; i < 50; i++) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        fcntl(file, F_SETLKW, &lock);
        counter++;
        lock.l_type = F_UNLCK;
        fcntl(file, F_SETLKW, &lock);
    }
    return unused;
}
int main(void) {
    file = open("lock", O_RDWR | O_CREAT, 0600);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, body, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    close(file);
    return file < 0;
}
"#;

/// What a thread does after it has raised a semaphore is ordered by nothing.
const AFTER_RAISING: &str = r#"
#include <pthread.h>
#include <sys/ipc.h>
#include <sys/sem.h>
static int set;
long value;
static void change(int by) {
    struct sembuf operation = {.sem_op = (short)by};
    semop(set, &operation, 1);
}
static void *raises(void *unused) {
    change(1);
    value++;
    return unused;
}
static void *lowers(void *unused) {
    change(-1);
    value++;
    return unused;
}
int main(void) {
    pthread_t threads[2];
    set = semget(IPC_PRIVATE, 1, 0600);
    pthread_create(&threads[0], 0, raises, 0);
    pthread_create(&threads[1], 0, lowers, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    semctl(set, 0, IPC_RMID);
    return 0;
}
"#;

#[test]
fn what_they_do_not_order_is_a_race() {
    let folder = folder(&[("process.c", PROCESS_LOCK), ("after.c", AFTER_RAISING)]);
    for program in ["process", "after"] {
        let compile = ["cc", "-g", "-pthread", &format!("{program}.c"), "-o", program];
        succeed(raddle().args(compile).current_dir(&folder));
        let program = format!("./{program}");
        let output = run(raddle().args(["run", "--", &program]).current_dir(&folder));
        assert_eq!(output.status.code(), Some(1), "{program}: {output:?}");
        let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("data race"), "{program}: {text}");
    }
}

/// Three threads hand a token round through a pipe, an event counter and a pair of sockets, and wait with `poll`, `select` and `epoll_wait`, now
/// for ever and now for a time, after which they wait again.
const WAITS_FOR_DESCRIPTORS: &str = r#"
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>
enum { ROUNDS = 20 };
static int ends[2], counter, pair[2], silent;
static void *polls(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        struct pollfd list[2] = {{.fd = ends[0], .events = POLLIN}, {.fd = -1}};
        char byte;
        int ready;
        while ((ready = poll(list, 2, i % 2 || silent ? -1 : 1000)) == 0) { }
        if (ready != 1 || read(ends[0], &byte, 1) != 1) puts("poll failed");
        eventfd_write(counter, 1);
    }
    return unused;
}
static void *selects(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        struct timeval time;
        fd_set set;
        eventfd_t value;
        int ready;
        do {
            time = (struct timeval){.tv_sec = 1};
            FD_ZERO(&set);
            FD_SET(counter, &set);
            ready = select(counter + 1, &set, 0, 0, i % 2 || silent ? 0 : &time);
        } while (ready == 0);
        if (ready != 1 || !FD_ISSET(counter, &set)) puts("select failed");
        if (eventfd_read(counter, &value) || write(pair[0], "x", 1) != 1) puts("counter failed");
    }
    return unused;
}
int main(int count, char **words) {
    pthread_t threads[2];
    struct epoll_event event = {.events = EPOLLIN}, seen;
    int watch = epoll_create1(0);
    silent = count > 1 && !strcmp(words[1], "silent");
    if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) return 2;
    counter = eventfd(0, 0);
    event.data.fd = pair[1];
    epoll_ctl(watch, EPOLL_CTL_ADD, pair[1], &event);
    pthread_create(&threads[0], 0, polls, 0);
    pthread_create(&threads[1], 0, selects, 0);
    for (int i = 0; i < ROUNDS; i++) {
        char byte = 'x';
        if (i != 7 || !silent) if (write(ends[1], &byte, 1) != 1) return 3;
        int ready;
        while ((ready = epoll_wait(watch, &seen, 1, i % 2 || silent ? -1 : 1000)) == 0) { }
        if (ready != 1 || seen.data.fd != pair[1]) puts("epoll failed");
        if (read(pair[1], &byte, 1) != 1) return 4;
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    struct pollfd nothing = {.fd = ends[0], .events = POLLIN};
    printf("%d %d\n", poll(&nothing, 1, 5), poll(&nothing, 1, 0));
    return 0;
}
"#;

fn explored(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = run(raddle().args(words).current_dir(folder));
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.code(), said.into_owned())
}

/// Whether a descriptor of the program's own is ready is known: no run of a seed differs, and who waits for what nobody will write is in a deadlock.
#[test]
fn waits_for_own_descriptors_are_operations() {
    let folder = folder(&[("waits.c", WAITS_FOR_DESCRIPTORS), ("expected", "0 0\n")]);
    succeed(raddle().args(["cc", "-g", "-pthread", "waits.c", "-o", "waits"]).current_dir(&folder));
    let native = succeed(std::process::Command::new("./waits").current_dir(&folder));
    assert_eq!(native, "0 0\n");
    for strategy in ["random", "round-robin", "pct:3"] {
        let base =
            ["explore", "--strategy", strategy, "--seed", "3", "--runs", "10", "--expect-output", "expected"];
        let (code, said) = explored(folder.path(), &[&base[..], &["--", "./waits"]].concat());
        assert_eq!(code, Some(0), "{strategy}: {said}");
        assert!(!said.contains("timed out") && !said.contains("deadlock"), "{strategy}: {said}");
        let (code, said) = explored(folder.path(), &[&base[..7], &["--", "./waits", "silent"]].concat());
        assert_eq!(code, Some(1), "{strategy}: {said}");
        assert!(said.contains("deadlock") || said.contains("blocked"), "{strategy}: {said}");
    }
}
