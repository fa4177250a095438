use hcl_edit::Span;
use hcl_edit::expr::{Expression, FuncCall};
use landform_cty::{Type, Value};

use super::{Blame, Evaluator};
use crate::diagnostics::Found;
use crate::{Cause, Diagnostic, Diagnostics, FunctionCall, SourceRange, functions};

impl Evaluator<'_> {
    pub(super) fn eval_call(&mut self, call: &FuncCall) -> Result<Value, Diagnostics> {
        let name = call.name.name.as_str();
        let namespace: Vec<&str> = call.name.namespace.iter().map(|part| part.as_str()).collect();
        if !self.scope.has_functions() {
            let detail = "Functions may not be called here.";
            return Err(Diagnostic::new("Function calls not allowed", detail).at(self.range(&call.name.name)).into());
        }
        let own = matches!(namespace.as_slice(), [] | ["core"]);
        let arguments: Vec<&Expression> = call.args.iter().collect();
        match name {
            "try" if own && !call.args.expand_final() => return self.eval_try(&arguments),
            "can" if own && !call.args.expand_final() => return self.eval_can(&arguments),
            _ => {}
        }
        let Some(function) = functions::find(name).filter(|_| own) else {
            let mut unknown = self.unknown_function(call, &namespace).at(self.range(&call.name.name));
            unknown.seen.call = Some(FunctionCall { called_as: name.to_owned(), signature: None });
            return Err(unknown.within(self.range(call)).into());
        };
        // What is to be expanded says how many arguments there are, so it is looked at first.
        let (plain, expanded) = match (call.args.expand_final(), arguments.split_last()) {
            (true, Some((last, before))) => {
                let value = self.eval(last)?;
                match expand(value, &self.range(*last))? {
                    Expanded::Elements(elements) => (before, elements),
                    Expanded::Unknown(result) => return Ok(result),
                }
            }
            _ => (arguments.as_slice(), Vec::new()),
        };
        // Which of the arguments that are written a value comes from.
        let written = |index: usize| arguments.get(index.min(plain.len())).copied();
        functions::check_count(function, plain.len() + expanded.len()).map_err(|failure| {
            let argument = failure.argument.and_then(written);
            self.failed_call(call, function, failure, argument)
        })?;
        let (mut values, mut found) = (Vec::with_capacity(plain.len()), Found::default());
        for argument in plain {
            // In place of one that is wrong there is one of which nothing is known, so that the others are looked at.
            values.push(found.keep(self.eval(argument))?.unwrap_or_else(|| Value::unknown(Type::Dynamic)));
        }
        values.extend(expanded);
        let converted = functions::convert(function, values, self.budget).map_err(|failures| {
            let mut place = |failure: functions::Failure| {
                let argument = failure.argument.and_then(written);
                self.failed_call(call, function, failure, argument)
            };
            Diagnostics(failures.into_iter().map(&mut place).collect())
        });
        let converted = found.keep(converted)?;
        found.end()?;
        let result = functions::call(function, converted.unwrap_or_default(), self.scope, self.budget);
        let result = result.map_err(|failure| {
            let argument = failure.argument.and_then(written);
            self.failed_call(call, function, failure, argument)
        })?;
        self.pay(result)
    }

    /// With its place, the call around it, and which function that was.
    fn failed_call(
        &mut self,
        call: &FuncCall,
        function: &functions::Function,
        failure: functions::Failure,
        argument: Option<&Expression>,
    ) -> Diagnostic {
        let mut diagnostic = *failure.diagnostic;
        if diagnostic.cause != Cause::Invalid {
            return diagnostic;
        }
        let whole = self.source.range(call.span());
        let place = match argument {
            Some(argument) => {
                diagnostic.seen.values.get_or_insert_with(|| self.described(argument, Blame::Neither));
                self.start(argument)
            }
            // The closing parenthesis stands for what is missing.
            None if diagnostic.summary.starts_with("Not enough") => {
                self.source.range(call.span().map(|span| span.end.saturating_sub(1)..span.end))
            }
            None => self.start_of_call(call),
        };
        let (called_as, signature) = (function.name.to_owned(), Some(function.signature()));
        diagnostic.seen.call.get_or_insert(FunctionCall { called_as, signature });
        diagnostic.at(place).within(whole)
    }

    fn unknown_function(&self, call: &FuncCall, namespace: &[&str]) -> Diagnostic {
        let name = call.name.name.as_str();
        let left = functions::LEFT_TO_THE_CLI.iter().any(|(other, _)| *other == name);
        // A provider may bring functions of its own, and the CLI knows some that are not here.
        if !namespace.is_empty() || left {
            return Diagnostic::unsupported(format!("function {name}"));
        }
        if let Some(instead) = functions::of_old(name) {
            let detail = format!(
                "Call to function {name:?} failed: the {name:?} function was deprecated in Terraform v0.12 and is not available \
                 in OpenTofu; use {instead} syntax to write a literal {name}."
            );
            return Diagnostic::new("Error in function call", detail);
        }
        Diagnostic::new("Call to unknown function", format!("There is no function named {name:?}."))
    }

    /// The first expression that can be evaluated.
    fn eval_try(&mut self, arguments: &[&Expression]) -> Result<Value, Diagnostics> {
        let failed = |message: String| {
            let detail = format!("Call to function \"try\" failed: {message}.");
            Diagnostics::from(Diagnostic::new("Error in function call", detail))
        };
        if arguments.is_empty() {
            return Err(failed("at least one argument is required".into()));
        }
        let mut complaints = String::new();
        for argument in arguments {
            match self.eval(argument) {
                Ok(value) if value.is_wholly_known() => return Ok(value),
                // It may turn out to be wrong once it is known.
                Ok(_) => return Ok(Value::unknown(Type::Dynamic)),
                Err(diagnostics) if diagnostics.0.iter().any(|found| found.cause != Cause::Invalid) => {
                    return Err(diagnostics);
                }
                Err(diagnostics) => {
                    for found in diagnostics {
                        let place = found.range.map(|range| format!(" (at {range})")).unwrap_or_default();
                        complaints.push_str(&format!("- {}{place}\n  {}\n", found.summary, found.detail));
                    }
                }
            }
        }
        Err(failed(format!(
            "no expression succeeded:\n{complaints}\nAt least one expression must produce a successful result"
        )))
    }

    /// Whether the expression can be evaluated.
    fn eval_can(&mut self, arguments: &[&Expression]) -> Result<Value, Diagnostics> {
        let [argument] = arguments else {
            let (summary, detail) = match arguments {
                [] => (
                    "Not enough function arguments",
                    "Function \"can\" expects 1 argument(s). Missing value for \"expression\".",
                ),
                _ => ("Too many function arguments", "Function \"can\" expects only 1 argument(s)."),
            };
            return Err(Diagnostic::new(summary, detail).into());
        };
        match self.eval(argument) {
            Ok(value) if value.is_wholly_known() => Ok(Value::bool(true)),
            Ok(_) => Ok(Value::unknown(Type::Bool)),
            Err(diagnostics) if diagnostics.0.iter().any(|found| found.cause != Cause::Invalid) => Err(diagnostics),
            Err(_) => Ok(Value::bool(false)),
        }
    }
}

enum Expanded {
    Elements(Vec<Value>),
    /// How many arguments there are is not known, so neither is anything about the result.
    Unknown(Value),
}

fn expand(value: Value, range: &SourceRange) -> Result<Expanded, Diagnostic> {
    let invalid = |detail: &str| Diagnostic::new("Invalid expanding argument value", detail).at(range.clone());
    if value.is_null() {
        return Err(invalid("The expanding argument (indicated by ...) must not be null."));
    }
    if value.ty != Type::Dynamic && !matches!(value.ty, Type::Tuple(_) | Type::List(_) | Type::Set(_)) {
        return Err(invalid("The expanding argument (indicated by ...) must be of a tuple, list, or set type."));
    }
    let (value, marks) = value.unmark();
    Ok(match value.as_sequence() {
        Some(elements) => {
            Expanded::Elements(elements.iter().map(|element| element.clone().with_marks(&marks)).collect())
        }
        None => Expanded::Unknown(Value::unknown(Type::Dynamic).with_marks(&marks)),
    })
}
