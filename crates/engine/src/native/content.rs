//! What a native plan holds, and its bytes.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use landform_cty::{Mark, Marks, Path, Type, Value};
use landform_lang::KeptFiles;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::encode::{paths_from_json, paths_json};
use super::eval::{Checks, Kind, Objects};
use super::object::{Identity, ImportTarget, Planned, Reason, bare};
use crate::{Action, Address, Mode};

/// Raised when the bytes of a plan change their meaning: an older plan is then refused as stale.
const FORMAT: u32 = 4;

/// All that a plan was made from, and all that it would do.
#[derive(Clone)]
pub struct Content {
    pub engine: String,
    pub made_from: Origin,
    /// The files of the configuration: whatever becomes of them, these are applied.
    pub configuration: KeptFiles,
    pub mode: Mode,
    pub timestamp: String,
    /// The state after the refresh: where the apply begins.
    pub refreshed: Vec<u8>,
    /// Every object that the plan looked at, in the order of address.
    pub changes: Vec<Planned>,
    /// What the refresh found to be different from the state.
    pub drift: Vec<Planned>,
    pub outputs: BTreeMap<String, PlannedOutput>,
    pub checks: Checks,
    /// Expressions use what is deprecated, and the apply is to say so again.
    pub deprecations: bool,
}

/// What must be the same when the plan is applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Empty if there was no state.
    pub lineage: String,
    pub serial: u64,
    pub state: String,
    /// The digest of `.terraform.lock.hcl`; empty if there is none.
    #[serde(default)]
    pub locks: String,
    pub variables: String,
    /// By source address: the digest of the provider's binary.
    pub providers: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub struct PlannedOutput {
    pub before: Value,
    pub after: Value,
    pub sensitive: bool,
    pub was_sensitive: bool,
    /// The configuration does not have it (any longer).
    pub removed: bool,
    /// The state has it.
    pub existed: bool,
}

impl PlannedOutput {
    pub fn action(&self) -> Action {
        let (before, after) = (bare(&self.before), bare(&self.after));
        let same = after.is_wholly_known() && after.equals(&before).as_bool() == Some(true);
        if self.removed {
            Action::Delete
        } else if before.is_null() && after.is_null() {
            Action::NoOp
        } else if !self.existed {
            Action::Create
        } else if same && self.sensitive == self.was_sensitive {
            Action::NoOp
        } else {
            Action::Update
        }
    }
}

#[derive(Serialize, Deserialize)]
struct File {
    format: u32,
    engine: String,
    made_from: Origin,
    #[serde(default)]
    configuration: KeptFiles,
    mode: Mode,
    timestamp: String,
    refreshed: String,
    changes: Vec<Entry>,
    drift: Vec<Entry>,
    outputs: BTreeMap<String, OutputEntry>,
    checks: Vec<CheckEntry>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deprecations: bool,
}

#[derive(Serialize, Deserialize)]
struct CheckEntry {
    kind: Kind,
    config: String,
    objects: Objects,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    address: String,
    provider: String,
    action: Action,
    reason: Option<Reason>,
    before: Sealed,
    after: Sealed,
    private: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity_before: Option<SealedIdentity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity_after: Option<SealedIdentity>,
    replace_paths: Json,
    importing: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    importing_identity: Option<Sealed>,
    deposed: Option<String>,
    previous: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    assumed: bool,
}

#[derive(Serialize, Deserialize)]
struct OutputEntry {
    before: Sealed,
    after: Sealed,
    sensitive: bool,
    removed: bool,
    existed: bool,
    was_sensitive: bool,
}

/// A value with its type, unknowns and all, and the places that are sensitive.
#[derive(Serialize, Deserialize)]
struct Sealed {
    value: String,
    sensitive: Json,
}

impl Sealed {
    fn new(value: &Value) -> Sealed {
        let (bare, marked) = value.clone().unmark_deep_with_paths();
        let paths: Vec<Path> =
            marked.into_iter().filter(|(_, marks)| marks.contains(&Mark::Sensitive)).map(|(path, _)| path).collect();
        let bytes = bare.to_msgpack(&Type::Dynamic).expect("a value without marks can always be packed");
        Sealed { value: STANDARD.encode(bytes), sensitive: paths_json(&paths) }
    }

    fn open(&self) -> Result<Value, String> {
        let bytes = STANDARD.decode(&self.value).map_err(|error| error.to_string())?;
        let value = Value::from_msgpack(&bytes, &Type::Dynamic).map_err(|error| error.to_string())?;
        let places: Vec<(Path, Marks)> =
            paths_from_json(&self.sensitive)?.into_iter().map(|path| (path, [Mark::Sensitive].into())).collect();
        Ok(value.mark_paths(&places))
    }
}

#[derive(Serialize, Deserialize)]
struct SealedIdentity {
    identity: Sealed,
    version: i64,
}

impl SealedIdentity {
    fn new(identity: &Identity) -> SealedIdentity {
        SealedIdentity { identity: Sealed::new(&identity.value), version: identity.version }
    }

    fn open(self) -> Result<Identity, String> {
        Ok(Identity { value: self.identity.open()?, version: self.version })
    }
}

impl Entry {
    fn new(planned: &Planned) -> Entry {
        let (importing, importing_identity) = match &planned.importing {
            Some(ImportTarget::Id(id)) => (Some(id.clone()), None),
            Some(ImportTarget::Identity(identity)) => (None, Some(Sealed::new(identity))),
            None => (None, None),
        };
        Entry {
            address: planned.address.to_string(),
            provider: planned.provider.clone(),
            action: planned.action,
            reason: planned.reason,
            before: Sealed::new(&planned.before),
            after: Sealed::new(&planned.after),
            private: STANDARD.encode(&planned.private),
            identity_before: planned.identity_before.as_ref().map(SealedIdentity::new),
            identity_after: planned.identity_after.as_ref().map(SealedIdentity::new),
            replace_paths: paths_json(&planned.replace_paths),
            importing,
            importing_identity,
            deposed: planned.deposed.clone(),
            previous: planned.previous.as_ref().map(Address::to_string),
            assumed: planned.assumed,
        }
    }

    fn open(self) -> Result<Planned, String> {
        let parse = |text: &str| Address::parse(text).ok_or_else(|| format!("{text:?} is no address"));
        let importing = match (self.importing, self.importing_identity) {
            (Some(id), _) => Some(ImportTarget::Id(id)),
            (None, Some(identity)) => Some(ImportTarget::Identity(identity.open()?)),
            (None, None) => None,
        };
        Ok(Planned {
            address: parse(&self.address)?,
            provider: self.provider,
            action: self.action,
            reason: self.reason,
            before: self.before.open()?,
            after: self.after.open()?,
            private: STANDARD.decode(&self.private).map_err(|error| error.to_string())?,
            identity_before: self.identity_before.map(SealedIdentity::open).transpose()?,
            identity_after: self.identity_after.map(SealedIdentity::open).transpose()?,
            replace_paths: paths_from_json(&self.replace_paths)?,
            importing,
            deposed: self.deposed,
            previous: self.previous.as_deref().map(parse).transpose()?,
            assumed: self.assumed,
        })
    }
}

impl Content {
    pub fn write(&self) -> Vec<u8> {
        let output = |output: &PlannedOutput| OutputEntry {
            before: Sealed::new(&output.before),
            after: Sealed::new(&output.after),
            sensitive: output.sensitive,
            removed: output.removed,
            existed: output.existed,
            was_sensitive: output.was_sensitive,
        };
        let check = |((kind, config), objects): (&(Kind, String), &Objects)| CheckEntry {
            kind: *kind,
            config: config.clone(),
            objects: objects.clone(),
        };
        let file = File {
            format: FORMAT,
            engine: self.engine.clone(),
            made_from: self.made_from.clone(),
            configuration: self.configuration.clone(),
            mode: self.mode,
            timestamp: self.timestamp.clone(),
            refreshed: STANDARD.encode(&self.refreshed),
            changes: self.changes.iter().map(Entry::new).collect(),
            drift: self.drift.iter().map(Entry::new).collect(),
            outputs: self.outputs.iter().map(|(name, planned)| (name.clone(), output(planned))).collect(),
            checks: self.checks.0.iter().map(check).collect(),
            deprecations: self.deprecations,
        };
        serde_json::to_vec(&file).expect("a plan has string keys only")
    }

    /// Reads the bytes of a plan of the given engine version; anything else is refused with the reason.
    pub fn read(bytes: &[u8], engine: &str) -> Result<Content, String> {
        let file: File = serde_json::from_slice(bytes).map_err(|error| format!("the plan cannot be read: {error}"))?;
        if file.format != FORMAT || file.engine != engine {
            return Err(format!("the plan was made by {}, this is {engine}", file.engine));
        }
        let output = |(name, entry): (String, OutputEntry)| {
            let planned = PlannedOutput {
                before: entry.before.open()?,
                after: entry.after.open()?,
                sensitive: entry.sensitive,
                removed: entry.removed,
                existed: entry.existed,
                was_sensitive: entry.was_sensitive,
            };
            Ok::<_, String>((name, planned))
        };
        Ok(Content {
            engine: file.engine,
            made_from: file.made_from,
            configuration: file.configuration,
            mode: file.mode,
            timestamp: file.timestamp,
            refreshed: STANDARD.decode(&file.refreshed).map_err(|error| error.to_string())?,
            changes: file.changes.into_iter().map(Entry::open).collect::<Result<_, _>>()?,
            drift: file.drift.into_iter().map(Entry::open).collect::<Result<_, _>>()?,
            outputs: file.outputs.into_iter().map(output).collect::<Result<_, _>>()?,
            checks: Checks(file.checks.into_iter().map(|entry| ((entry.kind, entry.config), entry.objects)).collect()),
            deprecations: file.deprecations,
        })
    }
}
