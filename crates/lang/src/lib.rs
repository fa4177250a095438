//! The configuration language: a folder of `.tf` files becomes a [`Module`], its expressions become values.
//!
//! Promises: what is evaluated here evaluates to what OpenTofu would make of it, with unknown values and marks; what
//! is outside of this subset is reported with its place when the module is loaded ([`Module::unsupported`]) and never
//! guessed at; evaluation stays within a [`Budget`], because it happens in a process that serves everybody.
//! Absent on purpose: providers, state and the order of things. A block is decoded against a [`BodySpec`] that the
//! caller makes, and a reference is resolved by the caller's [`Scope`].

mod body;
mod budget;
mod console;
mod constant;
mod context;
mod defaults;
mod diagnostics;
mod discarded;
mod eval;
mod functions;
mod heredoc;
mod json_syntax;
mod load;
mod mention;
mod module;
mod outline;
mod reference;
mod scope;
mod source;
mod suggest;
mod syntax;
mod tree;
mod types;
mod variables;

pub use body::{AttributeSpec, BlockSpec, BodySpec, Nesting, decode_body};
pub use budget::Budget;
pub use console::{render_type, render_value};
pub use constant::Constants;
pub use context::block_around;
pub use defaults::Defaults;
pub use diagnostics::{Cause, Diagnostic, Diagnostics, FunctionCall, Seen, SourceRange};
pub use discarded::{Discarded, discarded};
pub use eval::{Blame, described, evaluate, sides_of_equality};
pub use functions::{LEFT_TO_THE_CLI, function_names};
pub use load::{KeptFiles, OPENTOFU_VERSION, check_files, load, repeated_alike, required_versions};
pub use mention::{Mention, mentions, mentions_at};
pub use module::{
    Check, Dependency, IgnoreChanges, Ignored, Import, ImportBy, Lifecycle, Local, Module, ModuleCall, Moved, Output,
    ProviderConfig, Removed, Repetition, RequiredProvider, RequiredVersion, Resource, Trigger, Unsupported, Validation,
    Variable,
};
pub use outline::{Outline, Part, outline, outline_body};
pub use reference::{
    PathKind, Reference, body_keyed_references, body_references, check_references, keyed_references, references,
};
pub use scope::{Impure, NoReferences, Scope, World};
pub use source::{Body, Expr};
pub use suggest::did_you_mean;
pub use tree::Tree;
pub use variables::{
    InputSource, Inputs, Origin, VariableFiles, VariableFlag, check_validations, collect_inputs, module_variable_value,
    read_variable_files, variable_value,
};
