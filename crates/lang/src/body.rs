mod dynamic;

use std::collections::BTreeMap;

use hcl_edit::structure::Structure;
use landform_cty::{Type, Value};

use self::dynamic::Given;
use crate::eval::{Blame, described, evaluate_bound};
use crate::json_syntax::with_blocks;
use crate::{Body, Budget, Diagnostic, Diagnostics, Expr, Scope, SourceRange};

/// What may stand in a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BodySpec {
    pub attributes: BTreeMap<String, AttributeSpec>,
    pub blocks: BTreeMap<String, BlockSpec>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AttributeSpec {
    /// The value is converted to this type; optional attributes of objects may be left out.
    pub ty: Type,
    pub required: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BlockSpec {
    pub nesting: Nesting,
    pub body: BodySpec,
    /// For lists and sets; for a single block 1 means that it must be there.
    pub min_items: u64,
    /// For lists and sets; 0 is no limit.
    pub max_items: u64,
}

/// What the blocks of one name become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// One object, or null without a block.
    Single,
    /// One object, whose attributes are null without a block.
    Group,
    List,
    Set,
    /// A map by the block's label.
    Map,
}

impl BodySpec {
    /// The type of the value that a body is decoded to.
    pub fn implied_type(&self) -> Type {
        let attributes = self.attributes.iter().map(|(name, spec)| (name.clone(), spec.ty.without_optional()));
        let blocks = self.blocks.iter().map(|(name, spec)| {
            let body = spec.body.implied_type();
            let ty = match spec.nesting {
                Nesting::Single | Nesting::Group => body,
                // Blocks whose types may differ only fit into a structure, which has a type for each.
                _ if body.has_dynamic() && spec.nesting != Nesting::Set => Type::Dynamic,
                Nesting::List => Type::list(body),
                Nesting::Set => Type::set(body),
                Nesting::Map => Type::map(body),
            };
            (name.clone(), ty)
        });
        Type::object(attributes.chain(blocks))
    }
}

/// Evaluates a block's body. Every attribute of the spec is in the resulting object; what was left out is null.
/// All that is wrong with the body is reported, not only the first.
pub fn decode_body(body: &Body, spec: &BodySpec, scope: &dyn Scope, budget: &mut Budget) -> Result<Value, Diagnostics> {
    let mut decoder = Decoder { scope, budget, bound: Vec::new(), unknown: false, found: Vec::new() };
    let value = decoder.decode(body, spec);
    Diagnostics::check(decoder.found)?;
    Ok(value)
}

struct Decoder<'a> {
    scope: &'a dyn Scope,
    budget: &'a mut Budget,
    /// The iterators of the `dynamic` blocks around, innermost last.
    bound: Vec<(String, Value)>,
    /// Inside of blocks of which it is not known whether they are there: nothing is evaluated.
    unknown: bool,
    found: Vec<Diagnostic>,
}

impl Decoder<'_> {
    fn evaluate(&mut self, expr: &Expr) -> Result<Value, Diagnostics> {
        evaluate_bound(expr, &self.bound, self.scope, self.budget)
    }

    fn decode(&mut self, body: &Body, spec: &BodySpec) -> Value {
        let converted = with_blocks(body, spec).unwrap_or_else(|problem| {
            self.found.push(problem);
            None
        });
        let body = converted.as_ref().unwrap_or(body);
        self.check_names(body, spec);
        let mut object = BTreeMap::new();
        for (name, attribute) in &spec.attributes {
            let value = match body.node.get_attribute(name) {
                Some(given) => self.decode_attribute(name, attribute, &body.expr(&given.value)),
                None => {
                    if attribute.required {
                        self.found.push(body.missing(name));
                    }
                    Value::null(attribute.ty.clone())
                }
            };
            object.insert(name.clone(), value);
        }
        for (name, block) in &spec.blocks {
            let given = self.given(body, name);
            object.insert(name.clone(), self.decode_blocks(name, block, body, &given));
        }
        Value::object(object)
    }

    fn decode_attribute(&mut self, name: &str, spec: &AttributeSpec, expr: &Expr) -> Value {
        if self.unknown {
            return Value::unknown(spec.ty.without_optional());
        }
        let value = match self.evaluate(expr) {
            Ok(value) => value,
            Err(diagnostics) => {
                self.found.extend(diagnostics);
                return Value::unknown(spec.ty.clone());
            }
        };
        value.convert(&spec.ty).unwrap_or_else(|error| {
            let detail = format!("Inappropriate value for attribute {name:?}: {error}.");
            let mut problem = Diagnostic::new("Incorrect attribute value type", detail).at(expr.range());
            // What is only known inside of a `dynamic` block is not told.
            problem.seen.values = Some(described(expr, self.scope, Blame::Neither));
            self.found.push(problem);
            Value::unknown(spec.ty.clone())
        })
    }

    fn decode_block(&mut self, given: &Given, spec: &BodySpec) -> Value {
        let (depth, outside) = (self.bound.len(), self.unknown);
        self.bound.extend(given.iterator.clone());
        self.unknown |= given.unknown;
        let value = self.decode(&given.body, spec);
        self.bound.truncate(depth);
        self.unknown = outside;
        value
    }

    fn decode_blocks(&mut self, name: &str, spec: &BlockSpec, outer: &Body, given: &[Given]) -> Value {
        let ty = spec.body.implied_type();
        let values: Vec<Value> = given.iter().map(|given| self.decode_block(given, &spec.body)).collect();
        let single = matches!(spec.nesting, Nesting::Single | Nesting::Group);
        // How many blocks there will be is not known, so neither is whether there are too many.
        let unknown = !single && given.iter().any(|given| given.unknown);
        if !unknown {
            self.check_count(name, spec, outer, given);
        }
        let labels = usize::from(spec.nesting == Nesting::Map);
        self.found.extend(given.iter().filter_map(|block| wrong_labels(name, labels, block)));
        match spec.nesting {
            Nesting::Single | Nesting::Group => match values.into_iter().next() {
                Some(value) => value,
                None if spec.nesting == Nesting::Single => Value::null(ty),
                None => empty(&spec.body),
            },
            Nesting::List if ty.has_dynamic() && unknown => Value::unknown(Type::Dynamic),
            Nesting::List if unknown => Value::unknown(Type::list(ty)),
            Nesting::List if ty.has_dynamic() => Value::tuple(values),
            Nesting::List => Value::list(ty, values),
            Nesting::Set if unknown => Value::unknown(Type::set(ty)),
            Nesting::Set => Value::set(ty, values),
            Nesting::Map if ty.has_dynamic() && unknown => Value::unknown(Type::Dynamic),
            Nesting::Map if unknown => Value::unknown(Type::map(ty)),
            Nesting::Map => {
                let mut elements = BTreeMap::new();
                for (block, value) in given.iter().zip(values) {
                    let Some(label) = block.labels.first() else { continue };
                    if elements.insert(label.clone(), value).is_some() {
                        let detail = format!(
                            "A block for {name} {label:?} was already defined. The {name} labels must be unique."
                        );
                        let duplicate = Diagnostic::new(format!("Duplicate {name} block"), detail);
                        self.found.push(duplicate.at(block.place.clone()));
                    }
                }
                if ty.has_dynamic() { Value::object(elements) } else { Value::map(ty, elements) }
            }
        }
    }

    fn check_count(&mut self, name: &str, spec: &BlockSpec, outer: &Body, given: &[Given]) {
        let count = given.len() as u64;
        let single = matches!(spec.nesting, Nesting::Single | Nesting::Group);
        if count < spec.min_items {
            let problem = match single {
                true => Diagnostic::new(
                    format!("Missing {name} block"),
                    format!("A block of type {name:?} is required here."),
                ),
                false => Diagnostic::new(
                    format!("Insufficient {name} blocks"),
                    format!("At least {} {name:?} blocks are required.", spec.min_items),
                ),
            };
            self.found.push(problem.at(outer.opening()));
        }
        let problem = match spec.nesting {
            Nesting::Map => return,
            Nesting::Single | Nesting::Group if count > 1 => {
                let detail = format!(
                    "Only one block of type {name:?} is allowed. Previous definition was at {}.",
                    given[0].place
                );
                Diagnostic::new(format!("Duplicate {name} block"), detail).at(given[1].place.clone())
            }
            Nesting::List | Nesting::Set if spec.max_items > 0 && count > spec.max_items => {
                let (max, summary) = (spec.max_items, format!("Too many {name} blocks"));
                let detail = format!("No more than {max} {name:?} blocks are allowed");
                Diagnostic::new(summary, detail).at(given[max as usize].place.clone())
            }
            _ => return,
        };
        self.found.push(problem);
    }

    fn check_names(&mut self, body: &Body, spec: &BodySpec) {
        for structure in &body.node {
            let diagnostic = match structure {
                Structure::Attribute(attribute) => {
                    let name = attribute.key.as_str();
                    if spec.attributes.contains_key(name) {
                        continue;
                    }
                    // In OpenTofu it is left to chance which one is named where several are close.
                    let open = spec.attributes.keys().filter(|name| body.node.get_attribute(name).is_none());
                    let hint = match crate::did_you_mean(name, open.map(String::as_str)) {
                        hint if hint.is_empty() && spec.blocks.contains_key(name) => {
                            format!(" Did you mean to define a block of type {name:?}?")
                        }
                        hint => hint,
                    };
                    body.unexpected(attribute, &hint)
                }
                Structure::Block(block) => {
                    // What a `dynamic` block makes must be known here, too.
                    let label = block.labels.first().filter(|_| block.ident.as_str() == "dynamic");
                    let name = label.map_or(block.ident.as_str(), |label| label.as_str());
                    if spec.blocks.contains_key(name) {
                        continue;
                    }
                    let attribute = spec.attributes.get(name);
                    let place = label.map_or_else(|| body.place(&block.ident), |label| body.place(label));
                    // Old providers let such attributes be written as blocks.
                    if attribute.and_then(|spec| spec.ty.element()).is_some_and(|ty| matches!(ty, Type::Object { .. }))
                    {
                        self.found.push(Diagnostic::unsupported(format!("attribute {name} as blocks")).at(place));
                        continue;
                    }
                    let hint = match crate::did_you_mean(name, spec.blocks.keys().map(String::as_str)) {
                        hint if hint.is_empty() && attribute.is_some() => format!(
                            " Did you mean to define argument {name:?}? If so, use the equals sign to assign it a value."
                        ),
                        hint => hint,
                    };
                    let detail = format!("Blocks of type {name:?} are not expected here.{hint}");
                    Diagnostic::new("Unsupported block type", detail).at(place)
                }
            };
            self.found.push(diagnostic);
        }
    }
}

/// Too few labels, or too many.
fn wrong_labels(name: &str, wanted: usize, given: &Given) -> Option<Diagnostic> {
    if given.labels.len() < wanted {
        let detail = format!("All {name} blocks must have {wanted} labels (key).");
        return Some(Diagnostic::new(format!("Missing key for {name}"), detail).at(given.body.opening()));
    }
    let extra = given.labels.get(wanted)?;
    let detail = match wanted {
        0 => format!("No labels are expected for {name} blocks."),
        _ => format!("Only {wanted} labels (key) are expected for {name} blocks."),
    };
    // The labels are the last that stands in a header.
    let (line, end) = given.place.end;
    let width = extra.chars().count() as u32 + 2;
    let column =
        if line as usize == given.place.line { end.saturating_sub(width) as usize } else { given.place.column };
    let place = SourceRange { column: column.max(1), ..given.place.clone() };
    Some(Diagnostic::new(format!("Extraneous label for {name}"), detail).at(place))
}

/// A body without anything in it.
fn empty(spec: &BodySpec) -> Value {
    let attributes = spec.attributes.iter().map(|(name, spec)| (name.clone(), Value::null(spec.ty.clone())));
    let blocks = spec.blocks.iter().map(|(name, spec)| {
        let ty = spec.body.implied_type();
        let value = match spec.nesting {
            Nesting::Single => Value::null(ty),
            Nesting::Group => empty(&spec.body),
            Nesting::List if ty.has_dynamic() => Value::tuple(Vec::new()),
            Nesting::List => Value::list(ty, Vec::new()),
            Nesting::Set => Value::set(ty, Vec::new()),
            Nesting::Map if ty.has_dynamic() => Value::object::<String>([]),
            Nesting::Map => Value::map::<String>(ty, []),
        };
        (name.clone(), value)
    });
    Value::object(attributes.chain(blocks))
}

#[cfg(test)]
mod tests;
