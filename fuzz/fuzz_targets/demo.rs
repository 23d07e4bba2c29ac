//! Feeds bytes to the reader of demos; what it accepts must survive writing and reading.

#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_trace::demo::Demo;

fuzz_target!(|data: &[u8]| {
    if let Ok(demo) = Demo::read(data) {
        let written = demo.to_bytes().expect("what was read can be written");
        assert_eq!(Demo::read(&written), Ok(demo));
    }
});
