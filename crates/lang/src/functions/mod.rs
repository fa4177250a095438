//! The functions of the language: those that are certain to do exactly what OpenTofu's do. The others are reported
//! when a configuration is loaded.

mod call;
mod cidr;
mod collections;
mod conversion;
mod crypto;
mod csv;
mod dates;
mod encoding;
mod files;
mod format;
mod glob;
mod json;
mod lists;
mod mappings;
mod numbers;
mod private_key;
mod regex;
mod rsa;
mod sets;
mod signature;
mod strings;
mod templates;
mod yaml;
mod yaml_emitter;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use landform_cty::{Type, Value};

use call::Call;
pub(crate) use call::{Failure, call, check_count, convert};

pub(crate) struct Function {
    pub name: &'static str,
    parameters: &'static [Parameter],
    /// The parameter that any number of further arguments go to.
    rest: Option<Parameter>,
    /// The type of the result, which is also all there is to say while an argument is unknown.
    returns: fn(&[Value]) -> Result<Type, Problem>,
    /// Gets known arguments without marks and nulls, unless the parameter says otherwise.
    run: fn(&mut Call<'_>) -> Result<Value, Problem>,
    /// Whether the result may be null.
    may_be_null: bool,
    /// Whether it looks only at the outside of its arguments, however large they are.
    shallow: bool,
}

#[derive(Clone, Copy)]
struct Parameter {
    name: &'static str,
    kind: Kind,
    takes_null: bool,
    takes_unknown: bool,
    /// Also a value whose type is not known yet.
    takes_untyped: bool,
    /// The function sees to marks itself.
    takes_marked: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    Any,
    String,
    Number,
    List,
    Strings,
    Bools,
    Set,
    MapOfStrings,
}

impl Kind {
    fn ty(self) -> Type {
        match self {
            Kind::Any => Type::Dynamic,
            Kind::String => Type::String,
            Kind::Number => Type::Number,
            Kind::List => Type::list(Type::Dynamic),
            Kind::Strings => Type::list(Type::String),
            Kind::Bools => Type::list(Type::Bool),
            Kind::Set => Type::set(Type::Dynamic),
            Kind::MapOfStrings => Type::map(Type::list(Type::String)),
        }
    }
}

/// What a function has to complain about.
enum Problem {
    Call(String),
    Argument(usize, String),
    Unsupported(String),
    /// Something else went wrong on the way, such as the budget.
    Other(crate::Diagnostic),
}

impl From<crate::Diagnostic> for Problem {
    fn from(diagnostic: crate::Diagnostic) -> Problem {
        Problem::Other(diagnostic)
    }
}

type Outcome = Result<Value, Problem>;

impl Parameter {
    const fn new(name: &'static str, kind: Kind) -> Parameter {
        let (takes_null, takes_unknown, takes_untyped, takes_marked) = (false, false, false, false);
        Parameter { name, kind, takes_null, takes_unknown, takes_untyped, takes_marked }
    }

    const fn or_null(self) -> Parameter {
        Parameter { takes_null: true, ..self }
    }

    const fn or_unknown(self) -> Parameter {
        Parameter { takes_unknown: true, ..self }
    }

    const fn or_untyped(self) -> Parameter {
        Parameter { takes_untyped: true, ..self }
    }

    const fn or_marked(self) -> Parameter {
        Parameter { takes_marked: true, ..self }
    }
}

impl Function {
    const fn new(
        name: &'static str,
        parameters: &'static [Parameter],
        returns: fn(&[Value]) -> Result<Type, Problem>,
        run: fn(&mut Call<'_>) -> Outcome,
    ) -> Function {
        Function { name, parameters, rest: None, returns, run, may_be_null: false, shallow: false }
    }

    const fn and(self, rest: Parameter) -> Function {
        Function { rest: Some(rest), ..self }
    }

    const fn may_be_null(self) -> Function {
        Function { may_be_null: true, ..self }
    }

    const fn shallow(self) -> Function {
        Function { shallow: true, ..self }
    }
}

fn a_string(_: &[Value]) -> Result<Type, Problem> {
    Ok(Type::String)
}

fn a_number(_: &[Value]) -> Result<Type, Problem> {
    Ok(Type::Number)
}

fn a_bool(_: &[Value]) -> Result<Type, Problem> {
    Ok(Type::Bool)
}

fn strings_list(_: &[Value]) -> Result<Type, Problem> {
    Ok(Type::list(Type::String))
}

/// Functions that are not done here, and why. They are the CLI engine's.
pub const LEFT_TO_THE_CLI: &[(&str, &str)] = &[("base64gzip", "its bytes are those of Go's compressor")];

/// Evaluated by the evaluator itself, because they look at expressions and not at values.
pub(crate) const SPECIAL: [&str; 2] = ["can", "try"];

static FUNCTIONS: LazyLock<BTreeMap<&'static str, &'static Function>> = LazyLock::new(|| {
    let groups = [
        cidr::FUNCTIONS,
        collections::FUNCTIONS,
        conversion::FUNCTIONS,
        csv::FUNCTIONS,
        dates::FUNCTIONS,
        encoding::FUNCTIONS,
        files::FUNCTIONS,
        format::FUNCTIONS,
        json::FUNCTIONS,
        lists::FUNCTIONS,
        mappings::FUNCTIONS,
        numbers::FUNCTIONS,
        regex::FUNCTIONS,
        rsa::FUNCTIONS,
        sets::FUNCTIONS,
        strings::FUNCTIONS,
        templates::FUNCTIONS,
        yaml::FUNCTIONS,
    ];
    groups.into_iter().flatten().chain(crypto::functions()).map(|function| (function.name, function)).collect()
});

pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.get(name).copied()
}

/// Whether a configuration may call it.
pub(crate) fn is_known(name: &str) -> bool {
    let name = name.strip_prefix("core::").unwrap_or(name);
    FUNCTIONS.contains_key(name) || SPECIAL.contains(&name)
}

/// The names of all functions that are evaluated here.
pub fn function_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = FUNCTIONS.keys().copied().chain(SPECIAL).collect();
    names.sort_unstable();
    names
}

/// Whether another engine may know this function: a provider's, or one of those that are left to the CLI.
/// What is written today in place of a function that was there once.
pub fn of_old(name: &str) -> Option<&'static str> {
    match name {
        "list" => Some("tolist([ ... ])"),
        "map" => Some("tomap({ ... })"),
        _ => None,
    }
}

pub fn is_foreign(name: &str) -> bool {
    name.contains("::") || LEFT_TO_THE_CLI.iter().any(|(left, _)| *left == name)
}

/// How a message shows a value that may be a secret.
fn shown(text: &str, marks: &landform_cty::Marks) -> String {
    use landform_cty::Mark;
    match (marks.contains(&Mark::Ephemeral), marks.contains(&Mark::Sensitive)) {
        (true, true) => "(ephemeral sensitive value)".to_owned(),
        (true, false) => "(ephemeral value)".to_owned(),
        (false, true) => "(sensitive value)".to_owned(),
        (false, false) => text.to_owned(),
    }
}
