//! What exists at the vendor: accounts with sites, their tunnels, interfaces, ranges, hosts and BGP peers.
//!
//! Inputs are kept as the JSON that came and echoed from there: the schema has checked them already.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::json::{merge, text};

#[derive(Debug, Default)]
pub struct World {
    accounts: BTreeMap<String, Account>,
}

impl World {
    /// Every account exists: who asks for one has it.
    pub fn account(&mut self, id: &str) -> &mut Account {
        self.accounts.entry(id.to_owned()).or_default()
    }

    pub fn empty(&mut self) {
        self.accounts.clear();
    }

    pub fn ledger(&self) -> Value {
        let accounts = self.accounts.iter().filter(|(_, account)| !account.sites.is_empty());
        json!({"accounts": accounts.map(|(id, account)| (id.clone(), account.ledger())).collect::<Map<_, _>>()})
    }
}

#[derive(Debug, Default)]
pub struct Account {
    /// Counts up for all kinds of objects, and is never used twice.
    last_id: u64,
    pub(super) sites: BTreeMap<String, Site>,
    pub(super) interfaces: BTreeMap<String, Interface>,
    pub(super) ranges: BTreeMap<String, Range>,
    pub(super) hosts: BTreeMap<String, Host>,
    pub(super) peers: BTreeMap<String, Value>,
}

#[derive(Debug)]
pub struct Site {
    pub id: String,
    /// Null for an IPsec site.
    pub connection_type: Value,
    /// name, description, siteType, siteLocation, preferredPopLocation.
    pub details: Map<String, Value>,
    /// connectionMode, identificationType, messages, networkRanges.
    pub ipsec: Map<String, Value>,
    /// By id: PRIMARY1 and so on.
    pub tunnels: BTreeMap<String, Map<String, Value>>,
    /// What primary and secondary say beside their tunnels.
    pub destinations: BTreeMap<&'static str, Map<String, Value>>,
}

impl Site {
    pub fn name(&self) -> &str {
        self.details.get("name").and_then(Value::as_str).unwrap_or_default()
    }
}

#[derive(Debug)]
pub struct Interface {
    pub id: String,
    pub site: String,
    /// As the device calls it: LAN1, INT_5.
    pub index: String,
    pub name: String,
    pub is_default: bool,
    pub settings: Map<String, Value>,
}

#[derive(Debug)]
pub struct Range {
    pub id: String,
    pub site: String,
    pub interface: String,
    pub settings: Map<String, Value>,
}

impl Range {
    pub fn is_native(&self) -> bool {
        self.settings.get("rangeType").and_then(Value::as_str) == Some("Native")
    }
}

#[derive(Debug)]
pub struct Host {
    pub id: String,
    pub site: String,
    pub settings: Map<String, Value>,
}

const GROUPS: [(&str, &str); 2] = [("primary", "PRIMARY"), ("secondary", "SECONDARY")];
const MOST_TUNNELS: usize = 3;

impl Account {
    pub(super) fn next_id(&mut self) -> String {
        self.last_id += 1;
        (100_000 + self.last_id).to_string()
    }

    fn ledger(&self) -> Value {
        let sites = self.sites.values().map(|site| {
            let tunnels: Map<_, _> =
                site.tunnels.iter().map(|(id, it)| (id.clone(), Value::Object(it.clone()))).collect();
            json!({"id": site.id, "connectionType": site.connection_type, "details": site.details,
                "ipsec": site.ipsec, "tunnels": tunnels, "destinations": site.destinations})
        });
        let ranges = self.ranges.values().filter(|range| !range.is_native());
        let ranges = ranges.map(|range| json!({"id": range.id, "site": range.site, "settings": range.settings}));
        let hosts =
            self.hosts.values().map(|host| json!({"id": host.id, "site": host.site, "settings": host.settings}));
        json!({"sites": sites.collect::<Vec<_>>(), "networkRanges": ranges.collect::<Vec<_>>(),
            "staticHosts": hosts.collect::<Vec<_>>(), "bgpPeers": self.peers.values().collect::<Vec<_>>()})
    }

    pub(super) fn site(&mut self, id: &str) -> Result<&mut Site, String> {
        self.sites.get_mut(id).ok_or_else(|| format!("Invalid site id: {id}"))
    }

    /// The site that a `{by, input}` reference means.
    pub(super) fn referred(&self, reference: &Value) -> Option<&Site> {
        let input = reference["input"].as_str()?;
        match reference["by"].as_str() {
            Some("NAME") => self.sites.values().find(|site| site.name() == input),
            _ => self.sites.get(input),
        }
    }

    pub fn add_ipsec_site(&mut self, input: &Value) -> Value {
        self.add_site(Value::Null, "LAN 01", "LAN1", input)
    }

    pub fn add_socket_site(&mut self, input: &Value) -> Value {
        let connection_type = input["connectionType"].clone();
        let index = match connection_type.as_str() {
            Some("SOCKET_X1600" | "SOCKET_X1600_LTE") => "INT_5",
            Some("SOCKET_X1700") => "INT_3",
            _ => "LAN1",
        };
        self.add_site(connection_type, "LAN 01", index, input)
    }

    fn add_site(&mut self, connection_type: Value, interface_name: &str, index: &str, input: &Value) -> Value {
        let (id, interface, range) = (self.next_id(), self.next_id(), self.next_id());
        let mut details = Map::new();
        for field in ["name", "description", "siteType"] {
            details.insert(field.to_owned(), input[field].clone());
        }
        // A location is given with `city` and read with `cityName`.
        let mut location = input["siteLocation"].as_object().cloned().unwrap_or_default();
        let city = location.remove("city").unwrap_or_default();
        location.insert("cityName".to_owned(), city);
        details.insert("siteLocation".to_owned(), Value::Object(location));
        let site = Site {
            id: id.clone(),
            connection_type,
            details,
            ipsec: Map::new(),
            tunnels: BTreeMap::new(),
            destinations: BTreeMap::new(),
        };
        self.sites.insert(id.clone(), site);
        let mut settings = Map::new();
        settings.insert("destType".to_owned(), json!("LAN"));
        let interface = Interface {
            id: interface.clone(),
            site: id.clone(),
            index: index.to_owned(),
            name: interface_name.to_owned(),
            is_default: true,
            settings,
        };
        let native = json!({"name": "Native Range", "rangeType": "Native", "subnet": input["nativeNetworkRange"],
            "vlan": input["vlan"], "translatedSubnet": input["translatedSubnet"], "internetOnly": false,
            "mdnsReflector": false});
        let native = native.as_object().cloned().unwrap_or_default();
        let settings = Range { id: range.clone(), site: id.clone(), interface: interface.id.clone(), settings: native };
        self.ranges.insert(range, settings);
        self.interfaces.insert(interface.id.clone(), interface);
        json!({"siteId": id})
    }

    pub fn update_site(&mut self, id: &str, input: &Value) -> Result<Value, String> {
        let change = input.as_object().cloned().unwrap_or_default();
        merge(&mut self.site(id)?.details, &change);
        Ok(json!({"siteId": id}))
    }

    /// With a site goes all that belongs to it.
    pub fn remove_site(&mut self, id: &str) -> Result<Value, String> {
        self.site(id)?;
        self.sites.remove(id);
        self.interfaces.retain(|_, interface| interface.site != id);
        self.ranges.retain(|_, range| range.site != id);
        self.hosts.retain(|_, host| host.site != id);
        self.peers.retain(|_, peer| peer["site"]["id"] != id);
        Ok(json!({"siteId": id}))
    }

    pub fn update_ipsec(&mut self, id: &str, input: &Value) -> Result<Value, String> {
        let change = input.as_object().cloned().unwrap_or_default();
        let site = self.site(id)?;
        merge(&mut site.ipsec, &change);
        Ok(json!({"siteId": id, "localId": local_id(site)}))
    }

    pub fn add_tunnels(&mut self, id: &str, input: &Value) -> Result<Value, String> {
        let site = self.site(id)?;
        for (group, prefix) in GROUPS {
            let Some(tunnels) = input[group]["tunnels"].as_array() else { continue };
            let taken = site.tunnels.keys().filter(|id| id.starts_with(prefix)).count();
            if taken + tunnels.len() > MOST_TUNNELS {
                return Err(format!("a site has at most {MOST_TUNNELS} {group} tunnels"));
            }
        }
        for (group, prefix) in GROUPS {
            let Some(tunnels) = input[group]["tunnels"].as_array() else { continue };
            remember_destination(site, group, &input[group]);
            for tunnel in tunnels {
                let free = (1..=MOST_TUNNELS).map(|number| format!("{prefix}{number}"));
                let free = free.into_iter().find(|id| !site.tunnels.contains_key(id));
                let settings = tunnel.as_object().cloned().unwrap_or_default();
                site.tunnels.insert(free.unwrap_or_default(), settings);
            }
        }
        Ok(tunnels_of(site))
    }

    pub fn update_tunnels(&mut self, id: &str, input: &Value) -> Result<Value, String> {
        let site = self.site(id)?;
        for (group, _) in GROUPS {
            for tunnel in input[group]["tunnels"].as_array().into_iter().flatten() {
                let name = text(tunnel, "tunnelId");
                let existing = site.tunnels.get_mut(&name).ok_or_else(|| format!("Invalid tunnel id: {name}"))?;
                let mut change = tunnel.as_object().cloned().unwrap_or_default();
                change.remove("tunnelId");
                merge(existing, &change);
            }
            remember_destination(site, group, &input[group]);
        }
        Ok(tunnels_of(site))
    }

    pub fn remove_tunnels(&mut self, id: &str, input: &Value) -> Result<Value, String> {
        let site = self.site(id)?;
        for name in input["tunnelId"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            site.tunnels.remove(name).ok_or_else(|| format!("Invalid tunnel id: {name}"))?;
        }
        Ok(tunnels_of(site))
    }

    pub fn update_interface(&mut self, site: &str, index: &str, input: &Value) -> Result<Value, String> {
        self.site(site)?;
        let change = input.as_object().cloned().unwrap_or_default();
        let existing = self.interfaces.values().find(|it| it.site == site && it.index == index);
        let id = match existing {
            Some(interface) => interface.id.clone(),
            None => {
                let id = self.next_id();
                let interface = Interface {
                    id: id.clone(),
                    site: site.to_owned(),
                    index: index.to_owned(),
                    name: index.to_owned(),
                    is_default: false,
                    settings: Map::new(),
                };
                self.interfaces.insert(id.clone(), interface);
                id
            }
        };
        if let Some(interface) = self.interfaces.get_mut(&id) {
            if let Some(name) = change.get("name").and_then(Value::as_str) {
                interface.name = name.to_owned();
            }
            merge(&mut interface.settings, &change);
        }
        // The native range of a site is the subnet of its interface.
        let native = self.ranges.values_mut().find(|range| range.interface == id && range.is_native());
        if let (Some(native), Some(Value::Object(lan))) = (native, change.get("lan")) {
            merge(&mut native.settings, lan);
        }
        Ok(json!({"siteId": site, "socketInterfaceId": index}))
    }

    pub fn add_range(&mut self, interface: &str, input: &Value) -> Result<Value, String> {
        let found = self.interfaces.get(interface).ok_or_else(|| format!("Invalid interface id: {interface}"))?;
        let site = found.site.clone();
        let id = self.next_id();
        let mut settings =
            json!({"internetOnly": false, "mdnsReflector": false}).as_object().cloned().unwrap_or_default();
        merge(&mut settings, input.as_object().unwrap_or(&Map::new()));
        complete_dhcp(&mut settings);
        self.ranges.insert(id.clone(), Range { id: id.clone(), site, interface: interface.to_owned(), settings });
        Ok(json!({"networkRangeId": id}))
    }

    pub fn update_range(&mut self, id: &str, input: &Value) -> Result<Value, String> {
        let range = self.ranges.get_mut(id).ok_or_else(|| invalid_range(id))?;
        merge(&mut range.settings, input.as_object().unwrap_or(&Map::new()));
        complete_dhcp(&mut range.settings);
        Ok(json!({"networkRangeId": id}))
    }

    pub fn remove_range(&mut self, id: &str) -> Result<Value, String> {
        self.ranges.remove(id).ok_or_else(|| invalid_range(id))?;
        Ok(json!({"networkRangeId": id}))
    }

    pub fn add_host(&mut self, site: &str, input: &Value) -> Result<Value, String> {
        self.site(site)?;
        let id = self.next_id();
        let settings = input.as_object().cloned().unwrap_or_default();
        self.hosts.insert(id.clone(), Host { id: id.clone(), site: site.to_owned(), settings });
        Ok(json!({"hostId": id}))
    }

    pub fn update_host(&mut self, id: &str, input: &Value) -> Result<Value, String> {
        let host = self.hosts.get_mut(id).ok_or_else(|| format!("Invalid host id: {id}"))?;
        merge(&mut host.settings, input.as_object().unwrap_or(&Map::new()));
        Ok(json!({"hostId": id}))
    }

    pub fn remove_host(&mut self, id: &str) -> Result<Value, String> {
        self.hosts.remove(id).ok_or_else(|| format!("Invalid host id: {id}"))?;
        Ok(json!({"hostId": id}))
    }
}

/// The vendor's own words, which its Terraform provider looks for.
pub fn invalid_range(id: &str) -> String {
    format!("Invalid network range id: {id}")
}

fn complete_dhcp(settings: &mut Map<String, Value>) {
    if let Some(Value::Object(dhcp)) = settings.get_mut("dhcpSettings") {
        let on = dhcp.get("dhcpMicrosegmentation").cloned().filter(|value| !value.is_null());
        dhcp.insert("dhcpMicrosegmentation".to_owned(), on.unwrap_or(json!(false)));
    }
}

fn remember_destination(site: &mut Site, group: &'static str, input: &Value) {
    if let Some(input) = input.as_object() {
        let mut change = input.clone();
        change.remove("tunnels");
        merge(site.destinations.entry(group).or_default(), &change);
    }
}

/// Sites that identify themselves by anything but an address get an id from the vendor.
fn local_id(site: &Site) -> Value {
    match site.ipsec.get("identificationType").and_then(Value::as_str) {
        None | Some("IPV4") => Value::Null,
        Some(kind) => json!(format!("{}.{}.sim.example", kind.to_lowercase(), site.id)),
    }
}

fn tunnels_of(site: &Site) -> Value {
    let group = |group: &str, prefix: &str| {
        let tunnels: Vec<_> = site
            .tunnels
            .keys()
            .filter(|id| id.starts_with(prefix))
            .map(|id| json!({"tunnelId": id, "localId": local_id(site)}))
            .collect();
        if tunnels.is_empty() {
            return Value::Null;
        }
        let by_name = site.destinations.get(group).and_then(|it| it.get("destinationType"));
        let fqdn = by_name.and_then(Value::as_str) == Some("FQDN");
        let fqdn = if fqdn { json!(format!("{group}.{}.sim.example", site.id)) } else { Value::Null };
        json!({"fqdn": fqdn, "tunnels": tunnels})
    };
    json!({"siteId": site.id, "primary": group("primary", "PRIMARY"), "secondary": group("secondary", "SECONDARY")})
}
