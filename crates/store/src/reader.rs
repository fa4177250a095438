use std::fmt;

use landform_domain::declared::Declared;
use landform_domain::template::Files;
use landform_domain::{Inputs, Problem};

/// Knows the configuration language, which the store does not.
pub trait TemplateReader: Send + Sync + fmt::Debug {
    /// What a template declares. It is refused if it is no configuration. Takes its time: call it where that is no harm.
    fn read(&self, files: &Files) -> Result<Declared, Problem>;

    /// The lock file for a template that brings none. Takes its time, too.
    fn lock(&self, files: &Files) -> Result<Lock, Problem>;

    /// Whether the inputs fit the variables, by Terraform's own conversions. What a template validates by itself is left
    /// to the run. `provided` are variables whose values come from elsewhere.
    fn check(&self, declared: &Declared, inputs: &Inputs, provided: &[&str]) -> Result<(), Problem>;
}

/// Which packages the providers of a template are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The lock file.
    Chosen(Vec<u8>),
    /// It needs no providers.
    NotNeeded,
    /// It cannot be said now, and why; its runs choose.
    Open(String),
}

/// Takes everything as it is: a store has this until it is given one that knows the language.
#[derive(Debug)]
pub struct AnyTemplate;

impl TemplateReader for AnyTemplate {
    fn read(&self, _files: &Files) -> Result<Declared, Problem> {
        Ok(Declared::default())
    }

    fn lock(&self, _files: &Files) -> Result<Lock, Problem> {
        Ok(Lock::NotNeeded)
    }

    fn check(&self, _declared: &Declared, _inputs: &Inputs, _provided: &[&str]) -> Result<(), Problem> {
        Ok(())
    }
}
