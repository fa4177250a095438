use std::sync::{Arc, Mutex, PoisonError};

use crate::Diagnostic;

/// What providers warn of, collected over all of them; each warning once.
#[derive(Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<Diagnostic>>>);

impl Warnings {
    pub fn add(&self, warnings: Vec<Diagnostic>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in warnings {
            if !all.contains(&warning) {
                all.push(warning);
            }
        }
    }

    pub fn take(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
