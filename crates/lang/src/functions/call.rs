//! Calling a function as go-cty does: what arguments may be, and what follows from those that are not known.

use landform_cty::{Data, Marks, Number, Refinement, Type, Value};

use super::{Function, Parameter, Problem};
use crate::{Budget, Diagnostic, Scope};

/// What a function sees of its call.
pub(super) struct Call<'a> {
    pub args: Vec<Value>,
    /// What the function said the result would be.
    pub ty: Type,
    pub scope: &'a dyn Scope,
    pub budget: &'a mut Budget,
}

impl Call<'_> {
    /// The text of an argument that is known to be a string.
    pub fn text(&self, index: usize) -> &str {
        self.args[index].as_str().unwrap_or_default()
    }

    pub fn number(&self, index: usize) -> Number {
        self.args[index].as_number().cloned().unwrap_or_else(|| Number::from(0))
    }

    pub fn elements(&self, index: usize) -> &[Value] {
        self.args[index].as_sequence().unwrap_or_default()
    }

    /// A whole number that fits into 64 bits, or what go-cty says about another.
    pub fn integer(&self, index: usize) -> Result<i64, String> {
        integer(&self.args[index])
    }

    pub fn float(&self, index: usize) -> Result<f64, Problem> {
        let float: f64 = self.number(index).to_string().parse().unwrap_or(f64::INFINITY);
        if float.is_infinite() {
            let most = f64::MAX;
            return Err(Problem::Call(format!("value must be between -{most:.6} and {most:.6} inclusive")));
        }
        Ok(float)
    }
}

pub(super) fn integer(value: &Value) -> Result<i64, String> {
    value
        .as_number()
        .and_then(Number::to_i64)
        .ok_or_else(|| format!("value must be a whole number, between {} and {}", i64::MIN, i64::MAX))
}

/// A function that was called in a wrong way, and which argument was wrong.
pub(crate) struct Failure {
    pub diagnostic: Box<Diagnostic>,
    pub argument: Option<usize>,
}

fn fail(argument: Option<usize>, diagnostic: Diagnostic) -> Failure {
    Failure { diagnostic: Box::new(diagnostic), argument }
}

fn invalid(function: &Function, index: usize, message: &str) -> Failure {
    let parameter = parameter(function, index).expect("there are not more arguments than parameters");
    let detail = format!("Invalid value for {:?} parameter: {message}.", parameter.name);
    fail(Some(index), Diagnostic::new("Invalid function argument", detail))
}

/// The arguments in the types that the function wants them to have, or all that cannot be had so.
pub(crate) fn convert(
    function: &Function,
    arguments: Vec<Value>,
    budget: &mut Budget,
) -> Result<Vec<Value>, Vec<Failure>> {
    let (mut converted, mut failures) = (Vec::with_capacity(arguments.len()), Vec::new());
    for (index, argument) in arguments.iter().enumerate() {
        if !function.shallow {
            budget.spend_value(argument).map_err(|limit| vec![fail(None, limit)])?;
        }
        let wanted = parameter(function, index).map_or(Type::Dynamic, |parameter| parameter.kind.ty());
        match argument.convert(&wanted) {
            Ok(argument) => converted.push(argument),
            Err(error) => failures.push(invalid(function, index, &error.message)),
        }
    }
    if failures.is_empty() { Ok(converted) } else { Err(failures) }
}

/// With arguments that have their types already.
pub(crate) fn call(
    function: &Function,
    arguments: Vec<Value>,
    scope: &dyn Scope,
    budget: &mut Budget,
) -> Result<Value, Failure> {
    let name = function.name;
    apply(function, arguments, scope, budget).map_err(|problem| match problem {
        Problem::Argument(index, message) => invalid(function, index, &message),
        Problem::Call(message) => {
            let detail = format!("Call to function {name:?} failed: {message}.");
            fail(None, Diagnostic::new("Error in function call", detail))
        }
        Problem::Unsupported(construct) => fail(None, Diagnostic::unsupported(format!("function {name}: {construct}"))),
        Problem::Other(diagnostic) => fail(None, diagnostic),
    })
}

pub(crate) fn check_count(function: &Function, count: usize) -> Result<(), Failure> {
    let name = function.name;
    let expected = function.parameters.len();
    if count < expected {
        let missing = function.parameters[count].name;
        let at_least = if function.rest.is_some() { "at least " } else { "" };
        let detail =
            format!("Function {name:?} expects {at_least}{expected} argument(s). Missing value for {missing:?}.");
        return Err(Failure {
            diagnostic: Box::new(Diagnostic::new("Not enough function arguments", detail)),
            argument: None,
        });
    }
    if function.rest.is_none() && count > expected {
        let detail = format!("Function {name:?} expects only {expected} argument(s).");
        let diagnostic = Diagnostic::new("Too many function arguments", detail);
        return Err(Failure { diagnostic: Box::new(diagnostic), argument: Some(expected) });
    }
    Ok(())
}

fn parameter(function: &Function, index: usize) -> Option<&Parameter> {
    function.parameters.get(index).or(function.rest.as_ref())
}

/// Arguments have the types of their parameters here, and there are as many as there should be.
pub(super) fn apply(
    function: &Function,
    mut args: Vec<Value>,
    scope: &dyn Scope,
    budget: &mut Budget,
) -> Result<Value, Problem> {
    let mut undecided = false;
    for (index, argument) in args.iter().enumerate() {
        let Some(parameter) = parameter(function, index) else { continue };
        if argument.is_null() && !parameter.takes_null {
            return Err(Problem::Argument(index, "argument must not be null".into()));
        }
        if argument.ty == Type::Dynamic && !parameter.takes_untyped {
            undecided = true;
            break;
        }
    }
    let mut marks = Marks::new();
    let mut unknown = false;
    for (index, argument) in args.iter_mut().enumerate() {
        let Some(parameter) = parameter(function, index) else { continue };
        if !parameter.takes_marked && argument.has_marks() {
            let (bare, found) = std::mem::replace(argument, Value::null(Type::Dynamic)).unmark_deep();
            *argument = bare;
            marks.extend(found);
        }
        unknown |= !argument.is_known() && !parameter.takes_unknown;
    }
    if undecided {
        return Ok(Value::unknown(Type::Dynamic).with_marks(&marks));
    }
    let ty = (function.returns)(&args)?;
    let result = if unknown { Value::unknown(ty) } else { (function.run)(&mut Call { args, ty, scope, budget })? };
    let result = if function.may_be_null { result } else { certainly_not_null(result) };
    Ok(result.with_marks(&marks))
}

/// What is unknown but certainly not null may say so.
pub(super) fn certainly_not_null(value: Value) -> Value {
    match &value.data {
        Data::Unknown(refinement) if value.ty != Type::Dynamic => {
            let refinement = Refinement { nullable: Some(false), ..(**refinement).clone() };
            let marks = value.marks.clone();
            Value::unknown_refined(value.ty, refinement).with_marks(&marks)
        }
        _ => value,
    }
}
