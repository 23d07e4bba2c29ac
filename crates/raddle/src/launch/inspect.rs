//! Looking into a program before it is started.
//!
//! A program either *carries* the runtime (it was built by `raddle cc`), or it does not and the shared runtime is loaded
//! into it with `LD_PRELOAD`, which sees its synchronisation but not its memory accesses. Three kinds of program
//! cannot be observed at all, and it is better to say so than to let them crash: fully static ones (nothing can be put in
//! front of the C library), those with another sanitizer's runtime (both want the same functions), and those for
//! another processor.
//!
//! A script is none of these, and neither is a *launcher*: a program without threads of its own, such as `make`, `env` or
//! `timeout`. They are started as they are, and the instrumented programs that they start are observed
//! ([`super::following`]).

use crate::compiler::Refusal;
use crate::compiler::choice;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, elf};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What a program brings along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carries {
    /// The runtime is part of the executable or linked to it.
    #[default]
    Runtime,
    /// An ordinary dynamic program that makes threads.
    Nothing,
    /// An ordinary dynamic program that does not make threads itself.
    Launcher,
    /// Not a binary: its interpreter runs it.
    Script,
}

/// Every name that the runtime gives to the world and that is its alone starts with this.
const MARKER_PREFIX: &str = "raddle_";

/// Finds a program by path or by name.
pub fn find(program: &Path) -> Result<PathBuf, Refusal> {
    if let Some(found) = choice::find(program) {
        return Ok(found);
    }
    let shown = program.display();
    Err(Refusal(if program.is_dir() {
        format!("{shown} is a folder, not a program")
    } else if program.exists() {
        format!("{shown} is not executable; make it so with `chmod +x {shown}`")
    } else if program.components().count() > 1 {
        format!("there is no program {shown}")
    } else {
        format!("there is no program {shown} in PATH; for one in this folder write ./{shown}")
    }))
}

/// What the program carries, or why it cannot be observed.
pub fn inspect(path: &Path) -> Result<Carries, Refusal> {
    let shown = path.display();
    let file = std::fs::File::open(path).map_err(|error| Refusal(format!("cannot read {shown}: {error}")))?;
    let mode = file.metadata().map(|found| found.permissions().mode()).unwrap_or(0);
    // SAFETY: the map is only read; a file that changes under us changes bytes that `object` checks as it goes.
    let map = unsafe { memmap2::Mmap::map(&file) }
        .map_err(|error| Refusal(format!("cannot read {shown}: {error}")))?;
    let carries = inspect_bytes(&map).map_err(|problem| Refusal(format!("{shown} {problem}")))?;
    if carries == Carries::Script {
        inspect_script(&map).map_err(|problem| Refusal(format!("{shown} {problem}")))?;
    }
    if matches!(carries, Carries::Nothing | Carries::Launcher) && mode & 0o6000 != 0 {
        return Err(Refusal(format!(
            "{shown} runs with another user's rights, so nothing can be loaded into it; record a copy without the set-user-id bit"
        )));
    }
    Ok(carries)
}

/// Can the kernel start this file, which is no binary? The problem is the rest of a sentence that begins with the program's name.
fn inspect_script(bytes: &[u8]) -> Result<(), String> {
    if bytes.is_empty() {
        return Err("is an empty file, not a program".into());
    }
    let Some(line) = bytes.strip_prefix(b"#!").and_then(|rest| rest.split(|&byte| byte == b'\n').next())
    else {
        return Err("is neither a program nor a script that names its interpreter (`#!/bin/sh`)".into());
    };
    let line = String::from_utf8_lossy(line);
    let Some(interpreter) = line.split_whitespace().next() else {
        return Err("names no interpreter in its first line".into());
    };
    if !Path::new(interpreter).exists() {
        return Err(format!("is a script for {interpreter}, which is not there"));
    }
    Ok(())
}

/// The problem is the rest of a sentence that begins with the program's name.
fn inspect_bytes(bytes: &[u8]) -> Result<Carries, String> {
    if !bytes.starts_with(&elf::ELFMAG) {
        return Ok(Carries::Script);
    }
    let broken = |error: object::Error| format!("is not a sound ELF file: {error}");
    if bytes.get(4) != Some(&elf::ELFCLASS64) || machine(bytes) != Some(elf::EM_X86_64) {
        return Err("is not a 64-bit x86 program, which is all that Raddle can observe".into());
    }
    let header = elf::FileHeader64::<Endianness>::parse(bytes).map_err(broken)?;
    let endian = header.endian().map_err(broken)?;
    let segments = header.program_headers(endian, bytes).map_err(broken)?;
    let file = object::File::parse(bytes).map_err(broken)?;

    let defined: Vec<&str> = file
        .dynamic_symbols()
        .chain(file.symbols())
        .filter(|symbol| symbol.is_definition())
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    let has = |name: &str| defined.contains(&name);
    let ours = defined.iter().any(|name| name.starts_with(MARKER_PREFIX)) && has("__tsan_init");
    let needed = needed_libraries(segments, endian, bytes).map_err(broken)?;
    let needs = |prefix: &str| needed.iter().any(|name| name.starts_with(prefix));

    for (library, symbol, name) in [
        ("libtsan.", "__tsan_report_race_thunk", "thread"),
        ("libclang_rt.tsan", "__tsan_get_report_data", "thread"),
        ("libasan.", "__asan_init", "address"),
        ("libclang_rt.asan", "__asan_init", "address"),
        ("libclang_rt.msan", "__msan_init", "memory"),
        ("liblsan.", "__lsan_do_leak_check", "leak"),
    ] {
        if needs(library) || (has(symbol) && !ours) {
            return Err(format!(
                "contains the compiler's own runtime of -fsanitize={name}, and two runtimes cannot share a process; build it with `raddle cc` and without that flag on the link line"
            ));
        }
    }
    if !segments.iter().any(|segment| segment.p_type(endian) == elf::PT_INTERP) {
        return Err(
            "is a fully static program, in which no library call can be observed; link it without -static"
                .into(),
        );
    }
    let makes_threads = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined())
        .filter_map(|symbol| symbol.name().ok())
        .any(|name| THREAD_MAKERS.iter().any(|maker| name.starts_with(maker)));
    Ok(match ours || needs("libraddle_rt") {
        true => Carries::Runtime,
        false if makes_threads => Carries::Nothing,
        false => Carries::Launcher,
    })
}

/// Beginnings of the names of functions with which programs make threads: POSIX, C11, C++, OpenMP.
const THREAD_MAKERS: [&str; 5] =
    ["pthread_create", "thrd_create", "_ZNSt6thread15_M_start_thread", "GOMP_", "__kmpc_"];

fn machine(bytes: &[u8]) -> Option<u16> {
    Some(u16::from_le_bytes([*bytes.get(18)?, *bytes.get(19)?]))
}

fn needed_libraries(
    segments: &[elf::ProgramHeader64<Endianness>],
    endian: Endianness,
    bytes: &[u8],
) -> object::Result<Vec<String>> {
    let Some(dynamic) = segments.iter().find_map(|segment| segment.dynamic(endian, bytes).ok().flatten())
    else {
        return Ok(Vec::new());
    };
    let value = |tag: u32| {
        dynamic.iter().find(|entry| entry.tag32(endian) == Some(tag)).map(|entry| entry.d_val(endian))
    };
    let (Some(address), Some(size)) = (value(elf::DT_STRTAB), value(elf::DT_STRSZ)) else {
        return Ok(Vec::new());
    };
    let strings = segments
        .iter()
        .find_map(|segment| segment.data_range(endian, bytes, address, size).ok().flatten())
        .unwrap_or_default();
    Ok(dynamic
        .iter()
        .filter(|entry| entry.tag32(endian) == Some(elf::DT_NEEDED))
        .filter_map(|entry| {
            let name = strings.get(usize::try_from(entry.d_val(endian)).ok()?..)?;
            let end = name.iter().position(|&byte| byte == 0)?;
            Some(String::from_utf8_lossy(&name[..end]).into_owned())
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_program_itself_is_an_ordinary_one() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(inspect_bytes(&bytes), Ok(Carries::Nothing));
    }

    #[test]
    fn scripts_and_rubbish() {
        assert_eq!(inspect_bytes(b"#!/bin/sh\n"), Ok(Carries::Script));
        assert_eq!(inspect_bytes(b""), Ok(Carries::Script));
        assert!(inspect_bytes(b"\x7fELF").unwrap_err().contains("64-bit"));
        let mut bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        bytes[18] = 40;
        assert!(inspect_bytes(&bytes).unwrap_err().contains("64-bit x86"));
        bytes[18] = 62;
        // Whatever is cut off, the answer is an answer and not a panic.
        for length in [20, 64, 100, 1000, 5000] {
            let _ = inspect_bytes(&bytes[..length]);
        }
    }

    #[test]
    fn a_script_names_its_interpreter() {
        let problem = |text: &str| inspect_script(text.as_bytes()).err().unwrap_or_default();
        assert_eq!(problem("#!/bin/sh\nexit 0\n"), "");
        assert_eq!(problem("#! /bin/sh -e"), "");
        assert!(problem("").contains("empty"));
        assert!(problem("hello").contains("#!/bin/sh"));
        assert!(problem("#!\n").contains("no interpreter"));
        assert!(problem("#!/no/such/shell -x\n").contains("/no/such/shell, which is not there"));
    }

    #[test]
    fn a_missing_program_says_what_to_do() {
        let refusal = |path: &str| find(Path::new(path)).unwrap_err().to_string();
        assert!(refusal("no-such-program-at-all").contains("./no-such-program-at-all"));
        assert!(refusal("/no/such/program").contains("there is no program /no/such/program"));
        assert!(refusal("/tmp/../tmp").contains("folder"));
    }
}
