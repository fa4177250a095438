//! What is known before anything is evaluated: variables, locals of such, and nothing else.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use landform_cty::Value;

use crate::{
    Budget, Diagnostic, Diagnostics, Expr, Impure, Module, PathKind, Reference, Scope, Tree, Unsupported, World,
    evaluate, references,
};

/// A module before anything is evaluated.
pub struct Constants<'a> {
    pub module: &'a Module,
    pub folder: &'a Path,
    /// Where the module is, as seen from the root: `.` for the root itself.
    pub place: &'a str,
    /// The values of its variables; `None` where they are not known yet.
    pub variables: Option<&'a BTreeMap<String, Value>>,
    /// The local that is being evaluated, and for whom: one that stands on itself has no value.
    pub within: Option<(&'a str, &'a Constants<'a>)>,
}

impl Constants<'_> {
    fn is_within(&self, local: &str) -> bool {
        self.within.is_some_and(|(name, outer)| name == local || outer.is_within(local))
    }
}

impl Scope for Constants<'_> {
    fn world(&self) -> World<'_> {
        World { folder: Some(self.folder), plan_time: None, impure: Impure::Unknown }
    }

    fn resolve(&self, reference: &Reference) -> Result<Value, Diagnostic> {
        let dynamic = || Diagnostic::new("Dynamic value in static context", format!("{reference} is not known yet."));
        match reference {
            Reference::Variable(name) => {
                let variable = self.module.variables.get(name).ok_or_else(dynamic)?;
                let given = self.variables.ok_or_else(dynamic)?.get(name).or(variable.default.as_ref());
                Ok(given.cloned().unwrap_or_else(|| Value::unknown(variable.ty.clone())))
            }
            Reference::Local(name) => {
                let local = self.module.locals.get(name).filter(|_| !self.is_within(name)).ok_or_else(dynamic)?;
                let inner = Constants { within: Some((name, self)), ..*self };
                let first = |found: Diagnostics| found.into_iter().next().unwrap_or_else(dynamic);
                evaluate(&local.value, &inner, &mut Budget::default()).map_err(first)
            }
            Reference::Path(PathKind::Module) => Ok(Value::string(self.place)),
            Reference::Path(PathKind::Root) => Ok(Value::from(".")),
            Reference::Path(PathKind::Cwd) => Ok(Value::string(self.folder.to_string_lossy())),
            Reference::Workspace => Ok(Value::from("default")),
            _ => Err(dynamic()),
        }
    }
}

/// Whether an expression refers to nothing but inputs of its module, near and far.
pub fn is_constant(module: &Module, expr: &Expr) -> bool {
    inputs(module, expr).is_some()
}

/// The inputs of a module that an expression stands on; `None` if it stands on anything else, too.
fn inputs(module: &Module, expr: &Expr) -> Option<HashSet<String>> {
    let (mut found, mut seen, mut open) = (HashSet::new(), HashSet::new(), references(expr));
    while let Some(reference) = open.pop() {
        match reference {
            Reference::Variable(name) if module.variables.contains_key(&name) => drop(found.insert(name)),
            Reference::Local(name) => {
                let local = module.locals.get(&name)?;
                if seen.insert(name) {
                    open.extend(references(&local.value));
                }
            }
            Reference::Path(_) | Reference::Workspace => {}
            _ => return None,
        }
    }
    Some(found)
}

/// The variables with `const = true` below a module that are given anything else than what is constant. `outer` are the
/// variables of the module itself that have no constant value.
pub(crate) fn not_constant(tree: &Tree, outer: &HashSet<String>) -> Vec<Unsupported> {
    let mut found = Vec::new();
    for (name, child) in &tree.children {
        let Some(call) = tree.module.calls.get(name) else { continue };
        let open = |expr: &Expr| inputs(&tree.module, expr).is_none_or(|used| !used.is_disjoint(outer));
        let given = call.inputs.iter().filter(|(_, expr)| open(expr));
        let inner: HashSet<String> = given.map(|(input, _)| input.clone()).collect();
        for variable in child.module.variables.values().filter(|variable| variable.constant) {
            if inner.contains(&variable.name) {
                let construct = "const variable with a value that is not constant".to_owned();
                found.push(Unsupported { construct, range: call.inputs[&variable.name].range() });
            }
        }
        found.extend(not_constant(child, &inner));
    }
    found
}
