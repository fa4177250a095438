use landform_base::redact::Redactor;
use landform_base::secret::SecretString;

use super::planned;
use crate::{Diagnostic, EngineError, ProgressEvent, Workspace};

/// Takes secrets, and the scratch folder's own path, out of what people will read.
pub(super) struct Cleaner {
    secrets: Vec<SecretString>,
    redactor: Redactor,
    scratch: String,
}

impl Cleaner {
    pub fn new(workspace: &Workspace, more: &[String]) -> Cleaner {
        let mut secrets = more.to_vec();
        for variable in workspace.variables.values().filter(|v| v.sensitive) {
            planned::strings(&variable.value, &mut secrets);
        }
        let scratch = format!("{}/", workspace.scratch.display());
        Cleaner { secrets: Vec::new(), redactor: Redactor::default(), scratch }.and(secrets)
    }

    /// Knows these secrets too.
    pub fn and(mut self, more: Vec<String>) -> Cleaner {
        self.secrets.extend(more.into_iter().map(SecretString::from));
        Cleaner { redactor: Redactor::new(&self.secrets), ..self }
    }

    pub fn text(&self, text: &str) -> String {
        self.redactor.redact(text).replace(&self.scratch, "")
    }

    pub fn diagnostic(&self, diagnostic: Diagnostic) -> Diagnostic {
        Diagnostic {
            summary: self.text(&diagnostic.summary),
            detail: self.text(&diagnostic.detail),
            address: diagnostic.address.as_deref().map(|address| self.text(address)),
            ..diagnostic
        }
    }

    pub fn diagnostics(&self, diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
        diagnostics.into_iter().map(|d| self.diagnostic(d)).collect()
    }

    pub fn event(&self, event: ProgressEvent) -> ProgressEvent {
        match event {
            ProgressEvent::Note { text } => ProgressEvent::Note { text: self.text(&text) },
            ProgressEvent::Diagnostic { diagnostic } => {
                ProgressEvent::Diagnostic { diagnostic: self.diagnostic(diagnostic) }
            }
            ProgressEvent::Object { address, action, stage, millis } => {
                ProgressEvent::Object { address: self.text(&address), action, stage, millis }
            }
        }
    }

    pub fn error(&self, error: EngineError) -> EngineError {
        match error {
            EngineError::Diagnostics(diagnostics) => EngineError::Diagnostics(self.diagnostics(diagnostics)),
            other => other,
        }
    }
}
