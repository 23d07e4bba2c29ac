//! Feeds bytes to the reader of journals, which takes what fits and stops there; the schedule of what it took can be written and
//! read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_trace::journal::Journal;
use raddle_trace::schedule::Schedule;

fuzz_target!(|data: &[u8]| {
    let journal = Journal::read(data);
    assert!(journal.turns.iter().all(|turn| turn.thread < journal.threads.len()));
    let schedule = journal.schedule("fuzz", &[], |_| None);
    assert_eq!(Schedule::parse(&schedule.to_text()), Ok(schedule));
});
