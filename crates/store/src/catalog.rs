//! Tenants and templates.

use landform_domain::declared::Declared;
use landform_domain::template::{Files, LOCK_FILE};
use landform_domain::{Actor, Code, DeploymentName, Problem, TemplateName, TenantName};
use serde_json::json;

use crate::audit::{Deed, write_down};
use crate::claim::waiting::look_for_slots_again;
use crate::db::{Row, Tx, params};
use crate::error::StoreError;
use crate::open::Store;
use crate::view::{Template, TemplateVersion, Tenant};

/// What can be set for a tenant. What is not given stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantSettings {
    /// Whoever asked for a change must not approve it.
    pub separate_approver: Option<bool>,
    /// Runs under way at the same time; 0 is no limit, also for the two below.
    pub slots: Option<u32>,
    pub most_deployments: Option<u32>,
    /// Runs that have not ended and that no worker has taken yet.
    pub most_waiting: Option<u32>,
}

/// A deployment that wants a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateUse {
    pub tenant: TenantName,
    pub deployment: DeploymentName,
    pub version: i64,
    /// The version that was applied last, if it was one of this template.
    pub applied_version: Option<i64>,
}

macro_rules! tenant_columns {
    () => {
        "name, separate_approver, slots, most_deployments, most_waiting, paused, created_at"
    };
}

const TENANT: &str = concat!("SELECT ", tenant_columns!(), " FROM tenants WHERE name = $1");

impl Store {
    /// Makes the tenant unless it exists; the flag says whether it is new.
    pub async fn put_tenant(
        &self,
        name: &TenantName,
        settings: TenantSettings,
        by: &Actor,
    ) -> Result<(Tenant, bool), StoreError> {
        let mut tx = self.db().begin().await?;
        let made = tx
            .execute(
                "INSERT INTO tenants (name, created_at) VALUES ($1, {now}) ON CONFLICT (name) DO NOTHING",
                params![name.as_str()],
            )
            .await?;
        if made == 1 {
            self.inner.keys.create(&mut tx, name).await?;
        }
        // A limit of 0 is none, which is kept as null; one that is not given is -1 here and stays as it is.
        let limit = |limit: Option<u32>| limit.map_or(-1, i64::from);
        let changed = tx
            .execute(
                "UPDATE tenants SET separate_approver = COALESCE($2, separate_approver),
                    slots = CASE WHEN $3 < 0 THEN slots ELSE NULLIF($3, 0) END,
                    most_deployments = CASE WHEN $4 < 0 THEN most_deployments ELSE NULLIF($4, 0) END,
                    most_waiting = CASE WHEN $5 < 0 THEN most_waiting ELSE NULLIF($5, 0) END
                 WHERE name = $1 AND (separate_approver <> $2 OR $3 >= 0 AND COALESCE(slots, 0) <> $3
                    OR $4 >= 0 AND COALESCE(most_deployments, 0) <> $4
                    OR $5 >= 0 AND COALESCE(most_waiting, 0) <> $5)",
                params![
                    name.as_str(),
                    settings.separate_approver,
                    limit(settings.slots),
                    limit(settings.most_deployments),
                    limit(settings.most_waiting),
                ],
            )
            .await?;
        if settings.slots.is_some() {
            look_for_slots_again(&mut tx, name).await?;
        }
        if made + changed > 0 {
            let detail = json!({
                "separate_approver": settings.separate_approver,
                "slots": settings.slots,
                "max_deployments": settings.most_deployments,
                "max_waiting_runs": settings.most_waiting,
            });
            let deed = Deed { action: "tenant.put", tenant: Some(name), target: name.to_string(), detail };
            write_down(&mut tx, by, deed).await?;
        }
        let row = tx.exactly_one(TENANT, params![name.as_str()]).await?;
        tx.commit().await?;
        self.inner.bell.ring();
        Ok((tenant(&row)?, made == 1))
    }

    pub async fn tenant(&self, name: &TenantName) -> Result<Tenant, StoreError> {
        let row = self.db().read_one(TENANT, params![name.as_str()]).await?;
        tenant(&row.ok_or_else(|| unknown_tenant(name))?)
    }

    pub async fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        let sql = concat!("SELECT ", tenant_columns!(), " FROM tenants ORDER BY name");
        let rows = self.db().read_all(sql, params![]).await?;
        rows.iter().map(tenant).collect()
    }

    /// Adds a version. Files that equal the newest version's are that version; the flag says whether one was added. A
    /// template without a lock file gets one, which stays with its version; `upgrade` chooses anew for the same files.
    pub async fn push_template(
        &self,
        name: &TemplateName,
        files: &Files,
        upgrade: bool,
        by: &Actor,
    ) -> Result<(TemplateVersion, bool), StoreError> {
        let pushed = files.digest();
        let (declared, files) = self.read_template(files).await?;
        let digest = files.digest();
        let mut tx = self.db().begin().await?;
        let newest = tx
            .one(
                "SELECT version, digest, pushed, created_at, deleted_at FROM templates WHERE name = $1
                 ORDER BY version DESC LIMIT 1",
                params![name.as_str()],
            )
            .await?;
        let number = match &newest {
            Some(row) => {
                let version = template_version(row)?;
                let pushed_then = row.text_or_null("pushed")?.unwrap_or_else(|| version.digest.clone());
                let same = version.digest == digest.as_str() || !upgrade && pushed_then == pushed.as_str();
                if same && row.int_or_null("deleted_at")?.is_none() {
                    tx.commit().await?;
                    return Ok((version, false));
                }
                version.version + 1
            }
            None => 1,
        };
        let row = tx
            .one(
                "INSERT INTO templates (name, version, digest, files, declared, pushed, created_at)
                 VALUES ($1, $2, $3, $4, $5, $6, {now})
                 ON CONFLICT (name, version) DO NOTHING RETURNING version, digest, created_at",
                params![
                    name.as_str(),
                    number,
                    digest.as_str(),
                    files.encode(),
                    serde_json::to_string(&declared)?,
                    pushed.as_str(),
                ],
            )
            .await?;
        let Some(row) = row else {
            return Err(Problem::new(Code::Overloaded, format!("somebody pushed `{name}` at the same moment")).into());
        };
        let version = template_version(&row)?;
        let detail = json!({"version": version.version, "digest": version.digest});
        let deed = Deed { action: "template.push", tenant: None, target: name.to_string(), detail };
        write_down(&mut tx, by, deed).await?;
        tx.commit().await?;
        Ok((version, true))
    }

    /// What it declares, and its files with a lock file. May take some 100 ms, so it has a thread of its own.
    async fn read_template(&self, files: &Files) -> Result<(Declared, Files), StoreError> {
        let (reader, files) = (self.inner.reader.clone(), files.clone());
        let read = move || -> Result<(Declared, Files), Problem> {
            let declared = reader.read(&files)?;
            let lock = if files.has(LOCK_FILE) { None } else { reader.lock(&files)? };
            let files = lock.map(|lock| files.with(LOCK_FILE, lock)).transpose()?.unwrap_or(files);
            Ok((declared, files))
        };
        let read = tokio::task::spawn_blocking(read).await;
        Ok(read.map_err(|_| StoreError::Corrupt("a template could not be read".into()))??)
    }

    /// What a version declares, and its files.
    pub async fn template_version(
        &self,
        name: &TemplateName,
        version: i64,
    ) -> Result<(TemplateVersion, Declared, Files), StoreError> {
        let sql = "SELECT version, digest, declared, files, created_at FROM templates
             WHERE name = $1 AND version = $2 AND deleted_at IS NULL";
        let row = self.db().read_one(sql, params![name.as_str(), version]).await?;
        let row = row.ok_or_else(|| unknown_template(name, Some(version)))?;
        let files = Files::decode(&row.blob("files")?).map_err(|problem| StoreError::Corrupt(problem.message))?;
        Ok((template_version(&row)?, declared(&row)?, files))
    }

    /// Which deployments want this template, and in which version: those of one tenant or of all.
    pub async fn template_uses(
        &self,
        name: &TemplateName,
        tenant: Option<&TenantName>,
    ) -> Result<Vec<TemplateUse>, StoreError> {
        self.template(name).await?;
        let rows = self
            .db()
            .read_all(
                "SELECT d.tenant, d.name, d.generation, d.applied_generation, g.template_version,
                    a.template AS applied_template, a.template_version AS applied_version
                 FROM deployments d
                 JOIN generations g ON g.deployment = d.id AND g.generation = d.generation
                 LEFT JOIN generations a ON a.deployment = d.id AND a.generation = d.applied_generation
                 WHERE g.template = $1 AND ($2 = '' OR d.tenant = $2)
                 ORDER BY g.template_version, d.tenant, d.name",
                params![name.as_str(), tenant.map(TenantName::as_str).unwrap_or_default()],
            )
            .await?;
        let template_use = |row: &Row| {
            let applied = row.text_or_null("applied_template")?.filter(|applied| applied == name.as_str());
            Ok(TemplateUse {
                tenant: row.parsed("tenant")?,
                deployment: row.parsed("name")?,
                version: row.int("template_version")?,
                applied_version: if applied.is_some() { row.int_or_null("applied_version")? } else { None },
            })
        };
        rows.iter().map(template_use).collect()
    }

    /// Deletes a version that nothing depends on. Its number is never given again.
    pub async fn delete_template_version(
        &self,
        name: &TemplateName,
        version: i64,
        by: &Actor,
    ) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        let sql = "SELECT version FROM templates WHERE name = $1 AND version = $2 AND deleted_at IS NULL {lock}";
        let which = || params![name.as_str(), version];
        tx.one(sql, which()).await?.ok_or_else(|| unknown_template(name, Some(version)))?;
        // What a deployment is to be, what its state was made with, and what a run that goes on is about.
        let dependent = tx
            .one(
                "SELECT d.tenant, d.name FROM generations g JOIN deployments d ON d.id = g.deployment
                 WHERE g.template = $1 AND g.template_version = $2 AND (
                     g.generation = d.generation OR g.generation = d.state_generation
                     OR g.generation = d.applied_generation
                     OR EXISTS (SELECT 1 FROM runs r WHERE r.deployment = d.id AND r.generation = g.generation
                         AND r.ended_at IS NULL))
                 ORDER BY d.tenant, d.name LIMIT 1",
                which(),
            )
            .await?;
        if let Some(row) = dependent {
            let message = format!(
                "`{name}@{version}` is in use, by `{}/{}` and perhaps others",
                row.text("tenant")?,
                row.text("name")?
            );
            return Err(Problem::new(Code::TemplateInUse, message).into());
        }
        tx.execute(
            "UPDATE templates SET deleted_at = {now}, files = $3, declared = NULL WHERE name = $1 AND version = $2",
            params![name.as_str(), version, Vec::<u8>::new()],
        )
        .await?;
        let detail = json!({"version": version});
        let deed = Deed { action: "template.delete", tenant: None, target: name.to_string(), detail };
        write_down(&mut tx, by, deed).await?;
        tx.commit().await
    }

    pub async fn template(&self, name: &TemplateName) -> Result<Template, StoreError> {
        let sql = "SELECT version, digest, created_at FROM templates
             WHERE name = $1 AND deleted_at IS NULL ORDER BY version";
        let rows = self.db().read_all(sql, params![name.as_str()]).await?;
        if rows.is_empty() {
            return Err(unknown_template(name, None));
        }
        let versions = rows.iter().map(template_version).collect::<Result<_, _>>()?;
        Ok(Template { name: name.clone(), versions })
    }

    pub async fn templates(&self) -> Result<Vec<Template>, StoreError> {
        let sql = "SELECT name, version, digest, created_at FROM templates
             WHERE deleted_at IS NULL ORDER BY name, version";
        let mut templates: Vec<Template> = Vec::new();
        for row in self.db().read_all(sql, params![]).await? {
            let (name, version) = (row.parsed("name")?, template_version(&row)?);
            match templates.last_mut().filter(|template| template.name == name) {
                Some(template) => template.versions.push(version),
                None => templates.push(Template { name, versions: vec![version] }),
            }
        }
        Ok(templates)
    }

    pub async fn template_files(&self, name: &TemplateName, version: i64) -> Result<Files, StoreError> {
        let sql = "SELECT files FROM templates
             WHERE name = $1 AND version = $2 AND deleted_at IS NULL";
        let row = self.db().read_one(sql, params![name.as_str(), version]).await?;
        let row = row.ok_or_else(|| unknown_template(name, Some(version)))?;
        Files::decode(&row.blob("files")?).map_err(|problem| StoreError::Corrupt(problem.message))
    }
}

/// The version that a write means (the named one, or the newest), and what it declares. Nobody can delete it meanwhile.
pub(crate) async fn resolve_template(
    tx: &mut Tx,
    name: &TemplateName,
    version: Option<i64>,
) -> Result<(i64, Declared), StoreError> {
    let row = match version {
        Some(version) => {
            let sql = "SELECT version, declared FROM templates
                 WHERE name = $1 AND version = $2 AND deleted_at IS NULL {lock_shared}";
            tx.one(sql, params![name.as_str(), version]).await?
        }
        None => {
            let sql = "SELECT version, declared FROM templates WHERE name = $1 AND deleted_at IS NULL
                 ORDER BY version DESC LIMIT 1 {lock_shared}";
            tx.one(sql, params![name.as_str()]).await?
        }
    };
    let row = row.ok_or_else(|| unknown_template(name, version))?;
    Ok((row.int("version")?, declared(&row)?))
}

/// A version that was pushed before this was kept may declare anything.
fn declared(row: &Row) -> Result<Declared, StoreError> {
    Ok(row.text_or_null("declared")?.map(|text| serde_json::from_str(&text)).transpose()?.unwrap_or_default())
}

pub(crate) fn unknown_tenant(name: &TenantName) -> StoreError {
    Problem::new(Code::TenantUnknown, format!("there is no tenant `{name}`")).into()
}

fn unknown_template(name: &TemplateName, version: Option<i64>) -> StoreError {
    let message = match version {
        Some(version) => format!("there is no version {version} of a template `{name}`"),
        None => format!("there is no template `{name}`"),
    };
    Problem::new(Code::TemplateUnknown, message).into()
}

fn tenant(row: &Row) -> Result<Tenant, StoreError> {
    Ok(Tenant {
        name: row.parsed("name")?,
        separate_approver: row.flag("separate_approver")?,
        slots: row.int_or_null("slots")?,
        most_deployments: row.int_or_null("most_deployments")?,
        most_waiting: row.int_or_null("most_waiting")?,
        paused: row.flag("paused")?,
        created_at: row.int("created_at")?,
    })
}

fn template_version(row: &Row) -> Result<TemplateVersion, StoreError> {
    Ok(TemplateVersion {
        version: row.int("version")?,
        digest: row.text("digest")?,
        created_at: row.int("created_at")?,
    })
}
