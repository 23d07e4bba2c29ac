//! Signatures as promises: `f :: (a) -> a` says that `f` works for every type `a`.
//!
//! A written type is unified with the inferred one. That alone would accept `f :: (a) -> b` for `f(x) = x`, where the
//! variables have become one, and `g :: (a) -> a` for `g(x) = x + 1`, where one has become `Int`. So after a definition has
//! been inferred its declared variables must still be variables, all different, and free of classes that were not
//! demanded. While it is inferred its name has the declared type, so it may call itself at another type. Signatures
//! in a `let` may mention the variables of those around them (libcspm's test `type_annotations`, `f21` and `f25`).

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::ty::{Class, Ty, Type};
use super::{Checker, Scheme};
use crate::lang::ast::Decl;
use crate::lang::resolve::VarId;
use crate::lang::source::Span;

/// What a signature promises.
pub(super) struct Declared {
    pub(super) var: VarId,
    span: Span,
    /// The variables that belong to this signature.
    own: Vec<(Rc<str>, Ty)>,
    /// All variables that may be mentioned inside, those of outer signatures included.
    pub(super) scope: FxHashMap<Rc<str>, Ty>,
    classes: Vec<(Rc<str>, Rc<str>)>,
}

impl Checker<'_> {
    /// Reads the signature of a name, if it has one, and gives the name the declared type.
    pub(super) fn declared(&mut self, var: VarId, ty: Ty) -> Option<Declared> {
        let &signature = self.resolved.signatures.get(&var)?;
        let Decl::Signature { ty: written, classes, .. } = self.ast.decl(signature).clone() else {
            return None;
        };
        let span = self.ast.decl_span(signature);
        let mut outer: FxHashMap<Rc<str>, Ty> = FxHashMap::default();
        for scope in &self.scoped {
            outer.extend(scope.iter().map(|(name, &ty)| (name.clone(), ty)));
        }
        let mut scope = outer.clone();
        let declared = self.written(&written, Some(signature), &mut scope, span);
        self.demand(span, declared, ty, "the declared type");
        let mut own: Vec<(Rc<str>, Ty)> = scope
            .iter()
            .filter(|(name, _)| !outer.contains_key(*name))
            .map(|(name, &ty)| (name.clone(), ty))
            .collect();
        own.sort_by(|a, b| a.0.cmp(&b.0));
        let classes: Vec<(Rc<str>, Rc<str>)> =
            classes.into_iter().map(|(class, var)| (class.name, var.name)).collect();
        let demanded = own.iter().flat_map(|(name, ty)| {
            let of = classes.iter().filter(move |(_, var)| var == name);
            of.filter_map(|(class, _)| Some((class_of(class)?, *ty)))
        });
        let scheme = Scheme {
            vars: own.iter().map(|&(_, ty)| ty).collect(),
            classes: demanded.collect(),
            ty: declared,
        };
        self.schemes.insert(var, scheme);
        Some(Declared { var, span, own, scope, classes })
    }

    /// Reports the promises that the definitions do not keep.
    pub(super) fn keep_promises(&mut self, signatures: &[Declared]) {
        for declared in signatures {
            let mut seen: Vec<(Ty, Rc<str>)> = Vec::new();
            for (name, ty) in &declared.own {
                let root = self.unifier.table.find(*ty);
                let fault = match self.unifier.table.get(root) {
                    Type::Error => None,
                    Type::Var { level } if level <= self.level => {
                        Some(format!("`{name}` is a type of its surroundings"))
                    }
                    Type::Var { .. } => seen
                        .iter()
                        .find(|(other, _)| *other == root)
                        .map(|(_, other)| format!("`{other}` and `{name}` are the same type")),
                    _ => Some(format!("`{name}` is always `{}`", self.show(root))),
                };
                if let Some(fault) = fault {
                    self.broken(declared, fault);
                    break;
                }
                seen.push((root, name.clone()));
            }
            self.undemanded(declared, &seen);
        }
    }

    /// Classes that the definition needs and the signature does not demand.
    fn undemanded(&mut self, declared: &Declared, vars: &[(Ty, Rc<str>)]) {
        let mut needs = Vec::new();
        for pending in self.unifier.pending.clone() {
            self.needs_of(pending.class, pending.ty, &mut needs);
        }
        for (class, ty) in needs {
            let Some((_, name)) = vars.iter().find(|(var, _)| *var == ty) else { continue };
            let demanded =
                declared.classes.iter().filter(|(_, var)| var == name).any(|(c, _)| implies(c, class));
            if !demanded {
                let class = match class {
                    Class::Eq => "Eq",
                    Class::Ord => "Ord",
                    Class::Element => "Set",
                    Class::Extends(_) | Class::Complete => continue,
                };
                self.broken(declared, format!("`{name}` has to be demanded to be of the class `{class}`"));
                return;
            }
        }
    }

    /// The classes that variables inside a type need for the type to be of a class.
    fn needs_of(&mut self, class: Class, ty: Ty, needs: &mut Vec<(Class, Ty)>) {
        let root = self.unifier.table.find(ty);
        match (class, self.unifier.table.get(root)) {
            (Class::Extends(_) | Class::Complete, _) => {}
            (_, Type::Var { .. }) => needs.push((class, root)),
            (Class::Ord, Type::Set(element)) => self.needs_of(Class::Element, element, needs),
            (Class::Ord, Type::Seq(element)) => self.needs_of(Class::Eq, element, needs),
            (_, Type::Dotable(..) | Type::Dot(_)) => {}
            _ => {
                for child in self.unifier.table.children(root) {
                    self.needs_of(class, child, needs);
                }
            }
        }
    }

    fn broken(&mut self, declared: &Declared, fault: String) {
        let name = self.resolved.var(declared.var).name.clone();
        let message = format!("the definition of `{name}` is less general than its declared type: {fault}");
        self.type_error(declared.span, message);
    }
}

fn class_of(name: &str) -> Option<Class> {
    Some(match name {
        "Eq" => Class::Eq,
        "Ord" => Class::Ord,
        "Set" => Class::Element,
        "Complete" | "Inputable" => Class::Complete,
        _ => return None,
    })
}

/// Whether a demanded class is enough. `Complete`, `Inputable` and `Yieldable` are of values that can be compared.
fn implies(demanded: &str, needed: Class) -> bool {
    match demanded {
        "Ord" => true,
        "Set" => needed == Class::Element,
        _ => needed != Class::Ord,
    }
}
