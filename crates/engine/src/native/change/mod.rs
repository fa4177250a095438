//! The arithmetic of a change: what to propose to a provider, what it may answer, and which parts are secret.
//! All of it is pure; OpenTofu's behaviour is the measure.

mod compatible;
mod ignore;
mod marks;
mod normalise;
mod proposed;
mod spelled;
mod valid;

pub use compatible::incompatibilities;
pub use ignore::{marks_with_ignored, with_ignored};
pub use marks::{each_part, mark_existing, schema_marks, sensitivity_differs};
pub use normalise::normalise_legacy;
pub use proposed::{empty_object, planned_data, proposed_new};
pub use valid::invalid_plan;

use landform_cty::{Path, Step, Value};
use landform_protocol::{Attribute, AttributeKind, Block};
use std::collections::BTreeMap;

/// What a schema says about the inside of an object: a block's or a nested attribute's.
#[derive(Clone, Copy)]
enum Fields<'a> {
    Block(&'a Block),
    Attributes(&'a BTreeMap<String, Attribute>),
}

impl<'a> Fields<'a> {
    /// The attribute at a path through objects and collections; `None` where the path ends at a block, at an element,
    /// or inside of an attribute that the schema does not describe further.
    fn attribute(self, path: &[Step]) -> Option<&'a Attribute> {
        let (step, rest) = path.split_first()?;
        let Step::Attribute(name) = step else {
            // The index of an element: the same fields apply to each of them.
            return self.attribute(rest);
        };
        let (attributes, blocks) = match self {
            Fields::Block(block) => (&block.attributes, Some(&block.blocks)),
            Fields::Attributes(attributes) => (attributes, None),
        };
        if let Some(attribute) = attributes.get(name) {
            return match (&attribute.kind, rest) {
                (_, []) => Some(attribute),
                // Past the index of an element, with nothing after it, is no attribute.
                (AttributeKind::Nested { attributes, .. }, rest) => Fields::Attributes(attributes).attribute(rest),
                (AttributeKind::Plain(_), _) => None,
            };
        }
        Fields::Block(&blocks?.get(name)?.block).attribute(rest)
    }
}

/// The attribute that a path into an object of this block leads to.
pub fn attribute_at<'a>(block: &'a Block, path: &[Step]) -> Option<&'a Attribute> {
    Fields::Block(block).attribute(path)
}

/// A part of a value, or null of the right type where the value is null.
fn part<'a>(value: &'a Value, name: &str) -> std::borrow::Cow<'a, Value> {
    match value.get(name) {
        Some(part) => std::borrow::Cow::Borrowed(part),
        None => {
            let ty = value.ty.attribute(name).cloned().unwrap_or(landform_cty::Type::Dynamic);
            std::borrow::Cow::Owned(if value.is_known() { Value::null(ty) } else { Value::unknown(ty) })
        }
    }
}

/// A value in which unknowns say nothing about themselves, for comparisons that must not depend on it.
fn unrefined(value: &Value) -> Value {
    value.clone().transform(&mut |_, part| {
        if part.is_known() { part } else { Value::unknown(part.ty.clone()).with_marks(&part.marks) }
    })
}

/// A place as people write it: `.block[0].attribute`.
pub fn path_text(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Attribute(name) => {
                text.push('.');
                text.push_str(name);
            }
            Step::Key(key) => text.push_str(&format!("[{}]", serde_json::Value::from(key.as_str()))),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
            Step::Element(_) => text.push_str("[…]"),
        }
    }
    text
}

fn child(path: &[Step], step: Step) -> Path {
    let mut path = path.to_vec();
    path.push(step);
    path
}
