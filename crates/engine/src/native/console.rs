//! Trying out expressions: what they mean, given the configuration, its inputs and the state.

use landform_lang::{Budget, Expr, check_references, evaluate, render_type, render_value};

use super::config::{self, Config, translate};
use super::eval::{Each, Eval};
use super::session::Session;
use super::{Native, clock, encode, unreadable};
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
            let _ = match self.config.resource_of(node) {
                Some(resource) => eval
                    .instances(resource.module)
                    .iter()
                    .try_for_each(|instance| eval.expand_resource(resource, instance).map(drop)),
                None => eval.node(node),
            };
            if let Some(resource) = self.config.resource_of(node) {
                self.take_objects(&eval, &resource.address);
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

    fn take_objects(&self, eval: &Eval<'_>, resource: &str) {
        let own = |stored: &&crate::state::Resource| config::config_address(&stored.address(None)) == resource;
        for stored in self.state.resources().iter().filter(own) {
            for instance in stored.instances.iter().filter(|instance| instance.deposed.is_none()) {
                let address = stored.address(instance.index_key.clone());
                let schema = super::show::schema_of(&self.schemas, &stored.provider, &address);
                let value = schema.and_then(|schema| encode::stored_value(instance, &schema.block).ok());
                if let Some(value) = value {
                    eval.set_object(&address, value);
                }
            }
        }
    }
}

fn failed(diagnostics: landform_lang::Diagnostics) -> EngineError {
    config::failure(translate(diagnostics))
}
