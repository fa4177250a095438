//! What can be done with a deployment besides writing it.

use clap::Args;
use landform_api::{Location, RunRequest, Scope};
use landform_domain::{RunId, TenantName};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::{name_of, show, watch};

#[derive(Args, Debug)]
pub struct Again {
    /// The deployment
    #[arg(value_name = "TENANT/NAME")]
    location: Location,
    /// Make the plan and change nothing
    #[arg(long)]
    plan_only: bool,
    /// Replace this object although nothing about it has changed
    #[arg(long, value_name = "ADDRESS")]
    replace: Vec<String>,
    /// The object exists already and has this id: take it over
    #[arg(long, value_name = "ADDRESS=ID", value_parser = crate::run::adoption)]
    adopt: Vec<(String, String)>,
    /// What was to be taken over at this address is not there, or not wanted: take that wish back
    #[arg(long, value_name = "ADDRESS")]
    absent: Vec<String>,
    /// Wait until the run has ended
    #[arg(long)]
    wait: bool,
}

#[derive(Args, Debug)]
pub struct Rollback {
    /// The deployment
    #[arg(value_name = "TENANT/NAME")]
    location: Location,
    /// The run whose template and inputs are wanted again
    #[arg(long, value_name = "RUN", value_parser = name_of::<RunId>)]
    to: RunId,
    /// Wait until the run has ended
    #[arg(long)]
    wait: bool,
}

#[derive(Args, Debug)]
pub struct Forget {
    /// The deployment
    #[arg(value_name = "TENANT/NAME")]
    location: Location,
    /// Nothing is destroyed, and nobody knows afterwards what there is: say that you mean it
    #[arg(long, required = true)]
    keep_everything: bool,
}

#[derive(Args, Debug)]
pub struct Pause {
    /// A deployment or a tenant; everything without it
    #[arg(value_name = "TENANT[/NAME]", value_parser = scope)]
    scope: Option<Scope>,
}

fn scope(text: &str) -> Result<Scope, String> {
    match text.contains('/') {
        true => text.parse().map(Scope::Deployment),
        false => name_of::<TenantName>(text).map(Scope::Tenant),
    }
}

pub async fn again(args: Again, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    let Again { location, plan_only, replace, adopt, absent, wait } = args;
    let request = RunRequest { plan_only, replace, adopt: adopt.into_iter().collect(), absent };
    let accepted = client.run_again(&location, &request).await?;
    if wait {
        return watch::to_the_end(&client, accepted.run, json).await;
    }
    watch::accepted(&accepted, json);
    Ok(())
}

pub async fn rollback(args: Rollback, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    let accepted = client.rollback(&args.location, args.to).await?;
    if args.wait {
        return watch::to_the_end(&client, accepted.run, json).await;
    }
    watch::accepted(&accepted, json);
    Ok(())
}

pub async fn forget(args: Forget, connection: &Connection, json: bool) -> Result<(), Failure> {
    connection.client()?.forget(&args.location).await?;
    show::done(&format!("{} is forgotten; what it made goes on existing", args.location), json);
    Ok(())
}

pub async fn pause(args: Pause, paused: bool, connection: &Connection, json: bool) -> Result<(), Failure> {
    let scope = args.scope.unwrap_or(Scope::Everything);
    let now = connection.client()?.pause(&scope, paused).await?;
    if json {
        show::json(&now);
        return Ok(());
    }
    let held = [(now.deployment, "this deployment"), (now.tenant, "its tenant"), (Some(now.everything), "everything")];
    let held: Vec<&str> = held.iter().filter(|(paused, _)| *paused == Some(true)).map(|(_, what)| *what).collect();
    match held.as_slice() {
        [] if matches!(scope, Scope::Deployment(_)) => println!("runs go on"),
        [] => println!("runs go on, but where something below is paused itself"),
        held if paused => println!("runs are accepted and wait; paused: {}", held.join(", ")),
        held => println!("runs still wait; paused: {}", held.join(", ")),
    }
    Ok(())
}
