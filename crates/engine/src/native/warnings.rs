use std::sync::{Arc, Mutex, PoisonError};

use crate::Diagnostic;

/// What is warned of on the way, also by providers.
#[derive(Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<Diagnostic>>>);

impl Warnings {
    /// Each of these once.
    pub fn add(&self, warnings: Vec<Diagnostic>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in warnings {
            if !all.contains(&warning) {
                all.push(warning);
            }
        }
    }

    /// What was said in an answer: who says it twice, says it twice.
    pub fn add_each(&self, warnings: Vec<Diagnostic>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(warnings);
    }

    pub fn take(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
