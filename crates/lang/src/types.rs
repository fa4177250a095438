use std::collections::{BTreeMap, BTreeSet};

use hcl_edit::expr::{Expression, ObjectKey};
use landform_cty::{Type, Value};

use crate::defaults::Defaults;
use crate::{Budget, Diagnostic, Diagnostics, Expr, NoReferences, evaluate};

/// Reads a type constraint: `list(object({ a = string, b = optional(number, 5) }))`.
pub(crate) fn parse_type(expr: &Expr) -> Result<(Type, Defaults), Diagnostics> {
    Reader { expr }.read(&expr.node)
}

fn needs_argument(constructor: &str) -> String {
    let what = match constructor {
        "object" => "attribute types and values as a map",
        "tuple" => "element types as a list",
        _ => "element type",
    };
    format!("The {constructor} type constructor requires one argument specifying the {what}.")
}

struct Reader<'a> {
    expr: &'a Expr,
}

type Read = Result<(Type, Defaults), Diagnostics>;

impl Reader<'_> {
    fn read(&self, node: &Expression) -> Read {
        let plain = |ty: Type| Ok((ty, Defaults::default()));
        match node {
            Expression::Variable(name) => match name.as_str() {
                "string" => plain(Type::String),
                "number" => plain(Type::Number),
                "bool" => plain(Type::Bool),
                "any" => plain(Type::Dynamic),
                // Alone in these two places, as they were written in the days of quoted types.
                "list" if self.is_whole(node) => plain(Type::list(Type::Dynamic)),
                "map" if self.is_whole(node) => plain(Type::map(Type::Dynamic)),
                name @ ("list" | "set" | "map" | "object" | "tuple") => Err(self.invalid(node, needs_argument(name))),
                other => Err(self.invalid(node, format!("The keyword {other:?} is not a valid type specification."))),
            },
            Expression::FuncCall(call) => {
                let arguments: Vec<&Expression> = call.args.iter().collect();
                let name = call.name.name.as_str();
                match (name, arguments.as_slice()) {
                    ("list", [element]) => self.read_collection(element, Type::list),
                    ("set", [element]) => self.read_collection(element, Type::set),
                    ("map", [element]) => self.read_collection(element, Type::map),
                    ("tuple", [Expression::Array(elements)]) => self.read_tuple(elements),
                    ("object", [Expression::Object(attributes)]) => self.read_object(attributes),
                    ("optional", _) => Err(self.invalid(
                        node,
                        "Keyword \"optional\" is valid only as a modifier for object type attributes.".into(),
                    )),
                    ("tuple", [_]) => {
                        let detail = "Tuple type constructor requires a list of element types.";
                        Err(self.invalid(node, detail.into()))
                    }
                    ("object", [_]) => {
                        let detail = "Object type constructor requires a map whose keys are attribute names and whose values \
                                      are the corresponding attribute types.";
                        Err(self.invalid(node, detail.into()))
                    }
                    ("list" | "set" | "map" | "tuple" | "object", _) => Err(self.invalid(node, needs_argument(name))),
                    ("string" | "number" | "bool", _) => {
                        Err(self.invalid(node, format!("Primitive type keyword {name:?} does not expect arguments.")))
                    }
                    ("any", _) => {
                        let detail = "Type constraint keyword \"any\" does not expect arguments.";
                        Err(self.invalid(node, detail.into()))
                    }
                    _ => Err(self.invalid(node, format!("Keyword {name:?} is not a valid type constructor."))),
                }
            }
            Expression::String(name) if self.is_whole(node) => Err(self.quoted(node, name.value())),
            _ => Err(self.invalid(
                node,
                "A type specification is either a primitive type keyword (bool, number, string) or a complex type \
                 constructor call, like list(string)."
                    .into(),
            )),
        }
    }

    fn read_collection(&self, element: &Expression, wrap: fn(Type) -> Type) -> Read {
        let (element, defaults) = self.read(element)?;
        Ok((wrap(element), Defaults::of_elements(defaults)))
    }

    fn read_tuple(&self, elements: &hcl_edit::expr::Array) -> Read {
        let read = elements.iter().map(|element| self.read(element)).collect::<Result<Vec<_>, _>>()?;
        let (types, defaults): (Vec<Type>, Vec<Defaults>) = read.into_iter().unzip();
        Ok((Type::tuple(types), Defaults::of_tuple(defaults)))
    }

    fn read_object(&self, object: &hcl_edit::expr::Object) -> Read {
        let mut attributes = BTreeMap::new();
        let mut optional = BTreeSet::new();
        let mut values = BTreeMap::new();
        let mut inner = BTreeMap::new();
        for (key, value) in object {
            let name = match key {
                ObjectKey::Ident(name) => name.as_str().to_owned(),
                ObjectKey::Expression(Expression::String(name)) => name.value().clone(),
                ObjectKey::Expression(key) => {
                    return Err(self.invalid(key, "Object constructor map keys must be attribute names.".into()));
                }
            };
            let mut wanted = value.expr();
            let mut default = None;
            if let Expression::FuncCall(call) = wanted
                && call.name.name.as_str() == "optional"
            {
                let arguments: Vec<&Expression> = call.args.iter().collect();
                (wanted, default) = match arguments.as_slice() {
                    [ty] => (*ty, None),
                    [ty, default] => (*ty, Some(*default)),
                    [_, _, ..] => {
                        let detail = "Optional attribute modifier expects at most two arguments: the attribute type, and a \
                                      default value.";
                        return Err(self.invalid(wanted, detail.into()));
                    }
                    [] => {
                        let detail = "Optional attribute modifier requires the attribute type as its argument.";
                        return Err(self.invalid(wanted, detail.into()));
                    }
                };
                optional.insert(name.clone());
            }
            let (ty, defaults) = self.read(wanted)?;
            if let Some(default) = default {
                values.insert(name.clone(), self.read_default(default, &ty)?);
            }
            inner.insert(name.clone(), defaults);
            attributes.insert(name, ty);
        }
        Ok((Type::object_with_optional(attributes, optional), Defaults::of_object(values, inner)))
    }

    fn read_default(&self, node: &Expression, ty: &Type) -> Result<Value, Diagnostics> {
        let expr = Expr { node: node.clone(), source: self.expr.source.clone() };
        if let Some(problem) = crate::reference::calls_a_function(&expr) {
            return Err(problem.into());
        }
        let value = evaluate(&expr, &NoReferences, &mut Budget::default())?;
        value.convert(ty).map_err(|error| {
            let detail = format!("This default value is not compatible with the attribute's type constraint: {error}.");
            Diagnostic::new("Invalid default value for optional attribute", detail).at(expr.range()).into()
        })
    }

    fn invalid(&self, node: &Expression, detail: String) -> Diagnostics {
        Diagnostic::new("Invalid type specification", detail).at(self.range(node)).into()
    }

    /// Whether this is all of the constraint, and not a part of it.
    fn is_whole(&self, node: &Expression) -> bool {
        std::ptr::eq(node, &self.expr.node)
    }

    fn quoted(&self, node: &Expression, name: &str) -> Diagnostics {
        let without = match name {
            "string" => "string",
            "list" => "list(string)",
            "map" => "map(string)",
            _ => {
                let detail = "To provide a full type expression, remove the surrounding quotes and give the type expression \
                              directly.";
                return Diagnostic::new("Invalid legacy variable type hint", detail).at(self.range(node)).into();
            }
        };
        let explain = match name {
            "string" => "Remove the quotes around \"string\".".to_owned(),
            name => format!(
                "Remove the quotes around {name:?} and write {without} instead to explicitly indicate that the {name} \
                 elements are strings."
            ),
        };
        let detail = format!(
            "OpenTofu 0.11 and earlier required type constraints to be given in quotes, but that form is now deprecated and \
             will be removed in a future version of OpenTofu. {explain}"
        );
        Diagnostic::new("Invalid quoted type constraints", detail).at(self.range(node)).into()
    }

    fn range(&self, node: &Expression) -> crate::SourceRange {
        use hcl_edit::Span;
        self.expr.source.range(node.span())
    }
}
