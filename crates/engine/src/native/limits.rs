use crate::state::State;
use crate::{EngineError, Key, SourceRange, Unsupported, Workspace};

/// What in a workspace this engine does not do exactly as OpenTofu does: constructs of the configuration, and what an
/// earlier run has left in the state.
pub fn unsupported(workspace: &Workspace) -> Result<Vec<Unsupported>, EngineError> {
    let module = match landform_lang::load(&workspace.folder) {
        Ok(module) => module,
        Err(diagnostics) => return super::config::unsupported_load(diagnostics),
    };
    let mut found: Vec<Unsupported> = module
        .unsupported
        .iter()
        .map(|unsupported| Unsupported {
            construct: unsupported.construct.clone(),
            range: Some(range(unsupported.range.clone())),
        })
        .collect();
    if let Some(bytes) = &workspace.state {
        let state = State::read(bytes).map_err(super::unreadable)?;
        let mut note = |construct: String| found.push(Unsupported { construct, range: None });
        for resource in state.resources() {
            let address = resource.address(None);
            if !address.module.is_empty() || address.data {
                note(format!("{address} in the state"));
                continue;
            }
            let configured =
                module.resources.iter().find(|r| r.resource_type == address.type_name && r.name == address.name);
            for instance in &resource.instances {
                let address = resource.address(instance.index_key.clone());
                let counted = configured.map(|resource| resource.count.is_some());
                // OpenTofu moves an object when `count` is added or taken away.
                let moves = matches!(
                    (&address.key, counted),
                    (None, Some(true)) | (Some(Key::Index(0)), Some(false)) | (Some(Key::Name(_)), _)
                );
                if instance.deposed.is_some() {
                    note(format!("deposed object of {address} in the state"));
                } else if moves {
                    note(format!("{address} in the state would have to move"));
                } else if instance.identity.is_some() {
                    note(format!("resource identity of {address} in the state"));
                } else if instance.create_before_destroy || instance.skip_destroy {
                    note(format!("lifecycle of {address} in the state"));
                } else if !instance.attributes_flat.is_empty() || !instance.provider.is_empty() {
                    note(format!("old form of {address} in the state"));
                }
            }
        }
    }
    Ok(found)
}

pub fn range(range: landform_lang::SourceRange) -> SourceRange {
    SourceRange { file: range.file, line: range.line, column: range.column }
}
