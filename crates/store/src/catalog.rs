//! Templates.

use landform_domain::declared::Declared;
use landform_domain::template::{Files, LOCK_FILE};
use landform_domain::{Actor, Code, DeploymentName, Problem, TemplateName, TenantName};
use serde_json::json;

use crate::audit::{Deed, write_down};
use crate::db::{Row, Tx, params};
use crate::error::StoreError;
use crate::open::Store;
use crate::reader::Lock;
use crate::view::{Template, TemplateVersion};

/// What became of a push.
#[derive(Clone, Debug, PartialEq)]
pub struct Pushed {
    pub version: TemplateVersion,
    /// One was added.
    pub is_new: bool,
    /// Why the version is not locked to its providers, if it needs any.
    pub not_locked: Option<String>,
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

impl Store {
    /// Adds a version. Files that equal the newest version's are that version. A template without a lock file gets one, which
    /// stays with its version; `upgrade` chooses anew for the same files. A version that could not be locked is made again
    /// when it can.
    pub async fn push_template(
        &self,
        name: &TemplateName,
        files: &Files,
        upgrade: bool,
        by: &Actor,
    ) -> Result<Pushed, StoreError> {
        let pushed = files.digest();
        let (declared, files, open) = self.read_template(files).await?;
        let is_locked = |version: &TemplateVersion| version.digest != pushed.as_str();
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
                let keeps_its_lock = !upgrade && pushed_then == pushed.as_str() && is_locked(&version);
                let same = version.digest == digest.as_str() || keeps_its_lock;
                if same && row.int_or_null("deleted_at")?.is_none() {
                    tx.commit().await?;
                    let not_locked = open.filter(|_| !is_locked(&version));
                    return Ok(Pushed { version, is_new: false, not_locked });
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
        Ok(Pushed { version, is_new: true, not_locked: open })
    }

    /// What it declares, its files with a lock file, and why there is none if there should be. May take some 100 ms, so it has a thread of its own.
    async fn read_template(&self, files: &Files) -> Result<(Declared, Files, Option<String>), StoreError> {
        let (reader, files) = (self.inner.reader.clone(), files.clone());
        let read = move || -> Result<(Declared, Files, Option<String>), Problem> {
            let declared = reader.read(&files)?;
            let lock = if files.has(LOCK_FILE) { Lock::NotNeeded } else { reader.lock(&files)? };
            Ok(match lock {
                Lock::Chosen(lock) => (declared, files.with(LOCK_FILE, lock)?, None),
                Lock::NotNeeded => (declared, files, None),
                Lock::Open(why) => (declared, files, Some(why)),
            })
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

    /// Refuses a template that was never pushed; all versions of it may be deleted.
    pub async fn check_template(&self, name: &TemplateName) -> Result<(), StoreError> {
        let sql = "SELECT name FROM templates WHERE name = $1 LIMIT 1";
        let row = self.db().read_one(sql, params![name.as_str()]).await?;
        row.map(drop).ok_or_else(|| unknown_template(name, None))
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

fn unknown_template(name: &TemplateName, version: Option<i64>) -> StoreError {
    let message = match version {
        Some(version) => format!("there is no version {version} of a template `{name}`"),
        None => format!("there is no template `{name}`"),
    };
    Problem::new(Code::TemplateUnknown, message).into()
}

fn template_version(row: &Row) -> Result<TemplateVersion, StoreError> {
    Ok(TemplateVersion {
        version: row.int("version")?,
        digest: row.text("digest")?,
        created_at: row.int("created_at")?,
    })
}
