use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use futures::StreamExt;
use landform_api::{Deployment, DeploymentSpec, Location, Write};
use landform_domain::{ConnectionName, EngineChoice, TemplateName, TenantName};
use serde_json::Value;

use crate::connection::Connection;
use crate::failure::Failure;
use crate::{name_of, show, variables, watch};

#[derive(Args, Debug)]
pub struct Deploy {
    /// The deployment
    #[arg(value_name = "TENANT/NAME")]
    location: Location,
    /// The template, and a version of it if not the newest
    #[arg(long, value_name = "NAME[@VERSION]", value_parser = template)]
    template: (TemplateName, Option<i64>),
    /// A variable: `name=text` is always text, `name:=json` is any JSON value
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    variables: Vec<(String, Value)>,
    /// A file of variables: `NAME = VALUE` as OpenTofu has it in `.tfvars`, otherwise a JSON object; --var wins over it
    #[arg(long, value_name = "FILE")]
    var_file: Option<PathBuf>,
    /// A variable whose value is masked among the inputs; what a plan and outputs show of it, the template says
    #[arg(long, value_name = "NAME")]
    sensitive: Vec<String>,
    /// A connection whose values reach the template's ephemeral variables
    #[arg(long, value_name = "NAME", value_parser = name_of::<ConnectionName>)]
    connection: Vec<ConnectionName>,
    /// `native`, `cli` or `auto`
    #[arg(long, default_value = "auto", value_parser = name_of::<EngineChoice>)]
    engine: EngineChoice,
    /// Plan, then wait until somebody has approved
    #[arg(long, alias = "requires-approval")]
    approval: bool,
    /// Apply without approval from now on; needs the right to approve if the deployment needed it before
    #[arg(long, conflicts_with = "approval")]
    no_approval: bool,
    /// Stop a plan or an apply after so long [default: what the server was started with]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    time_limit: Option<u32>,
    #[command(flatten)]
    write: WriteOptions,
}

#[derive(Args, Debug)]
pub struct Destroy {
    /// The deployment
    #[arg(value_name = "TENANT/NAME")]
    location: Location,
    #[command(flatten)]
    write: WriteOptions,
}

#[derive(Args, Debug)]
struct WriteOptions {
    /// Wait until the run has ended
    #[arg(long)]
    wait: bool,
    /// Refuse unless the deployment is still at this generation
    #[arg(long, value_name = "N")]
    if_generation: Option<i64>,
    /// Sent again with the same key, the request has no further effect
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl WriteOptions {
    fn write(&self) -> Write {
        Write { wait: None, idempotency_key: self.idempotency_key.clone(), if_generation: self.if_generation }
    }
}

#[derive(Args, Debug)]
pub struct Batch {
    /// A file with a line such as {"method": "put", "tenant": "…", "deployment": "…", "spec": {…}} for each; `-` is
    /// standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Args, Debug)]
pub struct List {
    /// Only this tenant's
    #[arg(value_parser = name_of::<TenantName>)]
    tenant: Option<TenantName>,
}

#[derive(Args, Debug)]
pub struct Output {
    /// The deployment
    #[arg(value_name = "TENANT/NAME")]
    location: Location,
    /// Show sensitive values, too
    #[arg(long)]
    show_sensitive: bool,
}

pub async fn deploy(args: Deploy, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    let mut inputs = match &args.var_file {
        Some(path) => variables::of_file(path)?,
        None => BTreeMap::new(),
    };
    inputs.extend(args.variables);
    let (template, template_version) = args.template;
    let spec = DeploymentSpec {
        template,
        template_version,
        inputs,
        sensitive: args.sensitive,
        connections: args.connection,
        engine: args.engine,
        requires_approval: args.approval.then_some(true).or(args.no_approval.then_some(false)),
        time_limit: args.time_limit,
    };
    let accepted = client.deployment_put(&args.location, &spec, &args.write.write()).await?;
    if args.write.wait {
        watch::to_the_end(&client, accepted.run, json).await
    } else {
        watch::accepted(&accepted, json);
        Ok(())
    }
}

/// Ends with failure if any line was refused; the others are accepted all the same.
pub async fn batch(args: Batch, connection: &Connection) -> Result<(), Failure> {
    let unreadable = |e: std::io::Error| {
        Failure::usage(format!("{}: {e}", args.file.display()), "Name a file of JSON lines, or `-` for standard input.")
    };
    let lines = if args.file.as_os_str() == "-" {
        tokio_util::io::ReaderStream::new(tokio::io::stdin()).boxed()
    } else {
        tokio_util::io::ReaderStream::new(tokio::fs::File::open(&args.file).await.map_err(unreadable)?).boxed()
    };
    let mut results = connection.client()?.batch(lines).await?;
    let (mut first, mut refused, mut all) = (None, 0, 0);
    while let Some(result) = results.next().await {
        let result = result?;
        show::json_line(&result);
        all += 1;
        refused += usize::from(result.problem.is_some());
        first = first.or(result.problem.map(|problem| (result.line, problem)));
    }
    let Some((line, mut problem)) = first else { return Ok(()) };
    problem.detail = format!("{refused} of {all} lines were refused; the first is line {line}: {}", problem.detail);
    Err(problem.into())
}

pub async fn destroy(args: Destroy, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    let accepted = client.deployment_delete(&args.location, &args.write.write()).await?;
    if args.write.wait {
        watch::to_the_end(&client, accepted.run, json).await
    } else {
        watch::accepted(&accepted, json);
        Ok(())
    }
}

pub async fn list(args: List, connection: &Connection, json: bool) -> Result<(), Failure> {
    let client = connection.client()?;
    let tenants = match args.tenant {
        Some(tenant) => vec![tenant],
        None => client.tenants().await?.into_iter().map(|tenant| tenant.name).collect(),
    };
    let mut deployments = Vec::new();
    for tenant in tenants {
        deployments.extend(client.deployments(&tenant).await?);
    }
    if json {
        show::json(&deployments);
        return Ok(());
    }
    let row = |d: &Deployment| {
        vec![
            format!("{}/{}", d.tenant, d.name),
            format!("{}@{}", d.template, d.template_version),
            d.generation.to_string(),
            d.applied_generation.map_or("-".to_owned(), |generation| generation.to_string()),
            last_run(d),
            crate::drift::words(&d.drift),
        ]
    };
    show::table(
        &["DEPLOYMENT", "TEMPLATE", "GENERATION", "APPLIED", "LAST RUN", "DRIFT"],
        deployments.iter().map(row).collect(),
    );
    Ok(())
}

fn last_run(deployment: &Deployment) -> String {
    let mut words = deployment.last_run.as_ref().map_or("-".to_owned(), show::status);
    if deployment.paused {
        words.push_str(", paused");
    }
    words
}

pub async fn output(args: Output, connection: &Connection, json: bool) -> Result<(), Failure> {
    let outputs = connection.client()?.outputs(&args.location, args.show_sensitive).await?;
    if json {
        show::json(&outputs);
    } else {
        show::outputs(&outputs);
    }
    Ok(())
}

pub fn template(text: &str) -> Result<(TemplateName, Option<i64>), String> {
    let (name, version) = match text.split_once('@') {
        Some((name, version)) => (name, Some(version.parse().map_err(|_| "a version is a number")?)),
        None => (text, None),
    };
    Ok((name_of(name)?, version))
}

/// `name=text` is text, whatever it looks like; only `name:=json` is read as JSON. So nothing changes its type by
/// looking like something else.
fn variable(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=TEXT or NAME:=JSON")?;
    match name.strip_suffix(':') {
        Some(name) => {
            let value = serde_json::from_str(value).map_err(|e| format!("the value of {name} is not JSON: {e}"))?;
            Ok((name.to_owned(), value))
        }
        None => Ok((name.to_owned(), Value::from(value))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_stays_text_and_only_the_other_sign_means_json() {
        assert_eq!(variable("a=1").unwrap(), ("a".to_owned(), json!("1")));
        assert_eq!(variable("a=x=y:=z").unwrap(), ("a".to_owned(), json!("x=y:=z")));
        assert_eq!(variable("a=").unwrap(), ("a".to_owned(), json!("")));
        assert_eq!(variable("a:=[1,\"x\"]").unwrap(), ("a".to_owned(), json!([1, "x"])));
        assert!(variable("a:=nope").is_err() && variable("a").is_err());
    }

    #[test]
    fn a_template_may_name_its_version() {
        assert_eq!(template("net@3").unwrap(), ("net".parse().unwrap(), Some(3)));
        assert_eq!(template("net").unwrap().1, None);
        assert!(template("net@new").is_err() && template("Net").is_err());
    }
}
