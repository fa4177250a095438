//! Values that a provider generates differ from run to run: ids, timestamps. Each gets a symbol where it first
//! appears, and is shown as that symbol wherever it flows, so that a flow into the wrong place is still a difference.

use std::collections::HashMap;

use landform_protocol::{AttributeKind, Block};
use serde_json::Value as Json;

/// Shorter texts (a day, an hour) are recognised in their own attribute only: elsewhere they may be anything.
const TELLING_LENGTH: usize = 8;

#[derive(Debug, Default)]
pub struct Symbols {
    /// By object, attribute and value.
    own: HashMap<(usize, String, String), String>,
    /// How many values an attribute of an object has had.
    minted: HashMap<(usize, String), usize>,
    /// Telling texts, the object that they came from, and their symbols; the latest last.
    telling: Vec<(String, usize, String)>,
}

impl Symbols {
    /// The value at this place is new: from here on it is shown as what `name` makes of the value's number.
    pub fn mint(&mut self, object: usize, path: &str, leaf: &Json, name: impl FnOnce(usize) -> String) {
        let number = self.minted.entry((object, path.to_owned())).or_default();
        *number += 1;
        let (symbol, text) = (name(*number), text(leaf));
        self.own.insert((object, path.to_owned(), text.clone()), symbol.clone());
        if text.len() >= TELLING_LENGTH {
            self.telling.push((text, object, symbol));
        }
    }

    pub fn knows(&self, object: usize, path: &str, leaf: &Json) -> bool {
        self.own.contains_key(&(object, path.to_owned(), text(leaf)))
    }

    /// The same JSON, in which generated values are symbols. `path` is its place in the object.
    pub fn apply(&self, object: usize, path: &str, json: &Json) -> Json {
        match json {
            Json::Object(map) => {
                map.iter().map(|(name, inner)| (name.clone(), self.apply(object, &join(path, name), inner))).collect()
            }
            Json::Array(elements) => elements.iter().map(|inner| self.apply(object, path, inner)).collect(),
            Json::String(_) | Json::Number(_) => self.leaf(object, path, json),
            Json::Null | Json::Bool(_) => json.clone(),
        }
    }

    fn leaf(&self, object: usize, path: &str, leaf: &Json) -> Json {
        let text = text(leaf);
        if let Some(symbol) = self.own.get(&(object, path.to_owned(), text.clone())) {
            return Json::String(symbol.clone());
        }
        // Two objects may have got the same timestamp; an object's own values go first, then the latest.
        let mut known: Vec<_> = self.telling.iter().rev().collect();
        known.sort_by_key(|(_, of, _)| *of != object);
        if let Some((_, _, symbol)) = known.iter().find(|(known, _, _)| *known == text) {
            return Json::String(symbol.clone());
        }
        let Json::String(text) = leaf else { return leaf.clone() };
        let mut text = text.clone();
        known.sort_by_key(|(known, _, _)| std::cmp::Reverse(known.len()));
        for (known, _, symbol) in known {
            if text.contains(known.as_str()) {
                text = text.replace(known.as_str(), symbol);
            }
        }
        Json::String(text)
    }
}

fn text(leaf: &Json) -> String {
    match leaf {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The texts and numbers of a value with their places. Positions in lists and sets are no part of a place.
pub fn leaves(json: &Json) -> Vec<(String, Json)> {
    fn collect(path: &str, json: &Json, into: &mut Vec<(String, Json)>) {
        match json {
            Json::Object(map) => map.iter().for_each(|(name, inner)| collect(&join(path, name), inner, into)),
            Json::Array(elements) => elements.iter().for_each(|inner| collect(path, inner, into)),
            Json::String(text) if text.starts_with('«') => {}
            Json::String(_) | Json::Number(_) => into.push((path.to_owned(), json.clone())),
            Json::Null | Json::Bool(_) => {}
        }
    }
    let mut found = Vec::new();
    collect("", json, &mut found);
    found
}

/// Whether the provider may decide about what is at this place.
pub fn is_computed(block: &Block, path: &str) -> bool {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    if let Some(nested) = block.blocks.get(first) {
        // A map's key comes first; no attribute has the name of a key by accident only.
        return is_computed(&nested.block, rest)
            || rest.split_once('.').is_some_and(|(_, rest)| is_computed(&nested.block, rest));
    }
    let Some(attribute) = block.attributes.get(first) else { return false };
    attribute.computed
        || match &attribute.kind {
            AttributeKind::Plain(_) => false,
            AttributeKind::Nested { attributes, .. } => {
                let inner = Block { attributes: attributes.clone(), ..Block::default() };
                is_computed(&inner, rest) || rest.split_once('.').is_some_and(|(_, rest)| is_computed(&inner, rest))
            }
        }
}
