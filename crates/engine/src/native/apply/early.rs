//! Which objects are to be replaced before their predecessors end, as an apply writes it into the state.
//!
//! A plan looks at whole resources: whatever something with `create_before_destroy` stands on, is replaced that way, too. An
//! apply has nothing but the objects that it changes. One of them is marked if its block says so, if it is just being
//! replaced that way, or if another one that is changed and so marked stands on it; and where a key is named, only the
//! object with that key is stood on.

use std::collections::{BTreeSet, HashMap, HashSet};

use landform_cty::Step;

use super::order::{is_changed, node_of};
use crate::native::config::Config;
use crate::native::content::Content;
use crate::{Action, Address, Key};

/// The changes, by their place in the plan, whose objects are to be replaced before their predecessors end.
pub fn early(content: &Content, config: &Config) -> HashSet<usize> {
    let mut marked: HashSet<usize> = HashSet::new();
    let mut changed: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, planned) in content.changes.iter().enumerate().filter(|(_, planned)| is_changed(planned, config)) {
        let Some(resource) = config.resource(&planned.address) else { continue };
        let Some(place) = config.graph.place(&node_of(resource)) else { continue };
        changed.entry(place).or_default().push(at);
        let by_itself = config.block(resource).lifecycle.create_before_destroy == Some(true);
        if by_itself || planned.action == Action::CreateBeforeDestroy {
            marked.insert(at);
        }
    }
    let below = Below { content, config, changed };
    let places = below.changed.iter().flat_map(|(place, all)| all.iter().map(|at| (*place, *at)));
    let stood_on: Vec<HashSet<usize>> =
        places.filter(|(_, at)| marked.contains(at)).map(|(place, at)| below.of(place, at)).collect();
    marked.extend(stood_on.into_iter().flatten());
    marked
}

/// What changes stand on.
struct Below<'a> {
    content: &'a Content,
    config: &'a Config,
    /// By the place of their resource in the configuration's graph.
    changed: HashMap<usize, Vec<usize>>,
}

impl Below<'_> {
    /// All changes that one of them stands on, near and far.
    fn of(&self, place: usize, at: usize) -> HashSet<usize> {
        let (mut nodes, mut found) = (HashSet::from([place]), HashSet::new());
        let (mut open, mut own) = (vec![place], vec![(place, at)]);
        loop {
            if let Some((place, at)) = own.pop() {
                // Objects in two instances of a module have nothing to do with each other.
                let module = &self.content.changes[at].address.module;
                self.step(place, Some(module), &mut nodes, &mut open, &mut found, &mut own);
                if nodes.insert(place) {
                    open.push(place);
                }
            } else if let Some(place) = open.pop() {
                self.step(place, None, &mut nodes, &mut open, &mut found, &mut own);
            } else {
                found.remove(&at);
                return found;
            }
        }
    }

    fn step(
        &self,
        later: usize,
        module: Option<&str>,
        nodes: &mut HashSet<usize>,
        open: &mut Vec<usize>,
        found: &mut HashSet<usize>,
        own: &mut Vec<(usize, usize)>,
    ) {
        for earlier in self.config.graph.before(later).iter().copied().filter(|earlier| *earlier != later) {
            let (objects, whole) = self.meant(later, earlier);
            for at in objects.into_iter().filter(|at| !self.apart(*at, module)) {
                if found.insert(at) {
                    own.push((earlier, at));
                }
            }
            if whole && nodes.insert(earlier) {
                open.push(earlier);
            }
        }
    }

    /// The changes that a node means by what it refers to, and whether it means the block itself. Where an object that is
    /// named is not changed, all of the block is meant.
    fn meant(&self, later: usize, earlier: usize) -> (Vec<usize>, bool) {
        let all = self.changed.get(&earlier).map(Vec::as_slice).unwrap_or_default();
        let Some(keys) = self.config.graph.meant(later, earlier) else { return (all.to_vec(), true) };
        let with = |key: &Step| -> Vec<usize> {
            let same = |at: &&usize| has_key(&self.content.changes[**at].address, key);
            all.iter().filter(same).copied().collect()
        };
        let named: Vec<Vec<usize>> = keys.iter().map(with).collect();
        if named.iter().any(Vec::is_empty) {
            return (all.to_vec(), true);
        }
        (named.concat().into_iter().collect::<BTreeSet<_>>().into_iter().collect(), false)
    }

    fn apart(&self, at: usize, module: Option<&str>) -> bool {
        let other = &self.content.changes[at].address.module;
        let path = crate::native::config::module_path;
        module.is_some_and(|module| module != other && path(module) == path(other))
    }
}

fn has_key(address: &Address, key: &Step) -> bool {
    match (&address.key, key) {
        (Some(Key::Index(index)), Step::Index(wanted)) => usize::try_from(*index).is_ok_and(|index| index == *wanted),
        (Some(Key::Name(name)), Step::Key(wanted)) => name == wanted,
        _ => false,
    }
}
