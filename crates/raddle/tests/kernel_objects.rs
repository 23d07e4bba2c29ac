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
