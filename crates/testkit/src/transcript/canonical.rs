//! The form in which transcripts are compared.
//!
//! Objects are planned and applied in parallel, so the order of calls means something only within one object. A call
//! does not say which object it is about; but what one call answers is what the next one about the same object is
//! sent, so calls that share a value are about one object. Objects whose configurations are equal to the letter cannot
//! be told apart before they exist: such twins are compared without regard to order.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;

use landform_protocol::wire::Types;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::readable::{Field, Fields, Readable, read};
use super::symbols::{Symbols, is_computed, leaves};
use super::{Transcript, is_process_bound};

/// A transcript without what may differ from run to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Canonical {
    /// How the providers were configured. A process needs it once, and how many processes there are is the caller's
    /// own affair, so each distinct configuration counts once.
    pub configurations: BTreeSet<String>,
    pub objects: Vec<Object>,
}

/// The calls about one object, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Object {
    /// The resource type and a number, for instance `time_static#1`.
    pub label: String,
    pub calls: Vec<Said>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Said {
    pub method: String,
    pub request: Json,
    pub response: Json,
}

/// For people: what was said, object by object.
impl fmt::Display for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for configuration in &self.configurations {
            writeln!(f, "{configuration}")?;
        }
        for object in &self.objects {
            writeln!(f, "{}", object.label)?;
            for said in &object.calls {
                writeln!(f, "  {}\n    {}\n    {}", said.method, said.request, said.response)?;
            }
        }
        Ok(())
    }
}

struct Recorded {
    provider: String,
    readable: Readable,
}

/// `exact`: nothing in it is made up anew each time, so there are no symbols.
pub fn canonical(transcript: &Transcript, exact: bool) -> Canonical {
    let types: HashMap<&str, Types> =
        transcript.schemas.iter().map(|(provider, schema)| (provider.as_str(), Types::new(schema))).collect();
    let (mut configurations, mut recorded) = (BTreeSet::new(), Vec::new());
    for call in transcript.calls.iter().filter(|call| !is_process_bound(&call.method)) {
        let readable = read(call, &types[call.provider.as_str()]);
        if readable.method == "ConfigureProvider" || readable.method == "ValidateProviderConfig" {
            let said = Said {
                request: plain(&readable.request),
                response: plain(&readable.response),
                method: readable.method,
            };
            configurations.insert(format!("{} {} {} {}", call.provider, said.method, said.request, said.response));
        } else {
            recorded.push(Recorded { provider: call.provider.clone(), readable });
        }
    }
    let objects = group(&recorded);
    // The first pass has symbols without numbers: by them the objects are brought into an order that does not depend
    // on which was first. The second pass has the objects' numbers.
    let first = say(transcript, &recorded, &objects, exact, |_, path, _| format!("«{path}»"));
    let mut order: Vec<usize> = (0..objects.len()).collect();
    order.sort_by_cached_key(|object| (kind(&recorded, &objects[*object]), format!("{:?}", first[*object])));
    let labels = labels(&recorded, &objects, &order);
    let twins: Vec<bool> = objects.iter().map(|calls| has_twins(&recorded, calls)).collect();
    let mut said = say(transcript, &recorded, &objects, exact, |object, path, number| {
        let number = if twins[object] || number == 1 { String::new() } else { format!("@{number}") };
        format!("«{}.{path}{number}»", labels[object])
    });
    let objects = order
        .into_iter()
        .map(|object| {
            let mut calls = std::mem::take(&mut said[object]);
            if twins[object] {
                calls.sort_by_cached_key(|said| format!("{said:?}"));
            }
            Object { label: labels[object].clone(), calls }
        })
        .collect();
    Canonical { configurations, objects }
}

fn plain(fields: &Fields) -> Json {
    let field = |(name, field): &(&'static str, Field)| match field {
        Field::Value(json) | Field::Other(json) => ((*name).to_owned(), json.clone()),
    };
    Json::Object(fields.0.iter().map(field).collect::<Map<_, _>>())
}

fn values(fields: &Fields) -> impl Iterator<Item = &Json> {
    fields.0.iter().filter_map(|(_, field)| match field {
        Field::Value(json) => Some(json),
        Field::Other(_) => None,
    })
}

fn kind(recorded: &[Recorded], calls: &[usize]) -> String {
    let first = &recorded[calls[0]];
    format!("{} {}", first.provider, first.readable.type_name.as_deref().unwrap_or(&first.readable.method))
}

fn labels(recorded: &[Recorded], objects: &[Vec<usize>], order: &[usize]) -> Vec<String> {
    let mut labels = vec![String::new(); objects.len()];
    let mut counts: HashMap<String, usize> = HashMap::new();
    for object in order {
        let kind = kind(recorded, &objects[*object]);
        let count = counts.entry(kind.clone()).or_default();
        *count += 1;
        let name = kind.split(' ').next_back().unwrap_or_default();
        labels[*object] = format!("{name}#{count}");
    }
    labels
}

/// Calls by object, each in order.
fn group(recorded: &[Recorded]) -> Vec<Vec<usize>> {
    let mut object_of: HashMap<(String, String), usize> = HashMap::new();
    let mut objects: Vec<Vec<usize>> = Vec::new();
    for (at, call) in recorded.iter().enumerate() {
        let kind = kind(recorded, &[at]);
        let both = values(&call.readable.request).chain(values(&call.readable.response));
        // Nothing is said by a null, and little by a text in place of a value.
        let said: Vec<(String, String)> =
            both.filter(|json| json.is_object()).map(|json| (kind.clone(), json.to_string())).collect();
        let mut touched: BTreeSet<usize> = said.iter().filter_map(|key| object_of.get(key).copied()).collect();
        let object = touched.pop_first().unwrap_or_else(|| {
            objects.push(Vec::new());
            objects.len() - 1
        });
        // This call shows that what looked like several objects is one.
        for other in touched {
            let moved = std::mem::take(&mut objects[other]);
            objects[object].extend(moved);
            object_of.values_mut().filter(|known| **known == other).for_each(|known| *known = object);
        }
        objects[object].push(at);
        object_of.extend(said.into_iter().map(|key| (key, object)));
    }
    objects.retain(|calls| !calls.is_empty());
    objects.iter_mut().for_each(|calls| calls.sort_unstable());
    objects
}

/// Two creates with the same request are two objects. Where nothing was made, their plans tell: one object that is not there
/// yet is planned once, and once more when it is about to be made.
fn has_twins(recorded: &[Recorded], calls: &[usize]) -> bool {
    let most_alike = |method: &str| {
        let mut alike: HashMap<String, usize> = HashMap::new();
        let of_method = calls.iter().map(|at| &recorded[*at].readable).filter(|call| call.method == method);
        for call in of_method.filter(|call| starts_from_nothing(&call.request)) {
            *alike.entry(plain(&call.request).to_string()).or_default() += 1;
        }
        alike.into_values().max().unwrap_or(0)
    };
    let (made, planned) = (most_alike("ApplyResourceChange"), most_alike("PlanResourceChange"));
    made > 1 || planned > 1 + made
}

fn starts_from_nothing(request: &Fields) -> bool {
    request.0.iter().any(|(name, field)| *name == "prior_state" && matches!(field, Field::Value(Json::Null)))
}

/// What was said about each object, with symbols for generated values. `name` gets the object, the attribute and the
/// number of the value there.
fn say(
    transcript: &Transcript,
    recorded: &[Recorded],
    objects: &[Vec<usize>],
    exact: bool,
    name: impl Fn(usize, &str, usize) -> String,
) -> Vec<Vec<Said>> {
    let mut object_of = vec![0; recorded.len()];
    for (object, calls) in objects.iter().enumerate() {
        calls.iter().for_each(|at| object_of[*at] = object);
    }
    let mut symbols = Symbols::default();
    let mut said = vec![Vec::new(); objects.len()];
    for (at, Recorded { provider, readable }) in recorded.iter().enumerate() {
        let object = object_of[at];
        let computed = |path: &str| {
            if exact {
                return false;
            }
            let schema = &transcript.schemas[provider];
            let type_name = readable.type_name.as_deref().unwrap_or_default();
            let schema = match type_name.strip_prefix("data.") {
                Some(name) => schema.data_sources.get(name),
                None => schema.resources.get(type_name),
            };
            schema.is_some_and(|schema| is_computed(&schema.block, path))
        };
        let asked: HashSet<(String, String)> =
            values(&readable.request).flat_map(leaves).map(|(path, leaf)| (path, leaf.to_string())).collect();
        if readable.method == "UpgradeResourceState" {
            // A stored object may be from before this transcript.
            for (path, leaf) in values(&readable.request).flat_map(leaves).filter(|(path, _)| computed(path)) {
                if !symbols.knows(object, &path, &leaf) {
                    symbols.mint(object, &path, &leaf, |number| name(object, &path, number));
                }
            }
        }
        let request = shown(&symbols, object, &readable.request);
        for (path, leaf) in values(&readable.response).flat_map(leaves) {
            if computed(&path) && !asked.contains(&(path.clone(), leaf.to_string())) {
                symbols.mint(object, &path, &leaf, |number| name(object, &path, number));
            }
        }
        let response = shown(&symbols, object, &readable.response);
        said[object].push(Said { method: readable.method.clone(), request, response });
    }
    said
}

fn shown(symbols: &Symbols, object: usize, fields: &Fields) -> Json {
    let field = |(name, field): &(&'static str, Field)| {
        let shown = match field {
            Field::Value(json) => symbols.apply(object, "", json),
            Field::Other(json) => symbols.apply(object, "«other»", json),
        };
        ((*name).to_owned(), shown)
    };
    Json::Object(fields.0.iter().map(field).collect::<Map<_, _>>())
}
