//! Blocks as they are given: one by one, or by `dynamic` blocks, one for each element of a value.

use hcl_edit::expr::Expression;
use hcl_edit::structure::{Block, Structure};
use landform_cty::{Data, Marks, Type, Value};

use super::Decoder;
use crate::{Body, Diagnostic, Expr, SourceRange};

/// One block of a kind.
pub(super) struct Given {
    pub body: Body,
    pub labels: Vec<String>,
    pub place: SourceRange,
    /// What the iterator means inside of it.
    pub iterator: Option<(String, Value)>,
    /// It stands for any number of blocks: what they are made from is not known yet.
    pub unknown: bool,
}

impl Decoder<'_> {
    /// The blocks of one kind, in the order of the text.
    pub(super) fn given(&mut self, body: &Body, name: &str) -> Vec<Given> {
        let mut given = Vec::new();
        for block in body.node.blocks() {
            let inner = |block: &Block| body.inside(block);
            if block.ident.as_str() == name {
                given.push(Given {
                    body: inner(block),
                    labels: block.labels.iter().map(|label| label.as_str().to_owned()).collect(),
                    place: body.header(block),
                    iterator: None,
                    unknown: false,
                });
            } else if is_dynamic(block, name) {
                match self.expand(name, &inner(block), body.header(block)) {
                    Ok(blocks) => given.extend(blocks),
                    Err(problems) => self.found.extend(problems),
                }
            }
        }
        given
    }

    fn expand(&mut self, name: &str, dynamic: &Body, place: SourceRange) -> Result<Vec<Given>, Vec<Diagnostic>> {
        let parts = Dynamic::read(name, dynamic, &place)?;
        let range = parts.for_each.range();
        let value = if self.unknown { Ok(Value::unknown(Type::Dynamic)) } else { self.evaluate(&parts.for_each) };
        let value = value.map_err(|problems| problems.0)?;
        let wrong = |detail: String| {
            let mut problem = Diagnostic::new("Invalid dynamic for_each value", detail).at(range.clone());
            problem.seen.values = Some(crate::described(&parts.for_each, self.scope, crate::Blame::Neither));
            Err(vec![problem])
        };
        if value.is_null() {
            return wrong("Cannot use a null value in for_each.".to_owned());
        }
        if value.ty.is_primitive() {
            let ty = value.ty.friendly_name();
            return wrong(format!("Cannot use a {ty} value in for_each. An iterable collection is required."));
        }
        let (value, marks) = value.unmark();
        let elements: Vec<(Value, Value)> = match &value.data {
            Data::Sequence(elements) if matches!(value.ty, Type::Set(_)) => {
                elements.iter().map(|element| (element.clone(), element.clone())).collect()
            }
            Data::Sequence(elements) => {
                let pair = |(index, element): (usize, &Value)| (Value::number(index), element.clone());
                elements.iter().enumerate().map(pair).collect()
            }
            Data::Mapping(elements) => {
                elements.iter().map(|(key, element)| (Value::string(key), element.clone())).collect()
            }
            _ => {
                let any = Value::unknown(Type::Dynamic);
                let block = self.one(&parts, (any.clone(), any), &marks)?;
                return Ok(vec![Given { unknown: true, ..block }]);
            }
        };
        self.budget.spend_steps(elements.len() as u64).map_err(|limit| vec![limit.at(range)])?;
        elements.into_iter().map(|pair| self.one(&parts, pair, &marks)).collect()
    }

    fn one(&mut self, parts: &Dynamic, (key, value): (Value, Value), marks: &Marks) -> Result<Given, Vec<Diagnostic>> {
        let (key, value) = (key.with_marks(marks), value.with_marks(marks));
        let iterator = (parts.iterator.clone(), Value::object([("key", key), ("value", value)]));
        self.bound.push(iterator.clone());
        let labels = parts.labels.iter().map(|label| self.label(label)).collect::<Result<Vec<_>, _>>();
        self.bound.pop();
        Ok(Given {
            body: parts.content.clone(),
            labels: labels?,
            place: parts.place.clone(),
            iterator: Some(iterator),
            unknown: false,
        })
    }

    fn label(&mut self, expr: &Expr) -> Result<String, Vec<Diagnostic>> {
        let value = self.evaluate(expr).map_err(|problems| problems.0)?;
        let wrong =
            |detail: &str| vec![Diagnostic::new("Invalid dynamic block label", detail.to_owned()).at(expr.range())];
        let (value, marks) = value.unmark();
        if !marks.is_empty() {
            return Err(wrong("Cannot use a marked value as a dynamic block label."));
        }
        if value.is_null() {
            return Err(wrong("Cannot use a null value as a dynamic block label."));
        }
        match value.convert(&Type::String) {
            Err(error) => Err(wrong(&format!("Cannot use this value as a dynamic block label: {error}."))),
            Ok(text) => match text.as_str() {
                Some(text) => Ok(text.to_owned()),
                None => {
                    Err(wrong("This value is not yet known. Dynamic block labels must be immediately-known values."))
                }
            },
        }
    }
}

/// Whether a block makes blocks of this kind.
fn is_dynamic(block: &Block, name: &str) -> bool {
    block.ident.as_str() == "dynamic" && block.labels.first().is_some_and(|label| label.as_str() == name)
}

/// The parts of a `dynamic` block.
struct Dynamic {
    for_each: Expr,
    iterator: String,
    labels: Vec<Expr>,
    content: Body,
    /// Where the content stands, which is the place of each block that is made of it.
    place: SourceRange,
}

impl Dynamic {
    fn read(name: &str, body: &Body, place: &SourceRange) -> Result<Dynamic, Vec<Diagnostic>> {
        let wrong = |summary: &str, detail: &str| vec![Diagnostic::new(summary, detail).at(place.clone())];
        let (mut for_each, mut labels, mut content) = (None, Vec::new(), Vec::new());
        let mut iterator = name.to_owned();
        for structure in &body.node {
            match structure {
                Structure::Block(block) if block.ident.as_str() == "content" => content.push(block),
                Structure::Block(block) => {
                    let kind = block.ident.as_str();
                    return Err(wrong(
                        "Unsupported block type",
                        &format!("Blocks of type {kind:?} are not expected here."),
                    ));
                }
                Structure::Attribute(attribute) => match (attribute.key.as_str(), &attribute.value) {
                    ("for_each", value) => for_each = Some(body.expr(value)),
                    ("iterator", Expression::Variable(name)) => iterator = name.as_str().to_owned(),
                    ("iterator", value) => return Err(vec![wrong_iterator(&body.expr(value))]),
                    ("labels", Expression::Array(elements)) => {
                        labels = elements.iter().map(|element| body.expr(element)).collect();
                    }
                    ("labels", _) => {
                        return Err(wrong("Invalid expression", "A static list expression is required."));
                    }
                    (other, _) => {
                        let detail = format!("An argument named {other:?} is not expected here.");
                        return Err(wrong("Unsupported argument", &detail));
                    }
                },
            }
        }
        let for_each = for_each.ok_or_else(|| vec![body.missing("for_each")])?;
        match content.as_slice() {
            [content] => {
                let (place, content) = (body.header(content), body.inside(content));
                Ok(Dynamic { for_each, iterator, labels, content, place })
            }
            [] => {
                let detail = "A dynamic block must have a nested block of type \"content\" to describe the body of each \
                              generated block.";
                Err(wrong("Missing dynamic content block", detail))
            }
            _ => {
                let detail = "Only one nested content block is allowed for each dynamic block.";
                Err(wrong("Extraneous dynamic content block", detail))
            }
        }
    }
}

/// What is no name. Nothing but a name with something behind it is near enough to be told what is wrong with it.
fn wrong_iterator(expr: &Expr) -> Diagnostic {
    let named = |traversal: &hcl_edit::expr::Traversal| matches!(traversal.expr, Expression::Variable(_));
    match &expr.node {
        Expression::Traversal(traversal) if named(traversal) => {
            let detail = "Dynamic iterator must be a single variable name.";
            Diagnostic::new("Invalid dynamic iterator name", detail).at(expr.range())
        }
        _ => crate::load::not_static(expr),
    }
}
