//! Which values there are at which join points (table 6.1, and what goes beyond it).

use super::{Aspect, Content, Diagnostic, JoinPoint, Moment, Operand, Source, Span, Value};

pub(super) fn check(aspect: &Aspect) -> Vec<Diagnostic> {
    let fields = aspect.event.fields.iter().filter_map(|field| match &field.content {
        Content::Value(value) => Some((value, &field.span)),
        Content::Word(_) | Content::Number(_) => None,
    });
    let compared = aspect.condition.iter().flat_map(|comparison| {
        let right = match &comparison.right {
            Operand::Value(value) => Some(value),
            Operand::Number(_) => None,
        };
        std::iter::once(&comparison.left).chain(right).map(|value| (value, &comparison.span))
    });
    let mut wrong: Vec<Diagnostic> =
        fields.chain(compared).filter_map(|(value, span)| check_value(aspect, value, span)).collect();
    if aspect.join_point == JoinPoint::Line && aspect.moment == Moment::After {
        let help = "write `before line` and the number of the line that follows";
        wrong.push(Diagnostic::error(
            &aspect.span,
            "code does not run line by line: a line has no one end",
            help,
        ));
    }
    wrong
}

fn check_value(aspect: &Aspect, value: &Value, span: &Span) -> Option<Diagnostic> {
    let point = aspect.join_point;
    let told = |message: String, help: &str| Some(Diagnostic::error(span, message, help));
    match value.source {
        Source::Argument(_) | Source::Named(_) | Source::Return | Source::Caller
            if !point.is_of_functions() =>
        {
            let help = if point == JoinPoint::Line {
                "a line has names and numbers as fields, and `#self`; use `call` or `body` for arguments"
            } else {
                "an access has `#size`, `#address`, `#value` and `#self`"
            };
            told(format!("`{}` has no arguments, return value or caller", point.word()), help)
        }
        Source::Return if aspect.moment == Moment::Before => {
            told(format!("`#return` has no value before the {}", point.word()), "write `after`")
        }
        Source::Size | Source::Address | Source::Accessed if !point.is_of_globals() => {
            let help = "`#size`, `#address` and `#value` belong to `read-global` and `write-global`";
            told(format!("`{}` is no access to memory", point.word()), help)
        }
        Source::Size | Source::Thread if value.dereferences > 0 => {
            told("this is a number and not an address: nothing to dereference".to_owned(), "leave out `*`")
        }
        Source::Accessed if point == JoinPoint::WriteGlobal && aspect.moment == Moment::Before => {
            let help = "write `after write-global`: before it, the variable holds the old value";
            told("`#value` is not written yet".to_owned(), help)
        }
        _ => None,
    }
}
