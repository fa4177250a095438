use landform_domain::{DeploymentName, TemplateName, TenantName};
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// One version of a template. Pushing the same files again gives the same version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TemplateVersion {
    pub name: TemplateName,
    pub version: i64,
    /// SHA-256 over paths and contents.
    pub digest: String,
    pub created_at: Timestamp,
}

/// What became of a push.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TemplatePushed {
    #[serde(flatten)]
    pub version: TemplateVersion,
    /// Why the version is not locked to its providers, if it needs any. The same push once more locks it when that is mended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_locked: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Template {
    pub name: TemplateName,
    /// The newest last.
    pub versions: Vec<TemplateVersion>,
}

/// One version with what it declares.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TemplateDetail {
    pub name: TemplateName,
    pub version: i64,
    pub digest: String,
    pub created_at: Timestamp,
    /// The inputs as a JSON Schema (2020-12). What Terraform converts besides is taken, too.
    pub schema: serde_json::Value,
    pub files: Vec<TemplateFile>,
    /// What the native engine does not do exactly as OpenTofu, with file and line; `auto` then takes the CLI.
    pub outside_native: Vec<String>,
    /// The most memory that the processes of its runs took, in bytes, by engine: the next run is begun when so much is free.
    #[serde(default)]
    pub memory: std::collections::BTreeMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TemplateFile {
    pub path: String,
    pub size: u64,
}

/// Who is on which version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TemplateUseList {
    pub deployments: Vec<TemplateUse>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TemplateUse {
    pub tenant: TenantName,
    pub deployment: DeploymentName,
    /// The version that the deployment wants.
    pub version: i64,
    /// The version that was applied last, if it was one of this template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_version: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TemplateList {
    /// The newest version of each.
    pub templates: Vec<TemplateVersion>,
}
