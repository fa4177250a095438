use landform_lang::{Tree, Unsupported as Foreign};

use super::translate;
use crate::native::trees::Trees;
use crate::state::State;
use crate::{Address, EngineError, SourceRange, Unsupported, Workspace};

/// What in a workspace this engine does not do exactly as OpenTofu does: constructs of the configuration, and what an
/// earlier run has left in the state. Otherwise the configuration, read.
pub fn unsupported(workspace: &Workspace, trees: &Trees) -> Result<Result<Tree, Vec<Unsupported>>, EngineError> {
    let tree = match trees.load(&workspace.folder) {
        Ok(tree) => tree,
        Err(diagnostics) => {
            // A configuration that cannot be read is wrong for every engine; one that `lang` does not know is left to
            // the other.
            let foreign =
                |diagnostic: &landform_lang::Diagnostic| diagnostic.cause == landform_lang::Cause::Unsupported;
            if !diagnostics.0.iter().all(foreign) {
                return Err(EngineError::Diagnostics(translate(diagnostics)));
            }
            let unsupported = |diagnostic: landform_lang::Diagnostic| Unsupported {
                construct: diagnostic.detail,
                range: diagnostic.range.map(range),
            };
            return Ok(Err(diagnostics.into_iter().map(unsupported).collect()));
        }
    };
    let mut found: Vec<Unsupported> = tree.unsupported().into_iter().map(of_language).collect();
    for moved in tree.all().iter().flat_map(|tree| &tree.module.moved) {
        let kind = |text: &str| Address::parse(text).map(|address| (address.data, address.type_name));
        if kind(&moved.from) != kind(&moved.to) {
            found.push(note("move to another resource type", &moved.range));
        }
    }
    if let Some(bytes) = &workspace.state {
        let state = State::read(bytes).map_err(crate::native::unreadable)?;
        let mut note = |construct: String| found.push(Unsupported { construct, range: None });
        for resource in state.resources() {
            for instance in &resource.instances {
                let address = resource.address(instance.index_key.clone());
                if !instance.attributes_flat.is_empty() {
                    note(format!("old form of {address} in the state"));
                }
            }
        }
    }
    Ok(if found.is_empty() { Ok(tree) } else { Err(found) })
}

fn of_language(unsupported: Foreign) -> Unsupported {
    Unsupported { construct: unsupported.construct, range: Some(range(unsupported.range)) }
}

fn note(construct: &str, at: &landform_lang::SourceRange) -> Unsupported {
    Unsupported { construct: construct.to_owned(), range: Some(range(at.clone())) }
}

pub fn range(range: landform_lang::SourceRange) -> SourceRange {
    let (line, column) = range.end;
    let end = Some((line as usize, column as usize));
    SourceRange { file: range.file, line: range.line, column: range.column, end }
}
