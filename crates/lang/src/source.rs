use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use hcl_edit::Span;
use hcl_edit::expr::Expression;
use hcl_edit::structure;
use hcl_edit::template::Template;
use hcl_edit::visit::{Visit, visit_expr};

use crate::{Diagnostic, Diagnostics, SourceRange};

/// The largest file that is parsed.
const MAX_FILE: usize = 4 << 20;

/// A file of a configuration, kept for its line numbers.
#[derive(Debug)]
pub(crate) struct Source {
    name: String,
    line_starts: Vec<usize>,
    text: String,
    /// Where `<<-` stands.
    flush_heredocs: BTreeSet<usize>,
}

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        let text = text.into();
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Source { name: name.into(), line_starts, text, flush_heredocs: BTreeSet::new() }
    }

    pub fn range(&self, span: Option<Range<usize>>) -> SourceRange {
        let offset = span.map_or(0, |span| span.start).min(self.text.len());
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        let column = self.text.get(start..offset).map_or(1, |before| before.chars().count() + 1);
        SourceRange { file: self.name.clone(), line, column }
    }

    pub fn parse_body(mut self) -> Result<Body, Diagnostics> {
        let node = self.parse(hcl_edit::parser::parse_body, |finder, node| finder.visit_body(node))?;
        Ok(Body { node, source: Arc::new(self) })
    }

    pub fn parse_expr(mut self) -> Result<Expr, Diagnostics> {
        let node = self.parse(hcl_edit::parser::parse_expr, |finder, node| finder.visit_expr(node))?;
        Ok(Expr { node, source: Arc::new(self) })
    }

    /// Parses text that is a template from beginning to end.
    pub fn parse_template(mut self) -> Result<TemplateSource, Diagnostics> {
        let node = self.parse(hcl_edit::parser::parse_template, |finder, node| {
            node.iter().for_each(|element| finder.visit_element(element));
        })?;
        Ok(TemplateSource { node, source: Arc::new(self) })
    }

    /// The parser takes away the indentation of `<<-` heredocs, but not in HCL's way: it may even take away letters.
    /// So these are parsed again as if they were `<<` heredocs, and the evaluator sees to the indentation.
    fn parse<T>(
        &mut self,
        parser: fn(&str) -> Result<T, hcl_edit::parser::Error>,
        visit: fn(&mut FlushHeredocs<'_>, &T),
    ) -> Result<T, Diagnostics> {
        self.check_size()?;
        let node = parser(&self.text).map_err(|error| self.syntax_error(&error))?;
        let mut finder = FlushHeredocs { text: &self.text, starts: BTreeSet::new() };
        visit(&mut finder, &node);
        let starts = finder.starts;
        if starts.is_empty() {
            return Ok(node);
        }
        let mut text = self.text.clone();
        for start in &starts {
            text.replace_range(*start..start + 3, " <<");
        }
        let node = parser(&text).map_err(|error| self.syntax_error(&error))?;
        self.flush_heredocs = starts;
        Ok(node)
    }

    /// Whether the heredoc at this place began with `<<-`.
    pub fn is_flush(&self, span: Option<Range<usize>>) -> bool {
        span.is_some_and(|span| span.start > 0 && self.flush_heredocs.contains(&(span.start - 1)))
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
        // Limits of this parser that HCL's does not have.
        let limited = ["nesting depth", "binary operation", "redefined object key"];
        if limited.iter().any(|limit| error.message().contains(limit)) {
            return Diagnostic::unsupported(error.message()).at(range);
        }
        // Nor does it read numbers beyond those of a double.
        let line = self.text.lines().nth(at.line().saturating_sub(1)).unwrap_or_default();
        if has_large_exponent(line) {
            return Diagnostic::unsupported("a number with an exponent this large").at(range);
        }
        Diagnostic::new("Invalid syntax", error.message()).at(range)
    }
}

fn has_large_exponent(line: &str) -> bool {
    line.split(|character: char| !(character.is_ascii_alphanumeric() || "+-.".contains(character))).any(|word| {
        let exponent = word.split_once(['e', 'E']).and_then(|(number, exponent)| {
            number.ends_with(|last: char| last.is_ascii_digit()).then(|| exponent.parse::<i64>().ok())?
        });
        exponent.is_some_and(|exponent| exponent.abs() > 290)
    })
}

/// Finds `<<-` heredocs, also inside of other heredocs.
struct FlushHeredocs<'a> {
    text: &'a str,
    starts: BTreeSet<usize>,
}

impl Visit for FlushHeredocs<'_> {
    fn visit_expr(&mut self, node: &Expression) {
        if let (Expression::HeredocTemplate(_), Some(span)) = (node, node.span())
            && self.text[span.start..].starts_with("<<-")
        {
            self.starts.insert(span.start);
        }
        visit_expr(self, node);
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

/// Text with expressions in it, outside of any configuration.
#[derive(Debug)]
pub(crate) struct TemplateSource {
    pub node: Template,
    pub source: Arc<Source>,
}

impl TemplateSource {
    /// The first name of everything it refers to, with its place.
    pub fn roots(&self) -> Vec<(String, SourceRange)> {
        let roots = crate::reference::template_roots(&self.node);
        roots.into_iter().map(|(name, span)| (name, self.source.range(span))).collect()
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
