//! Tokens. A token is shown once; the store has its hash.

use landform_base::seal::fill_random;
use landform_base::secret::{SecretBytes, SecretString};
use sha2::{Digest, Sha256};

use crate::db::params;
use crate::error::StoreError;
use crate::open::Store;

/// Who acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// The token's id.
    pub id: String,
    pub name: String,
    pub role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Admin,
}

const ADMIN: &str = "admin";

/// Makes the first admin token, if there was never one. Of several processes at the same moment one makes it.
pub(crate) async fn create_admin(store: &Store) -> Result<Option<SecretString>, StoreError> {
    let mut random = [0u8; 32];
    fill_random(&mut random)?;
    let token = SecretString::from(format!("lf_{ADMIN}_{}", hex(&random)));
    let mut tx = store.db().begin().await?;
    let made = tx
        .execute(
            "INSERT INTO tokens (id, name, role, hash, created_at) VALUES ($1, $2, $3, $4, {now})
             ON CONFLICT (id) DO NOTHING",
            params![ADMIN, "the first admin", ADMIN, hash(&token)],
        )
        .await?;
    tx.commit().await?;
    Ok((made == 1).then_some(token))
}

impl Store {
    /// Who a token belongs to. The row is found by the public part of the token and the rest is compared in constant
    /// time, so nothing can be learned from how long it takes.
    pub async fn authenticate(&self, token: &SecretString) -> Result<Option<Principal>, StoreError> {
        let mut parts = token.expose().splitn(3, '_');
        let (Some("lf"), Some(id), Some(_)) = (parts.next(), parts.next(), parts.next()) else { return Ok(None) };
        let row = self.db().read_one("SELECT id, name, role, hash FROM tokens WHERE id = $1", params![id]).await?;
        let Some(row) = row else { return Ok(None) };
        if SecretBytes::from(row.blob("hash")?) != SecretBytes::from(hash(token)) {
            return Ok(None);
        }
        let role = match row.text("role")?.as_str() {
            ADMIN => Role::Admin,
            other => return Err(StoreError::Corrupt(format!("role {other}"))),
        };
        Ok(Some(Principal { id: row.text("id")?, name: row.text("name")?, role }))
    }
}

fn hash(token: &SecretString) -> Vec<u8> {
    Sha256::digest(token.expose().as_bytes()).to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
