//! Replays that cannot show what they were made for end because nothing goes on, and not because their time is up.

mod common;

use common::{folder, raddle, run, succeed};
use serde_json::Value;

/// A flag that only inline assembly touches: who waits for it spins, and no operation of it can be seen.
const SPINNING: &str = r#"
#include <pthread.h>
#include <stdio.h>
static int ready, message;
static void *producer(void *unused) {
    int one = 1;
    message = 7;
    __asm__ volatile("xchgl %0, %1" : "+r"(one), "+m"(ready) : : "memory");
    return unused;
}
static void *consumer(void *unused) {
    int seen;
    do __asm__ volatile("movl %1, %0" : "=r"(seen) : "m"(ready) : "memory"); while (!seen);
    printf("%d\n", message);
    return unused;
}
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, producer, 0);
    pthread_create(&threads[1], 0, consumer, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
}
"#;

/// Less than the processor time after which a run is stuck of which nothing is known.
const SECONDS: &str = "8";

#[test]
fn a_replay_that_spins_ends_by_its_own_progress() {
    let folder = folder(&[("spinning.c", SPINNING)]);
    let program = folder.path().join("spinning");
    succeed(
        raddle().args(["cc", "-g", "-O1", "-pthread", "spinning.c", "-o", "spinning"]).current_dir(&folder),
    );
    let hunted = run(raddle()
        .args(["hunt", "--quiet", "--all", "--json", "--workers", "1", "--timeout", SECONDS, "--"])
        .arg(&program)
        .current_dir(&folder));
    let output: Value = serde_json::from_slice(&hunted.stdout).expect("one JSON object");
    let findings = output["findings"].as_array().expect("findings");
    let attempts: Vec<&Value> = findings
        .iter()
        .flat_map(|finding| finding["basis"]["attempts"].as_array().into_iter().flatten())
        .collect();
    assert!(!attempts.is_empty(), "the race was tried: {output:#}");
    for attempt in attempts {
        assert_ne!(attempt["outcome"], "timed-out", "{attempt:#}");
    }
}
