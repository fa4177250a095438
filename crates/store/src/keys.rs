//! The tenants' data keys, and what everything is sealed as.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use landform_base::seal::{Context, DataKey, MasterKey, SealError};
use landform_domain::{DeploymentId, TenantName};

use crate::db::{Db, Row, Tx, params};
use crate::error::StoreError;
use crate::finish::millis;
use crate::ring::{KeyLimits, Ring};

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
    Drift,
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
            Kind::Drift => "drift",
        }
    }
}

const FIRST: u32 = 1;

const RING: &str = "SELECT number, sealed, CAST(CASE WHEN usable_at <= {now} THEN 1 ELSE 0 END AS BIGINT) AS usable
    FROM tenant_keys WHERE tenant = $1";

/// The same for several tenants.
const RINGS: &str =
    "SELECT tenant, number, sealed, CAST(CASE WHEN usable_at <= {now} THEN 1 ELSE 0 END AS BIGINT) AS usable
    FROM tenant_keys WHERE tenant IN (SELECT e.value FROM {strings $1})";

#[derive(Debug)]
pub(crate) struct Keys {
    master: MasterKey,
    limits: KeyLimits,
    open: Mutex<HashMap<TenantName, TenantKey>>,
}

impl Keys {
    pub(crate) fn new(master: MasterKey, limits: KeyLimits) -> Keys {
        Keys { master, limits, open: Mutex::default() }
    }

    /// Called in the transaction that makes the tenant.
    pub(crate) async fn create(&self, tx: &mut Tx, tenant: &TenantName) -> Result<(), StoreError> {
        let key = DataKey::generate(FIRST)?;
        let sealed = self.master.seal_key(&key, &key_context(tenant, FIRST))?;
        tx.execute(
            "INSERT INTO tenant_keys (tenant, number, sealed) VALUES ($1, $2, $3)",
            params![tenant.as_str(), i64::from(FIRST), sealed],
        )
        .await?;
        Ok(())
    }

    /// Keys that were asked for a short while ago.
    fn opened(&self, tenant: &TenantName) -> Option<TenantKey> {
        let open = self.open.lock().expect("no panic while held");
        open.get(tenant).filter(|key| !key.ring.is_old(&self.limits)).cloned()
    }

    /// The same, however long ago: good for sealing while the database is away.
    pub(crate) fn remembered(&self, tenant: &TenantName) -> Option<TenantKey> {
        self.open.lock().expect("no panic while held").get(tenant).cloned()
    }

    /// `None` when there is no such tenant. Asked for before a transaction begins: inside of one, a second connection
    /// could be waited for by those who hold the first.
    pub(crate) async fn of(&self, db: &Db, tenant: &TenantName) -> Result<Option<TenantKey>, StoreError> {
        let key = match self.opened(tenant) {
            Some(key) => key,
            None => match db.read_all(RING, params![tenant.as_str()]).await? {
                rows if rows.is_empty() => return Ok(None),
                rows => self.open_rows(tenant, &rows)?,
            },
        };
        let Some(count) = key.ring.take_uncounted(&self.limits) else { return Ok(Some(key)) };
        match self.count(db, &key, count).await {
            Ok(key) => Ok(Some(key)),
            // There are billions of uses left before it matters.
            Err(error) => {
                tracing::warn!(%tenant, %error, "the uses of a data key are counted later");
                key.ring.give_back(count);
                Ok(Some(key))
            }
        }
    }

    /// The keys of a tenant that exists, inside of a transaction.
    pub(crate) async fn within(&self, tx: &mut Tx, tenant: &TenantName) -> Result<TenantKey, StoreError> {
        if let Some(key) = self.opened(tenant) {
            return Ok(key);
        }
        let rows = tx.all(RING, params![tenant.as_str()]).await?;
        self.open_rows(tenant, &rows)
    }

    /// Sees to it that [`Keys::within`] finds the keys of these tenants without asking for each.
    pub(crate) async fn open_all<'a>(
        &self,
        tx: &mut Tx,
        tenants: impl Iterator<Item = &'a TenantName>,
    ) -> Result<(), StoreError> {
        let unknown: BTreeSet<&str> =
            tenants.filter(|tenant| self.opened(tenant).is_none()).map(TenantName::as_str).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let mut rings: HashMap<TenantName, Vec<Row>> = HashMap::new();
        for row in tx.all(RINGS, params![serde_json::to_string(&unknown)?]).await? {
            rings.entry(row.parsed("tenant")?).or_default().push(row);
        }
        for (tenant, rows) in rings {
            self.open_rows(&tenant, &rows)?;
        }
        Ok(())
    }

    /// Writes down how often the current key was used. One that was used often enough gets a successor.
    async fn count(&self, db: &Db, used: &TenantKey, count: u64) -> Result<TenantKey, StoreError> {
        let (tenant, current) = (&used.tenant, i64::from(used.ring.current()));
        let mut tx = db.begin().await?;
        let sql = "UPDATE tenant_keys SET uses = uses + $3 WHERE tenant = $1 AND number = $2 RETURNING uses";
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let uses = tx.exactly_one(sql, params![tenant.as_str(), current, count]).await?.int("uses")?;
        if uses.unsigned_abs() >= self.limits.uses
            && let Some(next) = used.ring.successor()
        {
            let sealed = self.master.seal_key(&DataKey::generate(next)?, &key_context(tenant, next))?;
            let made = tx
                .execute(
                    "INSERT INTO tenant_keys (tenant, number, sealed, usable_at) VALUES ($1, $2, $3, {now} + $4)
                     ON CONFLICT (tenant, number) DO NOTHING",
                    params![tenant.as_str(), i64::from(next), sealed, millis(self.limits.ahead)],
                )
                .await?;
            if made == 1 {
                tracing::info!(%tenant, number = next, "a tenant gets a new data key");
            }
        }
        let rows = tx.all(RING, params![tenant.as_str()]).await?;
        tx.commit().await?;
        self.open_rows(tenant, &rows)
    }

    /// The key of what belongs to no tenant; made when it is first asked for.
    pub(crate) async fn installation(&self, db: &Db) -> Result<InstallationKey, StoreError> {
        const SQL: &str = "SELECT number, sealed FROM installation_keys ORDER BY number LIMIT 1";
        let row = match db.read_one(SQL, params![]).await? {
            Some(row) => row,
            None => {
                let sealed = self.master.seal_key(&DataKey::generate(FIRST)?, &installation_context())?;
                let mut tx = db.begin().await?;
                let sql = "INSERT INTO installation_keys (number, sealed) VALUES ($1, $2) ON CONFLICT DO NOTHING";
                tx.execute(sql, params![i64::from(FIRST), sealed]).await?;
                let row = tx.exactly_one(SQL, params![]).await?;
                tx.commit().await?;
                row
            }
        };
        let number = number(row.int("number")?)?;
        Ok(InstallationKey(self.master.open_key(number, &row.blob("sealed")?, &installation_context())?))
    }

    /// A data key, sealed with another master key; `None` if it is that already. Without a tenant it is the
    /// installation's.
    pub(crate) fn seal_anew(
        &self,
        new: &MasterKey,
        tenant: Option<&TenantName>,
        number: u32,
        sealed: &[u8],
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let context = tenant.map_or_else(installation_context, |tenant| key_context(tenant, number));
        match self.master.open_key(number, sealed, &context) {
            Ok(key) => Ok(Some(new.seal_key(&key, &context)?)),
            Err(error) => new.open_key(number, sealed, &context).map(|_| None).map_err(|_| error.into()),
        }
    }

    fn open_rows(&self, tenant: &TenantName, rows: &[Row]) -> Result<TenantKey, StoreError> {
        let mut keys = Vec::with_capacity(rows.len());
        for row in rows {
            let number = number(row.int("number")?)?;
            let key = self.master.open_key(number, &row.blob("sealed")?, &key_context(tenant, number))?;
            keys.push((key, row.flag("usable")?));
        }
        let mut open = self.open.lock().expect("no panic while held");
        let counter = open.get(tenant).map(|key| key.ring.counter()).unwrap_or_default();
        let ring = Ring::new(keys, counter);
        let ring = ring.ok_or_else(|| StoreError::Corrupt(format!("the tenant {tenant} has no data key")))?;
        let key = TenantKey { ring: Arc::new(ring), tenant: tenant.clone() };
        open.insert(tenant.clone(), key.clone());
        Ok(key)
    }
}

pub(crate) fn number(number: i64) -> Result<u32, StoreError> {
    u32::try_from(number).map_err(|_| StoreError::Corrupt(format!("a key with the number {number}")))
}

fn key_context(tenant: &TenantName, number: u32) -> Context {
    match number {
        FIRST => Context::new(&["tenant-key", tenant.as_str()]),
        later => Context::new(&["tenant-key", tenant.as_str(), &later.to_string()]),
    }
}

/// Whether this master key has sealed a tenant's first key.
pub(crate) fn opens(master_key: &MasterKey, tenant: &TenantName, sealed: &[u8]) -> Result<(), SealError> {
    master_key.open_key(FIRST, sealed, &key_context(tenant, FIRST)).map(drop)
}

fn installation_context() -> Context {
    Context::new(&["installation-key"])
}

/// Seals what belongs to no tenant.
pub(crate) struct InstallationKey(DataKey);

impl InstallationKey {
    pub(crate) fn seal_webhook(&self, id: &str, secret: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(self.0.seal(&Context::new(&["fleet-webhook", id]), secret)?)
    }

    pub(crate) fn open_webhook(&self, id: &str, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(self.0.open(&Context::new(&["fleet-webhook", id]), sealed)?)
    }
}

fn connection_context(tenant: &TenantName, name: &str, version: i64) -> Context {
    Context::new(&["connection", tenant.as_str(), name, &version.to_string()])
}

#[derive(Clone, Debug)]
pub(crate) struct TenantKey {
    ring: Arc<Ring>,
    tenant: TenantName,
}

impl TenantKey {
    pub(crate) fn sealer(&self, deployment: DeploymentId) -> Sealer {
        Sealer { ring: self.ring.clone(), tenant: self.tenant.clone(), deployment }
    }

    /// A connection belongs to the tenant, not to one deployment.
    pub(crate) fn seal_connection(&self, name: &str, version: i64, plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.ring.seal(&connection_context(&self.tenant, name, version), plain)
    }

    pub(crate) fn seal_webhook(&self, id: &str, secret: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.ring.seal(&Context::new(&["webhook", self.tenant.as_str(), id]), secret)
    }

    pub(crate) fn open_webhook(&self, id: &str, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.ring.open(&Context::new(&["webhook", self.tenant.as_str(), id]), sealed)
    }

    /// For telling two requests apart without keeping them.
    pub(crate) fn hash_body(&self, body: &[u8]) -> Vec<u8> {
        self.ring.hash(&Context::new(&["request-body", self.tenant.as_str()]), body).to_vec()
    }
}

/// Seals and opens the values of one deployment.
#[derive(Clone, Debug)]
pub(crate) struct Sealer {
    ring: Arc<Ring>,
    tenant: TenantName,
    deployment: DeploymentId,
}

impl Sealer {
    /// `which` tells values of one kind apart: a generation, a version, a run.
    pub(crate) fn seal(&self, kind: Kind, which: &str, plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.ring.seal(&self.context(kind, which), plain)
    }

    pub(crate) fn open(&self, kind: Kind, which: &str, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.ring.open(&self.context(kind, which), sealed)
    }

    pub(crate) fn open_connection(&self, name: &str, version: i64, sealed: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.ring.open(&connection_context(&self.tenant, name, version), sealed)
    }

    pub(crate) fn hash(&self, value: &[u8]) -> Vec<u8> {
        self.ring.hash(&self.context(Kind::InputsHash, ""), value).to_vec()
    }

    /// Tells whether an object is as it was, and nothing else about it.
    pub(crate) fn digest(&self, object: &[u8]) -> String {
        let hash = self.ring.hash(&self.context(Kind::ObjectHash, ""), object);
        hash[..16].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn context(&self, kind: Kind, which: &str) -> Context {
        Context::new(&[self.tenant.as_str(), &self.deployment.to_string(), kind.as_str(), which])
    }
}
