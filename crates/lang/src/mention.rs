//! What an expression mentions, step by step: not only which object, but which part of it. A plan's JSON tells by it what
//! decided about a change.

use hcl_edit::expr::{Expression, TraversalOperator};
use hcl_edit::structure::{Block, Structure};
use landform_cty::{Path, Step};

use crate::json_syntax::with_blocks;
use crate::reference::{Traversal, body_traversals, traversals};
use crate::{Body, BodySpec, Expr, Nesting, Reference};

/// A reference with the steps behind it, as far as they are fixed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    pub reference: Reference,
    /// Which instance of a resource or a module, if it is said.
    pub key: Option<Step>,
    pub path: Path,
}

pub fn mentions(expr: &Expr) -> Vec<Mention> {
    traversals(&expr.node).iter().filter_map(mention).collect()
}

/// What a part of a body mentions: of the one attribute or block that the path leads to, as far as OpenTofu follows it. It
/// does not go into one of several blocks: behind their name the path is lost, and the name alone means the whole body.
pub fn mentions_at(body: &Body, spec: &BodySpec, path: &[Step]) -> Vec<Mention> {
    let converted = with_blocks(body, spec).ok().flatten();
    let mut bodies = vec![converted.unwrap_or_else(|| body.clone())];
    let mut found = Vec::new();
    let mut spec = spec;
    for step in path {
        let name = match step {
            Step::Attribute(name) | Step::Key(name) => name.clone(),
            Step::Index(index) => index.to_string(),
            Step::Element(_) => return found,
        };
        if spec.attributes.contains_key(&name) {
            let given = bodies.iter().filter_map(|body| Some(body.expr(&body.node.get_attribute(&name)?.value)));
            found.extend(given.flat_map(|expr| mentions(&expr)));
            return found;
        }
        let Some(inner) = spec.blocks.get(&name) else { return found };
        if matches!(inner.nesting, Nesting::Single | Nesting::Group) {
            bodies = bodies.iter().flat_map(|body| blocks(body, &name, &mut found)).collect();
            spec = &inner.body;
        }
        if bodies.is_empty() {
            return found;
        }
    }
    found.extend(bodies.iter().flat_map(body_traversals).filter_map(|one| mention(&one)));
    found
}

/// The bodies of the blocks of one name, also of those that are made by `dynamic`; what decides about the latter is noted.
fn blocks(body: &Body, name: &str, found: &mut Vec<Mention>) -> Vec<Body> {
    let inside = |block: &Block| body.inside(block);
    let mut bodies = Vec::new();
    for block in body.node.iter().filter_map(Structure::as_block) {
        let label = block.labels.first().map(|label| label.as_str());
        if block.ident.as_str() == name {
            bodies.push(inside(block));
        } else if block.ident.as_str() == "dynamic" && label == Some(name) {
            let given = ["for_each", "labels"].iter().filter_map(|part| block.body.get_attribute(part));
            found.extend(given.flat_map(|given| mentions(&body.expr(&given.value))));
            bodies.extend(block.body.get_blocks("content").map(inside));
        }
    }
    bodies
}

pub(crate) fn mention((root, operators): &Traversal) -> Option<Mention> {
    let (reference, used) = Reference::read(root, operators).ok()?;
    let mut steps: Path = operators.iter().map_while(fixed).skip(used).collect();
    let is_key = |step: Option<&Step>| matches!(step, Some(Step::Key(_) | Step::Index(_)));
    let repeated = matches!(reference, Reference::Resource { .. } | Reference::Data { .. } | Reference::Module { .. });
    let key = (repeated && is_key(steps.first())).then(|| steps.remove(0));
    let reference = match reference {
        Reference::Module { name, .. } => {
            // An output behind a key that is not fixed is not part of what OpenTofu sees.
            let output = match steps.first() {
                Some(Step::Attribute(_)) => Some(steps.remove(0)),
                Some(_) => return None,
                None => None,
            };
            let output = output.and_then(|step| if let Step::Attribute(output) = step { Some(output) } else { None });
            Reference::Module { name, output }
        }
        other => other,
    };
    Some(Mention { reference, key, path: steps })
}

pub(crate) fn fixed(operator: &TraversalOperator) -> Option<Step> {
    match operator {
        TraversalOperator::GetAttr(name) => Some(Step::Attribute(name.as_str().to_owned())),
        TraversalOperator::LegacyIndex(index) => Some(Step::Index(usize::try_from(**index).ok()?)),
        TraversalOperator::Index(Expression::String(key)) => Some(Step::Key(key.value().to_owned())),
        TraversalOperator::Index(Expression::Number(index)) => {
            Some(Step::Index(usize::try_from(index.value().as_u64()?).ok()?))
        }
        TraversalOperator::Index(_) | TraversalOperator::AttrSplat(_) | TraversalOperator::FullSplat(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fixed_is_followed() {
        let one = |text: &str| mentions(&Expr::parse("test", text).unwrap()).remove(0);
        let attribute = |name: &str| Step::Attribute(name.to_owned());
        assert_eq!((one("t.a.id").key, one("t.a.id").path), (None, vec![attribute("id")]));
        assert_eq!(one("t.a[0].id").key, Some(Step::Index(0)));
        assert_eq!(one("t.a[*].id").path, []);
        assert_eq!(one("t.a[var.i].id").path, []);
        assert_eq!(one("data.t.a[\"k\"].x.y").path, [attribute("x"), attribute("y")]);
        let module = |output: Option<&str>| Reference::Module { name: "m".into(), output: output.map(str::to_owned) };
        assert_eq!(one("module.m.o.x").reference, module(Some("o")));
        assert_eq!(one("module.m[0].o").reference, module(Some("o")));
        assert_eq!(one("module.m[each.key].o").reference, module(None));
    }
}
