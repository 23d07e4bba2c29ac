//! Reads the text of a schedule. Never panics; the error names line and column.

use super::head::{Input, from_hex};
use super::*;

/// What a line may begin with.
const ENTRIES: &str =
    "a line of the head, `about`, `expect`, `visible`, `step`, `block`, `stop` or `unordered`";

/// A schedule could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct ScheduleError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    pub problem: String,
}

/// One word of a line, and the column it starts at.
struct Word {
    column: usize,
    text: String,
    quoted: bool,
}

pub(super) struct Parser<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    line: usize,
    schedule: Schedule,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Parser<'a> {
        Parser { lines: text.lines().enumerate(), line: 0, schedule: Schedule::default() }
    }

    pub(super) fn schedule(mut self) -> Result<Schedule, ScheduleError> {
        let mut seen_header = false;
        while let Some((number, line)) = self.lines.next() {
            self.line = number + 1;
            let (words, comment) = self.words(line)?;
            if words.is_empty() {
                continue;
            }
            let mut words =
                Words { words: words.into_iter().peekable(), end: line.chars().count() + 1, line: self.line };
            if !seen_header {
                self.header(&mut words)?;
                seen_header = true;
                continue;
            }
            self.entry(&mut words, &comment)?;
        }
        if !seen_header {
            return Err(ScheduleError {
                line: self.line.max(1),
                column: 1,
                problem: format!("empty; a schedule begins with `{HEADER} {VERSION}`"),
            });
        }
        Ok(self.schedule)
    }

    fn header(&mut self, words: &mut Words) -> Result<(), ScheduleError> {
        let word = words.next("the header")?;
        if word.text != HEADER || word.quoted {
            return Err(self
                .error(word.column, format!("not a schedule: it does not begin with `{HEADER} {VERSION}`")));
        }
        let column = words.column();
        let version = words.number("the version")?;
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(self.error(
                column,
                format!(
                    "version {version} is not known; this raddle reads versions {VERSION_MIN} to {VERSION}"
                ),
            ));
        }
        words.finish()
    }

    fn entry(&mut self, words: &mut Words, comment: &str) -> Result<(), ScheduleError> {
        let word = words.next(ENTRIES)?;
        if self.head(&word, words)? {
            return words.finish();
        }
        let comment = self.schedule.intern(comment);
        match word.text.as_str() {
            "about" => self.schedule.about = words.next("what it is about")?.text,
            "expect" => {
                let word = words.next("`exit`, `signal` or `deadlock`")?;
                self.schedule.expected = Some(match word.text.as_str() {
                    "exit" => Expected::Exit(words.number("the status")?),
                    "signal" => {
                        let signal = words.number("the signal's number")?;
                        if words.take("at") {
                            self.schedule.crash_place = words.next("where it crashes")?.text;
                        }
                        Expected::Signal(signal)
                    }
                    "deadlock" => Expected::Deadlock,
                    other => {
                        let problem = format!("`exit`, `signal` or `deadlock` expected, found `{other}`");
                        return Err(self.error(word.column, problem));
                    }
                });
            }
            "memory" => {
                words.keyword("stable")?;
                self.schedule.head.options.stable_memory = true;
            }
            "visible" => {
                let word = words.next("`all` or `at`")?;
                match (word.text.as_str(), &mut self.schedule.visible) {
                    ("all", visible) => *visible = Visible::All,
                    ("at", visible) => {
                        let site = words.next("a place")?;
                        let mut sites = match std::mem::take(visible) {
                            Visible::Sites(sites) => sites,
                            Visible::Sync | Visible::All => Vec::new(),
                        };
                        sites.push(self.schedule.intern(&site.text));
                        self.schedule.visible = Visible::Sites(sites);
                    }
                    (other, _) => {
                        return Err(
                            self.error(word.column, format!("`all` or `at` expected, found `{other}`"))
                        );
                    }
                }
            }
            "step" => {
                let (thread, ordinal, kind, object) = self.operation(words)?;
                let failed = words.take("->");
                if failed {
                    words.keyword("failed")?;
                }
                self.schedule.steps.push(Step { thread, ordinal, kind, failed, object, comment });
            }
            "block" => {
                let (thread, ordinal, kind, object) = self.operation(words)?;
                self.schedule.blocks.push(Block { thread, ordinal, kind, object, comment });
            }
            "stop" => {
                let thread = self.thread(words)?;
                words.keyword("after")?;
                let after = words.number("how many visible operations come first")?;
                words.keyword("before")?;
                words.keyword("access")?;
                let column = words.column();
                let occurrence = words.number("which access")?;
                if occurrence == 0 {
                    return Err(self.error(column, "accesses are counted from 1".into()));
                }
                let word = words.next("`at` or `of`")?;
                let name = words.next("a place")?;
                let name_ix = self.schedule.intern(&name.text);
                let place = match word.text.as_str() {
                    "at" => StopPlace::Code(name_ix),
                    "of" => StopPlace::Object(name_ix),
                    other => {
                        return Err(
                            self.error(word.column, format!("`at` or `of` expected, found `{other}`"))
                        );
                    }
                };
                self.schedule.stops.push(Stop { thread, after, occurrence, place, comment });
            }
            "unordered" => {
                let first = words.next("a place in the code")?.text;
                words.keyword("and")?;
                let second = words.next("a place in the code")?.text;
                let places = [self.schedule.intern(&first), self.schedule.intern(&second)];
                self.schedule.unordered.push(Unordered { places, comment });
            }
            other => {
                return Err(self.error(word.column, format!("{ENTRIES} expected, found `{other}`")));
            }
        }
        words.finish()
    }

    /// A line of the head; false if it is none.
    fn head(&mut self, word: &Word, words: &mut Words) -> Result<bool, ScheduleError> {
        let head = &mut self.schedule.head;
        match word.text.as_str() {
            "program" => head.program = words.next("the program")?.text,
            "argument" => head.arguments.push(words.next("an argument")?.text),
            "folder" => head.folder = words.next("a folder")?.text,
            "environment" => {
                let name = words.next("the name of a variable")?.text;
                head.environment.push((name, words.next("its value")?.text));
            }
            "build-id" => head.build_id = words.next("the build-id")?.text,
            "code-id" => head.code_id = words.next("the code-id")?.text,
            "source" => head.sources.push(words.next("a source file")?.text),
            "flag" => head.flags.push(words.next("a flag")?.text),
            "aspect" => {
                head.aspects.push_str(&words.next("an aspect")?.text);
                head.aspects.push('\n');
            }
            "property" => {
                let line = words.next("a line of a script")?.text;
                let (script, _) = head.property.get_or_insert_default();
                script.push_str(&line);
                script.push('\n');
            }
            "violates" => {
                head.property.get_or_insert_default().1 = words.number("the number of an assertion")?
            }
            "compiler" => head.compiler = words.next("a compiler")?.text,
            "run" => {
                for word in words.words.by_ref() {
                    if !head.options.set(&word.text) {
                        let problem = format!("`{}` is no option of a run", word.text);
                        return Err(self.error(word.column, problem));
                    }
                }
            }
            "seed" => {
                let word = words.next("the seed")?;
                head.seed = word.text.parse().map_err(|_| {
                    let problem = format!("the seed must be a number, found `{}`", word.text);
                    ScheduleError { line: words.line, column: word.column, problem }
                })?;
            }
            "took" => {
                let word = words.next("the duration")?;
                head.took_ms = word.text.parse().map_err(|_| {
                    let problem =
                        format!("the duration must be a number of milliseconds, found `{}`", word.text);
                    ScheduleError { line: words.line, column: word.column, problem }
                })?;
                words.keyword("ms")?;
            }
            "input" => {
                let word = words.next("`text`, `hex` or `unknown`")?;
                head.input = match word.text.as_str() {
                    "unknown" => Input::Unknown,
                    "text" => Input::Bytes(words.next("a text")?.text.into_bytes()),
                    "hex" => {
                        let digits = words.next("hexadecimal digits")?;
                        let Some(bytes) = from_hex(&digits.text) else {
                            let problem = format!("not hexadecimal: `{}`", digits.text);
                            return Err(self.error(digits.column, problem));
                        };
                        Input::Bytes(bytes)
                    }
                    other => {
                        let problem = format!("`text`, `hex` or `unknown` expected, found `{other}`");
                        return Err(self.error(word.column, problem));
                    }
                };
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn thread(&mut self, words: &mut Words) -> Result<NameIx, ScheduleError> {
        let word = words.next("a thread name")?;
        if word.text.is_empty() {
            return Err(self.error(word.column, "a thread name cannot be empty".into()));
        }
        Ok(self.schedule.intern(&word.text))
    }

    fn operation(&mut self, words: &mut Words) -> Result<(NameIx, u32, StepKind, NameIx), ScheduleError> {
        let thread = self.thread(words)?;
        let column = words.column();
        let ordinal = words.number("the number of the operation")?;
        if ordinal == 0 {
            return Err(self.error(column, "operations are counted from 1".into()));
        }
        let word = words.next("an operation")?;
        let Some(kind) = StepKind::from_word(&word.text) else {
            return Err(self.error(word.column, format!("`{}` is no operation", word.text)));
        };
        let object = match words.words.next_if(|word| word.quoted || word.text != "->") {
            Some(word) => self.schedule.intern(&word.text),
            None => NameIx(0),
        };
        Ok((thread, ordinal, kind, object))
    }

    /// Splits a line into its words and its comment.
    fn words(&self, line: &str) -> Result<(Vec<Word>, String), ScheduleError> {
        let mut words = Vec::new();
        let mut chars = line.chars().enumerate().peekable();
        while let Some(&(at, c)) = chars.peek() {
            let column = at + 1;
            if c.is_whitespace() {
                chars.next();
            } else if c == '#' {
                let comment: String = chars.skip(1).map(|(_, c)| c).collect();
                return Ok((words, comment.trim().to_owned()));
            } else if c == '"' {
                chars.next();
                let text = self.quoted(&mut chars, column)?;
                words.push(Word { column, text, quoted: true });
            } else {
                let mut text = String::new();
                while let Some((at, c)) = chars.next_if(|&(_, c)| !c.is_whitespace()) {
                    if matches!(c, '"' | '\\' | '#') {
                        return Err(self.error(
                            at + 1,
                            format!("`{c}` inside a word; put the word between quotation marks"),
                        ));
                    }
                    text.push(c);
                }
                words.push(Word { column, text, quoted: false });
            }
        }
        Ok((words, String::new()))
    }

    fn quoted(
        &self,
        chars: &mut impl Iterator<Item = (usize, char)>,
        start: usize,
    ) -> Result<String, ScheduleError> {
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return Ok(text),
                '\\' => match chars.next() {
                    Some((_, c @ ('"' | '\\'))) => text.push(c),
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'u')) => {
                        let digits: String =
                            chars.by_ref().map(|(_, c)| c).take_while(|&c| c != '}').collect();
                        let value =
                            digits.strip_prefix('{').and_then(|digits| u32::from_str_radix(digits, 16).ok());
                        let Some(c) = value.and_then(char::from_u32) else {
                            return Err(self.error(
                                at + 1,
                                "not a character: `\\u{…}` takes a hexadecimal code point".into(),
                            ));
                        };
                        text.push(c);
                    }
                    _ => {
                        return Err(
                            self.error(at + 1, "unknown escape; known are \\\" \\\\ \\n \\t \\u{…}".into())
                        );
                    }
                },
                c => text.push(c),
            }
        }
        Err(self.error(start, "the quotation mark is never closed".into()))
    }

    fn error(&self, column: usize, problem: String) -> ScheduleError {
        ScheduleError { line: self.line, column, problem }
    }
}

/// The words of one line, taken one by one.
struct Words {
    words: std::iter::Peekable<std::vec::IntoIter<Word>>,
    /// Column behind the line, for what is missing.
    end: usize,
    line: usize,
}

impl Words {
    fn column(&mut self) -> usize {
        self.words.peek().map_or(self.end, |word| word.column)
    }

    fn next(&mut self, expected: &str) -> Result<Word, ScheduleError> {
        self.words.next().ok_or_else(|| ScheduleError {
            line: self.line,
            column: self.end,
            problem: format!("{expected} is missing"),
        })
    }

    fn take(&mut self, keyword: &str) -> bool {
        self.words.next_if(|word| !word.quoted && word.text == keyword).is_some()
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), ScheduleError> {
        let column = self.column();
        let word = self.next(&format!("`{keyword}`"))?;
        if word.text == keyword && !word.quoted {
            return Ok(());
        }
        let problem = format!("`{keyword}` expected, found `{}`", word.text);
        Err(ScheduleError { line: self.line, column, problem })
    }

    fn number(&mut self, what: &str) -> Result<u32, ScheduleError> {
        let word = self.next(what)?;
        word.text.parse().map_err(|_| ScheduleError {
            line: self.line,
            column: word.column,
            problem: format!("{what} must be a number, found `{}`", word.text),
        })
    }

    fn finish(&mut self) -> Result<(), ScheduleError> {
        match self.words.next() {
            None => Ok(()),
            Some(word) => Err(ScheduleError {
                line: self.line,
                column: word.column,
                problem: format!("nothing expected here, found `{}`", word.text),
            }),
        }
    }
}
