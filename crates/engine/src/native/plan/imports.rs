use std::collections::BTreeMap;

use landform_cty::Type;
use landform_lang::{Budget, Expr, Import, Repetition, evaluate};

use super::Planner;
use crate::native::config::{ResourceConfig, range, translate};
use crate::native::eval::{Each, Keys};
use crate::native::object::Outcome;
use crate::{Address, Diagnostic, Key};

impl Planner<'_> {
    /// The objects that `import` blocks want to be taken over by a resource, with their ids.
    pub(super) fn imports(&self, resource: &ResourceConfig) -> Outcome<BTreeMap<Address, String>> {
        let mut found = BTreeMap::new();
        for import in self.config().imports(resource) {
            let keys = match &import.for_each {
                Some(expr) => self.eval.root_keys(&Repetition::ForEach(expr.clone()))?,
                None => Keys::Once,
            };
            for (_, each) in keys.all() {
                let (address, id) = self.import(import, &each)?;
                found.insert(address, id);
            }
        }
        Ok(found)
    }

    fn import(&self, import: &Import, each: &Each) -> Outcome<(Address, String)> {
        let values = self.eval.values();
        let scope = self.eval.root_scope(&values, each);
        let value = |expr: &Expr| evaluate(expr, &scope, &mut Budget::default()).map_err(translate);
        let invalid = |summary: &str, detail: &str, expr: &Expr| {
            vec![Diagnostic { range: Some(range(expr.range())), ..Diagnostic::error(summary, detail) }]
        };
        let mut text = String::new();
        for (name, key) in &import.to {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(name);
            let Some(expr) = key else { continue };
            let key = value(expr)?;
            let key = match (key.as_str(), key.as_number().and_then(|number| number.to_string().parse().ok())) {
                (Some(name), _) => Key::Name(name.to_owned()),
                (None, Some(index)) => Key::Index(index),
                (None, None) => {
                    let detail = "The key of an import's target must be a known string or number.";
                    return Err(invalid("Invalid import address expression", detail, expr));
                }
            };
            text.push_str(&format!("[{key}]"));
        }
        let id = value(&import.id)?;
        let id = id.convert(&Type::String).ok().and_then(|id| id.as_str().map(str::to_owned));
        match (Address::parse(&text), id.filter(|id| !id.is_empty())) {
            (Some(address), Some(id)) => Ok((address, id)),
            (_, None) => {
                let detail = "The import ID must be a known string that is not empty.";
                Err(invalid("Invalid import id argument", detail, &import.id))
            }
            (None, _) => Err(invalid("Invalid import address expression", &text, &import.id)),
        }
    }
}
