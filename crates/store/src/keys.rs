//! The tenants' data keys, and what everything is sealed as.

use std::collections::HashMap;
use std::sync::Mutex;

use landform_base::seal::{Context, DataKey, MasterKey};
use landform_domain::{DeploymentId, TenantName};

use crate::db::{Db, Row, Tx, params};
use crate::error::StoreError;

/// What a sealed value is. Together with tenant and deployment it is the context without which it does not open.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Inputs,
    InputsHash,
    ObjectHash,
    State,
    Outputs,
    Plan,
    PlanJson,
    Intent,
    Settlement,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Inputs => "inputs",
            Kind::InputsHash => "inputs-hash",
            Kind::ObjectHash => "object-hash",
            Kind::State => "state",
            Kind::Outputs => "outputs",
            Kind::Plan => "plan",
            Kind::PlanJson => "plan-json",
            Kind::Intent => "intent",
            Kind::Settlement => "settlement",
        }
    }
}

const FIRST: u32 = 1;

const KEY: &str = "SELECT sealed FROM tenant_keys WHERE tenant = $1 AND number = $2";

#[derive(Debug)]
pub(crate) struct Keys {
    master: MasterKey,
    open: Mutex<HashMap<TenantName, TenantKey>>,
}

impl Keys {
    pub(crate) fn new(master: MasterKey) -> Keys {
        Keys { master, open: Mutex::default() }
    }

    /// Called in the transaction that makes the tenant.
    pub(crate) async fn create(&self, tx: &mut Tx, tenant: &TenantName) -> Result<(), StoreError> {
        let key = DataKey::generate(FIRST)?;
        let sealed = self.master.seal_key(&key, &key_context(tenant))?;
        tx.execute(
            "INSERT INTO tenant_keys (tenant, number, sealed) VALUES ($1, $2, $3)",
            params![tenant.as_str(), i64::from(FIRST), sealed],
        )
        .await?;
        Ok(())
    }

    /// A key that was asked for before.
    fn opened(&self, tenant: &TenantName) -> Option<TenantKey> {
        self.open.lock().expect("no panic while held").get(tenant).cloned()
    }

    /// `None` when there is no such tenant. Asked for before a transaction begins: inside of one, a second connection
    /// could be waited for by those who hold the first.
    pub(crate) async fn of(&self, db: &Db, tenant: &TenantName) -> Result<Option<TenantKey>, StoreError> {
        if let Some(key) = self.opened(tenant) {
            return Ok(Some(key));
        }
        let row = db.read_one(KEY, params![tenant.as_str(), i64::from(FIRST)]).await?;
        row.map(|row| self.open_row(tenant, &row)).transpose()
    }

    /// The key of a tenant that exists, inside of a transaction.
    pub(crate) async fn within(&self, tx: &mut Tx, tenant: &TenantName) -> Result<TenantKey, StoreError> {
        if let Some(key) = self.opened(tenant) {
            return Ok(key);
        }
        let row = tx.exactly_one(KEY, params![tenant.as_str(), i64::from(FIRST)]).await?;
        self.open_row(tenant, &row)
    }

    /// A tenant's key, sealed with another master key; `None` if it is that already.
    pub(crate) fn seal_anew(
        &self,
        new: &MasterKey,
        tenant: &TenantName,
        number: u32,
        sealed: &[u8],
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let context = key_context(tenant);
        match self.master.open_key(number, sealed, &context) {
            Ok(key) => Ok(Some(new.seal_key(&key, &context)?)),
            Err(error) => new.open_key(number, sealed, &context).map(|_| None).map_err(|_| error.into()),
        }
    }

    fn open_row(&self, tenant: &TenantName, row: &Row) -> Result<TenantKey, StoreError> {
        let key = self.master.open_key(FIRST, &row.blob("sealed")?, &key_context(tenant))?;
        let key = TenantKey { key, tenant: tenant.clone() };
        self.open.lock().expect("no panic while held").insert(tenant.clone(), key.clone());
        Ok(key)
    }
}

pub(crate) fn number(number: i64) -> Result<u32, StoreError> {
    u32::try_from(number).map_err(|_| StoreError::Corrupt(format!("a key with the number {number}")))
}

fn key_context(tenant: &TenantName) -> Context {
    Context::new(&["tenant-key", tenant.as_str()])
}

fn connection_context(tenant: &TenantName, name: &str, version: i64) -> Context {
    Context::new(&["connection", tenant.as_str(), name, &version.to_string()])
}

#[derive(Clone, Debug)]
pub(crate) struct TenantKey {
    key: DataKey,
    tenant: TenantName,
}

impl TenantKey {
    pub(crate) fn sealer(&self, deployment: DeploymentId) -> Sealer {
        Sealer { key: self.key.clone(), tenant: self.tenant.clone(), deployment }
    }

    /// A connection belongs to the tenant, not to one deployment.
    pub(crate) fn seal_connection(&self, name: &str, version: i64, plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(self.key.seal(&connection_context(&self.tenant, name, version), plain)?)
    }

    pub(crate) fn seal_webhook(&self, id: &str, secret: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(self.key.seal(&Context::new(&["webhook", self.tenant.as_str(), id]), secret)?)
    }

    pub(crate) fn open_webhook(&self, id: &str, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(self.key.open(&Context::new(&["webhook", self.tenant.as_str(), id]), sealed)?)
    }

    /// For telling two requests apart without keeping them.
    pub(crate) fn hash_body(&self, body: &[u8]) -> Vec<u8> {
        self.key.hash(&Context::new(&["request-body", self.tenant.as_str()]), body).to_vec()
    }
}

/// Seals and opens the values of one deployment.
#[derive(Clone, Debug)]
pub(crate) struct Sealer {
    key: DataKey,
    tenant: TenantName,
    deployment: DeploymentId,
}

impl Sealer {
    /// `which` tells values of one kind apart: a generation, a version, a run.
    pub(crate) fn seal(&self, kind: Kind, which: &str, plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(self.key.seal(&self.context(kind, which), plain)?)
    }

    pub(crate) fn open(&self, kind: Kind, which: &str, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(self.key.open(&self.context(kind, which), sealed)?)
    }

    pub(crate) fn open_connection(&self, name: &str, version: i64, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(self.key.open(&connection_context(&self.tenant, name, version), sealed)?)
    }

    pub(crate) fn hash(&self, value: &[u8]) -> Vec<u8> {
        self.key.hash(&self.context(Kind::InputsHash, ""), value).to_vec()
    }

    /// Tells whether an object is as it was, and nothing else about it.
    pub(crate) fn digest(&self, object: &[u8]) -> String {
        let hash = self.key.hash(&self.context(Kind::ObjectHash, ""), object);
        hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn context(&self, kind: Kind, which: &str) -> Context {
        Context::new(&[self.tenant.as_str(), &self.deployment.to_string(), kind.as_str(), which])
    }
}
