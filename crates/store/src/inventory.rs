//! The inventory: which objects all states have, in clear and without their values, so that a fleet can be searched.
//!
//! It is written by the transaction that writes a state. A state that its client has encrypted has none, and a sensitive
//! attribute is never in it.

use landform_domain::{DeploymentName, TenantName};
use serde_json::{Value, json};

use crate::db::{Row, Tx, params};
use crate::error::StoreError;
use crate::keys::Sealer;
use crate::open::Store;

/// One object of one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    pub tenant: TenantName,
    pub deployment: DeploymentName,
    pub address: String,
    /// `managed` or `data`.
    pub mode: String,
    pub kind: String,
    pub name: String,
    pub provider: String,
    /// The attribute `id`, unless there is none or it is sensitive.
    pub id: Option<String>,
    /// When anything about it last changed.
    pub updated_at: i64,
}

/// In the order of tenants, deployments and addresses.
#[derive(Clone, Debug, Default)]
pub struct ResourceFilter {
    pub tenant: Option<TenantName>,
    pub deployment: Option<DeploymentName>,
    /// The type of resource, such as `aws_vpc`.
    pub kind: Option<String>,
    /// The object's id, exactly.
    pub id: Option<String>,
    /// A part of the address or of the id; letters of either case.
    pub text: Option<String>,
    /// Where the page before has ended.
    pub after: Option<ResourcePlace>,
    /// 0 means 100, which is also the most.
    pub limit: u32,
}

/// A place in the order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePlace {
    pub tenant: String,
    pub deployment: String,
    pub address: String,
}

#[derive(Clone, Debug)]
pub struct ResourcePage {
    pub resources: Vec<Resource>,
    /// Where to go on; `None` is the end.
    pub next: Option<ResourcePlace>,
}

const PAGE: u32 = 100;

/// A page looks at so many resources at most. A rare text may be further on: then the page is short, or empty, and says
/// where to go on.
const MOST_LOOKED_AT: i64 = 10_000;

macro_rules! page_where {
    ($condition:literal) => {
        concat!(
            "SELECT * FROM (SELECT tenant, deployment, address, mode, type, name, provider, object_id, updated_at
             FROM resources WHERE ",
            $condition,
            " AND (tenant, deployment, address) > ($1, $2, $3) ORDER BY tenant, deployment, address LIMIT $4) AS looked_at
             WHERE $5 = '' OR lower(address) LIKE $5 ESCAPE '!' OR lower(object_id) LIKE $5 ESCAPE '!'
             ORDER BY tenant, deployment, address LIMIT $6"
        )
    };
}

/// The last place that such a page has looked at, if there is more behind it.
macro_rules! end_where {
    ($condition:literal) => {
        concat!(
            "SELECT tenant, deployment, address FROM resources WHERE ",
            $condition,
            " AND (tenant, deployment, address) > ($1, $2, $3) ORDER BY tenant, deployment, address LIMIT 1 OFFSET $4"
        )
    };
}

macro_rules! both_where {
    ($condition:literal, $($value:expr),*) => {
        // The queries have a different number of values of their own before those of the condition.
        ((page_where!($condition), end_where!($condition)), params![$($value.as_str()),*])
    };
}

impl Store {
    pub async fn resources(&self, filter: &ResourceFilter) -> Result<ResourcePage, StoreError> {
        let limit = i64::from(if filter.limit == 0 { PAGE } else { filter.limit.min(PAGE) });
        // Each has the index that it needs.
        let ((page, end), values) = match filter {
            ResourceFilter { id: Some(id), .. } => both_where!("object_id = $7", id),
            ResourceFilter { tenant: Some(tenant), deployment: Some(deployment), .. } => {
                both_where!("tenant = $7 AND deployment = $8", tenant, deployment)
            }
            ResourceFilter { tenant: Some(tenant), kind: Some(kind), .. } => {
                both_where!("type = $7 AND tenant = $8", kind, tenant)
            }
            ResourceFilter { tenant: Some(tenant), .. } => both_where!("tenant = $7", tenant),
            ResourceFilter { kind: Some(kind), .. } => both_where!("type = $7", kind),
            _ => ((page_where!("$7 = ''"), end_where!("$7 = ''")), params![""]),
        };
        let after = filter.after.clone().unwrap_or_default();
        let pattern = filter.text.as_deref().map(pattern).unwrap_or_default();
        let fixed = |looked_at: i64| {
            let place = params![after.tenant.as_str(), after.deployment.as_str(), after.address.as_str(), looked_at];
            [place, params![pattern.as_str(), limit + 1], values.clone()].concat()
        };
        // Without a text every row that is looked at is on the page.
        let looked_at = if pattern.is_empty() { limit + 1 } else { MOST_LOOKED_AT };
        let rows = self.db().read_all(page, fixed(looked_at)).await?;
        let mut resources: Vec<Resource> = rows.iter().map(resource).collect::<Result<_, _>>()?;
        let more = resources.len() > limit as usize;
        resources.truncate(limit as usize);
        let next = if more {
            resources.last().map(ResourcePlace::of)
        } else if pattern.is_empty() {
            None
        } else {
            self.db().read_one(end, fixed(MOST_LOOKED_AT - 1)).await?.as_ref().map(place).transpose()?
        };
        // What the chosen index does not know is compared here.
        resources.retain(|resource| {
            filter.tenant.as_ref().is_none_or(|tenant| *tenant == resource.tenant)
                && filter.deployment.as_ref().is_none_or(|name| *name == resource.deployment)
                && filter.kind.as_ref().is_none_or(|kind| *kind == resource.kind)
        });
        Ok(ResourcePage { resources, next })
    }
}

impl ResourcePlace {
    fn of(resource: &Resource) -> ResourcePlace {
        ResourcePlace {
            tenant: resource.tenant.to_string(),
            deployment: resource.deployment.to_string(),
            address: resource.address.clone(),
        }
    }
}

fn pattern(text: &str) -> String {
    let escaped: String = text.to_lowercase().chars().fold(String::new(), |mut escaped, letter| {
        if matches!(letter, '%' | '_' | '!') {
            escaped.push('!');
        }
        escaped.push(letter);
        escaped
    });
    format!("%{escaped}%")
}

fn place(row: &Row) -> Result<ResourcePlace, StoreError> {
    Ok(ResourcePlace {
        tenant: row.text("tenant")?,
        deployment: row.text("deployment")?,
        address: row.text("address")?,
    })
}

fn resource(row: &Row) -> Result<Resource, StoreError> {
    Ok(Resource {
        tenant: row.parsed("tenant")?,
        deployment: row.parsed("deployment")?,
        address: row.text("address")?,
        mode: row.text("mode")?,
        kind: row.text("type")?,
        name: row.text("name")?,
        provider: row.text("provider")?,
        id: row.text_or_null("object_id")?,
        updated_at: row.int("updated_at")?,
    })
}

/// Brings the inventory of one deployment to what the state has. What has not changed is not written.
pub(crate) async fn project(
    tx: &mut Tx,
    sealer: &Sealer,
    tenant: &TenantName,
    deployment: &DeploymentName,
    state: &[u8],
) -> Result<(), StoreError> {
    let rows: Vec<String> = objects(state, |object| sealer.digest(object)).iter().map(Value::to_string).collect();
    let rows = serde_json::to_string(&rows)?;
    tx.execute(
        "DELETE FROM resources WHERE tenant = $1 AND deployment = $2
            AND address NOT IN (SELECT e.value{json} ->> 'address' FROM {strings $3})",
        params![tenant.as_str(), deployment.as_str(), rows.as_str()],
    )
    .await?;
    tx.execute(
        "INSERT INTO resources (tenant, deployment, address, mode, type, name, provider, object_id, digest, updated_at)
         SELECT $1, $2, e.value{json} ->> 'address', e.value{json} ->> 'mode', e.value{json} ->> 'type',
            e.value{json} ->> 'name', e.value{json} ->> 'provider', e.value{json} ->> 'id', e.value{json} ->> 'digest',
            {now}
         FROM {strings $3} WHERE true
         ON CONFLICT (tenant, deployment, address) DO UPDATE SET mode = excluded.mode, type = excluded.type,
            name = excluded.name, provider = excluded.provider, object_id = excluded.object_id,
            digest = excluded.digest, updated_at = excluded.updated_at
         WHERE resources.digest <> excluded.digest",
        params![tenant.as_str(), deployment.as_str(), rows],
    )
    .await?;
    Ok(())
}

/// The deployment has no state any more.
pub(crate) async fn clear(tx: &mut Tx, tenant: &TenantName, deployment: &DeploymentName) -> Result<(), StoreError> {
    let sql = "DELETE FROM resources WHERE tenant = $1 AND deployment = $2";
    tx.execute(sql, params![tenant.as_str(), deployment.as_str()]).await?;
    Ok(())
}

/// All objects of a state as rows; none if it cannot be read.
fn objects(state: &[u8], digest: impl Fn(&[u8]) -> String) -> Vec<Value> {
    let Ok(state) = serde_json::from_slice::<Value>(state) else { return Vec::new() };
    let mut rows = Vec::new();
    for resource in list(&state["resources"]) {
        let word = |name: &str| resource[name].as_str().unwrap_or_default();
        for instance in list(&resource["instances"]) {
            let whole = json!([word("provider"), instance]).to_string();
            rows.push(json!({
                "address": address(resource, instance),
                "mode": word("mode"),
                "type": word("type"),
                "name": word("name"),
                "provider": provider(word("provider")),
                "id": id(instance),
                "digest": digest(whole.as_bytes()),
            }));
        }
    }
    rows
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// As `tofu state list` writes it; an object that is only left to be destroyed has its key behind it.
fn address(resource: &Value, instance: &Value) -> String {
    let word = |name: &str| resource[name].as_str().unwrap_or_default();
    let module = resource["module"].as_str().map(|module| format!("{module}.")).unwrap_or_default();
    let data = if word("mode") == "data" { "data." } else { "" };
    let key = match &instance["index_key"] {
        Value::Null => String::new(),
        // JSON's quotation marks are those of the language, but for a dollar or percent sign before a brace.
        Value::String(key) => {
            format!("[{}]", Value::from(key.as_str()).to_string().replace("${", "$${").replace("%{", "%%{"))
        }
        number => format!("[{number}]"),
    };
    let deposed = instance["deposed"].as_str().map(|key| format!(" (deposed {key})")).unwrap_or_default();
    format!("{module}{data}{}.{}{key}{deposed}", word("type"), word("name"))
}

/// `provider["registry.opentofu.org/hashicorp/time"].alias` is `registry.opentofu.org/hashicorp/time`.
fn provider(text: &str) -> &str {
    text.split('"').nth(1).unwrap_or(text)
}

fn id(instance: &Value) -> Option<String> {
    let first_step = |path: &Value| list(path).first().map(|step| step["value"].clone());
    let sensitive = list(&instance["sensitive_attributes"]).iter().any(|path| first_step(path) == Some("id".into()));
    match &instance["attributes"]["id"] {
        _ if sensitive => None,
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(state: Value) -> Vec<Value> {
        objects(state.to_string().as_bytes(), |object| object.len().to_string())
    }

    #[test]
    fn objects_have_the_addresses_that_tofu_gives_them() {
        let instance = |more: Value| {
            let mut instance = json!({"attributes": {"id": "i"}});
            instance.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            instance
        };
        let provider = "provider[\"registry.opentofu.org/hashicorp/time\"].eu";
        let rows = rows(json!({"version": 4, "resources": [
            {"mode": "managed", "type": "t", "name": "a", "provider": provider, "instances": [
                instance(json!({})), instance(json!({"deposed": "0a1b"}))]},
            {"module": "module.m[\"x\"]", "mode": "data", "type": "t", "name": "b", "provider": provider, "instances": [
                instance(json!({"index_key": 0})), instance(json!({"index_key": "a\"${b}"}))]},
        ]}));
        let addresses: Vec<&str> = rows.iter().map(|row| row["address"].as_str().unwrap()).collect();
        assert_eq!(
            addresses,
            ["t.a", "t.a (deposed 0a1b)", "module.m[\"x\"].data.t.b[0]", r#"module.m["x"].data.t.b["a\"$${b}"]"#]
        );
        assert_eq!(rows[0]["provider"], "registry.opentofu.org/hashicorp/time");
    }

    #[test]
    fn a_sensitive_or_missing_id_is_not_told() {
        let state = |instance: Value| {
            json!({"version": 4, "resources": [{"mode": "managed", "type": "t", "name": "a", "provider": "p",
                "instances": [instance]}]})
        };
        let sensitive = json!([[{"type": "get_attr", "value": "id"}]]);
        assert_eq!(
            rows(state(json!({"attributes": {"id": "s3cret"}, "sensitive_attributes": sensitive})))[0]["id"],
            json!(null)
        );
        let other = json!([[{"type": "get_attr", "value": "key"}]]);
        assert_eq!(rows(state(json!({"attributes": {"id": "x"}, "sensitive_attributes": other})))[0]["id"], "x");
        assert_eq!(rows(state(json!({"attributes": {"id": 7}})))[0]["id"], "7");
        assert_eq!(rows(state(json!({"attributes": {}})))[0]["id"], json!(null));
    }

    #[test]
    fn what_cannot_be_read_has_no_objects() {
        assert!(objects(b"no state", |_| String::new()).is_empty());
        assert!(rows(json!({"serial": 1, "lineage": "l", "encrypted_data": "AAAA"})).is_empty());
    }
}
