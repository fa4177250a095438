//! The configuration of one run: the module with its inputs, and what depends on what in it.

use std::collections::{BTreeMap, BTreeSet};

use landform_cty::{Mark, Type, Value};
use landform_lang::{Budget, Diagnostics, Module, check_validations, evaluate};
use landform_protocol::Block;

use super::content::PlannedOutput;
use super::graph::{Graph, Node};
use super::inputs;
use super::limits::range;
use super::object::{Outcome, at};
use super::scope::{At, Instance};
use super::sources::Sources;
use super::spec::body_spec;
use super::version::satisfies;
use crate::state::{State, StateOutput, TERRAFORM_VERSION};
use crate::{Address, Diagnostic, EngineError, Key, Severity, Unsupported, Workspace};

pub use super::values::Values;

pub struct Config {
    pub(super) module: Module,
    pub(super) variables: BTreeMap<String, Value>,
    pub(super) folder: std::path::PathBuf,
    /// For each local value the locals that it needs, in the order in which they can be evaluated, itself last.
    pub(super) local_order: BTreeMap<String, Vec<String>>,
    resources: Vec<ResourceConfig>,
    outputs: BTreeMap<String, BTreeSet<String>>,
    sources: Sources,
    warnings: Vec<Diagnostic>,
}

/// One `resource` block.
pub struct ResourceConfig {
    /// `TYPE.NAME`
    pub address: String,
    pub type_name: String,
    pub name: String,
    /// The provider in charge, as a state names it.
    pub provider: String,
    /// The resources that it depends on, near and far, as the state lists them.
    pub dependencies: BTreeSet<String>,
    /// Its place in the module.
    place: usize,
}

impl Config {
    pub fn load(workspace: &Workspace) -> Outcome<Config> {
        let module = landform_lang::load(&workspace.folder).map_err(translate)?;
        check_version(&module)?;
        let sources = Sources::new(&module);
        let mut warnings = ignored(&module);
        let variables = inputs::of_workspace(&module, workspace, &mut warnings)?;
        let graph = Graph::new(&module, &sources)?;
        let resources = module
            .resources
            .iter()
            .enumerate()
            .map(|(place, resource)| ResourceConfig {
                address: resource.address(),
                type_name: resource.resource_type.clone(),
                name: resource.name.clone(),
                provider: sources.address_of(resource),
                dependencies: graph.resources_before(&Node::Resource(resource.address())),
                place,
            })
            .collect();
        let outputs = module
            .outputs
            .keys()
            .map(|name| (name.clone(), graph.resources_before(&Node::Output(name.clone()))))
            .collect();
        let local_order = module.locals.keys().map(|name| (name.clone(), graph.locals_until(name))).collect();
        let folder = workspace.folder.clone();
        let config = Config { module, variables, folder, local_order, resources, outputs, sources, warnings };
        config.check_variables()?;
        Ok(config)
    }

    fn check_variables(&self) -> Outcome<()> {
        let nothing = Values::default();
        for variable in self.module.variables.values() {
            let scope = At::new(self, Some(&nothing), Instance::None);
            check_validations(variable, &scope, &mut Budget::default()).map_err(translate)?;
        }
        Ok(())
    }

    pub fn resources(&self) -> std::slice::Iter<'_, ResourceConfig> {
        self.resources.iter()
    }

    /// The resources that the one at `TYPE.NAME` depends on; none for one that is not in the configuration.
    pub fn dependencies(&self, resource: &str) -> BTreeSet<String> {
        let found = self.resources.iter().find(|config| config.address == resource);
        found.map(|config| config.dependencies.clone()).unwrap_or_default()
    }

    pub fn output_dependencies(&self, name: &str) -> BTreeSet<String> {
        self.outputs.get(name).cloned().unwrap_or_default()
    }

    pub fn warnings(&self) -> Vec<Diagnostic> {
        self.warnings.clone()
    }

    /// The version constraint for a provider, by source address.
    pub fn version_of(&self, source: &str) -> &str {
        self.sources.version_of(source)
    }

    pub fn is_ephemeral(&self, variable: &str) -> bool {
        self.module.variables.get(variable).is_some_and(|variable| variable.ephemeral)
    }

    /// The variables as they were given, before any conversion; defaults for the rest.
    pub fn variables_json(&self, workspace: &Workspace) -> BTreeMap<String, serde_json::Value> {
        let shown = self.variables.iter().filter(|(_, value)| !value.contains_mark(Mark::Ephemeral));
        let json = |name: &String, value: &Value| match workspace.variables.get(name) {
            Some(given) => Some(given.value.clone()),
            None => super::object::bare(value).to_plain_json().ok(),
        };
        shown.filter_map(|(name, value)| Some((name.clone(), json(name, value)?))).collect()
    }

    /// The addresses of the providers that have a block in the configuration and something to do.
    pub fn configured_providers(&self) -> BTreeSet<String> {
        let used: BTreeSet<&String> = self.resources.iter().map(|resource| &resource.provider).collect();
        let blocks =
            self.module.providers.iter().map(|block| self.sources.address(&block.name, block.alias.as_deref()));
        blocks.filter(|address| used.contains(address)).collect()
    }

    /// What the configuration says to a provider. `values` is missing while nothing is known yet.
    pub fn provider_config(&self, address: &str, block: &Block, values: Option<&Values>) -> Outcome<Value> {
        let found = self
            .module
            .providers
            .iter()
            .find(|provider| self.sources.address(&provider.name, provider.alias.as_deref()) == address);
        match found {
            Some(provider) => self.decode(&provider.body, block, &At::new(self, values, Instance::None)),
            None => Ok(super::change::empty_object(block)),
        }
    }

    fn decode(&self, body: &landform_lang::Body, block: &Block, scope: &At<'_>) -> Outcome<Value> {
        let decoded = landform_lang::decode_body(body, &body_spec(block), scope, &mut Budget::default());
        decoded.map_err(translate)
    }

    /// How many instances a resource has; `None` without `count`.
    pub fn count(&self, resource: &ResourceConfig, values: &Values) -> Outcome<Option<u64>> {
        let Some(expr) = &self.module.resources[resource.place].count else { return Ok(None) };
        let invalid = |detail: &str| {
            vec![Diagnostic { range: Some(range(expr.range())), ..Diagnostic::error("Invalid count argument", detail) }]
        };
        let scope = At::new(self, Some(values), Instance::None);
        let value = evaluate(expr, &scope, &mut Budget::default()).map_err(translate)?;
        if value.contains_mark(Mark::Sensitive) || value.contains_mark(Mark::Ephemeral) {
            let detail = "Sensitive and ephemeral values, or values derived from them, cannot be used as count \
                          arguments: they would be disclosed by the number of instances.";
            return Err(invalid(detail));
        }
        let value = value
            .convert(&Type::Number)
            .map_err(|error| invalid(&format!("The given \"count\" argument value is unsuitable: {error}.")))?;
        if value.is_null() {
            return Err(invalid("The given \"count\" argument value is null. An integer is required."));
        }
        let Some(number) = value.as_number() else {
            let detail = "The \"count\" value depends on resource attributes that cannot be determined until apply, \
                          so it cannot be predicted how many instances will be created.";
            return Err(invalid(detail));
        };
        match number.to_string().parse::<u64>() {
            Ok(count) if count <= MAX_COUNT => Ok(Some(count)),
            Ok(_) => Err(invalid("The given \"count\" argument value is too large.")),
            Err(_) => Err(invalid(
                "The given \"count\" argument value is unsuitable: it must be a whole number, zero or more.",
            )),
        }
    }

    /// What the configuration wants of one object.
    pub fn body(&self, address: &Address, block: &Block, values: &Values) -> Outcome<Value> {
        let resource = self.resource(address)?;
        let instance = match &address.key {
            Some(Key::Index(index)) => Instance::Index(*index),
            _ => Instance::None,
        };
        let value = self.decode(&resource.body, block, &At::new(self, Some(values), instance));
        let value =
            value.map_err(|found| found.into_iter().map(|diagnostic| at(address, diagnostic)).collect::<Vec<_>>())?;
        if value.contains_mark(Mark::Ephemeral) {
            return Err(vec![at(address, unsupported(format!("ephemeral value in {address}")))]);
        }
        if sets_write_only(block, &value) {
            return Err(vec![at(address, unsupported(format!("write-only argument of {address}")))]);
        }
        Ok(value)
    }

    /// What the configuration wants of any instance of a resource, whatever the inputs are.
    pub fn body_unknown(&self, resource: &ResourceConfig, block: &Block) -> Outcome<Value> {
        let resource = &self.module.resources[resource.place];
        let instance = if resource.count.is_some() { Instance::AnyIndex } else { Instance::None };
        self.decode(&resource.body, block, &At::new(self, None, instance))
    }

    fn resource(&self, address: &Address) -> Outcome<&landform_lang::Resource> {
        let name = address.resource();
        self.module.resources.iter().find(|resource| resource.address() == name).ok_or_else(|| {
            vec![at(
                address,
                Diagnostic::error("Resource has no configuration", format!("{address} is not configured.")),
            )]
        })
    }

    /// The value of an output, checked for what must not leave by it.
    pub fn output(&self, name: &str, values: &Values) -> Outcome<Value> {
        let output = &self.module.outputs[name];
        let scope = At::new(self, Some(values), Instance::None);
        let value = evaluate(&output.value, &scope, &mut Budget::default()).map_err(translate)?;
        let wrong = |summary: &str, detail: &str| {
            vec![Diagnostic { range: Some(range(output.range.clone())), ..Diagnostic::error(summary, detail) }]
        };
        if value.contains_mark(Mark::Ephemeral) {
            return Err(wrong("Invalid output value", "Output values cannot be ephemeral in the root module."));
        }
        if value.contains_mark(Mark::Sensitive) && !output.sensitive {
            let detail = "To reduce the risk of accidentally exporting sensitive data that was intended to be only \
                          internal, any root module output containing sensitive data must be explicitly marked as \
                          sensitive. Add the following argument if that is the intent:\n    sensitive = true";
            return Err(wrong("Output refers to sensitive values", detail));
        }
        Ok(super::object::bare(&value))
    }

    pub fn planned_outputs(&self, base: &State, values: &Values) -> Outcome<BTreeMap<String, PlannedOutput>> {
        let mut planned = BTreeMap::new();
        let mut found = Vec::new();
        for (name, output) in &self.module.outputs {
            match self.output(name, values) {
                Ok(after) => {
                    let before = base.outputs.get(name);
                    planned.insert(name.clone(), planned_output(before, after, output.sensitive, false)?);
                }
                Err(diagnostics) => found.extend(diagnostics),
            }
        }
        for (name, before) in base.outputs.iter().filter(|(name, _)| !self.module.outputs.contains_key(*name)) {
            planned.insert(name.clone(), removed_output(before)?);
        }
        if found.is_empty() { Ok(planned) } else { Err(found) }
    }

    /// All outputs go when everything is destroyed.
    pub fn removed_outputs(&self, base: &State) -> Outcome<BTreeMap<String, PlannedOutput>> {
        base.outputs.iter().map(|(name, before)| Ok((name.clone(), removed_output(before)?))).collect()
    }
}

/// More instances than this are a mistake, and each costs memory in a process that serves others too.
const MAX_COUNT: u64 = 100_000;

fn removed_output(before: &StateOutput) -> Outcome<PlannedOutput> {
    planned_output(Some(before), Value::null(Type::Dynamic), before.sensitive, true)
}

fn planned_output(
    before: Option<&StateOutput>,
    after: Value,
    sensitive: bool,
    removed: bool,
) -> Outcome<PlannedOutput> {
    let stored = before
        .map(stored_output)
        .transpose()
        .map_err(|detail| vec![Diagnostic::error("Invalid output value saved in state", detail)])?;
    Ok(PlannedOutput {
        before: stored.unwrap_or_else(|| Value::null(Type::Dynamic)),
        after,
        sensitive,
        was_sensitive: before.is_some_and(|output| output.sensitive),
        removed,
        existed: before.is_some(),
    })
}

fn stored_output(output: &StateOutput) -> Result<Value, String> {
    let json = |raw: &serde_json::value::RawValue| {
        serde_json::from_str::<serde_json::Value>(raw.get()).map_err(|error| error.to_string())
    };
    let ty = Type::from_json(&json(&output.ty)?).map_err(|error| error.to_string())?;
    Value::from_json(&json(&output.value)?, &ty).map_err(|error| error.to_string())
}

fn check_version(module: &Module) -> Outcome<()> {
    let unmet = |constraint: &&String| satisfies(constraint) != Some(true);
    match module.required_versions.iter().find(unmet) {
        None => Ok(()),
        Some(constraint) => {
            let detail = format!(
                "This configuration requires the version {constraint:?} of OpenTofu; the native engine works as OpenTofu \
                 {TERRAFORM_VERSION}."
            );
            Err(vec![Diagnostic::error("Unsupported OpenTofu Core version", detail)])
        }
    }
}

fn ignored(module: &Module) -> Vec<Diagnostic> {
    let warn = |ignored: &landform_lang::Ignored| Diagnostic {
        severity: Severity::Warning,
        range: Some(range(ignored.range.clone())),
        ..Diagnostic::error(format!("Ignored: {}", ignored.construct), "Landform keeps the state itself.")
    };
    module.ignored.iter().map(warn).collect()
}

/// A configuration that cannot be read is wrong for every engine; one that `lang` does not know is left to the other.
pub fn unsupported_load(diagnostics: Diagnostics) -> Result<Vec<Unsupported>, EngineError> {
    let foreign = |diagnostic: &landform_lang::Diagnostic| diagnostic.cause == landform_lang::Cause::Unsupported;
    if diagnostics.0.iter().all(foreign) {
        let unsupported = |diagnostic: landform_lang::Diagnostic| Unsupported {
            construct: diagnostic.detail,
            range: diagnostic.range.map(range),
        };
        return Ok(diagnostics.into_iter().map(unsupported).collect());
    }
    Err(EngineError::Diagnostics(translate(diagnostics)))
}

pub fn translate(diagnostics: Diagnostics) -> Vec<Diagnostic> {
    let one = |diagnostic: landform_lang::Diagnostic| {
        let range = diagnostic.range.map(range);
        let plain = match diagnostic.cause {
            landform_lang::Cause::Unsupported => unsupported(diagnostic.detail),
            _ => Diagnostic::error(diagnostic.summary, diagnostic.detail),
        };
        Diagnostic { range, ..plain }
    };
    diagnostics.into_iter().map(one).collect()
}

/// The summary of a diagnostic that is about this engine and not about the configuration.
const UNSUPPORTED: &str = "Unsupported construct";

fn unsupported(construct: String) -> Diagnostic {
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

/// Whether the configuration says something that a provider must not give back.
fn sets_write_only(block: &Block, value: &Value) -> bool {
    let mut found = false;
    value.walk(&mut |path, part| {
        let write_only = super::change::attribute_at(block, path).is_some_and(|attribute| attribute.write_only);
        found |= write_only && !part.is_null();
        !found
    });
    found
}
