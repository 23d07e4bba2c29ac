//! `assert`, its properties and its options.

use std::rc::Rc;

use super::Parser;
use crate::lang::ast::{Assertion, Decl, PartialOrder, Property, SemanticModel};
use crate::lang::diagnostic::{Diagnostic, Stage};
use crate::lang::token::Kind;

/// What is read after `:[`, whether it can be answered or not.
const PROPERTIES: [&str; 7] = [
    "deadlock free",
    "divergence free",
    "livelock free",
    "deterministic",
    "has trace",
    "symmetric",
    "sublock free",
];

impl Parser<'_> {
    pub(super) fn assertion(&mut self) -> Option<Decl> {
        let start = self.bump().span;
        let negated = self.eat(Kind::Not);
        let subject = self.expr(0);
        if self.failed {
            return None;
        }
        let mut assertion = Assertion {
            negated,
            property: Property::DivergenceFree { process: subject },
            partial_order: None,
            tau_priority: None,
            symmetric_in: Vec::new(),
            span: start,
        };
        if self.kind() == Kind::Refines {
            let token = self.bump();
            let written = self.slice(token.span);
            let model = model(written.trim_matches(['[', '=']));
            let implementation = self.expr(0);
            assertion.property = if model == SemanticModel::Unsupported {
                let what = Rc::from(format!("the semantic model of `{written}`"));
                Property::Unsupported { subjects: vec![subject, implementation], what }
            } else {
                Property::Refines { model, spec: subject, implementation }
            };
        } else if self.kind() == Kind::Colon && self.kind_after(1) == Kind::LSquare {
            self.property(subject, &mut assertion)?;
        } else {
            self.unexpected("`[T=`, `[F=`, `[FD=` or a property such as `:[deadlock free]`");
            return None;
        }
        while self.kind() == Kind::Colon && self.kind_after(1) == Kind::LSquare && !self.failed {
            self.option(&mut assertion)?;
        }
        assertion.span = start.to(self.previous_span());
        if self.failed { None } else { Some(Decl::Assert(assertion)) }
    }

    /// Expressions with commas between them.
    fn expr_list(&mut self) -> Vec<crate::lang::ast::ExprId> {
        let mut list = vec![self.expr(0)];
        while self.eat(Kind::Comma) && !self.failed {
            list.push(self.expr(0));
        }
        list
    }

    /// The words up to the next bracket, joined by blanks; also those joined by hyphens (`deadlock-free`).
    fn words(&mut self) -> String {
        let mut words: Vec<&str> = Vec::new();
        while self.kind() == Kind::Ident {
            let token = self.bump();
            words.push(self.slice(token.span));
            if self.kind() == Kind::Minus && self.kind_after(1) == Kind::Ident {
                self.bump();
            }
        }
        words.join(" ")
    }

    /// Goes over what this front end does not know inside `:[ ... ]` and, after a colon, behind it, so that the assertion alone
    /// goes without an answer. False, with nothing read, if the brackets are not closed on the same line.
    fn rest_of_brackets(&mut self) -> bool {
        let mut open = 1usize;
        let mut ahead = 0;
        while open > 0 {
            let token = self.token_after(ahead);
            if token.kind == Kind::End || token.after_newline {
                return false;
            }
            match token.kind {
                Kind::LSquare => open += 1,
                Kind::RSquare => open -= 1,
                Kind::RRename => open = open.saturating_sub(2),
                _ => {}
            }
            ahead += 1;
        }
        for _ in 0..ahead {
            self.bump();
        }
        if self.kind() == Kind::Colon && self.kind_after(1) != Kind::LSquare {
            self.bump();
            self.expr_list();
        }
        true
    }

    fn property(&mut self, process: crate::lang::ast::ExprId, assertion: &mut Assertion) -> Option<()> {
        self.bump();
        self.bump();
        let span = self.span();
        let words = self.words();
        if !PROPERTIES.contains(&words.as_str()) && self.rest_of_brackets() {
            let what = Rc::from(format!("the property `{words}`"));
            assertion.property = Property::Unsupported { subjects: vec![process], what };
            return Some(());
        }
        let mut chosen = None;
        let mut closed = false;
        if self.eat(Kind::LSquare) {
            let name = self.words();
            chosen = Some((property_model(&name), Rc::<str>::from(format!("the semantic model `{name}`"))));
            if self.eat(Kind::RRename) {
                closed = true;
            } else {
                self.expect(Kind::RSquare, "`]` after the semantic model");
            }
        }
        if !closed {
            self.expect(Kind::RSquare, "`]` after the property");
        }
        let model = match chosen {
            Some((SemanticModel::Unsupported, what)) => {
                let mut subjects = vec![process];
                if words == "has trace" && self.eat(Kind::Colon) {
                    subjects.push(self.expr(0));
                }
                assertion.property = Property::Unsupported { subjects, what };
                return Some(());
            }
            Some((model, _)) => model,
            None if words == "has trace" => SemanticModel::Traces,
            // FDR 2's manual, A.6.3; libcspm hands on that no model was written (`propertyCheckModel = Nothing`).
            None => SemanticModel::FailuresDivergences,
        };
        assertion.property = match words.as_str() {
            "deadlock free" => Property::DeadlockFree { model, process },
            "divergence free" | "livelock free" => Property::DivergenceFree { process },
            "deterministic" => Property::Deterministic { model, process },
            "has trace" => {
                // Older scripts have no colon here.
                self.eat(Kind::Colon);
                Property::HasTrace { model, process, trace: self.expr(0) }
            }
            "symmetric" | "sublock free" => {
                let mut subjects = vec![process];
                if self.eat(Kind::Colon) {
                    subjects.extend(self.expr_list());
                }
                Property::Unsupported { subjects, what: Rc::from(format!("the property `{words}`")) }
            }
            _ => {
                self.error(
                    Diagnostic::error(
                        Stage::Syntax,
                        span,
                        format!("`{words}` is not a property that can be checked"),
                    )
                    .note(
                        "known are: deadlock free, divergence free, livelock free, deterministic, has trace",
                    ),
                );
                return None;
            }
        };
        Some(())
    }

    fn option(&mut self, assertion: &mut Assertion) -> Option<()> {
        self.bump();
        self.bump();
        let span = self.span();
        let words = self.words();
        match words.as_str() {
            "partial order reduce" => {
                let mut mode = PartialOrder::Precise;
                let mut closed = false;
                if self.eat(Kind::LSquare) {
                    let span = self.span();
                    mode = match self.words().as_str() {
                        "fast" => PartialOrder::Fast,
                        "precise" => PartialOrder::Precise,
                        "hybrid" => PartialOrder::Hybrid,
                        other => {
                            let message = format!("`{other}` is not a kind of partial order reduction");
                            self.error(
                                Diagnostic::error(Stage::Syntax, span, message)
                                    .note("known are: fast, precise, hybrid"),
                            );
                            return None;
                        }
                    };
                    if self.eat(Kind::RRename) {
                        closed = true;
                    } else {
                        self.expect(Kind::RSquare, "`]`");
                    }
                }
                if !closed {
                    self.expect(Kind::RSquare, "`]` after the option");
                }
                assertion.partial_order = Some(mode);
            }
            "tau priority" | "tau priority over" => {
                if assertion.tau_priority.is_some() {
                    self.error(Diagnostic::error(Stage::Syntax, span, "the option is given twice"));
                    return None;
                }
                self.expect(Kind::RSquare, "`]` after the option");
                self.expect(Kind::Colon, "`:` and a set of events after `:[tau priority]`");
                assertion.tau_priority = Some(self.expr(0));
            }
            // Both say how FDR is to search, not what is claimed.
            "symmetry reduce" => {
                self.expect(Kind::RSquare, "`]` after the option");
                if self.kind() == Kind::Colon && self.kind_after(1) != Kind::LSquare {
                    self.bump();
                    assertion.symmetric_in = self.expr_list();
                }
            }
            "static" => {
                self.expect(Kind::RSquare, "`]` after the option");
            }
            _ if self.rest_of_brackets() => {
                let what = Rc::from(format!("the option `{words}`"));
                let subjects = match &assertion.property {
                    Property::Unsupported { .. } => return Some(()),
                    Property::Refines { spec, implementation, .. } => vec![*spec, *implementation],
                    Property::DeadlockFree { process, .. }
                    | Property::DivergenceFree { process }
                    | Property::Deterministic { process, .. }
                    | Property::HasTrace { process, .. } => vec![*process],
                };
                assertion.property = Property::Unsupported { subjects, what };
            }
            _ => {
                self.error(
                    Diagnostic::error(
                        Stage::Syntax,
                        span,
                        format!("`{words}` is not an option of an assertion"),
                    )
                    .note("known are: partial order reduce, tau priority, symmetry reduce, static"),
                );
                return None;
            }
        }
        Some(())
    }
}

fn model(name: &str) -> SemanticModel {
    match name {
        "T" => SemanticModel::Traces,
        "F" => SemanticModel::Failures,
        "FD" => SemanticModel::FailuresDivergences,
        "V" => SemanticModel::Revivals,
        "VD" => SemanticModel::RevivalsDivergences,
        "R" => SemanticModel::Refusals,
        "RD" => SemanticModel::RefusalsDivergences,
        _ => SemanticModel::Unsupported,
    }
}

/// Properties are asked in the models that FDR's manual lists for them.
fn property_model(name: &str) -> SemanticModel {
    if matches!(name, "T" | "F" | "FD") { model(name) } else { SemanticModel::Unsupported }
}
