use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use landform_base::seal::MasterKey;
use landform_base::secret::SecretString;
use landform_domain::run::{Outcome, PlanSummary, Status};
use landform_domain::template::Files;
use landform_domain::{Actor, EngineChoice, Input, Inputs, RunId};
use landform_store::{
    Accepted, Claim, DeploymentWrite, Finish, Lease, Location, Opened, Options, Planned, Retention, Store, StoreError,
    TenantSettings, WorkerId,
};
use serde_json::Value;

/// Where a case has its store. It can be opened again, as after a restart.
pub struct Place {
    pub location: Location,
    pub master_key: MasterKey,
    pub lease: Duration,
    pub approval: Duration,
    pub retention: Retention,
}

impl Place {
    pub fn sqlite(folder: &Path) -> Place {
        Place::at(Location::Sqlite(PathBuf::from(folder).join("data")))
    }

    pub fn postgres(url: String) -> Place {
        Place::at(Location::Postgres(SecretString::from(url)))
    }

    fn at(location: Location) -> Place {
        let master_key = MasterKey::generate().expect("randomness");
        let ten_minutes = Duration::from_secs(600);
        Place { location, master_key, lease: ten_minutes, approval: ten_minutes, retention: Retention::default() }
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.location, Location::Postgres(_))
    }

    pub async fn try_open(&self) -> Result<Opened, StoreError> {
        let mut options = Options::new(self.location.clone(), self.master_key.clone());
        options.lease = self.lease;
        options.approval = self.approval;
        options.retention = self.retention;
        Store::open(options).await
    }

    pub async fn open(&self) -> Store {
        self.try_open().await.expect("the store opens").store
    }

    /// Leaves the tables behind, and nothing in them.
    pub async fn prepare(&self) {
        let store = self.open().await;
        store.close().await;
        let Location::Postgres(url) = &self.location else { return };
        landform_testkit::postgres::run(url.expose(), "DELETE FROM tokens").await.expect("emptied");
    }

    /// A store with the tenants `acme` and `other` and a template `net`.
    pub async fn furnished(&self) -> Store {
        let store = self.open().await;
        for tenant in ["acme", "other"] {
            store
                .put_tenant(&tenant.parse().expect("a name"), TenantSettings::default(), &eve())
                .await
                .expect("a tenant");
        }
        push(&store, "one").await;
        store
    }
}

pub async fn push(store: &Store, content: &str) -> i64 {
    let files = Files::new([("main.tf".to_string(), content.as_bytes().to_vec())]).expect("files");
    store.push_template(&"net".parse().expect("a name"), &files, false, &eve()).await.expect("pushed").version.version
}

pub fn write(tenant: &str, name: &str, inputs: &[(&str, Value)]) -> DeploymentWrite {
    let input = |(name, value): &(&str, Value)| {
        (name.to_string(), Input { value: value.clone(), sensitive: name.starts_with("secret") })
    };
    DeploymentWrite {
        tenant: tenant.parse().expect("a name"),
        name: name.parse().expect("a name"),
        template: "net".parse().expect("a name"),
        template_version: None,
        inputs: Inputs::new(inputs.iter().map(input).collect()).expect("inputs"),
        engine: EngineChoice::Auto,
        requires_approval: None,
        time_limit: None,
        connections: Vec::new(),
        if_generation: None,
    }
}

pub async fn put(store: &Store, tenant: &str, name: &str, inputs: &[(&str, Value)]) -> Accepted {
    store.put_deployment(write(tenant, name, inputs), None, &eve()).await.expect("accepted")
}

pub async fn delete(store: &Store, tenant: &str, name: &str) -> Accepted {
    let (tenant, name) = (tenant.parse().expect("a name"), name.parse().expect("a name"));
    store.delete_deployment(&tenant, &name, None, None, &eve()).await.expect("accepted")
}

/// Somebody who may do everything.
pub fn eve() -> Actor {
    Actor::local("eve")
}

pub fn worker(name: &str) -> WorkerId {
    WorkerId::new(name)
}

pub async fn claim(store: &Store) -> Claim {
    store.claim(&worker("w")).await.expect("claims").expect("a run is due")
}

pub async fn nothing_due(store: &Store) {
    let claimed = store.claim(&worker("w")).await.expect("claims");
    assert!(claimed.is_none(), "run {} is due", claimed.unwrap().lease.run);
}

pub fn plan() -> Planned {
    Planned {
        reports: Vec::new(),
        engines: Vec::new(),
        summary: PlanSummary { creates: 1, ..Default::default() },
        effective: true,
        plan: b"the plan".to_vec(),
        json: Some(b"{\"resource_changes\": []}".to_vec()),
        outputs: None,
        memory: None,
    }
}

pub async fn begin_apply(store: &Store) -> Claim {
    let claimed = claim(store).await;
    store.planned(&claimed.lease, plan()).await.expect("planned");
    claimed
}

pub fn done(state: &str) -> Finish {
    let output = serde_json::json!({"value": state, "type": "string", "sensitive": false});
    Finish {
        engines: Vec::new(),
        reports: Vec::new(),
        outcome: Outcome::Succeeded,
        state: Some(state.as_bytes().to_vec()),
        outputs: Some(BTreeMap::from([("state".to_string(), output)])),
        adopted: Vec::new(),
        memory: None,
    }
}

pub fn ended(outcome: Outcome, state: Option<&str>) -> Finish {
    let state = state.map(|state| state.as_bytes().to_vec());
    Finish {
        engines: Vec::new(),
        reports: Vec::new(),
        outcome,
        state,
        outputs: None,
        adopted: Vec::new(),
        memory: None,
    }
}

pub async fn finish(store: &Store, lease: &Lease, finish: Finish) -> Status {
    store.finish(lease, finish).await.expect("finished")
}

/// Carries the next run out with success.
pub async fn carry_out(store: &Store, state: &str) -> Claim {
    let claimed = begin_apply(store).await;
    finish(store, &claimed.lease, done(state)).await;
    claimed
}

pub async fn status(store: &Store, run: RunId) -> Status {
    store.run(run).await.expect("the run").status
}

pub fn code<T>(result: Result<T, StoreError>) -> landform_domain::Code {
    match result {
        Err(StoreError::Refused(problem)) => problem.code,
        Err(other) => panic!("not refused, but: {other}"),
        Ok(_) => panic!("not refused"),
    }
}
