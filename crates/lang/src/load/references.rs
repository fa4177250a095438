//! Places where only a name can stand: of a provider, or of what something depends on.

use hcl_edit::expr::{Expression, TraversalOperator};

use super::Loader;
use crate::{Dependency, Diagnostic, Expr, Reference, SourceRange};

/// The local name of a provider, and its alias.
pub(super) type ProviderName = (String, Option<String>);

impl Loader {
    /// `provider = NAME`, `provider = NAME.ALIAS` or `provider = NAME.ALIAS[KEY]`
    pub(super) fn read_provider_reference(&mut self, expr: &Expr) -> Option<(ProviderName, Option<Expr>)> {
        let expr = &self.without_quotes(expr.clone())?;
        if let Some(name) = bare_name(&expr.node) {
            return Some(((name.to_owned(), None), None));
        }
        let detail = match &expr.node {
            Expression::Traversal(traversal) => {
                let operators: Vec<&TraversalOperator> =
                    traversal.operators.iter().map(|operator| operator.value()).collect();
                match (bare_name(&traversal.expr), operators.as_slice()) {
                    (Some(name), [TraversalOperator::GetAttr(alias)]) => {
                        return Some(((name.to_owned(), Some(alias.as_str().to_owned())), None));
                    }
                    (Some(name), [TraversalOperator::GetAttr(alias), TraversalOperator::Index(key)]) => {
                        let key = Expr { node: key.clone(), source: expr.source.clone() };
                        return Some(((name.to_owned(), Some(alias.as_str().to_owned())), Some(key)));
                    }
                    (Some(_), [.., TraversalOperator::Index(_)]) => {
                        self.unsupported("this form of provider reference", expr.range());
                        return None;
                    }
                    _ => {
                        "Provider name must either stand alone or be followed by a period and then a configuration alias."
                    }
                }
            }
            _ => {
                "The provider argument requires a provider type name, optionally followed by a period and then a \
                 configuration alias and optional instance key."
            }
        };
        self.found.push(Diagnostic::new("Invalid provider configuration reference", detail).at(expr.range()));
        None
    }

    pub(super) fn read_depends_on(&mut self, expr: &Expr) -> Vec<Dependency> {
        let Expression::Array(elements) = &expr.node else {
            self.found
                .push(Diagnostic::new("Invalid expression", "A static list expression is required.").at(expr.range()));
            return Vec::new();
        };
        let mut references = Vec::new();
        for element in elements {
            let element = Expr { node: element.clone(), source: expr.source.clone() };
            let Some(element) = self.without_quotes(element) else { continue };
            let (root, operators) = match &element.node {
                Expression::Variable(root) => (root, Vec::new()),
                Expression::Traversal(traversal) => match &traversal.expr {
                    Expression::Variable(root) => (root, traversal.operators.iter().map(|one| one.value()).collect()),
                    _ => {
                        self.not_static(&element);
                        continue;
                    }
                },
                _ => {
                    self.not_static(&element);
                    continue;
                }
            };
            match Reference::read(root.as_str(), operators.iter().copied()) {
                Ok((reference, used)) => {
                    let (key, used) = match operators[used..] {
                        [TraversalOperator::Index(key), ..] => match literal_key(key) {
                            Some(key) => (Some(key), used + 1),
                            None => {
                                self.not_static(&element);
                                continue;
                            }
                        },
                        _ => (None, used),
                    };
                    if used < operators.len() {
                        let detail = "References in depends_on must be to a whole object (resource, etc), not to an \
                                      attribute of an object.";
                        let problem = Diagnostic::new("Invalid depends_on reference", detail);
                        self.found.push(problem.at(element.range()));
                        continue;
                    }
                    self.dependencies.push((reference.clone(), element.range()));
                    references.push(Dependency { reference, key, range: element.range() });
                }
                Err(problem) => self.report([problem.at(element.range())]),
            }
        }
        references
    }

    /// A name where only names can stand. In quotes it is read all the same, as it was in the days when it had to be.
    pub(super) fn without_quotes(&mut self, expr: Expr) -> Option<Expr> {
        let Some(text) = expr.as_literal() else { return Some(expr) };
        match Expr::parse("", text) {
            Ok(inner) => {
                let detail = "In this context, references are expected literally rather than in quotes. OpenTofu 0.11 and \
                              earlier required quotes, but quoted references are now deprecated and will be removed in a \
                              future version of OpenTofu. Remove the quotes surrounding this reference to silence this \
                              warning.";
                let warning = Diagnostic::new("Quoted references are deprecated", detail);
                self.module.warnings.push(warning.at(expr.range()));
                Some(Expr { node: inner.node, source: expr.source })
            }
            Err(_) => {
                self.unsupported("a reference in quotes that cannot be read", expr.range());
                None
            }
        }
    }

    /// Where the name of a provider stands, without its alias.
    pub(super) fn provider_place(&self, expr: &Expr) -> SourceRange {
        let whole = expr.range();
        let Expression::Traversal(traversal) = &expr.node else { return whole };
        let name = Expr { node: traversal.expr.clone(), source: expr.source.clone() };
        name.range()
    }

    pub(super) fn not_static(&mut self, expr: &Expr) {
        self.found.push(not_static(expr));
    }
}

/// A provider may be called `null`, and a well-known one is.
pub(super) fn bare_name(node: &Expression) -> Option<&str> {
    match node {
        Expression::Variable(name) => Some(name.as_str()),
        Expression::Null(_) => Some("null"),
        _ => None,
    }
}

/// Where only a name can stand.
pub(crate) fn not_static(expr: &Expr) -> Diagnostic {
    let detail = "A single static variable reference is required: only attribute access and indexing with constant keys. No \
                  calculations, function calls, template expressions, etc are allowed here.";
    Diagnostic::new("Invalid expression", detail).at(expr.range())
}

/// A key that is written out, in the form in which a state has it.
fn literal_key(key: &Expression) -> Option<String> {
    match key {
        Expression::String(key) => Some(format!("[{}]", serde_json::Value::from(key.as_str()))),
        Expression::Number(index) => Some(format!("[{}]", index.value())),
        _ => None,
    }
}
