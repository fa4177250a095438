//! Which operation a method and a path mean.

use axum::http::{Method, StatusCode};
use percent_encoding::percent_decode_str;

use super::Refusal;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    BranchId,
    Organizations,
    Task(String),
    Template(Verb, String),
    DeployTemplate(String),
    ApplyTemplate(String),
    Group(Verb, String),
    GroupNames(Option<String>),
    Devices,
    Device(Verb, String),
    DeployDevice(String),
    /// A VPN profile below a template and an organization.
    Vpn(Verb, [String; 3]),
    /// A BGP instance below a device and a routing instance.
    Bgp(Verb, [String; 3]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Create,
    Read,
    Update,
    /// A PUT on a path of the configuration: makes it or changes it.
    Put,
    Delete,
}

impl Operation {
    pub fn read(method: &Method, path: &str, query: &str) -> Result<Self, Refusal> {
        let decoded: Option<Vec<String>> = path
            .split('/')
            .skip(1)
            .map(|segment| percent_decode_str(segment).decode_utf8().ok().map(|text| text.into_owned()))
            .collect();
        let decoded = decoded.unwrap_or_default();
        let segments: Vec<&str> = decoded.iter().map(String::as_str).collect();
        let found = fixed(method, &segments, query).or_else(|| named(method, &segments));
        found.ok_or_else(|| Refusal::new(StatusCode::NOT_FOUND, format!("{method} {path} is not simulated")))
    }

    /// What calls are counted, limited and broken by.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::BranchId => "branch_id.read",
            Operation::Organizations => "organization.list",
            Operation::Task(_) => "task.read",
            Operation::DeployTemplate(_) => "template.deploy",
            Operation::ApplyTemplate(_) => "template.apply",
            Operation::GroupNames(_) => "device_group.list",
            Operation::Devices => "device.list",
            Operation::DeployDevice(_) => "device.deploy",
            Operation::Template(verb, _) => {
                verb.of(["template.create", "template.read", "template.update", "template.put", "template.delete"])
            }
            Operation::Group(verb, _) => verb.of([
                "device_group.create",
                "device_group.read",
                "device_group.update",
                "device_group.put",
                "device_group.delete",
            ]),
            Operation::Device(verb, _) => {
                verb.of(["device.create", "device.read", "device.update", "device.put", "device.delete"])
            }
            Operation::Vpn(verb, _) => verb.of([
                "vpn_profile.create",
                "vpn_profile.read",
                "vpn_profile.update",
                "vpn_profile.put",
                "vpn_profile.delete",
            ]),
            Operation::Bgp(verb, _) => verb.of(["bgp.create", "bgp.read", "bgp.update", "bgp.put", "bgp.delete"]),
        }
    }
}

impl Verb {
    fn of(self, names: [&'static str; 5]) -> &'static str {
        match self {
            Verb::Create => names[0],
            Verb::Read => names[1],
            Verb::Update => names[2],
            Verb::Put => names[3],
            Verb::Delete => names[4],
        }
    }

    /// Workflow objects are created by POST on the collection; this is for a path with a name.
    fn on_workflow(method: &Method) -> Option<Self> {
        match *method {
            Method::GET => Some(Verb::Read),
            Method::PUT => Some(Verb::Update),
            Method::DELETE => Some(Verb::Delete),
            _ => None,
        }
    }

    fn on_configuration(method: &Method) -> Option<Self> {
        match *method {
            Method::GET => Some(Verb::Read),
            Method::PUT => Some(Verb::Put),
            Method::DELETE => Some(Verb::Delete),
            _ => None,
        }
    }
}

fn fixed(method: &Method, segments: &[&str], query: &str) -> Option<Operation> {
    let nobody = String::new;
    match (method.as_str(), segments) {
        ("GET", ["vnms", "sdwan", "global", "Branch", "availableId", "withSerialNumber"]) => Some(Operation::BranchId),
        ("GET", ["nextgen", "organization"]) => Some(Operation::Organizations),
        ("GET", ["vnms", "tasks", "task", id]) => Some(Operation::Task((*id).to_owned())),
        ("POST", ["vnms", "sdwan", "workflow", "templates", "template"]) => {
            Some(Operation::Template(Verb::Create, nobody()))
        }
        ("POST", ["vnms", "sdwan", "workflow", "templates", "template", "deploy", name]) => {
            Some(Operation::DeployTemplate((*name).to_owned()))
        }
        ("POST", ["vnms", "template", "applyTemplate", name]) => Some(Operation::ApplyTemplate((*name).to_owned())),
        ("POST", ["nextgen", "deviceGroup"]) => Some(Operation::Group(Verb::Create, nobody())),
        ("GET", ["nextgen", "deviceGroup", "deviceGroupNames"]) => {
            let organization = query.split('&').find_map(|pair| pair.strip_prefix("organization="));
            Some(Operation::GroupNames(organization.map(str::to_owned)))
        }
        ("GET", ["vnms", "sdwan", "workflow", "devices"]) => Some(Operation::Devices),
        ("POST", ["vnms", "sdwan", "workflow", "devices", "device"]) => Some(Operation::Device(Verb::Create, nobody())),
        ("POST", ["vnms", "sdwan", "workflow", "devices", "device", "deploy", name]) => {
            Some(Operation::DeployDevice((*name).to_owned()))
        }
        ("DELETE", ["vnms", "sdwan", "workflow", "devices", name]) => {
            Some(Operation::Device(Verb::Delete, (*name).to_owned()))
        }
        _ => None,
    }
}

fn named(method: &Method, segments: &[&str]) -> Option<Operation> {
    let owned = |names: [&&str; 3]| names.map(|name| (*name).to_owned());
    match segments {
        ["vnms", "sdwan", "workflow", "templates", "template", name] => {
            Some(Operation::Template(Verb::on_workflow(method)?, (*name).to_owned()))
        }
        ["nextgen", "deviceGroup", name] => Some(Operation::Group(Verb::on_workflow(method)?, (*name).to_owned())),
        ["vnms", "sdwan", "workflow", "devices", "device", name] => {
            Some(Operation::Device(Verb::on_workflow(method)?, (*name).to_owned()))
        }
        [
            "api",
            "config",
            "devices",
            "template",
            template,
            "config",
            "orgs",
            "org-services",
            organization,
            "ipsec",
            "vpn-profile",
            name,
        ] => Some(Operation::Vpn(Verb::on_configuration(method)?, owned([template, organization, name]))),
        [
            "api",
            "config",
            "devices",
            "device",
            device,
            "config",
            "routing-instances",
            "routing-instance",
            instance,
            "protocols",
            "bgp",
        ] if *method == Method::POST => Some(Operation::Bgp(Verb::Create, owned([device, instance, &""]))),
        [
            "api",
            "config",
            "devices",
            "device",
            device,
            "config",
            "routing-instances",
            "routing-instance",
            instance,
            "protocols",
            "bgp",
            "rti-bgp",
            id,
        ] => Some(Operation::Bgp(Verb::on_configuration(method)?, owned([device, instance, id]))),
        _ => None,
    }
}
