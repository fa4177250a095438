//! Drift: what is different at a vendor from what the states say.

use clap::{Args, Subcommand};
use landform_api::{Drift, DriftFilter, DriftGroup, DriftSchedule, DriftedDeployment, Location};
use landform_domain::{DriftSummary, DriftedAttribute, TenantName};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::{name_of, show, watch};

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Look whether everything is as the state says; nothing is changed
    Check(Check),
    /// List deployments that drifted, and what they have in common
    List(List),
    /// Show what is known of a deployment, object by object
    Show(Show),
    /// Bring back what drifted: an ordinary run, with approval where changes need it
    Heal(Heal),
    /// Have a deployment checked once in a while
    Schedule(Schedule),
}

#[derive(Args, Debug)]
pub struct Check {
    /// The deployment
    #[arg(value_name = "TENANT/NAME")]
    location: Location,
    /// Wait for the end, and show what was found
    #[arg(long)]
    wait: bool,
}

#[derive(Args, Debug)]
pub struct List {
    /// Only those of one tenant
    #[arg(long, value_parser = name_of::<TenantName>)]
    tenant: Option<TenantName>,
    /// Only those of one template
    #[arg(long, value_name = "NAME")]
    template: Option<String>,
    /// Only those with a drifted object of one type, such as aws_vpc
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// `drifted`, `none` or `unknown`
    #[arg(long, default_value = "drifted", value_name = "STATUS")]
    status: String,
}

#[derive(Args, Debug)]
pub struct Show {
    /// The deployment
    #[arg(value_name = "TENANT/NAME")]
    location: Location,
}

#[derive(Args, Debug)]
pub struct Heal {
    /// The deployment
    #[arg(value_name = "TENANT/NAME")]
    location: Location,
    /// Wait until the run has ended
    #[arg(long)]
    wait: bool,
}

#[derive(Args, Debug)]
pub struct Schedule {
    /// The deployment
    #[arg(value_name = "TENANT/NAME")]
    location: Location,
    /// So often: a number with `m`, `h` or `d`
    #[arg(long, value_name = "TIME", value_parser = seconds, required_unless_present = "off")]
    every: Option<i64>,
    /// Not any more
    #[arg(long, conflicts_with = "every")]
    off: bool,
}

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    match command {
        Command::Check(args) => {
            let accepted = client.drift_check(&args.location).await?;
            if !args.wait {
                watch::accepted(&accepted, json);
                return Ok(());
            }
            watch::quietly(&client, accepted.run, json).await?;
            fact(&client.drift(&args.location).await?, json);
        }
        Command::List(args) => {
            let List { tenant, template, kind, status } = args;
            let filter = DriftFilter { status: Some(status), tenant, template, kind, after: None };
            list(&client, filter, json).await?;
        }
        Command::Show(args) => fact(&client.drift(&args.location).await?, json),
        Command::Heal(args) => {
            let accepted = client.drift_heal(&args.location).await?;
            if args.wait {
                return watch::to_the_end(&client, accepted.run, json).await;
            }
            watch::accepted(&accepted, json);
        }
        Command::Schedule(args) => {
            let every = args.every.filter(|_| !args.off);
            fact(&client.drift_schedule(&args.location, &DriftSchedule { every }).await?, json);
        }
    }
    Ok(())
}

async fn list(client: &landform_api::Client, mut filter: DriftFilter, json: bool) -> Result<(), Failure> {
    let mut all = client.drift_list(&filter).await?;
    while let Some(next) = all.next.take() {
        filter.after = Some(next);
        let page = client.drift_list(&filter).await?;
        all.deployments.extend(page.deployments);
        all.next = page.next;
    }
    if json {
        show::json(&all);
        return Ok(());
    }
    let row = |found: &DriftedDeployment| {
        vec![
            format!("{}/{}", found.tenant, found.deployment),
            format!("{}@{}", found.template, found.template_version),
            words(&found.drift),
            found.drift.checked_at.as_ref().map_or("-".to_owned(), ToString::to_string),
        ]
    };
    show::table(&["DEPLOYMENT", "TEMPLATE", "DRIFT", "CHECKED"], all.deployments.iter().map(row).collect());
    if !all.groups.is_empty() {
        let row = |group: &DriftGroup| {
            let what = if group.gone { "gone".to_owned() } else { group.attributes.join(", ") };
            let counts = [group.deployments.to_string(), group.objects.to_string()];
            [vec![group.template.clone(), group.kind.clone(), what], counts.to_vec(), vec![group.example.clone()]]
                .concat()
        };
        println!();
        let heads = ["TEMPLATE", "TYPE", "WHAT", "DEPLOYMENTS", "OBJECTS", "SUCH AS"];
        show::table(&heads, all.groups.iter().map(row).collect());
    }
    Ok(())
}

fn fact(drift: &Drift, json: bool) {
    if json {
        return show::json(drift);
    }
    println!("drift       {}", words(drift));
    let line = |name: &str, value: Option<String>| value.into_iter().for_each(|value| println!("{name:<11} {value}"));
    line("checked", drift.checked_at.as_ref().map(ToString::to_string));
    line("by run", drift.run.map(|run| run.to_string()));
    line("since", drift.drifted_since.as_ref().map(ToString::to_string));
    line("failed", drift.failed.as_ref().map(|failed| format!("{} ({}, run {})", failed.at, failed.code, failed.run)));
    line("schedule", drift.schedule.as_ref().map(|schedule| format!("every {} s", schedule.every)));
    for object in &drift.diff {
        if object.gone {
            println!("  - {} is gone", object.address);
            continue;
        }
        println!("  ~ {}", object.address);
        for DriftedAttribute { path, before, after, .. } in &object.changes {
            println!("      {path}: {before} -> {after}");
        }
    }
}

/// In one line.
pub fn words(drift: &Drift) -> String {
    let DriftSummary { changed, gone } = drift.summary;
    match (changed, gone) {
        (0, 0) => drift.status.as_str().to_owned(),
        (changed, 0) => format!("{changed} changed"),
        (0, gone) => format!("{gone} gone"),
        (changed, gone) => format!("{changed} changed, {gone} gone"),
    }
}

fn seconds(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is no time such as 30m, 6h or 1d, at least 1m");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let unit = match unit {
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return Err(wrong()),
    };
    let number: i64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(seconds("6h"), Ok(21_600));
        assert_eq!(seconds("90m"), Ok(5_400));
        assert_eq!(seconds("1d"), Ok(86_400));
        for wrong in ["", "h", "6", "0m", "-1h", "6 h", "1y", "9223372036854775807d", "ü"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
