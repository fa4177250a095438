mod same_keys;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use hcl_edit::Span;
use hcl_edit::expr::Expression;
use hcl_edit::structure;
use hcl_edit::template::Template;
use hcl_edit::visit::{Visit, visit_expr};

use crate::heredoc::without_empty;
use crate::{BodySpec, Diagnostic, Diagnostics, SourceRange, json_syntax};

/// The largest file that is parsed.
const MAX_FILE: usize = 4 << 20;

/// A file as somebody wrote it, kept for its line numbers.
#[derive(Debug)]
struct File {
    name: String,
    text: String,
    line_starts: Vec<usize>,
    /// Whether it is in JSON, where only the schema tells a block from an argument.
    json: bool,
}

impl File {
    fn new(name: String, text: String, json: bool) -> Arc<File> {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Arc::new(File { name, text, line_starts, json })
    }

    /// Line and column.
    fn position(&self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.text.len());
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        (line, self.text.get(start..offset).map_or(1, |before| before.chars().count() + 1))
    }

    fn range(&self, begin: usize, end: usize) -> SourceRange {
        let (line, column) = self.position(begin);
        let (end_line, end_column) = self.position(end.max(begin));
        SourceRange { file: self.name.clone(), line, column, end: (end_line as u32, end_column as u32) }
    }
}

/// Text in HCL's own syntax, and where it comes from: one file as it is, several files one behind the other, or what a file
/// in JSON means.
#[derive(Debug)]
pub(crate) struct Source {
    text: String,
    /// In the order of their beginning; the first begins at 0.
    parts: Vec<Part>,
    /// Where `<<-` stands.
    flush_heredocs: BTreeSet<usize>,
}

/// A piece of the text and its origin.
#[derive(Clone, Debug)]
struct Part {
    begin: usize,
    file: Arc<File>,
    /// Where in the file the piece stands.
    offset: usize,
}

const BYTE_ORDER_MARK: char = '\u{feff}';

impl Source {
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        let text = text.into();
        let file = File::new(name.into(), text.clone(), false);
        Source { text, parts: vec![Part { begin: 0, file, offset: 0 }], flush_heredocs: BTreeSet::new() }
    }

    /// What a file in JSON means, in HCL's own syntax.
    pub fn of_json(name: impl Into<String>, text: impl Into<String>) -> Result<Source, Diagnostics> {
        let file = File::new(name.into(), text.into(), true);
        check_size(&file.name, &file.text)?;
        let place = |offset: usize| file.range(offset, offset);
        let (text, origins) = json_syntax::to_native(&file.text, &place)?;
        let part = |(begin, offset): (usize, usize)| Part { begin, file: file.clone(), offset };
        let parts = std::iter::once((0, 0)).chain(origins).map(part).collect();
        Ok(Source { text, parts, flush_heredocs: BTreeSet::new() })
    }

    /// Several sources, one behind the other, as if they were one file.
    pub fn concatenated(sources: &[Arc<Source>]) -> Source {
        let mut all = Source { text: String::new(), parts: Vec::new(), flush_heredocs: BTreeSet::new() };
        for source in sources {
            let begin = all.text.len();
            all.parts.extend(source.parts.iter().map(|part| Part { begin: begin + part.begin, ..part.clone() }));
            all.text.push_str(&source.text);
            all.text.push('\n');
        }
        all
    }

    fn part(&self, offset: usize) -> &Part {
        let after = self.parts.partition_point(|part| part.begin <= offset);
        &self.parts[after.saturating_sub(1)]
    }

    pub fn range(&self, span: Option<Range<usize>>) -> SourceRange {
        let span = span.unwrap_or(0..0);
        let (first, last) = (self.part(span.start), self.part(span.end));
        let begin = first.offset + (span.start - first.begin);
        // In JSON, what is written as one thing may come from several places: then only its beginning is told.
        let one = Arc::ptr_eq(&first.file, &last.file) && !first.file.json;
        first.file.range(begin, if one { last.offset + (span.end - last.begin) } else { begin })
    }

    /// Whether this place was written in JSON.
    pub fn is_json(&self, span: Option<Range<usize>>) -> bool {
        self.part(span.map_or(0, |span| span.start)).file.json
    }

    /// The value that stands at this place of a file in JSON.
    pub fn written_in_json(&self, span: Option<Range<usize>>) -> Option<serde_json::Value> {
        let begin = span?.start;
        let part = self.part(begin);
        let text = part.file.text.get(part.offset..).filter(|_| part.file.json && part.begin == begin)?;
        serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
    }

    fn read_empty_heredocs(&mut self) {
        if let Cow::Owned(text) = without_empty(&self.text) {
            self.text = text;
        }
    }

    pub fn parse_body(mut self) -> Result<Body, Diagnostics> {
        // Editors of some systems begin a file with it. Offsets stay as they are.
        if self.text.starts_with(BYTE_ORDER_MARK) {
            self.text.replace_range(..BYTE_ORDER_MARK.len_utf8(), "   ");
        }
        self.read_empty_heredocs();
        let node = self.parse(hcl_edit::parser::parse_body, |finder, node| finder.visit_body(node))?;
        Ok(Body { node, source: Arc::new(self), begin: 0 })
    }

    pub fn parse_expr(mut self) -> Result<Expr, Diagnostics> {
        self.read_empty_heredocs();
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
        check_size(&self.parts[0].file.name, &self.parts[0].file.text)?;
        let node = loop {
            match parser(&self.text) {
                Ok(node) => break node,
                Err(error) if self.tell_keys_apart(&error) => {}
                Err(error) => return Err(self.syntax_error(&error)),
            }
        };
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

    fn syntax_error(&self, error: &hcl_edit::parser::Error) -> Diagnostics {
        let at = error.location();
        let range = self.range(Some(at.offset()..at.offset()));
        // Limits of this parser that HCL's does not have.
        let limited = ["nesting depth", "binary operation", "redefined object key"];
        if limited.iter().any(|limit| error.message().contains(limit)) {
            return Diagnostic::unsupported(error.message()).at(range).into();
        }
        // Nor does it read numbers beyond those of a double.
        let line = self.text.lines().nth(at.line().saturating_sub(1)).unwrap_or_default();
        if has_large_exponent(line) {
            return Diagnostic::unsupported("a number with an exponent this large").at(range).into();
        }
        // The parser's place may be inside of a character.
        let rest = self.text.get(at.offset().min(self.text.len())..);
        if rest.is_some_and(|rest| rest.trim().is_empty()) && self.text.contains('{') {
            let detail = "There is no closing brace for this block before the end of the file. This may be caused by \
                          incorrect brace nesting elsewhere in this file.";
            let summary = "Unclosed configuration block";
            let (place, _) = crate::syntax::place(&self.text, at.offset(), summary);
            return Diagnostic::new(summary, detail).at(self.range(Some(place))).into();
        }
        let named = crate::syntax::mistakes(&self.text, at.offset(), error.message());
        if named.is_empty() {
            return Diagnostic::new("Invalid syntax", error.message()).at(range).into();
        }
        let each = |(summary, detail): (&str, String)| {
            let (place, from) = crate::syntax::place(&self.text, at.offset(), summary);
            let problem = Diagnostic::new(summary, detail.replace(crate::syntax::FILE, &range.file));
            let problem = problem.at(self.range(Some(place.clone())));
            match from {
                Some(from) => problem.within(self.range(Some(from..place.end))),
                None => problem,
            }
        };
        Diagnostics(named.into_iter().map(each).collect())
    }
}

fn check_size(name: &str, text: &str) -> Result<(), Diagnostics> {
    if text.len() > MAX_FILE {
        let detail = format!("The file {name} is larger than {} MiB.", MAX_FILE >> 20);
        return Err(Diagnostic::new("File too large", detail).into());
    }
    Ok(())
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

    /// Whether it is an object that is written out.
    pub fn is_object(&self) -> bool {
        matches!(self.node, Expression::Object(_))
    }

    pub fn range(&self) -> SourceRange {
        self.source.range(self.node.span())
    }

    /// The only argument of a call of this function, if the expression is nothing else.
    pub fn argument_of(&self, function: &str) -> Option<Expr> {
        let Expression::FuncCall(call) = &self.node else { return None };
        let named = call.name.namespace.is_empty() && call.name.name.as_str() == function;
        let mut arguments = call.args.iter();
        match (arguments.next(), arguments.next()) {
            (Some(argument), None) if named => Some(Expr { node: argument.clone(), source: self.source.clone() }),
            _ => None,
        }
    }

    /// The text of an expression that is nothing but a quoted string.
    pub fn as_literal(&self) -> Option<&str> {
        self.node.as_str()
    }

    /// The name of the variable, if the expression is `var.NAME` and nothing else; in JSON that is `"${var.NAME}"`.
    pub fn as_variable(&self) -> Option<&str> {
        let node = match &self.node {
            Expression::StringTemplate(template) => match template.iter().collect::<Vec<_>>()[..] {
                [hcl_edit::template::Element::Interpolation(inner)] => &inner.expr,
                _ => return None,
            },
            node => node,
        };
        let Expression::Traversal(traversal) = node else { return None };
        let root = matches!(&traversal.expr, Expression::Variable(name) if name.as_str() == "var");
        match traversal.operators.iter().map(|operator| operator.value()).collect::<Vec<_>>()[..] {
            [hcl_edit::expr::TraversalOperator::GetAttr(name)] if root => Some(name.as_str()),
            _ => None,
        }
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
    /// Where the name or the last label of its block ends; 0 for a whole file.
    pub(crate) begin: usize,
}

impl Body {
    /// The inside of a block of this body.
    pub(crate) fn inside(&self, block: &structure::Block) -> Body {
        let last = block.labels.last().and_then(Span::span).or_else(|| block.ident.span());
        Body { node: block.body.clone(), source: self.source.clone(), begin: last.map_or(0, |last| last.end) }
    }

    /// What the spec has of it, and what it has not.
    pub fn partition(&self, spec: &BodySpec) -> (Body, Body) {
        let has = |structure: &structure::Structure| match structure {
            structure::Structure::Attribute(attribute) => spec.attributes.contains_key(attribute.key.as_str()),
            structure::Structure::Block(block) => {
                let name = match (block.ident.as_str(), block.labels.first()) {
                    ("dynamic", Some(label)) => label.as_str(),
                    (name, _) => name,
                };
                spec.blocks.contains_key(name)
            }
        };
        let (known, foreign): (Vec<_>, Vec<_>) = self.node.iter().cloned().partition(has);
        let part = |structures: Vec<structure::Structure>| Body {
            node: structures.into_iter().collect(),
            source: self.source.clone(),
            begin: self.begin,
        };
        (part(known), part(foreign))
    }

    /// Whether nothing stands in it.
    pub fn is_empty(&self) -> bool {
        self.node.is_empty()
    }

    pub fn range(&self) -> SourceRange {
        self.source.range(self.node.span())
    }

    /// Where it begins: with the brace, in HCL's own syntax.
    pub(crate) fn opening(&self) -> SourceRange {
        let native = self.begin > 0 && !self.source.is_json(Some(self.begin..self.begin));
        let behind = self.source.text.get(self.begin..).and_then(|text| text.find('{'));
        let at = self.begin + behind.filter(|_| native).unwrap_or(0);
        self.source.range(Some(at..at))
    }

    /// That an argument has to be here, and is not.
    pub(crate) fn missing(&self, name: &str) -> Diagnostic {
        let detail = format!("The argument {name:?} is required, but no definition was found.");
        Diagnostic::new("Missing required argument", detail).at(self.opening())
    }

    /// The value of an argument, not evaluated yet.
    pub fn argument(&self, name: &str) -> Option<Expr> {
        self.node.get_attribute(name).map(|attribute| self.expr(&attribute.value))
    }

    pub(crate) fn expr(&self, node: &Expression) -> Expr {
        Expr { node: node.clone(), source: self.source.clone() }
    }

    /// An argument that nobody asked for, in the words of the syntax in which it is written.
    pub(crate) fn unexpected(&self, attribute: &structure::Attribute, hint: &str) -> Diagnostic {
        let name = attribute.key.as_str();
        let problem = if self.source.is_json(attribute.value.span()) {
            Diagnostic::new(
                "Extraneous JSON object property",
                format!("No argument or block type is named {name:?}.{hint}"),
            )
        } else {
            Diagnostic::new("Unsupported argument", format!("An argument named {name:?} is not expected here.{hint}"))
        };
        problem.at(self.place(&attribute.key))
    }

    /// The first line of a block, up to its last label.
    pub(crate) fn header(&self, block: &structure::Block) -> SourceRange {
        let begin = block.ident.span();
        let end = block.labels.last().and_then(|label| label.span()).or(begin.clone());
        self.source.range(begin.zip(end).map(|(begin, end)| begin.start..end.end.max(begin.end)))
    }

    pub(crate) fn place(&self, node: &impl Span) -> SourceRange {
        self.source.range(node.span())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_variable_itself_is_the_variable() {
        let of = |text: &str| Expr::parse("test", text).unwrap().as_variable().map(str::to_owned);
        assert_eq!((of("var.url"), of("\"${var.url}\"")), (Some("url".into()), Some("url".into())));
        for other in ["local.url", "var.url.host", "var.urls[0]", "\"${var.url}/x\"", "\"x\"", "lower(var.url)", "url"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
