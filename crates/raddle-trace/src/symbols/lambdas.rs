//! Names of lambdas.
//!
//! The standard gives lambdas no names, so compilers make some up: gcc numbers those with the same parameters in a
//! function, clang all of a file in the order in which it comes to them, and gcc leaves the symbol out of the debug
//! information. In the debug information of both, a lambda is a class without name in its function that has an
//! `operator()`. Numbered by the lines of their declarations, lambdas have the same names whichever compiler was used:
//! `main::{lambda#1}`.

use super::dies::{Die, Dies, Step, is_function};
use super::names::{demangle, normal_name};
use super::units::DieRef;

/// Lambdas in lambdas.
const NESTING_MAX: usize = 16;

/// Lambdas of one function that are counted.
const LAMBDAS_MAX: usize = 4096;

/// The name of a lambda whose call operator this function is; `None` for all other functions.
pub fn name<'a>(dies: &Dies<'a>, function: &Die<'a>) -> Option<String> {
    nested_name(dies, function, 0)
}

/// The line of the lambda whose call operator this function is.
pub fn declaration_line<'a>(dies: &Dies<'a>, function: &Die<'a>) -> Option<u32> {
    let (class, _) = class_and_function(dies, function)?;
    u32::try_from(dies.read(class)?.number(gimli::DW_AT_decl_line)?).ok()
}

fn nested_name<'a>(dies: &Dies<'a>, function: &Die<'a>, depth: usize) -> Option<String> {
    if depth > NESTING_MAX {
        return None;
    }
    let (class, around) = class_and_function(dies, function)?;
    let number = lambdas_of(dies, around).iter().position(|lambda| *lambda == class)? + 1;
    let around = dies.read(around)?;
    let outer = nested_name(dies, &around, depth + 1).or_else(|| {
        let linkage = dies.find_up(&around, |die| dies.text(die, gimli::DW_AT_linkage_name));
        linkage.map(|symbol| normal_name(&demangle(&symbol))).or_else(|| dies.qualified_name(&around))
    })?;
    Some(format!("{outer}::{{lambda#{number}}}"))
}

/// The lambda's class and the function it was written in.
fn class_and_function<'a>(dies: &Dies<'a>, function: &Die<'a>) -> Option<(DieRef, DieRef)> {
    if dies.name(function).as_deref() != Some("operator()") {
        return None;
    }
    let scopes = dies.scopes_around(dies.declaration(function));
    let (class, outer) = scopes.split_first()?;
    if !is_lambda_class(dies, &dies.read(*class)?) {
        return None;
    }
    let around = outer.iter().find(|scope| dies.read(**scope).is_some_and(|die| is_function(die.tag)))?;
    Some((*class, *around))
}

fn is_lambda_class<'a>(dies: &Dies<'a>, die: &Die<'a>) -> bool {
    let class = matches!(die.tag, gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type);
    // Some versions of gcc call it `<lambda(int)>`.
    class && dies.text(die, gimli::DW_AT_name).is_none_or(|name| name.starts_with("<lambda"))
}

fn lambdas_of(dies: &Dies<'_>, function: DieRef) -> Vec<DieRef> {
    let mut found: Vec<(u64, DieRef)> = Vec::new();
    dies.walk(function, |depth, die| {
        if depth == 0 {
            return Step::Into;
        }
        if is_lambda_class(dies, &die) && has_call_operator(dies, die.at) {
            found.push((die.number(gimli::DW_AT_decl_line).unwrap_or(0), die.at));
        }
        match die.tag {
            _ if found.len() >= LAMBDAS_MAX => Step::Stop,
            gimli::DW_TAG_lexical_block => Step::Into,
            _ => Step::Over,
        }
    });
    found.sort_by_key(|(line, at)| (*line, at.offset.0));
    found.into_iter().map(|(_, at)| at).collect()
}

fn has_call_operator(dies: &Dies<'_>, class: DieRef) -> bool {
    let mut found = false;
    dies.children(class, |die| {
        found = die.tag == gimli::DW_TAG_subprogram
            && dies.text(&die, gimli::DW_AT_name).as_deref() == Some("operator()");
        if found { Step::Stop } else { Step::Over }
    });
    found
}
