//! What a compiler command line asks for.
//!
//! Raddle needs to know little: does this call link, and what kind of thing; does it compile; does it merely ask the
//! compiler something. Everything else is the compiler's business and is passed on as it stands. The one difficulty
//! is to tell an input file from the argument of an option, which is what [`TAKES_ARGUMENT`] is for.

use super::response;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Where the compiler stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// `-E`, `-M`, `-MM`.
    Preprocess,
    /// `-S`, `-fsyntax-only`, `-emit-llvm` without `-c`, ...
    Compile,
    /// `-c`.
    Assemble,
    Link,
}

/// What a link makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Product {
    Executable,
    SharedLibrary,
    /// `-r`: one object out of several.
    Relocatable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputKind {
    /// Something that goes through the compiler proper.
    Source,
    /// Precompiled on its own, and then nothing is linked.
    Header,
    /// Assembly that is not preprocessed.
    Assembly,
    /// Objects, archives, libraries, linker scripts.
    Linkable,
}

/// A command line, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub stage: Stage,
    pub product: Product,
    /// At least one input goes through the compiler proper.
    pub compiles: bool,
    /// The flag that asks for a fully static program.
    pub static_flag: Option<String>,
    /// The flag that asks for another processor or C library than the runtime is made for, if the last of its kind does.
    pub foreign: Option<String>,
    /// Sanitizers that are on at the end of the line, in order.
    pub sanitizers: Vec<String>,
    /// `-fno-sanitize=thread` or `-fno-sanitize=all`: the user wants this file left alone.
    pub uninstrumented: bool,
    /// `-Wl,--no-undefined`, `-Wl,-z,defs`.
    pub forbids_undefined: bool,
    /// `-nostdlib`, `-nodefaultlibs`.
    pub without_libraries: bool,
    asks: bool,
    has_input: bool,
}

/// Options whose argument is the next word.
const TAKES_ARGUMENT: &[&str] = &[
    "-A",
    "-B",
    "-D",
    "-F",
    "-G",
    "-I",
    "-L",
    "-MF",
    "-MJ",
    "-MQ",
    "-MT",
    "-T",
    "-U",
    "-V",
    "-Xarch_host",
    "-Xassembler",
    "-Xclang",
    "-Xlinker",
    "-Xpreprocessor",
    "-arch",
    "-aux-info",
    "-b",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-e",
    "-framework",
    "-h",
    "-idirafter",
    "-imacros",
    "-imultilib",
    "-include",
    "-include-pch",
    "-iprefix",
    "-iquote",
    "-isysroot",
    "-isystem",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-ivfsoverlay",
    "-mllvm",
    "-mthread-model",
    "-o",
    "-resource-dir",
    "-serialize-diagnostics",
    "-target",
    "-u",
    "-wrapper",
    "-z",
    "--assert",
    "--define-macro",
    "--entry",
    "--for-linker",
    "--include",
    "--include-directory",
    "--library-directory",
    "--output",
    "--param",
    "--serialize-diagnostics",
    "--sysroot",
    "--undefine-macro",
];

/// Endings of what is compiled. Files with an ending that is unknown are handed to the linker, as the compilers do.
const SOURCE_ENDINGS: &[&str] = &[
    "c", "i", "ii", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "tcc", "m", "M", "mm", "mi", "mii", "ll",
    "bc", "S", "sx", "cppm", "ixx",
];

const HEADER_ENDINGS: &[&str] = &["h", "hh", "hp", "hpp", "HPP", "H", "hxx", "h++"];

impl Request {
    pub fn read(arguments: &[OsString]) -> Request {
        let expanded = response::expand(arguments);
        let mut reader = Reader::default();
        let mut words = expanded.iter();
        while let Some(word) = words.next() {
            reader.word(word, &mut words);
        }
        reader.finish()
    }

    /// Is the compiler only asked something (`--version`, `-print-search-dirs`, `-v` alone)?
    pub fn only_asks(&self) -> bool {
        self.asks || !self.has_input
    }

    pub fn links(&self) -> bool {
        self.stage == Stage::Link
    }
}

/// Reads one word after the other.
struct Reader {
    request: Request,
    /// `-x LANGUAGE` in force.
    language: Option<InputKind>,
    has_header: bool,
    has_other: bool,
}

impl Default for Reader {
    fn default() -> Self {
        let request = Request {
            stage: Stage::Link,
            product: Product::Executable,
            compiles: false,
            static_flag: None,
            foreign: None,
            sanitizers: Vec::new(),
            uninstrumented: false,
            forbids_undefined: false,
            without_libraries: false,
            asks: false,
            has_input: false,
        };
        Reader { request, language: None, has_header: false, has_other: false }
    }
}

impl Reader {
    fn word<'a>(&mut self, word: &OsStr, following: &mut impl Iterator<Item = &'a OsString>) {
        // File names may be anything, options are text.
        let Some(text) = word.to_str() else {
            return self.input(word);
        };
        if text == "-" || !text.starts_with('-') {
            return self.input(word);
        }
        match text {
            "-x" | "--language" => {
                let language = following.next().and_then(|language| language.to_str()).unwrap_or("none");
                return self.set_language(language);
            }
            // `-l name` is an input, `-z defs` and `-Xlinker x` speak to the linker.
            "-l" => {
                following.next();
                return self.count(InputKind::Linkable);
            }
            "-z" | "-Xlinker" => {
                if let Some(argument) = following.next().and_then(|argument| argument.to_str()) {
                    self.linker_word(argument);
                }
                return;
            }
            "-target" => {
                let target = following.next().and_then(|target| target.to_str()).unwrap_or_default();
                return self.target(&format!("-target {target}"), target);
            }
            _ if TAKES_ARGUMENT.contains(&text) => {
                following.next();
                return;
            }
            _ => {}
        }
        self.option(text);
    }

    fn option(&mut self, text: &str) {
        let request = &mut self.request;
        match text {
            "-E" | "-M" | "-MM" | "--preprocess" | "--dependencies" | "--user-dependencies" => {
                self.stop_at(Stage::Preprocess);
            }
            "-S" | "--assemble" | "-fsyntax-only" | "--analyze" | "--precompile" | "-emit-ast"
            | "-verify-pch" => {
                self.stop_at(Stage::Compile);
            }
            "-c" | "--compile" => self.stop_at(Stage::Assemble),
            "-shared" | "--shared" => request.product = Product::SharedLibrary,
            "-r" | "--relocatable" => request.product = Product::Relocatable,
            "-static" | "--static" | "-static-pie" | "--static-pie" => {
                request.static_flag = Some(text.to_owned())
            }
            "-nostdlib" | "-nodefaultlibs" | "--no-standard-libraries" => request.without_libraries = true,
            "-m64" => request.foreign = None,
            "-m16" | "-m32" | "-mx32" => request.foreign = Some(text.to_owned()),
            "--version" | "--help" | "-help" | "-dumpversion" | "-dumpfullversion" | "-dumpmachine"
            | "-dumpspecs" | "--target-help" => request.asks = true,
            _ => {
                if let Some(language) = text.strip_prefix("-x").or(text.strip_prefix("--language=")) {
                    self.set_language(language);
                } else if let Some(list) = text.strip_prefix("-Wl,") {
                    list.split(',').for_each(|word| self.linker_word(word));
                } else if let Some(word) = text.strip_prefix("-z") {
                    self.linker_word(word);
                } else if let Some(list) = text.strip_prefix("-fsanitize=") {
                    self.sanitize(list);
                } else if let Some(list) = text.strip_prefix("-fno-sanitize=") {
                    self.do_not_sanitize(list);
                } else if let Some(target) = text.strip_prefix("--target=") {
                    self.target(text, target);
                } else if text.starts_with("-specs=") && text.contains("musl") {
                    request.foreign = Some(text.to_owned());
                } else if text.starts_with("-l") {
                    self.count(InputKind::Linkable);
                } else if text.starts_with("-print-")
                    || text.starts_with("--print-")
                    || text.starts_with("--help=")
                {
                    request.asks = true;
                }
            }
        }
    }

    /// `x86_64-pc-linux-gnu` and its shorter forms are what the runtime is made for.
    fn target(&mut self, flag: &str, target: &str) {
        let mut parts = target.split('-');
        let processor = matches!(parts.next(), Some("x86_64" | "amd64"));
        let others = ["musl", "gnux32", "android", "windows", "darwin", "freebsd"];
        let system = !parts.any(|part| others.iter().any(|other| part.starts_with(other)));
        self.request.foreign = (!processor || !system).then(|| flag.to_owned());
    }

    fn stop_at(&mut self, stage: Stage) {
        self.request.stage = self.request.stage.min(stage);
    }

    fn set_language(&mut self, language: &str) {
        self.language = match language {
            "none" => None,
            "assembler" => Some(InputKind::Assembly),
            header if header.ends_with("-header") => Some(InputKind::Header),
            _ => Some(InputKind::Source),
        };
    }

    fn linker_word(&mut self, word: &str) {
        match word {
            "--no-undefined" | "defs" => self.request.forbids_undefined = true,
            "undefs" => self.request.forbids_undefined = false,
            "-r" | "--relocatable" => self.request.product = Product::Relocatable,
            "-shared" | "-Bshareable" => self.request.product = Product::SharedLibrary,
            _ => {}
        }
    }

    fn sanitize(&mut self, list: &str) {
        for name in list.split(',').filter(|name| !name.is_empty()) {
            if name == "thread" {
                self.request.uninstrumented = false;
            }
            if !self.request.sanitizers.iter().any(|known| known == name) {
                self.request.sanitizers.push(name.to_owned());
            }
        }
    }

    fn do_not_sanitize(&mut self, list: &str) {
        for name in list.split(',') {
            if name == "thread" || name == "all" {
                self.request.uninstrumented = true;
            }
            self.request.sanitizers.retain(|known| known != name && name != "all");
        }
    }

    fn input(&mut self, word: &OsStr) {
        let kind = self.language.unwrap_or_else(|| kind_of(word));
        self.count(kind);
    }

    fn count(&mut self, kind: InputKind) {
        self.request.has_input = true;
        self.request.compiles |= matches!(kind, InputKind::Source | InputKind::Header);
        if kind == InputKind::Header {
            self.has_header = true;
        } else {
            self.has_other = true;
        }
    }

    fn finish(mut self) -> Request {
        if self.has_header && !self.has_other {
            self.stop_at(Stage::Compile);
        }
        self.request
    }
}

fn kind_of(path: &OsStr) -> InputKind {
    let bytes = path.as_bytes();
    let name = bytes.rsplit(|&byte| byte == b'/').next().unwrap_or(bytes);
    let Some(dot) = name.iter().rposition(|&byte| byte == b'.') else { return InputKind::Linkable };
    match std::str::from_utf8(&name[dot + 1..]) {
        Ok("s") => InputKind::Assembly,
        Ok(ending) if SOURCE_ENDINGS.contains(&ending) => InputKind::Source,
        Ok(ending) if HEADER_ENDINGS.contains(&ending) => InputKind::Header,
        _ => InputKind::Linkable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Request {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Request::read(&words)
    }

    /// Stage, product, whether it compiles.
    fn check(line: &str, stage: Stage, product: Product, compiles: bool) {
        let request = read(line);
        assert!(!request.only_asks(), "{line}");
        assert_eq!((request.stage, request.product, request.compiles), (stage, product, compiles), "{line}");
    }

    #[test]
    fn stages() {
        use Product::*;
        use Stage::*;
        check("a.c", Link, Executable, true);
        check("-c a.c -o a.o", Assemble, Executable, true);
        check("-c a.s", Assemble, Executable, false);
        check("-c a.S", Assemble, Executable, true);
        check("-S a.c", Compile, Executable, true);
        check("-E -dM -x c /dev/null", Preprocess, Executable, true);
        check("-M a.c", Preprocess, Executable, true);
        check("-MD -MF a.d -c a.c", Assemble, Executable, true);
        check("-c -E a.c", Preprocess, Executable, true);
        check("-x c - -o a", Link, Executable, true);
        check("-xc++ - -fsyntax-only", Compile, Executable, true);
        check("-xassembler - -c", Assemble, Executable, false);
        check("a.o b.a libx.so libx.so.1 -o a", Link, Executable, false);
        check("-o a -Wl,--whole-archive -lx", Link, Executable, false);
        check("-shared a.o", Link, SharedLibrary, false);
        check("-shared -fPIC a.c b.o", Link, SharedLibrary, true);
        check("-r a.o b.o", Link, Relocatable, false);
        check("-Wl,-r -nostdlib a.o", Link, Relocatable, false);
        check("-x c a.txt -x none b.o", Link, Executable, true);
        check("-x c-header a.h -o a.pch", Compile, Executable, true);
        check("a.hpp", Compile, Executable, true);
        check("-E a.h", Preprocess, Executable, true);
    }

    #[test]
    fn arguments_of_options_are_no_inputs() {
        for line in ["-o a.c", "-I x.c -D y.c -include z.c", "-Xlinker a.o -MF a.d", "--param x=1 -T a.ld"] {
            assert!(read(line).only_asks(), "{line}");
        }
    }

    #[test]
    fn questions() {
        for line in [
            "--version",
            "-v",
            "-dumpmachine",
            "-print-prog-name=ld",
            "--help=common",
            "-print-file-name=x a.c",
            "",
        ] {
            assert!(read(line).only_asks(), "{line}");
        }
        assert!(!read("-v a.c").only_asks());
        assert!(!read("-### a.c").only_asks());
    }

    #[test]
    fn facts_about_a_link() {
        assert_eq!(read("-static a.o").static_flag.as_deref(), Some("-static"));
        assert_eq!(read("-static-libgcc a.o").static_flag, None);
        for line in [
            "-Wl,--no-undefined a.o",
            "-Wl,-z,defs a.o",
            "-z defs a.o",
            "-Xlinker --no-undefined a.o",
            "-zdefs a.o",
        ] {
            assert!(read(line).forbids_undefined, "{line}");
        }
        assert!(!read("-Wl,-z,defs -Wl,-z,undefs a.o").forbids_undefined);
        assert!(read("-nostdlib a.o").without_libraries);
    }

    #[test]
    fn sanitizers_add_up_and_are_taken_back() {
        assert_eq!(read("-fsanitize=thread,undefined a.c").sanitizers, ["thread", "undefined"]);
        assert_eq!(read("-fsanitize=address -fno-sanitize=address a.c").sanitizers, [""; 0]);
        assert!(read("-fno-sanitize=thread a.c").uninstrumented);
        assert!(!read("-fno-sanitize=thread -fsanitize=thread a.c").uninstrumented);
        assert_eq!(read("-fsanitize=thread -fno-sanitize=all a.c").sanitizers, [""; 0]);
    }

    #[test]
    fn response_files_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("line.rsp");
        std::fs::write(&path, "-shared \"a b.c\"").unwrap();
        check(&format!("@{}", path.display()), Stage::Link, Product::SharedLibrary, true);
    }
}
