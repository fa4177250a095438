use std::ops::Range;
use std::sync::Arc;

use hcl_edit::Span;
use hcl_edit::expr::Expression;
use hcl_edit::structure;

use crate::{Diagnostic, Diagnostics, SourceRange};

/// The largest file that is parsed.
const MAX_FILE: usize = 4 << 20;

/// A file of a configuration, kept for its line numbers.
#[derive(Debug)]
pub(crate) struct Source {
    name: String,
    line_starts: Vec<usize>,
    text: String,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        let text = text.into();
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Source { name: name.into(), line_starts, text }
    }

    pub fn range(&self, span: Option<Range<usize>>) -> SourceRange {
        let offset = span.map_or(0, |span| span.start).min(self.text.len());
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        let column = self.text.get(start..offset).map_or(1, |before| before.chars().count() + 1);
        SourceRange { file: self.name.clone(), line, column }
    }

    pub fn parse_body(self) -> Result<Body, Diagnostics> {
        self.check_size()?;
        let body = hcl_edit::parser::parse_body(&self.text).map_err(|error| self.syntax_error(&error))?;
        Ok(Body { node: body, source: Arc::new(self) })
    }

    pub fn parse_expr(self) -> Result<Expr, Diagnostics> {
        self.check_size()?;
        let expr = hcl_edit::parser::parse_expr(&self.text).map_err(|error| self.syntax_error(&error))?;
        Ok(Expr { node: expr, source: Arc::new(self) })
    }

    fn check_size(&self) -> Result<(), Diagnostics> {
        if self.text.len() > MAX_FILE {
            let detail = format!("The file {} is larger than {} MiB.", self.name, MAX_FILE >> 20);
            return Err(Diagnostic::new("File too large", detail).into());
        }
        Ok(())
    }

    fn syntax_error(&self, error: &hcl_edit::parser::Error) -> Diagnostic {
        let at = error.location();
        let range = SourceRange { file: self.name.clone(), line: at.line(), column: at.column() };
        Diagnostic::new("Invalid syntax", error.message()).at(range)
    }
}

/// An expression of a configuration, with where it stands.
#[derive(Clone, Debug)]
pub struct Expr {
    pub(crate) node: Expression,
    pub(crate) source: Arc<Source>,
}

impl Expr {
    /// Parses an expression that stands alone, for instance in a `-var` argument. `name` is what diagnostics call it.
    pub fn parse(name: &str, text: &str) -> Result<Expr, Diagnostics> {
        Source::new(name, text).parse_expr()
    }

    pub fn range(&self) -> SourceRange {
        self.source.range(self.node.span())
    }

    /// The text of an expression that is nothing but a quoted string.
    pub fn as_literal(&self) -> Option<&str> {
        self.node.as_str()
    }
}

/// The inside of a block, not evaluated yet.
#[derive(Clone, Debug)]
pub struct Body {
    pub(crate) node: structure::Body,
    pub(crate) source: Arc<Source>,
}

impl Body {
    pub fn range(&self) -> SourceRange {
        self.source.range(self.node.span())
    }

    pub(crate) fn expr(&self, node: &Expression) -> Expr {
        Expr { node: node.clone(), source: self.source.clone() }
    }

    pub(crate) fn place(&self, node: &impl Span) -> SourceRange {
        self.source.range(node.span())
    }
}
