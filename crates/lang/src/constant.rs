//! What is known before anything is evaluated: variables, locals of such, and nothing else.

use std::collections::HashSet;

use crate::{Expr, Module, Reference, Tree, Unsupported, references};

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
