//! Moves: what the state has under an old address is carried to the new one before anything is planned.

use std::collections::{BTreeMap, BTreeSet};

use landform_lang::Repetition;

use crate::native::config::{Config, config_address};
use crate::state::State;
use crate::{Address, Diagnostic, Key};

/// A `moved` block: where it stands (the module's path) and its two ends.
struct Statement {
    module: Vec<String>,
    from: End,
    to: End,
    /// Both ends are without a key, so all instances are meant.
    all: bool,
}

/// `module.a[0]` or `module.a.TYPE.NAME[0]`, relative to the module that says it.
#[derive(Clone)]
struct End {
    modules: Vec<(String, Option<Key>)>,
    object: Option<Address>,
}

/// The state after all moves, and for every object that moved where it was.
pub fn moved_state(config: &Config, base: &State) -> (State, BTreeMap<Address, Address>, Vec<Diagnostic>) {
    let statements = statements(config);
    let here: BTreeSet<Address> = base.objects().map(|object| object.address).collect();
    let mut wanted: BTreeMap<Address, Address> = BTreeMap::new();
    for address in &here {
        let to = follow(&statements, address).or_else(|| implied(config, address, &here, &statements));
        if let Some(to) = to.filter(|to| to != address) {
            wanted.insert(address.clone(), to);
        }
    }
    let mut warnings = Vec::new();
    let mut moves = BTreeMap::new();
    for (from, to) in &wanted {
        let occupied = here.contains(to) && !wanted.contains_key(to);
        if occupied || moves.values().any(|other| other == to) {
            let detail = format!(
                "OpenTofu tried to adjust resource instance addresses in the prior state based on change information \
                 recorded in the configuration, but some adjustments did not succeed due to existing objects already at \
                 the intended addresses:\n  - {from} could not move to {to}"
            );
            let warning = Diagnostic::error("Unresolved resource instance address changes", detail);
            warnings.push(crate::native::eval::warning(warning));
        } else {
            moves.insert(from.clone(), to.clone());
        }
    }
    if moves.is_empty() {
        return (base.clone(), BTreeMap::new(), warnings);
    }
    let mut state = State::new(base.lineage.clone());
    state.serial = base.serial;
    state.outputs.clone_from(&base.outputs);
    state.set_check_results(base.check_results().map(ToOwned::to_owned));
    for resource in base.resources() {
        for instance in &resource.instances {
            let address = resource.address(instance.index_key.clone());
            let to = moves.get(&address).unwrap_or(&address);
            let mut instance = instance.clone();
            instance.index_key.clone_from(&to.key);
            state.put(to, &resource.provider, instance);
        }
    }
    (state, moves.into_iter().map(|(from, to)| (to, from)).collect(), warnings)
}

fn statements(config: &Config) -> Vec<Statement> {
    let mut statements = Vec::new();
    for node in &config.modules {
        for moved in &node.module.moved {
            let (Some(from), Some(to)) = (end(&moved.from), end(&moved.to)) else { continue };
            let keyless = |end: &End| match &end.object {
                Some(object) => object.key.is_none(),
                None => end.modules.last().is_none_or(|(_, key)| key.is_none()),
            };
            let module = steps(&node.path).into_iter().map(|(name, _)| name).collect();
            statements.push(Statement { module, all: keyless(&from) && keyless(&to), from, to });
        }
    }
    statements
}

fn end(text: &str) -> Option<End> {
    match Address::parse(text) {
        Some(address) => Some(End { modules: steps(&address.module), object: Some(address) }),
        None => {
            let modules = steps(text);
            (!modules.is_empty()).then_some(End { modules, object: None })
        }
    }
}

/// The steps of `module.a[0].module.b`.
fn steps(module: &str) -> Vec<(String, Option<Key>)> {
    let mut steps = Vec::new();
    let mut rest = module;
    while let Some(text) = rest.strip_prefix("module.") {
        let end = text.find(['.', '[']).unwrap_or(text.len());
        let (name, after) = text.split_at(end);
        let (key, after) = match after.strip_prefix('[') {
            None => (None, after),
            Some(inside) => {
                // A key is JSON: a string or a number.
                let mut values = serde_json::Deserializer::from_str(inside).into_iter::<serde_json::Value>();
                let key = match values.next() {
                    Some(Ok(serde_json::Value::String(name))) => Some(Key::Name(name)),
                    Some(Ok(number)) => number.as_u64().map(Key::Index),
                    _ => None,
                };
                (key, inside[values.byte_offset()..].trim_start_matches(']'))
            }
        };
        steps.push((name.to_owned(), key));
        rest = after.trim_start_matches('.');
    }
    if rest.is_empty() { steps } else { Vec::new() }
}

fn module_text(steps: &[(String, Option<Key>)]) -> String {
    let step = |(name, key): &(String, Option<Key>)| {
        format!("module.{name}{}", key.as_ref().map(|key| format!("[{key}]")).unwrap_or_default())
    };
    steps.iter().map(step).collect::<Vec<_>>().join(".")
}

/// Where a chain of moves leads from an address.
fn follow(statements: &[Statement], address: &Address) -> Option<Address> {
    let mut seen = BTreeSet::from([address.clone()]);
    let mut at = address.clone();
    while let Some(next) = statements.iter().find_map(|statement| apply(statement, &at)) {
        if !seen.insert(next.clone()) {
            break;
        }
        at = next;
    }
    (at != *address).then_some(at)
}

fn apply(statement: &Statement, address: &Address) -> Option<Address> {
    let path = steps(&address.module);
    let depth = statement.module.len();
    let (outer, inner) = path.split_at_checked(depth)?;
    if !outer.iter().map(|(name, _)| name).eq(&statement.module) {
        return None;
    }
    let moved = |modules: &[(String, Option<Key>)], rest: &[(String, Option<Key>)]| {
        module_text(&[outer, modules, rest].concat())
    };
    match (&statement.from.object, &statement.to.object) {
        (Some(from), Some(to)) => {
            let same = from.local() == address.local() && inner == statement.from.modules.as_slice();
            if !same || (!statement.all && from.key != address.key) {
                return None;
            }
            let key = if statement.all { address.key.clone() } else { to.key.clone() };
            Some(Address { module: moved(&statement.to.modules, &[]), key, ..to.clone() })
        }
        (None, None) => {
            let from = &statement.from.modules;
            let (head, rest) = inner.split_at_checked(from.len())?;
            let (last, before) = from.split_last()?;
            let (their_last, their_before) = head.split_last()?;
            let fits = last.0 == their_last.0 && (statement.all || last.1 == their_last.1);
            if before != their_before || !fits {
                return None;
            }
            let mut to = statement.to.modules.clone();
            if statement.all {
                to.last_mut()?.1.clone_from(&their_last.1);
            }
            Some(Address { module: moved(&to, rest), ..address.clone() })
        }
        _ => None,
    }
}

/// When `count` is added to a block or taken away, the first instance is the one that was there.
fn implied(config: &Config, address: &Address, here: &BTreeSet<Address>, statements: &[Statement]) -> Option<Address> {
    let resource = config.resource(address)?;
    let key = match (&config.block(resource).repetition, &address.key) {
        (Repetition::Count(_), None) => Some(Key::Index(0)),
        (Repetition::Once, Some(Key::Index(0))) => None,
        _ => return None,
    };
    // Where a block says something about the resource, nothing more is guessed.
    let mentioned = statements.iter().any(|statement| {
        let outer: Vec<(String, Option<Key>)> = statement.module.iter().map(|name| (name.clone(), None)).collect();
        [&statement.from, &statement.to].into_iter().any(|end| {
            let module = module_text(&[outer.as_slice(), &end.modules].concat());
            end.object
                .as_ref()
                .is_some_and(|object| config_address(&Address { module, ..object.clone() }) == resource.address)
        })
    });
    if mentioned {
        return None;
    }
    let to = Address { key, ..address.clone() };
    (!address.data && !here.contains(&to)).then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(from: &str, to: &str) -> Statement {
        let (from, to) = (end(from).unwrap(), end(to).unwrap());
        let keyless = |end: &End| end.object.as_ref().is_none_or(|object| object.key.is_none());
        let all =
            keyless(&from) && keyless(&to) && from.modules.iter().chain(&to.modules).all(|(_, key)| key.is_none());
        Statement { module: Vec::new(), all, from, to }
    }

    fn moved(statements: &[Statement], address: &str) -> Option<String> {
        follow(statements, &Address::parse(address).unwrap()).map(|address| address.to_string())
    }

    #[test]
    fn addresses_follow_their_moves() {
        let rename = [statement("a.b", "a.c"), statement("a.c", "module.m.a.c")];
        assert_eq!(moved(&rename, "a.b[3]").unwrap(), "module.m.a.c[3]");
        assert_eq!(moved(&rename, "a.x"), None);
        let key = [statement("a.b[0]", "a.b[\"x\"]")];
        assert_eq!(moved(&key, "a.b[0]").unwrap(), "a.b[\"x\"]");
        assert_eq!(moved(&key, "a.b[1]"), None);
        let module = [statement("module.m", "module.n")];
        assert_eq!(moved(&module, "module.m[1].module.k.a.b").unwrap(), "module.n[1].module.k.a.b");
        let one = [statement("module.m", "module.m[\"a.b\"]")];
        assert_eq!(moved(&one, "module.m.a.b").unwrap(), "module.m[\"a.b\"].a.b");
        assert_eq!(moved(&[statement("a.b", "a.c"), statement("a.c", "a.b")], "a.b").unwrap(), "a.c");
    }
}
