//! The functions of the language: those that are certain to do exactly what OpenTofu's do. The others are reported
//! when a configuration is loaded.

mod collections;
mod conversion;
mod encoding;
mod format;
mod numbers;
mod strings;

use landform_cty::{Marks, Type, Value};

use crate::{Budget, Diagnostic};

pub(crate) struct Function {
    parameters: &'static [Parameter],
    /// The parameter that any number of further arguments go to.
    rest: Option<Parameter>,
    body: Body,
}

struct Parameter {
    name: &'static str,
    kind: Kind,
    nullable: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    String,
    Number,
    StringList,
    /// Any type, but nothing can be said before the type is known.
    Any,
    /// Any type, even one that is not known yet.
    Dynamic,
}

enum Body {
    /// Gets known arguments without marks; an unknown argument makes an unknown result that is not null.
    Plain { returns: fn() -> Type, run: fn(&[Value]) -> Result<Value, Problem> },
    /// Sees to unknown values and marks itself.
    Careful(fn(&[Value]) -> Result<Value, Problem>),
}

/// What a function has to complain about.
enum Problem {
    Call(String),
    Argument(usize, String),
    Unsupported(String),
}

impl Parameter {
    const fn new(name: &'static str, kind: Kind) -> Parameter {
        Parameter { name, kind, nullable: false }
    }

    const fn nullable(name: &'static str, kind: Kind) -> Parameter {
        Parameter { name, kind, nullable: true }
    }
}

/// A function that was called in a wrong way, and which argument was wrong.
pub(crate) struct Failure {
    pub diagnostic: Diagnostic,
    pub argument: Option<usize>,
}

pub(crate) fn find(name: &str) -> Option<&'static Function> {
    strings::find(name)
        .or_else(|| numbers::find(name))
        .or_else(|| collections::find(name))
        .or_else(|| conversion::find(name))
        .or_else(|| encoding::find(name))
        .or_else(|| format::find(name))
}

pub(crate) fn call(
    name: &str,
    function: &Function,
    arguments: Vec<Value>,
    budget: &mut Budget,
) -> Result<Value, Failure> {
    let fail = |argument: Option<usize>, diagnostic: Diagnostic| Failure { diagnostic, argument };
    let expected = function.parameters.len();
    if arguments.len() < expected {
        let missing = function.parameters[arguments.len()].name;
        let at_least = if function.rest.is_some() { "at least " } else { "" };
        let detail =
            format!("Function {name:?} expects {at_least}{expected} argument(s). Missing value for {missing:?}.");
        return Err(fail(None, Diagnostic::new("Not enough function arguments", detail)));
    }
    if function.rest.is_none() && arguments.len() > expected {
        let detail = format!("Function {name:?} expects only {expected} argument(s).");
        return Err(fail(Some(expected), Diagnostic::new("Too many function arguments", detail)));
    }
    let parameter = |index: usize| {
        function.parameters.get(index).or(function.rest.as_ref()).expect("the number of arguments was checked")
    };
    let invalid = |index: usize, message: &str| {
        let detail = format!("Invalid value for {:?} parameter: {message}.", parameter(index).name);
        fail(Some(index), Diagnostic::new("Invalid function argument", detail))
    };
    let mut converted = Vec::with_capacity(arguments.len());
    for (index, argument) in arguments.iter().enumerate() {
        budget.spend_value(argument).map_err(|limit| fail(None, limit))?;
        let wanted = match parameter(index).kind {
            Kind::String => Type::String,
            Kind::Number => Type::Number,
            Kind::StringList => Type::list(Type::String),
            Kind::Any | Kind::Dynamic => Type::Dynamic,
        };
        converted.push(argument.convert(&wanted).map_err(|error| invalid(index, &error.message))?);
    }
    for (index, argument) in converted.iter().enumerate() {
        if argument.is_null() && !parameter(index).nullable {
            return Err(invalid(index, "argument must not be null"));
        }
    }
    let undecided = converted
        .iter()
        .enumerate()
        .any(|(index, argument)| matches!(parameter(index).kind, Kind::Any) && argument.ty == Type::Dynamic);
    let result = match &function.body {
        _ if undecided => Ok(Value::unknown(Type::Dynamic).with_marks(&all_marks(&converted))),
        Body::Careful(run) => run(&converted),
        Body::Plain { returns, run } => {
            let marks = all_marks(&converted);
            let bare: Vec<Value> = converted.into_iter().map(|argument| argument.unmark_deep().0).collect();
            let result =
                if bare.iter().all(Value::is_known) { run(&bare) } else { Ok(Value::unknown_not_null(returns())) };
            result.map(|value| value.with_marks(&marks))
        }
    };
    result.map_err(|problem| match problem {
        Problem::Argument(index, message) => invalid(index, &message),
        Problem::Call(message) => {
            let detail = format!("Call to function {name:?} failed: {message}.");
            fail(None, Diagnostic::new("Error in function call", detail))
        }
        Problem::Unsupported(construct) => fail(None, Diagnostic::unsupported(format!("function {name}: {construct}"))),
    })
}

fn all_marks(values: &[Value]) -> Marks {
    values.iter().flat_map(|value| value.clone().unmark_deep().1).collect()
}

/// The text of an argument that is known to be a string.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
