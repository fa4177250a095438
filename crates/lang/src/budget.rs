use landform_cty::{Data, Value};

use crate::{Cause, Diagnostic};

/// What an evaluation may use up. One budget is for everything that is evaluated for one run.
///
/// Evaluation happens in a process that serves everybody, so a configuration that doubles a string forty times must
/// end with a message and not with the process.
#[derive(Clone, Debug)]
pub struct Budget {
    steps: u64,
    bytes: u64,
    depth: u32,
}

/// How deep values may be nested, so that walking one never exhausts the stack.
const MAX_VALUE_DEPTH: u32 = 100;

impl Default for Budget {
    fn default() -> Budget {
        // A hundred levels need little more than 1 MiB of stack in the worst case, and a thread usually has 2 MiB.
        Budget::new(10_000_000, 256 << 20, 100)
    }
}

impl Budget {
    /// `steps`: expressions evaluated and values copied; `bytes`: text made; `depth`: expressions inside expressions.
    pub fn new(steps: u64, bytes: u64, depth: u32) -> Budget {
        Budget { steps, bytes, depth }
    }

    pub(crate) fn step(&mut self) -> Result<(), Diagnostic> {
        self.spend_steps(1)
    }

    pub(crate) fn spend_steps(&mut self, steps: u64) -> Result<(), Diagnostic> {
        self.steps = self.steps.checked_sub(steps).ok_or_else(|| exhausted("takes too many steps"))?;
        Ok(())
    }

    pub(crate) fn spend_bytes(&mut self, bytes: usize) -> Result<(), Diagnostic> {
        self.bytes = self.bytes.checked_sub(bytes as u64).ok_or_else(|| exhausted("makes too much text"))?;
        Ok(())
    }

    pub(crate) fn enter(&mut self) -> Result<(), Diagnostic> {
        self.step()?;
        self.depth = self.depth.checked_sub(1).ok_or_else(|| exhausted("is nested too deeply"))?;
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        self.depth += 1;
    }

    /// Pays for a value that was made or copied.
    pub(crate) fn spend_value(&mut self, value: &Value) -> Result<(), Diagnostic> {
        self.spend_nested(value, 0)
    }

    fn spend_nested(&mut self, value: &Value, depth: u32) -> Result<(), Diagnostic> {
        self.step()?;
        if depth > MAX_VALUE_DEPTH {
            return Err(exhausted("makes values that are nested too deeply"));
        }
        match &value.data {
            Data::String(text) => self.spend_bytes(text.len()),
            Data::Sequence(elements) => elements.iter().try_for_each(|element| self.spend_nested(element, depth + 1)),
            Data::Mapping(elements) => elements.values().try_for_each(|element| self.spend_nested(element, depth + 1)),
            _ => Ok(()),
        }
    }
}

fn exhausted(how: &str) -> Diagnostic {
    let detail = format!("Evaluating this configuration {how}.");
    Diagnostic { cause: Cause::Limit, ..Diagnostic::new("Evaluation limit reached", detail) }
}
