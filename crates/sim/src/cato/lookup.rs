//! Reading: the general look-up of entities, the snapshot of an account, and the queries below `site`.

use serde_json::{Map, Value, json};

use super::world::{Account, Interface, Range, Site, invalid_range};
use crate::json::text;

/// One hit of a look-up, before it is filtered.
struct Entity {
    id: String,
    name: String,
    description: String,
    site: String,
    helper: Map<String, Value>,
}

pub fn entities(account: &Account, arguments: &Value) -> Value {
    let kind = text(arguments, "type");
    let all = match kind.as_str() {
        "site" => account.sites.values().map(site_entity).collect(),
        "siteRange" => account.ranges.values().map(|range| range_entity(account, range)).collect(),
        "networkInterface" => account.interfaces.values().map(|it| interface_entity(account, it)).collect(),
        "host" => host_entities(account),
        _ => Vec::new(),
    };
    let parent = arguments["parent"]["id"].as_str();
    let search = text(arguments, "search").to_lowercase();
    // The vendor's client writes a list that it leaves out as an empty one.
    let ids: Vec<_> = arguments["entityIDs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let wanted: Vec<_> = all
        .into_iter()
        .filter(|entity| parent.is_none_or(|parent| entity.site == parent))
        .filter(|entity| ids.is_empty() || ids.contains(&entity.id.as_str()))
        .filter(|entity| search.is_empty() || entity.name.to_lowercase().contains(&search))
        .collect();
    let from = usize::try_from(arguments["from"].as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
    // Zero is "all of them": the vendor's own provider asks so.
    let limit = match arguments["limit"].as_u64() {
        Some(0) => usize::MAX,
        Some(limit) => usize::try_from(limit).unwrap_or(usize::MAX),
        None => 50,
    };
    let total = wanted.len();
    let items = wanted.into_iter().skip(from).take(limit).map(|entity| {
        json!({"entity": {"id": entity.id, "name": entity.name, "type": kind},
            "description": entity.description, "helperFields": entity.helper})
    });
    json!({"items": items.collect::<Vec<_>>(), "total": total})
}

fn helper(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn site_entity(site: &Site) -> Entity {
    Entity {
        id: site.id.clone(),
        name: site.name().to_owned(),
        description: site.details.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
        site: site.id.clone(),
        helper: helper(json!({"type": site.details.get("siteType"), "description": site.details.get("description"),
            "connectionType": site.connection_type})),
    }
}

fn site_name<'a>(account: &'a Account, id: &str) -> &'a str {
    account.sites.get(id).map(Site::name).unwrap_or_default()
}

fn range_entity(account: &Account, range: &Range) -> Entity {
    let site = site_name(account, &range.site);
    let interface = account.interfaces.get(&range.interface).map(|it| it.name.as_str()).unwrap_or_default();
    let setting = |name: &str| range.settings.get(name).cloned().unwrap_or_default();
    let name = setting("name");
    let name = name.as_str().unwrap_or_default();
    Entity {
        id: range.id.clone(),
        // The vendor's provider takes the name apart at these separators.
        name: format!("{site} \\ {interface} \\ {name}"),
        description: String::new(),
        site: range.site.clone(),
        helper: helper(json!({"siteId": range.site, "siteName": site, "interfaceName": interface,
            "subnet": setting("subnet"), "vlanTag": setting("vlan"), "gateway": setting("gateway"),
            "translatedSubnet": setting("translatedSubnet"), "mdnsReflector": setting("mdnsReflector"),
            "microsegmentation": setting("dhcpSettings")["dhcpMicrosegmentation"]})),
    }
}

fn interface_entity(account: &Account, interface: &Interface) -> Entity {
    let site = site_name(account, &interface.site);
    let native = account.ranges.values().find(|range| range.interface == interface.id && range.is_native());
    let subnet = native.and_then(|range| range.settings.get("subnet"));
    Entity {
        id: interface.id.clone(),
        name: format!("{site} \\ {}", interface.name),
        description: String::new(),
        site: interface.site.clone(),
        helper: helper(json!({"siteId": interface.site, "siteName": site, "interfaceId": interface.index,
            "interfaceName": interface.name, "destType": interface.settings.get("destType"), "subnet": subnet,
            "isDefault": interface.is_default})),
    }
}

fn host_entities(account: &Account) -> Vec<Entity> {
    let entity = |host: &super::world::Host| {
        let interface = account.interfaces.values().find(|interface| interface.site == host.site);
        Entity {
            id: host.id.clone(),
            name: host.settings.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
            description: String::new(),
            site: host.site.clone(),
            helper: helper(json!({"siteId": host.site, "siteName": site_name(account, &host.site),
                "ip": host.settings.get("ip"), "macAddress": host.settings.get("macAddress"),
                "interfaceName": interface.map(|interface| &interface.name)})),
        }
    };
    account.hosts.values().map(entity).collect()
}

pub fn site_snapshots(account: &Account, arguments: &Value) -> Value {
    let ids = ["siteIDs", "ids"].into_iter().filter_map(|name| arguments[name].as_array()).flatten();
    let ids: Vec<_> = ids.map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned)).collect();
    let sites = account.sites.values().filter(|site| ids.is_empty() || ids.contains(&site.id));
    let snapshots = sites.map(|site| {
        let location = site.details.get("siteLocation").cloned().unwrap_or_default();
        let state = location["stateCode"].as_str().filter(|code| !code.is_empty());
        let connection = site.connection_type.as_str().unwrap_or("IPSEC_V2");
        json!({
            "id": site.id,
            "connectivityStatus": "disconnected",
            "operationalStatus": "active",
            "info": {
                "name": site.name(),
                "description": site.details.get("description"),
                "type": site.details.get("siteType"),
                "countryCode": location["countryCode"],
                "countryName": location["countryCode"],
                // The vendor spells the state out; what counts is that it is not empty.
                "countryStateName": state.map(|code| format!("State {code}")),
                "cityName": location["cityName"],
                "address": location["address"],
                "connType": connection,
                "isHA": false,
                "sockets": sockets(site),
            },
        })
    });
    Value::Array(snapshots.collect())
}

fn sockets(site: &Site) -> Value {
    let Some(platform) = site.connection_type.as_str().and_then(|kind| kind.strip_prefix("SOCKET_")) else {
        return Value::Null;
    };
    json!([{"id": format!("socket-{}", site.id), "isPrimary": true, "platform": platform, "serial": null}])
}

pub fn general_details(account: &Account, reference: &Value) -> Value {
    let Some(site) = account.referred(reference) else { return Value::Null };
    let mut details = site.details.clone();
    details.insert("site".to_owned(), json!({"id": site.id, "name": site.name()}));
    Value::Object(details)
}

pub fn socket_configuration(account: &Account, reference: &Value) -> Value {
    match account.referred(reference) {
        Some(site) if !site.connection_type.is_null() => {
            json!({"primarySocketConfiguration": {"description": site.details.get("description")}})
        }
        _ => Value::Null,
    }
}

fn range_answer(range: &Range) -> Value {
    let mut settings = range.settings.clone();
    settings.insert("networkRangeId".to_owned(), json!(range.id));
    Value::Object(settings)
}

pub fn ranges(account: &Account, reference: &Value) -> Result<Value, String> {
    let site = account.referred(reference).ok_or_else(|| format!("Invalid site: {}", text(reference, "input")))?;
    let items: Vec<_> = account.ranges.values().filter(|range| range.site == site.id).map(range_answer).collect();
    Ok(json!({"total": items.len(), "items": items}))
}

pub fn range(account: &Account, id: &str) -> Result<Value, String> {
    account.ranges.get(id).map(range_answer).ok_or_else(|| invalid_range(id))
}
