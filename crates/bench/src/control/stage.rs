//! Where the rows are measured: a store of either kind, filled through the real path as far as that is quick enough.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use clap::ValueEnum;
use landform_base::seal::MasterKey;
use landform_base::secret::SecretString;
use landform_domain::template::Files;
use landform_domain::{Actor, EngineChoice, Inputs};
use landform_store::{DeploymentWrite, Location, Store, TenantSettings};
use landform_testkit::landform::Setup;
use landform_testkit::{parts, postgres};
use tempfile::TempDir;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Sqlite => "SQLite",
            Kind::Postgres => "PostgreSQL",
        }
    }
}

/// A template that needs no provider process: what is measured is the control plane.
pub const TEMPLATE: &str = "
variable \"event\" {
  type    = string
  default = \"\"
}

resource \"terraform_data\" \"this\" {
  input = var.event
}

output \"event\" {
  value = terraform_data.this.output
}
";

pub const TEMPLATE_NAME: &str = "bench";

/// A store's home. It goes when dropped.
pub struct Place {
    pub folder: TempDir,
    database: Option<(postgres::Server, String)>,
}

impl Place {
    pub async fn make(kind: Kind) -> Result<Place> {
        let folder = tempfile::Builder::new().prefix("landform-bench-").tempdir()?;
        let database = match kind {
            Kind::Sqlite => None,
            Kind::Postgres => {
                let server = postgres::Server::start_durable()?;
                let url = server.database("bench").await?;
                Some((server, url))
            }
        };
        Ok(Place { folder, database })
    }

    /// How `landform serve` is started here.
    pub fn setup(&self, workers: usize, more: &[&str]) -> Result<Setup> {
        let beside = std::env::current_exe()?.parent().map(Path::to_owned).context("a folder")?;
        Ok(Setup {
            binary: beside.join("landform"),
            data: self.data(),
            database: self.url().map(str::to_owned),
            providers: parts::mirror(),
            tofu: None,
            workers,
            more: more.iter().map(|argument| (*argument).to_owned()).collect(),
        })
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub fn url(&self) -> Option<&str> {
        self.database.as_ref().map(|(_, url)| url.as_str())
    }

    /// Opens the store as `landform serve` would, with the same key, and leaves the admin token where that has it.
    pub async fn open(&self) -> Result<Store> {
        let location = match self.url() {
            Some(url) => Location::Postgres(SecretString::from(url)),
            None => Location::Sqlite(self.data()),
        };
        let key = MasterKey::load_or_create(&self.data().join("master.key"))?;
        let opened = Store::open(landform_store::Options::new(location, key)).await?;
        if let Some(token) = opened.admin_token {
            std::fs::write(self.data().join("admin.token"), token.expose())?;
        }
        Ok(opened.store)
    }

    /// Statements that hold on both databases; for rows that would take too long one by one.
    pub async fn run_sql(&self, sql: &'static str) -> Result<()> {
        use sqlx::Connection;
        match self.url() {
            Some(url) => postgres::run(url, sql).await,
            None => {
                let file = format!("sqlite:{}", self.data().join("landform.db").display());
                let mut connection = sqlx::SqliteConnection::connect(&file).await?;
                sqlx::raw_sql(sql).execute(&mut connection).await?;
                Ok(connection.close().await?)
            }
        }
    }
}

pub fn bench_actor() -> Actor {
    Actor::local("bench")
}

pub fn tenant_name(number: usize) -> String {
    format!("t{number}")
}

const WRITERS: usize = 48;

/// Tenants with so many deployments each, all of them with a queued run, by the store's own path.
pub async fn furnish(store: &Store, tenants: usize, deployments_each: usize) -> Result<()> {
    let files = Files::new([("main.tf".to_owned(), TEMPLATE.as_bytes().to_vec())])?;
    store.push_template(&TEMPLATE_NAME.parse()?, &files, false, &bench_actor()).await?;
    let next = Arc::new(AtomicUsize::new(0));
    let mut writers = tokio::task::JoinSet::new();
    for _ in 0..WRITERS {
        let (store, next) = (store.clone(), next.clone());
        writers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= tenants {
                    return anyhow::Ok(());
                }
                let tenant = tenant_name(number).parse()?;
                store.put_tenant(&tenant, TenantSettings::default(), &bench_actor()).await?;
                for deployment in 0..deployments_each {
                    let write = DeploymentWrite {
                        tenant: tenant.clone(),
                        name: format!("d{deployment}").parse()?,
                        template: TEMPLATE_NAME.parse()?,
                        template_version: None,
                        inputs: Inputs::new(Default::default())?,
                        connections: Vec::new(),
                        engine: EngineChoice::Native,
                        requires_approval: None,
                        time_limit: None,
                        if_generation: None,
                    };
                    store.put_deployment(write, None, &bench_actor()).await?;
                }
            }
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    Ok(())
}
