use clap::{Args, Subcommand};
use landform_api::{AuditEntry, AuditFilter, Token, TokenSpec};
use landform_domain::{Role, TenantName};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::{name_of, show};

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

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    match command {
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
        Command::Revoke { id } => client.token_revoke(&id).await?,
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
