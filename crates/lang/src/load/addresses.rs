//! Addresses that blocks are about: of `moved`, `removed` and `import`. They are read as names, never evaluated, but for the
//! keys in the target of an import.

use hcl_edit::Span;
use hcl_edit::expr::{Expression, TraversalOperator};

use super::Loader;
use super::references::not_static;
use crate::{Diagnostic, Expr, SourceRange};

/// One word of an address, with where it stands.
struct Word {
    kind: Kind,
    range: SourceRange,
}

enum Kind {
    Name(String),
    Key(Expression),
}

/// An address, in parts (`module.NAME`, `TYPE.NAME`), each with its key. Without a resource it is that of a module.
pub(super) struct Endpoint {
    pub parts: Vec<(String, Option<Expression>)>,
    pub is_module: bool,
    data: bool,
    /// Where the first key of a module stands.
    module_key: Option<SourceRange>,
    range: SourceRange,
}

impl Endpoint {
    /// In the form in which a state has it.
    pub fn text(&self) -> String {
        let part = |(name, key): &(String, Option<Expression>)| match key {
            None => name.clone(),
            Some(Expression::String(key)) => {
                let quoted = serde_json::Value::from(key.value().as_str()).to_string();
                format!("{name}[{}]", quoted.replace("${", "$${").replace("%{", "%%{"))
            }
            Some(Expression::Number(index)) => format!("{name}[{}]", index.value()),
            Some(_) => unreachable!("only an import has keys that are evaluated"),
        };
        self.parts.iter().map(part).collect::<Vec<_>>().join(".")
    }
}

impl Loader {
    /// What a `moved` block says of one end.
    pub(super) fn moved_end(&mut self, expr: &Expr) -> Option<Endpoint> {
        self.noting(words(expr, false).and_then(endpoint))
    }

    /// Resources and modules are removed as a whole, and data sources not at all.
    pub(super) fn removed_end(&mut self, expr: &Expr) -> Option<Endpoint> {
        let read = words(expr, false).and_then(endpoint).and_then(|end| {
            let (summary, detail, range) = if let Some(range) = &end.module_key {
                let detail = "Module address cannot be a module instance (e.g. \"module.a[0]\"), it must be a module instead \
                              (e.g. \"module.a\").";
                ("Module instance address with keys is not allowed", detail, range)
            } else if !end.is_module && end.parts.last().is_some_and(|(_, key)| key.is_some()) {
                ("Resource instance address with keys is not allowed", NO_INSTANCE, &end.range)
            } else if end.data {
                let detail = "Data sources cannot be destroyed, and therefore, 'removed' blocks are not allowed to target \
                              them. To remove data sources from the state, you should remove the data source block from the \
                              configuration.";
                ("Data source address is not allowed", detail, &end.range)
            } else {
                return Ok(end);
            };
            Err(Diagnostic::new(summary, detail).at(range.clone()))
        });
        // To a `removed` block, an attribute of a resource is an instance of it that is badly named.
        let read = read.map_err(|problem| match problem.detail == NO_BRACKETS {
            true => Diagnostic {
                summary: "Resource instance address with keys is not allowed".to_owned(),
                detail: NO_INSTANCE.to_owned(),
                ..problem
            },
            false => problem,
        });
        self.noting(read)
    }

    /// The target of an import: of a resource, and with keys that are evaluated.
    pub(super) fn import_target(&mut self, expr: &Expr) -> Option<Vec<(String, Option<Expr>)>> {
        let read = words(expr, true).and_then(endpoint).and_then(|end| match end.is_module {
            false => Ok(end),
            true => {
                let detail = "A resource instance address is required here. The module path must be followed by a resource \
                              instance specification.";
                Err(Diagnostic::new("Invalid address", detail).at(end.range))
            }
        });
        let with_source = |key: Expression| Expr { node: key, source: expr.source.clone() };
        let parts = self.noting(read)?.parts.into_iter();
        Some(parts.map(|(name, key)| (name, key.map(with_source))).collect())
    }

    fn noting(&mut self, read: Result<Endpoint, Diagnostic>) -> Option<Endpoint> {
        read.map_err(|problem| self.found.push(problem)).ok()
    }
}

const NO_INSTANCE: &str = "Resource address cannot be a resource instance (e.g. \"null_resource.a[0]\"), it must be a resource \
                           instead (e.g. \"null_resource.a\").";
const NO_BRACKETS: &str = "Resource instance key must be given in square brackets.";

/// The words of an address; `evaluated`: whether keys may be any expressions.
fn words(expr: &Expr, evaluated: bool) -> Result<Vec<Word>, Diagnostic> {
    let wrong = || match evaluated {
        false => not_static(expr),
        true => {
            let detail = "Import address must be a reference to a resource's address, and only allows for indexing with \
                          dynamic keys. For example: module.my_module[expression1].aws_s3_bucket.my_buckets[expression2] for \
                          resources inside of modules, or simply aws_s3_bucket.my_bucket for a resource in the root module";
            Diagnostic::new("Invalid import address expression", detail).at(expr.range())
        }
    };
    let word = |kind: Kind, span| Word { kind, range: expr.source.range(span) };
    let (root, operators) = match &expr.node {
        Expression::Variable(root) => return Ok(vec![word(Kind::Name(root.as_str().to_owned()), root.span())]),
        Expression::Traversal(traversal) => match &traversal.expr {
            Expression::Variable(root) => (root, &traversal.operators),
            _ => return Err(wrong()),
        },
        _ => return Err(wrong()),
    };
    let mut words = vec![word(Kind::Name(root.as_str().to_owned()), root.span())];
    for operator in operators {
        let kind = match operator.value() {
            TraversalOperator::GetAttr(name) => Kind::Name(name.as_str().to_owned()),
            TraversalOperator::Index(
                key @ (Expression::String(_) | Expression::Number(_) | Expression::Null(_) | Expression::Bool(_)),
            ) => Kind::Key(key.clone()),
            TraversalOperator::Index(key) if evaluated => Kind::Key(key.clone()),
            TraversalOperator::LegacyIndex(index) => Kind::Key(Expression::from(*index.value())),
            _ => return Err(wrong()),
        };
        words.push(word(kind, operator.span()));
    }
    Ok(words)
}

fn endpoint(words: Vec<Word>) -> Result<Endpoint, Diagnostic> {
    let wrong = |summary: &str, detail: &str, range: &SourceRange| Diagnostic::new(summary, detail).at(range.clone());
    let whole = match (&words.first(), &words.last()) {
        (Some(first), Some(last)) => SourceRange { end: last.range.end, ..first.range.clone() },
        _ => unreachable!("an address has a first word"),
    };
    let (mut parts, mut module_key) = (Vec::new(), None);
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next_if(|word| matches!(&word.kind, Kind::Name(name) if name == "module")) {
        let Some(Word { kind: Kind::Name(name), .. }) = words.next() else {
            let detail = "Prefix \"module.\" must be followed by a module name.";
            return Err(wrong("Invalid address operator", detail, &word.range));
        };
        let key = match words.next_if(|word| matches!(word.kind, Kind::Key(_))) {
            Some(Word { kind: Kind::Key(key), range }) => {
                if let Some(why) = unsuitable_key(&key) {
                    return Err(wrong("Invalid address operator", &format!("Invalid module index: {why}."), &range));
                }
                module_key.get_or_insert(range);
                Some(key)
            }
            _ => None,
        };
        parts.push((format!("module.{name}"), key));
    }
    let mut rest: Vec<Word> = words.collect();
    let end = |parts, is_module, data| Endpoint { parts, is_module, data, module_key, range: whole.clone() };
    if rest.is_empty() {
        return Ok(end(parts, true, false));
    }
    let data = matches!(&rest[0].kind, Kind::Name(name) if name == "data");
    if data {
        rest.remove(0);
    }
    let detail = match rest.as_slice() {
        [] | [_] => "Resource specification must include a resource type and name.",
        [Word { kind: Kind::Key(_), .. }, ..] if data => "A data source name is required.",
        [Word { kind: Kind::Key(_), .. }, ..] => "A resource type name is required.",
        [_, Word { kind: Kind::Key(_), .. }, ..] => "A resource name is required.",
        [_, _, Word { kind: Kind::Name(_), .. }] => NO_BRACKETS,
        [_, _, _, _, ..] => "Unexpected extra operators after address.",
        [Word { kind: Kind::Name(kind), .. }, Word { kind: Kind::Name(name), .. }, keys @ ..] => {
            let key = match keys {
                [Word { kind: Kind::Key(key), range }] => {
                    if let Some(why) = unsuitable_key(key) {
                        let detail = format!("Invalid resource instance key: {why}.");
                        return Err(wrong("Invalid address", &detail, range));
                    }
                    Some(key.clone())
                }
                _ => None,
            };
            let prefix = if data { "data." } else { "" };
            parts.push((format!("{prefix}{kind}.{name}"), key));
            return Ok(end(parts, false, data));
        }
    };
    Err(wrong("Invalid address", detail, &whole))
}

/// Why a key that is written out is none.
fn unsuitable_key(key: &Expression) -> Option<&'static str> {
    let index = match key {
        Expression::Number(index) => index,
        Expression::Null(_) | Expression::Bool(_) => return Some("either a string or an integer is required"),
        _ => return None,
    };
    let whole = index.value().as_i64().is_some() || index.value().as_u64().is_some();
    (!whole).then_some("value must be a whole number, between -9223372036854775808 and 9223372036854775807")
}
