use std::collections::{BTreeSet, HashMap, HashSet};

use landform_cty::Step;
use landform_lang::{
    Body, Dependency, Reference, Repetition, body_keyed_references, body_references, keyed_references, references,
};

use super::{Config, ModuleId, ResourceConfig};
use crate::Diagnostic;
use crate::native::object::Outcome;
use crate::state::split_provider;

/// What can depend on something. All instances of a resource or a module are one node: what refers to one of them waits
/// for all.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Node {
    /// How many instances a module has; everything inside comes after it.
    Expand(ModuleId),
    Variable(ModuleId, String),
    Local(ModuleId, String),
    /// By the address inside of the module.
    Resource(ModuleId, String),
    /// A provider's configuration, by the provider's address.
    Provider(String),
    Output(ModuleId, String),
    Check(ModuleId, String),
    /// All of a module is done.
    Close(ModuleId),
}

/// What depends on what in a configuration.
#[derive(Default)]
pub struct Graph {
    nodes: Vec<Node>,
    places: HashMap<Node, usize>,
    /// For each node those that come before it.
    before: Vec<Vec<usize>>,
    /// Of what comes before a node, the instances that are named by a key; and what is meant as a whole.
    keyed: HashMap<(usize, usize), Vec<Step>>,
    whole: HashSet<(usize, usize)>,
    /// Locals, and resources without `count` and `for_each`.
    single: HashSet<Node>,
}

impl Graph {
    pub fn new(config: &Config) -> Outcome<Graph> {
        let mut graph = Graph::default();
        for id in 0..config.modules.len() {
            graph.add_module(config, id);
            graph.note_single(config, id);
        }
        for id in 0..config.modules.len() {
            graph.connect_module(config, id);
        }
        for before in &mut graph.before {
            before.sort_unstable();
            before.dedup();
        }
        match graph.cycle() {
            None => Ok(graph),
            Some(members) => {
                let names: Vec<String> =
                    members.iter().flat_map(|place| cycle_names(config, &graph.nodes[*place])).collect();
                Err(vec![Diagnostic::error(format!("Cycle: {}", names.join(", ")), "")])
            }
        }
    }

    fn add_module(&mut self, config: &Config, id: ModuleId) {
        let module = &config.modules[id].module;
        self.add(Node::Expand(id));
        module.variables.keys().for_each(|name| self.add(Node::Variable(id, name.clone())));
        module.locals.keys().for_each(|name| self.add(Node::Local(id, name.clone())));
        module.resources.iter().for_each(|resource| self.add(Node::Resource(id, resource.address())));
        module.outputs.keys().for_each(|name| self.add(Node::Output(id, name.clone())));
        module.checks.keys().for_each(|name| self.add(Node::Check(id, name.clone())));
        self.add(Node::Close(id));
        module.providers.iter().for_each(|block| self.add(Node::Provider(config.provider_block(id, block))));
    }

    fn connect_module(&mut self, config: &Config, id: ModuleId) {
        let node = &config.modules[id];
        let module = &node.module;
        let (expand, close) = (Node::Expand(id), Node::Close(id));
        if let Some((parent, name)) = &node.parent {
            let call = &config.modules[*parent].module.calls[name];
            self.order(&Node::Expand(*parent), &expand);
            self.order(&close, &Node::Close(*parent));
            self.connect(config, *parent, &expand, call.repetition.expr().map(keyed_references).unwrap_or_default());
            self.connect_whole(config, *parent, &expand, &call.depends_on);
            for (name, expr) in &call.inputs {
                self.connect(config, *parent, &Node::Variable(id, name.clone()), keyed_references(expr));
            }
        }
        for (name, variable) in &module.variables {
            let later = Node::Variable(id, name.clone());
            self.inside(id, &later);
            for rule in &variable.validations {
                for expr in [&rule.condition, &rule.error_message] {
                    let mut others = keyed_references(expr);
                    others.retain(|(reference, _)| *reference != Reference::Variable(name.clone()));
                    self.connect(config, id, &later, others);
                }
            }
        }
        for (name, local) in &module.locals {
            let later = Node::Local(id, name.clone());
            self.inside(id, &later);
            self.connect(config, id, &later, keyed_references(&local.value));
        }
        for resource in &module.resources {
            let later = Node::Resource(id, resource.address());
            match resource.check {
                // It is read when all else is done, so nothing may wait for it with the rest of the module.
                Some(_) => self.order(&expand, &later),
                None => self.inside(id, &later),
            }
            self.connect(config, id, &later, body_keyed_references(&resource.body));
            self.connect(config, id, &later, resource.repetition.expr().map(keyed_references).unwrap_or_default());
            self.connect_whole(config, id, &later, &resource.depends_on);
            let lifecycle = &resource.lifecycle;
            self.connect(
                config,
                id,
                &later,
                lifecycle.prevent_destroy.as_ref().map(keyed_references).unwrap_or_default(),
            );
            for trigger in &lifecycle.replace_triggered_by {
                self.connect(config, id, &later, keyed_references(&trigger.expr));
            }
            for condition in lifecycle.preconditions.iter().chain(&lifecycle.postconditions) {
                self.connect(config, id, &later, keyed_references(&condition.condition));
                self.connect(config, id, &later, keyed_references(&condition.error_message));
            }
            let (provider, key) = config.charged(id, resource);
            if let Some(key) = key {
                let outside = key.called.and_then(|called| config.modules[called].parent.as_ref());
                let whose = outside.map_or(id, |(parent, _)| *parent);
                self.connect(config, whose, &later, keyed_references(&key.expr));
            }
            self.order(&Node::Provider(provider), &later);
        }
        for (name, output) in &module.outputs {
            let later = Node::Output(id, name.clone());
            self.inside(id, &later);
            self.connect(config, id, &later, keyed_references(&output.value));
            self.connect_whole(config, id, &later, &output.depends_on);
            for condition in &output.preconditions {
                self.connect(config, id, &later, keyed_references(&condition.condition));
                self.connect(config, id, &later, keyed_references(&condition.error_message));
            }
        }
        for (name, check) in &module.checks {
            let later = Node::Check(id, name.clone());
            self.order(&expand, &later);
            let own = module.resources.iter().filter(|resource| resource.check.as_ref() == Some(name));
            own.for_each(|resource| self.order(&Node::Resource(id, resource.address()), &later));
            for condition in &check.assertions {
                self.connect(config, id, &later, keyed_references(&condition.condition));
                self.connect(config, id, &later, keyed_references(&condition.error_message));
            }
        }
        for import in &module.imports {
            if let Some(later) = config.import_target(id, import) {
                self.connect(config, id, &later, keyed_references(import.by.expr()));
                self.connect(config, id, &later, import.for_each.as_ref().map(keyed_references).unwrap_or_default());
            }
        }
        for provider in &module.providers {
            let later = Node::Provider(config.provider_block(id, provider));
            self.order(&Node::Expand(id), &later);
            self.connect(config, id, &later, body_keyed_references(&provider.body));
        }
    }

    /// What can only refer to itself by mistake, and is looked at for it when it is read.
    fn note_single(&mut self, config: &Config, id: ModuleId) {
        let module = &config.modules[id].module;
        self.single.extend(module.locals.keys().map(|name| Node::Local(id, name.clone())));
        let once = module.resources.iter().filter(|resource| matches!(resource.repetition, Repetition::Once));
        self.single.extend(once.map(|resource| Node::Resource(id, resource.address())));
    }

    fn add(&mut self, node: Node) {
        self.places.insert(node.clone(), self.nodes.len());
        self.nodes.push(node);
        self.before.push(Vec::new());
    }

    /// Whatever is inside of a module begins after its expansion, and is part of all of it.
    fn inside(&mut self, id: ModuleId, node: &Node) {
        self.order(&Node::Expand(id), node);
        self.order(node, &Node::Close(id));
    }

    fn connect(&mut self, config: &Config, id: ModuleId, later: &Node, references: Vec<(Reference, Option<Step>)>) {
        for (reference, key) in references {
            if let Some(earlier) = referred(config, id, &reference) {
                self.order_by(&earlier, later, key);
            }
        }
    }

    /// What a resource names in its `depends_on`.
    pub fn depended_on(&self, config: &Config, resource: &ResourceConfig) -> HashSet<usize> {
        let named = config.block(resource).depends_on.iter().map(|dependency| &dependency.reference);
        named.filter_map(|it| self.place(&referred(config, resource.module, it)?)).collect()
    }

    /// What a resource refers to only in this part of its body.
    pub fn referred_only_in(
        &self,
        config: &Config,
        resource: &ResourceConfig,
        part: &Body,
        rest: &Body,
    ) -> HashSet<usize> {
        let places = |references: Vec<Reference>| -> HashSet<usize> {
            let nodes = references.iter().filter_map(|reference| referred(config, resource.module, reference));
            nodes.filter_map(|node| self.place(&node)).collect()
        };
        let block = config.block(resource);
        let conditions = block.lifecycle.preconditions.iter().chain(&block.lifecycle.postconditions);
        let elsewhere = conditions
            .flat_map(|condition| [&condition.condition, &condition.error_message])
            .chain(block.repetition.expr())
            .chain(&block.lifecycle.prevent_destroy)
            .chain(block.lifecycle.replace_triggered_by.iter().map(|trigger| &trigger.expr))
            .flat_map(references)
            .chain(block.depends_on.iter().map(|dependency| dependency.reference.clone()))
            .chain(body_references(rest));
        &places(body_references(part)) - &places(elsewhere.collect())
    }

    /// `depends_on`: a module is meant with all that it does.
    fn connect_whole(&mut self, config: &Config, id: ModuleId, later: &Node, dependencies: &[Dependency]) {
        for Dependency { reference, key, .. } in dependencies {
            match reference {
                Reference::Module { name, .. } => {
                    if let Some(child) = config.modules[id].children.get(name) {
                        self.order(&Node::Close(*child), later);
                    }
                }
                other => self.connect(config, id, later, vec![(other.clone(), key.as_deref().and_then(written_key))]),
            }
        }
    }

    fn order(&mut self, earlier: &Node, later: &Node) {
        self.order_by(earlier, later, None);
    }

    /// A reference to something that is not there is reported when it is evaluated.
    fn order_by(&mut self, earlier: &Node, later: &Node, key: Option<Step>) {
        // What refers to itself is told so in words of its own, but for what is there more than once.
        if earlier == later && self.single.contains(later) {
            return;
        }
        if let (Some(earlier), Some(later)) = (self.places.get(earlier), self.places.get(later)) {
            self.before[*later].push(*earlier);
            match key {
                Some(key) => self.keyed.entry((*later, *earlier)).or_default().push(key),
                None => drop(self.whole.insert((*later, *earlier))),
            }
        }
    }

    /// Which instances of a resource a node refers to; `None` if it means all of them.
    pub fn meant(&self, later: usize, earlier: usize) -> Option<&[Step]> {
        self.keyed.get(&(later, earlier)).map(Vec::as_slice).filter(|_| !self.whole.contains(&(later, earlier)))
    }

    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub fn place(&self, node: &Node) -> Option<usize> {
        self.places.get(node).copied()
    }

    pub fn before(&self, place: usize) -> &[usize] {
        &self.before[place]
    }

    /// All nodes, each after those that it waits for; `Err` with those that can never begin.
    fn sorted(&self) -> Result<Vec<usize>, Vec<usize>> {
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut waiting: Vec<usize> = self.before.iter().map(Vec::len).collect();
        for (later, before) in self.before.iter().enumerate() {
            before.iter().for_each(|earlier| after[*earlier].push(later));
        }
        let mut order: Vec<usize> = (0..self.nodes.len()).filter(|place| waiting[*place] == 0).collect();
        let mut next = 0;
        while next < order.len() {
            for later in &after[order[next]] {
                waiting[*later] -= 1;
                if waiting[*later] == 0 {
                    order.push(*later);
                }
            }
            next += 1;
        }
        if order.len() == self.nodes.len() {
            return Ok(order);
        }
        Err((0..self.nodes.len()).filter(|place| waiting[*place] > 0).collect())
    }

    /// All nodes that wait for each other, if there are such.
    fn cycle(&self) -> Option<Vec<usize>> {
        let stuck = self.sorted().err()?;
        let mut graph = petgraph::graph::DiGraph::<usize, ()>::new();
        let indices: HashMap<usize, _> = stuck.iter().map(|place| (*place, graph.add_node(*place))).collect();
        for later in &stuck {
            for earlier in self.before[*later].iter().filter_map(|earlier| indices.get(earlier)) {
                graph.add_edge(*earlier, indices[later], ());
            }
        }
        let own = |node: &petgraph::graph::NodeIndex| graph.contains_edge(*node, *node);
        let rings = petgraph::algo::tarjan_scc(&graph);
        let ring = rings.into_iter().find(|ring| ring.len() > 1 || ring.iter().any(own))?;
        Some(ring.into_iter().map(|node| graph[node]).collect())
    }

    /// All nodes, each after those that it waits for.
    pub fn in_order(&self) -> Vec<usize> {
        self.sorted().unwrap_or_default()
    }

    /// All nodes in waves: none stands on another one of its wave.
    pub fn waves(&self) -> Vec<Vec<usize>> {
        let mut depths = vec![0; self.nodes.len()];
        let mut waves: Vec<Vec<usize>> = Vec::new();
        for place in self.in_order() {
            depths[place] = self.before[place].iter().map(|earlier| depths[*earlier] + 1).max().unwrap_or(0);
            if waves.len() <= depths[place] {
                waves.resize_with(depths[place] + 1, Vec::new);
            }
            waves[depths[place]].push(place);
        }
        waves
    }

    /// All that provider blocks refer to, near and far, in the order in which it can be evaluated.
    pub fn before_providers(&self) -> Vec<usize> {
        let providers = self.nodes.iter().enumerate().filter(|(_, node)| matches!(node, Node::Provider(_)));
        let needed: BTreeSet<usize> = providers.flat_map(|(place, _)| self.all_before(place)).collect();
        self.in_order().into_iter().filter(|place| needed.contains(place)).collect()
    }

    /// All variables and locals that `prevent_destroy` refers to, near and far, in the order in which they can be evaluated.
    pub fn before_protection(&self, config: &Config) -> Vec<usize> {
        let mut needed = BTreeSet::new();
        for (id, node) in config.modules.iter().enumerate() {
            let protecting =
                node.module.resources.iter().filter_map(|resource| resource.lifecycle.prevent_destroy.as_ref());
            for reference in protecting.flat_map(references) {
                let place = match reference {
                    Reference::Variable(name) => self.place(&Node::Variable(id, name)),
                    Reference::Local(name) => self.place(&Node::Local(id, name)),
                    _ => None,
                };
                needed.extend(place.into_iter().flat_map(|place| self.all_before(place).into_iter().chain([place])));
            }
        }
        if needed.is_empty() {
            return Vec::new();
        }
        self.in_order().into_iter().filter(|place| needed.contains(place)).collect()
    }

    /// What an apply has no use for: nothing that is done refers to it, near or far. `changed` are the resources of which
    /// something is made or changed.
    pub fn idle(&self, config: &Config, changed: &HashSet<usize>) -> HashSet<usize> {
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        for (later, before) in self.before.iter().enumerate() {
            before.iter().for_each(|earlier| after[*earlier].push(later));
        }
        let mut idle = HashSet::new();
        for place in self.in_order().into_iter().rev() {
            let uses = |later: &usize| match &self.nodes[*later] {
                Node::Expand(_) | Node::Provider(_) => true,
                // Whoever means all of a module means its outputs, unless nothing asks for that one either.
                Node::Close(_) => after[*later].iter().any(|last| !self.is_close(*last) && !idle.contains(last)),
                _ => !idle.contains(later),
            };
            let without_use = match &self.nodes[place] {
                Node::Output(id, _) if *id != 0 => !after[place].iter().any(uses),
                Node::Local(..) => !after[place].iter().filter(|later| !self.is_close(**later)).any(uses),
                Node::Variable(id, name) if *id != 0 => {
                    config.modules[*id].module.variables[name].validations.is_empty()
                        && !after[place].iter().filter(|later| !self.is_close(**later)).any(uses)
                }
                Node::Resource(..) if !changed.contains(&place) => {
                    let last =
                        |later: &&usize| self.is_close(**later) || matches!(self.nodes[**later], Node::Output(0, _));
                    !after[place].iter().filter(|later| !last(later)).any(uses)
                }
                _ => false,
            };
            if without_use {
                idle.insert(place);
            }
        }
        idle
    }

    fn is_close(&self, place: usize) -> bool {
        matches!(self.nodes[place], Node::Close(_))
    }

    /// The place of a provider's configuration, if no resource has to be there first.
    pub fn provider_at_hand(&self, address: &str) -> Option<usize> {
        let place = self.place(&Node::Provider(split_provider(address).0.to_owned()))?;
        let resource = |place: &usize| matches!(self.nodes[*place], Node::Resource(..));
        (!self.all_before(place).iter().any(resource)).then_some(place)
    }

    /// All nodes that a node waits for, near and far.
    pub fn all_before(&self, place: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = self.before[place].clone();
        while let Some(place) = open.pop() {
            if found.insert(place) {
                open.extend(&self.before[place]);
            }
        }
        found
    }
}

/// A key as it stands behind an address, in its brackets.
fn written_key(text: &str) -> Option<Step> {
    match serde_json::from_str(text.strip_prefix('[')?.strip_suffix(']')?).ok()? {
        serde_json::Value::String(key) => Some(Step::Key(key)),
        serde_json::Value::Number(index) => Some(Step::Index(usize::try_from(index.as_u64()?).ok()?)),
        _ => None,
    }
}

/// What a reference stands for.
fn referred(config: &Config, id: ModuleId, reference: &Reference) -> Option<Node> {
    Some(match reference {
        Reference::Variable(name) => Node::Variable(id, name.clone()),
        Reference::Local(name) => Node::Local(id, name.clone()),
        Reference::Resource { .. } | Reference::Data { .. } => Node::Resource(id, reference.to_string()),
        Reference::Module { name, output } => {
            let child = *config.modules[id].children.get(name)?;
            let outputs = &config.modules[child].module.outputs;
            match output.as_ref().filter(|output| outputs.contains_key(*output)) {
                Some(output) => Node::Output(child, output.clone()),
                None => Node::Close(child),
            }
        }
        _ => return None,
    })
}

/// A node as OpenTofu names it where it complains of a cycle. What a module is given is two nodes there.
fn cycle_names(config: &Config, node: &Node) -> Vec<String> {
    let name = config.node_name(node);
    match node {
        Node::Variable(id, _) if *id != 0 => {
            vec![format!("{name} (expand, reference)"), format!("{name} (expand, input)")]
        }
        Node::Local(..) | Node::Check(..) | Node::Expand(_) => vec![format!("{name} (expand)")],
        Node::Output(id, _) if *id != 0 => vec![format!("{name} (expand)")],
        Node::Close(_) => vec![format!("{name} (close)")],
        _ => vec![name],
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::native::config::Config;
    use crate::{Workspace, native::object::Outcome};

    fn load(text: &str) -> Outcome<Config> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("main.tf"), text).unwrap();
        let workspace = Workspace {
            folder: folder.path().to_owned(),
            scratch: folder.path().to_owned(),
            variables: BTreeMap::new(),
            state: None,
            environment: BTreeMap::new(),
        };
        let tree = landform_lang::Tree::load(&workspace.folder).map_err(crate::native::config::translate)?;
        Config::of_tree(tree, &workspace)
    }

    #[test]
    fn dependencies_reach_through_locals_and_cycles_are_found() {
        let config = load(
            "resource \"terraform_data\" \"a\" {}\nlocals { x = terraform_data.a.id }\n\
             resource \"terraform_data\" \"b\" { input = local.x }\n",
        );
        let config = config.unwrap_or_else(|found| panic!("{found:?}"));
        let b = &config.resources()[1];
        assert_eq!(b.dependencies.iter().collect::<Vec<_>>(), ["terraform_data.a"]);
        assert!(load("locals {\n  a = local.b\n  b = local.a\n}\n").is_err());
    }
}
