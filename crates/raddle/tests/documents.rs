//! What the README and the pages of `docs/` tell a reader to type works as it is written there: every line that begins with `$ ` is run
//! by a shell, page by page, in a folder with the examples and the corpus, and what the page shows below it has to be printed.
//!
//! `...` at the beginning of a shown line stands for any number of lines. Exit status 0 and 1 (something was found) are
//! right; anything else is an error of the page.

mod common;

use common::{RADDLE, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Commands that are not run here, by what they contain, and why.
const ELSEWHERE: [(&str, &str); 16] = [
    ("cargo xtask test", "runs this test"),
    ("cargo install", "changes the machine; `installing.rs` looks at the package"),
    ("rustup component", "changes the machine"),
    ("cargo raddle test", "`cargo.rs`"),
    ("make CC=", "`build_systems.rs`"),
    ("./configure", "`build_systems.rs`"),
    ("cmake", "`build_systems.rs`"),
    ("meson", "`build_systems.rs`"),
    ("make check", "the reader's own tests"),
    ("./program", "the reader's own program"),
    ("./server", "the reader's own program"),
    ("./queue_test", "the reader's own program"),
    ("./crossed", "the reader's own program"),
    ("server.demo", "the reader's own program"),
    ("raddle merge part-", "`portfolio.rs`: shards_add_up"),
    ("raddle replay 2df9c01947d7", "`the_readme_names_a_finding_of_the_example`"),
];

/// What the reader of a page has in the folder.
fn given(page: &str) -> &'static str {
    match page {
        "detectors.md" => {
            "sed s/pay_interest/account_interest/ examples/bank.c > prog.c && raddle -q record -o good.trace prog.c \
             && cp good.trace good1.trace && cp good.trace good2.trace && echo 'deposit withdraw' > map.contract"
        }
        "run.md" => "cp examples/bank.c bank.c && cp examples/bank.c queue.c && : > tsan.supp",
        "predict.md" => {
            "raddle -q record -o bank.trace examples/bank.c && raddle -q trace convert bank.trace trace.std"
        }
        _ => "true",
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A command of a page, and the lines shown below it.
#[derive(Debug)]
struct Typed {
    line: usize,
    command: String,
    shown: Vec<String>,
}

/// The commands in the fenced blocks of a page.
fn typed(text: &str) -> Vec<Typed> {
    let mut all: Vec<Typed> = Vec::new();
    let (mut inside, mut belongs) = (false, false);
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            (inside, belongs) = (!inside, false);
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            all.push(Typed { line: at + 1, command: command.to_owned(), shown: Vec::new() });
            belongs = true;
        } else if inside && belongs {
            all.last_mut().expect("there was a command").shown.push(line.trim_end().to_owned());
        }
    }
    all
}

/// Are the shown lines there, in this order? The first that is not is told.
fn missing<'a>(shown: &'a [String], printed: &str) -> Option<&'a str> {
    let mut lines = printed.lines().map(str::trim_end);
    let shown = shown.iter().map(String::as_str);
    shown
        .filter(|line| !line.is_empty() && !line.trim_start().starts_with("..."))
        .find(|&wanted| !lines.any(|line| line == wanted))
}

/// The folder of a reader: `raddle` is on the path, and the examples and the corpus are there.
fn readers_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("bin")).unwrap();
    std::os::unix::fs::symlink(RADDLE, folder.path().join("bin/raddle")).unwrap();
    common::succeed(Command::new("cp").arg("-r").arg(root().join("examples")).arg(folder.path()));
    std::os::unix::fs::symlink(root().join("corpus"), folder.path().join("corpus")).unwrap();
    folder
}

fn shell(folder: &Path, command: &str) -> std::process::Output {
    let path = std::env::var("PATH").unwrap_or_default();
    // Whatever a page says ends by itself, on a busy machine too.
    let mut shell = Command::new("timeout");
    shell.args(["300", "sh", "-c", command]).current_dir(folder).stdin(std::process::Stdio::null());
    shell.env("PATH", format!("{}:{path}", folder.join("bin").display()));
    run(&mut shell)
}

/// Types everything that a page tells to type. Returns what went wrong.
fn follow(page: &Path) -> Vec<String> {
    let name = page.file_name().unwrap().to_str().unwrap();
    let text = std::fs::read_to_string(page).unwrap();
    let folder = readers_folder();
    let mut wrong = Vec::new();
    let commands = typed(&text);
    let elsewhere = |typed: &&Typed| !ELSEWHERE.iter().any(|(part, _)| typed.command.contains(part));
    let mut prepared = false;
    for typed in commands.iter().filter(elsewhere) {
        if !std::mem::replace(&mut prepared, true) {
            let output = shell(folder.path(), given(name));
            assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        }
        // A reader who has not installed it yet.
        let command = typed.command.replace("cargo run --release -- ", "raddle ");
        let output = shell(folder.path(), &command);
        let printed = [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat();
        let at = format!("{name}:{}: {}", typed.line, typed.command);
        if !matches!(output.status.code(), Some(0 | 1)) {
            wrong.push(format!("{at}\n  ended with {}:\n{printed}", output.status));
        } else if let Some(line) = missing(&typed.shown, &printed) {
            wrong.push(format!("{at}\n  does not print `{line}`; it prints:\n{printed}"));
        }
    }
    wrong
}

#[test]
fn what_the_readme_says_works() {
    let wrong = follow(&root().join("README.md"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_documentation_says_works() {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    pages.sort();
    let wrong: Vec<String> = pages.iter().flat_map(|page| follow(page)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whoever follows the README finds the finding whose id it names, with every compiler.
#[test]
fn the_readme_names_a_finding_of_the_example() {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let id =
        text.split_once("$ raddle replay ").and_then(|(_, rest)| rest.split_whitespace().next()).unwrap();
    for compiler in common::compilers() {
        let folder = readers_folder();
        let output = shell(folder.path(), &format!("RADDLE_CC={compiler} raddle -q hunt examples/bank.c"));
        assert_eq!(output.status.code(), Some(1));
        let output = shell(folder.path(), &format!("raddle replay {id}"));
        assert_eq!(output.status.code(), Some(1), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Every command of a page that is run elsewhere is still on a page.
#[test]
fn no_exception_is_out_of_date() {
    let pages = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut all = std::fs::read_to_string(root().join("README.md")).unwrap();
    for page in pages.filter(|path| path.is_file()) {
        all.push_str(&String::from_utf8_lossy(&std::fs::read(page).unwrap()));
    }
    let commands = typed(&all);
    for (part, _) in ELSEWHERE {
        assert!(commands.iter().any(|typed| typed.command.contains(part)), "{part}");
    }
}

#[test]
fn commands_and_what_they_print_are_told_apart() {
    let text = "text\n```console\n$ a\none\n...\ntwo\n$ b  # c\n```\n$ d\n```text\nraddle e\n```\n";
    let all = typed(text);
    assert_eq!(all.iter().map(|typed| typed.command.as_str()).collect::<Vec<_>>(), ["a", "b  # c"]);
    assert_eq!(all[0].shown, ["one", "...", "two"]);
    assert_eq!(missing(&all[0].shown, "zero\none\nx\ntwo\n"), None);
    assert_eq!(missing(&all[0].shown, "two\none\n"), Some("two"));
}
