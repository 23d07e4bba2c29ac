//! Symbols of programs that are compiled here, with debug information in every form that compilers offer.

use object::{Object, ObjectSymbol};
use raddle_trace::Module;
use raddle_trace::symbols::Symbolizer;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = r#"
struct account { int number; int balance; };
struct account accounts[4];
static int total;

static inline __attribute__((always_inline)) void add(int amount) {
    total += amount;
}

__attribute__((noinline)) int deposit(int amount) {
    static int calls;
    calls++;
    add(amount);
    return total;
}

int main(void) {
    return deposit(0);
}
"#;

/// Where the pretended process had loaded the module.
const BIAS: u64 = 0x5555_0000_0000;

fn run(folder: &Path, command: &[&str]) -> bool {
    let (program, arguments) = command.split_first().unwrap();
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    output.is_ok_and(|output| output.status.success())
}

fn must_run(folder: &Path, command: &[&str]) {
    assert!(run(folder, command), "{command:?} failed");
}

fn build(folder: &Path, flags: &[&str]) -> PathBuf {
    std::fs::write(folder.join("bank.c"), PROGRAM).unwrap();
    // Compiled and linked separately, so that .dwo files get their proper names.
    let compile = [&["cc", "-O1", "-g", "-fno-pie", "-c", "bank.c", "-o", "bank.o"], flags].concat();
    must_run(folder, &compile);
    must_run(folder, &[&["cc", "-no-pie", "bank.o", "-o", "bank"], flags].concat());
    folder.join("bank")
}

struct Program {
    symbolizer: Symbolizer,
    object: Vec<u8>,
}

impl Program {
    fn of(path: &Path, symbols_from: &Path) -> Program {
        let object = std::fs::read(symbols_from).unwrap();
        let build_id =
            object::File::parse(&object[..]).unwrap().build_id().unwrap().unwrap_or_default().to_vec();
        let path = path.to_str().unwrap().to_owned();
        let module = Module { path, start: BIAS, end: BIAS + (1 << 30), bias: BIAS, build_id };
        Program { symbolizer: Symbolizer::new(&[module]), object }
    }

    fn symbol(&self, name: &str) -> (u64, u64) {
        let object = object::File::parse(&self.object[..]).unwrap();
        let symbol = object.symbols().find(|symbol| symbol.name() == Ok(name)).expect("symbol");
        (BIAS + symbol.address(), symbol.size())
    }

    /// All different stacks of frames in a function, as `function:line` innermost first.
    fn places(&mut self, function: &str) -> Vec<String> {
        let (start, size) = self.symbol(function);
        let mut places: Vec<String> = (start + 1..start + size)
            .map(|pc| {
                let frames = self.symbolizer.frames(pc);
                let texts: Vec<String> = frames
                    .iter()
                    .map(|frame| {
                        assert!(
                            frame.file.as_ref().is_none_or(|file| file.ends_with("/bank.c")),
                            "{frame:?}"
                        );
                        format!("{}:{}", frame.function.as_deref().unwrap_or("?"), frame.line.unwrap_or(0))
                    })
                    .collect();
                texts.join(" < ")
            })
            .collect();
        places.dedup();
        places.sort();
        places.dedup();
        places
    }
}

fn check_places(mut program: Program) {
    let places = program.places("deposit");
    assert!(places.contains(&"add:7 < deposit:13".to_owned()), "{places:?}");
    assert!(places.contains(&"deposit:12".to_owned()), "{places:?}");
}

#[test]
fn inlined_calls_and_lines_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), &[]);
    let mut program = Program::of(&path, &path);
    let (start, _) = program.symbol("deposit");
    assert_eq!(
        program.symbolizer.frames(start)[0].function.as_deref(),
        Some("deposit"),
        "an entry is not a return"
    );
    let raw = program.symbolizer.frames(start + 4)[0].raw.clone().unwrap();
    assert_eq!(raw, format!("bank+{:#x}", start + 4 - BIAS));
    assert_eq!(program.symbolizer.frames(0x10)[0].raw.as_deref(), Some("0x10"));
    check_places(program);
}

#[test]
fn compressed_split_and_separate_debug_information_is_found() {
    for (name, flags) in [
        ("dwarf 4", &["-gdwarf-4"][..]),
        ("zlib", &["-gz=zlib"]),
        ("split", &["-gsplit-dwarf"]),
        ("split dwarf 4", &["-gsplit-dwarf", "-gdwarf-4"]),
    ] {
        eprintln!("{name}");
        let folder = tempfile::tempdir().unwrap();
        let path = build(folder.path(), flags);
        check_places(Program::of(&path, &path));
    }
}

#[test]
fn packaged_debug_information_is_found() {
    let folder = tempfile::tempdir().unwrap();
    // The packager of binutils knows DWARF 4 only.
    let path = build(folder.path(), &["-gsplit-dwarf", "-gdwarf-4"]);
    must_run(folder.path(), &["dwp", "-e", "bank", "-o", "bank.dwp"]);
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap().path();
        if entry.extension().is_some_and(|extension| extension == "dwo") {
            std::fs::remove_file(entry).unwrap();
        }
    }
    check_places(Program::of(&path, &path));
}

#[test]
fn debug_links_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), &[]);
    must_run(folder.path(), &["objcopy", "--only-keep-debug", "bank", "bank.debug"]);
    must_run(folder.path(), &["objcopy", "--strip-all", "--add-gnu-debuglink=bank.debug", "bank"]);
    check_places(Program::of(&path, &folder.path().join("bank.debug")));
}

#[test]
fn global_variables_have_names_and_offsets() {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), &[]);
    let mut program = Program::of(&path, &path);
    let (accounts, size) = program.symbol("accounts");
    assert_eq!(program.symbolizer.describe(accounts + 12), "accounts+0xc");
    assert_eq!(program.symbolizer.variable(accounts).unwrap().size, size);
    assert!(program.symbolizer.variable(accounts + size).is_none_or(|other| other.name != "accounts"));
    let (total, _) = program.symbol("total");
    assert_eq!(program.symbolizer.describe(total), "total");
    let object = object::File::parse(&program.object[..]).unwrap();
    let calls =
        object.symbols().find(|symbol| symbol.name().is_ok_and(|name| name.starts_with("calls"))).unwrap();
    assert_eq!(program.symbolizer.describe(BIAS + calls.address()), "calls");
}

#[test]
fn a_rebuilt_file_gives_no_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = build(folder.path(), &["-Wl,--build-id=sha1"]);
    let before = Program::of(&path, &path);
    let (start, _) = before.symbol("deposit");
    let module = Module {
        path: path.to_str().unwrap().to_owned(),
        start: BIAS,
        end: BIAS + (1 << 30),
        bias: BIAS,
        build_id: vec![1, 2, 3],
    };
    let mut symbolizer = Symbolizer::new(&[module]);
    assert_eq!(symbolizer.frames(start + 4)[0].line, None);
    assert!(symbolizer.problems()[0].contains("rebuilt"), "{:?}", symbolizer.problems());
}

/// Functions all over a program with much debug information, this one or the one named by `RADDLE_TEST_PROGRAM`: a gigabyte
/// is enough.
#[test]
fn symbolising_stays_below_a_gigabyte() {
    let path = std::env::var_os("RADDLE_TEST_PROGRAM").map(PathBuf::from);
    let path = path.unwrap_or_else(|| std::env::current_exe().unwrap());
    let mut program = Program::of(&path, &path);
    let functions: Vec<u64> = {
        let object = object::File::parse(&program.object[..]).unwrap();
        let functions = object.symbols().filter(|symbol| symbol.is_definition() && symbol.size() > 16);
        let text = functions.filter(|symbol| symbol.kind() == object::SymbolKind::Text);
        text.map(|symbol| BIAS + symbol.address() + 8).collect()
    };
    program.object = Vec::new();
    let stride = functions.len().div_ceil(20_000).max(1);
    let asked = functions.iter().step_by(stride);
    let with_lines = asked.filter(|&&pc| program.symbolizer.frames(pc)[0].line.is_some()).count();
    assert!(with_lines > 100, "{} has debug information", path.display());
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches("kB").trim().parse().unwrap();
    assert!(kib < 1 << 20, "{kib} KiB for {with_lines} places");
}
