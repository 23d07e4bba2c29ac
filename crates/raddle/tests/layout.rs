//! A C library whose locks are laid out in another way is refused with a sentence, instead of being misread.

mod common;

use common::{folder, raddle, run, succeed, tool};
use std::process::Command;

const PROGRAM: &str = r#"
#include <pthread.h>
#include <stdio.h>
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int main(void) {
    pthread_mutex_lock(&m);
    puts("ran");
    pthread_mutex_unlock(&m);
}
"#;

/// Stands in for the C library's mutexes and keeps nothing where glibc does.
const OTHER_MUTEX: &str = "
#include <pthread.h>
int pthread_mutex_trylock(pthread_mutex_t *m) { return m ? 0 : 1; }
int pthread_mutex_unlock(pthread_mutex_t *m) { return m ? 0 : 1; }
";

/// The same for read-write locks.
const OTHER_RWLOCK: &str = "
#include <pthread.h>
int pthread_rwlock_trywrlock(pthread_rwlock_t *l) { return l ? 0 : 1; }
int pthread_rwlock_unlock(pthread_rwlock_t *l) { return l ? 0 : 1; }
";

#[test]
fn objects_that_are_laid_out_otherwise_are_refused() {
    let folder = folder(&[("ran.c", PROGRAM), ("mutex.c", OTHER_MUTEX), ("rwlock.c", OTHER_RWLOCK)]);
    succeed(raddle().args(["cc", "-g", "-pthread", "ran.c", "-o", "ran"]).current_dir(&folder));
    for (name, object) in [("mutex", "pthread_mutex_t"), ("rwlock", "pthread_rwlock_t")] {
        let (source, library) = (format!("{name}.c"), format!("lib{name}.so"));
        succeed(
            Command::new(tool("gcc"))
                .args(["-shared", "-fPIC", "-o", &library, &source])
                .current_dir(&folder),
        );
        let preload = folder.path().join(&library);
        let output =
            run(raddle().args(["run", "--", "./ran"]).env("LD_PRELOAD", &preload).current_dir(&folder));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("keeps what a {object} is in places")), "{said}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("ran"), "the program did not begin");
    }
    let output = run(raddle().args(["run", "--", "./ran"]).current_dir(&folder));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
