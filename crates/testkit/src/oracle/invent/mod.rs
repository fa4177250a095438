//! Stories that nobody has thought of: a configuration made up at random, and what people do to one over time. The same
//! seed makes the same stories.

mod body;
mod expressions;
mod items;
mod providers;
mod variables;
mod writing;

use std::fmt::Write;

use anyhow::Result;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use self::body::{Part, argument, block, in_json};
use self::expressions::{Kind, Names, expression};
use self::items::{Item, Repetition, Scope, Sort, condition};
use self::providers::Providers;
use self::variables::Variable;
use super::Case;

/// So many stories; each is known by its own seed.
pub fn invent(seed: u64, count: u64) -> Result<Vec<Case>> {
    (seed..seed + count).map(|seed| Case::parse(&format!("invented-{seed}"), &story(seed))).collect()
}

/// A folder of the configuration: the root, or a module.
struct Folder {
    variables: Vec<Variable>,
    /// In the order in which they may refer to each other: to those before them.
    items: Vec<Item>,
    outputs: Vec<(String, Kind, String)>,
    checks: Vec<Part>,
    /// With the address that each is about.
    imports: Vec<(String, Part)>,
    /// `moved` and `removed`, which stay when what they are about changes.
    notes: Vec<Part>,
    /// Lines of the ledger: objects that are there before anybody has made them.
    found: Vec<String>,
    /// For names that nothing else has.
    next: usize,
    providers: Providers,
    traits: Traits,
}

#[derive(Clone, Copy)]
struct Traits {
    is_root: bool,
    /// How many levels of modules there may be below.
    levels: u32,
    /// Whether the provider has nested attributes.
    nested: bool,
    /// Whether some of it is written in JSON.
    in_json: bool,
}

fn story(seed: u64) -> String {
    let mut rng = StdRng::seed_from_u64(seed);
    let rng = &mut rng;
    // A module has to name its providers, and the name of the older probe is another.
    let with_modules = rng.random_bool(0.7);
    let levels = if with_modules { 2 } else { 0 };
    let in_json = rng.random_bool(0.2);
    let mut root = Folder::new(rng, Traits { is_root: true, levels, nested: with_modules, in_json });
    let mut text = String::from("Made up at random.\nproviders: probe\nexact: yes\n");
    if !with_modules {
        text.push_str("protocols: 5\n");
    }
    if rng.random_bool(0.25) {
        text.push_str("streams: yes\n");
    }
    let steps = rng.random_range(2..6);
    for number in 1..=steps {
        if number > 1 {
            for _ in 0..rng.random_range(1..4) {
                root.change(rng);
            }
        }
        if number > 1 && rng.random_bool(0.15) {
            let command = root.command(rng);
            let _ = write!(text, "\n=== command{number} $ {command}\n");
        }
        let flags = format!("{}{}", variables::flag(&root.variables), root.flags(rng, number));
        let _ = write!(text, "\n=== step{number}{flags}\n{}{}", root.files(""), variables::files(&root.variables));
        if number == 1 {
            text.push_str(expressions::FILES);
        }
        let found = std::mem::take(&mut root.found);
        if !found.is_empty() {
            let _ = write!(text, "+++ probe.ledger\n{}", found.concat());
        }
    }
    let _ = write!(text, "\n=== destroy -destroy{}\n", variables::flag(&root.variables));
    text
}

impl Folder {
    fn new(rng: &mut StdRng, traits: Traits) -> Folder {
        let mut folder = Folder {
            variables: Vec::new(),
            items: Vec::new(),
            outputs: Vec::new(),
            checks: Vec::new(),
            imports: Vec::new(),
            notes: Vec::new(),
            found: Vec::new(),
            next: 1,
            providers: if traits.is_root { Providers::of_root(rng) } else { Providers::of_module(rng) },
            traits,
        };
        for number in 1..=rng.random_range(1..4) {
            folder.variables.push(Variable::new(rng, format!("v{number}"), traits.is_root));
        }
        if traits.is_root && rng.random_bool(0.3) {
            folder.variables.push(Variable::ephemeral(rng, "passing".to_owned()));
        }
        let passing = folder.ephemeral().first().map(|(_, name)| name.clone());
        let given = folder.given();
        folder.providers.settle(rng, &given, passing);
        for _ in 0..rng.random_range(1..6) {
            folder.add_item(rng);
        }
        for _ in 0..rng.random_range(1..4) {
            folder.add_output(rng);
        }
        if rng.random_bool(0.15) {
            folder.add_check(rng);
        }
        folder
    }

    /// What the item at this place may refer to.
    fn names(&self, before: usize) -> Names {
        let mut names = self.given();
        names.extend(self.items.iter().take(before).flat_map(Item::names));
        names
    }

    /// What is known before anything is made.
    fn given(&self) -> Names {
        self.variables.iter().filter(|variable| !variable.ephemeral).flat_map(Variable::names).collect()
    }

    fn ephemeral(&self) -> Names {
        self.variables.iter().filter(|variable| variable.ephemeral).flat_map(Variable::names).collect()
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("o{}", self.next - 1)
    }

    fn add_item(&mut self, rng: &mut StdRng) {
        let Traits { is_root, levels, nested, in_json } = self.traits;
        let name = self.name();
        let scope = Scope {
            names: self.names(self.items.len()),
            given: self.given(),
            ephemeral: self.ephemeral(),
            earlier: self.items.iter().filter_map(Item::managed).collect(),
            providers: self.providers.choices(is_root),
            repeated: self.providers.repeated(),
            nested,
            in_json,
        };
        let below = Traits { is_root: false, levels: levels.saturating_sub(1), nested, in_json: rng.random_bool(0.1) };
        let module = (levels > 0 && rng.random_bool(0.15)).then(|| Folder::new(rng, below));
        let mut item = Item::new(rng, name, &scope, module);
        if is_root && matches!(item.sort, Sort::Object) && item.provider.is_none() && rng.random_bool(0.15) {
            self.import(rng, &mut item);
        }
        self.items.push(item);
    }

    /// The object is there already, and is taken over.
    fn import(&mut self, rng: &mut StdRng, item: &mut Item) {
        let (address, name) = (item.address(), item.born.clone());
        let (keys, part) = match rng.random_bool(0.3) {
            true => {
                item.repetition = Repetition::ForEach("toset([\"a\", \"b\"])".to_owned());
                let each = argument("for_each", "toset([\"a\", \"b\"])");
                let id = argument("id", format!("\"{name}-${{each.value}}-1\""));
                (&["-a", "-b"][..], vec![each, Part::Word("to", format!("{address}[each.key]")), id])
            }
            false => {
                item.repetition = Repetition::None;
                let id = argument("id", format!("\"{name}-1\""));
                (&[""][..], vec![Part::Word("to", address.clone()), id])
            }
        };
        item.forget_repetition(rng, &self.names(self.items.len()));
        for key in keys {
            let (name, size) = (format!("{name}{key}"), rng.random_range(0..4));
            self.found.push(format!(
                "{{\"Create\":{{\"id\":\"{name}-1\",\"kind\":\"probe_object\",\"attributes\":{{\"id\":\"{name}-1\",\"name\":\"{name}\",\
                 \"size\":{size},\"region\":\"here\",\"revision\":1,\"result\":{{\"value\":\"nothing\",\"type\":\"string\"}},\
                 \"note\":\"as usual\",\"address\":\"x\",\"parts\":[\"p\"]}}}}}}\n"
            ));
        }
        self.imports.push((address, block("import", [], part)));
    }

    fn add_output(&mut self, rng: &mut StdRng) {
        let kind = *Kind::ALL.choose(rng).expect("there are kinds");
        let name = format!("out{}", self.next);
        self.next += 1;
        let value = expression(rng, kind, &self.names(self.items.len()), 3);
        self.outputs.push((name, kind, value));
    }

    fn add_check(&mut self, rng: &mut StdRng) {
        let name = self.name();
        let mut names = self.names(self.items.len());
        let mut parts = Vec::new();
        if rng.random_bool(0.4) {
            let fault = expressions::pick(rng, &["", "", " read_error"]);
            let input = argument("input", expression(rng, Kind::Text, &names, 2));
            let told = argument("faults", format!("\"{name}{fault}\""));
            parts.push(block("data", ["probe_echo", &name], vec![input, told]));
            names.push((Kind::Text, format!("data.probe_echo.{name}.output")));
        }
        parts.extend(condition(rng, "assert", &names));
        if parts.iter().any(|part| matches!(part, Part::Block("assert", ..))) {
            self.checks.push(block("check", [&name], parts));
        }
    }

    /// One of the things that people do to a configuration.
    fn change(&mut self, rng: &mut StdRng) {
        let at = rng.random_range(0..self.items.len().max(1));
        match rng.random_range(0..14) {
            0 | 1 => self.add_item(rng),
            2 | 3 => self.remove(rng, at),
            4 => self.rename(rng, at),
            5 => self.add_output(rng),
            6 => {
                self.outputs.pop();
            }
            7 => {
                let at = rng.random_range(0..self.variables.len().max(1));
                if let Some(variable) = self.variables.get_mut(at) {
                    variable.change(rng);
                }
            }
            8 if rng.random_bool(0.4) => self.add_check(rng),
            8 if rng.random_bool(0.3) => self.providers.change(rng),
            _ => {
                let (names, given) = (self.names(at), self.given());
                if let Some(item) = self.items.get_mut(at) {
                    item.change(rng, &names, &given);
                }
                let address = self.items.get(at).map(Item::address).unwrap_or_default();
                self.mend(rng, &address, at + 1);
            }
        }
    }

    fn remove(&mut self, rng: &mut StdRng, at: usize) {
        if self.items.len() < 2 {
            return;
        }
        let gone = self.items.remove(at);
        if rng.random_bool(0.3) && !matches!(gone.sort, Sort::Local(_) | Sort::Echo(_)) {
            let lifecycle = block("lifecycle", [], vec![argument("destroy", rng.random_bool(0.5).to_string())]);
            self.notes.push(block("removed", [], vec![Part::Word("from", gone.address()), lifecycle]));
        }
        self.mend(rng, &gone.address(), at);
    }

    /// The object goes by another name, and mostly that is said.
    fn rename(&mut self, rng: &mut StdRng, at: usize) {
        let name = self.name();
        let Some(item) = self.items.get_mut(at) else { return };
        let before = item.address();
        item.name = name;
        let after = item.address();
        if !matches!(item.sort, Sort::Local(_) | Sort::Echo(_)) && rng.random_bool(0.8) {
            self.notes.push(block("moved", [], vec![Part::Word("from", before.clone()), Part::Word("to", after)]));
        }
        self.mend(rng, &before, at + 1);
    }

    /// Whatever refers to this address is made up anew, or left out.
    fn mend(&mut self, rng: &mut StdRng, address: &str, from: usize) {
        for at in from..self.items.len() {
            let names = self.names(at);
            self.items[at].mend(rng, address, &names);
        }
        let names = self.names(self.items.len());
        for (_, kind, value) in &mut self.outputs {
            if mentions(value, address) {
                *value = expression(rng, *kind, &names, 2);
            }
        }
        self.checks.retain(|check| !mentions(&check.text(), address));
        self.imports.retain(|(about, _)| about != address);
    }

    fn flags(&self, rng: &mut StdRng, number: u32) -> String {
        if number == 1 {
            return String::new();
        }
        match rng.random_range(0..12) {
            0 => " -refresh=false".to_owned(),
            1 => " -refresh-only".to_owned(),
            2 => self.instance(rng).map_or(String::new(), |address| format!(" -replace={address}")),
            3 => self
                .variables
                .iter()
                .find(|it| it.kind == Kind::Number)
                .map_or(String::new(), |variable| format!(" -var={}={}", variable.name, rng.random_range(0..4))),
            _ => String::new(),
        }
    }

    fn command(&self, rng: &mut StdRng) -> String {
        let address = self.instance(rng).unwrap_or_else(|| "probe_object.none".to_owned());
        match rng.random_range(0..6) {
            0 => format!("state rm -no-color {address}"),
            1 => format!("taint -no-color {address}"),
            2 => "state list".to_owned(),
            3 => format!("state show -no-color {address}"),
            4 => "validate -no-color".to_owned(),
            _ => "output -no-color".to_owned(),
        }
    }

    /// The address of some object that is there once.
    fn instance(&self, rng: &mut StdRng) -> Option<String> {
        let single: Vec<String> = self.items.iter().filter(|item| item.is_single()).filter_map(Item::managed).collect();
        single.choose(rng).cloned()
    }

    /// All files of this folder and of its modules, as a story writes them.
    fn files(&self, folder: &str) -> String {
        let Traits { is_root, in_json: has_json, .. } = self.traits;
        let (mut native, mut json) = (Vec::new(), Vec::new());
        if is_root {
            native.extend(self.providers.root_parts());
        } else {
            native.push(block("variable", ["place"], vec![Part::Word("type", "string".to_owned())]));
            native.push(self.providers.module_part());
        }
        for (number, variable) in self.variables.iter().enumerate() {
            let to = if has_json && number == 0 { &mut json } else { &mut native };
            to.push(variable.part(is_root));
        }
        for item in &self.items {
            let to = if item.in_json { &mut json } else { &mut native };
            to.push(item.part(is_root));
        }
        let beside = if has_json { &mut json } else { &mut native };
        for (name, _, value) in &self.outputs {
            let mut parts = vec![argument("value", value.clone())];
            if rest_is_sensitive(self, value) {
                parts.push(argument("sensitive", "true"));
            }
            beside.push(block("output", [name], parts));
        }
        beside.extend(self.checks.iter().chain(&self.notes).cloned());
        beside.extend(self.imports.iter().map(|(_, part)| part.clone()));
        let native: String = native.iter().map(Part::text).collect();
        let mut text = format!("--- {folder}main.tf\n{native}");
        if has_json {
            let _ = writeln!(text, "--- {folder}more.tf.json\n{:#}", in_json(&json));
        }
        for item in &self.items {
            if let Sort::Module(module) = &item.sort {
                text.push_str(&module.files(&format!("{folder}{}/", item.folder())));
            }
        }
        text
    }
}

/// Whether some sensitive value may be in it. Every story would fail at its outputs otherwise.
fn rest_is_sensitive(folder: &Folder, value: &str) -> bool {
    folder.variables.iter().any(|variable| variable.sensitive) || value.contains("module.")
}

/// Whether an expression refers to an address.
fn mentions(text: &str, address: &str) -> bool {
    text.match_indices(address).any(|(at, _)| {
        let next = text[at + address.len()..].chars().next();
        next.is_none_or(|next| !next.is_alphanumeric() && next != '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_one_story_and_another_seed_another_one() {
        assert_eq!(story(7), story(7));
        assert_ne!(story(7), story(8));
        assert_eq!(invent(1, 20).unwrap().len(), 20);
    }

    #[test]
    fn an_address_is_not_the_beginning_of_a_longer_one() {
        assert!(mentions("upper(local.o1)", "local.o1"));
        assert!(!mentions("upper(local.o12)", "local.o1"));
    }
}
