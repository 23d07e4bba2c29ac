//! Concurrent Scheme from hostile bytes: reading and expanding never panics, what expands also runs for a while, and
//! every error can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_scheme::concrete::run::{Scheduler, run};
use raddle_scheme::concrete::schedule::Schedule;
use raddle_scheme::concrete::state::Machine;
use raddle_scheme::limits::Clock;
use raddle_scheme::{Source, parse, render};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = Schedule::parse(text);
    let source = Source::new("fuzz.scm", text);
    match parse(source.clone()) {
        Ok(program) => {
            let mut machine = Machine::new(&program);
            machine.stack_max = 1_000;
            machine.heap_max = 10_000;
            run(&machine, Scheduler::Random(1), 1, 200, &Clock::unlimited(), |_| {});
        }
        Err(errors) => {
            render::syntax_errors(&source, &errors, false);
        }
    }
});
