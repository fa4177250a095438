//! The blocks of an invented configuration, and what may be said about each.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::body::{Part, argument, block};
use super::expressions::{Kind, Names, expression, pick, written};
use super::{Folder, mentions};

pub enum Sort {
    Local(Kind),
    Object,
    /// A `terraform_data`, with what it holds.
    Data(Kind),
    Nested,
    Blocks,
    /// With an argument that no state holds.
    WriteOnly,
    /// A data source that says back what it is told.
    Echo(Kind),
    Module(Box<Folder>),
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
    pub born: String,
    pub repetition: Repetition,
    pub arguments: Vec<(String, Kind, String)>,
    pub lifecycle: Vec<Part>,
    pub depends_on: Vec<String>,
    /// Which configuration of the provider it has, or passes.
    pub provider: Option<String>,
    pub passed: Vec<(String, String)>,
    pub in_json: bool,
}

/// What there is to refer to, at the place of a new item.
pub struct Scope {
    pub names: Names,
    /// What is known before anything is made.
    pub given: Names,
    /// What only write-only arguments may refer to.
    pub ephemeral: Names,
    /// Objects that are made before.
    pub earlier: Vec<String>,
    pub providers: Vec<String>,
    /// What to repeat an object over that has one provider for each.
    pub repeated: Option<String>,
    pub nested: bool,
    pub in_json: bool,
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

const NESTED: &[(&str, Kind)] = &[
    ("single", Kind::Text),
    ("list", Kind::Texts),
    ("map", Kind::Map),
    ("set", Kind::Texts),
    ("either", Kind::Texts),
    ("deep", Kind::Texts),
];

const BLOCKS: &[(&str, Kind)] = &[
    ("item", Kind::Text),
    ("single", Kind::Truth),
    ("group", Kind::Text),
    ("rule", Kind::Texts),
    ("rules", Kind::Texts),
    ("entry", Kind::Map),
];

const FAULTS: &[&str] = &[
    "validate_error",
    "create_error",
    "create_partial",
    "create_panic",
    "create_warning",
    "update_error",
    "update_partial",
    "delete_error",
    "delete_warning",
    "read_error",
    "read_gone",
    "read_drift",
    "plan_error",
    "plan_warning",
    "plan_replace",
    "apply_unknown",
    "plan_lie",
    "apply_lie",
];

const FAULTS_OF_DATA: &[&str] = &["read_error", "read_warning", "read_panic", "validate_error"];

fn some(rng: &mut StdRng, of: &[(&str, Kind)], chance: f64) -> Vec<(String, Kind)> {
    of.iter().filter(|_| rng.random_bool(chance)).map(|(name, kind)| ((*name).to_owned(), *kind)).collect()
}

impl Item {
    pub fn new(rng: &mut StdRng, name: String, scope: &Scope, module: Option<Folder>) -> Item {
        let kind = *Kind::ALL.choose(rng).expect("there are kinds");
        let sort = match (module, rng.random_range(0..13)) {
            (Some(module), _) => Sort::Module(Box::new(module)),
            (None, 0 | 1) => Sort::Local(kind),
            (None, 2 | 3) => Sort::Data(kind),
            (None, 4) => Sort::Echo(kind),
            (None, 5) if scope.nested => Sort::Nested,
            (None, 6) => Sort::Blocks,
            (None, 7) if rng.random_bool(0.5) => Sort::WriteOnly,
            (None, _) => Sort::Object,
        };
        let repetition = match (&sort, rng.random_range(0..10)) {
            (Sort::Local(_), _) => Repetition::None,
            (_, 0 | 1) => Repetition::count(rng, &scope.given),
            (_, 2 | 3) => Repetition::for_each(rng, &scope.given),
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
            provider: None,
            passed: Vec::new(),
            in_json: scope.in_json && rng.random_bool(0.5),
        };
        item.choose_provider(rng, scope);
        let wanted = match &item.sort {
            Sort::Local(kind) => vec![("value".to_owned(), *kind)],
            Sort::Data(kind) => {
                let triggers = *Kind::ALL.choose(rng).expect("there are kinds");
                let mut wanted = vec![("input".to_owned(), *kind)];
                wanted.extend(rng.random_bool(0.3).then(|| ("triggers_replace".to_owned(), triggers)));
                wanted
            }
            Sort::Echo(kind) => vec![("input".to_owned(), *kind)],
            Sort::Nested => some(rng, NESTED, 0.5),
            Sort::Blocks => some(rng, BLOCKS, 0.5),
            Sort::WriteOnly => vec![("password".to_owned(), Kind::Text), ("password_version".to_owned(), Kind::Number)],
            Sort::Module(folder) => folder.variables.iter().map(|it| (it.name.clone(), it.kind)).collect(),
            Sort::Object => some(rng, ARGUMENTS, 0.3),
        };
        let inside = item.inside(&scope.names);
        for (name, kind) in wanted {
            let value = match name.as_str() {
                "password" => {
                    let names: Names = inside.iter().chain(&scope.ephemeral).chain(&scope.ephemeral).cloned().collect();
                    expression(rng, kind, &names, 2)
                }
                _ if item.may_be_left_out(&name) && rng.random_bool(0.5) => "null".to_owned(),
                // Brackets and JSON want a value that ends where it ends.
                _ if item.in_json || !matches!(item.sort, Sort::Object | Sort::Local(_) | Sort::Echo(_)) => {
                    expression(rng, kind, &inside, 3)
                }
                _ => written(rng, kind, &inside),
            };
            item.arguments.push((name, kind, value));
        }
        item.settle(rng, &inside, &scope.earlier);
        item
    }

    fn may_be_left_out(&self, name: &str) -> bool {
        match &self.sort {
            Sort::Module(folder) => folder.variables.iter().any(|it| it.name == name && it.may_be_left_out()),
            _ => false,
        }
    }

    fn choose_provider(&mut self, rng: &mut StdRng, scope: &Scope) {
        match (&self.sort, &scope.repeated) {
            (Sort::Local(_) | Sort::Data(_), _) => {}
            (Sort::Module(folder), Some(keys)) if rng.random_bool(0.2) => {
                let each = vec!["probe.by[each.key]".to_owned()];
                self.passed = folder.providers.passed(rng, &each);
                self.repetition = Repetition::ForEach(keys.clone());
            }
            (Sort::Module(folder), _) => self.passed = folder.providers.passed(rng, &scope.providers),
            (_, Some(keys)) if rng.random_bool(0.2) => {
                self.provider = Some("probe.by[each.key]".to_owned());
                self.repetition = Repetition::ForEach(keys.clone());
            }
            _ if rng.random_bool(0.4) => self.provider = scope.providers.choose(rng).cloned(),
            _ => {}
        }
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
                self.lifecycle.push(argument("create_before_destroy", "true"));
            }
            if matches!(self.sort, Sort::Object) && rng.random_bool(0.12) {
                let what =
                    ["tags", "note, size", "tags[\"a\"]", "all", "name"].choose(rng).copied().unwrap_or_default();
                self.lifecycle.push(match what {
                    "all" => Part::Word("ignore_changes", what.to_owned()),
                    what => Part::Words("ignore_changes", what.split(", ").map(str::to_owned).collect()),
                });
            }
            if rng.random_bool(0.08)
                && let Some(other) = earlier.choose(rng)
            {
                self.lifecycle.push(Part::Words("replace_triggered_by", vec![other.clone()]));
            }
        }
        if rng.random_bool(0.1) {
            let side = pick(rng, &["precondition", "postcondition"]);
            self.lifecycle.extend(condition(rng, side, names));
        }
        let (faults, chance) = match self.sort {
            Sort::Object => (FAULTS, 0.05),
            Sort::Echo(_) => (FAULTS_OF_DATA, 0.15),
            _ => return,
        };
        let fault = pick(rng, faults);
        // Of several warnings alike it is drawn by lot which one is shown.
        if rng.random_bool(chance) && (self.is_single() || !fault.ends_with("_warning")) {
            let words = if matches!(self.sort, Sort::Object) { format!("\"{fault}\"") } else { fault.to_owned() };
            self.arguments.push(("faults".to_owned(), Kind::Text, words));
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
                self.forget_repetition(rng, names);
            }
            1 if self.managed().is_some() && !matches!(self.sort, Sort::Module(_)) => {
                if self.lifecycle.is_empty() {
                    self.lifecycle.push(argument("create_before_destroy", "true"));
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
                    let (name, kind, value) = &mut self.arguments[rng.random_range(0..count)];
                    if name != "faults" {
                        *value = expression(rng, *kind, &inside, 3);
                    }
                }
                if let Sort::Module(folder) = &mut self.sort {
                    folder.change_inside(rng);
                }
            }
        }
    }

    /// What was said of `each` or of `count` means nothing any more.
    pub fn forget_repetition(&mut self, rng: &mut StdRng, names: &Names) {
        let inside = self.inside(names);
        let repeats = |text: &str| ["each.key", "each.value", "count.index"].iter().any(|it| mentions(text, it));
        for (_, kind, value) in &mut self.arguments {
            if repeats(value) {
                *value = expression(rng, *kind, &inside, 2);
            }
        }
        self.lifecycle.retain(|part| !repeats(&part.text()));
        self.provider = self.provider.take().filter(|it| !repeats(it));
        for (_, passed) in &mut self.passed {
            if repeats(passed) {
                *passed = "probe".to_owned();
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
        self.lifecycle.retain(|part| !mentions(&part.text(), address));
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

    pub fn type_name(&self) -> &'static str {
        match self.sort {
            Sort::Local(_) => "local",
            Sort::Object => "probe_object",
            Sort::Data(_) => "terraform_data",
            Sort::Nested => "probe_nested",
            Sort::Blocks => "probe_blocks",
            Sort::WriteOnly => "probe_write_only",
            Sort::Echo(_) => "data.probe_echo",
            Sort::Module(_) => "module",
        }
    }

    pub fn address(&self) -> String {
        format!("{}.{}", self.type_name(), self.name)
    }

    /// The address, if it is an object that is made and destroyed.
    pub fn managed(&self) -> Option<String> {
        let made = !matches!(self.sort, Sort::Local(_) | Sort::Echo(_) | Sort::Module(_));
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
            Sort::WriteOnly => vec![(Kind::Text, "fingerprint".to_owned())],
            Sort::Nested => {
                let list = self.arguments.iter().any(|(name, _, _)| name == "list");
                let serials = list.then(|| (Kind::Texts, "list[*].serial".to_owned()));
                serials.into_iter().chain([(Kind::Text, "id".to_owned())]).collect()
            }
            Sort::Blocks => vec![(Kind::Text, "id".to_owned()), (Kind::Texts, "item[*].serial".to_owned())],
            Sort::Module(folder) => folder.outputs.iter().map(|(name, kind, _)| (*kind, name.clone())).collect(),
        };
        let mut names = Names::new();
        for (kind, attribute) in attributes {
            match &self.repetition {
                Repetition::None => names.push((kind, format!("{address}.{attribute}"))),
                Repetition::Count(_) => {
                    names.push((kind, format!("try({address}[0].{attribute}, {})", kind.empty())));
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
}

/// A condition that refers to something, as it has to.
pub fn condition(rng: &mut StdRng, side: &'static str, names: &Names) -> Option<Part> {
    let (_, name) = names.choose(rng)?;
    let truth = expression(rng, Kind::Truth, names, 2);
    let message = expression(rng, Kind::Text, names, 1);
    // Mostly they hold: a story that ends here shows nothing else.
    let way_out = if rng.random_bool(0.8) { "true" } else { "false" };
    let condition = format!("{truth} || {name} == null || {way_out}");
    let parts =
        vec![argument("condition", condition), argument("error_message", format!("\"Not so: ${{{message}}}\""))];
    Some(block(side, [], parts))
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
