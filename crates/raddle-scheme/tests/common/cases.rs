//! How much a random test tries.

/// How many random programs a test tries: `RADDLE_TEST_CASES`, or the default.
pub fn cases(default: u64) -> u64 {
    std::env::var("RADDLE_TEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}
