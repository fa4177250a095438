use std::collections::{BTreeMap, BTreeSet};

use landform_lang::{Module, Reference};
use petgraph::graph::NodeIndex;

use super::object::Outcome;
use super::sources::Sources;
use super::walk::Steps;
use crate::Diagnostic;

/// What can depend on something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    Local(String),
    Resource(String),
    Provider(String),
    Output(String),
}

pub struct Graph {
    steps: Steps<Node>,
    places: BTreeMap<Node, NodeIndex>,
}

impl Graph {
    pub fn new(module: &Module, sources: &Sources) -> Outcome<Graph> {
        let mut graph = Graph { steps: Steps::new(), places: BTreeMap::new() };
        for name in module.locals.keys() {
            graph.add(Node::Local(name.clone()));
        }
        for resource in &module.resources {
            graph.add(Node::Resource(resource.address()));
        }
        for provider in &module.providers {
            graph.add(Node::Provider(sources.address(&provider.name, provider.alias.as_deref())));
        }
        for name in module.outputs.keys() {
            graph.add(Node::Output(name.clone()));
        }
        for (name, local) in &module.locals {
            graph.connect(&Node::Local(name.clone()), &landform_lang::references(&local.value));
        }
        for provider in &module.providers {
            let address = sources.address(&provider.name, provider.alias.as_deref());
            graph.connect(&Node::Provider(address), &landform_lang::body_references(&provider.body));
        }
        for resource in &module.resources {
            let node = Node::Resource(resource.address());
            graph.connect(&node, &landform_lang::body_references(&resource.body));
            graph.connect(&node, &resource.count.as_ref().map(landform_lang::references).unwrap_or_default());
            graph.connect(&node, &resource.depends_on);
            graph.order(Node::Provider(sources.address_of(resource)), &node);
        }
        for (name, output) in &module.outputs {
            let node = Node::Output(name.clone());
            graph.connect(&node, &landform_lang::references(&output.value));
            graph.connect(&node, &output.depends_on);
        }
        match graph.steps.cycle() {
            None => Ok(graph),
            Some(node) => {
                let detail = format!("{node:?} depends on itself.");
                Err(vec![Diagnostic::error("Cycle in the configuration", detail)])
            }
        }
    }

    fn add(&mut self, node: Node) {
        let place = self.steps.add(node.clone());
        self.places.insert(node, place);
    }

    fn connect(&mut self, later: &Node, references: &[Reference]) {
        for reference in references {
            let earlier = match reference {
                Reference::Local(name) => Node::Local(name.clone()),
                Reference::Resource { resource_type, name } => Node::Resource(format!("{resource_type}.{name}")),
                _ => continue,
            };
            self.order(earlier, later);
        }
    }

    /// A reference to something that is not there is reported when it is evaluated.
    fn order(&mut self, earlier: Node, later: &Node) {
        if let (Some(earlier), Some(later)) = (self.places.get(&earlier), self.places.get(later)) {
            self.steps.order(*earlier, *later);
        }
    }

    /// The resources that something depends on, near and far.
    pub fn resources_before(&self, node: &Node) -> BTreeSet<String> {
        let before = self.steps.before(self.places[node]);
        let resource = |place: NodeIndex| match self.steps.get(place) {
            Node::Resource(address) => Some(address.clone()),
            _ => None,
        };
        before.into_iter().filter_map(resource).collect()
    }

    /// The locals that one needs, in the order in which they can be evaluated, itself last.
    pub fn locals_until(&self, name: &str) -> Vec<String> {
        let node = self.places[&Node::Local(name.to_owned())];
        let mut needed: BTreeSet<NodeIndex> = self.steps.before(node).into_iter().collect();
        needed.insert(node);
        let local = |place: &NodeIndex| match self.steps.get(*place) {
            Node::Local(name) => Some(name.clone()),
            _ => None,
        };
        self.steps.in_order().iter().filter(|place| needed.contains(place)).filter_map(local).collect()
    }
}
