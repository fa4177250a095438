//! Plan and apply in one process, for runs that nobody has to approve.
//!
//! The CLI shows its plan and asks a person whether to go on; here the journal is that person. Messages go to a file of
//! their own (`-json-into`), so the plan is known by the time of the question, and what is not answered with `yes`
//! changes nothing. Whatever is not understood is answered with `no`, and planned again the long way.

use async_trait::async_trait;

use super::cleaner::Cleaner;
use super::messages::Heard;
use super::outcome::{Attempted, intended};
use super::process::{Next, Running};
use super::{Cli, LaidOut, prefixed, refusal, statefile, wishes};
use crate::plan::left_in_doubt;
use crate::{
    EngineError, Gate, Gone, Journal, Mode, PlanRequest, Progress, ProgressEvent, Stage, Stop, Straight, Workspace,
};

/// Whether this CLI has `-json-into`.
pub(super) fn can_ask(version: &str) -> bool {
    let number = version.strip_prefix("opentofu ").unwrap_or_default();
    let mut parts = number.split('.').map_while(|part| part.parse::<u32>().ok());
    (parts.next(), parts.next()) >= (Some(1), Some(12))
}

#[async_trait]
impl Straight for Cli {
    async fn go(
        &self,
        request: PlanRequest<'_>,
        gate: &dyn Gate,
        journal: &dyn Journal,
        progress: &dyn Progress,
        stop: &Stop,
    ) -> Result<Gone, EngineError> {
        // An import is told without what it needs to be journalled, and a refresh changes only the state.
        if !request.adopt.is_empty() || request.mode == Mode::RefreshOnly {
            return Ok(Gone::NotStraight);
        }
        let workspace = request.workspace;
        let laid_out = self.lay_out(workspace, progress, stop).await?;
        let LaidOut { folder, scratch, invocation, .. } = &laid_out;
        let mut args = scratch.arguments("apply");
        args.extend(["-no-color".into(), prefixed("-json-into=", &invocation.messages())]);
        args.extend(wishes(&request));
        let cleaner = Cleaner::new(workspace, &known_secrets(&laid_out, workspace)?);
        let mut heard = Heard::default();
        let mut running = invocation.with(args).start_asking().await?;
        let next = running.next(stop, |line| drop(heard.line(line))).await?;
        if let Next::Ended(ended) = &next {
            if ended.asked_to_stop {
                return Err(EngineError::Stopped);
            }
            if !ended.status.success() {
                return Err(cleaner.error(refusal("apply", heard, ended)));
            }
        }
        // A question before the plan is complete is about an input; `plan` says what is missing.
        if heard.unclear || !heard.planned {
            end(running, next).await?;
            return Ok(Gone::NotStraight);
        }
        let mut warnings = folder.ignored_backends();
        warnings.extend(cleaner.diagnostics(heard.diagnostics.clone()));
        let mut outline = heard.outline(warnings);
        outline.warnings.extend(left_in_doubt(&request.doubted, &outline.changes));
        if outline.effective && matches!(next, Next::Ended(_)) {
            return Err(EngineError::Lost("the CLI did not ask before it applied its plan".to_owned()));
        }
        for change in &outline.changes {
            let (address, action) = (cleaner.text(&change.address), change.action);
            progress.report(ProgressEvent::Object { address, action, stage: Stage::Planned, millis: None });
        }
        let effective = outline.effective;
        if !gate.open(outline).await || !effective {
            end(running, next).await?;
            return Ok(Gone::Held);
        }
        let intents = heard.take_intents();
        let intended = intended(&intents);
        let intents = match journal.intend(intents).await {
            Ok(intents) => intents,
            Err(refused) => {
                end(running, next).await?;
                return Err(refused.into());
            }
        };
        // Diagnostics may quote values of which only the state says that they are secret: they are told at the end.
        let mut heard_more = Heard::default();
        let ended = match running.answer("yes").await {
            Ok(()) => {
                let on_line = |line: &[u8]| match heard_more.line(line) {
                    Some(ProgressEvent::Diagnostic { .. }) | None => {}
                    Some(event) => progress.report(cleaner.event(event)),
                };
                running.finish(stop, on_line).await
            }
            Err(error) => Err(error),
        };
        let heard = heard_more;
        let attempted =
            Attempted { workspace, scratch, journal, intents: &intents, intended: &intended, heard, cleaner };
        attempted.conclude(ended).await.map(Gone::Through)
    }
}

/// Ends a CLI that is waiting for an answer. It has changed nothing, so it is not asked to: one that has just been answered
/// another question may have stopped listening, and wait for ever (its reader counts as busy for a moment longer).
async fn end(mut running: Running<'_>, next: Next) -> Result<(), EngineError> {
    match next {
        Next::Asks => running.kill().await,
        Next::Ended(_) => Ok(()),
    }
}

/// There is no plan to tell what is secret: what is declared so, and what the state marks.
fn known_secrets(laid_out: &LaidOut<'_>, workspace: &Workspace) -> Result<Vec<String>, EngineError> {
    let mut secrets = match &workspace.state {
        Some(bytes) => statefile::secrets(&statefile::read(bytes)?),
        None => Vec::new(),
    };
    for (name, default) in laid_out.folder.secret_variables() {
        secrets.extend(default);
        if let Some(variable) = workspace.variables.get(&name) {
            super::planned::strings(&variable.value, &mut secrets);
        }
    }
    Ok(secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_cli_that_can_tell_and_ask_goes_straight() {
        assert!(can_ask("opentofu 1.12.6") && can_ask("opentofu 1.20.0") && can_ask("opentofu 2.0.0-beta1"));
        assert!(!can_ask("opentofu 1.10.9") && !can_ask("terraform 1.14.0") && !can_ask("opentofu dev"));
    }
}
