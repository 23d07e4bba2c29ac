//! From text to aspects. Total: every text gives a file, and a diagnostic for each thing that was not understood.
//!
//! Lines are independent of each other. A line that is not understood is left out of the file and has at least one error.
//!
//! A comment begins with `--` at the beginning of the line or after a space, so that `operator--` can be a target. A target
//! goes up to `when`, the comment or the end of the line, spaces included (`Queue<int, 4>::push(int)`); one that holds
//! such a word itself is written in quotes.

use super::rules;
use super::{
    ARGUMENT_MAX, Aspect, COMPARISONS_MAX, Comparison, Content, DEREFERENCES_MAX, Diagnostic, Event,
    FIELDS_MAX, Field, File, JoinPoint, Line, Moment, Operand, Relation, Source, Span, Target, TargetName,
    Value, Width,
};

/// Larger files are refused: nobody wrote them.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// Aspects have 16-bit numbers in the plan.
pub const ASPECTS_MAX: usize = 4096;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    pub file: File,
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|diagnostic| diagnostic.severity == super::Severity::Error)
    }
}

pub fn parse(text: &str) -> Parsed {
    let mut parsed = Parsed::default();
    if text.len() > FILE_BYTES_MAX {
        let message =
            format!("the file has {} bytes, more than the {FILE_BYTES_MAX} that are read", text.len());
        let error = Diagnostic::error(&Span(0..0), message, "split it, or use patterns (`*`)");
        parsed.diagnostics.push(error);
        return parsed;
    }
    let mut aspects = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.trim_end_matches(['\n', '\r']).len();
        let mut cursor = Cursor { text, at, end };
        match cursor.line() {
            Ok(line) => {
                let count = usize::from(line.aspect.is_some());
                aspects += count;
                if count == 1 && aspects > ASPECTS_MAX {
                    let message = format!("more than {ASPECTS_MAX} aspects");
                    let error = Diagnostic::error(&Span(at..end), message, "use patterns (`*`)");
                    parsed.diagnostics.push(error);
                    return parsed;
                }
                let wrong = line.aspect.as_ref().map(rules::check).unwrap_or_default();
                if wrong.is_empty() {
                    parsed.file.lines.push(line);
                }
                parsed.diagnostics.extend(wrong);
            }
            Err(error) => parsed.diagnostics.push(error),
        }
        at += line.len();
    }
    parsed
}

/// What is left of one line.
struct Cursor<'text> {
    text: &'text str,
    at: usize,
    end: usize,
}

type Result<T> = std::result::Result<T, Diagnostic>;

const SHAPE: &str =
    "an aspect is `EVENT(FIELDS) before|after call|body|read-global|write-global|line TARGET`";

impl<'text> Cursor<'text> {
    fn rest(&self) -> &'text str {
        &self.text[self.at..self.end]
    }

    fn space(&mut self) {
        self.at = self.end - self.rest().trim_start().len();
    }

    fn take(&mut self, expected: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(expected);
        self.at += if found { expected.len() } else { 0 };
        found
    }

    /// Letters, digits and what else `also` holds.
    fn word(&mut self, also: &str) -> (&'text str, Span) {
        self.space();
        let rest = self.rest();
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || also.contains(c);
        let bytes = rest.find(|c| !part(c)).unwrap_or(rest.len());
        let span = Span(self.at..self.at + bytes);
        self.at += bytes;
        (&rest[..bytes], span)
    }

    /// The next character, as a place.
    fn here(&self) -> Span {
        let bytes = self.rest().chars().next().map_or(0, char::len_utf8);
        Span(self.at..self.at + bytes)
    }

    fn found(&self) -> String {
        match self.rest().chars().next() {
            Some(c) => format!("`{c}`"),
            None => "the end of the line".to_owned(),
        }
    }

    fn is_at_end(&mut self) -> bool {
        self.space();
        let rest = self.rest();
        rest.is_empty() || rest.starts_with("--")
    }

    fn line(&mut self) -> Result<Line> {
        let aspect = if self.is_at_end() { None } else { Some(self.aspect()?) };
        self.space();
        let rest = self.rest();
        let comment = match rest.strip_prefix("--") {
            Some(comment) => Some(comment.trim().to_owned()),
            None if rest.is_empty() => None,
            None => {
                let message = format!("unexpected {} after the aspect", self.found());
                return Err(Diagnostic::error(
                    &self.here(),
                    message,
                    "one aspect a line; comments begin with `--`",
                ));
            }
        };
        Ok(Line { aspect, comment })
    }

    fn aspect(&mut self) -> Result<Aspect> {
        let start = self.at;
        let event = self.event()?;
        let (word, span) = self.word("-");
        let Some(moment) = Moment::ALL.into_iter().find(|moment| moment.word() == word) else {
            let message = format!("expected `before` or `after`, found {}", self.shown(word));
            return Err(Diagnostic::error(&self.place(span), message, SHAPE));
        };
        let (word, span) = self.word("-");
        let Some(join_point) = JoinPoint::ALL.into_iter().find(|point| point.word() == word) else {
            let message = format!("expected a join point, found {}", self.shown(word));
            let help = match nearest(word, JoinPoint::ALL.map(JoinPoint::word)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    "the join points are `call`, `body`, `read-global`, `write-global` and `line`".to_owned()
                }
            };
            return Err(Diagnostic::error(&self.place(span), message, help));
        };
        let target = self.target(join_point)?;
        let condition = self.condition()?;
        Ok(Aspect { event, moment, join_point, target, condition, span: Span(start..self.at) })
    }

    fn shown(&self, word: &str) -> String {
        if word.is_empty() { self.found() } else { format!("`{word}`") }
    }

    /// The place of a word, or of what stands where a word should.
    fn place(&self, span: Span) -> Span {
        if span.0.is_empty() { self.here() } else { span }
    }

    fn event(&mut self) -> Result<Event> {
        let (name, span) = self.word("'");
        let help = "the name becomes a channel of the model: a letter, then letters, digits and `_`";
        if name.is_empty() {
            let message = format!("expected the name of an event, found {}", self.found());
            return Err(Diagnostic::error(&self.here(), message, help));
        }
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(Diagnostic::error(&span, format!("`{name}` cannot be the name of an event"), help));
        }
        let mut fields = Vec::new();
        if self.take("(") && !self.take(")") {
            loop {
                fields.push(self.field()?);
                if self.take(")") {
                    break;
                }
                if !self.take(",") {
                    let message = format!("expected `,` or `)`, found {}", self.found());
                    return Err(Diagnostic::error(&self.here(), message, "fields are separated by commas"));
                }
            }
        }
        let whole = Span(span.0.start..self.at);
        if fields.len() > FIELDS_MAX {
            let message = format!("{} fields; an event has at most {FIELDS_MAX}", fields.len());
            return Err(Diagnostic::error(&whole, message, "leave out what the property does not use"));
        }
        Ok(Event { name: name.to_owned(), fields, span: whole })
    }

    fn field(&mut self) -> Result<Field> {
        self.space();
        let start = self.at;
        let rest = self.rest();
        let content = if rest.starts_with(['#', '*']) {
            Content::Value(self.value()?)
        } else if rest.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            Content::Number(self.number()?)
        } else {
            let (word, span) = self.word("'");
            if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
                let message = format!("expected a field, found {}", self.shown(word));
                let help = "a field is a name, a number, `#0`, `#return`, `#arg(name)`, `#size`, `#address`, `#value`, \
                            `#self` or `#caller`, the last with `*` before it for what it points to";
                return Err(Diagnostic::error(&self.place(span), message, help));
            }
            Content::Word(word.to_owned())
        };
        Ok(Field { content, span: Span(start..self.at) })
    }

    fn number(&mut self) -> Result<i64> {
        self.space();
        let start = self.at;
        let negative = self.take("-");
        let (word, span) = self.word("");
        let magnitude = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(digits) => i128::from_str_radix(digits, 16).ok(),
            None => word.parse::<i128>().ok(),
        };
        // `from_str_radix` takes a sign; a word holds none.
        let value = magnitude.map(|value| if negative { -value } else { value });
        match value.and_then(|value| i64::try_from(value).ok()) {
            Some(value) => Ok(value),
            None => {
                let message = match magnitude {
                    Some(_) => "the number does not fit in 64 bits".to_owned(),
                    None => format!("expected a number, found {}", self.shown(word)),
                };
                let span = Span(start..self.at.max(span.0.end).max(start));
                Err(Diagnostic::error(
                    &span,
                    message,
                    "numbers are decimal or hexadecimal: `12`, `-1`, `0x7f`",
                ))
            }
        }
    }

    fn value(&mut self) -> Result<Value> {
        self.space();
        let start = self.at;
        let mut dereferences = 0;
        while self.take("*") {
            dereferences += 1;
            if dereferences > DEREFERENCES_MAX {
                let message = format!("more than {DEREFERENCES_MAX} dereferences");
                return Err(Diagnostic::error(&Span(start..self.at), message, "leave some out"));
            }
        }
        if !self.take("#") {
            let message = format!("expected `#` and the name of a value, found {}", self.found());
            return Err(Diagnostic::error(&self.here(), message, VALUES));
        }
        let (word, span) = self.word("");
        let source = match word {
            "return" => Source::Return,
            "size" => Source::Size,
            "address" => Source::Address,
            "value" => Source::Accessed,
            "self" => Source::Thread,
            "caller" => Source::Caller,
            "arg" => self.named()?,
            _ if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) => {
                match word.parse::<u16>().ok().filter(|&index| index <= ARGUMENT_MAX) {
                    Some(index) => Source::Argument(index),
                    None => {
                        let message = format!("there is no argument {word}");
                        let help = format!("arguments are counted from 0, up to {ARGUMENT_MAX}");
                        return Err(Diagnostic::error(&span, message, help));
                    }
                }
            }
            _ => {
                let message = format!("there is no value `#{word}`");
                let known = ["return", "size", "address", "value", "self", "caller", "arg"];
                let help = match nearest(word, known) {
                    Some(near) => format!("did you mean `#{near}`?"),
                    None => VALUES.to_owned(),
                };
                return Err(Diagnostic::error(&Span(span.0.start - 1..span.0.end), message, help));
            }
        };
        let width = if self.take(":") { Some(self.width()?) } else { None };
        Ok(Value { dereferences, source, width })
    }

    /// The rest of `#arg(name)`.
    fn named(&mut self) -> Result<Source> {
        let help = "an argument by name is `#arg(size)`; by number, `#0`";
        if !self.take("(") {
            let message = format!("expected `(`, found {}", self.found());
            return Err(Diagnostic::error(&self.here(), message, help));
        }
        let (name, span) = self.word("");
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            let message = format!("expected the name of an argument, found {}", self.shown(name));
            return Err(Diagnostic::error(&self.place(span), message, help));
        }
        if !self.take(")") {
            let message = format!("expected `)`, found {}", self.found());
            return Err(Diagnostic::error(&self.here(), message, help));
        }
        Ok(Source::Named(name.to_owned()))
    }

    fn width(&mut self) -> Result<Width> {
        let (word, span) = self.word("");
        Width::ALL.iter().find(|(_, name)| *name == word).map(|(width, _)| *width).ok_or_else(|| {
            let message = format!("expected a width, found {}", self.shown(word));
            let help = "the widths are i8, i16, i32, i64, u8, u16, u32 and u64";
            Diagnostic::error(&self.place(span), message, help)
        })
    }

    fn target(&mut self, join_point: JoinPoint) -> Result<Target> {
        self.space();
        let (written, span) = self.target_text()?;
        if written.is_empty() {
            let help = match join_point {
                JoinPoint::Line => "say which line: `worker.c:12`",
                JoinPoint::ReadGlobal | JoinPoint::WriteGlobal => {
                    "say which variable: `counter`, `pool.head`"
                }
                _ => "say which function: `open_file`, `Queue::push`, `sqlite3_*`",
            };
            let message = format!("`{}` has no target", join_point.word());
            return Err(Diagnostic::error(&self.here(), message, help));
        }
        let (module, name) = match written.split_once('!') {
            // `operator!` and `operator!=` are names.
            Some((module, name)) if !module.ends_with("operator") => (Some(module.trim()), name.trim()),
            _ => (None, &written[..]),
        };
        if name.is_empty() || module.is_some_and(str::is_empty) {
            let help = "a function of one library is `libz.so*!deflate`";
            return Err(Diagnostic::error(&span, "nothing stands on one side of `!`", help));
        }
        let name = match join_point {
            JoinPoint::Call | JoinPoint::Body => TargetName::Function(name.to_owned()),
            JoinPoint::ReadGlobal | JoinPoint::WriteGlobal => TargetName::Global(name.to_owned()),
            JoinPoint::Line => line_target(name, &span)?,
        };
        Ok(Target { module: module.map(str::to_owned), name, span })
    }

    /// The target as written, without quotes, and its place.
    fn target_text(&mut self) -> Result<(String, Span)> {
        let start = self.at;
        let rest = self.rest();
        if let Some(quoted) = rest.strip_prefix('"') {
            let Some(bytes) = quoted.find('"') else {
                let help = "end the target with `\"`";
                return Err(Diagnostic::error(&Span(start..self.end), "the quotes are not closed", help));
            };
            self.at += bytes + 2;
            return Ok((quoted[..bytes].trim().to_owned(), Span(start..self.at)));
        }
        let ends = |at: usize| {
            let after = &rest[at..];
            let when = after.strip_prefix("when").is_some_and(|rest| rest.starts_with([' ', '\t', '#', '*']));
            let apart = at == 0 || rest[..at].ends_with([' ', '\t']);
            apart && (when || after.starts_with("--"))
        };
        let bytes = rest.char_indices().map(|(at, _)| at).find(|&at| ends(at)).unwrap_or(rest.len());
        let target = rest[..bytes].trim_end();
        self.at += bytes;
        Ok((target.to_owned(), Span(start..start + target.len())))
    }

    fn condition(&mut self) -> Result<Vec<Comparison>> {
        let mut all = Vec::new();
        self.space();
        if !self.rest().starts_with("when") {
            return Ok(all);
        }
        self.take("when");
        loop {
            all.push(self.comparison()?);
            if all.len() > COMPARISONS_MAX {
                let span = all[COMPARISONS_MAX].span.clone();
                let message = format!("more than {COMPARISONS_MAX} comparisons");
                return Err(Diagnostic::error(&span, message, "compare in the property instead"));
            }
            if self.is_at_end() {
                return Ok(all);
            }
            let (word, span) = self.word("");
            if word != "and" {
                let message = format!("expected `and` or the end of the line, found {}", self.shown(word));
                let help = "a condition is `when #1 > 0 and #0 != #1`; for `or`, write two aspects";
                return Err(Diagnostic::error(&self.place(span), message, help));
            }
        }
    }

    fn comparison(&mut self) -> Result<Comparison> {
        self.space();
        let start = self.at;
        let left = self.value()?;
        self.space();
        let Some(relation) = Relation::ALL.into_iter().find(|relation| self.take(relation.word())) else {
            let message = format!("expected a comparison, found {}", self.found());
            return Err(Diagnostic::error(&self.here(), message, "the comparisons are == != < <= > >="));
        };
        self.space();
        let right = if self.rest().starts_with(['#', '*']) {
            Operand::Value(self.value()?)
        } else {
            Operand::Number(self.number()?)
        };
        Ok(Comparison { left, relation, right, span: Span(start..self.at) })
    }
}

const VALUES: &str = "the values are `#0`, `#1`, ..., `#return`, `#arg(name)`, `#size`, `#address`, `#value`, `#self` and `#caller`";

fn line_target(name: &str, span: &Span) -> Result<TargetName> {
    let parts = name.rsplit_once(':');
    let line = parts.and_then(|(_, line)| line.trim().parse::<u32>().ok()).filter(|&line| line > 0);
    let file = parts.map(|(file, _)| file.trim()).filter(|file| !file.is_empty());
    match (file, line) {
        (Some(file), Some(line)) => Ok(TargetName::Line { file: file.to_owned(), line }),
        _ => {
            let message = format!("`{name}` is no file and line");
            Err(Diagnostic::error(span, message, "write the file and the number of the line: `worker.c:12`"))
        }
    }
}

/// The known word that was probably meant: at most two letters away.
fn nearest<const N: usize>(word: &str, known: [&'static str; N]) -> Option<&'static str> {
    let near = known.into_iter().map(|candidate| (distance(word, candidate), candidate)).min()?;
    (near.0 <= 2 && near.0 < word.len()).then_some(near.1)
}

/// Levenshtein's distance. Words are short; long ones are cut, which makes them no nearer.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let a = &a[..a.len().min(64)];
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
