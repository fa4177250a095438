//! What can be wrong with `moved` blocks: it is looked for after the walk, when it is known which instances there are.

use std::collections::BTreeMap;

use landform_lang::{Repetition, SourceRange};

use super::order::circles;
use super::statement::{End, ModuleStep, Statement, module_text, steps};
use crate::native::config::{Config, failure, module_path, range};
use crate::native::eval::Values;
use crate::{Diagnostic, EngineError};

/// Says what is wrong with the `moved` blocks of a configuration of which these instances are known.
pub fn check_moves(config: &Config, values: &Values) -> Result<(), EngineError> {
    let statements = Statement::all_of(config);
    let mut found = Vec::new();
    let (mut sources, mut targets) = (BTreeMap::new(), BTreeMap::new());
    for statement in &statements {
        for instance in values.instances(&config.modules[statement.module].path) {
            let step = Move::of(statement, instance);
            if step.from == step.to {
                let detail = format!(
                    "This statement declares a move from {} to the same address, which is the same as not declaring this \
                     move at all.",
                    step.from
                );
                found.push(step.problem("Redundant move statement", detail));
                continue;
            }
            found.extend(step.still_declared(config, values, instance));
            found.extend(step.ambiguous(&mut sources, &mut targets));
        }
    }
    // Something simpler is often why there is a circle, and easier to understand.
    if found.is_empty() {
        found.extend(circles(&statements).iter().map(|circle| cyclic(circle)));
    }
    if found.is_empty() { Ok(()) } else { Err(failure(found)) }
}

/// What a `moved` block says in one instance of its module.
struct Move<'a> {
    statement: &'a Statement,
    from: String,
    to: String,
}

/// The other end of a move, by whether all instances are meant and the end that is known, and where that is said.
type Known<'a> = BTreeMap<(bool, String), (String, &'a SourceRange)>;

impl<'a> Move<'a> {
    fn of(statement: &'a Statement, instance: &str) -> Move<'a> {
        Move { statement, from: statement.from.absolute(instance), to: statement.to.absolute(instance) }
    }

    /// What is moved, in a word or two, and in one.
    fn nouns(&self) -> (&'static str, &'static str) {
        match (&self.statement.from.object, self.statement.all) {
            (Some(_), true) => ("resource", "resource"),
            (Some(_), false) => ("resource instance", "instance"),
            (None, true) => ("module call", "call"),
            (None, false) => ("module instance", "instance"),
        }
    }

    fn problem(&self, summary: &str, detail: String) -> Diagnostic {
        Diagnostic { range: Some(range(self.statement.range.clone())), ..Diagnostic::error(summary, detail) }
    }

    /// An object cannot have moved away from a place where the configuration wants one.
    fn still_declared(&self, config: &Config, values: &Values, instance: &str) -> Option<Diagnostic> {
        let declared = declaration(config, values, self.statement, instance)?;
        let ((noun, short), Move { from, to, .. }) = (self.nouns(), self);
        let detail = format!(
            "This statement declares a move from {from}, but that {noun} is still declared at {}.\n\nChange your \
             configuration so that this {short} will be declared as {to} instead.",
            start(&declared)
        );
        Some(self.problem("Moved object still exists", detail))
    }

    fn ambiguous(&self, sources: &mut Known<'a>, targets: &mut Known<'a>) -> Vec<Diagnostic> {
        let Statement { all, range, .. } = self.statement;
        let ((noun, short), Move { from, to, .. }) = (self.nouns(), self);
        let mut found = Vec::new();
        let summary = "Ambiguous move statements";
        let (other, place) = sources.entry((*all, from.clone())).or_insert((to.clone(), range));
        if other != to {
            let detail = format!(
                "A statement at {} declared that {from} moved to {other}, but this statement instead declares that it \
                 moved to {to}.\n\nEach {noun} can move to only one destination {short}.",
                start(place)
            );
            found.push(self.problem(summary, detail));
        }
        let (other, place) = targets.entry((*all, to.clone())).or_insert((from.clone(), range));
        if other != from {
            let detail = format!(
                "A statement at {} declared that {other} moved to {to}, but this statement instead declares that {from} \
                 moved there.\n\nEach {noun} can have moved from only one source {short}.",
                start(place)
            );
            found.push(self.problem(summary, detail));
        }
        found
    }
}

/// Where the configuration declares what a move says to have moved away, if it does.
fn declaration(config: &Config, values: &Values, statement: &Statement, instance: &str) -> Option<SourceRange> {
    let End { modules, object } = &statement.from;
    let modules = [steps(instance), modules.clone()].concat();
    let (repetition, block) = match object {
        Some(object) => {
            let address = crate::Address { module: module_text(&modules), ..object.clone() };
            let resource = config.resource(&address)?;
            let keys = values.keys(&address.module, &resource.local)?;
            if !statement.all && keys.each(&address.key).is_none() {
                return None;
            }
            let block = config.block(resource);
            (&block.repetition, &block.range)
        }
        None => {
            let ((name, _), outer): (&ModuleStep, _) = modules.split_last()?;
            let caller = module_text(outer);
            let known = match statement.all {
                true => values.has_call(&caller, name),
                false => values.has_instance(&module_text(&modules)),
            };
            let path = module_path(&caller);
            let node = config.modules.iter().find(|node| node.path == path).filter(|_| known)?;
            let call = node.module.calls.get(name)?;
            (&call.repetition, &call.range)
        }
    };
    match repetition {
        Repetition::Count(expr) | Repetition::ForEach(expr) if !statement.all => Some(expr.range()),
        _ => Some(block.clone()),
    }
}

/// Where something begins.
fn start(range: &SourceRange) -> String {
    format!("{}:{},{}", range.file, range.line, range.column)
}

fn cyclic(circle: &[&Statement]) -> Diagnostic {
    let line = |statement: &&Statement| {
        let (from, to) = (statement.pattern(&statement.from), statement.pattern(&statement.to));
        format!("\n  - {}: {from} → {to}", start(&statement.range))
    };
    let mut lines: Vec<String> = circle.iter().map(line).collect();
    lines.sort();
    let detail = format!(
        "The following chained move statements form a cycle, and so there is no final location to move objects \
         to:{}\n\nA chain of move statements must end with an address that doesn't appear in any other statements, and \
         which typically also refers to an object still declared in the configuration.",
        lines.concat()
    );
    Diagnostic::error("Cyclic dependency in move statements", detail)
}
