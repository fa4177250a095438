//! What exists at the Director.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use serde_json::{Map, Value, json};

use super::Refusal;
use super::paths::{Operation, Verb};
use super::tasks::{Tasks, Work};
use crate::desk::Answer;
use crate::json::text;

const TEMPLATE: &str = "versanms.sdwan-template-workflow";
const GROUP: &str = "device-group";
const DEVICE: &str = "versanms.sdwan-device-workflow";
const VPN: &str = "vpn-profile";
const BGP: &str = "rti-bgp";
const FIRST_BRANCH: u64 = 101;
const ORGANIZATIONS: [&str; 3] = ["Provider", "Customer-A", "Customer-B"];

#[derive(Debug)]
pub struct World {
    task_length: Duration,
    tasks: Tasks,
    templates: BTreeMap<String, Value>,
    groups: BTreeMap<String, Value>,
    devices: BTreeMap<String, Value>,
    /// Which device has which site id, so that a Director with thousands of them is not slow.
    sites: BTreeMap<String, String>,
    /// No branch id below this one is free.
    lowest_free: u64,
    deployed_templates: BTreeSet<String>,
    deployed_devices: BTreeSet<String>,
    /// By template, organization and name.
    profiles: BTreeMap<[String; 3], Value>,
    /// By device, routing instance and instance id.
    bgp: BTreeMap<[String; 3], Value>,
}

type Outcome = Result<Answer, Refusal>;

impl World {
    pub fn new(task_length: Duration) -> Self {
        Self {
            task_length,
            tasks: Tasks::new(task_length),
            templates: BTreeMap::new(),
            groups: BTreeMap::new(),
            devices: BTreeMap::new(),
            sites: BTreeMap::new(),
            lowest_free: FIRST_BRANCH,
            deployed_templates: BTreeSet::new(),
            deployed_devices: BTreeSet::new(),
            profiles: BTreeMap::new(),
            bgp: BTreeMap::new(),
        }
    }

    pub fn empty(&mut self) {
        *self = Self::new(self.task_length);
    }

    pub fn ledger(&mut self) -> Value {
        self.settle();
        let keyed = |map: &BTreeMap<[String; 3], Value>| -> Map<String, Value> {
            map.iter().map(|(key, value)| (key.join("/"), value.clone())).collect()
        };
        json!({"templates": self.templates, "deviceGroups": self.groups, "devices": self.devices,
            "deployedTemplates": self.deployed_templates, "deployedDevices": self.deployed_devices,
            "vpnProfiles": keyed(&self.profiles), "bgp": keyed(&self.bgp)})
    }

    pub fn carry_out(&mut self, operation: &Operation, body: &Value, fail_later: bool) -> Outcome {
        self.settle();
        match operation {
            Operation::BranchId => Ok(self.branch_id()),
            Operation::Organizations => {
                Ok(Answer::ok(ORGANIZATIONS.iter().map(|name| json!({"name": name})).collect::<Vec<_>>().into()))
            }
            Operation::Task(id) => self.tasks.read(id, Instant::now()).map(Answer::ok),
            Operation::Template(verb, name) => self.template(*verb, name, body),
            Operation::DeployTemplate(name) => {
                self.existing_template(name)?;
                self.deployed_templates.insert(name.clone());
                Ok(Answer::ok(Value::Null))
            }
            Operation::ApplyTemplate(name) => {
                self.existing_template(name)?;
                let work = Work::ApplyTemplate(name.clone());
                Ok(accepted(self.tasks.begin(&format!("Apply template {name}"), work, fail_later)))
            }
            Operation::Group(verb, name) => self.group(*verb, name, body),
            Operation::GroupNames(organization) => Ok(Answer::ok(self.group_names(organization.as_deref()))),
            Operation::Devices => {
                let list: Vec<_> = self.devices.values().map(|device| &device[DEVICE]).collect();
                Ok(Answer::ok(json!({"versanms.sdwan-device-list": list})))
            }
            Operation::Device(verb, name) => self.device(*verb, name, body),
            Operation::DeployDevice(name) => {
                self.devices.get(name).ok_or_else(|| Refusal::missing("device", name))?;
                let work = Work::DeployDevice(name.clone());
                Ok(accepted(self.tasks.begin(&format!("Deploy device {name}"), work, fail_later)))
            }
            Operation::Vpn(verb, key) => {
                self.existing_template(&key[0])?;
                configured(&mut self.profiles, *verb, key.clone(), VPN, body)
            }
            Operation::Bgp(verb, key) => {
                let device = &key[0];
                if !self.devices.contains_key(device) {
                    return Err(Refusal::missing("device", device));
                }
                let mut key = key.clone();
                if *verb == Verb::Create {
                    key[2] = body[BGP][0]["instance-id"].as_u64().map(|id| id.to_string()).unwrap_or_default();
                }
                configured(&mut self.bgp, *verb, key, BGP, body)
            }
        }
    }

    /// Does what tasks that ended in the meantime were for.
    fn settle(&mut self) {
        for work in self.tasks.finished(Instant::now()) {
            match work {
                Work::DeployDevice(name) if self.devices.contains_key(&name) => {
                    self.deployed_devices.insert(name);
                }
                Work::ApplyTemplate(name) if self.templates.contains_key(&name) => {
                    self.deployed_templates.insert(name);
                }
                Work::DeployDevice(_) | Work::ApplyTemplate(_) => {}
            }
        }
    }

    /// The lowest id that no device has. It is not reserved: who takes it first has it.
    fn branch_id(&mut self) -> Answer {
        let mut from = self.lowest_free..;
        let free = from.find(|id| !self.sites.contains_key(&id.to_string())).unwrap_or(FIRST_BRANCH);
        self.lowest_free = free;
        Answer::ok(
            json!({"AvailableIDResponseModel": {"branchId": free.to_string(), "serialNumber": format!("SIM{free}")}}),
        )
    }

    fn existing_template(&self, name: &str) -> Result<(), Refusal> {
        self.templates.contains_key(name).then_some(()).ok_or_else(|| Refusal::missing("template", name))
    }

    fn template(&mut self, verb: Verb, name: &str, body: &Value) -> Outcome {
        if verb == Verb::Delete {
            let user = self.groups.iter().find(|(_, group)| text(&group[GROUP], "dg:poststaging-template") == name);
            if let Some((group, _)) = user {
                return Err(in_use("template", name, "device group", group));
            }
            self.deployed_templates.remove(name);
            self.profiles.retain(|key, _| key[0] != name);
        }
        workflow(&mut self.templates, verb, name, TEMPLATE, "templateName", body)
    }

    fn group(&mut self, verb: Verb, name: &str, body: &Value) -> Outcome {
        if verb == Verb::Delete {
            let user = self.devices.iter().find(|(_, device)| text(&device[DEVICE], "deviceGroup") == name);
            if let Some((device, _)) = user {
                return Err(in_use("device group", name, "device", device));
            }
        } else if verb != Verb::Read {
            let template = text(&body[GROUP], "dg:poststaging-template");
            if !template.is_empty() {
                self.existing_template(&template)?;
            }
        }
        workflow(&mut self.groups, verb, name, GROUP, "name", body)
    }

    fn group_names(&self, organization: Option<&str>) -> Value {
        let groups = self
            .groups
            .iter()
            .filter(|(_, group)| organization.is_none_or(|wanted| text(&group[GROUP], "dg:organization") == wanted));
        groups.map(|(name, _)| json!({"name": name})).collect::<Vec<_>>().into()
    }

    fn device(&mut self, verb: Verb, name: &str, body: &Value) -> Outcome {
        if matches!(verb, Verb::Create | Verb::Update) {
            let group = text(&body[DEVICE], "deviceGroup");
            if !self.groups.contains_key(&group) {
                return Err(Refusal::missing("device group", &group));
            }
            let (site, own) = (text(&body[DEVICE], "siteId"), text(&body[DEVICE], "deviceName"));
            if let Some(other) = self.sites.get(&site).filter(|other| **other != own) {
                return Err(Refusal::new(StatusCode::CONFLICT, format!("site id {site} belongs to device {other}")));
            }
        }
        if verb == Verb::Delete {
            self.deployed_devices.remove(name);
            self.bgp.retain(|key, _| key[0] != name);
        }
        let own = if verb == Verb::Create { text(&body[DEVICE], "deviceName") } else { name.to_owned() };
        let before = self.devices.get(&own).map(|device| text(&device[DEVICE], "siteId"));
        let answer = workflow(&mut self.devices, verb, name, DEVICE, "deviceName", body)?;
        if verb != Verb::Read {
            if let Some(site) = before {
                self.lowest_free = self.lowest_free.min(site.parse().unwrap_or(FIRST_BRANCH)).max(FIRST_BRANCH);
                self.sites.remove(&site);
            }
            if let Some(device) = self.devices.get(&own) {
                self.sites.insert(text(&device[DEVICE], "siteId"), own);
            }
        }
        if verb == Verb::Read {
            let mut body = answer.body;
            let status = if self.deployed_devices.contains(name) { "Deployed" } else { "Saved" };
            body[DEVICE]["status"] = json!(status);
            return Ok(Answer::ok(body));
        }
        Ok(answer)
    }
}

fn accepted(body: Value) -> Answer {
    Answer::new(StatusCode::ACCEPTED, body)
}

fn in_use(what: &str, name: &str, by: &str, user: &str) -> Refusal {
    Refusal::new(StatusCode::CONFLICT, format!("{what} {name} is used by {by} {user}"))
}

/// Objects of the workflows: the body holds one object below `root`, whose field `name_field` is its name.
fn workflow(
    objects: &mut BTreeMap<String, Value>,
    verb: Verb,
    name: &str,
    root: &str,
    name_field: &str,
    body: &Value,
) -> Outcome {
    let missing = || Refusal::missing(root, name);
    match verb {
        Verb::Read => objects.get(name).cloned().map(Answer::ok).ok_or_else(missing),
        Verb::Delete => objects.remove(name).map(|_| Answer::ok(Value::Null)).ok_or_else(missing),
        Verb::Create | Verb::Update | Verb::Put => {
            let named = text(&body[root], name_field);
            if named.is_empty() || (verb != Verb::Create && named != name) {
                let message = format!("{root} must hold an object with its {name_field}");
                return Err(Refusal::new(StatusCode::BAD_REQUEST, message));
            }
            if verb == Verb::Create && objects.contains_key(&named) {
                return Err(Refusal::new(StatusCode::CONFLICT, format!("{root} {named} exists already")));
            }
            if verb == Verb::Update && !objects.contains_key(name) {
                return Err(missing());
            }
            objects.insert(named, body.clone());
            Ok(Answer::ok(Value::Null))
        }
    }
}

/// Objects of the configuration: the path is the name, PUT makes or changes, POST makes.
fn configured(
    objects: &mut BTreeMap<[String; 3], Value>,
    verb: Verb,
    key: [String; 3],
    root: &str,
    body: &Value,
) -> Outcome {
    let missing = || Refusal::missing(root, &key[2]);
    match verb {
        Verb::Read => objects.get(&key).cloned().map(Answer::ok).ok_or_else(missing),
        Verb::Delete => {
            objects.remove(&key).map(|_| Answer::new(StatusCode::NO_CONTENT, Value::Null)).ok_or_else(missing)
        }
        Verb::Create | Verb::Update | Verb::Put => {
            if body.get(root).is_none() || key[2].is_empty() {
                return Err(Refusal::new(StatusCode::BAD_REQUEST, format!("the body must hold {root}")));
            }
            if verb == Verb::Create && objects.contains_key(&key) {
                return Err(Refusal::new(StatusCode::CONFLICT, format!("{root} {} exists already", key[2])));
            }
            let status =
                if objects.insert(key, body.clone()).is_some() { StatusCode::NO_CONTENT } else { StatusCode::CREATED };
            Ok(Answer::new(status, Value::Null))
        }
    }
}
