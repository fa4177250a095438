//! The blocks of an invented configuration, and what may be said about each.

use std::fmt::Write;

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::expressions::{Kind, Names, expression, pick};
use super::{Folder, mentions};

pub enum Sort {
    Local(Kind),
    Object,
    /// A `terraform_data`, with what it holds.
    Data(Kind),
    Nested,
    Blocks,
    /// A data source that says back what it is told.
    Echo(Kind),
    Module(Folder),
}

pub enum Repetition {
    None,
    Count(String),
    ForEach(String),
}

pub struct Item {
    pub sort: Sort,
    pub name: String,
    /// The folder of a module keeps its name when the call gets another.
    born: String,
    repetition: Repetition,
    arguments: Vec<(String, Kind, String)>,
    lifecycle: Vec<String>,
    depends_on: Vec<String>,
}

/// The arguments of an object, all but its name.
const ARGUMENTS: &[(&str, Kind)] = &[
    ("size", Kind::Number),
    ("flag", Kind::Truth),
    ("kind", Kind::Text),
    ("tags", Kind::Map),
    ("labels", Kind::Texts),
    ("items", Kind::Texts),
    ("anything", Kind::Map),
    ("note", Kind::Text),
    ("address", Kind::Text),
    ("secret", Kind::Text),
];

const FAULTS: &[&str] = &[
    "create_error",
    "create_partial",
    "update_error",
    "update_partial",
    "delete_error",
    "read_gone",
    "read_drift",
    "plan_warning",
    "apply_unknown",
    "plan_lie",
    "apply_lie",
];

impl Item {
    pub fn new(
        rng: &mut StdRng,
        name: String,
        names: &Names,
        given: &Names,
        earlier: &[String],
        module: Option<Folder>,
    ) -> Item {
        let kind = *Kind::ALL.choose(rng).expect("there are kinds");
        let sort = match (module, rng.random_range(0..12)) {
            (Some(module), _) => Sort::Module(module),
            (None, 0 | 1) => Sort::Local(kind),
            (None, 2 | 3) => Sort::Data(kind),
            (None, 4) => Sort::Echo(kind),
            (None, 5) => Sort::Nested,
            (None, 6) => Sort::Blocks,
            (None, _) => Sort::Object,
        };
        let repetition = match (&sort, rng.random_range(0..10)) {
            (Sort::Local(_), _) => Repetition::None,
            (_, 0 | 1) => Repetition::count(rng, given),
            (_, 2 | 3) => Repetition::for_each(rng, given),
            _ => Repetition::None,
        };
        let mut item = Item {
            sort,
            born: name.clone(),
            name,
            repetition,
            arguments: Vec::new(),
            lifecycle: Vec::new(),
            depends_on: Vec::new(),
        };
        let wanted = match &item.sort {
            Sort::Local(kind) => vec![("value".to_owned(), *kind)],
            Sort::Data(kind) | Sort::Echo(kind) => vec![("input".to_owned(), *kind)],
            Sort::Nested => [("single", Kind::Text), ("list", Kind::Texts), ("map", Kind::Map), ("set", Kind::Texts)]
                .into_iter()
                .filter(|_| rng.random_bool(0.6))
                .map(|(name, kind)| (name.to_owned(), kind))
                .collect(),
            Sort::Blocks => [("item", Kind::Text), ("rule", Kind::Texts), ("entry", Kind::Map)]
                .into_iter()
                .filter(|_| rng.random_bool(0.6))
                .map(|(name, kind)| (name.to_owned(), kind))
                .collect(),
            Sort::Module(folder) => folder.variables.iter().map(|it| (it.name.clone(), it.kind)).collect(),
            Sort::Object => ARGUMENTS
                .iter()
                .filter(|_| rng.random_bool(0.3))
                .map(|(name, kind)| ((*name).to_owned(), *kind))
                .collect(),
        };
        let inside = item.inside(names);
        for (name, kind) in wanted {
            let value = expression(rng, kind, &inside, 3);
            item.arguments.push((name, kind, value));
        }
        item.settle(rng, &inside, earlier);
        item
    }

    /// Words about its life.
    fn settle(&mut self, rng: &mut StdRng, names: &Names, earlier: &[String]) {
        if matches!(self.sort, Sort::Local(_)) {
            return;
        }
        if rng.random_bool(0.08)
            && let Some(other) = earlier.choose(rng)
        {
            self.depends_on.push(other.clone());
        }
        if matches!(self.sort, Sort::Module(_)) {
            return;
        }
        if self.managed().is_some() {
            if rng.random_bool(0.15) {
                self.lifecycle.push("create_before_destroy = true".to_owned());
            }
            if matches!(self.sort, Sort::Object) && rng.random_bool(0.12) {
                let what = pick(rng, &["[tags]", "[note, size]", "[tags[\"a\"]]", "all", "[name]"]);
                self.lifecycle.push(format!("ignore_changes = {what}"));
            }
            if rng.random_bool(0.08)
                && let Some(other) = earlier.choose(rng)
            {
                self.lifecycle.push(format!("replace_triggered_by = [{other}]"));
            }
        }
        // A condition has to refer to something.
        if rng.random_bool(0.1)
            && let Some((_, name)) = names.choose(rng)
        {
            let truth = expression(rng, Kind::Truth, names, 2);
            let message = expression(rng, Kind::Text, names, 1);
            let side = pick(rng, &["precondition", "postcondition"]);
            // Mostly they hold: a story that ends here shows nothing else.
            let way_out = if rng.random_bool(0.8) { "true" } else { "false" };
            let condition = format!("{truth} || {name} == null || {way_out}");
            self.lifecycle.push(format!(
                "{side} {{\n      condition     = {condition}\n      error_message = \"Not so: ${{{message}}}\"\n    }}"
            ));
        }
        if matches!(self.sort, Sort::Object) && rng.random_bool(0.04) {
            self.arguments.push(("faults".to_owned(), Kind::Text, format!("\"{}\"", pick(rng, FAULTS))));
        }
    }

    pub fn change(&mut self, rng: &mut StdRng, names: &Names, given: &Names) {
        let inside = self.inside(names);
        let others: Vec<&(&str, Kind)> =
            ARGUMENTS.iter().filter(|(name, _)| !self.arguments.iter().any(|(has, _, _)| has == name)).collect();
        match rng.random_range(0..8) {
            0 if !matches!(self.sort, Sort::Local(_)) => {
                self.repetition = match rng.random_range(0..3) {
                    0 => Repetition::None,
                    1 => Repetition::count(rng, given),
                    _ => Repetition::for_each(rng, given),
                };
                // What was said of `each` or of `count` means nothing any more.
                let inside = self.inside(names);
                for (_, kind, value) in &mut self.arguments {
                    if mentions(value, "each.key") || mentions(value, "each.value") || mentions(value, "count.index") {
                        *value = expression(rng, *kind, &inside, 2);
                    }
                }
                self.lifecycle.retain(|line| !line.contains("each.") && !line.contains("count."));
            }
            1 if self.managed().is_some() && !matches!(self.sort, Sort::Module(_)) => {
                if self.lifecycle.is_empty() {
                    self.lifecycle.push("create_before_destroy = true".to_owned());
                } else {
                    self.lifecycle.clear();
                }
            }
            2 if matches!(self.sort, Sort::Object) => {
                self.arguments.pop();
            }
            3 if matches!(self.sort, Sort::Object) => {
                if let Some((name, kind)) = others.choose(rng) {
                    let value = expression(rng, *kind, &inside, 3);
                    self.arguments.push(((*name).to_owned(), *kind, value));
                }
            }
            _ => {
                let count = self.arguments.len();
                if count > 0 {
                    let (_, kind, value) = &mut self.arguments[rng.random_range(0..count)];
                    *value = expression(rng, *kind, &inside, 3);
                }
                if let Sort::Module(folder) = &mut self.sort {
                    folder.change_inside(rng);
                }
            }
        }
    }

    /// Whatever refers to this address is made up anew, or left out.
    pub fn mend(&mut self, rng: &mut StdRng, address: &str, names: &Names) {
        let inside = self.inside(names);
        for (_, kind, value) in &mut self.arguments {
            if mentions(value, address) {
                *value = expression(rng, *kind, &inside, 2);
            }
        }
        self.lifecycle.retain(|line| !mentions(line, address));
        self.depends_on.retain(|line| !mentions(line, address));
    }

    /// Names that mean something inside of the block.
    fn inside(&self, names: &Names) -> Names {
        let mut names = names.clone();
        match self.repetition {
            Repetition::None => {}
            Repetition::Count(_) => names.push((Kind::Number, "count.index".to_owned())),
            Repetition::ForEach(_) => {
                names.extend([(Kind::Text, "each.key".to_owned()), (Kind::Text, "each.value".to_owned())]);
            }
        }
        names
    }

    fn type_name(&self) -> &'static str {
        match self.sort {
            Sort::Local(_) => "local",
            Sort::Object => "probe_object",
            Sort::Data(_) => "terraform_data",
            Sort::Nested => "probe_nested",
            Sort::Blocks => "probe_blocks",
            Sort::Echo(_) => "data.probe_echo",
            Sort::Module(_) => "module",
        }
    }

    pub fn address(&self) -> String {
        format!("{}.{}", self.type_name(), self.name)
    }

    /// The address, if it is an object that is made and destroyed.
    pub fn managed(&self) -> Option<String> {
        let made = matches!(self.sort, Sort::Object | Sort::Data(_) | Sort::Nested | Sort::Blocks);
        made.then(|| self.address())
    }

    pub fn is_single(&self) -> bool {
        matches!(self.repetition, Repetition::None)
    }

    pub fn folder(&self) -> String {
        format!("modules/{}", self.born)
    }

    /// What others may say to refer to it.
    pub fn names(&self) -> Names {
        let address = self.address();
        let attributes: Vec<(Kind, String)> = match &self.sort {
            Sort::Local(kind) => return vec![(*kind, address)],
            Sort::Object => {
                let always = [(Kind::Text, "id"), (Kind::Text, "address"), (Kind::Text, "name"), (Kind::Text, "note")];
                let mut known: Vec<(Kind, String)> =
                    always.iter().map(|(kind, name)| (*kind, (*name).to_owned())).collect();
                known.push((Kind::Number, "revision".to_owned()));
                let set =
                    self.arguments.iter().filter(|(name, _, _)| matches!(&**name, "size" | "flag" | "tags" | "items"));
                known.extend(set.map(|(name, kind, _)| (*kind, name.clone())));
                known
            }
            Sort::Data(kind) | Sort::Echo(kind) => vec![(*kind, "output".to_owned())],
            Sort::Nested | Sort::Blocks => vec![(Kind::Text, "id".to_owned())],
            Sort::Module(folder) => folder.outputs.iter().map(|(name, kind, _)| (*kind, name.clone())).collect(),
        };
        let mut names = Names::new();
        for (kind, attribute) in attributes {
            match &self.repetition {
                Repetition::None => names.push((kind, format!("{address}.{attribute}"))),
                Repetition::Count(_) => {
                    names.push((kind, format!("try({address}[0].{attribute}, {})", empty(kind))));
                    if kind == Kind::Text {
                        names.push((Kind::Texts, format!("{address}[*].{attribute}")));
                    }
                }
                Repetition::ForEach(_) if kind == Kind::Text => {
                    names.push((Kind::Map, format!("{{ for k, o in {address} : k => o.{attribute} }}")));
                    names.push((Kind::Texts, format!("values({address})[*].{attribute}")));
                }
                Repetition::ForEach(_) => {}
            }
        }
        if !self.is_single() {
            names.push((Kind::Number, format!("length({address})")));
        }
        names
    }

    pub fn text(&self, is_root: bool) -> String {
        let mut text = match &self.sort {
            Sort::Local(_) => {
                let value = self.arguments.first().map_or("null", |(_, _, value)| value);
                return format!("locals {{\n  {} = {value}\n}}\n", self.name);
            }
            Sort::Echo(_) => format!("data \"probe_echo\" \"{}\" {{\n", self.name),
            Sort::Module(_) => format!("module \"{}\" {{\n  source = \"./{}\"\n", self.name, self.folder()),
            _ => format!("resource \"{}\" \"{}\" {{\n", self.type_name(), self.name),
        };
        let index = match &self.repetition {
            Repetition::None => "",
            Repetition::Count(count) => {
                let _ = writeln!(text, "  count = {count}");
                "-${count.index}"
            }
            Repetition::ForEach(for_each) => {
                let _ = writeln!(text, "  for_each = {for_each}");
                "-${each.key}"
            }
        };
        // Ids are counted by name, and what is said to a provider is told apart by it: no two have the same.
        let argument = match self.sort {
            Sort::Object | Sort::Nested | Sort::Blocks => Some("name"),
            Sort::Echo(_) => Some("faults"),
            Sort::Module(_) => Some("place"),
            Sort::Data(_) | Sort::Local(_) => None,
        };
        if let Some(argument) = argument {
            let place = if is_root { "" } else { "${var.place}-" };
            let _ = writeln!(text, "  {argument} = \"{place}{}{index}\"", self.born);
        }
        for (name, _, value) in &self.arguments {
            text.push_str(&self.argument(name, value));
        }
        if !self.depends_on.is_empty() {
            let _ = writeln!(text, "  depends_on = [{}]", self.depends_on.join(", "));
        }
        if !self.lifecycle.is_empty() {
            let _ = writeln!(text, "  lifecycle {{\n    {}\n  }}", self.lifecycle.join("\n    "));
        }
        text.push_str("}\n");
        text
    }

    fn argument(&self, name: &str, value: &str) -> String {
        match (&self.sort, name) {
            (Sort::Nested, "single") => format!("  single = {{ value = {value} }}\n"),
            (Sort::Nested, "list" | "set") => format!("  {name} = [for one in {value} : {{ value = one }}]\n"),
            (Sort::Nested, "map") => format!("  map = {{ for key, one in {value} : key => {{ value = one }} }}\n"),
            (Sort::Blocks, "item") => format!("  item {{\n    value = {value}\n  }}\n"),
            (Sort::Blocks, "rule") => format!(
                "  dynamic \"rule\" {{\n    for_each = {value}\n    content {{\n      action = rule.value\n    }}\n  }}\n"
            ),
            (Sort::Blocks, "entry") => format!(
                "  dynamic \"entry\" {{\n    for_each = {value}\n    labels   = [entry.key]\n    content {{\n      value = entry.value\n    }}\n  }}\n"
            ),
            _ => format!("  {name} = {value}\n"),
        }
    }
}

fn empty(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "\"none\"",
        Kind::Number => "0",
        Kind::Truth => "false",
        Kind::Texts => "[]",
        Kind::Map => "{}",
    }
}

/// How often: mostly by what is known, since OpenTofu refuses the rest.
impl Repetition {
    fn count(rng: &mut StdRng, given: &Names) -> Repetition {
        Repetition::Count(match rng.random_range(0..3) {
            0 => rng.random_range(0..4).to_string(),
            1 => format!("{} ? 1 : 0", expression(rng, Kind::Truth, given, 1)),
            _ => format!("min(3, length({}))", expression(rng, Kind::Texts, given, 1)),
        })
    }

    fn for_each(rng: &mut StdRng, given: &Names) -> Repetition {
        Repetition::ForEach(match rng.random_range(0..2) {
            0 => format!("toset({})", expression(rng, Kind::Texts, given, 1)),
            _ => expression(rng, Kind::Map, given, 1),
        })
    }
}

impl Folder {
    /// What changes in a module that is called as before.
    fn change_inside(&mut self, rng: &mut StdRng) {
        let at = rng.random_range(0..self.items.len().max(1));
        let (names, given) = (self.names(at), self.given());
        if let Some(item) = self.items.get_mut(at) {
            item.change(rng, &names, &given);
        }
        let address = self.items.get(at).map(Item::address).unwrap_or_default();
        self.mend(rng, &address, at + 1);
    }
}
