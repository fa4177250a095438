use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use landform_api::{Client, FailureGroup, Location, Recovery, RetryAll, Run, RunFilter, Timestamp};
use landform_domain::recovery::Answer;
use landform_domain::{RunId, TemplateName, TenantName};

use crate::connection::Connection;
use crate::failure::Failure;
use crate::{at_least_one, name_of, show, watch};

#[derive(Subcommand, Debug)]
pub enum Command {
    /// List runs, the newest first
    List {
        /// Only those of this tenant
        #[arg(long, value_parser = name_of::<TenantName>)]
        tenant: Option<TenantName>,
        /// Only those of this deployment
        #[arg(long, value_name = "TENANT/NAME", conflicts_with = "tenant")]
        deployment: Option<Location>,
        /// Only those with this status, such as `failed` or `awaiting_approval`
        #[arg(long)]
        status: Option<String>,
        /// Only those made with this template
        #[arg(long, value_parser = name_of::<TemplateName>)]
        template: Option<TemplateName>,
        /// Only those that failed with this code, such as `apply_failed`
        #[arg(long)]
        code: Option<String>,
        /// Only those made since then, such as 2026-11-16T00:12:01.123Z
        #[arg(long, value_name = "TIME")]
        since: Option<Timestamp>,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = at_least_one())]
        limit: usize,
    },
    /// Show one run
    Show(Id),
    /// Show what happens in a run until it has ended; Ctrl-C leaves it alone
    Watch(Id),
    /// Show the plan of a run; with --json in the format of `tofu show -json`
    Plan(Id),
    /// Make a run that failed or was stopped again
    Retry(IdAndWait),
    /// Deployments whose last run failed, by the code of the failure
    Failures {
        #[arg(long, value_parser = name_of::<TenantName>)]
        tenant: Option<TenantName>,
    },
    /// Make all failed runs of one code again
    RetryAll {
        /// The code, as `landform run failures` shows it
        code: String,
        #[arg(long, value_parser = name_of::<TenantName>)]
        tenant: Option<TenantName>,
        /// At most so many, the oldest first
        #[arg(long, default_value_t = 0)]
        limit: u32,
    },
    /// Approve the plan of a run: it is applied exactly as it is
    Approve(IdAndWait),
    /// Reject the plan of a run
    Reject {
        #[command(flatten)]
        id: Id,
        #[arg(long, default_value = "")]
        reason: String,
    },
    /// Stop a run; one that is applying stops at the next safe point
    Cancel(Id),
    /// Say what became of the objects that a crash left in doubt
    Recover {
        #[command(flatten)]
        id: IdAndWait,
        /// The object exists and has this id: take it over
        #[arg(long, value_name = "ADDRESS=ID", value_parser = adoption)]
        adopt: Vec<(String, String)>,
        /// Somebody has looked: the object does not exist
        #[arg(long, value_name = "ADDRESS")]
        absent: Vec<String>,
        /// Nobody knows, and a second object would be no harm
        #[arg(long, value_name = "ADDRESS")]
        retry: Vec<String>,
    },
}

#[derive(Args, Debug)]
pub struct Id {
    /// The run's id
    #[arg(value_parser = name_of::<RunId>)]
    id: RunId,
}

#[derive(Args, Debug)]
pub struct IdAndWait {
    /// The run's id
    #[arg(value_parser = name_of::<RunId>)]
    id: RunId,
    /// Wait until the run has ended
    #[arg(long)]
    wait: bool,
}

pub async fn run(command: Command, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    let waits = matches!(
        &command,
        Command::Retry(IdAndWait { wait: true, .. })
            | Command::Approve(IdAndWait { wait: true, .. })
            | Command::Recover { id: IdAndWait { wait: true, .. }, .. }
    );
    let changed = match command {
        Command::List { tenant, deployment, status, template, code, since, limit } => {
            let (tenant, deployment) = Location::narrow(tenant, deployment);
            let filter = RunFilter { tenant, deployment, status, template, code, since, ..RunFilter::default() };
            return list(&pages(&client, filter, limit).await?, json);
        }
        Command::RetryAll { code, tenant, limit } => {
            return list(&client.retry_all(&RetryAll { code, tenant, limit }).await?, json);
        }
        Command::Failures { tenant } => return failures(&client.failures(tenant.as_ref()).await?, json),
        Command::Plan(Id { id }) if json => {
            show::json(&client.plan(id).await?);
            return Ok(());
        }
        Command::Plan(Id { id }) => {
            print!("{}", client.plan_text(id).await?);
            return Ok(());
        }
        Command::Retry(IdAndWait { id, .. }) => client.run_retry(id).await?.run,
        Command::Watch(Id { id }) => return watch::aloud(&client, id, json).await,
        Command::Show(Id { id }) => client.run(id).await?,
        Command::Approve(IdAndWait { id, .. }) => client.run_approve(id).await?,
        Command::Reject { id: Id { id }, reason } => client.run_reject(id, &reason).await?,
        Command::Cancel(Id { id }) => client.run_cancel(id).await?,
        Command::Recover { id: IdAndWait { id, .. }, adopt, absent, retry } => {
            client.run_recover(id, &Recovery { answers: answers(adopt, absent, retry)? }).await?
        }
    };
    if waits {
        return watch::to_the_end(&client, changed, json).await;
    }
    if json {
        show::json(&changed);
    } else {
        show::run(&changed);
    }
    Ok(())
}

fn failures(groups: &[FailureGroup], json: bool) -> Result<(), Failure> {
    if json {
        show::json(&groups);
        return Ok(());
    }
    let row = |group: &FailureGroup| vec![group.code.clone(), group.count.to_string(), group.newest.to_string()];
    show::table(&["CODE", "DEPLOYMENTS", "NEWEST RUN"], groups.iter().map(row).collect());
    Ok(())
}

async fn pages(client: &Client, mut filter: RunFilter, limit: usize) -> Result<Vec<Run>, Failure> {
    let mut runs: Vec<Run> = Vec::new();
    loop {
        let page = client.runs(&filter).await?;
        filter.before = page.last().map(|run| run.id);
        runs.extend(page);
        if filter.before.is_none() {
            return Ok(runs);
        }
        if runs.len() > limit {
            eprintln!("only the newest {limit}; --limit N shows more");
            runs.truncate(limit);
            return Ok(runs);
        }
    }
}

fn list(runs: &[Run], json: bool) -> Result<(), Failure> {
    if json {
        show::json(&runs);
        return Ok(());
    }
    let row = |run: &Run| {
        vec![
            run.id.to_string(),
            format!("{}/{}", run.tenant, run.deployment),
            show::kind(run),
            run.generation.to_string(),
            show::status(run),
            run.created_at.to_string(),
        ]
    };
    show::table(&["RUN", "DEPLOYMENT", "KIND", "GENERATION", "STATUS", "CREATED"], runs.iter().map(row).collect());
    Ok(())
}

pub fn adoption(text: &str) -> Result<(String, String), String> {
    // An address may hold `=` inside a key in quotes; an id in the cloud rarely ends with it.
    let at = match text.rfind("]=") {
        Some(at) => at + 1,
        None => text.find('=').ok_or("expected ADDRESS=ID")?,
    };
    Ok((text[..at].to_owned(), text[at + 1..].to_owned()))
}

fn answers(
    adopt: Vec<(String, String)>,
    absent: Vec<String>,
    retry: Vec<String>,
) -> Result<BTreeMap<String, Answer>, Failure> {
    let all = adopt.into_iter().map(|(address, id)| (address, Answer::Adopt(id)));
    let all = all.chain(absent.into_iter().map(|address| (address, Answer::Absent)));
    let mut answers = BTreeMap::new();
    for (address, answer) in all.chain(retry.into_iter().map(|address| (address, Answer::Retry))) {
        if answers.insert(address.clone(), answer).is_some() {
            return Err(Failure::usage(format!("two answers for {address}"), "Give one answer for each object."));
        }
    }
    if answers.is_empty() {
        return Err(Failure::usage(
            "no answers",
            "Use --adopt, --absent or --retry; `landform run show` lists the doubts.",
        ));
    }
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adoption_splits_behind_the_address() {
        let split = |text| adoption(text).unwrap();
        assert_eq!(split("a.b=id=1"), ("a.b".to_owned(), "id=1".to_owned()));
        assert_eq!(split("a.b[\"x=y\"]=id"), ("a.b[\"x=y\"]".to_owned(), "id".to_owned()));
        assert!(adoption("a.b").is_err());
    }

    #[test]
    fn one_object_gets_one_answer() {
        assert!(answers(vec![], vec!["a.b".to_owned()], vec!["a.b".to_owned()]).is_err());
        assert!(answers(vec![], vec![], vec![]).is_err());
        assert_eq!(answers(vec![], vec!["a.b".to_owned()], vec![]).unwrap()["a.b"], Answer::Absent);
    }
}
