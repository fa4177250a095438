//! Other addresses for what a state has. No provider hears of it.

use crate::address::config_address;
use crate::{Address, Diagnostic};

use super::{Object, State};

/// What has another address now: an object, a whole resource, or a module with all that is in it but other modules.
#[derive(Debug)]
pub struct Renamed {
    pub from: String,
    pub to: String,
    /// The new addresses of the objects.
    pub objects: Vec<Address>,
}

/// What an address names.
#[derive(Clone, PartialEq)]
enum Thing {
    Module(String),
    /// Without a key, and with all its instances.
    Resource(Address),
    Object(Address),
}

const SOURCE: &str = "Invalid source address";
const TARGET: &str = "Invalid target address";

impl State {
    /// Gives an object, a resource or a module another address. Either all of it has moved, or nothing, and why. What depends on
    /// it forgets what it depends on, and learns it again with the next apply.
    pub fn rename(&mut self, from: &str, to: &str) -> Result<Vec<Renamed>, Vec<Diagnostic>> {
        let (source, target) = (Thing::parse(from)?, Thing::parse(to)?);
        let mut state = self.clone();
        let mut all = Vec::new();
        for thing in self.meant(&source) {
            all.push(state.rename_one(&thing, &target, (from, to))?);
            state.forget_dependencies_on(&thing);
        }
        if all.is_empty() {
            return wrong(SOURCE, format!("Cannot move {from}: does not match anything in the current state."));
        }
        *self = state;
        Ok(all)
    }

    /// A module has modules inside, and a resource of which there is only one is its object.
    fn meant(&self, source: &Thing) -> Vec<Thing> {
        match source {
            Thing::Module(path) => {
                let inside = |module: &&str| is_inside(module, path);
                let mut modules: Vec<&str> = self.resources().iter().map(|own| own.module.as_str()).collect();
                modules.dedup();
                modules.into_iter().filter(inside).map(|module| Thing::Module(module.to_owned())).collect()
            }
            Thing::Resource(address) => {
                let mut own = self.objects().filter(|object| resource_of(&object.address) == *address).peekable();
                if own.peek().is_none() {
                    return Vec::new();
                }
                match own.any(|object| object.address.key.is_none()) {
                    true => vec![Thing::Object(address.clone())],
                    false => vec![source.clone()],
                }
            }
            Thing::Object(_) => vec![source.clone()],
        }
    }

    fn rename_one(
        &mut self,
        thing: &Thing,
        target: &Thing,
        (from, to): (&str, &str),
    ) -> Result<Renamed, Vec<Diagnostic>> {
        match thing {
            Thing::Module(module) => {
                let Thing::Module(target) = target else {
                    return wrong(TARGET, format!("Cannot move {module} to {to}: the target must also be a module."));
                };
                let target = format!("{target}{}", &module[from.len()..]);
                if self.resources().iter().any(|own| own.module == target) {
                    let detail = "Please ensure your addresses and state paths are valid. No state was persisted. Your existing \
                                  states are untouched.";
                    return wrong("Destination module already exists", detail.to_owned());
                }
                let own = self.objects().filter(|object| object.address.module == *module).collect();
                let objects = self.put_elsewhere(own, None, |old| Address { module: target.clone(), ..old.clone() });
                Ok(Renamed { from: module.clone(), to: target, objects })
            }
            Thing::Resource(source) => {
                let Thing::Resource(target) = target else {
                    let detail = format!(
                        "Cannot move {from} to {to}: the source is a whole resource (not a resource instance) so the target \
                         must also be a whole resource."
                    );
                    return wrong(TARGET, detail);
                };
                let mut problems = mismatch(source, target);
                if self.objects().any(|object| resource_of(&object.address) == *target) {
                    let detail = format!(
                        "Cannot move to {target}: there is already a resource at that address in the current state."
                    );
                    problems.push(Diagnostic::error(TARGET, detail));
                }
                none(problems)?;
                let own = self.objects().filter(|object| resource_of(&object.address) == *source).collect();
                let objects = self.put_elsewhere(own, None, |old| Address { key: old.key.clone(), ..target.clone() });
                Ok(Renamed { from: source.to_string(), to: target.to_string(), objects })
            }
            Thing::Object(source) => {
                let (Thing::Object(target) | Thing::Resource(target)) = target else {
                    let detail = format!("Cannot move {from} to {to}: the target must also be a resource instance.");
                    return wrong(TARGET, detail);
                };
                let mut problems = mismatch(&resource_of(source), &resource_of(target));
                if self.objects().any(|object| object.address == *target) {
                    let detail = format!(
                        "Cannot move to {target}: there is already a resource instance at that address in the current state."
                    );
                    problems.push(Diagnostic::error(TARGET, detail));
                }
                let own: Vec<Object> = self.objects().filter(|object| object.address == *source).collect();
                if own.is_empty() {
                    let detail = format!("The current state does not contain {source}.");
                    problems.push(Diagnostic::error(SOURCE, detail));
                }
                none(problems)?;
                // A resource that is there keeps its provider.
                let there = self.resources().iter().find(|own| own.address(None) == resource_of(target));
                let provider = there.map(|own| own.provider.clone());
                let objects = self.put_elsewhere(own, provider, |_| target.clone());
                Ok(Renamed { from: source.to_string(), to: target.to_string(), objects })
            }
        }
    }

    /// Returns where they are now.
    fn put_elsewhere(
        &mut self,
        objects: Vec<Object>,
        with: Option<String>,
        place: impl Fn(&Address) -> Address,
    ) -> Vec<Address> {
        let mut places = Vec::new();
        for object in objects {
            let deposed = object.deposed.as_deref();
            let Some((provider, instance)) = self.object(&object.address, deposed) else { continue };
            let (provider, mut instance) = (with.clone().unwrap_or_else(|| provider.to_owned()), instance.clone());
            let target = place(&object.address);
            self.remove(&object.address, deposed);
            instance.index_key.clone_from(&target.key);
            self.put(&target, &provider, instance);
            places.push(target);
        }
        places
    }

    fn forget_dependencies_on(&mut self, moved: &Thing) {
        let is_meant = |dependency: &String| match moved {
            Thing::Module(module) => is_inside(dependency, module),
            Thing::Resource(address) | Thing::Object(address) => *dependency == config_address(address),
        };
        let depending: Vec<Object> = self.objects().filter(|object| object.deposed.is_none()).collect();
        for object in depending {
            let Some((provider, instance)) = self.object(&object.address, None) else { continue };
            if instance.dependencies.iter().any(is_meant) {
                let (provider, mut instance) = (provider.to_owned(), instance.clone());
                instance.dependencies.clear();
                self.put(&object.address, &provider, instance);
            }
        }
    }
}

impl Thing {
    fn parse(text: &str) -> Result<Thing, Vec<Diagnostic>> {
        // What cannot be read back would make a state that nobody can read.
        let well_formed = |address: &Address| address.to_string() == text && address.has_module_names();
        let within = |inner: &Address| inner.module == text && inner.has_module_names();
        match Address::parse(text).filter(well_formed) {
            Some(address) if address.key.is_some() => Ok(Thing::Object(address)),
            Some(address) => Ok(Thing::Resource(address)),
            // Something in it would make an address of it.
            None if Address::parse(&format!("{text}.a.b")).is_some_and(|inner| within(&inner)) => {
                Ok(Thing::Module(text.to_owned()))
            }
            None => {
                wrong("Invalid address", "Resource specification must include a resource type and name.".to_owned())
            }
        }
    }
}

fn is_inside(address: &str, module: &str) -> bool {
    address.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn resource_of(address: &Address) -> Address {
    Address { key: None, ..address.clone() }
}

fn mismatch(source: &Address, target: &Address) -> Vec<Diagnostic> {
    let reason = match (source.data, target.data) {
        (false, true) => "a managed resource can be moved only to another managed resource address",
        (true, false) => "a data resource can be moved only to another data resource address",
        _ if source.type_name != target.type_name => "resource types don't match",
        _ => return Vec::new(),
    };
    vec![Diagnostic::error("Invalid state move request", format!("Cannot move {source} to {target}: {reason}."))]
}

fn none(problems: Vec<Diagnostic>) -> Result<(), Vec<Diagnostic>> {
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn wrong<T>(summary: &str, detail: String) -> Result<T, Vec<Diagnostic>> {
    Err(vec![Diagnostic::error(summary, detail)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: &str = r#"{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"l","outputs":{},"resources":[
        {"mode":"managed","type":"a_b","name":"all","provider":"provider[\"x/y/a\"]","instances":[
            {"index_key":0,"schema_version":0,"attributes":{}}]},
        {"mode":"managed","type":"a_b","name":"one","provider":"provider[\"x/y/a\"].eu","instances":[
            {"schema_version":0,"attributes":{}}]},
        {"module":"module.m","mode":"managed","type":"a_b","name":"in","provider":"provider[\"x/y/a\"]","instances":[
            {"schema_version":0,"attributes":{},"dependencies":["a_b.one"]}]}],"check_results":null}"#;

    #[test]
    fn a_resource_that_is_there_keeps_its_provider() {
        let mut state = State::read(STATE.as_bytes()).unwrap();
        state.rename("a_b.one", "a_b.all[3]").unwrap();
        let all = state.resources().iter().find(|own| own.name == "all").unwrap();
        assert_eq!((all.instances.len(), all.provider.as_str()), (2, "provider[\"x/y/a\"]"));
        let (_, depending) = state.current(&Address::parse("module.m.a_b.in").unwrap()).unwrap();
        assert!(depending.dependencies.is_empty(), "it learns anew what it depends on");
    }

    #[test]
    fn what_could_not_be_read_again_is_refused() {
        let state = State::read(STATE.as_bytes()).unwrap();
        for (from, to) in [
            ("module.m", "module.m[k]"),
            ("module.m", "module."),
            ("module.m", "module.a b"),
            ("module.m", "module.m[0"),
            ("module.m", "module.m[00]"),
            ("module.m", "m"),
            ("a_b.one", "module.m[k].a_b.one"),
            ("a_b.one", "a_b.one[k]"),
            ("a_b.one", "a_b"),
            ("a_b.all", "a_b.one"),
            ("a_b.nobody", "a_b.x"),
        ] {
            let mut same = state.clone();
            assert!(same.rename(from, to).is_err(), "{from} to {to}");
            assert_eq!(same.write(), state.write(), "nothing has changed");
        }
        let mut moved = state.clone();
        moved.rename("module.m", "module.n[\"a.b [c]\"]").unwrap();
        assert!(moved.current(&Address::parse("module.n[\"a.b [c]\"].a_b.in").unwrap()).is_some());
    }
}
