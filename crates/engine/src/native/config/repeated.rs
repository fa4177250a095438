//! `provider` blocks with `for_each`. What they are repeated over is known before anything is evaluated, also where nothing
//! else of the inputs counts yet.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use landform_cty::{Mark, Type, Value};
use landform_lang::{Budget, Constants, Expr, evaluate};

use super::{Config, not_supported, range};
use crate::native::object::Outcome;
use crate::state::split_provider;
use crate::{Diagnostic, Key};

/// By the address of the block.
pub type Repeated = OnceLock<Outcome<HashMap<String, BTreeMap<String, Value>>>>;

impl Config {
    /// The keys of a `provider` block with what each of them stands for; `None` of a block that is not repeated.
    pub fn provider_keys(&self, address: &str) -> Outcome<Option<&BTreeMap<String, Value>>> {
        let repeated = self.repeated.get_or_init(|| self.evaluate_repeated()).as_ref();
        Ok(repeated.map_err(Clone::clone)?.get(split_provider(address).0))
    }

    /// All configurations that a block makes: the addresses under which a state knows them.
    pub fn provider_instances(&self, address: &str) -> Outcome<Vec<String>> {
        Ok(match self.provider_keys(address)? {
            None => vec![address.to_owned()],
            Some(keys) => keys.keys().map(|key| format!("{address}[{}]", Key::Name(key.clone()))).collect(),
        })
    }

    fn evaluate_repeated(&self) -> Outcome<HashMap<String, BTreeMap<String, Value>>> {
        let mut repeated = HashMap::new();
        for block in &self.root().providers {
            if let Some(for_each) = &block.for_each {
                repeated.insert(self.provider_block(0, block), self.pairs(for_each)?);
            }
        }
        Ok(repeated)
    }

    /// What is wrong here OpenTofu has words for that are not ours.
    fn pairs(&self, for_each: &Expr) -> Outcome<BTreeMap<String, Value>> {
        let unsuitable = || {
            let problem = not_supported("provider for_each over what has no plain keys".to_owned());
            vec![Diagnostic { range: Some(range(for_each.range())), ..problem }]
        };
        let (folder, variables) = (self.folder.as_path(), Some(&self.variables));
        let scope = Constants { module: self.root(), folder, place: ".", variables, within: None };
        let value = evaluate(for_each, &scope, &mut Budget::default()).map_err(|_| unsuitable())?;
        let secret = value.contains_mark(Mark::Sensitive) || value.contains_mark(Mark::Ephemeral);
        if secret || !value.is_wholly_known() || value.is_null() {
            return Err(unsuitable());
        }
        match (&value.ty, value.as_mapping(), value.as_sequence()) {
            (_, Some(fields), _) => Ok(fields.iter().map(|(key, value)| (key.clone(), value.clone())).collect()),
            (Type::Set(_), _, Some(elements)) => {
                let pair = |element: &Value| Some((element.as_str()?.to_owned(), element.clone()));
                elements.iter().map(pair).collect::<Option<_>>().ok_or_else(unsuitable)
            }
            _ => Err(unsuitable()),
        }
    }
}
