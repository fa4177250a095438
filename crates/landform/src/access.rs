use clap::{Args, Subcommand};
use landform_api::{AuditEntry, AuditFilter, Token, TokenSpec};
use landform_base::file;
use landform_domain::{Actor, Role, TenantName};
use landform_store::NewToken;

use crate::connection::{Connection, token_file};
use crate::failure::Failure;
use crate::{house, name_of, show};

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make a token; its secret is shown this once
    Create {
        /// What people call it
        name: String,
        /// `admin`, `operator`, `approver` or `reader`
        #[arg(long, value_parser = name_of::<Role>)]
        role: Role,
        /// Bind it to one tenant: nothing of any other exists for it
        #[arg(long, value_parser = name_of::<TenantName>)]
        tenant: Option<TenantName>,
        /// Seconds after which it works no more
        #[arg(long, value_name = "SECONDS")]
        lifetime: Option<u64>,
    },
    /// Make a new admin token when all are lost: in the data folder itself, with the server stopped if it is on SQLite
    Admin {
        /// A PostgreSQL URL [default: SQLite in the data folder]
        #[arg(long, env = "LANDFORM_DATABASE", hide_env_values = true, value_name = "URL")]
        database: Option<String>,
    },
    /// List the tokens that work
    List,
    /// Withdraw a token
    Revoke {
        /// Its id, as `landform token list` shows it
        id: String,
    },
}

#[derive(Args, Debug)]
pub struct Audit {
    #[arg(long, value_parser = name_of::<TenantName>)]
    tenant: Option<TenantName>,
    /// The id of a token
    #[arg(long)]
    actor: Option<String>,
    /// An action such as `run.approve`, or all of a noun: `run.`
    #[arg(long)]
    action: Option<String>,
    /// Only entries before this number
    #[arg(long, value_name = "SEQ")]
    before: Option<i64>,
    #[arg(long)]
    limit: Option<u32>,
}

/// Whoever can read the master key may do everything anyway.
async fn new_admin(database: Option<&str>, connection: &Connection, json: bool) -> Result<(), Failure> {
    let data = connection.data_folder()?;
    let options = landform_store::Options::new(house::location(database, &data)?, house::master_key(&data)?);
    let opened = landform_store::Store::open(options).await.map_err(house::not_opened)?;
    let new =
        NewToken { name: "an admin from the data folder".into(), role: Role::Admin, tenant: None, lifetime: None };
    let by = Actor::local("the data folder");
    let (token, secret) = opened.store.create_token(new, &by).await.map_err(|e| house::broken(e.to_string()))?;
    opened.store.close().await;
    let path = token_file(&data);
    let kept = file::write_private(&path, format!("{}\n", secret.expose()).as_bytes());
    kept.map_err(|e| house::broken(format!("{}: {e}", path.display())))?;
    if json {
        show::json(&serde_json::json!({"id": token.id, "file": path}));
    } else {
        println!("token {} is in {}", token.id, path.display());
    }
    Ok(())
}

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    if let Command::Admin { database } = &command {
        return new_admin(database.as_deref(), connection, json).await;
    }
    let client = connection.client()?;
    match command {
        Command::Admin { .. } => unreachable!("it needs no server"),
        Command::Create { name, role, tenant, lifetime } => {
            let made = client.token_create(&TokenSpec { name, role, tenant, lifetime }).await?;
            if json {
                show::json(&made);
            } else {
                println!("{}", made.secret);
                eprintln!("token {} ({}): it is not shown again", made.token.id, made.token.role);
            }
        }
        Command::List => {
            let tokens = client.tokens().await?;
            if json {
                show::json(&tokens);
                return Ok(());
            }
            let row = |t: &Token| {
                vec![
                    t.id.clone(),
                    t.name.clone(),
                    t.role.to_string(),
                    t.tenant.as_ref().map_or("-".to_owned(), ToString::to_string),
                    t.expires_at.map_or("-".to_owned(), |at| at.to_string()),
                ]
            };
            show::table(&["TOKEN", "NAME", "ROLE", "TENANT", "EXPIRES"], tokens.iter().map(row).collect());
        }
        Command::Revoke { id } => {
            client.token_revoke(&id).await?;
            show::done(&format!("token {id} works no longer"), json);
        }
    }
    Ok(())
}

pub async fn audit(args: Audit, connection: &Connection, json: bool) -> Result<(), Failure> {
    let Audit { tenant, actor, action, before, limit } = args;
    let entries = connection.client()?.audit(&AuditFilter { tenant, actor, action, before, limit }).await?;
    if json {
        show::json(&entries);
        return Ok(());
    }
    let row = |e: &AuditEntry| {
        let target = match &e.tenant {
            Some(tenant) if tenant.as_str() != e.target => format!("{tenant}/{}", e.target),
            _ => e.target.clone(),
        };
        vec![e.seq.to_string(), e.at.to_string(), e.actor_name.clone(), e.origin.clone(), e.action.clone(), target]
    };
    show::table(&["SEQ", "AT", "WHO", "FROM", "ACTION", "TARGET"], entries.iter().map(row).collect());
    Ok(())
}
