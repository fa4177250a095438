//! The fields that do something: everything below them is plain JSON.

use std::cell::RefCell;

use apollo_compiler::resolvers::{FieldError, ObjectValue, ResolveInfo, ResolvedValue};
use serde_json::{Value, json};

use super::graphql::{Plain, Request, arguments};
use super::lookup;
use super::world::{Account, World};

/// Executes the request; the answer is the whole body.
pub fn execute(request: &Request<'_>, account: &str, world: &mut World) -> Value {
    let root = Root { world: RefCell::new(world), account, mutation: request.is_mutation() };
    request.execute(&root)
}

struct Root<'w> {
    world: RefCell<&'w mut World>,
    /// For fields that may leave the account out.
    account: &'w str,
    mutation: bool,
}

impl Root<'_> {
    fn account_named(&self, arguments: &Value) -> String {
        let named = ["accountId", "accountID", "id"].into_iter().find_map(|name| arguments.get(name)?.as_str());
        named.unwrap_or(self.account).to_owned()
    }
}

impl ObjectValue for Root<'_> {
    fn type_name(&self) -> &str {
        if self.mutation { "Mutation" } else { "Query" }
    }

    fn resolve_field<'a>(&'a self, info: &'a ResolveInfo<'a>) -> Result<ResolvedValue<'a>, FieldError> {
        let arguments = arguments(info);
        let account = self.account_named(&arguments);
        match info.field_name() {
            "site" | "sites" => Ok(ResolvedValue::object(Site { root: self, account })),
            "entityLookup" => {
                let mut world = self.world.borrow_mut();
                Ok(Plain::resolved(lookup::entities(world.account(&account), &arguments), info))
            }
            "accountSnapshot" => Ok(ResolvedValue::object(Snapshot { root: self, account })),
            _ => Err(self.unknown_field_error(info)),
        }
    }
}

struct Snapshot<'r, 'w> {
    root: &'r Root<'w>,
    account: String,
}

impl ObjectValue for Snapshot<'_, '_> {
    fn type_name(&self) -> &str {
        "AccountSnapshot"
    }

    fn resolve_field<'a>(&'a self, info: &'a ResolveInfo<'a>) -> Result<ResolvedValue<'a>, FieldError> {
        let mut world = self.root.world.borrow_mut();
        let value = match info.field_name() {
            "id" => json!(self.account),
            "timestamp" => json!("2026-01-01T00:00:00Z"),
            "sites" => lookup::site_snapshots(world.account(&self.account), &arguments(info)),
            "users" => json!([]),
            _ => return Err(self.unknown_field_error(info)),
        };
        Ok(Plain::resolved(value, info))
    }
}

/// `SiteQueries` or `SiteMutations` of one account.
struct Site<'r, 'w> {
    root: &'r Root<'w>,
    account: String,
}

impl ObjectValue for Site<'_, '_> {
    fn type_name(&self) -> &str {
        if self.root.mutation { "SiteMutations" } else { "SiteQueries" }
    }

    fn resolve_field<'a>(&'a self, info: &'a ResolveInfo<'a>) -> Result<ResolvedValue<'a>, FieldError> {
        let mut world = self.root.world.borrow_mut();
        let account = world.account(&self.account);
        let arguments = arguments(info);
        let answer = if self.root.mutation {
            mutate(account, info.field_name(), &arguments)
        } else {
            query(account, info.field_name(), &arguments)
        };
        match answer {
            Ok(value) => Ok(Plain::resolved(value, info)),
            Err(message) => Err(FieldError { message }),
        }
    }
}

fn mutate(account: &mut Account, field: &str, arguments: &Value) -> Result<Value, String> {
    let input = &arguments["input"];
    let id = |name: &str| arguments[name].as_str().unwrap_or_default().to_owned();
    match field {
        "addIpsecIkeV2Site" => Ok(account.add_ipsec_site(input)),
        "addSocketSite" => Ok(account.add_socket_site(input)),
        "updateSiteGeneralDetails" => account.update_site(&id("siteId"), input),
        "removeSite" => account.remove_site(&id("siteId")),
        "updateIpsecIkeV2SiteGeneralDetails" => account.update_ipsec(&id("siteId"), input),
        "addIpsecIkeV2SiteTunnels" => account.add_tunnels(&id("siteId"), input),
        "updateIpsecIkeV2SiteTunnels" => account.update_tunnels(&id("siteId"), input),
        "removeIpsecIkeV2SiteTunnels" => account.remove_tunnels(&id("siteId"), input),
        "updateSocketInterface" => account.update_interface(&id("siteId"), &id("socketInterfaceId"), input),
        "addNetworkRange" => account.add_range(&id("lanSocketInterfaceId"), input),
        "updateNetworkRange" => account.update_range(&id("networkRangeId"), input),
        "removeNetworkRange" => account.remove_range(&id("networkRangeId")),
        "addStaticHost" => account.add_host(&id("siteId"), input),
        "updateStaticHost" => account.update_host(&id("hostId"), input),
        "removeStaticHost" => account.remove_host(&id("hostId")),
        "addBgpPeer" => account.add_peer(input),
        "updateBgpPeer" => account.update_peer(input),
        "removeBgpPeer" => account.remove_peer(input),
        _ => Err(format!("{field} is not simulated")),
    }
}

fn query(account: &mut Account, field: &str, arguments: &Value) -> Result<Value, String> {
    let input = &arguments["input"];
    match field {
        "siteGeneralDetails" => Ok(lookup::general_details(account, &arguments["site"])),
        "siteSocketConfiguration" => Ok(lookup::socket_configuration(account, &input["site"])),
        "networkRangeList" => lookup::ranges(account, &input["site"]),
        "networkRange" => lookup::range(account, arguments["networkRangeId"].as_str().unwrap_or_default()),
        "bgpPeer" => Ok(account.peer(input)),
        "bgpPeerList" => account.peers(&input["site"]),
        _ => Err(format!("{field} is not simulated")),
    }
}
