use landform_domain::TemplateName;
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

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Template {
    pub name: TemplateName,
    /// The newest last.
    pub versions: Vec<TemplateVersion>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TemplateList {
    /// The newest version of each.
    pub templates: Vec<TemplateVersion>,
}
