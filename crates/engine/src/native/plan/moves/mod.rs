//! Moves: what the state has under an old address is carried to the new one before anything is planned.

mod checks;
mod order;
mod statement;

use std::collections::{BTreeMap, BTreeSet};

use landform_lang::Repetition;

pub use checks::check_moves;

use crate::native::config::{Config, config_address, module_path};
use crate::state::State;
use crate::{Address, Diagnostic, Key};
use order::in_order;
use statement::{ModuleStep, Statement, module_text, steps};

/// The state after all moves, and for every object that moved where it was.
pub fn moved_state(config: &Config, base: &State) -> (State, BTreeMap<Address, Address>, Vec<Diagnostic>) {
    let mut statements = Statement::all_of(config);
    let said = statements.len();
    statements.extend(implied_of_modules(config, base, &statements));
    let mut places = Places::of(base);
    // Where moves go round in a circle nothing moves: what is wrong is said once the walk is over.
    if let Some(ordered) = in_order(&statements) {
        ordered.into_iter().for_each(|statement| places.carry_out(statement));
        places.follow_counts(config, &statements[..said]);
    }
    let warnings = places.warning().into_iter().collect();
    let moves: BTreeMap<Address, Address> = places.was.into_iter().filter(|(now, was)| now != was).collect();
    if moves.is_empty() {
        return (base.clone(), moves, warnings);
    }
    let now: BTreeMap<&Address, &Address> = moves.iter().map(|(now, was)| (was, now)).collect();
    let mut state = State::new(base.lineage.clone());
    state.serial = base.serial;
    state.outputs.clone_from(&base.outputs);
    state.set_check_results(base.check_results().map(ToOwned::to_owned));
    for resource in base.resources() {
        for instance in &resource.instances {
            let address = resource.address(instance.index_key.clone());
            let to = now.get(&address).copied().unwrap_or(&address);
            let mut instance = instance.clone();
            instance.index_key.clone_from(&to.key);
            let provider = resource.provider_of(&instance).to_owned();
            state.put(to, &provider, instance);
        }
    }
    (state, moves, warnings)
}

/// Where the objects of a state are, and where they were before any move.
struct Places {
    was: BTreeMap<Address, Address>,
    /// What could not move because something else is there.
    blocked: BTreeMap<String, String>,
}

impl Places {
    fn of(state: &State) -> Places {
        let was = state.objects().map(|object| (object.address.clone(), object.address)).collect();
        Places { was, blocked: BTreeMap::new() }
    }

    /// A module, a resource or an object moves as a whole, or not at all.
    fn carry_out(&mut self, statement: &Statement) {
        let whole = |address: &Address| match (&statement.from.object, statement.all) {
            (None, _) => address.module.clone(),
            (Some(_), true) => address.resource(),
            (Some(_), false) => address.to_string(),
        };
        let mut moves: BTreeMap<(String, String), Vec<(Address, Address)>> = BTreeMap::new();
        for address in self.was.keys() {
            if let Some(to) = statement.destination(address) {
                moves.entry((whole(address), whole(&to))).or_default().push((address.clone(), to));
            }
        }
        for ((from, to), objects) in moves {
            if self.was.keys().any(|address| whole(address) == to) {
                self.blocked.insert(from, to);
                continue;
            }
            for (from, to) in objects {
                self.move_object(&from, to);
            }
        }
    }

    fn move_object(&mut self, from: &Address, to: Address) {
        if let Some(was) = self.was.remove(from) {
            self.was.insert(to, was);
        }
    }

    /// When `count` is added to a block or taken away, the first instance is the one that was there.
    fn follow_counts(&mut self, config: &Config, statements: &[Statement]) {
        let at_first: BTreeSet<Address> = self.was.values().cloned().collect();
        for address in &at_first {
            let unmoved = self.was.get(address) == Some(address);
            let to = implied(config, address, statements).filter(|to| unmoved && !at_first.contains(to));
            if let Some(to) = to {
                self.move_object(address, to);
            }
        }
    }

    fn warning(&self) -> Option<Diagnostic> {
        if self.blocked.is_empty() {
            return None;
        }
        // Those of the root module come first.
        let mut blocked: Vec<(&String, &String)> = self.blocked.iter().collect();
        blocked.sort_by_key(|(from, _)| from.starts_with("module."));
        let lines: String =
            blocked.into_iter().map(|(from, to)| format!("\n  - {from} could not move to {to}")).collect();
        let detail = format!(
            "OpenTofu tried to adjust resource instance addresses in the prior state based on change information recorded \
             in the configuration, but some adjustments did not succeed due to existing objects already at the intended \
             addresses:{lines}\n\nOpenTofu has planned to destroy these objects. If OpenTofu's proposed changes aren't \
             appropriate, you must first resolve the conflicts using the \"tofu state\" subcommands and then create a new \
             plan."
        );
        let summary = "Unresolved resource instance address changes";
        Some(crate::native::eval::warning(Diagnostic::error(summary, detail)))
    }
}

/// What is not said and meant all the same: a module that has got a `count`, or lost it, is the first one of it.
fn implied_of_modules(config: &Config, base: &State, statements: &[Statement]) -> Vec<Statement> {
    // Only modules that have something themselves are known to OpenTofu.
    let known: BTreeSet<&str> = base.resources().iter().map(|resource| resource.module.as_str()).collect();
    let taken = |module: &str| {
        let inside = |one: &&str| one.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        known.iter().any(inside)
    };
    let mut implied = Vec::new();
    for module in known.iter().filter(|module| !module.is_empty()) {
        let from = steps(module);
        let path = module_path(module);
        let Some(node) = config.modules.iter().find(|node| node.path == path) else { continue };
        let Some((parent, name)) = &node.parent else { continue };
        let call = &config.modules[*parent].module.calls[name];
        let wanted = match call.repetition {
            Repetition::Count(_) => Some(Key::Index(0)),
            Repetition::Once | Repetition::Enabled(_) => None,
            Repetition::ForEach(_) => continue,
        };
        let mut to = from.clone();
        let Some((_, key)) = to.last_mut() else { continue };
        let first = matches!(key, None | Some(Key::Index(0)));
        if !first || *key == wanted || statements.iter().any(|statement| statement.selects_module(&from)) {
            continue;
        }
        *key = wanted;
        if !taken(&module_text(&to)) {
            implied.push(Statement::between_modules(from, to, call.range.clone()));
        }
    }
    implied
}

/// Where an object is, once its block has got a `count` or lost it.
fn implied(config: &Config, address: &Address, statements: &[Statement]) -> Option<Address> {
    let resource = config.resource(address)?;
    let key = match (&config.block(resource).repetition, &address.key) {
        (Repetition::Count(_), None) => Some(Key::Index(0)),
        (Repetition::Once | Repetition::Enabled(_), Some(Key::Index(0))) => None,
        _ => return None,
    };
    // Where a block says something about the resource, nothing more is guessed.
    let mentioned = statements.iter().any(|statement| {
        let outer: Vec<ModuleStep> = statement.path.iter().map(|name| (name.clone(), None)).collect();
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
    (!address.data).then(|| Address { key, ..address.clone() })
}

#[cfg(test)]
mod tests {
    use super::statement::statement;
    use super::*;

    fn moved(statements: &[Statement], address: &str) -> Option<String> {
        let address = Address::parse(address).unwrap();
        let mut places = Places { was: BTreeMap::from([(address.clone(), address)]), blocked: BTreeMap::new() };
        in_order(statements)?.into_iter().for_each(|statement| places.carry_out(statement));
        places.was.iter().find(|(now, was)| now != was).map(|(now, _)| now.to_string())
    }

    #[test]
    fn addresses_follow_their_moves() {
        let rename = [statement("a.c", "module.m.a.c"), statement("a.b", "a.c")];
        assert_eq!(moved(&rename, "a.b[3]").unwrap(), "module.m.a.c[3]");
        assert_eq!(moved(&rename, "a.x"), None);
        let key = [statement("a.b[0]", "a.b[\"x\"]")];
        assert_eq!(moved(&key, "a.b[0]").unwrap(), "a.b[\"x\"]");
        assert_eq!(moved(&key, "a.b[1]"), None);
        let module = [statement("module.m", "module.n")];
        assert_eq!(moved(&module, "module.m[1].module.k.a.b").unwrap(), "module.n[1].module.k.a.b");
        let one = [statement("module.m", "module.m[\"a.b\"]")];
        assert_eq!(moved(&one, "module.m.a.b").unwrap(), "module.m[\"a.b\"].a.b");
        assert_eq!(moved(&[statement("a.b", "a.c"), statement("a.c", "a.b")], "a.b"), None);
    }
}
