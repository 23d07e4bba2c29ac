//! Small programs, compiled here by gcc and clang, and what is found in them.
//!
//! A shared library that is compiled with `-fsanitize=thread` and linked without a runtime has open references to the compilers' hooks, which
//! is all that makes a rebuilt module: no runtime is needed to look into one.

use raddle_probe::visibility::{Cause, CodeAddress, Kind, Party, Place, Standing, Strength, Visibility};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn compilers() -> Vec<&'static str> {
    let clang = ["clang", "clang-22", "clang-19", "clang-16", "clang-14"];
    let works = |name: &&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    let found = clang.into_iter().find(works);
    ["gcc"].into_iter().filter(works).chain(found).collect()
}

struct Built {
    _folder: TempDir,
    path: PathBuf,
}

const REBUILT: &[&str] = &["-fsanitize=thread"];
const PLAIN: &[&str] = &[];

/// Compiles C to a shared library.
fn build(compiler: &str, source: &str, flags: &[&str]) -> Built {
    let folder = tempfile::tempdir().unwrap();
    let (file, path) = (folder.path().join("x.c"), folder.path().join("libx.so"));
    std::fs::write(&file, source).unwrap();
    let output = Command::new(compiler)
        .args(["-g", "-shared", "-fPIC", "-nodefaultlibs", "-Wl,--unresolved-symbols=ignore-all"])
        .args(flags)
        .arg(&file)
        .arg("-o")
        .arg(&path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    Built { _folder: folder, path }
}

/// Kind, strength, function and line of each place, in a stable order.
fn told(places: &[Place]) -> Vec<String> {
    let mut told: Vec<String> = places
        .iter()
        .map(|place| {
            let kind = match place.kind {
                Kind::InlineAssembly => "assembly",
                Kind::FunctionNotInstrumented => "function",
                Kind::LibraryNotRebuilt => "library",
                Kind::KernelInterface(interface) => interface.name,
            };
            format!("{kind} {} {}", place.strength, place.function.as_deref().unwrap_or("-"))
        })
        .collect();
    told.sort();
    told.dedup();
    told
}

/// The same in what both compilers make, without and with optimisation.
fn check(source: &str, expected: &[&str]) {
    for compiler in compilers() {
        for level in ["-O0", "-O2"] {
            let built = build(compiler, source, &[REBUILT, &[level]].concat());
            let visibility = Visibility::read(&[&built.path]);
            assert_eq!(visibility.modules()[0].standing, Standing::Rebuilt);
            assert_eq!(told(&visibility.places()), expected, "{compiler} {level}");
        }
    }
}

const VISIBLE: &str = r#"
#include <stdarg.h>
struct pair { long a, b; char text[40]; };
int shared, table[64];
_Thread_local int own;
static const int squares[] = {0, 1, 4, 9};
struct pair global;
long atomic_one(long *p) { return __atomic_add_fetch(p, 1, __ATOMIC_SEQ_CST); }
int spin(int *p) { while (__atomic_exchange_n(p, 1, __ATOMIC_ACQUIRE)) __builtin_ia32_pause(); return shared; }
void fence(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
int plain(int i) { table[i]++; return table[i + 1]; }
int locals(int n) { int l[16]; for (int i = 0; i < 16; i++) l[i] = i * n; return l[n & 15] + l[3]; }
int constants(int n) { return squares[n & 3]; }
int jumps(int n) { switch (n) { case 0: return 3; case 1: return 77; case 2: return 1; case 3: return 9; case 4: return 6; case 5: return 12; } return n; }
int varying(int n, ...) { va_list l; va_start(l, n); int s = 0; while (n--) s += va_arg(l, int); va_end(l); return s; }
int *mine(void) { own++; return &own; }
int calls(int (*f)(int)) { return f(3) + locals(2); }
"#;

#[test]
fn rebuilt_code_has_no_places() {
    check(VISIBLE, &[]);
}

/// Neither compiler instruments the copy of a structure that is passed by value. gcc's hooks show all the same that the function was rebuilt.
#[test]
fn structures_passed_by_value_in_what_gcc_makes() {
    let source = "struct pair { long a, b; char text[40]; } global; long by_value(struct pair p); long copied(void) { return by_value(global); }";
    let built = build("gcc", source, REBUILT);
    assert_eq!(told(&Visibility::read(&[&built.path]).places()), [""; 0]);
}

#[test]
fn assembly_is_found() {
    check(
        r#"
int word, other;
void swap(int v) { __asm__ volatile("xchgl %0, %1" : "+r"(v), "+m"(word) : : "memory"); }
void add(void) { other++; __asm__ volatile("lock incl %0" : "+m"(word) : : "memory"); }
void fence(void) { other++; __asm__ volatile("mfence" : : : "memory"); }
long call(long n) { __asm__ volatile("syscall" : "+a"(n) : : "rcx", "r11", "memory"); return n + other; }
int registers(int a, int b) { __asm__("xchgl %0, %1" : "+r"(a), "+r"(b)); return a - b + other; }
void barrier(void) { other++; __asm__ volatile("" : : : "memory"); other++; }
unsigned long clock_now(void) { unsigned a, d; __asm__ volatile("lfence; rdtsc" : "=a"(a), "=d"(d)); return a + other; }
"#,
        &["assembly locked add", "assembly locked call", "assembly locked fence", "assembly locked swap"],
    );
}

#[test]
fn functions_that_are_not_instrumented_are_found() {
    check(
        r#"
int word; extern void other(void);
#define HIDDEN __attribute__((noinline, no_sanitize("thread")))
HIDDEN void put(int *p) { *(volatile int *)p = 0; }
HIDDEN int get(void) { return *(volatile int *)&word; }
HIDDEN void wait(void) { while (*(volatile int *)&word) __builtin_ia32_pause(); }
HIDDEN int calling(int *p) { other(); return *(volatile int *)p; }
HIDDEN int computing(int a) { int l[4] = {a, 1, 2, 3}; return l[a & 3]; }
int normal(void) { return word; }
"#,
        &["function locked wait", "function plain calling", "function plain get", "function plain put"],
    );
}

#[test]
fn kernel_interfaces_are_found_where_they_can_order() {
    let source = r#"
typedef unsigned long size_t; typedef long ssize_t;
int shared;
ssize_t read(int, void *, size_t); ssize_t write(int, const void *, size_t); int pipe(int *); int kill(int, int);
long syscall(long, ...); int fcntl(int, int, ...); int sigwait(void *, int *);
void reads(void) { char b; shared += read(0, &b, 1); }
void writes(void) { char b = 0; shared += write(1, &b, 1); }
void signals(void) { shared += kill(shared, 10); }
void waits(void *s) { int n; shared += sigwait(s, &n); }
void futexes(void) { shared += syscall(202, &shared, 0); }
void membarrier(void) { shared += syscall(324, 0); }
void flags(void) { shared += fcntl(0, 4, 2048); }
void locks(void *l) { shared += fcntl(0, 6, l); }
"#;
    let always =
        ["fcntl locked locks", "kill locked signals", "sigwait locked waits", "syscall locked membarrier"];
    check(source, &always);
    let with_pipe = format!("{source}\nvoid make(int *ends) {{ shared += pipe(ends); }}\n");
    check(
        &with_pipe,
        &[
            "fcntl locked locks",
            "kill locked signals",
            "read locked reads",
            "sigwait locked waits",
            "syscall locked membarrier",
            "write locked writes",
        ],
    );
}

#[test]
fn libraries_that_were_not_rebuilt_are_ranked() {
    let plain = "int x; int get(void) { return x; } void put(int v) { x = v; }";
    let locked = "int x; int add(void) { return __atomic_add_fetch(&x, 1, __ATOMIC_SEQ_CST); }";
    for compiler in compilers() {
        for (source, strength) in [(plain, Strength::Plain), (locked, Strength::Locked)] {
            let built = build(compiler, source, &[PLAIN, &["-Wl,-soname,libother.so.3"]].concat());
            let places = Visibility::read(&[&built.path]).places();
            assert_eq!(
                (places.len(), places[0].kind, places[0].strength),
                (1, Kind::LibraryNotRebuilt, strength)
            );
            assert_eq!(places[0].module_name, "libother.so.3");
        }
        let runtime = build(compiler, locked, &[PLAIN, &["-Wl,-soname,libstdc++.so.6"]].concat());
        assert_eq!(Visibility::read(&[&runtime.path]).places(), []);
    }
}

const GRAPH: &str = r#"
typedef void *(*body)(void *);
int pthread_create(void *, void *, body, void *);
void qsort(void *, unsigned long, unsigned long, int (*)(const void *, const void *));
int word, shared;
void lock(void) { int v = 1; __asm__ volatile("xchgl %0, %1" : "+r"(v), "+m"(word) : : "memory"); }
static void *starts_lock(void *a) { lock(); shared++; return a; }
void *direct(void *a) { lock(); shared++; return a; }
void *indirect(void *a) { shared++; ((void (*)(void))a)(); shared++; return a; }
void *nothing(void *a) { shared++; return a; }
int compare(const void *a, const void *b) { lock(); return *(int *)a - *(int *)b; }
void sorts(int *a) { qsort(a, 4, 4, compare); shared++; }
void creates(void *t) { pthread_create(t, 0, starts_lock, 0); shared++; }
void *through(void *a) { shared++; direct(a); shared++; return a; }
"#;

#[test]
fn reaching_follows_calls_pointers_and_callbacks() {
    for compiler in compilers() {
        for level in ["-O0", "-O2"] {
            let built = build(compiler, GRAPH, &[REBUILT, &[level]].concat());
            let visibility = Visibility::read(&[&built.path]);
            let reaches = |name: &str| visibility.could_reach_named(&built.path, name).is_some();
            for name in ["direct", "indirect", "sorts", "through"] {
                assert!(reaches(name), "{compiler} {level}: {name} can run the lock");
            }
            for name in ["nothing", "creates"] {
                assert!(!reaches(name), "{compiler} {level}: {name} cannot run the lock");
            }
            let place = visibility.could_reach_named(&built.path, "direct").unwrap();
            let line = GRAPH.lines().position(|line| line.starts_with("void lock")).unwrap() as u32 + 1;
            assert_eq!(place.source.map(|source| source.line), Some(line), "{compiler} {level}");
        }
    }
}

fn address(built: &Built, name: &str) -> CodeAddress {
    use object::{Object, ObjectSymbol};
    let bytes = std::fs::read(&built.path).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
    CodeAddress::new(&built.path, symbol.address())
}

fn party(entry: CodeAddress) -> Party {
    Party { entry: Some(entry), frames: Vec::new() }
}

#[test]
fn a_cause_needs_both_threads() {
    let built = build("gcc", GRAPH, REBUILT);
    let visibility = Visibility::read(&[&built.path]);
    let at = |name| party(address(&built, name));
    let cause = |a, b| visibility.cause([&at(a), &at(b)]);
    assert!(matches!(cause("direct", "through"), Some(Cause::Both(_))));
    assert!(matches!(cause("nothing", "direct"), Some(Cause::One { party: 1, .. })));
    assert_eq!(cause("nothing", "creates"), None);
}

#[test]
fn a_cause_in_a_library_needs_the_same_library() {
    let user = build(
        "gcc",
        "void use(void); int shared; void *body(void *a) { use(); shared++; return a; } void *idle(void *a) { shared++; return a; }",
        REBUILT,
    );
    let library = build(
        "gcc",
        "int x; void use(void) { __atomic_add_fetch(&x, 1, __ATOMIC_SEQ_CST); } void *runs(void *a) { use(); return a; }",
        PLAIN,
    );
    let visibility = Visibility::read(&[&user.path, &library.path]);
    // A thread of the library's own, whose only frame that Raddle keeps is the user's.
    let foreign = Party { entry: Some(address(&library, "runs")), frames: vec![address(&user, "idle")] };
    let cause = |a: &Party, b: &Party| visibility.cause([a, b]);
    let body = party(address(&user, "body"));
    match cause(&body, &foreign) {
        Some(Cause::Both(places)) => {
            assert!(places.iter().all(|place| place.kind == Kind::LibraryNotRebuilt))
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(cause(&body, &party(address(&user, "idle"))), None);
}

#[test]
fn a_cause_in_the_kernel_needs_a_sender_and_a_receiver() {
    let source = r#"
long read(int, void *, unsigned long); long write(int, const void *, unsigned long); int pipe(int *); int poll(void *, unsigned long, int); int flockfile(void *);
int shared;
void *reads(void *a) { char b; shared += read(0, &b, 1); return a; }
void *writes(void *a) { char b = 0; shared += write(1, &b, 1); return a; }
void *polls(void *a) { shared += poll(0, 0, 1); return a; }
void *locks(void *a) { shared += flockfile(a); return a; }
void make(int *ends) { shared += pipe(ends); }
"#;
    let built = build("gcc", source, REBUILT);
    let visibility = Visibility::read(&[&built.path]);
    let cause = |a, b| visibility.cause([&party(address(&built, a)), &party(address(&built, b))]).is_some();
    assert!(cause("polls", "writes") && cause("writes", "polls"));
    assert!(!cause("reads", "writes"), "the runtime follows pipes");
    assert!(!cause("writes", "writes") && !cause("locks", "writes"));
    assert!(cause("locks", "locks"));
}

#[test]
fn assembly_files_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let (file, path) = (folder.path().join("x.s"), folder.path().join("libx.so"));
    // A label without type or size, and a hook so that the module counts as rebuilt.
    let text = ".globl locked\n.text\nlocked: lock incl (%rdi)\n ret\n.globl hook\n.type hook,@function\nhook: call __tsan_read4@PLT\n ret\n.size hook,.-hook\n.section .note.GNU-stack\n";
    std::fs::write(&file, text).unwrap();
    let made = Command::new("gcc")
        .args(["-shared", "-nodefaultlibs"])
        .arg(&file)
        .arg("-o")
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    assert_eq!(told(&Visibility::read(&[&path]).places()), ["assembly locked locked"]);
}

#[test]
fn damaged_files_are_read_without_panic() {
    let built = build("gcc", &format!("{VISIBLE}\n{GRAPH}"), REBUILT);
    let bytes = std::fs::read(&built.path).unwrap();
    let path = PathBuf::from("damaged");
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    for round in 0..400 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + next(8) {
            // Headers and tables more often than code: half of the time within the first bytes of a table.
            let at = if next(2) == 0 { next(1024) } else { next(damaged.len()) };
            damaged[at] = next(256) as u8;
        }
        if round % 4 == 0 {
            damaged.truncate(next(bytes.len()));
        }
        let visibility = Visibility::of_bytes(&[(path.clone(), &damaged)]);
        let _ = (visibility.places(), visibility.could_reach(&CodeAddress::new(&path, next(1 << 16) as u64)));
    }
}

#[test]
fn files_that_are_not_there_are_reported() {
    let visibility = Visibility::read(&[Path::new("/nonexistent/program"), Path::new("[vdso]")]);
    assert_eq!(visibility.problems().len(), 1, "{:?}", visibility.problems());
    assert!(visibility.problems()[0].contains("/nonexistent/program"));
}
