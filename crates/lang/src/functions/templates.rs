//! Text with expressions in it, from a file or a string.

use landform_cty::{Type, Value, quote_as_go};

use super::call::Call;
use super::{Function, Kind, Outcome, Parameter, Problem};
use crate::eval::evaluate_template;
use crate::source::Source;
use crate::{Diagnostic, Reference, Scope, World};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "templatefile",
        &[Parameter::new("path", Kind::String).or_marked(), Parameter::new("vars", Kind::Any)],
        |_| Ok(Type::Dynamic),
        |call| {
            let text = super::files::read_text(call)?;
            let name = call.text(0).to_owned();
            render(call, &name, text, true)
        },
    )
    .may_be_null(),
    Function::new(
        "templatestring",
        &[Parameter::new("data", Kind::String).or_marked(), Parameter::new("vars", Kind::Any).or_marked()],
        |_| Ok(Type::Dynamic),
        |call| {
            let text = call.text(0).to_owned();
            render(call, "NoFileNeeded", text, false)
        },
    )
    .may_be_null(),
];

fn render(call: &mut Call<'_>, name: &str, text: String, says_where: bool) -> Outcome {
    let failed = |diagnostics: crate::Diagnostics| {
        let mut found = diagnostics.0.into_iter();
        let first = found.next().expect("never empty");
        if first.cause != crate::Cause::Invalid {
            return Problem::Other(first);
        }
        let place = first.range.map_or_else(String::new, |range| format!("{range}: "));
        let others = match found.len() {
            0 => String::new(),
            more => format!(", and {more} other diagnostic(s)"),
        };
        Problem::Call(format!("{place}{}; {}{others}", first.summary, first.detail))
    };
    let template = Source::new(name, text).parse_template().map_err(failed)?;
    let vars = &call.args[1];
    if !matches!(vars.ty, Type::Map(_) | Type::Object { .. }) {
        return Err(Problem::Argument(1, "invalid vars value: must be a map".into()));
    }
    let mut bound = Vec::new();
    for (name, value) in vars.as_mapping().into_iter().flatten() {
        if hcl_edit::Ident::try_new(name.as_str()).is_err() {
            let message = format!(
                "invalid template variable name {}: must start with a letter, followed by zero or more letters, \
                 digits, and underscores",
                quote_as_go(name)
            );
            return Err(Problem::Argument(1, message));
        }
        bound.push((name.clone(), value.clone().with_marks(&vars.marks)));
    }
    for (root, range) in template.roots() {
        if bound.iter().any(|(name, _)| *name == root) {
            continue;
        }
        let mut message = format!("vars map does not contain key {root:?}");
        if says_where {
            let end = range.column + root.chars().count();
            message.push_str(&format!(", referenced at {range}-{end}"));
        }
        return Err(Problem::Argument(1, message));
    }
    let scope = TemplateScope(call.scope);
    let result = evaluate_template(&template, bound, &scope, call.budget).map_err(failed)?;
    Ok(result.with_marks(&call.args[0].marks))
}

/// A template refers to its variables only, but its functions see the same world.
struct TemplateScope<'a>(&'a dyn Scope);

impl Scope for TemplateScope<'_> {
    fn resolve(&self, reference: &Reference) -> Result<Value, Diagnostic> {
        Err(Diagnostic::new("Unknown variable", format!("There is no variable named {:?}.", reference.to_string())))
    }

    fn world(&self) -> World<'_> {
        self.0.world()
    }
}
