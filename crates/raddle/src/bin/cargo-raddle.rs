//! `cargo raddle`: what cargo calls for it. Becomes `raddle cargo`, which lies beside this program.

use std::os::unix::process::CommandExt;

fn main() -> std::process::ExitCode {
    let raddle = match std::env::current_exe() {
        Ok(own) => own.with_file_name("raddle"),
        Err(_) => "raddle".into(),
    };
    // cargo passes the name of the subcommand first.
    let mut words = std::env::args_os().skip(1).peekable();
    words.next_if(|word| word == "raddle");
    let error = std::process::Command::new(&raddle).arg("cargo").args(words).exec();
    eprintln!("cargo-raddle: error: cannot start {}: {error}", raddle.display());
    2.into()
}
