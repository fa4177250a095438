//! Stories that nobody has thought of: a configuration made up at random, and what people do to one over time. The same
//! seed makes the same stories.

mod expressions;
mod items;

use std::fmt::Write;

use anyhow::Result;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use self::expressions::{Kind, Names, expression, literal};
use self::items::{Item, Sort};
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
    /// Blocks beside those: `moved` and the like.
    notes: Vec<String>,
    /// For names that nothing else has.
    next: usize,
    /// Whether it may call modules.
    calls_modules: bool,
    is_root: bool,
}

struct Variable {
    name: String,
    kind: Kind,
    /// A default for the root, and what is given for a module.
    value: String,
    sensitive: bool,
}

fn story(seed: u64) -> String {
    let mut rng = StdRng::seed_from_u64(seed);
    let rng = &mut rng;
    // A module has to name its providers, and the name of the older probe is another.
    let with_modules = rng.random_bool(0.6);
    let mut root = Folder::new(rng, with_modules);
    root.is_root = true;
    let mut text = String::from("Made up at random.\nproviders: probe\nexact: yes\n");
    if !with_modules {
        text.push_str("protocols: 5\n");
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
        let flags = root.flags(rng, number);
        let _ = write!(text, "\n=== step{number}{flags}\n{}", root.files(""));
    }
    text.push_str("\n=== destroy -destroy\n");
    text
}

impl Folder {
    fn new(rng: &mut StdRng, calls_modules: bool) -> Folder {
        let mut folder = Folder {
            variables: Vec::new(),
            items: Vec::new(),
            outputs: Vec::new(),
            notes: Vec::new(),
            next: 1,
            calls_modules,
            is_root: false,
        };
        for number in 1..=rng.random_range(1..4) {
            let kind = *Kind::ALL.choose(rng).expect("there are kinds");
            let value = literal(rng, kind);
            folder.variables.push(Variable {
                name: format!("v{number}"),
                kind,
                value,
                sensitive: rng.random_bool(0.1),
            });
        }
        for _ in 0..rng.random_range(1..6) {
            folder.add_item(rng);
        }
        for _ in 0..rng.random_range(1..4) {
            folder.add_output(rng);
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
        self.variables.iter().map(|variable| (variable.kind, format!("var.{}", variable.name))).collect()
    }

    fn add_item(&mut self, rng: &mut StdRng) {
        let name = format!("o{}", self.next);
        self.next += 1;
        let names = self.names(self.items.len());
        let earlier: Vec<String> = self.items.iter().filter_map(Item::managed).collect();
        let module = (self.calls_modules && rng.random_bool(0.15)).then(|| Folder::new(rng, false));
        self.items.push(Item::new(rng, name, &names, &self.given(), &earlier, module));
    }

    fn add_output(&mut self, rng: &mut StdRng) {
        let kind = *Kind::ALL.choose(rng).expect("there are kinds");
        let name = format!("out{}", self.next);
        self.next += 1;
        let value = expression(rng, kind, &self.names(self.items.len()), 3);
        self.outputs.push((name, kind, value));
    }

    /// One of the things that people do to a configuration.
    fn change(&mut self, rng: &mut StdRng) {
        let at = rng.random_range(0..self.items.len().max(1));
        match rng.random_range(0..12) {
            0 | 1 => self.add_item(rng),
            2 | 3 => self.remove(rng, at),
            4 => self.rename(rng, at),
            5 => self.add_output(rng),
            6 => {
                self.outputs.pop();
            }
            7 => {
                if let Some(variable) = self.variables.last_mut() {
                    variable.value = literal(rng, variable.kind);
                }
            }
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
        if rng.random_bool(0.2) && gone.managed().is_some() {
            let destroy = rng.random_bool(0.5);
            self.notes.push(format!(
                "removed {{\n  from = {}\n  lifecycle {{\n    destroy = {destroy}\n  }}\n}}\n",
                gone.address()
            ));
        }
        self.mend(rng, &gone.address(), at);
    }

    /// The object goes by another name, and mostly that is said.
    fn rename(&mut self, rng: &mut StdRng, at: usize) {
        let name = format!("o{}", self.next);
        self.next += 1;
        let Some(item) = self.items.get_mut(at) else { return };
        let before = item.address();
        item.name = name;
        let after = item.address();
        if !matches!(item.sort, Sort::Local(_) | Sort::Echo(_)) && rng.random_bool(0.8) {
            self.notes.push(format!("moved {{\n  from = {before}\n  to   = {after}\n}}\n"));
        }
        self.mend(rng, &before, at + 1);
    }

    /// Whatever refers to this address is made up anew.
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
        match rng.random_range(0..5) {
            0 => format!("state rm -no-color {address}"),
            1 => format!("taint -no-color {address}"),
            2 => "state list".to_owned(),
            3 => format!("state show -no-color {address}"),
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
        let mut text = format!("--- {folder}main.tf\n");
        if !self.is_root {
            text.push_str("variable \"place\" {\n  type = string\n}\n");
            text.push_str("terraform {\n  required_providers {\n    probe = { source = \"landform/probe\" }\n  }\n}\n");
        }
        for Variable { name, kind, value, sensitive } in &self.variables {
            let more = if *sensitive { "\n  sensitive = true" } else { "" };
            // What a module is given is not its default.
            let default = if self.is_root { format!("\n  default = {value}") } else { String::new() };
            let _ = write!(text, "variable \"{name}\" {{\n  type = {}{default}{more}\n}}\n", kind.constraint());
        }
        for item in &self.items {
            text.push_str(&item.text(self.is_root));
        }
        for (name, _, value) in &self.outputs {
            let sensitive = if rest_is_sensitive(self, value) { "\n  sensitive = true" } else { "" };
            let _ = write!(text, "output \"{name}\" {{\n  value = {value}{sensitive}\n}}\n");
        }
        for note in &self.notes {
            text.push_str(note);
        }
        for item in &self.items {
            if let Sort::Module(module) = &item.sort {
                text.push_str(&module.files(&format!("{}/", item.folder())));
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
