//! What is said of an object while it is worked on.

use std::time::Instant;

use landform_cty::{Mark, Type, Value};

use super::ImportTarget;
use crate::{Address, Moment, Progress, Stage, Work};

/// The name and the value of what tells an object from others.
pub type Id = (&'static str, String);

/// Something that was said to have begun.
pub struct Told<'a> {
    progress: &'a dyn Progress,
    address: Address,
    work: Work,
    begun: Instant,
}

impl<'a> Told<'a> {
    pub fn begin(progress: &'a dyn Progress, address: &Address, deposed: Option<&str>, work: Work, id: Id) -> Told<'a> {
        progress.tell(&Moment { address, deposed, work, stage: Stage::Started, id, millis: 0 });
        Told { progress, address: address.clone(), work, begun: Instant::now() }
    }

    pub fn end(self, stage: Stage, id: Id) {
        let millis = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.progress.tell(&Moment { address: &self.address, deposed: None, work: self.work, stage, id, millis });
    }
}

/// The attribute `id`; or the `name` of an object that has none.
pub fn id_of(object: &Value) -> Id {
    let named = |name: &'static str| match object.ty.attribute(name) {
        Some(Type::String) => Some(text_of(object.get(name)).map(|text| (name, text)).unwrap_or_default()),
        _ => None,
    };
    named("id").or_else(|| named("name")).unwrap_or_default()
}

/// The same; or the `name` of one whose `id` is not known, or one of its tags.
pub fn id_or_name_of(object: &Value) -> Id {
    let id = id_of(object);
    if !id.1.is_empty() {
        return id;
    }
    if let Some(Type::String) = object.ty.attribute("name") {
        return text_of(object.get("name")).map(|text| ("name", text)).unwrap_or_default();
    }
    let tags = object.get("tags").filter(|tags| !tags.has_mark(Mark::Sensitive) && tags.is_wholly_known());
    let tag = |name: &str| tags.and_then(|tags| text_of(tags.as_mapping()?.get(name)));
    let tags = [("tags.name", tag("name")), ("tags.Name", tag("Name"))];
    tags.into_iter().find_map(|(name, text)| Some((name, text?))).unwrap_or_default()
}

/// What an object is taken over by.
pub fn id_of_target(target: &ImportTarget) -> Id {
    match target {
        ImportTarget::Id(id) => ("id", id.clone()),
        ImportTarget::Identity(identity) => id_or_name_of(identity),
    }
}

fn text_of(value: Option<&Value>) -> Option<String> {
    let value = value.filter(|value| !value.has_mark(Mark::Sensitive) && !value.has_mark(Mark::Ephemeral))?;
    value.as_str().map(str::to_owned)
}
