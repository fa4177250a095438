//! Trying out expressions: what they mean, given the configuration, its inputs and the state.

use std::collections::BTreeSet;

use landform_cty::Value;
use landform_lang::{Budget, Expr, Repetition, check_references, evaluate, render_type, render_value};

use super::config::{self, Config, ResourceConfig, translate};
use super::eval::{Each, Eval, Keys};
use super::session::Session;
use super::{Native, clock, unreadable};
use crate::state::State;
use crate::{EngineError, Workspace};

/// A configuration with its values.
pub struct Console {
    config: Config,
    state: State,
    schemas: super::show::Schemas,
}

impl Native {
    /// Providers are started for their schemas, and not configured.
    pub async fn console(&self, workspace: &Workspace) -> Result<Console, EngineError> {
        let tree = config::unsupported(workspace, &self.trees)?.map_err(EngineError::Unsupported)?;
        let config = Config::of_tree(tree, workspace).map_err(config::failure)?;
        let base = workspace.state.as_deref().map(State::read).transpose().map_err(unreadable)?;
        let state = base.unwrap_or_else(|| State::new(String::new()));
        let session = Session::new(&*self.providers, workspace);
        for resource in state.resources() {
            session.started(&resource.provider, &config).await.map_err(EngineError::Diagnostics)?;
        }
        for resource in config.resources() {
            // Without it there is less to say of what is not there yet.
            let _ = session.started(&resource.provider, &config).await;
        }
        Ok(Console { schemas: session.schemas(), config, state })
    }
}

impl Console {
    /// The value of an expression in the root module, as `tofu console` writes it. What has no value yet is unknown.
    pub fn answer(&self, line: &str) -> Result<String, EngineError> {
        let expr = Expr::parse("<console-input>", line).map_err(failed)?;
        let eval = Eval::applying(&self.config, &clock::now(), Eval::unchecked(&self.config));
        for place in self.config.graph.in_order() {
            let node = &self.config.graph.nodes()[place];
            // What cannot be evaluated is missed only by an expression that asks for it.
            match self.config.resource_of(node) {
                Some(resource) => self.take_objects(&eval, resource),
                None => drop(eval.node(node)),
            }
        }
        let values = eval.values();
        let scope = eval.root_scope(&values, &Each::Once);
        check_references(&expr, &scope).map_err(failed)?;
        if let Some(inner) = expr.argument_of("type") {
            let value = evaluate(&inner, &scope, &mut Budget::default()).map_err(failed)?;
            return Ok(render_type(&value.ty));
        }
        let value = evaluate(&expr, &scope, &mut Budget::default()).map_err(failed)?;
        Ok(render_value(&value))
    }

    /// A resource is what there is of it in the state, whatever the configuration wants; where there is nothing, its type is known
    /// unless there can be several.
    fn take_objects(&self, eval: &Eval<'_>, resource: &ResourceConfig) {
        let own = |stored: &&crate::state::Resource| config::config_address(&stored.address(None)) == resource.address;
        let mut there = Vec::new();
        let address = resource.instance("", None);
        let mut schema = super::show::schema_of(&self.schemas, &resource.provider, &address);
        for stored in self.state.resources().iter().filter(own) {
            schema = super::show::schema_of(&self.schemas, &stored.provider, &stored.address(None));
            let current = stored.instances.iter().filter(|instance| instance.deposed.is_none());
            there.extend(current.map(|instance| (stored.address(instance.index_key.clone()), instance.clone())));
        }
        let homes: BTreeSet<String> = there.iter().map(|(address, _)| address.module.clone()).collect();
        eval.only_what_is_there(resource, there, schema.map(|schema| &schema.block));
        for instance in eval.instances(resource.module).iter().filter(|instance| !homes.contains(*instance)) {
            match (&self.config.block(resource).repetition, schema) {
                (Repetition::Once, Some(schema)) => {
                    let unknown = Value::unknown(schema.block.implied_type());
                    eval.set_object(&resource.instance(instance, None), unknown);
                }
                _ => eval.values_mut().expand_resource(instance, &resource.local, Keys::AnyCount),
            }
        }
    }
}

fn failed(diagnostics: landform_lang::Diagnostics) -> EngineError {
    config::failure(translate(diagnostics))
}
