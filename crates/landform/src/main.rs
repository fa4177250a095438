//! The `landform` binary: commands and wiring, without rules of its own.

mod access;
mod backup;
mod connection;
mod credentials;
mod demo;
mod deployment;
mod doctor;
mod drift;
mod engine;
mod failure;
mod house;
mod inside;
mod key;
mod manage;
mod provider;
mod resources;
mod run;
mod serve;
mod show;
mod sim;
mod state;
mod template;
mod tenant;
mod tf;
mod variables;
mod watch;
mod webhook;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::connection::Connection;
use crate::failure::{EXIT_CODES, Failure};

/// Small objects by the million, made in one thread and dropped in another: a fifth of a run's time went to the system's
/// allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A control plane that runs Terraform and OpenTofu for fleets
#[derive(Parser, Debug)]
#[command(name = "landform", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// See the whole way once, on this machine, with nothing to set up
    Demo(demo::Options),
    /// Run the server and its workers
    Serve(serve::Options),
    /// Copy the whole store into a folder, while the server works
    Backup(backup::Backup),
    /// Bring a backup back, into a place that has no store yet
    Restore(backup::Restore),
    /// The master key, which everything in the store is sealed with
    #[command(subcommand)]
    Key(key::Command),
    /// Tokens: who may speak to this server, and as what
    #[command(subcommand)]
    Token(access::Command),
    /// Who did what, from where, the newest first
    Audit(access::Audit),
    /// Tenants
    #[command(subcommand)]
    Tenant(tenant::Command),
    /// Connections: a tenant's credentials, sealed and never shown
    #[command(subcommand)]
    Connection(credentials::Command),
    /// Templates
    #[command(subcommand)]
    Template(template::Command),
    /// Create or change a deployment
    Deploy(deployment::Deploy),
    /// Create, change and destroy many deployments: a file of JSON lines, a line of JSON for each
    Batch(deployment::Batch),
    /// List deployments
    Deployments(deployment::List),
    /// Show a deployment's outputs
    Output(deployment::Output),
    /// Destroy what a deployment has made, and then the deployment
    Destroy(deployment::Destroy),
    /// Make a further run of a deployment: again, as a trial, with replacements or adoptions
    Again(manage::Again),
    /// Bring a deployment back to the template and the inputs of an earlier run
    Rollback(manage::Rollback),
    /// Remove a deployment and destroy nothing
    Forget(manage::Forget),
    /// Let runs wait: of a deployment, a tenant, or all
    Pause(manage::Pause),
    /// Let runs go on
    Resume(manage::Pause),
    /// A deployment's state
    #[command(subcommand)]
    State(state::Command),
    /// The inventory: what all states have
    Resources(resources::List),
    /// Drift: what is different at a vendor from what the states say
    #[command(subcommand)]
    Drift(drift::Command),
    /// Runs
    #[command(subcommand)]
    Run(run::Command),
    /// Run a stand-in for a vendor's cloud on this machine
    Sim(sim::Simulate),
    /// The OpenTofu and Terraform versions that runs can use
    #[command(subcommand)]
    Engine(engine::Command),
    /// The providers that runs can use
    #[command(subcommand)]
    Provider(provider::Command),
    /// What is wrong with this installation, and what to do about it
    Doctor(doctor::Options),
    /// Webhooks: who is told about a tenant's runs
    #[command(subcommand)]
    Webhook(webhook::Command),
    /// OpenTofu's commands in an ordinary folder, carried out by the native engine
    #[command(disable_help_flag = true)]
    Tf {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
        args: Vec<OsString>,
    },
}

/// What a shell reports of a program whose reader has gone away.
const READER_GONE: i32 = 141;

/// `landform run list | head` ends quietly. Only where a line cannot be printed: a server, which others rely on, prints its
/// lines by other means and goes on.
fn end_quietly_without_a_reader() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.payload().downcast_ref::<String>().map(String::as_str).unwrap_or_default();
        if text.starts_with("failed printing to std") && text.contains("Broken pipe") {
            std::process::exit(READER_GONE);
        }
        others(panic);
    }));
}

/// Where the command line itself makes no sense. What stands behind `tf` is OpenTofu's.
fn wants_json() -> bool {
    std::env::args().skip(1).take_while(|argument| argument != "tf").any(|argument| argument == "--json")
}

#[tokio::main]
async fn main() -> ExitCode {
    end_quietly_without_a_reader();
    if let Some(provider) = inside::Inside::by_program_name(std::env::args_os().next().as_deref()) {
        return provider.serve().await.map_or_else(|failure| Failure::report(&failure, false), |()| ExitCode::SUCCESS);
    }
    let Arguments { connection, json, command } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() && wants_json() => {
            let (text, hint) = (error.render().to_string(), "`--help` behind a command tells what it takes.");
            return Failure::usage(text.trim().trim_start_matches("error: "), hint).report(true);
        }
        Err(error) => error.exit(),
    };
    let done = match command {
        Command::Demo(options) => demo::run(options).await,
        Command::Serve(options) => serve::run(options, &connection).await,
        Command::Backup(args) => backup::backup(args, &connection, json).await,
        Command::Restore(args) => backup::restore(args, &connection, json).await,
        Command::Key(command) => key::run(command, &connection, json).await,
        Command::Token(command) => access::run(command, &connection, json).await,
        Command::Audit(args) => access::audit(args, &connection, json).await,
        Command::Tenant(command) => tenant::run(command, &connection, json).await,
        Command::Connection(command) => credentials::run(command, &connection, json).await,
        Command::Template(command) => template::run(command, &connection, json).await,
        Command::Deploy(args) => deployment::deploy(args, &connection, json).await,
        Command::Batch(args) => deployment::batch(args, &connection).await,
        Command::Deployments(args) => deployment::list(args, &connection, json).await,
        Command::Output(args) => deployment::output(args, &connection, json).await,
        Command::Destroy(args) => deployment::destroy(args, &connection, json).await,
        Command::Again(args) => manage::again(args, &connection, json).await,
        Command::Rollback(args) => manage::rollback(args, &connection, json).await,
        Command::Forget(args) => manage::forget(args, &connection, json).await,
        Command::Pause(args) => manage::pause(args, true, &connection, json).await,
        Command::Resume(args) => manage::pause(args, false, &connection, json).await,
        Command::State(command) => state::run(command, &connection, json).await,
        Command::Resources(args) => resources::list(args, &connection, json).await,
        Command::Drift(command) => drift::run(command, &connection, json).await,
        Command::Run(command) => run::run(command, &connection, json).await,
        Command::Sim(args) => sim::run(args, json).await,
        Command::Engine(command) => engine::run(command, &connection, json).await,
        Command::Provider(command) => provider::run(command, &connection, json).await,
        Command::Doctor(options) => doctor::run(options, &connection, json).await,
        Command::Webhook(command) => webhook::run(command, &connection, json).await,
        Command::Tf { args } => return tf::run(args).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => Failure::report(&failure, json),
    }
}

/// Reads a name or an id for clap, which wants to show why it cannot.
fn name_of<T: std::str::FromStr<Err = landform_domain::Problem>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|problem: landform_domain::Problem| format!("{}. {}", problem.message, problem.hint()))
}

/// A list of at most nothing is a mistake.
fn at_least_one() -> clap::builder::RangedU64ValueParser<usize> {
    clap::builder::RangedU64ValueParser::new().range(1..)
}
