use crate::native::config::{Config, ModuleId};
use crate::{Address, Key};

/// A `moved` block.
pub(super) struct Statement {
    /// The module that it stands in.
    pub(super) module: ModuleId,
    /// The names on that module's path.
    pub(super) path: Vec<String>,
    pub(super) from: End,
    pub(super) to: End,
    /// Neither end has a key, so all instances are meant.
    pub(super) all: bool,
    pub(super) range: landform_lang::SourceRange,
}

/// `module.a[0]` or `module.a.TYPE.NAME[0]`, relative to the module that says it.
#[derive(Clone)]
pub(super) struct End {
    pub(super) modules: Vec<ModuleStep>,
    pub(super) object: Option<Address>,
}

pub(super) type ModuleStep = (String, Option<Key>);

/// A key that the instances which an end may mean have: this one, or any.
#[derive(Clone, PartialEq)]
enum Keyed {
    Any,
    Only(Option<Key>),
}

impl Keyed {
    fn overlaps(&self, other: &Keyed) -> bool {
        *self == Keyed::Any || *other == Keyed::Any || self == other
    }
}

/// All that an end may mean: module by module, and the resource at the end, if it is one.
struct Reach {
    modules: Vec<(String, Keyed)>,
    object: Option<(String, Keyed)>,
}

impl Reach {
    fn overlaps(&self, other: &Reach) -> bool {
        let object = match (&self.object, &other.object) {
            (Some((name, key)), Some((other, other_key))) => name == other && key.overlaps(other_key),
            (None, None) => true,
            _ => false,
        };
        object && self.modules.len() == other.modules.len() && self.begins_with(&other.modules)
    }

    /// Whether this is inside of a module that the other may mean.
    fn is_within(&self, outer: &Reach) -> bool {
        let deeper = self.modules.len() > outer.modules.len() || self.object.is_some();
        outer.object.is_none() && deeper && self.begins_with(&outer.modules)
    }

    fn begins_with(&self, outer: &[(String, Keyed)]) -> bool {
        let same = |((name, key), (other, other_key)): (&(String, Keyed), &(String, Keyed))| {
            name == other && key.overlaps(other_key)
        };
        self.modules.len() >= outer.len() && self.modules.iter().zip(outer).all(same)
    }
}

impl End {
    fn parse(text: &str) -> Option<End> {
        match Address::parse(text) {
            Some(address) => Some(End { modules: steps(&address.module), object: Some(address) }),
            None => {
                let modules = steps(text);
                (!modules.is_empty()).then_some(End { modules, object: None })
            }
        }
    }

    fn is_keyless(&self) -> bool {
        match &self.object {
            Some(object) => object.key.is_none(),
            None => self.modules.last().is_none_or(|(_, key)| key.is_none()),
        }
    }

    /// Its address where the module that says it is this instance.
    pub(super) fn absolute(&self, instance: &str) -> String {
        let module = module_text(&[steps(instance), self.modules.clone()].concat());
        match &self.object {
            Some(object) => Address { module, ..object.clone() }.to_string(),
            None => module,
        }
    }
}

impl Statement {
    pub(super) fn all_of(config: &Config) -> Vec<Statement> {
        let mut statements = Vec::new();
        for (module, node) in config.modules.iter().enumerate() {
            for moved in &node.module.moved {
                let (Some(from), Some(to)) = (End::parse(&moved.from), End::parse(&moved.to)) else { continue };
                let path = steps(&node.path).into_iter().map(|(name, _)| name).collect();
                let (all, range) = (from.is_keyless() && to.is_keyless(), moved.range.clone());
                statements.push(Statement { module, path, all, from, to, range });
            }
        }
        statements
    }

    /// One instance of a module becomes another, as the root module would say it.
    pub(super) fn between_modules(
        from: Vec<ModuleStep>,
        to: Vec<ModuleStep>,
        range: landform_lang::SourceRange,
    ) -> Statement {
        let end = |modules| End { modules, object: None };
        Statement { module: 0, path: Vec::new(), from: end(from), to: end(to), all: false, range }
    }

    /// Whether one of its ends is this instance of a module, or something directly inside of it.
    pub(super) fn selects_module(&self, instance: &[ModuleStep]) -> bool {
        let wanted: Vec<(String, Keyed)> =
            instance.iter().map(|(name, key)| (name.clone(), Keyed::Only(key.clone()))).collect();
        [&self.from, &self.to].into_iter().any(|end| {
            let reach = self.reach(end);
            reach.modules.len() == wanted.len() && reach.begins_with(&wanted)
        })
    }

    fn reach(&self, end: &End) -> Reach {
        let outer = self.path.iter().map(|name| (name.clone(), Keyed::Any));
        let inner = end.modules.iter().map(|(name, key)| (name.clone(), Keyed::Only(key.clone())));
        let mut modules: Vec<(String, Keyed)> = outer.chain(inner).collect();
        let any = |key: &Option<Key>| if self.all { Keyed::Any } else { Keyed::Only(key.clone()) };
        let object = end.object.as_ref().map(|object| (object.local(), any(&object.key)));
        if object.is_none()
            && self.all
            && let Some(last) = modules.last_mut()
        {
            last.1 = Keyed::Any;
        }
        Reach { modules, object }
    }

    /// Whether the other one has to be carried out before this one.
    pub(super) fn comes_after(&self, other: &Statement) -> bool {
        let (from, to) = (self.reach(&self.from), self.reach(&self.to));
        let (other_from, other_to) = (other.reach(&other.from), other.reach(&other.to));
        if from.overlaps(&other_to) {
            return true;
        }
        let nested = from.is_within(&other_to)
            || to.is_within(&other_to)
            || other_from.is_within(&from)
            || other_to.is_within(&from);
        // A module that only gets another key has the same insides before and after: what they say themselves can wait.
        nested && (self.path.len() >= other.path.len() || !self.changes_keys_only())
    }

    /// Where an object at this address is afterwards, if the statement is about it.
    pub(super) fn destination(&self, address: &Address) -> Option<Address> {
        let path = steps(&address.module);
        let depth = self.path.len();
        let (outer, inner) = path.split_at_checked(depth)?;
        if !outer.iter().map(|(name, _)| name).eq(&self.path) {
            return None;
        }
        let moved = |modules: &[ModuleStep], rest: &[ModuleStep]| module_text(&[outer, modules, rest].concat());
        match (&self.from.object, &self.to.object) {
            (Some(from), Some(to)) => {
                let same = from.local() == address.local() && inner == self.from.modules.as_slice();
                if !same || (!self.all && from.key != address.key) {
                    return None;
                }
                let key = if self.all { address.key.clone() } else { to.key.clone() };
                Some(Address { module: moved(&self.to.modules, &[]), key, ..to.clone() })
            }
            (None, None) => {
                let from = &self.from.modules;
                let (head, rest) = inner.split_at_checked(from.len())?;
                let (last, before) = from.split_last()?;
                let (their_last, their_before) = head.split_last()?;
                let fits = last.0 == their_last.0 && (self.all || last.1 == their_last.1);
                if before != their_before || !fits {
                    return None;
                }
                let mut to = self.to.modules.clone();
                if self.all {
                    to.last_mut()?.1.clone_from(&their_last.1);
                }
                Some(Address { module: moved(&to, rest), ..address.clone() })
            }
            _ => None,
        }
    }

    fn changes_keys_only(&self) -> bool {
        let names = |end: &End| end.modules.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        self.from.object.is_none() && self.to.object.is_none() && names(&self.from) == names(&self.to)
    }

    /// One of its ends as a list of several statements shows it: `[*]` where all keys are meant.
    pub(super) fn pattern(&self, end: &End) -> String {
        let Reach { modules, object } = self.reach(end);
        let part = |(name, key): &(String, Keyed)| match key {
            Keyed::Any => format!("{name}[*]"),
            Keyed::Only(None) => name.clone(),
            Keyed::Only(Some(key)) => format!("{name}[{key}]"),
        };
        let modules = modules.iter().map(|step| format!("module.{}", part(step)));
        modules.chain(object.as_ref().map(part)).collect::<Vec<_>>().join(".")
    }
}

/// The steps of `module.a[0].module.b`.
pub(super) fn steps(module: &str) -> Vec<ModuleStep> {
    let mut steps = Vec::new();
    let mut rest = module;
    while let Some(text) = rest.strip_prefix("module.") {
        let end = text.find(['.', '[']).unwrap_or(text.len());
        let (name, after) = text.split_at(end);
        let (key, after) = match after.strip_prefix('[') {
            None => (None, after),
            Some(inside) => {
                // A key is JSON: a string or a number.
                let mut values = serde_json::Deserializer::from_str(inside).into_iter::<serde_json::Value>();
                let key = match values.next() {
                    Some(Ok(serde_json::Value::String(name))) => Some(Key::Name(name)),
                    Some(Ok(number)) => number.as_u64().map(Key::Index),
                    _ => None,
                };
                (key, inside[values.byte_offset()..].trim_start_matches(']'))
            }
        };
        steps.push((name.to_owned(), key));
        rest = after.trim_start_matches('.');
    }
    if rest.is_empty() { steps } else { Vec::new() }
}

pub(super) fn module_text(steps: &[ModuleStep]) -> String {
    let step = |(name, key): &ModuleStep| {
        format!("module.{name}{}", key.as_ref().map(|key| format!("[{key}]")).unwrap_or_default())
    };
    steps.iter().map(step).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
pub(super) fn statement(from: &str, to: &str) -> Statement {
    let (from, to) = (End::parse(from).unwrap(), End::parse(to).unwrap());
    let all = from.is_keyless() && to.is_keyless();
    let range = landform_lang::SourceRange { file: "main.tf".to_owned(), line: 1, column: 1, end: (1, 1) };
    Statement { module: 0, path: Vec::new(), all, from, to, range }
}
