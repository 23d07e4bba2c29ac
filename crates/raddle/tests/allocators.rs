//! Programs that bring an allocator of their own along, linked or preloaded: nothing is said of them that is not so.

mod common;

use common::{folder, raddle, run, succeed};
use std::process::Command;

/// An allocator as a shared library. It answers only for blocks that it made itself, as jemalloc, tcmalloc and mimalloc do,
/// and takes two names of glibc's over, as the last two do.
const ALLOCATOR: &str = r#"
#include <stddef.h>
#include <string.h>
#include <stdlib.h>
static char pool[64 << 20];
static size_t used;
struct head { size_t bytes, magic; };
#define MAGIC 0x5ad5ad5ad5adul
void *malloc(size_t bytes) {
    size_t at = __atomic_fetch_add(&used, (bytes + sizeof(struct head) + 15) & ~15ul, __ATOMIC_SEQ_CST);
    if (at + bytes + sizeof(struct head) > sizeof pool) return 0;
    struct head *head = (struct head *)(pool + at);
    head->bytes = bytes;
    head->magic = MAGIC;
    return head + 1;
}
void free(void *block) { if (block && ((struct head *)block)[-1].magic != MAGIC) __builtin_trap(); }
void *calloc(size_t count, size_t bytes) { void *block = malloc(count * bytes); return block ? memset(block, 0, count * bytes) : 0; }
void *realloc(void *old, size_t bytes) {
    void *block = malloc(bytes);
    size_t before = old ? ((struct head *)old)[-1].bytes : 0;
    return block && old ? memcpy(block, old, before < bytes ? before : bytes) : block;
}
void *__libc_malloc(size_t bytes) { return malloc(bytes); }
void __libc_free(void *block) { free(block); }
size_t malloc_usable_size(void *block) {
    if (((struct head *)block)[-1].magic != MAGIC) __builtin_trap();
    return ((struct head *)block)[-1].bytes;
}
"#;

const PROGRAM: &str = r#"
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t total;
static void *body(void *unused) {
    for (int i = 0; i < 100; i++) {
        char *block = malloc(100 + i);
        memset(block, 1, malloc_usable_size(block));
        block = realloc(block, 5000);
        pthread_mutex_lock(&lock);
        total += malloc_usable_size(block) >= 5000;
        pthread_mutex_unlock(&lock);
        free(block);
    }
    return unused;
}
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, body, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    printf("%zu\n", total);
    return total != 200;
}
"#;

#[test]
fn a_correct_program_with_another_allocator_stays_correct() {
    let folder = folder(&[("allocator.c", ALLOCATOR), ("program.c", PROGRAM)]);
    let library = "-fno-builtin -O1 -fPIC -shared allocator.c -o liballocator.so";
    succeed(Command::new("gcc").args(library.split(' ')).current_dir(&folder));
    let flags = ["cc", "-g", "-pthread", "program.c"];
    succeed(raddle().args(flags).args(["-o", "plain"]).current_dir(&folder));
    let linked = ["-o", "linked", "-L.", "-lallocator", "-Wl,-rpath,$ORIGIN"];
    succeed(raddle().args(flags).args(linked).current_dir(&folder));
    for program in ["./linked", "env LD_PRELOAD=./liballocator.so ./plain"] {
        for command in ["run", "hunt", "record"] {
            let output = run(raddle().args([command, "--"]).args(program.split(' ')).current_dir(&folder));
            assert_eq!(output.status.code(), Some(0), "{program} {command}: {output:?}");
            assert_eq!(String::from_utf8_lossy(&output.stdout), "200\n", "{program} {command}: {output:?}");
        }
    }
}
