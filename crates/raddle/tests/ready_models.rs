//! Models that come with Raddle, on small programs of the libraries: what the library's locks protect is no race, what they do not protect
//! still is. A library that is not installed is left out; gcc brings libgomp.

mod common;

use common::{folder, raddle, run};
use std::path::Path;

const OPENMP: &str = r#"
#include <omp.h>
#include <stdio.h>
static int X;
int main(void) {
    int counter = 0, named = 0, locked = 0, phase[2] = {0, 0};
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel num_threads(2)
    {
#pragma omp critical
        counter++;
#pragma omp critical(other)
        named++;
        omp_set_lock(&lock);
        locked++;
        omp_unset_lock(&lock);
        phase[omp_get_thread_num()] = 1;
#pragma omp barrier
        if (phase[0] + phase[1] != 2) puts("wrong");
#ifdef RACY
        X++;
#endif
    }
    omp_destroy_lock(&lock);
    printf("%d %d %d\n", counter, named, locked);
    return 0;
}
"#;

const GLIB: &str = r#"
#include <glib.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static GMutex m, q;
static GCond ready;
static int c, item, full, X;
static void *first(void *a) {
#ifdef RACY
    X = 1;
#endif
    g_mutex_lock(&m), c++, g_mutex_unlock(&m);
    g_mutex_lock(&q);
    item = 7, full = 1;
    g_cond_signal(&ready);
    g_mutex_unlock(&q);
    return a;
}
static void *second(void *a) {
    g_mutex_lock(&q);
    while (!full) g_cond_wait(&ready, &q);
    item++;
    g_mutex_unlock(&q);
    return a;
}
static void *third(void *a) {
    usleep(60000);
    g_mutex_lock(&m), c++, g_mutex_unlock(&m);
#ifdef RACY
    X = 2;
#endif
    return a;
}
int main(void) {
    pthread_t t[3];
    pthread_create(&t[0], 0, second, 0);
    usleep(20000);
    pthread_create(&t[1], 0, first, 0);
    pthread_create(&t[2], 0, third, 0);
    for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
    printf("%d %d %d\n", c, item, X);
    return 0;
}
"#;

const URCU: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <urcu.h>
struct node { int value; };
static struct node *shared;
static int seen;
static void *reader(void *a) {
    rcu_register_thread();
    rcu_read_lock();
    struct node *n = rcu_dereference(shared);
    seen = n->value;
    rcu_read_unlock();
    rcu_unregister_thread();
    return a;
}
int main(void) {
    pthread_t t;
    shared = malloc(sizeof *shared);
    shared->value = 3;
    pthread_create(&t, 0, reader, 0);
    usleep(50000);
    struct node *old = shared, *new = malloc(sizeof *new);
    new->value = 4;
    rcu_assign_pointer(shared, new);
#ifndef RACY
    synchronize_rcu();
#endif
    old->value = 0;
    free(old);
    pthread_join(t, 0);
    printf("%d\n", seen);
    return 0;
}
"#;

/// How many errors a recorded run has in it, by prediction; `None` if the program cannot be built here.
fn predicted(folder: &Path, compiler: &str, source: &str, flags: &[&str], more: &[&str]) -> Option<usize> {
    let built = run(raddle()
        .current_dir(folder)
        .env("RADDLE_CC", compiler)
        .args(["cc", "-g", "-O0"])
        .args(["-pthread", source, "-o", "program"].iter().chain(flags)));
    if !built.status.success() {
        return None;
    }
    let mut record = raddle();
    record.current_dir(folder).args(["record", "-q", "-o", "t.trace"]).args(more).args(["--", "./program"]);
    let recorded = run(&mut record);
    let told = String::from_utf8_lossy(&recorded.stderr).into_owned();
    assert!(recorded.status.success() && !told.contains("warning"), "{source} {flags:?}: {told}");
    let output = run(raddle().current_dir(folder).args(["predict", "--json", "--all", "t.trace"]));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    Some(document["findings"].as_array().unwrap().len())
}

/// A right program and one with an error; with the models and without.
fn check(compiler: &str, source: &str, text: &str, flags: &[&str]) -> bool {
    let folder = folder(&[(source, text)]);
    let racy = [flags, &["-DRACY"]].concat();
    let Some(right) = predicted(folder.path(), compiler, source, flags, &[]) else { return false };
    assert_eq!(right, 0, "{compiler} {source}");
    let wrong = predicted(folder.path(), compiler, source, &racy, &[]);
    assert!(wrong.is_some_and(|wrong| wrong > 0), "{compiler} {source}: {wrong:?}");
    // Otherwise the test would show nothing.
    let without = predicted(folder.path(), compiler, source, flags, &["--no-ready-models"]);
    assert!(without.is_some_and(|without| without > 0), "{compiler} {source}: {without:?}");
    true
}

#[test]
fn the_runtime_of_gcc_for_openmp() {
    assert!(check("gcc", "openmp.c", OPENMP, &["-fopenmp"]), "gcc has libgomp");
}

/// Long enough not to end within its time: where the threads are is then asked at any moment, also when one says that it has taken the lock.
const CONTENDED: &str = r#"
int main(void) {
    long counter = 0;
#pragma omp parallel num_threads(4)
    for (long i = 0; i < 100000000; i++) {
#pragma omp critical
        counter++;
    }
    return counter == 0;
}
"#;

#[test]
fn a_modelled_lock_need_not_be_memory() {
    let folder = folder(&[("contended.c", CONTENDED)]);
    let built = run(raddle().current_dir(folder.path()).env("RADDLE_CC", "gcc").args([
        "cc",
        "-g",
        "-fopenmp",
        "contended.c",
        "-o",
        "program",
    ]));
    assert!(built.status.success());
    let mut explore = raddle();
    explore.current_dir(folder.path()).args(["explore", "-q", "--json", "--mode", "exec", "--timeout", "1"]);
    let output = run(explore.args(["--runs", "12", "--strategy", "random", "--", "./program"]));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["findings"].as_array().unwrap(), &Vec::<serde_json::Value>::new());
}

#[test]
fn libraries_that_may_be_installed() {
    if let Some(clang) = xtask::project::newest("clang") {
        check(&clang.display().to_string(), "openmp.c", OPENMP, &["-fopenmp"]);
    }
    let folders = ["-I/usr/include/glib-2.0", "-I/usr/lib/x86_64-linux-gnu/glib-2.0/include", "-lglib-2.0"];
    check("gcc", "glib.c", GLIB, &folders);
    check("gcc", "urcu.c", URCU, &["-lurcu", "-lurcu-common"]);
}
