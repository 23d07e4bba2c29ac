//! `raddle cc` and `raddle c++` are drop-in for gcc and clang.

mod common;

use common::{compilers, count, events, folder, raddle, refused, run, succeed};
use raddle_trace::Op;
use std::path::Path;
use std::process::Command;

const TWO_THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
int counter;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *unused) {
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, NULL, work, NULL);
    pthread_create(&b, NULL, work, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    printf("%d\n", counter);
    return 0;
}
"#;

fn cc(compiler: &str, folder: &Path) -> Command {
    let mut command = raddle();
    command.arg("cc").env("RADDLE_CC", compiler).current_dir(folder);
    command
}

/// Records `./program` and returns how many writes and locks the trace has.
fn record(folder: &Path) -> (usize, usize) {
    let trace = folder.join("t.trace");
    let output =
        succeed(raddle().args(["record", "-q", "-o", "t.trace", "--", "./program"]).current_dir(folder));
    assert_eq!(output, "20\n");
    let events = events(&trace);
    (count(&events, |op| matches!(op, Op::Write { .. })), count(&events, |op| matches!(op, Op::Lock { .. })))
}

#[test]
fn one_step_and_two_steps_and_link_time_optimisation() {
    for compiler in compilers() {
        for flags in [&["-O0"][..], &["-O2"], &["-O2", "-flto"]] {
            let folder = folder(&[("a.c", TWO_THREADS)]);
            let folder = folder.path();
            succeed(cc(&compiler, folder).args(flags).args(["-pthread", "a.c", "-o", "program"]));
            let one_step = record(folder);
            succeed(cc(&compiler, folder).args(flags).args(["-c", "a.c", "-o", "a.o"]));
            succeed(cc(&compiler, folder).args(flags).args(["a.o", "-pthread", "-o", "program"]));
            assert_eq!(record(folder), one_step, "{compiler} {flags:?}");
            assert!(one_step.0 >= 2 && one_step.1 == 20, "{compiler} {flags:?}: {one_step:?}");
        }
    }
}

#[test]
fn shared_runtime() {
    for compiler in compilers() {
        let folder = folder(&[("a.c", TWO_THREADS)]);
        let mut command = cc(&compiler, folder.path());
        succeed(command.env("RADDLE_LINK", "shared").args([
            "-Wl,--as-needed",
            "-pthread",
            "a.c",
            "-o",
            "program",
        ]));
        assert_eq!(record(folder.path()).1, 20);
        let mut command = cc(&compiler, folder.path());
        assert!(refused(command.env("RADDLE_LINK", "sideways").arg("a.c")).contains("RADDLE_LINK"));
    }
}

#[test]
fn questions_are_answered_by_the_compiler() {
    for compiler in compilers() {
        let folder = folder(&[("a.c", "int x;\n"), ("args", "-c a.c -o from-file.o")]);
        for question in [
            &["--version"][..],
            &["-dumpmachine"],
            &["-dumpversion"],
            &["-print-prog-name=ld"],
            &["-print-search-dirs"],
            &["-print-file-name=libc.so"],
        ] {
            let ours = succeed(cc(&compiler, folder.path()).args(question));
            let its = succeed(Command::new(&compiler).args(question));
            assert_eq!(ours, its, "{compiler} {question:?}");
        }
        // `-v` alone answers on standard error.
        assert!(
            String::from_utf8_lossy(&run(cc(&compiler, folder.path()).arg("-v")).stderr).contains("version")
        );
        let dry = run(cc(&compiler, folder.path()).args(["-###", "-c", "a.c"]));
        assert!(dry.status.success() && String::from_utf8_lossy(&dry.stderr).contains("a.c"));
        assert!(!folder.path().join("a.o").exists());
    }
}

#[test]
fn every_stage() {
    for compiler in compilers() {
        let folder = folder(&[
            ("a.c", "#include \"h.h\"\nint f(int *p) { return *p + H; }\n"),
            ("h.h", "#define H 4\n"),
            ("b.s", ".globl b\nb: ret\n.section .note.GNU-stack,\"\",@progbits\n"),
            ("c.S", "#define NAME c\n.globl NAME\nNAME: ret\n.section .note.GNU-stack,\"\",@progbits\n"),
            ("args", "-c a.c -o \"from file.o\""),
        ]);
        let at = |name: &str| folder.path().join(name);
        let cc = || {
            let mut command = cc(&compiler, folder.path());
            command.args(["-Wall", "-Werror"]);
            command
        };
        assert!(succeed(cc().args(["-E", "a.c"])).contains("*p + 4"));
        assert!(succeed(cc().args(["-E", "-dM", "-x", "c", "/dev/null"])).contains("#define __STDC__ 1"));
        assert!(succeed(cc().args(["-S", "a.c", "-o", "-"])).contains("__tsan_read4"));
        assert!(succeed(cc().args(["-M", "a.c"])).contains("h.h"));
        assert!(succeed(cc().args(["-MM", "a.c"])).starts_with("a.o: a.c h.h"));
        succeed(cc().args(["-MMD", "-MF", "a.d", "-c", "a.c"]));
        assert!(std::fs::read_to_string(at("a.d")).unwrap().contains("h.h"));
        succeed(cc().args(["-fsyntax-only", "a.c"]));
        succeed(cc().args(["-c", "b.s"]));
        succeed(cc().args(["-c", "c.S"]));
        succeed(cc().arg("@args"));
        assert!(at("from file.o").exists());
        succeed(cc().args(["-r", "-nostdlib", "a.o", "b.o", "-o", "whole.o"]));
        let symbols =
            String::from_utf8_lossy(&run(Command::new("nm").arg(at("whole.o"))).stdout).into_owned();
        assert!(symbols.contains("U __tsan_read4"), "no runtime in a relocatable object:\n{symbols}");
        succeed(cc().args(["-x", "c-header", "h.h", "-o", "h.pch"]));
        let mut piped = cc();
        piped.args(["-x", "c", "-c", "-o", "piped.o", "-"]).stdin(std::fs::File::open(at("h.h")).unwrap());
        succeed(piped.arg("-Wno-empty-translation-unit"));
    }
}

#[test]
fn errors_of_the_compiler_pass_through() {
    for compiler in compilers() {
        let folder = folder(&[("bad.c", "int main(void) { return missing; }\n")]);
        let ours = run(cc(&compiler, folder.path()).args(["-c", "bad.c"]));
        let its = run(Command::new(&compiler).args(["-c", "bad.c"]).current_dir(folder.path()));
        assert_eq!(ours.status.code(), its.status.code());
        assert!(String::from_utf8_lossy(&ours.stderr).contains("missing"));
        // A flag nobody knows is the compiler's business too.
        assert!(!run(cc(&compiler, folder.path()).args(["-c", "bad.c", "--no-such-flag"])).status.success());
    }
}

#[test]
fn debug_information_unless_refused() {
    for compiler in compilers() {
        let folder = folder(&[("a.c", "int f(int *p) { return *p; }\n")]);
        let sections = |flags: &[&str]| {
            succeed(cc(&compiler, folder.path()).args(flags).args(["-c", "a.c", "-o", "a.o"]));
            succeed(Command::new("readelf").args(["-S", "-W"]).arg(folder.path().join("a.o")))
        };
        assert!(sections(&[]).contains(".debug_info"));
        assert!(!sections(&["-g0"]).contains(".debug_info"));
    }
}

#[test]
fn shared_libraries_leave_the_runtime_to_the_program() {
    let library = "#include <pthread.h>\nint calls; void add(void) { calls++; }\n";
    let program = "#include <stdio.h>\n#include <pthread.h>\nextern int calls; void add(void);\n\
        static void *work(void *p) { add(); return p; }\n\
        int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_join(t, 0); printf(\"%d\\n\", calls + 19); return 0; }\n";
    for compiler in compilers() {
        let folder = folder(&[("l.c", library), ("p.c", program)]);
        let folder = folder.path();
        for strictness in [&["-Wl,--no-undefined"][..], &["-Wl,-z,defs"], &[]] {
            let mut command = cc(&compiler, folder);
            succeed(command.args(["-shared", "-fPIC", "l.c", "-o", "libl.so"]).args(strictness));
        }
        let needed = succeed(Command::new("readelf").args(["-d", "-W"]).arg(folder.join("libl.so")));
        assert!(!needed.contains("tsan") && !needed.contains("raddle"), "{needed}");
        succeed(cc(&compiler, folder).args([
            "p.c",
            "-pthread",
            "-L.",
            "-ll",
            "-Wl,-rpath,$ORIGIN",
            "-o",
            "program",
        ]));
        assert!(record(folder).0 >= 1, "the write in the library is seen");
    }
}

#[test]
fn a_program_may_bring_its_own_versions_of_interposed_functions() {
    let program = "#include <stdio.h>\n#include <stddef.h>\n\
        void *memmove(void *to, const void *from, size_t n) { char *t = to; const char *f = from; while (n--) *t++ = *f++; return to; }\n\
        int main(void) { puts(\"20\"); return 0; }\n";
    for compiler in compilers() {
        let folder = folder(&[("a.c", program)]);
        succeed(cc(&compiler, folder.path()).args(["-fno-builtin", "a.c", "-o", "program"]));
        record(folder.path());
    }
}

#[test]
fn the_header_is_found() {
    for compiler in compilers() {
        let folder = folder(&[("a.c", "#include <raddle.h>\nint x;\n")]);
        succeed(cc(&compiler, folder.path()).args(["-Wall", "-Werror", "-c", "a.c"]));
    }
}

#[test]
fn what_cannot_work_is_refused_in_one_sentence() {
    for compiler in compilers() {
        let folder = folder(&[("a.c", TWO_THREADS)]);
        let refuse =
            |flags: &[&str]| refused(cc(&compiler, folder.path()).args(flags).args(["a.c", "-o", "program"]));
        assert!(refuse(&["-static"]).contains("without -static"));
        assert!(refuse(&["-static-pie"]).contains("-static-pie"));
        assert!(refuse(&["-fsanitize=address"]).contains("-fsanitize=address"));
    }
    let folder = folder(&[("a.c", TWO_THREADS)]);
    assert!(refused(cc("no-such-compiler", folder.path()).arg("a.c")).contains("no-such-compiler"));
    assert!(refused(cc(common::RADDLE, folder.path()).args(["cc", "a.c"])).contains("raddle itself"));
    let mut nothing = raddle();
    nothing.args(["cc", "a.c"]).env("PATH", "/nonexistent").current_dir(folder.path());
    assert!(refused(&mut nothing).contains("no C compiler"));
}

#[test]
fn a_sanitizer_left_on_the_link_line_does_no_harm() {
    for compiler in compilers() {
        let folder = folder(&[("a.c", TWO_THREADS), ("link", "-fsanitize=thread a.o")]);
        let folder = folder.path();
        let output =
            run(cc(&compiler, folder).args(["-fsanitize=thread", "-pthread", "a.c", "-o", "program"]));
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains("raddle: note: -fsanitize=thread"));
        assert_eq!(record(folder).1, 20);
        succeed(cc(&compiler, folder).args(["-c", "a.c"]));
        succeed(cc(&compiler, folder).args(["@link", "-pthread", "-o", "program"]));
        assert_eq!(record(folder).1, 20);
    }
}

#[test]
fn undefined_behaviour_checks_go_together_with_recording() {
    for compiler in compilers() {
        let folder = folder(&[("a.c", TWO_THREADS)]);
        let mut command = cc(&compiler, folder.path());
        let output = run(command.args(["-fsanitize=undefined", "-pthread", "a.c", "-o", "program"]));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(record(folder.path()).1, 20);
    }
}

#[test]
fn uninstrumented_files_are_left_alone() {
    for compiler in compilers() {
        let folder = folder(&[("a.c", "int f(int *p) { return *p; }\n")]);
        let text =
            succeed(cc(&compiler, folder.path()).args(["-fno-sanitize=thread", "-S", "a.c", "-o", "-"]));
        assert!(!text.contains("__tsan_read4"));
    }
}

#[test]
fn links_named_after_compilers_are_compilers() {
    let folder = folder(&[("a.cc", "int main() { return 0; }\n")]);
    let link = folder.path().join("raddle-c++");
    std::os::unix::fs::symlink(common::RADDLE, &link).unwrap();
    succeed(Command::new(&link).args(["-c", "a.cc"]).current_dir(folder.path()));
    assert!(folder.path().join("a.o").exists());
}

/// Functions that only operate on atomics, between plain accesses to a static variable.
const AROUND_ATOMICS: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
static int data;
static atomic_int published, seen;
static __attribute__((noinline)) void publish(atomic_int *what, int number) {
    atomic_store_explicit(what, number, memory_order_release);
}
static __attribute__((noinline)) void await(atomic_int *what, int number) {
    while (atomic_load_explicit(what, memory_order_acquire) < number) sched_yield();
}
static void *writer(void *unused) {
    data = 1;
    publish(&published, 1);
    await(&seen, 1);
    data = 2;
    publish(&published, 2);
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, writer, NULL);
    await(&published, 1);
    int first = data;
    publish(&seen, 1);
    await(&published, 2);
    int second = data;
    pthread_join(thread, NULL);
    printf("%d %d\n", first, second);
    return 0;
}
"#;

/// gcc 12 moves plain accesses across such functions, whose race would then be found in a program that has none.
#[test]
fn plain_accesses_stay_on_their_side_of_atomics() {
    for compiler in compilers() {
        for flags in [&["-O0"][..], &["-O2"], &["-O2", "-flto"]] {
            let folder = folder(&[("a.c", AROUND_ATOMICS)]);
            let folder = folder.path();
            succeed(cc(&compiler, folder).args(flags).args(["-pthread", "a.c", "-o", "program"]));
            let output = succeed(
                raddle().args(["record", "-q", "-o", "t.trace", "--", "./program"]).current_dir(folder),
            );
            assert_eq!(output, "1 2\n", "{compiler} {flags:?}");
        }
    }
}
