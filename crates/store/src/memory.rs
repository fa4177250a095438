//! What runs of a template version have taken of a worker's memory.

use std::collections::BTreeMap;

use landform_domain::{EngineName, TemplateName};

use crate::claim::Lease;
use crate::db::{Tx, params};
use crate::error::StoreError;
use crate::open::Store;

/// What a scanned run `r` is thought to need: what its template version took before with an engine that it may get.
macro_rules! memory_needed {
    () => {
        "(SELECT MAX(m.bytes) FROM generations g
             JOIN template_memory m ON m.template = g.template AND m.version = g.template_version
             WHERE g.deployment = r.deployment AND g.generation = r.generation
                AND (g.engine = 'auto' OR m.engine = g.engine)) AS memory"
    };
}

pub(crate) use memory_needed;

/// Goes up at once and down slowly: what a template needed last week it may need again.
pub(crate) async fn remember(
    tx: &mut Tx,
    lease: &Lease,
    engine: Option<EngineName>,
    measured: Option<u64>,
) -> Result<(), StoreError> {
    let (Some(engine), Some(measured)) = (engine, measured) else { return Ok(()) };
    let bytes = i64::try_from(measured).unwrap_or(i64::MAX);
    tx.execute(
        "INSERT INTO template_memory (template, version, engine, bytes)
         SELECT g.template, g.template_version, $2, $3
         FROM runs r JOIN generations g ON g.deployment = r.deployment AND g.generation = r.generation WHERE r.id = $1
         ON CONFLICT (template, version, engine) DO UPDATE SET bytes = CASE
             WHEN excluded.bytes >= template_memory.bytes THEN excluded.bytes
             ELSE template_memory.bytes - (template_memory.bytes - excluded.bytes) / 8 END",
        params![lease.run.to_string(), engine.as_str(), bytes],
    )
    .await?;
    Ok(())
}

impl Store {
    /// The most memory that runs of a template version took, in bytes, by engine.
    pub async fn template_memory(
        &self,
        template: &TemplateName,
        version: i64,
    ) -> Result<BTreeMap<String, u64>, StoreError> {
        let sql = "SELECT engine, bytes FROM template_memory WHERE template = $1 AND version = $2";
        let rows = self.db().read_all(sql, params![template.as_str(), version]).await?;
        rows.iter().map(|row| Ok((row.text("engine")?, row.int("bytes")?.unsigned_abs()))).collect()
    }
}
