use std::collections::{BTreeMap, HashMap, HashSet};

use petgraph::graph::NodeIndex;

use crate::native::config::{Config, config_address, module_path};
use crate::native::content::Content;
use crate::native::object::Planned;
use crate::native::walk::Steps;
use crate::state::State;
use crate::{Action, Address, Mode};

/// What there is to do, in the order that the graph allows.
pub enum Step {
    /// A node of the configuration's graph, by its place there.
    Node(usize),
    /// Nothing: what waits for it waits for all that it waits for. Ten thousand instances that wait for ten thousand others
    /// are so twenty thousand edges, and not a hundred million.
    Gate,
    /// Makes or changes an object, or only looks at its conditions.
    Change(usize),
    /// Ends an object: all of a delete, or the first half of a replacement.
    Destroy(usize),
    /// Ends a deposed object: one that an earlier run left, or the second half of a replacement.
    DestroyDeposed(usize),
    /// Takes an object out of the state and leaves it alone.
    Forget(usize),
}

/// The end of an object.
struct Ending {
    node: NodeIndex,
    address: Address,
    /// What it stood on when it was last changed.
    dependencies: Vec<String>,
    /// Whether others are changed before it goes.
    late: bool,
    /// Whether an earlier run has left it.
    deposed: bool,
}

/// The graph of what is to be done. A change waits for what its configuration refers to and for the end of what it stood
/// on; an object ends after those that stand on it. Where a replacement is made first, the old object ends after everything
/// that stands on it has been changed.
pub fn steps(content: &Content, config: &Config, state: &State) -> Steps<Step> {
    let mut steps = Steps::new();
    let done = add_configuration(&mut steps, content, config);
    let mut endings = Vec::new();
    let mut changes: Vec<(usize, NodeIndex)> = Vec::new();
    for (at, planned) in content.changes.iter().enumerate() {
        let resource = config.resource(&planned.address);
        let place = resource.and_then(|resource| config.graph.place(&node_of(resource)));
        let change = is_changed(planned, config).then(|| steps.add(Step::Change(at)));
        if let (Some(change), Some((begun, done))) = (change, place.and_then(|place| done.get(&place))) {
            steps.order(*begun, change);
            steps.order(change, *done);
            changes.push((at, change));
        }
        let stored = state.object(&planned.address, planned.deposed.as_deref()).map(|(_, instance)| instance);
        let late = planned.action == Action::CreateBeforeDestroy
            || planned.deposed.is_some()
            || stored.is_some_and(|instance| instance.create_before_destroy);
        let end = match planned.action {
            Action::Delete if planned.deposed.is_some() => Step::DestroyDeposed(at),
            Action::Delete | Action::Replace => Step::Destroy(at),
            Action::CreateBeforeDestroy => Step::DestroyDeposed(at),
            Action::Forget | Action::ForgetThenCreate => Step::Forget(at),
            _ => continue,
        };
        let node = steps.add(end);
        if let Some((_, ready)) = config.graph.provider_at_hand(&planned.provider).and_then(|place| done.get(&place)) {
            steps.order(*ready, node);
        }
        match (planned.action, change) {
            (Action::Replace | Action::ForgetThenCreate, Some(change)) => steps.order(node, change),
            (Action::CreateBeforeDestroy, Some(change)) => steps.order(change, node),
            _ => {}
        }
        if matches!(planned.action, Action::Forget | Action::ForgetThenCreate) {
            // Nothing ends, so nobody has to wait for it.
            continue;
        }
        let dependencies = stored.map(|instance| instance.dependencies.clone()).unwrap_or_default();
        let deposed = planned.deposed.is_some();
        endings.push(Ending { node, address: planned.address.clone(), dependencies, late, deposed });
    }
    order_deposed(&mut steps, content, &endings, &changes);
    order_checks(&mut steps, content, config, &changes);
    order_endings(&mut steps, content, config, state, &endings, &changes);
    order_late(&mut steps, config, &endings, &done);
    steps
}

/// What an earlier run has left goes after its object is changed again: if that fails, it is still there.
fn order_deposed(steps: &mut Steps<Step>, content: &Content, endings: &[Ending], changes: &[(usize, NodeIndex)]) {
    let changed: HashMap<&Address, NodeIndex> =
        changes.iter().map(|(at, node)| (&content.changes[*at].address, *node)).collect();
    for ending in endings.iter().filter(|ending| ending.deposed) {
        if let Some(change) = changed.get(&ending.address) {
            steps.order(*change, ending.node);
        }
    }
}

/// Whether an object is made or changed, or its conditions are looked at.
pub(super) fn is_changed(planned: &Planned, config: &Config) -> bool {
    match planned.action {
        Action::Create | Action::Update | Action::Read => true,
        Action::Replace | Action::CreateBeforeDestroy | Action::ForgetThenCreate => true,
        Action::NoOp => {
            let has_conditions = |resource| config.block(resource).lifecycle.has_conditions();
            planned.deposed.is_none() && config.resource(&planned.address).is_some_and(has_conditions)
        }
        Action::Delete | Action::Forget => false,
    }
}

/// What nothing asks for that is done, by its place. OpenTofu does not evaluate it, which shows in two ways: conditions of
/// outputs of modules are not looked at, and nobody is told of what is deprecated.
pub fn idle(content: &Content, config: &Config) -> HashSet<usize> {
    let mut outputs = config.modules.iter().skip(1).flat_map(|node| node.module.outputs.values());
    let shows = content.deprecations || outputs.any(|output| !output.preconditions.is_empty());
    if content.mode != Mode::Normal || !shows {
        return HashSet::new();
    }
    unasked(content, config)
}

/// The same wherever it shows.
pub fn unasked(content: &Content, config: &Config) -> HashSet<usize> {
    let changed = content.changes.iter().filter(|planned| is_changed(planned, config));
    let resources = changed.filter_map(|planned| config.resource(&planned.address));
    config.graph.idle(config, &resources.filter_map(|own| config.graph.place(&node_of(own))).collect())
}

pub(super) fn node_of(resource: &crate::native::config::ResourceConfig) -> crate::native::config::Node {
    crate::native::config::Node::Resource(resource.module, resource.local.clone())
}

/// The configuration's own graph. For each resource the step in which it begins, and the one in which all of it is done.
/// When everything is destroyed, or only looked at, expressions have nothing to say any more.
fn add_configuration(
    steps: &mut Steps<Step>,
    content: &Content,
    config: &Config,
) -> HashMap<usize, (NodeIndex, NodeIndex)> {
    let mut all = HashMap::new();
    if content.mode != Mode::Normal {
        return all;
    }
    for (place, node) in config.graph.nodes().iter().enumerate() {
        let begun = steps.add(Step::Node(place));
        let done = match config.resource_of(node) {
            Some(_) => steps.add(Step::Gate),
            None => begun,
        };
        steps.order(begun, done);
        all.insert(place, (begun, done));
    }
    for place in 0..config.graph.nodes().len() {
        for earlier in config.graph.before(place) {
            steps.order(all[earlier].1, all[&place].0);
        }
    }
    all
}

/// The two gates of one resource in one instance of its module.
#[derive(Clone, Copy)]
struct Gates {
    /// Before any of its objects ends, or (unless it ends late) is changed.
    before: NodeIndex,
    before_change: NodeIndex,
    /// After all that end early have ended.
    after: NodeIndex,
}

fn order_endings(
    steps: &mut Steps<Step>,
    content: &Content,
    config: &Config,
    state: &State,
    endings: &[Ending],
    changes: &[(usize, NodeIndex)],
) {
    let mut gates: BTreeMap<String, BTreeMap<String, Gates>> = BTreeMap::new();
    let mut gate = |steps: &mut Steps<Step>, address: &Address| {
        let place = gates.entry(config_address(address)).or_default().entry(address.module.clone());
        *place.or_insert_with(|| Gates {
            before: steps.add(Step::Gate),
            before_change: steps.add(Step::Gate),
            after: steps.add(Step::Gate),
        })
    };
    for ending in endings {
        let gates = gate(steps, &ending.address);
        steps.order(gates.before, ending.node);
        if !ending.late {
            steps.order(ending.node, gates.after);
        }
    }
    for (at, node) in changes {
        let gates = gate(steps, &content.changes[*at].address);
        steps.order(gates.before_change, *node);
    }
    let of = |dependency: &str, module: &str| -> Vec<Gates> {
        let Some(instances) = gates.get(dependency) else { return Vec::new() };
        // Instances of one module do not wait for each other.
        let path = module_path(module);
        let inside = if path.is_empty() { None } else { dependency.strip_prefix(&format!("{path}.")) };
        match inside.filter(|rest| !rest.starts_with("module.")) {
            Some(_) => instances.get(module).copied().into_iter().collect(),
            None => instances.values().copied().collect(),
        }
    };
    for ending in endings {
        for dependency in &ending.dependencies {
            for gates in of(dependency, &ending.address.module) {
                steps.order(ending.node, gates.before);
                if !ending.late {
                    steps.order(ending.node, gates.before_change);
                }
            }
        }
    }
    for (at, node) in changes {
        let address = &content.changes[*at].address;
        let dependencies = match state.current(address) {
            Some((_, instance)) => instance.dependencies.clone(),
            None => config.resource(address).map(|own| own.dependencies.iter().cloned().collect()).unwrap_or_default(),
        };
        for dependency in &dependencies {
            for gates in of(dependency, &address.module) {
                steps.order(gates.after, *node);
            }
        }
    }
}

/// The data of checks is read when all objects are what they are to be.
fn order_checks(steps: &mut Steps<Step>, content: &Content, config: &Config, changes: &[(usize, NodeIndex)]) {
    let of_check = |at: usize| {
        let resource = config.resource(&content.changes[at].address);
        resource.is_some_and(|resource| config.block(resource).check.is_some())
    };
    let (reads, others): (Vec<_>, Vec<_>) = changes.iter().copied().partition(|(at, _)| of_check(*at));
    if reads.is_empty() {
        return;
    }
    let changed = steps.add(Step::Gate);
    for (at, node) in others {
        if !content.changes[at].address.data {
            steps.order(node, changed);
        }
    }
    for (_, node) in reads {
        steps.order(changed, node);
    }
}

/// What ends late waits for all changes of what stands on it.
fn order_late(
    steps: &mut Steps<Step>,
    config: &Config,
    endings: &[Ending],
    done: &HashMap<usize, (NodeIndex, NodeIndex)>,
) {
    let mut late: BTreeMap<String, Vec<NodeIndex>> = BTreeMap::new();
    for ending in endings.iter().filter(|ending| ending.late) {
        late.entry(config_address(&ending.address)).or_default().push(ending.node);
    }
    for (resource, nodes) in late {
        for dependent in config.resources().iter().filter(|other| other.dependencies.contains(&resource)) {
            let place = config.graph.place(&node_of(dependent));
            if let Some((_, done)) = place.and_then(|place| done.get(&place)) {
                nodes.iter().for_each(|node| steps.order(*done, *node));
            }
        }
    }
}
