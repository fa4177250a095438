//! Tenants and templates.

use landform_domain::template::Files;
use landform_domain::{Actor, Code, Problem, TemplateName, TenantName};
use serde_json::json;

use crate::audit::{Deed, write_down};
use crate::db::{Row, Tx, params};
use crate::error::StoreError;
use crate::open::Store;
use crate::view::{Template, TemplateVersion, Tenant};

/// What can be set for a tenant. What is not given stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantSettings {
    /// Whoever asked for a change must not approve it.
    pub separate_approver: Option<bool>,
}

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
        let changed = tx
            .execute(
                "UPDATE tenants SET separate_approver = $2 WHERE name = $1 AND separate_approver <> $2",
                params![name.as_str(), settings.separate_approver],
            )
            .await?;
        if made + changed > 0 {
            let detail = json!({"separate_approver": settings.separate_approver});
            let deed = Deed { action: "tenant.put", tenant: Some(name), target: name.to_string(), detail };
            write_down(&mut tx, by, deed).await?;
        }
        let sql = "SELECT name, separate_approver, created_at FROM tenants WHERE name = $1";
        let row = tx.exactly_one(sql, params![name.as_str()]).await?;
        tx.commit().await?;
        Ok((tenant(&row)?, made == 1))
    }

    pub async fn tenant(&self, name: &TenantName) -> Result<Tenant, StoreError> {
        let sql = "SELECT name, separate_approver, created_at FROM tenants WHERE name = $1";
        let row = self.db().read_one(sql, params![name.as_str()]).await?;
        tenant(&row.ok_or_else(|| unknown_tenant(name))?)
    }

    pub async fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        let rows = self
            .db()
            .read_all("SELECT name, separate_approver, created_at FROM tenants ORDER BY name", params![])
            .await?;
        rows.iter().map(tenant).collect()
    }

    /// Adds a version. Files that equal the newest version's are that version; the flag says whether one was added.
    pub async fn push_template(
        &self,
        name: &TemplateName,
        files: &Files,
        by: &Actor,
    ) -> Result<(TemplateVersion, bool), StoreError> {
        let digest = files.digest();
        let mut tx = self.db().begin().await?;
        let newest = tx
            .one(
                "SELECT version, digest, created_at FROM templates WHERE name = $1 ORDER BY version DESC LIMIT 1",
                params![name.as_str()],
            )
            .await?;
        let newest = newest.as_ref().map(template_version).transpose()?;
        if let Some(version) = newest.as_ref().filter(|version| version.digest == digest.as_str()) {
            return Ok((version.clone(), false));
        }
        let number = newest.map_or(1, |version| version.version + 1);
        let row = tx
            .one(
                "INSERT INTO templates (name, version, digest, files, created_at) VALUES ($1, $2, $3, $4, {now})
                 ON CONFLICT (name, version) DO NOTHING RETURNING version, digest, created_at",
                params![name.as_str(), number, digest.as_str(), files.encode()],
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

    pub async fn template(&self, name: &TemplateName) -> Result<Template, StoreError> {
        let sql = "SELECT version, digest, created_at FROM templates WHERE name = $1 ORDER BY version";
        let rows = self.db().read_all(sql, params![name.as_str()]).await?;
        if rows.is_empty() {
            return Err(unknown_template(name, None));
        }
        let versions = rows.iter().map(template_version).collect::<Result<_, _>>()?;
        Ok(Template { name: name.clone(), versions })
    }

    pub async fn templates(&self) -> Result<Vec<Template>, StoreError> {
        let sql = "SELECT name, version, digest, created_at FROM templates ORDER BY name, version";
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
        let sql = "SELECT files FROM templates WHERE name = $1 AND version = $2";
        let row = self.db().read_one(sql, params![name.as_str(), version]).await?;
        let row = row.ok_or_else(|| unknown_template(name, Some(version)))?;
        Files::decode(&row.blob("files")?).map_err(|problem| StoreError::Corrupt(problem.message))
    }
}

/// The version that a write means: the named one, or the newest.
pub(crate) async fn resolve_template(
    tx: &mut Tx,
    name: &TemplateName,
    version: Option<i64>,
) -> Result<i64, StoreError> {
    let row = match version {
        Some(version) => {
            let sql = "SELECT version FROM templates WHERE name = $1 AND version = $2";
            tx.one(sql, params![name.as_str(), version]).await?
        }
        None => {
            let sql = "SELECT version FROM templates WHERE name = $1 ORDER BY version DESC LIMIT 1";
            tx.one(sql, params![name.as_str()]).await?
        }
    };
    row.ok_or_else(|| unknown_template(name, version))?.int("version")
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
