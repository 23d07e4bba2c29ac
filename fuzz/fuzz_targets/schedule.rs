//! Feeds text to the reader of schedules; what it accepts must survive writing and reading.

#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_trace::schedule::Schedule;

fuzz_target!(|data: &[u8]| {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(schedule) = Schedule::parse(text)
    {
        assert_eq!(Schedule::parse(&schedule.to_text()), Ok(schedule));
    }
});
