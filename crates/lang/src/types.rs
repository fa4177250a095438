use std::collections::{BTreeMap, BTreeSet};

use hcl_edit::expr::{Expression, ObjectKey};
use landform_cty::Type;

use crate::{Diagnostic, Expr};

/// Reads a type constraint: `list(object({ a = string, b = optional(number) }))`.
pub(crate) fn parse_type(expr: &Expr) -> Result<Type, Diagnostic> {
    Reader { expr }.read(&expr.node)
}

struct Reader<'a> {
    expr: &'a Expr,
}

impl Reader<'_> {
    fn read(&self, node: &Expression) -> Result<Type, Diagnostic> {
        match node {
            Expression::Variable(name) => match name.as_str() {
                "string" => Ok(Type::String),
                "number" => Ok(Type::Number),
                "bool" => Ok(Type::Bool),
                "any" => Ok(Type::Dynamic),
                "list" | "set" | "map" => Err(self.unsupported(node, &format!("the old type {:?}", name.as_str()))),
                "object" | "tuple" => {
                    Err(self.invalid(node, format!("The {} type constructor requires an argument.", name.as_str())))
                }
                other => Err(self.invalid(node, format!("The keyword {other:?} is not a valid type specification."))),
            },
            Expression::FuncCall(call) => {
                let arguments: Vec<&Expression> = call.args.iter().collect();
                let name = call.name.name.as_str();
                match (name, arguments.as_slice()) {
                    ("list", [element]) => Ok(Type::list(self.read(element)?)),
                    ("set", [element]) => Ok(Type::set(self.read(element)?)),
                    ("map", [element]) => Ok(Type::map(self.read(element)?)),
                    ("tuple", [Expression::Array(elements)]) => {
                        Ok(Type::Tuple(elements.iter().map(|element| self.read(element)).collect::<Result<_, _>>()?))
                    }
                    ("object", [Expression::Object(attributes)]) => self.read_object(attributes),
                    ("optional", _) => Err(self.invalid(
                        node,
                        "Keyword \"optional\" is valid only as a modifier for object type attributes.".into(),
                    )),
                    ("list" | "set" | "map" | "tuple" | "object", _) => Err(self.invalid(
                        node,
                        format!("The {name} type constructor requires one argument of the right form."),
                    )),
                    _ => Err(self.invalid(node, format!("Keyword {name:?} is not a valid type constructor."))),
                }
            }
            Expression::String(_) => Err(self.unsupported(node, "a type in quotes")),
            _ => Err(self.invalid(
                node,
                "A type specification is either a primitive type keyword (bool, number, string) or a complex type \
                 constructor call, like list(string)."
                    .into(),
            )),
        }
    }

    fn read_object(&self, object: &hcl_edit::expr::Object) -> Result<Type, Diagnostic> {
        let mut attributes = BTreeMap::new();
        let mut optional = BTreeSet::new();
        for (key, value) in object {
            let name = match key {
                ObjectKey::Ident(name) => name.as_str().to_owned(),
                ObjectKey::Expression(Expression::String(name)) => name.value().clone(),
                ObjectKey::Expression(key) => {
                    return Err(self.invalid(key, "Object constructor map keys must be attribute names.".into()));
                }
            };
            let mut wanted = value.expr();
            if let Expression::FuncCall(call) = wanted
                && call.name.name.as_str() == "optional"
            {
                let arguments: Vec<&Expression> = call.args.iter().collect();
                wanted = match arguments.as_slice() {
                    [ty] => ty,
                    [_, _] => return Err(self.unsupported(wanted, "optional() with a default value")),
                    _ => {
                        let detail = "Optional attribute modifier requires the attribute type as its argument.";
                        return Err(self.invalid(wanted, detail.into()));
                    }
                };
                optional.insert(name.clone());
            }
            attributes.insert(name, self.read(wanted)?);
        }
        Ok(Type::Object { attributes, optional })
    }

    fn invalid(&self, node: &Expression, detail: String) -> Diagnostic {
        Diagnostic::new("Invalid type specification", detail).at(self.range(node))
    }

    fn unsupported(&self, node: &Expression, construct: &str) -> Diagnostic {
        Diagnostic::unsupported(construct).at(self.range(node))
    }

    fn range(&self, node: &Expression) -> crate::SourceRange {
        use hcl_edit::Span;
        self.expr.source.range(node.span())
    }
}
