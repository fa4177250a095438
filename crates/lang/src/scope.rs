use std::path::Path;

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

    /// Whether there are functions at all.
    fn has_functions(&self) -> bool {
        true
    }

    /// What functions may know of the world.
    fn world(&self) -> World<'_> {
        World::default()
    }
}

/// What functions may know of the world around the configuration. What is not said here, a function cannot use: calling
/// it then is outside of the subset.
#[derive(Clone, Copy, Default)]
pub struct World<'a> {
    /// Where relative paths begin. Functions see nothing outside of this folder.
    pub folder: Option<&'a Path>,
    /// When the plan was made, in RFC 3339.
    pub plan_time: Option<&'a str>,
    pub impure: Impure,
}

/// What becomes of functions with another answer each time: `timestamp`, `uuid` and `bcrypt`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Impure {
    /// In an apply and in a console.
    Allowed,
    /// In a plan: only the apply will tell.
    Unknown,
    #[default]
    Unsupported,
}

/// A scope in which an expression stands for itself or for nothing.
pub struct Nothing;

impl Scope for Nothing {
    fn resolve(&self, reference: &Reference) -> Result<Value, Diagnostic> {
        NoReferences.resolve(reference)
    }

    fn has_functions(&self) -> bool {
        false
    }
}

/// A scope in which nothing can be referred to: for defaults of variables and the like.
pub struct NoReferences;

impl Scope for NoReferences {
    fn resolve(&self, _reference: &Reference) -> Result<Value, Diagnostic> {
        Err(Diagnostic::new("Variables not allowed", "Variables may not be used here."))
    }
}
