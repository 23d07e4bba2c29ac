//! Name resolution, type checker and evaluator take any text, within limits.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_csp::engine::CheckOptions;
use raddle_csp::lang::eval::Limits;
use raddle_csp::lang::load::{Files, load_text};
use raddle_csp::lang::session::Script;

struct Nothing;

impl Files for Nothing {
    fn read(&self, _: &std::path::Path) -> Result<String, String> {
        Err("there are no files here".into())
    }
}

fuzz_target!(|text: &str| {
    let limits = Limits { depth_max: 500, steps_max: 20_000, elements_max: 2_000 };
    let Ok(mut script) = Script::new(load_text(&Nothing, "fuzz.csp", text), limits) else { return };
    script.prints();
    let options = CheckOptions { leaf_states_max: 300, pairs_max: Some(300), ..CheckOptions::default() };
    let count = script.assertions().len().min(3);
    for i in 0..count {
        let _ = script.check(i, &options);
    }
});
