use hcl_edit::Ident;
use hcl_edit::expr::{Expression, ObjectKey};
use hcl_edit::structure::{Attribute, Block, BlockLabel, Body as Node, Structure};

use super::shape::COMMENT;
use crate::{Body, BodySpec, Diagnostic, Nesting};

/// A body in which properties of JSON are blocks where the schema has blocks of that name.
pub(crate) fn with_blocks(body: &Body, spec: &BodySpec) -> Result<Option<Body>, Diagnostic> {
    let is_block = |attribute: &Attribute| {
        spec.blocks.get(attribute.key.as_str()).filter(|_| body.source.is_json(span(&attribute.value)))
    };
    if !body.node.attributes().any(|attribute| is_block(attribute).is_some()) {
        return Ok(None);
    }
    let mut node = Node::new();
    for structure in &body.node {
        match structure.as_attribute().and_then(|attribute| Some((attribute, is_block(attribute)?))) {
            None => node.push(structure.clone()),
            Some((attribute, block)) => {
                let labels = usize::from(block.nesting == Nesting::Map);
                let mut blocks = Vec::new();
                collect(attribute.key.as_str(), labels, &mut Vec::new(), &attribute.value, &mut blocks)
                    .map_err(|problem| problem.at(body.source.range(span(&attribute.value))))?;
                blocks.into_iter().for_each(|block| node.push(block));
            }
        }
    }
    Ok(Some(Body { node, source: body.source.clone(), begin: body.begin }))
}

fn span(expression: &Expression) -> Option<std::ops::Range<usize>> {
    hcl_edit::Span::span(expression)
}

fn collect(
    name: &str,
    labels: usize,
    given: &mut Vec<String>,
    value: &Expression,
    blocks: &mut Vec<Block>,
) -> Result<(), Diagnostic> {
    match value {
        Expression::Null(_) => Ok(()),
        Expression::Array(elements) => {
            elements.iter().try_for_each(|element| collect(name, labels, given, element, blocks))
        }
        Expression::Object(object) if given.len() < labels => {
            for (key, value) in object {
                given.push(property(key).ok_or_else(|| wrong(name))?.to_owned());
                let outcome = collect(name, labels, given, value.expr(), blocks);
                given.pop();
                outcome?;
            }
            Ok(())
        }
        Expression::Object(object) => {
            let mut block = Block::new(Ident::new_unchecked(name));
            block.labels = given.iter().map(|label| BlockLabel::from(label.as_str())).collect();
            for (key, value) in object {
                let key = property(key).ok_or_else(|| wrong(name))?;
                if key == COMMENT {
                    continue;
                }
                let key = Ident::try_new(key).map_err(|_| {
                    let detail = format!("An argument named {key:?} is not expected here.");
                    Diagnostic::new("Unsupported argument", detail)
                })?;
                // The same name twice: HCL's own syntax refuses it where it is read.
                let twice = |attribute: Attribute| {
                    let detail = format!("The argument {:?} was already set.", attribute.key.as_str());
                    Diagnostic::new("Duplicate argument", detail)
                };
                block.body.try_push(Structure::from(Attribute::new(key, value.expr().clone()))).map_err(twice)?;
            }
            blocks.push(block);
            Ok(())
        }
        _ => Err(wrong(name)),
    }
}

fn property(key: &ObjectKey) -> Option<&str> {
    match key {
        ObjectKey::Ident(name) => Some(name.as_str()),
        ObjectKey::Expression(Expression::String(text)) => Some(text.value()),
        ObjectKey::Expression(_) => None,
    }
}

fn wrong(name: &str) -> Diagnostic {
    let detail = format!(
        "Either a JSON object or a JSON array is required, representing the contents of one or more {name:?} blocks."
    );
    Diagnostic::new("Incorrect JSON value type", detail)
}
