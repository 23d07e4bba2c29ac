//! What packages carry beside the program: completions and manual pages that know every command.

mod common;

use common::{raddle, run};

/// The commands that `raddle --help` lists.
fn commands() -> Vec<String> {
    let help = String::from_utf8(run(raddle().arg("--help")).stdout).expect("text");
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let first = |line: &str| {
        line.strip_prefix("  ")?.split(' ').next().filter(|word| !word.is_empty()).map(str::to_owned)
    };
    listed.filter_map(first).filter(|name| name != "help").collect()
}

#[test]
fn completions_know_every_command() {
    assert!(commands().len() > 10, "{:?}", commands());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(raddle().args(["completions", shell]));
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let script = String::from_utf8(output.stdout).expect("text");
        for command in commands() {
            assert!(script.contains(&command), "{shell}: {command}");
        }
    }
    let output = run(raddle().args(["completions", "dos"]));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    let output = run(raddle().arg("man").arg("--output").arg(&pages));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for command in commands() {
        let page = std::fs::read_to_string(pages.join(format!("raddle-{command}.1"))).expect(&command);
        assert!(page.contains(".SH SYNOPSIS"), "{command}: {page}");
    }
    let main = std::fs::read_to_string(pages.join("raddle.1")).unwrap();
    assert!(main.contains("raddle\\-hunt(1)"), "{main}");
    let refused = run(raddle().args(["man", "--output", "/proc/nowhere"]));
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot write manual pages to /proc/nowhere"));
}
