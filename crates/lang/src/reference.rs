use std::fmt;

use hcl_edit::Span;
use hcl_edit::expr::{Expression, ObjectKey, TraversalOperator};
use hcl_edit::structure::{Block, Structure};
use hcl_edit::template::{Directive, Element, Template};
use hcl_edit::visit::Visit;
use landform_cty::Step;

use crate::{Body, Diagnostic, Diagnostics, Expr, Mention, Scope, SourceRange};

/// What an expression can refer to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reference {
    /// `var.NAME`
    Variable(String),
    /// `local.NAME`
    Local(String),
    /// `TYPE.NAME`: the whole resource; with `count` it is a tuple of its instances.
    Resource { resource_type: String, name: String },
    /// `data.TYPE.NAME`
    Data { resource_type: String, name: String },
    /// `module.NAME`, and the output that follows if one is named.
    Module { name: String, output: Option<String> },
    /// `count.index`
    CountIndex,
    /// `each.key`
    EachKey,
    /// `each.value`
    EachValue,
    /// `self`: the object that a condition is about.
    SelfObject,
    /// `path.module`, `path.root` or `path.cwd`
    Path(PathKind),
    /// `terraform.workspace`
    Workspace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathKind {
    Module,
    Root,
    Cwd,
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reference::Variable(name) => write!(f, "var.{name}"),
            Reference::Local(name) => write!(f, "local.{name}"),
            Reference::Resource { resource_type, name } => write!(f, "{resource_type}.{name}"),
            Reference::Data { resource_type, name } => write!(f, "data.{resource_type}.{name}"),
            Reference::Module { name, .. } => write!(f, "module.{name}"),
            Reference::CountIndex => f.write_str("count.index"),
            Reference::EachKey => f.write_str("each.key"),
            Reference::EachValue => f.write_str("each.value"),
            Reference::SelfObject => f.write_str("self"),
            Reference::Path(PathKind::Module) => f.write_str("path.module"),
            Reference::Path(PathKind::Root) => f.write_str("path.root"),
            Reference::Path(PathKind::Cwd) => f.write_str("path.cwd"),
            Reference::Workspace => f.write_str("terraform.workspace"),
        }
    }
}

impl Reference {
    /// Reads the beginning of a traversal; also says how many of its operators belong to the reference.
    pub(crate) fn read<'a>(
        root: &str,
        operators: impl IntoIterator<Item = &'a TraversalOperator>,
    ) -> Result<(Reference, usize), Diagnostic> {
        let mut operators = operators.into_iter();
        let attribute = match operators.next() {
            Some(TraversalOperator::GetAttr(name)) => Some(name.as_str()),
            // TYPE["NAME"] is not a reference for OpenTofu either.
            _ => None,
        };
        let invalid = |detail: &str| Err(Diagnostic::new("Invalid reference", detail));
        let reference = match (root, attribute) {
            ("var", Some(name)) => Reference::Variable(name.to_owned()),
            ("local", Some(name)) => Reference::Local(name.to_owned()),
            ("count", Some("index")) => Reference::CountIndex,
            ("each", Some("key")) => Reference::EachKey,
            ("each", Some("value")) => Reference::EachValue,
            ("self", _) => return Ok((Reference::SelfObject, 0)),
            ("data", Some(resource_type)) => match operators.next() {
                Some(TraversalOperator::GetAttr(name)) => {
                    let (resource_type, name) = (resource_type.to_owned(), name.as_str().to_owned());
                    return Ok((Reference::Data { resource_type, name }, 2));
                }
                _ => {
                    return invalid(
                        "The \"data\" object must be followed by two attribute names: the data source type and the \
                         resource name.",
                    );
                }
            },
            ("module", Some(name)) => {
                let output = match (operators.next(), operators.next()) {
                    (Some(TraversalOperator::GetAttr(output)), _) => Some(output),
                    // What stands behind a key that has to be evaluated is not looked at: all of the module is meant.
                    (Some(key), Some(TraversalOperator::GetAttr(output))) if crate::mention::fixed(key).is_some() => {
                        Some(output)
                    }
                    _ => None,
                };
                let output = output.map(|output| output.as_str().to_owned());
                Reference::Module { name: name.to_owned(), output }
            }
            ("path", Some("module")) => Reference::Path(PathKind::Module),
            ("path", Some("root")) => Reference::Path(PathKind::Root),
            ("path", Some("cwd")) => Reference::Path(PathKind::Cwd),
            ("terraform" | "tofu", Some("workspace")) => Reference::Workspace,
            ("var" | "local" | "count" | "each" | "path" | "terraform" | "tofu" | "data" | "module", None) => {
                return invalid(&format!(
                    "The {root:?} object cannot be accessed directly. Instead, access one of its attributes."
                ));
            }
            ("count" | "each" | "path" | "terraform" | "tofu", Some(name)) => {
                return Err(no_such_attribute(root, name));
            }
            ("ephemeral" | "template" | "lazy" | "arg", Some(name)) => {
                return Err(Diagnostic::unsupported(format!("reference to {root}.{name}")));
            }
            ("ephemeral", None) => {
                return Err(Diagnostic::unsupported(format!("reference to {root}")));
            }
            // resource.TYPE.NAME is the long form of TYPE.NAME.
            ("resource", Some(resource_type)) => match operators.next() {
                Some(TraversalOperator::GetAttr(name)) => {
                    let resource_type = resource_type.to_owned();
                    let name = name.as_str().to_owned();
                    return Ok((Reference::Resource { resource_type, name }, 2));
                }
                _ => return invalid("The \"resource\" object must be followed by two attribute names."),
            },
            (_, Some(name)) => Reference::Resource { resource_type: root.to_owned(), name: name.to_owned() },
            (_, None) => {
                return invalid(
                    "A reference to a resource type must be followed by at least one attribute access, specifying the \
                     resource name.",
                );
            }
        };
        Ok((reference, 1))
    }
}

fn no_such_attribute(object: &str, name: &str) -> Diagnostic {
    let there = match object {
        "count" => {
            " The only supported attribute is count.index, which is the index of each instance of a resource block that has \
             the \"count\" argument set."
                .to_owned()
        }
        "each" => {
            " The supported attributes are each.key and each.value, the current key and value pair of the \"for_each\" \
             attribute set."
                .to_owned()
        }
        "path" => crate::did_you_mean(name, ["module", "root", "cwd"]),
        _ => format!(
            " The only supported attribute is {object}.workspace, the name of the currently-selected workspace."
        ),
    };
    let detail = format!("The {object:?} object does not have an attribute named {name:?}.{there}");
    Diagnostic::new(format!("Invalid {object:?} attribute"), detail)
}

/// Everything that an expression refers to, in the order of the text. References that cannot be read are left out:
/// loading has reported them.
pub fn references(expr: &Expr) -> Vec<Reference> {
    let mut ignore = |_: Construct| {};
    let mut finder = Finder::new(&mut ignore);
    finder.visit_expr(&expr.node);
    finder.into_references()
}

/// Everything that the expressions inside a block refer to. The iterators of `dynamic` blocks mean nothing outside.
pub fn body_references(body: &Body) -> Vec<Reference> {
    let mut ignore = |_: Construct| {};
    let mut finder = Finder::new(&mut ignore);
    finder.visit_body(&body.node);
    finder.into_references()
}

/// The same of an expression, with the key of the one instance that is meant, if it is fixed.
pub fn keyed_references(expr: &Expr) -> Vec<(Reference, Option<Step>)> {
    let mut ignore = |_: Construct| {};
    let mut finder = Finder::new(&mut ignore);
    finder.visit_expr(&expr.node);
    finder.into_keyed_references()
}

/// The same of a block.
pub fn body_keyed_references(body: &Body) -> Vec<(Reference, Option<Step>)> {
    let mut ignore = |_: Construct| {};
    let mut finder = Finder::new(&mut ignore);
    finder.visit_body(&body.node);
    finder.into_keyed_references()
}

/// Whether all that an expression refers to is there. What forgives mistakes in the middle of it, as `can` does, does not
/// forgive that.
pub fn check_references(expr: &Expr, scope: &dyn Scope) -> Result<(), Diagnostics> {
    let problem = |found: Found| {
        let problem = found.reference.and_then(|reference| scope.resolve(&reference)).err()?;
        Some(problem.at(found.range))
    };
    Diagnostics::check(inspect(expr, &[], &mut |_| {}).into_iter().filter_map(problem).collect())
}

/// A name with all that is written behind it.
pub(crate) type Traversal = (String, Vec<TraversalOperator>);

/// Everything that an expression refers to, in the order of the text and as it is written.
pub(crate) fn traversals(expr: &Expression) -> Vec<Traversal> {
    let mut ignore = |_: Construct| {};
    let mut finder = Finder { traversals: Some(Vec::new()), ..Finder::new(&mut ignore) };
    finder.visit_expr(expr);
    finder.traversals.unwrap_or_default()
}

/// What is wrong with an expression in a place where no function may be called.
pub(crate) fn calls_a_function(expr: &Expr) -> Option<Diagnostic> {
    let mut first = None;
    let mut note = |construct: Construct| {
        if matches!(construct.kind, ConstructKind::Function(_)) {
            first.get_or_insert(construct.span);
        }
    };
    Finder::new(&mut note).visit_expr(&expr.node);
    let problem = Diagnostic::new("Function calls not allowed", "Functions may not be called here.");
    first.map(|span| problem.at(expr.source.range(span)))
}

/// Everything that the expressions inside a block refer to, as it is written.
pub(crate) fn body_traversals(body: &Body) -> Vec<Traversal> {
    let mut ignore = |_: Construct| {};
    let mut finder = Finder { traversals: Some(Vec::new()), ..Finder::new(&mut ignore) };
    finder.visit_body(&body.node);
    finder.traversals.unwrap_or_default()
}

/// The first name of every reference in a template.
pub(crate) fn template_roots(template: &Template) -> Vec<(String, Place)> {
    let mut ignore = |_: Construct| {};
    let mut finder = Finder::new(&mut ignore);
    finder.visit_template_elements(template);
    finder.roots
}

/// A reference as it was written, with where it stands.
pub(crate) struct Found {
    /// `Err` if it is none that can be resolved.
    pub reference: Result<Reference, Diagnostic>,
    /// The same with what follows it.
    pub mention: Option<Mention>,
    pub range: SourceRange,
}

/// What loading wants to know about an expression: its references and its constructs.
/// `bound` are names that mean something only where it stands.
pub(crate) fn inspect(expr: &Expr, bound: &[String], on_construct: &mut dyn FnMut(Construct)) -> Vec<Found> {
    let mut finder = Finder::new(on_construct);
    finder.bound = bound.to_vec();
    finder.traversals = Some(Vec::new());
    finder.visit_expr(&expr.node);
    let traversals = finder.traversals.unwrap_or_default();
    let found = finder.found.into_iter().zip(&traversals);
    let each = |((reference, span), traversal)| Found {
        reference,
        mention: crate::mention::mention(traversal),
        range: expr.source.range(span),
    };
    found.map(each).collect()
}

/// Something in an expression that may be outside of the subset.
pub(crate) struct Construct {
    pub kind: ConstructKind,
    pub span: Place,
}

pub(crate) enum ConstructKind {
    Function(String),
    LegacyIndexAfterSplat,
}

type Place = Option<std::ops::Range<usize>>;

/// Walks an expression and knows which names a `for` has bound.
struct Finder<'f> {
    bound: Vec<String>,
    found: Vec<(Result<Reference, Diagnostic>, Place)>,
    /// For each of those the key of an instance, if one is fixed.
    keys: Vec<Option<Step>>,
    roots: Vec<(String, Place)>,
    /// Kept where somebody wants them.
    traversals: Option<Vec<Traversal>>,
    on_construct: &'f mut dyn FnMut(Construct),
}

impl<'f> Finder<'f> {
    fn new(on_construct: &'f mut dyn FnMut(Construct)) -> Finder<'f> {
        let (bound, found, keys, roots) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Finder { bound, found, keys, roots, traversals: None, on_construct }
    }

    fn note<'a>(&mut self, root: &str, operators: impl IntoIterator<Item = &'a TraversalOperator>, span: Place) {
        if !self.bound.iter().any(|name| name == root) {
            self.roots.push((root.to_owned(), span.clone()));
            let operators: Vec<&TraversalOperator> = operators.into_iter().collect();
            if let Some(traversals) = &mut self.traversals {
                traversals.push((root.to_owned(), operators.iter().map(|operator| (*operator).clone()).collect()));
            }
            let read = Reference::read(root, operators.iter().copied());
            self.keys.push(read.as_ref().ok().and_then(|(_, used)| key(operators.get(*used)?)));
            self.found.push((read.map(|(reference, _)| reference), span));
        }
    }

    fn into_keyed_references(self) -> Vec<(Reference, Option<Step>)> {
        let found = self.found.into_iter().zip(self.keys);
        found.filter_map(|((reference, _), key)| Some((reference.ok()?, key))).collect()
    }

    fn into_references(self) -> Vec<Reference> {
        self.found.into_iter().filter_map(|(reference, _)| reference.ok()).collect()
    }

    fn note_construct(&mut self, kind: ConstructKind, span: Place) {
        (self.on_construct)(Construct { kind, span });
    }

    fn visit_template_elements(&mut self, template: &Template) {
        for element in template {
            match element {
                Element::Literal(_) => {}
                Element::Interpolation(interpolation) => self.visit_expr(&interpolation.expr),
                Element::Directive(directive) => match &**directive {
                    Directive::If(directive) => {
                        self.visit_expr(&directive.if_expr.cond_expr);
                        self.visit_template_elements(&directive.if_expr.template);
                        if let Some(otherwise) = &directive.else_expr {
                            self.visit_template_elements(&otherwise.template);
                        }
                    }
                    Directive::For(directive) => {
                        let intro = &directive.for_expr;
                        self.visit_expr(&intro.collection_expr);
                        let depth = self.bound.len();
                        self.bound.extend(intro.key_var.iter().map(|name| name.as_str().to_owned()));
                        self.bound.push(intro.value_var.as_str().to_owned());
                        self.visit_template_elements(&intro.template);
                        self.bound.truncate(depth);
                    }
                },
            }
        }
    }
}

/// The key of an instance, if it is fixed.
fn key(operator: &TraversalOperator) -> Option<Step> {
    crate::mention::fixed(operator).filter(|step| !matches!(step, Step::Attribute(_)))
}

/// The name by which the content of a `dynamic` block calls the element that it is made for.
pub(crate) fn iterator(block: &Block) -> Option<String> {
    let kind = block.labels.first().filter(|_| block.ident.as_str() == "dynamic")?;
    match block.body.get_attribute("iterator").map(|given| &given.value) {
        Some(Expression::Variable(name)) => Some(name.as_str().to_owned()),
        // What is no name is said to be none, and means nothing else either.
        Some(Expression::String(name)) => Some(name.as_str().to_owned()),
        Some(Expression::Traversal(traversal)) => match &traversal.expr {
            Expression::Variable(name) => Some(name.as_str().to_owned()),
            _ => Some(kind.as_str().to_owned()),
        },
        _ => Some(kind.as_str().to_owned()),
    }
}

impl Visit for Finder<'_> {
    fn visit_block(&mut self, block: &Block) {
        let Some(iterator) = iterator(block) else { return hcl_edit::visit::visit_block(self, block) };
        for structure in &block.body {
            match structure {
                Structure::Attribute(attribute) if attribute.key.as_str() == "iterator" => {}
                Structure::Attribute(attribute) if attribute.key.as_str() == "for_each" => {
                    self.visit_expr(&attribute.value);
                }
                inside => {
                    self.bound.push(iterator.clone());
                    self.visit_structure(inside);
                    self.bound.pop();
                }
            }
        }
    }

    fn visit_expr(&mut self, expr: &Expression) {
        match expr {
            Expression::Variable(name) => self.note(name.as_str(), [], name.span()),
            Expression::Traversal(traversal) => {
                let operators: Vec<&TraversalOperator> =
                    traversal.operators.iter().map(|operator| operator.value()).collect();
                match &traversal.expr {
                    Expression::Variable(name) => {
                        self.note(name.as_str(), operators.iter().copied(), traversal.span());
                    }
                    other => self.visit_expr(other),
                }
                let mut after_attribute_splat = false;
                for operator in operators {
                    match operator {
                        TraversalOperator::Index(key) => self.visit_expr(key),
                        TraversalOperator::AttrSplat(_) => after_attribute_splat = true,
                        TraversalOperator::LegacyIndex(_) if after_attribute_splat => {
                            self.note_construct(ConstructKind::LegacyIndexAfterSplat, traversal.span());
                        }
                        _ => {}
                    }
                }
            }
            Expression::ForExpr(for_expr) => {
                self.visit_expr(&for_expr.intro.collection_expr);
                let depth = self.bound.len();
                self.bound.extend(for_expr.intro.key_var.iter().map(|name| name.as_str().to_owned()));
                self.bound.push(for_expr.intro.value_var.as_str().to_owned());
                if let Some(key) = &for_expr.key_expr {
                    self.visit_expr(key);
                }
                self.visit_expr(&for_expr.value_expr);
                if let Some(condition) = &for_expr.cond {
                    self.visit_expr(&condition.expr);
                }
                self.bound.truncate(depth);
            }
            Expression::Object(object) => {
                for (key, value) in object {
                    match key {
                        ObjectKey::Ident(_) => {}
                        ObjectKey::Expression(key) => self.visit_expr(key),
                    }
                    self.visit_expr(value.expr());
                }
            }
            Expression::StringTemplate(template) => {
                self.visit_template_elements(&template.clone().into());
            }
            Expression::HeredocTemplate(heredoc) => {
                self.visit_template_elements(&heredoc.template);
            }
            Expression::FuncCall(call) => {
                let mut name: String = call.name.namespace.iter().map(|part| format!("{}::", part.as_str())).collect();
                name.push_str(call.name.name.as_str());
                self.note_construct(ConstructKind::Function(name), call.name.name.span());
                for argument in call.args.iter() {
                    self.visit_expr(argument);
                }
            }
            other => hcl_edit::visit::visit_expr(self, other),
        }
    }
}
