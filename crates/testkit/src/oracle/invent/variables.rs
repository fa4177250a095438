//! Variables: what they are declared to be, and where their values come from.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::body::{Part, argument, block, literal_in_json};
use super::expressions::{Kind, Names, literal, pick};

/// A type that is declared, and how its values are brought to the kind that expressions ask for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Plain,
    /// No type at all: the value's own.
    Any,
    /// A set in place of a list.
    Set,
    /// Numbers in place of texts.
    Numbers,
    /// An object with optional attributes in place of a map.
    Optional,
    /// An object around the value.
    Around,
    /// A number or a truth in quotes.
    Quoted,
}

/// Where the root's value is said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Default,
    /// `terraform.tfvars`.
    Usual,
    /// A file that is read by its name's end.
    Auto,
    AutoJson,
    /// A file that is named by a flag.
    Named,
}

pub struct Variable {
    pub name: String,
    pub kind: Kind,
    shape: Shape,
    said: Said,
    /// A default for the root; a module may have one beside what it is given.
    value: String,
    pub sensitive: bool,
    pub ephemeral: bool,
    nullable: bool,
    validated: bool,
    has_default: bool,
}

impl Variable {
    pub fn new(rng: &mut StdRng, name: String, is_root: bool) -> Variable {
        let kind = *Kind::ALL.choose(rng).expect("there are kinds");
        let shapes: &[Shape] = match (kind, is_root) {
            _ if rng.random_bool(0.5) => &[Shape::Plain],
            (Kind::Texts, true) => &[Shape::Any, Shape::Set, Shape::Numbers, Shape::Around],
            (Kind::Texts, false) => &[Shape::Any, Shape::Set],
            (Kind::Map, true) => &[Shape::Any, Shape::Optional, Shape::Around],
            (Kind::Map, false) => &[Shape::Any, Shape::Optional],
            (Kind::Number | Kind::Truth, true) => &[Shape::Any, Shape::Quoted, Shape::Around],
            (Kind::Text, true) => &[Shape::Any, Shape::Around],
            (_, false) => &[Shape::Any],
        };
        let shape = *shapes.choose(rng).expect("there are shapes");
        let said = match rng.random_range(0..10) {
            0 => Said::Usual,
            1 => Said::Auto,
            2 => Said::AutoJson,
            3 => Said::Named,
            _ => Said::Default,
        };
        let mut variable = Variable {
            name,
            kind,
            shape,
            said,
            value: String::new(),
            sensitive: rng.random_bool(0.1),
            ephemeral: false,
            nullable: rng.random_bool(0.85),
            validated: rng.random_bool(0.1),
            has_default: is_root || rng.random_bool(0.3),
        };
        variable.change(rng);
        variable
    }

    /// One that is kept nowhere.
    pub fn ephemeral(rng: &mut StdRng, name: String) -> Variable {
        let value = literal(rng, Kind::Text);
        let (kind, shape, said) = (Kind::Text, Shape::Plain, Said::Default);
        let (sensitive, nullable) = (rng.random_bool(0.5), true);
        Variable {
            name,
            kind,
            shape,
            said,
            value,
            sensitive,
            ephemeral: true,
            nullable,
            validated: false,
            has_default: true,
        }
    }

    /// Another value.
    pub fn change(&mut self, rng: &mut StdRng) {
        let plain = literal(rng, self.kind);
        self.value = match self.shape {
            Shape::Plain | Shape::Any | Shape::Set | Shape::Optional => plain,
            Shape::Numbers => pick(rng, &["[]", "[1]", "[3, \"2\"]", "[\"1e2\", 0.5, 7]"]).to_owned(),
            Shape::Quoted => format!("\"{plain}\""),
            Shape::Around => {
                let more = pick(rng, &["", ", more = []", ", more = [{}]", ", more = [{ size = \"4\" }, {}]"]);
                format!("{{ one = {plain}{more} }}")
            }
        };
    }

    fn constraint(&self) -> Option<String> {
        let plain = self.kind.constraint();
        Some(match self.shape {
            Shape::Any => return None,
            Shape::Plain | Shape::Quoted => plain.to_owned(),
            Shape::Set => "set(string)".to_owned(),
            Shape::Numbers => "list(number)".to_owned(),
            // All keys that there are: which one is suggested in place of another is drawn by lot.
            Shape::Optional => {
                let rest = ["b", "c", "d"].map(|key| format!("{key} = optional(string)")).join(", ");
                format!("object({{ a = optional(string, \"usual\"), {rest} }})")
            }
            Shape::Around => {
                format!(
                    "object({{ one = {plain}, more = optional(list(object({{ size = optional(number, 3) }})), []) }})"
                )
            }
        })
    }

    /// What says its value, and what else it holds.
    pub fn names(&self) -> Names {
        let name = format!("var.{}", self.name);
        match self.shape {
            Shape::Plain | Shape::Quoted | Shape::Any => vec![(self.kind, name)],
            Shape::Set => vec![(Kind::Texts, format!("tolist({name})")), (Kind::Number, format!("length({name})"))],
            Shape::Numbers => vec![(Kind::Texts, format!("[for n in {name} : tostring(n)]"))],
            Shape::Optional => {
                vec![
                    (Kind::Map, format!("{{ for k, v in {name} : k => v if v != null }}")),
                    (Kind::Text, format!("{name}.a")),
                ]
            }
            Shape::Around => vec![
                (self.kind, format!("{name}.one")),
                (Kind::Number, format!("length({name}.more)")),
                (Kind::Texts, format!("[for one in {name}.more : tostring(one.size)]")),
            ],
        }
    }

    /// Its declaration. What a module is given is not its default.
    pub fn part(&self, is_root: bool) -> Part {
        let mut parts = Vec::new();
        parts.extend(self.constraint().map(|constraint| Part::Word("type", constraint)));
        if self.has_default && (!is_root || self.said == Said::Default) {
            parts.push(Part::Literal("default", self.value.clone()));
        }
        for (is, name, value) in [
            (self.sensitive, "sensitive", "true"),
            (self.ephemeral, "ephemeral", "true"),
            (!self.nullable, "nullable", "false"),
        ] {
            parts.extend(is.then(|| argument(name, value)));
        }
        if self.validated {
            let condition = format!("length(jsonencode(var.{})) < 90", self.name);
            let message = argument("error_message", "\"Too long.\"");
            parts.push(block("validation", [], vec![argument("condition", condition), message]));
        }
        block("variable", [&self.name], parts)
    }

    /// Whether a caller may say nothing, which `null` stands for.
    pub fn may_be_left_out(&self) -> bool {
        self.has_default && !self.nullable
    }
}

/// Files with values, by name. Those that are there once stay there.
pub fn files(variables: &[Variable]) -> String {
    let mut text = String::new();
    let files = [(Said::Usual, "terraform.tfvars"), (Said::Auto, "more.auto.tfvars"), (Said::Named, NAMED)];
    for (said, name) in files {
        let values: Vec<&Variable> = variables.iter().filter(|it| it.said == said).collect();
        if !values.is_empty() {
            let lines: String = values.iter().map(|it| format!("{} = {}\n", it.name, it.value)).collect();
            text.push_str(&format!("--- {name}\n{lines}"));
        }
    }
    let values: Vec<&Variable> = variables.iter().filter(|it| it.said == Said::AutoJson).collect();
    if !values.is_empty() {
        let lines: Vec<String> =
            values.iter().map(|it| format!("  \"{}\": {}", it.name, literal_in_json(&it.value))).collect();
        text.push_str(&format!("--- other.auto.tfvars.json\n{{\n{}\n}}\n", lines.join(",\n")));
    }
    text
}

const NAMED: &str = "named.tfvars";

/// The flag that a step needs for these.
pub fn flag(variables: &[Variable]) -> String {
    match variables.iter().any(|it| it.said == Said::Named) {
        true => format!(" -var-file={NAMED}"),
        false => String::new(),
    }
}
