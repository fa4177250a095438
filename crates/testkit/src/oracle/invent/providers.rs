//! Which configurations of the provider there are, and who takes which.

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use super::body::{Part, argument, block};
use super::expressions::{Kind, Names, expression};

/// What a folder can choose from.
pub struct Providers {
    /// A second one: of the root's own in the root, one that the caller passes in a module.
    pub second: bool,
    /// The keys of one that is there several times; only in the root.
    keys: Vec<&'static str>,
    region: String,
    /// What goes into its configuration and is kept nowhere.
    token: Option<String>,
}

impl Providers {
    pub fn of_root(rng: &mut StdRng) -> Providers {
        let mut providers = Providers::of_module(rng);
        if rng.random_bool(0.25) {
            providers.keys = vec!["p", "q"];
        }
        providers
    }

    pub fn of_module(rng: &mut StdRng) -> Providers {
        Providers { second: rng.random_bool(0.25), keys: Vec::new(), region: "\"south\"".to_owned(), token: None }
    }

    /// What is said in its configuration may be made of variables alone, so that objects never wait for each other in a circle.
    pub fn settle(&mut self, rng: &mut StdRng, given: &Names, ephemeral: Option<String>) {
        self.region = expression(rng, Kind::Text, given, 1);
        self.token = ephemeral;
    }

    /// One key more or less; an object whose provider is gone is a mistake that people make.
    pub fn change(&mut self, rng: &mut StdRng) {
        match self.keys.len() {
            0 => {}
            2 if rng.random_bool(0.7) => self.keys.push("r"),
            2 => self.keys.truncate(1),
            _ => self.keys = vec!["p", "q"],
        }
    }

    /// What an object may say.
    pub fn choices(&self, is_root: bool) -> Vec<String> {
        let second = self.second.then(|| if is_root { "probe.east" } else { SECOND }.to_owned());
        second.into_iter().chain(self.keys.iter().map(|key| format!("probe.by[\"{key}\"]"))).collect()
    }

    /// For an object that is there once for each key: what it is repeated over.
    pub fn repeated(&self) -> Option<String> {
        (self.keys.len() > 1).then(|| "toset([\"p\", \"q\"])".to_owned())
    }

    /// What a call of a module with these passes, of what its caller has.
    pub fn passed(&self, rng: &mut StdRng, choices: &[String]) -> Vec<(String, String)> {
        let mut choice = || choices.choose(rng).cloned().unwrap_or_else(|| "probe".to_owned());
        let (first, second) = (choice(), choice());
        let mut passed = Vec::new();
        if self.second || !choices.is_empty() {
            passed.push(("probe".to_owned(), first));
        }
        if self.second {
            passed.push((SECOND.to_owned(), second));
        }
        passed
    }

    /// The blocks of the root; none where the usual one is enough.
    pub fn root_parts(&self) -> Vec<Part> {
        let ids = || argument("ids", "\"counted\"");
        let mut parts = Vec::new();
        if self.second {
            let mut inner = vec![argument("alias", "\"east\""), ids(), argument("region", self.region.clone())];
            inner.extend(self.token.clone().map(|token| argument("token", token)));
            parts.push(block("provider", ["probe"], inner));
        }
        if !self.keys.is_empty() {
            let keys: Vec<String> = self.keys.iter().map(|key| format!("\"{key}\"")).collect();
            let each = argument("for_each", format!("toset([{}])", keys.join(", ")));
            let inner = vec![argument("alias", "\"by\""), each, ids(), argument("region", "\"in-${each.key}\"")];
            parts.push(block("provider", ["probe"], inner));
        }
        if !parts.is_empty() {
            parts.insert(0, block("provider", ["probe"], vec![ids()]));
        }
        parts
    }

    /// What a module says of what it wants.
    pub fn module_part(&self) -> Part {
        let aliases = if self.second { format!(", configuration_aliases = [{SECOND}]") } else { String::new() };
        let probe = Part::Word("probe", format!("{{ source = \"landform/probe\"{aliases} }}"));
        block("terraform", [], vec![block("required_providers", [], vec![probe])])
    }
}

const SECOND: &str = "probe.other";
