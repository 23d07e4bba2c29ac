//! Builds the runtime and packs it into the `raddle` binary.
//!
//! The runtime (`crates/raddle-rt`) is not an ordinary dependency: it does not run inside `raddle` but inside the
//! tested program. So it is built by a nested `cargo build` with settings of its own (`panic=abort`, one code-generation unit,
//! whole-program optimisation, whatever profile `raddle` itself is built in), and what comes out travels as data:
//!
//! | file | what it is |
//! | --- | --- |
//! | `raddle_rt.o` | the whole runtime as *one* relocatable object in which only the exported names are global |
//! | `libraddle_rt.so` | the same object as a shared library, for `LD_PRELOAD` and `RADDLE_LINK=shared` |
//! | `exports.list` | the exported names as a linker's dynamic list: libraries find the runtime in the executable |
//! | `include/raddle.h` | the header for programs that speak to Raddle |
//! | `gcc/libtsan.a`, `gcc/libtsan_preinit.o` | empty: what gcc links instead of its own runtime |
//!
//! # Why one localised object
//!
//! A Rust static library drags `rust_eh_personality` and the like into every program. Two of them in one program (a
//! tested program may itself contain Rust) collide. Linking it into one relocatable object and making every name
//! local that is not exported removes the collision at the source.
//!
//! Names that the runtime merely interposes (`malloc`, `pthread_mutex_lock`, ...) become *weak*: a program that brings
//! its own `malloc` or `strlcpy` must link as it did before. Only the compiler's interface (`__tsan_*`) and Raddle's own
//! names stay strong.
//!
//! The sections `.llvmbc` and `.llvmcmd` (bitcode that rustc leaves in its standard library) are removed, because
//! binutils hand such objects to whatever LLVM plugin is installed, which dies on bitcode newer than itself.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Level at which the embedded files are compressed. They are small and this runs once.
const ZSTD_LEVEL: i32 = 19;

fn main() {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let crates = manifest.parent().expect("crates/raddle has a parent").to_path_buf();
    let out = PathBuf::from(variable("OUT_DIR"));
    let runtime = crates.join("raddle-rt");
    let header = runtime.join("include/raddle.h");
    let exports = runtime.join("exports.txt");

    for path in
        ["build.rs", "../raddle-rt", "../raddle-hb", "../raddle-sched", "../raddle-wire", "../../Cargo.toml"]
    {
        println!("cargo::rerun-if-changed={path}");
    }

    let staging = out.join("embedded");
    let _ = fs::remove_dir_all(&staging);
    for folder in ["include", "gcc"] {
        make_folder(&staging.join(folder));
    }

    let names = read_exports(&exports);
    let archive = build_static_library(&runtime, &out);
    let object = staging.join("raddle_rt.o");
    Tools::find().localise(&archive, &names, &out, &object);
    link_shared(&object, &staging.join("libraddle_rt.so"));
    write(&staging.join("exports.list"), dynamic_list(&names).as_bytes());
    fs::copy(&header, staging.join("include/raddle.h"))
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", header.display()));
    write(&staging.join("gcc/libtsan.a"), b"!<arch>\n");
    empty_object(&staging.join("gcc/libtsan_preinit.o"));

    embed(
        &staging,
        &out,
        &[
            "raddle_rt.o",
            "libraddle_rt.so",
            "exports.list",
            "include/raddle.h",
            "gcc/libtsan.a",
            "gcc/libtsan_preinit.o",
        ],
    );
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}

fn make_folder(path: &Path) {
    fs::create_dir_all(path).unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?} failed ({}):\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// One name a line; empty lines and `#` comments are skipped.
fn read_exports(path: &Path) -> Vec<String> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
    let mut names: Vec<String> = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or("").trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// `--dynamic-list` is the one spelling that every linker (bfd, gold, lld, mold) knows.
fn dynamic_list(names: &[String]) -> String {
    let mut text = String::from("{\n");
    for name in names {
        text.push_str(&format!("  {name};\n"));
    }
    text.push_str("};\n");
    text
}

/// Builds `raddle-rt` as a static library with its own target folder: sharing the outer one would wait for the lock
/// that the outer cargo holds.
fn build_static_library(runtime: &Path, out: &Path) -> PathBuf {
    let target = variable("TARGET");
    let target_dir = out.join("raddle-rt-target");
    let mut command = Command::new(variable("CARGO"));
    command
        .current_dir(runtime)
        .args(["rustc", "--release", "--lib", "--crate-type", "staticlib", "--target", &target])
        .arg("--manifest-path")
        .arg(runtime.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target_dir)
        .env("CARGO_PROFILE_RELEASE_PANIC", "abort")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "3")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1")
        .env("CARGO_PROFILE_RELEASE_LTO", "fat")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only")
        .env("CARGO_PROFILE_RELEASE_STRIP", "none")
        .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "false")
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "false");
    // 16-byte atomics are one instruction and not a call into libatomic, which a program need not have.
    command.env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=+cx16");
    // The outer build's flags (coverage, sanitizers, clippy as a compiler) must not reach the runtime.
    for name in [
        "RUSTFLAGS",
        "CARGO_BUILD_RUSTFLAGS",
        "CARGO_TARGET_DIR",
        "CARGO_BUILD_TARGET_DIR",
        "RUSTC_WORKSPACE_WRAPPER",
        "CLIPPY_ARGS",
    ] {
        command.env_remove(name);
    }
    run(&mut command);
    target_dir.join(target).join("release/libraddle_rt.a")
}

/// The linker and the object editor. The Rust toolchain has both; binutils are the second choice.
struct Tools {
    linker: PathBuf,
    linker_flavour: &'static [&'static str],
    objcopy: PathBuf,
}

impl Tools {
    fn find() -> Tools {
        let rustc = variable("RUSTC");
        let output = Command::new(&rustc)
            .args(["--print", "sysroot"])
            .output()
            .unwrap_or_else(|error| panic!("cannot start {rustc}: {error}"));
        let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        let bin = sysroot.join("lib/rustlib").join(variable("HOST")).join("bin");
        let (lld, objcopy) = (bin.join("rust-lld"), bin.join("rust-objcopy"));
        let (linker, linker_flavour): (PathBuf, &[&str]) =
            if lld.exists() { (lld, &["-flavor", "gnu"]) } else { ("ld".into(), &[]) };
        let objcopy = if objcopy.exists() { objcopy } else { "objcopy".into() };
        Tools { linker, linker_flavour, objcopy }
    }

    /// Turns the static library into one object with only `names` global.
    fn localise(&self, archive: &Path, names: &[String], out: &Path, object: &Path) {
        let renamed = out.join("libraddle_rt.renamed.a");
        let mut rename = Command::new(&self.objcopy);
        for name in CALLED_BY_COMPILER {
            rename.arg(format!("--redefine-sym={name}=raddle_own_{name}"));
            if names.iter().any(|exported| exported == name) {
                rename.arg(format!("--redefine-sym=raddle_export_{name}={name}"));
            }
        }
        // Before anything is linked: names meet only there.
        run(rename.arg(archive).arg(&renamed));
        let whole = out.join("raddle_rt.whole.o");
        run(Command::new(&self.linker)
            .args(self.linker_flavour)
            .args(["-r", "--whole-archive", "-o"])
            .arg(&whole)
            .arg(&renamed));
        let keep = out.join("keep-global.txt");
        write(&keep, names.join("\n").as_bytes());
        let weak = out.join("weaken.txt");
        let weak_names: Vec<&str> =
            names.iter().map(String::as_str).filter(|name| interposed(name)).collect();
        write(&weak, weak_names.join("\n").as_bytes());
        run(Command::new(&self.objcopy)
            .arg(format!("--keep-global-symbols={}", keep.display()))
            .arg(format!("--weaken-symbols={}", weak.display()))
            .args(["--remove-section=.llvmbc", "--remove-section=.llvmcmd", "--strip-debug"])
            .arg(&whole)
            .arg(object));
        let _ = fs::remove_file(&whole);
        let _ = fs::remove_file(&renamed);
    }
}

/// Functions of C that the compiler calls by itself. The runtime has its own, whatever it puts before the program's
/// (`own_memory.rs`).
const CALLED_BY_COMPILER: &[&str] = &["memcpy", "memmove", "memset", "memcmp", "bcmp", "strlen"];

/// Does the runtime merely stand in front of this function of another library?
fn interposed(name: &str) -> bool {
    !(name.starts_with("__tsan_") || name.starts_with("raddle") || name.starts_with("__raddle"))
}

/// The C compiler driver that rustc itself needs for linking is the one tool that is always there.
fn driver() -> Command {
    Command::new(env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into()))
}

fn link_shared(object: &Path, library: &Path) {
    run(driver()
        .args([
            "-shared",
            "-Wl,-soname,libraddle_rt.so",
            "-Wl,-z,now",
            "-Wl,-z,defs",
            "-Wl,--gc-sections",
            "-o",
        ])
        .arg(library)
        .arg(object)
        .args(["-ldl", "-lpthread"]));
}

fn empty_object(path: &Path) {
    run(driver().args(["-x", "c", "-c", "/dev/null", "-o"]).arg(path));
}

/// Compresses the files and writes the Rust source that includes them.
fn embed(staging: &Path, out: &Path, files: &[&str]) {
    let mut low = DefaultHasher::new();
    let mut high = DefaultHasher::new();
    1u8.hash(&mut high);
    let mut source = String::from("pub const FILES: &[File] = &[\n");
    for name in files {
        let path = staging.join(name);
        let bytes = fs::read(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        (name, &bytes).hash(&mut low);
        (name, &bytes).hash(&mut high);
        let packed = out.join(format!("{}.zst", name.replace('/', "-")));
        write(&packed, &zstd::bulk::compress(&bytes, ZSTD_LEVEL).expect("zstd compresses anything"));
        source.push_str(&format!(
            "    File {{ name: {name:?}, bytes: {}, packed: include_bytes!({packed:?}) }},\n",
            bytes.len()
        ));
    }
    source.push_str("];\n");
    source.push_str(&format!(
        "pub const CONTENT_HASH: &str = \"{:016x}{:016x}\";\n",
        high.finish(),
        low.finish()
    ));
    write(&out.join("embedded.rs"), source.as_bytes());
}
