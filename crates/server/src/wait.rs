use std::time::Duration;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use landform_api::Accepted;
use landform_domain::run::Kind;
use landform_domain::{Code, RunId};
use landform_store::{News, Run, StoreError};
use tokio::time::Instant;

use crate::problem::Refusal;
use crate::{Server, view};

/// The doorbell may ring in another process that cannot reach this one; then time wakes whoever waits.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The answer to an accepted write: 202 with the run at once or after the time that the caller wanted to wait, 200 with
/// the outputs if the run has ended by then.
pub(crate) async fn answer(server: &Server, run: Run, wait: Option<Duration>) -> Result<Response, Refusal> {
    let run = match wait {
        Some(wait) => until_it_rests(server, run.id, wait).await?,
        None => run,
    };
    let location = [(header::LOCATION, format!("/v1/runs/{}", run.id))];
    if wait.is_none() || !run.status.is_final() {
        let accepted = Accepted { run: view::run(run), outputs: None };
        return Ok((StatusCode::ACCEPTED, location, Json(accepted)).into_response());
    }
    // A drift check has nothing to do with them.
    let with_outputs = run.status.is_success() && run.kind != Kind::Check;
    let outputs = if with_outputs { outputs(server, &run).await? } else { None };
    Ok((StatusCode::OK, location, Json(Accepted { run: view::run(run), outputs })).into_response())
}

async fn outputs(server: &Server, run: &Run) -> Result<Option<landform_api::Outputs>, Refusal> {
    match server.store.outputs(&run.tenant, &run.deployment).await {
        Ok(outputs) => Ok(Some(view::outputs(outputs, false)?)),
        // After a destroy the deployment is gone, and with it its outputs.
        Err(StoreError::Refused(problem)) if matches!(problem.code, Code::DeploymentUnknown | Code::OutputsUnknown) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Looks at the run when it may have come to rest, until it has ended or waits for a person, or the time is over.
async fn until_it_rests(server: &Server, id: RunId, wait: Duration) -> Result<Run, Refusal> {
    let deadline = Instant::now() + wait;
    let mut bell = server.store.doorbell_of(id, News::Rest);
    // Without a place among the waiting the caller gets its 202 at once: the write is committed.
    let place = server.waiting.try_acquire();
    loop {
        let run = server.store.run(id).await?;
        let left = deadline.saturating_duration_since(Instant::now());
        if run.status.rests() || left.is_zero() || place.is_err() || server.stopping.is_cancelled() {
            return Ok(run);
        }
        tokio::select! {
            () = bell.rung(left.min(LOOK_EVERY)) => {}
            () = server.stopping.cancelled() => {}
        }
    }
}
