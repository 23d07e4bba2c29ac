//! Programs compiled here, and where aspects apply in them: gcc, clang and rustc, without and with optimisation.

use raddle_probe::aspect::parse;
use raddle_probe::locate::{Located, Locator, Module};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn first_that_works(names: &[&'static str]) -> Option<&'static str> {
    let works = |name: &&&str| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    names.iter().find(works).copied()
}

fn compilers() -> Vec<&'static str> {
    [first_that_works(&["gcc"]), first_that_works(&["clang", "clang-22", "clang-19", "clang-16", "clang-14"])]
        .into_iter()
        .flatten()
        .collect()
}

struct Built {
    folder: TempDir,
    path: PathBuf,
}

fn build(compiler: &str, name: &str, source: &str, flags: &[&str]) -> Built {
    let folder = tempfile::tempdir().unwrap();
    let (file, path) = (folder.path().join(name), folder.path().join("program"));
    std::fs::write(&file, source).unwrap();
    let output = Command::new(compiler)
        .args(flags)
        .arg(&file)
        .arg("-o")
        .arg(&path)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    Built { folder, path }
}

fn locate(paths: &[&Path], aspect: &str) -> Located {
    let modules: Vec<Module> = paths.iter().map(|path| Module::open(path).unwrap()).collect();
    let parsed = parse(aspect);
    assert_eq!(parsed.diagnostics, [], "{aspect}");
    Locator::new(&modules).locate(parsed.file.aspects().next().unwrap())
}

/// What is at each place and in which function, sorted.
fn told(located: &Located) -> Vec<String> {
    let mut told: Vec<String> = located
        .places
        .iter()
        .map(|place| match &place.within {
            Some(within) => format!("{} in {within}", place.what),
            None => place.what.clone(),
        })
        .collect();
    told.sort();
    told
}

const C: &str = r#"
#include <stdio.h>
#include <stdlib.h>
struct node { int key; struct node *next; };
struct pool { long count; struct node *head; struct node nodes[4]; } pool;
typedef struct pool alias;
alias other;
static volatile int calls;
__attribute__((noinline)) int add(int a, int b) { calls++; return a + b; }
__attribute__((noinline)) int twice(int a) { return add(a, a); }
static inline __attribute__((always_inline)) int small(int a) { return a + calls; }
int main(int argc, char **argv) {
    pool.count = add(argc, 1) + add(argc, 2);
    void *memory = malloc(argc); // HERE
    printf("%d %d %p\n", twice(argc), small(argc), memory);
    (void)argv;
    free(memory);
    return 0;
}
"#;

#[test]
fn calls_bodies_lines_and_globals_of_c() {
    for compiler in compilers() {
        for level in ["-O0", "-O1", "-O2"] {
            for how in [&["-g", level][..], &["-g", level, "-fno-plt"], &["-g", level, "-no-pie", "-fno-pie"]]
            {
                let built = build(compiler, "c.c", C, how);
                let check = |aspect: &str, expected: &[&str]| {
                    assert_eq!(
                        told(&locate(&[&built.path], aspect)),
                        expected,
                        "{compiler} {how:?}: {aspect}"
                    );
                };
                // `twice` ends in a tail call when it is optimised.
                check("a before call add", &["add in main", "add in main", "add in twice"]);
                check("a before call twice", &["twice in main"]);
                check("a before call malloc", &["malloc in main"]);
                check("a before call fre*", &["free in main"]);
                check("a before body add", &["add"]);
                check("a before body tw*", &["twice"]);
                let line = C.lines().position(|line| line.contains("HERE")).unwrap() + 1;
                let found = locate(&[&built.path], &format!("a before line c.c:{line}"));
                assert_eq!(found.places.len(), 1, "{compiler} {how:?}");
                assert_eq!(found.places[0].within.as_deref(), Some("main"));
                let extent = |path: &str| {
                    let found = locate(&[&built.path], &format!("a before read-global {path}"));
                    let [place] = &found.places[..] else { panic!("{compiler} {how:?} {path}: {found:?}") };
                    (place.address, place.bytes)
                };
                let (start, bytes) = extent("pool");
                assert_eq!(bytes, 80);
                assert_eq!(extent("pool.head"), (start + 8, 8));
                assert_eq!(extent("pool.nodes"), (start + 16, 64));
                assert_eq!(extent("pool.nodes[2]"), (start + 48, 16));
                assert_eq!(extent("pool.nodes[2].next"), (start + 56, 8));
                assert_eq!(extent("other.head").0, extent("other").0 + 8);
                assert_eq!(extent("calls").1, 4);
            }
        }
    }
}

#[test]
fn what_is_not_there_is_explained() {
    for compiler in compilers() {
        let built = build(compiler, "c.c", C, &["-g", "-O2"]);
        let bare = build(compiler, "c.c", C, &["-O2"]);
        let note = |path: &Path, aspect: &str| {
            let found = locate(&[path], aspect);
            let [note] = &found.notes[..] else { panic!("{aspect}: {found:?}") };
            (found.places.len(), note.message.clone(), note.help.clone())
        };
        let check = |path: &Path, aspect: &str, message: &str, help: &str| {
            let (places, told, advice) = note(path, aspect);
            assert_eq!((places, told.as_str()), (0, message), "{compiler} {aspect}");
            assert!(advice.contains(help), "{compiler} {aspect}: {advice}");
        };
        check(&built.path, "a before call twce", "nothing calls `twce`", "raddle aspects list");
        check(&built.path, "a before call Twice", "nothing calls `Twice`", "did you mean `twice`?");
        check(
            &built.path,
            "a before body nothing_like",
            "no function `nothing_like` is defined",
            "raddle aspects list",
        );
        check(
            &built.path,
            "a before body libz.so*!deflate",
            "the program loads no file `libz.so*` when it starts",
            "program",
        );
        check(&built.path, "a before read-global x", "no global `x` is known", "--globals");
        check(&built.path, "a before line c.c:1", "line 1 of c.c has no code of its own", "nearest line");
        check(&built.path, "a before line d.c:1", "no code comes from a file `d.c`", "`*`");
        check(
            &bare.path,
            "a before line c.c:12",
            "the program has no debug information, so no line is known",
            "-g",
        );
        check(&bare.path, "a before read-global pool.head", "no global `pool.head` is known", "-g");
        assert_eq!(locate(&[&bare.path], "a before read-global pool").places[0].bytes, 80);
        let (_, message, _) = note(&built.path, "a before read-global pool.tail");
        assert!(message.ends_with("there is no field `tail`; there are count, head, nodes"), "{message}");
        let found = locate(&[&built.path], "a before body small");
        let inlined = found.notes.iter().find(|note| note.message.contains("inlined")).expect("a note");
        let line = C.lines().position(|line| line.contains("small(argc)")).unwrap() + 1;
        assert!(inlined.message.contains(&format!("c.c:{line}")), "{compiler}: {}", inlined.message);
        assert!(inlined.help.contains("-fno-inline"));
    }
}

const CXX: &str = r#"
#include <stdexcept>
namespace store {
int level;
template <typename T> struct Queue {
    T items[8];
    int used = 0;
    __attribute__((noinline)) void push(T item) { if (used == 8) throw std::runtime_error("full"); items[used++] = item; }
    __attribute__((noinline)) Queue &operator--() { used--; return *this; }
};
}
int main(int argc, char **) {
    store::Queue<int> numbers;
    store::Queue<char> letters;
    numbers.push(argc);
    letters.push('a');
    --numbers;
    store::level = argc;
    return numbers.used;
}
"#;

#[test]
fn demangled_names_of_cxx() {
    for compiler in compilers() {
        let compiler =
            if compiler == "gcc" { "g++".to_owned() } else { compiler.replace("clang", "clang++") };
        for level in ["-O0", "-O2"] {
            let built = build(&compiler, "c.cc", CXX, &["-g", level]);
            let places = |aspect: &str| locate(&[&built.path], aspect).places.len();
            assert_eq!(places("a before body store::Queue<int>::push"), 1, "{compiler} {level}");
            assert_eq!(places("a before body store::Queue<*>::push"), 2);
            assert_eq!(places("a before body store::Queue<char>::push(char)"), 1);
            assert_eq!(places("a before call *::push"), 2);
            assert_eq!(places("a before body *::operator--"), 1);
            assert_eq!(places("a before write-global store::level"), 1);
            assert_eq!(places("a before body push"), 0);
        }
    }
}

const RUST: &str = r#"
#[inline(never)] fn work<T: std::fmt::Display>(value: T) -> usize { format!("{value}").len() }
mod inner { #[inline(never)] pub fn step(n: u64) -> u64 { std::hint::black_box(n) + 1 } }
fn main() { println!("{}", work(1u8) + work('x') + inner::step(3) as usize); }
"#;

#[test]
fn rust_binaries() {
    for level in ["0", "3"] {
        let built = build(
            "rustc",
            "main.rs",
            RUST,
            &["-g", "--edition=2024", "--crate-name=app", "-C", &format!("opt-level={level}")],
        );
        let places = |aspect: &str| locate(&[&built.path], aspect).places;
        assert_eq!(places("a before body app::inner::step").len(), 1, "{level}");
        assert_eq!(places("a before call app::inner::step").len(), 1, "{level}");
        let generic = places("a before body app::work*");
        assert_eq!(generic.len(), 2, "{level}: {generic:?}");
        assert_eq!(places("a before line main.rs:3").len(), 1, "{level}");
    }
}

/// A call of a library's function stands in the program; its body, in the library.
#[test]
fn functions_of_libraries() {
    for compiler in compilers() {
        let library = build(
            compiler,
            "x.c",
            "__attribute__((noinline)) int inner(int a) { return a; }\nint entry(int a) { return inner(a) + 1; }\n",
            &["-g", "-O2", "-fPIC", "-shared"],
        );
        let path = library.folder.path().join("libx.so");
        std::fs::rename(&library.path, &path).unwrap();
        let folder = format!("-L{}", library.folder.path().display());
        let program = build(
            compiler,
            "m.c",
            "int entry(int);\nint main(int n, char **v) { (void)v; return entry(n); }\n",
            &["-g", "-O2", &folder, "-Wl,--no-as-needed", "-lx"],
        );
        let both = [program.path.as_path(), path.as_path()];
        let modules = |aspect: &str| {
            let found = locate(&both, aspect);
            found.places.iter().map(|place| place.module).collect::<Vec<_>>()
        };
        assert_eq!(modules("a before body libx.so*!entry"), [1], "{compiler}");
        assert_eq!(modules("a before body entry"), [1], "{compiler}");
        assert_eq!(modules("a before body program!entry"), [] as [usize; 0], "{compiler}");
        assert_eq!(modules("a before call libx.so!entry"), [0], "{compiler}");
        assert_eq!(modules("a before call libz.so!entry"), [] as [usize; 0], "{compiler}");
    }
}

/// Every call of a name is found, as a slow twin finds it in what objdump prints.
#[test]
fn calls_as_objdump_shows_them() {
    for compiler in compilers() {
        for level in ["-O0", "-O2"] {
            let built = build(compiler, "c.c", C, &["-g", level]);
            let output =
                Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(&built.path).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            for name in ["add", "twice", "malloc", "free", "printf"] {
                let ends = [format!("<{name}>"), format!("<{name}@plt>")];
                let mut expected: Vec<u64> = text
                    .lines()
                    .filter(|line| ends.iter().any(|end| line.ends_with(end)) && line.contains("\t"))
                    .filter_map(|line| u64::from_str_radix(line.trim().split(':').next()?, 16).ok())
                    .collect();
                expected.sort();
                let found = locate(&[&built.path], &format!("a before call {name}"));
                let found: Vec<u64> = found.places.iter().map(|place| place.address).collect();
                assert_eq!(found, expected, "{compiler} {level} {name}");
            }
        }
    }
}

/// What debug information says about arguments may be anything; plans are made all the same.
#[test]
fn damaged_debug_information_is_read_without_panic() {
    let built = build("gcc", "c.c", C, &["-g", "-O2"]);
    let bytes = std::fs::read(&built.path).unwrap();
    let file = parse("a(#0, #1, #2, #return) after body *\nb(#0, *#1) before call add\n").file;
    let path = built.folder.path().join("damaged");
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut next = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below as u64) as usize
    };
    for _ in 0..150 {
        let mut damaged = bytes.clone();
        for _ in 0..1 + next(12) {
            let at = next(damaged.len());
            damaged[at] = next(256) as u8;
        }
        std::fs::write(&path, &damaged).unwrap();
        let modules = [Module::open(&path).unwrap()];
        let locator = Locator::new(&modules);
        let _ = raddle_probe::plan::plan(&file, &parse("").file, &modules, &locator).words.len();
    }
}
