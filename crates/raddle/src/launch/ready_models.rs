//! Models of libraries that are not compiled anew with a program and synchronise threads by themselves: what their functions are, so that
//! Raddle need not take their users' critical sections for races (docs/models.md).
//!
//! A program gets the models of the libraries whose functions it calls, which its dynamic symbols tell. Libraries that synchronise through
//! the C library's functions (libuv, boost.thread) need none: those are seen.

use object::{Object, ObjectSymbol};
use std::path::Path;

struct Library {
    /// A program that refers to a name that begins like this uses it.
    names: &'static [&'static str],
    models: &'static str,
}

const LIBRARIES: &[Library] = &[
    Library { names: &["g_mutex_", "g_cond_"], models: include_str!("../../models/glib.models") },
    Library { names: &["GOMP_"], models: include_str!("../../models/gomp.models") },
    Library { names: &["__kmpc_"], models: include_str!("../../models/omp.models") },
    Library { names: &["urcu_"], models: include_str!("../../models/urcu.models") },
];

/// The lines of all libraries that the program uses; empty for most programs.
pub fn of_program(program: &Path) -> String {
    let Ok(bytes) = std::fs::read(program) else { return String::new() };
    let Ok(file) = object::File::parse(&bytes[..]) else { return String::new() };
    let used: Vec<&str> = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    let refers = |name: &str| used.iter().any(|symbol| symbol.starts_with(name));
    let uses = |library: &&Library| library.names.iter().any(|name| refers(name));
    let lines = LIBRARIES.iter().filter(uses).flat_map(|library| library.models.lines());
    lines.filter(|line| !line.is_empty() && !line.starts_with("--")).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_probe::aspect::parse;
    use raddle_wire::probe::what;

    #[test]
    fn every_line_is_a_model() {
        for library in LIBRARIES {
            let parsed = parse(library.models);
            assert_eq!(parsed.diagnostics, [], "{}", library.names[0]);
            for aspect in parsed.file.aspects() {
                assert!(what::WORDS.iter().any(|(word, _)| *word == aspect.event.name), "{aspect}");
                assert_eq!(aspect.event.fields.len(), 1, "{aspect}");
            }
        }
    }
}
