//! Tokens. A token is shown once; the store has its hash.

use landform_base::seal::fill_random;
use landform_base::secret::{SecretBytes, SecretString};
use landform_domain::{Actor, Code, Problem, Role, TenantName};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::audit::{Deed, write_down};
use crate::db::{Row, Tx, params};
use crate::error::StoreError;
use crate::open::Store;
use crate::tenants::{self, unknown_tenant};

/// A token as it may be shown: everything but itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    pub name: String,
    pub role: Role,
    pub tenant: Option<TenantName>,
    /// Who made it; nobody made the first.
    pub created_by: Option<String>,
    pub created_at: i64,
    pub expires_at: Option<i64>,
}

/// What a new token shall be.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub name: String,
    pub role: Role,
    pub tenant: Option<TenantName>,
    /// Milliseconds from now; without it the token lasts until it is withdrawn.
    pub lifetime: Option<i64>,
}

const ADMIN: &str = "admin";

/// Keeps the first admin token somewhere.
pub type KeepToken = Box<dyn Fn(&SecretString) -> std::io::Result<()> + Send + Sync>;

/// Makes the first admin token, if there was never one. Of several processes at the same moment one makes it.
pub(crate) async fn create_admin(store: &Store, keep: &KeepToken) -> Result<Option<SecretString>, StoreError> {
    let token = generate(ADMIN)?;
    let mut tx = store.db().begin().await?;
    let made = tx
        .execute(
            "INSERT INTO tokens (id, name, role, hash, created_at) VALUES ($1, $2, $3, $4, {now})
             ON CONFLICT (id) DO NOTHING",
            params![ADMIN, "the first admin", Role::Admin.as_str(), hash(&token)],
        )
        .await?;
    // Whoever keeps it has it before the store does: otherwise a kill in between would leave a token that nobody knows.
    if made == 1 {
        let context = "keeping the admin token".to_owned();
        keep(&token).map_err(|source| StoreError::Io { context, source })?;
    }
    tx.commit().await?;
    Ok((made == 1).then_some(token))
}

impl Store {
    /// Who a token belongs to. The row is found by the public part of the token and the rest is compared in constant
    /// time, so nothing can be learned from how long it takes.
    pub async fn authenticate(&self, token: &SecretString, origin: &str) -> Result<Option<Actor>, StoreError> {
        let mut parts = token.expose().splitn(3, '_');
        let (Some("lf"), Some(id), Some(_)) = (parts.next(), parts.next(), parts.next()) else { return Ok(None) };
        let row = self
            .db()
            .read_one(
                "SELECT id, name, role, tenant, hash FROM tokens
                 WHERE id = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > {now})",
                params![id],
            )
            .await?;
        let Some(row) = row else { return Ok(None) };
        if SecretBytes::from(row.blob("hash")?) != SecretBytes::from(hash(token)) {
            return Ok(None);
        }
        Ok(Some(Actor {
            id: row.text("id")?,
            name: row.text("name")?,
            role: row.parsed("role")?,
            tenant: row.text_or_null("tenant")?.map(|name| name.parse()).transpose()?,
            origin: origin.to_owned(),
        }))
    }

    /// Makes a token. Whoever is bound to a tenant makes tokens of that tenant only.
    pub async fn create_token(&self, new: NewToken, by: &Actor) -> Result<(Token, SecretString), StoreError> {
        let mut random = [0u8; 8];
        fill_random(&mut random)?;
        let id = hex(&random);
        let secret = generate(&id)?;
        let mut tx = self.db().begin().await?;
        if let Some(tenant) = &new.tenant {
            if !by.sees(tenant) {
                return Err(unknown_tenant(tenant));
            }
            tenants::hold(&mut tx, tenant).await?;
        } else if by.tenant.is_some() {
            let message = "a token that is bound to a tenant makes tokens of that tenant only";
            return Err(Problem::new(Code::Forbidden, message).into());
        }
        let row = tx
            .exactly_one(
                "INSERT INTO tokens (id, name, role, hash, tenant, created_by, expires_at, created_at)
                 VALUES ($1, $2, $3, $4, $5, $6, {now} + $7, {now})
                 RETURNING id, name, role, tenant, created_by, created_at, expires_at",
                params![
                    id.as_str(),
                    new.name,
                    new.role.as_str(),
                    hash(&secret),
                    new.tenant.as_ref().map(TenantName::as_str),
                    by.id.as_str(),
                    new.lifetime,
                ],
            )
            .await?;
        let token = token(&row)?;
        let detail = json!({"name": token.name, "role": token.role, "expires_at": token.expires_at});
        let deed = Deed { action: "token.create", tenant: token.tenant.as_ref(), target: id, detail };
        write_down(&mut tx, by, deed).await?;
        tx.commit().await?;
        Ok((token, secret))
    }

    /// The tokens that work, of one tenant or of all.
    pub async fn tokens(&self, tenant: Option<&TenantName>) -> Result<Vec<Token>, StoreError> {
        let rows = self
            .db()
            .read_all(
                "SELECT id, name, role, tenant, created_by, created_at, expires_at FROM tokens
                 WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > {now})
                    AND ($1 = '' OR tenant = $1) ORDER BY created_at, id",
                params![tenant.map(TenantName::as_str).unwrap_or_default()],
            )
            .await?;
        rows.iter().map(token).collect()
    }

    /// Withdraws a token at once. Its row stays: the audit log names it.
    pub async fn revoke_token(&self, id: &str, by: &Actor) -> Result<(), StoreError> {
        let mut tx = self.db().begin().await?;
        let row = tx
            .one(
                "SELECT id, name, role, tenant, created_by, created_at, expires_at FROM tokens
                 WHERE id = $1 AND revoked_at IS NULL {lock}",
                params![id],
            )
            .await?;
        let found = row.as_ref().map(token).transpose()?;
        let visible = |token: &Token| match &by.tenant {
            Some(own) => token.tenant.as_ref() == Some(own),
            None => true,
        };
        let token = found.filter(visible).ok_or_else(|| unknown_token(id))?;
        refuse_to_lock_everybody_out(&mut tx, &token).await?;
        tx.execute("UPDATE tokens SET revoked_at = {now} WHERE id = $1", params![id]).await?;
        let deed = Deed {
            action: "token.revoke",
            tenant: token.tenant.as_ref(),
            target: id.to_owned(),
            detail: json!({"name": token.name, "role": token.role}),
        };
        write_down(&mut tx, by, deed).await?;
        tx.commit().await
    }
}

/// Without an unbound admin nobody could ever make a token again.
async fn refuse_to_lock_everybody_out(tx: &mut Tx, token: &Token) -> Result<(), StoreError> {
    if token.role != Role::Admin || token.tenant.is_some() {
        return Ok(());
    }
    let row = tx
        .one(
            "SELECT id FROM tokens WHERE role = 'admin' AND tenant IS NULL AND revoked_at IS NULL
                AND expires_at IS NULL AND id <> $1 LIMIT 1",
            params![token.id.as_str()],
        )
        .await?;
    match row {
        Some(_) => Ok(()),
        None => {
            let message = "it is the last token of an admin of everything that does not expire";
            Err(Problem::new(Code::TokenLast, message).into())
        }
    }
}

fn unknown_token(id: &str) -> StoreError {
    let shown: String = id.chars().take(40).collect();
    Problem::new(Code::TokenUnknown, format!("there is no token {shown:?}")).into()
}

fn token(row: &Row) -> Result<Token, StoreError> {
    Ok(Token {
        id: row.text("id")?,
        name: row.text("name")?,
        role: row.parsed("role")?,
        tenant: row.text_or_null("tenant")?.map(|name| name.parse()).transpose()?,
        created_by: row.text_or_null("created_by")?,
        created_at: row.int("created_at")?,
        expires_at: row.int_or_null("expires_at")?,
    })
}

fn generate(id: &str) -> Result<SecretString, StoreError> {
    let mut random = [0u8; 32];
    fill_random(&mut random)?;
    Ok(SecretString::from(format!("lf_{id}_{}", hex(&random))))
}

fn hash(token: &SecretString) -> Vec<u8> {
    Sha256::digest(token.expose().as_bytes()).to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
