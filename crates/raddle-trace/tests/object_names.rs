//! Names of objects and frames in programs that are compiled here by the compilers that are installed.
//!
//! The naive twin of the reader of debug information is the program itself: it prints the address, the size and the path
//! of objects, all three computed by the compiler, and every byte in between must be given that path.

use object::{Object, ObjectSection, ObjectSymbol};
use raddle_trace::Module;
use raddle_trace::symbols::{DataName, Origin, Symbolizer, normal_name};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the pretended process had loaded the module.
const BIAS: u64 = 0x5555_0000_0000;

const C_COMPILERS: [&str; 2] = ["gcc", "clang-22"];
const CXX_COMPILERS: [&str; 2] = ["g++", "clang++-22"];

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/object_names").join(name)
}

/// A compiled program, what it printed, and its names.
struct Program {
    what: String,
    path: PathBuf,
    lines: Vec<Vec<String>>,
    _folder: tempfile::TempDir,
}

impl Program {
    /// `None` where the compiler is not installed.
    fn build(compiler: &str, name: &str, flags: &[&str]) -> Option<Program> {
        let folder = tempfile::tempdir().unwrap();
        let what = format!("{compiler} {flags:?} {name}");
        let compile = Command::new(compiler)
            .args(["-g", "-fno-pie", "-no-pie", "-pthread", "-w", "-o", "program"])
            .args(flags)
            .arg(source(name))
            .current_dir(folder.path())
            .output();
        let Ok(compile) = compile else {
            eprintln!("{compiler} is not installed: left out");
            return None;
        };
        assert!(compile.status.success(), "{what}: {}", String::from_utf8_lossy(&compile.stderr));
        let path = folder.path().join("program");
        let output = Command::new(&path).output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<Vec<String>> =
            lines.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
        assert!(!lines.is_empty(), "{what} prints its objects");
        Some(Program { what, path, lines, _folder: folder })
    }

    /// With all compilers, versions of DWARF and optimisations.
    fn all(compilers: &[&str], name: &str, optimisations: &[&str], mut check: impl FnMut(&Program)) {
        for compiler in compilers {
            for dwarf in ["-gdwarf-4", "-gdwarf-5"] {
                for optimisation in optimisations {
                    if let Some(program) = Program::build(compiler, name, &[dwarf, optimisation]) {
                        check(&program);
                    }
                }
            }
        }
    }

    fn module(&self) -> Module {
        let path = self.path.to_str().unwrap().to_owned();
        Module { path, start: BIAS, end: BIAS + (1 << 30), bias: BIAS, build_id: Vec::new() }
    }

    fn symbolizer(&self) -> Symbolizer {
        Symbolizer::new(&[self.module()])
    }

    fn said<'a>(&'a self, word: &'a str) -> impl Iterator<Item = &'a [String]> + 'a {
        self.lines.iter().filter(move |line| line[0] == word).map(|line| &line[1..])
    }
}

fn number(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

fn check_data(program: &Program) {
    let mut symbolizer = program.symbolizer();
    let mut checked = 0;
    for line in program.said("data") {
        let [address, size, path] = line else { panic!("{line:?}") };
        // Paths with spaces and template arguments come with the sources' own spelling.
        let (address, size): (u64, u64) = (BIAS + number(address), size.parse().unwrap());
        for byte in 0..size {
            let name = symbolizer.data(address + byte);
            let name = name.unwrap_or_else(|| panic!("{}: nothing at {path} + {byte}", program.what));
            assert_eq!(&name.path, path, "{} byte {byte} of {size}: {name:?}", program.what);
            assert!(name.exact, "{} {name:?}", program.what);
            assert_eq!(name.offset, expected_offset(path, byte), "{} {name:?}", program.what);
            assert!(
                name.declared
                    .as_ref()
                    .is_some_and(|(file, line)| { file.contains("/object_names/globals.c") && *line > 0 }),
                "{} {name:?}",
                program.what
            );
            checked += 1;
        }
    }
    assert!(checked > 100, "{}: {checked}", program.what);
    for line in program.said("access") {
        let [address, size, path] = line else { panic!("{line:?}") };
        let name = symbolizer.data_access(BIAS + number(address), size.parse().unwrap()).unwrap();
        assert_eq!(&name.path, path, "{}", program.what);
    }
    for line in program.said("type") {
        let name = symbolizer.data(BIAS + number(&line[0])).unwrap();
        let allowed = line[1..].join(" ");
        let name = name.type_name.unwrap_or_default();
        assert!(allowed.split('|').any(|kind| kind == name), "{}: {name} is not {allowed}", program.what);
    }
}

/// Bytes are counted from the start of the named object; of a bit-field they are single.
fn expected_offset(path: &str, byte: u64) -> u64 {
    if path == "flags.third" { 1 } else { byte }
}

fn check_thread_locals(program: &Program) {
    let mut symbolizer = program.symbolizer();
    let block = {
        let bytes = std::fs::read(&program.path).unwrap();
        let object = object::File::parse(&bytes[..]).unwrap();
        let start = object.sections().filter(|s| matches!(s.name(), Ok(".tdata" | ".tbss")));
        start.map(|section| section.address()).min().unwrap()
    };
    assert_ne!(block, 0);
    let mut offsets = Vec::new();
    for line in program.said("tls") {
        let [offset, size, path] = line else { panic!("{line:?}") };
        let (offset, size): (i64, i64) = (offset.parse().unwrap(), size.parse().unwrap());
        for byte in 0..size {
            let name = symbolizer.thread_local_at(0, offset + byte).unwrap();
            assert_eq!((&name.path, name.exact), (path, true), "{}", program.what);
        }
        offsets.push((offset, path.clone()));
    }
    assert!(!offsets.is_empty());
    // The same by the offset into the block, which the symbol table has for whole variables.
    let bytes = std::fs::read(&program.path).unwrap();
    let object = object::File::parse(&bytes[..]).unwrap();
    let tls = object.symbols().filter(|symbol| symbol.kind() == object::SymbolKind::Tls && symbol.size() > 0);
    for symbol in tls {
        let name = symbolizer.thread_local(0, symbol.address()).unwrap();
        assert_eq!(name.variable, symbol.name().unwrap(), "{}", program.what);
    }
    assert_eq!(symbolizer.thread_local(0, 1 << 20), None);
    assert_eq!(symbolizer.thread_local(7, 0), None, "no such module");
}

#[test]
fn objects_of_c_have_paths() {
    Program::all(&C_COMPILERS, "globals.c", &["-O0", "-O2"], |program| {
        check_data(program);
        check_thread_locals(program);
    });
}

#[test]
fn objects_of_cxx_have_paths() {
    Program::all(&CXX_COMPILERS, "globals.cc", &["-O0", "-O2"], |program| {
        check_data(program);
        check_thread_locals(program);
    });
}

#[test]
fn objects_are_found_in_every_form_of_debug_information() {
    for compiler in C_COMPILERS {
        for flags in [
            &["-gz=zlib"][..],
            &["-fdebug-types-section"],
            &["-fdebug-types-section", "-gdwarf-4"],
            &["-O2", "-flto"],
            &["-gdwarf-3"],
        ] {
            if compiler != "gcc" && flags.contains(&"-flto") {
                continue;
            }
            if let Some(program) = Program::build(compiler, "globals.c", flags) {
                check_data(&program);
            }
        }
    }
}

#[test]
fn objects_are_found_in_split_debug_information() {
    for compiler in C_COMPILERS {
        for version in ["-gdwarf-4", "-gdwarf-5"] {
            let Some(mut program) = Program::build(compiler, "globals.c", &["-gsplit-dwarf", version]) else {
                continue;
            };
            check_data(&program);
            program.what += " without .dwo";
            for entry in std::fs::read_dir(program.path.parent().unwrap()).unwrap() {
                let entry = entry.unwrap().path();
                if entry.extension().is_some_and(|extension| extension == "dwo") {
                    std::fs::remove_file(entry).unwrap();
                }
            }
            let forks = program.said("data").find(|line| line[2] == "forks[1].lock").unwrap();
            let name = program.symbolizer().data(BIAS + number(&forks[0])).unwrap();
            assert!(!name.exact && name.path.starts_with("forks+0x"), "{name:?}");
        }
    }
}

#[test]
fn stack_variables_have_paths() {
    Program::all(&C_COMPILERS, "locals.c", &["-O0"], |program| {
        let mut symbolizer = program.symbolizer();
        let mut checked = 0;
        for line in program.said("local") {
            let [pc, cfa, address, size, path] = line else { panic!("{line:?}") };
            let (pc, cfa, address) = (BIAS + number(pc), number(cfa), number(address));
            for byte in 0..size.parse().unwrap() {
                let name = symbolizer.local(pc, cfa, address + byte);
                assert_eq!(name.as_ref(), Some(path), "{} byte {byte}", program.what);
                checked += 1;
            }
            assert_eq!(symbolizer.local(pc, cfa, cfa + 4096), None, "another frame");
        }
        assert!(checked > 80, "{checked}");
    });
}

/// Optimised code has no simple places; what is said must be right all the same.
#[test]
fn stack_variables_of_optimised_code_are_right_or_absent() {
    Program::all(&C_COMPILERS, "locals.c", &["-O2", "-O1"], |program| {
        let mut symbolizer = program.symbolizer();
        for line in program.said("local") {
            let [pc, cfa, address, _, path] = line else { panic!("{line:?}") };
            let name = symbolizer.local(BIAS + number(pc), number(cfa), number(address));
            assert!(name.as_ref().is_none_or(|name| name == path), "{} {path} {name:?}", program.what);
        }
    });
}

fn check_frames(program: &Program) {
    let mut symbolizer = program.symbolizer();
    for line in program.said("frame") {
        let [pc, declared, function] = line else { panic!("{line:?}") };
        let frames = symbolizer.frames(BIAS + number(pc));
        let frame = &frames[0];
        assert_eq!(frame.origin, Origin::User, "{} {frame:?}", program.what);
        assert_eq!(frame.function_line, declared.parse().ok(), "{} {frame:?}", program.what);
        assert!(frame.line.is_some(), "{} {frame:?}", program.what);
        let name = normal_name(frame.function.as_deref().unwrap());
        assert_eq!(&name, function, "{}", program.what);
        for outer in &frames[1..] {
            let library = outer.function.as_ref().is_some_and(|name| name.contains("std::for_each"));
            assert_eq!(outer.is_user(), !library, "{} {outer:?}", program.what);
        }
    }
}

#[test]
fn frames_have_normal_names_lines_and_origins() {
    Program::all(&CXX_COMPILERS, "frames.cc", &["-O0", "-O2"], check_frames);
    for compiler in CXX_COMPILERS {
        let split = Program::build(compiler, "frames.cc", &["-gdwarf-5", "-gsplit-dwarf", "-O2"]);
        split.iter().for_each(check_frames);
    }
}

/// Code between two functions is in neither, data between two variables in neither.
#[test]
fn nothing_is_invented_between_symbols() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        .text
        .globl main
        .type main, @function
    main: xor %eax, %eax
        ret
        .size main, . - main
    unnamed: .skip 64, 0x90
        .globl bare
        .type bare, @function
    bare: .skip 32, 0x90
        nop
        nop
        .data
        .globl known
        .type known, @object
    known: .quad 1
        .size known, 8
        .skip 64
        .section .note.GNU-stack,"",@progbits
    "#;
    std::fs::write(folder.path().join("holes.s"), text).unwrap();
    let built =
        Command::new("gcc").args(["-no-pie", "-o", "program", "holes.s"]).current_dir(folder.path()).status();
    assert!(built.unwrap().success());
    let path = folder.path().join("program");
    let bytes = std::fs::read(&path).unwrap();
    let object = object::File::parse(&bytes[..]).unwrap();
    let symbol =
        |name: &str| BIAS + object.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().address();
    let module = Module {
        path: path.to_str().unwrap().to_owned(),
        start: BIAS,
        end: BIAS + (1 << 30),
        bias: BIAS,
        build_id: Vec::new(),
    };
    let mut symbolizer = Symbolizer::new(&[module]);
    let mut function = |pc| symbolizer.frames(pc)[0].function.clone();
    assert_eq!(function(symbol("main") + 1).as_deref(), Some("main"));
    assert_eq!(function(symbol("main") + 20), None);
    assert_eq!(function(symbol("bare")).as_deref(), Some("bare"));
    assert_eq!(function(symbol("bare") + 3), None, "a symbol without size answers for its first byte");
    let known = symbol("known");
    let guess = DataName {
        path: "known+0x4".to_owned(),
        variable: "known".to_owned(),
        declared: None,
        type_name: None,
        offset: 4,
        exact: false,
    };
    assert_eq!(symbolizer.data(known + 4), Some(guess));
    assert_eq!(symbolizer.data(known + 8), None);
    assert_eq!(symbolizer.data(BIAS - 1), None);
}

/// Rust has scopes where C has none, and makes some up.
#[test]
fn objects_of_rust_have_paths() {
    let folder = tempfile::tempdir().unwrap();
    for optimisation in ["-Copt-level=0", "-Copt-level=2"] {
        let built = Command::new("rustc")
            .args(["-g", "--edition=2021", "-Crelocation-model=static", "--crate-name=bank", optimisation])
            .arg("-oprogram")
            .arg(source("globals.rs"))
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let path = folder.path().join("program");
        let text = String::from_utf8(Command::new(&path).output().unwrap().stdout).unwrap();
        let module = Module {
            path: path.to_str().unwrap().to_owned(),
            start: BIAS,
            end: BIAS + (1 << 30),
            bias: BIAS,
            build_id: Vec::new(),
        };
        let mut symbolizer = Symbolizer::new(&[module]);
        assert!(text.lines().count() > 5, "{text}");
        for line in text.lines() {
            let [address, size, path] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            for byte in 0..size.parse().unwrap() {
                let name = symbolizer.data(BIAS + number(address) + byte);
                assert_eq!(name.as_ref().map(|name| &*name.path), Some(path), "{optimisation} {name:?}");
            }
        }
    }
}

/// gcc marks code that belongs to no line by line 0, as clang does for merged code.
#[test]
fn line_zero_is_the_line_before() {
    let folder = tempfile::tempdir().unwrap();
    let text = "int main(void) {\n    __asm__ volatile(\"nop\");\n    __asm__ volatile(\"nop\\n .loc 1 0 0\\n nop\\n \"\n        \"nowhere: nop\\n nop\");\n    return 0;\n}\n";
    std::fs::write(folder.path().join("zero.c"), text).unwrap();
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let built = Command::new("gcc")
            .args(["-g", version, "-no-pie", "-fno-pie", "-o", "program", "zero.c"])
            .current_dir(folder.path())
            .status();
        assert!(built.unwrap().success());
        let path = folder.path().join("program");
        let bytes = std::fs::read(&path).unwrap();
        let object = object::File::parse(&bytes[..]).unwrap();
        let nowhere = object.symbols().find(|symbol| symbol.name() == Ok("nowhere")).unwrap().address();
        let path = path.to_str().unwrap().to_owned();
        let module = Module { path, start: BIAS, end: BIAS + (1 << 30), bias: BIAS, build_id: Vec::new() };
        let frames = Symbolizer::new(&[module]).frames(BIAS + nowhere + 1);
        assert_eq!(frames[0].function.as_deref(), Some("main"), "{version}");
        assert_eq!(frames[0].line, Some(3), "{version}");
        assert!(frames[0].file.as_ref().is_some_and(|file| file.ends_with("/zero.c")), "{version}");
    }
}

/// Types that contain themselves, and calls inlined a hundred thousand times into each other.
#[test]
fn endless_debug_information_ends() {
    let folder = tempfile::tempdir().unwrap();
    let built = Command::new("gcc")
        .args(["-no-pie", "-o", "program"])
        .arg(source("endless.s"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let path = folder.path().join("program");
    let bytes = std::fs::read(&path).unwrap();
    let object = object::File::parse(&bytes[..]).unwrap();
    let symbol =
        |name: &str| BIAS + object.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap().address();
    let path = path.to_str().unwrap().to_owned();
    let module = Module { path, start: BIAS, end: BIAS + (1 << 30), bias: BIAS, build_id: Vec::new() };
    let mut symbolizer = Symbolizer::new(&[module]);
    let started = std::time::Instant::now();
    for name in ["alias_of_itself", "class_of_itself", "array_of_itself", "union_of_itself"] {
        for byte in 0..8 {
            let found = symbolizer.data(symbol(name) + byte).unwrap();
            assert!(found.path.starts_with(name), "{found:?}");
            symbolizer.data_access(symbol(name) + byte, 3);
        }
    }
    assert_eq!(symbolizer.frames(symbol("main") + 1)[0].function.as_deref(), Some("main"));
    assert_eq!(symbolizer.local(symbol("main") + 1, 1 << 40, 1 << 40), None);
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}

/// Every question of a damaged file is answered, with nothing or with nonsense, and soon. `RADDLE_TEST_ROUNDS` damages
/// more files.
#[test]
fn damaged_debug_information_never_panics() {
    let rounds =
        std::env::var("RADDLE_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(60);
    for (compiler, name, flags) in [
        ("gcc", "globals.c", ["-gdwarf-4", "-fdebug-types-section"]),
        ("g++", "frames.cc", ["-gdwarf-5", "-O2"]),
        ("clang-22", "globals.c", ["-gdwarf-5", "-O2"]),
        ("gcc", "locals.c", ["-gdwarf-5", "-O0"]),
    ] {
        let Some(program) = Program::build(compiler, name, &flags) else { continue };
        let good = std::fs::read(&program.path).unwrap();
        let sections: Vec<(u64, u64)> = {
            let object = object::File::parse(&good[..]).unwrap();
            let wanted = [
                ".debug_info",
                ".debug_abbrev",
                ".debug_types",
                ".debug_addr",
                ".debug_str_offsets",
                ".debug_rnglists",
                ".debug_loclists",
                ".debug_line",
                ".eh_frame",
                ".eh_frame_hdr",
            ];
            let debug = object.sections().filter(|s| s.name().is_ok_and(|name| wanted.contains(&name)));
            debug.filter_map(|section| section.file_range()).filter(|range| range.1 > 0).collect()
        };
        let folder = tempfile::tempdir().unwrap();
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for round in 0..rounds {
            let mut bytes = good.clone();
            for _ in 0..1 + random(1 << (round % 8)) {
                let (start, length) = sections[random(sections.len() as u64) as usize];
                let at = (start + random(length)) as usize;
                bytes[at] = match random(3) {
                    0 => random(256) as u8,
                    1 => bytes[at] ^ (1 << random(8)),
                    _ => [0, 0xff, 0x7f, 0x80][random(4) as usize],
                };
            }
            let path = folder.path().join(format!("damaged{round}"));
            std::fs::write(&path, &bytes).unwrap();
            let module = Module { path: path.to_str().unwrap().to_owned(), ..program.module() };
            let mut symbolizer = Symbolizer::new(&[module]);
            let started = std::time::Instant::now();
            for line in &program.lines {
                let pc = BIAS + number_or_zero(&line[1]);
                symbolizer.data(pc);
                symbolizer.data_access(pc, 4);
                symbolizer.frames(pc);
                symbolizer.thread_local(0, pc % 64);
                symbolizer.thread_local_at(0, -((pc % 64) as i64));
                if let [_, _, cfa, address, ..] = &line[..] {
                    symbolizer.local(pc, number_or_zero(cfa), number_or_zero(address));
                }
            }
            assert!(started.elapsed().as_secs() < 60, "round {round} of {}", program.what);
            std::fs::remove_file(&path).unwrap();
        }
    }
}

fn number_or_zero(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0)
}
