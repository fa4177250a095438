use std::collections::BTreeMap;

use petgraph::graph::NodeIndex;

use super::config::Config;
use super::content::Content;
use super::walk::Steps;
use crate::state::State;
use crate::{Action, Address};

/// What there is to do, in the order that the graph allows.
pub enum Step {
    /// Ends an object: all of a delete, or the first half of a replacement.
    Destroy(usize),
    /// Makes or changes an object.
    Change(usize),
    Output(String),
}

/// The graph of what is to be done. A change waits for the changes that its configuration refers to and for the
/// end of what it stands on; an object ends after those that stand on it.
pub fn steps(content: &Content, config: &Config, state: &State) -> Steps<Step> {
    let mut steps = Steps::new();
    let mut destroys: BTreeMap<String, Vec<(usize, NodeIndex)>> = BTreeMap::new();
    let mut changes: BTreeMap<String, Vec<(usize, NodeIndex)>> = BTreeMap::new();
    for (at, planned) in content.changes.iter().enumerate() {
        let resource = planned.address.resource();
        if matches!(planned.action, Action::Delete | Action::Replace) {
            destroys.entry(resource.clone()).or_default().push((at, steps.add(Step::Destroy(at))));
        }
        if matches!(planned.action, Action::Create | Action::Update | Action::Replace) {
            changes.entry(resource).or_default().push((at, steps.add(Step::Change(at))));
        }
    }
    let none = Vec::new();
    for (resource, nodes) in &changes {
        for (at, node) in nodes {
            for dependency in config.dependencies(resource) {
                for (_, earlier) in changes.get(&dependency).unwrap_or(&none) {
                    steps.order(*earlier, *node);
                }
            }
            for dependency in stored_dependencies(&content.changes[*at].address, config, state) {
                for (_, earlier) in destroys.get(&dependency).unwrap_or(&none) {
                    steps.order(*earlier, *node);
                }
            }
            for (_, earlier) in destroys.get(resource).unwrap_or(&none).iter().filter(|(other, _)| other == at) {
                steps.order(*earlier, *node);
            }
        }
    }
    for (at, node) in destroys.values().flatten() {
        for dependency in stored_dependencies(&content.changes[*at].address, config, state) {
            for (_, later) in destroys.get(&dependency).unwrap_or(&none) {
                steps.order(*node, *later);
            }
            for (_, later) in changes.get(&dependency).unwrap_or(&none) {
                steps.order(*node, *later);
            }
        }
    }
    for name in content.outputs.keys() {
        let node = steps.add(Step::Output(name.clone()));
        for resource in config.output_dependencies(name) {
            for (_, earlier) in changes.get(&resource).unwrap_or(&none) {
                steps.order(*earlier, node);
            }
        }
    }
    steps
}

/// What the object stood on when it was last changed; for a new one, what its configuration refers to.
fn stored_dependencies(address: &Address, config: &Config, state: &State) -> Vec<String> {
    match state.current(address) {
        Some((_, instance)) => instance.dependencies.clone(),
        None => config.dependencies(&address.resource()).into_iter().collect(),
    }
}
