//! Programs that call what sanitizers' public headers declare link and run, with both compilers.

mod common;

use common::{folder, raddle, run, succeed};

const PROGRAM: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
void __sanitizer_print_stack_trace(void);
void __sanitizer_set_death_callback(void (*)(void));
void __sanitizer_symbolize_pc(void *, const char *, char *, size_t);
uint16_t __sanitizer_unaligned_load16(const void *);
void __sanitizer_unaligned_store64(void *, uint64_t);
void __sanitizer_syscall_pre_impl_read(long, long, long);
void __sanitizer_syscall_post_impl_read(long, long, long, long);
void __sanitizer_syscall_post_impl_epoll_pwait(long, long, long, long, long, long, long);
void __sanitizer_cov_dump(void);
void __sanitizer_set_report_path(const char *);
size_t __sanitizer_get_allocated_size(const volatile void *);
int __sanitizer_acquire_crash_state(void);
static int guards;
/* A program's own function for coverage keeps its place. */
void __sanitizer_cov_trace_pc_guard(uint32_t *guard) { (void)guard; guards++; }
static void at_death(void) {}
int main(void) {
    char bytes[16] = {0}, name[64];
    __sanitizer_set_death_callback(at_death);
    __sanitizer_set_report_path("nowhere");
    __sanitizer_syscall_pre_impl_read(0, 0, 0);
    __sanitizer_syscall_post_impl_read(0, 0, 0, 0);
    __sanitizer_syscall_post_impl_epoll_pwait(0, 0, 0, 0, 0, 0, 0);
    __sanitizer_cov_dump();
    __sanitizer_cov_trace_pc_guard(0);
    __sanitizer_unaligned_store64(bytes + 1, 0x0102030405060708);
    __sanitizer_symbolize_pc((void *)puts, "%f|%l", name, sizeof name);
    int first = __sanitizer_acquire_crash_state(), second = __sanitizer_acquire_crash_state();
    printf("%x %d %d %d %s\n", __sanitizer_unaligned_load16(bytes + 1), guards, first, second, strchr(name, '|'));
    __sanitizer_print_stack_trace();
    return 0;
}
"#;

#[test]
fn public_sanitizer_functions_link_and_answer() {
    let folder = folder(&[("program.c", PROGRAM)]);
    for compiler in ["gcc", "clang-22"] {
        if run(std::process::Command::new("sh").args(["-c", &format!("command -v {compiler}")]))
            .stdout
            .is_empty()
        {
            continue;
        }
        succeed(
            raddle()
                .args(["cc", "-g", "program.c", "-o", "program"])
                .env("RADDLE_CC", compiler)
                .current_dir(&folder),
        );
        for mut command in [std::process::Command::new("./program"), {
            let mut command = raddle();
            command.args(["run", "--", "./program"]);
            command
        }] {
            let output = run(command.current_dir(&folder));
            assert_eq!(output.status.code(), Some(0), "{compiler}: {output:?}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "708 1 1 0 |0\n", "{compiler}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("    #0 0x") && said.contains("program+0x"), "{compiler}: {said}");
        }
    }
}
