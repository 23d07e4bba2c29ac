//! What the house promises about its own source, checked as an ordinary test.
//!
//! Nothing here compiles anything: files are read as text. What a check does not yet hold for stands in a list beside it, and an entry
//! that is no longer needed is an error, so that the lists can only shrink.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the runtime, from the bottom up. A module uses those before it, and none behind it.
const LAYERS: &[(&str, &str)] = &[
    ("arch", "the processor: instructions, system calls, the thread's slot"),
    ("own_memory", "copying and filling memory without the C library"),
    ("run", "the shared region, and what this run wants"),
    ("real", "the functions behind the interposed ones, the kernel's calls"),
    ("message", "what the runtime has to say"),
    ("arena", "memory of its own"),
    ("spin", "locks for its own tables"),
    ("stripe", "locks by address"),
    ("attach", "finding the region of this process"),
    ("thread", "one thread, split by what the runtime does with it"),
    ("registry", "all threads"),
    ("shadow", "where the shadow cells are"),
    ("record", "writing records"),
    ("detect", "online detection"),
    ("segment", "which segment a thread is in"),
    ("demo", "what comes from outside, recorded and given again"),
    ("steer", "who goes next"),
    ("crash", "what the program dies of"),
    ("observe", "what is done with an operation"),
    ("threads", "how a thread begins and ends"),
    ("interpose", "the C library's functions"),
    ("probe", "events that the user named, in code that was not built for them"),
    ("abi", "the compilers' interface"),
    ("standalone", "a program that puts `raddle` in front of itself"),
    ("init", "start-up"),
];

/// Uses of a higher layer that are still there.
const UPWARD: &[(&str, &str)] = &[
    // The assembly of hooks and exports reads the thread and looks at cells.
    ("arch", "shadow"),
    ("arch", "thread"),
    // Without a C function that it needs, the runtime says so and ends the program.
    ("real", "message"),
    // Handlers that waited run when their thread leaves the runtime.
    ("thread", "interpose"),
    // A handler begins in a turn, and a turn may begin with a handler.
    ("demo", "steer"),
    ("demo", "interpose"),
    ("steer", "crash"),
];

/// Two observers that know nothing of each other, although one stands before the other above.
const STRANGERS: &[(&str, &str)] = &[("detect", "record"), ("record", "detect")];

/// Dependencies that the workspace offers although nobody takes them yet: names in binaries are to be read with them.
const OFFERED: &[&str] = &["cpp_demangle", "rustc-demangle"];

/// A file above this many lines says at its head what it is about.
const LINES_WITHOUT_HEAD_MAX: usize = 250;

/// Names of the house's own metaphors, as files and as words in code: what a specialist would look for has another name.
const BANNED_FILES: &[&str] = &["people", "asking", "bed", "helpers", "utils", "misc", "manager"];
const BANNED_WORDS: &[&str] = &["bury", "buried"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_path_buf()
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

/// All files below a folder, without what builds leave behind.
fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                files(&path, into);
            }
        } else {
            into.push(path);
        }
    }
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    files(folder, &mut all);
    all.retain(|path| is_source(path));
    all
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The folders of all members of the workspace.
fn members() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(root().join("crates"))
        .expect("the workspace has crates")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.join("Cargo.toml").is_file())
        .collect();
    found.push(root().join("xtask"));
    found.sort();
    found
}

/// The text without comments: they may speak of anything.
fn code(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

fn word_at(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

/// The top modules of its own crate that a text names: `crate::a`, `$crate::a`, and each of `crate::{a, b::c}`.
fn named_modules(text: &str) -> BTreeSet<String> {
    let text = code(text);
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            found.insert(word_at(rest).to_owned());
            continue;
        };
        let (mut depth, mut begins) = (0usize, true);
        for (ix, c) in list.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => begins = true,
                c if begins && (c.is_alphabetic() || c == '_') => {
                    found.insert(word_at(&list[ix..]).to_owned());
                    begins = false;
                }
                _ => {}
            }
        }
    }
    found
}

fn module_of(source: &Path, folder: &Path) -> String {
    let relative = source.strip_prefix(folder).expect("a file of the folder");
    let first = relative.components().next().expect("a file has a name").as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

fn rank(module: &str) -> Option<usize> {
    LAYERS.iter().position(|&(name, _)| name == module)
}

#[test]
fn modules_of_the_runtime_use_lower_ones_only() {
    let folder = root().join("crates/raddle-rt/src");
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    for source in sources(&folder) {
        let own = module_of(&source, &folder);
        if own == "lib" {
            continue;
        }
        let Some(own_rank) = rank(&own) else {
            wrong.push(format!("{}: the module `{own}` has no place among the layers", shown(&source)));
            continue;
        };
        for other in named_modules(&read(&source)) {
            let pair = (own.as_str(), other.as_str());
            if STRANGERS.contains(&pair) {
                wrong.push(format!("{}: `{own}` and `{other}` must not know each other", shown(&source)));
            }
            if rank(&other).is_none_or(|rank| rank <= own_rank) {
                continue;
            }
            match UPWARD.iter().find(|&&known| known == pair) {
                Some(known) => {
                    used.insert(*known);
                }
                None => {
                    wrong.push(format!("{}: `{own}` uses `{other}`, which lies above it", shown(&source)))
                }
            }
        }
    }
    for &(from, to) in UPWARD {
        if !used.contains(&(from, to)) {
            wrong.push(format!("`{from}` no longer uses `{to}`: take the pair off the list"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn large_files_say_what_they_are_about() {
    let mut wrong = Vec::new();
    for member in members() {
        for source in sources(&member.join("src")) {
            let text = read(&source);
            if text.lines().count() > LINES_WITHOUT_HEAD_MAX && !text.starts_with("//!") {
                wrong.push(format!("{}: no `//!` at its head", shown(&source)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Does any file of the folder declare the module?
fn is_declared(name: &str, beside: &[PathBuf]) -> bool {
    let declaration = format!("mod {name};");
    beside.iter().any(|path| {
        read(path).lines().any(|line| {
            let line = line.trim();
            let line = line.strip_prefix("pub ").or_else(|| line.strip_prefix("pub(crate) ")).unwrap_or(line);
            line.trim_start_matches("pub(super) ") == declaration
        })
    })
}

#[test]
fn every_file_is_part_of_a_crate() {
    let mut wrong = Vec::new();
    for member in members() {
        let folder = member.join("src");
        let all = sources(&folder);
        for source in &all {
            let stem = source.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            let parent = source.parent().expect("a file lies in a folder");
            let is_entry = matches!(stem.as_str(), "lib" | "main") || parent.ends_with("bin");
            let name = if stem == "mod" {
                parent.file_name().expect("a folder has a name").to_string_lossy().into_owned()
            } else {
                stem
            };
            if !is_entry && !is_declared(&name, &all) {
                wrong.push(format!("{}: nobody declares it", shown(source)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The names in a table of a manifest whose title ends with `dependencies`.
fn dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    ["dependencies", "dev-dependencies", "build-dependencies"]
        .iter()
        .filter_map(|table| manifest.get(*table)?.as_table())
        .flat_map(|table| table.keys().cloned())
        .collect()
}

fn manifest(path: &Path) -> toml::Table {
    read(path).parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).any(|(at, _)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + word.len()..].chars().next())
    })
}

#[test]
fn every_dependency_is_used() {
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for member in members() {
        let wanted = dependencies(&manifest(&member.join("Cargo.toml")));
        let texts: Vec<String> = sources(&member).iter().map(|path| read(path)).collect();
        for name in &wanted {
            let word = name.replace('-', "_");
            if !texts.iter().any(|text| has_word(text, &word)) {
                wrong.push(format!("{}: `{name}` is not used", shown(&member.join("Cargo.toml"))));
            }
        }
        used.extend(wanted);
    }
    used.extend(dependencies(&manifest(&root().join("fuzz/Cargo.toml"))));
    let workspace = manifest(&root().join("Cargo.toml"));
    let offered = workspace["workspace"]["dependencies"].as_table().expect("a table");
    for name in offered.keys().filter(|name| !used.contains(*name) && !OFFERED.contains(&name.as_str())) {
        wrong.push(format!("Cargo.toml: nobody takes `{name}` from the workspace's dependencies"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn names_are_words_of_the_domain() {
    let mut wrong = Vec::new();
    // Crates that still have some of the words.
    let excepted = ["raddle-csp"];
    for member in members() {
        let name = member.file_name().expect("a folder has a name").to_string_lossy().into_owned();
        for source in sources(&member.join("src")) {
            let stem = source.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            if BANNED_FILES.contains(&stem.as_str()) {
                wrong.push(format!("{}: the name says nothing to a specialist", shown(&source)));
            }
            let text = code(&read(&source));
            for word in BANNED_WORDS.iter().filter(|_| !excepted.contains(&name.as_str())) {
                if has_word(&text, word) {
                    wrong.push(format!("{}: `{word}` is no word of the domain", shown(&source)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn modules_are_found_in_every_form_of_use() {
    let text = "use crate::a;\nuse crate::{b, c::{d, e}, f as g};\n// crate::h\nlet x = crate::i::j();\n$crate::k!();";
    let found: Vec<String> = named_modules(text).into_iter().collect();
    assert_eq!(found, ["a", "b", "c", "f", "i", "k"]);
}

/// Every function that the runtime stands in for is in the list by which it is linked: one that is missing there compiles, and does
/// nothing.
#[test]
fn exported_functions_are_in_the_list() {
    let runtime = root().join("crates/raddle-rt");
    let listed = read(&runtime.join("exports.txt"));
    let listed: Vec<&str> = listed.lines().collect();
    let mut missing = Vec::new();
    let mut seen = 0;
    for path in sources(&runtime.join("src")) {
        let text = read(&path);
        for start in ["export_with_pc! {\n", "export_variadic_with_pc! {\n"] {
            for block in text.split(start).skip(1) {
                let block = block.split("\n}").next().unwrap_or("");
                for name in block.lines().filter_map(|line| Some(line.trim().split_once(" => ")?.0)) {
                    seen += 1;
                    // Those with this prefix are made under one name and linked under another.
                    let renamed = name.starts_with("raddle_export_");
                    if !renamed && !name.starts_with('$') && !listed.contains(&name) {
                        missing.push(format!("{}: {name}", shown(&path)));
                    }
                }
            }
        }
        // Names without more: functions that only have to be there.
        for block in text.split("\nsilent! {\n").skip(1) {
            for name in block.split("\n}").next().unwrap_or("").split_whitespace() {
                seen += 1;
                if !listed.contains(&name) {
                    missing.push(format!("{}: {name}", shown(&path)));
                }
            }
        }
        for block in text.split("\nsyscall_hooks! {\n").skip(1) {
            for name in block.split("\n}").next().unwrap_or("").split_whitespace() {
                for when in ["pre", "post"] {
                    let name = format!("__sanitizer_syscall_{when}_impl_{}", name.trim_matches('"'));
                    seen += 1;
                    if !listed.contains(&name.as_str()) {
                        missing.push(format!("{}: {name}", shown(&path)));
                    }
                }
            }
        }
        // The library's functions, a line each, and those with a format: two names in a line.
        for block in text.split("\nlibrary! {\n").skip(1) {
            let block = block.split("\n}").next().unwrap_or("");
            for line in block.lines().filter(|line| line.starts_with("    ") && !line.starts_with("     ")) {
                let Some((name, _)) = line.trim().split_once('(') else { continue };
                if !name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
                    continue;
                }
                seen += 1;
                if !listed.contains(&name) {
                    missing.push(format!("{}: {name}", shown(&path)));
                }
            }
        }
        for start in ["\nprinting! {\n", "\nscanning! {\n"] {
            for line in
                text.split(start).skip(1).flat_map(|block| block.lines().take_while(|line| *line != "}"))
            {
                let names = line.trim().split_once('(').zip(line.split(") ").nth(1));
                let Some(((first, _), rest)) = names else { continue };
                for name in [first, rest.split('(').next().unwrap_or("")] {
                    seen += 1;
                    if !listed.contains(&name) {
                        missing.push(format!("{}: {name}", shown(&path)));
                    }
                }
            }
        }
        for name in text.split("\nstand_in! {\n").skip(1).flat_map(|block| {
            block.lines().map_while(|line| line.trim().strip_suffix(';')?.split(' ').next())
        }) {
            seen += 1;
            if !listed.contains(&name) {
                missing.push(format!("{}: {name}", shown(&path)));
            }
        }
    }
    assert!(seen > 150, "the exports of the runtime were not found: {seen}");
    assert!(missing.is_empty(), "not in exports.txt:\n{}", missing.join("\n"));
}

/// The lint that refuses a `_` arm over an enumeration.
const EXHAUSTIVE: &str = "#![warn(clippy::wildcard_enum_match_arm)]";

/// A match over operations with a `_` arm compiles wrongly when the table has a new line. The lint refuses such arms where it is on;
/// this test sees to it that it is on, for the crate or for the file, wherever operations are named.
#[test]
fn matches_over_operations_name_them() {
    let (mut wrong, mut covered) = (Vec::new(), 0);
    for member in members() {
        let wanted = dependencies(&manifest(&member.join("Cargo.toml")));
        let knows = |name: &str| wanted.contains(name) || member.ends_with(name);
        if !knows("raddle-wire") && !knows("raddle-trace") {
            continue;
        }
        let library = member.join("src/lib.rs");
        let whole = library.is_file() && read(&library).contains(EXHAUSTIVE);
        for source in sources(&member.join("src")) {
            let text = read(&source);
            let bare = code(&text);
            let names = ["Op", "SyncOp", "StepKind"].iter().any(|name| {
                bare.match_indices(&format!("{name}::")).any(|(at, _)| {
                    !bare[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
                })
            });
            if !names {
                continue;
            }
            covered += 1;
            if !whole && !text.contains(EXHAUSTIVE) {
                wrong.push(format!("{}: names operations without {EXHAUSTIVE}", shown(&source)));
            }
            if let Some(line) =
                text.lines().find(|line| line.contains("allow(clippy::wildcard_enum_match_arm"))
            {
                let symbols = line.contains("about DWARF");
                if !symbols {
                    wrong.push(format!("{}: switches the lint off", shown(&source)));
                }
            }
        }
    }
    assert!(covered > 60, "the files that name operations were not found: {covered}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The bodies of all matches in a piece of code.
fn match_bodies(code: &str) -> Vec<&str> {
    let word = "match ";
    let starts = code.match_indices(word).filter(|(at, _)| {
        !code[..*at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '!' | '.'))
    });
    starts
        .filter_map(|(at, _)| {
            let open = at + code[at..].find('{')?;
            let mut depth = 0;
            let close = code[open..].find(|c| {
                depth += i32::from(c == '{') - i32::from(c == '}');
                depth == 0
            })?;
            Some(&code[open + 1..open + close])
        })
        .collect()
}

/// The patterns of a match, from its body: what stands before `=>` outside of all brackets.
fn patterns(body: &str) -> Vec<&str> {
    let (mut found, mut depth, mut start, mut in_pattern) = (Vec::new(), 0_i32, 0, true);
    for (at, c) in body.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            '=' if depth == 0 && in_pattern && body[at..].starts_with("=>") => {
                found.push(body[start..at].trim());
                in_pattern = false;
            }
            _ => {}
        }
        // An arm ends with a comma, or with the brace of its block.
        let ends = c == ',' || c == '}' && !body[at + 1..].trim_start().starts_with(',');
        if ends && depth == 0 && !in_pattern {
            (start, in_pattern) = (at + 1, true);
        }
    }
    found
}

#[test]
fn patterns_are_found_in_matches() {
    let text = "let x = match kind { step::A | step::B => { f(); } Some((C { .. }, _)) if g(|x| x) => h(), _ => 0 };";
    let bodies = match_bodies(text);
    assert_eq!(bodies.len(), 1);
    assert_eq!(patterns(bodies[0]), ["step::A | step::B", "Some((C { .. }, _)) if g(|x| x)", "_"]);
    assert!(match_bodies("matches!(x, step::A)").is_empty());
}

/// Does a pattern name a kind of step by the byte that stands for it?
fn names_step_byte(pattern: &str) -> bool {
    pattern.match_indices("step::").any(|(at, found)| {
        let name: String =
            pattern[at + found.len()..].chars().take_while(|c| *c == '_' || c.is_alphanumeric()).collect();
        name.len() > 1 && name.chars().all(|c| c == '_' || c.is_uppercase() || c.is_numeric())
    })
}

/// The kinds of steps are bytes where they cross the process boundary, and the lint does not look at bytes: what is to be told apart is
/// matched as `StepKind`, whose kinds the compiler knows.
#[test]
fn matches_over_bytes_of_steps_are_matches_over_kinds() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for member in members() {
        for source in sources(&member.join("src")) {
            let bare = code(&read(&source));
            for body in match_bodies(&bare) {
                seen += 1;
                let patterns = patterns(body);
                let names = patterns.iter().find(|pattern| names_step_byte(pattern));
                let rest = patterns
                    .iter()
                    .any(|pattern| pattern.split('|').any(|one| matches!(one.trim(), "_" | "(_, _)")));
                if let (Some(named), true) = (names, rest) {
                    wrong.push(format!("{}: `_` beside `{named}`", shown(&source)));
                }
            }
        }
    }
    assert!(seen > 1000, "the matches were not found: {seen}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// And the other way: every name of the list stands in the runtime's source. One that does not is a function that was taken out or
/// misspelt, and a program that is linked against it fails late, or runs past the runtime.
#[test]
fn the_list_of_exports_names_only_what_is_there() {
    let runtime = root().join("crates/raddle-rt");
    let mut words = BTreeSet::new();
    for path in sources(&runtime.join("src")) {
        let text = code(&read(&path));
        words.extend(
            text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
                .filter(|word| !word.is_empty())
                .map(str::to_owned),
        );
    }
    let list = read(&runtime.join("exports.txt"));
    // A family that a macro makes of the names of system calls.
    let families = ["__sanitizer_syscall_pre_impl_", "__sanitizer_syscall_post_impl_"];
    let is_there = |name: &str| {
        let member = families.iter().find_map(|family| name.strip_prefix(family));
        // The compiler calls some by their names whatever it is told, so the exported ones have another one in the source.
        let renamed = words.contains(&format!("raddle_export_{name}"));
        words.contains(name) || renamed || member.is_some_and(|call| words.contains(call))
    };
    let absent: Vec<&str> = list.lines().filter(|name| !is_there(name)).collect();
    assert!(absent.is_empty(), "in exports.txt and nowhere in the runtime:\n{}", absent.join("\n"));
    let mut sorted: Vec<&str> = list.lines().collect();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), list.lines().count(), "exports.txt has a name twice");
}
