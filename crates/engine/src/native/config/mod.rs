//! The configuration of one run: the modules with what they say, and what depends on what in them.

mod calls;
mod graph;
mod inputs;
mod limits;
mod passed;
mod providers;
mod removals;
mod repeated;
mod sources;
mod spec;
mod statics;
mod warned;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use landform_cty::{Mark, Value};
use landform_lang::{Diagnostics, KeptFiles, Module, ProviderConfig, Resource, Tree};

pub use calls::brace_behind;
pub use graph::{Graph, Node};
pub use inputs::{
    Missing, check_files, check_variable_files, collect as collect_variables, missing as missing_variables, read_root,
    unkept as unkept_variables,
};
pub use limits::{range, unsupported};
use providers::ProviderKey;
pub use sources::provider_address;
pub use spec::body_spec;

use super::object::Outcome;
use super::show::source_of;
pub use crate::address::{config_address, module_path};
use crate::{Address, Diagnostic, EngineError, Key, Seen, Severity, SourceRange, Unsupported, Workspace};
use sources::Sources;

/// A module's place in [`Config::modules`]; the root is 0.
pub type ModuleId = usize;

pub struct Config {
    pub modules: Vec<ModuleNode>,
    pub graph: Graph,
    /// The values of the root module's variables.
    pub variables: BTreeMap<String, Value>,
    pub wrong_variables: inputs::Wrong,
    pub folder: std::path::PathBuf,
    resources: Vec<ResourceConfig>,
    by_address: HashMap<String, usize>,
    versions: BTreeMap<String, String>,
    /// What `provider` blocks are repeated over, by address, once it was asked for.
    repeated: repeated::Repeated,
    warnings: Vec<Diagnostic>,
}

/// One `module` block with what it calls, or the root.
pub struct ModuleNode {
    /// `module.a.module.b`; empty for the root.
    pub path: String,
    /// Where its files are, as seen from the root module; `.` for the root itself.
    pub place: String,
    /// Who calls it, and by what name.
    pub parent: Option<(ModuleId, String)>,
    pub children: BTreeMap<String, ModuleId>,
    pub module: Module,
    /// Empty `provider` blocks in whose place providers are passed.
    pub proxies: Vec<ProviderConfig>,
    sources: Sources,
    /// By its place in the module.
    resource_places: HashMap<String, usize>,
}

impl ModuleNode {
    /// As messages call it.
    pub fn name(&self) -> &str {
        if self.path.is_empty() { "the root module" } else { &self.path }
    }
}

/// One `resource` or `data` block.
pub struct ResourceConfig {
    pub module: ModuleId,
    /// `TYPE.NAME`, or `data.TYPE.NAME`: its address inside of the module.
    pub local: String,
    /// `module.a.TYPE.NAME`: its address in the whole configuration.
    pub address: String,
    pub data: bool,
    pub type_name: String,
    pub name: String,
    /// The provider in charge, as a state names it.
    pub provider: String,
    /// Which of several that is, if the provider's block makes several.
    pub provider_key: Option<ProviderKey>,
    /// The resources that it depends on, near and far, as the state lists them.
    pub dependencies: BTreeSet<String>,
    /// Whether a replacement comes before the end of the old object: because the block says so, or because something
    /// that stands on it does.
    pub create_before_destroy: bool,
}

impl ResourceConfig {
    /// The address of one object of it, in one instance of its module.
    pub fn instance(&self, module: &str, key: Option<Key>) -> Address {
        Address {
            module: module.to_owned(),
            data: self.data,
            type_name: self.type_name.clone(),
            name: self.name.clone(),
            key,
        }
    }
}

impl Config {
    /// The configuration that a plan has kept.
    pub fn kept(workspace: &Workspace, files: &KeptFiles) -> Outcome<Config> {
        let tree = Tree::load_kept(&workspace.folder, files).map_err(translate)?;
        Config::of_tree(tree, workspace)
    }

    /// The files that it was read from, for a plan to keep.
    pub fn files(&self) -> KeptFiles {
        let files = self.modules.iter().flat_map(|node| node.module.files.iter());
        files.map(|(place, text)| (place.clone(), text.clone())).collect()
    }

    pub fn of_tree(tree: Tree, workspace: &Workspace) -> Outcome<Config> {
        let mut warnings = Vec::new();
        let inputs = inputs::of_workspace(&tree.module, workspace, &mut warnings);
        let (variables, wrong_variables) = inputs.map_err(|found| [found, warnings.clone()].concat())?;
        Config { variables, wrong_variables, ..Config::without_inputs(tree, workspace)? }.with_warnings(warnings)
    }

    fn with_warnings(mut self, more: Vec<Diagnostic>) -> Outcome<Config> {
        self.warnings.extend(more);
        Ok(self)
    }

    /// For what needs no values: whether the configuration is sound.
    pub fn without_inputs(tree: Tree, workspace: &Workspace) -> Outcome<Config> {
        let mut config = Config::unconnected(tree, workspace)?;
        config.check_calls()?;
        config.graph = Graph::new(&config)?;
        config.resources = config.read_resources();
        config.spread_create_before_destroy();
        Ok(config)
    }

    /// For what only needs to know which modules and providers there are: not what depends on what.
    pub fn unconnected(tree: Tree, workspace: &Workspace) -> Outcome<Config> {
        let mut modules = Vec::new();
        flatten(tree, String::new(), None, &mut modules);
        let mut warnings = ignored(&modules[0].module);
        warnings.extend(modules.iter().flat_map(|node| warned::module_warnings(node, &modules)));
        warnings.extend(modules.iter().flat_map(warned::ignored_backends));
        warnings.extend(modules.iter().flat_map(warned::empty_blocks));
        let variables = BTreeMap::new();
        let mut versions = BTreeMap::new();
        modules.iter().for_each(|node| node.sources.collect_versions(&mut versions));
        let mut config = Config {
            modules,
            graph: Graph::default(),
            variables,
            wrong_variables: BTreeMap::new(),
            folder: workspace.folder.clone(),
            resources: Vec::new(),
            by_address: HashMap::new(),
            versions,
            repeated: Default::default(),
            warnings,
        };
        config.warnings.extend(config.undecided());
        let found = config.check_passed();
        if found.iter().any(Diagnostic::is_error) {
            return Err(found);
        }
        config.warnings.extend(found);
        config.resources = config.read_resources();
        config.by_address =
            config.resources.iter().enumerate().map(|(at, resource)| (resource.address.clone(), at)).collect();
        Ok(config)
    }

    fn read_resources(&self) -> Vec<ResourceConfig> {
        let mut resources = Vec::new();
        for (id, node) in self.modules.iter().enumerate() {
            for resource in &node.module.resources {
                let place = self.graph.place(&Node::Resource(id, resource.address()));
                let before = place.map(|place| self.graph.all_before(place)).unwrap_or_default();
                let (provider, provider_key) = self.charged(id, resource);
                resources.push(ResourceConfig {
                    module: id,
                    local: resource.address(),
                    address: self.absolute(id, &resource.address()),
                    data: resource.data,
                    type_name: resource.resource_type.clone(),
                    name: resource.name.clone(),
                    provider,
                    provider_key,
                    dependencies: before.into_iter().filter_map(|place| self.resource_at(place)).collect(),
                    create_before_destroy: resource.lifecycle.create_before_destroy == Some(true),
                });
            }
        }
        resources
    }

    /// What is made before its predecessor ends must find everything that it stands on made already.
    fn spread_create_before_destroy(&mut self) {
        let forced: BTreeSet<String> = self
            .resources
            .iter()
            .filter(|resource| resource.create_before_destroy)
            .flat_map(|resource| resource.dependencies.iter().cloned())
            .collect();
        for resource in self.resources.iter_mut().filter(|resource| !resource.data) {
            resource.create_before_destroy |= forced.contains(&resource.address);
        }
    }

    fn resource_at(&self, place: usize) -> Option<String> {
        match &self.graph.nodes()[place] {
            Node::Resource(id, local) => Some(self.absolute(*id, local)),
            _ => None,
        }
    }

    fn absolute(&self, id: ModuleId, local: &str) -> String {
        match self.modules[id].path.as_str() {
            "" => local.to_owned(),
            path => format!("{path}.{local}"),
        }
    }

    /// A node as a message names it.
    pub fn node_name(&self, node: &Node) -> String {
        match node {
            Node::Expand(id) | Node::Close(id) => self.modules[*id].path.clone(),
            Node::Variable(id, name) => self.absolute(*id, &format!("var.{name}")),
            Node::Local(id, name) => self.absolute(*id, &format!("local.{name}")),
            Node::Resource(id, local) => self.absolute(*id, local),
            Node::Provider(address) => address.clone(),
            Node::Output(id, name) => self.absolute(*id, &format!("output.{name}")),
            Node::Check(id, name) => self.absolute(*id, &format!("check.{name}")),
        }
    }

    pub fn root(&self) -> &Module {
        &self.modules[0].module
    }

    pub fn resources(&self) -> &[ResourceConfig] {
        &self.resources
    }

    /// The block that an object's address belongs to, if the configuration has one.
    pub fn resource(&self, address: &Address) -> Option<&ResourceConfig> {
        self.by_address.get(&config_address(address)).map(|at| &self.resources[*at])
    }

    /// Says of what providers have found where in the configuration it is.
    pub fn locate(&self, found: &mut [Diagnostic]) {
        for diagnostic in found.iter_mut().filter(|diagnostic| diagnostic.range.is_none()) {
            let (Some(path), Some(address)) = (&diagnostic.seen.argument, diagnostic.address.as_deref()) else {
                continue;
            };
            let resource = Address::parse(address).and_then(|address| self.resource(&address));
            let (body, header, of_check) =
                match (resource.map(|resource| self.block(resource)), self.provider_config(address)) {
                    (Some(block), _) => (&block.body, &block.range, block.check.is_some()),
                    (None, Some((_, block))) => (&block.body, &block.range, false),
                    (None, None) => continue,
                };
            let argument = match path.first() {
                Some(landform_protocol::Step::Attribute(name)) => body.argument(name),
                _ => None,
            };
            diagnostic.range = Some(match argument {
                Some(argument) => range(argument.range()),
                None => beginning(range(header.clone())),
            });
            diagnostic.seen.of_check = of_check;
        }
    }

    pub fn resource_of(&self, node: &Node) -> Option<&ResourceConfig> {
        let Node::Resource(id, local) = node else { return None };
        self.by_address.get(&self.absolute(*id, local)).map(|at| &self.resources[*at])
    }

    pub fn block(&self, resource: &ResourceConfig) -> &Resource {
        let node = &self.modules[resource.module];
        &node.module.resources[node.resource_places[&resource.local]]
    }

    pub fn has_resource(&self, id: ModuleId, local: &str) -> bool {
        self.modules[id].resource_places.contains_key(local)
    }

    /// The block that an `import` block is about.
    pub fn import_target(&self, id: ModuleId, import: &landform_lang::Import) -> Option<Node> {
        let (local, modules) = import.to.split_last()?;
        let mut module = id;
        for (name, _) in modules {
            module = *self.modules[module].children.get(name.strip_prefix("module.")?)?;
        }
        self.has_resource(module, &local.0).then(|| Node::Resource(module, local.0.clone()))
    }

    /// The `import` blocks about one resource.
    pub fn imports(&self, resource: &ResourceConfig) -> Vec<&landform_lang::Import> {
        let node = Node::Resource(resource.module, resource.local.clone());
        let about = |import: &&landform_lang::Import| self.import_target(0, import).as_ref() == Some(&node);
        self.root().imports.iter().filter(about).collect()
    }

    /// The resources that a data source waits for: those that it names itself, in `depends_on` or in an expression; all that
    /// anything else which it names in `depends_on` stands on; and those in `depends_on` of the modules around it, with all
    /// that they stand on. With conditions it waits for all that it stands on, since a change of that may make them hold.
    pub fn awaited(&self, resource: &ResourceConfig) -> BTreeSet<String> {
        let block = self.block(resource);
        if block.lifecycle.has_conditions() {
            return resource.dependencies.iter().cloned().collect();
        }
        let mut named = self.references_of(block);
        named.retain(|reference| matches!(reference, landform_lang::Reference::Resource { .. }));
        let mut places = BTreeSet::new();
        for node in self.whole(resource.module, named_in(&block.depends_on).chain(&named)) {
            let Some(place) = self.graph.place(&node) else { continue };
            places.insert(place);
            if !matches!(node, Node::Resource(..)) {
                places.extend(self.graph.all_before(place));
            }
        }
        let mut module = resource.module;
        while let Some((parent, call)) = &self.modules[module].parent {
            let around = self.whole(*parent, named_in(&self.modules[*parent].module.calls[call].depends_on));
            for place in around.iter().filter_map(|node| self.graph.place(node)) {
                places.insert(place);
                places.extend(self.graph.all_before(place));
            }
            module = *parent;
        }
        places.into_iter().filter_map(|place| self.resource_at(place)).collect()
    }

    /// All that the expressions of a block refer to.
    fn references_of(&self, block: &landform_lang::Resource) -> Vec<landform_lang::Reference> {
        let mut named = landform_lang::body_references(&block.body);
        named.extend(block.repetition.expr().map(landform_lang::references).unwrap_or_default());
        named
    }

    fn whole<'r>(&self, id: ModuleId, references: impl Iterator<Item = &'r landform_lang::Reference>) -> Vec<Node> {
        let node = |reference: &landform_lang::Reference| match reference {
            landform_lang::Reference::Module { name, .. } => {
                self.modules[id].children.get(name).copied().map(Node::Close)
            }
            landform_lang::Reference::Variable(name) => Some(Node::Variable(id, name.clone())),
            landform_lang::Reference::Local(name) => Some(Node::Local(id, name.clone())),
            other => Some(Node::Resource(id, other.to_string())),
        };
        references.filter_map(node).collect()
    }

    /// What is wrong inside of the expressions, whatever their values are.
    pub fn problems(&self) -> Vec<Diagnostic> {
        let all = self.modules.iter().flat_map(|node| {
            node.module.problems.iter().map(|problem| landform_lang::Diagnostic {
                detail: problem.detail.replace("the root module", node.name()),
                ..problem.clone()
            })
        });
        translate(Diagnostics(all.collect()))
    }

    pub fn warnings(&self) -> Vec<Diagnostic> {
        self.warnings.clone()
    }

    /// The version constraint for a provider, by source address.
    pub fn version_of(&self, source: &str) -> &str {
        self.versions.get(source).map_or("", String::as_str)
    }

    /// All modules but the root: name, source and folder.
    pub fn module_places(&self) -> Vec<(String, String, String)> {
        let place = |node: &ModuleNode| {
            let (parent, call) = node.parent.as_ref()?;
            let name = node.path.split('.').skip(1).step_by(2).collect::<Vec<_>>().join(".");
            Some((name, self.modules[*parent].module.calls[call].source.clone(), node.place.clone()))
        };
        self.modules.iter().filter_map(place).collect()
    }

    /// All providers that the configuration needs, by source address, with what it wants of their versions.
    pub fn requirements(&self) -> BTreeMap<String, String> {
        let mut needed: BTreeSet<String> =
            self.resources.iter().map(|resource| source_of(&resource.provider).to_owned()).collect();
        for (id, node) in self.modules.iter().enumerate() {
            needed.extend(node.sources.required());
            let imported = node.module.imports.iter().filter_map(|import| self.imported_by(id, import));
            needed.extend(imported);
            let blocks = node.module.providers.iter();
            needed.extend(blocks.map(|block| source_of(&node.sources.address(&block.name, None)).to_owned()));
        }
        needed.into_iter().map(|source| (source.clone(), self.version_of(&source).to_owned())).collect()
    }

    /// The provider of what an `import` block is about, where the configuration does not have it.
    fn imported_by(&self, id: ModuleId, import: &landform_lang::Import) -> Option<String> {
        if self.import_target(id, import).is_some() {
            return None;
        }
        let kind = import.to.last()?.0.split(['_', '.']).next()?;
        let name = import.provider.as_ref().map_or(kind, |(name, _)| name);
        Some(source_of(&self.modules[id].sources.address(name, None)).to_owned())
    }

    /// Whether a plan keeps the value of a variable: one that is declared, and not ephemeral.
    pub fn keeps(&self, variable: &str) -> bool {
        self.root().variables.get(variable).is_some_and(|variable| !variable.ephemeral)
    }

    /// The variables as they were given, before any conversion; defaults for the rest.
    pub fn variables_json(&self, workspace: &Workspace) -> BTreeMap<String, serde_json::Value> {
        let json = |name: &String, value: &Value| match workspace.variables.get(name) {
            // A plan does not keep what is ephemeral, and shows the default in its place.
            _ if value.contains_mark(Mark::Ephemeral) => {
                self.root().variables[name].default.as_ref()?.to_plain_json().ok()
            }
            Some(given) => Some(given.value.clone()),
            None => super::object::bare(value).to_plain_json().ok(),
        };
        self.variables.iter().filter_map(|(name, value)| Some((name.clone(), json(name, value)?))).collect()
    }
}

fn named_in(dependencies: &[landform_lang::Dependency]) -> impl Iterator<Item = &landform_lang::Reference> {
    dependencies.iter().map(|dependency| &dependency.reference)
}

fn flatten(tree: Tree, path: String, parent: Option<(ModuleId, String)>, modules: &mut Vec<ModuleNode>) -> ModuleId {
    let id = modules.len();
    let places = tree.module.resources.iter().enumerate();
    let resource_places = places.map(|(at, resource)| (resource.address(), at)).collect();
    modules.push(ModuleNode {
        path: path.clone(),
        place: if tree.place.is_empty() { ".".to_owned() } else { tree.place },
        parent,
        children: BTreeMap::new(),
        sources: Sources::new(&tree.module),
        module: tree.module,
        proxies: Vec::new(),
        resource_places,
    });
    for (name, child) in tree.children {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
        let inner = flatten(child, format!("{prefix}module.{name}"), Some((id, name.clone())), modules);
        let passed = modules[id].module.calls[&name].providers.clone();
        let replaced = |block: &mut ProviderConfig| {
            block.is_empty() && passed.contains_key(&(block.name.clone(), block.alias.clone()))
        };
        modules[inner].proxies = modules[inner].module.providers.extract_if(.., replaced).collect();
        modules[id].children.insert(name, inner);
    }
    id
}

/// What in a folder says that its state is kept somewhere else. Nothing, where the folder cannot be read: whoever uses it
/// is told why.
pub fn backends(folder: &Path) -> Vec<Unsupported> {
    let module = landform_lang::load(folder);
    let ignored = module.map(|module| module.ignored).unwrap_or_default();
    let reason = |ignored: landform_lang::Ignored| Unsupported {
        construct: ignored.construct,
        range: Some(range(ignored.range)),
    };
    ignored.into_iter().map(reason).collect()
}

fn ignored(module: &Module) -> Vec<Diagnostic> {
    let warn = |ignored: &landform_lang::Ignored| Diagnostic {
        severity: Severity::Warning,
        range: Some(range(ignored.range.clone())),
        ..Diagnostic::error(format!("Ignored: {}", ignored.construct), "Landform keeps the state itself.")
    };
    module.ignored.iter().map(warn).collect()
}

pub fn translate(diagnostics: Diagnostics) -> Vec<Diagnostic> {
    let one = |diagnostic: landform_lang::Diagnostic| {
        let range = diagnostic.range.map(range);
        let plain = match diagnostic.cause {
            landform_lang::Cause::Unsupported => not_supported(diagnostic.detail),
            _ => Diagnostic::error(diagnostic.summary, diagnostic.detail),
        };
        let landform_lang::Seen { values, around, call } = *diagnostic.seen;
        let (values, around) = (values.unwrap_or_default(), around.map(self::range));
        let seen = Seen { values, around, call, ..Seen::default() };
        Diagnostic { range, seen: Box::new(seen), ..plain }
    };
    diagnostics.into_iter().map(one).collect()
}

/// Where the inside of a block begins, behind its header.
fn beginning(header: SourceRange) -> SourceRange {
    let (line, column) = header.end.unwrap_or((header.line, header.column));
    SourceRange { line, column: column + 1, end: Some((line, column + 2)), ..header }
}

/// The summary of a diagnostic that is about this engine and not about the configuration.
const UNSUPPORTED: &str = "Unsupported construct";

pub fn not_supported(construct: String) -> Diagnostic {
    Diagnostic::error(UNSUPPORTED, construct)
}

/// What went wrong before anything was changed. If it is this engine that cannot, the other one may.
pub fn failure(diagnostics: Vec<Diagnostic>) -> EngineError {
    let foreign = |diagnostic: &Diagnostic| diagnostic.summary == UNSUPPORTED;
    if !diagnostics.iter().any(foreign) {
        return EngineError::Diagnostics(diagnostics);
    }
    let unsupported = |diagnostic: Diagnostic| Unsupported { construct: diagnostic.detail, range: diagnostic.range };
    EngineError::Unsupported(diagnostics.into_iter().filter(foreign).map(unsupported).collect())
}

#[cfg(test)]
mod tests {
    use super::module_path;

    #[test]
    fn keys_of_modules_are_left_out() {
        assert_eq!(module_path("module.a[0].module.b[\"x.[y\\\"]z\"]"), "module.a.module.b");
        assert_eq!(module_path(""), "");
    }
}
