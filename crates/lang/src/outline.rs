//! What can be said of expressions without evaluating a configuration: the value of one that stands for itself, and what the
//! others refer to. A plan's JSON shows it.

use std::collections::BTreeMap;

use hcl_edit::Span;
use hcl_edit::expr::{Expression, TraversalOperator};
use hcl_edit::structure::Structure;
use serde_json::Value as Json;

use crate::json_syntax::with_blocks;
use crate::reference::traversals;
use crate::scope::Nothing;
use crate::{Body, BodySpec, Budget, Expr, Nesting, Reference, evaluate};

/// Of one expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Outline {
    /// Its value as JSON, if it takes no reference and no function to tell: they may stand there, as in `false && var.a`. What
    /// was written in JSON is shown as it is there.
    pub constant: Option<Json>,
    /// Every reference as far as its steps are fixed, and then with one step less each, down to what is referred to.
    pub references: Vec<String>,
}

/// Of what stands in a body under one name.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Argument(Outline),
    Block(BTreeMap<String, Part>),
    Blocks(Vec<BTreeMap<String, Part>>),
    Labelled(BTreeMap<String, BTreeMap<String, Part>>),
}

pub fn outline(expr: &Expr) -> Outline {
    let traversals = traversals(&expr.node);
    let value = || evaluate(expr, &Nothing, &mut Budget::default()).ok()?.to_plain_json().ok();
    let constant = expr.source.written_in_json(expr.node.span()).or_else(value);
    let mut references = Vec::new();
    for (root, operators) in &traversals {
        if let Ok((reference, used)) = Reference::read(root, operators) {
            steps(root, &reference, used, operators, &mut references);
        }
    }
    Outline { constant, references }
}

/// What a body says, as far as the spec has it. `dynamic` blocks are no blocks of the spec.
pub fn outline_body(body: &Body, spec: &BodySpec) -> BTreeMap<String, Part> {
    let converted = with_blocks(body, spec).ok().flatten();
    let body = converted.as_ref().unwrap_or(body);
    let mut parts = BTreeMap::new();
    for structure in &body.node {
        let block = match structure {
            Structure::Attribute(attribute) if spec.attributes.contains_key(attribute.key.as_str()) => {
                let said = Part::Argument(outline(&body.expr(&attribute.value)));
                parts.insert(attribute.key.as_str().to_owned(), said);
                continue;
            }
            Structure::Attribute(_) => continue,
            Structure::Block(block) => block,
        };
        let name = block.ident.as_str();
        let Some(inner) = spec.blocks.get(name) else { continue };
        let said = outline_body(&body.inside(block), &inner.body);
        let fresh = match inner.nesting {
            Nesting::Single | Nesting::Group => Part::Block(BTreeMap::new()),
            Nesting::List | Nesting::Set => Part::Blocks(Vec::new()),
            Nesting::Map => Part::Labelled(BTreeMap::new()),
        };
        match parts.entry(name.to_owned()).or_insert(fresh) {
            Part::Block(place) => *place = said,
            Part::Blocks(all) => all.push(said),
            Part::Labelled(all) => {
                let label = block.labels.first().map(|label| label.as_str().to_owned()).unwrap_or_default();
                all.insert(label, said);
            }
            Part::Argument(_) => {}
        }
    }
    parts
}

/// A fixed step of a traversal as it is written in an address.
fn fixed(operator: &TraversalOperator) -> Option<String> {
    match operator {
        TraversalOperator::GetAttr(name) => Some(format!(".{}", name.as_str())),
        TraversalOperator::LegacyIndex(index) => Some(format!("[{}]", **index)),
        TraversalOperator::Index(key) => match key {
            Expression::String(text) => Some(format!("[{:?}]", text.as_str())),
            Expression::Number(number) => Some(format!("[{}]", **number)),
            _ => None,
        },
        TraversalOperator::AttrSplat(_) | TraversalOperator::FullSplat(_) => None,
    }
}

fn steps(root: &str, reference: &Reference, used: usize, operators: &[TraversalOperator], out: &mut Vec<String>) {
    let fixed: Vec<String> = operators.iter().map_while(fixed).collect();
    let is_key = |at: usize| fixed.get(at).is_some_and(|step| step.starts_with('['));
    let written = |to: usize| -> String {
        match reference {
            // The long form is shown as the short one.
            Reference::Resource { .. } if root == "resource" => {
                format!("{reference}{}", fixed[used.min(to)..to].concat())
            }
            _ => format!("{root}{}", fixed[..to].concat()),
        }
    };
    // How far the subject itself goes, and what stands behind it besides.
    let (subject, besides) = match reference {
        Reference::Resource { .. } | Reference::Data { .. } if is_key(used) => (used + 1, Some(used)),
        Reference::Module { output, .. } => {
            let instance = if is_key(used) { used + 1 } else { used };
            match output {
                Some(_) if fixed.len() > instance => (instance + 1, Some(instance)),
                _ if instance > used => (instance, Some(used)),
                _ => (used, None),
            }
        }
        _ => (used, None),
    };
    for to in (subject..=fixed.len()).rev() {
        out.push(written(to));
    }
    out.extend(besides.map(written));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        outline(&Expr::parse("test", text).unwrap()).references
    }

    #[test]
    fn references_are_unwrapped_step_by_step() {
        assert_eq!(said("var.a.b[0]"), ["var.a.b[0]", "var.a.b", "var.a"]);
        assert_eq!(said("t.a.id"), ["t.a.id", "t.a"]);
        assert_eq!(said("data.t.a[\"k\"].x"), ["data.t.a[\"k\"].x", "data.t.a[\"k\"]", "data.t.a"]);
        assert_eq!(said("t.a[count.index].id"), ["t.a", "count.index"]);
        assert_eq!(said("t.a[*].id"), ["t.a"]);
        assert_eq!(said("module.m.o.x"), ["module.m.o.x", "module.m.o", "module.m"]);
        assert_eq!(said("module.m[0].o"), ["module.m[0].o", "module.m[0]"]);
        assert_eq!(said("module.m"), ["module.m"]);
        assert_eq!(said("[for x in var.l : x.y if each.value]"), ["var.l", "each.value"]);
        assert_eq!(said("resource.t.a.id"), ["t.a.id", "t.a"]);
    }

    #[test]
    fn only_what_stands_for_itself_is_constant() {
        let constant = |text: &str| outline(&Expr::parse("test", text).unwrap()).constant;
        assert_eq!(constant("1 + 2"), Some(Json::from(3)));
        assert_eq!(constant("\"a${1}\""), Some(Json::from("a1")));
        assert_eq!(constant("upper(\"a\")"), None);
        assert_eq!(constant("var.x"), None);
        assert_eq!(constant("null"), Some(Json::Null));
    }
}
