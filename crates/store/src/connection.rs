//! Connections: a tenant's credentials. They are sealed, counted, and handed to nobody but the run that needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use landform_domain::declared::Declared;
use landform_domain::{Actor, Code, ConnectionName, DeploymentId, Inputs, Problem, TenantName};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::audit::{Deed, write_down};
use crate::db::{Row, Tx, params};
use crate::error::StoreError;
use crate::keys::Sealer;
use crate::open::Store;
use crate::tenants;

/// What a connection holds. It cannot be printed.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ConnectionValues {
    /// For variables that the template declares as ephemeral and sensitive.
    #[serde(default)]
    pub variables: BTreeMap<String, Value>,
    /// For providers that can be configured in no other way.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
}

impl fmt::Debug for ConnectionValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys().chain(self.environment.keys())).finish()
    }
}

/// A connection as it may be shown: the names of what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    pub name: ConnectionName,
    /// Rises with every rotation.
    pub version: i64,
    pub variables: Vec<String>,
    pub environment: Vec<String>,
    pub created_at: i64,
    pub updated_at: i64,
}

/// A connection that a generation uses, and the variables that it feeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) connection: ConnectionName,
    pub(crate) variables: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Names {
    variables: Vec<String>,
    environment: Vec<String>,
}

impl Store {
    /// Makes a connection or rotates it: the values are replaced as a whole, and the version rises. The flag says whether
    /// it is new.
    pub async fn put_connection(
        &self,
        tenant: &TenantName,
        name: &ConnectionName,
        values: ConnectionValues,
        by: &Actor,
    ) -> Result<(Connection, bool), StoreError> {
        let key = self.tenant_key(tenant).await?;
        let names = Names {
            variables: values.variables.keys().cloned().collect(),
            environment: values.environment.keys().cloned().collect(),
        };
        let mut tx = self.db().begin().await?;
        tenants::hold(&mut tx, tenant).await?;
        let sql = "SELECT version FROM connections WHERE tenant = $1 AND name = $2 {lock}";
        let before = tx.one(sql, params![tenant.as_str(), name.as_str()]).await?;
        let version = 1 + before.as_ref().map_or(Ok(0), |row| row.int("version"))?;
        let sealed = key.seal_connection(name.as_str(), version, &serde_json::to_vec(&values)?)?;
        let row = tx
            .exactly_one(
                "INSERT INTO connections (tenant, name, version, names, sealed, created_at, updated_at)
                 VALUES ($1, $2, $3, $4, $5, {now}, {now})
                 ON CONFLICT (tenant, name) DO UPDATE SET version = excluded.version, names = excluded.names,
                    sealed = excluded.sealed, updated_at = excluded.updated_at
                 RETURNING name, version, names, created_at, updated_at",
                params![tenant.as_str(), name.as_str(), version, serde_json::to_string(&names)?, sealed],
            )
            .await?;
        let detail = json!({"version": version, "variables": names.variables, "environment": names.environment});
        let deed = Deed { action: "connection.put", tenant: Some(tenant), target: name.to_string(), detail };
        write_down(&mut tx, by, deed).await?;
        tx.commit().await?;
        Ok((connection(&row)?, before.is_none()))
    }

    pub async fn connection(&self, tenant: &TenantName, name: &ConnectionName) -> Result<Connection, StoreError> {
        let sql = "SELECT name, version, names, created_at, updated_at FROM connections
             WHERE tenant = $1 AND name = $2";
        let row = self.db().read_one(sql, params![tenant.as_str(), name.as_str()]).await?;
        connection(&row.ok_or_else(|| unknown(tenant, name))?)
    }

    pub async fn connections(&self, tenant: &TenantName) -> Result<Vec<Connection>, StoreError> {
        self.tenant(tenant).await?;
        let sql =
            "SELECT name, version, names, created_at, updated_at FROM connections WHERE tenant = $1 ORDER BY name";
        self.db().read_all(sql, params![tenant.as_str()]).await?.iter().map(connection).collect()
    }

    /// Refused while a deployment needs it: for what it shall be, or to destroy what its state has.
    pub async fn delete_connection(
        &self,
        tenant: &TenantName,
        name: &ConnectionName,
        by: &Actor,
    ) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        let used = tx
            .one(
                "SELECT d.name FROM generation_connections g JOIN deployments d ON d.id = g.deployment
                 WHERE g.tenant = $1 AND g.connection = $2
                    AND (g.generation = d.generation OR g.generation = d.state_generation)
                 ORDER BY d.name LIMIT 1",
                params![tenant.as_str(), name.as_str()],
            )
            .await?;
        if let Some(row) = used {
            let message = format!("the deployment `{}` uses the connection `{name}`", row.text("name")?);
            return Err(Problem::new(Code::ConnectionInUse, message).into());
        }
        let sql = "DELETE FROM connections WHERE tenant = $1 AND name = $2";
        if tx.execute(sql, params![tenant.as_str(), name.as_str()]).await? == 0 {
            return Err(unknown(tenant, name));
        }
        let deed =
            Deed { action: "connection.delete", tenant: Some(tenant), target: name.to_string(), detail: json!({}) };
        write_down(&mut tx, by, deed).await?;
        tx.commit().await
    }
}

/// Decides which variables each connection feeds. A value of a connection must not reach a plan or a state, so the
/// variable has to be ephemeral; nobody else may set it.
pub(crate) async fn bind(
    tx: &mut Tx,
    tenant: &TenantName,
    wanted: &[ConnectionName],
    declared: &Declared,
    inputs: &Inputs,
) -> Result<Vec<Bound>, StoreError> {
    let invalid = |message: String| StoreError::from(Problem::new(Code::ConnectionInvalid, message));
    let mut taken: BTreeSet<String> = inputs.iter().map(|(name, _)| name.clone()).collect();
    let mut bound: Vec<Bound> = Vec::new();
    // Their order means nothing, so it must not make a difference.
    let mut wanted: Vec<&ConnectionName> = wanted.iter().collect();
    wanted.sort();
    for name in wanted {
        if bound.iter().any(|earlier| earlier.connection == *name) {
            return Err(invalid(format!("the connection `{name}` is named twice")));
        }
        let sql = "SELECT names FROM connections WHERE tenant = $1 AND name = $2";
        let row = tx.one(sql, params![tenant.as_str(), name.as_str()]).await?.ok_or_else(|| unknown(tenant, name))?;
        let names: Names = serde_json::from_str(&row.text("names")?)?;
        let mut variables = Vec::new();
        for variable in names.variables {
            let Some(declared) = declared.variables.get(&variable) else { continue };
            if !(declared.ephemeral && declared.sensitive) {
                let message = format!(
                    "the connection `{name}` has a value for `{variable}`, which the template does not declare with \
                     `ephemeral = true` and `sensitive = true`"
                );
                return Err(invalid(message));
            }
            if !taken.insert(variable.clone()) {
                let message = format!("`{variable}` has a value from the connection `{name}` and from somewhere else");
                return Err(invalid(message));
            }
            variables.push(variable);
        }
        bound.push(Bound { connection: name.clone(), variables });
    }
    Ok(bound)
}

pub(crate) async fn keep_bound(
    tx: &mut Tx,
    tenant: &TenantName,
    deployment: DeploymentId,
    generation: i64,
    bound: &[Bound],
) -> Result<(), StoreError> {
    for bound in bound {
        tx.execute(
            "INSERT INTO generation_connections (deployment, generation, tenant, connection, variables)
             VALUES ($1, $2, $3, $4, $5)",
            params![
                deployment.to_string(),
                generation,
                tenant.as_str(),
                bound.connection.as_str(),
                serde_json::to_string(&bound.variables)?,
            ],
        )
        .await?;
    }
    Ok(())
}

pub(crate) async fn load_bound(
    tx: &mut Tx,
    deployment: DeploymentId,
    generation: i64,
) -> Result<Vec<Bound>, StoreError> {
    let sql = "SELECT connection, variables FROM generation_connections
         WHERE deployment = $1 AND generation = $2 ORDER BY connection";
    let rows = tx.all(sql, params![deployment.to_string(), generation]).await?;
    rows.iter().map(Bound::from_row).collect()
}

impl Bound {
    pub(crate) fn from_row(row: &Row) -> Result<Bound, StoreError> {
        Ok(Bound { connection: row.parsed("connection")?, variables: serde_json::from_str(&row.text("variables")?)? })
    }
}

/// The newest values of all connections of a generation, for one attempt at a run. They are asked for anew by each
/// attempt, so what was rotated between plan and approval is used.
pub(crate) async fn open_bound(
    tx: &mut Tx,
    sealer: &Sealer,
    tenant: &TenantName,
    bound: &[Bound],
) -> Result<ConnectionValues, StoreError> {
    let mut all = ConnectionValues::default();
    for bound in bound {
        let name = bound.connection.as_str();
        let sql = "SELECT version, sealed FROM connections WHERE tenant = $1 AND name = $2";
        let row = tx.one(sql, params![tenant.as_str(), name]).await?;
        let row = row.ok_or_else(|| StoreError::Corrupt(format!("the connection {tenant}/{name} is gone")))?;
        let opened = sealer.open_connection(name, row.int("version")?, &row.blob("sealed")?)?;
        let values: ConnectionValues = serde_json::from_slice(&opened)?;
        all.environment.extend(values.environment);
        all.variables.extend(values.variables.into_iter().filter(|(name, _)| bound.variables.contains(name)));
    }
    Ok(all)
}

fn connection(row: &Row) -> Result<Connection, StoreError> {
    let names: Names = serde_json::from_str(&row.text("names")?)?;
    Ok(Connection {
        name: row.parsed("name")?,
        version: row.int("version")?,
        variables: names.variables,
        environment: names.environment,
        created_at: row.int("created_at")?,
        updated_at: row.int("updated_at")?,
    })
}

fn unknown(tenant: &TenantName, name: &ConnectionName) -> StoreError {
    Problem::new(Code::ConnectionUnknown, format!("there is no connection `{name}` of tenant `{tenant}`")).into()
}
