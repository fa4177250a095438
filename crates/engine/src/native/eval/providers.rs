//! What the configuration says to providers, and which of them is in charge of an object.

use landform_cty::{Mark, Type, Value};
use landform_protocol::Block;

use super::{Each, Eval, parent_instance};
use crate::native::change::empty_object;
use crate::native::config::{ResourceConfig, brace_behind, range};
use crate::native::object::Outcome;
use crate::state::split_provider;
use crate::{Address, Diagnostic, Key};

impl Eval<'_> {
    /// What the configuration says to a provider.
    pub fn provider(&self, address: &str, block: &Block) -> Outcome<Value> {
        let Some((id, provider)) = self.config.provider_config(address) else { return Ok(empty_object(block)) };
        let each = self.provider_each(address)?.unwrap_or_default();
        let values = self.values();
        let scope = self.at(&values, id, &self.config.modules[id].path, &each);
        scope.decode_with(&provider.body, block, |_| brace_behind(&provider.range))
    }

    /// What a provider's block may refer to as `each`; `None` if the block makes no such configuration.
    pub fn provider_each(&self, address: &str) -> Outcome<Option<Each>> {
        let key = split_provider(address).1;
        let Some(keys) = self.config.provider_keys(address)? else {
            return Ok(key.is_none().then_some(Each::Once));
        };
        let mut keys = keys.iter().filter(|(name, _)| key == Some(&Key::Name((*name).clone()).to_string()));
        Ok(keys.next().map(|(name, value)| Each::Pair(name.clone(), value.clone())))
    }

    /// The provider that is in charge of an object, as a state names it.
    pub fn provider_for(&self, resource: &ResourceConfig, address: &Address, each: &Each) -> Outcome<String> {
        let Some(key) = &resource.provider_key else { return Ok(resource.provider.clone()) };
        let values = self.values();
        let value = match key.called {
            None => self.at(&values, resource.module, &address.module, each).evaluate(&key.expr)?,
            Some(called) => {
                let (mut module, mut instance) = (resource.module, address.module.as_str());
                while let Some((parent, _)) = self.config.modules[module].parent.as_ref().filter(|_| module != called) {
                    (module, instance) = (*parent, parent_instance(instance));
                }
                let outer = self.config.modules[called].parent.as_ref().map_or(0, |(parent, _)| *parent);
                self.at(&values, outer, parent_instance(instance), &values.each(instance)).evaluate(&key.expr)?
            }
        };
        let name = suitable(&value, address).map_err(|detail| {
            let problem = Diagnostic::error("Invalid provider instance key", detail);
            vec![Diagnostic { range: Some(range(key.expr.range())), ..problem }]
        })?;
        Ok(format!("{}[{}]", resource.provider, Key::Name(name)))
    }
}

fn suitable(value: &Value, address: &Address) -> Result<String, String> {
    if value.has_mark(Mark::Sensitive) {
        return Err("A provider instance key must not be derived from a sensitive value.".to_owned());
    }
    if value.has_mark(Mark::Ephemeral) {
        return Err("A provider instance key must not be derived from an ephemeral value.".to_owned());
    }
    if value.is_null() {
        return Err("A provider instance key must not be null.".to_owned());
    }
    if !value.is_known() {
        return Err(format!(
            "The provider instance key for {address} depends on values that cannot be determined until apply, and so OpenTofu \
             cannot select a provider instance to create a plan for this resource instance."
        ));
    }
    let text =
        value.convert(&Type::String).map_err(|error| format!("The given instance key is unsuitable: {error}."))?;
    Ok(text.as_str().unwrap_or_default().to_owned())
}
