//! The one form of a file: events, then moments, in columns; one space elsewhere.

use super::{Aspect, Comparison, Content, Event, Field, File, Operand, Source, Target, TargetName, Value};
use std::fmt::{Display, Formatter, Result};

impl Display for File {
    fn fmt(&self, f: &mut Formatter) -> Result {
        let mut rest = &self.lines[..];
        while let Some(first) = rest.first() {
            // Aspects that stand together are aligned together.
            let block = rest.iter().take_while(|line| line.aspect.is_some()).count().max(1);
            let events: Vec<String> = rest[..block]
                .iter()
                .map(|line| line.aspect.as_ref().map_or_else(String::new, |aspect| aspect.event.to_string()))
                .collect();
            let width = events.iter().map(String::len).filter(|&width| width <= EVENT_COLUMNS_MAX).max();
            for (line, event) in rest[..block].iter().zip(&events) {
                if let Some(aspect) = &line.aspect {
                    write!(f, "{event:width$} {}", After(aspect), width = width.unwrap_or(0))?;
                }
                match (&line.comment, line.aspect.is_some()) {
                    (Some(comment), true) => write!(f, " {}", Comment(comment))?,
                    (Some(comment), false) => write!(f, "{}", Comment(comment))?,
                    (None, _) => {}
                }
                writeln!(f)?;
            }
            debug_assert!(block == 1 || first.aspect.is_some());
            rest = &rest[block..];
        }
        Ok(())
    }
}

/// Longer events stand for themselves and move no others.
const EVENT_COLUMNS_MAX: usize = 32;

struct Comment<'a>(&'a str);

impl Display for Comment<'_> {
    fn fmt(&self, f: &mut Formatter) -> Result {
        if self.0.is_empty() { f.write_str("--") } else { write!(f, "-- {}", self.0) }
    }
}

/// An aspect without its event.
struct After<'a>(&'a Aspect);

impl Display for After<'_> {
    fn fmt(&self, f: &mut Formatter) -> Result {
        let Aspect { moment, join_point, target, condition, .. } = self.0;
        write!(f, "{} {} {target}", moment.word(), join_point.word())?;
        for (number, comparison) in condition.iter().enumerate() {
            write!(f, " {} {comparison}", if number == 0 { "when" } else { "and" })?;
        }
        Ok(())
    }
}

impl Display for Aspect {
    fn fmt(&self, f: &mut Formatter) -> Result {
        write!(f, "{} {}", self.event, After(self))
    }
}

impl Display for Event {
    fn fmt(&self, f: &mut Formatter) -> Result {
        f.write_str(&self.name)?;
        for (number, field) in self.fields.iter().enumerate() {
            write!(f, "{}{field}", if number == 0 { "(" } else { ", " })?;
        }
        if self.fields.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut Formatter) -> Result {
        match &self.content {
            Content::Word(word) => f.write_str(word),
            Content::Number(number) => write!(f, "{number}"),
            Content::Value(value) => write!(f, "{value}"),
        }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut Formatter) -> Result {
        for _ in 0..self.dereferences {
            f.write_str("*")?;
        }
        match &self.source {
            Source::Argument(index) => write!(f, "#{index}"),
            Source::Named(name) => write!(f, "#arg({name})"),
            Source::Return => f.write_str("#return"),
            Source::Size => f.write_str("#size"),
            Source::Address => f.write_str("#address"),
            Source::Accessed => f.write_str("#value"),
            Source::Thread => f.write_str("#self"),
            Source::Caller => f.write_str("#caller"),
        }?;
        self.width.map_or(Ok(()), |width| write!(f, ":{}", width.word()))
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter) -> Result {
        write!(f, "{} {} ", self.left, self.relation.word())?;
        match &self.right {
            Operand::Number(number) => write!(f, "{number}"),
            Operand::Value(value) => write!(f, "{value}"),
        }
    }
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter) -> Result {
        let name = match &self.name {
            TargetName::Function(name) | TargetName::Global(name) => name.clone(),
            TargetName::Line { file, line } => format!("{file}:{line}"),
        };
        let text = match &self.module {
            Some(module) => format!("{module}!{name}"),
            None => name,
        };
        let ends_early = text.split([' ', '\t']).enumerate().any(|(number, word)| {
            word.starts_with("--")
                || word == "when"
                || number == 0 && word.starts_with('"')
                || word.starts_with("when#")
                || word.starts_with("when*")
        });
        if ends_early { write!(f, "\"{text}\"") } else { f.write_str(&text) }
    }
}
