//! Text with expressions and directives in it. A template is first a row of tokens, as in HCL: indentation is taken away
//! and spaces are trimmed across the borders of directives. Then it is a tree.

use std::ops::Range;

use hcl_edit::expr::Expression;
use hcl_edit::template::{Directive, Element, ForTemplateExpr, StringTemplate, Strip, Template};
use landform_cty::{Marks, Refinement, Type, Value, normalize, safe_known_prefix};

use super::Evaluator;
use super::conditional::Branch;
use crate::diagnostics::Found;
use crate::{Diagnostic, Diagnostics};

/// Longer prefixes of unknown strings are not kept: what is sent to providers must be what HCL would send.
const MAX_PREFIX: usize = 128;

/// A piece of a template.
pub(super) enum Node<'a> {
    Literal(String),
    Interpolation(&'a Expression),
    If { condition: &'a Expression, then: Vec<Node<'a>>, otherwise: Vec<Node<'a>> },
    For { intro: &'a ForTemplateExpr, body: Vec<Node<'a>> },
}

impl Evaluator<'_> {
    pub(super) fn eval_string_template(&mut self, template: &StringTemplate) -> Result<Value, Diagnostics> {
        let elements: Vec<&Element> = template.iter().collect();
        // A template of one interpolation and nothing else is the value itself, of whatever type.
        if let [Element::Interpolation(interpolation)] = elements.as_slice() {
            return self.eval(&interpolation.expr);
        }
        let mut tokens = Vec::new();
        for element in elements {
            tokenize(element, Literals::Quoted { outermost: true }, &mut tokens)?;
        }
        self.eval_nodes(&tree(trim(tokens)))
    }

    pub(super) fn eval_heredoc(
        &mut self,
        template: &Template,
        span: Option<Range<usize>>,
    ) -> Result<Value, Diagnostics> {
        let mut tokens = Vec::new();
        for element in template {
            tokenize(element, Literals::Lines, &mut tokens)?;
        }
        // Spaces are trimmed before the indentation is taken away.
        let mut tokens = trim(tokens);
        if self.source.is_flush(span) {
            flush(&mut tokens);
        }
        if let [Token::Interpolation(expr, _)] = tokens.as_slice() {
            return self.eval(expr);
        }
        self.eval_nodes(&tree(tokens))
    }

    pub(super) fn eval_template(&mut self, template: &Template) -> Result<Value, Diagnostics> {
        self.eval_heredoc(template, None)
    }

    pub(super) fn eval_nodes(&mut self, nodes: &[Node<'_>]) -> Result<Value, Diagnostics> {
        let (mut text, mut marks, mut found) = (String::new(), Marks::new(), Found::default());
        let mut known = true;
        for node in nodes {
            let value = match node {
                Node::Literal(literal) => {
                    self.budget.spend_bytes(literal.len())?;
                    if known {
                        text.push_str(literal);
                    }
                    continue;
                }
                Node::Interpolation(expr) => self.eval(expr),
                Node::If { condition, then, otherwise } => {
                    self.budget.enter()?;
                    let result = self.choose(condition, Branch::Template(then), Branch::Template(otherwise));
                    self.budget.leave();
                    result
                }
                Node::For { intro, body } => {
                    self.budget.enter()?;
                    let result = self.eval_template_for(intro, body);
                    self.budget.leave();
                    result
                }
            };
            let Some(value) = found.keep(value)? else { continue };
            let range = match node {
                Node::Interpolation(expr) => self.range(*expr),
                _ => self.source.range(None),
            };
            let invalid =
                |detail: String| Diagnostic::new("Invalid template interpolation value", detail).at(range.clone());
            if value.is_null() {
                let detail = "The expression result is null. Cannot include a null value in a string template.";
                found.0.push(invalid(detail.to_owned()));
                continue;
            }
            let (value, value_marks) = value.unmark();
            marks.extend(value_marks);
            if !value.is_known() {
                known = false;
                continue;
            }
            let converted = match value.convert(&Type::String) {
                Ok(converted) => converted,
                Err(error) => {
                    let detail = format!("Cannot include the given value in a string template: {error}.");
                    found.0.push(invalid(detail));
                    continue;
                }
            };
            if let (true, Some(part)) = (known, converted.as_str()) {
                self.budget.spend_bytes(part.len())?;
                text.push_str(part);
            }
        }
        found.end()?;
        let result = if known { Value::string(&text) } else { unknown_with_prefix(&text) };
        self.pay(result.with_marks(&marks))
    }

    /// The rounds' texts, one after the other.
    fn eval_template_for(&mut self, intro: &ForTemplateExpr, body: &[Node<'_>]) -> Result<Value, Diagnostics> {
        let (items, mut marks) = self.items(&intro.collection_expr)?;
        let Some(items) = items else { return Ok(Value::unknown(Type::String).with_marks(&marks)) };
        let mut text = String::new();
        let mut known = true;
        for (key, value) in items {
            let bound = self.bound.len();
            if let Some(name) = &intro.key_var {
                self.bound.push((name.as_str().to_owned(), key));
            }
            self.bound.push((intro.value_var.as_str().to_owned(), value));
            let round = self.eval_nodes(body);
            self.bound.truncate(bound);
            let (round, round_marks) = round?.unmark();
            marks.extend(round_marks);
            known &= round.is_known();
            if known {
                self.budget.spend_bytes(text.len().min(64))?;
                text.push_str(round.as_str().unwrap_or_default());
            }
        }
        let result = if known { Value::string(text) } else { Value::unknown(Type::String) };
        Ok(result.with_marks(&marks))
    }
}

#[derive(Clone, Copy)]
enum Literals {
    /// The scanner gives one token for each line.
    Lines,
    /// One token. Inside of a directive the parser leaves escapes as they are.
    Quoted { outermost: bool },
}

enum Token<'a> {
    Literal(String),
    Interpolation(&'a Expression, Strip),
    If(&'a Expression, Strip),
    Else(Strip),
    EndIf(Strip),
    For(&'a ForTemplateExpr, Strip),
    EndFor(Strip),
}

impl Token<'_> {
    fn strip(&self) -> Strip {
        match self {
            Token::Literal(_) => Strip::None,
            Token::Interpolation(_, strip)
            | Token::If(_, strip)
            | Token::Else(strip)
            | Token::EndIf(strip)
            | Token::For(_, strip)
            | Token::EndFor(strip) => *strip,
        }
    }
}

fn tokenize<'a>(element: &'a Element, literals: Literals, tokens: &mut Vec<Token<'a>>) -> Result<(), Diagnostic> {
    let inner = match literals {
        Literals::Lines => Literals::Lines,
        Literals::Quoted { .. } => Literals::Quoted { outermost: false },
    };
    let all = |template: &'a Template, tokens: &mut Vec<Token<'a>>| {
        template.iter().try_for_each(|element| tokenize(element, inner, tokens))
    };
    match element {
        Element::Literal(literal) => match literals {
            Literals::Lines => {
                tokens.extend(literal.split_inclusive('\n').map(|line| Token::Literal(line.to_owned())));
            }
            Literals::Quoted { outermost: true } => tokens.push(Token::Literal(literal.as_str().to_owned())),
            Literals::Quoted { outermost: false } => tokens.push(Token::Literal(unescape(literal)?)),
        },
        Element::Interpolation(interpolation) => {
            tokens.push(Token::Interpolation(&interpolation.expr, interpolation.strip));
        }
        Element::Directive(directive) => match &**directive {
            Directive::If(directive) => {
                tokens.push(Token::If(&directive.if_expr.cond_expr, directive.if_expr.strip));
                all(&directive.if_expr.template, tokens)?;
                if let Some(otherwise) = &directive.else_expr {
                    tokens.push(Token::Else(otherwise.strip));
                    all(&otherwise.template, tokens)?;
                }
                tokens.push(Token::EndIf(directive.endif_expr.strip));
            }
            Directive::For(directive) => {
                tokens.push(Token::For(&directive.for_expr, directive.for_expr.strip));
                all(&directive.for_expr.template, tokens)?;
                tokens.push(Token::EndFor(directive.endfor_expr.strip));
            }
        },
    }
    Ok(())
}

/// The escapes of a quoted string.
fn unescape(text: &str) -> Result<String, Diagnostic> {
    let refuse = || Diagnostic::unsupported("this text inside of a template directive");
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if matches!(character, '"' | '\n' | '\r') {
            return Err(refuse());
        }
        if character != '\\' {
            out.push(character);
            continue;
        }
        out.push(match characters.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('"') => '"',
            Some('\\') => '\\',
            Some(unicode @ ('u' | 'U')) => {
                let count = if unicode == 'u' { 4 } else { 8 };
                let digits: String = characters.by_ref().take(count).collect();
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == count);
                code.and_then(char::from_u32).ok_or_else(refuse)?
            }
            _ => return Err(refuse()),
        });
    }
    Ok(out)
}

/// `~` takes away the spaces of the token next to it, which is a line's rest and no more.
fn trim(mut tokens: Vec<Token<'_>>) -> Vec<Token<'_>> {
    for index in 0..tokens.len() {
        let strip = tokens[index].strip();
        if matches!(strip, Strip::Start | Strip::Both)
            && index > 0
            && let Token::Literal(literal) = &mut tokens[index - 1]
        {
            literal.truncate(literal.trim_end().len());
        }
        if matches!(strip, Strip::End | Strip::Both)
            && let Some(Token::Literal(literal)) = tokens.get_mut(index + 1)
        {
            *literal = literal.trim_start().to_owned();
        }
    }
    tokens
}

/// Takes away the indentation that all lines have in common. A blank line has no say in it and stays as it is.
fn flush(tokens: &mut [Token<'_>]) {
    let mut common = usize::MAX;
    let mut indented = Vec::new();
    let mut at_line_start = true;
    for (index, token) in tokens.iter().enumerate() {
        let literal = match token {
            Token::Literal(literal) => Some(literal),
            _ => None,
        };
        if at_line_start {
            match literal {
                Some(literal) if literal.trim_start().is_empty() && literal.ends_with('\n') => {}
                Some(literal) => {
                    common = common.min(literal.chars().take_while(|character| character.is_whitespace()).count());
                    indented.push(index);
                }
                None => common = 0,
            }
        }
        at_line_start = literal.is_some_and(|literal| literal.ends_with('\n'));
    }
    for index in indented {
        if let Token::Literal(literal) = &mut tokens[index] {
            *literal = literal.chars().skip(common).collect();
        }
    }
}

fn tree(tokens: Vec<Token<'_>>) -> Vec<Node<'_>> {
    let mut tokens = tokens.into_iter();
    nodes(&mut tokens).0
}

/// The nodes up to the end of the directive around them, and whether it ended with an `else`.
fn nodes<'a>(tokens: &mut std::vec::IntoIter<Token<'a>>) -> (Vec<Node<'a>>, bool) {
    let mut found = Vec::new();
    while let Some(token) = tokens.next() {
        found.push(match token {
            Token::Literal(literal) => Node::Literal(literal),
            Token::Interpolation(expr, _) => Node::Interpolation(expr),
            Token::If(condition, _) => {
                let (then, more) = nodes(tokens);
                let otherwise = if more { nodes(tokens).0 } else { Vec::new() };
                Node::If { condition, then, otherwise }
            }
            Token::For(intro, _) => Node::For { intro, body: nodes(tokens).0 },
            Token::Else(_) => return (found, true),
            Token::EndIf(_) | Token::EndFor(_) => return (found, false),
        });
    }
    (found, false)
}

/// An unknown string that is certain to begin with `text`, and not to be null.
fn unknown_with_prefix(text: &str) -> Value {
    let cut = &text[..text.floor_char_boundary(MAX_PREFIX)];
    let normal = normalize(cut);
    let prefix = safe_known_prefix(&normal);
    let string_prefix = (!prefix.is_empty()).then(|| prefix.to_owned());
    Value::unknown_refined(Type::String, Refinement { string_prefix, ..Refinement::not_null() })
}
