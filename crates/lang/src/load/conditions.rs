//! Conditions: of variables, objects, outputs and checks.

use hcl_edit::structure::{Block, Structure};

use super::Loader;
use crate::{Body, Diagnostic, Expr, Reference, Validation};

impl Loader {
    /// A condition; `variable` is the one that it must refer to, if it is about one.
    pub(super) fn read_validation(&mut self, body: &Body, block: &Block, variable: Option<&str>) -> Option<Validation> {
        let range = body.header(block);
        self.no_labels(body, block);
        for structure in &block.body {
            match structure {
                Structure::Attribute(attribute) if matches!(attribute.key.as_str(), "condition" | "error_message") => {}
                Structure::Attribute(attribute) => self.unexpected_attribute(body, attribute),
                Structure::Block(inner) => self.unexpected_block(body, inner),
            }
        }
        let part = |name: &str| block.body.get_attribute(name).map(|attribute| body.expr(&attribute.value));
        match (part("condition"), part("error_message")) {
            (Some(condition), Some(error_message)) => {
                let sound = self.check_condition(block.ident.as_str(), &condition, variable);
                sound.then_some(Validation { condition, error_message, range })
            }
            (condition, _) => {
                let missing = if condition.is_none() { "condition" } else { "error_message" };
                let inner = body.inside(block);
                self.missing(missing, &inner);
                None
            }
        }
    }

    /// What refers to nothing checks nothing.
    fn check_condition(&mut self, kind: &str, condition: &Expr, variable: Option<&str>) -> bool {
        let mentioned = crate::reference::traversals(&condition.node);
        let mut sound = true;
        if mentioned.is_empty() {
            let detail = "The condition expression must refer to at least one object from elsewhere in the configuration, or \
                          else its result would not be checking anything.";
            let problem = Diagnostic::new(format!("Invalid {kind} expression"), detail);
            self.found.push(problem.at(condition.range()));
            sound = false;
        }
        if let Some(name) = variable
            && !crate::references(condition).contains(&Reference::Variable(name.to_owned()))
        {
            let detail = format!(
                "The condition for variable {name:?} must refer to var.{name} in order to test incoming values."
            );
            let problem = Diagnostic::new("Invalid variable validation condition", detail);
            self.found.push(problem.at(condition.range()));
            sound = false;
        }
        sound
    }
}
