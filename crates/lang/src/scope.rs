use landform_cty::Value;

use crate::{Diagnostic, Reference};

/// Where the values of references come from.
///
/// A scope has its values ready: one that began to evaluate a local here would go as deep as locals refer to each
/// other, past what the budget can count.
pub trait Scope {
    fn resolve(&self, reference: &Reference) -> Result<Value, Diagnostic>;

    /// One element of what the reference stands for, if the scope has it without making the whole: among ten thousand
    /// instances each may refer to its neighbour. `None` leaves it to [`Scope::resolve`], also to say what is wrong.
    fn resolve_element(&self, _reference: &Reference, _key: &Value) -> Option<Value> {
        None
    }
}

/// A scope in which nothing can be referred to: for defaults of variables and the like.
pub struct NoReferences;

impl Scope for NoReferences {
    fn resolve(&self, reference: &Reference) -> Result<Value, Diagnostic> {
        Err(Diagnostic::new(
            "Variables not allowed",
            format!("Variables may not be used here, but this refers to {reference}."),
        ))
    }
}
