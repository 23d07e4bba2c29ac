//! `raddle.toml`: what a project always says on the command line.
//!
//! The file is looked for in the working folder and above it, up to the root of the repository. Its keys are the long names of options: at
//! the top for every command that has an option of this name, in a table `[COMMAND]` for that command alone. What the user says on the
//! command line comes first. Paths are relative to the file's folder, so that a command means the same wherever it is called.
//!
//! Nothing here knows the options: the command line itself is asked which there are, whether the user gave them, and which of them
//! are paths. An unknown key is an error, with its place in the file.

use anyhow::{Context, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::Value;

/// Name of the file.
pub const FILE: &str = "raddle.toml";
/// More than any such file needs.
const BYTES_MAX: u64 = 1 << 20;

/// The command line with what the project's file adds to it. `matches` is what the user's words alone mean.
pub fn complete(
    command_line: &Command,
    words: Vec<OsString>,
    matches: &ArgMatches,
) -> anyhow::Result<Vec<OsString>> {
    let Some((name, given)) = matches.subcommand() else { return Ok(words) };
    let Some(path) = std::env::current_dir().ok().and_then(|folder| find(&folder)) else { return Ok(words) };
    let settings = read(&path)?;
    settings.check(command_line)?;
    let command = command_line.find_subcommand(name).expect("clap has just found it");
    let added = settings.options_for(command, given)?;
    // Directly behind the name of the command, before what follows a `--`.
    let at = words.iter().position(|word| word == name).map_or(words.len(), |at| at + 1);
    let (before, after) = words.split_at(at);
    Ok(before.iter().cloned().chain(added).chain(after.iter().cloned()).collect())
}

/// The nearest file at or above a folder, not beyond the root of its repository.
fn find(folder: &Path) -> Option<PathBuf> {
    for folder in folder.ancestors() {
        let path = folder.join(FILE);
        if path.is_file() {
            return Some(path);
        }
        if folder.join(".git").exists() {
            break;
        }
    }
    None
}

fn read(path: &Path) -> anyhow::Result<Settings> {
    let about = || format!("cannot read {}", path.display());
    let bytes = std::fs::metadata(path).with_context(about)?.len();
    anyhow::ensure!(bytes <= BYTES_MAX, "{} has {bytes} bytes; it may have {BYTES_MAX}", path.display());
    let text = std::fs::read_to_string(path).with_context(about)?;
    Settings::parse(path, &text)
}

struct Settings {
    path: PathBuf,
    text: String,
    table: toml::Table,
}

impl Settings {
    fn parse(path: &Path, text: &str) -> anyhow::Result<Settings> {
        let table =
            text.parse::<toml::Table>().with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(Settings { path: path.to_owned(), text: text.to_owned(), table })
    }

    /// Refuses keys that no command knows.
    fn check(&self, command_line: &Command) -> anyhow::Result<()> {
        let commands: Vec<&Command> = command_line.get_subcommands().collect();
        for (key, value) in &self.table {
            let Value::Table(inner) = value else {
                if !commands.iter().any(|command| option(command, key).is_some()) {
                    bail!("{}: no command has an option --{key}", self.place(key));
                }
                continue;
            };
            let Some(command) = commands.iter().find(|command| command.get_name() == key) else {
                bail!("{}: there is no command `{key}`", self.place(key));
            };
            if let Some(unknown) = inner.keys().find(|&key| option(command, key).is_none()) {
                bail!("{}: `raddle {key}` has no option --{unknown}", self.place(unknown));
            }
        }
        Ok(())
    }

    /// The options of a command that the file sets and the user does not.
    fn options_for(&self, command: &Command, given: &ArgMatches) -> anyhow::Result<Vec<OsString>> {
        let everywhere = self.table.iter().filter(|(_, value)| !value.is_table());
        let own = match self.table.get(command.get_name()) {
            Some(Value::Table(own)) => Some(own),
            _ => None,
        };
        let everywhere = everywhere.filter(|(key, _)| own.is_none_or(|own| !own.contains_key(*key)));
        let mut words = Vec::new();
        for (key, value) in everywhere.chain(own.into_iter().flatten()) {
            let Some(arg) = option(command, key) else { continue };
            if given.value_source(arg.get_id().as_str()) != Some(ValueSource::CommandLine) {
                self.say(arg, key, value, &mut words)?;
            }
        }
        Ok(words)
    }

    /// The words that give an option this value.
    fn say(&self, arg: &Arg, key: &str, value: &Value, words: &mut Vec<OsString>) -> anyhow::Result<()> {
        let takes_value = arg.get_action().takes_values();
        match value {
            Value::Boolean(false) if !takes_value => {}
            Value::Boolean(true) if !takes_value => words.push(format!("--{key}").into()),
            Value::Integer(times) if matches!(arg.get_action(), ArgAction::Count) => {
                words.extend((0..(*times).clamp(0, 9)).map(|_| OsString::from(format!("--{key}"))));
            }
            Value::Array(values) if takes_value => {
                for value in values {
                    words.push(self.word(arg, key, value)?);
                }
            }
            value if takes_value => words.push(self.word(arg, key, value)?),
            _ => bail!("{}: --{key} takes no value; write `{key} = true`", self.place(key)),
        }
        Ok(())
    }

    fn word(&self, arg: &Arg, key: &str, value: &Value) -> anyhow::Result<OsString> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => bail!("{}: --{key} takes a text or a number", self.place(key)),
        };
        let is_path = arg.get_value_parser().type_id() == std::any::TypeId::of::<PathBuf>();
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let text = if is_path { folder.join(&text).into_os_string() } else { text.into() };
        let mut word = OsString::from(format!("--{key}="));
        word.push(text);
        Ok(word)
    }

    /// Where a key stands in the file, for messages.
    fn place(&self, key: &str) -> String {
        let begins = |line: &str| {
            let line = line.trim_start().trim_start_matches(['[', '"']);
            line.strip_prefix(key)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '-'))
        };
        match self.text.lines().position(begins) {
            Some(line) => format!("{}:{}", self.path.display(), line + 1),
            None => self.path.display().to_string(),
        }
    }
}

fn option<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| arg.get_long() == Some(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command_line() -> Command {
        let hunt = Command::new("hunt")
            .arg(Arg::new("timeout").long("timeout").value_parser(clap::value_parser!(u64)))
            .arg(Arg::new("all").long("all").action(ArgAction::SetTrue))
            .arg(
                Arg::new("suppressions")
                    .long("suppressions")
                    .action(ArgAction::Append)
                    .value_parser(clap::value_parser!(PathBuf)),
            )
            .arg(Arg::new("program").last(true).num_args(0..));
        let explain = Command::new("explain").arg(Arg::new("kind"));
        Command::new("raddle").subcommand(hunt).subcommand(explain)
    }

    /// The words that a file adds to those of a user, or what is said against it.
    fn added(text: &str, words: &[&str]) -> Result<Vec<String>, String> {
        let line = command_line();
        let matches = line.clone().try_get_matches_from(words).expect("the words are right");
        let (name, given) = matches.subcommand().expect("there is a command");
        let settings =
            Settings::parse(Path::new("/p/raddle.toml"), text).map_err(|error| format!("{error:#}"))?;
        settings.check(&line).map_err(|error| error.to_string())?;
        let command = line.find_subcommand(name).expect("it was found");
        let words = settings.options_for(command, given).map_err(|error| error.to_string())?;
        Ok(words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect())
    }

    #[test]
    fn options_come_from_the_file_where_the_user_is_silent() {
        let text = "timeout = 5\nsuppressions = ['a', '/b']\n[hunt]\nall = true\n";
        let everything = ["--timeout=5", "--suppressions=/p/a", "--suppressions=/b", "--all"];
        let mut found = added(text, &["raddle", "hunt", "--", "x"]).expect("the file is right");
        found.sort();
        let mut expected: Vec<String> = everything.iter().map(|&word| word.to_owned()).collect();
        expected.sort();
        assert_eq!(found, expected);
        let found = added(text, &["raddle", "hunt", "--timeout", "9", "--all"]).expect("the file is right");
        assert_eq!(found, ["--suppressions=/p/a", "--suppressions=/b"]);
        assert_eq!(added(text, &["raddle", "explain", "data-race"]), Ok(Vec::new()));
    }

    #[test]
    fn a_table_of_a_command_comes_before_what_is_said_for_all() {
        let found = added("timeout = 5\n[hunt]\ntimeout = 7\n", &["raddle", "hunt"]);
        assert_eq!(found, Ok(vec!["--timeout=7".to_owned()]));
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, expected) in [
            ("timeout = 5\ntimeuot = 6\n", "/p/raddle.toml:2: no command has an option --timeuot"),
            ("[hunt]\nkind = 'x'\n", "/p/raddle.toml:2: `raddle hunt` has no option --kind"),
            ("\n[hnut]\nall = true\n", "/p/raddle.toml:2: there is no command `hnut`"),
            ("[hunt]\nall = 'yes'\n", "/p/raddle.toml:2: --all takes no value; write `all = true`"),
            ("timeout = true\n", "/p/raddle.toml:1: --timeout takes a text or a number"),
            ("timeout = \n", "/p/raddle.toml cannot be read"),
        ] {
            let said = added(text, &["raddle", "hunt"]).expect_err("the file is wrong");
            assert!(said.starts_with(expected), "{text:?} says: {said}");
        }
    }
}
