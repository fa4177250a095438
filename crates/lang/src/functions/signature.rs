//! What a message tells of a function that was called in a wrong way.

use landform_cty::Value;
use serde_json::{Value as Json, json};

use super::{Function, Parameter};

impl Parameter {
    fn described(&self) -> Json {
        json!({ "name": self.name, "type": self.kind.ty().to_json() })
    }
}

impl Function {
    /// Its parameters and the type of what it returns, as far as that does not depend on the arguments.
    pub(crate) fn signature(&self) -> Json {
        let parameters: Vec<Json> = self.parameters.iter().map(Parameter::described).collect();
        let all = self.parameters.iter().chain(self.rest.as_ref());
        let any: Vec<Value> = all.map(|parameter| Value::unknown(parameter.kind.ty())).collect();
        let untyped =
            |parameter: &&Parameter| parameter.kind.ty() == landform_cty::Type::Dynamic && !parameter.takes_untyped;
        let undecided = self.parameters.iter().chain(self.rest.as_ref()).any(|parameter| untyped(&parameter));
        let returned = match undecided {
            true => None,
            false => (self.returns)(&any).ok(),
        };
        let returned = returned.unwrap_or(landform_cty::Type::Dynamic);
        let mut signature = json!({ "name": self.name, "params": parameters, "return_type": returned.to_json() });
        if let Some(rest) = &self.rest {
            signature["variadic_param"] = rest.described();
        }
        signature
    }
}
