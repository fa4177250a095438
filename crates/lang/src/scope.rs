use landform_cty::Value;

use crate::{Diagnostic, Reference};

/// Where the values of references come from.
pub trait Scope {
    fn resolve(&self, reference: &Reference) -> Result<Value, Diagnostic>;
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
