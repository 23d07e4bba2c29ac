//! A loaded script: the way in for programs.
//!
//! ```
//! use raddle_csp::engine::CheckOptions;
//! use raddle_csp::lang::session::Script;
//!
//! let text = "channel a, b\nP = a -> b -> P\nassert P :[deadlock free]";
//! let mut script = Script::from_text("example.csp", text).expect("a correct script");
//! let outcome = script.check(0, &CheckOptions::default()).expect("it can be checked");
//! assert!(outcome.holds);
//! ```

use std::path::Path;
use std::rc::Rc;

use super::ast::{Ast, Decl, ExprId, PartialOrder, Property, SemanticModel};
use super::diagnostic::{Diagnostic, Stage};
use super::eval::value::Value;
use super::eval::{Evaluator, Fault, Limits, Program};
use super::load::{Disk, Files, Loaded, load_text};
use super::parser::parse_expr;
use super::resolve::{resolve, resolve_expr};
use super::source::{FileId, SourceMap, Span};
use super::types::{check, check_expr};
use crate::assertion as goal;
use crate::engine::{CheckError, CheckOptions, Checker, Outcome, describe};
use crate::process::{Definitions, EvalError, EventId, ProcId, Process, Processes};

/// A script that was refused: why, and the text to show it with.
#[derive(Debug)]
pub struct Refused {
    pub sources: SourceMap,
    pub diagnostics: Vec<Diagnostic>,
}

/// An assertion of a script.
#[derive(Clone, Debug)]
pub struct AssertionText {
    /// As it is written, line breaks and runs of blanks turned into one blank, without `assert`.
    pub text: String,
    pub span: Span,
}

pub struct Script {
    sources: SourceMap,
    evaluator: Evaluator,
    assertions: Vec<(AssertionText, super::ast::Assertion)>,
    prints: Vec<ExprId>,
    warnings: Vec<Diagnostic>,
}

impl Script {
    /// Reads a script and everything it includes from disk.
    pub fn from_path(path: &Path, limits: Limits) -> Result<Script, Refused> {
        let name = path.display().to_string();
        match Disk.read(path) {
            Ok(text) => Script::new(load_text(&Disk, &name, text), limits),
            Err(cause) => {
                let mut sources = SourceMap::default();
                let file = sources.add(name.as_str(), "");
                let span = Span::new(file, 0, 0);
                let diagnostic =
                    Diagnostic::error(Stage::Syntax, span, format!("cannot read `{name}`: {cause}"));
                Err(Refused { sources, diagnostics: vec![diagnostic] })
            }
        }
    }

    /// A script in memory; includes are read from disk, relative to `name`.
    pub fn from_text(name: &str, text: impl Into<String>) -> Result<Script, Refused> {
        Script::new(load_text(&Disk, name, text), Limits::default())
    }

    /// Checks what has been loaded.
    pub fn new(loaded: Loaded, limits: Limits) -> Result<Script, Refused> {
        let Loaded { sources, mut ast, diagnostics } = loaded;
        let refuse = |sources, diagnostics| Err(Refused { sources, diagnostics });
        if diagnostics.iter().any(Diagnostic::is_error) {
            return refuse(sources, diagnostics);
        }
        let mut resolved = resolve(&mut ast);
        let mut warnings = diagnostics;
        warnings.append(&mut resolved.diagnostics);
        if warnings.iter().any(Diagnostic::is_error) {
            return refuse(sources, warnings);
        }
        let mut types = check(&ast, &resolved);
        warnings.append(&mut types.diagnostics);
        if warnings.iter().any(Diagnostic::is_error) {
            return refuse(sources, warnings);
        }
        let mut assertions = Vec::new();
        let mut prints = Vec::new();
        for &id in &resolved.goals {
            match ast.decl(id) {
                Decl::Assert(assertion) => {
                    let span = assertion.span;
                    let text = sources.slice(span).split_whitespace().collect::<Vec<_>>().join(" ");
                    let text = text.strip_prefix("assert ").unwrap_or(&text).to_owned();
                    assertions.push((AssertionText { text, span }, assertion.clone()));
                }
                Decl::Print(expr) => prints.push(*expr),
                _ => {}
            }
        }
        let evaluator = Evaluator::new(Rc::new(Program { ast, resolved, types }), limits);
        Ok(Script { sources, evaluator, assertions, prints, warnings })
    }

    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// What is odd but not wrong.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.warnings
    }

    pub fn assertions(&self) -> impl ExactSizeIterator<Item = &AssertionText> {
        self.assertions.iter().map(|(text, _)| text)
    }

    /// The terms made so far; names of events and calls.
    pub fn arena(&self) -> &Processes {
        &self.evaluator.arena
    }

    pub fn event_name(&self, event: EventId) -> String {
        self.arena().events.name(event).to_string()
    }

    /// Evaluates the `print` lines: what is printed, and its value.
    pub fn prints(&mut self) -> Vec<(String, Result<String, Diagnostic>)> {
        self.prints
            .clone()
            .into_iter()
            .map(|expr| {
                let text = self.sources.slice(self.ast().span(expr)).to_owned();
                let value = self.evaluator.value(expr).map(|v| self.evaluator.show(&v)).map_err(|f| *f.0);
                (text, value)
            })
            .collect()
    }

    fn ast(&self) -> &Ast {
        &self.evaluator.program().ast
    }

    /// Decides the assertion with this number, counted from zero.
    pub fn check(&mut self, index: usize, options: &CheckOptions) -> Result<Outcome, Diagnostic> {
        let (text, assertion) = self.assertions[index].clone();
        let goal = self.goal(&assertion).map_err(|fault| *fault.0)?;
        self.with_checker(options, |checker| checker.check(&goal))
            .map_err(|error| self.explain(error, text.span))
    }

    /// The assertion with this number, counted from zero, as the engine takes it.
    pub fn assertion(&mut self, index: usize) -> Result<goal::Assertion, Diagnostic> {
        let (_, assertion) = self.assertions[index].clone();
        self.goal(&assertion).map_err(|fault| *fault.0)
    }

    /// Runs something on the engine with this script's definitions.
    pub fn with_checker<T>(&mut self, options: &CheckOptions, run: impl FnOnce(&mut Checker<'_>) -> T) -> T {
        let mut arena = std::mem::take(&mut self.evaluator.arena);
        let mut checker = Checker::new(&mut arena, &mut self.evaluator, options.clone());
        let result = run(&mut checker);
        drop(checker);
        self.evaluator.arena = arena;
        result
    }

    /// The assertion as the engine takes it.
    fn goal(&mut self, assertion: &super::ast::Assertion) -> Result<goal::Assertion, Fault> {
        let process = |this: &mut Self, expr| this.evaluator.process(expr);
        let property = match assertion.property {
            Property::Unsupported { ref what, .. } => {
                let fault = Fault::new(assertion.span, format!("{what} is not supported"));
                // Refinement is named by its operator, `[TP=`, the model of a property by its letters.
                let models = "`[T=`, `[F=`, `[FD=`, `[V=`, `[VD=`, `[R=` and `[RD=` are";
                if what.starts_with("the property") {
                    return Err(fault.note(
                        "known are: deadlock free, divergence free, livelock free, deterministic, has trace",
                    ));
                }
                if what.starts_with("the option") {
                    return Err(
                        fault.note("known are: partial order reduce, tau priority, symmetry reduce, static")
                    );
                }
                let note = if what.contains("`[") { models } else { "`T`, `F` and `FD` are" };
                return Err(if what.contains("model") { fault.note(note) } else { fault });
            }
            Property::Refines { model, spec, implementation } => goal::Property::Refines {
                model: model_of(model),
                spec: process(self, spec)?,
                implementation: process(self, implementation)?,
            },
            Property::DeadlockFree { model, process: p } => {
                goal::Property::DeadlockFree { model: model_of(model), process: process(self, p)? }
            }
            Property::DivergenceFree { process: p } => {
                goal::Property::DivergenceFree { process: process(self, p)? }
            }
            Property::Deterministic { model, process: p } => {
                goal::Property::Deterministic { model: model_of(model), process: process(self, p)? }
            }
            Property::HasTrace { model, process: p, trace } => goal::Property::HasTrace {
                model: model_of(model),
                process: process(self, p)?,
                trace: self.evaluator.trace(trace)?,
            },
        };
        let tau_priority = match assertion.tau_priority {
            Some(set) => Some(self.evaluator.events_of(set)?),
            None => None,
        };
        let partial_order = match assertion.partial_order {
            None => goal::PartialOrder::Off,
            Some(PartialOrder::Fast) => goal::PartialOrder::Fast,
            Some(PartialOrder::Precise) => goal::PartialOrder::Precise,
            Some(PartialOrder::Hybrid) => goal::PartialOrder::Hybrid,
        };
        Ok(goal::Assertion { property, negated: assertion.negated, partial_order, tau_priority })
    }

    /// Evaluates an expression in the scope of the script: its value and its type.
    pub fn eval(&mut self, text: &str) -> Result<(String, String), Vec<Diagnostic>> {
        let (expr, ty, _) = self.expression(text)?;
        match self.evaluator.value(expr) {
            Ok(Value::Process(process)) => Ok((self.show_process(process), ty)),
            Ok(value) => Ok((self.evaluator.show(&value), ty)),
            Err(fault) => Err(vec![*fault.0]),
        }
    }

    /// A process as a term: a name with what it is defined as, anything else with its operators.
    fn show_process(&mut self, process: ProcId) -> String {
        let mut arena = std::mem::take(&mut self.evaluator.arena);
        let shown = match *arena.get(process) {
            Process::Call(call) => {
                let name = arena.call_name(call).to_owned();
                match self.evaluator.unfold(call, &mut arena) {
                    Ok(body) => format!("{name} = {}", describe::full(&arena, body)),
                    Err(_) => name,
                }
            }
            _ => describe::full(&arena, process),
        };
        self.evaluator.arena = arena;
        shown
    }

    /// The process that an assertion is about: the implementation of a refinement.
    pub fn subject(&mut self, index: usize) -> Result<ProcId, Diagnostic> {
        let (_, assertion) = self.assertions[index].clone();
        let goal = self.goal(&assertion).map_err(|fault| *fault.0)?;
        let process = match goal.property {
            goal::Property::Refines { implementation, .. } => implementation,
            goal::Property::DeadlockFree { process, .. }
            | goal::Property::DivergenceFree { process }
            | goal::Property::Deterministic { process, .. }
            | goal::Property::HasTrace { process, .. } => process,
        };
        Ok(match goal.tau_priority {
            None => process,
            Some(set) => {
                let none = self.evaluator.arena.set_of([]);
                self.evaluator.arena.prioritise(process, vec![none, set])
            }
        })
    }

    /// Evaluates an expression of type process in the scope of the script.
    pub fn process(&mut self, text: &str) -> Result<ProcId, Vec<Diagnostic>> {
        let (expr, ty, is_process) = self.expression(text)?;
        if !is_process {
            let span = self.ast().span(expr);
            return Err(vec![Diagnostic::error(
                Stage::Types,
                span,
                format!("expected a process, found `{ty}`"),
            )]);
        }
        self.evaluator.process(expr).map_err(|fault| vec![*fault.0])
    }

    /// Parses, resolves and types one more expression.
    fn expression(&mut self, text: &str) -> Result<(ExprId, String, bool), Vec<Diagnostic>> {
        let file = self.sources.add("<expression>", text);
        let mut found = Err(Vec::new());
        self.evaluator.extend(|mut program| {
            let (expr, mut diagnostics) = parse_expr(&mut program.ast, file, text);
            if diagnostics.is_empty() {
                program.resolved = resolve_expr(&mut program.ast, program.resolved, expr);
                diagnostics.append(&mut program.resolved.diagnostics);
            }
            if diagnostics.is_empty() {
                let (mut types, ty, is_process) = check_expr(&program.ast, &program.resolved, expr);
                diagnostics.append(&mut types.diagnostics);
                program.types = types;
                found = Ok((expr, ty, is_process));
            }
            if !diagnostics.is_empty() {
                found = Err(diagnostics);
            }
            program
        });
        found
    }

    /// Turns an error of the engine into a diagnostic at the place it is about.
    pub fn explain(&self, error: CheckError, asked: Span) -> Diagnostic {
        let named = |name: &str| self.evaluator.place_of_call(name).unwrap_or(asked);
        match error {
            CheckError::Eval(error) => diagnostic_of(error, asked),
            CheckError::UnguardedRecursion { ref name } | CheckError::TooManyStates { ref name, .. } => {
                Diagnostic::error(Stage::Evaluation, named(name), error.to_string())
            }
            CheckError::Memory { ref name, ref within, .. } => {
                let own = self.evaluator.place_of_call(name);
                let place = own.or_else(|| self.evaluator.place_of_call(within.as_deref()?)).unwrap_or(asked);
                Diagnostic::error(Stage::Evaluation, place, error.to_string())
            }
            other => Diagnostic::error(Stage::Evaluation, asked, other.to_string()),
        }
    }

    /// The whole first file, for errors that are about no place.
    pub fn start(&self) -> Span {
        Span { file: FileId(0), start: 0, end: 0 }
    }

    /// The names defined at the top of the script, with their types.
    pub fn definitions(&self) -> Vec<(String, String)> {
        let program = self.evaluator.program();
        program
            .resolved
            .defined_names()
            .into_iter()
            .filter_map(|name| {
                let var = program.resolved.global(&name)?;
                Some((name.to_string(), program.types.shown.get(&var)?.clone()))
            })
            .collect()
    }

    /// The value of an expression, for programs that want more than its text.
    pub fn value(&mut self, text: &str) -> Result<Value, Vec<Diagnostic>> {
        let (expr, _, _) = self.expression(text)?;
        self.evaluator.value(expr).map_err(|fault| vec![*fault.0])
    }
}

fn diagnostic_of(error: EvalError, asked: Span) -> Diagnostic {
    let span = error.place.map_or(asked, |p| Span { file: FileId(p.file), start: p.start, end: p.end });
    let mut diagnostic = Diagnostic::error(Stage::Evaluation, span, error.message);
    diagnostic.notes = error.notes;
    diagnostic
}

fn model_of(model: SemanticModel) -> goal::SemanticModel {
    match model {
        SemanticModel::Traces => goal::SemanticModel::Traces,
        SemanticModel::Failures => goal::SemanticModel::Failures,
        SemanticModel::Revivals => goal::SemanticModel::Revivals,
        SemanticModel::RevivalsDivergences => goal::SemanticModel::RevivalsDivergences,
        SemanticModel::Refusals => goal::SemanticModel::Refusals,
        SemanticModel::RefusalsDivergences => goal::SemanticModel::RefusalsDivergences,
        // The parser refuses the models it does not know.
        SemanticModel::FailuresDivergences | SemanticModel::Unsupported => {
            goal::SemanticModel::FailuresDivergences
        }
    }
}
