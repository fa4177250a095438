use super::cleaner::Cleaner;
use super::messages::Heard;
use super::process::Ended;
use super::scratch::Scratch;
use super::{refusal, statefile};
use crate::{Applied, Diagnostic, EngineError, Intent, IntentAction, IntentId, Journal, Settlement, Workspace};

/// What an apply is about to do, after the journal has taken it.
pub(super) fn intended(intents: &[Intent]) -> Vec<(IntentAction, String)> {
    intents.iter().map(|intent| (intent.action, intent.address.clone())).collect()
}

/// An apply that has been let loose, and all that is known of it.
pub(super) struct Attempted<'a> {
    pub workspace: &'a Workspace,
    pub scratch: &'a Scratch,
    pub journal: &'a dyn Journal,
    /// What it intended, in the order of [`Attempted::intended`].
    pub intents: &'a [IntentId],
    pub intended: &'a [(IntentAction, String)],
    pub heard: Heard,
    pub cleaner: Cleaner,
}

impl Attempted<'_> {
    pub async fn conclude(self, ended: Result<Ended, EngineError>) -> Result<Applied, EngineError> {
        let ended = match ended {
            Ok(ended) => ended,
            Err(EngineError::Lost(reason)) => return Err(EngineError::Lost(reason)),
            // Its output could not be read, which kills it.
            Err(error) if self.heard.touched => return Err(EngineError::Lost(error.to_string())),
            Err(error) => {
                self.settle_untouched().await?;
                return Err(error);
            }
        };
        // 0 and 1 are the ends that the CLI chooses; after anything else it had no chance to save its state.
        if !matches!(ended.status.code(), Some(0 | 1)) {
            let reason = format!("the CLI ended with {}: {}", ended.status, ended.stderr);
            return Err(EngineError::Lost(self.cleaner.text(&reason)));
        }
        if !ended.status.success() && self.heard.unanswered {
            self.settle_what_was_not_begun().await?;
            let reason = "a provider of the CLI ended in the middle of a change, without an answer";
            return Err(EngineError::Lost(reason.to_owned()));
        }
        let left = statefile::newest(&self.scratch.work())?;
        if !ended.status.success() && !self.heard.touched && left == self.workspace.state {
            self.settle_untouched().await?;
            let Attempted { heard, cleaner, .. } = self;
            let stopped = ended.asked_to_stop;
            return Err(if stopped { EngineError::Stopped } else { cleaner.error(refusal("apply", heard, &ended)) });
        }
        let lost = |reason: String| EngineError::Lost(format!("the CLI left no readable state: {reason}"));
        let state = left.ok_or_else(|| lost("there is none".to_owned()))?;
        let read = statefile::read(&state)?;
        let outputs = statefile::outputs(&read).map_err(|e| lost(e.to_string()))?;
        let succeeded = ended.status.success();
        let Attempted { heard, cleaner, .. } = self;
        let cleaner = cleaner.and(statefile::secrets(&read));
        let mut diagnostics = cleaner.diagnostics(heard.into_diagnostics());
        if !succeeded && !diagnostics.iter().any(Diagnostic::is_error) {
            diagnostics.push(cleaner.diagnostic(Diagnostic::error("The CLI failed without a reason", ended.stderr)));
        }
        Ok(Applied { state, outputs, diagnostics, stopped: ended.asked_to_stop && !succeeded })
    }

    /// Nobody need be asked about an object that no provider was asked to make.
    async fn settle_what_was_not_begun(&self) -> Result<(), EngineError> {
        for (intent, (action, address)) in self.intents.iter().zip(self.intended) {
            if *action == IntentAction::Create && !self.heard.begun.contains(address) {
                self.journal.settle(*intent, Settlement::Untouched).await?;
            }
        }
        Ok(())
    }

    async fn settle_untouched(&self) -> Result<(), EngineError> {
        for intent in self.intents {
            self.journal.settle(*intent, Settlement::Untouched).await?;
        }
        Ok(())
    }
}
